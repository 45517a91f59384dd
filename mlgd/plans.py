"""What is known before a run, a Problem, and what is run and what it costs, a Plan.

On the ladder that a Problem assumes, a plan has the constants of the theorems; on a ladder of your
own, on=h or on=report, steps, levels and probabilities are chosen by price.
"""

import math
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral

import numpy as np

from .hierarchy import Hierarchy, LevelError, dyadic, ladder, positive
from .telescope import Telescope, regime

METHODS = ("multilevel", "fixed", "accelerated", "scheduled")
SHARES = np.r_[0.0, 0.05:0.9:0.05]  # of mu that Young's inequality gives to the bias; 0: part (a)


def price(gamma: float, c: float, k: int) -> float:
    """What the paper's Assumption 1 charges for level k."""
    return (c * 2.0**k) ** gamma


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is known: smoothness, distance to a minimizer, prices (c/accuracy)^gamma, convexity.

    `first` is the coarsest level on offer, or else the paper's k_min: c 2^(k_min-1) <= 1.

    >>> Problem(beta=1, d0=2, gamma=3, c=0.5).regime
    'HTMC'
    """

    beta: float
    d0: float
    gamma: float
    c: float
    mu: float = 0.0
    first: int | None = None
    measured: bool = field(default=False, repr=False)  # some of it: plans are estimates

    def __post_init__(self):
        scale = {name: positive(name, getattr(self, name)) for name in ("beta", "d0", "gamma", "c")}
        vars(self).update(scale)
        if positive("mu", self.mu, zero=True) > self.beta:
            raise ValueError(f"mu must lie in [0, beta] = [0, {self.beta:g}]; got {self.mu!r}")
        first = math.floor(-math.log2(self.c)) + 1 if self.first is None else self.first
        if not isinstance(first, Integral) or isinstance(first, bool):
            raise ValueError(f"first must be a level, an integer; got {first!r}")
        vars(self).update(mu=float(self.mu), first=int(first))

    regime = property(lambda self: regime(self.gamma), doc=regime.__doc__)

    def prices(self, delta: float) -> Hierarchy:
        """The dyadic ladder this problem assumes, down to accuracy delta: prices, no gradients."""
        finest = math.ceil(-math.log2(positive("delta", delta) * (1 + 1e-12)))
        levels = range(self.first, max(self.first, finest) + 1)
        return Hierarchy(lambda k, y: None, partial(price, self.gamma, self.c), levels, dyadic)


@dataclass(frozen=True)
class Stage:
    """A stretch of steps with one oracle: a bias of at most delta, a noise of at most sigma.

    It draws the levels of `probabilities`, {level: p}, or, without them, the paper's closed form. A
    call costs `price` on average and never more than `most`.
    """

    steps: int
    delta: float
    sigma: float
    price: float = math.nan
    most: float = math.nan
    probabilities: dict[int, float] | None = None

    def on(self, call: Telescope) -> "Stage":
        """Its prices with this oracle, whose levels and probabilities it keeps."""
        price, most = call.expected_cost(), float(sum(map(call.h.cost, call.levels)))
        drawn = dict(zip(call.levels, call.p.tolist(), strict=True))
        return replace(self, price=price, most=most, probabilities=drawn)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Hyperparameters and a bill. `delta` and `sigma` are those of the last stage, the finest one.

    The output is the mean of the points where a gradient was taken, with weights that grow by
    `growth` per step; with a `window`, of so many last points reached (1: the last). A run on the
    plan's ladder pays `expected_cost` on average, and never more than `cost_bound`.
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
    budget: dict[str, float] | None = None  # what horizon, bias and noise may each cost in loss
    accuracies: dict[int, float] | None = None  # of the levels, as the plan relies on them

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
        if self.window:
            return "last" if self.window == 1 else "tail"
        return "uniform" if self.growth == 1 else "geometric"

    @property
    def promised(self) -> str:
        """What may be said of a run that made all steps, in one sentence."""
        if self.promise == "none":
            return f"nothing is promised ({self.guarantee})"
        sure = "at most" if self.promise == "proved" else "about"
        return f"mean loss {sure} {self.eps:g} ({self.promise}: {self.guarantee})"

    def telescope(self, h: Hierarchy, stage: Stage) -> Telescope:
        """The oracle that a stage runs on a hierarchy.

        The closed form draws its coarsest level with a probability of at least 4 beta eta: then the
        one-step lemma holds as if the variance were at most sigma^2 everywhere. Similar triangles
        need that variance, and draw it always.
        """
        if stage.probabilities is not None:
            return Telescope(h, stage.probabilities)
        least = min(1.0, 4 * self.problem.beta * self.eta) if self.method != "accelerated" else 1.0
        return Telescope.for_accuracy(h, stage.delta, stage.sigma, self.problem.gamma, least)

    def __str__(self) -> str:
        price = f"{self.expected_cost:.4g}   never above {self.cost_bound:.4g}"
        rows = [f"{self.method}: {self.steps} steps of {self.eta:.3g}, averaging: {self.averaging}"]
        if self.budget:
            parts = " + ".join(f"{x:.3g} {name}" for name, x in self.budget.items())
            rows.append(f"  error budget   {parts} = {sum(self.budget.values()):.3g}")
            rows.append(f"  last stage     bias {self.delta:.3g}   noise {self.sigma:.3g} per call")
        if drawn := self.stages[-1].probabilities:
            rows.append("  levels drawn   " + "  ".join(f"{k}: {p:.3g}" for k, p in drawn.items()))
        return "\n".join([*rows, f"  expected price {price}", f"  promise        {self.promised}"])


def plan(
    problem: Problem, eps: float, method: str = "multilevel", eta: float | None = None, on=None
) -> Plan:
    """Hyperparameters that reach mean loss eps, and what they cost.

    'multilevel' and 'fixed' follow the paper's Theorem 1: part (b) when mu > 0 and eps <= mu d0^2,
    part (a) otherwise. 'accelerated' runs the method of similar triangles, restarted if mu > 0,
    with constants proved in the book; 'scheduled' is the paper's Proposition 2 in discrete time.

    on: a Hierarchy, or the report of `audit`: levels, prices and accuracies are then its own. What
    rests on measurements, a report's or its problem's, is an estimate.

    >>> p = plan(Problem(beta=1, d0=1, gamma=3, c=1), eps=0.25)
    >>> p.steps, p.eta, p.delta, p.averaging, sum(p.budget.values()) <= p.eps
    (64, 0.25, 0.015625, 'uniform', True)
    """
    if not isinstance(problem, Problem):
        needs = "plan needs a Problem(...), or report.problem(beta=, d0=, mu=)"
        raise ValueError(f"{needs}; got {type(problem).__name__}")
    eps = positive("eps", eps)
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}; got {method!r}")
    if method == "scheduled" and not problem.mu:
        raise ValueError("the scheduled method needs strong convexity: give the problem mu > 0")
    most = min(1 / (4 * problem.beta), problem.d0**2 / eps)  # one-step lemma; the rounding of T
    eta = most if eta is None else positive("eta", eta)
    if eta > most * (1 + 1e-12):
        raise ValueError(f"eta must be at most 1/(4 beta) and d0^2/eps, {most:.4g}; got {eta:.4g}")
    measured = problem.measured or getattr(getattr(on, "hierarchy", on), "measured", False)
    promise = "estimate" if measured else "proved"
    made = Plan(method=method, eta=eta, stages=(), problem=problem, eps=eps, promise=promise)
    if on is not None and method in ("multilevel", "fixed"):
        return _searched(made, *_ladder(on))
    from . import formulas  # here, because sympy is slow to load

    theorem = formulas.prescribed(method, d0=problem.d0, mu=problem.mu, eta=eta, eps=eps)
    stages = [Stage(*s) for s in theorem.pop("stages")]
    made = replace(made, **theorem)
    if on is not None:
        return _staged(made, stages, *_ladder(on))
    priced = (s.on(made.telescope(problem.prices(s.delta), s)) for s in stages)
    return replace(made, stages=tuple(replace(s, probabilities=None) for s in priced))


def compare(problem: Problem, eps: float, on=None) -> list[Plan]:
    """Every method's plan, cheapest first; a method that `plan` refuses is left out.

    >>> [p.method for p in compare(Problem(beta=1, mu=0.01, d0=1, gamma=3, c=1), eps=1e-3)]
    ['scheduled', 'accelerated', 'multilevel', 'fixed']
    """
    plans, short = [], None
    for method in METHODS:
        try:
            if method != "scheduled" or problem.mu:
                plans.append(plan(problem, eps, method, on=on))
        except LevelError as out_of_reach:
            short = out_of_reach
    if not plans:
        raise short
    return sorted(plans, key=lambda p: (p.expected_cost, p.method == "fixed"))


def _ladder(on) -> tuple[Hierarchy, np.ndarray]:
    """A ladder, and all increments |A_j - A_i|: bounded by accuracies, or measured by `audit`."""
    h = ladder(getattr(on, "hierarchy", on))
    if not hasattr(on, "values"):
        return h, h.accuracies()[:, None] + h.accuracies()
    rows = np.array([np.reshape(on.values[k], (len(on.values[k]), -1)) for k in h.levels])
    return h, np.array([np.linalg.norm(rows - r, axis=2).max(axis=1) for r in rows])


def _staged(made: Plan, stages: list[Stage], h: Hierarchy, apart: np.ndarray) -> Plan:
    """The plan on a ladder: each stage with the cheapest telescope for its bias and noise."""
    found, accuracy = [], h.accuracies()
    for s in stages:
        n = h.levels.index(h.level_for(s.delta)) + 1
        call = Telescope.cheapest(h, s.sigma, apart[:n, :n])
        found.append(replace(s, delta=float(accuracy[n - 1])).on(call))
    declared = dict(zip(h.levels, accuracy.tolist(), strict=True))
    rests = made.guarantee + ", if level k is within 2^-k" * (h.accuracy is dyadic)
    return replace(made, stages=tuple(found), accuracies=declared, guarantee=rests)


def _searched(made: Plan, h: Hierarchy, apart: np.ndarray) -> Plan:
    """The paper's one-step lemma, summed with uniform weights (a) or growing ones (b).

    (a) loss <= x^2/(eta T) = d0^2/(eta T) + 2 delta x + eta (sigma^2 + 2 delta^2), where no mean
        distance exceeds x: at most eps if the right side is for x^2 = eps eta T;
    (b) loss <= (1-s) mu d0^2 / (rho^-T - 1) + delta^2/(s mu) + eta (sigma^2 + 2 delta^2), weights
        rho^-t, rho = 1 - (1-s) eta mu: Young's inequality gives the share s of mu to the bias.

    For every T and finest level: the share that leaves most room for noise ('fixed' makes none) and
    the cheapest telescope in it. T by Brent's method, where a level may win at all.
    """
    from scipy.optimize import fminbound

    d0, mu, eta, eps, delta = made.problem.d0, made.problem.mu, made.eta, made.eps, h.accuracies()
    steps = np.unique(np.ceil(np.geomspace(1, 64 * d0**2 / (eta * eps), 1000)))
    s, t = SHARES[: None if mu else 1, None, None], steps[:, None]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        growing = np.expm1(-np.log1p(-(1 - s) * eta * mu) * t)  # rho^-T - 1
        horizon = np.where(s > 0, (1 - s) * mu * d0**2 / growing, d0**2 / (eta * t))
        bias = np.where(s > 0, delta**2 / (s * mu), 2 * delta * np.sqrt(eps * eta * t))
    rooms = (eps - horizon - bias) / eta - 2 * delta**2  # by share, T and finest level
    room, loud, ways = rooms.max(axis=0), made.method != "fixed", []

    def price(at: float, k: int, fits: np.ndarray, noise: float | None = None) -> float:
        sigma = loud * math.sqrt(room[fits[round(at)], k] if noise is None else noise)
        call = Telescope.cheapest(h, sigma, apart[: k + 1, : k + 1])
        return steps[fits[round(at)]] * call.expected_cost()

    for k in np.flatnonzero((room >= 0).any(axis=0)).tolist():
        fits = np.flatnonzero(room[:, k] >= 0)
        ways.append((price(0, k, fits), fits[0], k))
        if price(0, k, fits, room[:, k].max()) < min(ways)[0]:  # fewest steps, each with most noise
            at = fminbound(price, 0, fits.size - 1, (k, fits), xtol=2)
            ways.append((price(at, k, fits), fits[round(at)], k))
    if not ways:
        raise LevelError(
            f"the target {eps:g} is out of reach on this ladder: its finest accuracy, "
            f"{delta[-1]:.3g}, leaves no room for steps: add finer levels or ask for a larger eps"
        )
    _, i, k = min(ways)
    best, sigma = int(rooms[:, i, k].argmax()), loud * math.sqrt(room[i, k])
    spent = horizon[best, i, 0], bias[best, i, k], eta * (sigma**2 + 2 * delta[k] ** 2)
    budget = dict(zip(("horizon", "bias", "noise"), map(float, spent), strict=True))
    share = float(s[best, 0, 0])
    growth = 1 / (1 - (1 - share) * eta * mu) if share else 1.0
    said = f"the one-step lemma summed as in the paper's Theorem 1({'b' if share else 'a'})"
    stage = Stage(int(steps[i]), math.nextafter(delta[k], math.inf), sigma)  # exact: not zero
    return _staged(replace(made, budget=budget, growth=growth, guarantee=said), [stage], h, apart)
