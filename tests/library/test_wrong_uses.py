"""Every public call refuses what is wrong in one sentence, before anything is paid.

Each row: what is done, with a ladder that counts its evaluations, and words of the sentence that must come back.
"""

import math

import numpy as np
import pytest

from mlgd import (
    Hierarchy,
    Plan,
    Problem,
    Schedule,
    Telescope,
    audit,
    compare,
    constants,
    flow,
    minimize,
    plan,
)
from mlgd.examples import biased, rounded, series
from mlgd.hierarchy import first_level

paid: list[int] = []


def evaluate(k, y):
    paid.append(k)
    return y + 2.0**-k


def price(k):
    return 8.0**k


GOOD = {"evaluate": evaluate, "cost": price, "levels": range(1, 7)}
H = Hierarchy(**GOOD)
Y = np.ones(3)
# mesh sizes: fine until accuracies are asked for
MESH = Hierarchy(evaluate, lambda k: k**3.0, [16, 128, 2048])


def made(**changes):
    return lambda: Hierarchy(**(GOOD | changes))


HIERARCHY = [
    (made(evaluate=None), r"evaluate must be a function; got None: give evaluate\(k, y\)"),
    (made(evaluate=Y), "evaluate must be a function; got array"),
    (
        made(cost=None),
        r"cost must be a function; got None: give cost\(k\), the price of one evaluation",
    ),
    (made(cost=8.0), "cost must be a function; got 8.0"),
    (made(cost=[1, 2, 3]), "cost has 3 prices for 6 levels: give one for each"),
    (
        made(cost={1: 8.0}),
        r"cost must have a price for every level; got none for \[2, 3, 4, 5, 6\]",
    ),
    (made(cost=[1, 2, 3, 4, 5, 0]), "the price of level 6 must be positive and finite; got 0"),
    (made(exact="yes"), "exact must be True or False; got 'yes'"),
    (made(accuracy=0.5), "accuracy must be a function; got 0.5: give .* or leave it out"),
    (made(increment=evaluate), "unexpected keyword argument 'increment'"),
    (lambda: MESH.level_for(0.1), r"accuracy \(assumed 2\^-k: give .* level 2048 must be positive"),
    (lambda: plan(PROBLEM, 0.1, on=MESH), "of level 2048 must be positive and finite; got 0.0"),
    (made(levels=[]), r"levels must be increasing integers, at least one; got \[\]"),
    (made(levels=6), r"levels must be integers, as in range\(6\); got 6"),
    (made(levels=None), "levels must be integers, .* got None"),
    (made(levels="123"), "levels must be integers, .* got '123'"),
    (made(levels=["3"]), r"levels must be integers, .* got \['3'\]"),
    (made(levels=[1.5, 2.7]), r"levels must be integers, .* got \[1.5, 2.7\]"),
    (made(levels=[1.0, 2.0]), "levels must be integers"),
    (made(levels=[False, True]), r"levels must be integers, .* got \[False, True\]"),
    (made(levels=[2, 1]), r"levels must be increasing integers, at least one; got \[2, 1\]"),
    (made(levels=[1, 1]), "levels must be increasing integers"),
    (made(cost=lambda k: 0.0), "the price of level 1 must be positive and finite; got 0.0"),
    (
        made(cost=lambda k: -1.0 if k == 2 else 1.0),
        "the price of level 2 must be positive and finite; got -1.0",
    ),
    (made(cost=lambda k: math.inf), "the price of level 1 must be positive and finite; got inf"),
    (made(cost=lambda k: "8"), "the price of level 1 must be positive and finite; got '8'"),
    (made(cost=lambda k: None), "the price of level 1 must be positive and finite; got None"),
    (
        made(accuracy=lambda k: math.nan),
        "the accuracy of level 1 must be positive and finite; got nan",
    ),
    (made(accuracy=lambda k: 0.0), "the accuracy of level 1 must be positive and finite; got 0.0"),
    (
        made(accuracy=lambda k: 2.0**k),
        r"accuracy\(2\) is larger than at the level before: .* must not grow",
    ),
    (lambda: H.value(9, Y), "level 9 is not one of 1..6"),
    (lambda: H.value("2", Y), "level '2' is not one of 1..6"),
    (lambda: H.step(0, Y), "level 0 is not one of 1..6"),
    (lambda: H.before(1.5), "level 1.5 is not one of 1..6"),
    (lambda: H.step_cost(7), "level 7 is not one of 1..6"),
    (lambda: H.level_for(0), "delta must be positive and finite; got 0"),
    (lambda: H.level_for("small"), "delta must be positive and finite; got 'small'"),
    (
        lambda: H.level_for(1e-9),
        "accuracy 1e-09 is needed and the finest level offers 0.0156: add levels",
    ),
    (lambda: H.only([]), "levels must be increasing integers, at least one"),
    (lambda: H.only([2, 9]), "level 9 is not one of 1..6"),
    (lambda: H.only([3, 2]), "levels must be increasing integers"),
    (lambda: H.only(2.5), "levels must be integers"),
    (
        lambda: H.declare({1: 1.0}),
        r"declare needs an accuracy for every level; got none for \[2, 3, 4, 5, 6\]",
    ),
    (
        lambda: H.declare(dict.fromkeys(range(1, 7), -1.0)),
        "the accuracy of level 1 must be positive and finite",
    ),
    (
        lambda: H.point(3.0),
        r"at least one entry; got the number 3.0: one unknown is np.array\(\[x\]\)",
    ),
    (lambda: H.point([]), "at least one entry; got an empty array"),
    (
        lambda: H.point(Y + 1j),
        "complex points have no gradient here: stack real and imaginary parts",
    ),
    (lambda: H.point([1j, 2.0]), "complex points have no gradient here"),
    (lambda: H.point([1.0, math.inf]), "the point has a non-finite entry: give finite numbers"),
    (lambda: H.point("start"), "a point must be an array of numbers; got 'start'"),
    (
        lambda: H.point(None),
        "a point must be an array with at least one entry|a point must be an array of numbers",
    ),
    (lambda: H.point([[1.0], [1.0, 2.0]]), "a point must be an array of numbers"),
    (lambda: first_level(-1.0), "c must be positive and finite; got -1.0"),
]


@pytest.mark.parametrize(
    ("use", "sentence"), [pytest.param(*row, id=f"{i}") for i, row in enumerate(HIERARCHY)]
)
def test_a_wrong_hierarchy_is_refused(use, sentence):
    refused(use, sentence)


def refused(use, sentence):
    """The call raises ValueError (or TypeError) with the sentence, and no level was evaluated."""
    paid.clear()
    with pytest.raises((ValueError, TypeError), match=sentence):
        use()
    assert paid == []


EXAMPLES = [
    (lambda: rounded(np.sin, -1.0, 1.0, [1]), r"gamma must be positive and finite; got -1\.0"),
    (lambda: biased(np.sin, 1.0, 0.0, [1]), "c must be positive and finite; got 0.0"),
    (lambda: series(np.sin, "3", 1.0, [1]), "gamma must be positive and finite; got '3'"),
    (
        lambda: series(np.sin, 3, 1.0, [1], terms=-1),
        "terms must be a whole number, at least 0; got -1",
    ),
    (
        lambda: series(np.sin, 3, 1.0, [1], terms=2.5),
        "terms must be a whole number, at least 0; got 2.5",
    ),
    (
        lambda: rounded(None, 3, 1.0, [1]),
        r"gradient must be a function; got None: give gradient\(y\)",
    ),
    (lambda: biased(np.sin, 3, 1.0, [1], direction=np.zeros(3)), "direction must not be zero"),
]


@pytest.mark.parametrize(
    ("use", "sentence"), [pytest.param(*row, id=f"{i}") for i, row in enumerate(EXAMPLES)]
)
def test_a_wrong_example_is_refused(use, sentence):
    refused(use, sentence)


REPORT = audit(H, [Y, 2 * Y])
AUDIT = [
    (
        lambda: audit(evaluate, [Y]),
        "audit measures a Hierarchy; got <function|audit measures a Hierarchy; got a value of type function",
    ),
    (
        lambda: audit(H, []),
        r"audit needs at least one point, as in audit\(h, \[y0, y1\]\); got \[\]",
    ),
    (lambda: audit(H, None), "audit needs at least one point, .* got None"),
    (lambda: audit(H, 3.0), "audit needs at least one point, .* got 3.0"),
    (lambda: audit(H, "start"), "audit needs at least one point, .* got 'start'"),
    (lambda: audit(H, np.zeros((0, 3))), "audit needs at least one point"),
    (lambda: audit(H, [np.zeros(0)]), "at least one entry; got an empty array"),
    (lambda: audit(H, [Y, np.ones(2)]), r"the points must have one shape; got \[\(3,\), \(2,\)\]"),
    (lambda: audit(H, [Y, Y * math.nan]), "the point has a non-finite entry"),
    (lambda: audit(H, ["start", "end"]), "a point must be an array of numbers"),
    (
        lambda: audit(H, [Y], reference=Y),
        r"reference must be a function; got array.*: give reference\(y\)",
    ),
    (
        lambda: audit(H, [Y], reference=lambda y: y[:1]),
        r"reference\(y\) must be finite and of shape \(3,\); got shape \(1,\)",
    ),
    (lambda: audit(H, [Y], reference=lambda y: y * math.nan), r"reference\(y\) must be finite"),
    (lambda: REPORT.problem(), r"problem needs beta= and d0= .*, or constants\(h, y0\); got None"),
    (lambda: REPORT.problem(beta=1.0), "problem needs beta= and d0="),
    (lambda: REPORT.problem(2.0), "problem needs beta= and d0= .* got 2.0"),
    (lambda: REPORT.problem(REPORT, beta=1.0), "problem needs beta= and d0="),
    (lambda: REPORT.problem(beta=-1.0, d0=1.0), "beta must be .*positive"),
    (lambda: REPORT.problem(beta=1.0, d0=1.0, mu=2.0), "mu must lie in"),
    (lambda: FLAT.problem(beta=1.0, d0=1.0), "this audit found no rate gamma"),
]
FLAT = audit(Hierarchy(lambda k, y: y + 1.0, price, [1, 2]), [Y])


@pytest.mark.parametrize(
    ("use", "sentence"), [pytest.param(*row, id=f"{i}") for i, row in enumerate(AUDIT)]
)
def test_a_wrong_audit_is_refused(use, sentence):
    refused(use, sentence)


CONSTANTS = [
    (lambda: constants(H, 3.0), "at least one entry; got the number 3.0"),
    (lambda: constants(H, [math.nan]), "the point has a non-finite entry"),
    (lambda: constants(H, "y0"), "a point must be an array of numbers; got 'y0'"),
]


@pytest.mark.parametrize(("use", "sentence"), CONSTANTS)
def test_wrong_constants_are_refused(use, sentence):
    refused(use, sentence)


PROBLEM = Problem(beta=1.0, d0=2.0, gamma=3.0, c=1.0)
PLAN = plan(PROBLEM, 1.0)


def run(h=H, y0=Y, how=PLAN, **options):
    return lambda: minimize(h, y0, how, **options)


MINIMIZE = [
    (run(h=None), "the first argument must be a Hierarchy; got a value of type NoneType"),
    (run(h=evaluate), "the first argument must be a Hierarchy; got a value of type function"),
    (run(h=REPORT), "must be a Hierarchy; got a value of type Audit: give its .hierarchy"),
    (
        run(how=PROBLEM),
        r"plan must be a Plan; got a value of type Problem: make one with mlgd.plan\(problem, eps\)",
    ),
    (run(how=REPORT), "plan must be a Plan; got a value of type Audit"),
    (run(how=0.1), "plan must be a Plan; got a value of type float"),
    (run(how="multilevel"), "plan must be a Plan; got a value of type str"),
    (
        lambda: minimize(H, Y, compare(PROBLEM, 0.25)),
        "plan must be a Plan; got a value of type Comparison: give its .best",
    ),
    (run(how=None), r"give a plan \(its eps is in it\), eps or max_cost; got none of them"),
    (run(eps=0.1), "give a plan .* or eps, not both"),
    (run(how=None, eps=-0.1), "eps must be positive and finite; got -0.1"),
    (run(how=None, eps="small"), "eps must be positive and finite; got 'small'"),
    (run(y0=3.0), "at least one entry; got the number 3.0"),
    (run(y0=[]), "at least one entry; got an empty array"),
    (run(y0=[1.0, math.inf, 1.0]), "the point has a non-finite entry"),
    (run(y0="start"), "a point must be an array of numbers; got 'start'"),
    (run(y0=None), "a point must be an array of numbers|non-finite|at least one entry"),
    (run(rng="seed"), "rng must be what numpy.random.default_rng takes; got 'seed'"),
    (run(rng=-3), "rng must be what numpy.random.default_rng takes; got -3"),
    (run(max_cost=0.0), "max_cost must be positive and finite; got 0.0"),
    (run(max_cost=-5), "max_cost must be positive and finite; got -5"),
    (run(max_cost="all"), "max_cost must be positive and finite; got 'all'"),
    (run(max_cost=math.nan), "max_cost must be positive and finite; got nan"),
    (
        run(max_cost=7.0),
        "max_cost = 7 does not pay for one evaluation of level 2, which costs 64: raise max_cost",
    ),
    (run(loss=0.0), "loss must be a function; got a value of type float"),
    (run(callback=[print]), "callback must be a function; got a value of type list"),
    (run(checkpoint=3), "checkpoint must be the path of a file; got 3"),
    (run(checkpoint=True), "checkpoint must be the path of a file; got True"),
    (run(checkpoint="."), "checkpoint must be the path of a file; . is a folder: add a name to it"),
    (run(checkpoint="no/such/folder/file"), "there is no folder no/such/folder; make it first"),
    (run(checkpoint=__file__), "is damaged or not one of mlgd's: delete it to start anew"),
    (run(h=H.only([1, 2])), "accuracy .* is needed and the finest level offers 0.25: add levels"),
]


@pytest.mark.parametrize(
    ("use", "sentence"), [pytest.param(*row, id=f"{i}") for i, row in enumerate(MINIMIZE)]
)
def test_a_wrong_run_is_refused(use, sentence):
    refused(use, sentence)


def jump(h=H, y0=Y, rates=(4.0, 1.0), horizon=1.0, **options):
    return lambda: flow(h, y0, rates, horizon, **options)


FLOW = [
    (jump(h=REPORT), "the first argument must be a Hierarchy; got a value of type Audit"),
    (jump(y0=1.0), "at least one entry; got the number 1.0"),
    (jump(y0=[]), "at least one entry; got an empty array"),
    (
        jump(rates=3.0),
        r"rates must be \{level: rate\}, a list of rates or a Schedule; got a value of type float",
    ),
    (jump(rates="fast"), "a list of rates or a Schedule; got a value of type str"),
    (jump(rates=[]), "an initial run of the levels"),
    (jump(rates=[1.0] * 9), "an initial run of the levels .* got 9 of them"),
    (jump(rates={2: 1.0}), r"an initial run of the levels .* got \(2,\)"),
    (jump(rates={1: 1.0, 9: 1.0}), r"an initial run of the levels .* got \(1, 9\)"),
    (jump(rates={1.5: 1.0}), r"an initial run of the levels .* got \(1.5,\)"),
    (jump(rates=[1.0, -1.0]), "rates must be positive and finite; got -1.0 at level 2"),
    (jump(rates=[1.0, "2"]), "rates must be positive and finite; got '2' at level 2"),
    (
        jump(rates=Schedule(lambda t: np.ones((1, np.size(t))), (9,))),
        r"the schedule uses levels \[9\]",
    ),
    (jump(horizon=-1.0), "the horizon must be finite and non-negative; got -1.0"),
    (jump(horizon="long"), "the horizon must be finite and non-negative; got 'long'"),
    (jump(horizon=None), "the horizon must be finite and non-negative; got None"),
    (jump(weight=-1.0), "the weight must be finite and non-negative; got -1.0"),
    (jump(weight="late"), "the weight must be finite and non-negative; got 'late'"),
    (jump(max_events=2.5), "max_events must be an integer of at least 1; got 2.5"),
    (jump(max_events=0), "max_events must be an integer of at least 1; got 0"),
    (jump(loss="l2"), "loss must be a function; got a value of type str"),
    (jump(rng="seed"), "rng must be what numpy.random.default_rng takes; got 'seed'"),
]


@pytest.mark.parametrize(
    ("use", "sentence"), [pytest.param(*row, id=f"{i}") for i, row in enumerate(FLOW)]
)
def test_a_wrong_flow_is_refused(use, sentence):
    refused(use, sentence)


def planned(problem=PROBLEM, eps=0.1, **options):
    return lambda: plan(problem, eps, **options)


def telescope(probabilities):
    return lambda: Telescope(H, probabilities)


def by_hand(**changes):
    given = {"telescope": Telescope(H, [1.0, 0.5]), "eta": 0.5, "steps": 9}
    return lambda: Plan.by_hand(**given | changes)


FLAT_LOSS = Problem(beta=0.1, d0=2.0, gamma=3.0, c=1.0)

PLANS = [
    (lambda: Problem(beta="1", d0=1, gamma=3, c=1), "beta must be positive and finite; got '1'"),
    (lambda: Problem(beta=1, d0=0, gamma=3, c=1), "d0 must be positive and finite; got 0"),
    (lambda: Problem(beta=1, d0=1, gamma=-3, c=1), "gamma must be positive and finite; got -3"),
    (lambda: Problem(beta=1, d0=1, gamma=3, c=None), "c must be positive and finite; got None"),
    (
        lambda: Problem(beta=1, d0=1, gamma=3, c=1, mu=2),
        r"mu must lie in \[0, beta\] = \[0, 1\]; got 2",
    ),
    (
        lambda: Problem(beta=1, d0=1, gamma=3, c=1, mu="0"),
        r"mu must lie in \[0, beta\] = \[0, 1\]; got '0'",
    ),
    (
        lambda: Problem(beta=1, d0=1, gamma=3, c=1, first=1.5),
        "first must be a level, an integer; got 1.5",
    ),
    (lambda: Problem(beta=1, d0=1, gamma=3, c=1, measures=3), "unexpected keyword argument"),
    (lambda: Problem(1, 1, 3, 1), "positional argument"),
    (
        planned(problem=REPORT),
        r"plan needs a Problem; got Audit: use report.problem\(beta=, d0=, mu=\)",
    ),
    (planned(problem=H), r"plan needs a Problem; got Hierarchy: build one, Problem\(...\)"),
    (planned(problem=None), "plan needs a Problem; got NoneType"),
    (planned(eps=-1), "eps must be positive and finite; got -1"),
    (planned(eps="small"), "eps must be positive and finite; got 'small'"),
    (planned(method="magic"), r"method must be one of \('multilevel', .* got 'magic'"),
    (planned(method="refine"), "method must be one of .* got 'refine'"),
    (planned(promise="proved"), "unexpected keyword argument 'promise'"),
    (planned(on=H, eta=3.0), r"the step must be at most 1/\(4 beta\) = 0.25; got 3"),
    (planned(eps=8.0, eta=0.6, problem=FLAT_LOSS), r"at most d0\^2/eps = 0.5; got 0.6"),
    (planned(method="scheduled"), "the scheduled method needs strong convexity"),
    (planned(eta=1.0), r"the step must be at most 1/\(4 beta\) = 0.25; got 1: take a smaller eta"),
    (planned(eta="big"), "eta must be positive and finite; got 'big'"),
    (planned(on=3), "on must be a Hierarchy or the report of audit; got int"),
    (planned(on=[H]), "on must be a Hierarchy or the report of audit; got list"),
    (
        planned(on=H, eps=1e-9),
        "the target 1e-09 is out of reach on this ladder: .* add finer levels or ask for a larger eps",
    ),
    (lambda: compare(REPORT, 0.1), "plan needs a Problem; got Audit"),
    (lambda: compare(PROBLEM, 0.0), "eps must be positive and finite; got 0.0"),
    (
        lambda: compare(PROBLEM, 1e-9, on=H),
        "no method can be planned: multilevel: the target 1e-09 is out of reach",
    ),
    (
        telescope([]),
        r"one for each of the first levels of \(1, 2, 3, 4, 5, 6\), at least one; got 0 of them",
    ),
    (telescope([1.0] * 9), r"got 9 of them: shorten the list, or name the levels, \{level: p\}"),
    (telescope([1.0, 0.0]), r"probabilities must lie in \(0, 1\]; got 0.0 at level 2"),
    (telescope([1.0, 1.5]), "got 1.5 at level 2"),
    (telescope({1: 1.0, 9: 0.5}), r"levels among \(1, 2, 3, 4, 5, 6\); got them for \(1, 9\)"),
    (lambda: Telescope.cheapest(H, -1.0, [1.0]), "sigma must be non-negative; got -1.0"),
    (
        lambda: Telescope.cheapest(H, 1.0, [1.0, math.nan]),
        "increments: one finite norm for each of the first levels",
    ),
    (
        lambda: Telescope.cheapest(H, 1.0, np.ones((2, 3))),
        "or a square array of the norms between any two",
    ),
    (
        lambda: Telescope.for_accuracy(H, 0.0, 1.0, 3.0),
        "need delta > 0, sigma >= 0, gamma > 0; got 0.0",
    ),
    (
        lambda: Telescope.for_accuracy(H, 1e-9, 1.0, 3.0),
        "accuracy 1e-09 is needed and the finest level offers",
    ),
    (by_hand(telescope=H), "by_hand needs a Telescope; got Hierarchy"),
    (by_hand(eta=0), "eta must be positive and finite; got 0"),
    (
        lambda: Telescope.for_accuracy(H, 0.1, 1.0, 3.0, coarsest=2),
        "must be a probability, in .* got 2",
    ),
    (by_hand(steps=2.5), "steps must be a whole number, at least 1; got 2.5"),
    (by_hand(steps=0), "steps must be positive and finite; got 0"),
    (by_hand(window=20), "the window must be at most the number of steps, 9; got 20"),
    (by_hand(window=1.5), "window must be a whole number, at least 1; got 1.5"),
]


@pytest.mark.parametrize(
    ("use", "sentence"), [pytest.param(*row, id=f"{i}") for i, row in enumerate(PLANS)]
)
def test_a_wrong_plan_is_refused(use, sentence):
    refused(use, sentence)


UNPLANNED = [
    (lambda: minimize(H, Y), "give a plan .*, eps or max_cost; got none of them"),
    (lambda: minimize(H, Y, eps=0.0), "eps must be positive and finite; got 0.0"),
    (lambda: minimize(H, Y, eps="0.1"), "eps must be positive and finite; got '0.1'"),
    (lambda: minimize(H, Y, eps=math.nan), "eps must be positive and finite; got nan"),
    (lambda: minimize(H, Y, max_cost=-1), "max_cost must be positive and finite; got -1"),
    (
        lambda: minimize(H, Y, max_cost=1.0),
        "max_cost = 1 does not pay for one evaluation of level 1, which costs 8",
    ),
    (
        lambda: minimize(H, Y, eps=0.1, rng="seed"),
        "rng must be what numpy.random.default_rng takes",
    ),
    (
        lambda: minimize(H, 3.0, eps=0.1),
        "a point must be an array with at least one entry; got the number 3.0",
    ),
    (
        lambda: minimize(H, [], eps=0.1),
        "a point must be an array with at least one entry; got an empty array",
    ),
    (lambda: minimize(H, Y, eps=0.1, loss=3), "loss must be a function"),
    (lambda: minimize(H, Y, eps=0.1, checkpoint=3), "checkpoint must be the path of a file; got 3"),
]


@pytest.mark.parametrize(("use", "sentence"), UNPLANNED)
def test_a_run_without_a_plan_refuses(use, sentence):
    refused(use, sentence)
