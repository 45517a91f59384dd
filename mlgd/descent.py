"""How a plan runs: the steps of averaged descent and of similar triangles."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from .checkpoint import Checkpoint
from .hierarchy import LARGEST, Hierarchy, positive
from .plans import METHODS, Plan, Stage, whole, within
from .result import Bill, Result
from .run import Progress, Run, State, refuse
from .telescope import Telescope

BLOCK = 256  # uniform numbers are drawn for this many steps at once
ROUNDED = 1e-6  # relative: of an error budget, a sum of three numbers
LESS_ACCURATE = 1.001  # times a plan's accuracy: levels that declare more are others


def run(
    plan: Plan,
    h: Hierarchy,
    y0: np.ndarray,
    rng=None,
    loss: Callable[[np.ndarray], float] | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    max_cost: float | None = None,
    progress: bool = False,
    checkpoint=None,
) -> Result:
    """Make the steps of a plan; `Plan.run` says what the arguments are."""
    refuse(h, loss=loss, callback=callback)
    complete(plan)
    rests_on(plan, h)
    start, bill = h.point(y0), Bill(h, max_cost)
    # or too short a ladder
    telescopes = [plan.telescope(h, stage) for stage in plan.stages]
    bill.accuracy |= plan.accuracies or {}
    if h.declared:
        as_accurate(h, bill.accuracy)
    seeded = rng is not None
    rng = np.random.default_rng(rng)
    coins = rng.bit_generator.state
    method = Triangles if plan.method == "accelerated" else Descent
    d0 = None if plan.problem is None else plan.problem.d0
    course = Run(bill, method(start, coins=coins), loss, callback, plan.steps, d0)
    if checkpoint is not None:
        beginning = {
            "set of levels": [*h.levels, h.exact],
            "list of prices": list(bill.price.values()),
            "plan": repr((plan.method, plan.eta, plan.stages, plan.growth, plan.window)),
            "start": start,
            "seed": repr(coins) if seeded else None,
        }
        course.keep_in(Checkpoint(checkpoint, beginning))
    steps = course.state.steps(bill, plan, telescopes, rng)
    return course.go(steps, progress, total=plan.steps)


def complete(plan: Plan) -> None:
    """Refuse a plan made by hand that lacks what a run needs, or what its promise rests on."""
    if lacks := [*what_a_run_lacks(plan), *what_its_promise_lacks(plan)]:
        why = "make plans by mlgd.plan(...), or by Plan.by_hand(telescope, eta, steps)"
        raise ValueError(f"this plan lacks {' and '.join(lacks)}: {why}")
    if positive("the plan's eta", plan.eta) > LARGEST:
        raise ValueError(
            f"the plan's eta must be at most {LARGEST:g}, so that steps stay ordinary floats; got "
            f"{plan.eta:g}: choose another unit of the loss"
        )
    positive("the plan's growth", plan.growth)
    for stage in plan.stages:
        whole("the steps of a stage", stage.steps)
    if plan.window is not None:
        within(whole("the window", plan.window), plan.steps)


def what_a_run_lacks(plan: Plan) -> Iterator[str]:
    """A known method, stages, and levels to draw in each of them."""
    if plan.method not in (*METHODS, "by hand"):
        yield f"a method that is known (got {plan.method!r})"
    if not plan.stages or not all(isinstance(stage, Stage) for stage in plan.stages):
        yield "stages"
        return
    closed_form = [stage for stage in plan.stages if stage.probabilities is None]
    if closed_form and plan.problem is None:
        yield "a problem, or probabilities in every stage"


def what_its_promise_lacks(plan: Plan) -> Iterator[str]:
    """A problem, a target and an error budget, which `mlgd.plan` alone makes."""
    if plan.promise == "none":
        return
    if plan.promise not in ("estimate", "proved"):
        yield f"a promise that is known (got {plan.promise!r})"
    if plan.problem is None or not math.isfinite(plan.eps):
        yield "a problem and an eps for what it promises"
    if plan.budget is None:
        yield "an error budget for what it promises"
    elif sum(plan.budget.values()) > plan.eps * (1 + ROUNDED):  # eps was changed by hand
        yield f"an error budget within its eps = {plan.eps:g}"


def rests_on(plan: Plan, h: Hierarchy) -> None:
    """Refuse a promise on levels that declare nothing, unless the plan brings measured ones."""
    measured = plan.promise == "estimate" and plan.accuracies is not None
    if plan.promise != "none" and not measured:
        h.accuracies()


def as_accurate(h: Hierarchy, planned: dict[int, float]) -> None:
    """Refuse levels that declare less accuracy than the plan relies on."""
    for k, accuracy in zip(h.levels, h.accuracies(), strict=True):
        if accuracy > LESS_ACCURATE * planned[k]:
            raise ValueError(
                "these levels declare less accuracy than the plan's: plan on them"
            )


# --- the methods of a plan ---


@dataclass
class Planned(State):
    """Where a plan is: its stage, the steps made in it, and the generator before the last block."""

    stage: int = 0
    at: int = 0
    coins: dict = field(default_factory=dict)

    def kept(self) -> dict:
        # no step changes what a field holds: it puts another there
        return dict(vars(self))

    def draws(self, bill: Bill, plan: Plan, telescopes: list[Telescope], rng) -> Iterator:
        """For every step that is left: its number in its stage, and a draw y -> g(y) for it."""
        rng = self.generator(rng)
        while self.stage < len(telescopes):
            telescope, steps = telescopes[self.stage], plan.stages[self.stage].steps
            made = max(self.at - 1, 0)
            for first in range(made - made % BLOCK, steps, BLOCK):
                self.coins = rng.bit_generator.state
                block = self.block(bill, telescope, rng)
                for at in range(max(first, self.at), min(first + BLOCK, steps)):
                    yield at, block[at - first]
            self.stage, self.at = self.stage + 1, 0
        self.promise_what_was_made(bill, plan)

    def generator(self, rng) -> np.random.Generator:
        """The generator, as it was before the block that is drawn next."""
        kind = self.coins["bit_generator"]
        if (
            type(rng.bit_generator).__name__ != kind
        ):  # the file has another kind than was given
            rng = np.random.Generator(getattr(np.random, kind)())
        rng.bit_generator.state = self.coins
        return rng

    @staticmethod
    def block(bill: Bill, telescope: Telescope, rng) -> list[Callable]:
        """A block of draws: functions of the point."""
        always = partial(bill.value, telescope.prefix, fresh=False)
        hits = rng.random((BLOCK, telescope.random.size)) < telescope.random
        alone = ~hits.any(axis=1) & (telescope.prefix is not None)
        draws = []
        for only_always, hit in zip(alone.tolist(), hits, strict=True):
            draws.append(
                always if only_always else partial(telescope.combine, hit, bill.values)
            )
        return draws

    def promise_what_was_made(self, bill: Bill, plan: Plan) -> None:
        if plan.promise == "proved" and bill.h.measured:
            plan = replace(plan, promise="estimate")
        self.promise = "none" if bill.broken else plan.promise
        self.status = "done" if self.promise != "none" else "ended"
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

    def steps(
        self, bill: Bill, plan: Plan, telescopes: list[Telescope], rng
    ) -> Iterator[None]:
        eta, decay, tail = plan.eta, 1.0 / plan.growth, plan.window is not None
        opens = plan.steps - plan.window if tail else 0
        y, (total, mass) = self.y, self.sums or (np.zeros_like(self.y), 0.0)
        for at, draw in self.draws(bill, plan, telescopes, rng):
            after = y - eta * draw(y)  # a new array: a user may keep the points seen
            after.flags.writeable = False
            if self.step >= opens:
                held = total if decay == 1.0 else decay * total
                total, mass = held + (after if tail else y), 1.0 + mass * decay
                self.sums = total, mass
            self.y, self.at = after, at + 1
            y = after
            yield


@dataclass
class Triangles(Planned):
    """Similar triangles: x = (a z + A y)/A', z <- z - a g(x), y <- (a z + A y)/A', a = eta t."""

    z: np.ndarray | None = None

    def steps(
        self, bill: Bill, plan: Plan, telescopes: list[Telescope], rng
    ) -> Iterator[None]:
        y, z = self.y, self.z
        for at, draw in self.draws(bill, plan, telescopes, rng):
            if not at:
                z = y
            alpha, share = plan.eta * (at + 1), 2 / (at + 2)  # a, and a/A'
            x = y if z is y else y + share * (z - y)
            x.flags.writeable = False  # or each level makes a view that is
            step = alpha * draw(x)
            z, y = z - step, x - share * step
            self.y, self.z, self.at = y, z, at + 1
            yield
