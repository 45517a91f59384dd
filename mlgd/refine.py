"""The deterministic rival: a solver on a coarse level, then on finer ones, each from where the one before ended."""

import math

import numpy as np

from .problems import Problem
from .schemes import Budget, NotApplicable, Plan, Stage
from .searching import Ladder, refuse
from .theorems import already

OVER_CONJUGATE = 1.3  # evaluations of the library's quasi-Newton method over steps of conjugate gradients, as measured
EIGENVALUES = 96


def refined_plan(problem: Problem, eps: float, ladder: Ladder, promise: str, seen=None) -> Plan:
    """Nesterov's method by its worst case on quadratics, or a quasi-Newton method by the measures of this instance."""
    if promise == "proved":
        raise NotApplicable("'refine' is planned with promise='quadratic' or 'measured'")
    if promise == "quadratic":
        counts, stages, budget, said = _worst(problem, eps, ladder)
    else:
        counts, stages, budget, said = _seen(problem, eps, ladder, seen)
    price = [float(ladder.h.cost(s.levels[0])) for s in stages]
    return Plan(
        problem=problem,
        eps=eps,
        method="refine",
        promise=promise,
        eta=1 / problem.beta,
        stages=stages,
        averaging="last",
        budget=budget,
        expected_cost=sum(n * c for n, c in zip(counts, price, strict=True)),
        cost_bound=sum(s.steps * c for s, c in zip(stages, price, strict=True)),
        bound_is="never",
        guarantee=said,
        accuracies=ladder.declared,
        warnings=tuple(already(problem, eps)),
    )


def _stage(ladder: Ladder, level: int, steps: float, solver: str, tolerance: float | None = None) -> Stage:
    k = ladder.h.levels[level]
    return Stage(
        int(steps), float(ladder.accuracy[level]), 0.0, levels=(k,), probabilities=(1.0,), solver=solver, tolerance=tolerance
    )  # fmt: skip


def nesterov_responses(beta: float, mu: float, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(eigenvalues, factors P_n of the starting error, sums over the last n errors of the largest sqrt(lambda) |g|).

    The method is linear on a quadratic: x_n = P_n(lambda) x_0 - sum of g_j(lambda) e_{n-j}, the same g whenever the error is made.
    """
    lam = np.geomspace(mu, beta, EIGENVALUES) if mu < beta else np.array([beta])
    ratio = math.sqrt(mu / beta)
    momentum, shrink = (1 - ratio) / (1 + ratio), 1 - lam / beta
    x, z = np.ones(lam.size), np.ones(lam.size)  # from the start
    g, v = np.zeros(lam.size), np.full(lam.size, 1 / beta)  # from one error: g_1 = 1/beta
    factors, sums = np.empty((steps, lam.size)), np.empty(steps)
    total = 0.0
    for n in range(steps):
        new = shrink * z
        x, z = new, new + momentum * (new - x)
        factors[n] = x
        response = v if n == 0 else shrink * v
        g, v = response, response + momentum * (response - (g if n else 0.0))
        total += float((np.sqrt(lam) * np.abs(g)).max())
        sums[n] = total
    return lam, factors, sums


def _worst(problem: Problem, eps: float, ladder: Ladder):
    """sqrt(2 loss) <= max sqrt(lambda) |P| d0 + sum over levels of delta_k S |P_n|^(levels after k), errors of any kind."""
    if not problem.mu:
        raise NotApplicable("'refine' with promise='quadratic' needs mu > 0")
    delta, cost, d0 = ladder.accuracy, ladder.cost, problem.d0
    root = math.sqrt(problem.beta / problem.mu)
    reach = math.sqrt(2 * eps)
    most = math.ceil(root * (2 + math.log1p(problem.beta * d0**2 / eps))) + 4
    lam, factors, sums = nesterov_responses(problem.beta, problem.mu, most)
    counts = np.unique(np.ceil(np.geomspace(1, most, 48)).astype(int)) - 1
    size = np.abs(factors[counts])
    largest = size.max(axis=1)
    best = (math.inf, None)
    for finest in range(len(delta)):
        for first in range(finest + 1):
            after = finest - np.arange(first + 1, finest + 1)
            late = (delta[first + 1 : finest + 1] * largest[:, None] ** after).sum(axis=1) * sums[
                counts
            ]  # per count of n
            early = delta[first] * largest ** (finest - first)  # times the sum of the first stage
            rest = cost[first + 1 : finest + 1].sum()
            for i, n in enumerate(counts if first < finest else counts[:1]):
                left = np.sqrt(lam) * (size[i] ** (finest - first) if first < finest else 1.0)
                start = (left * size).max(axis=1) * d0  # by the count of the first stage
                bound = (
                    start
                    + (early[i] if first < finest else delta[first]) * sums[counts]
                    + (late[i] if first < finest else 0)
                )
                good = np.flatnonzero(bound <= reach)
                if good.size:
                    m = int(good[0])
                    price = (counts[m] + 1) * cost[first] + (n + 1) * rest
                    if price < best[0]:
                        best = (
                            float(price),
                            (first, finest, int(counts[m]) + 1, int(n) + 1, float(start[m]), float(bound[m])),
                        )
    if best[1] is None:
        raise refuse(problem, eps, ladder, "quadratic", delta[-1] ** 2 / (2 * problem.mu))
    first, finest, m, n, start, bound = best[1]
    counts = [m] + [n] * (finest - first)
    stages = tuple(_stage(ladder, first + i, count, "nesterov") for i, count in enumerate(counts))
    horizon, bias = start**2 / 2, (bound - start) ** 2 / 2
    budget = Budget(horizon, bias, 0.0, bound**2 / 2 - horizon - bias)
    return counts, stages, budget, "Nesterov's method coarse to fine, the worst case over spectra in [mu, beta]"


def _seen(problem: Problem, eps: float, ladder: Ladder, seen):
    """Conjugate gradients on the measured quadratures, times what a quasi-Newton method takes more."""
    floors = [float((w / x).sum() / 2) for x, w in seen.biases]
    curves: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def curve(measure):
        nodes, weights = measure
        total = float(weights.sum())
        if id(nodes) not in curves:  # levels that were not measured share their nodes with one that was
            curves[id(nodes)] = conjugate_curve(nodes, weights / total)
        loss, norm = curves[id(nodes)]
        return loss * total, norm * math.sqrt(total)

    best = (math.inf, None)
    for finest in [k for k, f in enumerate(floors) if f < eps][:4]:
        for first in range(finest + 1):
            for patience in (0.3, 1.0, 3.0) if first < finest else (1.0,):
                counts = []
                for k in range(first, finest + 1):
                    goal = eps - floors[finest] if k == finest else patience * floors[k]
                    counts.append(_reached(*curve(seen.start if k == first else seen.steps[k]), goal))
                price = sum(
                    math.ceil(OVER_CONJUGATE * n + 1) * ladder.cost[first + i] for i, (n, _) in enumerate(counts)
                )
                if price < best[0]:
                    best = (price, (first, counts, floors[finest]))
    if best[1] is None:
        raise refuse(problem, eps, ladder, "measured", floors[-1])
    first, found, floor = best[1]
    stages = tuple(  # the cap is seldom needed: a stage ends at its tolerance
        _stage(ladder, first + i, 2 * n + 2, "quasi-newton", norm) for i, (n, norm) in enumerate(found)
    )
    counts = [OVER_CONJUGATE * n + 1 for n, _ in found]
    return (
        counts,
        stages,
        Budget(eps - floor, floor, 0.0),
        "conjugate gradients on the measured spectrum, coarse to fine",
    )


def conjugate_steps(nodes: np.ndarray, weights: np.ndarray, goal: float) -> tuple[int, float]:
    """(steps, gradient norm reached) of conjugate gradients until the loss above the minimum is at most `goal`."""
    return _reached(*conjugate_curve(nodes, weights), goal)


def _reached(loss: np.ndarray, norm: np.ndarray, goal: float) -> tuple[int, float]:
    steps = int(np.argmax(loss <= goal)) if (loss <= goal).any() else loss.size - 1
    return steps, float(norm[steps])


def conjugate_curve(nodes: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The loss above the minimum and the gradient's norm after 0, 1, 2, ... steps of conjugate gradients.

    The gradient starts with these weights in the eigenvalues; the loss is half the integral of the gradient over lambda.
    """
    r = np.sqrt(np.maximum(weights, 0.0))
    p, rows = r.copy(), []
    for _ in range(nodes.size + 1):
        size = float(r @ r)
        rows.append((float((r**2 / nodes).sum()) / 2, np.sqrt(size)))
        if rows[-1][0] <= 1e-12 * rows[0][0]:
            break
        image = nodes * p
        r = r - size / float(p @ image) * image
        p = r + float(r @ r) / size * p
    loss, norm = np.array(rows).T
    return np.minimum.accumulate(loss), norm
