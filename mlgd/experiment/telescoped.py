"""A telescope on any hierarchy, tuned in hindsight: levels, probabilities, step, momentum and length, on seeds of its own."""

import math
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np

from .cases import NEVER, Case, solved
from .linear_errors import water_filling

TUNING, REPORTING = range(3), range(100, 108)


def telescoped(
    case: Case, eps: float, most: int = 1280
) -> tuple[float, str, Callable | None, float]:
    """From the base level's solution, with or without momentum, tail average: price, setting, the run, loss on other seeds over eps."""
    levels, cost = case.h.levels, np.array([case.h.cost(k) for k in case.h.levels])
    best = (*NEVER, math.nan)
    near, _ = solved(partial(case.h.value, levels[1]), case.start, 60)
    far = np.linalg.norm(near - case.start) / np.linalg.norm(case.h.value(levels[1], case.start))
    near = [near, (near + case.start) / 2]
    squares = np.array([0.0] + [_increment(case, levels[i], near) for i in range(1, len(levels))])
    etas = [c / _curvature(case, levels[0], case.start) for c in (0.3, 1.0)] + [
        c * far for c in (0.003, 0.03, 0.3)
    ]
    for base, ahead, eta, momentum in product((0, 1), (1, 2, 3), etas, (0.0, 0.9)):
        finest = base + ahead
        if finest >= len(levels):
            continue
        warm, made = _warm(case, levels[base])
        drawn = slice(base + 1, finest + 1)
        pairs = cost[drawn] + cost[base:finest]
        for scale in (1.0, 10.0, 100.0):
            p = water_filling(squares[drawn], pairs, scale * squares[drawn].sum())
            setting = (levels[base : finest + 1], p, eta, momentum)
            found = _raced(case, warm, setting, eps, TUNING, most, (best[0] - made * cost[base]))
            if found:
                price, steps = found[0] + made * cost[base], found[1]
                other = _raced(case, warm, setting, 0.0, REPORTING, steps, math.inf)
                said = f"levels {levels[base]} to {levels[finest]}, {steps} steps, momentum {momentum:g}"
                best = (price, said, partial(_once, setting=setting, steps=steps), other[2] / eps)
    return best


def _warm(case: Case, base: int) -> tuple[np.ndarray, int]:
    return solved(partial(case.h.value, base), case.start, 25)


def _once(case: Case, setting, steps: int) -> None:
    """One run, as it would be made."""
    _raced(case, _warm(case, setting[0][0])[0], setting, 0.0, TUNING[:1], steps, math.inf)


def _raced(case, y0, setting, eps, seeds, steps, most) -> tuple[float, int, float] | None:
    """(mean price, steps, mean loss) when the mean over the seeds of the tail average's loss is first at most eps, or at the end."""
    levels, p, eta, momentum = setting
    rngs = [np.random.default_rng([5, s]) for s in seeds]
    y = [y0 for _ in seeds]
    before, kept, paid = list(y), [[] for _ in seeds], 0.0
    for t in range(1, steps + 1):
        for i, rng in enumerate(rngs):
            z = y[i] + momentum * (y[i] - before[i])
            drawn = rng.random(p.size) < p
            used = {levels[0]} | {levels[j + d] for j in np.flatnonzero(drawn) for d in (0, 1)}
            value = {k: case.h.value(k, z) for k in used}
            g = value[levels[0]] + sum(
                (value[levels[j + 1]] - value[levels[j]]) / p[j] for j in np.flatnonzero(drawn)
            )
            paid += sum(case.h.cost(k) for k in used) / len(rngs)
            before[i], y[i] = y[i], z - eta * g
            kept[i].append(y[i])
        if paid >= most or not max(np.abs(v).max() for v in y) < 1e9:
            return None
        if t in (steps, 5, 10, 20, 40, 80, 160, 320, 640, 1280):
            loss = float(np.mean([case.loss(np.mean(k[-max(1, t // 3) :], axis=0)) for k in kept]))
            if loss <= eps or (eps == 0.0 and t == steps):
                return paid, t, loss
            if not loss < 1e6:
                return None
    return None


def _increment(case: Case, k: int, points) -> float:
    return float(
        np.mean([np.sum((case.h.value(k, y) - case.h.value(k - 1, y)) ** 2) for y in points])
    )


def _curvature(case: Case, k: int, y: np.ndarray, reach: float = 0.1) -> float:
    """The largest curvature by powers of differences over a moderate distance."""
    v, size = np.random.default_rng(0).standard_normal(y.size), 1.0
    for _ in range(20):
        v = v / np.linalg.norm(v)
        v = (case.h.value(k, y + reach * v) - case.h.value(k, y)) / reach
        size = float(np.linalg.norm(v))
    return size
