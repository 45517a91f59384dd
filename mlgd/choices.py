"""A run without a plan: measure, step, judge, raise.

From the coarsest level upwards: the gradient of a level, weighed by the curvature of a coarser one (differences over the distance
that the run has come), says what loss is left and where to step; a gradient at the end of the step judges it. What errors
beyond the level cost is told by its increment, weighed the same way, and by how increments fell so far. Where a step
leaves too much, what is cheapest follows: another one, the curvature of a finer level, or the next level. Where none of these helps,
every method is priced on what was measured, and the cheapest runs.
"""

import math
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np

from .audits import audit
from .curvature import NOTHING, Look, first_length, look, tried
from .errors import Errors
from .estimates import estimate
from .hierarchy import LevelError
from .plans import compare
from .purchases import Stop
from .results import Result, log
from .runs import Run
from .solvers import quasi_newton

SHARE = 0.5  # of one gradient of a level: what the products for one look at it may cost
MOST = 120  # products per look: enough for condition numbers of 1e4
PROBES = 6  # evaluations of a look that are no products: at which distance, and what finer levels change
ENOUGH = 0.97  # of eps: what errors beyond a level may cost for it to be the last
LITTLE = 0.1  # of eps: where errors beyond a level cost less, no finer one is asked
GAIN = 0.25  # a step that leaves more of the loss than this is not taken on trust
LAST = 10.0  # times what was spent: what a plan may cost where steps do not help
ROUNDS = 200
FAR = (
    2.0  # times the loss at the zero of the level before: increments taken further away say little of the errors there
)
SMOOTH = 1e-4  # of an increment's square: errors that jump by less do not vanish at a zero
CLEAN = 0.01  # of what a step changed the gradient by: jumps below this leave it worth keeping
BENDS = (
    0.1  # of a gradient: where half a step does not change it by half as much, but for this, the loss is not quadratic
)
PAIRS = 10  # steps that are kept with what they changed the gradient by


class Choices:
    """One run without a plan; `told` is every choice in a sentence, `spent` the bill by purpose."""

    def __init__(self, run: Run):
        self.run, self.meter, self.rng, self.eps = run, run.meter, run.rng, run.eps
        self.h = run.h._like(evaluate=self.bought)
        self.known: dict[bytes, dict[int, np.ndarray]] = {}  # values at points that are asked for again
        self.spent: dict[str, float] = {}
        self.told: list[str] = []
        self.y0 = self.x = run.start
        self.i = 0  # the rank of the level that is asked
        self.arrived = 0.0  # what had been paid when it was first asked
        self.reach = self.stride = 0.0  # how far the run came, and over which distance gradients were differenced
        self.base, self.products = (
            0,
            40,
        )  # the least rank that curvature is taken from; evaluations that a look took
        self.errors = Errors(alone=len(self.h.levels) == 1)
        self.drifts: dict[int, tuple[float, float]] = {}  # by rank: the next level's change of curvature, at a distance
        self.kept = [1.0]  # what steps left of the loss
        self.averaged, self.weighed, self.loss_then, self.short = 1, run.start, 0.0, 1.0
        self.wrong = False  # whether the last step was not taken
        self.down: dict[int, float] = {}  # by rank of curvature: how far it is negative
        self.pairs: list[
            tuple[np.ndarray, np.ndarray, float]
        ] = []  # steps, what they changed the gradient by, products
        self.estimate, self.basis, self.why = math.inf, "", ""
        self.status = "missed"

    # --- what is paid, told and handed back ---

    @property
    def level(self) -> int:
        return self.h.levels[self.i]

    def cost(self, i: int) -> float:
        """The price of a level by rank, infinite where there is none or where it leaves nothing to go on with."""
        if i >= len(self.h.levels):
            return math.inf
        return self.h.cost(self.h.levels[i])

    @property
    def up(self) -> float:
        price = self.cost(self.i + 1)
        return price if 2 * price <= self.left else math.inf

    @property
    def left(self) -> float:
        return self.meter.limit - self.meter.total

    def tell(self, sentence: str) -> None:
        self.told.append(sentence)
        log.info("%s", sentence)

    def booked(self, purpose: str, since: float) -> None:
        self.spent[purpose] = self.spent.get(purpose, 0.0) + self.meter.total - since

    def bought(self, k: int, y: np.ndarray) -> np.ndarray:
        """A_k(y); at points that are asked for again every level is bought once."""
        known = self.known.get(y.tobytes())
        if known is None:
            return self.run.value(k, y)
        if k not in known:
            known[k] = self.run.value(k, y)
        return known[k]

    def gradient(self, x: np.ndarray) -> np.ndarray:
        since = self.meter.total
        self.known.setdefault(x.tobytes(), {})
        value = self.h.value(self.level, x)
        self.booked("gradients", since)
        return value

    def record(self, y: np.ndarray, loss: float) -> None:
        """A point reached, with the estimate of its loss: the output from now on."""
        self.estimate = loss
        self.run.memory.y = self.run.memory.output = y
        self.run.attend()

    def result(self, found: Result) -> Result:
        """What a run has to hand back, with what was chosen, believed and spent."""
        status = self.status if found.status == "done" else found.status
        about = "nothing is known of the loss reached"
        if math.isfinite(self.estimate):
            about = f"loss about {self.estimate:.3g} above the minimum (an estimate: {self.basis})"
        missed = f"eps = {self.eps:g} was not reached" if status == "missed" and self.eps is not None else ""
        rest = self.meter.total - sum(self.spent.values())
        if rest > 1e-9 * self.meter.total:  # more than rounding
            self.spent["unfinished"] = rest
        return replace(
            found, status=status, estimate=self.estimate, choices=tuple(self.told), cost_by_purpose=dict(self.spent),
            message="; ".join(p for p in (found.message, missed, self.why, about, self.errors.doubt) if p),
            promise="measured" if status == "done" and not self.errors.doubt else "none",
        )  # fmt: skip

    # --- measure ---

    def look(self, x: np.ndarray, v: np.ndarray) -> Look:
        """What v means at x, by coarse curvature, corrected by what steps changed the gradient of the level asked by."""
        q, shares = v.copy(), []
        for step, change, product in reversed(self.pairs):
            shares.append(float(np.vdot(step, q)) / product)
            q -= shares[-1] * change
        found = self.coarse_look(x, q)
        if not self.pairs:
            return found
        r, gained = -found.step, 0.0
        for (step, change, product), a in zip(self.pairs, reversed(shares), strict=True):
            r += (a - float(np.vdot(change, r)) / product) * step
            gained += a * a * product / 2
        return replace(found, step=-r, seen=found.seen + gained, size=float(np.linalg.norm(v)))

    def coarse_look(self, x: np.ndarray, v: np.ndarray) -> Look:
        """What v means at x, by the finest curvature whose products cost a share of one gradient here."""
        since = self.meter.total
        fits = [j for j in range(self.i + 1) if self.products * self.cost(j) <= SHARE * self.cost(self.i)]
        j = min(max(max(fits, default=0), self.base), self.i)
        below = partial(self.h.value, self.h.levels[j])
        self.known.setdefault(x.tobytes(), {})
        if v.any() and not self.reach:
            self.reach = self.stride = first_length(below, x, -v)
        longest = min(2 * self.reach, 64 * self.stride)
        found = (
            look(below, j, x, v, longest, MOST, partial(self.drift, j, x), self.rng, self.errors.largest)
            if self.reach or not v.any()
            else None
        )
        self.booked("curvature", since)
        if found is None:
            if j == min(2, len(self.h.levels) - 1):
                raise Stop(
                    "missed",
                    f"the gradient of level {self.level} does not change with y: no minimizer is in sight",
                )
            self.base = j + 1
            return self.coarse_look(x, v) if j < self.i else replace(NOTHING, step=np.zeros_like(v), seen=math.inf)
        if found.products:
            self.products, self.stride = found.products + PROBES, found.along.length
        return found

    def drift(self, j: int, x: np.ndarray, t: float, direction: np.ndarray, basis: np.ndarray) -> float:
        """What finer levels change the curvature of rank j by: the next one's, along the direction where it matters most."""
        if j == self.i:
            return 0.0
        if j + 1 == self.i and j - 1 in self.drifts:  # the next one is the one that is asked: too dear for that
            sizes = [float(np.linalg.norm(d)) for d in self.errors.increments]
            return self.drifts[j - 1][0] * (sizes[j - 1] / sizes[j - 2] if j > 1 and sizes[j - 2] else 0.5)
        if j not in self.drifts or self.drifts[j][1] < t / 2:
            moved = [self.h.value(k, x + t * direction) - self.h.value(k, x) for k in self.h.levels[j : j + 2]]
            gap = (moved[1] - moved[0]) / t
            along, seen = (
                abs(float(np.vdot(gap, direction))),
                float(np.linalg.norm(basis @ gap.ravel())),
            )
            self.drifts[j] = max(along / 2, seen / math.sqrt(len(basis))), t
        return self.drifts[j][0]

    def weigh(self, before: Look | None = None) -> None:
        """Weigh the last increment, and those before it too where that is cheap beside the next level."""
        errors, here = self.errors, self.here
        solved = before is not None and before.level == here.level and errors.worth(before) < 0.1 * errors.worth(here)
        shape = here if solved else self.look(self.x, errors.increments[-1])
        errors.shapes = [
            *[s for s in errors.shapes if s.level == shape.level][-2:],
            shape,
        ]
        earlier = errors.increments[-3:-1]
        dear = self.cost(min(self.i + 1, len(self.h.levels) - 1))
        if len(errors.shapes) <= len(earlier) and 3 * shape.products * self.cost(shape.level) <= 0.1 * dear:
            errors.shapes = [self.look(self.x, d) for d in earlier] + [shape]
        self.weighed, self.loss_then = self.x, errors.worth(here)
        size = float(np.linalg.norm(errors.increments[max(here.level - 1, 0)])) * (1 if here.level else 2)
        errors.jumps = (here.along.jump / size) ** 2 if size else 0.0

    @property
    def stale(self) -> bool:
        """Whether increments were last taken where the loss was far above that at the zero of the level before."""
        return self.loss_then > FAR * self.errors.before

    @property
    def sharper(self) -> bool:
        """Whether weighing increments anew, after steps that told more of the curvature, is cheap beside the next level."""
        price = 3 * self.products * self.cost(self.here.level)
        return bool(self.pairs) and price <= 0.25 * self.up < math.inf

    def retake(self, known: tuple[np.ndarray, ...] = ()) -> None:
        """Take the last three increments again, all at x; `known` are gradients there, from the level asked downwards."""
        since, at = self.meter.total, [self.g, *known]
        self.known.setdefault(self.x.tobytes(), {})
        at += [self.h.value(self.h.levels[k], self.x) for k in range(self.i - len(at), max(self.i - 4, -1), -1)]
        self.booked("gradients", since)
        steps = [b - a for b, a in pairwise(at)][::-1]
        self.errors.increments[self.i - len(steps) :] = steps

    def weigh_anew(self) -> None:
        """The last increments, taken from here, and weighed anew where that may matter. Not where errors jump: they vanish at a zero."""
        errors, below = (
            self.errors,
            sum(map(self.cost, range(max(self.i - 3, 0), self.i))),
        )
        if not errors.increments or errors.jumps >= SMOOTH or self.weighed is self.x:
            return
        doubted = self.estimate <= self.aim and (self.stale or below <= SHARE * self.cost(self.i))
        sharper = errors.tail > ENOUGH * self.aim and self.sharper
        if not (doubted or sharper):
            return
        self.retake()
        if sharper or self.stale or below + self.products * self.cost(self.here.level) <= SHARE * self.cost(self.i):
            self.weigh()
        self.tell(f"errors beyond level {self.level}, weighed anew from here, cost about {errors.tail:.2g}")
        self.record(self.x, errors.whole(self.now))

    @property
    def now(self) -> float:
        """The loss by the level asked; more than is seen, by as much as the last step reduced it by more than was seen."""
        return self.short * self.errors.worth(self.here)

    # --- step, judge, raise ---

    def descend(self) -> None:
        self.g = self.gradient(self.x)
        self.here = self.look(self.x, self.g)
        self.arrived = self.meter.total
        self.record(self.x, math.inf)
        for _ in range(ROUNDS):
            if not self.g.any() and (self.errors.tail <= self.aim or math.isinf(self.up)):
                return self.flat()
            step = self.damped() / self.averaged
            if self.trusted(step):
                return
            gain = self.judge(step)
            if self.averaged > 1:
                mean = self.errors.averaged(self.now, self.averaged - 1)
                if mean <= self.aim:
                    why = f"errors jump: the mean of {self.averaged} steps is taken"
                    return self.end(self.x + self.here.step / self.averaged, mean, why)
                if self.worth_averaging:
                    continue
            self.record(self.x, self.errors.whole(self.now))
            self.weigh_anew()
            if self.estimate <= self.aim and (gain < 1 or self.averaged > 1) and not self.errors.blind(self.here):
                return self.end(self.x, self.estimate, f"level {self.level} is fine enough")
            if self.bent:
                return self.settle()
            if self.averaged == 1 and self.goes_on(gain):
                continue
            if math.isinf(self.up) or self.errors.tail <= LITTLE * self.aim:
                return self.settle()
            if self.rises():
                return
        return self.settle()

    def trusted(self, step: np.ndarray) -> bool:
        """Whether a last step need not be judged: those before it show what it leaves, and that is little enough."""
        kept, now = max(self.kept[-2:]), self.now
        if self.averaged > 1 or len(self.errors.increments) < 2 or self.stale or kept > GAIN:
            return False
        left = self.errors.whole(kept / (1 - math.sqrt(kept)) ** 2 * now)  # what is left is what steps reduce least
        if left > ENOUGH * self.aim:
            return False
        self.run.memory.step += 1
        why = "is fine enough, and a last step is not judged: those before it left at most"
        self.end(self.x + step, left, f"level {self.level} {why} {kept:.0%}")
        return True

    def judge(self, step: np.ndarray) -> float:
        """Take a step unless the gradient at its end says that the loss has grown: the share of the loss that is left."""
        target, errors = self.x + step, self.errors
        self.run.memory.step += 1
        self.reach = max(
            self.reach,
            float(np.linalg.norm(target - self.y0)),
            float(np.linalg.norm(step)),
        )
        g, before = self.gradient(target), errors.worth(self.here)
        self.learn(step, g - self.g)
        there = self.look(target, g)
        if self.averaged == 1:
            errors.deepen(self.here, there)
            before = errors.worth(self.here)
        after = errors.worth(there)
        gain = after / before if before else 1.0
        fell = -float(np.vdot(self.g + g, step)) / 2  # by the trapezoidal rule, whatever the curvature
        self.short = max(1.0, fell / (before - after)) if gain < 1 and self.averaged == 1 else 1.0
        self.tell(
            f"a step on level {self.level} with the curvature of level {self.h.levels[self.here.level]} took the loss from about "
            f"{before:.2g} to {after:.2g}"
        )
        noisy = self.averaged > 1 or (errors.rough and gain > GAIN and after <= 6 * errors.fresh)
        if noisy:
            self.averaged += 1
        else:
            self.kept.append(gain)
        self.wrong = not (gain < 1 or noisy or (fell > 0 and gain < 2))
        if not self.wrong:
            self.x, self.g, self.here = target, g, there
        elif self.pairs and self.pairs[-1][0] is step:  # it told what is right
            self.here = self.look(self.x, self.g)
            return min(gain, 0.5)
        return gain if gain < 1 or self.wrong else 0.89

    def learn(self, step: np.ndarray, change: np.ndarray) -> None:
        """Keep what a step changed the gradient by, where that is more than the jumps of errors."""
        product, size = float(np.vdot(step, change)), float(np.linalg.norm(change))
        sizes = [self.errors.size(i) for i in range(len(self.errors.increments))]
        own = sizes[max(self.here.level - 1, 0)] if sizes else 0.0
        jump = self.here.along.jump * (sizes[-1] / own if own else 1.0)
        if product > 1e-8 * float(np.linalg.norm(step)) * size and jump <= CLEAN * size:
            self.pairs = [*self.pairs[1 - PAIRS :], (step, change, product)]

    @property
    def worth_averaging(self) -> bool:
        """Whether a mean of more steps can do, for less than the next level."""
        now, n = self.now, self.averaged
        rest = self.errors.tail - min(self.errors.fresh, now * (n - 1) / n)
        return rest < ENOUGH * self.aim and n * self.cost(self.i) < self.up

    @property
    def bent(self) -> bool:
        """Whether the loss curves downwards by all that levels say: by three, of which none says much less than the one before."""
        if self.here.downward:
            self.down[self.here.level] = -self.here.least
        else:
            self.down.clear()
        deep = list(self.down.values())[-3:]
        return len(deep) > 2 and deep[2] > 0.7 * deep[1] > 0.49 * deep[0]

    def goes_on(self, gain: float) -> bool:
        """Whether this level has more to give: another step, or one with the curvature of a finer level."""
        now, tail, here = self.now, self.errors.tail, self.here
        enough = tail <= ENOUGH * self.aim
        goal = self.aim - tail if enough else tail / 2
        goal = now / 4 if self.errors.blind(here) else goal  # what hides must be seen to fall
        if now <= goal:
            return False
        up = (1 + enough) * self.up
        if self.errors.jumps <= SMOOTH and (enough or now >= tail):  # no finer level helps before its error counts
            up = math.inf
        most = (
            2 * self.up
            if math.isfinite(self.up) and not enough
            else LAST * (self.arrived + self.cost(self.i) + self.products * self.cost(here.level))
        )
        most = max(most, 2 * up) if math.isfinite(up) else most
        allowed = min(self.left, most - (self.meter.total - self.arrived))
        again, finer = self.again(gain, goal / now), self.finer()
        if again <= min(finer, up, allowed):
            return True
        if finer > min(up, allowed):
            return False
        self.base = here.level + 1
        self.here = self.look(self.x, self.g)
        if self.errors.increments:
            self.weigh()
        level = self.h.levels[self.here.level]
        self.tell(f"steps get on slowly: the curvature of level {level} is taken from now on")
        return True

    def again(self, gain: float, wanted: float) -> float:
        """What it costs to go on like this until this share of the loss is left, if every step gains as the last one did."""
        if gain >= 0.9 or wanted <= 0:
            return math.inf
        steps = math.ceil(math.log(wanted) / math.log(max(gain, 1e-3)))
        return steps * (self.cost(self.i) + self.products * self.cost(self.here.level))

    def finer(self) -> float:
        """What two steps with the curvature of the next finer level cost."""
        if self.here.level == self.i:
            return math.inf
        return 2 * (self.cost(self.i) + self.products * self.cost(self.here.level + 1))

    def rises(self) -> bool:
        """Ask the next level; whether it says that this is enough."""
        before, previous = self.here, self.g
        self.averaged, self.short, self.i, self.arrived = (
            1,
            1.0,
            self.i + 1,
            self.meter.total,
        )
        self.g = self.gradient(self.x)
        self.pairs = []
        if self.errors.jumps > SMOOTH:
            self.errors.increments.append(self.g - previous)
        else:
            self.retake((previous,))
        self.here = self.look(self.x, self.g)
        self.weigh(before)
        now, tail = self.now, self.errors.tail
        self.tell(
            f"level {self.level} is asked: by it the loss is about {now:.2g}, and errors beyond it cost about {tail:.2g}"
        )
        self.record(self.x, max(self.errors.whole(now), self.errors.before))
        if self.estimate > self.aim or not self.g.any() or self.errors.blind(self.here):
            return False
        self.end(self.x, self.estimate, f"level {self.level} says that this is enough")
        return True

    @property
    def aim(self) -> float:
        return 0.0 if self.eps is None else self.eps

    def damped(self) -> np.ndarray:
        """The step, shortened while the coarse gradient, tilted to g, rises along it by more than half of its slope.

        Where the loss bends on the way, a quasi-Newton method goes on from there.
        """
        g, here, below = (
            self.g,
            self.here,
            partial(self.h.value, self.h.levels[self.here.level]),
        )
        step = here.step
        if not step.any():
            return step
        since, at = self.meter.total, below(self.x)
        slope, whole, there = (
            abs(float(np.vdot(step, g))),
            float(np.linalg.norm(step)),
            None,
        )
        for tries in range(20):
            length = float(np.linalg.norm(step))
            there = tried(below, self.x + step)
            if there is not None:  # the level had something to say that far away
                rise = float(np.vdot(step, g + there - at)) - 3 * here.along.jump * length / math.sqrt(g.size)
                if rise <= 0.5 * slope * length / whole:
                    break
            step = step / (2 if tries < 3 and there is not None else 8)
        half, size = tried(below, self.x + step / 2), float(np.linalg.norm(g))
        bends = there is not None and half is not None and float(np.linalg.norm(there - 2 * half + at))
        if bends > BENDS * size + 3 * here.along.jump and not (self.wrong or self.errors.rough):
            memory = SimpleNamespace(y=self.x + step)
            with suppress(LevelError):  # a trial went too far
                for _ in quasi_newton(lambda z: below(z) + g - at, memory, MOST, BENDS * size / 3):
                    pass
            step = memory.y - self.x
        self.booked("curvature", since)
        return step

    def end(self, y: np.ndarray, loss: float, why: str) -> None:
        """eps is reached, by all that can be seen."""
        self.rests()
        self.tell(f"{why}: a loss of about {loss:.2g}")
        self.record(y, loss)
        self.status = "done"

    def rests(self) -> None:
        how = "that go on as they fell so far" if len(self.errors.increments) > 1 else "as large as its increment"
        beyond_it = f", and errors beyond it {how}" if self.errors.increments else ""
        self.basis = f"the gradient of level {self.level} weighed by curvature of coarser levels{beyond_it}"
        if not self.errors.increments:
            self.basis = f"the gradient of level {self.level}, whose own error can't be told"

    def settle(self) -> None:
        """No finer level can be had: say what is known, and try what can be planned where steps did not help."""
        self.rests()
        tail, i = self.errors.tail, self.i
        why = f"level {self.level} is the finest" if i + 1 == len(self.h.levels) else (
            f"level {self.h.levels[i + 1]} costs {self.cost(i + 1):.3g} and {self.left:.3g} is left to pay"
        )  # fmt: skip
        if self.here.downward:
            self.why = (
                f"the loss curves downwards by {self.here.least:.2g} in some direction: there may be no minimizer"
            )
        elif self.eps is None:
            self.tell(f"{why}: as far as its own error goes, a loss of about {self.estimate:.2g}")
            self.status = "done"
        elif tail > ENOUGH * self.eps:
            self.tell(f"{why}, and errors beyond it cost about {tail:.2g}: eps = {self.eps:g} is out of reach")
        elif self.averaged == 1:
            self.otherwise()

    def flat(self) -> None:
        """The gradient is zero: the end, unless the loss curves downwards from here."""
        self.rests()
        around = self.look(self.x, self.rng.standard_normal(self.x.shape))
        if around.downward:
            self.why = f"the gradient of level {self.level} is zero, and the loss curves downwards by {around.least:.2g} from there"
        else:
            self.end(self.x, self.errors.tail, f"the gradient of level {self.level} is zero")

    def otherwise(self) -> None:
        """The cheapest plan on what was measured here, or a quasi-Newton method; neither may cost too much more than all so far."""
        since, allowed = self.meter.total, min(self.left, LAST * self.meter.total)
        plan, before = None, self.estimate
        try:
            report = audit(self.h, [self.x], levels=self.h.levels[: self.i + 1])
            problem = report.problem(estimate(report.of, self.x, self.rng, known=report))
            plan = compare(problem, self.eps, on=report, promise="measured").plans[0]
        except ValueError as why:
            self.tell(f"steps do not get on, and no plan can be made ({why})")
        self.booked("estimate", since)
        since = self.meter.total
        if plan is not None and plan.expected_cost <= allowed:
            method, self.x = plan.method, self.run.part(plan, self.x, allowed)
        else:
            method, memory = "quasi-Newton", SimpleNamespace(y=self.x)
            for _ in quasi_newton(
                partial(self.h.value, self.level),
                memory,
                int(min(MOST, allowed / self.cost(self.i))),
            ):
                self.run.memory.step += 1
            self.x = memory.y
        self.booked(method, since)
        self.g = self.gradient(self.x)
        self.here = self.look(self.x, self.g)
        if self.errors.increments and self.errors.jumps <= SMOOTH:
            self.retake()
            self.weigh()
        after = self.errors.whole(self.now)
        self.tell(f"steps do not get on: {method!r} took the loss from about {before:.2g} to {after:.2g}")
        self.record(*((self.x, after) if after <= before else (self.run.output, before)))
        self.status = "done" if self.estimate <= self.eps else "missed"


def chosen(run: Run, memory: SimpleNamespace) -> None:
    """The method of a run without a plan."""
    choices = Choices(run)
    run.told = choices.result
    choices.descend()
