"""Trajectories of the experiment in Gram space, and the cheapest flops at which each target loss was reached.

The paper's appendix E.3. Compute is charged in the paper's flops (4mk per fixed step; 2m(k + k-) per exact increment, plus 2m k_t for
the residual; 4m(k + k-) per truncated increment) and spent otherwise: a fixed level is closed form in its eigenbasis, and a
telescope's always-drawn prefix is a diagonal map between rare corrections. Both are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .features import Reduced
from .trajectory import Readings, Trajectory


class Run(NamedTuple):
    """What a method chose for a target: its level or its constant C, its step as a share of 1/(4 beta), its iterate."""

    choice: float
    shrink: float
    iterate: str  # 'last' or 'average'


@dataclass
class Reached:
    """Flops and steps at which each target was first reached (infinite: never), and the run that did it."""

    flops: np.ndarray
    steps: np.ndarray
    runs: list[Run | None]

    @classmethod
    def nothing(cls, count: int) -> Reached:
        return cls(np.full(count, np.inf), np.full(count, np.inf), [None] * count)

    def note(self, j: int, flops: float, steps: float, run: Run) -> None:
        """Target j was reached at this price: keep it if it is the cheapest so far."""
        if flops < self.flops[j]:
            self.flops[j], self.steps[j], self.runs[j] = flops, steps, run

    def read(
        self, goals: np.ndarray, readings: Readings, every: int, choice: float, shrink: float
    ) -> None:
        """Enter the targets that a chunk of a run meets with either iterate, its losses read every so many steps."""
        rows = slice(None) if every == 1 else np.flatnonzero(readings.steps % every == 0)
        for iterate, losses in (("last", readings.last), ("average", readings.average)):
            open_ = self.flops[: len(goals)] > readings.flops[0]
            if losses is None or not open_.any() or losses.min() > goals[open_].max():
                continue
            losses, flops, steps = losses[rows], readings.flops[rows], readings.steps[rows]
            for j in np.flatnonzero(open_ & (goals >= losses.min(initial=np.inf))):
                first = int(np.argmax(losses <= goals[j]))
                self.note(j, flops[first], steps[first], Run(choice, shrink, iterate))


def fixed_level(
    problem: Reduced, k: int, shrink: float, targets: np.ndarray
) -> dict[str, np.ndarray]:
    """Gradient descent at level k with step shrink/(4 beta_k): the exact first step at which each target is met.

    The loss of the last iterate and that of the average are sums of decreasing terms in the eigenbasis, so the first
    step below a target is found by bisection over the integers, however large. Infinite: never.
    """
    values, vectors = np.linalg.eigh(problem.gram[:k, :k])
    energy = (vectors.T @ problem.moment[:k]) ** 2 / values / 2
    decay = np.log1p(-shrink * values / (4 * values[-1]))
    needed = targets * problem.loss_zero - (
        problem.loss_zero - energy.sum()
    )  # what may remain above the floor

    def last(t: np.ndarray) -> np.ndarray:
        return np.exp(2 * t[:, None] * decay) @ energy

    def average(t: np.ndarray) -> np.ndarray:
        return (np.expm1(t[:, None] * decay) / np.expm1(decay) / t[:, None]) ** 2 @ energy

    return {name: first_below(f, needed) for name, f in (("last", last), ("average", average))}


def first_below(f: Callable[[np.ndarray], np.ndarray], needed: np.ndarray) -> np.ndarray:
    """The first integer t >= 1 with f(t) <= needed, for a decreasing f; infinite where there is none."""
    out = np.full(len(needed), np.inf)
    possible = np.flatnonzero(needed > 0)
    need, high = needed[possible], np.ones(len(possible))
    limit = 2.0**50
    while len(possible) and ((f(high) > need) & (high < limit)).any():
        high = np.where(f(high) > need, np.minimum(2 * high, limit), high)
    low = np.where(high > 1, np.floor(high / 2), 0.0)  # f(low) > need: the answer is in (low, high]
    while len(possible) and (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        below = (f(np.maximum(middle, 1)) <= need) & (middle > low)
        high, low = np.where(below, middle, high), np.where(below | (high - low <= 1), low, middle)
    if len(possible):
        out[possible] = np.where(f(high) <= need, high, np.inf)
    return out


def fixed_steps(
    problem: Reduced,
    levels: Sequence[int],
    targets: np.ndarray,
    shrinks: Sequence[float] = (1.0, 0.5),
) -> dict[tuple[int, float, str], np.ndarray]:
    """Steps to each target, for every level, step size and iterate, with no limit on their number."""
    return {
        (k, shrink, iterate): steps
        for k in levels
        for shrink in shrinks
        for iterate, steps in fixed_level(problem, k, shrink, targets).items()
    }


def fixed_frontier(
    steps: dict[tuple[int, float, str], np.ndarray],
    m: int,
    max_steps: float = np.inf,
    every: int = 1,
) -> Reached:
    """The baseline: cheapest over levels, steps and iterates (the paper's appendix E.3.2), read every `every` steps."""
    best = Reached.nothing(len(next(iter(steps.values()))))
    for (k, shrink, iterate), first in steps.items():
        for j, t in enumerate(np.ceil(first / every) * every):
            if t <= max_steps:
                best.note(j, t * 4.0 * m * k, t, Run(k, shrink, iterate))
    return best


def probabilities(biases: np.ndarray, gamma: float, scale: float) -> np.ndarray:
    """p_k = min(C (delta_k / delta_0)^(1 + gamma/2), 1), from measured biases (the paper's appendix E.3.1)."""
    return np.minimum(scale * (biases / biases[0]) ** (1 + gamma / 2), 1.0)


def telescope_frontier(
    problem: Reduced,
    ladder: Sequence[int],
    scales: Sequence[float],
    exact: bool,
    targets: np.ndarray,
    probes: Sequence[int],
    shrinks: Sequence[float] = (1.0, 0.5),
    max_steps: int = 250_000,
    max_flops: float = 1e10,
    every: Sequence[int] = (1,),
) -> list[Reached]:
    """The multilevel method: cheapest over C, both steps and both iterates; one frontier for each reading interval.

    The runs race in flops. One that has spent more than the best known cost of every target still open cannot improve
    the frontier and stops there; targets below the floor of the first k_max coordinates are out of reach of all.
    """
    biases = problem.biases(ladder, steps=probes).max(axis=0)
    eta = 1 / (4 * problem.smoothness(ladder[-1]))
    goals = targets[targets > problem.floor(ladder[-1])] * problem.loss_zero
    runs = {
        (scale, shrink): Trajectory(
            problem,
            ladder,
            probabilities(biases, problem.design.gamma, scale),
            shrink * eta,
            exact,
            (int(exact), i, j),
        )
        for i, scale in enumerate(scales)
        for j, shrink in enumerate(shrinks)
    }
    best = [Reached.nothing(len(targets)) for _ in every]
    for reached in best:
        reached.flops[:] = max_flops  # what costs more is not reached
    budget = 1e6
    while runs and len(goals):
        budget *= 2
        for (scale, shrink), run in list(runs.items()):
            while run.flops < budget:
                useful = np.flatnonzero(
                    np.any([b.flops[: len(goals)] > run.flops for b in best], axis=0)
                )
                if not len(useful) or run.diverged or run.steps >= max_steps:
                    del runs[scale, shrink]
                    break
                goal = goals[useful[0]]
                expected = (budget - run.flops) / run.mean_price
                readings = run.advance(
                    goal, limit=int(min(max(expected, 64), max_steps - run.steps))
                )
                for interval, reached in zip(every, best, strict=True):
                    reached.read(goals, readings, interval, scale, shrink)
    for reached in best:
        reached.flops[np.isinf(reached.steps)] = np.inf
    return best
