"""Errors that jump from point to point, as rounding does, may average out: then means over points take the place of levels.

Around y a level is asked at 4, 16, 64, ... points y + s and y - s, where the shifts s move the gradient by several cells of
its errors (they are steps of the coarse model for random gradients of that size). An error that is another one at
every point falls by half from one mean to the next, for four times the price: a ladder of rate two, whatever the levels cost.
What of the error lasts is seen in the mean of an increment; on a loss that is not quadratic a mean also smooths it, which is
seen in a mean over points half as far away. Both are looked at with every mean, as far as that is cheap; nothing is promised.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from .hierarchy import Hierarchy

DIRECTIONS = 8  # with fewer, some entries of the gradient hardly move
TRIAL = 16  # points at which errors are tried for averaging out
MOST = 4**8  # points of a mean


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
        """The same points whenever they are asked for, those of fewer points among them."""
        rng = np.random.default_rng(0)
        for _ in range(n // 2):
            shift = np.tensordot(rng.standard_normal(len(self.directions)), self.directions, 1)
            yield from (shift, -shift)

    def mean(self, value: Callable, k: int, y: np.ndarray) -> np.ndarray:
        """A_k(y), or past the last level a mean."""
        if k <= self.last:
            return value(k, y)
        return self.over(partial(value, self.level), y, self.points(k))

    def over(self, function: Callable, y: np.ndarray, n: int, scale: float = 1.0) -> np.ndarray:
        return sum(function(y + scale * shift) for shift in self.shifts(n)) / n

    def ladder(self, h: Hierarchy) -> Hierarchy:
        """h up to the last level, then means."""
        cost = h.cost
        price = {k: cost(k) for k in h.levels if k <= self.last}
        k = self.last + 1
        while self.points(k) <= MOST and self.points(k) * cost(self.level) <= cost(h.levels[-1]):
            price[k], k = self.points(k) * cost(self.level), k + 1
        return h._like(levels=tuple(price), cost=price.__getitem__, accuracy=None)

    def name(self, k: int) -> str:
        return (
            f"level {k}"
            if k <= self.last
            else f"the mean of level {self.level} over {self.points(k)} points"
        )
