"""Descent on losses and ladders as bad as the assumptions allow: exact moments, exact prices, and runs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from mlgd import Hierarchy, Plan, Problem, Telescope, minimize, plan
from mlgd import formulas as F
from mlgd.examples import biased
from mlgd.experiment.exact import mean_loss


def every_accuracy(problem: Problem, eps: float, eta: float | None = None) -> Problem:
    """The problem with every accuracy on sale: its ladder begins where the closed form draws a level with certainty."""
    bill = plan(problem, eps, eta=eta)
    numbers = {"delta": bill.delta, "sigma": bill.sigma, "gamma": problem.gamma}
    coarsest = math.floor(F.value(F.START[problem.regime], **numbers))
    finest = math.ceil(-math.log2(bill.delta))
    return replace(problem, first=min(coarsest, finest))


def coarse_chance(problem: Problem, eps: float, eta: float) -> float:
    """The probability of the coarsest level that keeps the theorem and lets the step leave the bill."""
    return min(1.0, eta * F.value(F.COARSE_RATE, beta=problem.beta, eps=eps, first=problem.first))


def telescope(
    problem: Problem, eps: float, eta: float, chance: float = 1.0, h: Hierarchy | None = None
) -> Telescope:
    """The oracle of the paper's Theorem 1(a) at this step, its coarsest level drawn with probability `chance`."""
    bill = plan(problem, eps, eta=eta)
    t = Telescope.for_accuracy(
        h or problem.prices(bill.delta), bill.delta, bill.sigma, problem.gamma
    )
    return Telescope(t.h, [chance, *t.p[1:]])


def price(problem: Problem, eps: float, eta: float, chance: float = 1.0) -> float:
    """The exact expected price of that run."""
    return plan(problem, eps, eta=eta).steps * telescope(problem, eps, eta, chance).expected_cost()


def within(plans: Sequence[tuple[Problem, float]], added=0, sells: Callable | None = None) -> bool:
    """Whether the exact price of every plan (problem, eps) is at most its regime's executed bound plus the formula `added`.

    The bound is that of strongly convex losses where the plan is.

    `sells` turns a problem into the one that is bought from, such as `every_accuracy`.
    """
    for problem, eps in plans:
        bought = sells(problem, eps) if sells else problem
        bill = plan(bought, eps)
        numbers = {
            name: getattr(bought, name) for name in ("beta", "mu", "d0", "gamma", "c", "first")
        }
        bound = (F.EXECUTED_STRONG if bill.averaging == "geometric" else F.EXECUTED_CONVEX)[
            problem.regime
        ] + added
        if bill.expected_cost > F.value(bound, **numbers, eps=eps, eta=bill.eta):
            return False
    return True


def coin_loss(chance: Fraction, eta: Fraction, steps: int) -> Fraction:
    """E of y^2/2 at the average of y <- (1 - eta B/chance) y from y = 1, B ~ Bernoulli(chance): exact, nothing rounded."""
    shrink, second = 1 - eta, 1 - 2 * eta + eta**2 / chance  # E of the factor, and of its square
    total, moment, cross = (
        Fraction(0),
        Fraction(1),
        Fraction(0),
    )  # cross: sum over s < t of E y_s y_t
    for _ in range(steps):
        total += moment + 2 * cross
        cross = shrink * (cross + moment)
        moment *= second
    return total / steps**2 / 2


def ladder(
    problem: Problem, levels: Sequence[int], curvature: float, sign: float = 1.0
) -> Hierarchy:
    """The gradient of curvature/2 y^2 on one line, every level's error and every increment as large as they may be."""
    return biased(
        lambda y: curvature * y, problem.gamma, problem.c, levels, direction=[sign], alternate=True
    )


def quadratic_loss(
    problem: Problem, eps: float, eta: float, curvature: float, chance: float = 1.0
) -> float:
    """The exact mean loss of the theorem's descent, its coarsest level drawn with probability `chance`."""
    return mean_loss(plan(problem, eps, eta=eta), curvature, chance)


def repeat(
    problem: Problem, bill: Plan, curvature: float, runs: int, rng, chance: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Losses over eps, and prices over the expected price, of independent runs of a plan on that ladder.

    With `chance` below one the coarsest level is drawn with that probability, which no plan does.
    """
    h = ladder(problem, problem.prices(bill.delta).levels, curvature)
    oracle = telescope(problem, bill.eps, bill.eta, chance, h)
    losses, prices = np.empty(runs), np.empty(runs)
    for i, stream in enumerate(np.random.default_rng(rng).spawn(runs)):
        if chance == 1:
            result = minimize(h, np.array([problem.d0]), bill, rng=stream)
            point, prices[i] = result.y, result.cost
        else:
            y, point, prices[i] = np.array([problem.d0]), np.zeros(1), 0.0
            for _ in range(bill.steps):
                point = point + y / bill.steps
                draw = oracle.draw(y, stream)
                y, prices[i] = y - bill.eta * draw.value, prices[i] + draw.cost
        losses[i] = curvature / 2 * float(point[0]) ** 2 / bill.eps
    return losses, prices / (bill.steps * oracle.expected_cost())
