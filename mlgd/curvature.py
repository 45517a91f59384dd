"""What is known of the curvature of a loss: pairs, as L-BFGS keeps them, and Lanczos.

A pair is a step and the change of the gradient over it. `Curvature` holds pairs and solves with the
Hessian that they tell of: the worth of a gradient v, v^T H^-1 v / 2, is the loss that it stands
for. `spectrum_around` sees eigenvalues by products with the Hessian, which are differences of
gradients; what it sees becomes pairs too.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .hierarchy import OutOfDomain

Gradient = Callable[[np.ndarray], np.ndarray | None]  # None outside of its domain
PAIRS = 150  # kept,
MEMORY = 1.6e8  # or bytes of vectors, in high dimension; Lanczos may take as many again
FEWEST = 20  # vectors that are kept in any dimension
POSITIVE = 1e-10  # of the lengths: a pair with less curvature is none
SEVERAL_NOISES = 3.0  # eigenvalues below that are not told from zero
COLUMNS = 4096  # turned at a time
NO_BEND = 3e-4  # of a difference: less is no bend; longer differences would hide flat directions


def norm(v: np.ndarray) -> float:
    return float(np.linalg.norm(v))


def dot(v: np.ndarray, w: np.ndarray) -> float:
    return float(np.vdot(v, w))


def room(size: int) -> int:
    """How many vectors of so many entries may be kept."""
    return max(FEWEST, int(MEMORY / (8 * size)))


class Pair(NamedTuple):
    """A step, the change of the gradient over it, and their product.

    A unit eigenvector has no change of its own (None): that is its eigenvalue, `product`, times it.
    """

    step: np.ndarray
    change: np.ndarray | None
    product: float

    @property
    def vectors(self) -> int:
        return 1 if self.change is None else 2


class Curvature:
    """The Hessian that pairs tell of, oldest first; the list is the caller's own."""

    def __init__(self, pairs: list[Pair] | None = None):
        self.pairs = [] if pairs is None else pairs
        self._solved: list[tuple[np.ndarray, np.ndarray]] = []  # the last vectors asked

    def solve(self, v: np.ndarray) -> np.ndarray:
        """The inverse Hessian times v, by the two loops of L-BFGS; not to be written to."""
        for known, answer in self._solved:
            if known is v:
                return answer
        answer = self._two_loops(v)
        self._solved = [*self._solved[-2:], (v, answer)]
        return answer

    def _two_loops(self, v: np.ndarray) -> np.ndarray:
        q = v.copy()
        shares = []
        for step, change, product in reversed(self.pairs):
            along = dot(step, q)
            shares.append(along / product)
            q -= along * step if change is None else along / product * change
        if self.pairs:
            step, change, product = self.pairs[-1]
            q *= 1 / product if change is None else product / dot(change, change)
        for (step, change, product), share in zip(
            self.pairs, reversed(shares), strict=True
        ):
            along = dot(step, q) if change is None else dot(change, q) / product
            q += (share - along) * step
        return q

    def worth(self, v: np.ndarray, ridge: float = 0.0) -> float:
        """The loss that a gradient v stands for; without what a ridge on the loss adds to it."""
        step = self.solve(v) if self.pairs else 0 * v
        gain = dot(v, step)
        if not gain > 0:  # pairs of a flat region: rounding ate it
            return math.inf if norm(v) else 0.0
        return max(gain - ridge * dot(step, step), 0.0) / 2

    def learn(self, step: np.ndarray, change: np.ndarray) -> None:
        """Keep a pair if its curvature is positive, and forget the oldest."""
        product = dot(step, change)
        if product > POSITIVE * norm(step) * norm(change):
            self.insert([Pair(step, change, product)], len(self.pairs))

    def insert(self, pairs: list[Pair], place: int) -> None:
        """Put pairs in below the later ones, and forget the oldest."""
        self.pairs[place:place] = pairs
        del self.pairs[:-PAIRS]
        kept = room(self.pairs[-1].step.size)
        while sum(pair.vectors for pair in self.pairs) > kept:
            del self.pairs[0]
        self._solved = []

    def steps_on_top(self) -> int:
        """How many of the latest pairs are those of steps, and not of Lanczos."""
        count = 0
        for pair in reversed(self.pairs):
            if pair.change is None:
                break
            count += 1
        return count

    def forget(self) -> None:
        self.pairs.clear()
        self._solved = []


class Spectrum(NamedTuple):
    """What products with a Hessian from v show: v^T F(H) v is the sum of weights times F(nodes).

    `vectors` has a unit vector per node; `noise` is an entry's root mean square error, seen where
    it is not symmetric. Differences were taken over `spacing`; `jump` is the size of errors that
    are new at every point.
    """

    nodes: np.ndarray
    weights: np.ndarray
    vectors: np.ndarray
    noise: float
    spacing: float = 0.0
    jump: float = 0.0

    @property
    def unresolved(self) -> float:
        """What eigenvalues are off by: the noise, or as far as they are negative."""
        return max(SEVERAL_NOISES * self.noise, -float(self.nodes[0]))

    def raised_to(self, least: float) -> np.ndarray:
        """The nodes, none of them smaller than `least`."""
        return np.maximum(self.nodes, least)

    def inverse_weight(self, least: float) -> float:
        """v^T H^-1 v, eigenvalues raised to `least`."""
        return float(self.weights @ (1 / self.raised_to(least)))

    def pairs(self, least: float, shape: tuple[int, ...]) -> list[Pair]:
        """The same as pairs of L-BFGS, eigenvalues raised to `least`."""
        found = []
        for vector, bent in zip(
            self.vectors, self.raised_to(least).tolist(), strict=True
        ):
            found.append(Pair(vector.reshape(shape), None, bent))
        return found


def lanczos(
    product: Gradient, v: np.ndarray, steps: int, tolerance: float = 0.0
) -> Spectrum | None:
    """At most `steps` products from v, each direction orthogonal to all before; None without one.

    It ends where the space is exhausted, or where the last fifth of the products moved
    v^T H^-1 v, eigenvalues raised to what is resolved, by less than `tolerance`.

    >>> found = lanczos(lambda u: np.array([1.0, 2.0, 4.0]) * u, np.ones(3), steps=9)
    >>> found.nodes.round(9), found.weights.round(9)
    (array([1., 2., 4.]), array([1., 1., 1.]))
    """
    length = norm(v)
    steps = min(steps, v.size)
    basis = np.empty((steps, v.size))
    seen = np.zeros((steps + 1, steps))  # the Hessian between directions
    basis[0] = v / length
    before, check = math.inf, 6
    for n in range(1, steps + 1):
        w = product(basis[n - 1])
        if w is None:
            return None
        seen[:n, n - 1] = basis[:n] @ w
        for _ in range(2):  # once leaves rounding behind
            w = w - basis[:n].T @ (basis[:n] @ w)
        seen[n, n - 1] = size = norm(w)
        ends = n == steps or size <= 1e-12 * np.abs(np.diag(seen)[:n]).max()
        if n >= check or ends:
            found, turn = _ritz(seen[:n, :n], basis[:n], length)
            least = max(found.unresolved, 1e-14 * norm(found.nodes), 1e-150)
            now = found.inverse_weight(least)
            if ends or abs(now - before) <= tolerance * now:
                return found._replace(vectors=turned(basis[:n], turn))
            before, check = now, math.ceil(1.2 * n)
        basis[n] = w / size
    return None


def _ritz(
    square: np.ndarray, basis: np.ndarray, length: float
) -> tuple[Spectrum, np.ndarray]:
    """Eigenvalues of the part that was seen, their weights in v, the noise; and the turn there."""
    n = len(square)
    symmetric = (square + square.T) / 2
    nodes, turn = np.linalg.eigh(symmetric)
    weights = length**2 * turn[0] ** 2
    entries = 2 * max(2, n * (n - 1))  # of the asymmetry, two for each pair
    noise = norm(square - square.T) / math.sqrt(entries)
    return Spectrum(nodes, weights, basis, noise), turn


def turned(basis: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """turn^T basis, in the basis's own memory, some columns at a time."""
    for first in range(0, basis.shape[1], COLUMNS):
        part = basis[:, first : first + COLUMNS]
        part[:] = turn.T @ part
    return basis


class Spacing(NamedTuple):
    """How far apart differences are taken, and the size of errors that are new at every point."""

    length: float
    jump: float


def best_spacing(
    f: Gradient, x: np.ndarray, at: np.ndarray, v, longest: float, rng
) -> Spacing:
    """The length of differences of f around x, where it is `at`, that resolves most.

    Long differences drown errors that jump from point to point, short ones see no bend: of lengths
    that fall by eight, the one whose difference is most nearly eight times the next; a bend makes
    what is amiss 64 times smaller from one to the next, a jump leaves it.
    """
    probe = rng.standard_normal(x.shape) / math.sqrt(v.size) - v / norm(v)
    probe /= norm(probe)
    tried, t, last = [], longest, None
    for _ in range(7):
        there = f(x + t * probe)
        if last is not None and there is not None:
            gap = norm(last - at - 8 * (there - at))
            amiss = gap / max(norm(last - at), 1e-300)
            tried.append((amiss, 8 * t, gap))
            if amiss <= NO_BEND or amiss > max(1.5, 8 * min(tried)[0]):
                break
        last, t = there, t / 8
    amiss, t, _ = min(tried, default=(0.0, t, 0.0))
    if amiss <= NO_BEND:
        return Spacing(t, 0.0)
    # the gap has the errors of three values in it, with weights 1, 7 and 8
    return Spacing(t, min(gap for *_, gap in tried) / math.sqrt(1 + 49 + 64))


def spectrum_around(
    f: Gradient,
    x: np.ndarray,
    at: np.ndarray,
    v,
    longest: float,
    most: int,
    rng,
    tolerance=0.02,
) -> Spectrum:
    """Lanczos from v, at most so many products, on differences of f around x, where it is `at`."""
    t, jump = best_spacing(f, x, at, v, longest, rng)
    most = min(most, room(v.size))

    def product(u: np.ndarray) -> np.ndarray | None:
        there = f(x - t * u.reshape(x.shape))
        return None if there is None else (at - there).ravel() / t

    while (found := lanczos(product, v.ravel(), most, tolerance)) is None:
        t /= 64  # it led out of the domain
        if t <= 1e-14 * longest:
            raise OutOfDomain("a level has no value at any point around one where it has")
    return found._replace(spacing=t, jump=jump)
