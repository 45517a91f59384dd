"""How a plan runs: the steps of averaged descent, of similar triangles and of the sharp plan."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from .checkpoint import Checkpoint
from .hierarchy import LARGEST, Hierarchy, positive
from .plans import METHODS, Plan, Proposal, Stage, whole, within
from .result import Bill, Result
from .run import Progress, Run, State, refuse
from .sharp import SharpPlan, Stretch
from .shrunk import ShrunkTelescope
from .telescope import Telescope

Oracle = Telescope | ShrunkTelescope

BLOCK = 256  # uniform numbers are drawn for this many steps at once
ROUNDED = 1e-6  # relative: of an error budget, a sum of three numbers
LESS_ACCURATE = 1.001  # times a plan's accuracy: levels that declare more are others


def run(
    plan: Proposal,
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
    d0 = None if plan.problem is None else plan.problem.d0
    course = Run(bill, begun(plan, start, rng), loss, callback, plan.steps, d0)
    if checkpoint is not None:
        beginning = {
            "set of levels": [*h.levels, h.exact],
            "list of prices": list(bill.price.values()),
            "plan": repr(plan.numbers),
            "start": start,
            "seed": repr(coins) if seeded else None,
        }
        course.keep_in(Checkpoint(checkpoint, beginning))
    steps = course.state.steps(bill, plan, telescopes, rng)
    return course.go(steps, progress, total=course.state.total(plan))


def complete(plan: Proposal) -> None:
    """Refuse a plan made by hand that lacks what a run needs, or what its promise rests on."""
    if lacks := [*what_a_run_lacks(plan), *what_its_promise_lacks(plan)]:
        why = "make plans by mlgd.plan(...), or by Plan.by_hand(telescope, eta, steps)"
        raise ValueError(f"this plan lacks {' and '.join(lacks)}: {why}")
    if positive("the plan's eta", plan.eta) > LARGEST:
        raise ValueError(
            f"the plan's eta must be at most {LARGEST:g}, so that steps stay ordinary floats; got "
            f"{plan.eta:g}: choose another unit of the loss"
        )
    for stage in plan.stages:
        whole("the steps of a stage", stage.steps)
    if isinstance(plan, SharpPlan):
        return
    positive("the plan's growth", plan.growth)
    if plan.window is not None:
        within(whole("the window", plan.window), plan.steps)


def what_a_run_lacks(plan: Proposal) -> Iterator[str]:
    """A known method, stages, and levels to draw in each of them."""
    if plan.method not in (*METHODS, "by hand"):
        yield f"a method that is known (got {plan.method!r})"
    kind = Stretch if isinstance(plan, SharpPlan) else Stage
    if not plan.stages or not all(isinstance(stage, kind) for stage in plan.stages):
        yield "stages"
    elif isinstance(plan, SharpPlan):
        yield from what_a_schedule_lacks(plan)
    elif plan.problem is None and closed_form(plan):
        yield "a problem, or probabilities in every stage"


def closed_form(plan: Plan) -> bool:
    """Whether a stage draws by the paper's closed form, which needs a problem."""
    return any(stage.probabilities is None for stage in plan.stages)


def what_a_schedule_lacks(plan: SharpPlan) -> Iterator[str]:
    if plan.steps != plan.schedule.steps:
        yield "stages of as many steps as its schedule"
    if plan.problem is None:
        yield "a problem"


def what_its_promise_lacks(plan: Proposal) -> Iterator[str]:
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


def rests_on(plan: Proposal, h: Hierarchy) -> None:
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


def begun(plan: Proposal, start: np.ndarray, rng: np.random.Generator) -> "Planned":
    """The state of a run that has made no step; a stop at random is the first draw."""
    if not isinstance(plan, SharpPlan):
        method = Triangles if plan.method == "accelerated" else Descent
        return method(start, coins=rng.bit_generator.state)
    stop = plan.steps
    if not plan.average:
        stop = plan.schedule.stopped(rng.random())
    return Sharp(start, coins=rng.bit_generator.state, centre=start, stop=stop)


@dataclass
class Planned(State):
    """Where a plan is: its stage, the steps made in it, and the generator before the last block."""

    stage: int = 0
    at: int = 0
    coins: dict = field(default_factory=dict)

    def kept(self) -> dict:
        # no step changes what a field holds: it puts another there
        return dict(vars(self))

    def total(self, plan: Proposal) -> int:
        """How many steps the run makes if nothing ends it."""
        return plan.steps

    def steps(
        self, bill: Bill, plan: Proposal, telescopes: list[Oracle], rng
    ) -> Iterator[None]:
        """The steps of the plan, and then what may be said of them."""
        yield from self.moves(plan, self.draws(bill, plan, telescopes, rng))
        if plan.promise == "proved" and bill.h.measured:
            plan = replace(plan, promise="estimate")
        self.promise = "none" if bill.broken else plan.promise
        self.status = "done" if self.promise != "none" else "ended"
        self.message = f"{self.made(plan)}: {bill.broken or plan.promised}"

    def made(self, plan: Proposal) -> str:
        return f"{self.step} steps, as planned"

    def moves(self, plan: Proposal, draws: Iterator) -> Iterator[None]:
        """The steps, each with a draw; `at` is then the number of the next one in its stage."""
        raise NotImplementedError

    def draws(
        self, bill: Bill, plan: Proposal, telescopes: list[Oracle], rng
    ) -> Iterator:
        """For every step that is left: its number in its stage, and a draw y -> g(y) for it."""
        rng = self.generator(rng)
        while self.stage < len(telescopes):
            telescope, steps = telescopes[self.stage], plan.stages[self.stage].steps
            made = max(self.at - 1, 0)
            for first in range(made - made % BLOCK, steps, BLOCK):
                self.coins = rng.bit_generator.state
                block = telescope.draws(rng, BLOCK, bill.value, bill.values)
                for at in range(max(first, self.at), min(first + BLOCK, steps)):
                    yield at, block[at - first]
            self.stage, self.at = self.stage + 1, 0

    def generator(self, rng) -> np.random.Generator:
        """The generator, as it was before the block that is drawn next."""
        kind = self.coins["bit_generator"]
        if (
            type(rng.bit_generator).__name__ != kind
        ):  # the file has another kind than was given
            rng = np.random.Generator(getattr(np.random, kind)())
        rng.bit_generator.state = self.coins
        return rng


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

    def moves(self, plan: Plan, draws: Iterator) -> Iterator[None]:
        eta, decay, tail = plan.eta, 1.0 / plan.growth, plan.window is not None
        opens = plan.steps - plan.window if tail else 0
        y, (total, mass) = self.y, self.sums or (np.zeros_like(self.y), 0.0)
        for at, draw in draws:
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

    def moves(self, plan: Plan, draws: Iterator) -> Iterator[None]:
        y, z = self.y, self.z
        for at, draw in draws:
            if not at:
                z = y
            alpha, share = plan.eta * (at + 1), 2 / (at + 2)  # a, and a/A'
            x = y if z is y else y + share * (z - y)
            x.flags.writeable = False  # or each level makes a view that is
            step = alpha * draw(x)
            z, y = z - step, x - share * step
            self.y, self.z, self.at = y, z, at + 1
            yield


@dataclass
class Sharp(Planned):
    """Descent y <- y - h g(y), never out of the ball of radius d0 around the start.

    It ends after `stop` steps. The output is the point there, or, with `plan.average`, the mean of
    the points from the burn-in on, with the stopping probabilities as weights.
    """

    centre: np.ndarray | None = None
    stop: int = 0
    # of the points before this one that count, over the weight of the last of them
    sums: tuple[np.ndarray, float] | None = None
    decay: float = 0.0  # of the weights, from a point to the one before

    @property
    def output(self) -> np.ndarray:
        if self.sums is None:
            return self.y.copy()
        total, mass = self.sums
        return (self.decay * total + self.y) / (self.decay * mass + 1.0)

    def total(self, plan: SharpPlan) -> int:
        return self.stop

    def made(self, plan: SharpPlan) -> str:
        if plan.average:
            return super().made(plan)
        return f"stopped at random after {self.step} of at most {plan.steps} steps, as planned"

    def moves(self, plan: SharpPlan, draws: Iterator) -> Iterator[None]:
        h, radius = plan.schedule.step, plan.problem.d0
        self.decay = math.exp(plan.schedule.rate)
        opens = plan.schedule.burn if plan.average else self.stop
        for at, draw in draws:
            if self.step >= self.stop:
                return
            y = self.y
            after = y - h * draw(y)
            away = after - self.centre
            far = math.sqrt(np.vdot(away, away))
            if far > radius:
                after = self.centre + away * (radius / far)
            after.flags.writeable = False
            if self.step >= opens:
                total, mass = self.sums or (np.zeros_like(y), 0.0)
                self.sums = self.decay * total + y, self.decay * mass + 1.0
            self.y, self.at = after, at + 1
            yield
