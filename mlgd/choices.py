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
from .seen import spread
from .solvers import quasi_newton
from .spectra import Measure, lanczos

TAIL = 0.8  # of eps: what the errors beyond the finest level asked may cost; one level more costs 2^gamma times as much
SMALL = 0.1  # of eps: what may be left unseen when a cheaper level judges a step
CHEAP = 0.1  # of the finest level asked: what coarser ones may cost at further points, to tell how errors change
GAIN = 0.25  # a step that leaves more of the loss than this is not repeated
CAP = 4.0  # times its price: where a plan is ended that costs more than it should
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
        self.steps = 0
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
        good = self.status == "done" and not self.missed
        if math.isfinite(self.estimate):
            about = f"loss about {self.estimate:.3g} above the minimum (an estimate: {self.basis})"
        else:
            about = "nothing is known of the loss reached"
        parts = [message, self.missed, about]
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
            if self.scale.measures is None:
                self.by_hand()
            elif not self.newton():
                self.rounds()
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
            if memory.norm < norm:
                self.y = memory.y
            self.tell(
                f"started at a coarse solution: {memory.t} evaluations of level {first} took its gradient from {norm:.3g} to {memory.norm:.3g}"
            )
        self.booked("coarse solve", since)

    def climb(self) -> None:
        """Ask levels one by one, at one point, until what lies beyond them costs less than eps."""
        levels, n = self.h.levels, min(2, len(self.h.levels))
        self.journal.keep_at(self.y)
        self.measure(levels[:n])
        while True:
            top = levels[n - 1]
            tail = self.tail
            if self.eps is not None and tail <= TAIL * self.eps:
                if top in self.scale.measures.increments:
                    self.tell(f"level {top} is fine enough: errors beyond it cost a loss of about {tail:.2g}")
                    return
                self.measure(levels[:n])
                continue
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

    def measure(self, levels: tuple[int, ...], again: bool = True) -> None:
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
        if again or self.scale is None:
            since = self.journal.meter.total
            self.scale = estimate(h.only(levels), self.y, self.rng, known=self.report)
            self.booked("estimate", since)

    # --- estimates of the loss ---

    @property
    def weight(self) -> float:
        """The mean of 1/lambda that increments see: a level whose error has norm e costs a loss of e^2/2 times that."""
        shapes = [self.scale.measures.increments[k] for k in sorted(self.scale.measures.increments)[-3:]]
        return float(np.mean([2 * self.loss_of(m) / m.total for m in shapes])) if shapes else math.inf

    @property
    def tail(self) -> float:
        """What errors beyond the finest level asked cost in loss, if they go on as they fell so far."""
        if self.scale.measures is None or len(self.report.levels) < 2:
            return math.inf
        return (self.report.increment[-1] * self.report.tail) ** 2 * self.weight / 2

    def loss_of(self, measure: Measure) -> float:
        """Half the integral of 1/lambda, with what the rule can't resolve spread out."""
        nodes, weights = spread(measure.nodes, measure.weights, self.scale.measures.floor)
        return float((weights / nodes).sum()) / 2

    def unseen(self, level: int, distance: float) -> float:
        """The loss that a gradient of this level misses of the finest one asked, this far from where both were asked."""
        if self.report.regularity != "smooth":
            return 0.0 if level == self.report.levels[-1] else math.inf
        return (change_after(self.report, level) * distance) ** 2 * self.weight / 2

    def judge(self, y: np.ndarray, g: np.ndarray) -> tuple[float, np.ndarray]:
        """The loss that a gradient g at y stands for, and the minimizer of the quadratic model there."""
        base = self.scale.level
        n = max(PRODUCTS, min(MOST, int(SHARE * self.h.cost(self.report.levels[-1]) / self.h.cost(base))))
        found = lanczos(Differences(Meter(self.h, y, None), base, self.scale.step), g.ravel(), n, 0.01)
        nodes = np.maximum(found.measure.nodes, max(self.scale.resolution, 1e-300))
        step = found.solve(self.scale.resolution).reshape(y.shape)
        return self.loss_of(replace(found.measure, nodes=nodes)), y - step

    # --- ways to get there ---

    def newton(self) -> bool:
        """Steps to the minimizer of the quadratic model, judged by a gradient at their end; whether eps was reached."""
        tail, top = self.tail, self.report.levels[-1]
        x, values = self.y, {k: self.report.values[k][0] for k in self.report.levels}
        before = self.loss_of(self.scale.measures.gradient)
        self.basis = (
            f"the gradient of level {top}, weighed by the curvature of level {self.scale.level}, and errors beyond it "
            "that go on as they fell so far"
        )
        self.estimate = math.inf
        self.record(x, before + tail)
        target = self.scale.reached
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
            self.booked("Newton steps", since)
            self.record(target, after + tail)
            if after + tail > self.eps and after > GAIN * before:
                return False
            x, before, target = target, after, following
            values = {top: g} if level == top else values
            if level != top:
                break
        return True

    def rounds(self) -> None:
        """Price every method on what was measured here, run the cheapest, look; what disappoints is not run again."""
        tried: set[str] = set()
        aim = self.eps
        for _ in range(ROUNDS):
            y, before, top = self.y, self.estimate, self.report.levels[-1]
            self.journal.keep_at(y)
            self.measure(self.report.levels)
            plan = self.cheapest(aim, tried)
            if plan is None:
                self.by_hand()
                return
            out = self.carry_out(plan)
            since = self.journal.meter.total
            after, _ = self.judge(out, self.h.value(top, out))
            self.booked("looks", since)
            self.tell(
                f"{plan.method!r} took the loss from about {before:.2g} to {after + self.tail:.2g}, as a gradient of level {top} says"
            )
            self.record(out, after + self.tail)
            if self.estimate <= self.eps:
                return
            if self.estimate > before / 2:
                tried.add(plan.method)
            aim = max(aim / 2, 1.2 * self.tail)  # less noise, and less left of the start

    def cheapest(self, aim: float, tried: set[str]) -> Plan | None:
        try:
            ranked = compare(self.report.problem(self.scale), aim, on=self.report, promise="measured")
        except ValueError as why:  # NotApplicable among them
            self.tell(f"no method can be planned: {why}")
            return None
        plans = [p for p in ranked.plans if p.method not in tried and p.expected_cost <= self.left]
        prices = ", ".join(f"{p.method} {p.expected_cost:.3g}" for p in ranked.plans)
        if not plans:
            self.tell(f"nothing is left to try ({prices})")
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
            memory = SimpleNamespace(y=self.y)
            g = self.h.value(k, self.y)
            trust = float(np.linalg.norm(g if before is None else g - before))
            for _ in quasi_newton(partial(self.h.value, k), memory, WARM, trust / 2):
                self.steps += 1
            before = memory.search.g
            bound = 2 * (memory.norm + trust) * float(np.linalg.norm(memory.y - start))
            self.tell(
                f"a quasi-Newton method took the gradient of level {k} to {memory.norm:.2g}: loss at most about {bound:.2g}"
            )
            self.booked("quasi-Newton", since)
            since = self.journal.meter.total
            self.y, self.estimate = memory.y, math.inf
            self.record(memory.y, bound)
            if self.eps is not None and bound <= self.eps:
                return


def chosen(
    h: Hierarchy, y0: np.ndarray, eps, max_cost, rng, run: Callable, loss=None, callback=None, checkpoint=None
) -> Result:
    """minimize without a plan; `run(rng, plan, y, limit, checkpoint)` carries a plan out."""
    generated, y0 = generator(rng), h.point(y0)
    y0.setflags(write=False)
    journal = Journal(h, y0, eps, max_cost, generated, rng is not None, checkpoint)
    return Choices(journal, y0, eps, partial(run, generated), loss, callback).go()
