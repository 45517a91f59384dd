"""Acceleration on quadratics: exact responses of the two schemes to their errors, and the theorem's price on thousands of plans.

On one curvature the last point is y_T = a y_0 - sum over t of c_t e_t, e_t the error of the gradient at step t. The c_t are
found backwards in time, for many curvatures and horizons at once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy as sp

from mlgd import Plan, Problem, Telescope, minimize, plan
from mlgd import formulas as F
from mlgd.experiment.worst import ladder


@dataclass(frozen=True)
class Response:
    """a, and the sums of c_t, |c_t| and c_t^2: one entry per curvature."""

    start: np.ndarray
    lasting: np.ndarray  # to an error that keeps its sign
    changing: np.ndarray  # to the worst error that may change its sign from step to step
    noise: np.ndarray

    @classmethod
    def at(cls, curvature, steps, eta, scheme: str = "run") -> "Response":
        """'run' is what minimize runs, with the step 2 eta t/(t+1); 'paper' has the step eta; the momentum is (t-1)/(t+2) in both."""
        curvature, steps, eta = np.broadcast_arrays(np.asarray(curvature, float), steps, eta)
        point, ahead, changing, noise = (np.zeros(curvature.shape) for _ in range(4))
        for t in range(int(steps.max()), 0, -1):
            point = np.where(steps == t, 1.0, point)  # a run that ends here is not touched before
            theta, step = (t - 1) / (t + 2), eta * (2 * t / (t + 1) if scheme == "run" else 1.0)
            through = point + (1 + theta) * ahead
            changing += np.abs(step * through)
            noise += (step * through) ** 2
            point, ahead = -theta * ahead, (1 - step * curvature) * through
        start = point + ahead
        return cls(start, (1 - start) / curvature, changing, noise)


def bias_adds(steps: int, eta: float, delta: float, points: int = 400) -> float:
    """What a bias of norm delta adds to the worst loss of T steps of the paper's scheme: beta = d0 = 1, worst curvature and sign."""
    curvature = np.geomspace(1e-3 / (eta * steps**2), 1.0, points)
    r = Response.at(curvature, steps, eta, "paper")
    return float((curvature / 2 * ((np.abs(r.start) + delta * r.changing) ** 2 - r.start**2)).max())


def worst_losses(plans: Sequence[Plan], slack: float = 1.0, points: int = 7) -> np.ndarray:
    """The largest mean loss over eps of each accelerated plan, over curvatures and errors that its theorem allows.

    Bias of norm delta with the worst sign at every step, noise of variance sigma^2, both times `slack`; exact second moments
    in one direction, followed through the restarts.
    """
    shapes = np.array(
        [(p.stages[0].steps, p.stages[-1].steps) for p in plans]
    )  # all stages but the last are alike
    eta, mu, beta = (
        np.array([[v] for v in c])
        for c in zip(*((p.eta, p.problem.mu, p.problem.beta) for p in plans), strict=True)
    )
    curvature = np.clip(np.geomspace(0.1, 1000, points) / (eta * shapes[:, 1:] ** 2), mu, beta)
    tables = np.empty((len(plans), 2, 3, points))
    lengths = np.log2(shapes).astype(int)
    for length in np.unique(
        lengths
    ):  # runs of similar length together, so that short ones do not wait
        who, which = np.nonzero(lengths == length)
        r = Response.at(curvature[who], shapes[who, which][:, None], eta[who])
        tables[who, which] = np.stack([np.abs(r.start), r.changing, r.noise], axis=1)
    worst = np.empty(len(plans))
    for i, p in enumerate(plans):
        square = np.full(points, p.problem.d0**2)
        for j, s in enumerate(p.stages):
            start, changing, noise = tables[i, int(j == len(p.stages) - 1)]
            square = (start * np.sqrt(square) + slack * s.delta * changing) ** 2 + (
                slack * s.sigma
            ) ** 2 * noise
        worst[i] = (curvature[i] / 2 * square).max() / p.eps
    return worst


def sold(bill: Plan) -> Problem:
    """The accelerated plan's problem with every accuracy on sale: its ladder begins where all its telescopes draw a level with certainty."""
    rate = bill.problem.gamma
    starts = [
        F.value(F.START[F.regime(rate)], delta=s.delta, sigma=s.sigma, gamma=rate)
        for s in bill.stages
    ]
    finest = min(math.ceil(-math.log2(s.delta)) for s in bill.stages)
    return replace(bill.problem, first=min(math.floor(min(starts)), finest))


def price(bill: Plan, problem: Problem) -> float:
    """The exact expected price of the plan's stages on the ladder of `problem`."""
    calls = [
        Telescope.for_accuracy(problem.prices(s.delta), s.delta, s.sigma, problem.gamma)
        for s in bill.stages
    ]
    return sum(s.steps * call.expected_cost() for s, call in zip(bill.stages, calls, strict=True))


def bounds(bill: Plan) -> tuple[float, float]:
    """The theorem's two parts for an accelerated plan: the tail, and the coarsest level at every step."""
    problem, numbers = bill.problem, {"eps": bill.eps, "eta": bill.eta}
    numbers |= {name: getattr(problem, name) for name in ("c", "mu", "d0", "gamma", "first")}
    steps = [s.steps for s in bill.stages]
    if problem.mu:
        scale, coarse = F.STAGE_SUM * (F.c / sp.sqrt(F.mu * F.eps)) ** F.gamma, F.COARSE_RESTARTED
    else:
        scale, coarse = (F.c * F.d0 / F.eps) ** F.gamma, F.COARSE_SIMILAR
    tail = F.value(F.SIMILAR_FACTOR[problem.regime], T=max(steps), **numbers)
    return tail * F.value(F.ROUNDED, T=min(steps), **numbers) * F.value(scale, **numbers), F.value(
        coarse, **numbers
    )


def extremes(count: int, seed: int) -> list[tuple[Problem, float]]:
    """Random problems with targets, the corners of the range among them: (problem, eps), convex and strongly convex."""
    rng = np.random.default_rng(seed)
    out = []
    for i in range(count):
        c = 10 ** rng.choice([-3.0, 3.0, rng.uniform(-3, 3)], p=[0.15, 0.15, 0.7])
        gamma = float(
            rng.choice(
                [2.0, 2.01, 1.99, 6.0, rng.uniform(0.01, 6)], p=[0.1, 0.05, 0.05, 0.05, 0.75]
            )
        )
        kappa = 10 ** rng.choice([0.0, 8.0, rng.uniform(0, 8)], p=[0.1, 0.01, 0.89])
        beta, d0 = 10 ** rng.uniform(-3, 3), 10 ** rng.uniform(-2, 2)
        if i % 2:  # eps from the loss of the start to kappa times less
            out.append((Problem(beta=beta, d0=d0, gamma=gamma, c=c), 4 * beta * d0**2 / kappa))
        else:
            share = 10 ** rng.choice([0.0, -8.0, rng.uniform(-8, 0)], p=[0.1, 0.1, 0.8])
            out.append(
                (
                    Problem(beta=beta, d0=d0, gamma=gamma, c=c, mu=beta / kappa),
                    beta / kappa * d0**2 * share,
                )
            )
    return out


def over_bounds(problem: Problem, eps: float) -> tuple[float, float]:
    """The exact expected price of the accelerated plan over the theorem's bound: nothing below a unit, and every accuracy on sale."""
    bill = plan(problem, eps, "accelerated")
    tail, coarse = bounds(bill)
    return bill.expected_cost / (tail + coarse), price(bill, sold(bill)) / tail


def moments(bill: Plan, curvature: float) -> float:
    """The exact mean loss over eps of an accelerated plan on the ladder whose errors are as large as they may be, from distance d0."""
    problem, origin = bill.problem, np.zeros(1)
    mean, variance = problem.d0, 0.0
    for s in bill.stages:
        h = ladder(problem, problem.prices(s.delta).levels, curvature)
        t = Telescope.for_accuracy(h, s.delta, s.sigma, problem.gamma)
        r = Response.at(np.array([curvature]), s.steps, bill.eta)
        mean = float(r.start[0] * mean - r.lasting[0] * t.mean(origin)[0])
        variance = float(r.start[0] ** 2 * variance + r.noise[0] * t.variance(origin))
    return curvature / 2 * (mean**2 + variance) / bill.eps


def repeat(
    bill: Plan, curvature: float, runs: int, rng, slack: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Losses over eps and prices over the expected price of independent runs on that ladder, delta times `slack`."""
    used = replace(bill, stages=tuple(replace(s, delta=slack * s.delta) for s in bill.stages))
    h = ladder(
        bill.problem, bill.problem.prices(min(s.delta for s in bill.stages)).levels, curvature
    )
    start, streams = np.array([bill.problem.d0]), np.random.default_rng(rng).spawn(runs)
    results = [minimize(h, start, used, rng=stream) for stream in streams]
    losses = np.array([curvature / 2 * float(r.y[0]) ** 2 / bill.eps for r in results])
    return losses, np.array([r.cost for r in results]) / bill.expected_cost


def printed_price(problem: Problem, eps: float) -> float:
    """The exact price of the paper's balance with every order read as an equality (constant one), without its logarithm."""
    balance = F.ACCELERATED["strong" if problem.mu else "convex"]
    numbers = {"beta": problem.beta, "d0": problem.d0, "mu": problem.mu, "eps": eps}
    steps, delta, sigma2 = (F.value(balance[name], **numbers) for name in ("T", "delta", "sigma2"))
    telescope = Telescope.for_accuracy(
        problem.prices(delta), delta, math.sqrt(sigma2), problem.gamma
    )
    return math.ceil(steps - 1e-9) * telescope.expected_cost()
