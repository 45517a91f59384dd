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


# --- ready-made hierarchies: honest about their error, for any gradient, gamma and c ------------------------


def first_level(c: float) -> int:
    """The paper's k_min: the level before it costs at most one unit, c^gamma 2^(gamma (k_min - 1)) <= 1.

    >>> first_level(0.3)
    2
    """
    return math.floor(-math.log2(c)) + 1


def _dyadic(evaluate, gamma, c, levels, increment=None) -> Hierarchy:
    if not (gamma > 0 and c > 0):
        raise ValueError(f"gamma and c must be positive; got gamma={gamma!r}, c={c!r}")
    return Hierarchy(evaluate, lambda k: (c * 2.0**k) ** gamma, levels, increment=increment)


def rounded(gradient: Callable, gamma: float, c: float, levels: Sequence[int]) -> Hierarchy:
    """An exact gradient seen through fixed-point arithmetic: level k rounds to a grid that keeps the error <= 2^-k.

    >>> h = rounded(lambda y: y, gamma=3, c=1, levels=range(1, 4))
    >>> h.evaluate(1, np.array([0.3])), h.evaluate(3, np.array([0.3])), h.cost(3)
    (array([0.]), array([0.25]), 512.0)
    """

    def evaluate(k, y):
        g = gradient(y)
        grid = 2.0 * 2.0**-k / math.sqrt(g.size)
        return grid * np.round(g / grid)

    return _dyadic(evaluate, gamma, c, levels)


def biased(
    gradient: Callable, gamma: float, c: float, levels: Sequence[int], direction=None, alternate=False
) -> Hierarchy:
    """The worst case of Assumption 1: every level is off by exactly 2^-k along one unit direction.

    With `alternate` the sign flips from level to level, so that increments reach their bound 3 * 2^-k too.

    >>> h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 4))
    >>> h.evaluate(1, np.zeros(1)), h.evaluate(3, np.zeros(1))
    (array([0.5]), array([0.125]))
    """

    def evaluate(k, y):
        u = np.ones_like(y) if direction is None else np.asarray(direction, float)
        sign = -1.0 if alternate and k % 2 else 1.0
        return gradient(y) + (sign * 2.0**-k / np.linalg.norm(u)) * u

    return _dyadic(evaluate, gamma, c, levels)


def series(gradient: Callable, gamma: float, c: float, levels: Sequence[int], terms: int = 40) -> Hierarchy:
    """A truncated series: level k leaves out the terms 2^-j cos(j y)/sqrt(d), j > k, of a gradient known by its series.

    >>> h = series(lambda y: y, gamma=3, c=1, levels=range(1, 6))
    >>> [float(np.abs(h.evaluate(k, np.ones(1)) - 1).round(3)[0]) <= 2.0**-k for k in h.levels]
    [True, True, True, True, True]
    """

    def term(j, y):
        return 2.0**-j * np.cos(j * y) / math.sqrt(y.size)

    def evaluate(k, y):
        return gradient(y) - sum(term(j, y) for j in range(k + 1, k + 1 + terms))

    return _dyadic(evaluate, gamma, c, levels)


# --- audit -------------------------------------------------------------------------------------------------

RESOLUTION = 0.02  # gamma is read to 2% at best: what a fit over a few levels can carry


@dataclass(frozen=True)
class Audit:
    """What `audit` found: per level the bias, the increment and the price; the fitted law; warnings with remedies."""

    levels: tuple[int, ...]
    bias: np.ndarray
    increment: np.ndarray
    price: np.ndarray
    gamma: float
    gamma_error: float
    c: float
    r2: float
    fitted: tuple[int, ...]
    regime: str
    coarse_norm: float
    warnings: tuple[str, ...]

    def price_at(self, delta: float) -> float:
        """The price of one gradient at accuracy delta, by the fitted law (c/delta)^gamma."""
        if not delta > 0:
            raise ValueError(f"delta must be positive; got {delta!r}")
        return (self.c / delta) ** self.gamma

    def __str__(self) -> str:
        rows = ["level        bias   increment       price  used"]
        for k, b, i, p in zip(self.levels, self.bias, self.increment, self.price, strict=True):
            rows.append(f"{k:5d}  {b:10.3g}  {i:10.3g}  {p:10.3g}  {'fit' if k in self.fitted else ''}")
        law = f"gamma = {self.gamma:.3f} +- {self.gamma_error:.3f}, c = {self.c:.3g}, R2 = {self.r2:.4f}: {self.regime}"
        return "\n".join([*rows, law, *(f"! {w}" for w in self.warnings)])


def audit(h: Hierarchy, points: Sequence[np.ndarray], reference: Callable | None = None) -> Audit:
    """Measure a hierarchy at some points: exact, one evaluation a level and point, nothing sampled.

    Bias is the largest distance to `reference(y)` (the finest level when there is none). The rate gamma is the slope
    of log price against -log bias, read off the root mean square over the points, which moves less than the largest;
    without a reference it is read off the increments, which the finite end of the ladder does not bend. The prefactor c
    belongs to the largest. A plateau at the coarse end is recognised and left out of the fit.

    >>> h = biased(lambda y: y, gamma=3, c=0.5, levels=range(2, 9))
    >>> report = audit(h, [np.ones(2)], reference=lambda y: y)
    >>> round(report.gamma, 3), round(report.c, 3), report.regime, round(report.price_at(0.01))
    (3.0, 0.5, 'HTMC', 125000)
    """
    points = [h.check(p, levels=()) for p in (points if isinstance(points, Sequence | np.ndarray) else list(points))]
    if not points:
        raise ValueError("audit needs at least one point: give the start and a few iterates")
    n = len(h.levels)
    distance, gap, coarse = np.zeros((len(points), n)), np.zeros((len(points), n)), 0.0
    for row, y in enumerate(points):
        values = [h.checked(k, y) for k in h.levels]
        truth = values[-1] if reference is None else np.asarray(reference(y), float)
        coarse = max(coarse, float(np.linalg.norm(values[0])))
        for i, v in enumerate(values):
            distance[row, i] = np.linalg.norm(v - truth)
            gap[row, i] = np.linalg.norm(v - values[i - 1]) if i else np.linalg.norm(v)
    bias, increment = distance.max(axis=0), gap.max(axis=0)
    price = np.array([float(h.cost(k)) for k in h.levels])
    size, sample, first = (bias, distance, 0) if reference is not None else (increment, gap, 1)
    usable = [i for i in range(first, n) if size[i] > 1e-13 * max(1.0, coarse)]
    typical = np.sqrt((sample**2).mean(axis=0))
    slope, error, r2, used = _fit(-np.log2(np.maximum(typical, 1e-300)), np.log2(price), usable)
    intercept = float(np.mean(np.log2(price[used]) + slope * np.log2(size[used]))) if used else math.nan
    # without a reference the bias behind an increment is the geometric tail that follows it
    ratio = 2.0 ** np.mean(np.diff(np.log2(size[used]))) if len(used) > 1 else 0.5
    tail = 1.0 if reference is not None else (ratio / (1 - ratio) if ratio < 1 else math.inf)
    gamma = slope if math.isfinite(slope) and slope > 0 else math.nan
    gamma_error = max(2 * error, RESOLUTION * abs(slope)) if math.isfinite(slope) else math.nan
    c = 2.0 ** (intercept / gamma) * tail if gamma > 0 else math.nan
    regime = "unknown"
    if gamma > 0:
        regime = "MC" if abs(gamma - 2) <= gamma_error else ("HTMC" if gamma > 2 else "ETMC")
    warnings = _warnings(h, bias, increment, price, usable, used, gamma, r2, coarse, reference is None)
    return Audit(
        h.levels, bias, increment, price, gamma, gamma_error, c, r2, tuple(h.levels[i] for i in used), regime, coarse,
        tuple(warnings),
    )  # fmt: skip


def _fit(x, y, usable):
    """Least squares of y on x over the longest run of usable indices, from the fine end, that a line carries."""
    best = None
    for start in range(max(1, len(usable) - 2)):
        used = usable[start:]
        if len(used) < 2:
            break
        a, b = x[used], y[used]
        spread = a - a.mean()
        if not spread.any():
            continue
        slope = float(spread @ b / (spread @ spread))
        residual = b - b.mean() - slope * spread
        total = float(((b - b.mean()) ** 2).sum())
        r2 = 1 - float(residual @ residual) / total if total else 0.0
        error = math.sqrt(float(residual @ residual) / max(1, len(used) - 2) / float(spread @ spread))
        result = (slope, error, r2, used)
        if r2 >= 0.995:
            return result
        if best is None or r2 > best[2]:
            best = result
    return best or (math.nan, math.nan, 0.0, usable)


def _warnings(h, bias, increment, price, usable, used, gamma, r2, coarse, no_reference):
    out = []
    # without a reference the finest levels are measured against themselves: there the increments tell
    size, start = (increment, 2) if no_reference else (bias, 1)
    worse = [h.levels[i] for i in range(start, len(price)) if size[i] >= size[i - 1] > 0]
    if worse:
        out.append(
            f"levels {worse} do not improve on the one before: drop them, or check that they refine the same gradient"
        )
    cheap = [h.levels[i] for i in range(1, len(price)) if price[i] <= price[i - 1]]
    if cheap:
        out.append(f"the price does not grow at levels {cheap}: drop the coarser level there, it buys nothing")
    flat = [h.levels[i] for i in usable if i not in used]
    if flat:
        out.append(
            f"levels {flat} lie on a plateau and are left out of the fit: start the ladder at {h.levels[used[0]]}"
        )
    floor = [h.levels[i] for i in range(len(price)) if i not in usable and (i or not no_reference) and bias[i] == 0]
    if floor and not no_reference:
        out.append(f"levels {floor} are exact to rounding: stop the ladder at the first of them")
    if len(used) < 3 or r2 < 0.98 or not gamma > 0:
        out.append(
            f"no line carries the fit (R2 = {r2:.3f} over {len(used)} levels): use more levels or more points, and do not plan with gamma"
        )
    slack = h.accuracy(h.levels[-1]) if no_reference else 0.0
    claimed = [k for k, b in zip(h.levels, bias, strict=True) if b > (h.accuracy(k) + slack) * (1 + 1e-9)]
    if claimed:
        out.append(
            f"the bias exceeds the declared accuracy at levels {claimed}: declare accuracy(k) no smaller than the bias"
        )
    law = [
        h.levels[i]
        for i in range(1, len(price))
        if increment[i] > (h.accuracy(h.levels[i]) + h.accuracy(h.levels[i - 1])) * (1 + 1e-9)
    ]
    if law:
        out.append(
            f"increments break their law at levels {law} (above the sum of two accuracies): declare larger accuracies"
        )
    reach = h.accuracy(h.levels[0])
    if coarse > 3 * reach:
        out.append(
            f"the coarsest level has norm {coarse:.3g}, above 3 x its accuracy {reach:.3g}: draw it always (the default), "
            "the paper's own probability for it is unsafe here"
        )
    return out
