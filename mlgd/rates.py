"""Lines through a few levels: a rate with an interval that covers, and how fast increments change with the point."""

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

RESOLUTION = 0.02  # a rate is read to 2% at best, however straight the line
FLOOR = 0.05  # bits: what a level may be off the line of the finer ones, however straight that is
LIPSCHITZ = 0.75  # an exponent of the change in the distance from which it is taken for one
SATURATED = 0.5  # increments that differ by more than this share of their size have nothing to do with one another
NEAR = 32.0  # pairs up to this many times the closest distance tell the order
QUANTILES = (31.82, 6.965, 4.541, 3.747, 3.365, 3.143, 2.998, 2.896, 2.821, 2.764)  # Student's 99%, 1 to 10 degrees


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
        centre, spread, slope, variance, _ = _regress(x, y, usable[start:])
        n, off = len(usable) - start, x[usable[start - 1]] - centre[0]
        allowed = 2 * student(n - 2) * math.sqrt(max(variance, FLOOR**2) * (1 + 1 / n + off**2 / spread))
        if abs(y[usable[start - 1]] - centre[1] - slope * off) > allowed:
            break
        start -= 1
    used = usable[start:]
    if len(used) < 2 or not np.ptp(x[used]):
        return Line(math.nan, -math.inf, math.inf, 0.0, tuple(used))
    _, spread, slope, variance, r2 = _regress(x, y, used)
    margin = math.inf
    if len(used) > 2:
        margin = student(len(used) - 2) * max(math.sqrt(variance / spread), _uneven(x, y, used))
    margin = max(margin, RESOLUTION * abs(slope))
    end = _bent(x, y, used)
    return Line(-slope, -max(slope + margin, end), -min(slope - margin, end), r2, tuple(used))


def _uneven(x, y, used) -> float:
    """The slope's error if some levels scatter more than others (White's estimate with MacKinnon's correction HC3)."""
    centre, spread, slope, *_ = _regress(x, y, used)
    off = x[used] - centre[0]
    residual = (y[used] - centre[1] - slope * off) / (1 - 1 / len(used) - off**2 / spread)
    return float(np.sqrt(((off * residual) ** 2).sum())) / spread


def _bent(x, y, used) -> float:
    """The slope at the fine end of a parabola, if one is needed where a line was drawn; else that of the line."""
    centre, spread, slope, *_ = _regress(x, y, used)
    if len(used) < 5:
        return slope
    off = x[used] - centre[0]
    tilt = float((off**3).sum()) / spread
    square = off**2 - spread / len(used) - tilt * off  # orthogonal to the line
    size = max(float(square @ square), 1e-300)
    bend = float(square @ y[used]) / size
    left = y[used] - centre[1] - slope * off - bend * square
    scatter = math.sqrt(max(float(left @ left) / (len(used) - 3), 1e-4))  # a hundredth of a bit is no bend
    if abs(bend) * math.sqrt(size) <= student(len(used) - 3) * scatter:
        return slope
    return slope + bend * (2 * float(off[-1]) - tilt)


def _regress(x, y, used):
    """Least squares of y on x: centre, spread of x, slope, residual variance, R2."""
    a, b = x[used], y[used]
    da, db = a - a.mean(), b - b.mean()
    spread = max(float(da @ da), 1e-300)
    slope = float(da @ db) / spread
    residual = float(((db - slope * da) ** 2).sum())
    total = float(db @ db)
    return (a.mean(), b.mean()), spread, slope, residual / max(1, len(used) - 2), 1 - residual / total if total else 0.0


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
    n = len(increments)
    pairs = [(i, j, float(np.linalg.norm(points[i] - points[j]))) for i, j in combinations(range(len(points)), 2)]
    pairs = [pair for pair in pairs if pair[2] > 0]
    if not pairs:
        few = "how increments change with y cannot be told from one point: add two, one of them close to the first"
        return Regularity(np.full(n, math.nan), math.nan, math.nan, "unknown", few)
    distance = np.array([d for *_, d in pairs])
    flat = increments.reshape(n, len(points), -1)
    moved = np.array([[np.linalg.norm(level[i] - level[j]) for i, j, _ in pairs] for level in flat])
    size = np.sqrt(2 * (np.linalg.norm(flat, axis=2) ** 2).mean(axis=1))  # what unrelated increments differ by
    change = (moved / distance).max(axis=1)
    told = [k for k in range(1, n) if (moved[k] > floor).any()]
    if n > 1 and not told:
        return Regularity(change, math.nan, math.nan, "smooth", None)  # errors that do not depend on the point
    orders = [s for s in (_order(distance, moved[k], size[k], floor) for k in told) if not math.isnan(s)]
    order = float(np.median(orders)) if orders else math.nan
    rate = math.nan
    if len(told) > 2 and np.ptp(np.log(size[told])):
        rate = _regress(np.log(np.maximum(size, 1e-300)), np.log(np.maximum(change, 1e-300)), told)[2]
    if math.isnan(order):
        far = "how increments change with y cannot be told from these points, which are too few or too far apart"
        return Regularity(change, order, rate, "unknown", f"{far}: add points at a quarter of the distance and closer")
    if order > 1.5:
        gap = "increments do not change between close points and do between distant ones: add points in between"
        return Regularity(change, order, rate, "unknown", gap)
    if order < 0.6 or rate < 0.25:
        return Regularity(change, order, rate, "rough", None)
    if order < LIPSCHITZ or rate < 0.5:
        between = "between smooth and rough, increments change with y in a way that these points do not decide"
        return Regularity(change, order, rate, "unknown", f"{between}: add closer points")
    return Regularity(change, order, rate, "smooth", None)


def _order(distance, moved, size, floor) -> float:
    """The exponent of the change in the distance at one level: from the pairs whose increments still resemble another."""
    near = distance <= NEAR * distance.min()  # far apart, smooth increments need not resemble one another either
    if np.ptp(np.log(distance[near])) < math.log(4):
        return math.nan
    alike = near & (moved <= SATURATED * size)
    if not alike[distance <= 2 * distance.min()].any():
        return 0.0  # unrelated even at the closest points
    few = np.ptp(np.log(distance[alike])) < math.log(4)
    pairs = np.flatnonzero(near if few else alike)
    slope = _regress(np.log(distance), np.log(np.maximum(moved, floor)), pairs)[2]
    return math.nan if few and slope < LIPSCHITZ else slope  # pairs that differ by all they can only flatten it
