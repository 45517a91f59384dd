"""From coarse to fine, stage by stage: the deterministic rival, and two methods for errors that vary slowly with y (ours).

'refine': a solver on a coarse level, then on finer ones, each from where the one before ended. 'anchored': epochs of descent with the
anchored telescope. 'corrected': a coarse level tilted by one fine gradient is solved, and again. The last two pay for fine levels at
a few points only. What they cost depends on how fast increments change, so they need a report of `audit` that calls the errors
smooth; a promise 'proved' or 'quadratic' then holds if no increment changes faster than measured.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from .anchors import epoch_price
from .epochs import Epoch, Setting, call_prices, cheapest, fewest, with_levels
from .schemes import Budget, NotApplicable, Plan, Problem
from .searching import Ladder
from .seen import Measure, Seen

OVER_CONJUGATE = 1.3  # evaluations of the library's quasi-Newton method over steps of conjugate gradients, as measured
EIGENVALUES = 96
STEPS = (1.0, 1.6)  # of 'anchored', times 1/beta, where a plan rests on measurements
SHARES = (0.1, 0.3, 0.6)  # of what the bias leaves, given to the horizon
NOT_SMOOTH = {
    None: "{!r} needs to know how fast errors change with y: give on=report, of audit(h, points)",
    "rough": "the errors are rough: what is paid at one point says nothing about the next",
    "unknown": "the audit can't tell how fast errors change with y: give it three points or more, near and far",
    "in part": "the audit measured no change of the increments at some level: audit all levels at all points",
}


def coarse_to_fine(problem: Problem, eps: float, method: str, on, promise: str) -> Plan:
    """The cheapest plan of one of the three methods."""
    ladder, kind = Ladder.of(on), getattr(on, "regularity", None)
    if method != "refine":
        if kind != "smooth" or not np.isfinite(ladder.change[1:]).all():
            raise NotApplicable(NOT_SMOOTH["in part" if kind == "smooth" else kind].format(method))
        if not problem.mu > 0 and promise != "measured":
            raise NotApplicable(
                f"{method!r} needs strong convexity: give the problem a mu > 0, or promise='measured'"
            )
    if promise == "measured":
        return _measured(problem, eps, ladder, method)
    if method == "corrected":
        raise NotApplicable("'corrected' is planned with promise='measured' only")
    if method == "refine" and promise == "proved":
        raise NotApplicable("'refine' is planned with promise='quadratic' or 'measured'")
    return (_worst if method == "refine" else _promised)(problem, eps, ladder, promise)


# --- 'refine' by the worst case over quadratics ------------------------------------------------------------------------


def nesterov_responses(
    beta: float, mu: float, steps: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(eigenvalues, factors P_n of the starting error, sums over the last n errors of the largest sqrt(lambda) |g|).

    The method is linear on a quadratic: x_n = P_n(lambda) x_0 - sum of g_j(lambda) e_{n-j}, the same g whenever the error is made.
    """
    lam = np.geomspace(mu, beta, EIGENVALUES) if mu < beta else np.array([beta])
    ratio = math.sqrt(mu / beta)
    momentum, shrink = (1 - ratio) / (1 + ratio), 1 - lam / beta
    x = z = np.ones(lam.size)  # from the start
    g, v = np.zeros(lam.size), np.full(lam.size, 1 / beta)  # from one error: g_1 = 1/beta
    factors, sizes = np.empty((steps, lam.size)), np.empty(steps)
    for n in range(steps):
        new = shrink * z
        x, z = new, new + momentum * (new - x)
        now = shrink * v if n else v
        g, v = now, now + momentum * (now - g)
        factors[n], sizes[n] = x, (np.sqrt(lam) * np.abs(g)).max()
    return lam, factors, np.cumsum(sizes)


def _worst(problem: Problem, eps: float, ladder: Ladder, promise: str) -> Plan:
    """sqrt(2 loss) <= max sqrt(lambda) |P| d0 + sum over levels of delta_k S |P_n|^(levels after k), errors of any kind."""
    if not problem.mu:
        raise NotApplicable("'refine' with promise='quadratic' needs mu > 0")
    delta, cost, d0 = ladder.accuracy, ladder.cost, problem.d0
    most = (
        math.ceil(
            math.sqrt(problem.beta / problem.mu) * (2 + math.log1p(problem.beta * d0**2 / eps))
        )
        + 4
    )
    lam, factors, sums = nesterov_responses(problem.beta, problem.mu, most)
    counts = np.unique(np.ceil(np.geomspace(1, most, 48)).astype(int))
    size, sums = np.abs(factors[counts - 1]), sums[counts - 1]
    best, found = math.inf, None
    for finest, first in ((k, j) for k in range(len(delta)) for j in range(k + 1)):
        later = slice(first + 1, finest + 1)
        for i, n in enumerate(counts if first < finest else counts[:1]):  # of every later stage
            largest = size[i].max()
            late = (delta[later] * largest ** np.arange(finest - first)[::-1]).sum() * sums[i]
            left = np.sqrt(lam) * size[i] ** (finest - first)
            start = (left * size).max(axis=1) * d0  # by the count of the first stage
            bound = start + delta[first] * largest ** (finest - first) * sums + late
            good = np.flatnonzero(bound <= math.sqrt(2 * eps))[:1]
            price = (counts[good] * cost[first] + n * cost[later].sum()).min(initial=math.inf)
            if price < best:
                m = good[0]
                best, found = (
                    float(price),
                    (first, [counts[m]] + [n] * (finest - first), start[m], bound[m]),
                )
    if found is None:
        raise ladder.refuse(eps, promise, delta[-1] ** 2 / (2 * problem.mu))
    first, counts, start, bound = found
    stages = [
        ladder.stage(n, (first + i,), (1.0,), solver="nesterov") for i, n in enumerate(counts)
    ]
    horizon, bias = float(start) ** 2 / 2, float(bound - start) ** 2 / 2
    said = "Nesterov's method coarse to fine, the worst case over spectra in [mu, beta]"
    known = {"eta": 1 / problem.beta, "averaging": "last", "expected_cost": best, "guarantee": said}
    budget = Budget(horizon, bias, 0.0, float(bound) ** 2 / 2 - horizon - bias)
    return ladder.plan(problem, eps, "refine", promise, stages, budget=budget, **known)


# --- 'anchored' by its theorem -----------------------------------------------------------------------------------------


def _promised(problem: Problem, eps: float, ladder: Ladder, promise: str) -> Plan:
    """By the theorem of the chapter on anchored descent, or its sharper form for quadratics."""
    s = replace(_setting(problem, eps, ladder), averaged=promise == "proved")
    epochs = cheapest(s)
    if epochs is None:
        raise ladder.refuse(eps, promise, float(s.accuracy[-1] ** 2 / (2 * s.mu)))
    last = epochs[-1]
    bias = float(s.accuracy[last.finest]) ** 2 / (2 * s.mu * last.theta)
    noise = last.noise * s.mu * last.radius**2 * (4 if s.averaged else 2 * s.turning)
    if s.averaged:
        budget = Budget(last.reached - bias - noise, bias, noise)
    else:
        horizon = (math.sqrt(last.reached) - math.sqrt(bias) - math.sqrt(noise)) ** 2
        budget = Budget(horizon, bias, noise, last.reached - horizon - bias - noise)
    said = (
        "the theorem on anchored descent"
        if s.averaged
        else "the worst case over spectra in [mu, beta]"
    )
    growth = (1 - s.h * last.theta) / (1 - s.h) if s.averaged and s.h < 1 else 1.0
    said = {"growth": growth, "guarantee": f"{said}, if increments change no faster than measured"}
    return _anchored(problem, s, ladder, promise, epochs, eta=s.eta, budget=budget, **said)


def _setting(problem: Problem, eps: float, ladder: Ladder, mu: float = 0.0) -> Setting:
    known = ladder.cost, ladder.accuracy, ladder.change, ladder.shared
    return Setting(problem.beta, max(problem.mu, mu), problem.d0, eps, *known)


def _anchored(
    problem, s: Setting, ladder: Ladder, promise: str, epochs: Iterable[Epoch], **said
) -> Plan:
    sigma = 2 * math.sqrt(s.mu / s.eta)  # at the distance that the theorem allows
    stages = [
        ladder.stage(e.steps, e.levels, e.probabilities, sigma * e.radius * math.sqrt(e.noise))
        for e in epochs
    ]
    price = float(sum(epoch_price(ladder.h, e.levels, e.probabilities, e.steps) for e in stages))
    said |= {
        "averaging": "exponential" if promise == "proved" else "last",
        "expected_cost": price,
        "cost_bound": None,
    }
    return ladder.plan(problem, s.eps, "anchored", promise, stages, **said)


# --- by what was measured of this instance ---------------------------------------------------------------------------


def _measured(problem: Problem, eps: float, ladder: Ladder, method: str) -> Plan:
    """The cheapest way up: each stage starts near the zero of the level before, and its error spreads as that level's bias."""
    seen, best, found, known = Seen.of(problem, ladder), math.inf, None, problem.measures
    change, least = (
        ladder.change[np.array(ladder.h.levels) > known.level].sum(),
        known.gradient.nodes.min(),
    )
    if method == "refine" and change > least:  # it is planned by the spectrum of one level
        raise NotApplicable(
            f"levels after {known.level} change the curvature by {change:.2g}, more than the smallest eigenvalue that was "
            f"seen, {least:.2g}: 'refine' can't be planned by that level's; let estimate measure a finer one (budget=)"
        )
    s = _setting(problem, eps, ladder, float(seen.start[0].nodes.min()))
    rises, options, stage = MEASURED[method]
    for (rise, base), option in product(rises(seen.floors, eps), options):
        measure, price, stages = seen.start, 0.0, []
        for i, finest in enumerate(rise):
            cost, made, measure = stage(s, seen, measure, finest, base, i == len(rise) - 1, *option)
            price += cost
            stages.append(made)
            if price >= best:
                break
        else:
            best, found = price, (stages, option, float(seen.floors[finest]))
    if found is None:
        raise ladder.refuse(eps, "measured", float(seen.floors[-1]))
    stages, option, floor = found
    solver = "descent" if method == "anchored" else "conjugate gradients"
    how = "coarse to fine" if method == "refine" else "increments changing as measured"
    known = {"eta": 1 / problem.beta, "budget": Budget(eps - floor, floor, 0.0)}
    known["guarantee"] = f"{solver} on the measured spectrum, {how}"
    if method != "anchored":
        bound = {} if method == "refine" else {"cost_bound": None}
        known |= {"averaging": "last", "expected_cost": float(best)}
        return ladder.plan(problem, eps, method, "measured", stages, **known, **bound)
    noise = (1 - option[1]) * (eps - floor)
    known |= {"eta": option[0] / problem.beta, "budget": Budget(eps - floor - noise, floor, noise)}
    return _anchored(problem, s, ladder, "measured", [with_levels(s, e) for e in stages], **known)


def _consecutive(floors: np.ndarray, eps: float):
    """(levels, base), the base not used: from any level to one of the first that are good enough, one by one."""
    return [
        (range(j, k + 1), 0)
        for k in np.flatnonzero(floors < eps)[:4].tolist()
        for j in range(k + 1)
    ]


def _ladders(floors: np.ndarray, eps: float) -> Iterator[tuple[tuple[int, ...], int]]:
    """(levels of the references, base): the finest good enough, or the one after; rising by one to four levels at a time."""
    for finest in np.flatnonzero(floors < eps)[:2].tolist():
        for base in range(max(1, finest)):
            seen = set()
            for gap in (1, 2, 3, 4):
                ladder = tuple(range(finest, base, -gap))[::-1] or (finest,)
                seen |= {ladder[-n:] for n in range(1, len(ladder) + 1)} | {(*ladder, finest)}
            yield from ((ladder, base) for ladder in sorted(seen))


def _solved(
    s: Setting, seen: Seen, measure: Measure, finest: int, base: int, last: bool, patience: float
):
    """Conjugate gradients on the measured quadratures, times what a quasi-Newton method takes more."""
    floor = seen.floors[finest]
    n, norm = _conjugate(measure, s.eps - floor if last else patience * floor)
    # the cap on the steps is seldom needed: a stage ends at its tolerance
    made = seen.ladder.stage(2 * n + 2, (finest,), (1.0,), solver="quasi-newton", tolerance=norm)
    return (
        (OVER_CONJUGATE * n + 1) * s.price[finest],
        made,
        seen.steps[min(finest + 1, len(seen.steps) - 1)],
    )


def _corrected(
    s: Setting, seen: Seen, measure: Measure, finest: int, base: int, last: bool, patience: float
):
    """After a correction at distance R there is left the bias of the fine level and the change of the increments over R."""
    (start, mass), (shape, size) = measure, seen.biases[finest]
    slope = s.change[base + 1 : finest + 1].sum()  # Lipschitz constant of what the tilt misses
    left = size + slope**2 * mass * start.integral(-2)
    aim = left / size * seen.floors[finest]
    goal = patience * (s.eps - aim if last else aim)
    if goal <= 0 or base == finest:  # out of reach, or nothing to correct
        return math.inf, None, measure
    count, norm = _conjugate(measure, goal)
    n = math.ceil(OVER_CONJUGATE * count + 1)
    made = seen.ladder.stage(n, (base, finest), (1.0, 1.0), solver="quasi-newton", tolerance=norm)
    return s.price[finest] + n * s.price[base], made, (shape, left * (1 + patience))


def _descended(
    s: Setting, seen: Seen, measure: Measure, finest: int, base: int, last: bool, factor, share, far
):
    """Descent on the measured spectrum; the base of a call is chosen by its price, so that one base is enough."""
    if base:
        return math.inf, None, measure
    (start, mass), (shape, size), floor = measure, seen.biases[finest], seen.floors[finest]
    left = s.eps - floor if last else far * floor
    eta, radius2 = factor / s.beta, mass * start.integral(-2)
    weights, rate = mass * start.weights / start.nodes / 2, np.abs(1 - eta * start.nodes)
    steps = int(fewest(lambda t: weights @ rate ** (2 * t), share * left))
    gain = (
        float(shape.weights @ (1 / (2 - eta * shape.nodes))) / 2
    )  # loss per eta times the variance of a call
    variance = (1 - share) * left / (eta * gain * radius2)
    price = (
        s.price[finest] + steps * call_prices(s, np.full((1, s.price.size), variance))[0, finest]
    )
    return (
        price,
        Epoch(math.sqrt(radius2), finest, steps, variance * s.eta / s.mu),
        (shape, size * (1 + far)),
    )


def _conjugate(measure: Measure, goal: float) -> tuple[int, float]:
    """(steps, gradient norm reached) of conjugate gradients until the loss above the minimum is at most `goal`."""
    shape, size = measure
    loss, norm = shape.curve
    steps = int(np.argmax(loss * size <= goal)) if loss[-1] * size <= goal else loss.size - 1
    return steps, float(norm[steps]) * math.sqrt(size)


MEASURED = {  # ways up, options of a stage, the stage
    "refine": (_consecutive, [(0.3,), (1.0,), (3.0,)], _solved),
    "corrected": (_ladders, [(0.1,), (0.5,)], _corrected),
    "anchored": (_ladders, list(product(STEPS, SHARES, (0.3, 1.0))), _descended),
}
