"""A search for real problems where only the telescope's assumption holds, each against the rivals that a specialist would use.

    python -m mlgd.experiment.inhabitants --out book/data/inhabitants.json

Three candidates: a logistic loss with features of slow decay, absolute deviations through the heat equation, and an inner solver that is
stopped early and starts at random. Every method is tuned in hindsight on one set of seeds where it has any; its loss is that of others.
"""

import argparse
import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from mlgd import Hierarchy

from .cases import NEVER, Case, corrected, rival, solved, told
from .heat import HeatSource
from .linear_errors import water_filling

TUNING, REPORTING = range(3), range(100, 108)


def logistic(samples: int = 64, decay: float = 4 / 3, ridge: float = 1e-6) -> Case:
    """Kernel logistic regression: the kernel adds up features of scale j^(-decay/2), a level the first 8^k of them: gamma near 3.

    Price: features times samples, twice. Unknown: one coefficient per sample, in the basis of the finest kernel where kappa is 1/ridge.
    """
    rng = np.random.default_rng(7)
    levels, finest = range(1, 6), 6
    signs = np.sign(rng.standard_normal(samples) + 0.3)
    kernel, kernels = np.zeros((samples, samples)), {}
    for k in range(finest + 1):
        for first in range(8 ** (k - 1) if k else 0, 8**k, 8192):
            j = np.arange(first, min(first + 8192, 8**k))
            g = rng.standard_normal((samples, j.size)) * (j + 1.0) ** (-decay / 2)
            kernel = kernel + g @ g.T
        kernels[k] = kernel / samples
    top = np.linalg.eigvalsh(kernels[finest])[-1]
    kernels = {k: v / top for k, v in kernels.items()}

    def odds(margin):
        return (1 - np.tanh(signs * margin / 2)) / 2

    def gradient(k, y):
        return -kernels[k] @ (signs * odds(kernels[k] @ y)) / 4 + ridge * y

    def value(y):
        return float(np.logaddexp(0, -signs * (kernels[finest] @ y)).sum() / 4 + ridge * y @ y / 2)

    best = np.zeros(samples)
    for _ in range(200):  # Newton at the level beyond the ladder, which judges
        at = odds(kernels[finest] @ best)
        bend = kernels[finest] @ ((at * (1 - at))[:, None] * kernels[finest]) / 4 + ridge * np.eye(samples)
        step = np.linalg.solve(bend, gradient(finest, best))
        best = best - min(1.0, 5 / np.abs(kernels[finest] @ step).max()) * step
    floor = value(best)
    h = Hierarchy(gradient, lambda k: 2.0 * samples * 8**k, levels)
    return Case("logistic loss, features of slow decay", h, np.zeros(samples), lambda y: value(y) - floor)


class Deviations(HeatSource):
    """Absolute residuals of the heat source, one reading in ten grossly wrong; maps are kept, prices are charged."""

    def __init__(self):
        super().__init__(alpha=1e-4)
        rng = np.random.default_rng(3)
        wrong = rng.random(98) < 0.1
        object.__setattr__(self, "read", self.data + wrong * np.abs(self.data).max() * rng.standard_normal(98))
        maps = {k: np.array([self.solvers[k].forward(e) for e in np.eye(16)]).T for k in self.levels}
        object.__setattr__(self, "maps", {**maps, 99: self.map})

    def residual_gradient(self, k: int, q: np.ndarray, smooth: float = 0.0) -> np.ndarray:
        r = self.maps[k] @ q - self.read
        return self.maps[k].T @ (np.clip(r / smooth, -1, 1) if smooth else np.sign(r)) / 98 + self.alpha * q

    def value(self, q: np.ndarray) -> float:
        return float(np.abs(self.map @ q - self.read).mean() + self.alpha * q @ q / 2)

    def primal_dual(self, k: int, q: np.ndarray, p: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Chambolle and Pock's method; a step pays for one map and one adjoint, a gradient."""
        m = self.maps[k]
        size = 0.99 / np.linalg.norm(m, 2)
        tau, sigma, before = 30 * size, size / 30, q
        for _ in range(steps):
            p = np.clip(p + sigma * (m @ (2 * q - before) - self.read), -1 / 98, 1 / 98)
            before, q = q, (q - tau * (m.T @ p)) / (1 + tau * self.alpha)
        return q, p


def deviations() -> tuple[Case, dict[str, Callable]]:
    """The case, and two rivals that know its shape: quasi-Newton on smoothed residuals, and a primal-dual method, coarse to fine."""
    source = Deviations()
    floor = source.value(source.primal_dual(99, np.zeros(16), np.zeros(98), 60_000)[0])
    h = Hierarchy(source.residual_gradient, lambda k: 7 * 8.0**k, source.levels)
    case = Case("absolute deviations through the heat equation", h, np.zeros(16), lambda q: source.value(q) - floor)

    def smoothed(eps):
        best = NEVER[:2]
        for smooth in np.geomspace(1e-4, 1e-2, 5) * np.abs(source.read).max():
            other = replace(case, h=Hierarchy(partial(source.residual_gradient, smooth=smooth), h.cost, h.levels))
            price, said, _ = rival(other, eps, True)
            best = min(best, (price, f"smoothed over {smooth:.1e}, {said}"))
        return best

    def primal_dual(eps):
        best = NEVER[:2]
        for last, per in product(range(len(h.levels)), (10, 30, 100, 300, 1000, 3000)):
            for first in range(last + 1):
                q, p, price = case.start, np.zeros(98), 0.0
                for k in h.levels[first : last + 1]:
                    q, p = source.primal_dual(k, q, p, per)
                    price += per * h.cost(k)
                if price < best[0] and case.loss(q) <= eps:
                    best = (price, f"levels {h.levels[first]} to {h.levels[last]}, {per} steps each")
        return best

    return case, {"smoothing and quasi-Newton": smoothed, "primal-dual": primal_dual}


def stopped(size: int = 600, unknowns: int = 16) -> tuple[Case, dict[str, Callable]]:
    """A gradient B'K^-1 B y - b that needs an inner solve, by 8^k steps of descent from a random start: gamma near 3, kappa 1e4.

    K has eigenvalues i^-2, B falls like i^(-11/6): both what the start adds, fresh at every y, and what descent has not yet found, linear
    in y, fall like the cube root of the steps. A specialist would accelerate the inner solver and begin it at zero.
    """
    rng, i = np.random.default_rng(11), np.arange(1.0, size + 1)
    inner = i**-2
    b = rng.standard_normal((size, unknowns)) * i[:, None] ** (-11 / 6)
    values, vectors = np.linalg.eigh(b.T @ (b / inner[:, None]))
    b = (
        b @ vectors / np.sqrt(values) * np.geomspace(1, 10**-2.5, unknowns)
    )  # the outer Hessian: diagonal, from 1 to 1e-5
    hessian, truth = (
        np.geomspace(1, 1e-5, unknowns),
        np.geomspace(1, 10**2.5, unknowns) * rng.choice([-1.0, 1.0], unknowns),
    )
    aim = b / inner[:, None]
    left = {k: (1 - inner) ** (8**k) for k in range(1, 7)}
    steps, polynomials = {k: math.ceil(8 ** (k / 2)) for k in left}, {}
    y, before = np.ones(size), np.ones(size)
    for t in range(max(steps.values())):  # Nesterov's method on the inner problem, eigenvalue by eigenvalue
        z = y + t / (t + 3) * (y - before)
        y, before = (1 - inner) * z, y
        polynomials[t + 1] = y

    def gradient(k, y, start):
        w = aim @ y
        return b.T @ (w + left[k] * (start - w)) - hessian * truth

    def random(k, y):
        seed = int.from_bytes(hashlib.blake2b(y.tobytes() + bytes([k]), digest_size=8).digest())
        return gradient(k, y, 0.2 * np.random.default_rng(seed).integers(0, 2, size) - 0.1)

    def loss(y):
        return float(hessian @ (y - truth) ** 2) / 2

    case = Case(
        "inner solver stopped early, random start",
        Hierarchy(random, lambda k: 8.0**k, range(1, 7)),
        np.zeros(unknowns),
        loss,
    )

    def accelerated(eps):
        def evaluate(k, y):
            w = aim @ y
            return b.T @ (w - polynomials[steps[k]] * w) - hessian * truth

        return rival(replace(case, h=Hierarchy(evaluate, lambda k: float(steps[k]), range(1, 7))), eps, True)[:2]

    return case, {"L-BFGS, inner solver accelerated": accelerated}


# --- methods, in hindsight -------------------------------------------------------------------------------------------


def telescoped(case: Case, eps: float, most: int = 1280) -> tuple[float, str, float]:
    """A telescope from the base level's solution, with or without momentum, tail average: price, setting, loss on other seeds over eps."""
    levels, cost = case.h.levels, np.array([case.h.cost(k) for k in case.h.levels])
    best = (*NEVER[:2], math.nan)
    near, _ = solved(partial(case.h.value, levels[1]), case.start, 60)
    far = np.linalg.norm(near - case.start) / np.linalg.norm(case.h.value(levels[1], case.start))
    near = [near, (near + case.start) / 2]
    squares = np.array([0.0] + [_increment(case, levels[i], near) for i in range(1, len(levels))])
    etas = [c / _curvature(case, levels[0], case.start) for c in (0.3, 1.0)] + [c * far for c in (0.003, 0.03, 0.3)]
    for base, ahead, eta, momentum in product((0, 1), (1, 2, 3), etas, (0.0, 0.9)):
        finest = base + ahead
        if finest >= len(levels):
            continue
        warm, made = solved(partial(case.h.value, levels[base]), case.start, 25)
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
                best = (price, said, other[2] / eps)
    return best


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
            g = value[levels[0]] + sum((value[levels[j + 1]] - value[levels[j]]) / p[j] for j in np.flatnonzero(drawn))
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
    return float(np.mean([np.sum((case.h.value(k, y) - case.h.value(k - 1, y)) ** 2) for y in points]))


def _curvature(case: Case, k: int, y: np.ndarray, reach: float = 0.1) -> float:
    """The largest curvature by powers of differences over a moderate distance."""
    v, size = np.random.default_rng(0).standard_normal(y.size), 1.0
    for _ in range(20):
        v = v / np.linalg.norm(v)
        v = (case.h.value(k, y + reach * v) - case.h.value(k, y)) / reach
        size = float(np.linalg.norm(v))
    return size


def searched() -> list[dict]:
    rows = []
    made = ((logistic(), {}, (1e-1, 1e-2)), (*deviations(), (1e-1, 1e-2)), (*stopped(), (1e-1, 1e-2)))
    for case, own, targets in made:
        for target in targets:
            began, eps = time.perf_counter(), target * case.loss(case.start)
            methods = {
                "L-BFGS, one level": rival(case, eps, False)[:2],
                "L-BFGS, coarse to fine": rival(case, eps, True)[:2],
                "corrected coarse model": corrected(case, eps)[:2],
            } | {name: method(eps) for name, method in own.items()}
            price, said, loss = telescoped(case, eps)
            row = {
                "problem": case.name,
                "target": target,
                "telescope": _shown(price),
                "with": said,
                "reported": None if math.isnan(loss) else round(loss, 2),
            }
            result, _ = told(case, eps)
            loss = float(f"{case.loss(result.y) / eps:.3g}")
            row["tool"] = {"price": _shown(result.cost), "loss": loss, "status": result.status}
            row["rivals"] = {name: [_shown(cost), words] for name, (cost, words) in methods.items()}
            rows.append(row)
            print(json.dumps(row), f"{time.perf_counter() - began:.0f} s", flush=True)
    return rows


def _shown(price: float) -> float | None:
    return float(f"{price:.3g}") if math.isfinite(price) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    about = {"command": "python -m mlgd.experiment.inhabitants --out book/data/inhabitants.json"}
    given.out.write_text(json.dumps({"about": about, "rows": searched()}, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
