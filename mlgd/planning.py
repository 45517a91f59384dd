"""From a problem and a target to hyperparameters and a bill, before anything runs: the paper's four methods.

On the ladder that a Problem assumes, a plan has the constants of the theorems. On a ladder of your own, on=h or on=report,
the steps, levels and probabilities are chosen by price.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from . import formulas as F
from .hierarchy import Hierarchy, positive
from .plans import Budget, Comparison, NotApplicable, Plan, Problem, Stage, closed_form
from .telescope import Telescope, optimum

METHODS = ("multilevel", "fixed", "accelerated", "scheduled")
SHARES = (0.1, 0.2, 0.35, 0.5, 0.65)  # of mu that Young's inequality gives to the bias
FINALISTS = 3  # of a search on a ladder, for which the cheapest telescope is found


def plan(
    problem: Problem, eps: float, method: str = "multilevel", eta: float | None = None, on=None
) -> Plan:
    """Hyperparameters that reach mean loss eps, and what they cost.

    'multilevel' and 'fixed' follow the paper's Theorem 1: part (b) when mu > 0 and eps <= mu d0^2, part (a) otherwise.
    'accelerated' runs the method of similar triangles with constants proved in the chapter on acceleration, restarted
    under strong convexity; 'scheduled' is the discrete form of the paper's Proposition 2 (mu > 0).

    on: a Hierarchy, or the report of `audit`: levels, prices and accuracies are then its own, and expected_cost is the
    mean of what a run pays. What rests on measurements, a report's or its problem's, is an estimate.

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
    eta = problem.step(eps, None if eta is None else positive("eta", eta))
    known = {"problem": problem, "eps": eps, "method": method, "eta": eta}
    if on is None:
        said = _theorem(problem, eps, method, eta)
        said["stages"] = tuple(_priced(problem, s, eta, method) for s in said["stages"])
        return Plan(**known, **said, promise="estimate" if problem.measured else "proved")
    ladder = Ladder.of(on)
    search = ladder.staged if method in ("accelerated", "scheduled") else ladder.searched
    known["promise"] = "estimate" if problem.measured or ladder.measured else "proved"
    accuracies = dict(zip(ladder.h.levels, ladder.accuracy.tolist(), strict=True))
    return Plan(**known, **search(problem, eps, method, eta), accuracies=accuracies)


# --- what the theorems prescribe ---


def _theorem(problem: Problem, eps: float, method: str, eta: float) -> dict:
    """Stages, averaging, budget and guarantee of a method, whatever the ladder."""
    if method == "accelerated":
        return _accelerated(problem, eps, eta)
    if method == "scheduled":
        return _scheduled(problem, eps, eta)
    strong = problem.mu > 0 and eps <= problem.mu * problem.d0**2
    forms, terms = (F.STRONG, F.STRONG_BUDGET) if strong else (F.CONVEX, F.CONVEX_BUDGET)
    numbers = {"d0": problem.d0, "eta": eta, "eps": eps, "mu": problem.mu}
    steps, delta, sigma2 = (F.value(forms[name], **numbers) for name in ("T", "delta", "sigma2"))
    stage = Stage(math.ceil(steps - 1e-9), delta, 0.0 if method == "fixed" else math.sqrt(sigma2))
    return {
        "stages": (stage,),
        "budget": _budget(terms, stage, numbers),
        "growth": 1 / (1 - eta * problem.mu) if strong else 1.0,
        "guarantee": f"the paper's Theorem 1({'b' if strong else 'a'})",
    }


def _budget(terms, stage: Stage, numbers: dict) -> Budget:
    numbers = {**numbers, "T": stage.steps, "delta": stage.delta, "sigma": stage.sigma}
    return Budget(**{name: F.value(term, **numbers) for name, term in terms.items()})


def _accelerated(problem: Problem, eps: float, eta: float) -> dict:
    """Similar triangles: E loss <= 3 R^2 / (2 A_T) from distance R, restarted at halved squared distance when mu > 0."""
    stages, radius, target = [], problem.d0, math.inf
    while target > eps:
        target = F.value(F.STAGE_TARGET, mu=problem.mu, d0=radius) if problem.mu else 0.0
        goal = {"d0": radius, "eta": eta, "eps": max(target, eps)}
        steps = max(1, math.ceil(F.value(F.SIMILAR["T"], **goal) - 1e-9))
        numbers = {"d0": radius, "eta": eta, "T": steps}
        delta = F.value(F.SIMILAR["delta"], **numbers)
        sigma = math.sqrt(F.value(F.SIMILAR["sigma2"], delta=delta, **numbers))
        stages.append(Stage(steps, delta, sigma))
        radius /= math.sqrt(2)
    budget = _budget(F.SIMILAR_BUDGET, stages[-1], numbers)
    said = "similar triangles, constants proved in the book"
    return {"stages": tuple(stages), "budget": budget, "window": 1, "guarantee": said}


def _scheduled(problem: Problem, eps: float, eta: float) -> dict:
    """The paper's Proposition 2 in discrete time: weights rho^-t, accuracies relaxed by sqrt 2 per block, backwards in time."""
    mu, d0 = problem.mu, problem.d0
    rate = -math.log1p(-eta * mu / 2)
    steps = max(1, math.ceil(math.log1p(2 * mu * d0**2 / eps) / rate - 1e-9))
    block = max(1, math.floor(2 * math.log(2) / rate))
    ends = range(0, steps, block)  # of the blocks, counted from the end of the run
    counts = [min(block, steps - end) for end in ends]
    ago, sizes = np.array([*ends], float), np.array(counts, float)
    # the blocks' shares of the weights, which sum to one; a block earlier, delta^2 and sigma^2 double
    shares = np.exp(-rate * ago) * np.expm1(-rate * sizes) / np.expm1(-rate * steps)
    relaxed = 2.0 ** np.arange(ago.size)
    numbers = {"mu": mu, "eta": eta, "eps": eps, "injection": float(shares @ relaxed)}
    delta2, sigma2 = (F.value(F.DISCRETE[name], **numbers) for name in ("delta2", "sigma2"))
    stages = [
        Stage(count, math.sqrt(delta2 * r), math.sqrt(sigma2 * r))
        for count, r in zip(counts, relaxed.tolist(), strict=True)
    ]
    worst = math.sqrt(numbers["injection"])
    numbers |= {"delta": math.sqrt(delta2) * worst, "sigma": math.sqrt(sigma2) * worst}
    bias, noise = (F.value(F.DISCRETE_BUDGET[name], **numbers) for name in ("bias", "noise"))
    # the formula's own horizon cancels where rate * steps is tiny
    horizon = mu * d0**2 / 2 / math.expm1(steps * rate)
    return {
        "stages": tuple(stages[::-1]),
        "budget": Budget(horizon, bias, noise),
        "growth": 1 / (1 - eta * mu / 2),
        "guarantee": "the paper's Proposition 2 in discrete time, proved in the book",
    }


def _priced(problem: Problem, stage: Stage, eta: float, method: str) -> Stage:
    """A stage with its price on the ladder that the problem assumes, and a bound of it."""
    ladder = problem.prices(stage.delta)
    call = closed_form(problem, stage, eta, method, ladder)
    finest = 2.0 ** -ladder.levels[-1]
    if stage.sigma == 0:
        return replace(stage, price=call.expected_cost(), most=ladder.cost(ladder.levels[-1]))
    known = {"c": problem.c, "gamma": problem.gamma, "delta": finest, "sigma": stage.sigma}
    known["n"] = max(1.0, math.log2(stage.sigma / (3 * finest)) + 1)
    most = min(F.value(F.CALL_EXECUTED[problem.regime], **known), F.value(F.ALL_LEVELS, **known))
    printed = Telescope.for_accuracy(ladder, stage.delta, stage.sigma, problem.gamma, coarsest=0.0)
    if problem.regime != "HTMC" or call.p[0] > printed.p[0]:  # else its share is in the bound
        most += call.p[0] * ladder.cost(ladder.levels[0])
    return replace(stage, price=call.expected_cost(), most=most)


# --- on a ladder of your own ---


@dataclass(frozen=True)
class Ladder:
    """What can be bought, and how far levels are apart: squared[i, j] bounds or measures |A_j - A_i|^2."""

    h: Hierarchy
    cost: np.ndarray
    accuracy: np.ndarray
    squared: np.ndarray
    measured: bool

    @classmethod
    def of(cls, on) -> "Ladder":
        """From a Hierarchy (increments bounded by its accuracies) or a report of `audit` (increments as measured)."""
        h, values = getattr(on, "hierarchy", on), getattr(on, "values", None)
        if not isinstance(h, Hierarchy):
            raise ValueError(
                f"on must be a Hierarchy or the report of audit; got {type(on).__name__}"
            )
        accuracy, cost = h.accuracies(), np.array([float(h.cost(k)) for k in h.levels])
        squared = (accuracy[:, None] + accuracy) ** 2
        if values is not None:
            rows = np.array([np.reshape(values[k], (len(values[k]), -1)) for k in h.levels], float)
            squared = np.array([((rows - one) ** 2).sum(axis=2).max(axis=1) for one in rows])
        return cls(h, cost, accuracy, squared, values is not None)

    def stage(self, steps: int, finest: int, variance: float, sigma: float | None = None) -> Stage:
        """Steps with the cheapest telescope to a finest level (an index) that keeps the variance."""
        top = slice(0, finest + 1)
        chain, q, price = optimum(self.cost[top], self.squared[top, top], variance)
        if sigma is None:
            sigma = math.sqrt(variance) if len(chain) > 1 else 0.0
        levels = tuple(self.h.levels[i] for i in chain)
        most = float(sum(self.cost[i] for i in chain))
        bias = float(self.accuracy[finest])
        return Stage(int(steps), bias, sigma, price, most, levels, tuple(q.tolist()))

    def staged(self, problem: Problem, eps: float, method: str, eta: float) -> dict:
        """The theorem's stages, each with the cheapest telescope for its bias and noise."""
        said, stages = _theorem(problem, eps, method, eta), []
        for s in said["stages"]:
            fine = np.flatnonzero(self.accuracy <= s.delta * (1 + 1e-12))
            if not fine.size:
                raise NotApplicable(
                    f"{method!r} needs accuracy {s.delta:.3g} and the finest level offers "
                    f"{self.accuracy[-1]:.3g}: add finer levels or ask for a larger eps"
                )
            stages.append(self.stage(s.steps, int(fine[0]), s.sigma**2, s.sigma))
        return said | {"stages": tuple(stages)}

    def searched(self, problem: Problem, eps: float, method: str, eta: float) -> dict:
        """The one-step lemma of the paper, summed with uniform weights (a) or growing ones (b), whichever is cheaper.

        (a) loss <= x^2/(eta T) = d0^2/(eta T) + 2 delta x + eta (sigma^2 + 2 delta^2), where no mean distance exceeds x:
            at most eps if the right side is for x^2 = eps eta T;
        (b) loss <= (1-s) mu d0^2 / (rho^-T - 1) + delta^2/(s mu) + eta (sigma^2 + 2 delta^2), rho = 1 - (1-s) eta mu,
            weights rho^-t: Young's inequality gives the share s of mu to the bias. Here s = 0 stands for (a).

        For every T, s and finest level the noise that is left is known, and so is about what a telescope costs that
        makes no more of it. For the best few pairs of s and level the cheapest telescope is found, and T is refined.
        """
        d0, mu, delta = problem.d0, problem.mu, self.accuracy

        def left(s, t):
            """What horizon and bias cost, and the variance that is left, by finest level."""
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                growing = np.expm1(-np.log1p(-(1 - s) * eta * mu) * t)  # rho^-T - 1
                horizon = np.where(s > 0, (1 - s) * mu * d0**2 / growing, d0**2 / (eta * t))
                bias = np.where(s > 0, delta**2 / (s * mu), 2 * delta * np.sqrt(eps * eta * t))
            room = (eps - horizon - bias) / eta - 2 * delta**2
            return horizon, bias, np.minimum(room, 0.0) if method == "fixed" else room

        def refined(s, t, k):
            """The cheapest stage for T near t, with share s and finest level k."""
            for spread in (1.3, 1.1, 1.03):
                near = {max(1, round(t * r)) for r in np.geomspace(1 / spread, spread, 5)}
                rooms = {t: float(left(s, t)[2][k]) for t in near}
                stages = [self.stage(t, k, room) for t, room in rooms.items() if room >= 0]
                best = min(stages, key=lambda stage: stage.total)
                t = best.steps
            return best

        most = {0.0: 64 * d0**2 / (eta * eps)}  # the largest T of each share
        if mu:
            most |= dict.fromkeys(SHARES, 4 / (eta * mu) * math.log1p(256 * mu * d0**2 / eps) + 2)
        t = np.ceil([np.geomspace(1.0, max(2.0, last), 120) for last in most.values()])[:, :, None]
        about = t * self.about(left(np.array([*most])[:, None, None], t)[2])
        cells = np.argwhere(np.isfinite(about.min(axis=1)))  # of share and finest level
        if not cells.size:
            alone = min(2 * delta[-1] * d0, delta[-1] ** 2 / mu if mu else math.inf)
            raise NotApplicable(
                f"the target {eps:g} is out of reach on this ladder: its finest level {self.h.levels[-1]} has accuracy "
                f"{delta[-1]:.3g}, which alone costs a loss of {alone:.3g}: add finer levels or ask for a larger eps"
            )
        cells = sorted(cells.tolist(), key=lambda cell: about[cell[0], :, cell[1]].min())
        ways = []
        for i, k in cells[:FINALISTS]:
            share = [*most][i]
            ways.append((share, k, refined(share, int(t[i, about[i, :, k].argmin(), 0]), k)))
        share, k, stage = min(ways, key=lambda way: way[2].total)
        horizon, bias, _ = left(share, stage.steps)
        noise = eta * (stage.sigma**2 + 2 * stage.delta**2)
        part = "b), with a shorter horizon" if share else "a)"
        return {
            "stages": (stage,),
            "budget": Budget(float(horizon), float(bias[k]), noise),
            "growth": 1 / (1 - (1 - share) * eta * mu) if share else 1.0,
            "guarantee": f"the one-step lemma summed as in the paper's Theorem 1({part}",
        }

    def about(self, room: np.ndarray) -> np.ndarray:
        """About what a call costs whose variance is at most room[..., k], with k the finest level.

        No level past the first is left out, and increments are paid in pairs.
        """
        best = np.where(room >= 0, self.cost, np.inf)
        squared, pair = np.diag(self.squared, 1), self.cost[1:] + self.cost[:-1]
        for first in range(self.cost.size - 1):
            v, price, left = squared[first:], pair[first:].copy(), room[..., first + 1 :]
            v, price[0] = np.maximum(v, 1e-300), self.cost[first + 1]  # the first level is there
            root = np.cumsum(np.sqrt(v * price))
            scale = root / (np.maximum(left, 0.0) + np.cumsum(v))
            allowed = (left > 0) & (scale * np.maximum.accumulate(np.sqrt(v / price)) <= 1)
            cost = np.where(allowed, self.cost[first] + scale * root, np.inf)
            best[..., first + 1 :] = np.minimum(best[..., first + 1 :], cost)
        return best


# --- every method ---


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
    return Comparison(tuple(sorted(plans, key=lambda p: p.expected_cost)), left_out)
