"""minimize: from a hierarchy and a starting point to a result.

A method is a state and a generator that makes the steps: all that must survive a step is in the
state, so that a run that was killed goes on from the state of its last file. Plans run averaged
descent or similar triangles; without a plan `climb` goes from coarse to fine.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from .bill import Bill, Result, State
from .checkpoint import Progress, Run
from .climb import Climb, climb
from .hierarchy import Hierarchy, function, ladder, positive
from .plans import Plan
from .telescope import Telescope

BLOCK = 256  # uniform numbers are drawn for this many steps at once


def minimize(
    h: Hierarchy,
    y0: np.ndarray,
    plan: Plan | None = None,
    *,
    eps: float | None = None,
    radius: float | None = None,
    rng=None,
    loss: Callable[[np.ndarray], float] | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    max_cost: float | None = None,
    progress: bool = False,
    checkpoint=None,
) -> Result:
    """Run a plan; or, without one, go from coarse to fine until a loss of eps above the minimum.

    Without a plan no constants are needed, and with `max_cost` in place of eps it goes as far as
    that pays. `radius` is a bound on `|y0 - y*|`, if you have one. `result.estimate` is the loss
    that is believed, `result.decisions` says why, and `result.promise` is 'estimate', or 'none'
    where nothing could be judged: fewer than three levels that differ, none of them `exact`.

    `loss` is recorded along the way (at about 200 steps of a plan), uncharged.
    `callback(progress)` is called after every step; returning True or raising StopIteration ends
    the run. `max_cost` ends it before the evaluation that would pass that price. A level that
    fails ends it with status 'failed' and the output so far; an interrupt, and an error of your
    callback or loss, are raised again with the result on them, `error.result`. `checkpoint` is a
    path: the state is written there every few seconds, and a run that finds the file of its own
    beginning goes on from it, bit for bit (after one evaluation, not charged, that compares).

    >>> from mlgd import Problem, plan
    >>> from mlgd.examples import biased
    >>> h = biased(lambda y: y - 1, gamma=3, c=1, levels=range(1, 8))
    >>> p = plan(Problem(beta=1, d0=2, gamma=3, c=1), eps=0.25)
    >>> run = minimize(h, np.zeros(2), p, rng=0)
    >>> run.status, run.nit, bool(abs(run.x - 1).max() < 0.1)
    ('done', 256, True)
    """
    refuse(h, plan, loss=loss, callback=callback)
    if plan is not None and eps is not None:
        raise ValueError("give a plan (its eps is in it) or eps, not both")
    if plan is None and eps is None and max_cost is None:
        raise ValueError("give a plan (its eps is in it), eps or max_cost; got none of them")
    if radius is not None and eps is None:
        raise ValueError("radius goes with eps, in a run without a plan: give eps, or leave it out")
    eps = None if eps is None else positive("eps", eps)
    radius = None if radius is None else positive("radius", radius)
    start, bill, seeded = h.point(y0), Bill(h, max_cost), rng is not None
    rng = np.random.default_rng(rng)
    coins = rng.bit_generator.state
    if plan is None:
        run = Run(bill, Climb(start), loss, callback, scale=math.inf)
    else:
        telescopes = [plan.telescope(h, stage) for stage in plan.stages]  # or too short a ladder
        bill.accuracy |= plan.accuracies or {}
        own = zip(h.levels, h.accuracies(), strict=True) if h.declared else ()
        if any(a > 1.001 * bill.accuracy[k] for k, a in own):
            raise ValueError("these levels declare less accuracy than the plan's: plan on them")
        state = (Triangles if plan.method == "accelerated" else Descent)(start, coins=coins)
        run = Run(bill, state, loss, callback, plan.steps, plan.problem and plan.problem.d0)
    if checkpoint is not None:
        chosen = plan and (plan.method, plan.eta, plan.stages, plan.growth, plan.window)
        beginning = {
            "set of levels": [*h.levels, h.exact],
            "list of prices": list(bill.price.values()),
            "plan, eps or radius": repr((chosen, eps, radius)),
            "start": start,
            "seed": repr(coins) if seeded else None,
        }
        run.resume(checkpoint, beginning)
    if plan is None:
        return run.go(climb(bill, run.state, eps, radius), progress)
    return run.go(run.state.steps(bill, plan, telescopes, rng), progress, total=plan.steps)


def refuse(h: Hierarchy, plan: Plan | None = None, **functions: Callable | None) -> None:
    """The sentences for arguments that can't be what was meant; nothing was evaluated yet."""
    ladder(h)
    if not isinstance(plan, Plan | None):
        raise TypeError(f"plan must come from mlgd.plan; got a value of type {type(plan).__name__}")
    for name, given in functions.items():
        if given is not None:
            function(f"{name}({'progress' if name == 'callback' else 'y'})", given)


# --- the methods of a plan ---


@dataclass
class Planned(State):
    """Where a plan is: its stage, the steps made in it, and the generator before the last block."""

    stage: int = 0
    at: int = 0
    coins: dict = field(default_factory=dict)

    def draws(self, bill: Bill, plan: Plan, telescopes: list[Telescope], rng) -> Iterator:
        """For every step that is left: its number in its stage, and a draw y -> g(y) for it."""
        if type(rng.bit_generator).__name__ != self.coins["bit_generator"]:  # that of the file
            rng = np.random.Generator(getattr(np.random, self.coins["bit_generator"])())
        rng.bit_generator.state = self.coins
        while self.stage < len(telescopes):
            telescope, steps = telescopes[self.stage], plan.stages[self.stage].steps
            always = partial(bill.value, telescope.prefix, fresh=False)
            for first in range(max(self.at - 1, 0) // BLOCK * BLOCK, steps, BLOCK):
                self.coins = rng.bit_generator.state
                hits = rng.random((BLOCK, telescope.random.size)) < telescope.random
                alone = (~hits.any(axis=1) & (telescope.prefix is not None)).tolist()
                for at in range(max(first, self.at), min(first + BLOCK, steps)):
                    self.at = at + 1
                    if alone[at - first]:
                        yield at, always
                    else:
                        yield at, partial(telescope.combine, hits[at - first], bill.values)
            self.stage, self.at = self.stage + 1, 0
        if plan.promise == "proved" and bill.h.measured:
            plan = replace(plan, promise="estimate")
        self.promise = "none" if bill.broken else plan.promise
        self.message = f"{self.step} steps, as planned: {bill.broken or plan.promised}"


@dataclass
class Descent(Planned):
    """Averaged descent: y <- y - eta g(y), and the sums of weighted points and of weights.

    Averaged are the points where g was taken, with weights that grow by `plan.growth` per step; or,
    with a window, the points reached in the last so many steps.
    """

    sums: tuple[np.ndarray, float] | None = None  # both over the latest weight

    @property
    def output(self) -> np.ndarray:
        return self.y.copy() if self.sums is None else self.sums[0] / self.sums[1]

    def steps(self, bill: Bill, plan: Plan, telescopes: list[Telescope], rng) -> Iterator[None]:
        eta, decay, tail = plan.eta, 1.0 / plan.growth, plan.window is not None
        opens = plan.steps - plan.window if tail else 0
        y, (total, mass) = self.y, self.sums or (np.zeros_like(self.y), 0.0)
        for _, draw in self.draws(bill, plan, telescopes, rng):
            after = y - eta * draw(y)  # a new array: a user may keep the points seen
            after.flags.writeable = False
            if self.step >= opens:
                held = total if decay == 1.0 else decay * total
                total, mass = held + (after if tail else y), 1.0 + mass * decay
                self.sums = total, mass
            self.y = y = after
            yield


@dataclass
class Triangles(Planned):
    """Similar triangles: x = (a z + A y)/A', z <- z - a g(x), y <- (a z + A y)/A', a = eta t."""

    z: np.ndarray | None = None

    def steps(self, bill: Bill, plan: Plan, telescopes: list[Telescope], rng) -> Iterator[None]:
        y, z = self.y, self.z
        for at, draw in self.draws(bill, plan, telescopes, rng):
            if not at:
                z = y
            alpha, share = plan.eta * (at + 1), 2 / (at + 2)  # a, and a/A'
            x = y if z is y else y + share * (z - y)
            x.flags.writeable = False  # or each level makes a view that is
            step = alpha * draw(x)
            z, y = z - step, x - share * step
            self.y, self.z = y, z
            yield
