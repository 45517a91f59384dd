"""minimize: without constants, from coarse to fine.

What a run does. Two evaluations at the start tell whether a level repeats itself. Then, level by
level from the coarsest:

- SOLVE: steps of L-BFGS, which keeps its pairs from level to level;
- when too little is left on the level for another step, decide: LOOK, that is, see the curvature
  of a coarser level by Lanczos at this point; RISE, that is, ask the next level; or END.

Curvature is seen where it is cheap, by products with a coarse Hessian: as a rule for at most half
of what gradients cost, for more where *done* would hang on it. The judge (`judge.py`) tells what is
left on the level, and what errors beyond it cost: by gradients and pairs, by the gains of steps on
this very level, and by increments, each taken on arrival at its level (before a level that is
expensive, anew at this point). A run is *done* when both together are within the aim (half of eps;
more before an expensive level; with a radius, the half of eps that it does not hide), increments
were seen to fall, and were weighed at this very point by Lanczos, where it could see. Beyond a
finest level that is exact nothing lies, and no fall is asked for. Nothing is promised where that
hangs on eigenvalues that are a guess, or where levels repeat one another.

Why it ends. On a level, steps stop when too little is left, when the search along a step fails, or
when none of the last ones was better by a tenth than those before: no gradient can go on falling by
a tenth. Between two steps a point is weighed once and judged once, or `base` goes up; a rise moves
the level up, and there are finitely many levels.

What the promise rests on. The estimate assumes that errors beyond go on falling as the last
increments fell and turned, that the curvature of the levels is one curvature, and that the loss is
nearly quadratic as far as what is left. With a radius R >= |y0 - y*|, r |y - y0|^2 / 2 is added to
the loss: that hides r R^2 / 8 of a quadratic loss at most, r R^2 / 4 of any convex one, and
directions flatter than r need no accuracy (the paper's convex theorem).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from . import judge, rules
from .checkpoint import Checkpoint
from .curvature import Curvature, Pair, dot, norm, spectrum_around
from .hierarchy import Hierarchy, LevelError, OutOfDomain, positive
from .result import Bill, Result
from .run import Progress, Run, State, refuse
from .solvers import advance

TINY, HUGE = 1e-140, 1e100  # entries of gradients beyond them: their squares are lost
OUT_OF_THE_WORLD = 1e30  # of 1 + |y0|: a trial so far from the start is not made


def minimize(
    h: Hierarchy,
    y0: np.ndarray,
    eps: float | None = None,
    *,
    radius: float | None = None,
    loss: Callable[[np.ndarray], float] | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    max_cost: float | None = None,
    progress: bool = False,
    checkpoint=None,
) -> Result:
    """Go from coarse to fine until a loss of eps above the minimum; no constants are needed.

    With `max_cost` in place of eps it goes as far as that pays. `radius` is a bound on
    `|y0 - y*|`, if you have one. `result.estimate` is the loss above the minimum that is believed,
    and `result.decisions` says why. `result.promise` is 'estimate', or 'none': the message says
    what could not be judged. It takes three levels that differ, or a finest one that is `exact`.

    `loss` is recorded along the way, uncharged; a point where it is larger than at y0 is not
    returned. `callback(progress)` is called after every step; returning True or raising
    StopIteration ends the run. `max_cost` ends it before the evaluation that would pass that price,
    all resumptions counted. A level that returns nan or inf, or raises `mlgd.OutOfDomain`, makes a
    step shorter; any other exception of it ends the run with status 'failed' and the output so
    far. An interrupt, and an error of your callback or loss, are raised again with the result on
    them, `error.result`. `checkpoint` is a path: the state is written there every few seconds and
    at every ending, and a run that finds the file of its own beginning goes on from it, bit for
    bit (after one evaluation that compares).

    >>> h = Hierarchy(lambda k, y: y - 1 + 2.0**-k, cost=lambda k: 8.0**k, levels=range(8))
    >>> run = minimize(h, np.zeros(2), eps=1e-2)
    >>> run.status, run.promise, bool(abs(run.x - 1).max() < 0.1)
    ('done', 'estimate', True)
    """
    refuse(h, loss=loss, callback=callback)
    if eps is None and max_cost is None:
        raise ValueError("give eps, the loss above the minimum that will do, or max_cost")
    eps = None if eps is None else target(eps)
    radius = None if radius is None else bound(radius, eps)
    start, bill = h.point(y0), Bill(h, max_cost)
    run = Run(bill, Climb(start), loss, callback, scale=math.inf)
    if checkpoint is not None:
        beginning = {
            "set of levels": [*h.levels, h.exact],
            "list of prices": list(bill.price.values()),
            "eps or radius": repr((eps, radius)),
            "start": start,
        }
        run.keep_in(Checkpoint(checkpoint, beginning))
    ascent = Ascent(bill, run.state, eps or 0.0, radius or math.inf)
    return run.go(ascent.steps(), progress)


def target(eps: float) -> float:
    """A loss above the minimum, or a refusal."""
    if hasattr(eps, "stages"):
        raise TypeError(
            "a plan runs by itself: plan.run(h, y0); minimize takes eps, a number"
        )
    return positive("eps", eps)


def bound(radius: float, eps: float | None) -> float:
    """A radius that goes with eps, or a refusal."""
    if eps is None:
        raise ValueError("radius goes with eps: give eps, or leave it out")
    radius = positive("radius", radius)
    if eps / radius / radius > HUGE:
        raise ValueError(
            f"eps = {eps:g} within radius = {radius:g} asks for a curvature beyond what floats "
            "hold: give a larger radius, a bound on the distance from y0 to a minimizer, or none"
        )
    return radius


# --- the state ---


class Phase(StrEnum):
    """What a run does next."""

    BEGIN = "begin"
    SOLVE = "solve"
    LOOK = "look"
    RISE = "rise"
    END = "end"


class Decision(NamedTuple):
    """What to do next.

    `rank`: to look with, none for pairs alone. `base`: below that rank curvature misleads.
    `done`: whether the end is a done run's, or no eps was asked for.
    """

    phase: Phase
    rank: int | None = None
    base: int = 0
    done: bool = False


@dataclass
class Here:
    """What is known at the iterate, and forgotten when it moves."""

    values: dict[str, np.ndarray] = field(default_factory=dict)  # gradients by rank
    seen_by: int | None = None  # the rank whose curvature Lanczos saw here last
    raised: bool = False  # whether raised eigenvalues, a guess, carry what counts
    weighed: bool = False  # whether increments were weighed here,
    judged: bool = False  # and by Lanczos


@dataclass
class Increment:
    """What a level changes at a point, and the loss that this stands for."""

    change: np.ndarray
    worth: float


@dataclass
class Climb(State):
    """Where a run without constants is. Levels are told by their rank, 0 for the coarsest."""

    phase: Phase = Phase.BEGIN
    start: np.ndarray | None = None
    rank: int = 0  # of the level asked
    gradient: np.ndarray | None = None  # of that level, at y
    # of steps and of Lanczos, kept across levels
    pairs: list[Pair] = field(default_factory=list)
    # to each level up to the one asked
    increments: list[Increment] = field(default_factory=list)
    # of gradients here: at arrival, after steps
    sizes: list[float] = field(default_factory=list)
    # of loss, by steps on this level, as their pairs tell
    gains: list[float] = field(default_factory=list)
    here: Here = field(default_factory=Here)
    base: int = 0  # the rank below which curvature was seen to mislead
    products: int = rules.FIRST_LOOK  # that the last look took
    # the share of an error's square that is another one at every point
    jumping: float = 0.0
    stuck: bool = False  # no step on this level helps any more

    def __post_init__(self) -> None:
        """A file holds dicts and lists."""
        self.phase = Phase(self.phase)
        self.pairs = [Pair(*pair) for pair in self.pairs]
        self.increments = [made(Increment, increment) for increment in self.increments]
        self.here = made(Here, self.here)

    @property
    def made_steps(self) -> int:
        """On this level."""
        return len(self.sizes) - 1

    @property
    def way(self) -> np.ndarray:
        return self.y - self.start


def made(kind: type, given):
    return given if isinstance(given, kind) else kind(**given)


class Ascent:
    """One run: what its state means, and what to do next."""

    def __init__(self, bill: Bill, state: Climb, eps: float, radius: float):
        self.bill = bill
        self.s = state
        self.curvature = Curvature(state.pairs)
        self.radius = radius
        self.hidden = rules.HIDDEN_BY_RADIUS * eps if radius < math.inf else 0.0
        self.ridge = 8 * self.hidden / radius / radius
        self.eps = eps - self.hidden
        start = state.y if state.start is None else state.start
        self.farthest = OUT_OF_THE_WORLD * (1 + np.abs(start).max())
        self.levels = bill.h.levels
        self.top = len(self.levels) - 1
        # nothing lies beyond it
        self.exact = self.top if bill.h.exact or not self.top else None
        self.price = [bill.price[k] for k in self.levels]
        # whether the level after each is expensive beside it
        self.expensive = [b >= rules.EXPENSIVE * a for a, b in pairwise(self.price)]
        self.expensive.append(False)

    def steps(self) -> Iterator[None]:
        """The steps of a run; all that must survive a step is in the state."""
        if self.s.phase == Phase.BEGIN:
            self.begin()
            yield
        # the file of a run that has ended has that phase
        while self.s.phase != Phase.END:
            self.step()
            if self.s.phase != Phase.END:
                yield

    def step(self) -> None:
        """A step on this level while it has something to say, else what is decided."""
        if not (self.s.stuck or self.is_solved()):
            self.s.phase = Phase.SOLVE
            self.solve()
            return
        decision = self.decide()
        self.s.base = max(self.s.base, decision.base)
        if decision.phase == Phase.LOOK:
            self.weigh(decision.rank)
        elif decision.phase == Phase.RISE:
            self.rise()
        else:
            self.end(decision.done)
        self.s.phase = decision.phase  # last: a step that something ended is made again

    # --- gradients ---

    def value(self, rank: int, x: np.ndarray, purpose: str = "gradients") -> np.ndarray:
        """A level at x, and with a radius the pull of the start."""
        value = self.bill.value(self.levels[rank], x, purpose)
        return value + self.ridge * (x - self.s.start) if self.ridge else value

    def tried(
        self, rank: int, x: np.ndarray, purpose: str = "gradients"
    ) -> np.ndarray | None:
        """The same, or None where the level has no value: a trial went too far."""
        if np.abs(x - self.s.start).max() > self.farthest:
            return None
        try:
            value = self.value(rank, x, purpose)
        except OutOfDomain as outside:
            named = f"level {outside.level} "
            if not any(said.startswith(named) for said in self.s.decisions):
                self.s.decide(f"{outside}: steps stop short of there")
            return None
        return value if np.abs(value).max() < HUGE else None

    def at(self, rank: int, purpose: str = "gradients") -> np.ndarray:
        """A level at y, bought once."""
        values = self.s.here.values
        if str(rank) not in values:
            values[str(rank)] = self.value(rank, self.s.y, purpose)
        return values[str(rank)]

    def move(self, x: np.ndarray, g: np.ndarray, **known: np.ndarray) -> None:
        """Stand at x, where the level asked has the gradient g."""
        x.flags.writeable = False
        self.s.y = x
        self.s.gradient = g
        self.s.here = Here({str(self.s.rank): g} | known)

    # --- what the judge says ---

    def fall(self) -> judge.Fall:
        return judge.falling([d.change for d in self.s.increments], self.s.jumping)

    def worth(self, v: np.ndarray) -> float:
        return self.curvature.worth(v, self.ridge)

    def tail(self) -> float:
        """What lasting errors of the level asked cost."""
        s = self.s
        if s.rank == self.exact:
            return 0.0
        if s.rank == 0:
            return math.inf
        if not s.increments[-1].change.any():  # twice: the level may be exact
            return math.inf if s.rank < 2 or s.increments[-2].change.any() else 0.0
        worths = [d.worth for d in s.increments]
        return judge.tail(worths, self.fall(), s.jumping, not self.expensive[s.rank])

    def left(self) -> float:
        """The loss left by the level asked: by the pairs, or gains of steps if these say more.

        Gains were seen on this very level: Lanczos on another one does not overrule them.
        """
        s = self.s
        by_pairs = self.worth(s.gradient)
        if s.jumping and s.made_steps:
            # errors that jump are seen in this gradient, and averaged over the steps
            jumps = s.jumping * self.tail() / (1 - s.jumping)
            return max(by_pairs - jumps, 0.0)
        was_seen = s.here.seen_by == s.rank
        if was_seen or s.made_steps < rules.GAINS_TELL or not s.gradient.any():
            return by_pairs
        return max(by_pairs, judge.extrapolated(s.gains, s.made_steps))

    def believed(self) -> float:
        """The loss above the minimum: left, tail, and what both cost together."""
        left, tail = self.left(), self.tail()
        if not (0 < left * tail < math.inf):
            return left + tail
        step = self.curvature.solve(self.s.gradient)
        return (
            left + tail + judge.together(self.fall(), step, self.s.increments[-1].change)
        )

    def aim(self) -> float:
        """What must be believed for *done* on this level."""
        laxer = self.expensive[self.s.rank]
        share = rules.AIM_BELOW_EXPENSIVE if laxer else rules.AIM
        return max(self.eps * share, self.hidden)

    def is_solved(self) -> bool:
        """Whether too little is left here for another step; the coarsest level waits for gains."""
        s, left, tail = self.s, self.left(), self.tail()
        if s.rank == 0:
            return (
                s.made_steps >= rules.GAINS_TELL
                and left <= rules.COARSEST_SOLVED * self.eps
            )
        if tail <= self.aim():
            return self.believed() <= self.aim()
        if s.rank < self.top:
            return left < rules.LEVEL_SOLVED * tail
        return left < rules.FINEST_SOLVED * (self.eps or tail)

    # --- BEGIN ---

    def begin(self) -> None:
        """The first gradient, twice, and what the next level changes there."""
        s = self.s
        s.start = s.y
        s.gradient = self.bill.value(self.levels[0], s.y, "gradients")
        largest = np.abs(s.gradient).max()
        if largest and not TINY < largest < HUGE:
            raise ValueError(
                f"the gradient of level {self.levels[0]} at the start is of size {largest:.1g}, "
                "whose square is no ordinary float: choose another unit of the loss (or of the "
                "point)"
            )
        self.check_that_it_repeats()
        s.sizes = [norm(s.gradient)]
        s.here = Here({"0": s.gradient})
        next_level = self.tried(1, s.y) if self.top else None
        change = 0 * s.gradient if next_level is None else next_level - s.gradient
        s.increments = [Increment(change, math.inf)]
        s.phase = Phase.SOLVE

    def check_that_it_repeats(self) -> None:
        """Whether the coarsest level answers the same, asked twice."""
        k, once = self.levels[0], self.s.gradient
        again = self.bill.value(k, self.s.y.copy(), "gradients")
        apart, size = norm(again - once), norm(once)
        if apart > self.bill.h.repeats * size:
            share = f"{apart / size:.1g}" if size else "all"
            raise LevelError(
                f"level {k} differs from call to call, by {share} of its size: freeze the random "
                "numbers, or, where it is rounding, give the hierarchy a larger repeats",
                k,
            )

    # --- SOLVE ---

    def solve(self) -> None:
        """One step on this level."""
        s = self.s
        seen_by = s.rank if s.here.seen_by is None else s.here.seen_by
        found = self.averaging_step() if s.jumping and self.tail() else self.newton_step()
        s.stuck = found is None
        if found is None:
            return
        self.move(*found)
        s.sizes.append(norm(s.gradient))
        s.stuck = judge.stands_still(s.sizes, self.patience())
        cheap = s.products * self.price[seen_by] <= self.price[s.rank]
        if norm(s.gradient) and s.base <= seen_by < s.rank and cheap:
            self.look_if_there_is_a_value(s.gradient, seen_by)
        s.estimate = self.believed()

    def newton_step(self) -> tuple[np.ndarray, np.ndarray] | None:
        s = self.s
        latest = s.pairs[-1] if s.pairs else None
        found = advance(lambda z: self.tried(s.rank, z), s.y, s.gradient, self.curvature)
        if found is not None and s.pairs and s.pairs[-1] is not latest:
            s.gains.append(s.pairs[-1].product / 2)
        return found

    def averaging_step(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The n-th of steps that fall as 1/n: their mean averages errors that jump."""
        s, n = self.s, len(self.s.sizes)
        more = n < 2 * rules.PLATEAU and self.expensive[s.rank]
        x = s.y - self.curvature.solve(s.gradient) / n
        there = self.tried(s.rank, x) if n == 1 or more else None
        return None if there is None else (x, there)

    def patience(self) -> int:
        """Steps that may bring nothing before a level is given up."""
        if self.s.rank == self.exact:
            return rules.PLATEAU * rules.WAIT_ON_EXACT
        return rules.PLATEAU

    # --- LOOK: curvature at this point, and what increments are worth by it ---

    def affordable(self) -> int | None:
        """The finest rank below whose products cost no more than curvature may."""
        s = self.s
        spent = self.bill.price_of("curvature")
        limit = rules.CURVATURE_SHARE * (self.bill.total - spent) - spent
        fits = [j for j in range(s.base, s.rank) if s.products * self.price[j] <= limit]
        if not fits or not norm(s.way):
            return None
        return max(fits)

    def look_if_there_is_a_value(self, v: np.ndarray, rank: int) -> bool:
        try:
            self.look(v, rank)
        except OutOfDomain:  # nothing around y has one
            return False
        return True

    def look(self, v: np.ndarray, rank: int) -> None:
        """Lanczos from v on a level at y, kept as pairs below those of steps made here."""
        s = self.s
        at = self.at(rank, "curvature")
        far = 2 * norm(s.way) or 1.0
        seen = spectrum_around(
            lambda z: self.tried(rank, z, "curvature"),
            s.y,
            at,
            v,
            longest=far,
            most=rules.PRODUCTS,
            rng=np.random.default_rng(s.step),
        )
        s.products = seen.nodes.size + rules.PROBES
        floor = max(seen.unresolved, rules.FLATTEST * norm(v) / far)
        if_lower = seen.inverse_weight(rules.RAISED_SHARE * floor)
        s.here.raised = if_lower > rules.RAISED_MATTERS * seen.inverse_weight(floor)
        place = len(s.pairs)
        if not s.jumping:
            place -= min(s.made_steps, self.curvature.steps_on_top())
        self.curvature.insert(seen.pairs(max(floor, self.ridge), v.shape), place)
        before = norm(s.increments[max(rank - 1, 0)].change)
        s.jumping = judge.jumping_share(seen.jump, before, coarsest=rank == 0)
        s.here.seen_by = rank

    def weigh(self, rank: int | None, arrived: bool = False) -> None:
        """What lies beyond, and what is left, by the curvature of a level or by pairs alone.

        An increment is taken where its level is asked first: steps on that level take out of it
        what the level before could not see. Only before an expensive level it is taken anew: errors
        of coarse levels far from here would ask for what costs too much.
        """
        s = self.s
        s.stuck = s.stuck and len(s.sizes) > rules.PLATEAU
        if self.expensive[s.rank] and not arrived:
            self.take_anew()
        if rank is not None:
            s.here.judged = self.is_seen(rank, arrived)
        s.here.weighed = rank is not None or not arrived
        for increment in s.increments[-judge.INCREMENTS :]:
            increment.worth = self.worth(increment.change)
        self.tell(rank)

    def is_seen(self, rank: int, arrived: bool) -> bool:
        """See the curvature of a level from what may still cost loss; whether it could be seen."""
        s = self.s
        v = s.gradient
        if not arrived and s.rank != self.exact:
            v = v + s.increments[-1].change * self.fall().beyond
        if not norm(v) or self.look_if_there_is_a_value(v, rank):
            return True
        s.base = min(rank + 1, s.rank)  # a finer level may have a value around y
        return rank == s.rank

    def take_anew(self) -> None:
        """The last increments, at y."""
        s = self.s
        first = max(s.rank - judge.INCREMENTS, 0)
        try:
            values = [self.at(rank) for rank in range(first, s.rank + 1)]
        except OutOfDomain:  # a coarser level has no value here
            return
        s.increments[first:] = [Increment(b - a, 0.0) for a, b in pairwise(values)]

    def tell(self, rank: int | None) -> None:
        s = self.s
        seen = rank is not None and s.here.seen_by == rank
        by = f"Lanczos on level {self.levels[rank]}" if seen else "pairs"
        k = self.levels[s.rank]
        costs = f"{self.left():.2g} is left, errors beyond it cost {self.tail():.2g}"
        s.decide(f"level {k} is asked: {costs}, by {by}")

    # --- RISE ---

    def rise(self) -> None:
        """One gradient of the next level, at y or nearer to the start where it has none."""
        s = self.s
        rank, x = s.rank + 1, s.y
        there = self.tried(rank, x)
        while there is None and norm(x - s.start):
            # halved seven times, then y0
            on_the_way = norm(x - s.start) > norm(s.way) / 99
            x = (s.start + x) / 2 if on_the_way else s.start
            there = self.tried(rank, x)
        known = {str(rank - 1): s.gradient} if x is s.y else {}
        s.rank = rank
        self.move(x, self.value(rank, x) if there is None else there, **known)
        if rank == 1:
            # increments at both ends of the way tell what the two curvatures differ by
            turned = norm(self.at(1) - self.at(0) - s.increments[0].change)
            if turned > rules.MISLEADS * s.sizes[0]:
                s.base = 1
        s.sizes = [norm(s.gradient)]
        s.gains = []
        change = self.at(rank) - self.at(rank - 1)
        s.increments[rank - 1 :] = [Increment(change, 0.0)]
        self.weigh(self.affordable(), arrived=True)

    # --- what to do when this level has nothing more to say ---

    def decide(self) -> Decision:
        """One remainder: stop, look closer, go up, or say by how much eps is missed."""
        s = self.s
        is_far = norm(s.way) > 2 * self.radius
        s.estimate = math.inf if is_far else self.believed()
        done = self.falls() and s.estimate <= self.aim()

        look = self.closer_look(done) or self.look_before_a_verdict(done)
        if look is not None:
            return look
        nothing_curves_up = s.rank > 1 and not s.pairs
        if done or s.rank == self.top or nothing_curves_up:
            return Decision(Phase.END, done=done or not self.eps)
        return Decision(Phase.RISE)

    def look_before_a_verdict(self, done: bool) -> Decision | None:
        """Increments weighed by Lanczos at this point, where *done* rests on them.

        Or before a price that is high beside that of a look.
        """
        s = self.s
        if s.rank == 0:
            return None
        if done and s.estimate > 0 and not s.here.judged:
            rank = self.affordable()
            return Decision(Phase.LOOK, s.base if rank is None else rank)
        if self.expensive[s.rank] and not s.here.weighed:
            return Decision(Phase.LOOK, self.affordable())
        return None

    def falls(self) -> bool:
        """Whether increments were seen to fall, or nothing lies beyond."""
        i, increments = self.s.rank, self.s.increments
        if i == self.exact:
            return True
        return i > 1 and judge.fell(increments[i - 2].change, increments[i - 1].change)

    def closer_look(self, done: bool) -> Decision | None:
        """Curvature of a finer level, where *done* hangs on eigenvalues that were raised.

        It must cost no more than all that was paid.
        """
        s = self.s
        if not (done and s.here.raised):
            return None
        finer = s.here.seen_by + 1
        if not s.base < finer <= s.rank:
            return None
        if s.products * self.price[finer] > self.bill.total:
            return None
        return Decision(Phase.LOOK, finer, base=finer)

    # --- END ---

    def end(self, done: bool) -> None:
        """Say what was reached and what that rests on; not at a point that is worse than y0."""
        s, k = self.s, self.levels[self.s.rank]
        start = self.start_if_better(done)
        if start is not None:
            s.message = (
                f"level {k} judges the point reached worse than the start, which is y"
            )
            s.estimate = math.nan
            s.status = "missed"
            self.move(s.start, start)
            return
        doubt = self.doubt()
        s.estimate += self.hidden
        if done and not doubt and self.eps:
            s.status, s.promise = "done", "estimate"
        else:
            s.status = "ended" if done else "missed"
        why = f"; nothing is promised: {doubt}" if doubt else ""
        s.message = f"judged on level {k}, {self.claimed()}{why}"

    def start_if_better(self, done: bool) -> np.ndarray | None:
        """The gradient at the start, if that is judged better than y.

        Simpson's rule along the straight way, by three gradients: it cannot see every hill. Where
        the run is done it is asked only if it is cheap.
        """
        s, way = self.s, self.s.way
        cheap = self.price[s.rank] <= rules.LAST_CHECK * self.bill.total
        two = 2 * self.price[s.rank]
        if not way.any() or (done and not cheap) or not self.bill.covers(two):
            return None
        first, half = (self.tried(s.rank, s.start + t * way) for t in (0.0, 0.5))
        if first is None or half is None:
            return None
        return first if dot(first + 4 * half + s.gradient, way) > 0 else None

    def doubt(self) -> str:
        """Why nothing may be promised, if so: the first that holds."""
        s = self.s
        if not (s.way.any() or s.gradient.any()):
            return "no gradient at the start, maybe a minimizer"
        if norm(s.way) > 2 * self.radius:
            return "the way is longer than twice the radius"
        if not s.pairs:
            return "nothing curves upwards: no minimizer is in sight, or a sign is wrong"
        if not all(d.change.any() for d in s.increments[: s.rank][-2:]):
            return "levels repeat one another"
        if s.here.raised:
            return "what counts curves too little to be told"
        if not (self.falls() and (self.top or self.bill.h.exact)):
            return "increments were not seen to fall"
        return ""

    def claimed(self) -> str:
        """The loss that is believed, and what is claimed of it."""
        s, eps = self.s, self.eps + self.hidden
        if math.isfinite(s.estimate):
            said = f"the loss is about {s.estimate:.2g} above the minimum"
        else:
            said = "nothing can be told of the loss"
        if s.status == "missed":
            said += f", and eps = {eps:g} may not be met"
        if s.promise != "none":
            said += f", and at most {eps:g} is claimed"
        if s.promise != "none" and self.hidden:
            said += f", if a minimizer is within {self.radius:g} of the start"
        return said
