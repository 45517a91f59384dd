"""Deterministic solvers on one level, from gradients alone: Nesterov's method and a quasi-Newton method.

A level is a gradient without a loss, so that a line search can look at slopes only. Both are generators that yield after
every evaluation and keep all that they need to go on in `memory` (its `y` is the point reached): a run that was killed
goes on in the middle of a line search. `gradient` is any function: a level, or a level tilted by a correction.
"""

import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import numpy as np

Gradient = Callable[[np.ndarray], np.ndarray]
PAIRS = 10  # curvature pairs kept; forty save a few per cent of the evaluations
STEEP, PAST = (
    0.9,
    0.8,
)  # a step is taken when the slope along it rose above -0.9 and not above 0.8 of the first one
TRIES = 20  # evaluations in one line search


def nesterov(
    gradient: Gradient, memory: SimpleNamespace, steps: int, beta: float, mu: float = 0.0
) -> Iterator[None]:
    """x' = z - g(z)/beta, z' = x' + m (x' - x), with m = (sqrt(kappa)-1)/(sqrt(kappa)+1), or t/(t+3) when mu = 0.

    Loss at most (1 - 1/sqrt(kappa))^t times the starting loss and mu/2 |y0 - y*|^2, or 2 beta |y0 - y*|^2/(t+1)^2.
    """
    if not hasattr(memory, "z"):
        memory.z, memory.t = memory.y, 0
    ratio = math.sqrt(mu / beta)
    while memory.t < steps:
        x = memory.z - gradient(memory.z) / beta
        momentum = (1 - ratio) / (1 + ratio) if mu else memory.t / (memory.t + 3)
        memory.z = x + momentum * (x - memory.y)
        memory.y, memory.t = x, memory.t + 1
        yield


def quasi_newton(
    gradient: Gradient,
    memory: SimpleNamespace,
    steps: int,
    tolerance: float = 0.0,
    beta: float | None = None,
) -> Iterator[None]:
    """L-BFGS with a line search on the slope, until |gradient| <= tolerance or `steps` evaluations were made.

    A trial step is taken when its slope lies between -0.9 and 0.8 of the first slope's size (Hager and Zhang's
    approximate Wolfe condition: a decrease on quadratics), else the zero of the slope is bracketed. Where a slope can't be
    made smaller, as at the accuracy of a level, the pairs are dropped once and then the search ends. The first step is
    1/beta, or 1/|gradient| where beta is not known. `memory.norm` is the gradient's norm at memory.y.
    """
    if not hasattr(memory, "search"):
        memory.norm, memory.t, memory.ended = math.inf, 0, ""
        memory.search = SimpleNamespace(
            g=None, pairs=[], direction=np.zeros_like(memory.y), slope=0.0, trial=0.0
        )
        memory.search.low, memory.search.high, memory.search.tries = [], [], 0
    s = memory.search
    while memory.t < steps and not memory.ended:
        point = memory.y if s.g is None else memory.y + s.trial * s.direction
        g = gradient(point)
        memory.t, s.tries, norm = memory.t + 1, s.tries + 1, float(np.linalg.norm(g))
        slope = float(np.vdot(g, s.direction))
        enough = norm <= tolerance or -STEEP * abs(s.slope) <= slope <= PAST * abs(
            s.slope
        )  # zeros the first time
        if enough or (s.tries >= TRIES and norm < memory.norm):
            if s.g is None:
                s.trial = 1 / beta if beta else 1 / max(norm, 1e-300)
            else:
                step, change = point - memory.y, g - s.g
                curvature = float(np.vdot(step, change))
                if curvature > 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
                    s.pairs = [*s.pairs[1 - PAIRS :], (step, change, curvature)]
            s.g, memory.y, memory.norm = g, point, norm
            memory.ended = "converged" if norm <= tolerance else ""
            _aim(s, s.trial)
        elif s.tries >= TRIES:
            memory.ended, s.pairs = "" if s.pairs else "stalled", []
            _aim(s, 1 / beta if beta else 1 / max(memory.norm, 1e-300))
        else:
            s.low, s.high = ([s.trial, slope], s.high) if slope < 0 else (s.low, [s.trial, slope])
            s.trial = _next_trial(s)
        yield


def _next_trial(s) -> float:
    """Where the slope should vanish: by the secant, well inside the bracket, or at most ten times further out."""
    t, slope = s.low or [0.0, s.slope]
    if s.high:
        zero = t + (s.high[0] - t) * slope / (slope - s.high[1])
        margin = 0.1 * (s.high[0] - t)
        return min(max(zero, t + margin), s.high[0] - margin)
    rise = slope - s.slope  # from the start to t
    return min(max(t * s.slope / -rise, 2 * t), 10 * t) if rise > 0 else 10 * t


def _aim(s, first: float) -> None:
    """The direction -H g of the pairs (two loops), and the first trial step along it."""
    q, weights = s.g.copy(), []
    for step, change, curvature in reversed(s.pairs):
        weights.append(float(np.vdot(step, q)) / curvature)
        q -= weights[-1] * change
    if s.pairs:
        step, change, curvature = s.pairs[-1]
        q *= curvature / float(np.vdot(change, change))
        for (step, change, curvature), a in zip(s.pairs, reversed(weights), strict=True):
            q += (a - float(np.vdot(change, q)) / curvature) * step
    s.direction, s.trial = -q, 1.0 if s.pairs else first
    s.slope = -float(np.vdot(s.g, q))
    s.low, s.high, s.tries = [], [], 0
