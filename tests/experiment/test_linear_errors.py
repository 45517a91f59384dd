import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlgd.experiment import hindsight, strides
from mlgd.experiment.linear_errors import (
    Moments,
    Sampling,
    after,
    anchored_path,
    instance,
    plain_path,
    water_filling,
)

DRAW = Sampling(0, 3, np.array([0.5, 0.2, 0.1]))


@pytest.fixture(scope="module")
def family():
    return instance(100, 3, seed=0, d=12)


def simulate(family, steps, runs, reference, growth=None):
    """Many runs at once, the slow and literal way."""
    rng = np.random.default_rng(0)
    y = np.tile(family.e0, (runs, 1))
    total, mass = 0.0, 0.0
    r = y.copy()
    for _ in range(steps):
        if growth:
            total, mass = total / growth + y, mass / growth + 1
        g = y @ family.matrix[0].T + family.offset[0]
        for i, p in enumerate(DRAW.p):
            k = i + 1
            step = y @ family.slopes[k].T + family.offset[k] - family.offset[k - 1]
            there = (
                r @ family.slopes[k].T + family.offset[k] - family.offset[k - 1]
                if reference
                else 0.0
            )
            drawn = (rng.random(runs) < p)[:, None] / p
            g += drawn * (step - there) + there
        y = y - 1.2 * g
    return y, (total / mass if growth else None)


def close(family, points, moments):
    losses = points**2 @ family.spectrum / 2
    assert abs(losses.mean() - moments.loss(family.spectrum)) < 5 * losses.std() / np.sqrt(
        losses.size
    )
    scale = np.sqrt(np.diag(moments.second))
    assert np.abs(points.mean(axis=0) - moments.mean).max() < 5 * scale.max() / np.sqrt(losses.size)


def test_anchored_moments_are_those_of_many_runs(family):
    points, _ = simulate(family, 25, 4000, reference=True)
    close(family, points, after(anchored_path(family, Moments.at(family.e0), 1.2, DRAW), 25))


def test_plain_moments_are_those_of_many_runs(family):
    points, averages = simulate(family, 25, 4000, reference=False, growth=1.05)
    last, average = after(plain_path(family, Moments.at(family.e0), 1.2, DRAW, 1.05), 25)
    close(family, points, last)
    close(family, averages, average)


def test_strides_give_the_moments_of_single_steps():
    family = instance(300, 3, seed=2, d=20)
    start, steps = Moments.at(family.e0), 700
    epoch = strides.Epoch(family, start, 1.9, DRAW)
    while epoch.time < steps:
        n = (
            1
            if epoch.time < strides.SINGLE
            else min(epoch.time // strides.STRIDES, steps - epoch.time)
        )
        epoch.go(n, epoch.stride(n)[0])
    literal = after(anchored_path(family, start, 1.9, DRAW), steps)
    assert epoch.loss() == pytest.approx(literal.loss(family.spectrum), rel=1e-4)
    assert np.allclose(
        epoch.moments().second, literal.second, rtol=1e-4, atol=1e-4 * np.abs(literal.second).max()
    )
    again = strides.Epoch(family, start, 1.9, DRAW)
    assert strides.reach(again, 1.1 * epoch.loss(), 10**5) < steps


def test_without_noise_the_path_is_that_of_the_finest_level(family):
    sure = Sampling(2, 2, np.zeros(0))
    moments = after(anchored_path(family, Moments.at(family.e0), 1.0, sure), 40)
    e = family.e0
    for _ in range(40):
        e = e - (family.matrix[2] @ e + family.offset[2])
    assert np.allclose(moments.mean, e)
    assert np.allclose(moments.second, np.outer(e, e))


def test_the_family_is_what_it_says():
    family = instance(1e3, 3, seed=4)
    assert family.loss(family.e0) == pytest.approx(1)
    for k in (0, 5):
        error = family.matrix[k] @ family.e0 + family.offset[k] - family.spectrum * family.e0
        assert np.linalg.norm(error) == pytest.approx(
            0.1 * 2.0**-k / np.sqrt(2)
        )  # at the start, u alone
    assert (
        family.lipschitz[1:] * 2.0 ** np.arange(1, 14) * np.linalg.norm(family.e0) < 0.2122
    ).all()
    h = family.hierarchy()
    assert h.cost(0) == 1
    assert np.allclose(h.value(3, family.e0), family.matrix[3] @ family.e0 + family.offset[3])


def test_the_price_of_an_epoch_counts_each_purpose():
    price = np.array([1.0, 8.0, 64.0, 512.0])
    lazy, eager = (DRAW.epoch(price, 10, lazy=flag) for flag in (True, False))
    assert lazy["coarse"] == eager["coarse"] == 10
    assert eager["reference"] == 512 + 8 + 64
    assert lazy["reference"] == 512
    call = (0.5 + 0.2 - 0.1) * 8 + (0.2 + 0.1 - 0.02) * 64 + 0.1 * 512
    assert eager["sampled"] == pytest.approx(9 * call)
    assert 9 * call < lazy["sampled"] < 9 * call + 72


def test_hindsight_meets_its_bar_and_orders_the_methods():
    family = instance(100, 3, seed=1)
    anchored = hindsight.anchored(family, 1e-4)
    assert anchored.price < 2
    assert sum(anchored.parts.values()) == pytest.approx(anchored.price)
    assert hindsight.corrected(family, 1e-4).price < anchored.price
    assert hindsight.anchored(family, 1e-4, graded=False, lazy=False).price > 3 * anchored.price


def by_bisection(v, price, variance):
    """The same problem solved another way: bisection on the multiplier."""
    if variance <= 0:
        return np.ones(v.size)
    low, high = 0.0, 1e12
    for _ in range(300):
        middle = math.sqrt(max(low, 1e-30) * high)
        p = np.minimum(1.0, middle * np.sqrt(v / price))
        low, high = (low, middle) if ((1 / p - 1) * v).sum() <= variance else (middle, high)
    return np.minimum(1.0, high * np.sqrt(v / price))


problems = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(1e-3, 10), min_size=n, max_size=n),
        st.lists(st.floats(1e-2, 1e3), min_size=n, max_size=n),
        st.floats(1e-3, 30),
    )
)


@settings(max_examples=80, deadline=None)
@given(problems)
def test_water_filling_satisfies_its_conditions(problem):
    v, price, variance = np.array(problem[0]) ** 2, np.array(problem[1]), problem[2] ** 2
    p = water_filling(v, price, variance)
    assert ((p > 0) & (p <= 1)).all()
    used = float(((1 / p - 1) * v).sum())
    rounding = 1e-12 * (variance + v.sum())  # of 1/p - 1 where p is nearly one
    assert used <= variance + rounding
    free = p < 1 - 1e-12
    multipliers = (
        p**2 * price / v
    )  # stationarity: one value where p < 1, and no larger than it where p = 1
    if free.any():
        assert math.isclose(used, variance, rel_tol=0, abs_tol=rounding)
        np.testing.assert_allclose(multipliers[free], multipliers[free][0], rtol=1e-9)
        assert (multipliers[~free] <= multipliers[free][0] * (1 + 1e-9)).all()
    np.testing.assert_allclose(p @ price, by_bisection(v, price, variance) @ price, rtol=1e-6)
