"""What the paper does not run: a Krylov solver, and the same instance with its prefactor frozen.

The paper's section 4.2.2 and appendix E.4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .design import Design, Protocol
from .frontier import Reached, Run, fixed_frontier, probabilities
from .reduce import Reduced, read_levels, reduce
from .trajectory import Readings, coins, prices

MOST = 16  # targets of the frozen instance: those over which exponents are fitted


def envelopes(design: Design, k_max: int) -> dict[str, np.ndarray]:
    """The largest bias of each level over the six probes, in both forms."""
    problem, levels = reduce(design, k_max), read_levels(k_max)
    return {
        "levels": levels,
        "exact": problem.biases(levels).max(axis=0),
        "truncated": problem.biases(levels, truncated=True).max(axis=0),
    }


def krylov_frontier(
    problem: Reduced, levels: Sequence[int], targets: np.ndarray, iterations: int = 400
) -> Reached:
    """Conjugate gradients on each level, charged 4mk an iteration: flops to each target."""
    best = Reached.nothing(len(targets))
    for k in levels:
        gram, x = problem.gram[:k, :k], np.zeros(k)
        r = problem.moment[:k].copy()
        p, square, losses = r, r @ r, []
        for _ in range(min(iterations, 4 * k)):
            image = gram @ p
            alpha = square / (p @ image)
            x, r = x + alpha * p, r - alpha * image
            square, before = r @ r, square
            p = r + square / before * p
            losses.append(problem.loss_zero - x @ (problem.moment[:k] + r) / 2)
            if square < 1e-24 * problem.loss_zero:
                break
        steps, last = np.arange(1, len(losses) + 1), np.array(losses)
        found = Readings(steps, 4.0 * problem.design.m * k * steps, last, last)
        best.read(targets * problem.loss_zero, found, 1, k, 1.0)
    return best


@dataclass(frozen=True)
class Frozen:
    """The instance with its prefactor frozen: every level errs everywhere as it does at the origin.

    Level k returns the gradient minus the coordinates past k of the gradient at 0, so its bias no
    longer shrinks with the residual, as the dyadic assumption allows. All of it is diagonal in the
    eigenbasis of the Gram matrix.
    """

    problem: Reduced
    values: np.ndarray
    vectors: np.ndarray

    @classmethod
    def of(cls, problem: Reduced) -> Frozen:
        return cls(problem, *np.linalg.eigh(problem.gram))

    def losses(self, y: np.ndarray) -> np.ndarray:
        """Losses of points given in the eigenbasis, one per row."""
        optimum = self.vectors.T @ self.problem.moment / self.values
        floor = self.problem.loss_zero - optimum**2 @ self.values / 2
        return floor + (y - optimum) ** 2 @ self.values / 2

    def forcing(self, low: int, high: int) -> np.ndarray:
        """The increment between levels low and high, in the eigenbasis: a constant vector."""
        return self.vectors[low:high].T @ self.problem.moment[low:high]

    def fixed(self, levels: Sequence[int], targets: np.ndarray) -> Reached:
        """The fixed level's frontier: the first step (a fine grid past 4096) below each target."""
        steps = np.unique(np.append(np.arange(1, 4097), np.round(np.logspace(3.6, 8, 4000))))
        goals, decay = (
            targets * self.problem.loss_zero,
            np.log1p(-self.values / (4 * self.values[-1])),
        )
        found = {}
        for k in levels:
            rest, first = self.forcing(0, k) / self.values, np.full(len(targets), np.inf)
            for part in np.array_split(steps, 16):
                losses = self.losses(-np.expm1(part[:, None] * decay) * rest)
                for j in np.flatnonzero(np.isinf(first) & (losses.min() <= goals)):
                    first[j] = part[np.argmax(losses <= goals[j])]
            found[Run(k, 1.0, "last")] = first
        return fixed_frontier(found, self.problem.design.m)

    def telescope(
        self, ladder: Sequence[int], scales: Sequence[float], targets: np.ndarray, max_flops: float
    ) -> Reached:
        """The telescope's frontier, charged like the exact form."""
        design, best = self.problem.design, Reached.nothing(len(targets))
        biases = self.problem.biases(ladder, steps=(0,))[0]
        goals, eta = targets * self.problem.loss_zero, 1 / (4 * self.values[-1])
        pieces = np.array([self.forcing(a, b) for a, b in zip((0, *ladder), ladder, strict=False)])
        for i, scale in enumerate(scales):
            p = probabilities(biases, design.gamma, scale)
            y, total = np.zeros((2, len(self.values)))
            steps, flops = 0, 0.0
            for drawn in coins(design.seed, (9, i), p):
                push, path = eta * (drawn / p) @ pieces, np.empty((len(drawn) + 1, len(y)))
                path[0] = y
                for t, f in enumerate(push):
                    path[t + 1] = path[t] - eta * self.values * path[t] + f
                times = steps + np.arange(1, len(drawn) + 1)
                bill = flops + np.cumsum(prices(ladder, design.m, True, drawn))
                averages = (total + np.cumsum(path[:-1], axis=0)) / times[:, None]
                found = Readings(times, bill, self.losses(path[1:]), self.losses(averages))
                best.read(goals, found, 1, scale, 1.0)
                y, total = path[-1], total + path[:-1].sum(axis=0)
                steps, flops = int(times[-1]), float(bill[-1])
                if flops > max_flops or not (best.flops > flops).any():
                    break
        return best


def beyond(protocol: Protocol, problem: Reduced) -> dict[str, Reached]:
    """The Krylov frontier and those of the frozen instance, for `sweep(..., also=beyond)`."""
    frozen, targets = Frozen.of(problem), protocol.losses
    reachable = targets[:MOST][targets[:MOST] > problem.floor(protocol.k_max)]
    telescope = frozen.telescope(protocol.ladder, protocol.scales, reachable, protocol.max_flops)
    return {
        "krylov": krylov_frontier(problem, protocol.baseline, targets),
        "frozen fixed": frozen.fixed(protocol.baseline, targets),
        "frozen exact": telescope.filled(len(targets)),
    }
