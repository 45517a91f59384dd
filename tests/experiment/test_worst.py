"""The exact moments against every draw enumerated, and the ladder without a coarsest level."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mlgd import Problem, Telescope, minimize, plan
from mlgd import formulas as F
from mlgd.experiment import worst

SMALL = Problem(beta=1.0, d0=1.0, gamma=3.0, c=1.0)


@pytest.mark.parametrize("chance", [1.0, 0.4])
def test_moments_are_those_of_all_draws(chance):
    eps, eta, curvature = 4.0, 0.25, 0.7  # four steps on two levels
    bill = plan(SMALL, eps, eta=eta)
    reached = []
    for sign in (1.0, -1.0):
        h = worst.ladder(SMALL, SMALL.prices(bill.delta).levels, curvature, sign)
        t = worst.telescope(SMALL, eps, eta, chance, h)
        free = [q for q in t.p if q < 1]
        coins = list(product((False, True), repeat=len(free)))
        total = 0.0
        for run in product(coins, repeat=bill.steps):
            y, average, weight = np.array([SMALL.d0]), 0.0, 1.0
            for drawn in run:
                average += y[0] / bill.steps
                weight *= math.prod(q if b else 1 - q for q, b in zip(free, drawn, strict=True))
                y = y - eta * t.combine(y, drawn).value
            total += weight * curvature / 2 * average**2
        reached.append(total)
    assert bill.steps == 4
    assert any(q < 1 for q in t.p)
    assert worst.quadratic_loss(SMALL, eps, eta, curvature, chance) == pytest.approx(
        max(reached), rel=1e-12
    )


def test_the_coin_agrees_with_all_its_outcomes():
    p, eta, total = Fraction(1, 3), Fraction(1, 4), Fraction(0)
    for drawn in product((0, 1), repeat=3):
        y, average, weight = Fraction(1), Fraction(0), Fraction(1)
        for b in drawn:
            average += y / 3
            weight *= p if b else 1 - p
            y *= 1 - eta * b / p
        total += weight * average**2 / 2
    assert worst.coin_loss(p, eta, 3) == total


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0, 2.1, 3.0, 7.0])
@pytest.mark.parametrize("c", [1e-6, 1.0, 50.0])
def test_every_accuracy_begins_where_the_closed_form_is_certain(gamma, c):
    problem, eps, eta = Problem(beta=1.0, d0=1.0, gamma=gamma, c=c), 0.03, 2.0**-9
    sold = worst.every_accuracy(problem, eps, eta)
    bill = plan(sold, eps, eta=eta)
    t = Telescope.for_accuracy(sold.prices(bill.delta), bill.delta, bill.sigma, gamma, coarsest=0.0)
    assert t.p[0] == pytest.approx(1.0)
    lower = plan(replace(sold, first=sold.first - 30), eps, eta=eta)
    assert bill.expected_cost == pytest.approx(
        lower.expected_cost, rel=1e-9
    )  # beginning lower changes nothing
    bound = (
        F.value(F.EXECUTED_CONVEX["HTMC"], c=c, d0=1.0, eps=eps, gamma=gamma)
        if gamma > 2
        else math.inf
    )
    assert bill.expected_cost <= bound


def test_the_rate_leaves_the_step_out_of_the_price():
    problem, eps = Problem(beta=1.0, d0=1.0, gamma=3.0, c=2.0**-4), 2.0**-6
    steps = [2.0**-8, 2.0**-16]
    at_rate = [worst.price(problem, eps, e, worst.coarse_chance(problem, eps, e)) for e in steps]
    always = [worst.price(problem, eps, e) for e in steps]
    assert at_rate[1] < 1.1 * at_rate[0]
    assert always[1] > 10 * always[0]
    planned = [plan(problem, eps, eta=e).expected_cost for e in steps]
    assert planned[1] < 1.01 * planned[0]
    assert all(p <= a for p, a in zip(planned, always, strict=True))


def test_runs_are_those_of_minimize():
    bill = plan(SMALL, 0.4)
    losses, prices = worst.repeat(SMALL, bill, 0.5, 3, rng=1)
    h = worst.ladder(SMALL, SMALL.prices(bill.delta).levels, 0.5)
    one = minimize(h, np.ones(1), bill, rng=np.random.default_rng(1).spawn(3)[0])
    assert losses[0] == pytest.approx(0.25 * one.y[0] ** 2 / 0.4)
    assert prices[0] == one.cost / bill.expected_cost
    assert losses.size == prices.size == 3


def test_within_tells_the_two_readings_apart():
    plans = [(Problem(beta=1.0, d0=1.0, gamma=g, c=1e-4), 0.1) for g in (1.0, 2.0, 3.0)]
    assert worst.within(plans, 0, worst.every_accuracy)
    assert worst.within(plans, F.COARSE_CONVEX)
    assert not any(worst.within([one]) for one in plans)


@pytest.mark.parametrize("gamma", [1.0, 1.9, 2.0, 2.1, 3.0, 7.0])
def test_strongly_convex_prices_are_within_their_bound(gamma):
    pairs = [
        (Problem(beta=0.5 * kappa, mu=0.5, d0=2.0, gamma=gamma, c=c), 2.0 / r)
        for kappa in (1.0, 1e4)
        for c in (1e-5, 7.0)
        for r in (1.0, 3.3, 1e4)
    ]
    assert worst.within(pairs, sells=worst.every_accuracy)
    assert worst.within(pairs, F.COARSE_STRONG)
    assert not worst.within(pairs)
