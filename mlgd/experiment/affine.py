"""Levels that are linear in every coordinate, A_k(y) = slope[k] y + offset[k]: exact moments of whole runs on given instances.

A step of descent or of Nesterov's method is a random linear map of (1, y, another), coordinate by coordinate, where the other is
a running mean or the point before. Its second moments are therefore carried by a fixed matrix, whose powers come from
squaring: any number of steps costs as little as a few.
"""

import math
from dataclasses import dataclass

import numpy as np

from .fields import Family, Instances
from .responses import BELOW, LINEAR, NOTHING, Found, Stage, chain

GOALS = 24  # that the model is given in turn


@dataclass(frozen=True, eq=False)
class Affine:
    """A few instances of smooth errors; arrays (levels, instances, d)."""

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


PAIRS = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]  # of (1, y, other)
INTO = np.array([[p in ((i, j), (j, i)) for p in PAIRS] for i in range(3) for j in range(3)], float)
FROM = np.linalg.pinv(INTO)


def after(i: Affine, stages: tuple[Stage, ...]) -> float:
    """The exact mean loss of these stages."""
    second = np.stack(
        [np.ones_like(i.start), i.start, 0 * i.start, i.start**2, 0 * i.start, 0 * i.start], axis=-1
    )
    for s in stages:
        second = _stage(i, second, s)
    return float(i.loss(second[..., 3]))


def _stage(i: Affine, second: np.ndarray, s: Stage) -> np.ndarray:
    kind, eta, steps, window = s.way
    if kind == "nesterov":  # the other is the last move
        ratio = math.sqrt(eta / i.family.kappa)
        second = _carried(
            _operator(i, s, (1 - ratio) / (1 + ratio), [0.0, 0.0, 0.0], 1.0), steps, second
        )
        return second * [1, 1, 0, 1, 0, 0]
    alone = _operator(i, s, 0.0, [0.0, 0.0, 1.0], 0.0)
    summed = _operator(
        i, s, 0.0, [0.0, 1 / window, 1.0], 1 / window
    )  # the other is the mean of the last points
    second = _carried(summed, window, _carried(alone, steps - window, second))
    one, mean, square = second[..., 0], second[..., 2], second[..., 5]
    return np.stack([one, mean, 0 * one, square, 0 * one, 0 * one], axis=-1)


def _operator(i: Affine, s: Stage, momentum: float, keep: list[float], share: float) -> np.ndarray:
    """What one step does to the second moments of (1, y, other): (instances, d, 6, 6).

    y moves by momentum times the other and against the gradient there; the other becomes keep (1, y, other) plus a share of the move.
    """
    eta, one, z = s.way[1], np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, momentum])

    def rows(move):
        return np.stack([np.zeros_like(move), move, share * move], axis=-2)

    move = momentum * np.array([0.0, 0.0, 1.0]) - eta * (
        i.slope[s.finest][..., None] * z + i.offset[s.finest][..., None] * one
    )
    total = _square(np.array([one, [0.0, 1.0, 0.0], keep]) + rows(move))
    for k, p in zip(range(s.base + 1, s.finest + 1), s.p, strict=True):
        slope, offset = i.slope[k] - i.slope[k - 1], i.offset[k] - i.offset[k - 1]
        total = total + _square(
            rows(eta * math.sqrt(1 / p - 1) * (slope[..., None] * z + offset[..., None] * one))
        )
    return total


def _square(m: np.ndarray) -> np.ndarray:
    """The Kronecker square of every matrix, on symmetric products."""
    return FROM @ np.einsum("...ij,...kl->...ikjl", m, m).reshape(*m.shape[:-2], 9, 9) @ INTO


def _carried(operator: np.ndarray, steps: int, second: np.ndarray) -> np.ndarray:
    return (np.linalg.matrix_power(operator, int(steps)) @ second[..., None])[..., 0]


def tuned(f: Family, i: Affine, method: str, made: dict, eps: float, gamma: float) -> Found:
    """The cheapest stages whose exact mean loss on these instances is at most eps, by the model's choice for some goal."""
    ways, last, random, stages = LINEAR[method]
    best = NOTHING
    for goal in eps * np.geomspace(0.15, 1.6, GOALS):
        found = chain(f, made[ways], made[last], goal, gamma, random, stages)
        if found.price < best.price:
            with np.errstate(over="ignore", invalid="ignore"):
                loss = after(i, found.stages)
            if loss <= BELOW * eps:
                best = Found(found.price, loss, found.stages)
    return best
