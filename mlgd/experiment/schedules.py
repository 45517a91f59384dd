"""Schedules at their worst: exact moments and prices of scheduled plans and of the jump process on one line, both readings."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from mlgd import Hierarchy, Problem, Schedule, Telescope, flow, plan
from mlgd import formulas as F
from mlgd.examples import biased
from mlgd.experiment.exact import flow_loss
from mlgd.experiment.exact import mean_loss as plan_loss
from mlgd.jumps import exponential_schedule, proposition_schedule


def problems(count: int, rng, smallest: float = 2.01) -> list[tuple[Problem, float]]:
    """Random strongly convex problems with a target each, from 1e-8 mu d0^2 to beta d0^2; the first sixteen are the corners."""
    rng = np.random.default_rng(rng)
    corners = [*product((-3.0, 3.0), (0.0, 8.0), (0.0, 1.0), (smallest, 6.0))]
    inside = [
        (rng.uniform(-3, 3), rng.uniform(0, 8), rng.uniform(), rng.uniform(smallest, 6))
        for _ in range(count)
    ]
    found = []
    for c, kappa, place, gamma in (corners + inside)[:count]:
        beta, d0 = 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-1, 1)
        eps = 10 ** (place * (8 + kappa) - 8 - kappa) * beta * d0**2
        found.append((Problem(beta=beta, mu=beta / 10**kappa, d0=d0, gamma=gamma, c=10**c), eps))
    return found


# --- discrete time ------------------------------------------------------------------------------------------------


def every_accuracy(problem: Problem, eps: float) -> Problem:
    """The problem with every accuracy on sale: its ladder begins where the oldest block draws a level with certainty."""
    oldest = plan(problem, eps, "scheduled").stages[0]
    numbers = {"delta": oldest.delta, "sigma": oldest.sigma, "gamma": problem.gamma}
    return replace(
        problem,
        first=math.floor(min(F.value(F.START["HTMC"], **numbers), -math.log2(oldest.delta))),
    )


# --- the jump process ----------------------------------------------------------------------------------------------


def raised(
    h: Hierarchy,
    problem: Problem,
    eps: float,
    horizon: float,
    kink: float = 0.0,
    relax: float = 2.0,
) -> Schedule:
    """The schedule of the book's theorem; the coarsest level fires at max(4 beta, R r_0), R = 1 where the loss is smooth."""
    factor = F.value(F.ROUGH, first=h.levels[0], kink=kink)
    schedule = proposition_schedule(
        h, problem.mu, eps, problem.gamma, horizon, 4 * problem.beta / factor, relax
    )
    return _times(schedule, factor)


def flat(
    h: Hierarchy, problem: Problem, eps: float, kink: float = 0.0, lax: float = 1.0
) -> Schedule:
    """The same without strong convexity: constant accuracies (times `lax`), equal weights."""
    factor, numbers = F.value(F.ROUGH, first=h.levels[0], kink=kink), {"d0": problem.d0, "eps": eps}
    delta, nu2 = (F.value(F.CONVEX_FLOW[name], **numbers) for name in ("delta", "nu2"))
    schedule = exponential_schedule(
        h,
        (lax * delta, 0.0),
        (lax**2 * nu2, 0.0),
        problem.gamma,
        4 * problem.d0**2 / eps,
        coarsest=4 * problem.beta / factor,
    )
    return _times(schedule, factor)


def _times(schedule: Schedule, factor: float) -> Schedule:
    def rates(times):
        out = schedule.rates(times)
        out[0] *= factor
        return out

    return replace(schedule, rates=rates)


@dataclass(frozen=True)
class Setting:
    """A jump process as a theorem sets it: the ladder's prices, the rates, and for how long."""

    h: Hierarchy
    schedule: Schedule
    horizon: float

    @property
    def price(self) -> float:
        return self.schedule.expected_cost(self.h, self.horizon)


def setting(
    problem: Problem,
    eps: float,
    sold: bool = False,
    kink: float = 0.0,
    relax: float = 2.0,
    longer: float = 1.0,
) -> Setting:
    """The theorem's process; mu = 0: constant accuracies. The horizon is `longer` times the shortest.

    `sold`: every accuracy is on sale, and the ladder begins where it pays for smoothness and kink. delta^2 and nu^2 are the
    printed ones over `relax`.
    """
    strong = problem.mu > 0
    allowed, share = (F.SCHEDULE, 2.0) if strong else (F.CONVEX_FLOW, 1.0)
    numbers = {"mu": problem.mu, "d0": problem.d0, "eps": eps}
    horizon = longer * F.value(F.FLOW_HORIZON if strong else allowed["horizon"], **numbers)
    delta, nu2 = (
        F.value(allowed[name], horizon=horizon, t=0.0, **numbers) for name in ("delta", "nu2")
    )
    if (
        sold
    ):  # the scheduled rate of the first level is at least 4 beta from the start on, and R = 1
        square = max(delta**2 / share, 4 * problem.beta * nu2 / (9 * share), 2 * kink**2 / 7)
        problem = replace(problem, first=math.floor(-math.log2(square) / 2))
    h = problem.prices(
        F.value(allowed["delta"], t=horizon, horizon=horizon, **numbers)
        / math.sqrt(relax if strong else 1.0)
    )
    if strong:
        return Setting(h, raised(h, problem, eps, horizon, kink, relax), horizon)
    return Setting(h, flat(h, problem, eps, kink, math.sqrt(2 / relax)), horizon)


def flow_bill(
    problem: Problem, eps: float, sold: bool = False, kink: float = 0.0
) -> tuple[float, float, float]:
    """The exact price of the theorem's jump process, its bound with every accuracy on sale, and what the coarsest level adds."""
    case, rough = (
        setting(problem, eps, sold, kink),
        F.COARSE_ROUGH if problem.mu else F.COARSE_CONVEX_ROUGH,
    )
    coarse = rough if kink or not problem.mu else F.COARSE_FLOW
    numbers = {name: getattr(problem, name) for name in ("beta", "mu", "gamma", "c", "d0")}
    numbers |= {"eps": eps, "horizon": case.horizon, "kink": kink, "first": case.h.levels[0]}
    main = F.EXECUTED_FLOW if problem.mu else F.EXECUTED_CONVEX_FLOW
    return case.price, F.value(main, **numbers), F.value(coarse, **numbers)


def plan_bill(problem: Problem, eps: float) -> tuple[float, float, float]:
    """The expected price of a scheduled plan, its bound with every accuracy on sale, and what the coarsest level adds."""
    bill = plan(problem, eps, "scheduled")
    numbers = {name: getattr(problem, name) for name in ("beta", "mu", "gamma", "c", "d0", "first")}
    numbers |= {"eps": eps, "eta": bill.eta}
    return (
        bill.expected_cost,
        F.value(F.EXECUTED_DISCRETE, **numbers),
        F.value(F.COARSE_DISCRETE, **numbers),
    )


def over(bills: list[tuple[float, float, float]], share: float) -> float:
    """The largest price over a bound that has this share of what the coarsest level adds."""
    return max(price / (main + share * coarse) for price, main, coarse in bills)


def reached(problem: Problem, eps: float, lax: float = 1.0) -> float:
    """The largest exact loss over eps of the scheduled plan, its tolerances multiplied by `lax`."""
    bill = plan(problem, eps, "scheduled")
    stages = tuple(replace(x, delta=lax * x.delta, sigma=lax * x.sigma) for x in bill.stages)
    return max(plan_loss(replace(bill, stages=stages), q) for q in (problem.mu, problem.beta)) / eps


def flowed(problem: Problem, eps: float, lax: float = 1.0, sold: bool = False) -> float:
    """The same for the jump process; mu = 0: on parabolas of curvature beta, beta/1000 and beta/10^6."""
    case = setting(problem, eps, sold, relax=2 / lax**2)
    curvatures = (
        (problem.mu, problem.beta) if problem.mu else problem.beta / np.array([1.0, 1e3, 1e6])
    )
    return max(flow_loss(case.schedule, problem, case.horizon, q) for q in curvatures) / eps


# --- a kink that matters ------------------------------------------------------------------------------------------

LASSO = Problem(
    beta=2.0, mu=1.0, d0=0.5, gamma=3.0, c=0.13
)  # 1/2 |y - p|^2 + 3 |y|_1: beta stands for B = 2
KINK = math.sqrt(8 * 3.0**2 * 4)


def lasso_gaps(
    count: int, rng, kink: float, begin: int, eps: float = 0.25
) -> tuple[np.ndarray, float]:
    """Losses above the minimum over eps of runs on the LASSO, and their expected price.

    The ladder begins at the level `begin`; the coarsest level fires as often as a kink of this size asks. Two entries of the
    solution are zero, and the start is half a unit away in a third.
    """
    center, penalty = np.array([48.0, 2.4, -36.0, 1.2]), 3.0
    solution = np.sign(center) * np.maximum(np.abs(center) - penalty, 0.0)
    smooth = biased(lambda y: y - center, LASSO.gamma, LASSO.c, range(begin, 9), alternate=True)
    h = Hierarchy(
        lambda k, y: smooth.evaluate(k, y) + penalty * np.sign(y), smooth.cost, smooth.levels
    )
    horizon = F.value(F.FLOW_HORIZON, mu=1.0, d0=LASSO.d0, eps=eps)
    schedule = raised(h, LASSO, eps, horizon, kink)
    streams = np.random.default_rng(rng).spawn(count)
    ends = np.array(
        [flow(h, solution + np.eye(4)[0] / 2, schedule, horizon, stream).y for stream in streams]
    )
    losses = ((ends - center) ** 2).sum(axis=1) / 2 + penalty * np.abs(ends).sum(axis=1)
    least = ((solution - center) ** 2).sum() / 2 + penalty * np.abs(solution).sum()
    return (losses - least) / eps, schedule.expected_cost(h, horizon)


# --- as the step shrinks -------------------------------------------------------------------------------------------


def walk(h: Hierarchy, rates: Sequence[float], start: np.ndarray, step: float, horizon: float, rng):
    """A run of the iteration: times and points of its path (a staircase), and its longest move in the second half."""
    rng, point, path, longest = np.random.default_rng(rng), start.copy(), [(0.0, *start)], 0.0
    telescope = Telescope(h, step * np.asarray(rates))
    hits = rng.random((round(horizon / step), len(rates))) < telescope.p
    for i in np.flatnonzero(hits.any(axis=1)):  # a call that draws nothing does nothing
        move = step * telescope.combine(point, hits[i]).value
        path += [((i + 1) * step, *point), ((i + 1) * step, *(point - move))]
        point = point - move
        if i * step > horizon / 2:
            longest = max(longest, float(np.linalg.norm(move)))
    return np.array([*path, (horizon, *point)]), longest


def longest_jump(
    h: Hierarchy, rates: Sequence[float], start: np.ndarray, horizon: float, rng
) -> float:
    """The longest move of the jump process in the second half of its events."""
    points = []
    watched = Hierarchy(lambda k, y: points.append(y.copy()) or h.evaluate(k, y), h.cost, h.levels)
    flow(watched, start, list(rates), horizon, rng)
    late = np.diff(points, axis=0)[len(points) // 2 :]
    return float(np.linalg.norm(late, axis=1).max())


def long_share(
    h: Hierarchy, rates: Sequence[float], start: np.ndarray, step: float, length: float
) -> float:
    """The share of a call's variance that moves longer than `length` carry: exact, all draws enumerated."""
    return _share(Telescope(h, step * np.asarray(rates)), start, step, length)


def coin_share(start: np.ndarray, step: float, length: float) -> float:
    """The same for a fair coin whose variance also grows like 1/step, which does tend to a diffusion."""
    coin = Hierarchy(lambda k, y: y + k * np.ones_like(y) / math.sqrt(step), lambda k: 1.0, [0, 1])
    return _share(Telescope(coin, [1.0, 0.5]), start, step, length)


def _share(telescope: Telescope, start: np.ndarray, step: float, length: float) -> float:
    mean = telescope.mean(start)
    moves = [
        (p, step * float(np.linalg.norm(draw.value - mean)))
        for p, draw in telescope.outcomes(start)
    ]
    return sum(p * m**2 for p, m in moves if m > length) / sum(p * m**2 for p, m in moves)


def log_growth(schedule: Schedule, horizon: float) -> float:
    """log of E y_T^2 / y_0^2 for y^2/2 with exact levels: d/dt E y^2 = (1/r - 2) E y^2, r the coarsest level's rate."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    total = 0.0
    for low, high in schedule.stretches(horizon):
        half = (high - low) / 2
        total += half * float((1 / schedule.rates(low + half * (1 + nodes))[0] - 2) @ weights)
    return total
