"""Quadratics whose levels are off by an error that is linear in y, and exact second moments of descent on them.

A random instance: eigenvalues spread evenly on a logarithmic scale from 1/kappa to 1, a starting loss of one shared equally among
them; level k = 0, 1, ... is off by 0.1 * 2^-k (u + W (y - y0)/d0)/sqrt 2 with a unit vector u and an orthogonal matrix W of
its own, at price 2^(gamma k). The error changes by its own size over the distance d0: assumption R with l = 0.21/d0 at most.
All is written in e = y - y*, so that A_k(e) = matrix[k] e + offset[k] and the loss is e'He/2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice

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
    def slopes(self) -> np.ndarray:
        """The matrices of the increments A_k - A_{k-1}; the first level's is its own."""
        return np.diff(self.matrix, axis=0, prepend=0.0)

    @cached_property
    def lipschitz(self) -> np.ndarray:
        """The Lipschitz constant of each increment."""
        return np.array([np.linalg.norm(n, 2) for n in self.slopes])

    @cached_property
    def floors(self) -> np.ndarray:
        """The loss at the zero of each level: what no method that looks no further can do better than, in the limit."""
        return np.array([self.loss(zero) for zero in self.zeros])

    @cache  # noqa: B019 - a family lives as long as its study
    def eigen(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Eigenvalues of a level's matrix, eigenvectors, and their inverse."""
        values, vectors = np.linalg.eig(self.matrix[k])
        return values, vectors, np.linalg.inv(vectors)

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


# --- exact second moments --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Moments:
    """E e and E ee' of a random point."""

    mean: np.ndarray
    second: np.ndarray

    @classmethod
    def at(cls, e: np.ndarray) -> "Moments":
        return cls(e, np.outer(e, e))

    def loss(self, spectrum: np.ndarray) -> float:
        return float(spectrum @ np.diag(self.second)) / 2

    @property
    def distance(self) -> float:
        """The root mean square distance to the minimizer."""
        return float(np.sqrt(np.trace(self.second)))


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

    @property
    def looked(self) -> np.ndarray:
        """The probability that a call evaluates each of the levels past the base: a drawn increment needs two."""
        after = np.append(self.p[1:], 0.0)
        return self.p + after - self.p * after

    def call(self, price: np.ndarray) -> float:
        """The mean price of the levels past the base in one call."""
        return float(self.looked @ price[self.base + 1 : self.finest + 1])

    def epoch(self, price: np.ndarray, steps: int, lazy: bool = True) -> dict[str, float]:
        """The mean price of an epoch of the anchored telescope, by purpose; its first call is at the reference itself.

        `lazy`: a level strictly between base and finest is evaluated at the reference when it is first drawn, and kept.
        """
        between = price[self.base + 1 : self.finest]
        ever = 1 - (1 - self.looked[:-1]) ** (steps - 1) if lazy else np.ones(between.size)
        return {
            "reference": float(price[self.finest] + (0 if lazy else between.sum())),
            "coarse": float((steps - (self.base == self.finest)) * price[self.base]),
            "sampled": float((steps - 1) * self.call(price) + (ever @ between if lazy else 0.0)),
        }


def anchored_path(
    family: Affine, start: Moments, eta: float, draw: Sampling, every: int = 1
) -> Iterator[Moments]:
    """The exact moments of y <- y - eta g(y) with the anchored telescope at r = the (random) start, every so many steps.

    With z = y - r and w = (r, 1):  z <- P z + Q w - eta sum_k (B_k/p_k - 1) N_k z,  and w stays.
    """
    d = family.spectrum.size
    m, c = family.matrix[draw.finest], family.offset[draw.finest]
    keep, push = np.eye(d) - eta * m, -eta * np.column_stack([m, c])
    ww = np.block([[start.second, start.mean[:, None]], [start.mean[None], np.ones((1, 1))]])
    constant, drive = push @ ww @ push.T, push @ ww
    noise = _stack(family, draw, eta)
    zz, zw = np.zeros((d, d)), np.zeros((d, d + 1))
    while True:
        for _ in range(every):
            cross = keep @ zw @ push.T
            zz = keep @ zz @ keep.T + cross + cross.T + constant + _injected(noise, zz)
            zw = keep @ zw + drive
        zr, z1 = zw[:, :d], zw[:, d]
        yield Moments(start.mean + z1, start.second + zr + zr.T + zz)


def plain_path(
    family: Affine, start: Moments, eta: float, draw: Sampling, growth: float = 1.0, every: int = 1
) -> Iterator[tuple[Moments, Moments]]:
    """The same for the plain telescope: the last point, and the average with weights growth^t of y_0, ..., y_{t-1}."""
    d = family.spectrum.size
    m, c = family.matrix[draw.finest], family.offset[draw.finest]
    keep = np.eye(d) - eta * m
    noise = _stack(family, draw, eta)
    drawn = slice(draw.base + 1, draw.finest + 1)
    shifts = (eta * np.sqrt(1 / draw.p - 1))[:, None] * np.diff(family.offset, axis=0, prepend=0.0)[
        drawn
    ]
    mean, yy = start.mean, start.second
    ya, aa, am, mass = np.zeros((d, d)), np.zeros((d, d)), np.zeros(d), 0.0
    while True:
        for _ in range(every):
            mass = 1.0 + mass / growth
            share = 1 / mass
            aa = (1 - share) ** 2 * aa + share * (1 - share) * (ya + ya.T) + share**2 * yy
            ya = (1 - share) * ya + share * yy  # E y a'
            am = (1 - share) * am + share * mean
            moved = (noise @ mean).T @ shifts - eta * np.outer(keep @ mean, c)
            ya = keep @ ya - eta * np.outer(c, am)
            yy = (
                keep @ yy @ keep.T
                + moved
                + moved.T
                + eta**2 * np.outer(c, c)
                + shifts.T @ shifts
                + _injected(noise, yy)
            )
            mean = keep @ mean - eta * c
        yield Moments(mean, yy), Moments(am, aa)


def after(path: Iterator, looks: int = 1):
    """What a path yields at its `looks`-th look."""
    return next(islice(path, looks - 1, None))


def _stack(family, draw, eta):
    """The matrices eta sqrt(1/p_k - 1) N_k of the levels that are drawn."""
    scale = eta * np.sqrt(1 / draw.p - 1)
    return scale[:, None, None] * family.slopes[draw.base + 1 : draw.finest + 1]


def _injected(noise: Sequence[np.ndarray], second: np.ndarray) -> np.ndarray:
    """sum_k N_k X N_k'."""
    if not len(noise):
        return np.zeros_like(second)
    return np.einsum("kij,klj->il", noise @ second, noise, optimize=True)


def affine(hessian, minimizer, start, matrices, offsets, price) -> Affine:
    """Levels matrices[k] y + offsets[k] of a least-squares gradient, in the Hessian's eigenbasis and in units of its largest eigenvalue."""
    values, vectors = np.linalg.eigh(hessian)
    beta = values[-1]
    turned = vectors.T @ np.asarray(matrices) @ vectors / beta
    shifted = (np.asarray(matrices) @ minimizer + offsets) @ vectors / beta
    return Affine(
        values / beta, vectors.T @ (start - minimizer), turned, shifted, np.asarray(price, float)
    )
