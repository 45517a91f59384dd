"""Exact mean losses on a parabola, every level's error as large as it may be.

The moments of the iterate, of the weighted sum and of their product obey a linear recursion: a
stage of a plan is one matrix power, a piece of a schedule one matrix exponential. Nothing is drawn,
however many steps there are.
"""

import math

import numpy as np
from scipy.linalg import expm

from mlgd import Hierarchy, Plan, Problem, Telescope
from mlgd.examples import biased
from mlgd.flow import Schedule
from mlgd.formulas import SCALE, SCHEDULE, value, values

SIZE = 7  # moments 1, y, y^2, S, S y, S^2 and the weights' mass, S the weighted sum of the points
# at the start, in units of d0: from the side where errors push, and the other
START = np.array([[1.0, 1.0], [1.0, -1.0], [1.0, 1.0], *np.zeros((SIZE - 3, 2))])


def errors(levels) -> np.ndarray:
    """Errors of full size 2^-k and alternating sign, so that increments are 3 * 2^-k."""
    return np.array([(-1.0 if k % 2 else 1.0) * 2.0**-k for k in levels])


def mean_loss(bill: Plan, curvature: float, coarsest: float | None = None) -> float:
    """E of curvature/2 y^2 at the output of a theorem's plan (no on=), from the worse side.

    coarsest: a probability of the coarsest level that is not the plan's.
    """
    eta, d0, slope = bill.eta, bill.problem.d0, bill.eta * curvature
    # what a step forgets of the weighted sum: 1 + eta mu would have lost its digits
    strong = float(bill.eps <= bill.problem.mu * d0**2)
    forget = (0.5 if bill.method == "scheduled" else strong) * eta * bill.problem.mu
    keep, state = 1 - forget, START
    for stage in bill.stages:
        t = bill.telescope(bill.problem.prices(stage.delta), stage)
        p = t.p if coarsest is None else np.append(coarsest, t.p[1:])
        offsets, odds = errors(t.levels) / d0, 1 / p - 1
        bias, noise = (
            eta * offsets[-1],
            eta**2 * float(odds @ np.diff(offsets, prepend=0.0) ** 2),
        )
        # the coarsest level's noise grows with y
        push = 2 * eta * slope * odds[0] * offsets[0]
        small = np.zeros((SIZE, SIZE))  # one step, minus the identity
        small[1, [0, 1]] = -bias, -slope
        small[2, [0, 1]] = bias**2 + noise, push - 2 * (1 - slope) * bias
        small[2, 2] = slope * (slope * (1 + odds[0]) - 2)
        small[3, [1, 3]] = eta, -forget
        small[4, [1, 2, 3]] = -eta * bias, eta * (1 - slope), -keep * bias
        small[4, 4] = slope * forget - slope - forget
        small[5, [2, 4, 5]] = eta**2, 2 * keep * eta, forget * (forget - 2)
        small[6, [0, 6]] = eta, -forget
        state = state + _power(small, stage.steps) @ state
    return _loss(state, curvature, d0)


def proposition_schedule(
    h: Hierarchy,
    mu: float,
    eps: float,
    gamma: float,
    horizon: float,
    coarsest: float = 0.0,
) -> Schedule:
    """The paper's Proposition 2: bias delta(t) and variance nu^2(t), relaxed backwards in time.

    For gamma > 2 and dyadic levels: the rates are those of the printed closed form. Mean loss at
    most eps with coarsest = 4 beta, the least rate of the coarsest level, and a horizon of at least
    (2/mu) log(1 + 2 mu d0^2/eps): the form the chapter proves.
    """
    known = {"mu": mu, "eps": eps, "horizon": 1 / mu}
    (delta, nu2), (_, before) = (
        values(SCHEDULE, t=t, **known).values() for t in (1 / mu, 0.0)
    )
    growth = mu * math.log(before / nu2)  # of nu^2 and delta^2, backwards in time
    levels = h.levels[: h.levels.index(h.level_for(delta)) + 1]
    accuracy = np.array([h.accuracy(k) for k in levels])
    shape, rank = accuracy ** (1 + gamma / 2), np.arange(len(levels))[:, None]
    known = {"gamma": gamma, "sigma": math.sqrt(nu2)}
    # a: the finest
    scale = np.array([value(SCALE["HTMC"], delta=a, **known) for a in accuracy])

    def rates(times: np.ndarray) -> np.ndarray:
        left = horizon - times
        allowed = delta * np.exp(growth / 2 * left) * (1 + 1e-12)
        last = np.minimum((accuracy[:, None] > allowed).sum(axis=0), len(levels) - 1)
        out = np.where(
            rank <= last, shape[:, None] * (scale[last] * np.exp(-growth * left)), 0.0
        )
        np.maximum(out[0], coarsest, out=out[0])
        return out

    # where delta(t) passes an accuracy, where the coarsest level leaves its floor, and so often
    # that no rate grows manyfold on a stretch
    ends = [2 * math.log(a / delta) / growth for a in accuracy]
    ends += [math.log(s * shape[0] / coarsest) / growth for s in scale if coarsest]
    ends += np.linspace(0, horizon, math.ceil(mu * horizon) + 1).tolist()
    return Schedule(rates, levels, tuple(horizon - left for left in ends), weight=mu / 2)


def flow_loss(
    schedule: Schedule,
    problem: Problem,
    horizon: float,
    curvature: float,
    pieces: int = 6,
) -> float:
    """The same for the jump process; each of `pieces` parts of a stretch has its middle's rates."""
    cuts = [
        np.linspace(low, high, pieces + 1)[:-1]
        for low, high in schedule.stretches(horizon)
    ]
    ends = np.concatenate([*cuts, [horizon]])
    rates, offsets = schedule.rates((ends[:-1] + ends[1:]) / 2), errors(schedule.levels)
    offsets, used, forget = offsets / problem.d0, rates > 0, schedule.weight
    squares = np.diff(offsets, prepend=0.0)[:, None] ** 2
    noise = np.divide(squares, rates, out=np.zeros_like(rates), where=used).sum(axis=0)
    bias, state = offsets[used.sum(axis=0) - 1], START
    generator = np.zeros((bias.size, SIZE, SIZE))
    generator[:, 1, 0], generator[:, 1, 1] = -bias, -curvature
    generator[:, 2, 0] = noise
    generator[:, 2, 1] = 2 * (curvature * offsets[0] / rates[0] - bias)
    generator[:, 2, 2] = curvature**2 / rates[0] - 2 * curvature
    generator[:, 3, 1], generator[:, 3, 3] = 1, -forget
    generator[:, 4, 2], generator[:, 4, 3], generator[:, 4, 4] = (
        1,
        -bias,
        -(curvature + forget),
    )
    generator[:, 5, 4], generator[:, 5, 5] = 2, -2 * forget
    generator[:, 6, 0], generator[:, 6, 6] = 1, -forget
    for matrix in expm(generator * np.diff(ends)[:, None, None]):
        state = matrix @ state
    return _loss(state, curvature, problem.d0)


def _loss(state: np.ndarray, curvature: float, d0: float) -> float:
    return float((curvature / 2 * d0**2 * state[5] / state[6] ** 2).max())


def _power(small: np.ndarray, n: int) -> np.ndarray:
    """(1 + small)^n - 1 by squaring, 1 + small never formed: steps of 2^-40 keep their digits."""
    out = np.zeros_like(small)
    while True:
        if n & 1:
            out = out + small + small @ out
        n >>= 1
        if not n:
            return out
        small = 2 * small + small @ small


def cheapest_call(
    gamma: float, finest: int, sigma: float, coarsest: int = 1
) -> Telescope:
    """The cheapest telescope of deviation sigma, errors and prices at their bounds, c = 1."""
    levels = range(coarsest, finest + 1)
    h = biased(np.zeros_like, gamma, 1.0, levels, alternate=True)
    values = errors(levels)
    return Telescope.cheapest(h, sigma, np.abs(values[:, None] - values[None, :]))


def momentum(
    curvature: np.ndarray, steps: int, eta: float, constant: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How the last point of T accelerated steps answers to start, bias and noise, by curvature.

    It is a y_0 - sum of c_t e_t, e_t the errors of the gradients: a, the sum of |c_t| (a bias of
    the worst signs) and that of c_t^2 are found backwards in time. The step is that of `minimize`,
    2 eta t/(t+1), or constant.
    """
    point, ahead, bias, noise = np.ones((4, curvature.size)) * [
        [1.0],
        [0.0],
        [0.0],
        [0.0],
    ]
    for t in range(steps, 0, -1):
        theta, step = (t - 1) / (t + 2), eta if constant else 2 * t / (t + 1) * eta
        through = point + (1 + theta) * ahead
        bias, noise = bias + abs(step * through), noise + (step * through) ** 2
        point, ahead = -theta * ahead, (1 - step * curvature) * through
    return point + ahead, bias, noise


def accelerated_loss(bill: Plan, points: int = 7) -> float:
    """The worst mean loss of an accelerated plan on parabolas, bias and noise at their bounds."""
    mu, beta, last = bill.problem.mu, bill.problem.beta, bill.stages[-1].steps
    curvature = np.clip(np.geomspace(0.1, 1000, points) / (bill.eta * last**2), mu, beta)
    lengths = {stage.steps for stage in bill.stages}
    answers = {steps: momentum(curvature, steps, bill.eta) for steps in lengths}
    square = np.full(points, bill.problem.d0**2)
    for stage in bill.stages:
        start, bias, noise = answers[stage.steps]
        square = (
            abs(start) * np.sqrt(square) + stage.delta * bias
        ) ** 2 + stage.sigma**2 * noise
    return float((curvature / 2 * square).max())
