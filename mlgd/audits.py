"""Measuring a hierarchy: bias, increment and price of each level, their law, what to mend.

Levels are deterministic: one evaluation per level and point, and every number is exact there.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .hierarchy import Hierarchy, function, ladder, shown, taken
from .judge import beyond
from .plans import Problem

SURE = 0.995  # one-sided: the range of a rate leaves out one in a hundred
RESOLUTION = 0.02  # a rate is read to 2% at best, however straight the line
STRAIGHT = 0.05  # bits: what a level may be off the line of the finer ones in any case
NEAR_TWO = (1.6, 2.5)  # a range of gamma around 2 that lies in here is the Monte Carlo rate


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What `audit` found: per level bias, increment and price; the law; warnings with remedies.

    `bias` and `increment` are the largest over the points. `gamma`, nan where the error does not
    fall, has the range `gamma_range`, Student's 99% interval of the line through the levels; `r2`
    is how much of the scatter the line explains.
    """

    of: Hierarchy
    values: dict[int, np.ndarray]  # of each level, at every point
    referred: bool  # whether bias is measured against a reference, and not the finest level
    bias: np.ndarray
    increment: np.ndarray
    price: np.ndarray
    gamma: float
    gamma_range: tuple[float, float]
    r2: float
    used: list[int]  # the levels that carry the line, by their number

    levels = property(lambda self: self.of.levels)
    size = property(lambda self: self.bias if self.referred else self.increment)
    warnings = property(lambda self: tuple(_warnings(self)), doc="What to mend, and how.")

    @property
    def regime(self) -> str:
        """'ETMC' (gamma < 2), 'MC' or 'HTMC' (gamma > 2) where a line carries it, or 'unknown'."""
        low, high = self.gamma_range
        if len(self.used) < 3 or self.r2 < 0.9 or not self.gamma > 0:
            return "unknown"
        if low > 2 or high < 2:
            return "HTMC" if low > 2 else "ETMC"
        return "MC" if NEAR_TWO[0] <= low and high <= NEAR_TWO[1] else "unknown"

    @property
    def tail(self) -> float:
        """What lies beyond an increment, in units of it, if the ladder went on as it does."""
        if not self.gamma > 0:
            return 1.0  # as if increments halved; a warning says that it is not known
        ratio = 2.0 ** (-float(np.mean(np.diff(np.log2(self.price[self.used])))) / self.gamma)
        seen = [self.levels[i] for i in (self.used[0] - 1, *self.used)]
        steps = np.diff([self.values[k].ravel() for k in seen], axis=0)
        steps /= np.linalg.norm(steps, axis=1, keepdims=True)
        return beyond(ratio, float(np.mean(np.sum(steps[1:] * steps[:-1], axis=1)[-3:])))

    @property
    def c(self) -> float:
        """The prefactor of price = (c/error)^gamma, for the largest error over the points."""
        if not self.gamma > 0:
            return math.nan
        logs = np.log2(self.price[self.used]) / self.gamma + np.log2(self.size[self.used])
        return 2.0 ** float(np.mean(logs)) * (1.0 if self.referred else self.tail)

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The same levels, with measured accuracies; without a reference the tail is added."""
        accuracy = self.bias + (0.0 if self.referred else self.increment[-1] * self.tail)
        accuracy = np.maximum(accuracy, max(1e-16 * self.increment[0], 1e-300))
        accuracy = np.maximum.accumulate(accuracy[::-1])[::-1]  # no level is worse than finer ones
        found, of = dict(zip(self.levels, accuracy.tolist(), strict=True)), self.of
        return Hierarchy(of.evaluate, of.cost, of.levels, found.__getitem__, of.exact, True)

    def problem(
        self, scale=None, *, beta: float | None = None, d0: float | None = None, mu: float = 0.0
    ) -> Problem:
        """A Problem with the measured gamma, c and first level; scale: constants(h, y0)."""
        if not self.gamma > 0:
            raise ValueError("this audit found no rate gamma: mend what its warnings say")
        known = {"beta": beta, "d0": d0, "mu": mu}
        if scale is not None:
            known = {name: getattr(scale, name, None) for name in known}
        if None in known.values() or (scale is not None and (beta, d0, mu) != (None, None, 0.0)):
            needs = "problem needs beta= and d0= (and mu=), or constants(h, y0), not both"
            raise ValueError(f"{needs}; got {shown(scale)}")
        first = math.ceil(-math.log2(self.hierarchy.accuracy(self.levels[0])) - 1e-9)
        return Problem(gamma=self.gamma, c=self.c, first=first, measured=True, **known)

    def __repr__(self) -> str:
        rows = ["level        bias   increment       price  used"]
        columns = zip(self.levels, self.bias, self.increment, self.price, strict=True)
        for i, (k, *numbers) in enumerate(columns):
            used = "  fit" if i in self.used else ""
            rows.append(f"{k:5d}" + "".join(f"  {x:10.3g}" for x in numbers) + used)
        low, high = self.gamma_range
        law = f"gamma = {self.gamma:.3f} ({low:.3f} to {high:.3f}), c = {self.c:.3g}"
        rows.append(f"{law}, R2 = {self.r2:.4f}: {self.regime}")
        return "\n".join([*rows, *(f"! {w}" for w in self.warnings)])


def audit(h: Hierarchy, points: Iterable, reference: Callable | None = None) -> Audit:
    """Measure a hierarchy at some points: exact, one evaluation per level and point.

    Bias is the distance to `reference(y)` (to the finest level when there is none). The rate gamma
    comes from how the bias falls with the price; without a reference it is read off the increments,
    which the finite end of the ladder does not bend. A single vector is one point.

    >>> from mlgd.examples import biased
    >>> h = biased(lambda y: y, gamma=3, c=0.5, levels=range(2, 9))
    >>> report = audit(h, [np.ones(2)], reference=lambda y: y)
    >>> round(report.gamma, 3), round(report.c, 3), report.regime
    (3.0, 0.5, 'HTMC')
    >>> round(256 * report.hierarchy.accuracy(8), 9), report.problem(beta=1, d0=2).first
    (1.0, 2)
    """
    points, truths = _points(ladder(h), points), None
    if reference is not None:
        function("reference(y), the exact gradient, or leave it out", reference)
        truths = np.array([taken(lambda _, y: reference(y), "of the reference", y) for y in points])
    values = {k: np.array([h.value(k, y) for y in points]) for k in h.levels}
    stack, price = np.array([*values.values()]), np.array([float(h.cost(k)) for k in h.levels])
    distance = _norms(stack - (stack[-1] if truths is None else truths))
    gap = _norms(np.diff(stack, axis=0, prepend=0.0))
    sample, floor = gap if truths is None else distance, 1e-13 * float(_norms(stack).max())
    usable = [i for i in range(truths is None, len(price)) if sample[i].max() > floor]
    law = fitted(price, np.sqrt((sample**2).mean(axis=1)), usable)  # the mean square moves least
    return Audit(h, values, truths is not None, distance.max(axis=1), gap.max(axis=1), price, *law)


def fitted(price: np.ndarray, size: np.ndarray, usable: list[int]) -> tuple:
    """gamma, its range, R2 and the levels used: the finest that one line may carry.

    Log error, which scatters, is regressed on log price, one number per level: points share their
    samples. Coarse levels are left out only if the finer ones, four at least, predict something
    else by three times Student's bound. The range is Student's; where a parabola leaves less than
    half of the squares, it reaches to its slope at the fine end.
    """
    from scipy.stats import linregress, t

    x, y, used = np.log2(price), np.log2(np.maximum(size, 1e-300)), usable[-4:]
    while len(used) < len(usable) and np.ptp(x[used]):
        before = usable[-len(used) - 1]
        fit = linregress(x[used] - x[before], y[used])
        error = t.ppf(SURE, len(used) - 2) * max(fit.intercept_stderr, STRAIGHT)
        if abs(y[before] - fit.intercept) > 3 * error:
            break
        used = [before, *used]
    n, x, y = len(used), x[used], y[used]
    if n < 2 or not np.ptp(x):
        return math.nan, (0.0, math.inf), 0.0, used
    fit = linregress(x, y)
    slope, r2 = -float(fit.slope), float(fit.rvalue**2)
    off = t.ppf(SURE, n - 2) * fit.stderr if n > 2 else math.inf
    margin = max(off, RESOLUTION * abs(slope))
    slopes = [slope - margin, slope + margin]
    bent = np.polynomial.Polynomial.fit(x, y, min(2, n - 1))
    if n > 4 and 2 * np.sum((y - bent(x)) ** 2) < (1 - r2) * n * y.var():
        slopes.append(-float(bent.deriv()(x[-1])))
    most, least = max(slopes), min(slopes)
    rates = (1 / most if most > 0 else 0.0), (1 / least if least > 0 else math.inf)
    return 1 / slope if slope > 0 else math.nan, rates, r2, used


def _points(h: Hierarchy, points: Iterable) -> list[np.ndarray]:
    """Points as float arrays of one shape; a vector of numbers is one point."""
    given = list(points) if np.iterable(points) and not isinstance(points, str) else []
    if not given:
        raise ValueError(
            f"audit needs at least one point, as in audit(h, [y0, y1]); got {shown(points)}"
        )
    found = [h.point(p) for p in ([given] if all(np.ndim(p) == 0 for p in given) else given)]
    if len({p.shape for p in found}) > 1:
        raise ValueError(f"the points must have one shape; got {[p.shape for p in found]}")
    return found


def _norms(vectors: np.ndarray) -> np.ndarray:
    return np.linalg.norm(vectors.reshape(*vectors.shape[:2], -1), axis=2)


def _warnings(a: Audit) -> Iterator[str]:
    """What is wrong with a ladder, each with its remedy."""
    bound = np.full(len(a.levels), math.inf)  # what was not declared can't be broken
    if a.of.declared:
        accuracy = np.array([a.of.accuracy(k) for k in a.levels]) * (1 + 1e-9)
        bound = accuracy if a.referred else accuracy + accuracy[-1]
    known = range(not a.referred, len(a.levels))  # the first level's size is no increment
    first = min(a.used, default=0)
    found = {
        "do not improve on the one before: drop them, or refine the same gradient": [
            i for i in known[1:] if a.size[i] >= a.size[i - 1] > 0
        ],
        "cost no more than the one before: drop that one, it buys nothing": [
            i + 1 for i in np.flatnonzero(np.diff(a.price) <= 0)
        ],
        f"do not follow the law of the finer ones and are left out of the fit: start at "
        f"{a.levels[first]}": range(known.start, first),
        "are off by more than their declared accuracy: plan on this report, which declares what it "
        "measured": np.flatnonzero(a.bias > bound).tolist(),
    }
    for words, at in found.items():
        if at:
            yield f"levels {[a.levels[i] for i in at]} {words}"
    if a.regime == "unknown":
        fit = f"R2 = {a.r2:.3f} over {len(a.used)} levels"
        yield f"no line carries the fit ({fit}): add levels, and do not plan with gamma"
    if not (a.referred or a.gamma > 0):
        yield "how far the finest level is off cannot be told: add a level, or give a reference"
