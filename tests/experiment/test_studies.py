"""The studies around the experiment, on small designs."""

import numpy as np
import pytest

from mlgd.experiment.design import Design
from mlgd.experiment.frontier import probabilities
from mlgd.experiment.reduce import reduce
from mlgd.experiment.studies import Frozen, beyond, envelopes, krylov_frontier
from mlgd.experiment.sweep import Protocol
from mlgd.experiment.trajectory import coins, prices

LADDER = (1, 4, 16)
TARGETS = np.array([0.5, 0.3, 0.2])


@pytest.fixture(scope="module")
def problem():
    return reduce(Design(m=128, n=1024, seed=6), 16)


def test_envelopes_are_the_largest_biases(problem):
    found = envelopes(problem.design, 16)
    assert found["levels"].tolist() == [1, 2, 3, 4, 6, 8, 11, 16]
    np.testing.assert_allclose(found["exact"], problem.biases(found["levels"]).max(axis=0))
    assert (found["truncated"] >= found["exact"] * (1 - 1e-12)).all()


def test_krylov_finds_the_minimum_in_few_iterations(problem):
    floor = problem.floor(16)
    reached = krylov_frontier(problem, (16,), np.array([floor * 1.0001, floor * 0.99]))
    assert reached.steps[0] <= 32
    assert np.isinf(reached.flops[1])


def test_frozen_fixed_level_is_the_literal_descent(problem):
    frozen, eta = Frozen.of(problem), 1 / (4 * problem.smoothness(16))
    for k in (4, 16):
        x, first = np.zeros(16), np.full(3, np.inf)
        error = np.where(np.arange(16) < k, 0.0, -problem.moment)  # the gradient at 0, past k
        for t in range(1, 3001):
            x = x - eta * (problem.gram @ x - problem.moment - error)
            met = problem.loss(x) <= TARGETS * problem.loss_zero
            first = np.where(met & np.isinf(first), t, first)
        np.testing.assert_array_equal(frozen.fixed((k,), TARGETS).steps, first)


def test_frozen_telescope_is_the_literal_descent(problem):
    p = probabilities(problem.biases(LADDER, steps=(0,))[0], 3.0, 2.0)
    eta, x, flops, cost = 1 / (4 * problem.smoothness(16)), np.zeros(16), np.full(3, np.inf), 0.0
    total = np.zeros(16)
    for t, row in enumerate(next(coins(6, (9, 0), p))):
        weight = np.repeat(row / p, np.diff((0, *LADDER)))
        total += x
        x = x - eta * (problem.gram @ x - weight * problem.moment)
        cost += prices(LADDER, 128, True, row[None])[0]
        for point in (x, total / (t + 1)):
            met = problem.loss(point) <= TARGETS * problem.loss_zero
            flops = np.where(met & np.isinf(flops), cost, flops)
    found = Frozen.of(problem).telescope(LADDER, (2.0,), TARGETS, 1.0)
    np.testing.assert_allclose(found.flops, flops)


def test_beyond_gathers_them(problem):
    protocol = Protocol(m=128, n=1024, ladder=LADDER, seeds=(6,), max_flops=1e5)
    found = beyond(protocol, problem)
    assert set(found) == {"krylov", "frozen fixed", "frozen exact"}
    assert all(len(reached.flops) == 20 for reached in found.values())
