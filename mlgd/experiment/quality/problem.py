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
Level = Callable[[int, np.ndarray], Pair]
SHARES = (1e-1, 1e-2, 1e-3)  # loose, middle and tight: of the loss gap at the start
PRECISE = (1e-1, 1e-2, 1e-4)  # where the finest level on offer errs by far less than that


@dataclass(frozen=True, eq=False, kw_only=True)
class Ladder:
    """Levels by their sizes, from coarse to fine, and where the truth is.

    The truth is `limit`, a function of the point alone; or the level of size `finer`, which is
    not on offer; or else the finest level itself, which is then called exact.
    """

    start: np.ndarray
    sizes: tuple[int, ...]
    level: Level
    price: Callable[[int], float] = float
    finer: int | None = None
    limit: Callable[[np.ndarray], Pair] | None = None

    @property
    def exact(self) -> bool:
        return self.finer is None and self.limit is None

    def truth(self, y: np.ndarray) -> Pair:
        """The true loss and its gradient."""
        if self.limit is not None:
            return self.limit(y)
        return self.level(self.finer or self.sizes[-1], y)


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """A name, and how to make the problem from a data seed; `truth` is said in words."""

    name: str
    kind: str
    convex: bool
    truth: str
    make: Callable[[np.random.Generator], Ladder]
    shares: tuple[float, ...] = SHARES
    rounded: bool = (
        False  # a level's gradient is that of its loss up to rounding errors alone
    )

    def instance(self, seed: int) -> "Instance":
        """The problem of one data seed; each problem has a stream of its own."""
        rng = np.random.default_rng([seed, *self.name.encode()])
        return Instance(self, seed, self.make(rng))


def problem(name: str, kind: str, *, convex: bool, truth: str, **options) -> Callable:
    """Make a problem of a function that makes its ladder."""

    def decorated(make: Callable[[np.random.Generator], Ladder]) -> Problem:
        return Problem(
            name=name, kind=kind, convex=convex, truth=truth, make=make, **options
        )

    return decorated


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem of one data seed."""

    problem: Problem
    seed: int
    ladder: Ladder

    @property
    def name(self) -> str:
        return self.problem.name

    @property
    def convex(self) -> bool:
        return self.problem.convex

    @property
    def shares(self) -> tuple[float, ...]:
        """Of the loss gap at the start: its targets."""
        return self.problem.shares

    @property
    def start(self) -> np.ndarray:
        return self.ladder.start

    @property
    def levels(self) -> tuple[int, ...]:
        return self.ladder.sizes

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """What `minimize` sees: no losses and no accuracies, which nobody has for these."""

        def evaluate(k: int, y: np.ndarray) -> np.ndarray:
            return self.pair(k, y)[1]

        return Hierarchy(
            evaluate, self.ladder.price, self.levels, exact=self.ladder.exact
        )

    def pair(self, k: int, y: np.ndarray) -> Pair:
        """A level's loss and gradient; inf or nan where it overflows, without a warning."""
        with np.errstate(all="ignore"):
            return self.ladder.level(k, y)

    def truth(self, y: np.ndarray) -> Pair:
        """The true loss and its gradient."""
        with np.errstate(all="ignore"):
            return self.ladder.truth(y)

    def loss(self, y: np.ndarray) -> float:
        """The true loss."""
        return float(self.truth(y)[0])


# --- what several problems use ---


def powers(first: int, last: int) -> tuple[int, ...]:
    """Sizes of levels: 2^first to 2^last."""
    return tuple(2**k for k in range(first, last + 1))


def softplus(x: np.ndarray, width: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """A smooth max(x, 0) and its derivative."""
    value = width * np.logaddexp(0.0, x / width)
    return value, sigmoid(x / width)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) without overflow."""
    return (1 + np.tanh(x / 2)) / 2


def bell(x: np.ndarray, width: float) -> np.ndarray:
    """A bump of height one."""
    return np.exp(-((x / width) ** 2) / 2)


def sines(x: np.ndarray, modes: np.ndarray) -> np.ndarray:
    """sin(pi j x), a column for each mode j."""
    return np.sin(np.pi * np.outer(x, modes))


def inside(n: int) -> np.ndarray:
    """The points between n cells of the unit interval."""
    return np.arange(1, n) / n


def middles(n: int) -> np.ndarray:
    """The middles of n cells of the unit interval."""
    return (np.arange(n) + 0.5) / n
