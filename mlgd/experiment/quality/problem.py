"""What a problem of the bench is: levels with their own losses, a truth, targets.

A level answers with the pair (its own loss, the gradient of that loss) at one price, as an
adjoint code does. `minimize` is given the gradients alone; the policies that it is compared
with see the losses too, which is an advantage over it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mlgd import Hierarchy

Pair = tuple[float, np.ndarray]
SHARES = (1e-1, 1e-2, 1e-3)  # loose, middle and tight: of the loss gap at the start
PRECISE = (1e-1, 1e-2, 1e-4)  # where the finest level on offer errs by far less than that


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """One problem of one data seed: its levels from coarse to fine, its start and its truth.

    `limit` says what the true loss is: the limit of the levels in closed form, the finest
    level itself (then `exact`), or the same method much finer than any level on offer.
    """

    name: str
    kind: str
    convex: bool
    seed: int
    start: np.ndarray
    levels: tuple[int, ...]
    price: Callable[[int], float]
    level: Callable[[int, np.ndarray], Pair]
    truth: Callable[[np.ndarray], Pair]
    limit: str
    exact: bool = False
    shares: tuple[float, ...] = SHARES
    rounded: bool = False  # a level's gradient is that of its loss up to rounding errors alone

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """What `minimize` sees: no losses and no accuracies, which nobody has for these."""

        def evaluate(k: int, y: np.ndarray) -> np.ndarray:
            return self.pair(k, y)[1]

        return Hierarchy(evaluate, self.price, self.levels, exact=self.exact)

    def pair(self, k: int, y: np.ndarray) -> Pair:
        """A level's loss and gradient; inf or nan where it overflows, without a warning."""
        with np.errstate(all="ignore"):
            return self.level(k, y)

    def loss(self, y: np.ndarray) -> float:
        """The true loss."""
        with np.errstate(all="ignore"):
            return float(self.truth(y)[0])


def finest(levels: tuple[int, ...], level: Callable[[int, np.ndarray], Pair]) -> Callable:
    """The finest level as the truth, for a problem whose finest level is exact."""
    return lambda y: level(levels[-1], y)


def softplus(x: np.ndarray, width: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """A smooth max(x, 0) and its derivative."""
    value = width * np.logaddexp(0.0, x / width)
    slope = sigmoid(x / width)
    return value, slope


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) without overflow."""
    return (1 + np.tanh(x / 2)) / 2
