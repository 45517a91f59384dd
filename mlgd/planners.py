"""Plans on a ladder of your own: steps, window, finest level, ladder and probabilities chosen by price.

Every promise bounds (or estimates) the mean loss by what the start, the bias and the noise contribute. So for each way
to run, the noise that is left to each finest level is known, and the cheapest telescope for that noise has a price; the
cheapest of all is the plan. A coarse search prices evaluations in pairs, the last choice is exact.
"""

import math

import numpy as np

from .ladders import optimum
from .moments import certified_bias, worst
from .refine import refined_plan
from .schemes import Budget, NotApplicable, Plan, Problem
from .searching import Ladder, Ways, dearest, finish, search, variance
from .seen import Seen
from .theorems import stages_of, step_size

SHARES = (0.1, 0.2, 0.35, 0.5, 0.65)  # of mu that Young's inequality gives to the bias
RESPONSES = ("horizon", "bias", "noise")
CAUTION = 0.93  # of the target, for plans by measurements: what they miss is seldom in our favour
STEPS = (1.0, 1.5, 1.8)  # times 1/beta; at two descent no longer converges


def on_ladder(problem: Problem, eps: float, method: str, eta: float | None, on, promise: str) -> Plan:
    """The plan of a method on a ladder, by its promise."""
    ladder = Ladder.of(on)
    if method == "refine":
        return refined_plan(problem, eps, ladder, promise)
    if method in ("accelerated", "scheduled"):
        if promise != "proved":
            raise NotApplicable(f"{method!r} is planned with promise='proved' only")
        return _staged(problem, eps, method, eta, ladder)
    build = {"proved": _proved, "quadratic": _quadratic, "measured": _measured}[promise]
    return build(problem, eps, method, eta, ladder)


# --- proved: the one-step lemma, parts (a) and (b) by price ----------------------------------------------------------


def _proved(problem: Problem, eps: float, method: str, eta: float | None, ladder: Ladder) -> Plan:
    """The one-step lemma of the paper, summed with uniform weights (a) or with growing ones (b), whichever is cheaper.

    (a) loss <= d0^2/(eta T) + 2 delta x + eta (sigma^2 + 2 delta^2), where no mean distance exceeds
        x = eta delta T + ((eta delta T)^2 + d0^2 + T eta^2 (sigma^2 + 2 delta^2))^(1/2);
    (b) loss <= (1-s) mu d0^2 / (rho^-T - 1) + delta^2/(s mu) + eta (sigma^2 + 2 delta^2), rho = 1 - (1-s) eta mu, weights
        rho^-t: Young's inequality gives the share s of mu to the bias.
    """
    eta = step_size(problem, eps, eta)
    d0, mu, delta = problem.d0, problem.mu, ladder.accuracy
    noisy = method != "fixed"

    def convex(etas, steps, _):
        t = np.asarray(steps, float)[:, None]
        drift = eta * delta * t
        u2 = drift**2 + d0**2
        # with u the square root in x, the loss is d0^2/(eta T) + 2 delta (drift + u) + (u^2 - u2)/(T eta): solve for u
        square = delta**2 + (eps - d0**2 / (eta * t) - 2 * delta * drift + u2 / (t * eta)) / (t * eta)
        u = t * eta * (np.sqrt(np.maximum(square, 0.0)) - delta)
        allowed = (u**2 - u2) / (t * eta**2) - 2 * delta**2
        return _ways(eta, t[:, 0], 0.5, allowed, ladder)

    def strong(etas, steps, shares):
        t, s = (v.ravel() for v in np.meshgrid(np.asarray(steps, float), shares, indexing="ij"))
        rate = -np.log1p(-(1 - s) * eta * mu)
        with np.errstate(over="ignore"):
            horizon = (1 - s) * mu * d0**2 / np.expm1(rate * t)
        allowed = (eps - horizon[:, None] - delta**2 / (s * mu)[:, None]) / eta - 2 * delta**2
        return _ways(eta, t, s, allowed, ladder)

    tries = [search(ladder, convex, (None, _whole(64 * d0**2 / (eta * eps), 90), None), noisy)]
    if mu:
        most = 4 / (eta * mu) * math.log1p(256 * mu * d0**2 / eps) + 2
        tries.append(search(ladder, strong, (None, _whole(most, 60), np.array(SHARES)), noisy))
    choice = min(filter(None, tries), key=lambda c: c.price, default=None)
    if choice is None:
        raise ladder.refuse(eps, "proved", min(2 * delta[-1] * d0, delta[-1] ** 2 / mu if mu else math.inf))
    bias, noise = float(delta[choice.finest]), variance(choice, ladder.squared)
    total = noise + 2 * bias**2
    if choice is tries[0]:
        drift = eta * bias * choice.steps
        reach = drift + math.sqrt(drift**2 + d0**2 + choice.steps * eta**2 * total)
        budget = Budget(d0**2 / (eta * choice.steps), 2 * bias * reach, eta * total)
        said = {"averaging": "uniform", "guarantee": "the one-step lemma summed as in the paper's Theorem 1(a)"}
    else:
        s = choice.window
        rate = -math.log1p(-(1 - s) * eta * mu)
        horizon = (1 - s) * mu * d0**2 / math.expm1(min(rate * choice.steps, 700.0))
        budget = Budget(horizon, bias**2 / (s * mu), eta * total)
        said = {"averaging": "exponential", "growth": 1 / (1 - (1 - s) * eta * mu)}
        said["guarantee"] = "the one-step lemma with growing weights, the paper's Theorem 1(b) with its shorter horizon"
    return finish(problem, eps, method, "proved", ladder, choice, budget=budget, **said)


def _whole(most: float, count: int) -> np.ndarray:
    return np.unique(np.ceil(np.geomspace(1.0, max(2.0, most), count)))


def _ways(eta, steps, window, allowed, ladder) -> Ways:
    """Ways whose noise enters by its variance alone."""
    return Ways(np.full(steps.size, eta), steps, np.broadcast_to(window, steps.shape), allowed, ladder.weight)


def _staged(problem: Problem, eps: float, method: str, eta: float | None, ladder: Ladder) -> Plan:
    """'accelerated' and 'scheduled': the theorem's stages, each with the cheapest telescope for its bias and noise."""
    eta = step_size(problem, eps, eta)
    parts = stages_of(problem, eps, method, eta)
    stages, expected = [], 0.0
    for stage in parts.pop("stages"):
        fine = np.flatnonzero(ladder.accuracy <= stage.delta * (1 + 1e-12))
        if not fine.size:
            raise NotApplicable(
                f"{method!r} needs accuracy {stage.delta:.3g} and the finest level offers {ladder.accuracy[-1]:.3g}: add "
                "finer levels or ask for a larger eps"
            )
        top = slice(0, fine[0] + 1)
        chain, q, call = optimum(ladder.cost[top], ladder.squared[top, top], stage.sigma**2, ladder.shared[top])
        stages.append(ladder.stage(stage.steps, chain, q, stage.sigma))
        expected += stage.steps * call
    most = {"expected_cost": expected, "cost_bound": dearest(ladder.h, stages), "bound_is": "never"}
    return ladder.plan(problem, eps, method, "proved", stages, eta=eta, **most, **parts)


# --- quadratic: the worst case over quadratics, by exact responses ---------------------------------------------------


def _quadratic(
    problem: Problem, eps: float, method: str, eta: float | None, ladder: Ladder, moving: float = 1.0, aim: float = 1.0
) -> Plan:
    """loss <= (sqrt(horizon) + sqrt(bias))^2 + noise, for errors that change from step to step but don't follow the noise.

    For errors that do, as those of levels whose bias varies with y may, it is at most twice as much.
    `moving`: how much more harm errors do by changing direction; `aim`: what the grids' rounding leaves of the target.
    Both are read off the plan found, which is then sought again.
    """
    beta, mu, d0, delta = problem.beta, problem.mu, problem.d0, ladder.accuracy

    def make(etas, lags, windows):
        rows = [worst(beta, mu, e, windows, lags) for e in etas]
        horizon, bias, noise = (np.ravel([getattr(r, name) for r in rows])[:, None] for name in RESPONSES)
        room = (aim * eps - (np.sqrt(horizon) * d0 + np.sqrt(bias * moving) * delta) ** 2) / noise
        e, w, m = (g.ravel() for g in np.meshgrid(etas, windows, lags, indexing="ij"))
        return Ways(e, w + m, w, room, ladder.weight)

    choice = search(ladder, make, _grids(problem, eps, eta), method != "fixed")
    if choice is None:
        raise ladder.refuse(eps, "quadratic", delta[-1] ** 2 / (2 * mu) if mu else math.inf)
    window, finest = int(choice.window), float(delta[choice.finest])
    sure = worst(beta, mu, choice.eta, np.array([window]), np.array([choice.steps - window]))
    horizon, bias, noise = (float(getattr(sure, name)[0, 0]) for name in RESPONSES)
    certified = max(bias, certified_bias(beta, mu, choice.eta, window, choice.steps))
    if certified > bias * moving:
        return _quadratic(problem, eps, method, eta, ladder, 1.001 * certified / bias, aim)
    horizon, bias, noise = horizon * d0**2, certified * finest**2, noise * variance(choice, ladder.squared)
    budget = Budget(horizon, bias, noise, 2 * math.sqrt(bias * horizon))
    if budget.total > eps:
        return _quadratic(problem, eps, method, eta, ladder, moving, 0.9999 * aim * eps / budget.total)
    said = "worst case over spectra in [mu, beta] and errors that change from step to step, at most twice that if they follow the noise"
    average = {"averaging": "tail", "window": window, "budget": budget, "guarantee": said}
    return finish(problem, eps, method, "quadratic", ladder, choice, **average)


def _grids(problem: Problem, eps: float, eta: float | None):
    """Steps, lags and windows of a first search."""
    if eta is not None and not eta < 2 / problem.beta:
        raise ValueError(f"the step must be below 2/beta = {2 / problem.beta:.4g}; got {eta:.4g}: take a smaller eta")
    etas = np.array(STEPS) / problem.beta if eta is None else np.array([eta])
    most = 4 * problem.d0**2 / (etas.min() * eps)  # averaged descent from d0: loss d0^2/(2 eta T)
    if problem.mu:
        ratio = problem.beta * problem.d0**2 / eps
        most = min(most, 8 / (etas.min() * problem.mu) * math.log1p(ratio))
    return etas, np.concatenate([[0.0], _whole(most, 20)]), _whole(most, 20)


# --- measured: the same responses, integrated against what was measured ----------------------------------------------


def _measured(problem: Problem, eps: float, method: str, eta: float | None, ladder: Ladder) -> Plan:
    """loss ~ horizon + bias + noise, each integrated against its spectral measure: an estimate for this instance."""
    seen = Seen.of(problem, ladder)

    def make(etas, lags, windows):
        e, w, m = (g.ravel() for g in np.meshgrid(etas, windows, lags, indexing="ij"))
        horizon, bias, weight = seen.losses(e, w, w + m)
        return Ways(e, w + m, w, CAUTION * eps - horizon[:, None] - bias, weight)

    def squares(ways, i):
        return seen.bridged(ways.weight[i], ladder)

    choice = search(ladder, make, _grids(problem, eps, eta), method != "fixed", squares)
    if choice is None:
        raise ladder.refuse(eps, "measured", seen.floor())
    window = int(choice.window)
    horizon, bias, weight = seen.losses(*(np.array([v]) for v in (choice.eta, window, choice.steps)))
    noise = variance(choice, seen.bridged(weight[0], ladder))
    budget = Budget(float(horizon[0]), float(bias[0, choice.finest]), noise)
    said = "spectral measures from coarse gradients, finer increments extrapolated"
    average = {"averaging": "tail", "window": window, "budget": budget, "guarantee": said}
    return finish(problem, eps, method, "measured", ladder, choice, **average)
