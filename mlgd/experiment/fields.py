"""Three kinds of error on one family of quadratics: what the map of the chapter on rivals is drawn for.

In an eigenbasis with the minimizer at zero: eigenvalues log-spaced from 1/kappa to 1, starting loss one shared equally
among them, level k = 0, 1, ... off by at most a_k = a 2^-k at price 2^(gamma k). a is near 0.1, and such that a level's zero has
a loss of exactly half of 1/100, and another's half of 1/25600 (at most, where errors are smooth): rounding to whole levels then
treats all cells alike. The error of level k at y is

    fresh    a_k (u_k + v_k(y))/2          v_k(y) drawn anew at every point: no two points tell the same; u_k lasts
    smooth   a_k (u_k + s_k (y - y0)/d0)/2 linear in y, each coordinate with a slope of its own sign
    rounded  each coordinate of the gradient, in a random basis, to the nearest multiple of 2 a_k/sqrt(d)

u_k, v_k have entries +-1/sqrt(d), s_k entries +-1. Errors that are fresh with mean zero would average out, and one cheap
level would do: therefore u_k.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

SIZE = 0.1  # of the coarsest level's error, up to a factor between 1/sqrt(2) and sqrt(2)
TARGETS = (1e-2, 1e-2 / 256)
SHARE = {
    "fresh": 1 / 4,
    "smooth": 1 / 2,
    "rounded": 1 / 3,
}  # of a_k^2: the mean square that lasts, near the minimizer
STAYS = 0.02  # of a rounding error's mean square, where its argument moves about
DIMENSION = 200
LEVELS = 17
KINDS = ("fresh", "smooth", "rounded")


@dataclass(frozen=True, eq=False)
class Family:
    """Everything that the instances of one conditioning share."""

    kappa: float
    kind: str = "fresh"
    d: int = DIMENSION
    dither: float = 0.0  # squares of the grid that noise must move a gradient by for rounding errors to count as fresh; 0: they last

    @cached_property
    def spectrum(self) -> np.ndarray:
        return np.geomspace(1 / self.kappa, 1.0, self.d)

    @cached_property
    def square(self) -> np.ndarray:
        """The squares of the start's coordinates."""
        return 2 / (self.d * self.spectrum)

    @property
    def d0(self) -> float:
        return math.sqrt(self.square.sum())

    @cached_property
    def weight(self) -> np.ndarray:
        """How a level's error near the minimizer is shared among the coordinates; mean one. Slopes weigh where y0 is far."""
        if self.kind != "smooth":
            return np.ones(self.d)
        return (1 + self.d * self.square / self.d0**2) / 2

    def bent(self, accuracy) -> np.ndarray:
        """The eigenvalues of levels of these accuracies, for either sign of a slope: (2, levels, d)."""
        turn = (
            np.asarray(accuracy)[:, None] / (2 * self.d0)
            if self.kind == "smooth"
            else np.zeros((len(accuracy), 1))
        )
        return np.array([self.spectrum + turn, self.spectrum - turn])

    def floor(self, accuracy) -> np.ndarray:
        """The mean loss at the zeros of levels of these accuracies; infinite where a coordinate may bend the wrong way."""
        a, bent = np.asarray(accuracy, float), self.bent(accuracy)
        loss = (
            (self.spectrum * self.weight / np.where(bent > 0, bent, 1) ** 2).mean(axis=(0, 2))
            * SHARE[self.kind]
            / 2
        )
        return np.where(bent.min(axis=(0, 2)) > 0, a**2 * loss, np.inf)

    @cached_property
    def accuracy(self) -> np.ndarray:
        goal, a = TARGETS[0] / 2, 1e-3 * self.d0 / self.kappa
        for _ in range(60):  # the loss grows a little faster than the square
            a = a * math.sqrt(goal / float(self.floor([a])[0]))
        return a * 2.0 ** (max(0, round(math.log2(SIZE / a))) - np.arange(LEVELS))

    @property
    def lasting(self) -> np.ndarray:
        """The mean square of the part of each level's error that stays, near the minimizer."""
        return self.accuracy**2 * SHARE[self.kind] * (STAYS if self.dither else 1.0)

    @property
    def fresh(self) -> np.ndarray:
        """The mean square of the part that is drawn anew."""
        if self.dither:
            return self.accuracy**2 * SHARE[self.kind] * (1 - STAYS)
        return self.accuracy**2 * (1 / 4 if self.kind == "fresh" else 0.0)

    @property
    def increments(self) -> np.ndarray:
        """E|A_k - A_{k-1}|^2; of two nested grids one coordinate in two differs, by a cell of the finer one."""
        a = self.accuracy**2
        if self.kind == "rounded":
            return 2 * a
        return np.concatenate([a[:1] / 2, (a[1:] + a[:-1]) / 2])

    @cached_property
    def floors(self) -> np.ndarray:
        """The mean loss at the zero of each level."""
        return self.floor(self.accuracy)

    def unit(self, eps: float) -> int:
        """The coarsest level whose zero is good enough: its price is "one gradient"."""
        return int(np.argmax(self.floors <= 0.6 * eps))

    def loss(self, y: np.ndarray) -> np.ndarray:
        return y**2 @ self.spectrum / 2


class Instances:
    """Several instances at once, one per row, with an oracle for their levels."""

    def __init__(self, family: Family, seeds):
        self.family, self.rng = family, np.random.default_rng([20261116, *seeds])
        n, d = len(list(seeds)), family.d
        self.start = np.sqrt(family.square) * self.rng.choice([-1.0, 1.0], (n, d))
        self.lasting = self.rng.choice([-1.0, 1.0], (LEVELS, n, d)) / math.sqrt(d)
        self.slopes = self.rng.choice([-1.0, 1.0], (LEVELS, n, d))
        self.basis = (
            np.linalg.qr(self.rng.standard_normal((d, d)))[0] if family.kind == "rounded" else None
        )

    def gradients(self, levels, y: np.ndarray) -> np.ndarray:
        """The values of several levels at one set of points: (levels, instances, d)."""
        f, levels = self.family, np.asarray(levels)
        exact, a = f.spectrum * y, f.accuracy[levels][:, None, None]
        if f.kind == "fresh":
            drawn = 1 - 2 * self.rng.integers(0, 2, (len(levels), *y.shape), dtype=np.int8)
            return exact + a / 2 * (self.lasting[levels] + drawn / math.sqrt(f.d))
        if f.kind == "smooth":
            return exact + a / 2 * (
                self.lasting[levels] + self.slopes[levels] * (y - self.start) / f.d0
            )
        grid = 2 * a / math.sqrt(f.d)
        return grid * np.round(exact @ self.basis / grid) @ self.basis.T
