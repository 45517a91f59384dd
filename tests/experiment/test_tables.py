"""mlgd.experiment.tables: the paper's two tables beside ours."""

import numpy as np
import pytest

from mlgd.experiment.sweep import Protocol, read
from mlgd.experiment.tables import (
    PAPER_COSTS,
    PAPER_ERRORS,
    PAPER_MEANS,
    PAPER_SEEDS,
    ROWS,
    Findings,
    costs_table,
    exponents_table,
    spread,
)


@pytest.fixture(scope="module")
def found(book):
    return Findings(Protocol(), read(book / "data" / "seeds.json"))


def test_the_paper_s_tables_are_typed_right():
    """Its own sums: separations, means, errors, ratios, targets, to the digits printed."""
    gaps, ratios = PAPER_SEEDS[:, [3, 5]], PAPER_COSTS[:, [3, 5]]
    np.testing.assert_allclose(PAPER_SEEDS[:, [1, 1]] - PAPER_SEEDS[:, [2, 4]], gaps, atol=0.0016)
    printed = list(zip(map(float, PAPER_MEANS), PAPER_ERRORS, strict=True))
    np.testing.assert_allclose([spread(v) for v in PAPER_SEEDS.T], printed, atol=0.001)
    np.testing.assert_allclose(PAPER_COSTS[:, 0], Protocol().losses[ROWS], rtol=0.005)
    costs = PAPER_COSTS[:, [1, 1]] / PAPER_COSTS[:, [2, 4]]
    np.testing.assert_allclose(costs, ratios, rtol=0.01, atol=0.05)


def test_columns_are_in_the_paper_s_order(found):
    gamma, fixed, exact, gap, truncated, other_gap = found.columns().T
    np.testing.assert_allclose(fixed - exact, gap)
    np.testing.assert_allclose(fixed - truncated, other_gap)
    np.testing.assert_allclose(gamma, found.fit()[0])
    assert len(gamma) == 20


def test_an_advantage_is_of_seeds_that_reached_the_target_with_both(found):
    one, other = found.flops("fixed"), found.flops("truncated")
    both = np.isfinite(one) & np.isfinite(other)
    assert (np.isfinite(found.advantage("truncated")) == both).all()
    assert not both[:, ROWS[-1]].all()


def test_a_slope_against_the_excess_is_the_smaller_one(found):
    loss, excess = (found.lines(found.flops("fixed"), e)[0] for e in (False, True))
    assert (excess < loss).all()


def test_every_column_and_target_has_its_place(found):
    assert len(exponents_table(found).splitlines()) == 4
    rows = costs_table(found).splitlines()[2:]
    assert [line[:5] for line in rows] == [f"{t:.3f}" for t in PAPER_COSTS[:, 0]]
