"""Runs in Gram space and frontiers against the literal execution, and that against algebra."""

import ast
from pathlib import Path

import numpy as np
import pytest

from mlgd.experiment import literal
from mlgd.experiment.design import TELESCOPE, Design, stream
from mlgd.experiment.frontier import (
    across_seeds,
    fixed_frontier,
    fixed_level,
    probabilities,
    telescope_frontier,
)
from mlgd.experiment.reduce import reduce
from mlgd.experiment.sweep import Protocol
from mlgd.experiment.trajectory import DRAWS, Frame, Trajectory, coins

LADDER = (1, 4, 16, 64)
CASES = [(LADDER, c) for c in (1, 2, 8, 1000)]
CASES += [((2, 64), 4), ((4, 16, 64), 1), ((1, 2, 8, 16, 64), 2)]
TARGETS = np.logspace(-0.3, -1.5, 10)


@pytest.fixture(scope="module")
def problem():
    return reduce(Design(m=256, n=2048, seed=3), 64)


def whole(problem, ladder, p, eta, exact, steps):
    """A run in Gram space to its end: steps, flops, last, average."""
    run = Trajectory(Frame(problem, ladder, exact), p, eta, (int(exact), 0, 0))
    parts = []
    while run.steps < steps:
        parts.append(run.advance(min(700, steps - run.steps)))
    return [np.concatenate(each) for each in zip(*parts, strict=True)]


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("ladder", "scale"), CASES)
def test_gram_space_is_the_literal_run(problem, exact, ladder, scale):
    p = probabilities(problem.biases(ladder).max(axis=0), 3.0, scale)
    eta, rng = 1 / (4 * problem.smoothness(64)), stream(3, TELESCOPE, int(exact), 0, 0)
    columns = problem.design.columns(64)
    run = literal.telescope(columns, problem.right, ladder, p, eta, exact, rng, 3000)
    _, flops, last, average = whole(problem, ladder, p, eta, exact, 3000)
    np.testing.assert_allclose(last, run.last, rtol=1e-9)
    np.testing.assert_allclose(average, run.average, rtol=1e-9)
    np.testing.assert_array_equal(flops, run.flops)


def test_a_run_that_diverges_is_stopped(problem):
    p = np.array([1, 0.01, 0.001, 0.001])
    run = Trajectory(Frame(problem, LADDER, True), p, 2.5, (0,))
    for _ in range(20):
        run.advance(DRAWS)
    assert run.diverged


def test_coins_are_reproducible_and_fall_with_their_probabilities():
    p = np.array([1.0, 0.3, 0.01])
    first, again = next(coins(3, (1, 2), p)), next(coins(3, (1, 2), p))
    assert (first == again).all()
    assert (first != next(coins(3, (1, 3), p))).any()
    assert (np.abs(first.mean(axis=0) - p) <= 4.9 * np.sqrt(p * (1 - p) / DRAWS)).all()


def test_fixed_level_first_steps_are_exact(problem):
    columns = problem.design.columns(64)
    for k in (1, 4, 32):
        for shrink in (1.0, 0.5):
            eta = shrink / (4 * problem.smoothness(k))
            found = fixed_level(problem, k, shrink, TARGETS)
            losses = literal.fixed(columns, problem.right, k, eta, 2000)
            for steps, loss in zip(found, losses, strict=True):
                for target, first in zip(TARGETS, steps, strict=True):
                    below = np.flatnonzero(loss <= target * problem.loss_zero)
                    assert first == below[0] + 1 if len(below) else first > 2000


def test_reading_rarely_rounds_the_steps_up_and_a_limit_only_costs():
    steps = [(4, np.array([7.0, 150.0, np.inf]))]
    assert fixed_frontier(steps, 10).flops.tolist() == [7 * 160.0, 150 * 160.0, np.inf]
    rare = fixed_frontier(steps, 10, every=100)
    assert rare.flops.tolist() == [100 * 160.0, 200 * 160.0, np.inf]
    assert np.isinf(fixed_frontier(steps, 10, max_steps=100).flops[1])


@pytest.mark.slow
def test_frontier_is_the_cheapest_literal_run(problem):
    eta, columns = 1 / (4 * problem.smoothness(64)), problem.design.columns(64)
    biases, budget, steps = problem.biases(LADDER).max(axis=0), 3e7, 4000
    for exact in (True, False):
        best = {e: np.full(len(TARGETS), np.inf) for e in (1, 50)}
        for i, scale in enumerate((1, 8)):
            for j, shrink in enumerate((1.0, 0.5)):
                p, rng = (
                    probabilities(biases, 3.0, scale),
                    stream(3, TELESCOPE, int(exact), i, j),
                )
                size = shrink * eta
                run = literal.telescope(
                    columns, problem.right, LADDER, p, size, exact, rng, steps
                )
                for every, cheapest in best.items():
                    read = np.arange(1, steps + 1) % every == 0
                    for loss in (run.last, run.average):
                        for t, target in enumerate(TARGETS):
                            hit = np.flatnonzero(
                                (loss <= target * problem.loss_zero) & read
                            )
                            if len(hit):
                                cheapest[t] = min(cheapest[t], run.flops[hit[0]])
        given = (
            256,
            2048,
            1.2,
            0.6,
            LADDER,
            (3,),
            (1, 8),
            (1, 0.5),
            TARGETS,
            steps,
            budget,
        )
        found = telescope_frontier(problem, Protocol(*given), exact, (1, 50))
        for every, reached in zip((1, 50), found, strict=True):
            sure = best[every] < budget / 2
            assert sure.sum() >= 3
            np.testing.assert_array_equal(reached.flops[sure], best[every][sure])


def test_targets_below_the_floor_are_never_reached(problem):
    low = np.array([0.4, problem.floor(64) * 0.99])
    protocol = Protocol(
        m=256, n=2048, ladder=LADDER, scales=(1,), targets=low, max_flops=1e7
    )
    (reached,) = telescope_frontier(problem, protocol, True)
    assert np.isfinite(reached.flops[0])
    assert np.isinf(reached.flops[1])
    assert np.isinf(fixed_level(problem, 64, 1.0, low)[0, 1])


def test_medians_need_half_of_the_seeds():
    flops = np.array(
        [[1.0, 1, np.inf], [2, np.inf, np.inf], [3, np.inf, 5], [9, 2, np.inf]]
    )
    low, middle, high = across_seeds(flops)
    assert (middle[0], middle[1]) == (2.5, 1.5)
    assert np.isnan(middle[2])
    assert low[0] < middle[0] < high[0]


# -- the literal execution itself ------------------------------------------------------------------

COLUMNS = np.random.default_rng(5).standard_normal((40, 8)) * np.arange(1, 9) ** -0.8
RIGHT = np.random.default_rng(6).standard_normal(40)


def test_a_literal_fixed_level_is_descent_on_its_columns():
    head, x, path = COLUMNS[:, :3], np.zeros(3), []
    last, average = literal.fixed(COLUMNS, RIGHT, 3, 0.01, 20)
    for _ in range(20):
        path.append(x)
        x = x - 0.01 * head.T @ (head @ x - RIGHT)
    for loss, point in ((last[-1], x), (average[-1], np.mean(path, axis=0))):
        assert loss == pytest.approx(0.5 * np.sum((head @ point - RIGHT) ** 2), rel=1e-12)


@pytest.mark.parametrize("exact", [True, False])
def test_a_literal_telescope_that_draws_everything_is_its_finest_level(exact):
    rng = np.random.default_rng(0)
    run = literal.telescope(COLUMNS, RIGHT, (1, 4, 8), np.ones(3), 0.01, exact, rng, 30)
    last, average = literal.fixed(COLUMNS, RIGHT, 8, 0.01, 30)
    np.testing.assert_allclose(run.last, last, rtol=1e-10)
    np.testing.assert_allclose(run.average, average, rtol=1e-10)
    update = 2 * 40 * 8 if exact else 0
    assert run.flops[0] == (2 if exact else 4) * 40 * (1 + 5 + 12) + update
    np.testing.assert_allclose(run.residual, COLUMNS @ run.x - RIGHT, atol=1e-10)


def test_the_literal_execution_takes_nothing_from_the_modules_that_it_judges():
    tree = ast.parse(Path(literal.__file__).read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules == {"__future__", "collections.abc", "dataclasses"}
