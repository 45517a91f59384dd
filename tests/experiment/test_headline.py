"""The one theorem under its one condition, on random problems and their extremes: none drawn.

The telescope is the printed one, its coarsest level drawn with probability 4 beta eta or more;
losses are exact means on parabolas with every error of full size, prices the means of what a run
pays.
"""

import math
from itertools import product

import numpy as np
import pytest

from mlgd import Plan, Problem, Telescope, plan
from mlgd import formulas as F
from mlgd.experiment.exact import accelerated_loss, mean_loss

EXTREMES = list(product((2.05, 12.0), (1.0, 1e8), (1e-3, 1e3), (0, 40), (0.0, -9.0)))


def cases(count: int) -> list[tuple[float, ...]]:
    """gamma, kappa, c, halvings of the step, decades of the target, beta, d0."""
    rng, found = np.random.default_rng(25), []
    for i in range(count):
        inside = (
            rng.uniform(2.05, 12),
            10 ** rng.uniform(0, 8),
            10 ** rng.uniform(-3, 3),
        )
        inside += int(rng.integers(0, 41)), -rng.uniform(0, 9)
        case = EXTREMES[i] if i < len(EXTREMES) else inside
        found.append((*case, 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-2, 2)))
    return found


def end_of_range(problem: Problem, scheduled: bool) -> float:
    """The largest target for which the theorem names no coarse term."""
    known = {n: getattr(problem, n) for n in ("beta", "mu", "d0", "gamma", "first")}
    border, accuracy = problem.mu * problem.d0**2, 2.0**-problem.first
    if not problem.mu:
        return min(F.value(F.RANGE_CONVEX, **known), 16 * problem.d0 * accuracy)
    if not scheduled:
        return min(
            border, F.value(F.RANGE_STRONG, **known), 64 * accuracy**2 / problem.mu
        )
    g, blocks = problem.gamma, (3 * border) ** (11 / 20)
    lead = 6 / (1 - 2 ** (1 - g / 2)) / problem.beta * accuracy ** (1 + g / 2)
    lead *= (16 / (3 * problem.mu)) ** ((g - 2) / 4) * blocks ** (-(g + 2) / 4)
    asked = (16 * accuracy**2 / (3 * problem.mu) / blocks) ** (20 / 9)
    return min(border, lead ** (80 / (9 * (g + 2))), asked)


def executed(bill: Plan) -> tuple[float, bool]:
    """The largest exact loss over eps, and whether the closed form meets the condition itself."""
    problem, eps, meets = bill.problem, bill.eps, True
    for stage in bill.stages:
        known = problem.prices(stage.delta), stage.delta, stage.sigma, problem.gamma
        printed = Telescope.for_accuracy(*known, coarsest=0.0).p[0]
        meets &= bool(printed >= 4 * problem.beta * bill.eta * (1 - 1e-9))
    curvatures = {
        problem.beta,
        problem.mu or eps / problem.d0**2,
        math.sqrt(eps * problem.beta),
    }
    curvatures = {min(max(x, problem.mu), problem.beta) for x in curvatures}
    return max(mean_loss(bill, x) for x in curvatures) / eps, meets


@pytest.mark.parametrize("method", ["convex", "multilevel", "scheduled"])
def test_the_theorem_is_never_exceeded(method):
    seen = {True: 0, False: 0}
    for gamma, kappa, c, halvings, decades, beta, d0 in cases(60):
        mu = 0.0 if method == "convex" else beta / kappa
        problem = Problem(beta=beta, mu=mu, d0=d0, gamma=gamma, c=c)
        strong = {"multilevel": F.EXECUTED_STRONG, "convex": F.EXECUTED_CONVEX}
        bound = F.EXECUTED_DISCRETE if method == "scheduled" else strong[method]["HTMC"]
        end = end_of_range(problem, method == "scheduled")
        most_of_all = mu * d0**2 or 16 * d0 * 2.0**-problem.first
        # where there is an outside
        outside = end * (most_of_all / end) ** (1 + decades / 18)
        for eps in (end * 10**decades, outside):
            eta = min(1 / (4 * beta), d0**2 / eps) * 2.0**-halvings
            if mu:  # a smaller one makes weights that no float tells from even ones
                eta = max(eta, 1e-13 / mu)
            kind = "scheduled" if method == "scheduled" else "multilevel"
            bill = plan(problem, eps, kind, eta=eta)
            loss, meets = executed(bill)
            known = {
                n: getattr(problem, n)
                for n in ("beta", "mu", "d0", "gamma", "c", "first")
            }
            most, coarse = (F.value(e, eps=eps, **known) for e in (bound, added(method)))
            assert loss <= 1
            assert meets or eps > end
            assert bill.expected_cost <= most * (1 + 1e-9) + (0 if meets else coarse)
            seen[meets] += 1
    assert min(seen.values()) > 4


def added(method: str):
    """The coarsest level's term, free of the step."""
    steps = {"convex": 5 * F.d0**2 / F.eps, "multilevel": F.STRONG_STEPS * F.eta}
    calls = 1 + 8 * F.kappa * F.sp.log(1 + 2 * F.mu * F.d0**2 / F.eps)
    calls += 9 * F.sp.log(2) / (1 - 1 / F.RATIO)
    return (calls if method == "scheduled" else steps[method] * 4 * F.beta) * F.FIRST


def test_below_an_eighth_of_the_condition_the_printed_run_diverges():
    problem = Problem(beta=1.0, d0=1.0, gamma=3.0, c=2.0**-6)
    bill = plan(problem, 1 / 16)
    assert mean_loss(bill, 1.0, coarsest=0.4 * bill.eta * problem.beta) > 1e6
    assert mean_loss(bill, 1.0, coarsest=4 * bill.eta * problem.beta) < bill.eps


@pytest.mark.slow
def test_the_accelerated_theorem_is_never_exceeded():
    for i, (gamma, kappa, c, _, decades, beta, d0) in enumerate(cases(60)):
        rate = (gamma, 2.0, 4 / gamma)[i % 3]
        for mu in (0.0, beta / min(kappa, 1e5)):
            problem = Problem(beta=beta, mu=mu, d0=d0, gamma=rate, c=c)
            eps = (
                mu * d0**2 * 10**decades if mu else 4 * beta * d0**2 * 10 ** (decades / 2)
            )
            bill = plan(problem, eps, "accelerated")
            steps = [stage.steps for stage in bill.stages]
            known = {
                "eps": eps,
                "eta": bill.eta,
                "mu": mu,
                "d0": d0,
                "gamma": rate,
                "c": c,
            }
            scale = (F.c * F.d0 / F.eps) ** F.gamma
            if mu:
                scale = F.STAGE_SUM * (F.c / F.sp.sqrt(F.mu * F.eps)) ** F.gamma
            tail = F.value(F.SIMILAR_FACTOR[problem.regime], T=max(steps), **known)
            tail *= F.value(F.ROUNDED, T=min(steps), **known) * F.value(scale, **known)
            most = F.value(F.STAGE_STEPS if mu else F.SIMILAR_STEPS, **known)
            coarse = bill.steps * F.value(F.FIRST, first=problem.first, **known)
            assert max(steps) <= most * (1 + 1e-9)
            assert len(steps) <= max(1, math.log2(mu * d0**2 / eps) if mu else 1) + 1e-9
            assert bill.expected_cost <= (tail + coarse) * (1 + 1e-9)
            assert accelerated_loss(bill) <= eps
