"""Measuring a hierarchy: bias, increment and price of each level, their law, what to mend.

Levels are deterministic, so nothing is sampled: one evaluation per level and point, and every
number is exact there.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .hierarchy import Hierarchy, function, shown, taken
from .plans import Problem

SURE = 0.995  # one-sided: the range of a rate leaves out one in a hundred
RESOLUTION = 0.02  # a rate is read to 2% at best, however straight the line
STRAIGHT = 0.05  # bits: what a level may be off the line of the finer ones in any case
NEAR_TWO = (1.6, 2.5)  # a range of gamma around 2 that lies in here is the Monte Carlo rate


class Law(NamedTuple):
    """Price ~ error^-gamma over the levels number `used`; gamma is nan where errors do not fall."""

    gamma: float
    range: tuple[float, float]
    r2: float
    used: list[int]


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What `audit` found: per level bias, increment and price; the law; warnings with remedies.

    `bias` and `increment` are the largest over the points. `gamma`, nan where the error does not
    fall, has the range `gamma_range`, Student's 99% interval of the line through the levels; `r2`
    is how much of the scatter the line explains. `cost` is what this audit paid.
    """

    of: Hierarchy
    points: tuple[np.ndarray, ...]
    values: dict[int, np.ndarray]
    referred: bool  # whether bias is measured against a reference, and not the finest level
    bias: np.ndarray
    increment: np.ndarray
    price: np.ndarray
    law: Law
    c: float = math.nan
    warnings: tuple[str, ...] = ()

    levels = property(lambda self: self.of.levels)
    r2 = property(lambda self: self.law.r2)
    gamma = property(lambda self: self.law.gamma)
    gamma_range = property(lambda self: self.law.range)
    cost = property(lambda self: float(len(self.points) * self.price.sum()))

    @property
    def regime(self) -> str:
        """'ETMC' (gamma < 2), 'MC' or 'HTMC' (gamma > 2) where a line carries it, or 'unknown'."""
        low, high = self.gamma_range
        if len(self.law.used) < 3 or self.r2 < 0.9 or not self.gamma > 0:
            return "unknown"
        if low > 2 or high < 2:
            return "HTMC" if low > 2 else "ETMC"
        return "MC" if NEAR_TWO[0] <= low and high <= NEAR_TWO[1] else "unknown"

    @property
    def tail(self) -> float:
        """What lies beyond an increment, in units of it, if the ladder went on as it does."""
        if not self.gamma > 0:
            return 1.0  # as if increments halved; a warning says that it is not known
        used = self.law.used
        ratio = 2.0 ** (-float(np.mean(np.diff(np.log2(self.price[used])))) / self.gamma)
        steps = np.diff([self.values[self.levels[i]].ravel() for i in (used[0] - 1, *used)], axis=0)
        steps /= np.linalg.norm(steps, axis=1, keepdims=True)
        return beyond(ratio, float(np.mean(np.sum(steps[1:] * steps[:-1], axis=1)[-3:])))

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The same levels, with measured accuracies; without a reference the tail is added."""
        accuracy = self.bias.copy()
        if not self.referred:
            alone = len(self.levels) == 1
            own = self.of.accuracy(self.levels[-1]) if alone else self.increment[-1] * self.tail
            accuracy += own
        accuracy = np.maximum(accuracy, max(1e-16 * self.increment[0], 1e-300))
        accuracy = np.maximum.accumulate(accuracy[::-1])[::-1]  # no level is worse than finer ones
        return self.of.declare(dict(zip(self.levels, accuracy.tolist(), strict=True)))

    def problem(
        self, scale=None, *, beta: float | None = None, d0: float | None = None, mu: float = 0.0
    ) -> Problem:
        """A Problem with the measured gamma, c and first level; scale: constants(h, y0)."""
        if not self.gamma > 0:
            raise ValueError(
                "this audit found no rate gamma (the error does not fall with the price): mend "
                "what its warnings say, or give Problem a gamma and c that you know"
            )
        known = {"beta": beta, "d0": d0, "mu": mu}
        if (beta, d0, mu) == (None, None, 0.0):
            known = {name: getattr(scale, name, None) for name in known}
        if known["beta"] is None or known["d0"] is None:
            raise ValueError(
                f"problem needs beta= and d0= (and mu=), or constants(h, y0); got {shown(scale)}"
            )
        first = math.ceil(-math.log2(self.hierarchy.accuracy(self.levels[0])) - 1e-9)
        return Problem(gamma=self.gamma, c=self.c, first=first, measured=True, **known)

    def __repr__(self) -> str:
        rows = ["level        bias   increment       price  used"]
        columns = zip(self.levels, self.bias, self.increment, self.price, strict=True)
        for i, (k, *numbers) in enumerate(columns):
            used = "  fit" if i in self.law.used else ""
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
    if not isinstance(h, Hierarchy):
        raise ValueError(f"audit measures a Hierarchy; got {shown(h)}")
    points, truths = _points(h, points), None
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
    sizes = distance.max(axis=1), gap.max(axis=1)
    report = Audit(h, tuple(points), values, truths is not None, *sizes, price, law)
    if report.gamma > 0:  # the prefactor belongs to the largest
        used, largest = law.used, sample.max(axis=1)
        c = 2.0 ** float(np.mean(np.log2(price[used]) / report.gamma + np.log2(largest[used])))
        report = replace(report, c=c if report.referred else c * report.tail)
    return replace(report, warnings=tuple(_warnings(report, usable)))


def fitted(price: np.ndarray, size: np.ndarray, usable: list[int]) -> Law:
    """How error falls with price, over the finest run of usable levels that one line may carry.

    Log error, which scatters, is regressed on log price, which is known; one number per level,
    since points share their samples. Coarse levels are left out only if the finer ones, four at
    least, predict something else by three times Student's bound, never for a better R2. The range
    is Student's; where a parabola leaves less than half of the squares, it reaches to its slope at
    the fine end.
    """
    from scipy import stats

    def line(used: list[int], origin: float = 0.0):
        return stats.linregress(x[used] - origin, y[used])

    x, y = np.log2(price), np.log2(np.maximum(size, 1e-300))
    used = usable[-4:]
    while len(used) < len(usable) and np.ptp(x[used]):
        before = usable[-len(used) - 1]
        fit = line(used, x[before])
        error = stats.t.ppf(SURE, len(used) - 2) * max(fit.intercept_stderr, STRAIGHT)
        if abs(y[before] - fit.intercept) > 3 * error:
            break
        used = [before, *used]
    n = len(used)
    if n < 2 or not np.ptp(x[used]):
        return Law(math.nan, (0.0, math.inf), 0.0, used)
    fit = line(used)
    slope, margin = -float(fit.slope), math.inf
    if n > 2:
        margin = max(stats.t.ppf(SURE, n - 2) * fit.stderr, RESOLUTION * abs(slope))
    low, high = slope - margin, slope + margin
    bent = np.polynomial.Polynomial.fit(x[used], y[used], min(2, n - 1))
    off = [y[used] - at for at in (fit.intercept + fit.slope * x[used], bent(x[used]))]
    if n > 4 and 2 * off[1] @ off[1] < off[0] @ off[0]:
        end = -float(bent.deriv()(x[used[-1]]))
        low, high = min(low, end), max(high, end)
    rates = (1 / high if high > 0 else 0.0), (1 / low if low > 0 else math.inf)
    return Law(1 / slope if slope > 0 else math.nan, rates, float(fit.rvalue**2), used)


def beyond(ratio: float, cosine: float) -> float:
    """The error of a level over its increment, for errors that fall by `ratio` per level.

    Errors e_k = ratio^k u_k of one size whose directions have correlation rho^j over j levels make
    increments with the cosine (rho (1 + r^2) - r (1 + rho^2))/(1 + r^2 - 2 rho r): solved for rho.

    >>> round(beyond(0.5, 1.0), 9), round(beyond(0.5, -0.4), 9)  # one direction; their own
    (1.0, 0.447213595)
    """
    half = (1 + ratio**2) / 2 + cosine * ratio
    rho = (half - math.sqrt(max(half**2 - ratio * (ratio + cosine * (1 + ratio**2)), 0.0))) / ratio
    rho = min(max(rho, -1.0), 1.0)
    return ratio / math.sqrt(1 + ratio**2 - 2 * rho * ratio)


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


def _warnings(a: Audit, usable: list[int]) -> Iterator[str]:
    """What is wrong with a ladder, each with its remedy."""
    accuracy = np.array([a.of.accuracy(k) for k in a.levels]) * (1 + 1e-9)
    size = a.bias if a.referred else a.increment  # the first level's is no increment
    first, pairs = a.law.used[0] if a.law.used else 0, range(1, len(a.levels))
    (low, high), bound = a.gamma_range, accuracy + (not a.referred) * accuracy[-1]
    fit = f"R2 = {a.r2:.3f} over {len(a.law.used)} levels, gamma from {low:.2g} to {high:.2g}"
    norm = f"norm {a.increment[0]:.3g}, above 3 x its accuracy {accuracy[0]:.3g}"
    found = {
        "levels {} do not improve on the one before: drop them, or check that they refine the same "
        "gradient": [i for i in pairs[not a.referred :] if size[i] >= size[i - 1] > 0],
        "the price does not grow at levels {}: drop the coarser level there, it buys nothing": [
            i for i in pairs if a.price[i] <= a.price[i - 1]
        ],
        "levels {} do not follow the law of the finer ones and are left out of the fit: start at "
        f"{a.levels[first]}": [i for i in usable if i < first],
        "levels {} are exact to rounding: stop the ladder at the first of them": [
            i for i in (0, *pairs) if a.referred and i not in usable
        ],
        "the bias exceeds the declared accuracy at levels {}: plan on this report, which declares "
        "what it measured": np.flatnonzero(a.bias > bound).tolist(),
        "increments break their law at levels {} (above the sum of two accuracies): declare larger "
        "accuracies": [i for i in pairs if a.increment[i] > accuracy[i] + accuracy[i - 1]],
        f"no line carries the fit ({fit}): add levels, and do not plan with gamma": a.regime
        == "unknown",
        "how far the finest level is off cannot be told: add a level, or give a reference": not (
            a.referred or a.gamma > 0
        ),
        f"the coarsest level has {norm}: draw it always (a telescope's default), in a descent with "
        "probability at least 4 beta eta (as plans do)": a.increment[0] > 3 * accuracy[0],
    }
    for words, at in found.items():
        if at:
            yield words.format([a.levels[i] for i in at] if isinstance(at, list) else "")
