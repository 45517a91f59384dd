"""A run without a plan: what to measure, where to start, which method to run, and whether it got there.

From the coarsest level upwards, levels are asked at one point until the tail of their increments, weighed by the curvature
of a coarse level, costs less than eps. Their gradient and that curvature give a Newton step for free. A gradient at its end
judges it: half of g' H^-1 g and the tail are the loss above the minimum, as an estimate. Where steps do not get there,
every method is priced on what was measured and the cheapest runs; a method that disappoints is not asked again.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np

from .audits import Audit, audit
from .curvature import MOST, PRODUCTS, SHARE, Differences, Meter, change_after
from .estimates import Scale, estimate
from .hierarchy import Hierarchy, LevelError, generator
from .journals import Journal
from .plans import compare
from .purchases import Stop
from .results import Result, State, log
from .schemes import Plan
from .seen import UNSEEN, spread
from .solvers import quasi_newton
from .spectra import Measure, lanczos

TAIL = 0.8  # of eps: what the errors beyond the finest level asked may cost; one level more costs 2^gamma times as much
NEARLY = 16.0  # times eps: from here on the curvature is measured again before another level is bought
SMALL = 0.1  # of eps: what may be left unseen when a cheaper level judges a step
CHEAP = 0.1  # of the finest level asked: what coarser ones may cost at further points, to tell how errors change
DRIFT = 0.3  # of mu: what finer levels may change the curvature by, for a level to stand for them
DROWNED = 0.5  # of the smallest eigenvalue seen: where errors hide more, it may be smaller
BASE, STEP = 0.1, 4.0  # times the finest level asked: what curvature may cost while eps is far off, and when it is near
VECTORS = 4  # that it is measured along
GAIN = 0.25  # a step that leaves more of the loss than this is not repeated
CAP = 4.0  # times its price: where a plan is ended that costs more than it should
FARTHER = 1.5  # times what two levels differ by at y0: where a coarse solution is not believed
RAISED = 3  # levels asked beyond what seemed enough, at most
WARM = 100  # evaluations of the coarsest level for a first approach, at most
ROUNDS = 8


class Choices:
    """One run without a plan; `told` is every choice in a sentence, `spent` the bill by purpose."""

    def __init__(self, journal: Journal, y0: np.ndarray, eps: float | None, run: Callable, loss, callback):
        self.journal, self.eps, self.asked_for = journal, eps, eps
        self.h, self.rng, self.run = journal.hierarchy(), journal.rng, run
        self.loss, self.callback = loss, callback
        self.spent: dict[str, float] = {}
        self.told: list[str] = []
        self.rows: list[tuple[int, float, float]] = []
        self.steps = self.raised = 0
        self.looks: dict[bytes, tuple[Measure, np.ndarray]] = {}  # what gradients said at points that were judged
        self.y, self.estimate, self.basis = y0, math.inf, ""
        self.report: Audit | None = None
        self.scale: Scale | None = None
        self.status, self.error, self.missed = "done", None, ""

    # --- what is paid, told and handed back ---

    def tell(self, sentence: str) -> None:
        self.told.append(sentence)
        log.info("%s", sentence)

    def booked(self, purpose: str, since: float) -> None:
        self.spent[purpose] = self.spent.get(purpose, 0.0) + self.journal.meter.total - since
        self.journal.keep()

    @property
    def left(self) -> float:
        return self.journal.meter.limit - self.journal.meter.total

    def record(self, y: np.ndarray, loss: float) -> None:
        """A point reached, with the estimate of its loss; the best one is the output."""
        if loss <= self.estimate:
            self.y, self.estimate = y, loss
        value = math.nan if self.loss is None else float(self.loss(self.y.copy()))
        self.rows.append((self.steps, self.journal.meter.total, value))
        if self.callback is not None:
            meter = self.journal.meter
            state = State(self.steps, y.copy(), self.y.copy(), meter.total, meter.by_level, value)
            try:
                stop = self.callback(state)
            except StopIteration:
                stop = True
            if stop:
                raise Stop("stopped", "the callback stopped the run")

    def result(self, message: str = "") -> Result:
        if not self.rows:
            self.rows.append((0, self.journal.meter.total, math.nan))
        seen = self.scale is not None and self.scale.measures is not None
        hidden = seen and self.drowned
        rough = self.report is not None and self.report.regularity == "rough"
        good = self.status == "done" and not self.missed and seen and not hidden and not rough
        if math.isfinite(self.estimate):
            about = f"loss about {self.estimate:.3g} above the minimum (an estimate: {self.basis})"
        else:
            about = "nothing is known of the loss reached"
        drowned = (
            f"eigenvalues below {self.scale.resolution:.2g} drown in errors, so nothing is promised" if hidden else ""
        )
        jumpy = (
            "errors jump from point to point, which no such estimate can see, so nothing is promised" if rough else ""
        )
        parts = [message, self.missed, about, drowned, jumpy]
        if (rest := self.journal.meter.total - sum(self.spent.values())) > 0:
            self.spent["unfinished"] = rest
        return Result.of(
            self.y.copy(), self.journal.meter, self.rows, self.steps, "missed" if self.status == "done" and self.missed else self.status,
            "; ".join(p for p in parts if p), promise="measured" if good else "none", error=self.error,
            estimate=self.estimate, choices=tuple(self.told), cost_by_purpose=dict(self.spent),
        )  # fmt: skip

    # --- the way ---

    def go(self) -> Result:
        message = ""
        try:
            self.approach()
            self.climb()
            while True:
                if self.scale.measures is None:
                    self.by_hand()
                    break
                if self.newton() or self.rounds() or not self.higher():
                    break
        except Stop as stop:
            self.status, message = stop.status, stop.message
        except LevelError as failure:
            if isinstance(failure.__cause__, Stop):
                self.status, message = failure.__cause__.status, failure.__cause__.message
            else:
                self.status, self.error = "failed", failure
                message = f"{failure}; the output so far is kept"
        except BaseException as raised:
            self.status = "stopped"
            raised.result = self.result(f"{type(raised).__name__} was raised; the output so far is kept")
            raise
        if math.isfinite(self.estimate) and self.asked_for is not None and self.estimate > self.asked_for:
            self.missed = f"eps = {self.asked_for:g} was not reached"
        return self.result(message)

    def approach(self) -> None:
        """Solve the coarsest level as far as the next one says that it can be trusted: to the norm of their difference."""
        since, first = self.journal.meter.total, self.h.levels[0]
        y0 = self.y
        self.journal.keep_at(y0)
        g = self.h.value(first, y0)
        norm = float(np.linalg.norm(g))
        trust = float(np.linalg.norm(self.h.value(self.h.levels[1], y0) - g)) if len(self.h.levels) > 1 else 0.0
        memory = SimpleNamespace(y=y0)
        if norm > trust > 0:
            for _ in quasi_newton(lambda y: self.h.value(first, y), memory, WARM, trust):
                pass
            self.journal.keep_at(memory.y)
            apart = self.h.value(self.h.levels[1], memory.y) - self.h.value(first, memory.y)
            if memory.norm < norm and float(np.linalg.norm(apart)) < FARTHER * trust:
                self.y = memory.y
                self.tell(f"started at a coarse solution, by {memory.t} evaluations of level {first}")
            else:
                self.tell(f"started at y0: where level {first} leads, it is worth less")
        self.booked("coarse solve", since)

    def climb(self) -> None:
        """Ask levels one by one, at one point, until what lies beyond them costs less than eps."""
        levels, n = self.h.levels, min(2, len(self.h.levels))
        fresh = {(n, 0)}  # how many levels were asked, and the one from which on curvature was measured then
        self.journal.keep_at(self.y)
        self.measure(levels[:n])
        while True:
            top = levels[n - 1]
            tail = self.tail
            near = self.eps is not None and tail <= NEARLY * self.eps
            if near and (n, self.base(near)) not in fresh:
                fresh.add((n, self.base(near)))
                self.measure(levels[:n], near=True)  # cheaper than a level too many
                continue
            if self.eps is not None and tail <= TAIL * self.eps:
                self.tell(f"level {top} is fine enough: errors beyond it cost a loss of about {tail:.2g}")
                return
            if n == len(levels):
                self.settle(f"level {top} is the finest")
                return
            if self.h.cost(levels[n]) > self.left / 2:
                self.settle(f"level {levels[n]} costs {self.h.cost(levels[n]):.3g} and {self.left:.3g} is left to pay")
                return
            n += 1
            self.measure(levels[:n], again=self.scale.measures is None)

    def settle(self, why: str) -> None:
        """No finer level can be had: aim at what this one allows."""
        if self.report.levels[-1] not in (self.scale.measures.increments if self.scale.measures else ()):
            self.measure(self.report.levels)
        if self.scale.measures is None:
            return
        allowed = 1.5 * self.tail
        if self.eps is None:
            self.tell(f"{why}: as far as its own error goes, a loss of about {allowed:.2g}")
        else:
            self.tell(f"{why}, and errors beyond it cost about {self.tail:.2g}: eps = {self.eps:g} is out of reach")
        self.eps = allowed if self.eps is None else max(self.eps, allowed)

    def measure(self, levels: tuple[int, ...], again: bool = True, near: bool = False) -> None:
        """Audit these levels at y, the cheap ones of them at two more points, and estimate the curvature there."""
        since, h = self.journal.meter.total, self.h
        known = None
        if self.scale is not None and (self.scale.reached != self.y).any():
            move = self.scale.reached - self.y
            cheap = [k for k in levels if 2 * h.cost(k) <= CHEAP * h.cost(levels[-1])]
            if len(cheap) > 2:
                points = [self.y, self.y + move, self.y + move / 10]
                for p in points:
                    self.journal.keep_at(p)
                known = audit(h, points, levels=cheap)
        self.report = audit(h, [self.y], levels=levels, known=known)
        self.booked("audit", since)
        if not self.report.values[levels[-1]].any():
            self.estimate, self.basis = 0.0, f"the gradient of level {levels[-1]} is zero"
            raise Stop("done", "nothing is left to do")
        if again or self.scale is None:
            since = self.journal.meter.total
            first = self.base(near)
            self.scale = estimate(h.only(levels[first:]), self.y, self.rng, known=self.report)
            self.booked("estimate", since)

    def base(self, near: bool) -> int:
        """From which level on curvature is measured: one that is symmetric enough to show mu, and that finer ones change by less.

        Where the tail is near eps that may cost a few gradients, since a level too many costs more.
        """
        levels, scale = self.report.levels, self.scale
        if scale is None or scale.level not in levels:
            return 0
        least = levels.index(scale.level)
        wanted = least + self.drowned
        if self.report.regularity == "smooth":
            clear = (i for i, k in enumerate(levels) if change_after(self.report, k) <= DRIFT * scale.mu.best)
            wanted = max(wanted, next(clear, 0))
        allowed = (STEP if near else BASE) * self.h.cost(levels[-1])
        affordable = [i for i, k in enumerate(levels[:-1]) if VECTORS * PRODUCTS * self.h.cost(k) <= allowed]
        return max(least, min(wanted, max(affordable, default=0)))

    @property
    def drowned(self) -> bool:
        """Whether the curvature measured hides smaller eigenvalues than it shows."""
        return self.scale.resolution > DROWNED * self.scale.mu.best

    def higher(self) -> bool:
        """One more level, when those that seemed enough did not do; False where there is none to be had."""
        n, self.raised = len(self.report.levels), self.raised + 1
        if self.raised > RAISED or n == len(self.h.levels) or self.h.cost(self.h.levels[n]) > self.left / 2:
            return False
        self.tell(f"no progress: level {self.h.levels[n]} is asked too")
        self.journal.keep_at(self.y)
        self.measure(self.h.levels[: n + 1], near=True)
        return True

    def finer(self) -> bool:
        """Take the curvature of the next finer level from now on, unless its products cost more than a few gradients."""
        later = [k for k in self.report.levels[:-1] if k > self.scale.level]
        if not later or PRODUCTS * self.h.cost(later[0]) > STEP * self.h.cost(self.report.levels[-1]):
            return False
        self.scale = replace(self.scale, level=later[0])
        self.tell(f"steps with the curvature of a coarser level do not converge: that of level {later[0]} is taken")
        return True

    # --- estimates of the loss ---

    @property
    def weight(self) -> float:
        """The mean of 1/lambda that increments see: a level whose error has norm e costs a loss of e^2/2 times that."""
        shapes = [self.scale.measures.increments[k] for k in sorted(self.scale.measures.increments)[-3:]]
        return float(np.mean([2 * self.loss_of(m) / m.total for m in shapes or [self.scale.measures.gradient]]))

    @property
    def tail(self) -> float:
        """What errors beyond the finest level asked cost in loss, if they go on as they fell so far."""
        if len(self.h.levels) == 1:
            return 0.0  # its own error can't be told
        if self.scale.measures is None:
            return math.inf
        return (self.report.increment[-1] * self.report.tail) ** 2 * self.weight / 2

    def loss_of(self, measure: Measure) -> float:
        """Half the integral of 1/lambda: between the Gauss rule, which is too small, and the one with its smallest node spread out.

        It is spread no further than the gap to the next node suggests, however small mu may be.
        """
        nodes, where = np.unique(measure.nodes, return_inverse=True)  # what drowned lies at one place
        weights = np.bincount(where, measure.weights)
        gap = nodes[0] * (nodes[0] / nodes[:2][-1]) ** UNSEEN
        wide, share = spread(nodes, weights, max(self.scale.measures.floor, gap))
        return math.sqrt(float((weights / nodes).sum()) * float((share / wide).sum())) / 2

    def unseen(self, level: int, distance: float) -> float:
        """The loss that a gradient of this level misses of the finest one asked, this far from where both were asked."""
        if self.report.regularity != "smooth":
            return 0.0 if level == self.report.levels[-1] else math.inf
        return (change_after(self.report, level) * distance) ** 2 * self.weight / 2

    def judge(self, y: np.ndarray, g: np.ndarray) -> tuple[float, np.ndarray]:
        """The loss that a gradient g at y stands for, and the minimizer of the quadratic model there."""
        base = self.scale.level
        if not g.any():
            return 0.0, y
        n = max(PRODUCTS, min(MOST, int(SHARE * self.h.cost(self.report.levels[-1]) / self.h.cost(base))))
        found = lanczos(Differences(Meter(self.h, y, None), base, self.scale.step), g.ravel(), n, 0.01)
        nodes = found.measure.nodes
        least = max(found.asymmetry, -float(nodes.min()), 1e-15 * float(nodes.max()))  # what is no curvature
        measure = Measure(np.maximum(nodes, least), found.measure.weights)
        self.looks[y.tobytes()] = measure, y - found.solve(least).reshape(y.shape)
        return self.loss_of(measure), self.looks[y.tobytes()][1]

    # --- ways to get there ---

    def newton(self) -> bool:
        """Steps to the minimizer of the quadratic model, judged by a gradient at their end; whether eps was reached."""
        tail, top = self.tail, self.report.levels[-1]
        x, values = self.y, {k: self.report.values[k][0] for k in self.report.levels}
        before, target = self.loss_of(self.scale.measures.gradient), self.scale.reached
        self.estimate, self.basis = math.inf, self.rests()
        self.record(x, before + tail)
        while before + tail > self.eps:
            since, distance = self.journal.meter.total, float(np.linalg.norm(target - x))
            level = next(k for k in values if k == top or self.unseen(k, distance) <= SMALL * self.eps)
            g = self.h.value(level, target) + (values[top] - values[level])
            after, following = self.judge(target, g)
            if after + tail > self.eps and level != top:
                level, g = top, self.h.value(top, target)
                after, following = self.judge(target, g)
            self.steps += 1
            after += self.unseen(level, distance)
            self.tell(
                f"a Newton step with the curvature of level {self.scale.level} took the loss from about {before + tail:.2g} to "
                f"{after + tail:.2g}, as a gradient of level {level} says"
            )
            self.record(target, after + tail)
            if after + tail > self.eps and after > GAIN * before:
                if not self.finer():
                    self.booked("Newton steps", since)
                    return False
                x, g = (target, g) if after < before else (x, values[top])
                after, following = self.judge(x, g)
                self.estimate, self.basis = math.inf, self.rests()
                self.record(x, after + tail)
            else:
                x = target
            self.booked("Newton steps", since)
            before, target, values = after, following, {top: g}
        return True

    def rests(self) -> str:
        return (
            f"the gradient of level {self.report.levels[-1]}, weighed by the curvature of level {self.scale.level}, and errors "
            "beyond it that go on as they fell so far"
        )

    def rounds(self) -> bool:
        """Price every method on what was measured here, run the cheapest, look; one that disappoints is not run again."""
        tried: set[str] = set()
        aim, top = self.eps, self.report.levels[-1]
        for _ in range(ROUNDS):
            before = self.estimate
            self.journal.keep_at(self.y)
            look = self.looks.get(self.y.tobytes())
            if look is not None:  # the gradient's measure is all that is new
                measures = replace(self.scale.measures, gradient=look[0])
                self.scale = replace(self.scale, measures=measures, reached=look[1])
            self.measure(self.report.levels, again=look is None, near=True)
            plan = self.cheapest(aim, tried)
            if plan is None:
                return False
            out = self.carry_out(plan)
            since = self.journal.meter.total
            after = self.judge(out, self.h.value(top, out))[0] + self.tail
            self.booked("looks", since)
            self.basis = self.rests()
            self.tell(
                f"{plan.method!r} took the loss from about {before:.2g} to {after:.2g}, as a gradient of level {top} says"
            )
            self.record(out, after)
            if self.estimate <= self.eps:
                return True
            if after > before / 2:
                tried.add(plan.method)
            aim = max(aim / 2, 1.2 * self.tail)  # less noise, and less left of the start
        return False

    def cheapest(self, aim: float, tried: set[str]) -> Plan | None:
        """The cheapest plan that was not tried, unless one more level, which may do without, costs less."""
        try:
            ranked = compare(self.report.problem(self.scale), aim, on=self.report, promise="measured")
        except ValueError as why:  # NotApplicable among them
            self.tell(
                str(why).split(": multilevel:")[0]
                + f" for a loss of {aim:.2g} on levels up to {self.report.levels[-1]}"
            )
            return None
        plans = [p for p in ranked.plans if p.method not in tried and p.steps > 1 and p.expected_cost <= self.left]
        prices = ", ".join(f"{p.method} {p.expected_cost:.3g}" for p in ranked.plans)
        following = self.h.levels[len(self.report.levels) :]
        if not plans or (following and plans[0].expected_cost > 3 * self.h.cost(following[0])):
            self.tell(f"nothing that was not tried is worth its price ({prices})")
            return None
        self.tell(f"{plans[0].method!r} is the cheapest of what can be planned ({prices})")
        return plans[0]

    def carry_out(self, plan: Plan) -> np.ndarray:
        """Run a plan, within a few times its price."""
        since = self.journal.meter.total
        done = self.journal.ran(self.run, plan, self.y, min(self.left, CAP * plan.expected_cost))
        self.spent[plan.method] = self.spent.get(plan.method, 0.0) + self.journal.meter.total - since
        self.rows += [(self.steps + int(s), since + c, v) for s, c, v in done["rows"]]
        self.steps += done["steps"]
        if done["status"] in ("stopped", "failed"):
            self.y, self.error = done["y"], done["error"]
            raise Stop(done["status"], done["message"])
        return done["y"]

    def by_hand(self) -> None:
        """Coarse to fine by a quasi-Newton method, each level as far as its step from the one before: the last resort.

        Without a spectrum the loss is at most the gradient's norm times the distance to the minimizer, for which
        twice the distance travelled stands.
        """
        since, start, before = self.journal.meter.total, self.y, None
        self.estimate, self.basis = math.inf, "the gradient's norm times twice the distance travelled"
        for k in self.h.levels:
            if self.h.cost(k) * 2 > self.left:
                raise Stop("budget", f"level {k} costs {self.h.cost(k):.3g} and {self.left:.3g} is left to pay")
            memory, g = SimpleNamespace(y=self.y), self.h.value(k, self.y)
            norm = float(np.linalg.norm(g))
            trust = float(np.linalg.norm(g if before is None else g - before))
            for _ in quasi_newton(partial(self.h.value, k), memory, WARM, trust / 2):
                self.steps += 1
            better = memory.norm < norm
            y, before, norm = (memory.y, memory.search.g, memory.norm) if better else (self.y, g, norm)
            bound = 2 * (norm + trust) * max(float(np.linalg.norm(y - start)), 1e-300)
            self.tell(
                f"a quasi-Newton method took the gradient of level {k} to {norm:.2g}: loss at most about {bound:.2g}"
            )
            self.booked("quasi-Newton", since)
            since, self.estimate = self.journal.meter.total, math.inf
            self.record(y, bound if better else math.inf)
            if (self.eps is not None and better and bound <= self.eps) or k == self.report.levels[-1]:
                return  # finer levels are not asked without a word on what they are worth


def chosen(
    h: Hierarchy, y0: np.ndarray, eps, max_cost, rng, run: Callable, loss=None, callback=None, checkpoint=None
) -> Result:
    """minimize without a plan; `run(rng, plan, y, limit, checkpoint)` carries a plan out."""
    generated, y0 = generator(rng), h.point(y0)
    y0.setflags(write=False)
    journal = Journal(h, y0, eps, max_cost, generated, rng is not None, checkpoint)
    return Choices(journal, y0, eps, partial(run, generated), loss, callback).go()
