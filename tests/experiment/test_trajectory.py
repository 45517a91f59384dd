"""mlgd.experiment.trajectory: coins, prices, and the closed forms against literal execution on the same draws."""

import numpy as np
import pytest

from mlgd.experiment import direct
from mlgd.experiment.design import TELESCOPE, Design, stream
from mlgd.experiment.features import reduce
from mlgd.experiment.frontier import probabilities
from mlgd.experiment.trajectory import DRAWS, Trajectory, coins, prices

LADDER = (1, 4, 16, 64)


@pytest.fixture(scope="module")
def problem():
    return reduce([Design(m=256, n=2048, seed=3)], 64)[0]


@pytest.fixture(scope="module")
def biases(problem):
    return problem.biases(LADDER).max(axis=0)


def test_coins_are_reproducible_and_fall_with_their_probabilities():
    p = np.array([1.0, 0.3, 0.01])
    first, again = next(coins(3, (1, 2), p)), next(coins(3, (1, 2), p))
    assert first.shape == (DRAWS, 3)
    assert (first == again).all()
    assert (first != next(coins(3, (1, 3), p))).any()
    spread = np.sqrt(p * (1 - p) / DRAWS)
    assert (np.abs(first.mean(axis=0) - p) <= 4.9 * spread).all()


def test_every_increment_pays_for_two_levels_and_the_exact_form_for_its_residual():
    drawn = np.array([[True, False, False], [True, True, False], [True, False, True]])
    np.testing.assert_array_equal(
        prices((1, 8, 64), 10, False, drawn), 40.0 * np.array([1, 10, 73])
    )
    np.testing.assert_array_equal(
        prices((1, 8, 64), 10, True, drawn), 20.0 * np.array([1 + 1, 10 + 8, 73 + 64])
    )


def run_whole(problem, p, eta, exact, steps, goal=np.inf):
    run = Trajectory(problem, LADDER, p, eta, exact, (int(exact), 0, 0))
    parts = []
    while run.steps < steps:
        parts.append(run.advance(goal, steps - run.steps))
    return run, parts


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("scale", [1, 2, 8, 1000])
def test_gram_space_is_the_literal_run(problem, biases, exact, scale):
    p, eta = probabilities(biases, 3.0, scale), 1 / (4 * problem.smoothness(64))
    columns, rng = problem.design.columns(64), stream(3, TELESCOPE, int(exact), 0, 0)
    literal = direct.telescope(columns, problem.right, LADDER, p, eta, exact, rng, 3000)
    _, parts = run_whole(problem, p, eta, exact, 3000)
    np.testing.assert_allclose(np.concatenate([q.last for q in parts]), literal.last, rtol=1e-9)
    np.testing.assert_allclose(
        np.concatenate([q.average for q in parts]), literal.average, rtol=1e-9
    )
    np.testing.assert_array_equal(np.concatenate([q.flops for q in parts]), literal.flops)


def test_averages_left_unread_were_above_the_goal(problem, biases):
    p, eta = probabilities(biases, 3.0, 1), 1 / (4 * problem.smoothness(64))
    _, read = run_whole(problem, p, eta, True, 20_000)
    goal = np.concatenate([q.average for q in read]).min() * 0.5
    _, sparse = run_whole(problem, p, eta, True, 20_000, goal)
    unread = [j for j, q in enumerate(sparse) if q.average is None]
    assert unread  # the test is worth something only if some chunks were passed over
    for full, some in zip(read, sparse, strict=True):
        if some.average is None:
            assert full.average.min() > goal
        else:
            np.testing.assert_allclose(some.average, full.average, rtol=1e-9)


def test_a_run_that_diverges_is_stopped(problem):
    run = Trajectory(problem, LADDER, np.array([1, 0.01, 0.001, 0.001]), 2.5, True, (0,))
    for _ in range(20):
        run.advance(0.0)
    assert run.diverged
    with pytest.raises(ValueError, match="coarsest level"):
        Trajectory(problem, LADDER, np.array([0.5, 0.1, 0.1, 0.1]), 0.1, True, (0,))
