"""Families of quadratics with levels, and the least price of solving them in hindsight.

In an eigenbasis with the minimizer at zero: eigenvalues log-spaced from 1/kappa to 1, starting loss
one, level k = 0, 1, ... off by at most a_k = a 2^-k at price 2^(gamma k). Its error at y is

    vectors  a_k u_k                          random directions that do not depend on y (a = 0.1)
    turned   a_k (u_k + W_k (y - y0)/d0)/√2   linear in y, with a rotation W_k of its own (a = 0.1)
    smooth   a_k (u_k + s_k (y - y0)/d0)/2    linear in y, a slope of its own sign per coordinate
    fresh    a_k (u_k + v_k(y))/2             v_k(y) drawn anew at every point

In the last two a is near 0.1 and such that some level's zero has a loss of exactly half of 1/100.
The starting loss is shared equally among the eigenvalues, or the start is isotropic: the same in
every coordinate.
"""

import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from mlgd.hierarchy import Hierarchy

EPS = (1e-2, 1e-2 / 256)
FROZEN = Path(__file__).parents[3] / "book" / "data" / "hindsight.json"
LEVELS = {"vectors": 16, "turned": 18, "smooth": 17, "fresh": 17}
DIMENSION = {"vectors": 300, "turned": 60, "smooth": 200, "fresh": 200}


@dataclass(frozen=True, eq=False)
class Member:
    """One member of a family: its levels, its start, its loss."""

    kind: str
    kappa: float
    gamma: float
    seed: int = 0
    isotropic: bool = False

    @property
    def d(self) -> int:
        return DIMENSION[self.kind]

    @property
    def levels(self) -> range:
        return range(LEVELS[self.kind])

    @cached_property
    def spectrum(self) -> np.ndarray:
        return np.geomspace(1 / self.kappa, 1.0, self.d)

    @cached_property
    def square(self) -> np.ndarray:
        """The squares of the start's coordinates."""
        if self.isotropic:
            return np.full(self.d, 2 / self.spectrum.sum())
        return 2 / (self.d * self.spectrum)

    @property
    def d0(self) -> float:
        return math.sqrt(self.square.sum())

    def cost(self, k: int) -> float:
        return 2.0 ** (self.gamma * k)

    def loss(self, y: np.ndarray) -> float:
        return float(self.spectrum @ y**2) / 2

    @cached_property
    def accuracy(self) -> np.ndarray:
        """a_k."""
        a = 0.1
        if self.kind in ("smooth", "fresh"):
            a = self.halfway()
            a *= 2.0 ** max(0, round(math.log2(0.1 / a)))
        return a * 2.0 ** -np.arange(len(self.levels))

    def halfway(self) -> float:
        """The accuracy of a level whose zero has a mean loss of half of EPS[0], by bisection."""
        low = 0.0
        high = 2 * self.d0 / self.kappa if self.kind == "smooth" else 1.0
        while (a := (low + high) / 2) not in (low, high):
            if self.floor(a) < EPS[0] / 2:
                low = a
            else:
                high = a
        return a

    def floor(self, a: float) -> float:
        """The mean loss at the zero of a level of this accuracy (smooth, fresh)."""
        turn, weight = 0.0, 1 / 4
        if self.kind == "smooth":
            turn = a / (2 * self.d0)
            weight = (1 + self.d * self.square / self.d0**2) / 4
        bent = np.array([self.spectrum + turn, self.spectrum - turn])
        return a**2 / 2 * float(np.mean(self.spectrum * weight / bent**2))

    @cached_property
    def drawn(self) -> dict[str, np.ndarray]:
        """What is random in a member."""
        n, d = len(self.levels), self.d
        signs = [-1.0, 1.0]
        if self.kind in ("smooth", "fresh"):
            rng = np.random.default_rng([20261116, self.seed])
            start = rng.choice(signs, (1, d))[0]
            u = rng.choice(signs, (n, d)) / math.sqrt(d)
            return {"start": start, "u": u, "slopes": rng.choice(signs, (n, d))}
        stream = self.seed if self.kind == "vectors" else [self.seed, 13]
        rng = np.random.default_rng(stream)
        start = rng.choice(signs, d)
        u = rng.normal(size=(n, d))
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        w = np.zeros((n, 1, 1))
        if self.kind == "turned":
            q, r = np.linalg.qr(rng.standard_normal((n, d, d)))
            w = q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None]
        return {"start": start, "u": u, "w": w}

    @cached_property
    def start(self) -> np.ndarray:
        return np.sqrt(self.square) * self.drawn["start"]

    def level(self, k: int, y: np.ndarray) -> np.ndarray:
        """A_k(y): a function of y, fresh errors too."""
        a, u = self.accuracy[k], self.drawn["u"][k]
        away = (y - self.start) / self.d0
        exact = self.spectrum * y
        if self.kind == "vectors":
            return exact + a * u
        if self.kind == "turned":
            return exact + a / math.sqrt(2) * (u + self.drawn["w"][k] @ away)
        if self.kind == "smooth":
            return exact + a / 2 * (u + self.drawn["slopes"][k] * away)
        point = hashlib.blake2b(y.tobytes() + bytes([k]), digest_size=8).digest()
        rng = np.random.default_rng(int.from_bytes(point))
        v = 1 - 2.0 * rng.integers(0, 2, self.d, dtype=np.int8)
        return exact + a / 2 * (u + v / math.sqrt(self.d))

    @cached_property
    def hierarchy(self) -> Hierarchy:
        return Hierarchy(self.level, self.cost, self.levels, lambda k: self.accuracy[k])

    def zero(self, k: int) -> np.ndarray:
        """Where a level vanishes (vectors, turned)."""
        there = self.level(k, 0 * self.start)
        turn = self.accuracy[k] / math.sqrt(2) * self.drawn["w"][k] / self.d0
        return np.linalg.solve(np.diag(self.spectrum) + turn, -there)


def hindsight(m: Member, eps: float) -> float:
    """The price of the cheapest rival: frozen for its family, or one gradient that will do."""
    if m.kind in ("vectors", "turned"):
        return next(m.cost(k) for k in m.levels if m.loss(m.zero(k)) <= eps)
    frozen = json.loads(FROZEN.read_text("utf-8"))
    where = [m.kind + " isotropic" * m.isotropic, m.gamma, m.kappa, eps]
    return next(price for *cell, price in frozen["cells"] if cell == where)
