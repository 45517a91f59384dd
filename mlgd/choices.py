"""A run without a plan: measure, step, judge, raise.

From the coarsest level upwards: the gradient of a level, weighed by the curvature of a coarser one (differences over the distance
that the run has come), says what loss is left and where to step; a gradient at the end of the step judges it. What errors
beyond the level cost is told by its increment, weighed the same way, and by how increments fell so far. Where a step
leaves too much, what is cheapest follows: another one, the curvature of a finer level, or the next level. Where none of these helps,
every method is priced on what was measured, and the cheapest runs.
"""

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np

from .audits import audit
from .curvature import NOTHING, Look, first_length, look, tried
from .errors import Errors
from .estimates import estimate
from .plans import compare
from .purchases import Stop
from .results import Result, log
from .runs import Run
from .solvers import quasi_newton

SHARE = 0.5  # of one gradient of a level: what the products for one look at it may cost
MOST = 120  # products per look: enough for condition numbers of 1e4
PROBES = 6  # evaluations of a look that are no products: at which distance, and what finer levels change
ENOUGH = 0.9  # of eps: what errors beyond a level may cost for it to be the last
GAIN = 0.25  # a step that leaves more of the loss than this is not taken on trust
LAST = 10.0  # times what was spent: what a plan may cost where steps do not help
ROUNDS = 200


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
        self.base, self.products = 0, 40  # the least rank that curvature is taken from; evaluations that a look took
        self.errors = Errors(alone=len(self.h.levels) == 1)
        self.drifts: dict[
            int, tuple[float, float]
        ] = {}  # by rank: the change of curvature by the next level, at a distance
        self.kept = [1.0]  # what steps left of the loss
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
            look(below, j, x, v, longest, MOST, partial(self.drift, j, x), self.rng)
            if self.reach or not v.any()
            else None
        )
        self.booked("curvature", since)
        if found is None:
            if j == min(2, len(self.h.levels) - 1):
                raise Stop(
                    "missed", f"the gradient of level {self.level} does not change with y: no minimizer is in sight"
                )
            self.base = j + 1
            return self.look(x, v) if j < self.i else replace(NOTHING, step=np.zeros_like(v), seen=math.inf)
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
            along, seen = abs(float(np.vdot(gap, direction))), float(np.linalg.norm(basis @ gap.ravel()))
            self.drifts[j] = max(along / 2, seen / math.sqrt(len(basis))), t
        return self.drifts[j][0]

    def measure_tail(self, here: Look, before: Look | None) -> None:
        """Weigh the last increment, and those before it too where that is cheap beside the next level."""
        solved = (
            before is not None
            and self.errors.worth(before) < 0.1 * self.errors.worth(here)
            and before.level == here.level
        )
        shape = here if solved else self.look(self.x, self.errors.increments[-1])
        self.errors.shapes = [*[s for s in self.errors.shapes if s.level == shape.level][-2:], shape]
        earlier = self.errors.increments[-3:-1]
        dear = self.cost(min(self.i + 1, len(self.h.levels) - 1))
        if len(self.errors.shapes) <= len(earlier) and 3 * shape.products * self.cost(shape.level) <= 0.1 * dear:
            self.errors.shapes = [self.look(self.x, d) for d in earlier] + [shape]
        size = float(np.linalg.norm(self.errors.increments[max(here.level - 1, 0)])) * (1 if here.level else 2)
        self.errors.jumps = (here.along.jump / size) ** 2 if size else 0.0

    # --- step, judge, raise ---

    def descend(self) -> None:
        g = self.gradient(self.x)
        here = self.look(self.x, g)
        self.arrived = self.meter.total
        self.record(self.x, math.inf)
        averaged, downward = 1, 0
        for _ in range(ROUNDS):
            if not g.any() and (self.errors.tail <= self.aim or math.isinf(self.up)):
                return self.flat()
            step = self.damped(g, here) / averaged
            kept = max(self.kept[-2:])
            left = self.errors.whole(kept * self.errors.worth(here))
            if averaged == 1 and len(self.errors.increments) > 1 and kept <= GAIN and left <= ENOUGH * self.aim:
                self.run.memory.step += 1
                why = f"level {self.level} is fine enough, and a last step is not judged: those before it left at most {kept:.0%}"
                return self.end(self.x + step, left, why)
            target = self.x + step
            gain, new = self.judge(target, here, averaged)
            noisy = averaged > 1 or (
                self.errors.rough and gain > GAIN and self.errors.worth(new[1]) <= 6 * self.errors.fresh
            )
            if not noisy:
                self.kept.append(gain)
            if gain < 1 or noisy:
                self.x, (g, here) = target, new
            now, tail = self.errors.worth(here), self.errors.tail
            if noisy:
                mean, averaged = self.errors.averaged(now, averaged), averaged + 1
                if mean <= self.aim:
                    return self.end(
                        self.x + here.step / averaged, mean, f"errors jump: the mean of {averaged} steps is taken"
                    )
                if (
                    tail - min(self.errors.fresh, now * (averaged - 1) / averaged) < ENOUGH * self.aim
                    and averaged * self.cost(self.i) < self.up
                ):
                    continue
            self.record(self.x, self.errors.whole(now))
            if self.estimate <= self.aim and (gain < 1 or noisy) and not self.errors.blind(here):
                return self.end(self.x, self.estimate, f"level {self.level} is fine enough")
            enough = tail <= ENOUGH * self.aim
            goal = self.aim - tail if enough else tail / 2
            goal = now / 4 if self.errors.blind(here) else goal  # what hides must be seen to fall
            downward = downward + 1 if here.downward and self.i > 1 else 0
            if downward > 2:
                return self.settle(here, noisy)
            if now > goal and not noisy:
                again, finer, up = self.again(here, gain, goal / now), self.finer(here), (1 + enough) * self.up
                allowed = min(self.left, 2 * up if math.isfinite(up) else LAST * self.arrived) - (
                    self.meter.total - self.arrived
                )
                if again <= min(finer, up, allowed):
                    continue
                if finer <= min(up, allowed):
                    self.base = here.level + 1
                    here = self.look(self.x, g)
                    if self.errors.increments:
                        self.measure_tail(here, None)
                    self.tell(
                        f"steps get on slowly: the curvature of level {self.h.levels[here.level]} is taken from now on"
                    )
                    continue
            if math.isinf(self.up):
                return self.settle(here, noisy)
            averaged, before, previous = 1, here, g
            self.i, self.arrived = self.i + 1, self.meter.total
            g = self.gradient(self.x)
            self.errors.increments.append(g - previous)
            here = self.look(self.x, g)
            self.measure_tail(here, before)
            now = self.errors.worth(here)
            self.tell(
                f"level {self.level} is asked: by it the loss is about {now:.2g}, and errors beyond it cost about {self.errors.tail:.2g}"
            )
            self.record(self.x, max(self.errors.whole(now), self.errors.before))
            if self.estimate <= self.aim and g.any() and not self.errors.blind(here):
                return self.end(self.x, self.estimate, f"level {self.level} says that this is enough")
        return self.settle(here, False)

    def again(self, here: Look, gain: float, wanted: float) -> float:
        """What it costs to go on like this until this share of the loss is left, if every step gains as the last one did."""
        if gain >= 0.9 or wanted <= 0:
            return math.inf
        steps = math.ceil(math.log(wanted) / math.log(max(gain, 1e-3)))
        return steps * (self.cost(self.i) + self.products * self.cost(here.level))

    def finer(self, here: Look) -> float:
        """What two steps with the curvature of the next finer level cost."""
        if here.level == self.i:
            return math.inf
        return 2 * (self.cost(self.i) + self.products * self.cost(here.level + 1))

    @property
    def aim(self) -> float:
        return 0.0 if self.eps is None else self.eps

    def damped(self, g: np.ndarray, here: Look) -> np.ndarray:
        """The step, halved while the coarse gradient, tilted to g, rises along it by more than half of its slope."""
        step, below = here.step, partial(self.h.value, self.h.levels[here.level])
        if not step.any():
            return step
        since, at = self.meter.total, below(self.x)
        slope, whole = abs(float(np.vdot(step, g))), float(np.linalg.norm(step))
        for tries in range(20):
            length = float(np.linalg.norm(step))
            there = tried(below, self.x + step)
            if there is not None:  # the level had something to say that far away
                rise = float(np.vdot(step, g + there - at)) - 3 * here.along.jump * length / math.sqrt(g.size)
                if rise <= 0.5 * slope * length / whole:
                    break
            step = step / (2 if tries < 3 and there is not None else 8)
        self.booked("curvature", since)
        return step

    def judge(self, target: np.ndarray, here: Look, averaged: int) -> tuple[float, tuple[np.ndarray, Look]]:
        """The gradient at the end of a step, and what is left of the loss."""
        self.run.memory.step += 1
        self.reach = max(self.reach, float(np.linalg.norm(target - self.y0)), float(np.linalg.norm(target - self.x)))
        g = self.gradient(target)
        new = self.look(target, g)
        if averaged == 1:
            self.errors.deepen(here, new)
        before, after = self.errors.worth(here), self.errors.worth(new)
        self.tell(
            f"a step on level {self.level} with the curvature of level {self.h.levels[here.level]} took the loss from about "
            f"{before:.2g} to {after:.2g}"
        )
        return (after / before if before else 1.0), (g, new)

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

    def settle(self, here: Look, noisy: bool) -> None:
        """No finer level can be had: say what is known, and try what can be planned where steps did not help."""
        self.rests()
        tail, i = self.errors.tail, self.i
        why = f"level {self.level} is the finest" if i + 1 == len(self.h.levels) else (
            f"level {self.h.levels[i + 1]} costs {self.cost(i + 1):.3g} and {self.left:.3g} is left to pay"
        )  # fmt: skip
        if here.downward:
            self.why = f"the loss curves downwards by {here.least:.2g} in some direction: there may be no minimizer"
        elif self.eps is None:
            self.tell(f"{why}: as far as its own error goes, a loss of about {self.estimate:.2g}")
            self.status = "done"
        elif tail > ENOUGH * self.eps:
            self.tell(f"{why}, and errors beyond it cost about {tail:.2g}: eps = {self.eps:g} is out of reach")
        elif not noisy:
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
                partial(self.h.value, self.level), memory, int(min(MOST, allowed / self.cost(self.i)))
            ):
                self.run.memory.step += 1
            self.x = memory.y
        self.booked(method, since)
        after = self.errors.whole(self.errors.worth(self.look(self.x, self.gradient(self.x))))
        self.tell(f"steps do not get on: {method!r} took the loss from about {before:.2g} to {after:.2g}")
        self.record(*((self.x, after) if after <= before else (self.run.output, before)))
        self.status = "done" if self.estimate <= self.eps else "missed"


def chosen(run: Run, memory: SimpleNamespace) -> None:
    """The method of a run without a plan."""
    choices = Choices(run)
    run.told = choices.result
    choices.descend()
