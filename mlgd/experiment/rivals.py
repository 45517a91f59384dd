"""Families of quadratics with levels, and what rivals tuned in hindsight pay on them.

In an eigenbasis with the minimizer at zero: eigenvalues log-spaced from 1/kappa to 1, starting loss one, level
k = 0, 1, ... off by at most a_k = a 2^-k at price 2^(gamma k). The error of level k at y is

    vectors  a_k u_k                          random directions that do not depend on y (a = 0.1)
    turned   a_k (u_k + W_k (y - y0)/d0)/√2   linear in y, with a rotation W_k of its own (a = 0.1)
    smooth   a_k (u_k + s_k (y - y0)/d0)/2    linear in y, each coordinate with a slope of its own sign
    fresh    a_k (u_k + v_k(y))/2             v_k(y) drawn anew at every point: no two points tell the same
    rounded  each coordinate, in a random basis, to the nearest multiple of 2 a_k/sqrt(d)

In the last three a is near 0.1 and such that some level's zero has a loss of exactly half of 1/100. The starting loss is shared
equally among the eigenvalues, or the start is isotropic: the same in every coordinate, as where nothing is known.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from mlgd.hierarchy import Hierarchy

SIZE = 0.1
EPS = (1e-2, 1e-2 / 256)
SHARE = {"fresh": 1 / 4, "smooth": 1 / 2, "rounded": 1 / 3}  # of a_k^2: what lasts near zero
DIMENSION = {"vectors": 300, "turned": 60}
LEVELS = {"vectors": 16, "turned": 18}


@dataclass(frozen=True, eq=False)
class Member:
    """One member of a family: its levels, its start, its loss."""

    kind: str
    kappa: float
    gamma: float
    seed: int = 0
    isotropic: bool = False

    @cached_property
    def d(self) -> int:
        return DIMENSION.get(self.kind, 200)

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

    @property
    def levels(self) -> range:
        return range(LEVELS.get(self.kind, 17))

    def cost(self, k: int) -> float:
        return 2.0 ** (self.gamma * k)

    def loss(self, y: np.ndarray) -> float:
        return float(self.spectrum @ y**2) / 2

    @cached_property
    def accuracy(self) -> np.ndarray:
        """a_k."""
        finer = 2.0 ** -np.arange(len(self.levels))
        if self.kind in DIMENSION:
            return SIZE * finer
        a = 1e-3 * self.d0 / self.kappa
        for _ in range(60):  # the loss at a zero grows a little faster than the square
            a *= math.sqrt(EPS[0] / 2 / self.floor(a))
        return a * 2.0 ** max(0, round(math.log2(SIZE / a))) * finer

    def floor(self, a: float) -> float:
        """The mean loss at the zero of a level of this accuracy (smooth, fresh, rounded)."""
        turn, weight = 0.0, 1.0
        if self.kind == "smooth":
            turn, weight = a / (2 * self.d0), (1 + self.d * self.square / self.d0**2) / 2
        bent = np.array([self.spectrum + turn, self.spectrum - turn])
        if bent.min() <= 0:
            return math.inf
        return a**2 * SHARE[self.kind] / 2 * float(np.mean(self.spectrum * weight / bent**2))

    @cached_property
    def drawn(self) -> dict[str, np.ndarray]:
        """What is random in a member."""
        n, d = len(self.levels), self.d
        if self.kind == "vectors":
            rng = np.random.default_rng(self.seed)
            start, u = rng.choice([-1.0, 1.0], d), rng.normal(size=(n, d))
            return {"start": start, "u": u / np.linalg.norm(u, axis=1, keepdims=True)}
        if self.kind == "turned":
            rng = np.random.default_rng([self.seed, 13])
            start, u = rng.choice([-1.0, 1.0], d), rng.standard_normal((n, d))
            u /= np.linalg.norm(u, axis=1, keepdims=True)
            return {"start": start, "u": u, "w": np.array([_rotation(rng, d) for _ in range(n)])}
        rng = np.random.default_rng([20261116, self.seed])
        start = rng.choice([-1.0, 1.0], (1, d))[0]
        u = rng.choice([-1.0, 1.0], (n, 1, d))[:, 0] / math.sqrt(d)
        slopes = rng.choice([-1.0, 1.0], (n, 1, d))[:, 0]
        basis = np.linalg.qr(rng.standard_normal((d, d)))[0] if self.kind == "rounded" else None
        return {"start": start, "u": u, "slopes": slopes, "basis": basis}

    @cached_property
    def start(self) -> np.ndarray:
        return np.sqrt(self.square) * self.drawn["start"]

    def level(self, k: int, y: np.ndarray) -> np.ndarray:
        """A_k(y): a function of y, fresh errors too."""
        exact, a, drawn = self.spectrum * y, self.accuracy[k], self.drawn
        away = (y - self.start) / self.d0
        if self.kind == "vectors":
            return exact + a * drawn["u"][k]
        if self.kind == "turned":
            return exact + a / math.sqrt(2) * (drawn["u"][k] + drawn["w"][k] @ away)
        if self.kind == "smooth":
            return exact + a / 2 * (drawn["u"][k] + drawn["slopes"][k] * away)
        if self.kind == "fresh":
            point = hashlib.blake2b(y.tobytes() + bytes([k]), digest_size=8).digest()
            rng = np.random.default_rng(int.from_bytes(point))
            v = 1 - 2.0 * rng.integers(0, 2, self.d, dtype=np.int8)
            return exact + a / 2 * (drawn["u"][k] + v / math.sqrt(self.d))
        grid = 2 * a / math.sqrt(self.d)
        return grid * np.round(exact @ drawn["basis"] / grid) @ drawn["basis"].T

    @cached_property
    def hierarchy(self) -> Hierarchy:
        return Hierarchy(self.level, self.cost, self.levels, lambda k: self.accuracy[k])

    def zero(self, k: int) -> np.ndarray:
        """Where a level vanishes (vectors, turned)."""
        a, drawn = self.accuracy[k], self.drawn
        if self.kind == "vectors":
            return -a * drawn["u"][k] / self.spectrum
        turn = a / math.sqrt(2) * drawn["w"][k] / self.d0
        offset = a / math.sqrt(2) * drawn["u"][k] - turn @ self.start
        return np.linalg.solve(np.diag(self.spectrum) + turn, -offset)


def _rotation(rng: np.random.Generator, d: int) -> np.ndarray:
    q, r = np.linalg.qr(rng.standard_normal((d, d)))
    return q * np.sign(np.diag(r))


# --- rivals in hindsight ---


def conjugate(f: Callable[[np.ndarray], np.ndarray], y: np.ndarray) -> Iterator[np.ndarray]:
    """Conjugate gradients on a level whose gradient f is affine, one product a step."""
    r = -f(y)
    p, size = r, float(r @ r)
    while True:
        image = f(y + p) - f(y)
        step = size / float(p @ image)
        y, r = y + step * p, r - step * image
        new = float(r @ r)
        p, size = r + new / size * p, new
        yield y


def steps_to(iterates: Iterator[np.ndarray], m: Member, y: np.ndarray, goal: float, most=20_000):
    """The first iterate whose loss is at most the goal, and how many it took (infinity: never)."""
    for n in range(most):
        if m.loss(y) <= goal:
            return y, n
        y = next(iterates)
    return y, math.inf


def corrected(m: Member, eps: float) -> float:
    """One gradient of the level whose zero is good enough, the rest on level 0: the best level in hindsight (vectors)."""
    best = math.inf
    for k in m.levels:
        if m.loss(m.zero(k)) < eps and m.cost(k) < best:
            solver = conjugate(lambda y, k=k: m.level(k, y), m.start)
            best = min(best, m.cost(k) + steps_to(solver, m, m.start, eps)[1] * m.cost(0))
    return best


def coarse_to_fine(m: Member, eps: float) -> float:
    """Conjugate gradients level after level, first, last and moment of switching chosen in hindsight (vectors)."""
    floors, best = [m.loss(m.zero(k)) for k in m.levels], math.inf
    for finest in [k for k, floor in enumerate(floors) if floor < eps][:3]:
        for first in range(finest + 1):
            for patience in (1.1, 1.5, 2.5, 5.0) if first < finest else (1.0,):
                y, price = m.start, 0.0
                for k in range(first, finest + 1):
                    goal = eps if k == finest else patience * floors[k]
                    y, n = steps_to(conjugate(lambda z, k=k: m.level(k, z), y), m, y, goal)
                    price += n * m.cost(k)
                    if price >= best:
                        break
                best = min(best, price)
    return best


def hindsight(m: Member, eps: float) -> float:
    """The price of the cheapest rival: computed for one member, or frozen for its family (turned: one gradient that will do)."""
    if m.kind == "vectors":
        return min(corrected(m, eps), coarse_to_fine(m, eps))
    if m.kind == "turned":
        return next(m.cost(k) for k in m.levels if m.loss(m.zero(k)) <= eps)
    frozen = json.loads((Path(__file__).parents[2] / "book/data/rivals.json").read_text("utf-8"))
    where = [m.kind + " isotropic" * m.isotropic, m.gamma, m.kappa, eps]
    return next(price for *cell, price in frozen["cells"] if cell == where)
