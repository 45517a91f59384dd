"""One run of the telescope on least squares, in Gram space: every loss, no product on the design.

The paper's appendix E.3. Between two draws of the finest level only the coordinates of the level
below it move, and a step is one small matrix; the losses on the way follow from sums. Flops are
charged as the paper charges them and have nothing to do with the work done here. `literal` is the
same run with products on the design.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .design import TELESCOPE, stream
from .reduce import Reduced

DRAWS = 1024  # steps whose coins are tossed at once, and at most whose losses are read at once
STRETCH = 16  # usual steps made by one product
DIVERGED = 1e6  # times L0
ONES, BACKWARDS = np.ones(DRAWS), np.arange(DRAWS - 1, -1, -1.0)


class Readings(NamedTuple):
    """What some steps of a run showed: numbers, flops, losses of the last and averaged iterates."""

    steps: np.ndarray
    flops: np.ndarray
    last: np.ndarray
    average: np.ndarray


def coins(seed: int, name: tuple[int, ...], p: np.ndarray) -> Iterator[np.ndarray]:
    """Independent coins B_k, `DRAWS` steps at a time: the one source of randomness of a run."""
    rng = stream(seed, TELESCOPE, *name)
    while True:
        yield rng.random((DRAWS, len(p))) < p


def prices(ladder: Sequence[int], m: int, exact: bool, drawn: np.ndarray) -> np.ndarray:
    """Flops of each step from its coins: every drawn increment pays for the two levels it spans.

    The exact form also pays 2m k_t for moving the residual, k_t the finest level drawn.
    """
    k = np.asarray(ladder, float)
    pair = k + np.append(0.0, k[:-1])
    if exact:
        return 2.0 * m * (drawn @ pair + np.max(drawn * k, axis=1))
    return 4.0 * m * (drawn @ pair)


class Moves:
    """What a step does, by the outcome of its coins; bit k of a code is the coin B_k."""

    def __init__(
        self, problem: Reduced, ladder: Sequence[int], p: np.ndarray, eta: float, exact: bool
    ):
        self.problem, self.ladder, self.p, self.exact = problem, tuple(ladder), p, exact
        codes = np.arange(1 << len(p))[:, None] >> np.arange(len(p)) & 1
        weights = eta * codes / p  # eta B_k / p_k, code x level
        self.factors = -np.repeat(weights, np.diff((0, *ladder)), axis=1)  # code x coordinate
        self.levels = [self.by_level(row) for row in weights]
        self.strip = np.ascontiguousarray(problem.gram[:, : ladder[-2]])
        self.near = np.ascontiguousarray(self.factors[:, : ladder[-2]])
        self.inner = [self.linear(code) for code in range(len(codes) // 2)]
        self.usual = int((p[:-1] == 1) @ (1 << np.arange(len(p) - 1)))  # nothing drawn by chance
        powers = [self.inner[self.usual]]
        while len(powers) < STRETCH:
            powers.append(powers[0] @ powers[-1])
        self.powers = np.concatenate(powers)

    def linear(self, code: int) -> np.ndarray:
        """A step without the finest level as a matrix: of the inner gradient, or of (x, 1)."""
        n = self.ladder[-2]
        gram = self.strip[:n]
        if self.exact:
            return np.eye(n) + gram * self.near[code]
        step = np.eye(n + 1)
        for k, weight in self.levels[code]:
            step[:k, :k] -= weight * gram[:k, :k]
            step[:k, n] += weight * self.problem.moment[:k]
        return step

    def by_level(self, weights: np.ndarray) -> list[tuple[int, float]]:
        """The truncated step as a combination of levels: increments regrouped, zeros dropped."""
        each = zip(self.ladder, weights - np.append(weights[1:], 0), strict=True)
        return [(k, weight) for k, weight in each if weight]

    def outer(self, code: int, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """The change of x in a step that draws the finest level."""
        if self.exact:
            return self.factors[code] * gradient
        change, gram, v = np.zeros(len(x)), self.strip, self.problem.moment
        for k, weight in self.levels[code]:
            change[:k] -= weight * (gradient if k == len(x) else gram[:k, :k] @ x[:k] - v[:k])
        return change

    def path(self, start: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """The start and what it becomes after each step; usual stretches in one product."""
        count, n = len(codes), len(start)
        path = np.empty((count + 1, n))
        path[0], flat, at = start, path.ravel(), 0
        (unusual,) = (codes != self.usual).nonzero()
        ends, kinds = [*unusual.tolist(), count], [*codes[unusual].tolist(), None]
        for end, code in zip(ends, kinds, strict=True):
            while at < end:
                to = end if end - at < STRETCH else at + STRETCH
                part = flat[(at + 1) * n : (to + 1) * n]
                self.powers[: len(part)].dot(path[at], out=part)
                at = to
            if code is not None:
                at = end + 1
                self.inner[code].dot(path[end], out=path[at])
        return path


class Trajectory:
    """A run of the telescope from 0 in Gram space, with the losses of both iterates at every step.

    Losses follow from gradients and sums alone, L being quadratic: a change y of x raises it by
    y.(g + g')/2, and the average of t iterates whose sum is S and whose gradients' sum is H has the
    loss L(0) + (S.H/t - v.S)/2t.
    """

    def __init__(self, moves: Moves, name: tuple[int, ...]):
        self.moves, self.steps, self.flops, self.diverged = moves, 0, 0.0, False
        self.coins = coins(moves.problem.design.seed, name, moves.p)
        self.ahead = next(self.coins)  # tossed and not yet used
        self.x, self.sum = np.zeros((2, moves.ladder[-1]))
        self.gradient, self.loss = -moves.problem.moment, moves.problem.loss_zero
        self.far = 0.0  # the sum of all residuals so far is at least this long

    def advance(self, limit: int, goal: float = np.inf) -> Readings:
        """At most `limit` steps. The average is infinite where it cannot be below the goal."""
        if not len(self.ahead):
            self.ahead = next(self.coins)
        drawn, self.ahead = self.ahead[:limit], self.ahead[limit:]
        moves, count, at = self.moves, len(drawn), 0
        codes = drawn @ (1 << np.arange(drawn.shape[1]))
        price = prices(moves.ladder, moves.problem.design.m, moves.exact, drawn)
        losses = np.empty((2, count))  # last, average
        with np.errstate(over="ignore", invalid="ignore"):  # a run may diverge on the way
            for end in [*np.flatnonzero(drawn[:, -1]).tolist(), count]:
                if at < end:
                    losses[0, at:end], losses[1, at:end] = self.inner(codes[at:end], goal)
                if end < count:
                    losses[:, end] = self.outer(codes[end], goal)
                at = end + 1
            self.diverged = not losses[0].max() < DIVERGED * moves.problem.loss_zero
        if self.diverged:
            losses = np.nan_to_num(losses, nan=np.inf)
        bill = self.flops + np.cumsum(price)
        self.flops = float(bill[-1])
        return Readings(self.steps - count + 1 + np.arange(count), bill, *losses)

    def inner(self, codes: np.ndarray, goal: float) -> tuple[np.ndarray, np.ndarray | float]:
        """Steps that leave the finest level alone: only the first n coordinates move."""
        moves, n, count = self.moves, self.moves.ladder[-2], len(codes)
        x, g = self.x, self.gradient
        if moves.exact:
            slopes = moves.path(g[:n], codes)
            changes = moves.near.take(codes, axis=0)
            changes *= slopes[:-1]
        else:
            points = moves.path(np.append(x[:n], 1.0), codes)[:, :n]
            changes, slopes = points[1:] - points[:-1], g[:n] + (points - x[:n]) @ moves.strip[:n]
        rises = np.einsum("ij,ij->i", changes, slopes[1:] + slopes[:-1]) / 2
        last = self.loss + rises.cumsum()
        largest = max(self.loss, np.maximum.reduce(last))
        average = self.averages(changes, slopes) if self.close(goal, count, largest) else np.inf
        self.sum += count * x
        self.sum[:n] += BACKWARDS[-count:] @ changes
        change = ONES[:count] @ changes
        x[:n] += change
        g += moves.strip @ change
        self.steps, self.loss = self.steps + count, last[-1]
        return last, average

    def close(self, goal: float, count: int, largest: float) -> bool:
        """Whether an average of the next steps may be below the goal, their losses at most so."""
        lost, needed = count * math.sqrt(2 * largest), math.sqrt(2 * goal) * (self.steps + count)
        self.far -= lost
        if self.far > needed:
            return False
        v, zero, t = self.moves.problem.moment, self.moves.problem.loss_zero, self.steps
        self.gradients = self.moves.problem.gram @ self.sum - t * v
        square = self.sum @ self.gradients - t * (v @ self.sum - 2 * t * zero)
        self.far = math.sqrt(max(square, 0.0)) - lost
        return not self.far > needed

    def averages(self, changes: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """The loss of the average after each of these inner steps."""
        x, g, v, n = self.x, self.gradient, self.moves.problem.moment, changes.shape[1]
        t, sums = np.arange(1, len(changes) + 1.0), np.zeros_like(changes)
        np.cumsum(np.cumsum(changes[:-1], axis=0), axis=0, out=sums[1:])  # of displacements
        both = self.sum @ self.gradients + t * (self.sum @ g + x @ self.gradients) + t * t * (x @ g)
        outside = 2 * self.gradients[:n] + self.steps * v[:n]
        both += np.einsum("ij,ij->i", sums, np.cumsum(slopes[:-1], axis=0) + outside)
        both += t * (sums @ (g + v)[:n])
        times, linear = self.steps + t, v @ self.sum + t * (v @ x) + sums @ v[:n]
        return self.moves.problem.loss_zero + (both / times - linear) / (2 * times)

    def outer(self, code: int, goal: float) -> tuple[float, float]:
        """A step that draws the finest level: every coordinate moves."""
        x, g, problem, average = self.x, self.gradient, self.moves.problem, np.inf
        if self.close(goal, 1, self.loss):
            total, slopes = self.sum + x, self.gradients + g
            t = self.steps + 1
            average = (total @ slopes / t - problem.moment @ total) / (2 * t) + problem.loss_zero
        self.sum += x
        change = self.moves.outer(code, x, g)
        x += change
        g += problem.gram @ change
        self.steps, self.loss = self.steps + 1, problem.loss_zero + x @ (g - problem.moment) / 2
        return self.loss, average
