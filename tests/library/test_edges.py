"""Guards against rounding are narrow: what is off by half a thousandth counts, what is off by rounding does not."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mlgd import Adversary, Hierarchy, Problem, Telescope, compare, flow, plan, tuned
from mlgd.epochs import (
    Epoch,
    Setting,
    average_loss,
    cheapest,
    contraction,
    fewest,
    last_loss,
    with_levels,
)
from mlgd.examples import series
from mlgd.hierarchy import shown
from mlgd.jumps import exponential_schedule, proposition_schedule
from mlgd.purchases import Buyer, Meter, Stop
from mlgd.searching import Ladder, coarse_prices
from mlgd.solvers import quasi_newton

OFF, ROUNDING = 1 + 5e-4, 1 + 1e-14
CONVEX = Problem(beta=1.0, d0=1.0, gamma=3, c=1)
STRONG = Problem(beta=1.0, mu=0.1, d0=1.0, gamma=3, c=1)


def ladder(accuracies):
    return Hierarchy(
        lambda k, y: y, lambda k: 8.0**k, range(len(accuracies)), accuracies.__getitem__
    )


def test_a_step_or_a_target_past_its_limit_is_refused():
    for wrong in (
        lambda by: plan(CONVEX, 0.1, eta=0.25 * by),
        lambda by: plan(CONVEX, 8.0, eta=0.125 * by),  # at most d0^2/eps
        lambda by: Adversary(eps=0.125 * by, d0=1, beta=1, gamma=3, c=1),
        lambda by: ladder([0.5, 0.25, 0.25 * by]),
    ):
        wrong(ROUNDING)
        with pytest.raises(ValueError, match=r"must|larger"):
            wrong(OFF)


def test_a_level_serves_an_accuracy_that_it_has():
    h = ladder([1.0, 0.25, 0.1])
    assert h.level_for(0.25 / ROUNDING) == 1
    assert h.level_for(0.25 / OFF) == 2
    assert CONVEX.prices(0.125 / ROUNDING).levels[-1] == 3
    assert CONVEX.prices(0.125 / OFF).levels[-1] == 4
    for by, used in ((ROUNDING, 2), (OFF, 3)):
        rates = exponential_schedule(h, (0.25 / by, 0.0), (0.1, 0.0), 3.0, 1.0).rates(0.5)
        assert np.count_nonzero(rates) == used
    delta = plan(CONVEX, 0.1, "accelerated").delta
    for by, finest in ((ROUNDING, 1), (OFF, 2)):
        chosen = plan(CONVEX, 0.1, "accelerated", on=ladder([1.0, delta * by, delta / 2]))
        assert chosen.stages[-1].levels[-1] == finest


def test_whole_steps_are_enough_steps():
    eta = 0.25
    rate = -math.log1p(-eta * STRONG.mu / 2)
    for by, more in ((1e-12, 0), (5e-4, 1)):
        assert plan(CONVEX, 4 / (eta * (100 + by)), eta=eta).steps == 100 + more
        assert (
            plan(CONVEX, 12 / (eta * ((2 * (10 + by) + 1) ** 2 - 1)), "accelerated", eta=eta).steps
            == 10 + more
        )
        assert (
            plan(STRONG, 0.2 / math.expm1((40 + by) * rate), "scheduled", eta=eta).steps
            == 40 + more
        )
        assert fewest(lambda t: 0.9**t, 0.9 ** (5 + by)) == 5 + (by > 0)
    many = np.append(np.arange(1.0, 50.0), 2.0 ** np.arange(6, 40) + 1)
    assert np.array_equal(fewest(lambda t: 1 / t, 1 / many, many.shape), many)
    assert fewest(lambda t: 1 + 1 / t, 1.0) == fewest(lambda t: t * np.nan, 1.0) == math.inf


def test_increments_that_do_not_change_are_hardly_drawn():
    s = Setting(
        1.0,
        0.1,
        1.0,
        1e-3,
        8.0 ** np.arange(3),
        2.0 ** -np.arange(3),
        np.zeros(3),
        np.zeros(3, bool),
    )
    assert max(with_levels(s, Epoch(1.0, 2, 5, 0.1, reached=0.5)).probabilities[1:]) < 1e-9


def test_a_ladder_that_is_nearly_dyadic_is_not_taken_for_one():
    """Solved for, the variance allowed is used up; the closed form, made for powers of two, would leave some or take more."""
    accuracy = OFF * 2.0 ** -np.arange(9.0)
    t = Telescope.for_accuracy(ladder(accuracy.tolist()), accuracy[-1], 0.02, 3.0)
    used = float(((1 / t.p[1:] - 1) * (accuracy[1:] + accuracy[:-1]) ** 2).sum())
    assert used == pytest.approx(0.02**2, rel=1e-9)


def test_levels_that_differ_too_much_are_seen_however_large_they_are():
    for size, apart, seen in (
        (1e3, 0.5, True),
        (1e3, 0.1, False),
        (1e16, 2.0, False),
    ):  # the last is rounding
        h = Hierarchy(lambda k, y, a=apart: y + a * k, lambda k: 2.0**k, range(2), lambda k: 0.1)
        start = np.full(2, size)
        buyer = Buyer(h, start, 0, None, Meter(h))
        buyer.values([(False, 0), (False, 1)], start)
        assert bool(buyer.broken) == seen


def test_little_room_costs_much():
    known = Ladder.of(ladder([1e-3, 5e-4]))
    square = 1.5e-3**2
    for room in (1e-9, 1e-5):
        (price,) = coarse_prices(known.cost, known.shared, known.steps[None], np.full((1, 2), room))
        assert price.tolist() == pytest.approx([1.0, min(8.0, 1 + 8 * square / (room + square))])


def test_a_search_begins_at_the_size_of_the_gradient_however_small():
    memory, seen = SimpleNamespace(y=np.full(3, 1e-6)), []
    for _ in quasi_newton(lambda y: seen.append(y) or 1e-3 * y, memory, 2):
        pass
    moved = float(np.linalg.norm(seen[1] - seen[0]))
    assert moved == pytest.approx(1.0)  # 1/|g| times g


def test_curvature_of_flat_directions_is_kept():
    """A step that is mostly flat and a change that is mostly steep are nearly orthogonal, and still a pair."""
    curvature = np.array([1e-7, 1.0])
    memory = SimpleNamespace(y=np.array([1.0, 1e-7**1.5]))
    for _ in quasi_newton(lambda y: curvature * y, memory, 8, 0.0, 1.0):
        pass
    ((step, change, product),) = memory.search.pairs
    assert 0 < product < 1e-3 * np.linalg.norm(step) * np.linalg.norm(change)


# --- numbers at which something begins or ends -----------------------------------------------------------------------


def test_a_target_that_equals_a_threshold():
    assert CONVEX.already(0.5)
    assert not CONVEX.already(0.4999)
    problem = Problem(beta=1.0, mu=0.25, d0=2.0, gamma=3, c=1)
    assert plan(problem, 1.0).averaging == "geometric"  # part (b) from eps = mu d0^2 on
    assert compare(problem, 1.0).multiplier("accelerated") == pytest.approx(4**0.25)
    restarted = Problem(beta=1.0, mu=0.25, d0=4.0, gamma=3, c=1)
    assert (
        len(plan(restarted, 1.0, "accelerated").stages) == 1
    )  # mu d0^2/4 is the target of the first stage


def test_a_step_of_two_over_beta_is_refused():
    t = Telescope(ladder([0.1, 0.01]), [1.0, 0.5])
    for wrong in (
        lambda: plan(STRONG, 0.1, eta=2.0, on=t.h, promise="quadratic"),
        lambda: tuned(STRONG, 0.1, t, 2.0, 5),
    ):
        with pytest.raises(ValueError, match="the step must be below"):
            wrong()
    assert tuned(STRONG, 0.1, t, 1.9, 5, window=5).window == 5


@pytest.mark.parametrize(
    "wrong",
    [
        lambda h: exponential_schedule(h, (0.1, 0.0), (0.1, 0.0), 0.0, 1.0),
        lambda h: exponential_schedule(h, (0.0, 0.0), (0.1, 0.0), 3.0, 1.0),
        lambda h: proposition_schedule(h, 0.0, 0.1, 3.0, 1.0),
        lambda h: proposition_schedule(h, 0.1, 0.0, 3.0, 1.0),
        lambda h: proposition_schedule(h, 0.1, 0.1, 3.0, 1.0, relax=0.0),
        lambda h: flow(h, np.ones(1), {0: 0.0}, 1.0),
        lambda h: flow(h, np.ones(1), {0: 1.0}, 1.0, max_events=0),
        lambda h: Telescope.for_accuracy(h, 0.1, 1.0, 0.0),
        lambda h: ladder([0.1, 0.0]),
        lambda h: Hierarchy(h.evaluate, h.cost, [1, 1]),
        lambda h: series(lambda y: y, 3, 1, range(2), terms=-1),
    ],
)
def test_zero_is_refused_where_nothing_can_be_zero(wrong):
    with pytest.raises(ValueError, match=r"positive|need|at least"):
        wrong(ladder([1.0, 0.1]))


def test_zero_and_one_are_taken_where_they_mean_something():
    h = ladder([1.0, 0.1])
    still = flow(h, np.ones(2), {0: 1.0}, 0.0)
    assert still.status == "done"
    assert still.y.tolist() == [1.0, 1.0]
    assert flow(h, np.ones(1), [5.0, 5.0], 50.0, rng=0, max_events=1).steps == 1
    assert series(lambda y: y, 3, 1, range(2), terms=0).value(1, np.ones(1)) == 1.0
    assert Telescope.for_accuracy(h, 2.0, 1.0, 3.0).levels == (0,)
    assert Telescope.cheapest(h, 0.5, [1.0, 0.0]).levels == (0, 1)
    assert ladder([1.0] * 2).value(0, np.zeros(2)).tolist() == [0.0, 0.0]
    pair = Hierarchy(
        lambda k, y: (0.1, 0.2), lambda k: 1.0, [0]
    )  # a tuple of two numbers is a gradient in two dimensions
    assert pair.value(0, np.zeros(2)).tolist() == [0.1, 0.2]


def test_what_is_shown_of_short_and_of_long_ladders_and_values():
    assert "levels 0 1 2 3 4," in repr(ladder([1.0] * 5))
    assert "levels 0 1 2 ... 5," in repr(ladder([1.0] * 6))
    assert shown("x" * 58) == repr("x" * 58)
    assert shown("x" * 59) == "a value of type str"


def test_a_budget_is_spent_to_its_end():
    h = ladder([1.0, 0.1])
    start = np.zeros(1)
    buyer = Buyer(h, start, 0, None, Meter(h, 2.0))  # two evaluations of level 0
    with pytest.raises(Stop):
        buyer.values([(False, 0), (False, 1)], start)
    assert buyer.meter.total == 0.0  # a call is paid for as a whole or not begun
    buyer.meter.afford(0, 0)
    buyer.value(0, start, fresh=False)
    buyer.value(0, start)
    with pytest.raises(Stop):
        buyer.value(0, start, fresh=False)
    assert Buyer(h, start, 0, None, Meter(h, 1.0)).meter.limit == 1.0


def test_one_evaluation_needs_no_executor():
    calls = []
    executor = SimpleNamespace(submit=lambda *a: calls.append(a))
    h = ladder([1.0, 0.1])
    Buyer(h, np.zeros(1), 0, None, Meter(h), executor).values([(False, 0)], np.ones(1))
    assert not calls


def test_a_slope_that_does_not_change_is_followed_further():
    memory, seen = SimpleNamespace(y=np.zeros(2)), []
    for _ in quasi_newton(lambda y: seen.append(y) or np.ones(2), memory, 4, 0.0, 1.0):
        pass
    assert [float(-y[0]) for y in seen] == pytest.approx([0.0, 1.0, 10.0, 100.0])


def test_epochs_at_the_edge_of_the_theorem():
    """b^2 + 4v = 1 is allowed, and no more."""
    s = Setting(1.0, 0.1, 1.0, 0.06, np.ones(1), np.array([0.1]), np.ones(1), np.zeros(1, bool))
    assert contraction(0.1, 0.0, 0.25, 3) == 1.0
    assert math.isfinite(average_loss(s, 1.0, 0.0, 0.25, 5, 0.5))
    assert math.isfinite(last_loss(s, 1.0, 0.0, 0.25, 5))
    assert cheapest(s)[0].noise == 0.0
    assert cheapest(replace(s, accuracy=np.array([0.1 * OFF]))) is None
    known = ladder([0.3, 0.1, 0.01, 1e-3])
    report = SimpleNamespace(
        hierarchy=known, regularity="smooth", change=np.array([1, 0.1, 0.01, 1e-3]), values=None
    )
    round_ = Problem(beta=1.0, mu=1.0, d0=1.0, gamma=3, c=1)
    assert plan(round_, 1e-3, "anchored", on=report).growth == 1.0


def test_no_room_for_noise_leaves_one_level():
    known = Ladder.of(ladder([1.0, 0.5]))
    assert coarse_prices(
        known.cost, known.shared, known.steps[None], np.zeros((1, 2))
    ).tolist() == [[1.0, 8.0]]
