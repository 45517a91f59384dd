"""Whose fault is whose: what a user's own functions raise, what a run paid, what it may claim."""

import math
import os
import pickle
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.optimize import rosen

from mlgd import (
    Hierarchy,
    LevelError,
    OutOfDomain,
    Plan,
    Problem,
    Telescope,
    compare,
    constants,
    minimize,
    plan,
)
from mlgd import checkpoint as files
from mlgd.flow import Schedule, flow
from mlgd.hierarchy import dyadic

D = 30
CURVATURE = np.geomspace(0.01, 1, D)
OFF = np.random.default_rng(7).normal(size=(12, D))
OFF /= np.linalg.norm(OFF, axis=1, keepdims=True)
ZERO = np.zeros(D)


def level(k, y):
    return CURVATURE * (y - 1) + 0.2 * 2.0**-k * OFF[k]


def price(k):
    return 8.0**k


class Counted:
    """A level function that counts what it is asked, and may answer otherwise."""

    def __init__(self, fault=None, when=lambda calls, k, y: False):
        self.calls, self.paid, self.fault, self.when = 0, 0.0, fault, when

    def __call__(self, k, y):
        self.calls += 1
        self.paid += price(k)
        if self.when(self.calls, k, y):
            if isinstance(self.fault, BaseException):
                raise self.fault
            return self.fault
        return level(k, y)


def ladder(evaluate, levels=range(8), **given):
    return Hierarchy(evaluate, price, levels, **given)


# --- exceptions ---

ERRORS = [
    NameError("typo"),
    ConnectionError("the licence is away"),
    ZeroDivisionError("division by zero"),
    ValueError("math domain error"),
    OverflowError("math range error"),
    FloatingPointError("overflow"),
    np.linalg.LinAlgError("Singular matrix"),
    RuntimeError("no convergence"),
    AssertionError("a user's own"),
    KeyError("mesh"),
    MemoryError("out of memory"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("call", [2, 3, 9, 30])
def test_an_exception_of_the_levels_own_ends_the_run_at_once_and_is_told(error, call):
    f = Counted(error, lambda calls, k, y: calls == call)
    run = minimize(ladder(f), ZERO, eps=1e-3)
    assert f.calls == call
    assert (run.status, run.success, run.promise) == ("failed", False, "none")
    assert run.error.__cause__ is error
    assert type(error).__name__ in run.message
    assert "raise mlgd.OutOfDomain" in run.message
    assert run.cost == f.paid


@pytest.mark.parametrize(
    "fault", [np.full(D, np.nan), np.full(D, np.inf), OutOfDomain("too far")]
)
def test_a_point_outside_of_the_domain_shortens_a_step_and_is_named(fault):
    f = Counted(fault, lambda calls, k, y: y[0] > 1.5)
    run = minimize(ladder(f), ZERO, eps=1e-3)
    assert run.success
    assert run.error is None
    assert run.cost == f.paid
    named = [said for said in run.decisions if "steps stop short of there" in said]
    assert len(named) >= 1
    assert all("at y = [" in said for said in named)


def test_a_level_without_values_anywhere_fails_with_its_name_and_a_point():
    f = Counted(np.full(D, np.nan), lambda calls, k, y: k == 2)
    run = minimize(ladder(f), ZERO, eps=1e-3)
    assert run.status == "failed"
    assert isinstance(run.error, OutOfDomain)
    assert run.error.level == 2
    assert "level 2 returned a non-finite value at y = [" in run.message
    assert pickle.loads(pickle.dumps(run)).error.level == 2


def by_plan(h, **options):
    p = Plan.by_hand(Telescope(h, [1.0, 0.1, 0.02]), eta=0.1, steps=60)
    return p.run(h, ZERO, rng=3, **options)


@pytest.mark.parametrize("where", ["callback", "loss"])
@pytest.mark.parametrize("planned", [True, False])
def test_an_error_of_a_callback_or_a_loss_is_raised_also_if_it_is_a_levels(
    where, planned
):
    h = ladder(level, accuracy=dyadic)
    own = {where: lambda seen: h.value(99, ZERO)}
    with pytest.raises(LevelError, match="level 99 is not one of 0") as caught:
        by_plan(h, **own) if planned else minimize(h, ZERO, eps=1e-3, **own)
    if where == "callback":
        assert caught.value.result.status == "stopped"
        assert caught.value.result.cost > 0


# --- nothing is proved that was not declared ---

PROBLEM = Problem(beta=1, d0=2, gamma=3, c=1)
FAR = Hierarchy(lambda k, y: y + 4 + 2.0**-k, price, range(12))  # the truth is y - 1


@pytest.mark.parametrize("levels", [range(12), [16, 128, 2048]])
@pytest.mark.parametrize("method", ["multilevel", "fixed", "accelerated"])
def test_a_plan_on_levels_that_declare_nothing_is_refused(levels, method):
    h = Hierarchy(FAR.evaluate, lambda k: float(k + 1), levels)
    for ask in (
        lambda: plan(PROBLEM, 0.1, method, on=h),
        lambda: compare(PROBLEM, 0.1, on=h),
    ):
        with pytest.raises(
            ValueError, match=r"no accuracy was declared .*give accuracy="
        ):
            ask()
    with pytest.raises(ValueError, match="no accuracy was declared"):
        plan(PROBLEM, 0.1, method).run(h, ZERO)


def test_a_plan_made_for_one_ladder_proves_nothing_of_one_that_declares_nothing():
    declared = Hierarchy(FAR.evaluate, price, range(12), accuracy=dyadic)
    made = plan(PROBLEM, 0.5, on=declared)
    assert made.run(declared, ZERO[:1], rng=0).promise == "proved"
    with pytest.raises(ValueError, match="no accuracy was declared"):
        made.run(FAR, ZERO[:1])


def test_an_accuracy_of_zero_says_what_to_do():
    with pytest.raises(ValueError, match="level 3 is zero: say exact=True"):
        Hierarchy(level, price, range(4), accuracy=lambda k: 3.0 - k)


HAND_MADE = {
    "stages": {"method": "multilevel", "eta": 0.1, "stages": ()},
    "a method that is known": {"method": "x", "eta": 0.1, "stages": ()},
    "a problem, or probabilities": {
        "method": "fixed",
        "eta": 0.1,
        "stages": plan(PROBLEM, 0.5).stages,
    },
    "for what it promises": {
        "method": "fixed",
        "eta": 0.1,
        "stages": plan(PROBLEM, 0.5).stages,
        "promise": "proved",
    },
}


@pytest.mark.parametrize("lacks", HAND_MADE)
def test_a_plan_made_by_hand_that_lacks_something_is_refused(lacks):
    with pytest.raises(
        ValueError, match=f"this plan lacks .*{lacks}.*: make plans by mlgd.plan"
    ):
        Plan(**HAND_MADE[lacks]).run(ladder(level, accuracy=dyadic), ZERO)


# --- the bill ---


def test_the_bill_is_what_was_paid_over_budgets_and_resumptions(tmp_path):
    f, whole = Counted(), minimize(ladder(level), ZERO, eps=1e-3)
    for limit in (20, 300, 8e3, 8.1e3, 3e4, 1e5, 1e6):
        run = minimize(
            ladder(f), ZERO, eps=1e-3, checkpoint=tmp_path / "a", max_cost=limit
        )
        assert run.cost == f.paid <= limit
        assert run.nfev == f.calls
        assert (
            sum(run.cost_by_level.values())
            == sum(run.cost_by_purpose.values())
            == run.cost
        )
    assert run.status == "done"
    assert np.array_equal(run.y, whole.y)
    assert run.cost - run.cost_by_purpose["again"] == whole.cost


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), SystemExit(), NameError(), None])
@pytest.mark.parametrize("planned", [True, False])
def test_every_ending_writes_the_file(fault, planned, tmp_path):
    """In the middle of a step too: what it had bought is charged, and is made again."""
    path = tmp_path / "a"
    whole = minimize_or_run(planned, level)
    calls = whole.nfev // 2
    f = Counted(fault, lambda calls_made, k, y: fault is not None and calls_made == calls)
    stop = None if fault is not None else lambda seen: seen.step == whole.steps // 2
    try:
        first = minimize_or_run(planned, f, checkpoint=path, callback=stop)
    except (KeyboardInterrupt, SystemExit) as raised:
        first = raised.result
    assert first.cost == f.paid
    last = minimize_or_run(planned, f, checkpoint=path)
    assert (last.cost, last.nfev) == (f.paid, f.calls)
    assert np.array_equal(last.y, whole.y)
    assert last.cost_by_purpose["again"] < whole.cost / 2


def minimize_or_run(planned, evaluate, **options):
    h = ladder(evaluate, accuracy=dyadic)
    if planned:
        return by_plan(h, **options)
    return minimize(h, ZERO, eps=1e-3, **options)


def test_a_budget_that_does_not_pay_for_the_comparison_ends_a_resumed_run(tmp_path):
    first = minimize(
        ladder(level), ZERO, eps=1e-3, checkpoint=tmp_path / "a", max_cost=300
    )
    again = minimize(
        ladder(level), ZERO, eps=1e-3, checkpoint=tmp_path / "a", max_cost=first.cost
    )
    assert (again.status, again.cost) == ("budget", first.cost)


def test_a_level_that_fails_at_the_comparison_loses_nothing(tmp_path):
    minimize(ladder(level), ZERO, eps=1e-3, checkpoint=tmp_path / "a", max_cost=300)
    broken = Counted(NameError("typo"), lambda *_: True)
    run = minimize(ladder(broken), ZERO, eps=1e-3, checkpoint=tmp_path / "a")
    assert (run.status, run.cost_by_purpose["again"]) == ("failed", lost(tmp_path / "a"))
    last = minimize(ladder(level), ZERO, eps=1e-3, checkpoint=tmp_path / "a")
    assert np.array_equal(last.y, minimize(ladder(level), ZERO, eps=1e-3).y)


def lost(path):
    return sum(n * price(int(k)) for k, n in files.load(path)["bill"]["again"].items())


def test_a_run_without_a_plan_has_no_seed():
    with pytest.raises(TypeError, match="unexpected keyword argument 'rng'"):
        minimize(ladder(level), ZERO, eps=1e-3, rng=1)
    with pytest.raises(TypeError, match=r"a plan runs by itself: plan.run\(h, y0\)"):
        minimize(ladder(level), ZERO, plan(PROBLEM, 0.5))


def test_a_warning_of_a_checkpoint_points_at_the_line_that_asked(tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "save", full)
    with pytest.warns(UserWarning, match="No space left") as caught:
        minimize(ladder(level), ZERO, eps=1e-2, checkpoint=tmp_path / "a")
    assert {warning.filename for warning in caught} == {__file__}


# --- never worse than the start ---


def test_a_point_that_the_loss_says_is_worse_is_not_returned():
    """Every level misleads in the same way: gradients alone can't see it, the loss can."""
    h = Hierarchy(
        lambda k, y: -CURVATURE * (y - 1) + (y - 5) * 3 + 2.0**-k * OFF[k],
        price,
        range(6),
    )
    loss = lambda y: float(CURVATURE @ (y - 1) ** 2) / 2  # noqa: E731
    run = minimize(h, ZERO, eps=1e-3, loss=loss)
    assert np.array_equal(run.y, ZERO)
    assert (run.status, run.promise, run.success) == ("missed", "none", False)
    assert run.fun == loss(ZERO)
    assert "is above" in run.message
    assert "at the start, which is y" in run.message


@pytest.mark.parametrize(
    "ending", [{"max_cost": 300}, {"callback": lambda seen: seen.step == 4}]
)
def test_nor_when_something_ended_the_run_early(ending):
    h = Hierarchy(lambda k, y: 5 - y + 2.0**-k * OFF[k], price, range(6))
    run = minimize(h, ZERO, eps=1e-3, loss=lambda y: -float(y.sum()), **ending)
    assert run.fun <= 0
    assert -float(run.y.sum()) == run.fun


def test_a_start_that_is_better_by_less_than_is_believed_stays_a_success():
    h = ladder(level)
    loss = lambda y: float(CURVATURE @ (y - 1) ** 2) / 2  # noqa: E731
    run = minimize(h, ZERO + 1, eps=1e-2, loss=loss)
    assert loss(run.y) <= 1e-2
    assert run.success


# --- numbers at the edges ---


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("radius", [1e-160, 1e-300, 1e200])
def test_a_radius_of_another_world_is_refused_or_harmless(radius):
    if radius < 1:
        with pytest.raises(ValueError, match="give a larger radius"):
            minimize(ladder(level), ZERO, eps=1e-3, radius=radius)
    else:
        assert minimize(ladder(level), ZERO, eps=1e-3, radius=radius).success


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e-130, 1e-30, 1e30, 1e90])
def test_units_of_the_loss_do_not_matter(unit):
    run = minimize(ladder(lambda k, y: unit * level(k, y)), ZERO, eps=1e-3 * unit)
    assert run.success
    assert float(CURVATURE @ (run.y - 1) ** 2) / 2 <= 1e-3


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e-300, 1e-170, 1e120, 1e160, 1e300])
def test_units_whose_squares_no_float_holds_are_refused(unit):
    with pytest.raises(ValueError, match="choose another unit of the loss"):
        minimize(ladder(lambda k, y: unit * level(k, y)), ZERO, eps=1e-3)


def test_prices_that_overflow_a_sum_are_refused():
    with pytest.raises(ValueError, match="choose a larger unit of price"):
        Hierarchy(level, lambda k: 1e308, range(3))


def test_a_price_that_was_not_listed_is_a_level_error():
    h = Hierarchy(level, [1.0, 8.0], [0, 1])
    with pytest.raises(LevelError, match="level 5 has no price"):
        h.cost(5)


def test_a_flat_loss_far_away_does_not_run_to_the_end_of_floats():
    """log(1 + |y|^2) curves down away from zero: iterates ran to 1e154."""
    h = Hierarchy(
        lambda k, y: 2 * y / (1 + y @ y) + 1e-3 * 2.0**-k * OFF[k], price, range(8)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = minimize(h, ZERO + 100, eps=1e-3)
    assert not run.success or math.log1p(float(run.y @ run.y)) <= 1e-3
    assert np.abs(run.y).max() < 1e12


@pytest.mark.parametrize("noise", [2e-6, 1e-4])
def test_rounding_that_differs_from_call_to_call_can_be_declared(noise):
    rng = np.random.default_rng(0)
    shaky = lambda k, y: level(k, y) * (1 + noise * rng.normal(size=D))  # noqa: E731
    refused = minimize(ladder(shaky), ZERO, eps=1e-2)
    assert (refused.status, refused.nfev) == ("failed", 2)
    assert "give the hierarchy a larger repeats" in refused.message
    run = minimize(ladder(shaky, repeats=10 * noise), ZERO, eps=1e-2)
    assert float(CURVATURE @ (run.y - 1) ** 2) / 2 <= 1e-2


def test_bfloat16_is_read():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    h = ladder(lambda k, y: level(k, y).astype(ml_dtypes.bfloat16))
    assert h.value(0, ZERO).dtype == float


def test_rosenbrock_stays_downhill():
    from scipy.optimize import rosen_der

    h = Hierarchy(
        lambda k, y: rosen_der(y) * (1 + 2.0**-k / 9), price, range(5), exact=True
    )
    run = minimize(h, np.array([-1.2, 1.0]), eps=1e-6, loss=rosen)
    assert run.fun <= rosen(np.array([-1.2, 1.0]))


@pytest.mark.filterwarnings("error")
def test_an_increment_whose_square_underflows_is_no_direction():
    h = Hierarchy(lambda k, y: CURVATURE * (y - 1) + 1e-85**k * OFF[k], price, range(9))
    assert minimize(h, ZERO, max_cost=3e4).status != "failed"


def test_an_interrupt_at_the_comparison_is_charged_and_has_the_result(tmp_path):
    f, path = Counted(), tmp_path / "a"
    minimize(ladder(f), ZERO, eps=1e-3, checkpoint=path, max_cost=300)
    interrupted = f.calls + 1
    f.fault, f.when = KeyboardInterrupt(), lambda calls, k, y: calls == interrupted
    with pytest.raises(KeyboardInterrupt) as caught:
        minimize(ladder(f), ZERO, eps=1e-3, checkpoint=path)
    assert caught.value.result.cost == f.paid
    last = minimize(ladder(f), ZERO, eps=1e-3, checkpoint=path)
    assert (last.cost, last.nfev) == (f.paid, f.calls)


@pytest.mark.parametrize("planned", [True, False])
def test_the_file_of_a_run_of_another_kind_is_refused_for_nothing(planned, tmp_path):
    path = tmp_path / "a"
    minimize_or_run(not planned, level, checkpoint=path)
    before, f = path.read_bytes(), Counted()
    with pytest.raises(ValueError, match=r"belongs to another run: it has another "):
        minimize_or_run(planned, f, checkpoint=path)
    assert (f.calls, path.read_bytes()) == (0, before)


@pytest.mark.filterwarnings("error")
def test_a_damaged_file_is_closed_again(tmp_path):
    path = tmp_path / "a"
    minimize(ladder(level), ZERO, eps=1e-2, checkpoint=path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match="is damaged"):
        minimize(ladder(level), ZERO, eps=1e-2, checkpoint=path)


def test_an_exception_far_away_is_told_and_not_only_that_the_run_diverged():
    f = Counted(OverflowError("math range error"), lambda calls, k, y: abs(y[0]) > 1e10)
    p = Plan.by_hand(Telescope(ladder(level), [1.0]), eta=1e6, steps=4000)
    run = p.run(ladder(f), ZERO)
    assert (run.status, run.promise, run.cost) == ("failed", "none", f.paid)
    assert run.error.__cause__ is f.fault
    assert np.array_equal(run.y, ZERO)
    assert "OverflowError" in run.message
    assert "the iterate left every region, and y is the start" in run.message


@pytest.mark.parametrize("where", ["level", "callback"])
def test_nor_is_it_handed_over_by_an_interrupt(where):
    """The loss at the last whole step was recorded, and is above that at the start."""
    seen = []

    def interrupting(progress):
        seen.append(progress.loss)
        if where == "callback" and progress.loss > 0:
            raise KeyboardInterrupt

    def evaluate(k, y):
        if where == "level" and seen and seen[-1] > 0:
            raise KeyboardInterrupt
        return level(k, y)

    h, loss = ladder(evaluate), lambda y: float(y.sum())
    with pytest.raises(KeyboardInterrupt) as caught:
        minimize(h, ZERO, eps=1e-3, loss=loss, callback=interrupting)
    run = caught.value.result
    assert np.array_equal(run.y, ZERO)
    assert run.fun == 0
    assert "is above 0 at the start, which is y" in run.message


@pytest.mark.parametrize("last", [math.nan, math.inf])
@pytest.mark.parametrize("planned", [True, False])
def test_a_loss_that_is_no_number_where_the_run_ends_takes_the_promise_back(
    planned, last
):
    losses = iter([1.0])
    loss = lambda y: next(losses, last)  # noqa: E731
    if planned:
        h = Hierarchy(lambda k, y: y - 1 + 2.0**-k / 6, price, range(12), accuracy=dyadic)
        run = plan(PROBLEM, 0.5, on=h).run(h, ZERO, rng=0, loss=loss)
    else:
        run = minimize(ladder(level), ZERO, eps=1e-3, loss=loss)
    assert (run.status, run.promise, run.fun) == ("missed", "none", 1.0)
    assert np.array_equal(run.y, ZERO)
    assert "nan" not in run.message


BY_HAND = Plan.by_hand(Telescope(ladder(level), [1.0, 0.5]), eta=0.5, steps=9)
UNFIT = [
    ({"growth": 0}, "growth must be positive and finite; got 0"),
    ({"growth": math.nan}, "growth must be positive and finite; got nan"),
    ({"window": 0}, "the window must be positive and finite; got 0"),
    ({"window": 2.5}, "the window must be a whole number, at least 1; got 2.5"),
    ({"window": 10}, "the window must be at most the number of steps, 9; got 10"),
    ({"stages": ("a",)}, "this plan lacks stages"),
    (
        {"stages": (replace(BY_HAND.stages[0], steps=0),)},
        "the steps of a stage must be pos",
    ),
    (
        {"stages": (replace(BY_HAND.stages[0], steps=2.5),)},
        "the steps of a stage must be a wh",
    ),
    ({"promise": "sure"}, r"a promise that is known \(got 'sure'\)"),
    (
        {"promise": "proved", "problem": PROBLEM, "eps": 1e-9},
        "an error budget for what it prom",
    ),
]


@pytest.mark.parametrize(("changes", "sentence"), UNFIT)
def test_a_plan_that_was_changed_by_hand_is_checked(changes, sentence):
    f = Counted()
    with pytest.raises(ValueError, match=sentence):
        replace(BY_HAND, **changes).run(ladder(f, accuracy=dyadic), ZERO, rng=0)
    assert f.calls == 0


@pytest.mark.parametrize("value", [None, "high", np.zeros(3), 1j, {}])
def test_a_loss_that_returns_no_number_is_told_before_anything_is_paid(value):
    f = Counted()
    with pytest.raises(
        TypeError, match=r"loss\(y\) must return a number; it returned"
    ) as caught:
        minimize(ladder(f), ZERO, eps=1e-3, loss=lambda y: value)
    assert f.calls == caught.value.result.nfev == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [np.float32, np.atleast_1d, np.array])
def test_a_loss_may_return_a_number_of_any_kind(kind):
    run = minimize(ladder(level), ZERO, eps=1e-2, loss=lambda y: kind(y @ y))
    assert run.trace.loss[0] == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e151, 1e160, 1e300, 1e308])
def test_points_whose_squares_no_float_holds_are_refused_before_anything_is_paid(size):
    f = Counted()
    h = ladder(f, accuracy=dyadic)
    for use in (
        lambda y: minimize(h, y, eps=1e-3),
        lambda y: BY_HAND.run(h, y),
        lambda y: flow(h, y, [1.0], 1.0),
        lambda y: constants(h, y),
    ):
        with pytest.raises(
            ValueError, match=r"is too large.* choose another unit of the point"
        ):
            use(ZERO + size)
    assert f.calls == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e160, 1e300])
def test_gradients_whose_squares_no_float_holds_end_a_plan_or_are_refused(size):
    h = ladder(lambda k, y: size * level(k, y))
    for use in (
        lambda: BY_HAND.run(h, ZERO),
        lambda: constants(h, ZERO),
    ):
        with pytest.raises(LevelError, match="choose another unit of the loss"):
            use()
    grows = ladder(lambda k, y: 1e40 * (y - 1))
    p = Plan.by_hand(Telescope(grows, [1.0]), eta=0.5, steps=4000)
    assert p.run(grows, ZERO).status == "diverged"


def test_numbers_that_values_are_multiplied_or_divided_by_are_ordinary():
    with pytest.raises(ValueError, match="a probability is at least 1e-150"):
        Telescope(ladder(level), [1.0, 5e-324])
    with pytest.raises(ValueError, match="eta must be at most 1e"):
        replace(BY_HAND, eta=1e200).run(ladder(level), ZERO)


class Attached:
    """As a tensor with a gradient of its own."""

    def __array__(self, *_, **__):
        raise RuntimeError("call detach() first")


def test_a_point_whose_own_conversion_fails_is_refused():
    with pytest.raises(
        ValueError, match="a point must be an array of finite real numbers"
    ):
        minimize(ladder(level), Attached(), eps=1e-3)


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def test_an_exception_that_cannot_be_printed_is_an_exception_like_others():
    f = Counted(Mute(), lambda calls, k, y: calls == 9)
    run = minimize(ladder(f), ZERO, eps=1e-3)
    assert (run.status, run.error.__cause__) == ("failed", f.fault)
    assert "level 0 raised Mute" in run.message


@dataclass(frozen=True)
class Frozen(Exception):
    code: int = 1


def test_an_exception_that_is_frozen_has_the_result_too():
    def callback(progress):
        raise Frozen

    with pytest.raises(Frozen) as caught:
        minimize(ladder(level), ZERO, eps=1e-3, callback=callback)
    assert caught.value.result.status == "stopped"


@pytest.mark.parametrize("name", ["a\0b", "a" * 252, "pipe"])
def test_a_path_where_no_file_can_be_is_refused_before_anything_is_paid(name, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    f, path = Counted(), f"{tmp_path}/{name}"
    with pytest.raises(ValueError, match="checkpoint must be the path of a file"):
        minimize(ladder(f), ZERO, eps=1e-3, checkpoint=path)
    assert f.calls == 0


@pytest.mark.filterwarnings("error")
def test_prices_may_be_small_integers_of_numpy():
    prices = np.array([100, 120, 127], dtype=np.int8)
    t = Telescope(
        Hierarchy(level, lambda k: prices[k], range(3)), [0.9999, 0.9999, 0.9999]
    )
    assert t.draw(ZERO, rng=0).cost == 347
    assert 346 < t.expected_cost() <= 347
    assert Plan.by_hand(t, eta=0.1, steps=3).cost_bound == 3 * 347


NO_RATES = [
    lambda t: 1.0,
    lambda t: None,
    lambda t: np.ones(3),
    lambda t: np.ones((5, t.size)),
    lambda t: np.ones((1, 1)),
    lambda t: [["fast"] * t.size],
]


@pytest.mark.parametrize("rates", NO_RATES)
def test_rates_of_another_shape_are_refused_in_a_sentence(rates):
    f = Counted()
    with pytest.raises(ValueError, match="a row per level and a column per time, here"):
        flow(ladder(f), ZERO, Schedule(rates, (0,)), 2.0, rng=0)
    assert f.calls == 0


def test_rates_may_be_lists():
    schedule = Schedule(lambda t: [[1.0] * t.size], (0,))
    assert flow(ladder(level), ZERO, schedule, 2.0, rng=0).status == "ended"


@pytest.mark.filterwarnings("error")
def test_a_full_disk_where_warnings_are_errors_loses_no_result(tmp_path):
    (tmp_path / "a.part").mkdir()
    with pytest.raises(UserWarning, match="was not written") as caught:
        minimize(ladder(level), ZERO, eps=1e-3, checkpoint=tmp_path / "a")
    assert caught.value.result.nfev > 0


def test_a_level_error_of_the_users_own_is_the_cause_of_what_is_told():
    own = LevelError("of another ladder")
    run = minimize(ladder(Counted(own, lambda calls, k, y: calls == 9)), ZERO, eps=1e-3)
    assert (run.status, run.error.__cause__, run.error.level) == ("failed", own, 0)


def test_a_file_of_another_gradient_is_left_as_it_is(tmp_path):
    path = tmp_path / "a"
    minimize(ladder(level), ZERO, eps=1e-3, checkpoint=path, max_cost=300)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="another gradient there"):
        minimize(ladder(lambda k, y: 2 * level(k, y)), ZERO, eps=1e-3, checkpoint=path)
    assert path.read_bytes() == before


@pytest.mark.filterwarnings("error")
def test_increments_whose_sums_overflow_are_refused():
    with pytest.raises(ValueError, match="increments: one finite norm"):
        Telescope.cheapest(ladder(level), 1.0, [1e308, 1e308, 1e308])


def test_a_run_without_a_bar_does_not_wait_for_the_lock_of_bars(monkeypatch):
    """Forked processes share it: one killed while it made a bar made all others wait for ever."""

    def made(*_, **__):
        raise AssertionError("a bar was made")

    monkeypatch.setattr("mlgd.run.tqdm", made)
    assert minimize(ladder(level), ZERO, eps=1e-3).success
    assert by_plan(ladder(level)).nit == 60


def test_a_plan_whose_eps_was_made_smaller_by_hand_proves_nothing():
    h = Hierarchy(FAR.evaluate, price, range(12), accuracy=dyadic)
    with pytest.raises(ValueError, match="lacks an error budget within its eps = 1e-09"):
        replace(plan(PROBLEM, 0.5, on=h), eps=1e-9).run(h, ZERO[:1], rng=0)
