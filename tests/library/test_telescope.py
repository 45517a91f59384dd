"""The telescope: sums over draws are enumerated, the optimum is compared with brute force."""

import math
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from families import outcomes, rounded
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from mlgd import Hierarchy, Telescope
from mlgd import formulas as F
from mlgd.examples import biased
from mlgd.hierarchy import dyadic
from mlgd.telescope import regime

RATES = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0)


def table(values, prices):
    """A hierarchy whose levels are the rows of a table."""
    rows, first = np.asarray(values, float), 3
    levels = range(first, first + len(prices))
    return Hierarchy(lambda k, y: rows[k - first], list(prices), levels)


@st.composite
def telescopes(draw):
    n = draw(st.integers(1, 8))
    number = st.floats(-4, 4, allow_nan=False)
    values = draw(
        st.lists(st.lists(number, min_size=2, max_size=2), min_size=n, max_size=n)
    )
    prices = draw(st.lists(st.floats(0.1, 100), min_size=n, max_size=n))
    p = draw(
        st.lists(st.one_of(st.just(1.0), st.floats(1e-3, 1.0)), min_size=n, max_size=n)
    )
    h, used = table(values, prices), draw(st.sets(st.integers(0, n - 1), min_size=1))
    return Telescope(
        h, {h.levels[i]: p[i] for i in sorted(used)} if draw(st.booleans()) else p
    )


Y = np.zeros(2)


@settings(max_examples=60, deadline=None)
@given(telescopes())
def test_all_draws_give_the_mean_the_variance_and_the_price(t):
    known = list(outcomes(t, Y))
    assert math.isclose(sum(q for q, _ in known), 1.0, rel_tol=1e-9)
    mean = sum(q * draw.value for q, draw in known)
    variance = sum(q * float(np.sum((draw.value - mean) ** 2)) for q, draw in known)
    finest = t.h.evaluate(t.levels[-1], Y)
    scale = 1 + np.abs(finest).max()
    np.testing.assert_allclose(mean, finest, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(t.mean(Y), finest, rtol=0, atol=1e-9 * scale)
    assert math.isclose(t.variance(Y), variance, rel_tol=1e-7, abs_tol=1e-7)
    assert math.isclose(
        t.expected_cost(), sum(q * draw.cost for q, draw in known), rel_tol=1e-9
    )


def test_a_rare_level_keeps_its_price():
    """Probabilities below the rounding unit still cost: 1 - (1 - p)(1 - q) would lose them."""
    h = Hierarchy(lambda k, y: y, lambda k: 1e30**k, range(2), dyadic)
    assert math.isclose(
        Telescope(h, [1.0, 1e-20]).expected_cost(), 1.0 + 1e10, rel_tol=1e-12
    )


def test_the_prefix_is_one_evaluation():
    h = rounded(lambda y: y, 3.0, 1.0, range(1, 6))
    t = Telescope(h, [1, 1, 1, 0.5, 0.25])
    assert t.prefix == 3
    assert not t.p.flags.writeable  # its price and its recipes were made of them
    assert min(draw.cost for _, draw in outcomes(t, np.ones(2))) == h.cost(3)
    assert all(draw.levels[0] == 3 for _, draw in outcomes(t, np.ones(2)))
    assert Telescope(h, [0.5, 1]).prefix is None
    everything = Telescope(h, np.ones(5))
    assert everything.expected_cost() == h.cost(5)
    assert everything.variance(np.ones(2)) == 0


def test_a_draw_is_a_draw_of_the_generator():
    t = Telescope(rounded(lambda y: y, 3.0, 1.0, range(1, 6)), {1: 1.0, 2: 0.5, 3: 0.25})
    np.testing.assert_array_equal(
        t.draw(np.ones(2), 5).value, t.draw(np.ones(2), 5).value
    )
    assert len({t.draw(np.ones(2), seed).cost for seed in range(50)}) > 1


# --- the closed form ---


def worst(rate, finest, offset=100.0):
    """Increments at their bound beyond the first level, whose norm is large."""
    return biased(lambda y: y + offset, rate, 1.0, range(1, finest + 1), alternate=True)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("exponent", [-14, -12, -11, -8, -5, -2, 0, 4])
def test_the_closed_form_keeps_its_promise(rate, exponent):
    h, sigma = worst(rate, 12), 2.0**exponent
    t = Telescope.for_accuracy(h, 2.0**-12, sigma, rate)
    assert t.p[0] == 1
    assert t.levels[-1] == 12
    assert t.variance(np.ones(3)) <= sigma**2 * (1 + 1e-9)
    free = t.p[t.p < 1]
    np.testing.assert_allclose(free[1:] / free[:-1], 2.0 ** -(1 + rate / 2), rtol=1e-9)
    numbers = {"c": 1.0, "sigma": sigma, "gamma": rate, "delta": 2.0**-12}
    numbers["n"] = max(1, math.ceil(math.log2(sigma * 2.0**12 / 3)))
    printed = F.value(F.SCALE[regime(rate)], **numbers) * 2.0 ** (-12 * (1 + rate / 2))
    assert t.p[-1] == pytest.approx(min(printed, 1.0))
    bound = h.cost(1) + F.value(F.CALL_EXECUTED[regime(rate)], **numbers)
    assert t.expected_cost() <= bound
    best = Telescope.cheapest(h, sigma, [0.0, *(3 * 2.0**-k for k in range(2, 13))])
    assert best.expected_cost() <= min(bound, t.expected_cost() * (1 + 1e-9))


def test_the_papers_first_level_is_unsafe_far_out_and_ours_is_not():
    h = worst(3.0, 8)
    paper = Telescope.for_accuracy(h, 2.0**-8, 16.0, 3.0, coarsest=0.0)
    assert paper.p[0] < 1
    assert paper.variance(np.ones(3)) > 16.0**2
    assert Telescope.for_accuracy(h, 2.0**-8, 16.0, 3.0).variance(np.ones(3)) <= 16.0**2
    raised = Telescope.for_accuracy(h, 2.0**-8, 16.0, 3.0, coarsest=0.9)
    assert raised.p[0] == 0.9
    np.testing.assert_array_equal(raised.p[1:], paper.p[1:])


def test_sigma_zero_is_the_fixed_level():
    t = Telescope.for_accuracy(worst(3.0, 8), 2.0**-6, 0.0, 3.0)
    assert (t.p == 1).all()
    assert t.levels[-1] == 6
    assert (Telescope.cheapest(worst(2.0, 4), 0.0, [1.0, 1.0, 1.0, 1.0]).p == 1).all()


def test_another_ladder_gets_the_same_guarantee():
    accuracy = {1: 0.7, 2: 0.2, 3: 0.11, 4: 0.01}
    prices = [a**-3.0 for a in accuracy.values()]
    h = Hierarchy(
        lambda k, y: y + accuracy[k] * (-1) ** k, prices, [*accuracy], accuracy.get
    )
    t = Telescope.for_accuracy(h, 0.01, 0.3, 3.0)
    assert t.variance(np.array([50.0])) <= 0.09 * (1 + 1e-9)
    assert t.variance(np.array([50.0])) >= 0.05
    assert (t.p < 1).any()
    printed = Telescope.for_accuracy(h, 0.01, 100.0, 3.0, coarsest=0.0)
    assert printed.p[0] < 1
    # A_1 is three accuracies large
    assert printed.variance(np.array([2.8])) == pytest.approx(1e4)


@pytest.mark.parametrize("unit", [1.0, 1e6])
@pytest.mark.parametrize("sigma", [1e-8, 3e-9])
def test_small_accuracies_are_not_taken_for_a_dyadic_ladder(unit, sigma):
    """Levels 27 to 29, accuracies within 1e-8 of 2^-k: not the closed form's ladder."""
    accuracy = {27: 1.7e-8 * unit, 28: 1.3e-8 * unit, 29: 1e-10 * unit}
    error = {27: 0.0, 28: 1.3e-8 * unit, 29: -1e-10 * unit}
    h = Hierarchy(
        lambda k, y: y + error[k], lambda k: 8.0 ** (k - 27), (27, 28, 29), accuracy.get
    )
    t = Telescope.for_accuracy(h, 1e-10 * unit, sigma * unit, 3.0)
    assert t.variance(np.zeros(1)) <= (sigma * unit) ** 2 * (1 + 1e-9)


# --- the exact optimum ---


def every_telescope(prices, norms, variance):
    """By brute force: every choice of levels, on each a search over how variance is shared."""
    last, total = len(prices) - 1, np.cumsum(norms)

    def price(p, chain):
        """Every outcome of the coins with its own bill."""
        bill = 0.0
        for bits in product((0, 1), repeat=len(p)):
            weight = math.prod(q if b else 1 - q for q, b in zip(p, bits, strict=True))
            values = {chain[0]}
            for b, (low, high) in zip(bits, pairwise(chain), strict=True):
                values |= {low, high} if b else set()
            bill += weight * sum(prices[k] for k in values)
        return bill

    best = prices[last]
    for size in range(1, last + 1):
        for coarse in combinations(range(last), size):
            chain = (*coarse, last)
            v = np.array(
                [(total[high] - total[low]) ** 2 for low, high in pairwise(chain)]
            )

            def objective(z, v=v, chain=chain):
                share = np.exp(z - z.max())
                return price(v / (v + variance * share / share.sum()), chain)

            for start in (np.zeros(size), np.log(v)):
                found = minimize(
                    objective, start, method="Nelder-Mead", options={"fatol": 1e-9}
                )
                best = min(best, found.fun)
    return best


@pytest.mark.parametrize("seed", range(12))
def test_no_other_telescope_is_cheaper(seed):
    """Brute force, on ladders with dear and vain levels among them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    prices = np.sort(
        2.0 ** (rng.uniform(0.3, 5) * np.arange(n)) * np.exp(0.3 * rng.normal(size=n))
    )
    norms = 2.0 ** -np.arange(n) * np.exp(rng.choice([0.1, 1.0]) * rng.normal(size=n))
    sigma = norms[1] * 10 ** rng.uniform(-2, 0.5)
    h = table(np.zeros((n, 1)), prices)
    t = Telescope.cheapest(h, sigma, norms)
    total = dict(zip(h.levels, np.cumsum(norms), strict=True))
    spent = sum(
        (1 / q - 1) * (total[k] - total[j]) ** 2
        for (j, k), q in zip(pairwise(t.levels), t.p[1:], strict=True)
    )
    assert spent <= sigma**2 * (1 + 1e-9)
    assert t.expected_cost() == pytest.approx(
        every_telescope(prices, norms, sigma**2), rel=1e-5
    )


@pytest.mark.parametrize("rate", [1.0, 1.5, 2.0, 4.0])
def test_no_other_levels_are_cheaper_where_signs_alternate(rate):
    """Odd and even levels are two valleys here: every choice of levels is tried."""
    k = np.arange(1, 8)
    h = Hierarchy(lambda k, y: y, 2.0 ** (rate * k), k)
    apart = np.abs(np.subtract.outer((-1.0) ** k * 2.0**-k, (-1.0) ** k * 2.0**-k))
    for exponent in (-2, -4, -6):
        found = Telescope.cheapest(h, 2.0**exponent, apart)
        best = h.cost(7)
        for chosen in (c for size in range(1, 7) for c in combinations(range(6), size)):
            rows = [*chosen, 6]
            part = h.only([int(k[i]) for i in rows])
            other = Telescope.cheapest(part, 2.0**exponent, apart[np.ix_(rows, rows)])
            best = min(best, other.expected_cost())
        assert found.expected_cost() == pytest.approx(best, rel=1e-6)


def test_on_a_long_ladder_whose_signs_alternate_every_other_level_is_used():
    """Levels added one by one end in a valley that is a sixth dearer."""
    k = np.arange(1, 21)
    apart = np.abs(np.subtract.outer((-2.0) ** -k, (-2.0) ** -k))
    found = Telescope.cheapest(Hierarchy(lambda k, y: y, 4.0**k, k), 2.0**-4, apart)
    assert found.levels == tuple(range(6, 21, 2))


def test_a_level_in_vain_is_left_out():
    h = table(np.zeros((4, 1)), [1.0, 30.0, 33.0, 1000.0])
    assert Telescope.cheapest(h, 1.0, [1.0, 1.0, 0.0, 0.5]).levels[1] != 5
    square = [[0, 1.0, 0.1, 0.1], [0, 0, 1.0, 1.0], [0, 0, 0, 0.02], [0, 0, 0, 0]]
    # the second level is further off than the first
    assert 4 not in Telescope.cheapest(h, 0.1, square).levels


@pytest.mark.parametrize("finest", [12, 40, 60])
@pytest.mark.parametrize("rate", RATES)
def test_the_optimum_lies_between_the_two_sides_of_the_theorem(rate, finest):
    """One call: (9/13)(1 - 2^-gamma) and 9 (1 + 2^-gamma) times c^gamma Sigma^2 / sigma^2.

    On the deep ladder probabilities go down to 2^-100: nothing may floor them.
    """
    for exponent in (-finest, -12, -9.5, -7, -4.5, -2):
        sigma = 2.0**exponent
        increments = [0.0, *(3 * 2.0**-k for k in range(2, finest + 1))]
        t = Telescope.cheapest(worst(rate, finest), sigma, increments)
        total = sum(
            2.0 ** ((rate / 2 - 1) * k) for k in range(1, finest + 1) if 2.0**-k <= sigma
        )
        ratio = t.expected_cost() * sigma**2 / total**2
        assert 9 / 13 * (1 - 2**-rate) <= ratio <= 9 * (1 + 2**-rate)


def test_a_vanishing_increment_costs_nothing_and_stays_unbiased():
    h = table([[1.0], [1.0], [3.0]], [1.0, 10.0, 1000.0])
    t = Telescope.cheapest(h, 1.0, [1.0, 0.0, 2.0])
    np.testing.assert_allclose(t.mean(np.zeros(1)), [3.0])
    end = Telescope.cheapest(h, 1.0, [1.0, 2.0, 0.0])
    assert end.levels[-1] == 5
    assert 0 < end.p[-1] < 1e-9
