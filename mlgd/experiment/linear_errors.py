"""Quadratics whose levels are off by an error that is linear in y, and the cheapest probabilities for a variance.

A random instance: eigenvalues spread evenly on a logarithmic scale from 1/kappa to 1, a starting loss of one shared equally among
them; level k = 0, 1, ... is off by 0.1 * 2^-k (u + W (y - y0)/d0)/sqrt 2 with a unit vector u and an orthogonal matrix W of
its own, at price 2^(gamma k). The error changes by its own size over the distance d0: assumption R with l = 0.21/d0 at most.
All is written in e = y - y*, so that A_k(e) = matrix[k] e + offset[k] and the loss is e'He/2.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mlgd.hierarchy import Hierarchy


@dataclass(frozen=True, eq=False)
class Affine:
    """Levels A_k(e) = matrix[k] e + offset[k] of the gradient diag(spectrum) e, at price[k]; the start is e0."""

    spectrum: np.ndarray
    e0: np.ndarray
    matrix: np.ndarray  # (levels, d, d)
    offset: np.ndarray  # (levels, d)
    price: np.ndarray

    def loss(self, e: np.ndarray) -> float:
        return float(self.spectrum @ e**2) / 2

    @cached_property
    def floors(self) -> np.ndarray:
        """The loss at the zero of each level: what no method that looks no further can do better than, in the limit."""
        return np.array([self.loss(zero) for zero in self.zeros])

    @cached_property
    def zeros(self) -> np.ndarray:
        """Where each level vanishes."""
        return np.array(
            [np.linalg.solve(m, -c) for m, c in zip(self.matrix, self.offset, strict=True)]
        )

    def unit(self, eps: float) -> int:
        """The coarsest level whose zero has loss at most eps: its price is "one gradient"."""
        good = np.flatnonzero(self.floors <= eps)
        if not good.size:
            raise ValueError(
                f"no level of this instance has a zero of loss {eps:g}: draw it with more levels"
            )
        return int(good[0])

    def hierarchy(self, accuracy=None) -> Hierarchy:
        """The same as a Hierarchy in e."""
        return Hierarchy(
            lambda k, e: self.matrix[k] @ e + self.offset[k],
            lambda k: self.price[k],
            range(self.price.size),
            accuracy,
        )


def instance(
    kappa: float, gamma: float, seed: int, levels: int = 14, d: int = 60, size: float = 0.1
) -> Affine:
    """One random member of the family."""
    rng = np.random.default_rng([seed, 13])
    spectrum = np.geomspace(1 / kappa, 1, d)
    e0 = np.sqrt(2 / (d * spectrum)) * rng.choice([-1.0, 1.0], d)
    scale = size * 2.0 ** -np.arange(levels) / np.sqrt(2)
    u = rng.standard_normal((levels, d))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    w = np.array([_orthogonal(rng, d) for _ in range(levels)])
    turn = scale[:, None, None] * w / np.linalg.norm(e0)
    return Affine(
        spectrum,
        e0,
        np.diag(spectrum) + turn,
        scale[:, None] * u - turn @ e0,
        2.0 ** (gamma * np.arange(levels)),
    )


def _orthogonal(rng, d: int) -> np.ndarray:
    q, r = np.linalg.qr(rng.standard_normal((d, d)))
    return q * np.sign(np.diag(r))


def water_filling(v: np.ndarray, price: np.ndarray, variance: float) -> np.ndarray:
    """argmin sum p_k price_k  subject to  sum (1/p_k - 1) v_k <= variance, p_k <= 1: p_k = min(1, s sqrt(v_k/price_k))."""
    if variance <= 0:
        return np.ones(v.size)
    v = np.maximum(v, 1e-300)  # a vanishing increment still needs a positive probability
    order = np.argsort(-np.sqrt(v / price))  # the clamp p = 1 is reached in this order
    for clamped in range(v.size):
        free = order[clamped:]
        s = np.sqrt(v[free] * price[free]).sum() / (variance + v[free].sum())
        p = s * np.sqrt(v[free] / price[free])
        if p[0] <= 1:
            out = np.ones(v.size)
            out[free] = np.maximum(p, 1e-300)
            return out
    return np.ones(v.size)


@dataclass(frozen=True, eq=False)
class Sampling:
    """Which levels a call looks at: all up to `base` in one evaluation, later ones up to `finest` with probability p."""

    base: int
    finest: int
    p: np.ndarray  # of the levels base + 1, ..., finest

    @classmethod
    def cheapest(
        cls, base: int, finest: int, squares: np.ndarray, price: np.ndarray, variance: float
    ) -> "Sampling":
        """Water filling: the cheapest p with sum (1/p_k - 1) squares[k] <= variance, an increment paying for two levels."""
        tail = slice(base + 1, finest + 1)
        pairs = price[tail] + price[base:finest]
        return cls(
            base,
            finest,
            water_filling(squares[tail], pairs, variance) if finest > base else np.zeros(0),
        )
