"""Measuring a hierarchy: bias, increment and price of each level, the laws they follow, and what to mend.

Levels are deterministic, so nothing is sampled: one evaluation per level and point, and every number is exact there.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .hierarchy import Hierarchy, function, positive, shown
from .plans import Problem
from .rates import Line, Regularity, beyond, line, regularity

NEAR_TWO = (
    1.6,
    2.5,
)  # a range of gamma around 2 that lies in here is the Monte Carlo rate; a wider one tells nothing


@dataclass(frozen=True, eq=False)
class Audit:
    """What `audit` found: per level bias, increment, price and change; the fitted laws; warnings with remedies.

    `bias`, `increment`: the largest over the points; `change`: the largest |D_k(y) - D_k(y')|/|y - y'| of the
    increments D_k = A_k - A_{k-}, nan with one point. `gamma`, nan where the error does not fall, has the range `gamma_range`,
    Student's 98% interval of the line through the levels; `r2` is how much of the scatter the line explains.
    `regularity` is 'smooth' (the change is Lipschitz in y and falls with the level), 'rough' or 'unknown'.
    `cost` is what this audit paid, `evaluations` how often it asked each level; `values` are kept for later use.
    """

    of: Hierarchy
    points: tuple[np.ndarray, ...]
    values: dict[int, np.ndarray]
    referred: bool  # whether bias is measured against a reference, and not against the finest level
    bias: np.ndarray
    increment: np.ndarray
    price: np.ndarray
    law: Line
    field: Regularity
    coarse_norm: float
    c: float = math.nan
    warnings: tuple[str, ...] = ()

    levels = property(lambda self: self.of.levels)
    r2 = property(lambda self: self.law.r2)
    change = property(lambda self: self.field.change)
    regularity = property(lambda self: self.field.verdict)
    gamma = property(lambda self: 1 / self.law.slope if self.law.slope > 0 else math.nan)
    evaluations = property(lambda self: dict.fromkeys(self.levels, len(self.points)))
    cost = property(lambda self: float(len(self.points) * self.price.sum()))

    @property
    def gamma_range(self) -> tuple[float, float]:
        low, high = self.law.low, self.law.high
        return (1 / high if 0 < high < math.inf else 0.0), (1 / low if low > 0 else math.inf)

    @property
    def regime(self) -> str:
        """'ETMC' (gamma < 2), 'MC' or 'HTMC' (gamma > 2) where a line carries it, else 'unknown'."""
        low, high = self.gamma_range
        if len(self.law.used) < 3 or self.r2 < 0.9 or not self.gamma > 0:
            return "unknown"
        if low > 2 or high < 2:
            return "HTMC" if low > 2 else "ETMC"
        return "MC" if NEAR_TWO[0] <= low and high <= NEAR_TWO[1] else "unknown"

    def price_at(self, delta: float) -> float:
        """The price of one gradient at accuracy delta, by the fitted law (c/delta)^gamma."""
        return (self.c / positive("delta", delta)) ** self.gamma

    @property
    def tail(self) -> float:
        """What lies beyond an increment, in units of it, if the ladder went on as it does.

        Errors that fall by `ratio` per level and keep their direction sum up to ratio/(1 - ratio). Where directions change,
        as the angle between increments tells, the increment is mostly the error of the level before, and less is left.
        """
        used = list(self.law.used)
        if not self.law.slope > 0 or len(used) < 2:
            return 1.0  # as if increments halved; a warning says that it is not known
        ratio = 2.0 ** (-self.law.slope * float(np.mean(np.diff(np.log2(self.price[used])))))
        steps = np.diff([self.values[self.levels[i]].ravel() for i in (used[0] - 1, *used)], axis=0)
        steps /= np.linalg.norm(steps, axis=1, keepdims=True)
        return beyond(ratio, float(np.mean(np.sum(steps[1:] * steps[:-1], axis=1)[-3:])))

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The levels measured, with what was measured declared in place of the assumed accuracies.

        Without a reference a level's accuracy is its distance to the finest one plus that one's own, which is the
        tail that the increments show.
        """
        accuracy = self.bias.copy()
        if not self.referred:
            accuracy += (
                self.increment[-1] * self.tail
                if len(self.levels) > 1
                else self.of.accuracy(self.levels[-1])
            )
        accuracy = np.maximum(accuracy, max(1e-16 * self.coarse_norm, 1e-300))
        accuracy = np.maximum.accumulate(accuracy[::-1])[
            ::-1
        ]  # a level is no worse than those after it are
        return self.of.declare(dict(zip(self.levels, accuracy.tolist(), strict=True)))

    def problem(
        self, scale=None, *, beta: float | None = None, d0: float | None = None, mu: float = 0.0
    ) -> Problem:
        """A Problem with the measured gamma, c and first level; `scale`, what constants(h, y0) found, gives the rest."""
        if not self.gamma > 0:
            raise ValueError(
                "this audit found no rate gamma (the error does not fall with the price): mend what its warnings say, "
                "or give Problem a gamma and c that you know"
            )
        given = {"beta": beta, "d0": d0, "mu": mu}
        if scale is not None:
            if given != {"beta": None, "d0": None, "mu": 0.0}:
                raise ValueError("give either constants or beta=, d0= and mu=, not both")
            if not all(hasattr(scale, name) for name in given):
                raise ValueError(
                    f"problem takes what constants(h, y0) returned, or beta=, d0=, mu=; got {shown(scale)}"
                )
            given = {name: getattr(scale, name) for name in given}
        elif beta is None or d0 is None:
            raise ValueError("problem needs beta= and d0=, or what constants(h, y0) returned")
        first = math.ceil(-math.log2(self.hierarchy.accuracy(self.levels[0])) - 1e-9)
        return Problem(gamma=self.gamma, c=self.c, first=first, measured=True, **given)

    def __repr__(self) -> str:
        rows = ["level        bias   increment      change       price  used"]
        columns = zip(self.levels, self.bias, self.increment, self.change, self.price, strict=True)
        for j, (k, *numbers) in enumerate(columns):
            used = "  fit" if j in self.law.used else ""
            rows.append(f"{k:5d}" + "".join(f"  {x:10.3g}" for x in numbers) + used)
        low, high = self.gamma_range
        law = f"gamma = {self.gamma:.3f} ({low:.3f} to {high:.3f}), c = {self.c:.3g}, R2 = {self.r2:.4f}: {self.regime}"
        order = (
            ""
            if math.isnan(self.field.order)
            else f", they change like distance^{self.field.order:.2f}"
        )
        return "\n".join(
            [
                *rows,
                law,
                f"increments are {self.regularity}{order}",
                *(f"! {w}" for w in self.warnings),
            ]
        )


def audit(
    h: Hierarchy, points: Iterable, reference: Callable | None = None, *, levels=None
) -> Audit:
    """Measure a hierarchy at some points: exact, one evaluation per level and point, nothing sampled.

    Bias is the distance to `reference(y)` (to the finest level when there is none). The rate gamma comes from how the
    bias falls with the price; without a reference it is read off the increments, which the finite end of the ladder
    does not bend. How increments change with y is told from three points or more, two of them close. A single vector
    is one point. `levels`: measure these only.

    >>> from mlgd.examples import biased
    >>> h = biased(lambda y: y, gamma=3, c=0.5, levels=range(2, 9))
    >>> report = audit(h, [np.ones(2)], reference=lambda y: y)
    >>> round(report.gamma, 3), round(report.c, 3), report.regime, round(report.price_at(0.01))
    (3.0, 0.5, 'HTMC', 125000)
    >>> round(256 * report.hierarchy.accuracy(8), 9), report.problem(beta=1, d0=2).first, report.cost
    (1.0, 2, 2396744.0)
    """
    if not isinstance(h, Hierarchy):
        raise ValueError(f"audit measures a Hierarchy; got {shown(h)}")
    points, h = _points(h, points), h if levels is None else h.only(levels)
    referred = reference is not None
    truths = (
        np.array(
            [
                _truth(function("reference(y), the exact gradient, or leave it out", reference), y)
                for y in points
            ]
        )
        if referred
        else None
    )
    values = {k: np.array([h.value(k, y) for y in points]) for k in h.levels}
    stack, price = np.array(list(values.values())), np.array([float(h.cost(k)) for k in h.levels])
    increments = np.diff(stack, axis=0, prepend=0.0)
    distance, gap = _norms(stack - (truths if referred else stack[-1])), _norms(increments)
    sample, floor = distance if referred else gap, 1e-13 * float(_norms(stack).max())
    usable = [i for i in range(0 if referred else 1, len(price)) if sample[i].max() > floor]
    law = line(
        price, np.sqrt((sample**2).mean(axis=1)), usable
    )  # the mean square moves less than the largest
    report = Audit(
        h,
        tuple(points),
        values,
        referred,
        distance.max(axis=1),
        gap.max(axis=1),
        price,
        law,
        regularity(points, increments, floor),
        float(gap[0].max()),
    )
    if report.gamma > 0:  # the prefactor belongs to the largest
        used = list(law.used)
        c = 2.0 ** float(
            np.mean(np.log2(price[used]) / report.gamma + np.log2(sample.max(axis=1)[used]))
        )
        report = replace(report, c=c * (1.0 if referred else report.tail))
    return replace(report, warnings=tuple(_warnings(report, usable)))


def _points(h: Hierarchy, points: Iterable) -> list[np.ndarray]:
    """Points as float arrays of one shape; a vector of numbers is one point."""
    try:
        given = [] if isinstance(points, str) else list(points)
    except TypeError:
        given = []
    if not given:
        raise ValueError(
            f"audit needs at least one point, as in audit(h, [y0, y1]); got {shown(points)}"
        )
    numbers = all(np.isscalar(p) or getattr(p, "ndim", 1) == 0 for p in given)
    found = [h.point(p) for p in ([given] if numbers else given)]
    if len({p.shape for p in found}) > 1:
        raise ValueError(f"the points must have one shape; got {[p.shape for p in found]}")
    return found


def _truth(reference: Callable, y: np.ndarray) -> np.ndarray:
    value = np.asarray(reference(y.copy()), float)
    if value.shape != y.shape or not np.isfinite(value).all():
        raise ValueError(
            f"reference(y) must be finite and of shape {y.shape}; got shape {value.shape}"
        )
    return value


def _norms(vectors: np.ndarray) -> np.ndarray:
    return np.linalg.norm(vectors.reshape(*vectors.shape[:2], -1), axis=2)


def _warnings(a: Audit, usable: list[int]) -> Iterator[str]:
    """What is wrong with a ladder, each with its remedy."""
    n, after = len(a.levels), a.law.used[0] if a.law.used else 0
    accuracy = np.array([a.of.accuracy(k) for k in a.levels])

    def named(indices) -> list[int]:
        return [a.levels[i] for i in indices]

    # without a reference the finest levels are measured against themselves: there the increments tell, from the
    # second one on, since the coarsest level's is no increment
    size, start = (a.bias, 1) if a.referred else (a.increment, 2)
    if worse := named(i for i in range(start, n) if size[i] >= size[i - 1] > 0):
        yield f"levels {worse} do not improve on the one before: drop them, or check that they refine the same gradient"
    if cheap := named(i for i in range(1, n) if a.price[i] <= a.price[i - 1]):
        yield f"the price does not grow at levels {cheap}: drop the coarser level there, it buys nothing"
    if off := named(i for i in usable if i < after):
        yield f"levels {off} do not follow the law of the finer ones and are left out of the fit: start at {a.levels[after]}"
    if exact := named(i for i in range(n) if a.referred and i not in usable):
        yield f"levels {exact} are exact to rounding: stop the ladder at the first of them"
    if a.regime == "unknown":
        low, high = a.gamma_range
        fit = f"R2 = {a.r2:.3f} over {len(a.law.used)} levels, gamma from {low:.2g} to {high:.2g}"
        yield f"no line carries the fit ({fit}): add levels, and do not plan with gamma"
    if not a.referred and not (a.law.slope > 0 and len(a.law.used) > 1):
        yield "how far the finest level is off cannot be told from these levels: add one, or give a reference"
    allowed = (accuracy + (0.0 if a.referred else accuracy[-1])) * (1 + 1e-9)
    if claimed := named(np.flatnonzero(a.bias > allowed)):
        yield f"the bias exceeds the declared accuracy at levels {claimed}: plan on this report, which declares what it measured"
    if broken := named(
        i for i in range(1, n) if a.increment[i] > (accuracy[i] + accuracy[i - 1]) * (1 + 1e-9)
    ):
        yield f"increments break their law at levels {broken} (above the sum of two accuracies): declare larger accuracies"
    if a.coarse_norm > 3 * accuracy[0]:
        yield (
            f"the coarsest level has norm {a.coarse_norm:.3g}, above 3 x its accuracy {accuracy[0]:.3g}: draw it "
            "always (the default), the paper's own probability for it is unsafe here"
        )
    if a.field.doubt:
        yield a.field.doubt
