"""The protocol of the experiment executed literally, with matrix-vector products on the m-row design.

This is what the closed forms of `mlgd.frontier` and `mlgd.trajectory` replace: the tests hold the two against each
other on the same draws, the benchmark times one against the other, and the residual's drift is read here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from .trajectory import coins, prices


@dataclass(frozen=True)
class DirectRun:
    last: np.ndarray  # loss after each step
    average: np.ndarray  # loss of the average of the iterates before it
    flops: np.ndarray
    x: np.ndarray
    residual: np.ndarray


def telescope(
    columns: np.ndarray,
    right: np.ndarray,
    ladder: Sequence[int],
    probabilities: np.ndarray,
    eta: float,
    exact: bool,
    seed: int,
    name: tuple[int, ...],
    steps: int,
) -> DirectRun:
    """Descent from 0 driven by the telescope, in the precision of `columns`; the exact form maintains its residual."""
    m, size = columns.shape
    kind = columns.dtype.type
    x = np.zeros(size, kind)
    residual = -right.astype(kind)
    total = np.zeros(m, kind)  # the sum of the residuals, for the loss of the average
    last, average, drawn = np.empty(steps), np.empty(steps), np.empty((steps, len(ladder)), bool)
    rows = chain.from_iterable(coins(seed, name, probabilities))
    for t in range(steps):
        drawn[t] = next(rows)
        total += residual
        top = ladder[np.flatnonzero(drawn[t])[-1]]
        step, before = np.zeros(top, kind), 0
        for k, b, p in zip(ladder, drawn[t], probabilities, strict=True):
            if b:
                step[:k] += kind(1 / p) * level(columns, residual, right, x, k, exact)
                step[:before] -= kind(1 / p) * level(columns, residual, right, x, before, exact)
            before = k
        x[:top] -= kind(eta) * step
        residual = residual - kind(eta) * (columns[:, :top] @ step)
        last[t] = float(residual @ residual) / 2
        r = total / (t + 1)
        average[t] = float(r @ r) / 2
    return DirectRun(last, average, np.cumsum(prices(ladder, m, exact, drawn)), x, residual)


def level(columns, residual, right, x, k: int, exact: bool) -> np.ndarray:
    """Level k: the first k coordinates of the gradient, or the gradient of the problem cut to k columns."""
    head = columns[:, :k]
    return head.T @ (residual if exact else head @ x[:k] - right.astype(columns.dtype))


def fixed(columns: np.ndarray, right: np.ndarray, k: int, eta: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Descent from 0 at level k: losses of the last iterate and of the average after each step."""
    head = columns[:, :k]
    x, residual, total = np.zeros(k, columns.dtype), -right.astype(columns.dtype), np.zeros_like(right, columns.dtype)
    last, average = np.empty(steps), np.empty(steps)
    for t in range(steps):
        total += residual
        x -= eta * (head.T @ residual)
        residual = head @ x - right
        last[t] = residual @ residual / 2
        r = total / (t + 1)  # the residual of the average
        average[t] = r @ r / 2
    return last, average
