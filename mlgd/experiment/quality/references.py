"""The least true loss of every problem, by solvers that share nothing with the library.

    python -m mlgd.experiment.quality.references

computes references.json anew: a point for each problem and seed. Where a problem is convex, the
point is its minimizer. Where it is not, it is the lowest minimum that any of a dozen descents
from the start ends in; there may be lower ones elsewhere, and a run may end in a higher one
without any sign of it (see `bench.Run.elsewhere`).
"""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from .problem import Instance, Pair
from .problems import instances

FILE = Path(__file__).with_name("references.json")
DIGITS = 10  # of a stored coordinate: the loss is off by the square of that
TIGHT = {"maxiter": 5000, "maxfun": 10000, "ftol": 1e-16, "gtol": 1e-11}


def guarded(f: Callable[[np.ndarray], Pair]) -> Callable[[np.ndarray], Pair]:
    """The same, where scipy can use it: outside of its domain, a high loss without a slope."""
    high = 0.0

    def inside(y: np.ndarray) -> Pair:
        nonlocal high
        value, gradient = f(y)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return high, np.zeros_like(y)
        high = max(high, value + 10 * abs(value) + 10)
        return value, gradient

    return inside


def descend(f: Callable[[np.ndarray], Pair], y: np.ndarray, method="L-BFGS-B", **options):
    """Where a method of scipy ends from y."""
    return minimize(guarded(f), y, jac=True, method=method, options=options).x


def hessian(f: Callable[[np.ndarray], Pair], y: np.ndarray) -> np.ndarray:
    """Central differences of a gradient."""
    step = 1e-5 * max(1.0, np.abs(y).max())
    columns = [f(y + e)[1] - f(y - e)[1] for e in step * np.eye(y.size)]
    square = np.array(columns) / (2 * step)
    return (square + square.T) / 2


def newton(f: Callable[[np.ndarray], Pair], y: np.ndarray) -> np.ndarray:
    """Newton's steps from near a minimum, while the gradient gets smaller and the loss no larger.

    Directions of no curvature are left alone.
    """
    value, gradient = f(y)
    for _ in range(10):
        eigenvalues, vectors = np.linalg.eigh(hessian(f, y))
        bends = np.abs(eigenvalues) > 1e-9 * np.abs(eigenvalues).max()
        along = vectors[:, bends]
        after = y - along @ (along.T @ gradient / np.abs(eigenvalues[bends]))
        lower, slope = f(after)
        rounding = 1e-14 * abs(value)
        if not (
            lower <= value + rounding and np.linalg.norm(slope) < np.linalg.norm(gradient)
        ):
            break
        y, value, gradient = after, lower, slope
    return y


def descents(problem: Instance) -> list[np.ndarray]:
    """Ends of descents from the start: on the truth, and level by level in several paces."""
    start = problem.start
    with np.errstate(all="ignore"):
        ends = [descend(problem.truth, start, maxcor=m, **TIGHT) for m in (3, 10, 30)]
        ends.append(descend(problem.truth, start, "CG", maxiter=2000))
        ends.append(descend(problem.truth, start, "BFGS", maxiter=1000))
        if problem.convex:
            return ends
        for steps in (3, 10, 100):
            y = start
            for k in problem.levels:
                y = descend(lambda z, k=k: problem.pair(k, z), y, maxiter=steps)
            ends.append(descend(problem.truth, y, **TIGHT))
    return ends


def minimizer(problem: Instance) -> np.ndarray:
    """The lowest of all descents, polished by Newton's method."""
    lowest = min(descents(problem), key=problem.loss)
    with np.errstate(all="ignore"):
        return newton(problem.truth, descend(problem.truth, lowest, **TIGHT))


@cache
def stored() -> dict[str, list[list[float]]]:
    """{name: a point for each seed}."""
    return json.loads(FILE.read_text("utf-8"))


@cache
def reference(problem: Instance) -> float:
    """The least true loss; of a data seed that is not stored, found now."""
    points = stored().get(problem.name, [])
    if problem.seed < len(points):
        return problem.loss(np.array(points[problem.seed]))
    return problem.loss(minimizer(problem))


def gap(problem: Instance, y: np.ndarray) -> float:
    """How far the true loss at y is above the least one; infinite where it overflows."""
    off = problem.loss(y) - reference(problem)
    return off if np.isfinite(off) else np.inf


def targets(problem: Instance) -> list[float]:
    """The targets, from loose to tight: shares of the gap at the start."""
    return [share * gap(problem, problem.start) for share in problem.shares]


def main() -> None:
    """Compute all references anew."""
    found: dict[str, list[list[float]]] = {}
    for problem in instances():
        point = [float(f"{x:.{DIGITS}g}") for x in minimizer(problem)]
        found.setdefault(problem.name, []).append(point)
        print(problem.name, problem.seed, problem.loss(np.array(point)))
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(rows)}" for name, rows in found.items()
    )
    FILE.write_text(f"{{\n{lines}\n}}\n", "utf-8")


if __name__ == "__main__":
    main()
