"""The responses against the iterations themselves, and the theorem on the price of acceleration over a thousand problems."""

import math
from itertools import product

import numpy as np
import pytest

from mlgd import Problem, Telescope, plan
from mlgd import formulas as F
from mlgd.experiment import momentum
from mlgd.experiment.duel import chain_queries
from mlgd.experiment.worst import ladder

PLAIN = Problem(beta=1.0, d0=1.0, gamma=3.0, c=1.0)


def steps_of(scheme, steps, eta, curvature, errors, start):
    """The momentum form, step by step."""
    y = z = start
    for t in range(1, steps + 1):
        step = eta * (2 * t / (t + 1) if scheme == "run" else 1.0)
        y, old = z - step * (curvature * z + errors[t - 1]), y
        z = y + (t - 1) / (t + 2) * (y - old)
    return y


@pytest.mark.parametrize("scheme", ["run", "paper"])
def test_responses_are_those_of_the_iteration(scheme):
    eta, horizons, curvatures = 0.3, np.array([3, 9, 20]), np.array([0.02, 0.4, 1.0])
    r = momentum.Response.at(curvatures, horizons, eta, scheme)
    for i, (steps, curvature) in enumerate(zip(horizons, curvatures, strict=True)):
        unit = np.eye(steps)
        single = [-steps_of(scheme, steps, eta, curvature, e, 0.0) for e in unit]
        assert r.start[i] == pytest.approx(
            steps_of(scheme, steps, eta, curvature, np.zeros(steps), 1.0)
        )
        assert r.lasting[i] == pytest.approx(sum(single))
        assert r.changing[i] == pytest.approx(np.abs(single).sum())
        assert r.noise[i] == pytest.approx(np.square(single).sum())


def test_moments_are_those_of_all_draws():
    eps, curvature = 4.0, 0.7
    bill = plan(PLAIN, eps, "accelerated")
    (stage,) = bill.stages
    h = ladder(PLAIN, PLAIN.prices(stage.delta / 8).levels, curvature)
    bill = momentum.replace(bill, stages=(momentum.replace(stage, delta=stage.delta / 8),))
    t = Telescope.for_accuracy(h, stage.delta / 8, stage.sigma, 3.0)
    free, mean = list(t.random), 0.0
    coins = list(product((False, True), repeat=len(free)))
    for run in product(coins, repeat=stage.steps):
        errors = [float(t.combine(np.zeros(1), drawn).value[0]) for drawn in run]
        weight = math.prod(
            q if b else 1 - q for drawn in run for q, b in zip(free, drawn, strict=True)
        )
        mean += (
            weight
            * curvature
            / 2
            * steps_of("run", stage.steps, bill.eta, curvature, errors, 1.0) ** 2
        )
    assert free
    assert stage.steps == 2
    assert momentum.moments(bill, curvature) == pytest.approx(mean / eps, rel=1e-12)


def test_the_theorem_is_never_exceeded():
    problems = momentum.extremes(1000, seed=1)
    unit, every = np.array([momentum.over_bounds(*p) for p in problems]).T
    assert (
        0.9 < unit.max() <= 1
    )  # not exceeded, and within ten percent: no constant is wrong by more
    assert 0.9 < every.max() <= 1
    plans = [plan(p, eps, "accelerated") for p, eps in problems]
    assert min(s.steps for p in plans for s in p.stages) >= 2
    assert min(s.steps for p in plans if p.problem.mu for s in p.stages) >= 3
    for p in plans:
        numbers = {"d0": p.problem.d0, "eta": p.eta, "eps": p.eps, "mu": p.problem.mu or 1.0}
        if p.problem.mu:
            assert len(p.stages) <= F.value(F.STAGES, **numbers)
            assert max(s.steps for s in p.stages) <= F.value(F.STAGE_STEPS, **numbers)
        else:
            assert p.steps <= F.value(F.SIMILAR_STEPS, **numbers)
    assert momentum.worst_losses(plans).max() <= 1
    assert momentum.worst_losses(plans[:200], slack=4.0).max() > 1


@pytest.mark.parametrize("z", [50.0, 1e3, 1e4, 1e6])
def test_the_chain_needs_as_many_gradients_as_the_formula_says(z):
    least = F.value(F.CHAIN, beta=z, d0=1.0, eps=1.0)
    length = 2 * math.ceil(least) + 1
    assert least <= chain_queries(z, 1.0, length=length) <= 1.1 * least + 2


def test_the_bias_accumulates_beyond_its_horizon():
    assert momentum.bias_adds(100, 0.5, 0.1) == pytest.approx(1.78, abs=0.01)
    assert momentum.bias_adds(1000, 0.5, 0.1) == pytest.approx(173.7, abs=0.1)
    for steps in (1, 3, 10, 100, 1000):
        for delta in (1e-4, 1e-2, 0.1, 1.0):
            numbers = {"T": steps, "eta": 0.5, "delta": delta, "sigma": 0.0, "d0": 1.0}
            radius, total = (
                F.value(F.RADIUS["paper"], **numbers),
                F.value(F.PAPER_WEIGHTS["total"], **numbers),
            )
            assert momentum.bias_adds(steps, 0.5, delta) <= radius**2 / (2 * total)


def test_orders_read_as_equalities():
    eps = 2.0**-20
    assert momentum.printed_price(PLAIN, eps) / plan(PLAIN, eps).expected_cost == pytest.approx(
        4.04, abs=0.01
    )
