"""The limits of *The constant*: against each other, closed forms, and figures found by others."""

import numpy as np
import pytest

from mlgd.experiment import constant

PHASES = 2 ** (np.arange(6) / 6)


@pytest.mark.parametrize(
    ("gamma", "above", "below"),
    # two referees' programs, over all phases; their third digit rounded outward
    [(2.2, 519, 317), (3.0, 66.8, 32.3), (4.0, 42.2, 17.7)],
)
def test_the_constants_are_those_of_the_referees(gamma, above, below):
    top = [constant.upper(gamma, u) for u in PHASES]
    bottom = [constant.lower(gamma, u) for u in PHASES]
    assert 0.97 * above < max(top) <= above
    assert below <= min(bottom) < 1.03 * below
    assert (np.array(top) > 1.5 * np.array(bottom)).all()


def test_a_run_of_fixed_length_and_each_idea_left_out_cost_more():
    order = (constant.by_price, constant.by_potential)
    prices = [step(3.0, 1.0) for step in order]
    prices += [constant.upper(3.0, 1.0, stop=False), constant.upper(3.0, 1.0)]
    assert prices == sorted(prices, reverse=True)
    assert 2.25 < prices[2] / prices[3] < 2.7


def test_a_phase_of_two_is_a_phase_of_one():
    for bound in (constant.upper, constant.lower, constant.by_price):
        assert bound(3.0, 2.0) == pytest.approx(bound(3.0, 1.0), rel=1e-4)


def test_the_sum_of_squares_and_the_best_length():
    n = np.array([0.3, 1.0, 2.5, 7.0])
    listed = [sum((x - i) ** 2 for i in range(int(np.ceil(x)))) for x in n]
    np.testing.assert_allclose(constant.squares(n), listed)
    weights = [sum(x - i for i in range(int(np.ceil(x)))) for x in n]
    np.testing.assert_allclose(constant.chain(np.array(weights)), n)


@pytest.mark.parametrize(
    ("room", "least"), [(1e-2, 2.5), (1e-3, 5.4), (1e-4, 8.4), (1e-6, 15.3)]
)
def test_at_finite_targets_the_lower_bound_needs_room(room, least):
    found = [constant.lower(3.0, u, room) for u in PHASES]
    assert least < min(found) < constant.lower(3.0, 1.0)
    assert min(found) < 1.3 * least
