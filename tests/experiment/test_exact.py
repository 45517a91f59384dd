"""Exact mean losses against every draw enumerated, 60 digits, and runs of the jump process."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from mpmath import mp, mpf

from mlgd import Problem, plan
from mlgd.examples import biased
from mlgd.experiment.exact import (
    errors,
    flow_loss,
    mean_loss,
    momentum,
    proposition_schedule,
)
from mlgd.flow import Schedule, flow

SMALL = Problem(beta=1.0, d0=1.0, gamma=3.0, c=1.0)


@pytest.mark.parametrize("coarsest", [1.0, 0.4])
def test_a_mean_loss_is_that_of_all_draws(coarsest):
    bill, curvature, reached = plan(SMALL, 4.0, eta=0.25), 0.7, []
    stage = bill.stages[0]
    t = bill.telescope(SMALL.prices(stage.delta), stage)
    p, offsets = [coarsest, *t.p[1:]], errors(t.levels)
    increments = np.diff(offsets, prepend=0.0)
    outcomes = list(product((0, 1), repeat=len(p)))
    for side in (1.0, -1.0):
        total = 0.0
        for run in product(outcomes, repeat=bill.steps):
            y, mean, chance = side, 0.0, 1.0
            for drawn in run:
                mean += y / bill.steps
                chance *= math.prod(
                    q if hit else 1 - q for q, hit in zip(p, drawn, strict=True)
                )
                moves = [curvature * y + increments[0], *increments[1:]]
                move = sum(hit * m / q for hit, m, q in zip(drawn, moves, p, strict=True))
                y -= bill.eta * move
            total += chance * curvature / 2 * mean**2
        reached.append(total)
    assert mean_loss(bill, curvature, coarsest) == pytest.approx(max(reached), rel=1e-12)


@pytest.mark.parametrize("method", ["multilevel", "scheduled"])
def test_a_step_of_a_trillionth_keeps_its_digits(method):
    problem = Problem(beta=3.0, mu=0.01, d0=2.0, gamma=3.0, c=0.7)
    eps, curvature = 0.002, 0.3
    bill = plan(problem, eps, method, eta=2.0**-40 / (4 * problem.beta))
    found = mean_loss(bill, curvature)
    mp.dps, worst = 50, mpf(0)
    for side in (1, -1):
        state = [mpf(1), mpf(side) * 2, mpf(4), mpf(0), mpf(0), mpf(0), mpf(0)]
        for stage in bill.stages:
            matrix = mp.matrix(in_digits(bill, stage, curvature)) ** stage.steps
            state = list(matrix * mp.matrix(state))
        worst = max(worst, mpf(curvature) / 2 * state[5] / state[6] ** 2)
    assert found == pytest.approx(float(worst), rel=1e-9)


def in_digits(bill, stage, curvature) -> list[list]:
    """One step of the seven moments, in as many digits as mpmath has."""
    t = bill.telescope(bill.problem.prices(stage.delta), stage)
    offsets = [mpf(float(x)) for x in errors(t.levels)]
    odds = [1 / mpf(float(q)) - 1 for q in t.p]
    steps = [offsets[0], *(b - a for a, b in pairwise(offsets))]
    eta, lam, bias = mpf(bill.eta), mpf(curvature), offsets[-1]
    noise = sum(o * d * d for o, d in zip(odds, steps, strict=True))
    keep = 1 - eta * mpf(bill.problem.mu) * (
        mpf(1) / 2 if bill.method == "scheduled" else 1
    )
    s, zero = 1 - eta * lam, [mpf(0)] * 7
    rows = [list(zero) for _ in range(7)]
    rows[0][0] = mpf(1)
    rows[1][:2] = -eta * bias, s
    push = 2 * eta**2 * odds[0] * lam * offsets[0] - 2 * s * eta * bias
    rows[2][:3] = eta**2 * (bias**2 + noise), push, s * s + eta**2 * lam**2 * odds[0]
    rows[3][1], rows[3][3] = mpf(1), keep
    rows[4][1:5] = -eta * bias, s, -keep * eta * bias, keep * s
    rows[5][2], rows[5][4], rows[5][5] = mpf(1), 2 * keep, keep * keep
    rows[6][0], rows[6][6] = mpf(1), keep
    return rows


@pytest.mark.slow
def test_the_jump_process_has_the_mean_loss_of_its_runs():
    problem, time = Problem(beta=4.0, mu=1.0, d0=1.0, gamma=3.0, c=0.13), 4.0
    h = biased(lambda y: y, 3.0, 0.13, range(1, 6), alternate=True)
    law = proposition_schedule(h, 1.0, 0.5, 3.0, time, coarsest=4.0)
    sides = {}
    for side in (1.0, -1.0):
        streams = np.random.default_rng(1).spawn(150)
        ends = np.array(
            [flow(h, np.array([side]), law, time, rng).y[0] for rng in streams]
        )
        sides[side] = ends**2 / 2
    worse = max(sides.values(), key=np.mean)
    exact, error = flow_loss(law, problem, time, 1.0), worse.std() / math.sqrt(150)
    assert abs(worse.mean() - exact) < 5 * error
    assert abs(worse.mean() - 2 * exact) > 5 * error  # the test can fail


@pytest.mark.parametrize("coarsest", [0.0, 3.0, 40.0])
def test_rates_carry_the_bias_and_the_variance_and_their_bounds_hold(coarsest):
    h = biased(lambda y: y, 3.0, 1.0, range(0, 12), alternate=True)
    mu, eps, horizon = 0.5, 0.01, 9.0
    schedule = proposition_schedule(h, mu, eps, 3.0, horizon, coarsest=coarsest)
    for t in np.linspace(0.01, 8.99, 40):
        column = schedule.rates(np.array([t]))[:, 0]
        used = column > 0
        delta = math.sqrt(mu * eps / 8) * math.exp(mu * (horizon - t) / 8)
        nu2 = eps / 4 * math.exp(mu * (horizon - t) / 4)
        accuracy = 2.0 ** -np.array(schedule.levels, float)
        assert accuracy[used][-1] <= delta < 2 * accuracy[used][-1] or used.sum() == 1
        variance = ((3 * accuracy[used]) ** 2 / column[used]).sum()
        assert variance <= nu2 * (1 + 1e-12)
        assert column[0] >= coarsest
        # a geometric sum over its limit, at gamma = 3
        filled = 1 - 2 ** (-0.5 * used.sum())
        assert column[0] == coarsest or variance == pytest.approx(filled * nu2)
    assert schedule.weight == mu / 2
    grid = tuple(np.linspace(0, horizon, 2001))
    finer, ones = (
        Schedule(schedule.rates, schedule.levels, schedule.breaks + grid),
        used | True,
    )
    assert schedule.integral(ones, horizon) == pytest.approx(
        finer.integral(ones, horizon), 1e-5
    )
    for start, end in schedule.stretches(horizon):
        inner = schedule.rates(np.linspace(start, end, 50)[1:-1])
        ends = schedule.rates(
            np.array([start, end]) + 1e-9 * (end - start) * np.array([1, -1])
        )
        assert (inner.max(axis=1) <= ends.max(axis=1) * (1 + 1e-6)).all()


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [2.5, 3.0, 4.0])
def test_the_repaired_proposition_reaches_its_target(gamma):
    curvature, eps, start = np.array([1.0, 4.0]), 0.05, np.array([0.6, 0.8])
    loss = lambda y: 0.5 * float(y @ (curvature * y))  # noqa: E731
    h = biased(lambda y: curvature * y, gamma, 0.25, range(2, 10), alternate=True)
    horizon = 2 * math.log(1 + 2 / eps)
    schedule = proposition_schedule(h, 1.0, eps, gamma, horizon, coarsest=16.0)
    losses = np.array(
        [loss(flow(h, start, schedule, horizon, [10, r]).y) for r in range(100)]
    )
    assert losses.mean() + 4.9 * losses.std(ddof=1) / 10 <= eps


@pytest.mark.parametrize("constant", [True, False])
def test_momentum_answers_as_the_recursion_does(constant):
    curvature, steps, eta = np.array([0.9, 0.05, 1e-3]), 23, 0.25
    start, bias, noise = momentum(curvature, steps, eta, constant)
    answers = []
    for hit in range(steps + 1):  # a unit error at one step each, and the start alone
        y = x = np.full(3, float(not hit))
        for t in range(1, steps + 1):
            step = eta if constant else 2 * t / (t + 1) * eta
            y, old = x - step * (curvature * x + (t == hit)), y
            x = y + (t - 1) / (t + 2) * (y - old)
        answers.append(y)
    np.testing.assert_allclose(start, answers[0], rtol=1e-12)
    np.testing.assert_allclose(bias, np.abs(answers[1:]).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(noise, np.square(answers[1:]).sum(axis=0), rtol=1e-12)
