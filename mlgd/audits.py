"""Measuring a hierarchy: bias, increment and price of each level, the rate they follow, and what to mend.

Levels are deterministic, so nothing is sampled: one evaluation a level and point, and every number is exact there.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .hierarchy import Hierarchy

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

    >>> from mlgd.examples import biased
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
