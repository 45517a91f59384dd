"""Every public call refuses what is wrong in one sentence, before anything is paid.

Each row: what is done, and words of the sentence that must come back.
"""

import math
from dataclasses import replace
from tempfile import NamedTemporaryFile, TemporaryDirectory

import numpy as np
import pytest

from mlgd import (
    Hierarchy,
    Plan,
    Problem,
    Telescope,
    audit,
    compare,
    constants,
    minimize,
    plan,
)
from mlgd.adversary import Adversary
from mlgd.examples import HeatSource, biased
from mlgd.flow import Schedule, flow
from mlgd.hierarchy import dyadic
from mlgd.result import Bill

paid: list[int] = []


def evaluate(k, y):
    paid.append(k)
    return y + 2.0**-k


def price(k):
    return 8.0**k


GOOD = {"evaluate": evaluate, "cost": price, "levels": range(1, 7), "accuracy": dyadic}
H = Hierarchy(**GOOD)
Y = np.ones(3)
ROUGH = Hierarchy(evaluate, price, range(1, 7), lambda k: 1.0)
# fine until accuracies are asked for
MESH = Hierarchy(evaluate, lambda k: k**3.0, [16, 128, 2048])
REPORT = audit(H, [Y, 2 * Y])
FLAT = audit(Hierarchy(lambda k, y: y + 1.0, price, [1, 2], dyadic), [Y])
PROBLEM = Problem(beta=1.0, d0=2.0, gamma=3.0, c=1.0)
FLATTER = Problem(beta=0.1, d0=2.0, gamma=3.0, c=1.0)
PLAN = plan(PROBLEM, 1.0)
EMPTY = NamedTemporaryFile()  # a file that is there and no checkpoint
POINT = "a point must be an array of finite real numbers"


def made(**changes):
    return lambda: Hierarchy(**(GOOD | changes))


def run(h=H, y0=Y, how=PLAN, **options):
    return lambda: how.run(h, y0, **options)


def climb(h=H, y0=Y, **options):
    return lambda: minimize(h, y0, **options)


def jump(h=H, y0=Y, rates=(4.0, 1.0), horizon=1.0, **options):
    return lambda: flow(h, y0, rates, horizon, **options)


def known(**changes):
    return lambda: Problem(**({"beta": 1, "d0": 1, "gamma": 3, "c": 1} | changes))


def planned(problem=PROBLEM, eps=0.1, **options):
    return lambda: plan(problem, eps, **options)


def telescope(probabilities):
    return lambda: Telescope(H, probabilities)


def by_hand(**changes):
    given = {"telescope": Telescope(H, [1.0, 0.5]), "eta": 0.5, "steps": 9}
    return lambda: Plan.by_hand(**given | changes)


def opponent(**changes):
    good = {"eps": 0.01, "d0": 1.0, "beta": 1.0, "gamma": 2.0, "c": 1.0}
    return lambda: Adversary(**good | changes)


ROWS = [
    # a hierarchy
    (
        made(evaluate=None),
        r"evaluate must be a function; got None: give evaluate\(k, y\)",
    ),
    (made(cost=8.0), "a price for each level used is needed, .*; got 8.0"),
    (
        made(cost=[1, 2, 3]),
        r"or a list, of all levels \(1, 2, 3, 4, 5, 6\); got \[1, 2, 3\]",
    ),
    (made(cost={1: 8.0}), r"a price for each level used is needed, .*; got \{1: 8.0\}"),
    (
        made(cost=[1, 2, 3, 4, 5, 0]),
        "the price of level 6 must be positive and finite; got 0",
    ),
    (
        made(cost=lambda k: math.inf),
        "the price of level 1 must be positive and finite; got inf",
    ),
    (
        made(cost=lambda k: None),
        "the price of level 1 must be positive and finite; got None",
    ),
    (made(accuracy=0.5), "accuracy must be a function; got 0.5: give .* or leave it out"),
    (
        made(accuracy=lambda k: math.nan),
        "the accuracy of level 1 must be positive .* got nan",
    ),
    (
        made(accuracy=lambda k: 1e-13 * 2.0**k),
        r"accuracy\(2\) is larger .* must not grow",
    ),
    (made(levels=[]), r"levels must be increasing integers, as in range\(6\); got \[\]"),
    (made(levels=6), r"levels must be increasing integers, as in range\(6\); got 6"),
    (made(levels="123"), "levels must be increasing integers, .* got '123'"),
    (made(levels=[1.5, 2.7]), r"levels must be increasing integers, .* got \[1.5, 2.7\]"),
    (made(levels=[2, 1]), r"levels must be increasing integers, .* got \[2, 1\]"),
    (lambda: MESH.level_for(0.1), "no accuracy was declared for these levels"),
    (
        lambda: plan(PROBLEM, 0.1, on=MESH),
        "what is not declared proves nothing: give accuracy=",
    ),
    (lambda: H.value(9, Y), "level 9 is not one of 1..6"),
    (lambda: H.value("2", Y), "level '2' is not one of 1..6"),
    (lambda: H.level_for("small"), "delta must be positive and finite; got 'small'"),
    (
        lambda: H.level_for(1e-9),
        "accuracy 1e-09 is needed and the finest level offers 0.0156: add",
    ),
    (lambda: H.only([2, 9]), "level 9 is not one of 1..6"),
    (lambda: H.point(3.0), rf"{POINT}, np.array\(\[x\]\) for one alone .*; got 3.0"),
    (lambda: H.point([]), rf"{POINT}.*; got \[\]"),
    (
        lambda: H.point(Y + 1j),
        r"\(of complex ones, stack real and imaginary parts\); got array",
    ),
    (lambda: H.point([1.0, math.inf]), rf"{POINT}.*; got \[1.0, inf\]"),
    (
        lambda: H.point(np.full((2, 2), math.nan)),
        f"{POINT}.*; got a value of type ndarray",
    ),
    (lambda: H.point("start" * 20), f"{POINT}.*; got a value of type str"),
    (lambda: H.point(None), f"{POINT}.*; got None"),
    (lambda: H.point([[1.0], [1.0, 2.0]]), POINT),
    # ready-made ones
    (lambda: biased(np.sin, 1.0, 0.0, [1]), "c must be positive and finite; got 0.0"),
    (
        lambda: biased(None, 3, 1.0, [1]),
        r"gradient must be a function; got None: give gradient",
    ),
    (
        lambda: HeatSource(range(2, 5)),
        "sensors lie on the grids of levels 3 and finer; got 2",
    ),
    (
        opponent(eps=0.2),
        r"eps must be at most beta d0\^2 / 8 = 0.125, .* ask for a smaller eps",
    ),
    (opponent(mu=0.5, eps=0.07), r"eps must be at most mu d0\^2 / 8"),
    (opponent(eps=math.nan), "eps must be positive and finite; got nan"),
    (opponent(mu=2.0), r"mu must lie in \[0, beta\] = \[0, 1\]; got 2.0"),
    (opponent(sign=0), r"sign must be \+1 or -1; got 0"),
    # audit and constants
    (lambda: audit(evaluate, [Y]), "a Hierarchy is needed; got a value of type function"),
    (
        lambda: audit(H, []),
        r"audit needs at least one point, as in audit\(h, \[y0, y1\]\); got \[",
    ),
    (lambda: audit(H, 3.0), "audit needs at least one point, .* got 3.0"),
    (
        lambda: audit(H, [Y, np.ones(2)]),
        r"the points must have one shape; got \[\(3,\), \(2,\)\]",
    ),
    (lambda: audit(H, [Y, Y * math.nan]), POINT),
    (lambda: audit(H, [Y], reference=Y), "reference must be a function; got array"),
    (
        lambda: audit(H, [Y], reference=lambda y: y[:1]),
        r"level of the reference returned shape",
    ),
    (
        lambda: audit(H, [Y], reference=lambda y: y * math.nan),
        "of the reference returned a non-f",
    ),
    (
        REPORT.problem,
        r"problem needs beta= .*, or constants\(h, y0\), not both; got None",
    ),
    (lambda: REPORT.problem(PROBLEM, mu=0.1), r"constants\(h, y0\), not both; got"),
    (lambda: REPORT.problem(2.0), "problem needs beta= and d0= .* got 2.0"),
    (lambda: FLAT.problem(beta=1.0, d0=1.0), "this audit found no rate gamma"),
    (lambda: constants(H, 3.0), POINT),
    # minimize
    (run(h=None), "a Hierarchy is needed; got a value of type NoneType"),
    (
        run(h=REPORT),
        "Hierarchy is needed; got a value of type Audit: give its .hierarchy",
    ),
    (climb(eps=PLAN), r"a plan runs by itself: plan.run\(h, y0\)"),
    (climb(eps=None), "give eps, the loss above the minimum that will do, or max_cost"),
    (climb(eps=-0.1), "eps must be positive and finite; got -0.1"),
    (climb(eps=PROBLEM), "eps must be positive and finite; got"),
    (climb(eps=0.1, radius=0), "radius must be positive and finite; got 0"),
    (climb(eps=None, max_cost=99.0, radius=1.0), "radius goes with eps: give eps"),
    (run(y0=3.0), POINT),
    (run(rng="seed"), "SeedSequence expects int or sequence of ints"),
    (run(max_cost=0.0), "max_cost must be positive and finite; got 0.0"),
    (
        run(max_cost=7.0),
        "does not pay for one evaluation, which costs 8 or more: raise max_",
    ),
    (run(loss=0.0), r"loss must be a function; got 0.0: give loss\(y\)"),
    (
        run(callback=[3]),
        r"callback must be a function; got \[3\]: give callback\(progress\)",
    ),
    (run(checkpoint=3), "checkpoint must be the path of a file, .*; got 3"),
    (run(checkpoint="."), "checkpoint must be the path of a file, .*; got '.'"),
    (
        run(checkpoint="no/such/folder/file"),
        "in a folder that is there; got 'no/such/folder/file'",
    ),
    (
        run(checkpoint=EMPTY.name),
        "is damaged, or not one of this version: delete it to start anew",
    ),
    (
        run(h=H.only([1, 2])),
        "accuracy .* is needed and the finest level offers 0.25: add levels",
    ),
    # flow
    (jump(h=REPORT), "a Hierarchy is needed; got a value of type Audit"),
    (jump(y0=1.0), POINT),
    (jump(rates=3.0), r"needed, \{level: rate\} or a list, of the first .*; got 3.0"),
    (jump(rates="fast"), "the rate of level 1 must be positive and finite; got 'f'"),
    (jump(rates={9: 1.0}), r"levels \(1, 2, 3, 4, 5, 6\); got \{9: 1.0\}"),
    (
        jump(rates=[1.0, -1.0]),
        "the rate of level 2 must be positive and finite; got -1.0",
    ),
    (
        jump(rates=Schedule(lambda t: np.ones((1, np.size(t))), (9,))),
        "level 9 is not one of 1..6",
    ),
    (jump(horizon=-1.0), "the horizon must be non-negative and finite; got -1.0"),
    (
        jump(rates=Schedule(np.sin, (1,), weight=-1.0)),
        "the weight must be non-n.*; got -1.0",
    ),
    (jump(loss="l2"), "loss must be a function; got 'l2'"),
    # problems, plans, telescopes
    (known(beta="1"), "beta must be positive and finite; got '1'"),
    (known(gamma=-3), "gamma must be positive and finite; got -3"),
    (known(first=1.5), "first must be a level, an integer; got 1.5"),
    (lambda: Problem(1, 1, 3, 1), "positional argument"),
    (
        planned(problem=REPORT),
        r"plan needs a Problem.* report.problem\(beta=, d0=.* got Audit",
    ),
    (planned(method="magic"), r"method must be one of \('multilevel', .* got 'magic'"),
    (
        planned(on=H, eta=3.0),
        r"eta must be at most 1/\(4 beta\) and d0\^2/eps, 0.25; got 3",
    ),
    (planned(eps=8.0, eta=0.6, problem=FLATTER), r"d0\^2/eps, 0.5; got 0.6"),
    (planned(method="scheduled"), "the scheduled method needs strong convexity"),
    (planned(eta="big"), "eta must be positive and finite; got 'big'"),
    (planned(on=3), "a Hierarchy is needed; got a value of type int"),
    (
        planned(on=H, eps=1e-9),
        "1e-09 is out of reach on this ladder: .* add finer levels or ask",
    ),
    (lambda: compare(REPORT, 0.1), "plan needs a Problem.* got Audit"),
    (
        lambda: compare(PROBLEM, 1e-9, on=H),
        "the target 1e-09 is out of reach on this ladder: its finest accuracy, ",
    ),
    (telescope([]), r"a probability for each level used is needed, .*; got \[\]"),
    (
        telescope([1.0] * 9),
        r"\{level: probability\} or a list, of the first levels \(1, 2",
    ),
    (
        telescope([1.0, 0.0]),
        "the probability of level 2 must be positive and finite; got 0.0",
    ),
    (telescope([1.0, 1.5]), "a probability is at most 1; got 1.5 at level 2"),
    (telescope({1: 1.0, 9: 0.5}), r"levels \(1, 2, 3, 4, 5, 6\); got \{1: 1.0, 9: 0.5\}"),
    (
        lambda: Telescope.cheapest(H, -1.0, [1.0]),
        "sigma must be non-negative and finite; got -1.0",
    ),
    (
        lambda: Telescope.cheapest(H, 1.0, [1.0, math.nan]),
        "increments: one finite norm for each",
    ),
    (
        lambda: Telescope.cheapest(H, 1.0, np.ones(9)),
        "increments: .* of the first levels",
    ),
    (
        lambda: Telescope.cheapest(H, 1.0, np.ones((2, 3))),
        "or a square array of the norms",
    ),
    (
        lambda: Telescope.cheapest(None, 1.0, [1.0]),
        "a Hierarchy is needed; got .* NoneType",
    ),
    (
        lambda: Telescope.for_accuracy(H, 0.0, 1.0, 3.0),
        "delta must be positive and finite; got 0",
    ),
    (
        lambda: Telescope.for_accuracy(H, 0.5, math.inf, 3.0),
        "sigma must be non-negative and fin",
    ),
    (
        lambda: Telescope.for_accuracy(H, 0.5, 1.0, 3.0, 2.0),
        r"must lie in \[0, 1\]; got 2.0",
    ),
    (lambda: Telescope(H, [1.0]).draw(1j * Y), POINT),
    (
        run(h=ROUGH, how=plan(PROBLEM, 0.25, on=H)),
        "declare less accuracy than the plan's",
    ),
    (
        jump(rates=Schedule(lambda t: 10 - 20 * t[None], (1,))),
        "rates must be non-negative",
    ),
    (
        jump(rates=Schedule(lambda t: 1 + 9 * np.sin(3 * t[None]), (1,))),
        "monotone between breaks",
    ),
    (lambda: Adversary.start.fill(1.0), "read-only"),
    (by_hand(telescope=H), "by_hand needs a Telescope; got Hierarchy"),
    (by_hand(eta=0), "eta must be positive and finite; got 0"),
    (by_hand(steps=2.5), "steps must be a whole number, at least 1; got 2.5"),
    (by_hand(window=20), "the window must be at most the number of steps, 9; got 20"),
]


@pytest.mark.parametrize(("use", "sentence"), ROWS)
def test_it_is_refused_in_one_sentence_and_nothing_is_paid(use, sentence):
    paid.clear()
    with pytest.raises((ValueError, TypeError), match=sentence):
        use()
    assert paid == []


def off(by, accuracy=dyadic):
    return Hierarchy(lambda k, y: y + by(k), price, range(1, 7), accuracy)


def agree(by, accuracy):
    (bill := Bill(off(by, lambda k: accuracy))).values([1, 2], np.zeros(1))
    return not bill.broken


def resumed(x):
    with TemporaryDirectory() as folder:
        for start in (Y, Y * (1 + x)):
            PLAN.run(H, start, rng=0, checkpoint=f"{folder}/a")


NINE, TRUTH = by_hand(telescope=Telescope(H, [1.0]), eta=1.0)(), ([Y[:1]], lambda y: y)
FINE = plan(PROBLEM, 1, on=H)
KNOWN = replace(NINE, problem=PROBLEM)  # the distance to a minimizer
BORDERS = [  # a number, and what is done 0.95 of it away from the line, and not 1.05 of it
    (1e-12, lambda x: made(accuracy=lambda k: (1 + x) ** k)()),
    (1e-12, lambda x: H.level_for(2.0**-6 / (1 + x))),
    (1e-12, lambda x: PROBLEM.prices(2.0**-6 / (1 + x)).levels[-1] == 6),
    (1e-12, lambda x: plan(PROBLEM, 0.1, eta=0.25 * (1 + x))),
    (1e-12, lambda x: Adversary(0.125 * (1 + x), 1.0, 1.0, 2.0, 1.0)),
    (1e-12, lambda x: NINE.run(H, Y, max_cost=72 / (1 + x)).status == "ended"),
    (1e-9, lambda x: agree(lambda k: (-1) ** k * 0.5 * (1 + x), 0.5)),
    (1e-14, lambda x: agree(lambda k: 1 + k * x, 1e-300)),
    (
        1e-9,
        lambda x: (
            audit(off(lambda k: dyadic(k) * (1 + x), dyadic), *TRUTH).warnings == ()
        ),
    ),
    (
        1e-9,
        lambda x: (
            audit(off(lambda k: 2.0 ** -(k + x)), *TRUTH).problem(beta=1, d0=1).first < 2
        ),
    ),
    (
        1e-3,
        lambda x: run(
            h=off(price, lambda k: 2.0**-k * (1 + x)), how=plan(PROBLEM, 1, on=H)
        )(),
    ),
    (1e-6, resumed),
    (2e8, lambda x: NINE.run(off(lambda k: x), Y[:1]).status == "ended"),
    (2e8, lambda x: KNOWN.run(off(lambda k: x), 9 * Y[:1]).status == "ended"),
]


@pytest.mark.parametrize(("number", "use"), BORDERS)
def test_so_much_is_forgiven_and_no_more(number, use):
    def allowed(x):
        try:
            return use(x) is not False
        except ValueError:
            return False

    assert (allowed(0.95 * number), allowed(1.05 * number)) == (True, False)
