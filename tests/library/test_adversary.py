"""The adversary keeps the promises of Theorem 2: its class, its blindness, its meter."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize as scipy_minimize

from mlgd import Hierarchy, LevelError, Problem, audit, minimize, plan
from mlgd.adversary import Adversary
from mlgd.telescope import Telescope


@st.composite
def instances(draw):
    beta = draw(st.floats(0.1, 10))
    d0 = draw(st.floats(0.1, 10))
    gamma = draw(st.floats(0.25, 5))
    c = draw(st.floats(0.05, 20))
    mu = draw(st.one_of(st.just(0.0), st.floats(0.01, 1).map(lambda share: share * beta)))
    eps = (mu or beta) * d0**2 / 8 * draw(st.floats(1e-6, 1))
    return {"eps": eps, "d0": d0, "beta": beta, "gamma": gamma, "c": c, "mu": mu}


def points(adversary, count=5, seed=0):
    return adversary.d0 * np.random.default_rng(seed).normal(size=(count, adversary.start.size))


@settings(max_examples=60, deadline=None)
@given(instances())
def test_it_belongs_to_its_class(problem):
    for sign in (1, -1):
        a = Adversary(**problem, sign=sign)
        for k in a.levels:
            assert a.cost(k) == pytest.approx((a.c * 2.0**k) ** a.gamma)
            for y in points(a):
                assert (
                    np.linalg.norm(a.evaluate(k, y) - a.gradient(y))
                    <= 2.0**-k * (1 + 1e-9) + 1e-12 * a.beta
                )
        assert np.linalg.norm(a.start - a.minimizer) <= a.d0 * (1 + 1e-9)
        assert np.linalg.norm(a.gradient(a.minimizer)) <= 1e-9 * a.delta
        assert a.loss(a.minimizer) == pytest.approx(0, abs=1e-12 * a.eps)
        for x, y in zip(points(a, seed=1), points(a, seed=2), strict=True):
            gap = (a.gradient(x) - a.gradient(y)) @ (x - y)
            assert (
                a.mu * (1 - 1e-9) * np.sum((x - y) ** 2)
                <= gap
                <= a.beta * (1 + 1e-9) * np.sum((x - y) ** 2)
            )


@settings(max_examples=60, deadline=None)
@given(instances())
def test_the_copies_agree_to_the_bit_below_the_blind_level_and_differ_from_there_on(problem):
    a = Adversary(**problem)
    b = a.twin
    assert b.sign == -a.sign
    assert b.blind_below == a.blind_below
    assert a.levels == b.levels
    assert a.levels[0] < a.blind_below < a.levels[-1]
    for y in points(a):
        for k in a.levels:
            same = a.evaluate(k, y).tobytes() == b.evaluate(k, y).tobytes()
            assert same == (k < a.blind_below)
            assert (a.potential(k, y) == b.potential(k, y)) == (k < a.blind_below)


@settings(max_examples=60, deadline=None)
@given(instances())
def test_no_point_serves_both_copies(problem):
    a = Adversary(**problem)
    b = a.twin
    for y in [a.start, a.minimizer, b.minimizer, *points(a)]:
        assert a.loss(y) + b.loss(y) >= 8 * a.eps * (1 - 1e-9)
    assert a.loss(a.start) + b.loss(a.start) == pytest.approx(8 * a.eps)


@settings(max_examples=60, deadline=None)
@given(instances())
def test_the_bound_is_three_quarters_of_one_query_at_accuracy_delta(problem):
    a = Adversary(**problem)
    assert a.lower_bound == pytest.approx(0.75 * (a.c / a.delta) ** a.gamma)
    assert (
        a.lower_bound
        <= 0.75 * a.cost(a.blind_below) * (1 + 1e-9)
        < 2**a.gamma * a.lower_bound * (1 + 1e-6)
    )
    x = (a.mu and a.c / math.sqrt(8 * a.mu * a.eps)) or a.c * a.d0 / (8 * a.eps)
    assert a.lower_bound == pytest.approx(0.75 * x**a.gamma)


def test_the_loss_is_the_integral_of_the_gradient_and_the_potential_of_its_level():
    a = Adversary(eps=0.01, d0=1.0, beta=2.0, gamma=3.0, c=1.0, mu=0.5, sign=-1)
    h = 1e-6
    for y in points(a):
        for i in range(y.size):
            e = h * np.eye(y.size)[i]
            assert (a.loss(y + e) - a.loss(y - e)) / (2 * h) == pytest.approx(
                a.gradient(y)[i], abs=1e-7
            )
            for k in (a.blind_below - 1, a.blind_below):
                slope = (a.potential(k, y + e) - a.potential(k, y - e)) / (2 * h)
                assert slope == pytest.approx(a.evaluate(k, y)[i], abs=1e-7)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0, 3.0])
def test_the_base_has_the_rate_it_charges_for(gamma):
    a = Adversary(eps=0.01, d0=1.0, beta=1.0, gamma=gamma, c=1.0)
    report = audit(a.base, np.random.default_rng(0).normal(size=(4, 2)), reference=np.tanh)
    assert report.gamma == pytest.approx(gamma, rel=1e-6)
    assert report.c == pytest.approx(a.c * 2.0**-a.shift, rel=1e-6)
    assert report.r2 == pytest.approx(1)


def test_the_shift_is_the_least_that_leaves_room():
    for eps in np.geomspace(1e-6, 0.12, 40):
        a = Adversary(eps=eps, d0=1.0, beta=1.0, gamma=1.0, c=1.0)
        coarse = 4.0 ** -(a.blind_below - 1)
        assert a.delta**2 + coarse * 4.0**-a.shift <= coarse * (1 + 1e-12)
        assert a.shift == 1 or a.delta**2 + coarse * 4.0 ** -(a.shift - 1) > coarse


def test_the_meter_charges_every_query_and_nothing_else():
    a = Adversary(eps=0.01, d0=1.0, beta=1.0, gamma=2.0, c=1.0)
    k = a.blind_below
    assert (a.spent, a.queries, a.seen) == (0.0, 0, False)
    a.loss(a.start), a.gradient(a.start), a.point(a.start), a.potential(k, a.start), a.twin
    assert a.queries == 0
    a.evaluate(k - 1, a.start)
    a.evaluate(k - 1, a.start)
    assert not a.seen
    a.evaluate(k, a.start)
    assert a.seen
    assert a.queries == 3
    assert a.spent == 2 * a.cost(k - 1) + a.cost(k)
    assert a.spent == 2 * a.cost(k - 1) + a.cost(k)
    a.reset()
    assert (a.spent, a.queries, a.seen) == (0.0, 0, False)


def test_a_telescope_pays_the_adversary_what_it_says_it_costs():
    a = Adversary(eps=0.01, d0=1.0, beta=1.0, gamma=3.0, c=1.0)
    telescope = Telescope.for_accuracy(a, delta=a.delta / 8, sigma=2 * a.delta, gamma=3.0)
    rng = np.random.default_rng(0)
    paid = sum(telescope.draw(a.start, rng).cost for _ in range(50))
    assert a.spent == pytest.approx(paid)


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False))
def test_answers_do_not_depend_on_the_order_of_queries(random):
    problem = {"eps": 0.01, "d0": 1.0, "beta": 1.0, "gamma": 2.0, "c": 1.0, "mu": 0.25}
    questions = [
        (k, tuple(y)) for k in Adversary(**problem).levels for y in points(Adversary(**problem), 3)
    ]
    a = Adversary(**problem)
    first = {q: a.evaluate(q[0], np.array(q[1])).tobytes() for q in questions}
    random.shuffle(questions)
    b = Adversary(**problem)
    for q in questions:
        assert b.evaluate(q[0], np.array(q[1])).tobytes() == first[q]
    assert a.spent == b.spent


def test_levels_outside_its_range_are_refused_and_not_charged():
    a = Adversary(eps=0.01, d0=1.0, beta=1.0, gamma=2.0, c=1.0)
    for k in (a.levels[0] - 1, a.levels[-1] + 1, 1.5):
        for ask in (lambda k: a.evaluate(k, a.start), a.cost, lambda k: a.potential(k, a.start)):
            with pytest.raises(LevelError):
                ask(k)
    with pytest.raises(LevelError, match="shape"):
        a.evaluate(a.levels[0], np.zeros(7))
    with pytest.raises(ValueError, match="points have shape"):
        a.point(np.zeros(7))
    assert a.queries == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eps": 0.2}, "beta d0"),
        ({"mu": 0.5, "eps": 0.07}, "mu d0"),
        ({"eps": 0.0}, "eps"),
        ({"eps": math.nan}, "eps"),
        ({"d0": -1.0}, "d0"),
        ({"beta": 0.0}, "beta"),
        ({"gamma": 0.0}, "gamma"),
        ({"c": math.inf}, "c must"),
        ({"mu": 2.0}, "mu <= beta"),
        ({"mu": -0.1}, "mu"),
        ({"sign": 0}, "sign"),
    ],
)
def test_bad_input_is_refused(change, message):
    good = {"eps": 0.01, "d0": 1.0, "beta": 1.0, "gamma": 2.0, "c": 1.0, "mu": 0.0, "sign": 1}
    Adversary(**good)
    with pytest.raises(ValueError, match=message):
        Adversary(**{**good, **change})


def test_the_edges_of_the_range_are_accepted():
    assert Adversary(eps=0.125, d0=1.0, beta=1.0, gamma=1.0, c=1.0).flatness == 1.0
    a = Adversary(eps=0.125, d0=1.0, beta=1.0, gamma=1.0, c=1.0, mu=1.0)  # kappa = 1
    assert np.linalg.norm(a.minimizer) == pytest.approx(1.0)


def test_it_is_a_hierarchy():
    a = Adversary(eps=0.01, d0=1.0, beta=1.0, gamma=2.0, c=1.0)
    assert isinstance(a, Hierarchy)
    assert a.before(a.levels[0]) is None
    assert a.before(a.levels[1]) == a.levels[0]
    assert a.step_cost(a.levels[1]) == a.cost(a.levels[0]) + a.cost(a.levels[1])
    k = a.level_for(a.delta)
    assert k == a.blind_below
    assert a.step(k, a.start)[0] == a.sign * a.delta
    assert "blind below" in repr(a)


def test_a_gambler_meets_the_bound_exactly():
    """Look once with probability 3/4, else stay: mean loss eps on both copies at 3/4 of one look."""
    a = Adversary(eps=2.0**-9, d0=1.0, beta=1.0, gamma=3.0, c=1.0)
    k = a.blind_below
    y = a.start - a.evaluate(k, a.start) / a.flatness
    y[1:] = a.start[1:]
    assert 0.75 * a.loss(y) + 0.25 * a.loss(a.start) == pytest.approx(a.eps)
    assert 0.75 * a.spent == a.lower_bound


# --- played by the book's own methods and by scipy's --------------------------------------------------------


def told(adversary):
    """What a planner is told: the class and the coarsest level, not the sign."""
    a = adversary
    return Problem(beta=a.beta, d0=a.d0, gamma=a.gamma, c=a.c, mu=a.mu, first=a.levels[0])


@pytest.mark.parametrize("method", ["fixed", "multilevel", "accelerated", "scheduled"])
@pytest.mark.parametrize("gamma", [1.0, 3.0])
def test_every_planned_method_pays_at_least_the_bound_and_the_meter_agrees_with_its_account(
    method, gamma
):
    for sign in (1, -1):
        a = Adversary(eps=2.0**-7, d0=1.0, beta=1.0, gamma=gamma, c=1.0, mu=0.25, sign=sign)
        result = minimize(a, a.start, plan(told(a), a.eps, method), rng=3)
        assert a.spent == pytest.approx(result.cost)
        assert a.loss(result.y) <= a.eps
        assert a.spent >= a.lower_bound
        assert a.seen


def lbfgs(adversary, level):
    return scipy_minimize(
        lambda y: adversary.potential(level, y),
        adversary.start,
        jac=lambda y: adversary.evaluate(level, y),
        method="L-BFGS-B",
        options={"ftol": 0.0, "gtol": 2.0**-level / 4},
    ).x


def test_a_foreign_optimizer_wins_only_by_looking():
    for level, wins in ((-1, False), (0, True)):
        a = Adversary(eps=2.0**-9, d0=1.0, beta=1.0, gamma=3.0, c=1.0)
        b = a.twin
        outputs = [lbfgs(copy, copy.blind_below + level) for copy in (a, b)]
        worst = max(a.loss(outputs[0]), b.loss(outputs[1]))
        assert (worst <= a.eps) == wins
        assert (a.seen, b.seen) == (wins, wins)
        assert (outputs[0].tobytes() == outputs[1].tobytes()) != wins
        assert wins or worst >= 4 * a.eps * (1 - 1e-9)
        assert not wins or min(a.spent, b.spent) >= a.lower_bound
