"""The deterministic rival: a solver on a coarse level, then on finer ones, each from where the one before ended."""

import math

import numpy as np

from .schemes import Budget, NotApplicable, Plan, Problem
from .searching import Ladder, dearest
from .seen import Seen

OVER_CONJUGATE = 1.3  # evaluations of the library's quasi-Newton method over steps of conjugate gradients, as measured
EIGENVALUES = 96


def refined_plan(problem: Problem, eps: float, ladder: Ladder, promise: str) -> Plan:
    """Nesterov's method by its worst case on quadratics, or a quasi-Newton method by the measures of this instance."""
    if promise == "proved":
        raise NotApplicable("'refine' is planned with promise='quadratic' or 'measured'")
    counts, stages, budget, said = (_worst if promise == "quadratic" else _seen)(problem, eps, ladder)
    expected = float(sum(n * ladder.h.cost(s.levels[0]) for n, s in zip(counts, stages, strict=True)))
    most = {"expected_cost": expected, "cost_bound": dearest(ladder.h, stages), "bound_is": "never"}
    said = {"eta": 1 / problem.beta, "averaging": "last", "budget": budget, "guarantee": said}
    return ladder.plan(problem, eps, "refine", promise, stages, **said, **most)


def nesterov_responses(beta: float, mu: float, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(eigenvalues, factors P_n of the starting error, sums over the last n errors of the largest sqrt(lambda) |g|).

    The method is linear on a quadratic: x_n = P_n(lambda) x_0 - sum of g_j(lambda) e_{n-j}, the same g whenever the error is made.
    """
    lam = np.geomspace(mu, beta, EIGENVALUES) if mu < beta else np.array([beta])
    ratio = math.sqrt(mu / beta)
    momentum, shrink = (1 - ratio) / (1 + ratio), 1 - lam / beta
    x = z = np.ones(lam.size)  # from the start
    g, v = np.zeros(lam.size), np.full(lam.size, 1 / beta)  # from one error: g_1 = 1/beta
    factors, sizes = np.empty((steps, lam.size)), np.empty(steps)
    for n in range(steps):
        new = shrink * z
        factors[n], z = new, new + momentum * (new - x)
        x = new
        new = shrink * v if n else v
        g, v = new, new + momentum * (new - g)
        sizes[n] = (np.sqrt(lam) * np.abs(g)).max()
    return lam, factors, np.cumsum(sizes)


def _worst(problem: Problem, eps: float, ladder: Ladder):
    """sqrt(2 loss) <= max sqrt(lambda) |P| d0 + sum over levels of delta_k S |P_n|^(levels after k), errors of any kind."""
    if not problem.mu:
        raise NotApplicable("'refine' with promise='quadratic' needs mu > 0")
    delta, cost, d0 = ladder.accuracy, ladder.cost, problem.d0
    most = math.ceil(math.sqrt(problem.beta / problem.mu) * (2 + math.log1p(problem.beta * d0**2 / eps))) + 4
    lam, factors, sums = nesterov_responses(problem.beta, problem.mu, most)
    counts = np.unique(np.ceil(np.geomspace(1, most, 48)).astype(int))
    size, sums = np.abs(factors[counts - 1]), sums[counts - 1]
    best, found = math.inf, None
    for finest in range(len(delta)):
        for first in range(finest + 1):
            after = finest - np.arange(first + 1, finest + 1)
            rest = cost[first + 1 : finest + 1].sum()
            for i, n in enumerate(counts if first < finest else counts[:1]):  # of every later stage
                largest = size[i].max()
                late = (delta[first + 1 : finest + 1] * largest**after).sum() * sums[i]
                left = np.sqrt(lam) * size[i] ** (finest - first)
                start = (left * size).max(axis=1) * d0  # by the count of the first stage
                bound = start + delta[first] * largest ** (finest - first) * sums + late
                good = np.flatnonzero(bound <= math.sqrt(2 * eps))[:1]
                price = (counts[good] * cost[first] + n * rest).min(initial=math.inf)
                if price < best:
                    m = good[0]
                    best, found = price, (first, [counts[m]] + [n] * (finest - first), start[m], bound[m])
    if found is None:
        raise ladder.refuse(eps, "quadratic", delta[-1] ** 2 / (2 * problem.mu))
    first, counts, start, bound = found
    stages = [ladder.stage(n, (first + i,), (1.0,), solver="nesterov") for i, n in enumerate(counts)]
    horizon, bias = float(start) ** 2 / 2, float(bound - start) ** 2 / 2
    budget = Budget(horizon, bias, 0.0, float(bound) ** 2 / 2 - horizon - bias)
    return counts, stages, budget, "Nesterov's method coarse to fine, the worst case over spectra in [mu, beta]"


def _seen(problem: Problem, eps: float, ladder: Ladder):
    """Conjugate gradients on the measured quadratures, times what a quasi-Newton method takes more."""
    seen, known = Seen.of(problem, ladder), problem.measures
    change, least = ladder.change[np.array(ladder.h.levels) > known.level].sum(), known.gradient.nodes.min()
    if change > least:
        raise NotApplicable(
            f"levels after {known.level} change the curvature by {change:.2g}, more than the smallest eigenvalue that was "
            f"seen, {least:.2g}: 'refine' can't be planned by that level's; let estimate measure a finer one (budget=)"
        )
    floors = bias_losses(seen)
    curves: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def curve(measure):
        nodes, weights = measure
        total = float(weights.sum())
        if id(nodes) not in curves:  # levels that were not measured share their nodes with one that was
            curves[id(nodes)] = conjugate_curve(nodes, weights / total)
        loss, norm = curves[id(nodes)]
        return loss * total, norm * math.sqrt(total)

    best, found = math.inf, None
    for finest in [k for k, f in enumerate(floors) if f < eps][:4]:
        for first in range(finest + 1):
            for patience in (0.3, 1.0, 3.0) if first < finest else (1.0,):
                goals = [patience * f for f in floors[first:finest]] + [eps - floors[finest]]
                measures = [seen.start, *seen.steps[first + 1 : finest + 1]]
                counts = [_reached(*curve(m), goal) for m, goal in zip(measures, goals, strict=True)]
                evaluations = [math.ceil(OVER_CONJUGATE * n + 1) for n, _ in counts]
                price = sum(n * c for n, c in zip(evaluations, ladder.cost[first:], strict=False))
                if price < best:
                    best, found = price, (first, counts, floors[finest])
    if found is None:
        raise ladder.refuse(eps, "measured", floors[-1])
    first, counts, floor = found
    solver = {"solver": "quasi-newton"}  # the cap is seldom needed: a stage ends at its tolerance
    stages = [
        ladder.stage(2 * n + 2, (first + i,), (1.0,), tolerance=norm, **solver) for i, (n, norm) in enumerate(counts)
    ]
    said = "conjugate gradients on the measured spectrum, coarse to fine"
    return [OVER_CONJUGATE * n + 1 for n, _ in counts], stages, Budget(eps - floor, floor, 0.0), said


def bias_losses(seen: Seen) -> list[float]:
    """What each level's bias costs in the end."""
    return [float((w / x).sum() / 2) for x, w in seen.biases]


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
