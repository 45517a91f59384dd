"""The anchored telescope on smooth errors, by exact second moments of a few instances, its epochs chosen in hindsight.

An epoch pays for the finest level at its reference r. Past the base every increment up to `top` is drawn, as its change since
r; increments beyond are left as they were at r. With z = y - r, x = 1 - eta (slope of the top level), and w the variance that the
draws add per unit of z^2:  z <- x z - eta g + noise z,  where g is the finest gradient at r. So the second moments of a
coordinate are sums of two geometric series, for any number of steps at once.
"""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from .affine import Affine
from .fields import LEVELS
from .linear_errors import Sampling
from .responses import BELOW

ETAS, BASES, NOISES, LENGTHS = (1.0, 1.8), (0, 1, 2, 3), 9, 20
LEFT = (0, 1, 2, 3, 4)  # increments below the reference's level that are not drawn
DRAWS = 4  # in the mean over an epoch, of every level that is drawn: a rarer one would be seen in few runs only


@dataclass(frozen=True)
class Epoch:
    finest: int
    base: int
    eta: float
    steps: int
    p: tuple[float, ...]  # of the levels past the base, up to the top
    price: float = 0.0

    @property
    def top(self) -> int:
        return self.base + len(self.p)


def moments(
    i: Affine, mean, second, finest: int, base: int, eta: float, p: np.ndarray, steps: np.ndarray
):
    """Mean and second moment of every coordinate after an epoch, for settings p (settings, levels) and steps: (settings, instances, d)."""
    top, n = base + p.shape[1], np.asarray(steps, float)[:, None, None]
    lam, fine, o = i.slope[top], i.slope[finest], i.offset[finest]
    x = 1 - eta * lam
    change = np.diff(i.slope[base : top + 1], axis=0)
    q = x**2 + eta**2 * np.einsum("sk,kid->sid", 1 / p - 1, change**2)
    g, rg, gg = (
        fine * mean + o,
        fine * second + o * mean,
        fine**2 * second + 2 * fine * o * mean + o**2,
    )
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        xn, qn = np.abs(x) ** n * np.where((x < 0) & (n % 2 == 1), -1.0, 1.0), q**n
        fell = (1 - xn) / lam
        push = 2 * eta * x / lam
        zz = gg * ((push + eta**2) * (1 - qn) / (1 - q) - push * (qn - xn) / (q - x))
        return mean - fell * g, second - 2 * fell * rg + zz


def price(cost: np.ndarray, finest: int, base: int, p: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """The mean price of epochs: the reference, the base in every step, what is drawn, and drawn levels once at the reference."""
    after = np.concatenate([p[:, 1:], np.zeros((len(p), 1))], axis=1)
    looked = p + after - p * after
    drawn = cost[base + 1 : base + 1 + p.shape[1]]
    ever = 1 - (1 - looked) ** (steps - 1)[:, None]
    known = np.arange(base + 1, base + 1 + p.shape[1]) == finest
    return (
        cost[finest] + steps * cost[base] + (steps - 1) * (looked @ drawn) + ever @ (drawn * ~known)
    )


def epoch(i: Affine, mean, second, finest: int, goal: float, gamma: float):
    """The cheapest epoch with this reference that takes the mean loss to `goal`, and the moments at its end."""
    f, cost = i.family, 2.0 ** (gamma * np.arange(LEVELS))
    lengths = np.unique(np.round(np.geomspace(2, 12 * f.kappa, LENGTHS)))
    best, end = None, None
    squares = np.concatenate([[0.0], ((f.accuracy[1:] + f.accuracy[:-1]) / (2 * f.d0)) ** 2])
    for base, eta, left in product(BASES, ETAS, LEFT):
        top = finest - left
        if top <= base:
            continue
        noises = np.geomspace(1e-7, 1.0, NOISES) / (f.kappa * eta**2)
        chosen = np.array(
            [Sampling.cheapest(base, top, squares, cost, noise).p for noise in noises]
        )
        steps = np.tile(lengths, NOISES)
        p = np.minimum(
            1.0, np.maximum(np.repeat(chosen, lengths.size, axis=0), DRAWS / (steps - 1)[:, None])
        )
        prices = price(cost, finest, base, p, steps)
        can = np.flatnonzero(prices < (best.price if best else math.inf))
        m, s = moments(i, mean, second, finest, base, eta, p[can], steps[can])
        good = np.flatnonzero((i.loss(s) <= goal) & (s.min(axis=(1, 2)) >= 0))
        if good.size:
            j = good[prices[can[good]].argmin()]
            k = can[j]
            best = Epoch(
                finest, base, eta, int(steps[k]), tuple(map(float, p[k])), float(prices[k])
            )
            end = m[j], s[j]
    return best, end


def cheapest(i: Affine, eps: float, gamma: float) -> tuple[float, tuple[Epoch, ...]]:
    """References graded over the levels, each epoch ending near the floor of its level."""
    floors = [i.floor(k) for k in range(LEVELS)]
    unit = next(k for k in range(LEVELS) if floors[k] < BELOW * eps)
    best = (math.inf, ())
    for finest, gap, far in product((unit, unit + 1), (1, 2, 20), (1.5, 6.0)):
        if finest >= LEVELS or (gap == 20 and far > 2):
            continue
        mean, second, paid, done = i.start, i.start**2, 0.0, []
        for k in list(range(finest, 0, -gap))[::-1]:
            goal = BELOW * eps if k == finest else max(BELOW * eps, far * floors[k])
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
    """The exact mean loss of these epochs, on other instances."""
    mean, second = i.start, i.start**2
    for e in epochs:
        m, s = moments(
            i, mean, second, e.finest, e.base, e.eta, np.array([e.p]), np.array([e.steps])
        )
        mean, second = m[0], s[0]
    return float(i.loss(second))


def run(
    i: Affine, epochs: tuple[Epoch, ...], gamma: float, runs: int, rng
) -> tuple[np.ndarray, np.ndarray]:
    """Losses and prices of runs, spread evenly over the instances."""
    rng, cost, row = (
        np.random.default_rng(rng),
        2.0 ** (gamma * np.arange(LEVELS)),
        np.arange(runs) % len(i.start),
    )
    y, paid = i.start[row], np.zeros(runs)
    for e in epochs:
        r, p = y, np.array(e.p)
        fine = i.slope[e.finest][row] * r + i.offset[e.finest][row]
        change = np.diff(i.slope[e.base : e.top + 1], axis=0)[:, row]
        slope, drawn_price = i.slope[e.base][row], cost[e.base + 1 : e.top + 1]
        looked = np.zeros(
            (runs, p.size), bool
        )  # levels past the base that were bought at the reference
        for t in range(e.steps):
            z = y - r
            drawn = rng.random((runs, p.size)) < p
            y = y - e.eta * (fine + slope * z + np.einsum("rk,krd->rd", drawn / p, change) * z)
            if t:  # the first call is at the reference itself
                used = drawn.copy()
                used[:, :-1] |= drawn[:, 1:]
                paid += used @ drawn_price
                looked |= used
        known = np.arange(e.base + 1, e.top + 1) == e.finest
        paid += cost[e.finest] + e.steps * cost[e.base] + looked @ (drawn_price * ~known)
    return i.family.loss(y), paid
