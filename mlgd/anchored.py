"""Methods for errors that vary slowly with y (ours, not the paper's): how they are planned on a ladder.

'anchored': epochs of descent with the anchored telescope. 'corrected': a coarse level tilted by one fine gradient is solved, and again.
Both pay for fine levels at a few points only. What they cost depends on how fast increments change, so they need a report of
`audit` that calls the errors smooth; a promise 'proved' or 'quadratic' then holds if no increment changes faster than measured.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .epochs import Calls, Epoch, Setting, cheapest, with_levels
from .refine import OVER_CONJUGATE, bias_losses, conjugate_steps
from .schemes import Budget, NotApplicable, Plan, Problem
from .searching import Ladder
from .seen import Seen

STEPS = (1.0, 1.6)  # times 1/beta, where a plan rests on measurements
SHARES = (0.1, 0.3, 0.6)  # of what the bias leaves, given to the horizon


def planned(problem: Problem, eps: float, method: str, on, promise: str) -> Plan:
    """The cheapest plan of one of the two methods, on the report of an audit."""
    kind = getattr(on, "regularity", None)
    if kind is None:
        raise NotApplicable(
            f"{method!r} needs to know how fast errors change with y: give on=report, of audit(h, points)"
        )
    if kind != "smooth":
        raise NotApplicable(
            "the errors are rough: what is paid at one point says nothing about the next"
            if kind == "rough"
            else "the audit can't tell how fast errors change with y: give it three points or more, near and far"
        )
    if not problem.mu > 0 and promise != "measured":
        raise NotApplicable(f"{method!r} needs strong convexity: give the problem a mu > 0, or promise='measured'")
    ladder = Ladder.of(on)
    if not np.isfinite(ladder.change[1:]).all():
        raise NotApplicable(
            "the audit measured no change of the increments at some level: audit all levels at all points"
        )
    s = Setting(problem.beta, problem.mu, problem.d0, eps, ladder.cost, ladder.accuracy, ladder.change, ladder.shared)
    if promise == "measured":
        seen = Seen.of(problem, ladder)
        s = replace(s, mu=max(s.mu, float(seen.start[0].min())))
        return (_corrected if method == "corrected" else _measured)(problem, s, ladder, seen)
    if method == "corrected":
        raise NotApplicable("'corrected' is planned with promise='measured' only")
    return _promised(problem, replace(s, averaged=promise == "proved"), ladder, promise)


def _promised(problem: Problem, s: Setting, ladder: Ladder, promise: str) -> Plan:
    """By the theorem of the chapter on anchored descent, or its sharper form for quadratics."""
    epochs = cheapest(s)
    if epochs is None:
        raise ladder.refuse(s.eps, promise, float(s.accuracy[-1] ** 2 / (2 * s.mu)))
    last = epochs[-1]
    delta = float(s.accuracy[last.finest])
    if s.averaged:
        bias, noise = delta**2 / (2 * s.mu * last.theta), 4 * last.noise * s.mu * last.radius**2
        budget = Budget(last.reached - bias - noise, bias, noise)
    else:
        bias, noise = delta**2 / (2 * s.mu), 2 * last.noise * s.mu * last.radius**2 * s.turning
        horizon = (math.sqrt(last.reached) - math.sqrt(bias) - math.sqrt(noise)) ** 2
        budget = Budget(horizon, bias, noise, last.reached - horizon - bias - noise)
    said = "the theorem on anchored descent" if s.averaged else "the worst case over spectra in [mu, beta]"
    growth = (1 - s.h * last.theta) / (1 - s.h) if s.averaged and s.h < 1 else 1.0
    return _plan(
        problem, s, ladder, promise, epochs, budget, f"{said}, if increments change no faster than measured", growth
    )


def _plan(problem, s: Setting, ladder: Ladder, promise, epochs, budget, said, growth=1.0, eta=None) -> Plan:
    stages = []
    for e in epochs:
        sigma = 2 * e.radius * math.sqrt(e.noise * s.mu / s.eta)  # at the distance that the theorem allows
        stages.append(ladder.stage(e.steps, e.levels, e.probabilities, sigma))
    average = {"averaging": "exponential" if promise == "proved" else "last", "growth": growth, "budget": budget}
    eta = s.eta if eta is None else eta
    return ladder.plan(problem, s.eps, "anchored", promise, stages, eta=eta, guarantee=said, **average)


# --- by what was measured of this instance ---------------------------------------------------------------------------


def _ladders(s: Setting, floors: np.ndarray) -> Iterator[tuple[tuple[int, ...], int]]:
    """(levels of the references, base): the finest good enough, or the one after; rising by one to four levels at a time."""
    good = np.flatnonzero(floors < s.eps)
    for finest in good[:2].tolist():
        for base in range(max(1, finest)):
            seen = set()
            for gap in (1, 2, 3, 4):
                ladder = tuple(range(finest, base, -gap))[::-1] or (finest,)
                seen |= {ladder[-n:] for n in range(1, len(ladder) + 1)} | {(*ladder, finest)}
            for ladder in sorted(seen):
                yield ladder, base


def _measured(problem: Problem, s: Setting, ladder: Ladder, seen: Seen) -> Plan:
    """Each epoch starts near the zero of the level before, and its error spreads as that level's bias was measured to."""
    floors = np.array(bias_losses(seen))
    calls, best, found = Calls(s), math.inf, None
    for rise, base in _ladders(s, floors):
        if base:  # the base of a call is chosen by its price
            continue
        for factor, share, far in ((f, a, b) for f in STEPS for a in SHARES for b in (0.3, 1.0)):
            eta, (nodes, weights), epochs, price = factor / s.beta, seen.start, [], 0.0
            for i, finest in enumerate(rise):
                last = i == len(rise) - 1
                goal = s.eps if last else (1 + far) * floors[finest]
                left = goal - floors[finest]
                if last and left <= 0:
                    price = math.inf
                    break
                radius = math.sqrt(float((weights / nodes**2).sum()))
                steps = _descent_steps(nodes, weights, eta, share * left)
                x, w = seen.biases[finest]
                gain = float((w / (2 - eta * x)).sum() / w.sum()) / 2  # loss per eta times the variance of a call
                variance = (1 - share) * left / (eta * gain * radius**2)
                epochs.append(Epoch(radius, finest, steps, variance * s.eta / s.mu, reached=goal))
                price += s.price[finest] + steps * calls(finest, variance)
                nodes, weights = x, w * (1 + far)
                if price >= best:
                    break
            if price < best:
                best, found = price, (epochs, eta, floors[rise[-1]], share)
    if found is None:
        raise ladder.refuse(s.eps, "measured", float(floors[-1]))
    epochs, eta, floor, share = found
    left = s.eps - floor
    budget = Budget(share * left, floor, (1 - share) * left)
    said = "descent on the measured spectrum, increments changing as measured"
    return _plan(problem, s, ladder, "measured", [with_levels(s, e) for e in epochs], budget, said, eta=eta)


def _descent_steps(nodes, weights, eta, goal) -> int:
    """Steps of descent until the loss is at most `goal`: half the integral of (1 - eta lambda)^(2t)/lambda."""

    def loss(t):
        return float((weights / nodes * np.abs(1 - eta * nodes) ** (2 * t)).sum()) / 2

    high = 1
    while loss(high) > goal and high < 1e9:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if loss(middle) <= goal else (middle, high)
    return high


def _corrected(problem: Problem, s: Setting, ladder: Ladder, seen: Seen) -> Plan:
    """After a correction at distance R there is left the bias of the fine level and the change of the increments over R."""
    floors = np.array(bias_losses(seen))
    between = np.cumsum(np.append(0.0, s.change[1:]))  # Lipschitz constant of A_j - A_i: between[j] - between[i]
    best, found = math.inf, None
    for rise, base in _ladders(s, floors):
        if rise[0] == base:  # no level is coarser than the only one that is needed
            continue
        for patience in (0.1, 0.5):
            (nodes, weights), price, stages, loss = seen.start, 0.0, [], math.inf
            for i, finest in enumerate(rise):
                x, w = seen.biases[finest]
                size = float(w.sum())
                far = math.sqrt(float((weights / nodes**2).sum()))
                left = ((between[finest] - between[base]) * far) ** 2  # squared norm of what the tilt misses
                aim = (1 + left / size) * floors[finest]
                goal = patience * (s.eps - aim if i == len(rise) - 1 else aim)
                if goal <= 0:
                    price = math.inf
                    break
                count, norm = conjugate_steps(nodes, weights, goal)
                evaluations = math.ceil(OVER_CONJUGATE * count + 1)
                price += s.price[finest] + evaluations * s.price[base]
                stages.append((base, finest, evaluations, norm))
                loss = aim + goal
                nodes, weights = x, w * (1 + left / size) * (1 + patience)
                if price >= best:
                    break
            if price < best and loss <= s.eps:
                best, found = price, (stages, floors[rise[-1]])
    if found is None:
        raise ladder.refuse(s.eps, "measured", float(floors[-1]))
    stages = [
        ladder.stage(n, (coarse, fine), (1.0, 1.0), solver="quasi-newton", tolerance=norm)
        for coarse, fine, n, norm in found[0]
    ]
    said = "conjugate gradients on the measured spectrum, increments changing as measured"
    average = {"averaging": "last", "budget": Budget(s.eps - found[1], found[1], 0.0), "guarantee": said}
    return ladder.plan(problem, s.eps, "corrected", "measured", stages, eta=s.eta, **average)
