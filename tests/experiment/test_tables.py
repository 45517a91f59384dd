"""mlgd.experiment.tables: the paper's two tables beside ours."""

import numpy as np
import pytest

from mlgd.experiment.protocol import Protocol
from mlgd.experiment.sweep import read
from mlgd.experiment.tables import (
    PAPER_COSTS,
    PAPER_SEEDS,
    ROWS,
    Findings,
    costs_table,
    exponents_table,
)


@pytest.fixture(scope="module")
def found(book):
    return Findings(Protocol(), read(book / "data" / "seeds.json"))


def test_the_paper_s_tables_are_typed_right():
    """Its own sums: separations, means, ratios and targets, to the digits that it prints."""
    np.testing.assert_allclose(
        PAPER_SEEDS[:, [1, 1]] - PAPER_SEEDS[:, [2, 4]], PAPER_SEEDS[:, [3, 5]], atol=0.0016
    )
    means = [2.963, 3.438, 2.184, 1.254, 2.756, 0.682]
    np.testing.assert_allclose(PAPER_SEEDS.mean(axis=0), means, atol=0.001)
    np.testing.assert_allclose(PAPER_COSTS[:, 0], Protocol().losses[ROWS], rtol=0.005)
    np.testing.assert_allclose(
        PAPER_COSTS[:, [1, 1]] / PAPER_COSTS[:, [2, 4]],
        PAPER_COSTS[:, [3, 5]],
        rtol=0.01,
        atol=0.05,
    )


def test_columns_are_in_the_paper_s_order(found):
    gamma, fixed, exact, gap, truncated, other_gap = found.columns().T
    np.testing.assert_allclose(fixed - exact, gap)
    np.testing.assert_allclose(fixed - truncated, other_gap)
    np.testing.assert_allclose(gamma, found.fit()[0])
    assert len(gamma) == 20


def test_an_advantage_is_of_seeds_that_reached_the_target_with_both(found):
    one, other = found.both("truncated")
    assert (np.isnan(one) == np.isnan(other)).all()
    assert np.isnan(one[:, -1]).any()
    chosen = ~np.isnan(one[:, -1])
    assert found.advantage("truncated")[-1] == pytest.approx(
        np.median(one[chosen, -1]) / np.median(other[chosen, -1])
    )


def test_every_seed_and_target_has_its_line(found):
    assert sum(line.startswith("seed 1") for line in exponents_table(found).splitlines()) == 20
    assert [line[:5] for line in costs_table(found).splitlines()[2:]] == [
        f"{t:.3f}" for t in PAPER_COSTS[:, 0]
    ]
