"""What happens as the step shrinks: runs of the iteration with p_k = step * rate_k beside the jump process."""

import math
from collections.abc import Sequence

import numpy as np

from mlgd import Hierarchy, Schedule, Telescope, flow


def walk(h: Hierarchy, rates: Sequence[float], start: np.ndarray, step: float, horizon: float, rng):
    """A run of the iteration: times and points of its path (a staircase), and its longest move in the second half."""
    rng, point, path, longest = np.random.default_rng(rng), start.copy(), [(0.0, *start)], 0.0
    telescope = Telescope(h, step * np.asarray(rates))
    hits = rng.random((round(horizon / step), len(rates))) < telescope.p
    for i in np.flatnonzero(hits.any(axis=1)):  # a call that draws nothing does nothing
        move = step * telescope.combine(point, hits[i]).value
        path += [((i + 1) * step, *point), ((i + 1) * step, *(point - move))]
        point = point - move
        if i * step > horizon / 2:
            longest = max(longest, float(np.linalg.norm(move)))
    return np.array([*path, (horizon, *point)]), longest


def longest_jump(
    h: Hierarchy, rates: Sequence[float], start: np.ndarray, horizon: float, rng
) -> float:
    """The longest move of the jump process in the second half of its events."""
    points = []
    watched = Hierarchy(lambda k, y: points.append(y.copy()) or h.evaluate(k, y), h.cost, h.levels)
    flow(watched, start, list(rates), horizon, rng)
    late = np.diff(points, axis=0)[len(points) // 2 :]
    return float(np.linalg.norm(late, axis=1).max())


def long_share(
    h: Hierarchy, rates: Sequence[float], start: np.ndarray, step: float, length: float
) -> float:
    """The share of a call's variance that moves longer than `length` carry: exact, all draws enumerated."""
    return _share(Telescope(h, step * np.asarray(rates)), start, step, length)


def coin_share(start: np.ndarray, step: float, length: float) -> float:
    """The same for a fair coin whose variance also grows like 1/step, which does tend to a diffusion."""
    coin = Hierarchy(lambda k, y: y + k * np.ones_like(y) / math.sqrt(step), lambda k: 1.0, [0, 1])
    return _share(Telescope(coin, [1.0, 0.5]), start, step, length)


def _share(telescope: Telescope, start: np.ndarray, step: float, length: float) -> float:
    mean = telescope.mean(start)
    moves = [
        (p, step * float(np.linalg.norm(draw.value - mean)))
        for p, draw in telescope.outcomes(start)
    ]
    return sum(p * m**2 for p, m in moves if m > length) / sum(p * m**2 for p, m in moves)


def log_growth(schedule: Schedule, horizon: float) -> float:
    """log of E y_T^2 / y_0^2 for y^2/2 with exact levels: d/dt E y^2 = (1/r - 2) E y^2, r the coarsest level's rate."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    total = 0.0
    for low, high in schedule.stretches(horizon):
        half = (high - low) / 2
        total += half * float((1 / schedule.rates(low + half * (1 + nodes))[0] - 2) @ weights)
    return total
