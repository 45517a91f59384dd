"""What the chapter on anchored descent measures: proved prices on one ladder, hindsight, rough errors, two real hierarchies."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from mlgd import Problem, plan
from mlgd.hierarchy import Hierarchy

from .anchored_theorem import corrected_price, ladder, one_gradient, price
from .epochs import Setting, cheapest
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
        1.0,
        1 / kappa,
        d0,
        eps,
        2.0 ** (gamma * k),
        0.1 * 2.0**-k,
        change / d0 * 2.0**-k,
        np.zeros(LEVELS, bool),
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
    for row in Path(path).read_text(encoding="utf-8").splitlines()[2:]:
        kappa, gamma, eps, _, method, paid, base, _ = row.split("\t")
        cell = found.setdefault((int(kappa), float(gamma), float(eps)), {})
        cell.setdefault(method, []).append((float(paid), float(base)))
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


# --- acceleration over the outer steps ------------------------------------------------------------------------------------


def corrections(family: Affine, base: int, finest: int, mixed: bool, most: int = 60) -> int:
    """Fine gradients that the corrected coarse model, its coarse problems solved exactly, takes to twice the floor of `finest`.

    `mixed`: Anderson's acceleration, the residuals of all steps so far combined to the smallest; `most` if it does not get there.
    """
    y, ends, moves = family.e0, [], []
    for count in range(most):
        if (loss := family.loss(y)) <= 2 * family.floors[finest]:
            return count
        if loss > 1e12:
            break
        moves.append(
            np.linalg.solve(
                family.matrix[base], -(family.matrix[finest] @ y + family.offset[finest])
            )
        )
        ends.append(y + moves[-1])
        y = ends[-1]
        if mixed and count:
            share = np.linalg.lstsq(np.diff(moves, axis=0).T, moves[-1], rcond=None)[0]
            y = y - share @ np.diff(ends, axis=0)
    return most


# --- rough errors ----------------------------------------------------------------------------------------------------------

CURVATURE = np.geomspace(0.02, 1.0, 20)


def errors() -> dict[str, Callable[[int, np.ndarray], np.ndarray]]:
    """Errors of a gradient in 20 dimensions, of size 2^-k at level k: linear in y, constant on cells, rounded to a grid."""
    rng = np.random.default_rng(0)
    tables = rng.standard_normal((9, 4096, 20))
    tables /= np.linalg.norm(tables, axis=2, keepdims=True)
    odd = 2 * rng.integers(0, 2**20, 20) + 1

    def linear(k, y):
        return 2.0**-k * (tables[k, 0] + 0.2 * np.roll(y, k, axis=-1)) / 2

    def cells(k, y):  # of side 1/100, each with an error of its own
        return 2.0**-k * tables[k, np.floor(100 * y).astype(np.int64) @ odd % 4096]

    def rounding(k, y):
        grid = 2.0 * 2.0**-k / math.sqrt(20)
        return grid * np.round(CURVATURE * y / grid) - CURVATURE * y

    return {"linear in y": linear, "constant on cells": cells, "fixed-point rounding": rounding}


def hierarchy(error) -> Hierarchy:
    """The gradient with such an error, at price 8^k."""
    return Hierarchy(lambda k, y: CURVATURE * y + error(k, y), lambda k: 8.0**k, range(1, 6))


def rough_run(
    error, coefficient: float | None, epochs: int = 4, runs: int = 64
) -> tuple[float, np.ndarray]:
    """The mean price of descent on such levels, and each run's mean loss over the last epoch.

    Coefficient 0 is the plain telescope, 1 the anchored one; None: each level's coefficient is what its draws in the epoch before
    say, if that is half or more and else 0. An epoch is so long that its steps cost what all levels cost once: a reference,
    bought whole where any coefficient is not 0, at most doubles the price.
    """
    rng, levels = np.random.default_rng(0), np.arange(1, 6)
    price, p = 8.0**levels, 2.0 ** (-2.5 * (levels - 1))
    after = np.append(p[1:], 0.0)
    call = float((p + after - p * after) @ price)
    length = math.ceil(price.sum() / call)
    y = np.tile(0.3 * rng.standard_normal(20), (runs, 1))
    a = np.full((runs, 5), coefficient or 0.0) * (levels > 1)
    paid, losses = 0.0, np.zeros(runs)

    def increments(y):
        values = np.array([error(k, y) for k in levels])
        steps = np.diff(values, axis=0, prepend=0.0)
        steps[0] += CURVATURE * y
        return steps

    for epoch in range(epochs):
        there, alike, drawn = increments(y), np.zeros((runs, 5)), np.zeros((runs, 5))
        paid += float((a > 0).any(axis=1).mean()) * price.sum() + length * call
        for _ in range(length):
            losses += (epoch == epochs - 1) * (CURVATURE * y**2).sum(axis=1) / (2 * length)
            now, coins = increments(y), rng.random((runs, 5)) < p
            alike, drawn = alike + coins * (now * there).sum(axis=2).T, drawn + coins
            weight = coins / p
            y = (
                y
                - 0.2 * np.einsum("rk,krd->rd", weight, now)
                - 0.2 * np.einsum("rk,krd->rd", (1 - weight) * a, there)
            )
        if coefficient is None:
            fit = alike / np.maximum(drawn * (there**2).sum(axis=2).T, 1e-300)
            a = np.where(fit >= 0.5, np.minimum(fit, 1.0), 0.0) * (levels > 1)
    return paid, losses


# --- real hierarchies --------------------------------------------------------------------------------------------------------


def heat_source() -> Affine:
    """The heat source of the chapter on peers, its levels as matrices."""
    heat = HeatSource(alpha=1e-4)
    maps = np.array(
        [[heat.solvers[k].forward(e) for e in np.eye(16)] for k in heat.levels]
    ).transpose(0, 2, 1)
    matrices = maps.transpose(0, 2, 1) @ maps + heat.alpha * np.eye(16)
    offsets = -(maps.transpose(0, 2, 1) @ heat.data)
    return affine(
        heat.hessian,
        heat.minimizer,
        np.zeros(16),
        matrices,
        offsets,
        [heat.hierarchy().cost(k) for k in heat.levels],
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
        self.level = np.searchsorted(
            self.LADDER, np.arange(1, 129)
        )  # whose increment holds a coordinate

    def slopes(self) -> np.ndarray:
        """How fast each increment changes, in units of mu."""
        return (
            np.array([np.linalg.norm(self.gram[self.level == i], 2) for i in range(7)])
            / self.curvature[0]
        )

    def loss(self, x: np.ndarray) -> float:
        return float((((x - self.answer) @ self.gram) * (x - self.answer)).sum(axis=1).mean())

    def price(
        self, target: float, base: int, p: Sequence[float], epoch: int, most: float = 1e4
    ) -> float:
        """In finest gradients, until the mean loss of eight runs is below the target: a reference every `epoch` steps.

        Levels up to `base` are looked at in every step, the others with probabilities p. No p: the change of the finer levels is left out, the corrected coarse
        model by descent. No epoch: the plain telescope.
        """
        rng, x, paid = np.random.default_rng(0), np.zeros((8, 128)), 0.0
        eta, p = 1.8 / self.curvature[-1], np.array([*p, *[0.0] * (6 - base - len(p))])
        chance = np.concatenate([np.ones(base + 1), p])
        after = np.append(p[1:], 0.0)
        call = (self.LADDER[base] + (p + after - p * after) @ self.LADDER[base + 1 :]) / 128
        goal, reference, fine = target * self.loss(x), self.answer, np.zeros(128)
        step = 0
        while paid < most:
            if (
                epoch and step % epoch == 0
            ):  # with samples every level is paid for once: twice the finest in all
                reference, fine, paid = x, x @ self.gram - self.moment, paid + 1 + bool(p.any())
            coins = (rng.random((8, 7)) < chance) / np.where(chance > 0, chance, 1)
            x = x - eta * (fine + coins[:, self.level] * ((x - reference) @ self.gram))
            paid, step = paid + call, step + 1
            if (loss := self.loss(x)) <= goal:
                return paid
            if loss > 1e6 * goal:  # diverges
                break
        return math.inf

    def best(self, target: float) -> dict[str, float]:
        """Each method at the best of a few bases and probabilities, in finest gradients."""
        sampled = [
            (base, 2.0 ** (-fall * np.arange(1, 7 - base)))
            for base in (0, 1, 2)
            for fall in (1.0, 1.5, 2.0)
        ]
        return {
            "finest level only": self.price(target, 6, [], 10**6),
            "plain telescope": self._least(target, [(base, p, 0) for base, p in sampled]),
            "anchored": self._least(target, [(base, p, 100) for base, p in sampled]),
            "corrected, by descent": self._least(target, [(base, [], 30) for base in (1, 2, 3)]),
        }

    def _least(self, target: float, settings) -> float:
        least = math.inf
        for setting in settings:
            least = min(least, self.price(target, *setting, most=min(least, 1e4)))
        return least
