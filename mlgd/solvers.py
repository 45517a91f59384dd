"""Solvers on one level, from gradients alone: L-BFGS that keeps its pairs, and rough constants.

Without a loss a line search looks at slopes. `f` is any gradient: None outside of its domain.
"""

import math
from typing import NamedTuple

import numpy as np

from .curvature import Curvature, Gradient, dot, norm, spectrum_around
from .hierarchy import Hierarchy, OutOfDomain, begins, ladder, taken

# of the first slope: a step ends above -0.9 and not above 0.8 of it
STEEP, PAST = (
    0.9,
    0.8,
)
TRIES = 14  # evaluations in one line search
FURTHER = (
    2  # times that a search with curvature known goes further; no minimizer is beyond
)
FIRST_STEP = 1e-2  # of the point's length, or of that


def advance(
    f: Gradient, x: np.ndarray, g: np.ndarray, curvature: Curvature
) -> tuple[np.ndarray, np.ndarray] | None:
    """One step of L-BFGS: the point and its gradient; None where no step helps.

    Where pairs mislead they are dropped, and the way is straight down, as far as the last step was.
    """
    if curvature.pairs:
        length = norm(curvature.pairs[-1].step)
        found = search(f, x, g, -curvature.solve(g), FURTHER)
        if found is not None:
            return moved(x, g, *found, curvature)
    else:
        length = FIRST_STEP * max(norm(x), FIRST_STEP)
    down = -g * (length / (norm(g) or 1.0))
    found = search(f, x, g, down, TRIES)
    if found is None:
        return None
    curvature.forget()
    return moved(x, g, *found, curvature)


def moved(x, g, step: np.ndarray, there: np.ndarray, curvature: Curvature):
    """The point after a step, and its gradient; what they tell of the curvature is kept."""
    curvature.learn(step, there - g)
    return x + step, there


def search(f: Gradient, x: np.ndarray, g: np.ndarray, d: np.ndarray, further: int):
    """A step along d and the gradient there, or None where the slope can't be made smaller.

    A trial is taken when its slope lies between -0.9 and 0.8 of the first one's size (Hager and
    Zhang's approximate Wolfe condition: a decrease on quadratics); else the zero of the slope is
    bracketed, at most ten times further out each time, and ever more after eight.
    """
    slope = dot(g, d)
    if slope >= 0:
        return None
    t, low, high = 1.0, (0.0, slope), None
    for n in range(TRIES):
        there = f(x + t * d)
        end = math.inf if there is None else dot(there, d)
        near_border = high is not None and math.isinf(high[1]) and 0.3 * high[0] < t
        if STEEP * slope <= end <= -PAST * slope or (end < 0 and near_border):
            return t * d, there
        if end < 0:
            low = (t, end)
        else:
            high = (t, end)
        if high is not None:
            t = between(low, high)
            continue
        further -= 1
        if further < 0:
            return None
        rise = end - slope
        most = t * 10 ** max(1, n - 7)
        t = min(-t * slope / rise, most) if rise > 0 else most
    return None


def between(low: tuple[float, float], high: tuple[float, float]) -> float:
    """Where the slope is zero by a straight line, not too near to either end of the bracket."""
    gap = high[0] - low[0]
    if math.isinf(high[1]):  # outside of the domain
        zero = gap / 4
    else:
        zero = gap * low[1] / (low[1] - high[1])
    return low[0] + min(max(zero, 0.1 * gap), 0.9 * gap)


class Constants(NamedTuple):
    """What a plan needs, roughly, and what measuring it took."""

    beta: float
    mu: float
    d0: float
    took: str


def constants(h: Hierarchy, y0: np.ndarray) -> Constants:
    """beta, mu and `|y0 - y*|`, roughly: L-BFGS on the coarsest level, then Lanczos where it ends.

    mu is 0 where the smallest eigenvalue seen is not told from that.

    >>> h = Hierarchy(lambda k, y: np.arange(1.0, 5.0) * (y - 1), lambda k: 8.0**k, range(4))
    >>> found = constants(h, np.zeros(4))
    >>> [round(v, 2) for v in found[:3]], found.took
    ([4.0, 1.0, 2.0], 'level 0, 17 evaluations, price 17')
    """
    k = ladder(h).levels[0]
    start = begins(h.point(y0))
    calls = 1

    def level(z: np.ndarray) -> np.ndarray | None:
        nonlocal calls
        calls += 1
        try:
            return taken(h.evaluate, k, z, squared=True)
        except OutOfDomain:
            return None

    y, g, known = start, taken(h.evaluate, k, start, squared=True), Curvature()
    small = 1e-3 * norm(g)
    while norm(g) > small and calls < 200:
        found = advance(level, y, g, known)
        if found is None:
            break
        y, g = found
    d0 = norm(y - start)
    if not d0:
        raise ValueError(
            f"level {k} does not move from y0: its gradient is zero or constant"
        )
    rng = np.random.default_rng(0)
    seen = spectrum_around(level, y, g, rng.standard_normal(y.shape), d0, 60, rng)
    mu = float(seen.nodes[0]) if seen.nodes[0] > seen.unresolved else 0.0
    took = f"level {k}, {calls} evaluations, price {calls * h.cost(k):g}"
    return Constants(float(seen.nodes[-1]), mu, d0, took)
