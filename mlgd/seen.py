"""Spectral measures laid out on a ladder: what the start, each level's bias and each increment cost this instance."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .moments import Responses
from .schemes import NotApplicable, Problem
from .searching import Ladder

CELLS = 12
UNSEEN = 1.5  # where mu is not known, eigenvalues go on below the smallest node by its gap to the next, to this power


def spread(nodes: np.ndarray, weights: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """The measure with its smallest node, where a Gauss rule lumps all it can't resolve, spread out down to `floor`.

    The lump becomes a density even in log(lambda) of the same mass and the same first moment. Left as a lump it
    underestimates integrals of 1/lambda several times at condition numbers that sixty products don't resolve.
    """
    i = int(nodes.argmin())
    x, end = nodes[i], nodes.max()
    following = nodes[nodes > x].min(
        initial=np.inf
    )  # far off, where a Gauss rule has resolved nothing between
    floor = floor if floor > 0 else x * (x / following) ** UNSEEN if np.isfinite(following) else x

    def mean(low, high):
        return (high - low) / np.log(high / low) if high > low * (1 + 1e-12) else high

    def where(low, high, mean_of):
        for _ in range(100):
            middle = np.sqrt(low * high)
            low, high = (middle, high) if mean_of(middle) < x else (low, middle)
        return middle

    top = end  # eigenvalues end here: a lump too near to it is spread less far down
    if mean(floor, end) <= x:
        floor = where(floor, x, lambda low: mean(low, end))
    else:
        top = where(x, end, lambda high: mean(floor, high))
    if not floor < x * (1 - 1e-9):
        return nodes, weights
    edges = np.geomspace(floor, top, CELLS + 1)
    cells = np.diff(edges) / np.log(edges[1:] / edges[:-1])
    mass = np.full(CELLS, weights[i] / CELLS)
    return np.append(np.delete(nodes, i), cells), np.append(np.delete(weights, i), mass)


@dataclass(frozen=True, eq=False)
class Shape:
    """How a vector lies in the eigenvalues: a measure of mass one."""

    nodes: np.ndarray
    weights: np.ndarray

    def integral(self, power: float) -> float:
        return float(self.weights @ self.nodes**power)

    @cached_property
    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        return conjugate_curve(self.nodes, self.weights)


Measure = tuple[Shape, float]  # and the squared norm


@dataclass(frozen=True)
class Seen:
    """Measures on a ladder: of the start, of each step and of each level's bias; noise per squared norm of a step."""

    ladder: Ladder
    start: Measure
    steps: list[Measure]
    biases: list[Measure]
    rates: np.ndarray

    @classmethod
    def of(cls, problem: Problem, ladder: Ladder) -> "Seen":
        m = problem.measures
        if m is None:
            raise NotApplicable(
                "promise='measured' needs spectral measures: use report.problem(estimate(h, y0)), or promise='quadratic'"
            )

        def shape(measure):
            nodes, weights = spread(measure.nodes, measure.weights, max(m.floor, problem.mu))
            return Shape(nodes, weights / measure.total)

        norms, n = ladder.steps, ladder.cost.size
        found = {
            i: m.increments[k]
            for i, k in enumerate(ladder.h.levels)
            if norms[i] > 0 and k in m.increments
        }
        known = {i: (shape(v), v.total / norms[i]) for i, v in found.items() if v.total > 0}
        if not known:
            raise NotApplicable(
                "no increment of this ladder was measured: estimate(h, y0) on the same hierarchy first"
            )
        nearest = [known[min(known, key=lambda j, i=i: abs(j - i))] for i in range(n)]
        steps = [(s, rate * norm) for (s, rate), norm in zip(nearest, norms, strict=True)]
        biases = [
            (nearest[min(i + 1, n - 1)][0], float(a) ** 2) for i, a in enumerate(ladder.accuracy)
        ]
        start = shape(m.gradient), m.gradient.total
        return cls(ladder, start, steps, biases, np.array([rate for _, rate in nearest]))

    def losses(self, eta, window, steps) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(horizon, bias by finest level, noise per variance of each step) of every way to run."""
        known: dict[Shape, np.ndarray] = {}

        def parts(shape):
            if shape not in known:
                x, w = shape.nodes, shape.weights
                r = Responses.at(x, eta, window, steps)
                known[shape] = (
                    np.array([r.start**2 / x @ w, r.lasting**2 * x @ w, r.noise * x @ w]) / 2
                )
            return known[shape]

        bias = np.array([size * parts(shape)[1] for shape, size in self.biases])
        noise = np.array([parts(shape)[2] for shape, _ in self.steps])
        return parts(self.start[0])[0] * self.start[1], bias.T, noise.T * self.rates

    @cached_property
    def floors(self) -> np.ndarray:
        """What each level's bias costs in the end."""
        return np.array([size * shape.integral(-1) / 2 for shape, size in self.biases])


def conjugate_curve(nodes: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The loss above the minimum and the gradient's norm after 0, 1, 2, ... steps of conjugate gradients.

    The gradient starts with these weights in the eigenvalues; the loss is half the integral of the gradient over lambda.
    """
    r = np.sqrt(np.maximum(weights, 0.0))
    p, rows = r.copy(), []
    for _ in range(nodes.size + 1):
        size = float(r @ r)
        rows.append((float((r**2 / nodes).sum()) / 2, np.sqrt(size)))
        if rows[-1][0] <= 1e-12 * rows[0][0]:
            break
        image = nodes * p
        r = r - size / float(p @ image) * image
        p = r + float(r @ r) / size * p
    loss, norm = np.array(rows).T
    return np.minimum.accumulate(loss), norm
