"""Descent with a telescope on a ladder of your own: steps, window, finest level, ladder and probabilities chosen by price.

Every promise bounds (or estimates) the mean loss by what the start, the bias and the noise contribute. So for each way
to run, the noise that is left to each finest level is known, and the cheapest telescope for that noise has a price; the
cheapest of all is the plan. A coarse search prices evaluations in pairs, the last choice is exact.
"""

import math

import numpy as np

from .ladders import optimum
from .moments import certified_bias, worst
from .schemes import NotApplicable, Plan, Problem
from .searching import Choice, Ladder, Ways, search
from .seen import Seen
from .theorems import stages_of, step_size

SHARES = (0.1, 0.2, 0.35, 0.5, 0.65)  # of mu that Young's inequality gives to the bias
CAUTION = 0.93  # of the target, for plans by measurements: what they miss is seldom in our favour
STEPS = (1.0, 1.5, 1.8)  # times 1/beta; at two descent no longer converges


def on_ladder(
    problem: Problem, eps: float, method: str, eta: float | None, ladder: Ladder, promise: str
) -> Plan:
    """The plan of a method on a ladder, by its promise."""
    if method in ("accelerated", "scheduled"):
        if promise != "proved":
            raise NotApplicable(f"{method!r} is planned with promise='proved' only")
        return _staged(problem, eps, method, eta, ladder)
    build = {"proved": _proved, "quadratic": _quadratic, "measured": _measured}[promise]
    choice, said = build(problem, eps, eta, ladder, method != "fixed")
    known = {"eta": choice.eta, "budget": choice.budget, "expected_cost": choice.price}
    return ladder.plan(problem, eps, method, promise, [choice.stage], **known, **said)


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
        chain, q, call = optimum(
            ladder.cost[top], ladder.squared[top, top], stage.sigma**2, ladder.shared[top]
        )
        stages.append(ladder.stage(stage.steps, chain, q, stage.sigma))
        expected += stage.steps * call
    return ladder.plan(
        problem, eps, method, "proved", stages, eta=eta, expected_cost=expected, **parts
    )


def _proved(
    problem: Problem, eps: float, eta: float | None, ladder: Ladder, noisy: bool
) -> tuple[Choice, dict]:
    """The one-step lemma of the paper, summed with uniform weights (a) or with growing ones (b), whichever is cheaper.

    (a) loss <= x^2/(eta T) = d0^2/(eta T) + 2 delta x + eta (sigma^2 + 2 delta^2), where no mean distance exceeds x: at
        most eps if the right side is for x^2 = eps eta T;
    (b) loss <= (1-s) mu d0^2 / (rho^-T - 1) + delta^2/(s mu) + eta (sigma^2 + 2 delta^2), rho = 1 - (1-s) eta mu, weights
        rho^-t: Young's inequality gives the share s of mu to the bias. Here s = 0 stands for (a).
    """
    eta = step_size(problem, eps, eta)
    d0, mu, delta = problem.d0, problem.mu, ladder.accuracy

    def make(_, steps, shares):
        t, s = (v.reshape(-1, 1) for v in np.meshgrid(steps, shares, indexing="ij"))
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            growing = np.expm1(-np.log1p(-(1 - s) * eta * mu) * t)  # rho^-T - 1
            horizon = np.where(s > 0, (1 - s) * mu * d0**2 / growing, d0**2 / (eta * t))
            bias = np.where(s > 0, delta**2 / (s * mu), 2 * delta * np.sqrt(eps * eta * t))
        terms = (horizon, bias, 2 * eta * delta**2, 0.0)
        return Ways(np.full(t.size, eta), t[:, 0], s[:, 0], terms, np.full(t.shape, eta))

    steps, shares = _whole(64 * d0**2 / (eta * eps), 90), np.zeros(1)
    if mu:
        few = _whole(4 / (eta * mu) * math.log1p(256 * mu * d0**2 / eps) + 2, 60)
        steps, shares = np.union1d(steps, few), np.append(0.0, SHARES)
    choice = search(ladder, eps, make, (None, steps, shares), noisy)
    if choice is None:
        raise ladder.refuse(
            eps, "proved", min(2 * delta[-1] * d0, delta[-1] ** 2 / mu if mu else math.inf)
        )
    if not choice.window:
        return choice, {
            "averaging": "uniform",
            "guarantee": "the one-step lemma summed as in the paper's Theorem 1(a)",
        }
    said = (
        "the one-step lemma with growing weights, the paper's Theorem 1(b) with its shorter horizon"
    )
    growth = 1 / (1 - (1 - choice.window) * eta * mu)
    return choice, {"averaging": "exponential", "growth": growth, "guarantee": said}


def _whole(most: float, count: int) -> np.ndarray:
    return np.unique(np.ceil(np.geomspace(1.0, max(2.0, most), count)))


def _quadratic(
    problem: Problem, eps: float, eta: float | None, ladder: Ladder, noisy: bool
) -> tuple[Choice, dict]:
    """loss <= (sqrt(horizon) + sqrt(bias))^2 + noise, for errors that change from step to step but don't follow the noise.

    For errors that do, as those of levels whose bias varies with y may, it is at most twice as much.
    """
    beta, mu, d0, delta = problem.beta, problem.mu, problem.d0, ladder.accuracy
    moving = 1.0  # how much more harm errors do by changing direction: read off the plan found, which is sought again

    def make(etas, lags, windows):
        rows = [worst(beta, mu, e, windows, lags) for e in etas]
        horizon, bias, noise = (np.ravel(part)[:, None] for part in zip(*rows, strict=True))
        horizon, bias = horizon * d0**2, bias * moving * delta**2
        return Ways(
            *_mesh(etas, lags, windows), (horizon, bias, 0.0, 2 * np.sqrt(horizon * bias)), noise
        )

    while True:
        choice = search(ladder, eps, make, _grids(problem, eps, eta), noisy)
        if choice is None:
            raise ladder.refuse(eps, "quadratic", delta[-1] ** 2 / (2 * mu) if mu else math.inf)
        stage, window = choice.stage, int(choice.window)
        more = (
            certified_bias(beta, mu, choice.eta, window, stage.steps)
            * stage.delta**2
            / choice.budget.bias
        )
        if more <= 1:
            break
        moving *= 1.001 * more
    said = "worst case over spectra in [mu, beta] and errors that change from step to step, at most twice that if they follow the noise"
    return choice, {"averaging": "tail", "window": window, "guarantee": said}


def _measured(
    problem: Problem, eps: float, eta: float | None, ladder: Ladder, noisy: bool
) -> tuple[Choice, dict]:
    """loss ~ horizon + bias + noise, each integrated against its spectral measure: an estimate for this instance."""
    seen = Seen.of(problem, ladder)

    def make(etas, lags, windows):
        eta, steps, window = _mesh(etas, lags, windows)
        horizon, bias, noise = seen.losses(eta, window, steps)
        return Ways(eta, steps, window, (horizon[:, None], bias, 0.0, 0.0), noise)

    choice = search(ladder, CAUTION * eps, make, _grids(problem, eps, eta), noisy)
    if choice is None:
        raise ladder.refuse(eps, "measured", seen.floors[-1])
    said = "spectral measures from coarse gradients, finer increments extrapolated"
    return choice, {"averaging": "tail", "window": int(choice.window), "guarantee": said}


def _grids(problem: Problem, eps: float, eta: float | None):
    """Steps, lags and windows of a first search."""
    if eta is not None and not eta < 2 / problem.beta:
        raise ValueError(
            f"the step must be below 2/beta = {2 / problem.beta:.4g}; got {eta:.4g}: take a smaller eta"
        )
    etas = np.array(STEPS) / problem.beta if eta is None else np.array([eta])
    most = 4 * problem.d0**2 / (etas.min() * eps)  # averaged descent from d0: loss d0^2/(2 eta T)
    if problem.mu:
        most = min(
            most, 8 / (etas.min() * problem.mu) * math.log1p(problem.beta * problem.d0**2 / eps)
        )
    return etas, np.append(0.0, _whole(most, 20)), _whole(most, 20)


def _mesh(etas, lags, windows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(eta, steps, window) of every way."""
    eta, window, lag = (g.ravel() for g in np.meshgrid(etas, windows, lags, indexing="ij"))
    return eta, window + lag, window
