"""The sharp plan: the theorem recomputed step by step, hostile instances, runs, prices."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from mlgd import Hierarchy, LevelError, Problem, audit, compare, plan
from mlgd.examples import HeatSource, biased
from mlgd.hierarchy import dyadic
from mlgd.sharp import SharpPlan

# --- the theorem, line by line, by code that shares nothing with the planner's ---


def potentials(p):
    """Masses, stopping probabilities and 1/psi of every step; every hypothesis is asserted.

    Taken from the plan are its step, the law of its stop, the masses before the first stop, and the
    shrinkage of its telescopes.
    """
    beta, mu, h = p.problem.beta, p.problem.mu, p.eta
    t = np.arange(p.steps + 1)
    alpha = np.asarray(p.schedule.stop(t), float)
    mass = np.asarray(p.schedule.mass(t), float)
    shrunk = np.repeat([s.shrinkage for s in p.stages], [s.steps for s in p.stages])
    loud = 1 - h * (beta - mu)
    omega = (1 - h * beta) / loud
    chi = omega**2 / (h / shrunk - h / loud)
    assert 0 < h * beta < 1
    assert (alpha >= 0).all()
    assert (alpha <= mass * (1 + 1e-12)).all()
    assert alpha.sum() == pytest.approx(1, abs=1e-8)
    assert (chi > 0).all()
    chi = np.append(chi, 0.0)  # of the last step, which is never made
    phi = mass / h
    before = np.append(p.schedule.start, phi[:-1])
    allowed = before + mass * (omega * mu - chi) + (mass - alpha) * mu
    assert (phi <= allowed + 1e-9 * before).all()
    return mass, alpha, h / shrunk


def recomputed(p, accuracy, price):
    """The bound, the expected price and the expected steps of Theorem S.

    `accuracy` and `price` are functions of the level.
    """
    mass, alpha, psi = potentials(p)
    joint, cost = [], []
    for stage in p.stages:
        r = np.array([accuracy(k) for k in stage.reach])
        c = np.array([float(price(k)) for k in stage.reach])
        reach = np.array([*stage.reach.values()])
        assert reach[0] == 1
        assert (np.diff(reach) < 0).all()
        kept = np.append(reach / (reach + stage.shrinkage * (1 - reach)), 0.0)
        joint.append(-np.diff(kept) @ r**2)
        cost.append(reach @ c)
        assert stage.most == pytest.approx(c.sum())
    each = [s.steps for s in p.stages]
    made = np.cumsum(alpha[::-1])[::-1][1:]  # P(I > t)
    runs = np.ones(p.steps) if p.average else made
    errors = mass[:-1] * psi @ np.repeat(joint, each) / 2
    bound = p.schedule.start * p.problem.d0**2 / 2 + errors
    return bound, float(runs @ np.repeat(cost, each)), float(runs.sum())


def drawn_set(seed):
    """A problem, a target, a ladder or none, and whether the mean is returned: with extremes."""
    rng = np.random.default_rng([44, seed])
    beta, d0 = 10 ** rng.uniform(-6, 6), 10 ** rng.uniform(-4, 4)
    eps = 10 ** rng.uniform(-4.5, 0.5) * beta * d0**2
    gamma = rng.choice(
        [rng.uniform(0.3, 8), 2.0, 2 + 1e-9, 2 - 1e-9], p=[0.7, 0.1, 0.1, 0.1]
    )
    mu = 0.0 if rng.random() < 0.6 else beta * 10 ** rng.uniform(-4, 0)
    c = 10 ** rng.uniform(-3, 3)
    problem = Problem(beta=beta, d0=d0, gamma=float(gamma), c=c, mu=mu)
    average = bool(rng.random() < 0.3)
    if rng.random() < 0.5:
        return problem, eps, None, average
    n = int(rng.integers(1, 14))
    accuracy = (
        beta * d0 * 10 ** rng.uniform(-1, 1) * np.cumprod(10 ** -rng.uniform(0, 0.8, n))
    )
    price = np.cumprod(10 ** rng.uniform(-0.3, 2, n))
    exact = bool(rng.random() < 0.4)
    own = Hierarchy(lambda k, y: y, price, range(n), accuracy.__getitem__, exact=exact)
    return problem, eps, own, average


def check(seed):
    """Whether there is a plan; then its bound and its price are as Theorem S says."""
    problem, eps, own, average = drawn_set(seed)
    try:
        p = plan(problem, eps, "sharp", on=own, average=average)
    except LevelError:
        return False
    accuracy, price = dyadic, lambda k: (problem.c * 2.0**k) ** problem.gamma
    if own is not None:
        accuracy = dict(zip(own.levels, own.accuracies(), strict=True)).__getitem__
        price = own.cost
    bound, paid, steps = recomputed(p, accuracy, price)
    assert bound <= eps, (seed, bound / eps)
    assert sum(p.budget.values()) == pytest.approx(bound, rel=1e-9)
    assert p.expected_cost == pytest.approx(paid, rel=1e-6)
    assert p.expected_steps == pytest.approx(steps, rel=1e-6)
    assert p.expected_cost <= p.cost_bound * (1 + 1e-9)
    assert p.promise == "proved"
    return True


@pytest.mark.parametrize("seed", range(40))
def test_the_bound_is_at_most_eps_and_the_price_is_the_sum(seed):
    check(seed)


def test_most_of_these_sets_have_plans():
    assert sum(check(seed) for seed in range(12)) >= 8


if __name__ == "__main__":  # the thousand: python tests/library/test_sharp.py 1000
    import sys
    import time

    began = time.time()
    made = [check(seed) for seed in range(int(sys.argv[1]))]
    print(f"{sum(made)} plans of {len(made)} sets, {time.time() - began:.0f} s")
