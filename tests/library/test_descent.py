"""minimize: a plan keeps its promises as executed, the same seed is the same run, and nothing is ever lost."""

import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest

from mlgd import Hierarchy, LevelError, Plan, Problem, audit, minimize, plan
from mlgd.examples import biased, rounded
from mlgd.hierarchy import first_level

Z = 4.9  # one-sided normal tail 4.8e-7

# --- four convex losses with a known minimizer ---------------------------------------------------------------

MATRIX = np.random.default_rng(5).standard_normal((6, 4))
MATRIX /= np.linalg.norm(MATRIX, 2)  # largest singular value one
CENTRE = np.array([0.3, -0.2, 0.5, 0.1])
START = CENTRE + np.array([1.0, -1.0, 1.0, 1.0]) / 2  # at distance one


@dataclass(frozen=True)
class Case:
    """A loss, its gradient and its smoothness; the minimizer is CENTRE and the minimum is subtracted."""

    value: Callable
    gradient: Callable
    beta: float

    def excess(self, y):
        return self.value(y) - self.value(CENTRE)

    def with_ridge(self, mu):
        """The same loss plus mu/2 |y - CENTRE|^2: mu-strongly convex, same minimizer."""
        return Case(
            lambda y: self.value(y) + mu / 2 * np.sum((y - CENTRE) ** 2),
            lambda y: self.gradient(y) + mu * (y - CENTRE),
            self.beta + mu,
        )


def quadratic():
    flat = np.array([1.0, 0.5, 0.1, 0.0])  # one direction without curvature: convex, not strongly
    return Case(
        lambda y: 0.5 * np.sum(flat * (y - CENTRE) ** 2), lambda y: flat * (y - CENTRE), 1.0
    )


def logistic():
    frequencies = 1 / (
        1 + np.exp(-MATRIX @ CENTRE)
    )  # labels as observed frequencies: the minimizer is known

    def value(y):
        s = MATRIX @ y
        return np.sum(np.logaddexp(0.0, s) - frequencies * s)

    return Case(value, lambda y: MATRIX.T @ (1 / (1 + np.exp(-MATRIX @ y)) - frequencies), 0.25)


def log_sum_exp():
    rows = np.vstack([MATRIX, -MATRIX])  # symmetric: least at CENTRE

    def weights(y):
        s = rows @ (y - CENTRE)
        return s, np.exp(s - s.max())

    def value(y):
        s, w = weights(y)
        return s.max() + math.log(w.sum())

    def gradient(y):
        w = weights(y)[1]
        return rows.T @ w / w.sum()

    return Case(value, gradient, 1.0)


def huber():
    def value(y):
        r = np.abs(y - CENTRE)
        return np.sum(np.where(r <= 0.2, r**2 / 2, 0.2 * r - 0.02))

    return Case(value, lambda y: np.clip(y - CENTRE, -0.2, 0.2), 1.0)


LOSSES = {f.__name__: f for f in (quadratic, logistic, log_sum_exp, huber)}
C = 0.5


def problem_for(case, gamma, mu=0.0):
    return Problem(beta=case.beta, d0=1.0, gamma=gamma, c=C, mu=mu)


def hierarchy_for(name, case, gamma, finest=24):
    """The worst case of the assumption, or, for logistic regression, fixed-point arithmetic."""
    levels = range(first_level(C), finest + 1)
    if name == "logistic":
        return rounded(case.gradient, gamma, C, levels)
    return biased(case.gradient, gamma, C, levels, direction=START - CENTRE, alternate=True)


def price_variance(p, h):
    """The exact variance of the price of a whole run, by enumeration of every draw of each stage's telescope."""
    total = 0.0
    for stage in p.stages:
        outcomes = [(q, draw.cost) for q, draw in p.telescope(h, stage).outcomes(START)]
        mean = sum(q * cost for q, cost in outcomes)
        total += stage.steps * sum(q * (cost - mean) ** 2 for q, cost in outcomes)
    return total


# --- the promise: mean loss at most eps, mean price as planned -----------------------------------------------

SETTINGS = [
    (name, gamma, mu, method)
    for name in LOSSES
    for gamma in (1.0, 2.0, 3.0)
    for mu in (0.0, 0.25)
    for method in ("multilevel", "fixed", "accelerated", "scheduled")
    if mu or method != "scheduled"
]


@pytest.mark.parametrize(("name", "gamma", "mu", "method"), SETTINGS)
def test_a_plan_keeps_its_promise(name, gamma, mu, method):
    case = LOSSES[name]()
    case = case.with_ridge(mu) if mu else case
    eps = 0.03 if mu else case.beta / 16
    p = plan(problem_for(case, gamma, mu), eps, method)
    h = hierarchy_for(name, case, gamma)
    runs = 1 if method == "fixed" else 24
    seeds = np.random.SeedSequence([17, int(gamma), int(4 * mu), len(name)]).spawn(runs)
    results = [minimize(h, START, p, rng=np.random.default_rng(s)) for s in seeds]
    assert {r.status for r in results} == {"done"}
    losses = np.array([case.excess(r.y) for r in results])
    error = losses.std(ddof=1) / math.sqrt(runs) if runs > 1 else 0.0
    assert losses.mean() + Z * error <= eps
    prices = np.array([r.cost for r in results])
    spread = math.sqrt(price_variance(p, h) / runs)
    assert abs(prices.mean() - p.expected_cost) <= Z * spread + 1e-9 * p.expected_cost
    assert prices.mean() <= p.cost_bound
    for r in results:
        assert sum(r.cost_by_level.values()) == pytest.approx(r.cost)
        assert r.steps == p.steps


def test_the_budget_sums_to_at_most_eps():
    for name, gamma, mu, method in SETTINGS:
        case = LOSSES[name]()
        p = plan(problem_for(case.with_ridge(mu) if mu else case, gamma, mu), 0.02, method)
        assert p.budget.total <= 0.02 * (1 + 1e-12), (name, gamma, mu, method)


def test_the_promise_can_fail():
    """A level that is further off than it says is caught by the test above."""
    case = quadratic()
    p = plan(problem_for(case, 3.0), case.beta / 16, "fixed")
    honest = hierarchy_for("quadratic", case, 3.0)
    dishonest = replace(
        honest, evaluate=lambda k, y: honest.evaluate(k, y) + 0.3 * (START - CENTRE)
    )
    assert (
        case.excess(minimize(honest, START, p).y)
        <= p.eps
        < case.excess(minimize(dishonest, START, p).y)
    )


# --- the same seed is the same run ---------------------------------------------------------------------------


def one_run(seed, method="multilevel", gamma=2.0):
    case = quadratic().with_ridge(0.25)
    p = plan(problem_for(case, gamma, 0.25), 0.05, method)
    r = minimize(hierarchy_for("quadratic", case, gamma), START, p, rng=seed, loss=case.excess)
    return (
        r.y.tobytes(),
        r.cost,
        tuple(r.cost_by_level.items()),
        r.trace.loss.tobytes(),
        r.trace.cost.tobytes(),
    )


@pytest.mark.parametrize("method", ["multilevel", "accelerated", "scheduled"])
def test_the_same_seed_is_bit_identical_on_every_executor(method):
    seeds = [0, 1, 2, 1]
    serial = [one_run(s, method) for s in seeds]
    with ProcessPoolExecutor(2) as pool:
        parallel = list(pool.map(one_run, seeds, [method] * len(seeds)))
    assert serial == parallel
    assert serial[1] == serial[3]
    assert serial[0] != serial[1]


def test_rng_is_anything_default_rng_accepts():
    assert one_run(7) == one_run(np.random.default_rng(7)) == one_run(np.random.SeedSequence(7))


def setting(method="multilevel", gamma=3.0):
    case = quadratic().with_ridge(0.25)
    p = plan(problem_for(case, gamma, 0.25), 0.05, method)
    return case, p, hierarchy_for("quadratic", case, gamma)


@pytest.mark.parametrize("method", ["multilevel", "fixed", "accelerated", "scheduled"])
def test_a_stopped_run_is_the_beginning_of_a_longer_one(method):
    case, p, h = setting(method)
    half = p.steps // 2
    states = []
    whole = minimize(
        h, START, p, rng=1, loss=case.excess, callback=lambda s: states.append(s) and False
    )
    part = minimize(h, START, p, rng=1, loss=case.excess, callback=lambda s: s.step == half)
    assert (part.status, part.steps, whole.status) == ("stopped", half, "done")
    assert str(half) in part.message
    there = states[half - 1]
    assert np.array_equal(part.y, there.output)
    assert part.cost == there.cost
    assert part.cost_by_level == there.cost_by_level
    common = part.trace.step < half
    n = int(common.sum())
    for column in ("step", "cost", "loss"):
        assert np.array_equal(getattr(part.trace, column)[common], getattr(whole.trace, column)[:n])


def test_callback_sees_the_whole_state_and_cannot_disturb_the_run():
    case, p, h = setting()
    seen = []

    def meddle(state):
        seen.append((state.step, state.cost, state.loss))
        state.y[:] = 1e9
        state.output[:] = 1e9
        state.cost_by_level.clear()

    a = minimize(h, START, p, rng=1, loss=case.excess, callback=meddle)
    b = minimize(h, START, p, rng=1, loss=case.excess)
    assert np.array_equal(a.y, b.y)
    assert a.cost_by_level == b.cost_by_level
    assert [s[0] for s in seen] == list(range(1, p.steps + 1))
    assert [s[1] for s in seen] == sorted(s[1] for s in seen)
    assert seen[0][2] == case.excess(START)


# --- how a run ends ------------------------------------------------------------------------------------------


def test_max_cost_is_never_passed_and_nearly_spent():
    case, p, h = setting()
    whole = minimize(h, START, p, rng=2)
    part = minimize(h, START, p, rng=2, loss=case.excess, max_cost=whole.cost / 3)
    assert part.status == "budget"
    assert "max_cost" in part.message
    assert part.nit < whole.nit
    dearest = 2 * h.cost(max(k for k, n in whole.evaluations.items() if n))
    assert whole.cost / 3 - dearest < part.cost <= whole.cost / 3
    assert minimize(h, START, p, rng=2, max_cost=whole.cost).status == "done"


@pytest.mark.parametrize("method", ["multilevel", "fixed", "accelerated"])
@pytest.mark.parametrize("with_loss", [True, False])
@pytest.mark.filterwarnings("ignore:overflow")
def test_divergence_returns_the_start_and_says_so(method, with_loss):
    case = quadratic()
    too_small = Problem(beta=case.beta / 40, d0=1.0, gamma=3.0, c=C)
    p = plan(too_small, too_small.beta / 200, method)
    h = hierarchy_for("quadratic", case, 3.0)
    r = minimize(h, START, p, rng=0, loss=case.excess if with_loss else None)
    assert r.status == "diverged"
    assert "beta" in r.message
    assert (r.promise, r.success) == ("none", False)
    assert r.steps < p.steps
    assert np.array_equal(r.y, START)
    if with_loss:
        assert r.fun == case.excess(START)


@pytest.mark.parametrize("method", ["fixed", "accelerated"])
@pytest.mark.parametrize("fault", ["nan", "shape", "raise"])
@pytest.mark.parametrize("calls", [1, 2, 500])
def test_a_level_that_fails_on_the_way_is_named_with_its_step_and_nothing_is_lost(
    method, fault, calls
):
    case, p, h = setting(method)
    p = replace(p, stages=(replace(p.stages[0], steps=1003, sigma=0.0),))
    outputs, made = [], 0

    def evaluate(k, y):
        nonlocal made
        made += 1
        if made <= calls:
            return h.evaluate(k, y)
        if fault == "raise":
            raise ZeroDivisionError("mine")
        return np.full(4, np.nan) if fault == "nan" else np.zeros(5)

    minimize(h, START, p, callback=lambda s: outputs.append(s.output))
    r = minimize(replace(h, evaluate=evaluate), START, p, loss=case.excess)
    assert (r.status, r.success, r.nit, r.promise) == ("failed", False, calls, "none")
    level = h.level_for(p.stages[0].delta)
    assert r.message.startswith(f"step {calls + 1}: level {level} ")
    assert isinstance(r.error, LevelError)
    assert r.error.level == level
    assert isinstance(r.error.__cause__, ZeroDivisionError) == (fault == "raise")
    assert np.array_equal(r.y, outputs[calls - 1])
    assert r.fun == case.excess(r.y)
    assert r.nfev == calls + 1 == made  # what failed was paid for
    assert r.cost == h.cost(level) * made


def interrupted(h, number, error=KeyboardInterrupt):
    """The hierarchy, with an exception in one evaluation."""
    calls = 0

    def evaluate(k, y):
        nonlocal calls
        calls += 1
        if calls == number:
            raise error
        return h.evaluate(k, y)

    return replace(h, evaluate=evaluate)


@pytest.mark.parametrize("method", ["multilevel", "accelerated"])
def test_an_interrupt_reaches_the_caller_with_the_result_on_it(method):
    case, p, h = setting(method)
    whole, began = [], []
    minimize(h, START, p, rng=4, callback=lambda s: whole.append(s.output))

    def all_seeds():
        for seed in (4, 5):
            began.append(seed)
            minimize(interrupted(h, 25), START, p, rng=seed, loss=case.excess)

    with pytest.raises(KeyboardInterrupt) as caught:
        all_seeds()
    assert began == [4]  # a loop over seeds stops
    r = caught.value.result
    assert (r.status, r.success) == ("stopped", False)
    assert f"step {r.nit}" in r.message
    assert 0 < r.nit < p.steps
    assert r.trace.step[-1] == r.nit
    assert np.array_equal(r.y, whole[r.nit - 1])  # the output of the last whole step


@pytest.mark.parametrize("where", ["callback", "loss"])
def test_an_error_of_the_users_own_function_is_raised_with_the_result_on_it(where):
    _, p, h = setting()
    calls = 0

    def broken(_):
        nonlocal calls
        calls += 1
        assert calls < 60, "mine"
        return 0.0

    with pytest.raises(AssertionError, match="mine") as caught:
        minimize(h, START, p, rng=0, **{where: broken})
    assert caught.value.result.nit > 50
    assert np.isfinite(caught.value.result.y).all()


def test_a_callback_stops_the_run_as_scipys_do():
    _, p, h = setting()

    def stop(state):
        if state.step == 7:
            raise StopIteration

    r = minimize(h, START, p, rng=0, callback=stop)
    assert (r.status, r.nit) == ("stopped", 7)


def test_trace_starts_at_the_start_and_ends_at_the_end():
    case, p, h = setting()
    r = minimize(h, START, p, rng=0, loss=case.excess)
    assert (r.trace.step[0], r.trace.cost[0], r.trace.loss[0]) == (0, 0.0, case.excess(START))
    assert (r.trace.step[-1], r.trace.cost[-1], r.trace.loss[-1]) == (
        p.steps,
        r.cost,
        case.excess(r.y),
    )
    assert (np.diff(r.trace.step) > 0).all()
    assert (np.diff(r.trace.cost) > 0).all()
    assert 100 <= len(r.trace.step) <= 402
    assert np.isnan(minimize(h, START, p, rng=0).trace.loss).all()


def test_the_loss_is_not_charged_and_does_not_change_the_run():
    case, p, h = setting()
    assert minimize(h, START, p, rng=0, loss=case.excess).cost == minimize(h, START, p, rng=0).cost


def test_the_start_is_not_written_to():
    _, p, h = setting()
    y0 = START.copy()
    r = minimize(h, y0, p, rng=0)
    assert np.array_equal(y0, START)
    assert r.y is not y0


def test_the_accelerated_scheme_restarts_at_every_stage():
    """A stage is the same as a run of its own from where the one before ended."""
    _, p, h = setting("accelerated")
    assert len(p.stages) > 1
    rng, y = np.random.default_rng(3), START
    for stage in p.stages:
        y = minimize(h, y, replace(p, stages=(stage,)), rng=rng).y
    # the generator is shared, block by block: with one seed the whole run draws the same numbers
    assert np.array_equal(y, minimize(h, START, p, rng=3).y)


# --- what is promised ----------------------------------------------------------------------------------------


def test_a_promise_is_said_only_if_it_was_made():
    _, p, h = setting()
    kept = minimize(h, START, p, rng=0)
    assert kept.promise == p.promise == "proved"
    assert p.promised in kept.message
    by_hand = Plan.by_hand(p.telescope(h, p.stages[0]), eta=0.1, steps=3)
    r = minimize(h, START, by_hand, rng=0)
    assert (r.status, r.promise, r.success) == ("done", "none", False)
    assert "nothing is promised" in r.message
    for early in (
        minimize(h, START, p, rng=0, callback=lambda s: s.step == 5),
        minimize(h, START, p, max_cost=1e5),
    ):
        assert early.promise == "none"
        assert "mean loss" not in early.message


def broken_ladders():
    _, p, h = setting()
    drawn = max(k for k, n in minimize(h, START, p, rng=0).evaluations.items() if n > 3)
    flipped = replace(h, evaluate=lambda k, y: (-1 if k == drawn else 1) * h.evaluate(k, y))
    return {
        "a flipped sign": (p, flipped),
        "accuracies declared too small": (
            p,
            Hierarchy(h.evaluate, h.cost, h.levels, accuracy=lambda k: 2.0**-k / 8),
        ),
    }


@pytest.mark.parametrize("what", ["a flipped sign", "accuracies declared too small"])
def test_levels_seen_to_break_their_accuracies_void_the_promise(what, caplog):
    p, h = broken_ladders()[what]
    r = minimize(h, START, p, rng=0)
    assert r.promise == "none"
    assert "mean loss" not in r.message
    if r.status == "done":
        assert "nothing is promised; audit the hierarchy" in r.message
    assert "their declared accuracies allow" in caplog.text


def test_a_plan_made_on_a_report_rests_on_measured_accuracies_and_not_on_assumed_ones():
    """A hierarchy whose default accuracies are eight times too small: measured ones hold, and without them it is seen."""
    case = quadratic().with_ridge(0.25)
    true = biased(case.gradient, 3.0, 8 * C, range(1, 12), direction=START - CENTRE, alternate=True)
    h = Hierarchy(
        lambda k, y: case.gradient(y) + 8 * (true.evaluate(k, y) - case.gradient(y)),
        true.cost,
        true.levels,
    )
    report = audit(h, [START, CENTRE, (START + CENTRE) / 2], reference=case.gradient)
    problem = report.problem(beta=case.beta, d0=1.0, mu=0.25)
    measured = plan(problem, 0.05, on=report)
    for p, promise in ((measured, "estimate"), (replace(measured, accuracies=None), "none")):
        runs = [minimize(h, START, p, rng=seed) for seed in range(5)]
        assert {r.promise for r in runs} == {promise}


# --- averages ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 2, 17, 40])
def test_a_tail_average_is_the_mean_of_the_last_points_reached(window):
    _, p, h = setting()
    p = replace(p, growth=1.0, window=window, stages=(replace(p.stages[0], steps=40),))
    points, outputs = [], []
    r = minimize(
        h,
        START,
        p,
        rng=0,
        callback=lambda s: (points.append(s.y), outputs.append(s.output)) and None,
    )
    assert np.allclose(r.y, np.mean(points[-window:], axis=0), rtol=1e-13, atol=0)
    before = 40 - window
    assert all(np.array_equal(o, y) for o, y in zip(outputs[:before], points[:before], strict=True))


def test_weighted_averages_are_of_the_points_where_gradients_were_taken():
    _, p, h = setting("scheduled")
    points = [START]
    r = minimize(h, START, p, rng=0, callback=lambda s: points.append(s.y))
    weights = p.growth ** np.arange(p.steps)
    assert np.allclose(r.y, weights @ np.array(points[:-1]) / weights.sum(), rtol=1e-10, atol=0)


# --- what a user's arrays may be -----------------------------------------------------------------------------


class Tensor:
    """What torch's tensors show numpy."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return self.values.astype(dtype or self.values.dtype)


def as_jax(values):
    return pytest.importorskip("jax.numpy").asarray(values)


KINDS = {
    "jax": as_jax,
    "list": lambda v: v.tolist(),
    "tensor": Tensor,
    "float32": lambda v: v.astype(np.float32),
}


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("method", ["multilevel", "accelerated"])
def test_whatever_numpy_can_read_moves_the_point(kind, method):
    case, p, h = setting(method)
    there = replace(h, evaluate=lambda k, y: KINDS[kind](h.evaluate(k, y)))
    r, exact = minimize(there, START, p, rng=1), minimize(h, START, p, rng=1)
    assert r.status == "done"
    assert np.allclose(r.y, exact.y, rtol=1e-4)
    assert case.excess(r.y) < 0.5 * case.excess(START)
    assert r.cost == exact.cost


@pytest.mark.parametrize("method", ["multilevel", "accelerated"])
def test_a_buffer_that_is_used_again_and_points_that_are_kept_do_no_harm(method):
    _, p, h = setting(method)
    buffer, seen, copies = np.empty(4), [], []

    def evaluate(k, y):
        seen.append(y)
        copies.append(y.copy())
        buffer[:] = h.evaluate(k, y)
        return buffer

    r = minimize(replace(h, evaluate=evaluate), START, p, rng=1)
    assert np.array_equal(r.y, minimize(h, START, p, rng=1).y)
    assert all(np.array_equal(a, b) for a, b in zip(seen, copies, strict=True))


def test_a_level_that_writes_to_the_point_is_refused():
    _, p, h = setting()

    def evaluate(k, y):
        y -= 1
        return h.evaluate(k, y)

    with pytest.raises(LevelError, match="read-only"):
        minimize(replace(h, evaluate=evaluate), START, p)


@pytest.mark.parametrize("method", ["multilevel", "fixed", "accelerated", "scheduled"])
def test_the_bill_counts_every_evaluation_and_nothing_else(method):
    _, p, h = setting(method)
    calls = []
    r = minimize(
        replace(h, evaluate=lambda k, y: calls.append(k) or h.evaluate(k, y)), START, p, rng=1
    )
    assert {k: calls.count(k) for k in h.levels} == r.evaluations
    assert r.nfev == len(calls)
    assert r.cost == pytest.approx(sum(map(h.cost, calls)))


@pytest.mark.parametrize("method", ["multilevel", "accelerated"])
def test_a_point_may_have_any_number_of_axes(method, tmp_path):
    case = quadratic().with_ridge(0.25)
    flat = hierarchy_for("quadratic", case, 3.0)
    square = replace(flat, evaluate=lambda k, y: flat.evaluate(k, y.reshape(4)).reshape(2, 2))
    p = plan(problem_for(case, 3.0, 0.25), 0.05, method, on=flat)
    there, here = (
        minimize(h, y, p, rng=3) for h, y in ((square, START.reshape(2, 2)), (flat, START))
    )
    assert np.array_equal(there.y, here.y.reshape(2, 2))
    minimize(
        square,
        START.reshape(2, 2),
        p,
        rng=3,
        callback=lambda s: s.step == 2,
        checkpoint=tmp_path / "a",
    )
    assert np.array_equal(
        minimize(square, START.reshape(2, 2), p, rng=3, checkpoint=tmp_path / "a").y, there.y
    )


# --- the result ----------------------------------------------------------------------------------------------


def test_a_result_answers_to_scipys_names_and_is_worth_reading():
    case, p, h = setting()
    r = minimize(h, START, p, rng=0, loss=case.excess)
    assert r.x is r.y
    assert (r.fun, r.success, r.nit) == (case.excess(r.y), True, p.steps)
    for words in ("done", "proved", f"{r.cost:.4g}", str(r.nfev), f"{r.fun:.4g}", "level"):
        assert words in repr(r)
    assert "seconds" in str(r)
    assert math.isnan(minimize(h, START, p, rng=0).fun)
    bad = minimize(
        replace(
            h, evaluate=lambda k, y: h.evaluate(k, y) if y is START or (y == START).all() else "<b>"
        ),
        START,
        p,
    )
    assert "str" in repr(bad)


# --- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "words"),
    [(np.zeros(3), r"returned shape \(3,\)"), (np.full(4, np.nan), "non-finite")],
)
def test_a_start_that_the_first_level_can_not_take_is_refused_at_once(value, words):
    _, p, h = setting()
    with pytest.raises(LevelError, match=words):
        minimize(replace(h, evaluate=lambda k, y: value), START, p)


def test_a_plan_finer_than_the_ladder_is_refused():
    case, p, _ = setting()
    coarse = hierarchy_for("quadratic", case, 3.0, finest=3)
    with pytest.raises(
        LevelError, match=r"accuracy .* is needed and the finest level offers 0\.125"
    ):
        minimize(coarse, START, p)


def test_a_start_that_is_not_finite_is_refused():
    _, p, h = setting()
    with pytest.raises(ValueError, match="array of finite real numbers"):
        minimize(h, START * np.nan, p)


def test_nothing_is_evaluated_beyond_the_levels_the_plan_needs():
    _, p, h = setting()
    asked = set()

    def evaluate(k, y):
        asked.add(k)
        return h.evaluate(k, y)

    minimize(Hierarchy(evaluate, h.cost, h.levels), START, p, rng=0)
    finest = h.level_for(p.delta)
    assert max(asked) == finest < h.levels[-1]
