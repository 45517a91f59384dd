"""What the chapter on anchored descent measures: proved prices on one ladder, hindsight, rough errors, two real hierarchies."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mlgd.anchors import Telescope
from mlgd.epochs import Setting, cheapest
from mlgd.examples import rounded
from mlgd.hierarchy import Hierarchy
from mlgd.plans import Problem, plan

from .anchored_theorem import corrected_price, ladder, one_gradient, price
from .features import Design
from .heat import HeatSource
from .linear_errors import Affine, affine, instance

LEVELS = 18

# --- proved prices -----------------------------------------------------------------------------------------------------


def setting(gamma: float, eps: float, change: float = 0.2, kappa: float = 100.0) -> Setting:
    """The second family's ladder and constants: accuracy 0.1 * 2^-k at 2^(gamma k), increments changing at change/d0 * 2^-k."""
    k = np.arange(LEVELS)
    d0 = float(np.linalg.norm(instance(kappa, gamma, 0, levels=1).e0))
    return Setting(
        1.0, 1 / kappa, d0, eps, 2.0 ** (gamma * k), 0.1 * 2.0**-k, change / d0 * 2.0**-k, np.zeros(LEVELS, bool)
    )


def plain_price(s: Setting, gamma: float) -> float:
    """What the plain telescope costs by the paper's one-step lemma, levels and probabilities chosen by price."""
    problem = Problem(beta=s.beta, mu=s.mu, d0=s.d0, gamma=gamma, c=0.1, first=0)
    return plan(problem, s.eps, "multilevel", on=ladder(s)).expected_cost


def proved(gamma: float, targets: Sequence[float]) -> dict[str, list[float]]:
    """Proved prices over one gradient, against the target."""
    settings = [setting(gamma, eps) for eps in targets]
    return {
        "plain": [plain_price(s, gamma) / one_gradient(s) for s in settings],
        "anchored": [price(s, cheapest(s)) / one_gradient(s) for s in settings],
    }


def by_change(gamma: float, changes: Sequence[float], eps: float) -> dict[str, list[float]]:
    """Proved prices over one gradient, against l d0."""
    settings = [setting(gamma, eps, change) for change in changes]
    unit = one_gradient(settings[0])
    return {
        "anchored": [price(s, cheapest(s)) / unit for s in settings],
        "corrected": [corrected_price(s) / unit for s in settings],
        "plain": [plain_price(settings[0], gamma) / unit] * len(settings),
    }


# --- hindsight, as stored ------------------------------------------------------------------------------------------------


def means(path: Path | str) -> dict[tuple[int, float, float], dict[str, tuple[float, float, int]]]:
    """{(kappa, gamma, eps): {method: (geometric mean of the prices, mean of the base level's part, instances)}}."""
    found: dict = {}
    for row in Path(path).read_text(encoding="utf-8").splitlines()[1:]:
        kappa, gamma, eps, _, method, paid, base = row.split("\t")
        cell = found.setdefault((int(kappa), float(gamma), float(eps)), {})
        cell.setdefault(method, []).append((float(paid), float(base or 0)))
    return {
        cell: {
            method: (
                math.exp(np.mean(np.log([p for p, _ in pairs]))),
                float(np.mean([b for _, b in pairs])),
                len(pairs),
            )
            for method, pairs in methods.items()
        }
        for cell, methods in sorted(found.items())
    }


# --- rough errors ----------------------------------------------------------------------------------------------------------


def fields() -> dict[str, Hierarchy]:
    """One gradient in 20 dimensions with three kinds of error: linear in y, constant on cells, rounded to a grid."""
    rng = np.random.default_rng(0)
    slope = np.geomspace(0.02, 1.0, 20)
    tables = rng.standard_normal((9, 4096, 20))
    tables /= np.linalg.norm(tables, axis=2, keepdims=True)

    def linear(k, y):
        return slope * y + 2.0**-k * (tables[k, 0] + np.roll(y, k)) / 2

    def cells(k, y):  # of side 1/100, each with an error of its own
        return slope * y + 2.0**-k * tables[k, hash(tuple(np.floor(100 * y).astype(int).tolist())) % 4096]

    return {
        "linear in y": Hierarchy(linear, lambda k: 8.0**k, range(1, 8)),
        "constant on cells": Hierarchy(cells, lambda k: 8.0**k, range(1, 8)),
        "fixed-point rounding": rounded(lambda y: slope * y, 3.0, 1.0, range(1, 8)),
    }


def noise(h: Hierarchy, reference: np.ndarray, points: np.ndarray, fitted: bool) -> float:
    """Mean variance at some points, over the plain telescope's with the same probabilities; coefficients one, or fitted."""
    p = [1.0, *2.0 ** (-2.5 * np.arange(1, len(h.levels)))]
    there = [h.step(k, reference) for k in h.levels]
    fit = [
        np.mean([h.step(k, y) @ d for y in points]) / max(d @ d, 1e-30) for k, d in zip(h.levels, there, strict=True)
    ]
    t = Telescope.anchored(h, p, at=reference, coefficients=np.clip(fit, 0, 1) if fitted else None)
    return float(np.mean([t.variance(y) for y in points]) / np.mean([Telescope(h, p).variance(y) for y in points]))


# --- real hierarchies --------------------------------------------------------------------------------------------------------


def heat_source() -> Affine:
    """The heat source of the chapter on peers, its levels as matrices."""
    heat = HeatSource(alpha=1e-4)
    maps = np.array([[heat.solvers[k].forward(e) for e in np.eye(16)] for k in heat.levels]).transpose(0, 2, 1)
    matrices = maps.transpose(0, 2, 1) @ maps + heat.alpha * np.eye(16)
    offsets = -(maps.transpose(0, 2, 1) @ heat.data)
    return affine(
        heat.hessian, heat.minimizer, np.zeros(16), matrices, offsets, [heat.hierarchy().cost(k) for k in heat.levels]
    )


class Features:
    """The truncated features of the chapter on peers: level k has the first k of 128 coordinates of the gradient."""

    LADDER = np.array([2, 4, 8, 16, 32, 64, 128])

    def __init__(self):
        design = Design(m=256, n=2048)
        target = np.concatenate([design.target(i) for i in range(design.blocks)])[: design.n]
        head = design.columns(128)
        self.gram, self.moment = head.T @ head, head.T @ (design.columns(design.n) @ target)
        self.curvature = np.linalg.eigvalsh(self.gram)
        self.answer = np.linalg.solve(self.gram, self.moment)
        self.level = np.searchsorted(self.LADDER, np.arange(1, 129))  # whose increment holds a coordinate

    def slopes(self) -> np.ndarray:
        """How fast each increment changes, in units of mu."""
        return np.array([np.linalg.norm(self.gram[self.level == i], 2) for i in range(7)]) / self.curvature[0]

    def loss(self, x: np.ndarray) -> float:
        return float((((x - self.answer) @ self.gram) * (x - self.answer)).sum(axis=1).mean())

    def price(
        self, target: float, base: int, p: Sequence[float], epoch: int, runs: int = 8, steps: int = 3000
    ) -> float:
        """In finest gradients, until the mean loss is below the target: a reference every `epoch` steps, `p` past the base.

        No p: the change of the finer levels is left out, the corrected coarse model by descent.
        """
        rng, x, paid = np.random.default_rng(0), np.zeros((runs, 128)), 0.0
        eta, p = 1.8 / self.curvature[-1], np.array([*p, *[0.0] * (6 - base - len(p))])
        chance = np.concatenate([np.ones(base + 1), p])
        after = np.append(p[1:], 0.0)
        call = (self.LADDER[base] + (p + after - p * after) @ self.LADDER[base + 1 :]) / 128
        goal = target * self.loss(x)
        for step in range(steps):
            if step % epoch == 0:  # with samples every level is paid for once: twice the finest in all
                reference, fine, paid = x, x @ self.gram - self.moment, paid + 1 + bool(p.any())
            coins = (rng.random((runs, 7)) < chance) / np.where(chance > 0, chance, 1)
            x = x - eta * (fine + coins[:, self.level] * ((x - reference) @ self.gram))
            paid += call
            if self.loss(x) <= goal:
                return paid
        return math.inf
