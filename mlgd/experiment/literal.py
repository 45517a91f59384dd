"""The protocol of the experiment executed literally: what the fast path is held against.

The paper's appendix E.3.1, with matrix-vector products on the m-row design, in the precision of its
columns. Nothing here comes from the modules that it judges: it tosses its own coins, one step at a
time, and counts 2mk flops for each product of shape (m, k) as the product is made. The benchmark
times it, and the residual's drift is read on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class DirectRun:
    last: np.ndarray  # loss after each step
    average: np.ndarray  # loss of the average of the iterates before it
    flops: np.ndarray  # spent up to and including the step
    x: np.ndarray
    residual: np.ndarray


class Products:
    """The design with a meter: products of shape (m, k) with its first k columns cost 2mk."""

    def __init__(self, columns: np.ndarray):
        self.columns, self.flops = columns, 0.0

    def times(self, x: np.ndarray) -> np.ndarray:
        """A_{<=k} x, k the length of x."""
        self.flops += 2.0 * len(self.columns) * len(x)
        return self.columns[:, : len(x)] @ x

    def transposed(self, r: np.ndarray, k: int) -> np.ndarray:
        """A_{<=k}^T r."""
        self.flops += 2.0 * len(self.columns) * k
        return self.columns[:, :k].T @ r


def telescope(
    columns: np.ndarray,
    right: np.ndarray,
    ladder: Sequence[int],
    probabilities: np.ndarray,
    eta: float,
    exact: bool,
    rng: np.random.Generator,
    steps: int,
) -> DirectRun:
    """Descent from 0 driven by the telescope; the exact form carries its residual and pays for it.

    The truncated form needs no residual: the one that it carries here is only how a loss is read,
    which is free.
    """
    kind = columns.dtype.type
    design, reader, b = Products(columns), Products(columns), right.astype(kind)
    x, residual = np.zeros(columns.shape[1], kind), -b
    total = np.zeros_like(b)  # the sum of the residuals, for the loss of the average
    last, average, flops = np.empty((3, steps))
    for t in range(steps):
        total += residual
        step, before, top = np.zeros_like(x), 0, 0
        for k, p in zip(ladder, probabilities, strict=True):
            if (
                rng.random() < p
            ):  # the increment from the level before to level k, at weight 1/p
                for sign, j in ((1, k), (-1, before)):
                    r = residual if exact else design.times(x[:j]) - b
                    step[:j] += kind(sign / p) * design.transposed(r, j)
                top = k
            before = k
        x -= kind(eta) * step
        residual = residual - kind(eta) * (design if exact else reader).times(step[:top])
        flops[t] = design.flops
        last[t] = float(residual @ residual) / 2
        r = total / (t + 1)
        average[t] = float(r @ r) / 2
    return DirectRun(last, average, flops, x, residual)


def fixed(
    columns: np.ndarray, right: np.ndarray, k: int, eta: float, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Descent from 0 at level k: losses of the last iterate and of the average after each step."""
    head = columns[:, :k]
    x, residual, total = (
        np.zeros(k, columns.dtype),
        -right.astype(columns.dtype),
        np.zeros_like(right, columns.dtype),
    )
    last, average = np.empty(steps), np.empty(steps)
    for t in range(steps):
        total += residual
        x -= eta * (head.T @ residual)
        residual = head @ x - right
        last[t] = residual @ residual / 2
        r = total / (t + 1)  # the residual of the average
        average[t] = r @ r / 2
    return last, average
