"""Errors that jump from point to point, as rounding does, may average out: then means over points take the place of levels.

Around y a level is asked at 4, 16, 64, ... points y + s and y - s, where the shifts s move the gradient by several cells of
its errors (they are steps of the coarse model for random gradients of that size). An error that is another one at
every point falls by half from one mean to the next, for four times the price: a ladder of rate two, whatever the levels cost.
On a loss that is not quadratic a mean also smooths it, which no mean tells: nothing is promised.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .hierarchy import Hierarchy

GOLDEN = np.array([0.8191725134, 0.6710436067, 0.5497004779])  # multiples modulo one fill a cube evenly
TRIAL = 16  # points at which errors are tried for averaging out
MEANS = 13  # means: over up to 4^13 points


@dataclass(frozen=True, eq=False)
class Dither:
    """Means of a level along a few directions, in place of the levels after the `last` one that was asked, `lead` ranks finer."""

    level: int
    directions: np.ndarray
    last: int
    lead: int = 0

    def points(self, k: int) -> int:
        """Over how many points the mean that stands for level k is taken."""
        return 4 ** (k - self.last + self.lead)

    def shifts(self, n: int) -> Iterator[np.ndarray]:
        for j in range(1, n // 2 + 1):
            shift = np.tensordot(4 * (j * GOLDEN % 1.0) - 2, self.directions, 1)
            yield from (shift, -shift)

    def mean(self, value: Callable, k: int, y: np.ndarray) -> np.ndarray:
        """A_k(y), or past the last level a mean."""
        if k <= self.last:
            return value(k, y)
        n = self.points(k)
        return sum(value(self.level, y + shift) for shift in self.shifts(n)) / n

    def left(self, increment: Callable, y: np.ndarray) -> float:
        """The share of the level's increment that is left in a mean."""
        steps = np.array([increment(y + shift).ravel() for shift in self.shifts(TRIAL)])
        size = math.sqrt((steps**2).sum(axis=1).mean())
        return float(np.linalg.norm(steps.mean(axis=0))) / size if size else 1.0

    def ladder(self, h: Hierarchy) -> Hierarchy:
        """h up to the last level, then means."""
        cost = h.cost
        price = {k: cost(k) for k in h.levels if k <= self.last}
        price |= {k: self.points(k) * cost(self.level) for k in range(self.last + 1, self.last + MEANS + 1)}
        return h._like(levels=tuple(price), cost=price.__getitem__, accuracy=None)

    def name(self, k: int) -> str:
        return f"level {k}" if k <= self.last else f"the mean of level {self.level} over {self.points(k)} points"
