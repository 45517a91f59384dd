"""Solvers on one level, from gradients alone: L-BFGS that keeps its pairs; curvature by Lanczos.

Without a loss a line search looks at slopes. `f` is any gradient: None outside of its domain.
"""

import math
from collections import namedtuple
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .hierarchy import Hierarchy, OutOfDomain, ladder

Gradient = Callable[[np.ndarray], np.ndarray | None]
PAIRS = 150  # kept by L-BFGS
STEEP, PAST = 0.9, 0.8  # of the first slope: a step ends above -0.9 and not above 0.8 of it
TRIES = 14  # evaluations in one line search
FURTHER = 2  # times that a search with curvature known goes further; no minimizer is beyond
FEW = 3.0  # times the noise of one entry: eigenvalues below that are not told from zero
SAME = 3e-4  # of a difference: a bend that leaves less is none; a longer one hides flat directions


def norm(v: np.ndarray) -> float:
    return float(np.linalg.norm(v))


def dot(v: np.ndarray, w: np.ndarray) -> float:
    return float(np.vdot(v, w))


def inverse(pairs: list, v: np.ndarray) -> np.ndarray:
    """The inverse Hessian of L-BFGS times v; a pair is [step, change of the gradient, product]."""
    q, shares = v.copy(), []
    for step, change, product in reversed(pairs):
        shares.append(dot(step, q) / product)
        q -= shares[-1] * change
    if pairs:
        q *= pairs[-1][2] / dot(pairs[-1][1], pairs[-1][1])
    for (step, change, product), share in zip(pairs, reversed(shares), strict=True):
        q += (share - dot(change, q) / product) * step
    return q


def keep(pairs: list, step: np.ndarray, change: np.ndarray) -> None:
    """Keep a pair if its curvature is positive, and forget the oldest."""
    product = dot(step, change)
    if product > 1e-10 * norm(step) * norm(change):
        pairs.append([step, change, product])
        del pairs[:-PAIRS]


def advance(f: Gradient, x: np.ndarray, g: np.ndarray, pairs: list):
    """One step of L-BFGS: the point and its gradient; None where no step helps.

    Where pairs mislead they are dropped, and the way is straight down, as far as the last step was.
    """
    length = norm(pairs[-1][0]) if pairs else 1e-2 * max(norm(x), 1e-2)
    for known in (pairs, []) if pairs else ([],):
        d = -inverse(pairs, g) if known else -g * (length / (norm(g) or 1.0))
        found = search(f, x, g, d, FURTHER if known else TRIES)
        if found is not None:
            if not known:
                pairs.clear()
            keep(pairs, found[0] * d, found[1] - g)
            return x + found[0] * d, found[1]
    return None


def search(f: Gradient, x: np.ndarray, g: np.ndarray, d: np.ndarray, further: int):
    """A step length along d and the gradient there, or None where the slope can't be made smaller.

    A trial is taken when its slope lies between -0.9 and 0.8 of the first one's size (Hager and
    Zhang's approximate Wolfe condition: a decrease on quadratics); else the zero of the slope is
    bracketed, at most ten times further out each time, and ever more after eight.
    """
    slope = dot(g, d)
    t, low, high = 1.0, (0.0, slope), None
    for n in range(TRIES if slope < 0 else 0):
        there = f(x + t * d)
        end = math.inf if there is None else dot(there, d)
        near_border = high is not None and math.isinf(high[1]) and 0.3 * high[0] < t
        if STEEP * slope <= end <= -PAST * slope or (end < 0 and near_border):
            return t, there
        low, high = ((t, end), high) if end < 0 else (low, (t, end))
        if high is None:
            further -= 1
            rise = end - slope
            most = t * 10 ** max(1, n - 7)
            t = min(-t * slope / rise, most) if rise > 0 else most
            if further < 0:
                return None
        else:
            gap = high[0] - low[0]
            zero = gap / 4 if math.isinf(high[1]) else gap * low[1] / (low[1] - high[1])
            t = low[0] + min(max(zero, 0.1 * gap), 0.9 * gap)
    return None


class Krylov(NamedTuple):
    """What products with a Hessian from v show: v^T F(H) v is the sum of weights times F(nodes).

    `ritz` has a unit vector per node; `noise` is an entry's root mean square error, seen where it
    is not symmetric. Differences were taken over `t`; `jump` is an error that is new at any point.
    """

    nodes: np.ndarray
    weights: np.ndarray
    ritz: np.ndarray
    noise: float
    t: float = 0.0
    jump: float = 0.0

    @property
    def unresolved(self) -> float:
        """What eigenvalues are off by: the noise, or as far as they are negative."""
        return max(FEW * self.noise, -float(self.nodes[0]))

    def pairs(self, least: float, shape: tuple[int, ...]) -> list:
        """The same as pairs of L-BFGS, eigenvalues raised to `least`."""
        found = zip(self.ritz, np.maximum(self.nodes, least).tolist(), strict=True)
        return [[z.reshape(shape), (bent * z).reshape(shape), bent] for z, bent in found]


def lanczos(product: Gradient, v: np.ndarray, steps: int, tolerance: float = 0.0) -> Krylov | None:
    """At most `steps` products from v, each direction orthogonal to all before; None without one.

    It ends where the space is exhausted, or where the last fifth of the products moved
    v^T H^-1 v, eigenvalues raised to what is resolved, by less than `tolerance`.

    >>> found = lanczos(lambda u: np.array([1.0, 2.0, 4.0]) * u, np.ones(3), steps=9)
    >>> found.nodes.round(9), found.weights.round(9)
    (array([1., 2., 4.]), array([1., 1., 1.]))
    """
    whole, steps = norm(v), min(steps, v.size)
    basis, seen = np.full((steps, v.size), np.nan), np.zeros((steps + 1, steps))
    basis[0] = v / whole
    before, check = math.inf, 6
    for n in range(1, steps + 1):
        w = product(basis[n - 1])
        if w is None:
            return None
        seen[:n, n - 1] = basis[:n] @ w
        for _ in range(2):
            w = w - basis[:n].T @ (basis[:n] @ w)
        seen[n, n - 1] = size = norm(w)
        ends = n == steps or size <= 1e-12 * np.abs(np.diag(seen)[:n]).max()
        if n >= check or ends:
            square = seen[:n, :n]
            nodes, turn = np.linalg.eigh((square + square.T) / 2)
            noise = norm(square - square.T) / math.sqrt(2 * max(2, n * (n - 1)))
            found = Krylov(nodes, whole**2 * turn[0] ** 2, basis[:n], noise)
            least = max(found.unresolved, 1e-14 * norm(nodes), 1e-150)
            now = float(found.weights @ (1 / np.maximum(nodes, least)))
            if ends or abs(now - before) <= tolerance * now:
                return found._replace(ritz=turn.T @ basis[:n])
            before, check = now, math.ceil(1.2 * n)
        basis[n] = w / size
    return None


def curvature(f: Gradient, x, at, v, longest: float, most: int, rng, tolerance=0.02) -> Krylov:
    """Lanczos from v on differences of f around x, where it is `at`, as far apart as resolves most.

    Long differences drown errors that jump from point to point, short ones see no bend: of lengths
    that fall by eight, the one whose difference is most nearly eight times the next; a bend makes
    what is amiss 64 times smaller from one to the next, a jump leaves it.
    """
    probe, known, t = rng.standard_normal(x.shape) / math.sqrt(v.size) - v / norm(v), [], longest
    probe /= norm(probe)
    last = None
    for _ in range(7):
        there = f(x + t * probe)
        if last is not None and there is not None:
            gap = norm(last - at - 8 * (there - at))
            off = gap / max(norm(last - at), 1e-300)
            known.append((off, 8 * t, gap))
            if off <= SAME or off > max(1.5, 8 * min(known)[0]):
                break
        last, t = there, t / 8
    off, t, _ = min(known, default=(0.0, t, 0.0))
    jump = min(gap for *_, gap in known) / math.sqrt(1 + 49 + 64) if off > SAME else 0.0

    def product(u: np.ndarray) -> np.ndarray | None:
        there = f(x - t * u.reshape(x.shape))
        return None if there is None else (at - there).ravel() / t

    while (found := lanczos(product, v.ravel(), most, tolerance)) is None:
        t /= 64  # it led out of the domain
        if t <= 1e-14 * longest:
            raise OutOfDomain("a level has no value at any point around one where it has")
    return found._replace(t=t, jump=jump)


# what a plan needs, roughly, and what measuring it took
Constants = namedtuple("Constants", "beta mu d0 took")


def constants(h: Hierarchy, y0: np.ndarray) -> Constants:
    """beta, mu and `|y0 - y*|`, roughly: L-BFGS on the coarsest level, then Lanczos where it ends.

    mu is 0 where the smallest eigenvalue seen is not told from that.

    >>> h = Hierarchy(lambda k, y: np.arange(1.0, 5.0) * (y - 1), lambda k: 8.0**k, range(4))
    >>> found = constants(h, np.zeros(4))
    >>> [round(v, 2) for v in found[:3]], found.took
    ([4.0, 1.0, 2.0], 'level 0, 17 evaluations, price 17')
    """
    k, start, calls = ladder(h).levels[0], h.point(y0), 1

    def level(z: np.ndarray) -> np.ndarray | None:
        nonlocal calls
        calls += 1
        try:
            return h.value(k, z)
        except OutOfDomain:
            return None

    y, g, pairs = start, h.value(k, start), []
    small = 1e-3 * norm(g)
    while norm(g) > small and calls < 200 and (found := advance(level, y, g, pairs)):
        y, g = found
    d0 = norm(y - start)
    if not d0:
        raise ValueError(f"level {k} does not move from y0: its gradient is zero or constant")
    rng = np.random.default_rng(0)
    seen = curvature(level, y, g, rng.standard_normal(y.shape), d0, 60, rng)
    mu = float(seen.nodes[0]) if seen.nodes[0] > seen.unresolved else 0.0
    took = f"level {k}, {calls} evaluations, price {calls * h.cost(k):g}"
    return Constants(float(seen.nodes[-1]), mu, d0, took)
