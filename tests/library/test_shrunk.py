"""The shrunk telescope: every draw is enumerated, and bias and variance make one exact sum."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlgd import Hierarchy
from mlgd.examples import biased
from mlgd.hierarchy import dyadic
from mlgd.result import Bill
from mlgd.shrunk import ShrunkTelescope

Y = np.zeros(2)
FIRST = 3


def table(values, prices, accuracy=None):
    """A hierarchy whose levels are the rows of a table."""
    rows = np.asarray(values, float)
    levels = range(FIRST, FIRST + len(prices))
    return Hierarchy(lambda k, y: rows[k - FIRST], list(prices), levels, accuracy)


@st.composite
def telescopes(draw):
    n = draw(st.integers(1, 7))
    number = st.floats(-4, 4, allow_nan=False)
    row = st.lists(number, min_size=2, max_size=2)
    values = draw(st.lists(row, min_size=n, max_size=n))
    prices = draw(st.lists(st.floats(0.1, 100), min_size=n, max_size=n))
    chance = st.one_of(st.just(1.0), st.just(0.25), st.floats(1e-3, 1.0))
    reach = sorted(draw(st.lists(chance, min_size=n, max_size=n)), reverse=True)
    used = sorted(draw(st.sets(st.integers(0, n - 1), min_size=1)))
    named = {FIRST + i: reach[i] for i in used}
    named[FIRST + used[0]] = 1.0
    shrinkage = draw(st.one_of(st.sampled_from([0.0, 1.0]), st.floats(1e-3, 1.0)))
    return ShrunkTelescope(table(values, prices), named, shrinkage)


def outcomes(t):
    """Every draw of a telescope: its probability, its value, what it costs."""
    chances = t.reach - np.append(t.reach[1:], 0.0)
    for highest, chance in enumerate(chances.tolist()):
        bought = []

        def buy(levels, y, bought=bought):
            bought.extend(levels)
            return [t.h.value(k, y) for k in levels]

        value = t.combine(highest, buy, Y)
        yield chance, value, sum(map(t.h.cost, bought))


@settings(max_examples=100, deadline=None)
@given(telescopes(), st.lists(st.floats(-3, 3), min_size=2, max_size=2))
def test_all_draws_give_the_mean_the_variance_the_price_and_the_joint_identity(t, f):
    known = list(outcomes(t))
    assert sum(q for q, _, _ in known) == pytest.approx(1.0)
    mean = sum(q * value for q, value, _ in known)
    variance = sum(q * float(np.sum((value - mean) ** 2)) for q, value, _ in known)
    np.testing.assert_allclose(t.mean(Y), mean, rtol=0, atol=1e-8)
    assert t.variance(Y) == pytest.approx(variance, rel=1e-7, abs=1e-7)
    assert t.expected_cost() == pytest.approx(sum(q * paid for q, _, paid in known))
    joint = float(np.sum((mean - f) ** 2)) + t.shrinkage * variance
    assert t.joint(Y, np.array(f)) == pytest.approx(joint, rel=1e-7, abs=1e-7)
    assert t.mixture.sum() == pytest.approx(1.0)
    assert (t.mixture >= 0).all()


def rational(seed):
    """Errors, reach and shrinkage of a telescope that are rational numbers."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    errors = [Fraction(int(e), 7) for e in rng.integers(-40, 40, n)]
    rest = sorted(rng.integers(1, 30, n - 1).tolist(), reverse=True)
    reach = [Fraction(1), *(Fraction(p, 30) for p in rest)]
    return errors, reach, Fraction(int(rng.integers(1, 10)), 10)


@pytest.mark.parametrize("seed", range(50))
def test_lemma_s_in_exact_arithmetic(seed):
    """Nothing is rounded here."""
    errors, reach, s = rational(seed)
    w = [1 / (p + s * (1 - p)) for p in reach]
    value = errors[0]
    bias = square = mixed = Fraction(0)
    shares = []
    for k, error in enumerate(errors):
        if k:
            value += w[k] * (error - errors[k - 1])
        last = k + 1 == len(errors)
        stops = reach[k] - (0 if last else reach[k + 1])
        bias += stops * value
        square += stops * value**2
        shares.append(reach[k] * w[k] - (0 if last else reach[k + 1] * w[k + 1]))
        mixed += shares[k] * error**2
    assert bias**2 + s * (square - bias**2) == mixed
    h = table(np.zeros((len(errors), 2)), np.ones(len(errors)))
    t = ShrunkTelescope(h, np.array(reach, float), s)
    found = dict(zip(t.levels, t.mixture, strict=True))
    shares = np.array(shares, float)
    here = [found.get(FIRST + k, 0.0) for k in range(shares.size)]
    np.testing.assert_allclose(here, shares, atol=1e-12)


def test_what_accuracies_bound():
    h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 9))
    t = ShrunkTelescope(h, 0.3 ** np.arange(8), 0.2)
    # every error is as large as its level allows
    exact = t.joint(np.ones(2), np.ones(2))
    assert exact == pytest.approx(t.joint_bound)
    bias = float(np.sum((t.mean(np.ones(2)) - 1) ** 2))
    assert exact == pytest.approx(bias + 0.2 * t.variance(np.ones(2)))
    with pytest.raises(ValueError, match="no accuracy was declared"):
        _ = ShrunkTelescope(table(np.zeros((2, 2)), [1, 2]), [1, 0.5], 0.5).joint_bound


def test_levels_that_cancel_are_left_out_and_never_bought():
    h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 6))
    t = ShrunkTelescope(h, [1, 1, 0.5, 0.5, 0.1], 0.3)
    assert t.levels == (2, 4, 5)
    assert t.base == 2
    assert t.expected_cost() == pytest.approx(8**2 + 0.5 * 8**4 + 0.1 * 8**5)
    assert not t.reach.flags.writeable
    sparse = ShrunkTelescope(h, {2: 1.0, 5: 0.1}, 0.3)
    assert sparse.levels == (2, 5)
    assert ShrunkTelescope(h, {3: 1.0}, 0.3).variance(np.ones(2)) == 0


def test_without_shrinkage_the_mean_is_the_finest_level():
    h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 6))
    t = ShrunkTelescope(h, 0.5 ** np.arange(5), 0.0)
    np.testing.assert_allclose(t.mean(Y), h.value(5, Y))


def test_draws_have_the_probabilities_that_are_said():
    h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 5))
    t = ShrunkTelescope(h, [1, 0.6, 0.3, 0.05], 0.3)
    found = np.bincount(t.tossed(np.random.default_rng(0), 200_000), minlength=4) / 2e5
    np.testing.assert_allclose(found, [0.4, 0.3, 0.25, 0.05], atol=0.004)
    assert t.draw(Y, 3).levels == t.draw(Y, 3).levels
    np.testing.assert_array_equal(t.draw(Y, 5).value, t.draw(Y, 5).value)
    assert t.draw(Y, 5).cost == sum(map(h.cost, t.draw(Y, 5).levels))


def test_what_a_run_draws_is_bought_through_its_bill():
    h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 5))
    t = ShrunkTelescope(h, [1, 0.6, 0.3, 0.05], 0.3)
    bill = Bill(h)
    for drawn in t.draws(np.random.default_rng(1), 500, bill.value, bill.values):
        drawn(np.ones(2))
    highest = t.tossed(np.random.default_rng(1), 500)
    bought = [sum(j >= i for j in highest) for i in range(4)]
    assert [*bill.counts["steps"].values()] == bought


BAD = [
    ([0.5, 0.2], 0.5, "evaluated always, with a reach of one; got 0.5 at level 3"),
    ([1.0, 0.2, 0.3], 0.5, "reach must not grow"),
    ([1.0, 1e-200], 0.5, "at least 1e-150.*leave that level out"),
    ([1.0, 0.0], 0.5, "the reach of level 4 must be positive"),
    ([1.0, math.nan], 0.5, "the reach of level 4 must be positive"),
    ({9: 1.0}, 0.5, "a reach for each level used is needed"),
    ([], 0.5, "a reach for each level used is needed"),
    ([1.0, 0.5], -0.1, "the shrinkage must be non-negative"),
    ([1.0, 0.5], 1.1, r"the shrinkage must lie in \[0, 1\]; got 1.1"),
    ([1.0, 0.5], "much", "the shrinkage must be non-negative"),
]


@pytest.mark.parametrize(("reach", "shrinkage", "why"), BAD)
def test_bad_input_is_refused_in_a_sentence(reach, shrinkage, why):
    h = table(np.zeros((3, 2)), [1, 2, 4], dyadic)
    with pytest.raises(ValueError, match=why):
        ShrunkTelescope(h, reach, shrinkage)
