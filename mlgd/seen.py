"""Spectral measures laid out on a ladder: what the start, each level's bias and each increment cost this instance."""

from dataclasses import dataclass

import numpy as np

from .moments import Responses
from .schemes import NotApplicable, Problem
from .searching import Ladder

CELLS = 12
UNSEEN = (
    1.5  # where nothing is known of mu, eigenvalues go on below the smallest node by its gap to the next, to this power
)
MOST = 64  # nodes that responses are taken at


def spread(nodes: np.ndarray, weights: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """The measure with its smallest node, where a Gauss rule lumps all it can't resolve, spread out down to `floor`.

    The lump becomes a density even in log(lambda) of the same mass and the same first moment. Left as a lump it
    underestimates integrals of 1/lambda several times at condition numbers that sixty products don't resolve.
    """
    nodes, weights = np.array(nodes, float), np.array(weights, float)  # fresh: a cache knows a measure by its nodes
    i = int(nodes.argmin())
    x, mass = nodes[i], weights[i]
    following = nodes[nodes > x].min(initial=np.inf)  # far off, where a Gauss rule has resolved nothing between
    floor = floor if floor > 0 else x * (x / following) ** UNSEEN if np.isfinite(following) else x
    if not floor < x * (1 - 1e-9):
        return nodes, weights
    top = nodes.max()  # eigenvalues end here: a lump too near to it is spread less far down

    def mean(low, high):
        return (high - low) / np.log(high / low) if high > low * (1 + 1e-12) else high

    if mean(floor, top) <= x:
        low, high, b = floor, x, top
        for _ in range(100):
            floor = np.sqrt(low * high)
            low, high = (floor, high) if mean(floor, b) < x else (low, floor)
    else:
        low, high = x, top
        for _ in range(100):
            b = np.sqrt(low * high)
            low, high = (b, high) if mean(floor, b) < x else (low, b)
    if not floor < x * (1 - 1e-9):
        return nodes, weights
    edges = np.geomspace(floor, b, CELLS + 1)
    cells = np.diff(edges) / np.log(edges[1:] / edges[:-1])
    return np.concatenate([np.delete(nodes, i), cells]), np.append(np.delete(weights, i), np.full(CELLS, mass / CELLS))


def merged(nodes: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most MOST nodes: neighbours in log(lambda) become one of their mass and first moment."""
    if nodes.size <= MOST:
        return nodes, weights
    cell = np.digitize(np.log(nodes), np.linspace(*np.log([nodes.min(), nodes.max()]), MOST)[1:])
    mass = np.bincount(cell, weights, MOST)
    moment = np.bincount(cell, weights * nodes, MOST)
    kept = mass > 0
    return moment[kept] / mass[kept], mass[kept]


@dataclass(frozen=True)
class Seen:
    """Measures on the ladder: of the start, of each step (rows of `weights` over common nodes per level) and each bias."""

    start: tuple[np.ndarray, np.ndarray]
    steps: list[tuple[np.ndarray, np.ndarray]]
    biases: list[tuple[np.ndarray, np.ndarray]]

    @classmethod
    def of(cls, problem: Problem, ladder: Ladder) -> "Seen":
        m = problem.measures
        if m is None:
            raise NotApplicable(
                "promise='measured' needs spectral measures: use report.problem(estimate(h, y0)), or promise='quadratic'"
            )
        kept = {k: v for k, v in m.increments.items() if k in ladder.h.levels[1:] and v.total > 0}
        if not kept:
            raise NotApplicable("no increment of this ladder was measured: estimate(h, y0) on the same hierarchy first")
        known = {k: spread(v.nodes, v.weights, max(m.floor, problem.mu)) for k, v in kept.items()}
        norms = ladder.weight[0]
        ranks = {k: i for i, k in enumerate(ladder.h.levels)}
        steps = []
        for i, k in enumerate(ladder.h.levels):
            nearest = min(known, key=lambda j: (abs(ranks[j] - i), j))
            nodes, weights = known[nearest]
            own = norms[ranks[nearest]]
            scale = 1.0 if nearest == k else norms[i] / own if own else 0.0
            steps.append((nodes, scale * weights))
        biases = []
        for i in range(len(ladder.h.levels)):
            nodes, weights = steps[min(i + 1, len(steps) - 1)]
            biases.append((nodes, weights * (ladder.accuracy[i] ** 2 / max(weights.sum(), 1e-300))))
        return cls(spread(m.gradient.nodes, m.gradient.weights, max(m.floor, problem.mu)), steps, biases)

    def losses(self, eta, window, steps) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(horizon, bias by finest level, noise weight by level) of every way to run."""
        known: dict[int, tuple[np.ndarray, np.ndarray, Responses]] = {}

        def integral(measure, what):
            """Measures of levels that were not measured share their nodes with one that was, up to a factor."""
            nodes, weights = measure
            if id(nodes) not in known:
                x, w = merged(nodes, weights / max(weights.sum(), 1e-300))
                known[id(nodes)] = x, w, Responses.at(x, eta, window, steps)
            x, w, response = known[id(nodes)]
            return what(x, response) @ w * weights.sum() / 2

        horizon = integral(self.start, lambda x, r: r.start**2 / x)
        bias = np.array([integral(m, lambda x, r: r.lasting**2 * x) for m in self.biases]).T
        noise = np.array([integral(m, lambda x, r: r.noise * x) for m in self.steps]).T
        return horizon, bias, noise

    def bridged(self, weight: np.ndarray, ladder: Ladder) -> np.ndarray:
        """The noise loss between any two levels: as that of the first step between them, by the ratio of squared norms."""
        n = weight.size
        out = np.zeros((n, n))
        for i in range(n - 1):
            own = ladder.squared[i, i + 1]
            out[i, i + 1 :] = weight[i + 1] * (ladder.squared[i, i + 1 :] / own if own > 0 else 1.0)
        return out

    def floor(self) -> float:
        """What the finest level's bias alone costs in the end."""
        nodes, weights = self.biases[-1]
        return float((weights / nodes).sum() / 2)
