"""What can be bought: levels of a gradient, their accuracy and their price.

The paper's Assumption 1 (dyadic hierarchy): algorithms A_k with ||A_k - f|| <= 2^-k at price
c^gamma 2^(gamma k). Here levels, accuracies and prices are free.
Evaluations are taken as they come and never trusted: whatever numpy can read is copied into a
float array of the point's shape, or refused by level.
"""

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

FLOAT = np.dtype(float)


LARGEST_PRICE = 1e200  # sums of larger ones may overflow
LARGEST = (
    1e150  # norm of a point or a gradient: squares of larger ones, and sums, may overflow
)


class LevelError(ValueError):
    """A level that returned no gradient, raised an exception, or does not exist.

    `level` is the level; an exception of the user's own is its `__cause__`.
    """

    def __init__(self, message: str, level: int | None = None):
        super().__init__(message)
        self.level = level


class OutOfDomain(LevelError):
    """A level has no value at this point: raise it in `evaluate`, or return nan or inf.

    A run without constants then tries a shorter step. Any other exception ends the run.
    """


def dyadic(k: int) -> float:
    """The accuracy that the paper's Assumption 1 gives level k, 2^-k."""
    return 2.0 ** min(-k, 1023)  # and no overflow


@dataclass(frozen=True)
class Listed:
    """Prices given one by one, as a function of the level."""

    prices: dict[int, float]

    def __call__(self, k: int) -> float:
        if k not in self.prices:
            raise LevelError(
                f"level {k!r} has no price: prices were given for {[*self.prices]}", k
            )
        return self.prices[k]


@dataclass(frozen=True, repr=False, eq=False)
class Hierarchy:
    """A gradient at several accuracies: `evaluate(k, y)` is A_k(y), `cost` the price of one.

    `evaluate` is deterministic: asked twice for the same level and point, it answers the same
    (levels that sample freeze their sample). It may return anything that numpy reads, an array of
    numpy, JAX or torch, a list; it gets y read-only, and what it returns is copied. `cost` is a
    function of the level, a list in the order of the levels or a dict. `levels` are increasing
    integers, mesh sizes too. `accuracy(k)` declares a bound on `||A_k - f||`: plans need it, and
    nothing is assumed in its place. `exact` says that the finest level is the problem itself, f.
    `repeats` is how far apart two evaluations at one point may be, of their size: raise it where
    rounding differs from call to call, as in single precision on a GPU.

    >>> h = Hierarchy(lambda k, y: y + 2.0**-k, cost=lambda k: 8.0**k, levels=range(4))
    >>> h
    Hierarchy(levels 0 1 2 3, price 1 to 512, accuracy not declared)
    >>> h.value(2, np.zeros(2)), h.step(2, np.zeros(2)), h.pair(2)
    (array([0.25, 0.25]), array([-0.25, -0.25]), (1, 2))
    """

    evaluate: Callable[[int, np.ndarray], np.ndarray]
    cost: Callable[[int], float] | Sequence[float] | Mapping[int, float]
    levels: Sequence[int]
    accuracy: Callable[[int], float] | None = None
    exact: bool = False
    measured: bool = (
        False  # set by `audit`: what rests on these accuracies is an estimate
    )
    repeats: float = 1e-6

    def __post_init__(self):
        function("evaluate(k, y), the gradient at level k", self.evaluate)
        vars(self).update(levels=_integers(self.levels), exact=bool(self.exact))
        vars(self).update(repeats=positive("repeats", self.repeats, zero=True))
        if not callable(self.cost):
            prices = by_level("price", self.cost, self.levels, every=True)
            vars(self).update(cost=Listed(prices))
        for k in self.levels:
            price = positive(f"the price of level {k}", self.cost(k))
            if price > LARGEST_PRICE:
                raise ValueError(
                    f"the price of level {k} is {price:g}: choose a larger unit of price, so that "
                    f"sums stay finite (at most {LARGEST_PRICE:g})"
                )
        if self.accuracy is not None:
            function(
                "accuracy(k), a bound on the error of level k, or leave it out",
                self.accuracy,
            )
            self.accuracies()  # what was declared is checked now

    @property
    def declared(self) -> bool:
        """Whether accuracies were declared; what was not proves nothing."""
        return self.accuracy is not None

    def __repr__(self) -> str:
        first, last = self.levels[0], self.levels[-1]
        levels = self.levels if len(self.levels) <= 5 else (*self.levels[:3], "...", last)
        accuracy = "not declared"
        if self.declared:
            accuracy = f"{self.accuracy(first):.3g} to {self.accuracy(last):.3g}"
        if self.exact:
            accuracy += ", the finest exact"
        price = f"{self.cost(first):.3g} to {self.cost(last):.3g}"
        said = f"levels {' '.join(map(str, levels))}, price {price}, accuracy {accuracy}"
        return f"{type(self).__name__}({said})"

    # --- the ladder ---

    def pair(self, k: int) -> tuple[int, ...]:
        """The levels that an increment evaluates: the one before k, and k; at the first k alone."""
        if k not in self.levels:
            raise LevelError(
                f"level {k!r} is not one of {self.levels[0]}..{self.levels[-1]}", k
            )
        at = self.levels.index(k)
        return self.levels[max(at - 1, 0) : at + 1]

    def accuracies(self) -> np.ndarray:
        """The declared accuracy of every level, never growing; zero at an exact finest one."""
        if not self.declared:
            raise ValueError(
                "no accuracy was declared for these levels, and what is not declared proves "
                "nothing: give accuracy=, a function of the level that bounds its error "
                "(accuracy=lambda k: 2.0**-k, if that is so), or plan on audit(h, points), which "
                "measures it"
            )
        found = np.array([self._accuracy(k) for k in self.levels])
        if (grown := np.flatnonzero(np.diff(found) > 1e-12 * found[:-1])).size:
            raise ValueError(
                f"accuracy({self.levels[grown[0] + 1]}) is larger than at the level before: "
                "accuracy(k) bounds the error of level k, which must not grow; order the levels "
                "from coarse to fine"
            )
        found[-1] *= not self.exact
        return found

    def _accuracy(self, k: int) -> float:
        """The accuracy declared for level k, positive."""
        value = self.accuracy(k)
        if k == self.levels[-1] and isinstance(value, int | float) and value == 0:
            raise ValueError(
                f"the accuracy of level {k} is zero: say exact=True where the finest level is the "
                "problem itself, and give it any positive accuracy"
            )
        return positive(f"the accuracy of level {k}", value)

    def level_for(self, delta: float) -> int:
        """The coarsest level whose accuracy is at most delta."""
        delta, offered = positive("delta", delta), self.accuracies()
        fine = np.flatnonzero(offered <= delta * (1 + 1e-12))
        if fine.size:
            return self.levels[fine[0]]
        raise LevelError(
            f"accuracy {delta:.3g} is needed and the finest level offers {offered[-1]:.3g}: add "
            f"levels finer than {self.levels[-1]}, or ask for a larger eps"
        )

    def only(self, levels: Iterable[int]) -> "Hierarchy":
        """The ladder of these levels alone; an increment reaches back to the level kept before."""
        levels = _integers(levels)
        for k in levels:
            self.pair(k)
        exact = self.exact and levels[-1] == self.levels[-1]
        return Hierarchy(
            self.evaluate,
            self.cost,
            levels,
            self.accuracy,
            exact,
            self.measured,
            self.repeats,
        )

    # --- evaluations ---

    def point(self, y: np.ndarray) -> np.ndarray:
        """A point as a float array of its own, or a refusal; nothing is paid."""
        try:
            point = np.empty(0) if np.iscomplexobj(y) else np.array(y, dtype=float)
        except Exception:  # whatever the object's own conversion raises
            point = np.empty(0)
        if not (point.ndim and point.size and np.isfinite(point).all()):
            raise ValueError(
                "a point must be an array of finite real numbers, np.array([x]) for one alone (of "
                f"complex ones, stack real and imaginary parts); got {shown(y)}"
            )
        return point

    def value(self, k: int, y: np.ndarray) -> np.ndarray:
        """A_k(y) as a fresh float array of y's shape; a level that returns none is named."""
        self.pair(k)
        return taken(self.evaluate, k, self.point(y))

    def step(self, k: int, y: np.ndarray) -> np.ndarray:
        """The increment `A_k(y) - A_{k-}(y)`, k- the level before k; at the first A_k(y) itself."""
        fine, *coarse = (self.value(j, y) for j in reversed(self.pair(k)))
        return fine - coarse[0] if coarse else fine


def taken(
    level: Callable, k: int, y: np.ndarray, fresh: bool = True, squared: bool = False
) -> np.ndarray:
    """level(k, y) as a float array of y's shape, or LevelError; the hot path of every run.

    Where it is `squared`, a value whose square overflows is as bad as one that is not finite.
    """
    seen = y
    if y.flags.writeable:
        seen = y.view()
        seen.setflags(write=False)
    try:
        raw = level(k, seen)
    except OutOfDomain as error:
        why = f"level {k} has no value at y = {shown_point(y)}: {error}"
        raise OutOfDomain(why, k) from error
    except LevelError as error:  # of a ladder that is made of another one
        raise LevelError(str(error), k) from error
    except Exception as error:
        raise LevelError(f"level {k} raised {told(error)}", k) from error
    if type(raw) is np.ndarray and raw.dtype is FLOAT:
        value = raw.copy() if fresh else raw
    else:
        value = _converted(raw, k)
    if value.shape != y.shape:
        what = f"shape {value.shape} at a point of shape {y.shape}: return one entry per coordinate"
        raise LevelError(f"level {k} returned {what}", k)
    # vdot is a fifth of isfinite, and unlike dot it does not warn where a square overflows
    if not math.isfinite(np.vdot(value, value)):
        if squared or not np.isfinite(value).all():
            raise OutOfDomain(unusable(k, value, y), k)
    return value


def unusable(k: int, value: np.ndarray, y: np.ndarray) -> str:
    """What is wrong with a value of level k whose square is no ordinary float."""
    if not np.isfinite(value).all():
        return f"level {k} returned a non-finite value at y = {shown_point(y)}"
    return (
        f"level {k} returned a value of size {np.abs(value).max():.1g}, whose square is no "
        f"ordinary float, at y = {shown_point(y)}: choose another unit of the loss (or of the "
        "point)"
    )


def _converted(raw, k: int) -> np.ndarray:
    """What a level returned as a new float array; a pair, complex numbers, text are refused."""
    kind, why = (
        f"a {type(raw).__name__} that is no array of real numbers",
        "entries are no numbers",
    )
    if raw is None:
        kind, why = "None", "no return statement?"
    elif isinstance(raw, tuple) and sorted(np.ndim(part) > 0 for part in raw) == [
        False,
        True,
    ]:
        kind, why = (
            "a pair, as (loss, gradient) or (gradient, loss) would be",
            "loss= takes it",
        )
    else:
        try:
            read = np.asarray(raw)
            # bfloat16 and its like
            narrow = read.dtype.kind == "V" and read.dtype.isbuiltin == 2
            if read.dtype.kind in "fiubO" or narrow:
                return np.array(read, dtype=float)
        except Exception as error:  # whatever the object's own conversion raises
            why = str(error)
    raise LevelError(f"level {k} returned {kind} ({why}): return the gradient alone", k)


def begins(y: np.ndarray) -> np.ndarray:
    """The start of a run, if its square is an ordinary float."""
    if not np.vdot(y, y) <= LARGEST**2:
        raise ValueError(
            f"a start of size {np.abs(y).max():.1g} is too large, since squares must be ordinary "
            f"floats (at most {LARGEST:g}): choose another unit of the point"
        )
    return y


# --- what is given by hand, or the sentence that refuses it ---


def shown(given) -> str:
    """What was given, for a sentence: itself if that is short, else its type."""
    text = repr(given)
    short = len(text) <= 60 and "\n" not in text
    return text if short else f"a value of type {type(given).__name__}"


def told(error: Exception) -> str:
    """The kind of an exception, and what it says, if it can say that."""
    kind = type(error).__name__
    try:
        return f"{kind}: {error}"
    except Exception:  # its own __str__ is broken
        return kind


def shown_point(y: np.ndarray) -> str:
    """A point in one short line."""
    with np.printoptions(threshold=6, edgeitems=2, precision=4):
        return f"{y}".replace("\n", "")


def ladder(given) -> Hierarchy:
    """A Hierarchy, where one is needed."""
    if not isinstance(given, Hierarchy):
        hint = ": give its .hierarchy" if hasattr(given, "hierarchy") else ""
        raise TypeError(
            f"a Hierarchy is needed; got a value of type {type(given).__name__}{hint}"
        )
    return given


def function(signature: str, given: Callable) -> Callable:
    """A function, told by its signature: `cost(k), the price of one evaluation`."""
    if not callable(given):
        name = signature.split("(")[0]
        raise ValueError(
            f"{name} must be a function; got {shown(given)}: give {signature}"
        )
    return given


def positive(name: str, given: float, zero: bool = False) -> float:
    """A positive, finite number, or zero where that is allowed."""
    try:
        value = math.nan if isinstance(given, str | bytes | bool) else float(given)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not (math.isfinite(value) and (value > 0 or (zero and value == 0))):
        sort = "non-negative" if zero else "positive"
        raise ValueError(f"{name} must be {sort} and finite; got {shown(given)}")
    return value


def _integers(levels: Iterable[int]) -> tuple[int, ...]:
    """Levels as increasing integers; numbers that are not integers are refused, not cut."""
    try:
        out = tuple(map(operator.index, levels))
    except TypeError:
        out = ()
    if not out or any(b <= a for a, b in pairwise(out)):
        why = f"levels must be increasing integers, as in range(6); got {shown(levels)}"
        raise ValueError(why)
    return out


def by_level(
    name: str, given, levels: tuple[int, ...], every: bool = False
) -> dict[int, float]:
    """A positive number for some levels, or for every one: from {level: number}, or a list."""
    try:
        listed = not isinstance(given, Mapping)
        pairs = dict(zip(levels[: len(given)], given, strict=True)) if listed else given
    except (TypeError, ValueError):
        pairs = {}
    if every:
        # a table may have more levels
        pairs = {k: pairs[k] for k in levels if k in pairs}
    if not pairs or not {*pairs} <= {*levels} or (every and len(pairs) < len(levels)):
        what = f"{{level: {name}}} or a list, of {'all' if every else 'the first'} levels {levels}"
        raise ValueError(
            f"a {name} for each level used is needed, {what}; got {shown(given)}"
        )
    return {
        k: positive(f"the {name} of level {k}", pairs[k]) for k in levels if k in pairs
    }
