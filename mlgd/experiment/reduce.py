"""One seed of the experiment reduced to what its runs need: a Gram matrix, a vector, a few tails.

The paper's section 4 and appendix E. No iterate leaves the first `k_max` coordinates, so nothing of
size m x n is ever needed: the problem is the Gram matrix of those columns and their products with
b, and a bias needs the tails of the gradient at a few points.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .design import BLOCK, Design

# the six steps of a descent at which the paper reads a bias
PROBES = (
    0,
    1,
    4,
    20,
    89,
    400,
)
# sixteen, the six among them
WIDE = (0, 1, 2, 4, 7, 12, 20, 31, 45, 65, 89, 130, 190, 250, 320, 400)
CUT = 32  # columns from which on a rate is fitted (E.2.2)
KEEP = 2**30  # bytes of random numbers kept between the two passes over a design

_local = threading.local()


def read_levels(k_max: int) -> np.ndarray:
    """The levels at which a bias is read: ratio sqrt(2), from 1 to k_max."""
    return np.unique([round(2 ** (i / 2)) for i in range(2 * k_max.bit_length() - 1)])


def power_law(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Slope and R^2 of the line through log y against log x, over the finite entries."""
    x, y = np.log(np.asarray(x, float)), np.log(np.asarray(y, float))
    ok = np.isfinite(x) & np.isfinite(y)
    x, y = x[ok] - x[ok].mean(), y[ok] - y[ok].mean()
    return float(x @ y / (x @ x)), float((x @ y) ** 2 / (x @ x) / max(y @ y, 1e-300))


def rate(levels: np.ndarray, biases: np.ndarray, start: int = CUT) -> tuple[float, float]:
    """gamma and R^2 of bias ~ k^(-1/gamma), fitted over the levels from `start` on (E.2.2)."""
    slope, r2 = power_law(levels[levels >= start], biases[levels >= start])
    return -1 / slope, r2


@dataclass(frozen=True)
class Reduced:
    """All that the experiment needs of one seed: the problem in k_max coordinates, and the tails.

    L(X) = 1/2 X'GX - v'X + 1/2 |b|^2 for every X in the first k_max coordinates; `tails[j]` is the
    squared norm of the gradient's coordinates past k_max at `probes[j]`, the iterates of a descent
    at level k_max.
    """

    design: Design
    gram: np.ndarray
    moment: np.ndarray
    right: np.ndarray
    steps: tuple[int, ...]
    probes: np.ndarray
    tails: np.ndarray
    spectra: dict[int, tuple[np.ndarray, np.ndarray]] = field(
        default_factory=dict, repr=False
    )

    @cached_property
    def loss_zero(self) -> float:
        return float(self.right @ self.right) / 2

    def loss(self, x: np.ndarray) -> float:
        return float(x @ (self.gram @ x) / 2 - self.moment @ x + self.loss_zero)

    def spectrum(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues and eigenvectors of the Gram matrix of the first k columns, kept."""
        if k not in self.spectra:
            self.spectra[k] = np.linalg.eigh(self.gram[:k, :k])
        return self.spectra[k]

    def smoothness(self, k: int) -> float:
        """beta_k, the top eigenvalue of the Gram matrix of the first k columns."""
        return float(self.spectrum(k)[0][-1])

    def minimizer(self, k: int) -> np.ndarray:
        return np.linalg.solve(self.gram[:k, :k], self.moment[:k])

    def floor(self, k: int) -> float:
        """The smallest loss within the first k coordinates, as a fraction of L0."""
        return float(1 - self.moment[:k] @ self.minimizer(k) / (2 * self.loss_zero))

    def biases(
        self,
        levels: Sequence[int],
        truncated: bool = False,
        steps: Sequence[int] = PROBES,
    ) -> np.ndarray:
        """Bias of each level (columns) at each probe (rows), in the exact or the truncated form."""
        out = np.empty((len(steps), len(levels)))
        for row, j in enumerate(self.steps.index(s) for s in steps):
            x = self.probes[j]
            gradient = self.gram @ x - self.moment
            for column, k in enumerate(levels):
                error = gradient[k:] @ gradient[k:] + self.tails[j]
                if truncated:
                    cross = self.gram[:k, k:] @ x[k:]
                    error += cross @ cross
                out[row, column] = np.sqrt(error)
        return out


def descend(gram: np.ndarray, moment: np.ndarray, steps: Sequence[int]) -> np.ndarray:
    """Iterates, at those steps, of descent from 0 with step 1/(4 beta): closed form."""
    values, vectors = np.linalg.eigh(gram)
    rates = 1 - values / (4 * values[-1])
    optimum = vectors.T @ moment / values
    return np.array([vectors @ (optimum * (1 - rates**s)) for s in steps])


def room(count: int, m: int) -> np.ndarray:
    """Memory for blocks, reused: touching fresh memory can cost as much as drawing the numbers."""
    held = getattr(_local, "held", None)
    if held is None or len(held) < count or held.shape[2] != m:
        _local.held = held = np.empty((count, BLOCK, m), np.float32)
    return held[:count]


def reduce(
    design: Design, k_max: int, steps: Sequence[int] = PROBES, keep: float = KEEP
) -> Reduced:
    """Reduce a design in two passes: the first sums b, the second reads gradients at the probes.

    Blocks are kept between the passes while they fit in `keep` bytes, and drawn again otherwise:
    memory does not grow with n. Products with a column are made in single precision, like its
    draws, and summed over columns in double precision.
    """
    m, total = design.m, design.blocks
    if not 1 <= k_max <= min(m, design.n):
        raise ValueError(
            f"k_max={k_max} must lie between 1 and both m={m} and n={design.n}: "
            "past m columns a level fits b exactly"
        )
    kept, scratch = (
        room(min(total, int(keep // (4 * BLOCK * m))), m),
        np.empty((BLOCK, m), np.float32),
    )

    def raw(again: bool) -> Iterator[tuple[int, np.ndarray]]:
        for block in range(total):
            if block >= len(kept):
                yield block, design.gaussians(block, scratch)
            else:
                yield (
                    block,
                    kept[block] if again else design.gaussians(block, kept[block]),
                )

    u, head = design.shared, design.columns(k_max)
    b, weights = np.zeros(m), []
    for block, g in raw(False):
        shared, own = design.weights(block * BLOCK, g)
        weights.append((shared, own))
        target = design.target(block)
        b += (own * target).astype(np.float32) @ g + (shared @ target) * u
    gram, moment = head.T @ head, head.T @ b
    probes = descend(gram, moment, steps)
    residuals = probes @ head.T - b
    single, along, tails = (
        residuals.astype(np.float32),
        residuals @ u,
        np.zeros(len(steps)),
    )
    for block, g in raw(True):
        shared, own = weights[block]
        gradient = own * (single @ g.T) + np.outer(along, shared)
        past = np.arange(block * BLOCK, (block + 1) * BLOCK) >= k_max
        tails += np.sum(gradient**2 * past, axis=1)
    return Reduced(design, gram, moment, b, tuple(steps), probes, tails)


def read_rate(design: Design, k_max: int, start: int) -> float:
    """The rate of a design up to k_max columns, fitted from `start` on."""
    levels = read_levels(k_max)
    return rate(levels, reduce(design, k_max).biases(levels).max(axis=0), start)[0]
