"""The adversary keeps the promises of Theorem 2: its class, its blindness, its meter."""

import copy as copies
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlgd import Hierarchy, LevelError, Problem, Telescope, plan
from mlgd.adversary import Adversary


@st.composite
def instances(draw):
    """The two copies of a random instance, and what they were made from."""
    beta, d0 = draw(st.floats(0.1, 10)), draw(st.floats(0.1, 10))
    gamma, c = draw(st.floats(0.25, 5)), draw(st.floats(0.05, 20))
    mu = draw(st.one_of(st.just(0.0), st.floats(0.01, 1).map(lambda share: share * beta)))
    eps = (mu or beta) * d0**2 / 8 * draw(st.floats(1e-6, 1))
    given = {"eps": eps, "d0": d0, "beta": beta, "gamma": gamma, "c": c, "mu": mu}
    return Adversary(**given), Adversary(**given, sign=-1), given


def points(d0, count=5, seed=0):
    return d0 * np.random.default_rng(seed).normal(size=(count, 3))


@settings(max_examples=25, deadline=None)
@given(instances())
def test_it_belongs_to_its_class(instance):
    *pair, problem = instance
    d0, beta, mu, gamma, c = (
        problem[name] for name in ("d0", "beta", "mu", "gamma", "c")
    )
    for a in pair:
        for k in a.levels:
            assert a.cost(k) == pytest.approx((c * 2.0**k) ** gamma)
            assert a.base.cost(k + a.shift) == pytest.approx(a.cost(k))
            for y in points(d0):
                error = np.linalg.norm(a.evaluate(k, y) - a.gradient(y))
                assert error <= 2.0**-k * (1 + 1e-9) + 1e-12 * beta
        assert np.linalg.norm(a.start - a.minimizer) <= d0 * (1 + 1e-9)
        assert np.linalg.norm(a.gradient(a.minimizer)) <= 1e-9 * a.delta
        assert a.loss(a.minimizer) == pytest.approx(0, abs=1e-12 * a.eps)
        for x, y in zip(points(d0, seed=1), points(d0, seed=2), strict=True):
            gap, square = (a.gradient(x) - a.gradient(y)) @ (x - y), np.sum((x - y) ** 2)
            assert mu * (1 - 1e-9) * square <= gap <= beta * (1 + 1e-9) * square


@settings(max_examples=60, deadline=None)
@given(instances())
def test_the_copies_agree_to_the_bit_below_the_blind_level_and_no_point_serves_both(
    instance,
):
    a, b, problem = instance
    assert (b.blind_below, b.levels) == (a.blind_below, a.levels)
    assert a.levels[0] < a.blind_below < a.levels[-1]
    for y in points(problem["d0"]):
        for k in a.levels:
            same = a.evaluate(k, y).tobytes() == b.evaluate(k, y).tobytes()
            assert same == (k < a.blind_below)
    for y in [a.minimizer, b.minimizer, *points(problem["d0"])]:
        assert a.loss(y) + b.loss(y) >= 8 * a.eps * (1 - 1e-9)
    assert a.loss(a.start) + b.loss(a.start) == pytest.approx(8 * a.eps)


@settings(max_examples=60, deadline=None)
@given(instances())
def test_the_bound_is_three_quarters_of_one_query_at_accuracy_delta(instance):
    a, _, problem = instance
    gamma, c = problem["gamma"], problem["c"]
    assert a.lower_bound == pytest.approx(0.75 * (c / a.delta) ** gamma)
    fine = 0.75 * a.cost(a.blind_below)
    assert a.lower_bound <= fine * (1 + 1e-9) < 2**gamma * a.lower_bound * (1 + 1e-6)
    flat = problem["mu"] or 8 * a.eps / problem["d0"] ** 2
    assert a.delta == pytest.approx(np.sqrt(8 * flat * a.eps))


def test_the_loss_is_the_integral_of_the_gradient():
    a, h = Adversary(0.01, 1.0, 2.0, 3.0, 1.0, mu=0.5, sign=-1), 1e-6
    for y in points(1.0):
        slopes = [(a.loss(y + e) - a.loss(y - e)) / (2 * h) for e in h * np.eye(3)]
        np.testing.assert_allclose(slopes, a.gradient(y), atol=1e-7)


def test_the_shift_is_the_least_that_leaves_room():
    for eps in np.geomspace(1e-6, 0.12, 40):
        a = Adversary(eps, 1.0, 1.0, 1.0, 1.0)
        coarse = 4.0 ** -(a.blind_below - 1)
        assert a.delta**2 + coarse * 4.0**-a.shift <= coarse * (1 + 1e-12)
        assert a.shift == 1 or a.delta**2 + coarse * 4.0 ** -(a.shift - 1) > coarse


def test_the_meter_charges_every_query_and_nothing_else():
    a = Adversary(0.01, 1.0, 1.0, 2.0, 1.0)
    k = a.blind_below
    a.loss(a.start), a.gradient(a.start), a.point(a.start), a.cost(k)
    with pytest.raises(
        LevelError, match=r"^points have shape \(3,\); got \(7,\): use .start"
    ):
        a.value(k, np.zeros(7))
    with pytest.raises(LevelError, match="is not one of"):
        a.value(k + 99, a.start)
    assert a.spent == 0.0
    for level in (k - 1, k - 1, k):
        a.evaluate(level, a.start)
    assert a.spent == 2 * a.cost(k - 1) + a.cost(k)
    a.reset()
    telescope = Telescope.for_accuracy(a, delta=a.delta / 8, sigma=2 * a.delta, gamma=2.0)
    rng = np.random.default_rng(0)
    assert sum(telescope.draw(a.start, rng).cost for _ in range(50)) == pytest.approx(
        a.spent
    )


def test_a_copy_is_the_same_shop_with_its_own_meter():
    a = Adversary(0.01, 1.0, 1.0, 2.0, 1.0, mu=0.5)
    k = a.blind_below
    seen = a.evaluate(k, a.start)
    for copy in (pickle.loads(pickle.dumps(a)), copies.deepcopy(a)):
        assert copy.spent == a.spent == a.cost(k)
        np.testing.assert_array_equal(copy.evaluate(k, a.start), seen)
        assert (copy.spent, a.spent) == (2 * a.cost(k), a.cost(k))
    other = replace(a, sign=-1)
    assert (other.spent, other.eps, other.levels) == (0.0, a.eps, a.levels)
    assert other.evaluate(k, a.start)[0] == -seen[0]
    with pytest.raises(ValueError, match="init=False"):
        replace(a, levels=range(3))


def test_the_edges_of_the_range_are_accepted():
    assert Adversary(0.125, 1.0, 1.0, 1.0, 1.0).flatness == 1.0
    a = Adversary(0.125, 1.0, 1.0, 1.0, 1.0, mu=1.0)  # kappa = 1
    assert np.linalg.norm(a.minimizer) == pytest.approx(1.0)
    assert isinstance(a, Hierarchy)
    assert a.level_for(a.delta) == a.blind_below
    assert a.step(a.blind_below, a.start)[0] == a.sign * a.delta


def test_a_gambler_meets_the_bound_exactly():
    """Look once with probability 3/4, else stay: mean loss eps on both at 3/4 of one look."""
    a = Adversary(2.0**-9, 1.0, 1.0, 3.0, 1.0)
    y = a.start - a.evaluate(a.blind_below, a.start) / a.flatness
    y[1:] = a.start[1:]
    assert 0.75 * a.loss(y) + 0.25 * a.loss(a.start) == pytest.approx(a.eps)
    assert 0.75 * a.spent == a.lower_bound


@pytest.mark.parametrize("method", ["fixed", "multilevel", "accelerated", "scheduled"])
@pytest.mark.parametrize("gamma", [1.0, 3.0])
def test_every_planned_method_pays_at_least_the_bound_and_the_meter_agrees(method, gamma):
    for sign in (1, -1):
        a = Adversary(2.0**-7, 1.0, 1.0, gamma, 1.0, mu=0.25, sign=sign)
        told = Problem(beta=1.0, d0=1.0, gamma=gamma, c=1.0, mu=0.25, first=a.levels[0])
        result = plan(told, a.eps, method).run(a, a.start, rng=3)
        assert a.spent == pytest.approx(result.cost)
        assert a.loss(result.y) <= a.eps
        assert a.spent >= a.lower_bound
