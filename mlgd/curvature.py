"""Products with the Hessian of a coarse level, from differences of its gradient: at which level, how far apart, how many."""

import math
from dataclasses import dataclass

import numpy as np

from .hierarchy import Hierarchy

PRODUCTS = 60  # per measured vector, at least: enough for the price of a plan at condition numbers of 1e4
MOST = 500  # and at most, where they cost next to nothing
SHARE = 0.02  # of one finest gradient: what the products may cost in all before they are held to the least
DRIFT = 1e-4  # of the curvature: what finer levels may change it by, for a level to stand for them
INCREMENTS = 4  # levels whose increments are measured, at most
VECTORS = 2 + INCREMENTS  # with a random one and the gradient
CLEAN = 0.02  # how far products at two distances may disagree, for a level to be taken at once


class Meter:
    """Values at y0 and elsewhere, each paid once and counted; those that an audit has are free."""

    def __init__(self, h: Hierarchy, y0: np.ndarray, known):
        self.h, self.y0, self.count, self.cost = h, y0, {}, 0.0
        self.at_start = {}
        for i, point in enumerate(known.points if known is not None else ()):
            if point.shape == y0.shape and (point == y0).all():
                self.at_start = {k: v[i] for k, v in known.values.items() if k in h.levels}
        self.dearest = h.cost(max(self.at_start, default=h.levels[-1]))

    def value(self, k: int, y: np.ndarray) -> np.ndarray:
        self.count[k] = self.count.get(k, 0) + 1
        self.cost += self.h.cost(k)
        return self.h.value(k, y)

    def start(self, k: int) -> np.ndarray:
        if k not in self.at_start:
            self.at_start[k] = self.value(k, self.y0)
        return self.at_start[k]

    def increments(self, level: int) -> dict[int, np.ndarray]:
        """Increments at y0: those that are paid for, or else those whose levels cost no more than the products do."""
        levels, allowed = self.h.levels, INCREMENTS * PRODUCTS * self.h.cost(level)
        affordable, spent = [], 0.0
        for k in levels:
            spent += 0.0 if k in self.at_start else self.h.cost(k)
            if (k in self.at_start and self.h.before(k) in self.at_start) or spent <= allowed:
                affordable.append(k)
        pairs = [(self.h.before(k), k) for k in affordable[-INCREMENTS:] if self.h.before(k) is not None]
        found = {k: self.start(k) - self.start(j) for j, k in pairs if j in affordable}
        return {k: d for k, d in found.items() if np.linalg.norm(d) > 1e-13 * np.linalg.norm(self.start(k))}


@dataclass
class Differences:
    """v -> (A_k(y0 + t v) - A_k(y0))/t for unit v; `noise` is what two steps t disagree by, as a share."""

    meter: Meter
    level: int
    step: float
    noise: float = math.inf

    def __call__(self, v: np.ndarray) -> np.ndarray:
        meter, y0 = self.meter, self.meter.y0
        moved = meter.value(self.level, y0 + self.step * v.reshape(y0.shape))
        return (moved - meter.start(self.level)).ravel() / self.step


def choose(meter: Meter, rng, known, budget: float | None) -> Differences:
    """The level and the distance at which to difference, chosen so that half the distance gives the same product."""
    h, allowed = meter.h, SHARE * meter.dearest if budget is None else budget
    fits = [k for k in h.levels if VECTORS * PRODUCTS * h.cost(k) <= allowed] or h.levels[:1]
    first = fits[0] if budget is None else fits[-1]
    if known is not None and not np.isnan(known.change).any():
        clear = [k for k in fits if change_after(known, k) <= DRIFT * known.change[0]]
        first = clear[0] if clear else fits[-1]
    best = None
    for level in h.levels[h.levels.index(first) :]:
        if best is not None and (best.noise <= CLEAN or PRODUCTS * h.cost(level) > meter.dearest):
            break
        found = _distance(meter, level, rng)
        if best is None or found.noise < best.noise:
            best = found
    return best


def products(meter: Meter, level: int, budget: float | None) -> int:
    """How many products per vector: what the budget gives, within limits, one of them the work of orthogonalizing."""
    allowed = SHARE * meter.dearest if budget is None else budget
    most = min(MOST, int(math.sqrt(1e10 / meter.y0.size)))
    return max(PRODUCTS, min(most, int(min(allowed / (VECTORS * meter.h.cost(level)), MOST))))


def change_after(known, level: int) -> float:
    """How much the levels after this one change the curvature, by an audit's word."""
    return float(sum(c for k, c in zip(known.levels, known.change, strict=True) if k > level))


def _distance(meter: Meter, level: int, rng) -> Differences:
    """From the length of a gradient step downwards: the first distance where t and t/2 agree, or the best."""
    y0 = meter.y0
    g = meter.start(level).ravel()
    size = max(float(np.linalg.norm(v)) for v in meter.at_start.values())  # at a coarse minimizer the finer ones tell
    direction = g if g.any() else rng.standard_normal(y0.size)
    direction = direction / np.linalg.norm(direction) + rng.standard_normal(y0.size) / math.sqrt(y0.size)
    direction /= np.linalg.norm(direction)
    unit = max(float(np.linalg.norm(y0)), 1e-3)
    longest = 1e-3 * unit
    for _ in range(
        6
    ):  # to the length of a gradient step; a level in steps of its own shows no slope close by, or too much
        slope = float(np.linalg.norm(Differences(meter, level, longest)(direction)))
        longer = min(size / slope, 100 * longest) if slope else 10 * longest
        if longer <= 1.5 * longest:
            break
        longest = longer
    best = None
    for shrink in (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        t = shrink * longest
        one, half = (Differences(meter, level, s)(direction) for s in (t, t / 2))
        scale = float(max(np.linalg.norm(one), np.linalg.norm(half)))
        noise = float(np.linalg.norm(one - half)) / scale if scale else math.inf
        if best is None or noise < best.noise:
            best = Differences(meter, level, t, noise)
        if noise <= 1e-3:
            break
    return best
