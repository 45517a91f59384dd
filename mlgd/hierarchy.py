"""What can be bought: levels of a gradient, their accuracy and their price.

The paper's Assumption 1 (dyadic hierarchy): algorithms A_k with ||A_k - f|| <= 2^-k at price c^gamma 2^(gamma k).
Here levels, accuracies and prices are free; the dyadic case is the default.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np


class LevelError(ValueError):
    """A level returned something that is not a gradient, or was asked for and does not exist."""


@dataclass(frozen=True)
class Hierarchy:
    """A gradient at several accuracies: `evaluate(k, y)` is A_k(y), `cost(k)` the price of one evaluation.

    `levels` are increasing integers, `accuracy(k)` bounds ||A_k - f|| (2^-k unless given), `increment(k, y)` is
    A_k - A_{k-} where the two share work (k- is the level before k; below the first, A is 0), then charged cost(k).

    >>> h = Hierarchy(lambda k, y: y + 2.0**-k, cost=lambda k: 8.0**k, levels=range(4))
    >>> h.step(2, np.zeros(2)), h.step_cost(2)
    (array([-0.25, -0.25]), 72.0)
    """

    evaluate: Callable[[int, np.ndarray], np.ndarray]
    cost: Callable[[int], float]
    levels: Sequence[int]
    accuracy: Callable[[int], float] | None = None
    increment: Callable[[int, np.ndarray], np.ndarray] | None = None

    def __post_init__(self):
        levels = tuple(int(k) for k in self.levels)
        if not levels or any(b <= a for a, b in pairwise(levels)):
            raise ValueError(f"levels must be increasing integers, at least one; got {self.levels!r}")
        object.__setattr__(self, "levels", levels)
        if self.accuracy is None:
            object.__setattr__(self, "accuracy", lambda k: 2.0**-k)
        for name, function in (("price", self.cost), ("accuracy", self.accuracy)):
            for k in levels:
                value = float(function(k))
                if not (value > 0 and math.isfinite(value)):
                    raise ValueError(f"the {name} of level {k} must be positive and finite; got {value!r}")

    def before(self, k: int) -> int | None:
        """The level before k, or None at the first (whose predecessor is the zero function)."""
        i = self._index(k)
        return self.levels[i - 1] if i else None

    def step(self, k: int, y: np.ndarray) -> np.ndarray:
        """The increment A_k(y) - A_{k-}(y)."""
        if self.increment is not None:
            return self.increment(k, y)
        previous = self.before(k)
        return self.evaluate(k, y) if previous is None else self.evaluate(k, y) - self.evaluate(previous, y)

    def step_cost(self, k: int) -> float:
        """The price of one increment: two evaluations, or one where the work is shared."""
        previous = self.before(k)
        return self.cost(k) + (self.cost(previous) if previous is not None and self.increment is None else 0.0)

    def level_for(self, delta: float) -> int:
        """The coarsest level whose accuracy is at most delta."""
        for k in self.levels:
            if self.accuracy(k) <= delta * (1 + 1e-12):
                return k
        best = min(map(self.accuracy, self.levels))
        raise LevelError(
            f"accuracy {delta:.3g} is needed and the finest level offers {best:.3g}: add levels (the next would be "
            f"{self.levels[-1] + 1}) or ask for a larger eps"
        )

    def check(self, y: np.ndarray, levels: Sequence[int] | None = None) -> np.ndarray:
        """Evaluate each level once at y and refuse a level of another shape or a non-finite value; returns y as floats."""
        y = np.array(y, dtype=float)
        if not np.isfinite(y).all():
            raise ValueError("the starting point has a non-finite entry: give finite numbers")
        for k in self.levels if levels is None else levels:
            self.checked(k, y)
        return y

    def checked(self, k: int, y: np.ndarray) -> np.ndarray:
        """A_k(y), refused by name if it has another shape or a non-finite value."""
        value = np.asarray(self.evaluate(k, y), float)
        if value.shape != y.shape:
            raise LevelError(
                f"level {k} returned shape {value.shape} at a point of shape {y.shape}: return one entry a coordinate"
            )
        if not np.isfinite(value).all():
            raise LevelError(f"level {k} returned a non-finite value at the point given: mend that level or drop it")
        return value

    def _index(self, k: int) -> int:
        try:
            return self.levels.index(k)
        except ValueError:
            raise LevelError(f"level {k} is not one of {self.levels[0]}..{self.levels[-1]}") from None


def first_level(c: float) -> int:
    """The paper's k_min: the level before it costs at most one unit, c^gamma 2^(gamma (k_min - 1)) <= 1.

    >>> first_level(0.3)
    2
    """
    return math.floor(-math.log2(c)) + 1
