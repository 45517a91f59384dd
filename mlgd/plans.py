"""What is known before a run, a Problem, and what is run and what it costs, a Plan.

On the ladder that a Problem assumes, a plan has the constants of the theorems; on a ladder of your
own, on=h or on=report, steps, levels and probabilities are chosen by price. A plan is correct as
executed: steps are whole, the finest level exists, an increment is two evaluations, and all of it
is inside `expected_cost` and the error budget.
"""

import math
from dataclasses import dataclass, field, replace
from numbers import Integral

from .hierarchy import Hierarchy, dyadic, first_level, positive
from .stages import Budget, Ladder, NotApplicable, Stage, prescribed, searched, staged
from .telescope import Telescope, regime

METHODS = ("multilevel", "fixed", "accelerated", "scheduled")
SAID = {
    "proved": "mean loss at most {eps:g} (proved: {guarantee})",
    "estimate": "mean loss about {eps:g} (an estimate from measured inputs: {guarantee})",
    "none": "nothing is promised ({guarantee})",
}


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is known: smoothness, distance to a minimizer, prices (c/accuracy)^gamma; mu > 0 makes
    it strongly convex.

    `first` is the coarsest level on offer, the paper's k_min unless given. `measured`: some of
    these numbers are, so that plans are estimates.

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
        scale = {name: positive(name, getattr(self, name)) for name in ("beta", "d0", "gamma", "c")}
        vars(self).update(scale)
        number = isinstance(self.mu, int | float) or hasattr(self.mu, "dtype")
        if not number or not 0 <= self.mu <= self.beta:
            raise ValueError(f"mu must lie in [0, beta] = [0, {self.beta:g}]; got {self.mu!r}")
        first = first_level(self.c) if self.first is None else self.first
        if not isinstance(first, Integral) or isinstance(first, bool):
            raise ValueError(f"first must be a level, an integer; got {first!r}")
        vars(self).update(mu=float(self.mu), first=int(first))

    regime = property(lambda self: regime(self.gamma), doc=regime.__doc__)

    def prices(self, delta: float) -> Hierarchy:
        """The dyadic ladder this problem assumes, down to accuracy delta: prices only."""

        def no_gradient(k, y):
            raise NotImplementedError("no gradient: run the plan on a Hierarchy")

        finest = math.ceil(-math.log2(positive("delta", delta) * (1 + 1e-12)))
        levels = range(self.first, max(self.first, finest) + 1)
        return Hierarchy(no_gradient, lambda k: (self.c * 2.0**k) ** self.gamma, levels)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Hyperparameters and a bill. `delta` and `sigma` are those of the last stage, the finest one.

    The output is the mean of the points where a gradient was taken, with weights that grow by
    `growth` per step; with a `window` the mean of so many last points reached (1: the last point,
    as of the accelerated scheme). `expected_cost` is the mean of what a run on the plan's ladder
    pays, `cost_bound` what none pays more than.
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
    assumed: bool = False  # those accuracies are 2^-k, and nobody declared them

    steps = property(lambda self: sum(s.steps for s in self.stages))
    delta = property(lambda self: self.stages[-1].delta)
    sigma = property(lambda self: self.stages[-1].sigma)
    expected_cost = property(lambda self: float(sum(s.steps * s.price for s in self.stages)))
    cost_bound = property(lambda self: float(sum(s.steps * s.most for s in self.stages)))

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
        last = steps if window is None else window
        for name, number in (("steps", steps), ("window", last)):
            if isinstance(number, bool) or number != math.floor(positive(name, number)):
                raise ValueError(f"{name} must be a whole number, at least 1; got {number!r}")
        if last > steps:
            raise ValueError(f"the window must be at most the number of steps, {steps}; got {last}")
        stage = Stage(int(steps), math.nan, math.nan).on(telescope)
        return cls(method="by hand", eta=positive("eta", eta), stages=(stage,), window=window)

    @property
    def averaging(self) -> str:
        """'uniform', 'geometric', 'tail' or 'last'."""
        if self.window is None:
            return "uniform" if self.growth == 1 else "geometric"
        return "last" if self.window == 1 else "tail"

    @property
    def promised(self) -> str:
        """What may be said of a run that made all steps, in one sentence."""
        rests = f"{self.guarantee}, if level k is within 2^-k" if self.assumed else self.guarantee
        return SAID[self.promise].format(eps=self.eps, guarantee=rests)

    def telescope(self, h: Hierarchy, stage: Stage) -> Telescope:
        """The oracle that a stage runs on a hierarchy.

        The closed form draws its coarsest level with a probability of at least 4 beta eta: then the
        one-step lemma holds as if the variance were at most sigma^2 everywhere (the chapter on
        convex losses). Similar triangles need that variance, and draw it always.
        """
        if stage.levels is not None:
            return Telescope(h, dict(zip(stage.levels, stage.probabilities, strict=True)))
        least = min(1.0, 4 * self.problem.beta * self.eta) if self.method != "accelerated" else 1.0
        return Telescope.for_accuracy(h, stage.delta, stage.sigma, self.problem.gamma, least)

    def __str__(self) -> str:
        last, count, b = self.stages[-1], len(self.stages), self.budget
        output = "last point" if self.window == 1 else f"{self.averaging} average"
        of = f"   (the last of {count} stages)" if count > 1 else ""
        target = f", eps = {self.eps:g}" if self.problem else ""
        drawn = zip(last.levels or (), last.probabilities or (), strict=True)
        rows = [
            f"{self.method}{target}: {self.steps} steps of {self.eta:.3g}, {output}",
            b
            and f"  bias at most   {self.delta:.3g}   noise at most {self.sigma:.3g} per call{of}",
            last.levels and "  levels drawn   " + "  ".join(f"{k}: {p:.3g}" for k, p in drawn),
            b
            and f"  error budget   {b.horizon:.3g} horizon + {b.bias:.3g} bias + {b.noise:.3g} "
            f"noise = {b.total:.3g}",
            f"  expected price {self.expected_cost:.4g}   never above {self.cost_bound:.4g}",
            f"  promise        {self.promised}",
        ]
        if self.problem and self.eps >= self.problem.beta * self.problem.d0**2 / 2:
            rows.append("  ! the start already has loss at most eps (eps >= beta d0^2 / 2)")
        return "\n".join(filter(None, rows))


@dataclass(frozen=True)
class Comparison:
    """Every method's plan, cheapest first; `left_out` says why a method has none."""

    plans: tuple[Plan, ...]
    left_out: dict[str, str]

    best = property(lambda self: self.plans[0])

    @property
    def verdict(self) -> str:
        """Whether the telescope pays: the cheapest method that uses one against the fixed level."""
        best, fixed = self.best, self.best.method == "fixed"
        rival = next((p for p in self.plans if (p.method == "fixed") != fixed), None)
        if rival is None:
            other = "telescope" if fixed else "fixed level"
            return f"no {other} can be planned here: use {best.method!r}"
        times = f"{rival.expected_cost / best.expected_cost:.3g} times cheaper"
        pays = "does not pay" if fixed else "pays"
        return f"the telescope {pays}: {best.method!r} is {times} than {rival.method!r}"

    def __str__(self) -> str:
        rows = ["method        expected price   over the cheapest"]
        for p in self.plans:
            times = p.expected_cost / self.best.expected_cost
            rows.append(f"{p.method:12s}  {p.expected_cost:14.4g}   {times:17.3g}")
        rows += [f"{method:12s}  left out: {why}" for method, why in self.left_out.items()]
        return "\n".join([*rows, self.verdict])


def plan(
    problem: Problem, eps: float, method: str = "multilevel", eta: float | None = None, on=None
) -> Plan:
    """Hyperparameters that reach mean loss eps, and what they cost.

    'multilevel' and 'fixed' follow the paper's Theorem 1: part (b) when mu > 0 and eps <= mu d0^2,
    part (a) otherwise. 'accelerated' runs the method of similar triangles with constants proved in
    the chapter on acceleration, restarted under strong convexity; 'scheduled' is the discrete form
    of the paper's Proposition 2 (mu > 0).

    on: a Hierarchy, or the report of `audit`: levels, prices and accuracies are then its own. What
    rests on measurements, a report's or its problem's, is an estimate.

    >>> p = plan(Problem(beta=1, d0=1, gamma=3, c=1), eps=0.25)
    >>> p.steps, p.eta, p.delta, p.averaging, p.budget.total <= p.eps
    (64, 0.25, 0.015625, 'uniform', True)
    """
    if not isinstance(problem, Problem):
        report = hasattr(problem, "hierarchy")
        hint = "use report.problem(beta=, d0=, mu=)" if report else "build one, Problem(...)"
        raise ValueError(f"plan needs a Problem; got {type(problem).__name__}: {hint}")
    eps = positive("eps", eps)
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}; got {method!r}")
    if method == "scheduled" and not problem.mu:
        raise NotApplicable("the scheduled method needs strong convexity: give the problem mu > 0")
    # the step is at most what the one-step lemma and the rounding of T need
    limits = {"1/(4 beta)": 1 / (4 * problem.beta), "d0^2/eps": problem.d0**2 / eps}
    name, most = min(limits.items(), key=lambda limit: limit[1])
    eta = most if eta is None else positive("eta", eta)
    if eta > most * (1 + 1e-12):
        raise ValueError(
            f"the step must be at most {name} = {most:.4g}; got {eta:.4g}: take a smaller eta"
        )
    measured = problem.measured or hasattr(on, "values")
    known = {"problem": problem, "eps": eps, "method": method, "eta": eta}
    known["promise"] = "estimate" if measured else "proved"
    ladder = None if on is None else Ladder.of(on)
    if ladder is not None:
        known["accuracies"] = dict(zip(ladder.h.levels, ladder.accuracy.tolist(), strict=True))
        known["assumed"] = ladder.h.accuracy is dyadic
        if method in ("multilevel", "fixed"):
            return Plan(**known, **searched(ladder, problem, eps, eta, method == "fixed"))
    made = Plan(**known, **prescribed(method, problem, eps, eta))
    if ladder is not None:
        return replace(made, stages=staged(ladder, made.stages, method))
    calls = (made.telescope(problem.prices(s.delta), s) for s in made.stages)
    priced = (s.on(call, keep=False) for s, call in zip(made.stages, calls, strict=True))
    return replace(made, stages=tuple(priced))


def compare(problem: Problem, eps: float, on=None) -> Comparison:
    """Every method's plan, cheapest first; `.verdict` says whether a telescope pays.

    >>> ranked = compare(Problem(beta=1, mu=0.01, d0=1, gamma=3, c=1), eps=1e-3)
    >>> [p.method for p in ranked.plans]
    ['scheduled', 'accelerated', 'multilevel', 'fixed']
    """
    plans, left_out = [], {}
    for method in METHODS:
        try:
            plans.append(plan(problem, eps, method, on=on))
        except NotApplicable as why:
            left_out[method] = str(why)
    if not plans:
        why = "; ".join(f"{method}: {reason}" for method, reason in left_out.items())
        raise NotApplicable(f"no method can be planned: {why}")
    plans.sort(key=lambda p: (p.expected_cost, p.method == "fixed"))
    return Comparison(tuple(plans), left_out)
