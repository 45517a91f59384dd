"""The paper's two tables beside ours, and what the paper does not run, on a small design."""

import numpy as np
import pytest

from mlgd.experiment.design import Design
from mlgd.experiment.frontier import Frozen, krylov_frontier, probabilities
from mlgd.experiment.reduce import reduce
from mlgd.experiment.sweep import EVERY, Protocol, read
from mlgd.experiment.tables import (
    PAPER_COSTS,
    PAPER_ERRORS,
    PAPER_MEANS,
    PAPER_SEEDS,
    ROWS,
    Findings,
    spread,
)
from mlgd.experiment.trajectory import coins, prices


@pytest.fixture(scope="module")
def found(book):
    return Findings(Protocol(), read(book / "data" / "seeds.json"))


def test_the_paper_s_tables_are_typed_right():
    """Its own sums: separations, means, errors, ratios, targets, to the digits printed."""
    gaps, ratios = PAPER_SEEDS[:, [3, 5]], PAPER_COSTS[:, [3, 5]]
    np.testing.assert_allclose(
        PAPER_SEEDS[:, [1, 1]] - PAPER_SEEDS[:, [2, 4]], gaps, atol=0.0016
    )
    printed = list(zip(map(float, PAPER_MEANS), PAPER_ERRORS, strict=True))
    np.testing.assert_allclose([spread(v) for v in PAPER_SEEDS.T], printed, atol=0.001)
    np.testing.assert_allclose(PAPER_COSTS[:, 0], Protocol().losses[ROWS], rtol=0.005)
    costs = PAPER_COSTS[:, [1, 1]] / PAPER_COSTS[:, [2, 4]]
    np.testing.assert_allclose(costs, ratios, rtol=0.01, atol=0.05)


def test_a_slope_against_the_excess_is_the_smaller_one(found):
    loss, excess = (found.lines(found.flops("fixed"), e)[0] for e in (False, True))
    assert (excess < loss).all()


def test_readings_get_less_straight_and_the_window_closes(found):
    lowest = [found.lowest(every) for every in EVERY]
    assert (lowest, found.every) == (sorted(lowest, reverse=True), 25)
    apart = np.array([r.truncated - r.exact for r in found.results])
    assert (apart >= 0).all()
    assert not apart[..., -1].any()


# -- beyond the paper ------------------------------------------------------------------------------

LADDER = (1, 4, 16)
TARGETS = np.array([0.5, 0.3, 0.2])


@pytest.fixture(scope="module")
def problem():
    return reduce(Design(m=128, n=1024, seed=6), 16)


def test_krylov_finds_the_minimum_in_few_iterations(problem):
    floor = problem.floor(16)
    reached = krylov_frontier(problem, (16,), np.array([floor * 1.0001, floor * 0.99]))
    assert reached.steps[0] <= 32
    assert np.isinf(reached.flops[1])


def test_frozen_fixed_level_is_the_literal_descent(problem):
    frozen, eta = Frozen(problem), 1 / (4 * problem.smoothness(16))
    for k in (4, 16):
        x, first = np.zeros(16), np.full(3, np.inf)
        # the gradient at 0, past k
        error = np.where(np.arange(16) < k, 0.0, -problem.moment)
        for t in range(1, 3001):
            x = x - eta * (problem.gram @ x - problem.moment - error)
            met = problem.loss(x) <= TARGETS * problem.loss_zero
            first = np.where(met & np.isinf(first), t, first)
        np.testing.assert_array_equal(frozen.fixed((k,), TARGETS).steps, first)


def test_frozen_telescope_is_the_literal_descent(problem):
    p = probabilities(problem.biases(LADDER, steps=(0,))[0], 3.0, 2.0)
    eta, x, flops, cost = (
        1 / (4 * problem.smoothness(16)),
        np.zeros(16),
        np.full(3, np.inf),
        0.0,
    )
    total = np.zeros(16)
    for t, row in enumerate(next(coins(6, (9, 0), p))):
        weight = np.repeat(row / p, np.diff((0, *LADDER)))
        total += x
        x = x - eta * (problem.gram @ x - weight * problem.moment)
        cost += prices(LADDER, 128, True, row[None])[0]
        for point in (x, total / (t + 1)):
            met = problem.loss(point) <= TARGETS * problem.loss_zero
            flops = np.where(met & np.isinf(flops), cost, flops)
    found = Frozen(problem).telescope(LADDER, (2.0,), TARGETS, 1.0)
    np.testing.assert_allclose(found.flops, flops)
