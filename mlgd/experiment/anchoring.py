"""The anchored telescope on smooth errors, by exact second moments of a few instances, its epochs chosen in hindsight.

With z = y - r since the epoch's reference r, x = 1 - eta (lambda + slope of the finest level), and w the variance that the draws
of the increments' slopes add per unit of z^2:  z <- x z - eta g + noise z,  where g is the finest gradient at r. So the second
moments of a coordinate are sums of two geometric series, for any number of steps at once.
"""

import math
from dataclasses import dataclass

import numpy as np

from .fields import LEVELS, Family, Instances
from .linear_errors import Sampling

ETAS, BASES, NOISES, LENGTHS = (1.0, 1.8), (0, 1, 2, 3), 9, 20


@dataclass(frozen=True, eq=False)
class Affine:
    """A few instances: A_k(y) = slope[k] y + offset[k], coordinate by coordinate; arrays (levels, instances, d)."""

    family: Family
    start: np.ndarray
    slope: np.ndarray
    offset: np.ndarray

    @classmethod
    def of(cls, f: Family, seeds) -> "Affine":
        i = Instances(f, seeds)
        half = f.accuracy[:, None, None] / 2
        turn = half * i.slopes / f.d0
        return cls(f, i.start, f.spectrum + turn, half * i.lasting - turn * i.start)

    def loss(self, second: np.ndarray) -> np.ndarray:
        """The mean loss over the instances, from second moments."""
        return (second @ self.family.spectrum).mean(axis=-1) / 2

    def floor(self, k: int) -> float:
        """The loss at the zero of a level; none where a coordinate of it bends the wrong way."""
        if self.slope[k].min() <= 0:
            return math.inf
        return float(self.loss((self.offset[k] / self.slope[k]) ** 2))


@dataclass(frozen=True)
class Epoch:
    finest: int
    base: int
    eta: float
    steps: int
    p: tuple[float, ...]
    price: float


def moments(i: Affine, mean, second, finest: int, base: int, eta: float, p: np.ndarray, steps: np.ndarray):
    """Mean and second moment of every coordinate after an epoch: arrays (lengths, instances, d)."""
    lam, o, n = i.slope[finest], i.offset[finest], np.asarray(steps, float)[:, None, None]
    x = 1 - eta * lam
    change = np.diff(i.slope[base : finest + 1], axis=0)
    q = x**2 + eta**2 * ((1 / p - 1)[:, None, None] * change**2).sum(axis=0)
    g, gg = lam * mean + o, lam**2 * second + 2 * lam * o * mean + o**2
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        xn, qn = np.abs(x) ** n * np.where((x < 0) & (n % 2 == 1), -1.0, 1.0), q**n
        fell = (1 - xn) / lam
        z, zg = -fell * g, -fell * gg
        push = 2 * eta * x / lam
        zz = gg * ((push + eta**2) * (1 - qn) / (1 - q) - push * (qn - xn) / (q - x))
        rz = (zg - o * z) / lam
        return mean + z, second + 2 * rz + zz


def epoch(i: Affine, mean, second, finest: int, goal: float, gamma: float):
    """The cheapest epoch with this reference that takes the mean loss to `goal`, and the moments at its end."""
    f, cost = i.family, 2.0 ** (gamma * np.arange(LEVELS))
    steps = np.unique(np.round(np.geomspace(2, 12 * f.kappa, LENGTHS)))
    best, end = None, None
    squares = np.concatenate([[0.0], ((f.accuracy[1:] + f.accuracy[:-1]) / (2 * f.d0)) ** 2])
    for base in (b for b in BASES if b < finest):
        for eta in ETAS:
            for noise in np.geomspace(1e-7, 1.0, NOISES) / (f.kappa * eta**2):
                draw = Sampling.cheapest(base, finest, squares, cost, noise)
                m, s = moments(i, mean, second, finest, base, eta, draw.p, steps)
                good = np.flatnonzero((i.loss(s) <= goal) & (s.min(axis=(1, 2)) >= 0))
                if good.size:
                    j = good[0]
                    price = sum(draw.epoch(cost, int(steps[j])).values())
                    if best is None or price < best.price:
                        best, end = Epoch(finest, base, eta, int(steps[j]), tuple(draw.p), price), (m[j], s[j])
    return best, end


def cheapest(i: Affine, eps: float, gamma: float) -> tuple[float, tuple[Epoch, ...]]:
    """References graded over the levels, each epoch ending near the floor of its level."""
    floors = [i.floor(k) for k in range(LEVELS)]
    unit = next(k for k in range(LEVELS) if floors[k] < eps)
    best = (math.inf, ())
    for finest, gap, far in ((k, gap, far) for k in (unit, unit + 1) for gap in (2, 20) for far in (1.5, 6.0)):
        if finest >= LEVELS or (gap == 20 and far > 2):
            continue
        mean, second, paid, done = i.start, i.start**2, 0.0, []
        for k in list(range(finest, 0, -gap))[::-1]:
            goal = 0.97 * eps if k == finest else max(0.97 * eps, far * floors[k])
            if floors[k] >= goal or i.loss(second) <= goal:
                continue
            found, end = epoch(i, mean, second, k, goal, gamma)
            if found is None:
                break
            (mean, second), paid = end, paid + found.price
            done.append(found)
            if paid >= best[0]:
                break
        if i.loss(second) <= eps and paid < best[0]:
            best = (paid, tuple(done))
    return best


def reported(i: Affine, epochs: tuple[Epoch, ...]) -> float:
    """The exact mean loss of these epochs on other instances."""
    mean, second = i.start, i.start**2
    for e in epochs:
        m, s = moments(i, mean, second, e.finest, e.base, e.eta, np.array(e.p), np.array([e.steps]))
        mean, second = m[0], s[0]
    return float(i.loss(second))


def run(i: Affine, epochs: tuple[Epoch, ...], gamma: float, runs: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """Losses and prices of runs, spread evenly over the instances."""
    rng, cost = np.random.default_rng(rng), 2.0 ** (gamma * np.arange(LEVELS))
    y, paid = i.start[np.arange(runs) % len(i.start)], np.zeros(runs)
    for e in epochs:
        r, p = y, np.array(e.p)
        row = np.arange(runs) % len(i.start)
        fine = i.slope[e.finest][row] * r + i.offset[e.finest][row]
        change = np.diff(i.slope[e.base : e.finest + 1], axis=0)[:, row]
        slope = i.slope[e.base][row]
        looked = np.zeros((runs, p.size), bool)  # levels past the base that were bought at the reference
        for t in range(e.steps):
            z = y - r
            drawn = rng.random((runs, p.size)) < p
            y = y - e.eta * (fine + slope * z + np.einsum("rk,krd->rd", drawn / p, change) * z)
            if t:  # the first call is at the reference itself
                used = drawn.copy()
                used[:, :-1] |= drawn[:, 1:]
                paid += used @ cost[e.base + 1 : e.finest + 1]
                looked |= used
        paid += cost[e.finest] + e.steps * cost[e.base] + looked[:, :-1] @ cost[e.base + 1 : e.finest]
    return i.family.loss(y), paid
