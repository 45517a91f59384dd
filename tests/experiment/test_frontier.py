"""mlgd.experiment.frontier: the searches behind the frontiers, and whole frontiers against literal execution."""

import numpy as np
import pytest

from mlgd.experiment import direct
from mlgd.experiment.design import TELESCOPE, Design, stream
from mlgd.experiment.features import reduce
from mlgd.experiment.frontier import (
    Reached,
    Run,
    first_below,
    fixed_frontier,
    fixed_level,
    fixed_steps,
    probabilities,
    telescope_frontier,
)

LADDER = (1, 4, 16, 64)
TARGETS = np.logspace(-0.3, -1.5, 10)


@pytest.fixture(scope="module")
def problem():
    return reduce([Design(m=256, n=2048, seed=3)], 64)[0]


@pytest.fixture(scope="module")
def columns(problem):
    return problem.design.columns(64)


@pytest.fixture(scope="module")
def biases(problem):
    return problem.biases(LADDER).max(axis=0)


def test_the_cheapest_run_to_a_target_is_kept():
    best = Reached.nothing(2)
    for flops, choice in ((5.0, 1), (7.0, 2), (3.0, 4)):
        best.note(0, flops, 1, Run(choice, 1.0, "last"))
    assert best.flops[0] == 3.0
    assert best.runs == [Run(4, 1.0, "last"), None]
    assert np.isinf(best.flops[1])


def test_first_below_is_the_first():
    needed = np.array([0.9, 0.5, 1e-3, 1e-9, 0.0, -1.0])
    found = first_below(lambda t: 1 / t, needed)
    np.testing.assert_array_equal(found[:4], [2, 2, 1000, 1e9])
    assert np.isinf(found[4:]).all()
    assert np.isinf(first_below(lambda t: np.ones_like(t), np.array([0.5]))).all()


def test_probabilities_follow_the_biases_and_are_clamped():
    p = probabilities(np.array([1.0, 0.5, 0.25]), 3.0, 2.0)
    np.testing.assert_allclose(p, [1.0, 2 * 0.5**2.5, 2 * 0.25**2.5])


def test_reading_rarely_rounds_the_steps_up():
    steps = {(4, 1.0, "last"): np.array([7.0, 150.0, np.inf])}
    np.testing.assert_array_equal(fixed_frontier(steps, 10).flops, [7 * 160.0, 150 * 160.0, np.inf])
    np.testing.assert_array_equal(
        fixed_frontier(steps, 10, every=100).flops, [100 * 160.0, 200 * 160.0, np.inf]
    )
    assert np.isinf(fixed_frontier(steps, 10, max_steps=100).flops[1])


def test_fixed_level_first_steps_are_exact(problem, columns):
    for k in (1, 4, 32):
        for shrink in (1.0, 0.5):
            losses = direct.fixed(
                columns, problem.right, k, shrink / (4 * problem.smoothness(k)), 2000
            )
            found = fixed_level(problem, k, shrink, TARGETS)
            for iterate, loss in zip(("last", "average"), losses, strict=True):
                for target, first in zip(TARGETS, found[iterate], strict=True):
                    below = np.flatnonzero(loss <= target * problem.loss_zero)
                    assert first == below[0] + 1 if len(below) else first > 2000


def test_frontier_is_the_cheapest_run(problem, columns, biases):
    eta = 1 / (4 * problem.smoothness(64))
    budget, steps = 3e7, 4000
    for exact in (True, False):
        best = {e: np.full(len(TARGETS), np.inf) for e in (1, 50)}
        for i, scale in enumerate((1, 8)):
            for j, shrink in enumerate((1.0, 0.5)):
                p = probabilities(biases, 3.0, scale)
                rng = stream(3, TELESCOPE, int(exact), i, j)
                run = direct.telescope(
                    columns, problem.right, LADDER, p, shrink * eta, exact, rng, steps
                )
                for every, cheapest in best.items():
                    for loss in (run.last, run.average):
                        for t, target in enumerate(TARGETS):
                            hit = np.flatnonzero(
                                (loss <= target * problem.loss_zero)
                                & (np.arange(1, steps + 1) % every == 0)
                            )
                            if len(hit) and run.flops[hit[0]] < budget:
                                cheapest[t] = min(cheapest[t], run.flops[hit[0]])
        found = telescope_frontier(
            problem,
            LADDER,
            (1, 8),
            exact,
            TARGETS,
            (0, 1, 4, 20, 89, 400),
            (1.0, 0.5),
            steps,
            budget,
            (1, 50),
        )
        for every, reached in zip((1, 50), found, strict=True):
            sure = best[every] < budget / 2
            assert sure.sum() >= 3
            np.testing.assert_array_equal(reached.flops[sure], best[every][sure])


def test_targets_below_the_floor_are_never_reached(problem):
    low = np.array([0.4, problem.floor(64) * 0.99])
    for reached in telescope_frontier(problem, LADDER, (1,), True, low, (0, 1), max_flops=1e7):
        assert np.isfinite(reached.flops[0])
        assert np.isinf(reached.flops[1])
    assert np.isinf(fixed_frontier(fixed_steps(problem, LADDER, low), 256).flops[1])


def test_limits_and_reading_intervals_only_cost(problem):
    steps = fixed_steps(problem, LADDER, TARGETS)
    free, limited, coarse = (
        fixed_frontier(steps, 256, **o).flops for o in ({}, {"max_steps": 300}, {"every": 100})
    )
    assert (limited >= free).all()
    assert (coarse >= free).all()
    assert (limited > free).any()
    assert (coarse > free).any()
