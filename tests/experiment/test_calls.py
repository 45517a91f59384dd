"""Prices of one call against values worked out by hand, and against the theorem's two sides."""

import itertools
import operator

import numpy as np
import pytest

from mlgd import Telescope
from mlgd import formulas as F
from mlgd.experiment import calls


def test_errors_and_prices_equal_their_bounds():
    h = calls.ladder(3.0, 5)
    assert [float(abs(h.value(k, np.zeros(1))[0])) for k in h.levels] == [2.0**-k for k in h.levels]
    assert [h.cost(k) for k in h.levels] == [8.0**k for k in h.levels]


def test_the_sum_counts_levels_at_the_threshold():
    assert calls.level_sum(2.0, 10, 2.0**-4) == 7
    assert calls.level_sum(2.0, 10, 2.0**-4.5) == 6
    assert calls.level_sum(2.0, 10, 8.0, coarsest=1) == 9
    assert calls.level_sum(2.0, 10, 8.0) == 14


@pytest.mark.parametrize(
    ("gamma", "sigma"), list(itertools.product((0.5, 2.0, 3.0), (2.0**-5, 0.1, 8.0)))
)
@pytest.mark.parametrize("alternate", [True, False])
def test_the_cheapest_call_lies_between_the_two_sides(gamma, sigma, alternate):
    low, high = calls.sides(gamma, 5, sigma)
    price = calls.cheapest(gamma, 5, sigma, alternate=alternate).expected_cost()
    assert low <= price <= high


def test_no_telescope_of_a_grid_is_below_the_lower_side():
    low, _ = calls.sides(1.0, 4, 0.125)
    h, grid = calls.ladder(1.0, 4), np.linspace(0.1, 1.0, 10)
    for size in range(1, 4):
        for levels in itertools.combinations(range(1, 4), size):
            for p in itertools.product(grid, repeat=size):
                t = Telescope(h, {levels[0]: 1.0, **dict(zip((*levels[1:], 4), p, strict=True))})
                if t.variance(np.zeros(1)) <= 0.125**2:
                    assert t.expected_cost() >= low


@pytest.mark.parametrize("gamma", [0.5, 1.5, 2.0, 2.5, 4.0])
def test_the_closed_form_obeys_its_price(gamma):
    for sigma in 2.0 ** np.arange(-10.0, 4.0):
        t = Telescope.for_accuracy(calls.ladder(gamma, 8), 2.0**-8, sigma, gamma)
        assert t.expected_cost() <= calls.closed_form_price(gamma, 8, sigma)


def test_the_sides_are_the_formulas():
    low, high = calls.sides(2.0, 3, 0.25)
    assert low == pytest.approx(0.75 * (4 + 2**2 * 16 / 5))
    assert high == pytest.approx(4 + 9 * 1.25 * 2**2 * 16)
    assert set(F.OPTIMUM) == {"lower", "upper"}


def test_enumeration_and_formulas_agree():
    t = Telescope(calls.ladder(3.0, 4), [1.0, 0.6, 0.3, 0.2])
    mean, variance, price = calls.enumerated(t, np.zeros(1))
    assert mean == pytest.approx(t.h.value(4, np.zeros(1)))
    assert variance == pytest.approx(t.variance(np.zeros(1)))
    assert price == pytest.approx(t.expected_cost())
    assert calls.in_pairs(t) == pytest.approx(
        sum(q * t.h.step_cost(k) for k, q in zip(t.levels, t.p, strict=True))
    )
    assert calls.in_pairs(t) == pytest.approx(
        8 + 0.6 * (8 + 64) + 0.3 * (64 + 512) + 0.2 * (512 + 4096)
    )


def test_the_split_by_hand():
    # gamma = 2, levels 1 and 2, sigma = 1/2: cuts 4 + 4 * 1 and 16 + 0, or with the cut's own level 4 + 4 * 4 and 16 + 4
    assert calls.split(2.0, 2, 0.5, operator.lt) == 8
    assert calls.split(2.0, 2, 0.5, operator.le) == 20


def test_the_papers_branches_and_our_bounds_typed_by_hand():
    at = {"c": 3.0, "sigma": 0.2, "delta": 0.01}
    assert F.value(F.CALL["MC"], **at) == pytest.approx(225 * np.log(20) ** 2)
    assert F.value(F.CALL["ETMC"], gamma=1.5, **at) == pytest.approx(15**1.5)
    assert F.value(F.CALL["HTMC"], gamma=4.0, **at) == pytest.approx(36 * 81 * 1e4 * 25)
    assert F.value(F.SCALE["HTMC"], gamma=4.0, **at) == pytest.approx(9 * 100 / 0.5 * 25)
    assert F.value(F.SCALE["MC"], n=7, **at) == pytest.approx(9 * 7 * 25)
    assert F.value(F.SCALE["ETMC"], gamma=1.0, **at) == pytest.approx((225 / (1 - 2**-0.5)) ** 0.75)
    assert F.value(F.CALL_EXECUTED["MC"], n=4, **at) == pytest.approx(9 * 4 * 225 * 6)
