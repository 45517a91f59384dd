"""Lines through a few levels: a rate with an interval that covers, and how fast increments change with the point."""

import math
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

RESOLUTION = 0.02  # a rate is read to 2% at best, however straight the line
FLOOR = 0.05  # bits: what a level may be off the line of the finer ones, however straight that is
LIPSCHITZ = 0.75  # an exponent of the change in the distance from which it is taken for one
SATURATED = 0.5  # increments that differ by more than this share of their size have nothing to do with one another
NEAR = 32.0  # pairs up to this many times the closest distance tell the order
QUANTILES = (
    31.82,
    6.965,
    4.541,
    3.747,
    3.365,
    3.143,
    2.998,
    2.896,
    2.821,
    2.764,
)  # Student's 99%, 1 to 10 degrees


def student(freedom: int) -> float:
    """The 99% quantile of Student's distribution: 98% lie between minus it and it (Cornish-Fisher past the table).

    >>> student(1), round(student(30), 2)
    (31.82, 2.46)
    """
    z = 2.32635
    if freedom <= len(QUANTILES):
        return QUANTILES[freedom - 1]
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def beyond(ratio: float, cosine: float) -> float:
    """The error of a level over its increment, for errors that fall by `ratio` per level, from the angle of increments.

    Errors e_k = ratio^k u_k of one size whose directions have correlation rho^j over j levels make increments
    e_k - e_{k-1} with the cosine (rho (1 + r^2) - r (1 + rho^2))/(1 + r^2 - 2 rho r): solved for rho.

    >>> round(beyond(0.5, 1.0), 9), round(beyond(0.5, -0.4), 9)  # one direction; directions of their own, 1/sqrt(5)
    (1.0, 0.447213595)
    """
    half = (1 + ratio**2) / 2 + cosine * ratio
    rho = (half - math.sqrt(max(half**2 - ratio * (ratio + cosine * (1 + ratio**2)), 0.0))) / ratio
    rho = min(max(rho, -1.0), 1.0)
    return ratio / math.sqrt(1 + ratio**2 - 2 * rho * ratio)


@dataclass(frozen=True)
class Line:
    """log2 size = at - slope log2 price over the indices `used`, with a range for the slope."""

    slope: float
    low: float
    high: float
    r2: float
    used: tuple[int, ...]


def line(price: np.ndarray, size: np.ndarray, usable: list[int]) -> Line:
    """How error falls with price, over the finest run of usable levels that one line may carry.

    The price is known and the error is what scatters, so log error is regressed on log price and not the other way
    round: the other slope is biased. One number per level goes in, since errors at several points share their
    samples and are not independent. The range is Student's at 98%, with the larger of two errors (coarse levels may
    scatter more): neighbouring levels may be correlated, as nested subsets are, which costs it a few percent. Where
    a parabola fits significantly better, the range goes on to its slope at the fine end. Coarse levels are left out only if the finer ones, four at
    least, predict something else by twice Student's quantile; a level is never dropped for a better R2.
    """
    usable = [i for i in usable if size[i] > 0]
    x, y = np.log2(price), np.log2(np.maximum(size, 1e-300))
    start = max(0, len(usable) - 4)
    while start > 0:
        before, fit, n = (
            usable[start - 1],
            Fit.of(x[usable[start:]], y[usable[start:]]),
            len(usable) - start,
        )
        off = x[before] - fit.centre[0]
        scatter = max(fit.left @ fit.left / (n - 2), FLOOR**2) * (1 + 1 / n + off**2 / fit.spread)
        if abs(y[before] - fit.centre[1] - fit.slope * off) > 2 * student(n - 2) * math.sqrt(
            scatter
        ):
            break
        start -= 1
    used = usable[start:]
    if len(used) < 2 or not np.ptp(x[used]):
        return Line(math.nan, -math.inf, math.inf, 0.0, tuple(used))
    fit, n = Fit.of(x[used], y[used]), len(used)
    margin = math.inf
    if (
        n > 2
    ):  # the larger error allows for levels that scatter more than others (White's, with MacKinnon's correction HC3)
        uneven = (
            np.linalg.norm(fit.off * fit.left / (1 - 1 / n - fit.off**2 / fit.spread)) / fit.spread
        )
        margin = student(n - 2) * max(
            math.sqrt(fit.left @ fit.left / (n - 2) / fit.spread), float(uneven)
        )
    margin, end = max(margin, RESOLUTION * abs(fit.slope)), _bent(fit, y[used])
    return Line(
        -fit.slope,
        -max(fit.slope + margin, end),
        -min(fit.slope - margin, end),
        fit.r2,
        tuple(used),
    )


class Fit(NamedTuple):
    """Least squares of y on x: x `off` its centre, the sum of squares of that, the slope, what is left of y, and R2."""

    centre: tuple[float, float]
    off: np.ndarray
    spread: float
    slope: float
    left: np.ndarray
    r2: float

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray) -> "Fit":
        off, high = x - x.mean(), y - y.mean()
        spread, total = max(float(off @ off), 1e-300), float(high @ high)
        slope = float(off @ high) / spread
        left = high - slope * off
        return cls(
            (x.mean(), y.mean()),
            off,
            spread,
            slope,
            left,
            1 - float(left @ left) / total if total else 0.0,
        )


def _bent(fit: Fit, y: np.ndarray) -> float:
    """The slope at the fine end of a parabola, if one is needed where a line was drawn; else that of the line."""
    if y.size < 5:
        return fit.slope
    tilt = float((fit.off**3).sum()) / fit.spread
    square = fit.off**2 - fit.spread / y.size - tilt * fit.off  # orthogonal to the line
    size = max(float(square @ square), 1e-300)
    bend = float(square @ y) / size
    left = fit.left - bend * square
    scatter = math.sqrt(
        max(float(left @ left) / (y.size - 3), 1e-4)
    )  # a hundredth of a bit is no bend
    needed = abs(bend) * math.sqrt(size) > student(y.size - 3) * scatter
    return fit.slope + bend * (2 * float(fit.off[-1]) - tilt) if needed else fit.slope


@dataclass(frozen=True)
class Regularity:
    """How increments change with the point: the worst |D_k(y) - D_k(y')|/|y - y'| of each level, and what it means.

    `order` is the exponent of the change in the distance (1: Lipschitz, 1/2: jumps, 0: unrelated from point to point),
    `rate` its exponent in the increment (1: falls with the level as fast as the increments do, 0: does not fall).
    """

    change: np.ndarray
    order: float
    rate: float
    verdict: str
    doubt: str | None


def regularity(points: list[np.ndarray], increments: np.ndarray, floor: float) -> Regularity:
    """Measure it on increments of shape (level, point, ...); differences below `floor` are rounding."""
    n, flat = len(increments), increments.reshape(*increments.shape[:2], -1)
    pairs = [
        (i, j) for i, j in combinations(range(len(points)), 2) if (points[i] != points[j]).any()
    ]
    if not pairs:
        few = "how increments change with y cannot be told from one point: add two, one of them close to the first"
        return Regularity(np.full(n, math.nan), math.nan, math.nan, "unknown", few)
    distance = np.array([np.linalg.norm(points[i] - points[j]) for i, j in pairs])
    moved = np.array([[np.linalg.norm(level[i] - level[j]) for i, j in pairs] for level in flat])
    size = np.sqrt(
        2 * (np.linalg.norm(flat, axis=2) ** 2).mean(axis=1)
    )  # what unrelated increments differ by
    change = (moved / distance).max(axis=1)
    told = [k for k in range(1, n) if (moved[k] > floor).any()]
    if n > 1 and not told:
        return Regularity(
            change, math.nan, math.nan, "smooth", None
        )  # errors that do not depend on the point
    orders = [
        s for s in (_order(distance, moved[k], size[k], floor) for k in told) if not math.isnan(s)
    ]
    order, rate = float(np.median(orders)) if orders else math.nan, math.nan
    if len(told) > 2 and np.ptp(np.log(size[told])):
        rate = Fit.of(
            np.log(np.maximum(size[told], 1e-300)), np.log(np.maximum(change[told], 1e-300))
        ).slope
    verdict, doubt = "unknown", None
    if math.isnan(order):
        doubt = (
            "how increments change with y cannot be told from these points, which are too few or too far apart: "
            "add points at a quarter of the distance and closer"
        )
    elif order > 1.5:
        doubt = "increments do not change between close points and do between distant ones: add points in between"
    elif order < 0.6 or rate < 0.25:
        verdict = "rough"
    elif order < LIPSCHITZ or rate < 0.5:
        doubt = "between smooth and rough, increments change with y in a way that these points do not decide: add closer points"
    else:
        verdict = "smooth"
    return Regularity(change, order, rate, verdict, doubt)


def _order(distance: np.ndarray, moved: np.ndarray, size: float, floor: float) -> float:
    """The exponent of the change in the distance at one level: from the pairs whose increments still resemble another."""
    near = (
        distance <= NEAR * distance.min()
    )  # far apart, smooth increments need not resemble one another either
    if np.ptp(np.log(distance[near])) < math.log(4):
        return math.nan
    alike = near & (moved <= SATURATED * size)
    if not alike[distance <= 2 * distance.min()].any():
        return 0.0  # unrelated even at the closest points
    few = np.ptp(np.log(distance[alike])) < math.log(4)
    pairs = near if few else alike
    slope = Fit.of(np.log(distance[pairs]), np.log(np.maximum(moved[pairs], floor))).slope
    return (
        math.nan if few and slope < LIPSCHITZ else slope
    )  # pairs that differ by all they can only flatten it
