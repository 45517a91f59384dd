"""A run without a plan: measure, step, judge, raise.

From the coarsest level upwards: the gradient of a level, weighed as `mlgd.surveys` does, says what loss is left and where to step; a
gradient at the end of the step judges it. Where a step leaves too much, what is cheapest follows: another one, the
curvature of a finer level, or the next level, which is of no use before errors beyond this one count. Where none of
these helps, every method is priced on what was measured, and the cheapest runs.
"""

import math
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np

from .bill import Result
from .curvature import tried
from .hierarchy import LevelError
from .solvers import quasi_newton
from .surveys import ENOUGH, MOST, SMOOTH, Survey

LITTLE = 0.1  # of eps: where errors beyond a level cost less, no finer one is asked
GAIN = 0.25  # a step that leaves more of the loss than this is not taken on trust
LAST = 10.0  # times what was spent: what a plan may cost where steps do not help
ROUNDS = 200


class Choices(Survey):
    """One run without a plan."""

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
            if (
                self.estimate <= self.aim
                and (gain < 1 or self.averaged > 1)
                and not self.errors.blind(self.here)
            ):
                return self.end(self.x, self.estimate, f"{self.called} is fine enough")
            if self.bent:
                return self.settle(bent=True)
            self.dithers()
            if self.averaged == 1 and self.goes_on(gain):
                continue
            if self.dither and math.isinf(self.up):
                self.levels_again("no mean of more points is cheaper than levels")
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
        left = self.errors.whole(
            kept / (1 - math.sqrt(kept)) ** 2 * now
        )  # what is left is what steps reduce least
        if not left <= ENOUGH * self.aim:
            return False
        self.run.memory.step += 1
        why = "is fine enough, and a last step is not judged: those before it left at most"
        self.end(self.x + step, left, f"{self.called} {why} {kept:.0%}")
        return True

    def judge(self, step: np.ndarray) -> float:
        """Take a step unless the gradient at its end says that the loss has grown: the share of the loss that is left."""
        errors = self.errors
        self.run.memory.step += 1
        for _ in range(6):
            g = tried(self.gradient, self.x + step)
            if g is not None:
                break
            if self.dither:
                self.levels_again("a point of a mean is outside of the domain")
                return 1.0
            step = step / 4  # it led out of the domain
        target = self.x + step
        self.reach = max(
            self.reach, float(np.linalg.norm(target - self.y0)), float(np.linalg.norm(step))
        )
        g, before = (
            self.gradient(target),
            errors.worth(self.here),
        )  # bought already, but where every step failed
        self.learn(step, g - self.g)
        there = self.look(target, g)
        if self.averaged == 1:
            errors.deepen(self.here, there)
            before = errors.worth(self.here)
        after = errors.worth(there)
        gain = after / before if 0 < before < math.inf else 1.0
        fell = (
            -float(np.vdot(self.g + g, step)) / 2
        )  # by the trapezoidal rule, whatever the curvature
        self.short = max(1.0, fell / (before - after)) if gain < 1 and self.averaged == 1 else 1.0
        self.tell(
            f"a step on {self.called} with the curvature of level {self.h.levels[self.here.level]} took the loss from about "
            f"{before:.2g} to {after:.2g}"
        )
        jumps = (
            errors.rough and not self.dither and gain > GAIN and after <= 6 * errors.fresh
        )  # means jump together
        noisy = self.averaged > 1 or jumps
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
        if self.errors.jumps <= SMOOTH and (
            enough or now >= tail
        ):  # no finer level helps before its error counts
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
        if self.here.level == self.top:
            return math.inf
        return 2 * (self.cost(self.i) + self.products * self.cost(self.here.level + 1))

    def rises(self) -> bool:
        """Ask the next level; whether it says that this is enough."""
        before, previous, left = self.here, self.g, self.now
        self.averaged, self.short, self.i, self.arrived = (1, 1.0, self.i + 1, self.meter.total)
        try:
            self.g = self.gradient(self.x)
        except LevelError:
            if not self.dither:
                raise
            self.levels_again("a point of a mean is outside of the domain")
            return False
        self.pairs = []
        if self.errors.jumps > SMOOTH:
            self.errors.increments.append(self.g - previous)
        else:
            self.retake((previous,))
        self.here = self.look(self.x, self.g)
        self.weigh(before)
        if self.dither:
            self.doubt_means()
        now, tail = self.now, self.errors.tail
        self.tell(
            f"{self.called} is asked: by it the loss is about {now:.2g}, and errors beyond it cost about {tail:.2g}"
        )
        self.record(self.x, max(self.errors.whole(now), self.errors.before))
        unsolved = (
            left > self.aim and self.errors.jumps <= SMOOTH
        )  # by the level before, whose error is less than that
        if self.estimate > self.aim or unsolved or not self.g.any() or self.errors.blind(self.here):
            return False
        self.end(self.x, self.estimate, f"{self.called} says that this is enough")
        return True

    # --- the end ---

    def record(self, y: np.ndarray, loss: float) -> None:
        """A point reached, with the estimate of its loss: the output from now on."""
        self.estimate = loss
        self.run.memory.y = y
        self.run.attend()

    def end(self, y: np.ndarray, loss: float, why: str) -> None:
        """eps is reached, by all that can be seen."""
        self.rests()
        self.tell(f"{why}: a loss of about {loss:.2g}")
        self.record(y, loss)
        self.status = "done"

    def rests(self) -> None:
        how = (
            "that go on as they fell so far"
            if len(self.errors.increments) > 1
            else "as large as its increment"
        )
        beyond_it = f", and errors beyond it {how}" if self.errors.increments else ""
        self.basis = (
            f"the gradient of {self.called} weighed by curvature of coarser levels{beyond_it}"
        )
        if not self.errors.increments:
            self.basis = f"the gradient of {self.called}, whose own error can't be told"

    def settle(self, bent: bool = False) -> None:
        """No finer level can be had: say what is known, and try what can be planned where steps did not help."""
        self.rests()
        tail, i = self.errors.tail, self.i
        why = (
            f"{self.called} is the finest"
            if i + 1 == len(self.h.levels)
            else (
                f"level {self.h.levels[i + 1]} costs {self.cost(i + 1):.3g} and {self.left:.3g} is left to pay"
            )
        )
        if self.eps is None:
            self.tell(f"{why}: as far as its own error goes, a loss of about {self.estimate:.2g}")
            self.status = "done"
        elif tail > ENOUGH * self.eps:
            self.tell(
                f"{why}, and errors beyond it cost about {tail:.2g}: eps = {self.eps:g} is out of reach"
            )
            if i + 1 < len(self.h.levels) and not bent:
                self.status, self.why = "budget", f"max_cost ends the run: {why}"
        elif self.averaged == 1 and not bent:
            self.otherwise()
        if self.here.downward and self.status == "missed":
            least = self.here.least
            self.why = f"the loss curves downwards by {least:.2g} in some direction: there may be no minimizer"

    def flat(self) -> None:
        """The gradient is zero: the end, unless the loss curves downwards from here."""
        self.rests()
        around = self.look(self.x, self.rng.standard_normal(self.x.shape))
        if around.downward:
            self.why = f"the gradient of {self.called} is zero, and the loss curves downwards by {around.least:.2g} from there"
        else:
            self.end(self.x, self.errors.tail, f"the gradient of {self.called} is zero")

    def otherwise(self) -> None:
        """A quasi-Newton method, which may not cost too much more than all so far."""
        since, allowed = self.meter.total, min(self.left, LAST * self.meter.total)
        before = self.estimate
        method, memory = "quasi-Newton", SimpleNamespace(y=self.x)
        most = int(min(MOST, allowed / self.cost(self.i)))
        with suppress(LevelError):  # a trial went too far
            for _ in quasi_newton(partial(self.h.value, self.level), memory, most):
                self.run.memory.step += 1
        self.x = memory.y
        self.booked(method, since)
        self.g = self.gradient(self.x)
        self.here = self.look(self.x, self.g)
        if self.errors.increments and self.errors.jumps <= SMOOTH:
            self.retake()
            self.weigh()
        after = self.errors.whole(self.now)
        self.tell(
            f"steps do not get on: {method!r} took the loss from about {before:.2g} to {after:.2g}"
        )
        self.record(*((self.x, after) if after <= before else (self.run.memory.y, before)))
        self.status = "done" if self.estimate <= self.eps else "missed"

    def result(self, found: Result) -> Result:
        """What a run has to hand back, with what was chosen, believed and spent."""
        status = self.status if found.status == "done" else found.status
        about = "nothing is known of the loss reached"
        if math.isfinite(self.estimate):
            about = f"loss about {self.estimate:.3g} above the minimum (an estimate: {self.basis})"
        missed = (
            f"eps = {self.eps:g} was not reached"
            if status == "missed" and self.eps is not None
            else ""
        )
        rest = self.meter.total - sum(self.spent.values())
        if rest > 1e-9 * self.meter.total:  # more than rounding
            self.spent["unfinished"] = rest
        return replace(
            found,
            status=status,
            estimate=self.estimate,
            decisions=tuple(self.told),
            cost_by_purpose=dict(self.spent),
            message="; ".join(
                p for p in (found.message, missed, self.why, about, self.errors.doubt) if p
            ),
            promise="estimate" if status == "done" and not self.errors.doubt else "none",
        )


def chosen(run, memory: SimpleNamespace) -> None:
    """The method of a run without a plan."""
    choices = Choices(run)
    run.told = choices.result
    choices.descend()
