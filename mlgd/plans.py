"""From a problem and a target accuracy to hyperparameters and a bill, before anything runs."""

import math
from dataclasses import dataclass

from .hierarchy import positive
from .lazy import formulas as F
from .oracle import Telescope
from .planners import on_ladder
from .refine import coarse_to_fine
from .schemes import Budget as Budget
from .schemes import NotApplicable, Plan, Problem
from .schemes import Stage as Stage
from .searching import Ladder
from .theorems import call_bound as call_bound
from .theorems import ideal

PROMISES = ("proved", "quadratic", "measured")
METHODS = (
    "multilevel",
    "fixed",
    "accelerated",
    "scheduled",
)  # the paper's, which can be planned without a ladder
LADDER_METHODS = (*METHODS, "refine", "anchored", "corrected")


def plan(
    problem: Problem,
    eps: float,
    method: str = "multilevel",
    eta: float | None = None,
    on=None,
    promise: str = "proved",
) -> Plan:
    """Hyperparameters that reach mean loss eps, and what they cost.

    'multilevel' and 'fixed' follow the paper's Theorem 1: part (b) when mu > 0 and eps <= mu d0^2, part (a) otherwise.
    'accelerated' runs the method of similar triangles with constants proved in the chapter on acceleration,
    restarted under strong convexity; 'scheduled' is the discrete form of the paper's Proposition 2 (mu > 0).

    on: a Hierarchy, or the report of `audit`: levels, prices and accuracies are then its own, the steps, the levels and
    the probabilities are chosen by price, and expected_cost is the mean of what a run pays. Then 'refine' (deterministic,
    coarse to fine), 'anchored' and 'corrected' can be planned too.
    promise: 'proved'; 'quadratic', exact worst case over quadratics of the class; 'measured', for this instance by
    problem.measures, an estimate.

    >>> p = plan(Problem(beta=1, d0=1, gamma=3, c=1), eps=0.25)
    >>> p.steps, p.eta, p.delta, p.averaging, p.budget.total <= p.eps
    (64, 0.25, 0.015625, 'uniform', True)
    """
    if not isinstance(problem, Problem):
        raise ValueError(
            f"plan needs a Problem; got {type(problem).__name__}: "
            + (
                "use report.problem(beta=, d0=, mu=)"
                if hasattr(problem, "hierarchy")
                else "build one, Problem(...)"
            )
        )
    eps = positive("eps", eps)
    if promise not in PROMISES:
        raise ValueError(f"promise must be one of {PROMISES}; got {promise!r}")
    allowed = METHODS if on is None else LADDER_METHODS
    if method not in allowed:
        more = f"; {LADDER_METHODS[len(METHODS) :]} need a ladder, on=h" if on is None else ""
        raise ValueError(f"method must be one of {allowed}{more}; got {method!r}")
    if method == "scheduled" and not problem.mu:
        raise NotApplicable(
            "the scheduled method needs strong convexity: give the problem a mu > 0, or use 'multilevel'"
        )
    if eta is not None:
        eta = positive("eta", eta)
    if on is None:
        if promise != "proved":
            raise ValueError(f"promise={promise!r} needs a ladder: give on=h, or on=report")
        return ideal(problem, eps, method, eta)
    if method not in METHODS:
        return coarse_to_fine(problem, eps, method, on, promise)
    return on_ladder(problem, eps, method, eta, Ladder.of(on), promise)


def tuned(
    problem: Problem,
    eps: float,
    telescope: Telescope,
    eta: float,
    steps: int,
    window: int | None = None,
) -> Plan:
    """A plan set by hand: your own probabilities, step and number of steps. It promises nothing.

    The output averages the last `window` points, or without one the late iterates (weights e^(mu t/2) in flow time, as in
    the paper's Proposition 2).

    >>> from mlgd import Telescope
    >>> from mlgd.examples import biased
    >>> h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 4))
    >>> p = tuned(Problem(beta=1, mu=1, d0=1, gamma=3, c=1), 0.1, Telescope(h, [1.0, 0.5, 0.1]), eta=0.5, steps=20)
    >>> p.steps, p.expected_cost, p.promised
    (20, 1888.0, 'nothing is promised (set by hand)')
    """
    eps, eta = positive("eps", eps), positive("eta", eta)
    for name, number in {"steps": steps, **({} if window is None else {"window": window})}.items():
        if isinstance(number, bool) or number != math.floor(positive(name, number)):
            raise ValueError(f"{name} must be a whole number, at least 1; got {number!r}")
    if window is not None and window > steps:
        raise ValueError(f"the window must be at most the number of steps, {steps}; got {window}")
    if not eta < 2 / problem.beta:
        raise ValueError(f"the step must be below 2/beta = {2 / problem.beta:.4g}; got {eta:.4g}")
    ladder = Ladder.of(telescope.h)
    chain = [ladder.h.levels.index(k) for k in telescope.levels]
    known = {
        "eta": eta,
        "expected_cost": steps * telescope.expected_cost(),
        "guarantee": "set by hand",
    }
    late = {"averaging": "exponential", "growth": 1 / (1 - eta * problem.mu / 2)}
    known |= late if window is None else {"averaging": "tail", "window": int(window)}
    return ladder.plan(
        problem, eps, "tuned", "none", [ladder.stage(steps, chain, telescope.p)], **known
    )


@dataclass(frozen=True)
class Comparison:
    """Every method's plan for one problem and target, cheapest first; `left_out` says why a method has none."""

    problem: Problem
    eps: float
    plans: tuple[Plan, ...]
    left_out: dict[str, str]

    @property
    def best(self) -> Plan:
        """The cheapest plan."""
        return self.plans[0]

    @property
    def verdict(self) -> str:
        """Whether the telescope pays, and if not, what to use."""
        ours = {"multilevel", "accelerated", "scheduled", "anchored"}
        telescopes = [p for p in self.plans if p.method in ours]
        others = [p for p in self.plans if p.method not in ours]
        if not telescopes or not others:
            return f"{'nothing else' if telescopes else 'no telescope'} can be planned here: use {self.best.method!r}"
        first, rival = telescopes[0], others[0]
        if first is self.best:
            times = rival.expected_cost / first.expected_cost
            return f"the telescope pays: {first.method!r} is {times:.3g} times cheaper than {rival.method!r}"
        times = first.expected_cost / rival.expected_cost
        return f"the telescope does not pay: {rival.method!r} is {times:.3g} times cheaper than {first.method!r}"

    def multiplier(self, method: str) -> float | None:
        """What the paper says the method's bound is, over multilevel descent's (None where it says nothing)."""
        if method == "multilevel":
            return 1.0
        p = self.problem
        column = "strong" if p.mu > 0 and self.eps <= p.mu * p.d0**2 else "convex"
        expression = F.MULTIPLIER.get((method, column), {}).get(p.regime)
        if expression is None:
            return None
        return F.value(expression, beta=p.beta, mu=p.mu, d0=p.d0, eps=self.eps, gamma=p.gamma)

    def __str__(self) -> str:
        base = next(
            (p.expected_cost for p in self.plans if p.method == "multilevel"),
            self.best.expected_cost,
        )
        rows = ["method        expected price   over multilevel   the paper's multiplier"]
        for p in self.plans:
            m = self.multiplier(p.method)
            said = "-" if m is None else f"{m:.3g}"
            rows.append(
                f"{p.method:12s}  {p.expected_cost:14.4g}   {p.expected_cost / base:15.3g}   {said:>22s}"
            )
        rows += [f"{method:12s}  left out: {why}" for method, why in self.left_out.items()]
        return "\n".join([*rows, self.verdict])


def compare(problem: Problem, eps: float, on=None, promise: str = "proved") -> Comparison:
    """Every method's predicted price, cheapest first, with the paper's multipliers; `.verdict` says whether a telescope pays.

    >>> ranked = compare(Problem(beta=1, mu=0.01, d0=1, gamma=3, c=1), eps=1e-3)
    >>> [p.method for p in ranked.plans]
    ['scheduled', 'accelerated', 'multilevel', 'fixed']
    """
    plans, left_out = [], {}
    for method in METHODS if on is None else LADDER_METHODS:
        try:
            plans.append(plan(problem, eps, method, on=on, promise=promise))
        except NotApplicable as why:
            left_out[method] = str(why)
    if not plans:
        raise NotApplicable(
            "no method can be planned: " + "; ".join(f"{m}: {why}" for m, why in left_out.items())
        )
    return Comparison(problem, eps, tuple(sorted(plans, key=lambda p: p.expected_cost)), left_out)
