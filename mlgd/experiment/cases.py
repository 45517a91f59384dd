"""Real hierarchies for the chapter on one's own: what the tool pays, and what a specialist's methods would in hindsight.

    python -m mlgd.experiment.cases --out book/data/cases.json

Seconds are wall-clock, the median of several runs in one process on one thread; those of the processor stand beside them.
"""

import argparse
import json
import math
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from mlgd import Hierarchy, minimize
from mlgd.solvers import quasi_newton

from .diffusion import SIZE, TRUTH, Identification
from .heat import HeatSource


@dataclass(frozen=True, eq=False)
class Case:
    """A problem with its levels, start, and the loss above its minimum, which only the judge knows."""

    name: str
    h: Hierarchy
    start: np.ndarray
    loss: Callable[[np.ndarray], float]
    work: Callable[[int, np.ndarray], np.ndarray] | None = (
        None  # the gradient computed the long way, where h takes a short cut
    )


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
    reached = np.zeros(8)
    for k in range(2, judge + 1):
        reached, _ = solved(partial(evaluate, k), reached, 60)
    floor = value(reached)
    return Case("least absolute deviations", h, np.zeros(8), lambda y: value(y) - floor)


def identification(seed: int = 5) -> Case:
    """Where a substance decays while it diffuses: a nonlinear least-squares problem whose levels solve a parabolic equation."""
    task = Identification(seed)
    reached = solved(
        partial(task.gradient, TRUTH),
        solved(partial(task.gradient, TRUTH - 2), np.zeros(SIZE), 200)[0],
        60,
    )[0]
    floor = task.loss(reached)
    return Case(
        "decay of a substance", task.hierarchy, np.zeros(SIZE), lambda q: task.loss(q) - floor
    )


def extrapolated(case: Case) -> Case:
    """Levels 2 A_k - A_{k-1}: an error of first order that is alike at neighbouring levels drops out, at the price of both."""
    h = case.h
    levels = Hierarchy(
        lambda k, y: 2 * h.value(k, y) - h.value(k - 1, y),
        lambda k: h.cost(k) + h.cost(k - 1),
        h.levels[1:],
    )
    return replace(case, h=levels)


# --- methods: price and setting of the best run, and the run itself ----------------------------------------------------

NEVER = (math.inf, "never below the target", None)
EVALUATIONS = (2, 3, 5, 8, 14, 25, 45, 80, 150)


def solved(gradient, y, evaluations) -> tuple[np.ndarray, int]:
    memory = SimpleNamespace(y=y)
    for _ in quasi_newton(gradient, memory, evaluations):
        pass
    return memory.y, memory.t


def climbed(
    case: Case, levels, per: int, most: float = math.inf
) -> tuple[np.ndarray, float] | None:
    """L-BFGS level by level: point and price; None once it has cost as much as `most`."""
    y, price = case.start, 0.0
    for k in levels:
        left = (most - price) / case.h.cost(k)
        y, made = solved(partial(case.h.value, k), y, int(min(per, left + 1)))
        price += made * case.h.cost(k)
        if price >= most:
            return None
    return y, price


def tilted(
    case: Case, base: int, rise, per: int, most: float = math.inf
) -> tuple[np.ndarray, float] | None:
    """The model of the base level tilted by a gradient of each level in turn, solved by L-BFGS."""
    y, coarse, price = case.start, partial(case.h.value, base), sum(map(case.h.cost, rise))
    for k in rise:
        if price >= most:
            return None
        tilt = case.h.value(k, y) - coarse(y)
        y, made = solved(lambda x, tilt=tilt: coarse(x) + tilt, y, per)
        price += (made + 1) * case.h.cost(base)
    return (y, price) if price < most else None


def rival(case: Case, eps: float, coarse: bool) -> tuple[float, str, Callable | None]:
    """L-BFGS in hindsight, at one level or coarse to fine."""
    best, levels = NEVER, case.h.levels
    for last, per in product(range(len(levels)), EVALUATIONS):
        for first in range(last + 1) if coarse else (last,):
            run = partial(climbed, levels=levels[first : last + 1], per=per)
            found = run(case, most=best[0])
            if found and case.loss(found[0]) <= eps:
                best = (
                    found[1],
                    f"levels {levels[first]} to {levels[last]}, {per} evaluations each",
                    run,
                )
        if last and best[0] < case.h.cost(levels[last]):
            break
    return best


def extrapolating(case: Case, eps: float) -> tuple[float, str, Callable | None]:
    price, said, run = rival(extrapolated(case), eps, True)
    return price, said, run and (lambda case: run(extrapolated(case)))


def corrected(case: Case, eps: float) -> tuple[float, str, Callable | None]:
    """The coarse model tilted by a fine gradient, and again; in hindsight."""
    best, levels = NEVER, case.h.levels
    for last, base, per, again, gap in product(
        range(len(levels)), range(4), EVALUATIONS[1:], (1, 2, 3), (1, 2)
    ):
        rise = [levels[i] for i in range(last, base, -gap)][::-1] + [levels[last]] * (again - 1)
        if base >= last:
            continue
        run = partial(tilted, base=levels[base], rise=rise, per=per)
        found = run(case, most=best[0])
        if found and case.loss(found[0]) <= eps:
            said = f"level {levels[base]} under {rise[0]} to {rise[-1]}, {per} evaluations each"
            best = (found[1], said, run)
    return best


def timed(run: Callable, repeats: int = 7, enough: float = 20.0) -> dict[str, float]:
    """Medians of wall-clock and processor seconds over the repeats, or over as many as begin before `enough` seconds have passed."""
    walls, processors, began = [], [], time.perf_counter()
    while len(walls) < repeats and (not walls or time.perf_counter() - began < enough):
        wall, processor = time.perf_counter(), time.process_time()
        run()
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    return {
        "seconds": float(f"{statistics.median(walls):.2g}"),
        "processor": float(f"{statistics.median(processors):.2g}"),
    }


def at_work(case: Case) -> Case:
    """The same case, whose levels take the time that their price stands for."""
    if case.work is None:
        return case

    def evaluate(k, y):
        case.work(k, y)
        return case.h.value(k, y)

    return replace(case, h=Hierarchy(evaluate, case.h.cost, case.h.levels))


def tool(case: Case, eps: float) -> dict:
    """The tool, told nothing but eps."""
    result = minimize(case.h, case.start, eps=eps, rng=0)
    worked = at_work(case)
    return {
        "price": result.cost,
        "loss": float(f"{case.loss(result.y) / eps:.3g}"),
        "status": result.status,
        "finest": max(k for k, paid in result.cost_by_level.items() if paid),
        **timed(lambda: minimize(worked.h, worked.start, eps=eps, rng=0)),
    }


def row(case: Case, price: float, said: str, run: Callable | None) -> dict:
    """A rival's price and setting as they are stored, and its seconds."""
    if run is None:
        return {"price": None, "with": said}
    return {"price": price, "with": said, **timed(partial(run, at_work(case)))}


def machine() -> str:
    return f"{os.cpu_count()} cores, load {os.getloadavg()[1]:.1f}"


RIVALS = {
    "L-BFGS, one level": partial(rival, coarse=False),
    "L-BFGS, coarse to fine": partial(rival, coarse=True),
    "L-BFGS on extrapolated levels": extrapolating,
    "corrected coarse model": corrected,
}
CASES = {
    "loose": (cube, 0.2),  # the coarsest level is good enough
    "cube": (cube, 1e-3),
    "heat": (heat, 1e-4),
    "decay": (identification, 1e-2),
    "deviations": (deviations, 1e-2),
}


def raced(name: str) -> dict:
    """One problem: what the tool did with nothing but a target, beside the rivals in hindsight; prices in the best rival's."""
    make, target = CASES[name]
    case = make()
    eps = target * case.loss(case.start)
    return {
        "case": name,
        "name": case.name,
        "target": target,
        "tool": tool(case, eps),
        "rivals": {m: row(case, *method(case, eps)) for m, method in RIVALS.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    given, rows = parser.parse_args(), []
    for name in CASES:
        rows.append(raced(name))
        print(json.dumps(rows[-1]), flush=True)
    about = {
        "command": "python -m mlgd.experiment.cases --out book/data/cases.json",
        "machine": machine(),
    }
    given.out.write_text(
        json.dumps({"about": about, "cases": rows}, indent=0) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
