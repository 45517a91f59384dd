"""Real hierarchies for the chapter on one's own: what the tool pays, and what a specialist's quasi-Newton method would in hindsight."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from types import SimpleNamespace

import numpy as np

from mlgd import Hierarchy, minimize
from mlgd.solvers import quasi_newton

from .heat import HeatSource


@dataclass(frozen=True, eq=False)
class Case:
    """A problem with its levels, start, and the loss above its minimum, which only the judge knows."""

    name: str
    h: Hierarchy
    start: np.ndarray
    loss: Callable[[np.ndarray], float]


def cube() -> Case:
    """|y|^2/4 plus the integral of log(1 + exp(x y)) over a cube, by left Riemann sums: kappa is below two."""

    def evaluate(k, y):
        x = np.indices((2**k,) * 3).reshape(3, -1).T / 2**k
        return y / 2 + x.T @ (1 / (1 + np.exp(-x @ y))) / len(x)

    nodes, weights = np.polynomial.legendre.leggauss(20)
    x = (np.stack(np.meshgrid(*[nodes] * 3), axis=-1).reshape(-1, 3) + 1) / 2
    w = np.prod(np.stack(np.meshgrid(*[weights] * 3), axis=-1).reshape(-1, 3), axis=1) / 8

    def value(y):
        return float(y @ y / 4 + w @ np.logaddexp(0, x @ y))

    best = np.zeros(3)
    for _ in range(30):  # Newton with the exact integral, for judging
        odds = 1 / (1 + np.exp(-x @ best))
        bend = np.eye(3) / 2 + (x.T * (w * odds * (1 - odds))) @ x
        best = best - np.linalg.solve(bend, best / 2 + x.T @ (w * odds))
    floor = value(best)
    h = Hierarchy(evaluate, lambda k: 8.0**k, range(1, 8))
    return Case("integral over a cube", h, np.zeros(3), lambda y: value(y) - floor)


def heat() -> Case:
    """The heat source: implicit Euler on 2^k intervals, errors that vary slowly."""
    source = HeatSource(alpha=1e-4)
    return Case("heat source", source.hierarchy(), np.zeros(16), source.loss_gap)


def deviations(judge: int = 6) -> Case:
    """Least absolute deviations: the mean of |f(x) y - g(x)| over a cube by midpoint sums; a level jumps with y.

    One level more than the ladder has judges.
    """

    def sample(k):
        x = (np.indices((2**k,) * 3).reshape(3, -1).T + 0.5) / 2**k
        columns = [np.ones(len(x)), *x.T, *(np.cos(np.pi * x * 2).T), x[:, 0] * x[:, 1]]
        target = np.abs(x @ [1.0, -0.7, 0.4] - 0.3) + 0.3 * np.sin(5 * x[:, 1] * x[:, 2])
        return np.stack(columns, axis=1), target

    ridge, kept = 1e-3, {}

    def data(k):
        if k not in kept:
            kept[k] = sample(k)
        return kept[k]

    def evaluate(k, y):
        f, g = data(k)
        return f.T @ np.sign(f @ y - g) / len(g) + ridge * y

    def value(y):
        f, g = data(judge)
        return float(np.abs(f @ y - g).mean() + ridge * y @ y / 2)

    h = Hierarchy(evaluate, lambda k: 8.0**k, range(1, judge))
    reached = SimpleNamespace(y=np.zeros(8))
    for k in range(2, judge + 1):
        reached = SimpleNamespace(y=reached.y)
        for _ in quasi_newton(partial(evaluate, k), reached, 60):
            pass
    floor = value(reached.y)
    return Case("least absolute deviations", h, np.zeros(8), lambda y: value(y) - floor)


def told(case: Case, eps: float) -> tuple:
    """The tool, told nothing but eps: result, seconds."""
    began = time.perf_counter()
    result = minimize(case.h, case.start, eps=eps, rng=0)
    return result, time.perf_counter() - began


def rival(case: Case, eps: float, coarse: bool) -> tuple[float, str, float]:
    """L-BFGS in hindsight, at one level or coarse to fine: price, setting, seconds of the best run."""
    best = (math.inf, "none reached the target", 0.0)
    levels = case.h.levels
    for last, per in product(range(len(levels)), (2, 3, 5, 8, 14, 25, 45)):
        for first in range(last + 1) if coarse else (last,):
            y, price, began = case.start, 0.0, time.perf_counter()
            for k in levels[first : last + 1]:
                memory = SimpleNamespace(y=y)
                for _ in quasi_newton(partial(case.h.value, k), memory, per):
                    pass
                y, price = memory.y, price + memory.t * case.h.cost(k)
                if price >= best[0]:
                    break
            else:
                seconds = time.perf_counter() - began
                if case.loss(y) <= eps:
                    best = (price, f"levels {levels[first]} to {levels[last]}, {per} evaluations each", seconds)
        if last and best[0] < case.h.cost(levels[last]):
            break
    return best
