"""Anchored descent as numbers: the epochs of *Pay for the fine levels once*, price, exact runs.

Levels k >= k0 are off by at most 2^-k at price (c 2^k)^gamma, and their increments change by at
most l 2^-k per unit of distance.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product

import numpy as np

from mlgd.examples import HeatSource
from mlgd.hierarchy import Hierarchy

HALF = Fraction(1, 2)  # an exponent that numbers and symbols both take


def earlier(q, R, mu, kappa, log: Callable = math.log) -> tuple:
    """Accuracy, noise v = s^2/(beta mu) and steps of an epoch that takes the distance R to q R."""
    return (
        (q**2 * mu**2 * R**2 / 2) ** HALF,
        q**2 / 16,
        2 * kappa * log(2 / q) / (1 - q**2 / 8),
    )


def last(x, rho, eps, mu, kappa, log: Callable = math.log) -> tuple:
    """The same for the last one, from the distance rho sqrt(eps/mu) to the mean loss eps."""
    return (1 - x) * (2 * mu * eps) ** HALF, x / (8 * rho**2), kappa * log(1 + rho**2) / x


@dataclass(frozen=True)
class Ladder:
    """What the theorem knows: constants of the loss, the prices and the levels; k0 is a level."""

    beta: float
    mu: float
    d0: float
    gamma: float
    c: float
    l: float  # noqa: E741 - the theorem's name
    k0: float

    def price(self, k: float) -> float:
        return (self.c * 2.0**k) ** self.gamma

    def finest(self, delta: float) -> float:
        """The coarsest level of accuracy delta."""
        return self.k0 + max(0, math.ceil(-math.log2(delta) - self.k0 - 1e-12))

    def sum(self, base: float, finest: float) -> float:
        """S: of 2^((gamma/2 - 1) k) over the levels past the base."""
        return sum(
            2.0 ** ((self.gamma / 2 - 1) * (base + i))
            for i in range(1, 1 + round(finest - base))
        )

    def call(self, base: float, finest: float, v: float) -> float:
        """The price of one step, everything at the reference but its finest level included."""
        pairs = 2 * (1 + 2.0**-self.gamma) * self.c**self.gamma
        return self.price(base) + pairs * (self.l * self.sum(base, finest)) ** 2 / (
            v * self.beta * self.mu
        )

    def epochs(self, eps: float, q: float, x: float, rho0: float) -> Iterator[tuple]:
        """(R, finest level, base level, v, steps) of each epoch, the base as cheap as can be."""
        unit, kappa = math.sqrt(eps / self.mu), self.beta / self.mu
        far = max(self.d0, rho0 * unit)
        n = math.floor(math.log(far / (rho0 * unit)) / math.log(1 / q) + 1e-12)
        for j in range(n + 1):
            R = far * q**j
            parts = (
                earlier(q, R, self.mu, kappa)
                if j < n
                else last(x, R / unit, eps, self.mu, kappa)
            )
            delta, v, steps = parts
            finest = self.finest(delta)
            bases = [finest - i for i in range(round(finest - self.k0) + 1)]
            base = min(bases, key=lambda k: self.call(k, finest, v))
            yield R, finest, base, v, math.ceil(steps - 1e-9)

    def bound(self, eps: float, q: float, x: float, rho0: float) -> float:
        """The theorem's price."""
        run = self.epochs(eps, q, x, rho0)
        return sum(self.price(K) + m * self.call(base, K, v) for _, K, base, v, m in run)

    def cheapest(self, eps: float) -> float:
        """The least of a few choices of the theorem's free numbers."""
        numbers = product((0.5, 0.35, 0.15), (0.5, 0.3, 0.1, 0.03), (2.0, 4.0, 12.0))
        return min(self.bound(eps, *free) for free in numbers)


def heat_ladder(heat: HeatSource) -> Ladder:
    """What the theorem knows of the heat source: levels are affine, so l is a norm of matrices."""
    h, problem, basis = heat.hierarchy, heat.problem, np.eye(heat.start.size)
    # error <= 2^-(k+shift)
    shift = min(-math.log2(error) - k for k, error in heat.errors.items())
    maps = [
        np.array([h.evaluate(k, u) - h.evaluate(k, 0 * u) for u in basis])
        for k in h.levels
    ]
    change = max(
        np.linalg.norm(fine - coarse, 2) * 2.0 ** (k + shift)
        for k, (coarse, fine) in zip(h.levels[1:], pairwise(maps), strict=True)
    )
    constants = problem.beta, problem.mu, problem.d0, problem.gamma, problem.c
    return Ladder(*constants, l=change, k0=h.levels[0] + shift)


# --- exact runs on affine levels ---


@dataclass(frozen=True, eq=False)
class Affine:
    """Levels A_k(e) = M_k e + b_k in e = y - y*, in blocks of coordinates; H: Hessian."""

    M: np.ndarray  # (levels, blocks, d, d)
    b: np.ndarray  # (levels, blocks, d)
    H: np.ndarray  # (blocks, d, d)
    e0: np.ndarray  # (blocks, d)
    price: np.ndarray

    @classmethod
    def of(
        cls, h: Hierarchy, start: np.ndarray, answer: np.ndarray, H: np.ndarray
    ) -> "Affine":
        blocks, d, _ = H.shape
        b = np.array([h.evaluate(k, answer) for k in h.levels])
        # a unit vector in every block at once
        probes = np.kron(np.ones(blocks), np.eye(d))
        M = (
            np.array([[h.evaluate(k, answer + u) for u in probes] for k in h.levels])
            - b[:, None]
        )
        M = M.reshape(-1, d, blocks, d).transpose(0, 2, 3, 1)
        price = np.array([h.cost(k) for k in h.levels])
        return cls(
            M, b.reshape(-1, blocks, d), H, (start - answer).reshape(blocks, d), price
        )

    @cached_property
    def floors(self) -> np.ndarray:
        """The loss at the zero of each level."""
        zeros = np.linalg.solve(self.M, -self.b[..., None])[..., 0]
        return np.einsum("kbi,bij,kbj->k", zeros, self.H, zeros) / 2

    def run(self, eta: float, steps: int, noise: float, anchored: bool) -> np.ndarray:
        """Mean price and exact mean loss after every step: X = E xx', x = (e, r, 1).

        The plain telescope has no reference: the middle of its x is an average over a quarter of
        an epoch, and the better of the two is its output.
        """
        _, blocks, d = self.b.shape
        x = np.concatenate([self.e0, self.e0, np.ones((blocks, 1))], axis=1)
        X, paid, path = x[:, :, None] * x[:, None], 0.0, []
        outputs = [slice(d)] if anchored else [slice(d), slice(d, -1)]
        for K in range(len(self.price)):
            X[:, d:-1], X[:, :, d:-1] = X[:, :d], X[:, :, :d]
            T, N, p, pair = self._step(K, X, eta, steps, noise, anchored)
            # by a step: a level between base and finest
            missed = (1 - p[:-1]) * (1 - p[1:])
            for t in range(1, steps + 1):
                fresh = (N @ X @ N.swapaxes(-1, -2)).sum(axis=0)
                X = T @ X @ T.swapaxes(-1, -2)
                X[:, :d, :d] += fresh
                now = paid + t * (self.price[0] + p @ pair)
                if anchored:
                    now += (
                        self.price[0] + self.price[K] + (1 - missed**t) @ self.price[1:K]
                    )
                losses = [np.einsum("bij,bji->", self.H, X[:, i, i]) / 2 for i in outputs]
                path.append((now, min(losses)))
            paid = now
        return np.array(path)

    def _step(
        self, K: int, X: np.ndarray, eta: float, steps: int, noise: float, anchored: bool
    ):
        """x -> T x and the noise N x; square-root rule, for a variance in units of the floor."""
        d = self.b.shape[-1]
        T = np.tile(np.eye(2 * d + 1), (len(X), 1, 1))
        T[:, :d, :d] -= eta * self.M[K]
        T[:, :d, -1] -= eta * self.b[K]
        N = np.zeros((K, len(X), d, 2 * d + 1))
        N[..., :d] = np.diff(self.M[: K + 1], axis=0)
        if anchored:
            N[..., d:-1] = -N[..., :d]
            away = np.einsum("bii->", X[:, :d, :d])
            size = np.linalg.norm(N[..., :d], 2, axis=(-2, -1)).max(axis=1) ** 2 * away
        else:
            N[..., -1] = np.diff(self.b[: K + 1], axis=0)
            size = (N[..., -1] ** 2).sum(axis=(1, 2))
            T[:, d:-1, :d] = 4 / steps * np.eye(d)
            T[:, d:-1, d:-1] *= 1 - 4 / steps
        pair = self.price[1 : K + 1] + self.price[:K]
        p = (
            np.sqrt(size / pair)
            * np.sqrt(size * pair).sum()
            * eta
            / (noise * self.floors[K])
        )
        p = np.minimum(1, p)
        return T, N * (eta * np.sqrt(1 / p - 1))[:, None, None, None], p, pair
