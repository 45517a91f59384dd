"""Measuring a hierarchy: bias, increment and price of each level, their law, what to mend.

Levels are deterministic: one evaluation per level and point, and every number is exact there. What
is estimated is the law that joins them, the rate gamma of the paper's Assumption 1 in
price = (c/error)^gamma, because three to a dozen levels must carry a line.

`audit` measures, `fitted` puts the line through, and an `Audit` says what follows: a regime, a
hierarchy with measured accuracies to plan on, warnings. Without a reference the finest level's own
error is guessed from how increments shrink and turn (`beyond`).
"""

import math
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .hierarchy import Hierarchy, function, ladder, shown, taken
from .judge import beyond
from .plans import Problem
from .telescope import within_floats

# one-sided: the range of a rate leaves out one in a hundred
SURE = 0.995
# a rate is read to 2% at best, however straight the line
RESOLUTION = 0.02
# bits: what a level may be off the line of the finer ones in any case
STRAIGHT = 0.05
# Student's bounds that a coarse level may be off before it is left out of the line
OUTLIER = 3
# levels that are kept on the line in any case, the finest ones
CORE = 4
# a range of gamma around 2 that lies in here is the Monte Carlo rate
NEAR_TWO = (1.6, 2.5)
# of the scatter, what a line must explain, and through how many levels, to name a regime
EXPLAINED = 0.9
ENOUGH = 3
# of the largest gradient: errors below are rounding
ROUNDING = 1e-13
# an error, at least: its logarithm must be a number
TINY = 1e-300
# angles between increments that are averaged, the last ones
TURNS = 3
# a ratio of errors from level to level, at most, and one over it at least: its fourth power is a
# float
EXTREME = 1e70

# gamma with its range, the share of the scatter that the line explains, and the levels it goes
# through, by their index
Law = namedtuple("Law", "gamma gamma_range r2 used")


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What `audit` found: per level bias, increment and price; the law; warnings with remedies.

    `bias` and `increment` are the largest over the points. `gamma`, nan where the error does not
    fall, has the range `gamma_range`, Student's 99% interval of the line through the levels; `r2`
    is how much of the scatter the line explains.
    """

    of: Hierarchy
    values: dict[int, np.ndarray]  # of each level, at every point
    # whether bias is measured against a reference, and not the finest level
    referred: bool
    bias: np.ndarray
    increment: np.ndarray
    price: np.ndarray
    gamma: float
    gamma_range: tuple[float, float]
    r2: float
    used: list[int]  # the levels that carry the line, by their index

    @property
    def levels(self) -> tuple[int, ...]:
        return self.of.levels

    @property
    def size(self) -> np.ndarray:
        """The errors that the law is read from: biases, or else increments."""
        return self.bias if self.referred else self.increment

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to mend, and how."""
        return tuple(_warnings(self))

    @property
    def regime(self) -> str:
        """'ETMC' (gamma < 2), 'MC' or 'HTMC' (gamma > 2) where a line carries it, or 'unknown'."""
        low, high = self.gamma_range
        carried = len(self.used) >= ENOUGH and self.r2 >= EXPLAINED
        if not carried or not self.gamma > 0:
            return "unknown"
        if low > 2:
            return "HTMC"
        if high < 2:
            return "ETMC"
        near = NEAR_TWO[0] <= low and high <= NEAR_TWO[1]
        return "MC" if near else "unknown"

    @property
    def tail(self) -> float:
        """What lies beyond an increment, in units of it, if the ladder went on as it does.

        One, as if increments halved, where the levels do not tell; a warning then says so.
        """
        if self.referred or not self.gamma > 0:
            return 1.0
        dearer = np.diff(np.log2(self.price[self.used]))  # bits per level
        ratio = _power_of_two(-float(np.mean(dearer)) / self.gamma)
        ratio = min(max(ratio, 1 / EXTREME), EXTREME)
        seen = []
        for i in (self.used[0] - 1, *self.used):
            seen.append(self.values[self.levels[i]].ravel())
        increments, _ = _scaled(np.diff(seen, axis=0))
        lengths = np.linalg.norm(increments, axis=1, keepdims=True)
        directions = increments / lengths
        cosines = np.sum(directions[1:] * directions[:-1], axis=1)
        return beyond(ratio, float(np.mean(cosines[-TURNS:])))

    @property
    def c(self) -> float:
        """The prefactor of price = (c/error)^gamma, for the largest error over the points."""
        if not self.gamma > 0:
            return math.nan
        price = np.log2(self.price[self.used])
        error = np.log2(self.size[self.used])
        read = _power_of_two(float(np.mean(price / self.gamma + error)))
        return read if self.referred else read * self.tail

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The same levels, with measured accuracies; without a reference the tail is added."""
        accuracy = self.bias
        if not self.referred:
            with np.errstate(over="ignore"):  # a Hierarchy refuses what is infinite
                accuracy = accuracy + self.increment[-1] * self.tail
        least = max(1e-16 * self.increment[0], TINY)  # an exact level has an accuracy too
        accuracy = np.maximum(accuracy, least)
        # no level is worse than a finer one
        accuracy = np.maximum.accumulate(accuracy[::-1])[::-1]
        found = dict(zip(self.levels, accuracy.tolist(), strict=True))
        plain = self.of.only(self.levels)
        return replace(plain, accuracy=found.__getitem__, measured=True)

    def problem(
        self,
        scale=None,
        *,
        beta: float | None = None,
        d0: float | None = None,
        mu: float = 0.0,
    ) -> Problem:
        """A Problem with the measured gamma, c and first level; scale: constants(h, y0)."""
        if not self.gamma > 0:
            raise ValueError("this audit found no rate gamma: mend what its warnings say")
        known = {"beta": beta, "d0": d0, "mu": mu}
        twice = scale is not None and known != {"beta": None, "d0": None, "mu": 0.0}
        if scale is not None:
            known = {name: getattr(scale, name, None) for name in known}
        if twice or None in known.values():
            needs = "problem needs beta= and d0= (and mu=), or constants(h, y0), not both"
            raise ValueError(f"{needs}; got {shown(scale)}")
        coarsest = self.hierarchy.accuracy(self.levels[0])
        first = math.ceil(-math.log2(coarsest) - 1e-9)
        return Problem(gamma=self.gamma, c=self.c, first=first, measured=True, **known)

    def __repr__(self) -> str:
        rows = ["level        bias   increment       price  used"]
        columns = zip(self.levels, self.bias, self.increment, self.price, strict=True)
        for i, (k, *numbers) in enumerate(columns):
            row = f"{k:5d}"
            for number in numbers:
                row += f"  {number:10.3g}"
            rows.append(row + "  fit" if i in self.used else row)
        low, high = self.gamma_range
        law = f"gamma = {self.gamma:.3f} ({low:.3f} to {high:.3f}), c = {self.c:.3g}"
        rows.append(f"{law}, R2 = {self.r2:.4f}: {self.regime}")
        for warning in self.warnings:
            rows.append(f"! {warning}")
        return "\n".join(rows)


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
    points = _points(ladder(h), points)
    referred = reference is not None
    if referred:
        function("reference(y), the exact gradient, or leave it out", reference)
        truth = np.array([_truth(reference, y) for y in points])
    values = {}
    for k in h.levels:
        values[k] = np.array([h.value(k, y) for y in points])
    levels = np.array([*values.values()])  # by level and point
    price = np.array([float(h.cost(k)) for k in h.levels])
    with within_floats(f"the gradients of {h}"):
        distance = _norms(levels - (truth if referred else levels[-1]))
        step = _norms(np.diff(levels, axis=0, prepend=0.0))
        largest = float(_norms(levels).max())
        size = distance if referred else step
        typical = _mean_square(size)  # over the points, which scatters least
    read = size.max(axis=1) > ROUNDING * largest
    if not referred:
        read[0] = False  # the first level itself is no increment
    law = fitted(price, typical, np.flatnonzero(read).tolist())
    return Audit(
        of=h,
        values=values,
        referred=referred,
        bias=distance.max(axis=1),
        increment=step.max(axis=1),
        price=price,
        **law._asdict(),
    )


# --- the law ---


def fitted(price: np.ndarray, size: np.ndarray, usable: list[int]) -> Law:
    """The line through the finest levels that one line may carry, and how sure its slope is.

    Log error, which scatters, is regressed on log price, one number per level: points share their
    samples. The range is Student's; where a parabola leaves less than half of the squares, it
    reaches to its slope at the fine end.
    """
    from scipy.stats import linregress, t  # here, because scipy is slow to load

    x = np.log2(price)
    y = np.log2(np.maximum(size, TINY))
    used = _on_one_line(x, y, usable)
    n = len(used)
    x = x[used]
    y = y[used]
    if n < 2 or not np.ptp(x):
        return Law(math.nan, (0.0, math.inf), 0.0, used)
    fit = linregress(x, y)
    slope = -float(fit.slope)  # 1/gamma
    r2 = float(fit.rvalue**2)
    error = t.ppf(SURE, n - 2) * fit.stderr if n > 2 else math.inf
    margin = max(error, RESOLUTION * abs(slope))
    slopes = [slope - margin, slope + margin]
    if n > 4:
        # with full=True no warning where prices are nearly the same
        parabola, _ = np.polynomial.Polynomial.fit(x, y, 2, full=True)
        left = np.sum((y - parabola(x)) ** 2)
        if 2 * left < (1 - r2) * n * y.var():
            slopes.append(-float(parabola.deriv()(x[-1])))
    steepest = max(slopes)
    flattest = min(slopes)
    low = 1 / steepest if steepest > 0 else 0.0
    high = 1 / flattest if flattest > 0 else math.inf
    gamma = 1 / slope if slope > 0 else math.nan
    return Law(gamma, (low, high), r2, used)


def _on_one_line(x: np.ndarray, y: np.ndarray, usable: list[int]) -> list[int]:
    """The finest levels that one line may carry.

    A coarse level is left out, and all before it, only if the finer ones, four at least, predict
    something else by three times Student's bound.
    """
    from scipy.stats import linregress, t  # here, because scipy is slow to load

    used = usable[-CORE:]
    while len(used) < len(usable) and np.ptp(x[used]):
        before = usable[-len(used) - 1]
        fit = linregress(x[used] - x[before], y[used])  # the intercept is the prediction
        scatter = max(fit.intercept_stderr, STRAIGHT)
        bound = OUTLIER * (t.ppf(SURE, len(used) - 2) * scatter)
        if abs(y[before] - fit.intercept) > bound:
            break
        used = [before, *used]
    return used


def _power_of_two(x: float) -> float:
    """2^x, infinite where no float holds it."""
    try:
        return 2.0**x
    except OverflowError:
        return math.inf


# --- measuring ---


def _points(h: Hierarchy, points: Iterable) -> list[np.ndarray]:
    """Points as float arrays of one shape; a vector of numbers is one point."""
    given = []
    if np.iterable(points) and not isinstance(points, str):
        given = list(points)
    if not given:
        needs = "audit needs at least one point, as in audit(h, [y0, y1])"
        raise ValueError(f"{needs}; got {shown(points)}")
    if all(np.ndim(p) == 0 for p in given):
        given = [given]
    found = [h.point(p) for p in given]
    shapes = [p.shape for p in found]
    if len(set(shapes)) > 1:
        raise ValueError(f"the points must have one shape; got {shapes}")
    return found


def _truth(reference: Callable, y: np.ndarray) -> np.ndarray:
    """The exact gradient, as strictly checked as a level's."""
    return taken(lambda _, y: reference(y), "of the reference", y)


def _norms(vectors: np.ndarray) -> np.ndarray:
    """The norm by level and point."""
    flat = vectors.reshape(*vectors.shape[:2], -1)
    flat, exponent = _scaled(flat)
    return np.ldexp(np.linalg.norm(flat, axis=2), exponent)


def _mean_square(size: np.ndarray) -> np.ndarray:
    """The root of the mean square over the points, by level."""
    size, exponent = _scaled(size)
    return np.ldexp(np.sqrt((size**2).mean(axis=1)), exponent)


def _scaled(numbers: np.ndarray) -> tuple[np.ndarray, int]:
    """Numbers over a power of two, lest their squares overflow or vanish, and its exponent."""
    _, exponent = math.frexp(np.abs(numbers).max())
    return np.ldexp(numbers, -exponent), exponent


# --- what to mend ---


def _warnings(a: Audit) -> Iterator[str]:
    """What is wrong with a ladder, each with its remedy."""
    # the first level is no increment
    known = range(0 if a.referred else 1, len(a.levels))
    idle = [i for i in known[1:] if a.size[i] >= a.size[i - 1] > 0]
    words = "do not improve on the one before: drop them, or refine the same gradient"
    yield from _about(a, idle, words)
    no_dearer = [i + 1 for i in np.flatnonzero(np.diff(a.price) <= 0)]
    words = "cost no more than the one before: drop that one, it buys nothing"
    yield from _about(a, no_dearer, words)
    first = min(a.used, default=0)
    words = "do not follow the law of the finer ones and are left out of the fit"
    left_out = range(known.start, first)
    yield from _about(a, left_out, f"{words}: start at {a.levels[first]}")
    words = "are off by more than their declared accuracy: plan on this report"
    yield from _about(a, _boasting(a), f"{words}, which declares what it measured")
    if a.regime == "unknown":
        fit = f"R2 = {a.r2:.3f} over {len(a.used)} levels"
        yield f"no line carries the fit ({fit}): add levels, and do not plan with gamma"
    if not (a.referred or a.gamma > 0):
        untold = "how far the finest level is off cannot be told"
        yield f"{untold}: add a level, or give a reference"


def _about(a: Audit, indices: Iterable[int], words: str) -> Iterator[str]:
    """The warning about some levels, if there are any."""
    levels = [a.levels[i] for i in indices]
    if levels:
        yield f"levels {levels} {words}"


def _boasting(a: Audit) -> list[int]:
    """The levels that are off by more than they declare; what declares nothing does not boast."""
    if not a.of.declared:
        return []
    bound = np.array([a.of.accuracy(k) for k in a.levels]) * (1 + 1e-9)
    if not a.referred:  # the finest level, which bias is measured against, may be off too
        bound = bound + bound[-1]
    return np.flatnonzero(a.bias > bound).tolist()
