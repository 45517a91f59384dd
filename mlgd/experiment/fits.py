"""Lines through logarithms, and what many seeds say together."""

from __future__ import annotations

import numpy as np


def power_law(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Slope and R^2 of the least-squares line through log y against log x, over the finite entries."""
    x, y = np.log(np.asarray(x, float)), np.log(np.asarray(y, float))
    ok = np.isfinite(x) & np.isfinite(y)
    x, y = x[ok] - x[ok].mean(), y[ok] - y[ok].mean()
    across, down = float(x @ x), float(y @ y)
    return float(x @ y) / across, float(x @ y) ** 2 / across / down if down > 0 else 1.0


def rate(levels: np.ndarray, biases: np.ndarray, start: int = 1) -> tuple[float, float]:
    """gamma_env and R^2: bias ~ k^(-1/gamma), fitted over the levels from `start` on (the paper's appendix E.2.2)."""
    kept = np.asarray(levels) >= start
    slope, r2 = power_law(np.asarray(levels)[kept], np.asarray(biases)[kept])
    return -1 / slope, r2


def across_seeds(flops: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lower quartile, median and upper quartile over the seeds that reached a target, when at least half did."""
    out = np.full((3, flops.shape[1]), np.nan)
    for j, column in enumerate(flops.T):
        reached = column[np.isfinite(column)]
        if 2 * len(reached) >= len(column):
            out[:, j] = np.quantile(reached, [0.25, 0.5, 0.75])
    return tuple(out)


def spread(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard error."""
    values = np.asarray(values, float)
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def percentile(figure: float, values: np.ndarray, rounding: float = 0.0) -> float:
    """Where a figure lies among values: the share of them below it, in percent; ties, to its rounding, are counted half."""
    values = np.asarray(values, float)
    tied = np.abs(values / figure - 1) <= rounding if rounding else values == figure
    return 100 * float(np.mean((values < figure) & ~tied) + np.mean(tied) / 2)


def subsets(values: np.ndarray, size: int, count: int = 10_000, seed: int = 0) -> np.ndarray:
    """Rows of `values` drawn in groups of that size without repetition: what a run with so few seeds might have seen."""
    rng = np.random.default_rng(seed)
    order = np.argsort(rng.random((count, len(values))), axis=1)[:, :size]
    return np.asarray(values)[order]


def rank_of_mean(theirs: np.ndarray, ours: np.ndarray, count: int = 20_000) -> float:
    """Where their mean lies among means of as many values drawn from both samples together, in percent.

    If the two samples are alike every percentage is as likely as any other: the permutation test.
    """
    return percentile(
        np.mean(theirs), subsets(np.append(theirs, ours), len(theirs), count).mean(axis=1)
    )


def rank_of_median(
    figure: float, values: np.ndarray, size: int = 10, rounding: float = 0.0
) -> float:
    """Where a median of so many seeds lies among medians of as many of ours, drawn with repetition, in percent.

    Infinite values are seeds that did not reach a target: a median is of those that did.
    """
    drawn = np.asarray(values)[np.random.default_rng(0).integers(0, len(values), (20_000, size))]
    return percentile(
        figure, np.nanmedian(np.where(np.isfinite(drawn), drawn, np.nan), axis=1), rounding
    )
