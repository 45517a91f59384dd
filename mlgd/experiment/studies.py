"""Studies around the experiment: rates of many designs, a Krylov solver, a frozen prefactor.

The paper's appendix E.1.2, E.2 and E.4, and what the paper leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .design import Design
from .features import PROBE_STEPS, Reduced, reduce
from .fits import rate
from .frontier import Reached, fixed_frontier, probabilities
from .protocol import Protocol
from .streaming import levels
from .trajectory import Readings, coins, prices


@dataclass(frozen=True)
class Profile:
    """What the rate of one design is read from."""

    design: Design
    levels: np.ndarray
    exact: np.ndarray  # probe x level
    truncated: np.ndarray
    floor: float
    smoothness: float

    def rate(self, start: int = 1, form: str = "exact") -> tuple[float, float]:
        """gamma_env and R^2 of the largest bias over the probes, fitted from level `start` on."""
        return rate(self.levels, getattr(self, form).max(axis=0), start)


def profiles(
    designs: Sequence[Design], k_max: int, steps: Sequence[int] = PROBE_STEPS
) -> list[Profile]:
    """Profiles of designs that share their random numbers."""
    read = levels(k_max)
    return [
        Profile(
            p.design,
            read,
            p.biases(read),
            p.biases(read, True),
            p.floor(k_max),
            p.smoothness(k_max),
        )
        for p in reduce(designs, k_max, steps)
    ]


def predicted_rate(levels: np.ndarray, design: Design, start: int) -> float:
    """The rate that a fit returns if the bias is exactly proportional to the tail of the finite design."""
    return rate(levels, np.array([design.tail_norm(k) for k in levels]), start)[0]


def krylov_frontier(
    problem: Reduced, levels: Sequence[int], targets: np.ndarray, iterations: int = 400
) -> Reached:
    """Conjugate gradients on the problem of each level, charged 4mk per iteration: cheapest flops to each target."""
    best = Reached.nothing(len(targets))
    for k in levels:
        gram, x = problem.gram[:k, :k], np.zeros(k)
        r = problem.moment[:k].copy()
        p, square, losses = r, r @ r, []
        for _ in range(min(iterations, 4 * k)):
            gp = gram @ p
            alpha = square / (p @ gp)
            x, r = x + alpha * p, r - alpha * gp
            square, before = r @ r, square
            p = r + square / before * p
            losses.append(x @ (gram @ x) / 2 - problem.moment[:k] @ x + problem.square / 2)
            if square < 1e-24 * problem.square:
                break
        steps = np.arange(1, len(losses) + 1)
        readings = Readings(steps, 4.0 * problem.design.m * k * steps, np.array(losses), None)
        best.read(targets * problem.loss_zero, readings, 1, k, 1.0)
    return best


@dataclass(frozen=True)
class Frozen:
    """The instance with its prefactor frozen: every level's error is the one it has at the origin, wherever it is called.

    Level k returns the gradient minus the coordinates past k of the gradient at 0, so its bias no longer shrinks with
    the residual: what the dyadic assumption posits, and Remark (the prefactor is local) says the descent does not see.
    All of it is diagonal in the eigenbasis of the Gram matrix.
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

    def fixed(self, levels: Sequence[int], targets: np.ndarray, shrinks=(1.0, 0.5)) -> Reached:
        """The fixed level's frontier: the first of the steps 1, 2, 3, ... (a fine grid past 4096) below each target."""
        steps = np.unique(np.concatenate([np.arange(1, 4097), np.round(np.logspace(3.6, 8, 4000))]))
        found = {}
        for shrink in shrinks:
            decay = np.log1p(-shrink * self.values / (4 * self.values[-1]))
            for k in levels:
                rest = self.forcing(0, k) / self.values
                first = np.full(len(targets), np.inf)
                for part in np.array_split(steps, 16):
                    losses = self.losses(-np.expm1(part[:, None] * decay) * rest)
                    for j in np.flatnonzero(
                        np.isinf(first) & (losses.min() <= targets * self.problem.loss_zero)
                    ):
                        first[j] = part[np.argmax(losses <= targets[j] * self.problem.loss_zero)]
                found[k, shrink, "last"] = first
        return fixed_frontier(found, self.problem.design.m)

    def telescope(
        self,
        ladder: Sequence[int],
        scales: Sequence[float],
        targets: np.ndarray,
        max_flops: float,
        shrinks=(1.0,),
    ) -> Reached:
        """The telescope's frontier, charged like the exact form."""
        design, best = self.problem.design, Reached.nothing(len(targets))
        biases = self.problem.biases(ladder, steps=(0,))[0]
        goals = targets * self.problem.loss_zero
        pieces = np.array([self.forcing(a, b) for a, b in zip((0, *ladder), ladder, strict=False)])
        for i, scale in enumerate(scales):
            for j, shrink in enumerate(shrinks):
                p = probabilities(biases, design.gamma, scale)
                eta = shrink / (4 * self.values[-1])
                y, total, steps, flops = (
                    np.zeros(len(self.values)),
                    np.zeros(len(self.values)),
                    0,
                    0.0,
                )
                for drawn in coins(design.seed, (9, i, j), p):
                    push = eta * (drawn / p) @ pieces
                    path = np.empty((len(drawn) + 1, len(y)))
                    path[0] = y
                    for t, f in enumerate(push):
                        path[t + 1] = path[t] - eta * self.values * path[t] + f
                    times = steps + np.arange(1, len(drawn) + 1)
                    bill = flops + np.cumsum(prices(ladder, design.m, True, drawn))
                    averages = (total + np.cumsum(path[:-1], axis=0)) / times[:, None]
                    readings = Readings(times, bill, self.losses(path[1:]), self.losses(averages))
                    best.read(goals, readings, 1, scale, shrink)
                    y, total = path[-1], total + path[:-1].sum(axis=0)
                    steps, flops = int(times[-1]), float(bill[-1])
                    if flops > max_flops or not (best.flops > flops).any():
                        break
        return best


@dataclass(frozen=True)
class Beyond:
    """What the paper does not run, on one seed of its protocol."""

    krylov: np.ndarray
    frozen_fixed: np.ndarray
    frozen_telescope: np.ndarray
    ball_prefactor: float  # |r| is at most this within distance d0 of the start


def beyond(protocol: Protocol, seed: int, max_flops: float) -> Beyond:
    """The Krylov frontier and the frozen prefactor of one seed."""
    problem = reduce([protocol.design(seed)], protocol.k_max, protocol.probes)[0]
    frozen, targets = Frozen.of(problem), protocol.losses
    return Beyond(
        krylov=krylov_frontier(problem, protocol.baseline, targets).flops,
        frozen_fixed=frozen.fixed(protocol.baseline, targets, (1.0,)).flops,
        frozen_telescope=frozen.telescope(
            protocol.ladder, protocol.scales, targets, max_flops
        ).flops,
        ball_prefactor=float(
            np.sqrt(frozen.values[-1]) * problem.distance() + np.sqrt(2 * problem.loss_zero)
        ),
    )
