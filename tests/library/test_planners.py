"""Plans on ladders of one's own: the bill is what runs pay, budgets close, and each promise says what it is."""

import math
import types
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from mlgd import Hierarchy, Problem, Telescope, audit, compare, estimate, minimize, plan, tuned
from mlgd.plans import NotApplicable
from mlgd.refine import _conjugate, nesterov_responses
from mlgd.searching import Ladder
from mlgd.seen import Shape, spread
from mlgd.spectra import Measure

EIGENVALUES = np.array([0.02, 0.1, 0.4, 1.0])
OFF = {
    0: 0.3,
    1: 0.11,
    2: 0.1,
    3: 0.02,
    5: 0.004,
    6: 0.0011,
}  # not dyadic, with a plateau and a gap
PRICE = {0: 1.0, 1: 7.0, 2: 9.0, 3: 60.0, 5: 900.0, 6: 4000.0}
DIRECTIONS = np.random.default_rng(0).normal(size=(7, 4))
DIRECTIONS /= np.linalg.norm(DIRECTIONS, axis=1, keepdims=True)


def evaluate(k, y):
    return EIGENVALUES * y + OFF[k] * DIRECTIONS[k]


def increment(k, y):
    before = max(j for j in OFF if j < k)
    return evaluate(k, y) - evaluate(before, y)


LADDERS = {
    "uneven": Hierarchy(evaluate, PRICE.get, list(OFF), OFF.get),
    "shared": Hierarchy(evaluate, PRICE.get, list(OFF), OFF.get, increment),
    "dyadic": Hierarchy(evaluate, lambda k: 8.0**k, [0, 1, 2, 3], lambda k: OFF[k]),
}
PROBLEM = Problem(beta=1.0, mu=0.02, d0=2.0, gamma=3.0, c=0.5)
START = np.ones(4)


def exact(bill, h):
    """The mean loss of a tail-averaged plan by exact second moments, coordinate by coordinate."""
    stage, x = bill.stages[0], 1 - bill.eta * EIGENVALUES
    steps, window = bill.steps, bill.window
    a = sum(x**t for t in range(steps - window + 1, steps + 1)) / window
    c = np.array(
        [
            bill.eta
            / window
            * sum(x ** (t - 1 - s) for t in range(max(s + 1, steps - window + 1), steps + 1))
            for s in range(steps)
        ]
    )
    mean = a * START - c.sum(axis=0) * OFF[stage.levels[-1]] * DIRECTIONS[stage.levels[-1]]
    ladder = h.only(stage.levels)
    noise = sum(
        (1 / q - 1) * float((c**2).sum(axis=0) * EIGENVALUES @ ladder.step(k, START) ** 2)
        for k, q in zip(stage.levels[1:], stage.probabilities[1:], strict=True)
    )
    return float(EIGENVALUES @ mean**2) / 2 + noise / 2


@pytest.mark.parametrize("name", LADDERS)
@pytest.mark.parametrize("promise", ["proved", "quadratic"])
@pytest.mark.parametrize("method", ["multilevel", "fixed", "accelerated", "scheduled", "refine"])
def test_the_budget_closes_and_the_bill_is_the_ladders(name, promise, method):
    h = LADDERS[name]
    if (promise == "quadratic" and method in ("accelerated", "scheduled")) or (
        promise == "proved" and method == "refine"
    ):
        with pytest.raises(NotApplicable, match="planned with promise="):
            plan(PROBLEM, 0.3, method, on=h, promise=promise)
        return
    bill = plan(PROBLEM, 0.3, method, on=h, promise=promise)
    assert bill.promise == promise
    assert bill.budget.total <= 0.3 * (1 + 1e-9)
    assert bill.expected_cost == pytest.approx(bill.price_on(h))
    assert bill.expected_cost <= bill.cost_bound * (1 + 1e-9)
    assert set(bill.stages[-1].levels) <= set(h.levels)
    assert "never above" in str(bill)
    if bill.averaging == "tail":
        assert exact(bill, h) <= 0.3


@pytest.mark.parametrize("name", LADDERS)
def test_the_mean_paid_is_the_expected_cost(name):
    """Thirty-two runs: within four standard errors, and never above the bound."""
    h = LADDERS[name]
    bill = plan(PROBLEM, 0.1, on=h, promise="quadratic")
    paid = np.array([minimize(h, START, bill, rng=seed).cost for seed in range(32)])
    error = paid.std(ddof=1) / math.sqrt(paid.size)
    assert abs(paid.mean() - bill.expected_cost) <= 4 * error + 1e-9 * bill.expected_cost
    assert paid.max() <= bill.cost_bound


def test_quadratic_losses_stay_below_the_target_and_so_do_runs():
    h = LADDERS["dyadic"]
    bill = plan(PROBLEM, 0.1, on=h, promise="quadratic")
    assert len(bill.stages[0].levels) > 1
    predicted = exact(bill, h)
    assert predicted <= 0.1
    losses = np.array(
        [EIGENVALUES @ minimize(h, START, bill, rng=seed).y ** 2 / 2 for seed in range(64)]
    )
    assert abs(losses.mean() - predicted) <= 5 * losses.std(ddof=1) / 8


def test_a_target_that_the_ladder_reaches_is_not_refused_and_one_it_does_not_is():
    h = LADDERS["uneven"]
    floor = OFF[6] ** 2 / (2 * PROBLEM.mu)
    assert plan(PROBLEM, 3 * floor, on=h, promise="quadratic").stages[0].levels[-1] == 6
    for promise in ("quadratic", "proved"):
        with pytest.raises(
            NotApplicable,
            match=r"its finest level 6 has accuracy 0.0011, which alone costs a loss of",
        ):
            plan(PROBLEM, 0.5 * floor, on=h, promise=promise)


def test_prices_fall_as_the_promise_weakens_and_targets_loosen():
    h = LADDERS["uneven"]
    proved, quadratic = (
        plan(PROBLEM, 0.1, on=h, promise=p).expected_cost for p in ("proved", "quadratic")
    )
    assert quadratic < proved
    prices = [
        plan(PROBLEM, eps, on=h, promise="quadratic").expected_cost
        for eps in (0.01, 0.03, 0.1, 0.3)
    ]
    assert all(a > b for a, b in pairwise(prices))


def test_without_strong_convexity_plans_close_too():
    flat = Problem(beta=1.0, d0=2.0, gamma=3.0, c=0.5)
    for promise in ("proved", "quadratic"):
        bill = plan(flat, 0.3, on=LADDERS["uneven"], promise=promise)
        assert bill.budget.total <= 0.3 * (1 + 1e-9)
    assert exact(bill, LADDERS["uneven"]) <= 0.3


def test_the_proved_budget_is_that_of_the_one_step_lemma():
    """Part (b) by hand: weights rho^-t, Young's share s from the growth."""
    bill = plan(PROBLEM, 0.05, on=LADDERS["uneven"])
    assert bill.averaging == "exponential"
    eta, mu = 0.25, 0.02
    s = 1 - (1 - 1 / bill.growth) / (eta * mu)
    horizon = (1 - s) * mu * 4 / (bill.growth**bill.steps - 1)
    assert bill.budget.horizon == pytest.approx(horizon, rel=1e-6)
    assert bill.budget.bias == pytest.approx(bill.delta**2 / (s * mu), rel=1e-6)
    assert bill.budget.noise == pytest.approx(eta * (bill.sigma**2 + 2 * bill.delta**2), rel=1e-6)


def test_where_there_is_little_strong_convexity_uniform_weights_are_cheaper():
    for mu, averaging in ((1e-4, "uniform"), (0.5, "exponential")):
        bill = plan(replace(PROBLEM, mu=mu), 0.3, on=LADDERS["uneven"])
        assert bill.averaging == averaging
        assert bill.budget.total <= 0.3 * (1 + 1e-9)


# --- measured -----------------------------------------------------------------------------------------------------


def measures(h):
    """What Lanczos would give on four coordinates: the eigenvalues themselves."""

    def of(v):
        return types.SimpleNamespace(nodes=EIGENVALUES, weights=v**2, total=float(v @ v))

    finest = evaluate(6, START) if 6 in h.levels else evaluate(3, START)
    return types.SimpleNamespace(
        gradient=of(finest),
        increments={k: of(h.step(k, START)) for k in h.levels[1:]},
        level=0,
        floor=0.02,
    )


def report(h):
    return types.SimpleNamespace(
        hierarchy=h, values={k: evaluate(k, START)[None] for k in h.levels}
    )


def test_measured_plans_need_measures_and_are_called_estimates():
    with pytest.raises(NotApplicable, match="promise='measured' needs spectral measures"):
        plan(PROBLEM, 0.1, on=LADDERS["uneven"], promise="measured")
    h = LADDERS["uneven"]
    seen = Problem(beta=1.0, mu=0.02, d0=2.0, gamma=3.0, c=0.5, measures=measures(h))
    bill = plan(seen, 0.02, on=report(h), promise="measured")
    assert "about 0.02 (an estimate" in bill.promised
    assert 0.5 * 0.02 <= exact(bill, h) <= 1.5 * 0.02
    assert bill.expected_cost < plan(PROBLEM, 0.02, on=h, promise="quadratic").expected_cost


def test_a_report_brings_its_own_increments():
    h = LADDERS["uneven"]
    ladder = Ladder.of(report(h))
    for i, j in ((0, 1), (0, 3), (2, 5)):
        a, b = h.levels[i], h.levels[j]
        apart = evaluate(b, START) - evaluate(a, START)
        assert ladder.squared[i, j] == pytest.approx(apart @ apart)
    assert Ladder.of(h).squared[0, 3] == pytest.approx((OFF[0] + OFF[3]) ** 2)


def test_what_is_not_resolved_is_spread_out_and_keeps_mass_and_moment():
    nodes, weights = spread(np.array([0.01, 0.5, 1.0]), np.array([2.0, 1.0, 1.0]), 1e-4)
    assert weights.sum() == pytest.approx(4.0)
    assert nodes @ weights == pytest.approx(0.02 + 1.5, rel=1e-3)
    assert nodes.min() < 2e-4
    same, _ = spread(np.array([0.01, 0.5]), np.array([2.0, 1.0]), 0.01)
    assert same.size == 2


# --- rivals -------------------------------------------------------------------------------------------------------


def test_nesterov_responses_are_those_of_nesterovs_method():
    beta, mu, steps = 2.0, 0.02, 25
    lam, factors, sums = nesterov_responses(beta, mu, steps)
    ratio = math.sqrt(mu / beta)

    def run(start, error):
        x = z = np.full(lam.size, start)
        for s in range(steps):
            new = z - (lam * z + (1.0 if s == error else 0.0)) / beta
            x, z = new, new + (1 - ratio) / (1 + ratio) * (new - x)
        return x

    np.testing.assert_allclose(run(1.0, None), factors[-1], rtol=1e-9, atol=1e-12)
    assert sums[-1] == pytest.approx(
        sum((np.sqrt(lam) * np.abs(run(0.0, s))).max() for s in range(steps))
    )


def test_conjugate_steps_end_with_the_spectrum():
    nodes, weights = np.array([0.1, 0.5, 1.0]), np.array([1.0, 2.0, 3.0])
    measure = Shape(nodes, weights / 6), 6.0
    assert _conjugate(measure, 1e-12)[0] == 3
    assert _conjugate(measure, 1e3) == (0, pytest.approx(math.sqrt(6)))


def test_compare_ranks_and_says_whether_the_telescope_pays():
    ranked = compare(PROBLEM, 0.05, on=LADDERS["uneven"], promise="quadratic")
    assert [p.method for p in ranked.plans] == sorted(
        (p.method for p in ranked.plans),
        key=lambda m: next(p.expected_cost for p in ranked.plans if p.method == m),
    )
    assert {"multilevel", "fixed", "refine"} <= {p.method for p in ranked.plans}
    assert "promise='proved' only" in ranked.left_out["accelerated"]
    assert ranked.verdict.startswith("the telescope")
    assert ranked.verdict in str(ranked)


@pytest.mark.parametrize(
    ("kept", "said"), [("fixed", "no telescope"), ("multilevel", "nothing else")]
)
def test_where_one_kind_alone_can_be_planned_there_is_nothing_to_compare(kept, said):
    ranked = compare(PROBLEM, 0.05, on=LADDERS["uneven"], promise="quadratic")
    alone = replace(ranked, plans=tuple(p for p in ranked.plans if p.method == kept))
    assert alone.verdict == f"{said} can be planned here: use {kept!r}"


def test_measures_of_another_ladder_are_refused():
    h = LADDERS["uneven"]
    known = measures(h)
    known.increments = {77: known.increments[1]}
    with pytest.raises(NotApplicable, match="no increment of this ladder was measured"):
        plan(replace(PROBLEM, measures=known), 0.02, on=report(h), promise="measured")


def test_tuned_promises_nothing():
    h = LADDERS["uneven"]
    bill = tuned(PROBLEM, 0.1, Telescope(h, {0: 1.0, 3: 0.1}), eta=1.0, steps=50, window=20)
    assert bill.budget is None
    assert bill.promise == "none"
    assert "nan" not in str(bill)
    assert "nothing is promised (set by hand)" in str(bill)
    assert bill.expected_cost == pytest.approx(50 * (1.0 + 0.1 * 60.0))  # level 0 is there already
    assert minimize(h, START, bill, rng=0).steps == 50


@pytest.mark.parametrize(("share", "planned"), [(1e-3, True), (0.3, False)])
def test_refine_is_not_planned_by_a_curvature_that_finer_levels_change(share, planned):
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    hessian = turn * np.geomspace(1e-2, 1, 12) @ turn.T
    bends = [(b + b.T) / np.linalg.norm(b + b.T, 2) for b in rng.normal(size=(8, 12, 12))]
    h = Hierarchy(
        lambda k, y: (hessian + share * 2.0**-k * bends[k]) @ (y - 1) + 2.0**-k * np.ones(12),
        lambda k: 8.0**k,
        range(8),
    )
    y0 = np.zeros(12)
    report = audit(
        h,
        [
            y0,
            *(
                y0 + s * v
                for s, v in zip((0.003, 0.01, 0.05), rng.normal(size=(3, 12)), strict=True)
            ),
        ],
    )
    ranked = compare(
        report.problem(estimate(h, y0, rng=0, known=report)), 1e-2, on=report, promise="measured"
    )
    assert ("refine" in [p.method for p in ranked.plans]) == planned
    assert planned or "change the curvature by" in ranked.left_out["refine"]


def test_measures_that_share_an_array_of_nodes_are_told_apart():
    nodes, flat, steep = (
        np.array([0.1, 0.5, 1.0]),
        np.array([1.0, 1.0, 1.0]),
        np.array([0.01, 0.1, 1.0]),
    )
    known = types.SimpleNamespace(
        increments={1: Measure(nodes, steep)}, gradient=Measure(nodes, flat), floor=0.1, level=0
    )
    apart = types.SimpleNamespace(**vars(known) | {"increments": {1: Measure(nodes.copy(), steep)}})
    h = Hierarchy(lambda k, y: y, lambda k: 4.0**k, range(8), lambda k: 0.3 * 2.0**-k)
    for method in ("multilevel", "refine"):
        shared, own = (
            plan(
                Problem(beta=1, mu=0.1, d0=3, gamma=2, c=1, measures=m),
                1e-2,
                method,
                on=h,
                promise="measured",
            )
            for m in (known, apart)
        )
        assert shared.expected_cost == own.expected_cost
        assert shared.budget == own.budget
