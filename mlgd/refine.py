"""From coarse to fine, stage by stage: the deterministic rival, and two methods for errors that vary slowly with y (ours).

'refine': a solver on a coarse level, then on finer ones, each from where the one before ended. 'anchored': epochs of descent with the
anchored telescope. 'corrected': a coarse level tilted by one fine gradient is solved, and again. The last two pay for fine levels at
a few points only. What they cost depends on how fast increments change, so they need a report of `audit` that calls the errors
smooth; a promise 'proved' or 'quadratic' then holds if no increment changes faster than measured.
"""

import math
from collections.abc import Callable, Iterable
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


def coarse_to_fine(problem: Problem, eps: float, method: str, on, promise: str) -> Plan:
    """The cheapest plan of one of the three methods."""
    ladder = Ladder.of(on)
    if method == "refine":
        if promise == "proved":
            raise NotApplicable("'refine' is planned with promise='quadratic' or 'measured'")
        return (_worst if promise == "quadratic" else _solved)(problem, eps, ladder)
    kind = getattr(on, "regularity", None)
    if kind != "smooth":
        raise NotApplicable(
            f"{method!r} needs to know how fast errors change with y: give on=report, of audit(h, points)"
            if kind is None
            else "the errors are rough: what is paid at one point says nothing about the next"
            if kind == "rough"
            else "the audit can't tell how fast errors change with y: give it three points or more, near and far"
        )
    if not problem.mu > 0 and promise != "measured":
        raise NotApplicable(f"{method!r} needs strong convexity: give the problem a mu > 0, or promise='measured'")
    if not np.isfinite(ladder.change[1:]).all():
        raise NotApplicable(
            "the audit measured no change of the increments at some level: audit all levels at all points"
        )
    if method == "corrected":
        if promise != "measured":
            raise NotApplicable("'corrected' is planned with promise='measured' only")
        return _corrected(problem, eps, ladder)
    return (_measured if promise == "measured" else _promised)(problem, eps, ladder, promise)


# --- 'refine' by the worst case over quadratics ------------------------------------------------------------------------


def nesterov_responses(beta: float, mu: float, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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


def _worst(problem: Problem, eps: float, ladder: Ladder) -> Plan:
    """sqrt(2 loss) <= max sqrt(lambda) |P| d0 + sum over levels of delta_k S |P_n|^(levels after k), errors of any kind."""
    if not problem.mu:
        raise NotApplicable("'refine' with promise='quadratic' needs mu > 0")
    delta, cost, d0 = ladder.accuracy, ladder.cost, problem.d0
    most = math.ceil(math.sqrt(problem.beta / problem.mu) * (2 + math.log1p(problem.beta * d0**2 / eps))) + 4
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
                best, found = float(price), (first, [counts[m]] + [n] * (finest - first), start[m], bound[m])
    if found is None:
        raise ladder.refuse(eps, "quadratic", delta[-1] ** 2 / (2 * problem.mu))
    first, counts, start, bound = found
    stages = [ladder.stage(n, (first + i,), (1.0,), solver="nesterov") for i, n in enumerate(counts)]
    horizon, bias = float(start) ** 2 / 2, float(bound - start) ** 2 / 2
    said = "Nesterov's method coarse to fine, the worst case over spectra in [mu, beta]"
    known = {"eta": 1 / problem.beta, "averaging": "last", "expected_cost": best, "guarantee": said}
    budget = Budget(horizon, bias, 0.0, float(bound) ** 2 / 2 - horizon - bias)
    return ladder.plan(problem, eps, "refine", "quadratic", stages, budget=budget, **known)


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
    said = "the theorem on anchored descent" if s.averaged else "the worst case over spectra in [mu, beta]"
    growth = (1 - s.h * last.theta) / (1 - s.h) if s.averaged and s.h < 1 else 1.0
    said = {"growth": growth, "guarantee": f"{said}, if increments change no faster than measured"}
    return _anchored(problem, s, ladder, promise, epochs, eta=s.eta, budget=budget, **said)


def _setting(problem: Problem, eps: float, ladder: Ladder, mu: float = 0.0) -> Setting:
    known = ladder.cost, ladder.accuracy, ladder.change, ladder.shared
    return Setting(problem.beta, max(problem.mu, mu), problem.d0, eps, *known)


def _anchored(problem, s: Setting, ladder: Ladder, promise: str, epochs: Iterable[Epoch], **said) -> Plan:
    sigma = 2 * math.sqrt(s.mu / s.eta)  # at the distance that the theorem allows
    stages = [ladder.stage(e.steps, e.levels, e.probabilities, sigma * e.radius * math.sqrt(e.noise)) for e in epochs]
    price = float(sum(epoch_price(ladder.h, e.levels, e.probabilities, e.steps) for e in stages))
    said |= {"averaging": "exponential" if promise == "proved" else "last", "expected_cost": price, "cost_bound": None}
    return ladder.plan(problem, s.eps, "anchored", promise, stages, **said)


# --- by what was measured of this instance ---------------------------------------------------------------------------


def _rising(seen: Seen, rises: Iterable, options: Iterable, stage: Callable):
    """(price, stages, option, finest level) of the cheapest way up, None if there is none.

    stage(measure, finest, base, last, *option) -> price, what to run, and the measure that the next stage starts with;
    None where its goal is out of reach.
    """
    best = None
    for (rise, base), option in product(rises, options):
        measure, price, stages = seen.start, 0.0, []
        for finest in rise:
            made = stage(measure, finest, base, len(stages) == len(rise) - 1, *option)
            price += made[0] if made else math.inf
            if (best and price >= best[0]) or not made:
                break
            measure = made[2]
            stages.append(made[1])
        else:
            best = price, stages, option, finest
    return best


def _ladders(floors: np.ndarray, eps: float) -> list[tuple[tuple[int, ...], int]]:
    """(levels of the references, base): the finest good enough, or the one after; rising by one to four levels at a time."""
    out = []
    for finest in np.flatnonzero(floors < eps)[:2].tolist():
        for base in range(max(1, finest)):
            seen = set()
            for gap in (1, 2, 3, 4):
                ladder = tuple(range(finest, base, -gap))[::-1] or (finest,)
                seen |= {ladder[-n:] for n in range(1, len(ladder) + 1)} | {(*ladder, finest)}
            out += [(ladder, base) for ladder in sorted(seen)]
    return out


def _conjugate(measure: Measure, goal: float) -> tuple[int, float]:
    """(steps, gradient norm reached) of conjugate gradients until the loss above the minimum is at most `goal`."""
    shape, size = measure
    loss, norm = shape.curve
    steps = int(np.argmax(loss * size <= goal)) if loss[-1] * size <= goal else loss.size - 1
    return steps, float(norm[steps]) * math.sqrt(size)


def _solved(problem: Problem, eps: float, ladder: Ladder) -> Plan:
    """Conjugate gradients on the measured quadratures, times what a quasi-Newton method takes more."""
    seen, known = Seen.of(problem, ladder), problem.measures
    change, least = ladder.change[np.array(ladder.h.levels) > known.level].sum(), known.gradient.nodes.min()
    if change > least:
        raise NotApplicable(
            f"levels after {known.level} change the curvature by {change:.2g}, more than the smallest eigenvalue that was "
            f"seen, {least:.2g}: 'refine' can't be planned by that level's; let estimate measure a finer one (budget=)"
        )
    floors = seen.floors

    def stage(measure, finest, base, last, patience):
        n, norm = _conjugate(measure, eps - floors[finest] if last else patience * floors[finest])
        solver = {
            "solver": "quasi-newton",
            "tolerance": norm,
        }  # the cap is seldom needed: a stage ends at its tolerance
        made = ladder.stage(2 * n + 2, (finest,), (1.0,), **solver)
        return (OVER_CONJUGATE * n + 1) * ladder.cost[finest], made, seen.steps[min(finest + 1, floors.size - 1)]

    rises = [(range(j, k + 1), 0) for k in np.flatnonzero(floors < eps)[:4] for j in range(k + 1)]
    found = _rising(seen, rises, ((0.3,), (1.0,), (3.0,)), stage)
    said = "conjugate gradients on the measured spectrum, coarse to fine"
    return _as_measured(problem, eps, "refine", ladder, floors, found, said)


def _as_measured(problem: Problem, eps: float, method: str, ladder: Ladder, floors, found, said: str, **more) -> Plan:
    """The plan of a deterministic method."""
    if found is None:
        raise ladder.refuse(eps, "measured", float(floors[-1]))
    price, stages, _, finest = found
    budget = Budget(eps - float(floors[finest]), float(floors[finest]), 0.0)
    more |= {"eta": 1 / problem.beta, "averaging": "last", "expected_cost": float(price)}
    return ladder.plan(problem, eps, method, "measured", stages, budget=budget, guarantee=said, **more)


def _corrected(problem: Problem, eps: float, ladder: Ladder) -> Plan:
    """After a correction at distance R there is left the bias of the fine level and the change of the increments over R."""
    seen = Seen.of(problem, ladder)
    floors = seen.floors
    between = np.cumsum(np.append(0.0, ladder.change[1:]))  # Lipschitz constant of A_j - A_i: between[j] - between[i]

    def stage(measure, finest, base, last, patience):
        shape, size = seen.biases[finest]
        missed = (
            (between[finest] - between[base]) ** 2 * measure[1] * measure[0].integral(-2)
        )  # by the tilt, squared norm
        aim = (1 + missed / size) * floors[finest]
        goal = patience * (eps - aim if last else aim)
        if goal <= 0:
            return None
        count, norm = _conjugate(measure, goal)
        evaluations = math.ceil(OVER_CONJUGATE * count + 1)
        made = ladder.stage(evaluations, (base, finest), (1.0, 1.0), solver="quasi-newton", tolerance=norm)
        return ladder.cost[finest] + evaluations * ladder.cost[base], made, (shape, (size + missed) * (1 + patience))

    # where no level is coarser than the only one that is needed there is nothing to correct
    rises = [(rise, base) for rise, base in _ladders(floors, eps) if rise[0] > base]
    found = _rising(seen, rises, ((0.1,), (0.5,)), stage)
    said = "conjugate gradients on the measured spectrum, increments changing as measured"
    return _as_measured(problem, eps, "corrected", ladder, floors, found, said, cost_bound=None)


def _measured(problem: Problem, eps: float, ladder: Ladder, promise: str) -> Plan:
    """Each epoch starts near the zero of the level before, and its error spreads as that level's bias was measured to."""
    seen = Seen.of(problem, ladder)
    s, floors = _setting(problem, eps, ladder, float(seen.start[0].nodes.min())), seen.floors

    def stage(measure, finest, base, last, factor, share, far):
        left = s.eps - floors[finest] if last else far * floors[finest]
        if left <= 0:
            return None
        (start, mass), (shape, size), eta = measure, seen.biases[finest], factor / s.beta
        radius = math.sqrt(mass * start.integral(-2))
        rate, weights = np.abs(1 - eta * start.nodes), mass * start.weights / start.nodes / 2
        steps = int(fewest(lambda t: weights @ rate ** (2 * t), share * left))
        gain = float(shape.weights @ (1 / (2 - eta * shape.nodes))) / 2  # loss per eta times the variance of a call
        variance = (1 - share) * left / (eta * gain * radius**2)
        epoch = Epoch(radius, finest, steps, variance * s.eta / s.mu)
        price = s.price[finest] + steps * call_prices(s, finest, variance)[0]
        return price, epoch, (shape, size * (1 + far))

    rises = [(rise, base) for rise, base in _ladders(floors, eps) if not base]  # a call's base is chosen by its price
    found = _rising(seen, rises, product(STEPS, SHARES, (0.3, 1.0)), stage)
    if found is None:
        raise ladder.refuse(eps, promise, float(floors[-1]))
    _, epochs, (factor, share, _), finest = found
    floor = float(floors[finest])
    budget = Budget(share * (eps - floor), floor, (1 - share) * (eps - floor))
    said = "descent on the measured spectrum, increments changing as measured"
    made = [with_levels(s, e) for e in epochs]
    return _anchored(problem, s, ladder, promise, made, eta=factor / s.beta, budget=budget, guarantee=said)
