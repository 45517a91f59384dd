"""Studies around the experiment: rates of many designs, a Krylov solver, a frozen prefactor, probabilities not swept.

Appendix E.1.2, E.2 and E.4, and what the paper leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from mlgd.oracle import water_filling

from .design import Design
from .features import PROBE_STEPS, Reduced, reduce
from .frontier import fixed_frontier, note, probabilities, rate
from .protocol import Protocol
from .trajectory import Reached, Readings, Trajectory, coins, prices


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


def profiles(designs: Sequence[Design], k_max: int, steps: Sequence[int] = PROBE_STEPS) -> list[Profile]:
    """Profiles of designs that share their random numbers."""
    levels = np.array(sorted({round(2 ** (i / 2)) for i in range(round(2 * np.log2(k_max)) + 1)}))
    return [
        Profile(p.design, levels, p.biases(levels), p.biases(levels, True), p.floor(k_max), p.smoothness(k_max))
        for p in reduce(designs, k_max, steps)
    ]


def gather(executor: Executor, function: Callable, arguments: Sequence[tuple]) -> list:
    """function(*a) for every a, on the executor, in order."""
    return [f.result() for f in [executor.submit(function, *a) for a in arguments]]


def predicted_rate(levels: np.ndarray, design: Design, start: int) -> float:
    """The rate that a fit returns if the bias is exactly proportional to the tail of the finite design."""
    return rate(levels, np.array([design.tail_norm(k) for k in levels]), start)[0]


def krylov_frontier(problem: Reduced, levels: Sequence[int], targets: np.ndarray, iterations: int = 400) -> Reached:
    """Conjugate gradients on the problem of each level, charged 4mk an iteration: cheapest flops to each target."""
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
        note(best, targets * problem.loss_zero, readings.last, readings, 1, f"k={k}")
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
        """Losses of points given in the eigenbasis, one a row."""
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
                    for j in np.flatnonzero(np.isinf(first) & (losses.min() <= targets * self.problem.loss_zero)):
                        first[j] = part[np.argmax(losses <= targets[j] * self.problem.loss_zero)]
                found[k, shrink, "last"] = first
        return fixed_frontier(found, self.problem.design.m)

    def telescope(
        self, ladder: Sequence[int], scales: Sequence[float], targets: np.ndarray, max_flops: float, shrinks=(1.0,)
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
                y, total, steps, flops = np.zeros(len(self.values)), np.zeros(len(self.values)), 0, 0.0
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
                    note(best, goals, readings.last, readings, 1, f"C={scale:g} last")
                    note(best, goals, readings.average, readings, 1, f"C={scale:g} average")
                    y, total = path[-1], total + path[:-1].sum(axis=0)
                    steps, flops = int(times[-1]), float(bill[-1])
                    if flops > max_flops or not (best.flops > flops).any():
                        break
        return best


def cheapest_probabilities(ladder: Sequence[int], biases: np.ndarray, variance: float, m: int) -> np.ndarray:
    """Optimal probabilities for a variance, from measured biases: what `Telescope.cheapest` solves, in this ladder's prices.

    In the exact form an increment is a block of the gradient, so its norm is (delta_{k-}^2 - delta_k^2)^(1/2).
    """
    k = np.asarray(ladder, float)
    increments = np.append(0.0, np.maximum(biases[:-1] ** 2 - biases[1:] ** 2, 0.0))
    price = 4.0 * m * (k + np.append(0.0, k[:-1]))
    best, best_cost = np.ones(len(k)), price.sum()
    for cut in range(1, len(k)):
        p = np.concatenate([np.ones(cut), water_filling(increments[cut:], price[cut:], variance)])
        if p @ price < best_cost:
            best, best_cost = p, p @ price
    return best


def computed_costs(protocol: Protocol, problem: Reduced, targets: np.ndarray, exact: bool, local: bool) -> np.ndarray:
    """Flops to each target with nothing swept: Theorem 1's variance eps/(4 eta), and the optimal p_k for it.

    local=False: the increments are taken where they are largest, and every target has probabilities and a run of its own.
    local=True: they shrink like the square root of the loss, as eps does, so eps cancels and one run serves all targets.
    """
    eta = 1 / (4 * problem.smoothness(protocol.k_max))
    biases = problem.biases(protocol.ladder, steps=protocol.probes).max(axis=0)
    goals, best = targets * problem.loss_zero, Reached.nothing(len(targets))
    for j, served in enumerate([slice(None)] if local else [slice(i, i + 1) for i in range(len(targets))]):
        p = cheapest_probabilities(
            protocol.ladder, biases, (problem.loss_zero if local else goals[j]) / (4 * eta), protocol.m
        )
        run, reached = (
            Trajectory(problem, protocol.ladder, p, eta, exact, (7, int(exact), j)),
            Reached.nothing(len(goals)),
        )
        while run.flops < protocol.max_flops and run.steps < protocol.max_steps and not run.diverged:
            unmet = goals[served][np.isinf(reached.flops[served])]
            if not len(unmet):
                break
            readings = run.advance(unmet[0])
            for iterate in ("last", "average"):
                note(reached, goals, getattr(readings, iterate), readings, 1, iterate)
        best.flops[served] = reached.flops[served]
    return best.flops


@dataclass(frozen=True)
class Beyond:
    """What the paper does not run, on one seed of its protocol."""

    krylov: np.ndarray
    frozen_fixed: np.ndarray
    frozen_telescope: np.ndarray
    computed: dict[tuple[str, str], np.ndarray]  # (form, 'local' | 'largest'): flops to the targets of the cost table
    distance: float  # d0, from 0 to the minimizer in the first k_max coordinates
    ball_prefactor: float  # |r| is at most this within distance d0 of the start


def beyond(protocol: Protocol, seed: int, rows: Sequence[int], max_flops: float) -> Beyond:
    """The Krylov frontier, the frozen prefactor and the computed probabilities of one seed."""
    problem = reduce([protocol.design(seed)], protocol.k_max, protocol.probes)[0]
    frozen, targets = Frozen.of(problem), protocol.losses
    distance = float(np.linalg.norm(np.linalg.solve(problem.gram, problem.moment)))
    return Beyond(
        krylov=krylov_frontier(problem, protocol.baseline, targets).flops,
        frozen_fixed=frozen.fixed(protocol.baseline, targets, (1.0,)).flops,
        frozen_telescope=frozen.telescope(protocol.ladder, protocol.scales, targets, max_flops).flops,
        computed={
            (form, where): computed_costs(protocol, problem, targets[list(rows)], form == "exact", where == "local")
            for form in ("exact", "truncated")
            for where in ("local", "largest")
        },
        distance=distance,
        ball_prefactor=float(np.sqrt(frozen.values[-1]) * distance + np.sqrt(2 * problem.loss_zero)),
    )
