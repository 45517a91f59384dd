"""What is known before running, a Problem, and what is to be run, a Plan: stages, an error budget and a bill.

A plan is correct as executed: steps are whole, the finest level is one that exists, an increment is two evaluations, the
coarsest level used is drawn at every call, and all of it is inside `expected_cost` and the error budget.
"""

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from .anchors import Telescope, epoch_price
from .hierarchy import Hierarchy, first_level, positive
from .lazy import formulas as F

if TYPE_CHECKING:
    from .spectra import Measures

SAID = {
    "proved": "mean loss at most {eps:g} (proved: {guarantee})",
    "quadratic": "mean loss at most {eps:g} on quadratics of this class ({guarantee})",
    "measured": "mean loss about {eps:g} (an estimate: {guarantee})",
    "none": "nothing is promised ({guarantee})",
}


class NotApplicable(ValueError):
    """A method can't be planned for this problem, target or ladder; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is known before running: smoothness, distance to a minimizer, and the law of prices (c/accuracy)^gamma.

    mu > 0 makes it strongly convex. `first` is the coarsest level on offer, the paper's k_min unless given. `measures`
    are those of `estimate`, for plans with promise='measured'.

    >>> Problem(beta=1, d0=2, gamma=3, c=0.5).regime
    'HTMC'
    """

    beta: float
    d0: float
    gamma: float
    c: float
    mu: float = 0.0
    first: int | None = None
    measures: "Measures | None" = field(default=None, compare=False, repr=False)

    def __post_init__(self):
        for name in ("beta", "d0", "gamma", "c"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        if (
            not (isinstance(self.mu, int | float) or hasattr(self.mu, "dtype"))
            or not 0 <= self.mu <= self.beta
        ):
            raise ValueError(f"mu must lie in [0, beta] = [0, {self.beta:g}]; got {self.mu!r}")
        object.__setattr__(self, "mu", float(self.mu))
        if self.first is None:
            object.__setattr__(self, "first", first_level(self.c))
        elif not isinstance(self.first, int) or isinstance(self.first, bool):
            raise ValueError(f"first must be a level, an integer; got {self.first!r}")
        if self.measures is not None and not hasattr(self.measures, "increments"):
            raise ValueError(
                f"measures must be those of estimate(h, y0), scale.measures; got {self.measures!r}"
            )

    @property
    def regime(self) -> str:
        """'ETMC', 'MC' or 'HTMC'."""
        return F.regime(self.gamma)

    def prices(self, delta: float) -> Hierarchy:
        """The dyadic ladder this problem assumes, down to accuracy delta: prices only, nothing to evaluate."""
        finest = math.ceil(-math.log2(positive("delta", delta)))
        if 2.0 ** (1 - finest) <= delta * (1 + 1e-12):  # delta is a level's accuracy up to rounding
            finest -= 1
        levels = range(self.first, max(self.first, finest) + 1)
        return Hierarchy(_no_gradient, lambda k: (self.c * 2.0**k) ** self.gamma, levels)

    def rounded(self, delta: float) -> float:
        """The accuracy of the level that serves delta on that ladder."""
        return 2.0 ** -self.prices(delta).levels[-1]

    def already(self, eps: float) -> tuple[str, ...]:
        """A warning where the target is met before the first step."""
        if eps < self.beta * self.d0**2 / 2:
            return ()
        return (
            "the starting point already has loss at most eps (eps >= beta d0^2 / 2): nothing needs to run",
        )


def _no_gradient(k, y):
    raise NotImplementedError(
        "a plan's ladder has prices only; run the plan on a Hierarchy of your own"
    )


@dataclass(frozen=True)
class Stage:
    """A stretch of steps with one oracle, or with one deterministic solver on one level.

    Without `levels` the oracle is the closed form for delta and sigma; with them, these levels (some of the ladder's
    may be left out) with these probabilities.
    """

    steps: int
    delta: float
    sigma: float
    _: KW_ONLY
    levels: tuple[int, ...] | None = None
    probabilities: tuple[float, ...] | None = None
    solver: str | None = None  # 'nesterov' or 'quasi-newton', on the one level
    tolerance: float | None = (
        None  # of the gradient's norm, where a quasi-Newton stage may end early
    )


@dataclass(frozen=True)
class Budget:
    """How the target is split: what the horizon, the bias and the noise may each cost in loss."""

    horizon: float
    bias: float
    noise: float
    mixed: float = 0.0  # what horizon and bias cost together beyond their sum

    @property
    def total(self) -> float:
        return self.horizon + self.bias + self.noise + self.mixed


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Hyperparameters and a bill. `delta` and `sigma` are those of the last stage, the finest one.

    The output is an average of the iterates: 'uniform', or with weights growing by `growth` per step ('geometric',
    'exponential'), of the points where a gradient was taken; 'tail', the mean of the last `window` points reached; or
    the last point ('last', the accelerated scheme and the deterministic solvers).
    """

    problem: Problem
    eps: float
    method: str
    promise: str
    eta: float
    stages: tuple[Stage, ...]
    averaging: str
    growth: float = 1.0
    window: int | None = None
    budget: Budget | None = None
    expected_cost: float
    cost_bound: float | None = None  # of what any run pays; without a ladder, of the mean
    guarantee: str
    accuracies: dict[int, float] | None = None  # of the levels, as the plan relies on them
    warnings: tuple[str, ...] = ()

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
    def promised(self) -> str:
        """What may be said of a run that made all steps, in one sentence."""
        return SAID[self.promise].format(eps=self.eps, guarantee=self.guarantee)

    def telescope(self, h: Hierarchy, stage: Stage) -> Telescope:
        """The oracle a stage runs on a hierarchy."""
        if stage.levels is not None:
            return Telescope(h, dict(zip(stage.levels, stage.probabilities, strict=True)))
        return Telescope.for_accuracy(h, stage.delta, stage.sigma, self.problem.gamma)

    def price_on(self, h: Hierarchy) -> float:
        """The exact mean price of this plan on a hierarchy of your own, whatever its levels and prices."""
        if self.method == "corrected":  # a fine gradient per stage, the rest at the coarse level
            return float(
                sum(h.cost(s.levels[-1]) + s.steps * h.cost(s.levels[0]) for s in self.stages)
            )
        if self.method == "anchored":
            return float(
                sum(epoch_price(h, s.levels, s.probabilities, s.steps) for s in self.stages)
            )
        return sum(s.steps * self.telescope(h, s).expected_cost() for s in self.stages)

    def __str__(self) -> str:
        average = {"tail": f"mean of the last {self.window} points", "last": "last point"}
        rows = [
            f"{self.method}, eps = {self.eps:g}: {self.steps} steps of {self.eta:.3g}, "
            + average.get(self.averaging, f"{self.averaging} average"),
            f"  bias at most   {self.delta:.3g}   noise at most {self.sigma:.3g} per call"
            + (f"   ({len(self.stages)} stages)" if len(self.stages) > 1 else ""),
        ]
        for s in self.stages[-1:] if len(self.stages) > 3 else self.stages:
            if s.levels is not None:
                chances = "  ".join(
                    f"{k}: {p:.3g}" for k, p in zip(s.levels, s.probabilities, strict=True)
                )
                rows.append(
                    f"  levels drawn   {chances}" + (f"   ({s.steps} steps)" if s.solver else "")
                )
        if (b := self.budget) is not None:
            mixed = f" + {b.mixed:.3g} mixed" if b.mixed else ""
            parts = f"{b.horizon:.3g} horizon + {b.bias:.3g} bias + {b.noise:.3g} noise{mixed}"
            rows.append(f"  error budget   {parts} = {b.total:.3g}")
        word = "mean at most" if self.stages[0].levels is None else "never above"
        bound = f"   {word} {self.cost_bound:.4g}" if self.cost_bound is not None else ""
        rows += [
            f"  expected price {self.expected_cost:.4g}{bound}",
            f"  promise        {self.promised}",
        ]
        return "\n".join(rows + [f"  ! {w}" for w in self.warnings])
