"""Runs a plan: plain descent with uniform or weighted averaging, a fixed level, the schedule, the accelerated scheme."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .hierarchy import Hierarchy
from .oracle import Telescope
from .plans import Plan

BLOCK = 256  # uniform numbers are drawn for this many calls at once; stopping early does not change them
FAR = 1e4  # a run this many d0 away from its start has diverged: the theorems keep it within a few
NEAR = 4.0  # without a loss to rank outputs, the best one is the last whose iterate was this many d0 from the start


@dataclass(frozen=True)
class State:
    """What a callback sees: the step just made, the iterate, the output so far, what it cost, the last recorded loss."""

    step: int
    y: np.ndarray
    output: np.ndarray
    cost: float
    cost_by_level: dict[int, float]
    loss: float


@dataclass(frozen=True)
class Trace:
    """What was recorded along the way: steps, prices paid so far, and losses of the output (nan without `loss`)."""

    step: np.ndarray
    cost: np.ndarray
    loss: np.ndarray


@dataclass(frozen=True)
class Result:
    """Where a run ended, what it paid and why it ended. status: 'done', 'stopped', 'budget' or 'diverged'."""

    y: np.ndarray
    cost: float
    cost_by_level: dict[int, float]
    steps: int
    status: str
    message: str
    trace: Trace


class Meter:
    """Counts what is paid, level by level."""

    def __init__(self, h: Hierarchy):
        self.price = {k: float(h.cost(k)) for k in h.levels}
        self.by_level = dict.fromkeys(h.levels, 0.0)
        self.total = 0.0

    def charge(self, k: int) -> None:
        self.by_level[k] += self.price[k]
        self.total += self.price[k]


class Sampler:
    """Draws of a telescope along a run: outcomes in blocks from one generator, each level evaluated once a call."""

    def __init__(self, telescope: Telescope, rng: np.random.Generator, meter: Meter):
        self.telescope, self.rng, self.meter = telescope, rng, meter
        self.prefix = telescope.prefix
        self.random = telescope.p[telescope._prefix :]
        self.hits = np.zeros((0, self.random.size), bool)
        self.any = np.zeros(0, bool)
        self.at = 0

    def __call__(self, y: np.ndarray) -> np.ndarray:
        if self.random.size:
            if self.at == len(self.any):
                self.hits = self.rng.random((BLOCK, self.random.size)) < self.random
                self.any, self.at = self.hits.any(axis=1), 0
            self.at += 1
            if self.any[self.at - 1] or self.prefix is None:
                draw = self.telescope.combine(y, self.hits[self.at - 1])
                for k in draw.levels:
                    self.meter.charge(k)
                return draw.value
        self.meter.charge(self.prefix)
        return self.telescope.h.evaluate(self.prefix, y)


class _Stop(Exception):
    def __init__(self, status: str, message: str):
        self.status, self.message = status, message


def minimize(
    h: Hierarchy,
    y0: np.ndarray,
    plan: Plan,
    rng=None,
    callback: Callable[[State], bool] | None = None,
    loss: Callable[[np.ndarray], float] | None = None,
    max_cost: float | None = None,
    progress: bool = False,
) -> Result:
    """Run a plan on a hierarchy from y0.

    Every level the plan needs is evaluated once at y0 before anything is charged, so that a bad one is refused at
    once. `loss` is recorded at about 200 steps, uncharged; `callback(state)` is called at every step and ends the
    run by returning True; `max_cost` ends it when that much has been paid; an interrupt keeps what there is.

    >>> from mlgd import Problem, plan
    >>> from mlgd.examples import biased
    >>> h = biased(lambda y: y - 1, gamma=3, c=1, levels=range(1, 8))
    >>> run = minimize(h, np.zeros(2), plan(Problem(beta=1, d0=2, gamma=3, c=1), eps=0.25), rng=0)
    >>> run.status, run.steps, bool(abs(run.y - 1).max() < 0.1)
    ('done', 256, True)
    """
    telescopes = [plan.telescope(h, stage) for stage in plan.stages]
    y0 = h.check(y0, levels=sorted({k for t in telescopes for k in t.levels}))
    if max_cost is not None and not max_cost > 0:
        raise ValueError(f"max_cost must be positive; got {max_cost!r}")
    rng = np.random.default_rng(rng)
    run = _Run(h, y0, plan, callback, loss, max_cost, progress)
    advance = run.accelerated if plan.averaging == "last" else run.averaged
    try:
        run.record()
        for stage, telescope in zip(plan.stages, telescopes, strict=True):
            advance(stage, Sampler(telescope, rng, run.meter))
        run.guard()
        status, message = "done", f"all {plan.steps} steps of the plan were made: mean loss at most {plan.eps:g}"
    except _Stop as stop:
        status, message = stop.status, stop.message
    except KeyboardInterrupt:
        status, message = "stopped", f"interrupted at step {run.step}: the output so far is kept"
    if status != "diverged":
        run.record(last=True)
    if progress:
        print(file=sys.stderr)
    return run.result(status, message)


class _Run:
    """The state of one run, shared by its stages."""

    def __init__(self, h, y0, plan, callback, loss, max_cost, progress):
        self.plan, self.callback, self.loss, self.max_cost, self.progress = plan, callback, loss, max_cost, progress
        self.meter = Meter(h)
        self.start, self.y, self.safe, self.distance = y0, y0.copy(), y0.copy(), 0.0
        self.output = self.y if plan.averaging == "last" else y0.copy()
        self.step, self.mass = 0, 0.0  # mass: the sum of the weights so far over the latest weight
        self.every = -(-plan.steps // 200)
        self.rows, self.best = [], np.inf
        self.d0 = plan.problem.d0

    def averaged(self, stage, sample) -> None:
        """y <- y - eta g(y), and the average of the points where g was taken, weights growing by `growth` a step."""
        eta, growth, y, output = self.plan.eta, self.plan.growth, self.y, self.output
        for _ in range(stage.steps):
            g = sample(y)  # first, so that an interrupt inside it leaves the output of whole steps
            self.mass = 1.0 + self.mass / growth
            output += (y - output) / self.mass
            y -= eta * g
            self.tick()

    def accelerated(self, stage, sample) -> None:
        """Similar triangles: x = (alpha z + A y)/A', z <- z - alpha g(x), y <- (alpha z + A y)/A', alpha = eta t."""
        y, z, total = self.y, self.y.copy(), 0.0
        for t in range(1, stage.steps + 1):
            alpha = self.plan.eta * t
            share = alpha / (total + alpha)
            total += alpha
            z -= alpha * sample(y + share * (z - y))
            y += share * (z - y)
            self.tick()

    def tick(self) -> None:
        self.step += 1
        if self.callback is not None:
            state = State(
                self.step,
                self.y.copy(),
                self.output.copy(),
                self.meter.total,
                dict(self.meter.by_level),
                self.last_loss,
            )
            if self.callback(state):
                raise _Stop("stopped", f"the callback stopped the run at step {self.step}")
        if self.step % self.every == 0:
            self.guard()
            self.record()
        if self.max_cost is not None and self.meter.total >= self.max_cost:
            raise _Stop("budget", f"the budget {self.max_cost:g} was spent at step {self.step}: raise max_cost or eps")

    @property
    def last_loss(self) -> float:
        return self.rows[-1][2] if self.rows else np.nan

    def guard(self) -> None:
        moved = self.y - self.start
        self.distance = float(np.vdot(moved, moved)) ** 0.5
        if not self.distance <= FAR * self.d0:
            raise _Stop(
                "diverged",
                f"the iterate left the region the theorem allows before step {self.step}: the best output so far is "
                "returned; check that beta is not too small, and that the levels approximate one gradient",
            )

    def record(self, last: bool = False) -> None:
        if last and self.rows and self.rows[-1][0] == self.step:
            return
        value = float(self.loss(self.output)) if self.loss is not None else np.nan
        self.rows.append((self.step, self.meter.total, value))
        if value <= self.best if self.loss is not None else self.distance <= NEAR * self.d0:
            self.best = value
            self.safe[...] = self.output
        if self.progress:
            done = self.step / self.plan.steps
            bar = "#" * int(30 * done)
            print(f"\r[{bar:30s}] {done:4.0%}  price {self.meter.total:.3g}", end="", file=sys.stderr)

    def result(self, status, message) -> Result:
        step, cost, loss = (np.array(column) for column in zip(*self.rows, strict=True))
        return Result(
            y=self.safe if status == "diverged" else self.output,
            cost=self.meter.total,
            cost_by_level=self.meter.by_level,
            steps=self.step,
            status=status,
            message=message,
            trace=Trace(step, cost, loss),
        )
