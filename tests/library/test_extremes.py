"""Numbers as far apart as floats go: an answer that holds, or one sentence, and never a warning."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mlgd import Hierarchy, Problem, Telescope, audit, compare, plan
from mlgd.adversary import Adversary
from mlgd.flow import flow
from mlgd.hierarchy import LARGEST_PRICE, dyadic

EDGES = [5e-324, 1e-320, 1e-308, 1e-160, 1e-120, 1e-10, 1.0, 1e10, 1e154, 1e200, 1.7e308]
numbers = st.one_of(
    st.sampled_from(EDGES),
    st.floats(-3.0, 3.0).map(lambda x: 10.0**x),
    st.floats(-300.0, 300.0).map(lambda x: 10.0**x),
)
rates = st.one_of(st.sampled_from([1e-300, 1e-3, 2.0, 1e3, 1e300]), st.floats(0.1, 6.0))
lists = st.lists(numbers, min_size=1, max_size=6)
prices_listed = st.lists(
    numbers.filter(lambda x: x <= LARGEST_PRICE), min_size=1, max_size=6
)
METHODS = ("multilevel", "fixed", "accelerated", "scheduled")  # sharp: in compare
pytestmark = pytest.mark.filterwarnings("error")


def tried(use):
    """What comes of it, or None where it is refused in a sentence."""
    try:
        return use()
    except (ValueError, TypeError) as error:
        if len(str(error)) < 30:  # "math domain error" says nothing
            raise AssertionError(f"no sentence: {error}") from error
        return None


def holds(bill):
    """Whether a plan is one: its price a number, its budget within the target."""
    assert 0 < bill.expected_cost <= bill.cost_bound * (1 + 1e-9) < math.inf
    assert sum(bill.budget.values()) <= bill.eps * (1 + 1e-9)
    assert bill.method in str(bill)


def answered(use):
    """The plans, if any were made, hold."""
    for bill in np.atleast_1d(tried(use) or []):
        holds(bill)


@settings(max_examples=50, deadline=None)
@given(numbers, numbers, rates, numbers, st.floats(0, 1), numbers, lists, prices_listed)
@example(1.0, 2.0, 3.0, 1.0, 0.0, 1e-120, [1.0], [1.0])
@example(
    1.0, 2.0, 3.0, 1.0, 1e-20, 0.1, [1.0], [1.0]
)  # a kappa beyond the digits of a float
@example(0.05, 1e142, 20.0, 1.0, 0.0, 0.03, [1.0], [1.0])
@example(5e-324, 1e118, 100.0, 1e154, 1.0, 5e-324, [1.0], [1.0])
def test_a_plan(beta, d0, gamma, c, share, eps, accuracy, prices):
    problem = tried(lambda: Problem(beta=beta, d0=d0, gamma=gamma, c=c, mu=share * beta))
    if problem is None:
        return
    accuracy, size = sorted(accuracy, reverse=True), min(len(accuracy), len(prices))
    h = Hierarchy(lambda k, y: y, prices[:size], range(size), accuracy.__getitem__)
    for on in (None, h):
        for method in METHODS:
            answered(lambda method=method, on=on: plan(problem, eps, method, on=on))
        answered(lambda on=on: compare(problem, eps, on=on))
    tried(lambda: problem.prices(eps))
    tried(lambda: Adversary(eps, d0, beta, gamma, c, share * beta))


@pytest.mark.parametrize("first", [-(10**9), -1024, 1075, 10**9])
def test_a_first_level_that_no_float_can_be_the_accuracy_of(first):
    with pytest.raises(
        ValueError, match="first must be a level from -1023 to 1074, so that a f"
    ):
        Problem(beta=1.0, d0=1.0, gamma=1.0, c=1.0, first=first)


def test_a_target_that_no_float_can_price():
    known = Problem(beta=1.0, d0=2.0, gamma=3.0, c=1.0)
    with pytest.raises(
        ValueError, match=r"level 404, .* is out of the range of floats for P"
    ):
        plan(known, 1e-120)
    for method in ("multilevel", "scheduled"):
        with pytest.raises(
            ValueError, match=r"its numbers leave the range .*other units"
        ):
            plan(Problem(beta=1.0, d0=1e200, gamma=3.0, c=1.0, mu=1e-9), 1e-3, method)


@settings(max_examples=100, deadline=None)
@given(
    lists,
    prices_listed,
    st.one_of(st.just(0.0), numbers),
    numbers,
    rates,
    st.sampled_from([0.0, 0.5, 1.0]),
    st.booleans(),
)
def test_a_telescope(accuracy, prices, sigma, delta, gamma, coarsest, powers):
    accuracy, size = sorted(accuracy, reverse=True), min(len(accuracy), len(prices))
    declared = dyadic if powers else accuracy.__getitem__
    h = Hierarchy(lambda k, y: y, prices[:size], range(size), declared)
    closed = tried(lambda: Telescope.for_accuracy(h, delta, sigma, gamma, coarsest))
    assert closed is None or 0 <= closed.expected_cost() < math.inf
    best = tried(lambda: Telescope.cheapest(h, sigma, accuracy[:size]))
    assert best is None or 0 < best.expected_cost() < math.inf


@settings(max_examples=100, deadline=None)
@given(lists, prices_listed, st.booleans())
def test_an_audit(off, prices, referred):
    size = min(len(off), len(prices))
    h = Hierarchy(lambda k, y: 0 * y + off[k], prices[:size], range(size))
    report = tried(
        lambda: audit(h, [np.ones(2)], (lambda y: 0 * y) if referred else None)
    )
    if report is None:
        return
    assert "R2" in repr(report)
    assert 0 <= report.tail < math.inf
    tried(lambda: report.hierarchy)
    problem = tried(lambda: report.problem(beta=1.0, d0=1.0))
    if problem is not None:
        answered(lambda: plan(problem, 0.01))
        answered(lambda: plan(problem, 0.01, on=report))


@settings(max_examples=100, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=3), numbers, prices_listed)
def test_a_flow(fast, horizon, prices):
    h = Hierarchy(lambda k, y: y, prices, range(len(prices)))
    budget = min(20 * min(prices), 1.7e308)
    run = tried(
        lambda: flow(h, np.ones(1), fast[: len(prices)], horizon, 0, max_cost=budget)
    )
    assert run is None or run.status in ("ended", "budget", "diverged")
