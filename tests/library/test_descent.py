"""minimize: a plan keeps its promise as executed, and whatever ends a run, nothing is lost."""

import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest
from families import along, failing, outcomes, rounded

from mlgd import Hierarchy, LevelError, Plan, Problem, audit, minimize, plan
from mlgd.hierarchy import dyadic
from mlgd.run import State

Z = 4.9  # one-sided normal tail 4.8e-7

# --- two convex losses with a known minimizer ---

MATRIX = np.random.default_rng(5).standard_normal((6, 4))
MATRIX /= np.linalg.norm(MATRIX, 2)  # largest singular value one
CENTRE = np.array([0.3, -0.2, 0.5, 0.1])
START = CENTRE + np.array([1.0, -1.0, 1.0, 1.0]) / 2  # at distance one


@dataclass(frozen=True)
class Case:
    """A loss, its gradient and its smoothness; the minimizer is CENTRE."""

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
    # one direction without curvature: convex, not strongly
    flat = np.array([1.0, 0.5, 0.1, 0.0])
    value = lambda y: 0.5 * np.sum(flat * (y - CENTRE) ** 2)  # noqa: E731
    return Case(value, lambda y: flat * (y - CENTRE), 1.0)


def logistic():
    frequencies = 1 / (1 + np.exp(-MATRIX @ CENTRE))  # as labels: the minimizer is known

    def value(y):
        s = MATRIX @ y
        return np.sum(np.logaddexp(0.0, s) - frequencies * s)

    return Case(
        value, lambda y: MATRIX.T @ (1 / (1 + np.exp(-MATRIX @ y)) - frequencies), 0.25
    )


LOSSES = {f.__name__: f for f in (quadratic, logistic)}
C = 0.5


def problem_for(case, gamma, mu=0.0):
    return Problem(beta=case.beta, d0=1.0, gamma=gamma, c=C, mu=mu)


def hierarchy_for(name, case, gamma, finest=24):
    """The worst case of the assumption, or, for logistic regression, fixed-point arithmetic."""
    levels = range(problem_for(case, gamma).first, finest + 1)
    if name == "logistic":
        return rounded(case.gradient, gamma, C, levels)
    return along(START - CENTRE, case.gradient, gamma, C, levels)


def price_variance(p, h):
    """The exact variance of the price of a whole run, by enumeration of every draw."""
    total = 0.0
    for stage in p.stages:
        known = [(q, draw.cost) for q, draw in outcomes(p.telescope(h, stage), START)]
        mean = sum(q * cost for q, cost in known)
        total += stage.steps * sum(q * (cost - mean) ** 2 for q, cost in known)
    return total


# --- the promise: mean loss at most eps, mean price as planned ---

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
    results = [p.run(h, START, rng=np.random.default_rng(s)) for s in seeds]
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


# --- the same seed is the same run ---


def setting(method="multilevel", gamma=3.0):
    case = quadratic().with_ridge(0.25)
    p = plan(problem_for(case, gamma, 0.25), 0.05, method)
    return case, p, hierarchy_for("quadratic", case, gamma)


def one_run(seed, method="multilevel"):
    case, p, h = setting(method)
    r = p.run(h, START, rng=seed, loss=case.excess)
    columns = (r.y, r.trace.loss, r.trace.cost, [*r.cost_by_level.values(), r.cost])
    return np.concatenate(columns).tobytes()


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
    assert (
        one_run(7)
        == one_run(np.random.default_rng(7))
        == one_run(np.random.SeedSequence(7))
    )


@pytest.mark.parametrize("method", ["multilevel", "fixed", "accelerated", "scheduled"])
def test_a_stopped_run_is_the_beginning_of_a_longer_one(method):
    case, p, h = setting(method)
    half, seen = p.steps // 2, []

    def stop(state):  # as scipy's do
        if state.step == half:
            raise StopIteration

    whole = p.run(h, START, rng=1, loss=case.excess, callback=seen.append)
    part = p.run(h, START, rng=1, loss=case.excess, callback=stop)
    assert (part.status, part.steps, whole.status) == ("stopped", half, "done")
    assert str(half) in part.message
    there = seen[half - 1]
    assert np.array_equal(part.y, there.output)
    assert (part.cost, part.cost_by_level) == (there.cost, there.cost_by_level)
    n = int((part.trace.step < half).sum())
    for column in ("step", "cost", "loss"):
        assert np.array_equal(
            getattr(part.trace, column)[:n], getattr(whole.trace, column)[:n]
        )


def test_callback_sees_the_whole_state_and_cannot_disturb_the_run():
    case, p, h = setting()
    seen = []

    def meddle(state):
        seen.append((state.step, state.cost, state.loss))
        state.y[:] = state.output[:] = 1e9
        state.cost_by_level.clear()

    a = p.run(h, START, rng=1, loss=case.excess, callback=meddle)
    b = p.run(h, START, rng=1)
    assert np.array_equal(a.y, b.y)
    assert a.cost_by_level == b.cost_by_level
    assert [s[0] for s in seen] == list(range(1, p.steps + 1))
    assert [s[1] for s in seen] == sorted(s[1] for s in seen)
    assert seen[0][2] == case.excess(START)


# --- how a run ends ---


def test_max_cost_is_never_passed_and_nearly_spent():
    case, p, h = setting()
    whole = p.run(h, START, rng=2)
    part = p.run(h, START, rng=2, loss=case.excess, max_cost=whole.cost / 3)
    assert part.status == "budget"
    assert "max_cost" in part.message
    assert part.nit < whole.nit
    dearest = 2 * h.cost(max(k for k, n in whole.evaluations.items() if n))
    assert whole.cost / 3 - dearest < part.cost <= whole.cost / 3
    assert p.run(h, START, rng=2, max_cost=whole.cost).status == "done"


@pytest.mark.parametrize("method", ["multilevel", "fixed", "accelerated"])
@pytest.mark.parametrize("with_loss", [True, False])
@pytest.mark.filterwarnings("ignore:overflow")
def test_divergence_returns_the_start_and_says_so(method, with_loss):
    case = quadratic()
    too_small = Problem(beta=case.beta / 40, d0=1.0, gamma=3.0, c=C)
    p = plan(too_small, too_small.beta / 200, method)
    h = hierarchy_for("quadratic", case, 3.0)
    r = p.run(h, START, rng=0, loss=case.excess if with_loss else None)
    assert r.status == "diverged"
    assert "beta" in r.message
    assert (r.promise, r.success) == ("none", False)
    assert r.steps < p.steps
    assert np.array_equal(r.y, START)
    if with_loss:
        assert r.fun == case.excess(START)


@pytest.mark.parametrize("method", ["fixed", "accelerated"])
@pytest.mark.parametrize("fault", [np.full(4, np.nan), np.zeros(5), ZeroDivisionError])
@pytest.mark.parametrize("calls", [1, 2, 500])
def test_a_level_that_fails_is_named_with_its_step_and_nothing_is_lost(
    method, fault, calls
):
    case, p, h = setting(method)
    p = replace(p, stages=(replace(p.stages[0], steps=1003, sigma=0.0),))
    seen, level = [], h.level_for(p.stages[0].delta)
    p.run(h, START, callback=seen.append)
    r = p.run(failing(h, calls + 1, fault), START, loss=case.excess)
    assert (r.status, r.success, r.nit, r.promise) == ("failed", False, calls, "none")
    assert r.message.startswith(f"step {calls + 1}: level {level} ")
    assert isinstance(r.error, LevelError)
    assert r.error.level == level
    assert isinstance(r.error.__cause__, ZeroDivisionError) == isinstance(fault, type)
    assert np.array_equal(r.y, seen[calls - 1].output)
    assert r.fun == case.excess(r.y)
    # what failed was paid for
    assert (r.nfev, r.cost) == (
        calls + 1,
        h.cost(level) * (calls + 1),
    )


@pytest.mark.parametrize("method", ["multilevel", "accelerated"])
@pytest.mark.parametrize("calls", [25, 26, 27])
def test_an_interrupt_reaches_the_caller_with_the_result_on_it(method, calls):
    case, p, h = setting(method)
    seen = []
    p.run(h, START, rng=4, callback=seen.append)
    with pytest.raises(KeyboardInterrupt) as caught:
        p.run(failing(h, calls, KeyboardInterrupt), START, rng=4, loss=case.excess)
    r = caught.value.result
    assert (r.status, r.success) == ("stopped", False)
    assert f"step {r.nit}" in r.message
    assert 0 < r.nit < p.steps
    assert r.trace.step[-1] == r.nit
    assert np.array_equal(r.y, seen[r.nit - 1].output)  # that of the last whole step


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
        p.run(h, START, rng=0, **{where: broken})
    assert caught.value.result.nit > 50
    assert np.isfinite(caught.value.result.y).all()


def test_trace_starts_at_the_start_and_ends_at_the_end():
    case, p, h = setting()
    r = p.run(h, START, rng=0, loss=case.excess)
    first, *_, last = zip(r.trace.step, r.trace.cost, r.trace.loss, strict=True)
    assert first == (0, 0.0, case.excess(START))
    assert last == (p.steps, r.cost, case.excess(r.y))
    assert (np.diff(r.trace.step) > 0).all()
    assert (np.diff(r.trace.cost) > 0).all()
    assert 100 <= len(r.trace.step) <= 202  # at most 200 records, the start and the end
    bare = p.run(h, START, rng=0)
    assert np.isnan(bare.trace.loss).all()
    assert bare.cost == r.cost  # a loss is not charged


def test_the_accelerated_scheme_restarts_at_every_stage():
    """A stage is the same as a run of its own from where the one before ended."""
    _, p, h = setting("accelerated")
    assert len(p.stages) > 1
    rng, y = np.random.default_rng(3), START
    for stage in p.stages:
        y = replace(p, stages=(stage,)).run(h, y, rng=rng).y
    # the generator is shared, block by block: with one seed the whole run draws the same numbers
    assert np.array_equal(y, p.run(h, START, rng=3).y)


def test_the_accelerated_scheme_is_similar_triangles():
    _, p, h = setting("accelerated")
    p = replace(p, stages=(replace(p.stages[0], steps=5, sigma=0.0),))
    y = z = START
    before, level = 0.0, h.level_for(p.delta)
    for t in range(1, 6):
        alpha, weight = p.eta * t, before + p.eta * t
        x = (alpha * z + before * y) / weight
        z = z - alpha * h.value(level, x)
        y, before = (alpha * z + before * y) / weight, weight
    np.testing.assert_allclose(p.run(h, START).y, y, rtol=1e-12)


# --- what is promised ---


def test_a_promise_is_said_only_if_it_was_made():
    _, p, h = setting()
    kept = p.run(h, START, rng=0)
    assert kept.promise == p.promise == "proved"
    assert p.promised in kept.message
    by_hand = Plan.by_hand(p.telescope(h, p.stages[0]), eta=0.1, steps=3)
    r = by_hand.run(h, START, rng=0)
    assert (r.status, r.promise, r.success) == ("ended", "none", False)
    assert "nothing is promised" in r.message
    for early in (
        p.run(h, START, rng=0, callback=lambda s: s.step == 5),
        p.run(h, START, max_cost=1e5),
    ):
        assert early.promise == "none"
        assert "mean loss" not in early.message


def test_levels_seen_to_break_their_accuracies_void_the_promise(caplog):
    _, p, h = setting()
    drawn = max(k for k, n in p.run(h, START, rng=0).evaluations.items() if n > 3)
    flipped = replace(
        h, evaluate=lambda k, y: (-1 if k == drawn else 1) * h.evaluate(k, y)
    )
    for broken in (flipped, replace(h, accuracy=lambda k: 2.0**-k / 8)):
        caplog.clear()
        r = p.run(broken, START, rng=0)
        assert r.promise == "none"
        assert "mean loss" not in r.message
        assert (
            r.status != "done" or "nothing is promised; audit the hierarchy" in r.message
        )
        assert "where their accuracies allow" in caplog.text


def test_a_plan_made_on_a_report_rests_on_measured_accuracies_and_not_on_assumed_ones():
    """Default accuracies eight times too small: measured ones hold; without them it is seen."""
    case = quadratic().with_ridge(0.25)
    off = along(START - CENTRE, np.zeros_like, 3.0, 8 * C, range(1, 12))
    h = Hierarchy(
        lambda k, y: case.gradient(y) + 8 * off.evaluate(k, y),
        off.cost,
        off.levels,
        dyadic,
    )
    report = audit(h, [START, CENTRE, (START + CENTRE) / 2], reference=case.gradient)
    measured = plan(report.problem(beta=case.beta, d0=1.0, mu=0.25), 0.05, on=report)
    for p, promise in (
        (measured, "estimate"),
        (replace(measured, accuracies=None), "none"),
    ):
        assert {p.run(h, START, rng=seed).promise for seed in range(5)} == {promise}


# --- averages ---


@pytest.mark.parametrize("window", [1, 2, 17, 40])
def test_a_tail_average_is_the_mean_of_the_last_points_reached(window):
    _, p, h = setting()
    p = replace(p, growth=1.0, window=window, stages=(replace(p.stages[0], steps=40),))
    seen = []
    r = p.run(h, START, rng=0, callback=seen.append)
    assert np.allclose(
        r.y, np.mean([s.y for s in seen[-window:]], axis=0), rtol=1e-13, atol=0
    )
    assert all(np.array_equal(s.output, s.y) for s in seen[: 40 - window])


def test_weighted_averages_are_of_the_points_where_gradients_were_taken():
    _, p, h = setting("scheduled")
    points = [START]
    r = p.run(h, START, rng=0, callback=lambda s: points.append(s.y))
    weights = p.growth ** np.arange(p.steps)
    assert np.allclose(
        r.y, weights @ np.array(points[:-1]) / weights.sum(), rtol=1e-10, atol=0
    )


@pytest.mark.parametrize("method", ["multilevel", "accelerated"])
def test_a_buffer_that_is_used_again_and_points_that_are_kept_do_no_harm(method):
    _, p, h = setting(method)
    buffer, seen, copies = np.empty(4), [], []

    def evaluate(k, y):
        seen.append(y)
        copies.append(y.copy())
        buffer[:] = h.evaluate(k, y)
        return buffer

    r = p.run(replace(h, evaluate=evaluate), START, rng=1)
    assert np.array_equal(r.y, p.run(h, START, rng=1).y)
    assert all(np.array_equal(a, b) for a, b in zip(seen, copies, strict=True))


@pytest.mark.parametrize("method", ["multilevel", "fixed", "accelerated", "scheduled"])
def test_the_bill_counts_every_evaluation_and_nothing_else(method):
    _, p, h = setting(method)
    calls = []
    counted = replace(h, evaluate=lambda k, y: calls.append(k) or h.evaluate(k, y))
    r = p.run(counted, START, rng=1)
    assert {k: calls.count(k) for k in h.levels} == r.evaluations
    assert r.nfev == len(calls)
    assert r.cost == pytest.approx(sum(map(h.cost, calls)))


@pytest.mark.parametrize("method", ["multilevel", "accelerated"])
def test_a_point_may_have_any_number_of_axes(method, tmp_path):
    _, p, flat = setting(method)
    square = replace(
        flat, evaluate=lambda k, y: flat.evaluate(k, y.reshape(4)).reshape(2, 2)
    )
    start, path = START.reshape(2, 2), tmp_path / "a"
    p.run(square, start, rng=3, callback=lambda s: s.step == 2, checkpoint=path)
    there = p.run(square, start, rng=3, checkpoint=path)
    assert np.array_equal(there.y, p.run(flat, START, rng=3).y.reshape(2, 2))


# --- the result ---


def test_a_result_answers_to_scipys_names_and_is_worth_reading():
    case, p, h = setting()
    r = p.run(h, START, rng=0, loss=case.excess)
    assert r.x is r.y
    assert r.seconds > 0
    assert (r.fun, r.success, r.nit) == (case.excess(r.y), True, p.steps)
    rows = dict(line.split(maxsplit=1) for line in repr(r).splitlines()[1:4])
    assert rows["loss"] == f"{case.excess(START):.4g} at the start, {r.fun:.4g} at y"
    assert rows["promise"] == "proved"
    assert rows["status"] == f"done: {r.message}"
    assert f"price  {r.cost:.4g} for {r.nfev} evaluations, {r.nit} steps" in repr(r)
    k = h.level_for(p.delta)
    assert f"level {k}  {r.cost_by_level[k]:.4g} for {r.evaluations[k]} (" in repr(r)
    more = {
        "cost_by_purpose": {"steps": 1.0, "curvature": 2.5},
        "decisions": ("a", "b", "c", "d"),
    }
    told = repr(replace(r, **more))
    assert repr(r).splitlines()[-1].split(", ")[0].split() == ["y", "shape", "(4,)"]
    assert ("for steps" in repr(r), "for curvature  2.5" in told) == (False, True)
    assert ("decided  a" in told, "decided  b" in told) == (False, True)  # the last three
    assert math.isnan(p.run(h, START, rng=0).fun)
    state = State(START)
    assert [state.decide(word) for word in "aaba"] == [None] * 4
    assert state.decisions == ["a", "b", "a"]  # not twice in a row


# --- what is refused ---


@pytest.mark.parametrize(
    "value", [np.zeros(3), np.full(4, np.nan), None, (1.0, np.zeros(4))]
)
def test_a_start_that_the_first_level_can_not_take_is_refused_at_once(value):
    _, p, h = setting()
    broken = replace(h, evaluate=lambda k, y: value)
    with pytest.raises(LevelError, match=r"level . returned"):
        p.run(broken, START)
    with pytest.raises(LevelError, match=r"level . returned"):
        minimize(broken, START, eps=0.1)


def test_a_start_far_from_zero_is_no_divergence():
    h = Hierarchy(
        lambda k, y: y - 1e9 + 2.0**-k / 2, lambda k: 8.0**k, range(1, 8), dyadic
    )
    chosen = plan(Problem(beta=1, d0=2, gamma=3, c=1), eps=0.25)
    assert chosen.run(h, np.full(2, 1e9 + 1), rng=0).status == "done"
