"""Every run of the protocol on one reduced problem, and the cheapest flops to each target loss.

The paper's appendix E.3. Compute is charged in the paper's flops (4mk per fixed step; 2m(k + k-)
per exact increment, plus 2m k_t for the residual; 4m(k + k-) per truncated increment) and spent
otherwise. A fixed level is closed form in its eigenbasis. A telescope steps through the few
coordinates that move between two draws of its finer levels. Both are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .design import Protocol
from .reduce import Reduced
from .trajectory import DRAWS, Frame, Readings, Trajectory, coins, prices


@dataclass
class Reached:
    """The least flops at which each target was reached, and the steps (infinite: never)."""

    flops: np.ndarray
    steps: np.ndarray

    @classmethod
    def nothing(cls, count: int) -> Reached:
        return cls(*np.full((2, count), np.inf))

    def note(self, j: int, flops: float, steps: float) -> None:
        """Target j was reached at this price: keep it if it is the cheapest so far."""
        if flops < self.flops[j]:
            self.flops[j], self.steps[j] = flops, steps

    def read(self, goals: np.ndarray, found: Readings, every: int = 1) -> None:
        """Enter the first goals as a run meets them by either iterate, read every few steps."""
        rows = slice(-int(found.steps[0]) % every, None, every)
        open_ = self.flops[: len(goals)] > found.flops[0]
        for losses in (found.last[rows], found.average[rows]):
            for j in np.flatnonzero(open_ & (goals >= losses.min(initial=np.inf))):
                i = int(np.argmax(losses <= goals[j]))
                self.note(j, found.flops[rows][i], found.steps[rows][i])


# -- one fixed level: closed form ------------------------------------------------------------------


def fixed_level(
    problem: Reduced, k: int, shrink: float, targets: np.ndarray
) -> np.ndarray:
    """Descent at level k with step shrink/(4 beta_k): the first step that meets each target.

    A row for the last iterate, one for the average. Their losses are sums of decreasing terms in
    the eigenbasis, so the first step below a target is found by bisection over the integers,
    however large. Infinite: never.
    """
    values, vectors = problem.spectrum(k)
    energy = (vectors.T @ problem.moment[:k]) ** 2 / values / 2
    decay = np.log1p(-shrink * values / (4 * values[-1]))
    # above the floor
    needed = targets * problem.loss_zero - (problem.loss_zero - energy.sum())

    def last(t: np.ndarray) -> np.ndarray:
        return np.exp(2 * t[:, None] * decay) @ energy

    def average(t: np.ndarray) -> np.ndarray:
        return (np.expm1(t[:, None] * decay) / np.expm1(decay) / t[:, None]) ** 2 @ energy

    return np.array([first_below(f, needed) for f in (last, average)])


def first_below(f: Callable[[np.ndarray], np.ndarray], needed: np.ndarray) -> np.ndarray:
    """The first integer t >= 1 with f(t) <= needed, f decreasing to 0; else infinite."""
    low, high = np.zeros(len(needed)), np.ones(len(needed))
    while (more := (f(high) > needed) & (needed > 0)).any():
        low, high = np.where(more, high, low), np.where(more, 2 * high, high)
    while (high - low > 1).any():  # the answer is in (low, high]
        middle = np.ceil((low + high) / 2)
        below = f(middle) <= needed
        low, high = np.where(below, low, middle), np.where(below, middle, high)
    return np.where(needed > 0, high, np.inf)


def fixed_frontier(
    runs: Sequence[tuple[int, np.ndarray]],
    m: int,
    max_steps: float = np.inf,
    every: int = 1,
) -> Reached:
    """The baseline (E.3.2): cheapest over runs, each a level and its first steps below the targets.

    Losses are read every so many steps.
    """
    best = Reached.nothing(runs[0][1].shape[-1])
    for k, first in runs:
        for (*_, j), t in np.ndenumerate(np.ceil(first / every) * every):
            if t <= max_steps:
                best.note(j, t * 4.0 * m * k, t)
    return best


# -- the telescope ---------------------------------------------------------------------------------


def probabilities(biases: np.ndarray, gamma: float, scale: float) -> np.ndarray:
    """p_k = min(C (delta_k / delta_0)^(1 + gamma/2), 1), from measured biases (appendix E.3.1)."""
    return np.minimum(scale * (biases / biases[0]) ** (1 + gamma / 2), 1.0)


def telescope_frontier(
    problem: Reduced, protocol: Protocol, exact: bool, every: Sequence[int] = (1,)
) -> list[Reached]:
    """The multilevel method: cheapest over C, steps and iterates; a frontier per reading interval.

    The runs race in flops. One that has spent more than the best known cost of every target still
    open cannot improve the frontier and stops there; targets below the floor of the first k_max
    coordinates are out of reach of all.
    """
    ladder, targets = protocol.ladder, protocol.losses
    biases = problem.biases(ladder).max(axis=0)
    eta = 1 / (4 * problem.smoothness(ladder[-1]))
    goals = targets[targets > problem.floor(ladder[-1])] * problem.loss_zero
    runs, frame = [], Frame(problem, ladder, exact)
    for i, scale in enumerate(protocol.scales):
        p = probabilities(biases, problem.design.gamma, scale)
        for j, shrink in enumerate(protocol.shrinks):
            runs.append(Trajectory(frame, p, shrink * eta, (int(exact), i, j)))
    best = [Reached.nothing(len(targets)) for _ in every]
    for reached in best:
        reached.flops[:] = protocol.max_flops  # what costs more is not reached
    while runs and len(goals):
        run = min(runs, key=lambda run: run.flops)
        open_ = np.any([b.flops[: len(goals)] > run.flops for b in best], axis=0)
        if not open_.any() or run.diverged or run.steps >= protocol.max_steps:
            runs.remove(run)
            continue
        limit = min(64 + run.steps, protocol.max_steps - run.steps)
        found = run.advance(limit)
        for interval, reached in zip(every, best, strict=True):
            reached.read(goals, found, interval)
    for reached in best:
        reached.flops[np.isinf(reached.steps)] = np.inf
    return best


def across_seeds(flops: np.ndarray) -> np.ndarray:
    """Quartiles and median over the seeds that reached a target, when at least half did."""
    out = np.full((3, flops.shape[1]), np.nan)
    for j, column in enumerate(flops.T):
        reached = column[np.isfinite(column)]
        if 2 * len(reached) >= len(column):
            out[:, j] = np.quantile(reached, [0.25, 0.5, 0.75])
    return out


# -- what the paper does not run (its section 4.2.2, appendix E.4.2) -------------------------------

MOST = 16  # targets of the frozen instance: those over which exponents are fitted


def krylov_frontier(
    problem: Reduced, levels: Sequence[int], targets: np.ndarray, iterations: int = 400
) -> Reached:
    """Conjugate gradients on each level, charged 4mk an iteration: flops to each target.

    Residuals are kept orthogonal, or rounding would decide how many iterations a target takes.
    """
    best = Reached.nothing(len(targets))
    for k in levels:
        gram, x = problem.gram[:k, :k], np.zeros(k)
        r = problem.moment[:k].copy()
        p, square, losses, basis = r, r @ r, [], np.empty((min(iterations, k), k))
        for i in range(len(basis)):
            basis[i] = r / np.sqrt(square)
            image = gram @ p
            alpha = square / (p @ image)
            x, r = x + alpha * p, r - alpha * image
            r -= (basis[: i + 1] @ r) @ basis[: i + 1]
            square, before = r @ r, square
            p = r + square / before * p
            losses.append(problem.loss_zero - x @ (problem.moment[:k] + r) / 2)
            if square < 1e-24 * problem.loss_zero:
                break
        steps, last = np.arange(1, len(losses) + 1), np.array(losses)
        found = Readings(steps, 4.0 * problem.design.m * k * steps, last, last)
        best.read(targets * problem.loss_zero, found)
    return best


class Frozen:
    """The instance with its prefactor frozen: every level errs everywhere as it does at the origin.

    Level k returns the gradient minus the coordinates past k of the gradient at 0, so its bias no
    longer shrinks with the residual, as the dyadic assumption allows. All of it is diagonal in the
    eigenbasis of the Gram matrix, where an increment is a constant vector.
    """

    def __init__(self, problem: Reduced):
        self.problem = problem
        self.values, vectors = problem.spectrum(len(problem.gram))
        self.pushes = vectors * problem.moment[:, None]  # by coordinate
        self.push = self.pushes.sum(axis=0)

    def losses(self, y: np.ndarray, over: np.ndarray | float = 1.0) -> np.ndarray:
        """Losses of points given in the eigenbasis, one per row, each divided by a number first."""
        square, linear = (y * y) @ self.values / 2, y @ self.push
        return self.problem.loss_zero + (square / over - linear) / over

    def fixed(self, levels: Sequence[int], targets: np.ndarray) -> Reached:
        """The fixed level's frontier: the first step (a fine grid past 4096) below each target."""
        steps = np.unique(
            np.append(np.arange(1, 4097), np.round(np.logspace(3.6, 8, 4000)))
        )
        decay = np.log1p(-self.values / (4 * self.values[-1]))
        goals = targets * self.problem.loss_zero
        ends = [self.pushes[:k].sum(axis=0) / self.values for k in levels]
        firsts = np.full((len(levels), len(targets)), np.inf)
        for part in np.array_split(steps, 16):
            share = -np.expm1(part[:, None] * decay)  # of the way to a level's end
            for end, first in zip(ends, firsts, strict=True):
                losses = self.losses(share * end)
                for j in np.flatnonzero(np.isinf(first) & (losses.min() <= goals)):
                    first[j] = part[np.argmax(losses <= goals[j])]
        return fixed_frontier([*zip(levels, firsts, strict=True)], self.problem.design.m)

    def telescope(
        self,
        ladder: Sequence[int],
        scales: Sequence[float],
        targets: np.ndarray,
        max_flops: float,
    ) -> Reached:
        """The telescope's frontier to the first targets above the floor, charged as exact.

        A step takes eta values y from y and adds what is drawn: so the sum of all y is what was
        drawn and is not in the last one, over eta values.
        """
        problem, best = self.problem, Reached.nothing(len(targets))
        biases, eta = problem.biases(ladder, steps=(0,))[0], 1 / (4 * self.values[-1])
        goals = (
            targets[:MOST][targets[:MOST] > problem.floor(ladder[-1])] * problem.loss_zero
        )
        pieces = np.add.reduceat(self.pushes, [0, *ladder[:-1]])  # what an increment adds
        taken, kept = eta * self.values, 1 - eta * self.values
        for i, scale in enumerate(scales):
            p = probabilities(biases, problem.design.gamma, scale)
            path, weights = np.zeros((DRAWS + 1, len(taken))), np.zeros((1, len(p)))
            steps, flops = 0, 0.0
            for drawn in coins(problem.design.seed, (9, i), p):
                np.matmul(eta * drawn / p, pieces, out=path[1:])
                for before, after in pairwise(path):
                    after += kept * before
                weights = weights[-1:] + np.cumsum(eta * drawn / p, axis=0)
                times = steps + np.arange(1, DRAWS + 1)
                bill = flops + np.cumsum(prices(ladder, problem.design.m, True, drawn))
                sums = weights @ (pieces / taken) - path[1:] / taken
                losses = self.losses(path[1:]), self.losses(sums, times)
                best.read(goals, Readings(times, bill, *losses))
                path[0], steps, flops = path[-1], int(times[-1]), float(bill[-1])
                if flops > max_flops or not (best.flops[: len(goals)] > flops).any():
                    break
        return best


def beyond(protocol: Protocol, problem: Reduced) -> dict[str, Reached]:
    """The Krylov frontier and those of the frozen instance, for `sweep(..., also=beyond)`."""
    frozen, targets, ladder = Frozen(problem), protocol.losses, protocol.ladder
    return {
        "krylov": krylov_frontier(problem, protocol.baseline, targets),
        "frozen fixed": frozen.fixed(protocol.baseline, targets),
        "frozen exact": frozen.telescope(
            ladder, protocol.scales, targets, protocol.max_flops
        ),
    }
