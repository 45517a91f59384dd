"""The sharp plan: shrunk telescopes, a potential that falls, and a stop at random.

Theorem S. It is the book's own, not the paper's, and nobody outside has reviewed it yet.

Let L be convex, beta-smooth and mu-strongly convex (mu = 0 is allowed) on the whole space, with
gradient f and a minimizer y* within d0 of y_0. Let levels A_k with errors |A_k - f| <= r_k, which
do not grow with k, and prices c_k be given. Fix in advance

- a number of outputs T >= 1, and steps h_t > 0 with h_t beta < 1 (at the last one also = 1),
- masses a_t > 0, with them potentials phi_t = a_t / h_t, and a potential phi_{-1} > 0,
- stopping probabilities 0 <= alpha_t <= a_t whose sum is one,
- numbers chi_t > 0 for t < T - 1, and chi_{T-1} = 0,
- for t < T - 1 levels, numbered 0, ..., K here, and probabilities 1 = P_0(t) >= ... >= P_K(t) > 0.

With D_t = 1 - h_t (beta - mu), omega_t = (1 - h_t beta)/D_t and 1/psi_t = omega_t^2/chi_t + h_t/D_t
suppose that for t = 0, ..., T - 1

    phi_t <= phi_{t-1} + a_t (omega_t mu - chi_t) + (a_t - alpha_t) mu.

At step t < T - 1 draw g_t by the shrunk telescope (mlgd/shrunk.py) with reach P(t) and shrinkage
s_t = h_t psi_t, which is below one, and let y_{t+1} be y_t - h_t g_t, or its projection on a closed
convex set that holds y*. Stop at a step I drawn with the probabilities alpha, independently of the
telescopes. Then no more than T - 1 steps are made, and

    E L(y_I) - L(y*) <= phi_{-1} d0^2/2 + (1/2) sum over t < T-1 of (a_t/psi_t) sum_k q_k(t) r_k^2,
    E price           = sum over t < T-1 of P(I > t) sum over k with q_k(t) > 0 of P_k(t) c_k,

where q_k(t) are the shares of the levels in the mean of g_t. The mean of all outputs, the sum of
alpha_t y_t, obeys the same bound; its price is that sum without P(I > t).

The steps here are cut back to the ball of radius d0 around y_0, which holds y*: so the accuracies
need to hold on that ball only. The bound is one on the mean over runs: one run may end above eps,
and the stop at random adds to the spread of loss and bill.
"""

import math
from dataclasses import dataclass

import numpy as np

from .cheapest import Found, Rungs, cheapest
from .hierarchy import Hierarchy, LevelError, dyadic
from .plans import Problem, Proposal
from .potential import Potential
from .shrunk import ShrunkTelescope, mixture
from .telescope import sound

GUARANTEE = "the book's Theorem S (the sharp plan), ours"

# Of what a plan may need, d0 r <= eps or r^2 <= mu eps: the finest level on the paper's ladder.
# Finer ones are hardly ever worth buying.
FINER = (64, 8, 1)  # so many times, or less where floats do not hold the price
# Of beta d0, the largest gradient on the ball: a level less accurate than four times that, or than
# 64 eps/d0, is not worth looking at.
COARSEST = 4.0
HOPELESS = 64.0


@dataclass(frozen=True)
class Stretch:
    """Steps that share one shrunk telescope: that of `reach`, {level: P}.

    `made` of them are made on average, at a `price` each, on average too, and never more than
    `most`.
    """

    steps: int
    made: float
    shrinkage: float
    reach: dict[int, float]
    price: float
    most: float


@dataclass(frozen=True, kw_only=True)
class SharpPlan(Proposal):
    """A plan by Theorem S: its schedule, what each stretch of steps draws, and a bill.

    The output is the point where a stop at random leaves the run; with `average` it is the mean of
    all points that may be the output, which costs more and varies less. It needs the plan's
    accuracies on the ball of radius d0 around the start, and makes no step out of it.

    >>> from mlgd import plan
    >>> p = plan(Problem(beta=1, d0=1, gamma=3, c=1), 2**-7, "sharp")
    >>> round(p.expected_cost * 2.0**-21), p.promise
    (24, 'proved')
    """

    stages: tuple[Stretch, ...]
    schedule: Potential
    average: bool = False

    @property
    def expected_steps(self) -> float:
        return float(sum(stage.made for stage in self.stages))

    @property
    def expected_cost(self) -> float:
        return float(sum(stage.made * stage.price for stage in self.stages))

    @property
    def promised(self) -> str:
        return f"{super().promised}; one run may end above it"

    @property
    def numbers(self) -> tuple:
        """What decides how a run goes: another plan is one whose numbers differ."""
        return self.method, self.schedule, self.stages, self.average

    def telescope(self, h: Hierarchy, stage: Stretch) -> ShrunkTelescope:
        """The oracle of a stretch on a hierarchy.

        A plan on the paper's ladder asks for accuracies: here each is had from the coarsest level
        that has it, which leaves the bound; what it costs depends on the hierarchy.
        """
        reach = stage.reach
        if self.accuracies is None:
            served = {}
            for k, chance in stage.reach.items():
                # the first of several is reached most often
                served.setdefault(h.level_for(dyadic(k)), chance)
            reach = served
        return ShrunkTelescope(h, reach, stage.shrinkage)

    def __str__(self) -> str:
        average = f"{self.expected_steps:.4g} on average"
        steps = f"at most {self.steps} steps of {self.eta:.3g}, {average}"
        output = (
            "the mean of all outputs" if self.average else "the point at a random stop"
        )
        rows = [f"{self.method}: {steps}, output: {output}"]
        if self.budget:
            parts = " + ".join(f"{loss:.3g} {name}" for name, loss in self.budget.items())
            rows.append(f"  error budget   {parts} = {sum(self.budget.values()):.3g}")
        for name, stage, when in (
            ("levels reached", self.stages[0], "at first"),
            ("", self.stages[-1], "in the end"),
        ):
            shown = "  ".join(f"{k}: {chance:.3g}" for k, chance in stage.reach.items())
            rows.append(f"  {name:14s} {shown} {when}")
        bound = f"never above {self.cost_bound:.4g}"
        rows.append(f"  expected price {self.expected_cost:.4g}   {bound}")
        rows.append(f"  promise        {self.promised}")
        return "\n".join(rows)


# --- the plan for a problem ---


def sharp(begun: Proposal, own: Hierarchy | None, average: bool) -> SharpPlan:
    """The cheapest sharp plan, on the ladder that the problem assumes or on one's own."""
    problem = begun.problem
    eps = begun.eps
    h = ideal(problem, eps) if own is None else own
    accuracy = h.accuracies()
    size = sound("beta d0", problem.beta * problem.d0)  # of a gradient
    target = sound("eps over beta d0^2", eps / size / problem.d0)
    fine_enough = accuracy <= size * max(COARSEST, HOPELESS * target)
    looked_at = np.flatnonzero(fine_enough)
    price = np.array([float(h.cost(k)) for k in h.levels])
    with np.errstate(all="ignore"):  # what is no number is no plan
        rungs = Rungs.of(accuracy[looked_at] / size, price[looked_at])
        kept = rungs.worth()
        found = cheapest(problem.mu / problem.beta, target, rungs.only(kept), average)
    if found is None:
        raise LevelError(
            f"the target {eps:g} is out of reach on this ladder: its finest accuracy, "
            f"{accuracy[-1]:.3g}, leaves no room for steps: add finer levels or ask "
            "for a larger eps"
        )
    used = looked_at[kept]
    schedule = found.schedule.on(problem.beta)
    stages = stretches(found, [h.levels[i] for i in used], price[used])
    horizon = schedule.start * problem.d0**2 / 2
    errors = bias_and_noise(schedule, stages, dict(zip(h.levels, accuracy, strict=True)))
    return SharpPlan(
        method=begun.method,
        eta=schedule.step,
        stages=stages,
        problem=problem,
        eps=eps,
        promise=begun.promise,
        guarantee=GUARANTEE,
        budget={"horizon": horizon, "bias and noise": errors},
        accuracies=None
        if own is None
        else dict(zip(h.levels, accuracy.tolist(), strict=True)),
        schedule=schedule,
        average=average,
    )


def ideal(problem: Problem, eps: float) -> Hierarchy:
    """The ladder that a problem assumes, as fine as may be worth paying for."""
    needed = max(eps / problem.d0, math.sqrt(problem.mu * eps))
    for finer in FINER:
        try:
            return problem.prices(needed / finer)
        except ValueError as refused:  # its finest price is no ordinary float
            last = refused
    raise LevelError(str(last)) from last


def stretches(found: Found, levels: list[int], price: np.ndarray) -> tuple[Stretch, ...]:
    """The stages of a plan, with what they cost."""
    stages = []
    bought = found.bought
    steps = np.diff(found.trade.edges)
    for i, base in enumerate(bought.base.ravel().tolist()):
        drawn = bought.reach[i] > 0
        drawn[:base] = False
        # a level that is reached as often as the next one is not evaluated
        drawn[:-1] &= bought.reach[i, :-1] > bought.reach[i, 1:]
        reach = bought.reach[i, drawn]
        stages.append(
            Stretch(
                steps=int(steps[i]),
                made=float(found.trade.made[i]),
                shrinkage=float(found.trade.shrinkage[i, 0]),
                reach={
                    levels[k]: chance
                    for k, chance in zip(
                        np.flatnonzero(drawn), reach.tolist(), strict=True
                    )
                },
                price=float(reach @ price[drawn]),
                most=float(price[drawn].sum()),
            )
        )
    return tuple(stages)


def bias_and_noise(
    schedule: Potential, stages: tuple[Stretch, ...], accuracies: dict[int, float]
) -> float:
    """The theorem's sum, (1/2) sum over steps of (a_t/psi_t) sum_k q_k(t) r_k^2."""
    total = 0.0
    first = 0
    for stage in stages:
        reach = np.array([*stage.reach.values()])
        squared = np.array([accuracies[k] for k in stage.reach]) ** 2
        joint = float(mixture(reach, stage.shrinkage) @ squared)
        mass = float(schedule.masses(first, first + stage.steps))
        total += mass / float(schedule.psi(first)) * joint / 2
        first += stage.steps
    return total
