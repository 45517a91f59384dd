"""What is known before a run, a Problem, and what is run and what it costs, a Plan.

`plan` makes a Plan of a Problem and a target, in one of two ways:

- on the ladder that the problem assumes, a plan has the constants of the theorems
  (`formulas.prescribed`: the paper's Theorem 1, the paper's Proposition 2, similar triangles);
- on a ladder of your own, on=h or on=report, each stage has the cheapest telescope for its bias and
  noise (`_staged`), and for 'multilevel' and 'fixed' bias, noise and number of steps are themselves
  chosen by price (`_searched`), within the inequalities that prove the paper's Theorem 1.

The sharp plan, which is the book's own, is cheaper than these on either ladder (`sharp`).

`compare` does so for every method.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from .hierarchy import Hierarchy, LevelError, dyadic, ladder, positive
from .telescope import Telescope, regime, sound, within_floats

if TYPE_CHECKING:
    from .result import Result
    from .run import Progress

METHODS = ("multilevel", "fixed", "accelerated", "scheduled", "sharp")
# of mu: what Young's inequality may give to the bias
SHARES = np.arange(0.05, 0.9, 0.05)
# numbers of steps tried on a ladder, in equal ratios up to MOST_STEPS d0^2/(eta eps);
# the paper's Theorem 1(a) makes 4 d0^2/(eta eps)
TRIED = 1000
MOST_STEPS = 64
# levels whose accuracy 2^-k a float holds
LEVELS = range(-1023, 1075)


def price(gamma: float, c: float, k: int) -> float:
    """What the paper's Assumption 1 charges for level k."""
    try:
        return (c * 2.0**k) ** gamma
    except OverflowError:
        return math.inf  # which a Hierarchy refuses


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
    # whether some of it was measured: then plans are estimates
    measured: bool = field(default=False, repr=False)

    def __post_init__(self):
        for name in ("beta", "d0", "gamma", "c"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        mu = positive("mu", self.mu, zero=True)
        if mu > self.beta:
            allowed = f"mu must lie in [0, beta] = [0, {self.beta:g}]"
            raise ValueError(f"{allowed}; got {self.mu!r}")
        object.__setattr__(self, "mu", mu)
        object.__setattr__(self, "first", self._coarsest())

    def _coarsest(self) -> int:
        """The coarsest level: as given, or the paper's."""
        first = self.first
        if first is None:
            first = math.floor(-math.log2(self.c)) + 1
            return min(first, LEVELS[-1])
        if not isinstance(first, Integral) or isinstance(first, bool):
            raise ValueError(f"first must be a level, an integer; got {first!r}")
        if first not in LEVELS:
            needed = f"first must be a level from {LEVELS[0]} to {LEVELS[-1]}"
            raise ValueError(f"{needed}, so that a float holds 2^-first; got {first!r}")
        return int(first)

    regime = property(lambda self: regime(self.gamma), doc=regime.__doc__)

    def prices(self, delta: float) -> Hierarchy:
        """The dyadic ladder this problem assumes, down to accuracy delta: prices, no gradients."""
        delta = positive("delta", delta)
        # a little coarser serves too
        served = min(delta * (1 + 1e-12), sys.float_info.max)
        finest = math.ceil(-math.log2(served))
        levels = range(self.first, max(self.first, finest) + 1)
        cost = partial(price, self.gamma, self.c)
        for k in (levels[0], levels[-1]):
            if not 0 < cost(k) < math.inf or k not in LEVELS:
                raise LevelError(
                    f"level {k}, of accuracy 2^-k and price (c 2^k)^gamma, is out of the "
                    f"range of floats for {self}: state the problem in other units, or "
                    "ask for a larger eps"
                )
        return Hierarchy(_no_gradient, cost, levels, dyadic)


def _no_gradient(k: int, y: np.ndarray) -> None:
    """A ladder that has prices only."""


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
        every = sum(float(call.h.cost(k)) for k in call.levels)
        return replace(
            self,
            price=call.expected_cost(),
            most=float(every),
            probabilities=dict(zip(call.levels, call.p.tolist(), strict=True)),
        )


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What every plan has: a method and its steps, a promise, a bill, and the way to run it.

    A run on the plan's ladder pays `expected_cost` on average, and never more than `cost_bound`.
    """

    method: str
    eta: float
    stages: tuple
    problem: Problem | None = None
    eps: float = math.nan
    promise: str = "none"  # 'proved', 'estimate' or 'none'
    guarantee: str = "set by hand"
    # what its parts may each cost in loss
    budget: dict[str, float] | None = None
    # of the levels, as the plan relies on them
    accuracies: dict[int, float] | None = None

    @property
    def steps(self) -> int:
        """The most that a run makes."""
        return sum(stage.steps for stage in self.stages)

    @property
    def cost_bound(self) -> float:
        return float(sum(stage.steps * stage.most for stage in self.stages))

    @property
    def promised(self) -> str:
        """What may be said of a run that made all steps, in one sentence."""
        if self.promise == "none":
            return f"nothing is promised ({self.guarantee})"
        sure = "at most" if self.promise == "proved" else "about"
        return f"mean loss {sure} {self.eps:g} ({self.promise}: {self.guarantee})"

    def run(
        self,
        h: Hierarchy,
        y0: np.ndarray,
        rng=None,
        *,
        loss: Callable[[np.ndarray], float] | None = None,
        callback: "Callable[[Progress], bool | None] | None" = None,
        max_cost: float | None = None,
        progress: bool = False,
        checkpoint=None,
    ) -> "Result":
        """Make the steps of this plan on a hierarchy.

        `rng` is whatever numpy.random.default_rng takes: the same seed gives the same run. `loss`
        is recorded at about 200 steps, uncharged; a point where it is larger than at y0 is not
        returned. `callback(progress)` is called after every step; returning True or raising
        StopIteration ends the run. `max_cost` ends it before the evaluation that would pass that
        price, all resumptions counted. A level that fails ends it with status 'failed' and the
        output so far; an interrupt, and an error of your callback or loss, are raised again with
        the result on them, `error.result`. `checkpoint` is a path: the state is written there every
        few seconds and at every ending, and a run that finds the file of its own beginning goes on
        from it, bit for bit (after one evaluation that compares).

        >>> from mlgd.examples import biased
        >>> h = biased(lambda y: y - 1, gamma=3, c=1, levels=range(1, 8))
        >>> result = plan(Problem(beta=1, d0=2, gamma=3, c=1), eps=0.25).run(h, np.zeros(2), rng=0)
        >>> result.status, result.nit, bool(abs(result.x - 1).max() < 0.1)
        ('done', 256, True)
        """
        from .descent import run  # here, because it needs this module

        return run(self, h, y0, rng, loss, callback, max_cost, progress, checkpoint)


@dataclass(frozen=True, kw_only=True)
class Plan(Proposal):
    """Hyperparameters and a bill. `delta` and `sigma` are those of the last stage, the finest one.

    The output is the mean of the points where a gradient was taken, with weights that grow by
    `growth` per step; with a `window`, of so many last points reached (1: the last).
    """

    stages: tuple[Stage, ...]
    growth: float = 1.0
    window: int | None = None

    @property
    def delta(self) -> float:
        return self.stages[-1].delta if self.stages else math.nan

    @property
    def sigma(self) -> float:
        return self.stages[-1].sigma if self.stages else math.nan

    @property
    def expected_steps(self) -> float:
        return float(self.steps)

    @property
    def expected_cost(self) -> float:
        return float(sum(stage.steps * stage.price for stage in self.stages))

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
        whole("steps", steps)
        if window is not None:
            within(whole("window", window), steps)
        stage = Stage(int(steps), math.nan, math.nan).on(telescope)
        eta = positive("eta", eta)
        return cls(method="by hand", eta=eta, stages=(stage,), window=window)

    @property
    def averaging(self) -> str:
        """'uniform', 'geometric', 'tail' or 'last'."""
        if self.window:
            return "last" if self.window == 1 else "tail"
        return "uniform" if self.growth == 1 else "geometric"

    @property
    def numbers(self) -> tuple:
        """What decides how a run goes: another plan is one whose numbers differ."""
        return self.method, self.eta, self.stages, self.growth, self.window

    def telescope(self, h: Hierarchy, stage: Stage) -> Telescope:
        """The oracle that a stage runs on a hierarchy.

        The closed form draws its coarsest level with a probability of at least 4 beta eta: then the
        one-step lemma holds as if the variance were at most sigma^2 everywhere. Similar triangles
        need that variance, and draw it always.
        """
        if stage.probabilities is not None:
            return Telescope(h, stage.probabilities)
        if self.problem is None:
            needed = "a stage without probabilities needs the plan's problem"
            raise ValueError(f"{needed}; got None")
        coarsest = 1.0
        if self.method != "accelerated":
            coarsest = min(1.0, 4 * self.problem.beta * self.eta)
        gamma = self.problem.gamma
        return Telescope.for_accuracy(h, stage.delta, stage.sigma, gamma, coarsest)

    def __str__(self) -> str:
        steps = f"{self.steps} steps of {self.eta:.3g}"
        rows = [f"{self.method}: {steps}, averaging: {self.averaging}"]
        if self.budget:
            parts = " + ".join(f"{loss:.3g} {name}" for name, loss in self.budget.items())
            rows.append(f"  error budget   {parts} = {sum(self.budget.values()):.3g}")
            noise = f"noise {self.sigma:.3g} per call"
            rows.append(f"  last stage     bias {self.delta:.3g}   {noise}")
        if self.stages and self.stages[-1].probabilities:
            drawn = self.stages[-1].probabilities.items()
            shown = "  ".join(f"{k}: {p:.3g}" for k, p in drawn)
            rows.append(f"  levels drawn   {shown}")
        bound = f"never above {self.cost_bound:.4g}"
        rows.append(f"  expected price {self.expected_cost:.4g}   {bound}")
        rows.append(f"  promise        {self.promised}")
        return "\n".join(rows)


def whole(name: str, given: int) -> int:
    """A number of steps, or a refusal."""
    if isinstance(given, bool) or given != math.floor(positive(name, given)):
        raise ValueError(f"{name} must be a whole number, at least 1; got {given!r}")
    return given


def within(window: int, steps: int) -> None:
    """Refuse a window of more steps than there are."""
    if window > steps:
        needed = f"the window must be at most the number of steps, {steps}"
        raise ValueError(f"{needed}; got {window}")


def plan(
    problem: Problem,
    eps: float,
    method: str = "multilevel",
    eta: float | None = None,
    on=None,
    average: bool = False,
) -> Proposal:
    """Hyperparameters that reach mean loss eps, and what they cost.

    'multilevel' and 'fixed' follow the paper's Theorem 1: part (b) when mu > 0 and eps <= mu d0^2,
    part (a) otherwise. 'accelerated' runs the method of similar triangles, restarted if mu > 0,
    with constants proved in the book; 'scheduled' is the paper's Proposition 2 in discrete time.
    'sharp' is the cheapest plan by the book's Theorem S (mlgd/sharp.py): it stops at random, or,
    with average=True, returns a mean.

    on: a Hierarchy that declares its accuracies, or the report of `audit`: levels, prices and
    accuracies are then its own. What rests on measurements, a report's or its problem's, is an
    estimate.

    >>> p = plan(Problem(beta=1, d0=1, gamma=3, c=1), eps=0.25)
    >>> p.steps, p.eta, p.delta, p.averaging, sum(p.budget.values()) <= p.eps
    (64, 0.25, 0.015625, 'uniform', True)
    """
    if not isinstance(problem, Problem):
        needs = "plan needs a Problem(...), or report.problem(beta=, d0=, mu=)"
        raise ValueError(f"{needs}; got {type(problem).__name__}")
    eps = positive("eps", eps)
    _refuse_method(method, problem, eta, average)
    own = None if on is None else _ladder(on)
    measured = problem.measured or (own is not None and own[0].measured)
    begun = Plan(
        method=method,
        eta=math.nan,
        stages=(),
        problem=problem,
        eps=eps,
        promise="estimate" if measured else "proved",
    )
    with within_floats(f"a plan for eps = {eps:g} and {problem}"):
        if method == "sharp":
            return _closed(_sharp(begun, own, average))
        begun = replace(begun, eta=_step(problem, eps, eta))
        if own is None:
            return _closed(_priced(*_theorem(begun)))
        if method in ("multilevel", "fixed"):
            return _closed(_staged(*_searched(begun, *own), *own))
        return _closed(_staged(*_theorem(begun), *own))


def _refuse_method(
    method: str, problem: Problem, eta: float | None, average: bool
) -> None:
    """Refuse a method that is none, or lacks something, or an option that it has not."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}; got {method!r}")
    if method == "scheduled" and not problem.mu:
        needed = "the scheduled method needs strong convexity"
        raise ValueError(f"{needed}: give the problem mu > 0")
    if method == "sharp" and eta is not None:
        raise ValueError(f"a sharp plan chooses its own step: leave out eta; got {eta!r}")
    if method != "sharp" and average:
        needed = "average=True is for method='sharp', which stops at random without it"
        raise ValueError(f"{needed}; got {method!r}")


def compare(problem: Problem, eps: float, on=None) -> list[Proposal]:
    """Every method's plan, cheapest first; a method that cannot reach eps is left out.

    >>> [p.method for p in compare(Problem(beta=1, mu=0.01, d0=1, gamma=3, c=1), eps=1e-3)]
    ['sharp', 'scheduled', 'accelerated', 'multilevel', 'fixed']
    """
    plans = []
    short = None
    for method in METHODS:
        if method == "scheduled" and not problem.mu:
            continue
        try:
            plans.append(plan(problem, eps, method, on=on))
        except LevelError as out_of_reach:
            short = out_of_reach
    if not plans:
        raise short
    return sorted(plans, key=lambda p: (p.expected_cost, p.method == "fixed"))


# --- the steps of a plan ---


def _step(problem: Problem, eps: float, eta: float | None) -> float:
    """The step that was given, or else the largest one."""
    # for the one-step lemma; so that rounding a number of steps up adds at most a quarter
    most = sound("the step", min(1 / (4 * problem.beta), problem.d0**2 / eps))
    if eta is None:
        return most
    eta = positive("eta", eta)
    if eta > most * (1 + 1e-12):
        allowed = f"eta must be at most 1/(4 beta) and d0^2/eps, {most:.4g}"
        raise ValueError(f"{allowed}; got {eta:.4g}")
    return eta


def _theorem(begun: Plan) -> tuple[Plan, list[Stage]]:
    """What the method's theorem prescribes."""
    from . import formulas  # here, because sympy is slow to load

    problem = begun.problem
    theorem = formulas.prescribed(
        begun.method,
        d0=problem.d0,
        mu=problem.mu,
        eta=begun.eta,
        eps=begun.eps,
    )
    stages = [Stage(*numbers) for numbers in theorem.pop("stages")]
    return replace(begun, **theorem), stages


def _priced(made: Plan, stages: list[Stage]) -> Plan:
    """The plan with its stages' prices on the ladder that the problem assumes."""
    found = []
    for stage in stages:
        call = made.telescope(made.problem.prices(stage.delta), stage)
        # where it runs, the closed form is that of the ladder there
        found.append(replace(stage.on(call), probabilities=None))
    return replace(made, stages=tuple(found))


def _closed(made: Proposal) -> Proposal:
    """The plan, if its budget closes in floating-point numbers too."""
    sound("the price", made.expected_cost)
    sound("the bound of the price", made.cost_bound)
    spent = sound("what the budget spends", sum(made.budget.values()))
    if spent > made.eps * (1 + 1e-9):
        raise FloatingPointError(f"rounded, the budget spends {spent:g}")
    return made


def _sharp(begun: Proposal, own: tuple | None, average: bool) -> Proposal:
    """The book's own plan."""
    from .sharp import sharp  # here, because it needs this module

    return sharp(begun, None if own is None else own[0], average)


# --- on a ladder of one's own ---


def _ladder(on) -> tuple[Hierarchy, np.ndarray]:
    """A ladder, and bounds of all its increments |A_j - A_i|: by accuracies, or as measured."""
    h = ladder(getattr(on, "hierarchy", on))
    accuracy = h.accuracies()  # or a refusal: what nobody declared proves nothing
    if h is on:
        with within_floats(f"a plan on {h}"):
            return h, accuracy[:, None] + accuracy
    rows = []  # a level's values at all points
    for k in h.levels:
        values = on.values[k]
        rows.append(np.reshape(values, (len(values), -1)))
    rows = np.array(rows)
    apart = []  # the largest over the points
    for row in rows:
        apart.append(np.linalg.norm(rows - row, axis=2).max(axis=1))
    return h, np.array(apart)


def _staged(made: Plan, stages: list[Stage], h: Hierarchy, apart: np.ndarray) -> Plan:
    """The plan on a ladder: each stage with the cheapest telescope for its bias and noise."""
    accuracy = h.accuracies()
    found = []
    for stage in stages:
        finest = h.levels.index(h.level_for(stage.delta))
        used = slice(finest + 1)
        call = Telescope.cheapest(h, stage.sigma, apart[used, used])
        found.append(replace(stage, delta=float(accuracy[finest])).on(call))
    relied_on = dict(zip(h.levels, accuracy.tolist(), strict=True))
    return replace(made, stages=tuple(found), accuracies=relied_on)


def _searched(begun: Plan, h: Hierarchy, apart: np.ndarray) -> tuple[Plan, list[Stage]]:
    """The cheapest stage that the inequalities behind the paper's Theorem 1 allow on a ladder.

    The one-step lemma, summed over T steps, bounds the loss by horizon + bias + noise, where
    noise = eta (sigma^2 + 2 delta^2). For every T and finest level, horizon and bias are known, and
    what they leave of eps is room for sigma^2; 'fixed' makes no use of it.
    """
    eta = begun.eta
    eps = begun.eps
    accuracy = h.accuracies()
    steps = _numbers_of_steps(begun)
    horizon, bias = _horizon_and_bias(begun, steps, accuracy)
    by_share = (eps - horizon - bias) / eta - 2 * accuracy**2
    room = by_share.max(axis=0)
    if not (room >= 0).any():
        raise LevelError(
            f"the target {eps:g} is out of reach on this ladder: its finest accuracy, "
            f"{accuracy[-1]:.3g}, leaves no room for steps: add finer levels or ask "
            "for a larger eps"
        )

    def noise(variance: float) -> float:
        return 0.0 if begun.method == "fixed" else math.sqrt(variance)

    def run_price(i: int, k: int, variance: float) -> float:
        used = slice(k + 1)
        call = Telescope.cheapest(h, noise(variance), apart[used, used])
        return steps[i] * call.expected_cost()

    i, k = _cheapest(room, run_price)
    best = int(by_share[:, i, k].argmax())
    sigma = noise(room[i, k])
    budget = {
        "horizon": float(horizon[best, i, 0]),
        "bias": float(bias[best, i, k]),
        "noise": float(eta * (sigma**2 + 2 * accuracy[k] ** 2)),
    }
    part = "a"
    growth = 1.0
    if best > 0:
        part = "b"
        share = float(SHARES[best - 1])
        growth = 1 / (1 - (1 - share) * eta * begun.problem.mu)
    said = f"the one-step lemma summed as in the paper's Theorem 1({part})"
    made = replace(begun, budget=budget, growth=growth, guarantee=said)
    # an exact level's accuracy is zero, which no target may be
    delta = math.nextafter(accuracy[k], math.inf)
    return made, [Stage(int(steps[i]), delta, sigma)]


def _numbers_of_steps(begun: Plan) -> np.ndarray:
    """The numbers of steps that are tried."""
    unit = begun.problem.d0**2 / (begun.eta * begun.eps)
    return np.unique(np.ceil(np.geomspace(1, MOST_STEPS * unit, TRIED)))


def _horizon_and_bias(
    begun: Plan, steps: np.ndarray, accuracy: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What horizon and bias cost in loss, by inequality, number of steps T and finest level.

    The first inequality is that of part (a), uniform weights: loss <= x^2/(eta T)
        = d0^2/(eta T) + 2 delta x + noise, where no mean distance exceeds x. It proves eps if the
        right side is at most eps for x^2 = eps eta T.
    The others are those of part (b), a share s of mu each, weights rho^-t with
        rho = 1 - (1-s) eta mu: loss <= (1-s) mu d0^2/(rho^-T - 1) + delta^2/(s mu) + noise, where
        Young's inequality gives the share s of mu to the bias.
    """
    d0, mu, eta = begun.problem.d0, begun.problem.mu, begun.eta
    t = steps[:, None]
    horizon = [d0**2 / (eta * t)]
    bias = [2 * accuracy * np.sqrt(begun.eps * eta * t)]
    for s in SHARES if mu else ():
        # weights may grow without bound: then nothing is left of the horizon
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            growing = np.expm1(-np.log1p(-(1 - s) * eta * mu) * t)
            horizon.append((1 - s) * mu * d0**2 / growing)
            young = accuracy**2 / (s * mu)
        bias.append(np.broadcast_to(young, bias[0].shape))
    return np.array(horizon), np.array(bias)


def _cheapest(room: np.ndarray, price: Callable) -> tuple[int, int]:
    """Number of steps and finest level, by their indices, of the least price(steps, level, room).

    More steps leave more room for noise, so that each is cheaper, up to a point: for every level
    the number is found by Brent's method, where the level may win at all.
    """
    from scipy.optimize import fminbound  # here, because scipy is slow to load

    def price_at(position: float, k: int, fits: np.ndarray) -> float:
        i = fits[round(position)]
        return price(i, k, room[i, k])

    found = []
    for k in np.flatnonzero((room >= 0).any(axis=0)).tolist():
        fits = np.flatnonzero(room[:, k] >= 0)
        fewest = fits[0]
        found.append((price_at(0, k, fits), fewest, k))
        # no number of steps costs less than the fewest, each with the most noise
        if price(fewest, k, room[:, k].max()) < min(found)[0]:
            position = fminbound(price_at, 0, fits.size - 1, (k, fits), xtol=2)
            found.append((price_at(position, k, fits), fits[round(position)], k))
    _, i, k = min(found)
    return i, k
