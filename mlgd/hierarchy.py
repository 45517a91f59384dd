"""What can be bought: levels of a gradient, their accuracy and their price.

The paper's Assumption 1 (dyadic hierarchy): algorithms A_k with ||A_k - f|| <= 2^-k at price c^gamma 2^(gamma k).
Here levels, accuracies and prices are free; the dyadic case is the default. Evaluations are taken as they come and
never trusted: whatever numpy can read is copied into a float array of the point's shape, or refused by level.
"""

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise

import numpy as np

Need = tuple[bool, int]  # (False, k) is A_k, (True, k) the increment at k as one shared evaluation


class LevelError(ValueError):
    """A level returned something that is not a gradient, raised an exception, or was asked for and does not exist.

    `level` is the level; an exception of the user's own is its `__cause__`.
    """

    def __init__(self, message: str, level: int | None = None):
        super().__init__(message)
        self.level = level


def dyadic(k: int) -> float:
    """The accuracy that the paper's Assumption 1 gives level k, 2^-k."""
    return 2.0**-k


@dataclass(frozen=True, repr=False, eq=False)
class Hierarchy:
    """A gradient at several accuracies: `evaluate(k, y)` is A_k(y), `cost(k)` the price of one evaluation.

    `evaluate` may return anything that numpy reads: an array of numpy, JAX or torch, a list. It gets y read-only, and
    what it returns is copied. `levels` are increasing integers, `accuracy(k)` bounds ||A_k - f|| (2^-k unless given),
    `increment(k, y)` is A_k - A_{k-} where the two share work (k- is the level before k), then charged cost(k).

    >>> h = Hierarchy(lambda k, y: y + 2.0**-k, cost=lambda k: 8.0**k, levels=range(4))
    >>> h
    Hierarchy(levels 0 1 2 3, price 1 to 512, accuracy 1 to 0.125 (assumed: 2^-k))
    >>> h.value(2, np.zeros(2)), h.step(2, np.zeros(2)), h.step_cost(2)
    (array([0.25, 0.25]), array([-0.25, -0.25]), 72.0)
    """

    evaluate: Callable[[int, np.ndarray], np.ndarray]
    cost: Callable[[int], float]
    levels: Sequence[int]
    accuracy: Callable[[int], float] | None = None
    increment: Callable[[int, np.ndarray], np.ndarray] | None = None
    shared: frozenset[int] | None = field(
        default=None, kw_only=True
    )  # where `increment` holds: None is everywhere

    def __post_init__(self):
        for name in ("evaluate", "cost", "accuracy", "increment"):
            if getattr(self, name) is not None or name in ("evaluate", "cost"):
                function(name, getattr(self, name))
        vars(self).update(levels=_integers(self.levels), accuracy=self.accuracy or dyadic)
        for name, table in (("price", self.cost), ("accuracy", self.accuracy)):
            for k in self.levels:
                positive(f"the {name} of level {k}", table(k))
        for a, b in pairwise(self.levels):
            if self.accuracy(b) > self.accuracy(a) * (1 + 1e-12):
                raise ValueError(
                    f"accuracy({b}) is larger than at the level before: accuracy(k) bounds the error of level k, "
                    "which must not grow; order the levels from coarse to fine"
                )

    def __repr__(self) -> str:
        first, last = self.levels[0], self.levels[-1]
        levels = [*self.levels[:3], "...", last] if len(self.levels) > 5 else self.levels
        assumed = " (assumed: 2^-k)" if self.accuracy is dyadic else ""
        return (
            f"{type(self).__name__}(levels {' '.join(map(str, levels))}, "
            f"price {self.cost(first):.3g} to {self.cost(last):.3g}, "
            f"accuracy {self.accuracy(first):.3g} to {self.accuracy(last):.3g}{assumed}"
            f"{', increments of their own' if self.increment is not None else ''})"
        )

    # --- the ladder ---

    def before(self, k: int) -> int | None:
        """The level before k, or None at the first (whose predecessor is the zero function)."""
        i = self._index(k)
        return self.levels[i - 1] if i else None

    def shares(self, k: int) -> bool:
        """Whether the increment at k is one evaluation of the user's `increment`, and not two values."""
        return self.increment is not None and (self.shared is None or k in self.shared)

    def parts(self, k: int) -> tuple[Need, ...]:
        """What the increment at k is made of: two values, coarse and fine, or one evaluation where the work is shared."""
        previous = self.before(k)
        if previous is None or self.shares(k):
            return ((previous is not None, k),)
        return (False, previous), (False, k)

    def step_cost(self, k: int) -> float:
        """The price of one increment: two evaluations, or one where the work is shared."""
        return sum(self.cost(j) for _, j in self.parts(k))

    def level_for(self, delta: float) -> int:
        """The coarsest level whose accuracy is at most delta."""
        delta = positive("delta", delta)
        for k in self.levels:
            if self.accuracy(k) <= delta * (1 + 1e-12):
                return k
        raise LevelError(
            f"accuracy {delta:.3g} is needed and the finest level offers {self.accuracy(self.levels[-1]):.3g}: add "
            f"levels (the next would be {self.levels[-1] + 1}) or ask for a larger eps"
        )

    def only(self, levels: Iterable[int]) -> "Hierarchy":
        """The ladder of these levels alone; where a level between was left out, increments are differences of values.

        >>> h = Hierarchy(lambda k, y: y + 2.0**-k, cost=lambda k: 8.0**k, levels=range(4))
        >>> h.only([0, 3]).step_cost(3)
        513.0
        """
        levels = _integers(levels)
        kept = [
            k
            for a, k in zip((None, *levels), levels, strict=False)
            if a == self.before(k) and self.shares(k)
        ]
        return self._like(levels=levels, shared=frozenset(kept))

    def declare(self, accuracies: Mapping[int, float]) -> "Hierarchy":
        """The same levels with other accuracies, {level: accuracy}."""
        missing = [k for k in self.levels if k not in accuracies]
        if missing:
            raise ValueError(f"declare needs an accuracy for every level; got none for {missing}")
        return self._like(accuracy={k: float(accuracies[k]) for k in self.levels}.__getitem__)

    def _like(self, **changes) -> "Hierarchy":
        return Hierarchy(**({f.name: getattr(self, f.name) for f in fields(Hierarchy)} | changes))

    def _index(self, k: int) -> int:
        try:
            return self.levels.index(k)
        except ValueError:
            raise LevelError(
                f"level {k!r} is not one of {self.levels[0]}..{self.levels[-1]}", k
            ) from None

    # --- evaluations ---

    def point(self, y: np.ndarray) -> np.ndarray:
        """A point as a float array of its own, refused if it is empty, a bare number or not finite; nothing is paid."""
        try:
            point = np.array(y, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"a point must be an array of numbers; got {shown(y)}: {error}"
            ) from None
        if point.ndim == 0 or point.size == 0:
            what = f"the number {point}" if point.size else "an empty array"
            raise ValueError(
                f"a point must be an array with at least one entry; got {what}: one unknown is np.array([x])"
            )
        if not np.isfinite(point).all():
            raise ValueError("the point has a non-finite entry: give finite numbers")
        return point

    def value(self, k: int, y: np.ndarray) -> np.ndarray:
        """A_k(y) as a fresh float array of y's shape; a level that returns anything else is refused by name."""
        self._index(k)
        return taken(self.evaluate, k, y)

    def part(self, need: Need, y: np.ndarray) -> np.ndarray:
        """One evaluation: (False, k) is A_k(y), (True, k) the increment at k where the work is shared."""
        shared, k = need
        return taken(self.increment if shared else self.evaluate, k, y)

    def step(self, k: int, y: np.ndarray) -> np.ndarray:
        """The increment A_k(y) - A_{k-}(y); at the first level A_k(y) itself."""
        *coarse, fine = (self.part(need, y) for need in self.parts(k))
        return fine - coarse[0] if coarse else fine


FLOAT = np.dtype(float)


def taken(level: Callable, k: int, y: np.ndarray, fresh: bool = True) -> np.ndarray:
    """level(k, y) as a float array of y's shape, or LevelError; the hot path of every run."""
    seen = y
    if y.flags.writeable:
        seen = y.view()
        seen.setflags(write=False)
    try:
        raw = level(k, seen)
    except LevelError:
        raise
    except Exception as error:
        raise LevelError(f"level {k} raised {type(error).__name__}: {error}", k) from error
    if type(raw) is np.ndarray and raw.dtype is FLOAT:
        value = raw.copy() if fresh else raw
    else:
        value = _converted(raw, k, y.shape)
    wrong = ""
    if value.shape != y.shape:
        wrong = (
            f"shape {value.shape} at a point of shape {y.shape}: return one entry per coordinate"
        )
    # vdot is a fifth of isfinite, and unlike dot it does not warn where the square of a large value overflows
    elif not math.isfinite(np.vdot(value, value)) and not np.isfinite(value).all():
        wrong = "a non-finite value at the point given: mend that level or drop it"
    if wrong:
        raise LevelError(f"level {k} returned {wrong}", k)
    return value


def _converted(raw, k: int, shape: tuple[int, ...]) -> np.ndarray:
    """What a level returned as a new float array; pairs, complex numbers and text are refused with a sentence."""
    wrong, cause = "", None
    if raw is None:
        wrong = "None: return the gradient (is a return statement missing?)"
    elif isinstance(raw, tuple) and len(raw) == 2 and np.ndim(raw[0]) == 0 and np.ndim(raw[1]) > 0:
        wrong = "a pair, as (loss, gradient) would be: return the gradient alone (give the loss to minimize as loss=)"
    else:
        try:
            read = np.asarray(raw)
            if read.dtype.kind not in "fiubO":
                raise TypeError(f"its entries are of type {read.dtype}")
            return np.array(read, dtype=float)
        except Exception as error:  # whatever the object's own conversion raises
            wrong = f"a {type(raw).__name__} that is no array of real numbers ({error}): return an array of shape {shape}"
            cause = error
    raise LevelError(f"level {k} returned {wrong}", k) from cause


def _integers(levels: Iterable[int]) -> tuple[int, ...]:
    """Levels as increasing integers; numbers that are not integers are refused, not cut."""
    try:
        given = () if isinstance(levels, str | bytes) else tuple(levels)
        if isinstance(levels, str | bytes) or any(isinstance(k, bool | np.bool_) for k in given):
            raise TypeError
        out = tuple(map(operator.index, given))
    except TypeError:
        raise ValueError(f"levels must be integers, as in range(6); got {shown(levels)}") from None
    if not out or any(b <= a for a, b in pairwise(out)):
        raise ValueError(f"levels must be increasing integers, at least one; got {shown(levels)}")
    return out


# --- what is given by hand, or the sentence that refuses it ---

SIGNATURES = {
    "evaluate": "evaluate(k, y), the gradient at level k",
    "cost": "cost(k), the price of one evaluation at level k",
    "accuracy": "accuracy(k), a bound on the error of level k, or leave it out",
    "increment": "increment(k, y), the gradient at level k less the one before, or leave it out",
    "gradient": "gradient(y), exact",
    "reference": "reference(y), the exact gradient, or leave it out",
}


def shown(given) -> str:
    """What was given, for a sentence: itself if that is short, else its type."""
    text = repr(given)
    return (
        text if len(text) <= 60 and "\n" not in text else f"a value of type {type(given).__name__}"
    )


def function(name: str, given: Callable) -> Callable:
    if not callable(given):
        raise ValueError(f"{name} must be a function; got {shown(given)}: give {SIGNATURES[name]}")
    return given


def positive(name: str, given: float) -> float:
    try:
        value = math.nan if isinstance(given, str | bytes | bool) else float(given)
    except (TypeError, ValueError):
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be positive and finite; got {shown(given)}")
    return value


def generator(rng) -> np.random.Generator:
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"rng must be what numpy.random.default_rng takes; got {shown(rng)}: {error}"
        ) from None


def first_level(c: float) -> int:
    """The paper's k_min: the level before it costs at most one unit, c^gamma 2^(gamma (k_min - 1)) <= 1.

    >>> first_level(0.3)
    2
    """
    return math.floor(-math.log2(positive("c", c))) + 1
