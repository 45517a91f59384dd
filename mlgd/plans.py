"""From a problem and a target accuracy to hyperparameters and a bill, before anything runs.

A plan is correct as executed: steps are whole, delta is a level's accuracy, an increment is two evaluations, the
coarsest level is drawn at every call, and all of it is inside `expected_cost`, `cost_bound` and the error budget.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from .hierarchy import Hierarchy, first_level
from .lazy import formulas as F
from .oracle import Telescope

METHODS = ("multilevel", "fixed", "accelerated", "scheduled")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is known before running: smoothness, distance to a minimizer, and the law of prices (c/accuracy)^gamma.

    mu > 0 makes it strongly convex. `first` is the coarsest level on offer, the paper's k_min unless given.

    >>> Problem(beta=1, d0=2, gamma=3, c=0.5).regime
    'HTMC'
    """

    beta: float
    d0: float
    gamma: float
    c: float
    mu: float = 0.0
    first: int | None = None

    def __post_init__(self):
        for name in ("beta", "d0", "gamma", "c"):
            _positive(name, getattr(self, name))
        if not 0 <= self.mu <= self.beta:
            raise ValueError(f"mu must lie in [0, beta] = [0, {self.beta:g}]; got {self.mu!r}")
        if self.first is None:
            object.__setattr__(self, "first", first_level(self.c))

    @property
    def regime(self) -> str:
        """'ETMC', 'MC' or 'HTMC'."""
        return F.regime(self.gamma)

    def prices(self, delta: float) -> Hierarchy:
        """The dyadic ladder this problem assumes, down to accuracy delta: prices only, nothing to evaluate."""
        finest = math.ceil(-math.log2(delta))
        if 2.0 ** (1 - finest) <= delta * (1 + 1e-12):  # delta is a level's accuracy up to rounding
            finest -= 1
        finest = max(self.first, finest)
        return Hierarchy(_no_gradient, lambda k: (self.c * 2.0**k) ** self.gamma, range(self.first, finest + 1))


@dataclass(frozen=True)
class Stage:
    """A stretch of steps at one accuracy; an accelerated stage restarts from the point the one before reached."""

    steps: int
    delta: float
    sigma: float
    probabilities: tuple[float, ...] | None = None  # in place of the closed form for delta and sigma


@dataclass(frozen=True)
class Budget:
    """How the target is split: what the horizon, the bias and the noise may each cost in loss."""

    horizon: float
    bias: float
    noise: float

    @property
    def total(self) -> float:
        return self.horizon + self.bias + self.noise


@dataclass(frozen=True)
class Plan:
    """Hyperparameters and a bill. `delta` and `sigma` are those of the last stage, the finest one.

    The output is the average of the iterates with weights growing by `growth` a step ('uniform', 'geometric',
    'exponential'), or the last point of the accelerated scheme.
    """

    problem: Problem
    eps: float
    method: str
    eta: float
    stages: tuple[Stage, ...]
    averaging: str
    growth: float
    budget: Budget
    expected_cost: float
    cost_bound: float
    guarantee: str
    warnings: tuple[str, ...] = field(default=())

    @property
    def steps(self) -> int:
        return sum(s.steps for s in self.stages)

    @property
    def delta(self) -> float:
        return self.stages[-1].delta

    @property
    def sigma(self) -> float:
        return self.stages[-1].sigma

    def telescope(self, h: Hierarchy, stage: Stage) -> Telescope:
        """The oracle a stage runs on a hierarchy."""
        if stage.probabilities is not None:
            return Telescope(h, stage.probabilities)
        return Telescope.for_accuracy(h, stage.delta, stage.sigma, self.problem.gamma)

    def price_on(self, h: Hierarchy) -> float:
        """The exact expected price of this plan on a hierarchy of your own, whatever its levels and prices."""
        return sum(s.steps * self.telescope(h, s).expected_cost() for s in self.stages)

    def __str__(self) -> str:
        b = self.budget
        rows = [
            f"{self.method}, eps = {self.eps:g}: {self.steps} steps of {self.eta:.3g}, {self.averaging} average",
            f"  bias at most   {self.delta:.3g}   noise at most {self.sigma:.3g}"
            + (f"   ({len(self.stages)} stages)" if len(self.stages) > 1 else ""),
            f"  error budget   {b.horizon:.3g} horizon + {b.bias:.3g} bias + {b.noise:.3g} noise = {b.total:.3g}",
            f"  expected price {self.expected_cost:.4g}   never above {self.cost_bound:.4g}",
            f"  guarantee      {self.guarantee}",
        ]
        return "\n".join(rows + [f"  ! {w}" for w in self.warnings])


def plan(problem: Problem, eps: float, method: str = "multilevel", eta: float | None = None) -> Plan:
    """Hyperparameters that reach mean loss eps, and what they cost.

    'multilevel' and 'fixed' follow Theorem 1: part (b) when mu > 0 and eps <= mu d0^2, part (a) otherwise.
    'accelerated' runs the method of similar triangles with constants proved in the chapter on acceleration,
    restarted under strong convexity; 'scheduled' is the discrete form of Proposition 2 (mu > 0).

    >>> p = plan(Problem(beta=1, d0=1, gamma=3, c=1), eps=0.25)
    >>> p.steps, p.eta, p.delta, p.averaging, p.budget.total <= p.eps
    (64, 0.25, 0.015625, 'uniform', True)
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}; got {method!r}")
    _positive("eps", eps)
    if method == "scheduled" and not problem.mu:
        raise ValueError("the scheduled method needs strong convexity: give the problem a mu > 0, or use 'multilevel'")
    largest = 1 / (4 * problem.beta)
    if eta is None:
        eta = min(largest, problem.d0**2 / eps)
    _positive("eta", eta)
    if eta > largest * (1 + 1e-12):
        raise ValueError(f"the step must be at most 1/(4 beta) = {largest:.4g}; got {eta:.4g}: take a smaller eta")
    if eta * eps > problem.d0**2 * (1 + 1e-12):
        raise ValueError(f"the step must be at most d0^2/eps = {problem.d0**2 / eps:.4g}; got {eta:.4g}")
    builder = {"accelerated": _accelerated, "scheduled": _scheduled}.get(method)
    if builder is None:
        strong = problem.mu > 0 and eps <= problem.mu * problem.d0**2
        builder = _strong if strong else _convex
    parts = builder(problem, float(eps), float(eta), noisy=method != "fixed")
    return _priced(problem, float(eps), method, float(eta), *parts)


def tuned(problem: Problem, eps: float, telescope: Telescope, eta: float, steps: int) -> Plan:
    """A plan set by hand: your own probabilities, step and number of steps, without a guarantee.

    The theorems budget for the worst case; on one instance a sweep over sigma, as in the paper's experiment, is
    cheaper. The output averages the late iterates (weights e^(mu t/2) in flow time, as in Proposition 2).

    >>> from mlgd import Telescope
    >>> from mlgd.examples import biased
    >>> h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 4))
    >>> p = tuned(Problem(beta=1, mu=1, d0=1, gamma=3, c=1), 0.1, Telescope(h, [1.0, 0.5, 0.1]), eta=0.5, steps=20)
    >>> p.steps, p.expected_cost
    (20, 1888.0)
    """
    for name, number in (("eps", eps), ("eta", eta), ("steps", steps)):
        _positive(name, number)
    if not eta < 2 / problem.beta:
        raise ValueError(f"the step must be below 2/beta = {2 / problem.beta:.4g}; got {eta:.4g}")
    stage = Stage(int(steps), telescope.h.accuracy(telescope.levels[-1]), math.nan, tuple(telescope.p.tolist()))
    growth = 1 / (1 - eta * problem.mu / 2)
    nothing = Budget(math.nan, math.nan, math.nan)
    price = steps * telescope.expected_cost()
    bound = steps * sum(telescope.h.cost(k) for k in telescope.levels)
    return Plan(
        problem,
        float(eps),
        "tuned",
        float(eta),
        (stage,),
        "exponential",
        growth,
        nothing,
        price,
        bound,
        "none: set by hand",
    )


def _convex(problem, eps, eta, noisy):
    """Theorem 1(a)."""
    numbers = {"d0": problem.d0, "eta": eta, "eps": eps}
    steps = math.ceil(F.value(F.CONVEX["T"], **numbers) - 1e-9)
    stage = _stage(F.CONVEX, steps, numbers, noisy)
    budget = _budget(F.CONVEX_BUDGET, problem, stage, {"d0": problem.d0, "eta": eta, "T": steps})
    return (stage,), "uniform", 1.0, budget, "Theorem 1(a), mean loss of the average of the iterates"


def _strong(problem, eps, eta, noisy):
    """Theorem 1(b)."""
    numbers = {"d0": problem.d0, "eta": eta, "eps": eps, "mu": problem.mu}
    steps = math.ceil(F.value(F.STRONG["T"], **numbers) - 1e-9)
    stage = _stage(F.STRONG, steps, numbers, noisy)
    budget = _budget(F.STRONG_BUDGET, problem, stage, {**numbers, "T": steps})
    growth = 1 / (1 - eta * problem.mu)
    return (stage,), "geometric", growth, budget, "Theorem 1(b), mean loss of the geometric average"


def _accelerated(problem, eps, eta, noisy):
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
            return tuple(stages), "last", 1.0, budget, "similar triangles, constants proved in the book"
        radius /= math.sqrt(2)


def _scheduled(problem, eps, eta, noisy):
    """Proposition 2 in discrete time: weights rho^-t, accuracies relaxed by a factor sqrt 2 a block, backwards in time."""
    mu, d0 = problem.mu, problem.d0
    grow = 1 / (1 - eta * mu / 2)
    rate = -math.log1p(-eta * mu / 2)
    steps = max(1, math.ceil(math.log1p(2 * mu * d0**2 / eps) / rate - 1e-9))
    block = max(1, math.floor(2 * math.log(2) / rate))
    ago = np.arange(0, steps, block)  # steps between a block's end and the end of the run, the last block first
    counts = np.minimum(block, steps - ago)
    shares = np.exp(-rate * ago) * np.expm1(-rate * counts) / np.expm1(-rate * steps)  # of the weights; they sum to one
    relaxed = 2.0 ** np.arange(ago.size)  # a block earlier, delta^2 and sigma^2 double
    injection = float(shares @ relaxed)
    delta = math.sqrt(3 * eps * mu / (16 * injection * (1 + eta * mu)))
    sigma = math.sqrt(3 * eps / (8 * injection * eta))
    stages = tuple(
        Stage(int(k), delta * math.sqrt(r), sigma * math.sqrt(r)) for k, r in zip(counts, relaxed, strict=True)
    )
    noise = eta * float(shares @ [s.sigma**2 for s in stages])
    bias = (2 / mu + 2 * eta) * float(shares @ [_rounded(problem, s.delta) ** 2 for s in stages])
    horizon = mu * d0**2 / 2 / math.expm1(steps * rate)
    return (
        stages[::-1],
        "exponential",
        grow,
        Budget(horizon, bias, noise),
        "Proposition 2 in discrete time, proved in the book",
    )


def _stage(parameters, steps, numbers, noisy) -> Stage:
    known = {k: v for k, v in numbers.items() if k in ("d0", "eps", "mu")}
    delta = F.value(parameters["delta"], **{k: v for k, v in known.items() if _uses(parameters["delta"], k)})
    sigma2 = F.value(parameters["sigma2"], eps=numbers["eps"], eta=numbers["eta"]) if noisy else 0.0
    return Stage(steps, delta, math.sqrt(sigma2))


def _uses(expression, name) -> bool:
    return getattr(F, name) in expression.free_symbols


def _budget(terms, problem, stage, numbers) -> Budget:
    known = {**numbers, "delta": _rounded(problem, stage.delta), "sigma": stage.sigma}
    return Budget(*(F.value(e, **{k: v for k, v in known.items() if _uses(e, k)}) for e in terms.values()))


def _rounded(problem, delta) -> float:
    """The accuracy of the level that serves delta."""
    return 2.0 ** -problem.prices(delta).levels[-1]


def _priced(problem, eps, method, eta, stages, averaging, growth, budget, guarantee) -> Plan:
    expected = bound = 0.0
    for stage in stages:
        ladder = problem.prices(stage.delta)
        expected += (
            stage.steps * Telescope.for_accuracy(ladder, stage.delta, stage.sigma, problem.gamma).expected_cost()
        )
        bound += stage.steps * call_bound(problem, stage.delta, stage.sigma)
    warnings = []
    if eps >= problem.beta * problem.d0**2 / 2:
        warnings.append("the starting point already has loss at most eps (eps >= beta d0^2 / 2): nothing needs to run")
    last = stages[-1]
    if last.sigma > 0:
        ladder = problem.prices(last.delta)
        p = Telescope.for_accuracy(ladder, last.delta, last.sigma, problem.gamma, coarsest="paper").p[0]
        if p < 1:
            warnings.append(
                f"the paper's probabilities would draw the coarsest level with probability {p:.2g}: unsafe unless the "
                "gradient is bounded; this plan draws it at every call"
            )
    return Plan(
        problem, eps, method, eta, stages, averaging, growth, budget, expected, bound, guarantee, tuple(warnings)
    )


def call_bound(problem: Problem, delta: float, sigma: float) -> float:
    """An upper bound of the mean price of one call, for any rounding of delta to a level."""
    first = F.value(F.FIRST, c=problem.c, first=problem.first, gamma=problem.gamma)
    if sigma == 0:
        return max(first, (2 * problem.c / delta) ** problem.gamma)
    name = problem.regime
    numbers = {"c": problem.c, "sigma": sigma}
    if name == "MC":
        numbers["n"] = max(1.0, math.log2(2 * sigma / (3 * delta)) + 1)
    else:
        numbers["gamma"] = problem.gamma
    if name == "HTMC":
        numbers["delta"] = delta / 2
    everything = F.value(F.ALL_LEVELS, c=problem.c, delta=delta / 2, gamma=problem.gamma)
    return first + min(F.value(F.CALL_EXECUTED[name], **numbers), everything)


@dataclass(frozen=True)
class Comparison:
    """Every method's plan for one problem and target, cheapest first."""

    problem: Problem
    eps: float
    plans: tuple[Plan, ...]

    def multiplier(self, method: str) -> float | None:
        """What the paper says the method's bound is, over multilevel descent's (None where it says nothing)."""
        if method == "multilevel":
            return 1.0
        p = self.problem
        column = "strong" if p.mu > 0 and self.eps <= p.mu * p.d0**2 else "convex"
        expression = F.MULTIPLIER.get((method, column), {}).get(p.regime)
        if expression is None:
            return None
        numbers = {"beta": p.beta, "mu": p.mu, "d0": p.d0, "eps": self.eps, "gamma": p.gamma}
        return F.value(expression, **{k: v for k, v in numbers.items() if _uses(expression, k)})

    def __str__(self) -> str:
        base = next(p.expected_cost for p in self.plans if p.method == "multilevel")
        rows = ["method        expected price   over multilevel   the paper's multiplier"]
        for p in self.plans:
            m = self.multiplier(p.method)
            said = "-" if m is None else f"{m:.3g}"
            rows.append(f"{p.method:12s}  {p.expected_cost:14.4g}   {p.expected_cost / base:15.3g}   {said:>22s}")
        return "\n".join(rows)


def compare(problem: Problem, eps: float) -> Comparison:
    """Every method's predicted price, cheapest first, with the paper's multipliers.

    >>> ranked = compare(Problem(beta=1, mu=0.01, d0=1, gamma=3, c=1), eps=1e-3)
    >>> [p.method for p in ranked.plans]
    ['scheduled', 'accelerated', 'multilevel', 'fixed']
    """
    plans = [plan(problem, eps, m) for m in METHODS if m != "scheduled" or problem.mu > 0]
    return Comparison(problem, eps, tuple(sorted(plans, key=lambda p: p.expected_cost)))


def _positive(name: str, number) -> None:
    if not (isinstance(number, int | float | np.number) and math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a positive finite number; got {number!r}")


def _no_gradient(k, y):
    raise NotImplementedError("a plan's ladder has prices only; run the plan on a Hierarchy of your own")
