"""Plans: the budget closes, the price is within its bound, bad input is refused, and methods are compared."""

import math
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mlgd import Problem, Telescope, compare, plan
from mlgd import formulas as F
from mlgd.plans import METHODS, call_bound

positive = st.floats(-3.0, 3.0).map(lambda x: 10.0**x)
rates = st.one_of(
    st.floats(0.05, 9.0),
    st.sampled_from(
        [2.0, math.nextafter(2, 0), math.nextafter(2, 3), 2 - 1e-9, 2 + 1e-9, 1.999, 2.001]
    ),
)


@st.composite
def problems(draw):
    """(problem, eps): wide in every parameter, kappa up to ten million."""
    beta, d0, c, gamma = draw(positive), draw(positive), draw(positive), draw(rates)
    mu = beta * draw(st.one_of(st.just(0.0), st.floats(-7.0, 0.0).map(lambda x: 10.0**x)))
    eps = beta * d0**2 * draw(st.floats(-5.0, 1.5).map(lambda x: 10.0**x))
    return Problem(beta=beta, d0=d0, gamma=gamma, c=c, mu=mu), eps


def methods_for(problem):
    return [m for m in METHODS if m != "scheduled" or problem.mu > 0]


@settings(max_examples=150, deadline=None)
@given(problems())
@example((Problem(beta=1.0, d0=1.0, gamma=math.nextafter(2, 3), c=1.0, mu=1.0), 1.0))
@example((Problem(beta=1.0, d0=1.0, gamma=3.0, c=1.0), 100.0))
def test_the_budget_closes_and_the_price_is_within_its_bound(case):
    problem, eps = case
    for method in methods_for(problem):
        bill = plan(problem, eps, method)
        assert bill.budget.total <= eps * (1 + 1e-9), method
        assert min(bill.budget.horizon, bill.budget.bias, bill.budget.noise) >= 0
        assert 0 < bill.expected_cost <= bill.cost_bound * (1 + 1e-9), method
        assert bill.steps == sum(s.steps for s in bill.stages) >= 1
        assert bill.eta <= 1 / (4 * problem.beta) * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(problems(), st.floats(-3.0, 0.0))
def test_any_allowed_step_keeps_the_promise(case, shrink):
    problem, eps = case
    eta = 10.0**shrink * min(1 / (4 * problem.beta), problem.d0**2 / eps)
    bill = plan(problem, eps, eta=eta)
    assert bill.eta == eta
    assert bill.budget.total <= eps * (1 + 1e-9)
    assert bill.expected_cost <= bill.cost_bound * (1 + 1e-9)


@settings(max_examples=100, deadline=None)
@given(positive, rates, st.floats(-6.0, 1.0), st.floats(-3.0, 4.0))
def test_one_call_is_within_its_bound(c, gamma, small, large):
    problem = Problem(beta=1.0, d0=1.0, gamma=gamma, c=c)
    delta = 10.0**small
    sigma = delta * 10.0**large
    ladder = problem.prices(delta)
    for s in (sigma, 0.0):
        price = Telescope.for_accuracy(ladder, delta, s, gamma).expected_cost()
        assert price <= call_bound(problem, delta, s) * (1 + 1e-9)


@settings(max_examples=100, deadline=None)
@given(st.integers(-20, 40), st.sampled_from([0.0, 1e-16, -1e-16, 1e-11, -1e-11, 1e-8, -1e-8]))
def test_delta_near_a_level_is_rounded_to_one_that_serves_it(k, nudge):
    delta = 2.0**-k * (1 + nudge)
    ladder = Problem(beta=1.0, d0=1.0, gamma=1.0, c=1e9).prices(delta)
    assert ladder.level_for(delta) == ladder.levels[-1]
    assert delta / 2 < 2.0 ** -ladder.levels[-1] * (1 + 1e-9)
    assert 2.0 ** -ladder.levels[-1] <= delta * (1 + 1e-9)


@pytest.mark.parametrize("gamma", [1.0, 2.0, 3.0])
def test_convex_plan_is_theorem_1a(gamma):
    bill = plan(Problem(beta=2.0, d0=3.0, gamma=gamma, c=1.0), 0.3)
    assert bill.eta == 1 / 8
    assert bill.steps == math.ceil(4 * 9 / (0.125 * 0.3))
    assert bill.averaging == "uniform"
    assert bill.delta == pytest.approx(0.3 / 48)
    assert bill.sigma**2 == pytest.approx(0.3 / (4 / 8))


def test_strong_plan_is_theorem_1b_below_mu_d0_squared_and_1a_above():
    problem = Problem(beta=2.0, d0=3.0, gamma=3.0, c=1.0, mu=0.1)
    below, above = plan(problem, 0.5), plan(problem, 1.0)
    assert below.steps == math.ceil(4 / (0.125 * 0.1) * math.log(256 * 0.1 * 9 / 0.5))
    assert below.delta == pytest.approx(math.sqrt(0.1 * 0.5) / 8)
    assert below.sigma**2 == pytest.approx(0.5 / (8 / 8))
    assert below.averaging == "geometric"
    assert below.growth == pytest.approx(1 / (1 - 0.0125))
    assert above.averaging == "uniform"


def test_fixed_plan_pays_one_level_a_step():
    bill = plan(Problem(beta=1.0, d0=1.0, gamma=3.0, c=1.0), 0.25, "fixed")
    assert bill.sigma == 0
    assert bill.budget.noise < 0.25 / 64
    assert bill.expected_cost == bill.steps * 64.0**3


def test_near_two_the_bound_is_not_absurd():
    for gamma in (math.nextafter(2, 0), math.nextafter(2, 3), 2 + 1e-6):
        problem = Problem(beta=1.0, d0=1.0, gamma=gamma, c=1.0)
        assert plan(problem, 0.05).cost_bound <= 3 * plan(problem, 0.05, "fixed").expected_cost


def test_a_plan_reads_as_a_bill_and_warns():
    text = str(plan(Problem(beta=1.0, d0=1.0, gamma=3.0, c=1e-3), 0.05))
    assert "expected price" in text
    assert "unsafe unless the" in text
    assert "nothing needs to run" in str(plan(Problem(beta=1.0, d0=1.0, gamma=3.0, c=1.0), 0.6))
    assert not plan(Problem(beta=1.0, d0=1.0, gamma=3.0, c=100.0), 0.05).warnings


# --- refusals ------------------------------------------------------------------------------------------------

GOOD = {"beta": 1.0, "d0": 1.0, "gamma": 3.0, "c": 1.0}


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "1", None])
def test_a_problem_refuses_what_is_not_a_positive_number(name, bad):
    with pytest.raises(ValueError, match=rf"^{name} must be positive and finite; got "):
        Problem(**{**GOOD, name: bad})


@pytest.mark.parametrize("mu", [-0.1, 1.1, math.nan])
def test_a_problem_refuses_mu_outside_zero_to_beta(mu):
    with pytest.raises(ValueError, match=r"mu must lie in \[0, beta\]"):
        Problem(**GOOD, mu=mu)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eps": 0.0}, "eps must be positive and finite"),
        ({"eps": math.inf}, "eps must be positive and finite"),
        ({"eps": 0.1, "method": "magic"}, "method must be one of"),
        ({"eps": 0.1, "method": "scheduled"}, "needs strong convexity"),
        ({"eps": 0.1, "eta": 0.3}, r"at most 1/\(4 beta\) = 0.25; got 0.3"),
        ({"eps": 0.1, "eta": -0.1}, "eta must be positive and finite"),
        ({"eps": 10.0, "eta": 0.2}, r"at most d0\^2/eps = 0.1; got 0.2"),
    ],
)
def test_a_plan_refuses_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        plan(Problem(**GOOD), **arguments)


def test_a_priced_ladder_cannot_be_run():
    with pytest.raises(NotImplementedError, match="run the plan on a Hierarchy of your own"):
        Problem(**GOOD).prices(0.1).evaluate(1, None)


# --- comparison ----------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(problems())
def test_compare_prices_every_method_cheapest_first(case):
    problem, eps = case
    comparison = compare(problem, eps)
    assert {p.method for p in comparison.plans} == set(methods_for(problem))
    assert all(a.expected_cost <= b.expected_cost for a, b in pairwise(comparison.plans))
    assert comparison.best is comparison.plans[0]
    assert str(comparison).count("\n") == len(comparison.plans) + len(comparison.left_out) + 1
    assert set(comparison.left_out) == set(METHODS) - set(methods_for(problem))
    assert (
        "the telescope pays" in comparison.verdict
        or "the telescope does not pay" in comparison.verdict
    )


def test_multipliers_are_the_papers():
    convex = compare(Problem(beta=4.0, d0=3.0, gamma=3.0, c=1.0), 0.01)
    x = 4 * 9 / 0.01
    assert convex.multiplier("multilevel") == 1
    assert convex.multiplier("fixed") == pytest.approx(x)
    assert convex.multiplier("accelerated") == pytest.approx(
        math.sqrt(x)
    )  # T^(gamma - 2), T = sqrt(x)
    assert convex.multiplier("scheduled") is None
    easy = compare(Problem(beta=4.0, d0=3.0, gamma=1.0, c=1.0), 0.01)
    assert easy.multiplier("fixed") == pytest.approx(x**0.5)
    assert easy.multiplier("accelerated") == pytest.approx(x**-0.25)
    threshold = compare(Problem(beta=4.0, d0=3.0, gamma=2.0, c=1.0), 0.01)
    assert threshold.multiplier("accelerated") == 1
    assert threshold.multiplier("fixed") is None


def test_multipliers_under_strong_convexity():
    strong = compare(Problem(beta=4.0, d0=3.0, gamma=3.0, c=1.0, mu=0.5), 0.01)
    assert strong.multiplier("fixed") == pytest.approx(8)
    assert strong.multiplier("accelerated") == pytest.approx(8**0.25)
    assert strong.multiplier("scheduled") == pytest.approx(1 / (1 + math.log(0.5 * 9 / 0.01)))
    easy = compare(Problem(beta=4.0, d0=3.0, gamma=1.0, c=1.0, mu=0.5), 0.01)
    assert easy.multiplier("fixed") == pytest.approx(8**0.5)
    assert easy.multiplier("accelerated") == pytest.approx(8**-0.25)


@pytest.mark.parametrize(("gamma", "name"), [(1.0, "ETMC"), (3.0, "HTMC")])
@pytest.mark.parametrize("column", ["convex", "strong"])
def test_multipliers_are_quotients_of_the_tables_cells(gamma, name, column):
    cells = F.table_of_bounds()
    at = {F.gamma: gamma, F.beta: 5, F.mu: 0.2, F.d0: 1.5, F.eps: 0.003}
    for method, row in (
        ("fixed", ("deterministic", "any")),
        ("accelerated", ("accelerated", name)),
    ):
        quotient = (cells[*row, column] / cells["gd", name, column]).subs(at)
        assert float(F.MULTIPLIER[method, column][name].subs(at)) == pytest.approx(float(quotient))
