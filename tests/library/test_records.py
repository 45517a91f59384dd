"""What the library computes, on record: plans, telescopes, bills and runs, number by number.

The other tests say what must be true; this one says that nothing else has changed. A number that moved is a mistake, or a
change to be named in the changelog: then write the records anew, with

    python tests/library/test_records.py

and read the difference before it is committed.
"""

import json
import math
from dataclasses import MISSING, asdict, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mlgd import Adversary, Hierarchy, Problem, Telescope, compare, flow, minimize, plan, tuned
from mlgd.anchors import epoch_price
from mlgd.epochs import (
    Epoch,
    Setting,
    _epoch,
    average_loss,
    call_prices,
    cheapest,
    contraction,
    fewest,
    last_loss,
)
from mlgd.examples import biased, rounded, series
from mlgd.jumps import Schedule, exponential_schedule, proposition_schedule
from mlgd.ladders import optimum, polished
from mlgd.oracle import Draw
from mlgd.plans import Budget, Comparison, NotApplicable, Plan, Stage
from mlgd.refine import MEASURED, nesterov_responses
from mlgd.results import Result, State, Trace
from mlgd.searching import Ladder, Ways, coarse_prices, refined
from mlgd.seen import conjugate_curve
from mlgd.solvers import nesterov, quasi_newton
from mlgd.spectra import Measure

FILE = Path(__file__).with_name("records.json")
CURVATURE = np.array([0.02, 0.1, 0.4, 1.0])
OFF = {
    0: 0.3,
    1: 0.11,
    2: 0.1,
    3: 0.02,
    5: 0.004,
    6: 0.0011,
    7: 2e-4,
}  # not dyadic, with a plateau and a gap
PRICE = {0: 1.0, 1: 7.0, 2: 9.0, 3: 60.0, 5: 900.0, 6: 4000.0, 7: 3e4}
BENDS = np.random.default_rng(1).normal(size=(8, 4, 4)) / 8
ASIDE = np.random.default_rng(2).normal(size=(8, 4)) / 3
START = np.array([1.0, -2.0, 0.5, 3.0])
CHANGE = np.array([1.0] + [0.1 * OFF[k] for k in list(OFF)[1:]])


def uneven(k, y):
    return CURVATURE * y + OFF[k] * (ASIDE[k] + 0.1 * BENDS[k] @ y)


def step(k, y):
    return uneven(k, y) - uneven(max(j for j in OFF if j < k), y)


LADDERS = {
    "uneven": Hierarchy(uneven, PRICE.get, list(OFF), OFF.get),
    "sharing": Hierarchy(uneven, PRICE.get, list(OFF), OFF.get, step),
    "dyadic": biased(lambda y: CURVATURE * y, 2.5, 0.7, range(12), alternate=True),
}
MEASURES = SimpleNamespace(
    gradient=Measure(CURVATURE, (CURVATURE * START) ** 2),
    increments={
        2: Measure(CURVATURE, np.array([1.0, 2.0, 1.0, 0.5]) * 1e-2),
        3: Measure(CURVATURE[1:], np.ones(3) * 1e-4),
    },
    floor=0.01,
    level=1,
)
PROBLEMS = {
    mu: Problem(beta=1.25, mu=mu, d0=4.0, gamma=2.5, c=0.7, measures=MEASURES) for mu in (0.0, 0.02)
}


def smooth(h):
    """What a plan asks of an audit that found the errors smooth."""
    return SimpleNamespace(hierarchy=h, regularity="smooth", change=CHANGE, values=None)


def ranked(problem, eps, **options):
    try:
        found = compare(problem, eps, **options)
    except NotApplicable as why:
        return str(why)
    hidden = ("problem", "accuracies", "eps", "warnings")
    bills = [
        {k: v for k, v in vars(p).items() if k not in hidden} | {"total": p.budget.total}
        for p in found.plans
    ]
    return [
        bills,
        [p.warnings for p in found.plans if p.warnings],
        *([] if options else [str(found), str(found.best)]),
    ]


def ideal():
    problem = PROBLEMS[0.02]
    by_hand = [
        plan(problem, 0.1, method, 0.15)
        for method in ("multilevel", "fixed", "accelerated", "scheduled")
    ]
    by_hand += [
        plan(problem, 0.1, "multilevel", 1.1, LADDERS["uneven"], promise)
        for promise in ("quadratic", "measured")
    ]
    by_hand.append(plan(problem, 0.1, "multilevel", 0.15, LADDERS["uneven"]))
    out = [[p.eta, p.steps, p.sigma, p.expected_cost, p.cost_bound, p.budget] for p in by_hand]
    for call in (
        lambda: plan(problem, 0.1, "multilevel", 1.7, LADDERS["uneven"], "quadratic"),
        lambda: plan(problem, 0.1, eta=0.21),
    ):
        with pytest.raises(ValueError, match="the step must be") as refused:
            call()
        out.append(str(refused.value))
    for gamma in (1.0, 2.0, 3.0):
        for mu in (0.0, 0.03, 1.0):
            problem = Problem(beta=0.8, mu=0.8 * mu, d0=3.0, gamma=gamma, c=0.3)
            out += [ranked(problem, eps) for eps in (20.0, 0.3)]
    return out


def on_ladder(name, promise):
    h = LADDERS[name]
    ons = [h] if name == "dyadic" else [h, smooth(h)]
    cases = ((0.0, 0.3), (0.02, 1e-2), (0.02, 1e-9))
    return [ranked(PROBLEMS[mu], eps, on=on, promise=promise) for on in ons for mu, eps in cases]


def telescopes():
    out = []
    for h in LADDERS.values():
        levels = h.levels[:6]
        norms = [2.0 * h.accuracy(k) for k in levels]
        made = [Telescope.cheapest(h, sigma, norms) for sigma in (0.0, 1e-3, 0.05, 1.0)]
        made += [
            Telescope.for_accuracy(h, h.accuracy(levels[-1]), sigma, gamma, coarsest)
            for sigma in (0.0, 0.02, 0.3)
            for gamma in (1.0, 2.0, 3.0)
            for coarsest in ("always", "paper")
        ]
        skipping = dict(zip(levels[:2] + levels[3:], (1.0, 0.5, 0.4, 0.3, 0.2), strict=False))
        made += [
            Telescope(h, skipping),
            Telescope(h, [0.9, 0.5, 0.4]),
            Telescope(h, {levels[0]: 0.9, levels[2]: 0.5}),
            Telescope(h, [1.0, 1.0, 0.4, 0.2]),
        ]
        for t in made:
            out += [[t.draw(START, seed).value, t.draw(START, seed).paid] for seed in (0, 1)]
            prices = [t.expected_cost(name) for name in ("evaluated", "pairs", "paper")]
            out.append(
                [
                    t.levels,
                    t.p,
                    prices,
                    t.expected_by_level(),
                    t.mean(START),
                    t.variance(START),
                    t.prefix,
                ]
            )
        t = Telescope.anchored(
            h,
            dict.fromkeys(levels, 0.3) | {levels[0]: 1.0},
            at=START,
            coefficients=[1, 1, 0.5, 0, 1, 0.2],
        )
        draws = [t.draw(START * s, rng) for s, rng in ((1.0, 0), (0.9, 1), (0.8, 3))]
        out.append(
            [
                t.base,
                t.variance(0.5 * START),
                [t.reference_cost(n) for n in (1, 7)],
                [(d.value, d.paid) for d in draws],
            ]
        )
        out.append([epoch_price(h, levels, [1.0] + [0.2] * 5, n) for n in (1, 2, 40)])
        out.append([epoch_price(h, levels[:1], [1.0], n) for n in (1, 5)])
    return out


def ladders():
    rng, out = np.random.default_rng(4), []
    for n, shared in ((2, False), (5, False), (6, True)):
        cost, norms = np.cumsum(rng.exponential(size=n)) * 3.0 ** np.arange(n), 0.6 ** np.arange(n)
        v = np.triu((norms[None, :] - 1.1 * norms[:, None]) ** 2, 1)
        flags = np.array([False] + [shared] * (n - 1))
        for variance in (1e-4, 0.05, 2.0):
            out.append(optimum(cost, v, variance, flags))
        chains = [(0, n - 1), tuple(range(n)), (n - 2, n - 1)]
        out.append(polished(chains, cost, v, 0.3, flags))
    return out


def epochs():
    def steps_to(h, b, v, q):
        return fewest(lambda t: contraction(h, b, v, t), q)

    out = [
        [contraction(0.1, b, v, n), steps_to(0.1, b, v, q)]
        for b in (0.0, 0.2, 0.9)
        for v in (0.0, 0.05, 0.2)
        for n, q in ((1, 0.95), (7, 0.5), (60, 0.25))
    ]
    out.append([contraction(1.0, 0.1, 0.05, 3), steps_to(1.0, 0.1, 0.05, 0.5)])
    for averaged in (True, False):
        for beta, eps, shared in ((1.0, 1e-3, False), (50.0, 1e-4, True), (0.1, 1e-3, False)):
            n = 9
            accuracy, flags = 0.5 * 2.0 ** -np.arange(n), np.array([False] + [shared] * (n - 1))
            s = Setting(
                beta, 0.1, 2.0, eps, 6.0 ** np.arange(n), accuracy, 0.3 * accuracy, flags, averaged
            )
            out.append(call_prices(s, np.full((4, n), [[1e-6], [1e-3], [0.1], [10.0]])))
            out.append(cheapest(s))
            out.append(
                [
                    [average_loss(s, 1.5, 0.01, v, 20, t), last_loss(s, 1.5, 0.01, v, 20)]
                    for v in (0.0, 0.01, 0.2)
                    for t in (0.3, 0.9)
                ]
            )
    out.append(
        [steps_to(0.1, 0.0, 0.1, 0.5), steps_to(1.0, 0.0, 0.25, 1.0)]
    )  # where nothing is left to the horizon
    accuracy = 2.0 ** -np.arange(1.0, 6.0)
    price, change = np.array([1.0, 3.7, 114.0, 5517.0, 266544.0]), 0.4 * accuracy
    dear = Setting(
        84.8, 0.1, 2.0, 0.0987, price, accuracy, change, np.zeros(5, bool)
    )  # one level more pays
    flat = Setting(20.0, 2.0, 2.0, 4.0, price, accuracy, change, np.zeros(5, bool), False)
    out += [cheapest(dear), _epoch(dear, 2.0), _epoch(flat, 1.0), _epoch(flat, 1.0, 0.3)]
    hard = Setting(1.0, 0.1, 2.0, 1e-9, np.ones(2), np.ones(2), np.ones(2), np.zeros(2, bool))
    return [*out, cheapest(hard)]


def shapes():
    """How the values of the library are made: fields, defaults, what compares and what can't be changed."""
    made = [
        Adversary,
        Budget,
        Comparison,
        Draw,
        Epoch,
        Hierarchy,
        Ladder,
        Plan,
        Problem,
        Result,
        Schedule,
        Setting,
        Stage,
    ]
    return {
        c.__name__: [
            [c.__dataclass_params__.frozen, c.__dataclass_params__.eq, c.__dataclass_params__.repr],
            [
                [
                    f.name,
                    None if f.default is MISSING else repr(f.default),
                    f.repr,
                    f.compare,
                    f.kw_only,
                ]
                for f in fields(c)
            ],
        ]
        for c in [*made, State, Telescope, Trace]
    }


def constants():
    """What was chosen by measurement: who changes one should say so."""
    names = "adversary checkpoints descent epochs jumps ladders oracle planners purchases refine runs searching solvers"
    modules = {name: vars(import_module(f"mlgd.{name}")) for name in names.split()}
    numbers = int | float | tuple | np.ndarray
    found = {
        name: {k: v for k, v in m.items() if k.isupper() and isinstance(v, numbers)}
        for name, m in modules.items()
    }
    return found | {"stages": {name: options for name, (_, options, _) in MEASURED.items()}}


def searching():
    out = []
    for h in LADDERS.values():
        ladder, n = Ladder.of(h), len(h.levels)
        room = np.linspace(-0.1, 0.6, 3 * n).reshape(3, n)
        ways = Ways(np.ones(3), np.array([5.0, 50.0, 8.0]), np.array([5.0, 20.0, 0.35]), (), None)
        scale = np.array([[1.0], [2.0], [0.3]])
        out.append(ladder.squared)
        out += [
            coarse_prices(ladder.cost, ladder.shared, scale * ladder.steps, r)
            for r in (room, np.minimum(room, 0))
        ]
        out += [refined(ways, i, 1.3) for i in range(3)]
    report = smooth(LADDERS["uneven"])
    report.values = {k: np.array([uneven(k, y) for y in (START, 0.5 * START)]) for k in OFF}
    known = Ladder.of(report)
    return [*out, known.squared, known.accuracy, known.steps, known.change]


def deterministic():
    out = [[part[..., ::24] for part in nesterov_responses(1.0, mu, 12)] for mu in (0.01, 1.0)]
    out += [conjugate_curve(CURVATURE, w) for w in (np.ones(4), np.array([1.0, 0.0, 2.0, 1e-9]))]
    for solve in (
        lambda g, m: nesterov(g, m, 25, 4.0, 0.02),
        lambda g, m: nesterov(g, m, 25, 4.0),
        lambda g, m: quasi_newton(g, m, 60, 1e-7),
        lambda g, m: quasi_newton(g, m, 60, 1e-7, 4.0),
        lambda g, m: quasi_newton(g, m, 90, 1e-9, 0.01),
        lambda g, m: quasi_newton(g, m, 7),
    ):
        for gradient in (
            lambda y: CURVATURE * y + 0.1 * y**3,
            lambda y: np.tanh(3 * y) + 0.01 * y,
            lambda y: np.round(CURVATURE * y, 1),
        ):
            memory, path = SimpleNamespace(y=START), []
            for _ in solve(gradient, memory):
                path.append(float(np.linalg.norm(memory.y)))
            out.append(
                [
                    memory.y,
                    memory.t,
                    path,
                    getattr(memory, "norm", None),
                    getattr(memory, "ended", None),
                ]
            )
    return out


def restarts():
    """A gradient that makes no sense for a while: the search gives up its pairs and begins anew."""
    out = []
    for beta, wild in ((None, -1e3), (4.0, -1e3), (4.0, 1e3)):
        memory, path = SimpleNamespace(y=START), []
        gradient = lambda y, m=memory, w=wild: CURVATURE * y * (w if 6 <= m.t < 27 else 1.0)  # noqa: E731
        for _ in quasi_newton(gradient, memory, 70, 1e-9, beta):
            path.append(float(np.linalg.norm(memory.y)))
        out.append([memory.t, memory.norm, memory.ended, path])
    return out


def runs():
    out, problem = [], PROBLEMS[0.02]
    for name, promise, eps in (
        ("uneven", "proved", 0.5),
        ("sharing", "quadratic", 0.1),
        ("uneven", "measured", 0.05),
    ):
        h = LADDERS[name]
        for p in compare(problem, eps, on=smooth(h), promise=promise).plans:
            if p.steps < 20_000:
                for budget in (None, 0.6 * p.expected_cost):
                    r = minimize(
                        h,
                        START,
                        p,
                        rng=3,
                        loss=lambda y: float(CURVATURE @ y**2) / 2,
                        max_cost=budget,
                    )
                    trace = [
                        c[:: max(1, len(c) // 5)]
                        for c in (r.trace.step, r.trace.cost, r.trace.loss)
                    ]
                    out.append(
                        [
                            p.method,
                            r.y,
                            r.cost,
                            r.evaluations,
                            r.steps,
                            r.status,
                            r.promise,
                            r.message,
                            trace,
                            r.fun,
                        ]
                    )
    bent = Hierarchy(
        lambda k, y: (0.1 if k == 0 else 1.0) * CURVATURE * y + 2.0**-k * 1e-3,
        lambda k: 8.0**k,
        range(6),
    )
    stages = tuple(
        Stage(n, 2.0**-5, 0.0, levels=(0, 5), probabilities=(1.0, 1.0), tolerance=1e-9)
        for n in (9, 6, 20, 20)
    )
    far = Plan(
        problem=problem,
        eps=1e-3,
        method="corrected",
        promise="none",
        eta=1.0,
        stages=stages,
        averaging="last",
        expected_cost=1.0,
        guarantee="",
    )
    r = minimize(bent, START, far)
    out.append([r.y, r.message, r.cost, r.evaluations, far.price_on(bent)])
    t = Telescope(LADDERS["uneven"], {0: 1.0, 2: 0.5, 5: 0.1})
    for window in (None, 7):
        by_hand = tuned(problem, 0.1, t, 0.7, 30, window)
        states = []
        r = minimize(
            LADDERS["uneven"],
            START,
            by_hand,
            rng=1,
            callback=lambda s, kept=states: kept.append(s) or s.step == 9,
        )
        out.append(
            [
                str(by_hand),
                r.y,
                r.message,
                repr(r),
                r._repr_html_(),
                [asdict(s) for s in states[::4]],
            ]
        )
    return out


def texts():
    problem, h = PROBLEMS[0.02], LADDERS["uneven"]
    common = {
        "problem": problem,
        "eps": 0.1,
        "method": "refine",
        "promise": "quadratic",
        "eta": 1.0,
        "expected_cost": 12345.678,
    }
    stage = Stage(7, 0.02, 0.0, levels=(0, 3), probabilities=(1.0, 1.0), solver="nesterov")
    shown = [
        str(
            Plan(
                **common,
                stages=(stage,) * n,
                averaging="last",
                guarantee="said",
                budget=Budget(0.1, 0.2, 0.3, mixed),
            )
        )
        for n, mixed in ((1, 0.0), (2, 0.1), (3, 0.0), (4, 0.0))
    ]
    return [
        *shown,
        [repr(h) for h in LADDERS.values()],
        repr(LADDERS["uneven"].only([0, 3, 7])),
        str(plan(problem, 0.1, on=h)),
    ]


def jumps():
    h, out = LADDERS["dyadic"], []
    for s in (
        exponential_schedule(h, (1e-2, 0.1), (0.1, 0.3), 2.5, 6.0, 0.2, 5.0),
        exponential_schedule(h, (0.1, 0.0), (0.1, 0.0), 3.0, 2.0),
        proposition_schedule(h, 0.3, 0.05, 3.0, 9.0),
        proposition_schedule(h, 0.3, 0.05, 1.5, 9.0, 4.0, 2.0),
    ):
        out.append(
            [
                s.levels,
                s.breaks,
                s.weight,
                s.rates(np.linspace(0, 9, 7)),
                s.expected_cost(h, 2.0),
                s.bounds(0.0, 0.5),
            ]
        )
        r = flow(h, START, s, 0.2, rng=5, loss=lambda y: float(y @ y))
        out.append([r.y, r.cost, r.steps, r.status, r.message, r.evaluations, r.trace.loss[-3:]])
    for options in ({"weight": 0.5}, {"max_events": 40}, {}):
        r = flow(h, START, {0: 30.0, 1: 9.0, 2: 4.0}, 3.0, rng=2, **options)
        out.append([r.y, r.cost, r.steps, r.status, r.message, r.evaluations])
    return out


def instances():
    out = []
    for mu, sign, eps in ((0.0, 1, 1e-2), (0.3, -1, 1e-3), (1.0, 1, 0.12)):
        a = Adversary(eps=eps, d0=1.0, beta=1.0, gamma=2.5, c=0.6, mu=mu, sign=sign)
        y = np.array([0.3, -0.7, 1.1])
        answers = [
            [a.evaluate(k, y), a.potential(k, y), a.cost(k)]
            for k in a.levels[:: max(1, len(a.levels) // 5)]
        ]
        out.append(
            [
                repr(a),
                a.levels,
                a.flatness,
                a.delta,
                a.shift,
                a.blind_below,
                a.lower_bound,
                a.minimizer,
                answers,
            ]
        )
        out.append([a.gradient(y), a.loss(y), a.queries, a.spent_by_level, a.seen, repr(a.twin)])
    for make in (biased, rounded, series):
        h = make(lambda y: y**2, 2.5, 0.6, range(4))
        out.append(
            [repr(h), [[h.value(k, START), h.step(k, START), h.step_cost(k)] for k in h.levels]]
        )
    out.append(
        [
            h.evaluate(2, START)
            for h in (
                biased(np.sin, 2, 1, range(3), direction=ASIDE[0]),
                series(np.sin, 2, 1, range(3), 5),
            )
        ]
    )
    return out


CASES = {
    "ideal": ideal,
    "telescopes": telescopes,
    "ladders": ladders,
    "epochs": epochs,
    "searching": searching,
    "runs": runs,
    "deterministic": deterministic,
    "jumps": jumps,
    "instances": instances,
    "texts": texts,
    "restarts": restarts,
    "shapes": shapes,
    "constants": constants,
} | {
    f"{name} {promise}": lambda name=name, promise=promise: on_ladder(name, promise)
    for name in LADDERS
    for promise in ("proved", "quadratic", "measured")
}


def plain(value):
    """As JSON has it, floats to eight digits."""
    if is_dataclass(value):
        return plain(vars(value))
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return float(f"{value:.8g}") if math.isfinite(value) else str(value)
    return value


def differences(now, then, place="", share=1e-6):
    """Where two records differ, beyond what another processor's rounding may change."""
    if isinstance(now, dict | list) and type(now) is type(then) and len(now) == len(then):
        keys = now if isinstance(now, dict) else range(len(now))
        if isinstance(now, list) or now.keys() == then.keys():
            return [d for k in keys for d in differences(now[k], then[k], f"{place}/{k}", share)]
    same = now == then
    if isinstance(now, int | float) and isinstance(then, int | float) and not isinstance(now, bool):
        same = math.isclose(now, then, rel_tol=share, abs_tol=1e-11)
    return [] if same else [f"{place}: {then!r} on record, {now!r} now"]


@pytest.mark.parametrize("name", CASES)
def test_nothing_has_changed(name):
    share = (
        1e-2 if name == "restarts" else 1e-6
    )  # a search that begins anew multiplies what processors round differently
    found = differences(plain(CASES[name]()), json.loads(FILE.read_text())[name], share=share)
    assert not found, f"{len(found)} numbers: " + "; ".join(found[:3])


def test_the_look_at_records_can_fail():
    assert differences({"a": [1.0, "x"]}, {"a": [1.0 + 1e-9, "x"]}) == []
    assert differences({"a": [1.0, "x"]}, {"a": [1.0 + 1e-5, "y"]}) == [
        "/a/0: 1.00001 on record, 1.0 now",
        "/a/1: 'y' on record, 'x' now",
    ]
    assert differences([1], [1, 2]) == [": [1, 2] on record, [1] now"]


if __name__ == "__main__":
    FILE.write_text(
        json.dumps({name: plain(case()) for name, case in CASES.items()}, separators=(",", ":"))
        + "\n"
    )
