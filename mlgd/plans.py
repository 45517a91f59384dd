"""What is known before running, a Problem, and what is to be run, a Plan: stages, an error budget and a bill.

A plan is correct as executed: steps are whole, the finest level is one that exists, an increment is two evaluations, and
all of it is inside `expected_cost` and the error budget. `mlgd.planning` makes plans.
"""

import math
from dataclasses import dataclass, field

from .hierarchy import Hierarchy, first_level, positive
from .telescope import Telescope

SAID = {
    "proved": "mean loss at most {eps:g} (proved: {guarantee})",
    "estimate": "mean loss about {eps:g} (an estimate from measured inputs: {guarantee})",
    "none": "nothing is promised ({guarantee})",
}


class NotApplicable(ValueError):
    """A method can't be planned for this problem, target or ladder; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is known before running: smoothness, distance to a minimizer, and the law of prices (c/accuracy)^gamma.

    mu > 0 makes it strongly convex. `first` is the coarsest level on offer, the paper's k_min unless given. `measured`:
    some of these numbers are, so that plans are estimates.

    >>> Problem(beta=1, d0=2, gamma=3, c=0.5).regime
    'HTMC'
    """

    beta: float
    d0: float
    gamma: float
    c: float
    mu: float = 0.0
    first: int | None = None
    measured: bool = field(default=False, repr=False)

    def __post_init__(self):
        for name in ("beta", "d0", "gamma", "c"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        number = isinstance(self.mu, int | float) or hasattr(self.mu, "dtype")
        if not number or not 0 <= self.mu <= self.beta:
            raise ValueError(f"mu must lie in [0, beta] = [0, {self.beta:g}]; got {self.mu!r}")
        object.__setattr__(self, "mu", float(self.mu))
        if self.first is None:
            object.__setattr__(self, "first", first_level(self.c))
        elif not isinstance(self.first, int) or isinstance(self.first, bool):
            raise ValueError(f"first must be a level, an integer; got {self.first!r}")

    @property
    def regime(self) -> str:
        """'ETMC', 'MC' or 'HTMC': easier than, at, or harder than Monte Carlo."""
        return "MC" if self.gamma == 2 else ("HTMC" if self.gamma > 2 else "ETMC")

    def prices(self, delta: float) -> Hierarchy:
        """The dyadic ladder this problem assumes, down to accuracy delta: prices only, nothing to evaluate."""
        finest = math.ceil(-math.log2(positive("delta", delta)))
        if 2.0 ** (1 - finest) <= delta * (1 + 1e-12):  # delta is a level's accuracy up to rounding
            finest -= 1
        levels = range(self.first, max(self.first, finest) + 1)
        return Hierarchy(_no_gradient, lambda k: (self.c * 2.0**k) ** self.gamma, levels)

    def step(self, eps: float, eta: float | None) -> float:
        """The step, at most 1/(4 beta) and d0^2/eps as the one-step lemma and the rounding of T need."""
        for name, most in (("1/(4 beta)", 1 / (4 * self.beta)), ("d0^2/eps", self.d0**2 / eps)):
            if eta is not None and eta > most * (1 + 1e-12):
                raise ValueError(
                    f"the step must be at most {name} = {most:.4g}; got {eta:.4g}: take a smaller eta"
                )
        return min(1 / (4 * self.beta), self.d0**2 / eps) if eta is None else eta


def _no_gradient(k, y):
    raise NotImplementedError("a plan's ladder has prices only; run the plan on a Hierarchy")


@dataclass(frozen=True)
class Stage:
    """A stretch of steps with one oracle: a bias of at most delta, a noise of at most sigma per call.

    Without `levels` the oracle is the paper's closed form for delta and sigma; with them, these levels (others of the
    ladder are left out) with these probabilities. A call costs `price` on average. `most` bounds what any call costs;
    without a ladder, the mean.
    """

    steps: int
    delta: float
    sigma: float
    price: float = math.nan
    most: float = math.nan
    levels: tuple[int, ...] | None = None
    probabilities: tuple[float, ...] | None = None

    @property
    def total(self) -> float:
        """The mean price of all its steps."""
        return self.steps * self.price


def closed_form(problem: Problem, stage: Stage, eta: float, method: str, h: Hierarchy) -> Telescope:
    """The paper's closed form, its coarsest level drawn with a probability of at least 4 beta eta.

    Then the one-step lemma holds as if its variance were at most sigma^2 everywhere (the chapter on convex losses).
    Similar triangles need that variance, and draw the coarsest level always.
    """
    least = 1.0 if method == "accelerated" else min(1.0, 4 * problem.beta * eta)
    return Telescope.for_accuracy(h, stage.delta, stage.sigma, problem.gamma, coarsest=least)


@dataclass(frozen=True)
class Budget:
    """How the target is split: what the horizon, the bias and the noise may each cost in loss."""

    horizon: float
    bias: float
    noise: float

    @property
    def total(self) -> float:
        return self.horizon + self.bias + self.noise


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Hyperparameters and a bill. `delta` and `sigma` are those of the last stage, the finest one.

    The output is the mean of the points where a gradient was taken, with weights that grow by `growth` per step; with a
    `window` the mean of so many last points reached (1: the last point, as of the accelerated scheme).
    """

    method: str
    eta: float
    stages: tuple[Stage, ...]
    problem: Problem | None = None
    eps: float = math.nan
    promise: str = "none"  # 'proved', 'estimate' or 'none'
    guarantee: str = "set by hand"
    growth: float = 1.0
    window: int | None = None
    budget: Budget | None = None
    accuracies: dict[int, float] | None = None  # of the levels, as the plan relies on them

    @classmethod
    def by_hand(
        cls, telescope: Telescope, eta: float, steps: int, window: int | None = None
    ) -> "Plan":
        """Your own probabilities, step and number of steps; it promises nothing.

        >>> from mlgd.examples import biased
        >>> h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 4))
        >>> p = Plan.by_hand(Telescope(h, [1.0, 0.5, 0.1]), eta=0.5, steps=20)
        >>> p.steps, p.expected_cost, p.promised
        (20, 1888.0, 'nothing is promised (set by hand)')
        """
        if not isinstance(telescope, Telescope):
            raise ValueError(f"by_hand needs a Telescope; got {type(telescope).__name__}")
        for name, number in {"steps": steps, "window": steps if window is None else window}.items():
            if isinstance(number, bool) or number != math.floor(positive(name, number)):
                raise ValueError(f"{name} must be a whole number, at least 1; got {number!r}")
        if window is not None and window > steps:
            raise ValueError(
                f"the window must be at most the number of steps, {steps}; got {window}"
            )
        h, levels = telescope.h, telescope.levels
        price, most = telescope.expected_cost(), float(sum(map(h.cost, levels)))
        stage = Stage(
            int(steps), math.nan, math.nan, price, most, levels, tuple(telescope.p.tolist())
        )
        return cls(method="by hand", eta=positive("eta", eta), stages=(stage,), window=window)

    @property
    def steps(self) -> int:
        return sum(s.steps for s in self.stages)

    @property
    def delta(self) -> float:
        return self.stages[-1].delta

    @property
    def sigma(self) -> float:
        return self.stages[-1].sigma

    @property
    def expected_cost(self) -> float:
        """The mean of what a run on this ladder pays."""
        return float(sum(s.total for s in self.stages))

    @property
    def cost_bound(self) -> float:
        """What no run pays more than; without a ladder, a bound of the mean."""
        return float(sum(s.steps * s.most for s in self.stages))

    @property
    def averaging(self) -> str:
        """'uniform', 'geometric', 'tail' or 'last'."""
        if self.window is None:
            return "uniform" if self.growth == 1 else "geometric"
        return "last" if self.window == 1 else "tail"

    @property
    def promised(self) -> str:
        """What may be said of a run that made all steps, in one sentence."""
        return SAID[self.promise].format(eps=self.eps, guarantee=self.guarantee)

    def telescope(self, h: Hierarchy, stage: Stage) -> Telescope:
        """The oracle a stage runs on a hierarchy."""
        if stage.levels is not None:
            return Telescope(h, dict(zip(stage.levels, stage.probabilities, strict=True)))
        return closed_form(self.problem, stage, self.eta, self.method, h)

    def __str__(self) -> str:
        last, count = self.stages[-1], len(self.stages)
        output = "last point" if self.window == 1 else f"{self.averaging} average"
        rows = [
            f"{self.method}, eps = {self.eps:g}: {self.steps} steps of {self.eta:.3g}, {output}",
            f"  bias at most   {self.delta:.3g}   noise at most {self.sigma:.3g} per call"
            + (f"   (the last of {count} stages)" if count > 1 else ""),
        ]
        if last.levels is not None:
            drawn = zip(last.levels, last.probabilities, strict=True)
            rows.append("  levels drawn   " + "  ".join(f"{k}: {p:.3g}" for k, p in drawn))
        if (b := self.budget) is not None:
            parts = f"{b.horizon:.3g} horizon + {b.bias:.3g} bias + {b.noise:.3g} noise"
            rows.append(f"  error budget   {parts} = {b.total:.3g}")
        word = "mean at most" if last.levels is None else "never above"
        rows.append(f"  expected price {self.expected_cost:.4g}   {word} {self.cost_bound:.4g}")
        rows.append(f"  promise        {self.promised}")
        if self.problem is not None and self.eps >= self.problem.beta * self.problem.d0**2 / 2:
            rows.append("  ! the start already has loss at most eps (eps >= beta d0^2 / 2)")
        return "\n".join(rows)


@dataclass(frozen=True)
class Comparison:
    """Every method's plan for one problem and target, cheapest first; `left_out` says why a method has none."""

    plans: tuple[Plan, ...]
    left_out: dict[str, str]

    @property
    def best(self) -> Plan:
        """The cheapest plan."""
        return self.plans[0]

    @property
    def verdict(self) -> str:
        """Whether the telescope pays: the cheapest method that uses one against the fixed level."""
        prices = {p.method: p.expected_cost for p in self.plans}
        fixed = prices.pop("fixed", None)
        if fixed is None or not prices:
            other = "no fixed level" if prices else "no telescope"
            return f"{other} can be planned here: use {self.best.method!r}"
        method = min(prices, key=prices.__getitem__)
        times = fixed / prices[method]
        if times >= 1:
            return f"the telescope pays: {method!r} is {times:.3g} times cheaper than 'fixed'"
        return (
            f"the telescope does not pay: 'fixed' is {1 / times:.3g} times cheaper than {method!r}"
        )

    def __str__(self) -> str:
        rows = ["method        expected price   over the cheapest"]
        for p in self.plans:
            times = p.expected_cost / self.best.expected_cost
            rows.append(f"{p.method:12s}  {p.expected_cost:14.4g}   {times:17.3g}")
        rows += [f"{method:12s}  left out: {why}" for method, why in self.left_out.items()]
        return "\n".join([*rows, self.verdict])
