"""The anchored telescope tuned in hindsight on one instance with linear errors: a search over epochs, judged by exact second moments."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import product

import numpy as np

from . import strides
from .linear_errors import Affine, Moments, Sampling

ETAS, FARS = (0.8, 1.2, 1.6, 1.9), (1.1, 1.3, 1.6, 2.0, 3.0, 6.0)
CLIMBERS = 2  # settings of the grid, for each of two steps, from which the search goes on


@dataclass(frozen=True)
class Found:
    """The price of one setting, in units of one gradient, by purpose, and the setting."""

    price: float
    parts: dict[str, float] = field(default_factory=dict)
    setting: tuple = ()


NOTHING = Found(np.inf)


def anchored(family: Affine, eps: float, graded: bool = True, lazy: bool = True) -> Found:
    """Epochs with references at ever finer levels (`graded`), or all at the finest.

    A coarse grid of settings (levels of the references, base, step, noise in half octaves, how close to its floor an epoch comes),
    the best of it improved one number at a time by a sketch of the moments, and the best of that by the exact ones.
    """
    known: dict[tuple, Found] = {}

    def found(setting, kind) -> Found:
        if (setting, kind) not in known:
            known[setting, kind] = _epochs(family, eps, setting, lazy, kind)
        return known[setting, kind]

    def climb(setting, kind):
        """To the first better neighbour, as long as there is one."""
        while True:
            price, near = (
                found(setting, kind).price,
                _neighbours(setting, graded and kind is _Sketch),
            )
            better = next((s for s in near if found(s, kind).price < price), None)
            if better is None:
                return setting
            setting = better

    def tamed(setting):
        """Less noise, while the exact moments do not get there."""
        for halvings in range(6):
            less = (*setting[:3], setting[3] - 2 * halvings, setting[4])
            if found(less, _Exact).setting:
                break
        return less

    ladders = list(_ladders(family, eps, graded))
    grid = [[(*ladder, eta, 0, 1.6) for ladder in ladders] for eta in (1.2, 1.9)]
    starts = [
        s for part in grid for s in sorted(part, key=lambda s: found(s, _Sketch).price)[:CLIMBERS]
    ]
    tops = {tamed(climb(setting, _Sketch)) for setting in starts}
    return found(climb(min(tops, key=lambda setting: found(setting, _Exact).price), _Exact), _Exact)


def _ladders(family, eps, graded) -> Iterator[tuple]:
    """(levels of the references, base)."""
    unit = family.unit(eps)
    finest_levels = range(unit, min(unit + 2, family.price.size))
    for finest, base in product(finest_levels, range(max(1, min(4, unit)))):
        if graded:
            ladders = {tuple(range(finest, base, -gap))[::-1] for gap in (1, 2, 3, 4)} | {(finest,)}
            ladders |= {(*ladder, finest) for ladder in ladders}
        else:
            ladders = {(finest,) * n for n in (1, 2, 3, 4)}
        for levels in sorted(ladders):
            yield levels, base


def _neighbours(setting, graded) -> Iterator[tuple]:
    levels, base, eta, noise, far = setting
    yield from ((levels, base, eta, noise + more, far) for more in (-2, -1, 1, 2))
    yield from ((levels, base, eta, noise, other) for other in FARS if other != far)
    yield from ((levels, base, other, noise, far) for other in ETAS if other != eta)
    yield from (
        (levels, other, eta, noise, far)
        for other in (base - 1, base + 1)
        if 0 <= other < levels[-1]
    )
    for i in range(len(levels) - 1) if graded else ():
        yield levels[:i] + levels[i + 1 :], base, eta, noise, far
    for more in range(base + 1, levels[-1] + 1) if graded and len(levels) < 9 else ():
        yield tuple(sorted((*levels, more))), base, eta, noise, far


def _epochs(family, eps, setting, lazy, epoch) -> Found:
    levels, base, eta, noise, far = setting
    unit, most = family.price[family.unit(eps)], 10 * round(1 / family.spectrum[0])
    now, parts = Moments.at(family.e0), {"reference": 0.0, "coarse": 0.0, "sampled": 0.0}
    for i, finest in enumerate(levels):
        floor = family.floors[finest]
        if i == len(levels) - 1:
            goal = eps
        else:  # references all at one level: the loss falls by a fixed factor per epoch
            goal = (
                eps ** ((i + 1) / len(levels)) if levels[0] == levels[-1] else max(eps, far * floor)
            )
        if now.loss(family.spectrum) <= goal:
            continue
        if floor >= goal:
            return NOTHING
        variance = 2 ** (1 + noise / 2) * (goal - floor) / (eta * now.distance**2)
        draw = Sampling.cheapest(
            min(base, finest), finest, family.lipschitz**2, family.price, variance
        )
        reached = epoch(family, now, eta, draw).reach(goal, most)
        if reached is None:
            return NOTHING
        steps, now = reached
        cost = draw.epoch(family.price, steps, lazy)
        parts = {name: parts[name] + cost[name] for name in parts}
    parts = {name: value / unit for name, value in parts.items()}
    return Found(sum(parts.values()), parts, setting)


@dataclass(frozen=True, eq=False)
class Diagonal:
    """Moments whose covariance is diagonal: the sketch's."""

    mean: np.ndarray
    variance: np.ndarray

    def loss(self, spectrum) -> float:
        return float(spectrum @ (self.mean**2 + self.variance)) / 2

    @property
    def distance(self) -> float:
        return float(np.sqrt(self.mean @ self.mean + self.variance.sum()))


class _Sketch:
    """An epoch with the mean as it is and a covariance without its off-diagonal entries, at a few times."""

    def __init__(self, family, start, eta, draw):
        self.family, self.start, self.eta, self.draw = family, start, eta, draw

    def reach(self, goal: float, most: int) -> tuple[int, Diagonal] | None:
        family, draw, mean0 = self.family, self.draw, self.start.mean
        times = _times(most)
        values, vectors, inverse = family.eigen(draw.finest)
        zero = family.zeros[draw.finest]
        with np.errstate(over="ignore", invalid="ignore"):
            powers = (1 - self.eta * values)[:, None] ** times
            mean = zero[:, None] + (vectors @ (powers * (inverse @ (mean0 - zero))[:, None])).real
            slopes = family.slopes[draw.base + 1 : draw.finest + 1]
            weights = self.eta**2 * (1 / draw.p - 1)
            moved = mean - mean0[:, None]
            injected = sum(
                w * (slope @ moved) ** 2 for w, slope in zip(weights, slopes, strict=True) if w
            )
            injected = np.broadcast_to(injected, moved.shape).T
            squares = np.tensordot(weights, slopes**2, 1)
            ratio = (1 - self.eta * family.spectrum) ** 2
            kept = self.start.variance if isinstance(self.start, Diagonal) else np.zeros_like(mean0)
            fresh, before = np.zeros_like(mean0), 0 * mean0
            for i, n in enumerate(np.diff(times, prepend=0.0)):
                keep = ratio**n
                gain = (1 - keep) / (1 - ratio)
                fresh = keep * fresh + gain * ((before + injected[i]) / 2 + squares @ fresh)
                before = injected[i]
                point = Diagonal(mean[:, i], ratio ** times[i] * kept + fresh)
                if point.loss(family.spectrum) <= goal:
                    return int(times[i]), point
        return None


@cache
def _times(most: int) -> np.ndarray:
    return np.unique(np.round(np.geomspace(1, most, 90)))


class _Exact(strides.Epoch):
    def reach(self, goal: float, most: int) -> tuple[int, Moments] | None:
        return strides.reach(self, goal, most) and (self.time, self.moments())
