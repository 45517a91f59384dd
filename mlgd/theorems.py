"""Plans by the theorems, on the ideal ladder of a Problem: what the paper's closed forms promise and cost as executed."""

import math

import numpy as np

from .lazy import formulas as F
from .oracle import Telescope
from .schemes import Budget, Plan, Problem, Stage


def step_size(problem: Problem, eps: float, eta: float | None) -> float:
    """The step, at most 1/(4 beta) and d0^2/eps as the one-step lemma and the rounding of T need."""
    largest = 1 / (4 * problem.beta)
    if eta is None:
        return min(largest, problem.d0**2 / eps)
    if eta > largest * (1 + 1e-12):
        raise ValueError(
            f"the step must be at most 1/(4 beta) = {largest:.4g}; got {eta:.4g}: take a smaller eta"
        )
    if eta * eps > problem.d0**2 * (1 + 1e-12):
        raise ValueError(
            f"the step must be at most d0^2/eps = {problem.d0**2 / eps:.4g}; got {eta:.4g}"
        )
    return eta


def ideal(problem: Problem, eps: float, method: str, eta: float | None) -> Plan:
    """A plan with the theorems' constants on the ladder that the problem assumes."""
    eta = step_size(problem, eps, eta)
    parts = stages_of(problem, eps, method, eta)
    expected = bound = 0.0
    for stage in parts["stages"]:
        known = problem.prices(stage.delta), stage.delta, stage.sigma, problem.gamma
        expected += stage.steps * Telescope.for_accuracy(*known).expected_cost()
        bound += stage.steps * call_bound(problem, stage.delta, stage.sigma)
    warnings = problem.already(eps)
    if stage.sigma > 0 and (p := Telescope.for_accuracy(*known, coarsest="paper").p[0]) < 1:
        warnings += (
            f"the paper's probabilities would draw the coarsest level with probability {p:.2g}: unsafe unless the "
            "gradient is bounded; this plan draws it at every call",
        )
    parts |= {
        "problem": problem,
        "eps": eps,
        "method": method,
        "promise": "proved",
        "eta": eta,
        "warnings": warnings,
    }
    return Plan(**parts, expected_cost=expected, cost_bound=bound)


def stages_of(problem: Problem, eps: float, method: str, eta: float) -> dict:
    """What the method's theorem prescribes: stages, averaging, growth, budget, guarantee."""
    if method in ("accelerated", "scheduled"):
        return (accelerated if method == "accelerated" else scheduled)(problem, eps, eta)
    strong = problem.mu > 0 and eps <= problem.mu * problem.d0**2
    forms, terms = (F.STRONG, F.STRONG_BUDGET) if strong else (F.CONVEX, F.CONVEX_BUDGET)
    numbers = {"d0": problem.d0, "eta": eta, "eps": eps, "mu": problem.mu}
    steps, delta, sigma2 = (F.value(forms[name], **numbers) for name in ("T", "delta", "sigma2"))
    stage = Stage(math.ceil(steps - 1e-9), delta, 0.0 if method == "fixed" else math.sqrt(sigma2))
    known = {"stages": (stage,), "budget": _budget(terms, problem, stage, numbers)}
    if not strong:
        return known | {
            "averaging": "uniform",
            "guarantee": "the paper's Theorem 1(a), average of the iterates",
        }
    known["growth"] = 1 / (1 - eta * problem.mu)
    return known | {
        "averaging": "geometric",
        "guarantee": "the paper's Theorem 1(b), geometric average",
    }


def accelerated(problem: Problem, eps: float, eta: float) -> dict:
    """Similar triangles: E loss <= 3 R^2 / (2 A_T) from distance R, restarted at halved squared distance when mu > 0."""
    stages, radius = [], problem.d0
    while True:
        target = F.value(F.STAGE_TARGET, mu=problem.mu, d0=radius) if problem.mu else 0.0
        last = target <= eps
        goal = eps if last else target
        steps = max(1, math.ceil(F.value(F.SIMILAR["T"], d0=radius, eta=eta, eps=goal) - 1e-9))
        numbers = {"d0": radius, "eta": eta, "T": steps}
        delta = F.value(F.SIMILAR["delta"], **numbers)
        sigma = math.sqrt(F.value(F.SIMILAR["sigma2"], delta=delta, **numbers))
        stages.append(Stage(steps, delta, sigma))
        if last:
            budget = _budget(F.SIMILAR_BUDGET, problem, stages[-1], numbers)
            said = {
                "averaging": "last",
                "guarantee": "similar triangles, constants proved in the book",
            }
            return {"stages": tuple(stages), "budget": budget} | said
        radius /= math.sqrt(2)


def scheduled(problem: Problem, eps: float, eta: float) -> dict:
    """The paper's Proposition 2 in discrete time: weights rho^-t, accuracies relaxed by sqrt 2 per block, backwards in time."""
    mu, d0 = problem.mu, problem.d0
    rate = -math.log1p(-eta * mu / 2)
    steps = max(1, math.ceil(math.log1p(2 * mu * d0**2 / eps) / rate - 1e-9))
    block = max(1, math.floor(2 * math.log(2) / rate))
    ago = np.arange(
        0, steps, block
    )  # steps between a block's end and the end of the run, the last block first
    counts = np.minimum(block, steps - ago)
    shares = (
        np.exp(-rate * ago) * np.expm1(-rate * counts) / np.expm1(-rate * steps)
    )  # of the weights; they sum to one
    relaxed = 2.0 ** np.arange(ago.size)  # a block earlier, delta^2 and sigma^2 double
    injection = float(shares @ relaxed)
    delta = math.sqrt(F.value(F.DISCRETE["delta2"], mu=mu, eta=eta, eps=eps, injection=injection))
    sigma = math.sqrt(F.value(F.DISCRETE["sigma2"], eta=eta, eps=eps, injection=injection))
    stages = tuple(
        Stage(int(k), delta * math.sqrt(r), sigma * math.sqrt(r))
        for k, r in zip(counts, relaxed, strict=True)
    )
    worst_delta = math.sqrt(float(shares @ [problem.rounded(s.delta) ** 2 for s in stages]))
    worst_sigma = math.sqrt(float(shares @ [s.sigma**2 for s in stages]))
    numbers = {"mu": mu, "eta": eta, "delta": worst_delta, "sigma": worst_sigma}
    bias, noise = (F.value(F.DISCRETE_BUDGET[name], **numbers) for name in ("bias", "noise"))
    horizon = (
        mu * d0**2 / 2 / math.expm1(steps * rate)
    )  # the formula's own form cancels where rate * steps is tiny
    said = {
        "averaging": "exponential",
        "guarantee": "the paper's Proposition 2 in discrete time, proved in the book",
    }
    return {
        "stages": stages[::-1],
        "growth": 1 / (1 - eta * mu / 2),
        "budget": Budget(horizon, bias, noise),
    } | said


def _budget(terms, problem, stage, numbers) -> Budget:
    known = {
        **numbers,
        "T": stage.steps,
        "delta": problem.rounded(stage.delta),
        "sigma": stage.sigma,
    }
    return Budget(**{name: F.value(expression, **known) for name, expression in terms.items()})


def call_bound(problem: Problem, delta: float, sigma: float) -> float:
    """An upper bound of the mean price of one call, for any rounding of delta to a level."""
    first = F.value(F.FIRST, c=problem.c, first=problem.first, gamma=problem.gamma)
    if sigma == 0:
        return max(first, (2 * problem.c / delta) ** problem.gamma)
    numbers = {"c": problem.c, "sigma": sigma, "gamma": problem.gamma, "delta": delta / 2}
    numbers["n"] = max(1.0, math.log2(2 * sigma / (3 * delta)) + 1)
    return first + min(
        F.value(F.CALL_EXECUTED[problem.regime], **numbers), F.value(F.ALL_LEVELS, **numbers)
    )
