"""The methods that a plan may name, each a generator over a run: averaged descent, similar triangles, coarse to fine."""

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace

import numpy as np

from .anchored_runs import anchored, corrected
from .runs import Method, Run
from .solvers import nesterov, quasi_newton


def averaged(run: Run, memory: SimpleNamespace) -> Iterator[None]:
    """y <- y - eta g(y) and an average: of the points where g was taken, or of the last `window` points reached.

    Weights grow by `plan.growth` per step; with averaging 'tail' the average opens `window` points before the end.
    """
    plan, eta = run.plan, run.plan.eta
    tail, decay = plan.averaging == "tail", 1.0 / plan.growth
    opens = plan.steps - plan.window if tail else 0
    if not hasattr(memory, "sums"):  # of the weighted points and of the weights, both over the latest weight
        memory.sums = np.zeros_like(memory.y), 0.0
    y, (total, mass) = memory.y, memory.sums
    spare = np.empty_like(y)
    for stage, telescope in run.stages_left():
        sample = run.sampler(telescope)
        for at in range(memory.at, stage.steps):
            move = eta * sample(y)
            after = np.subtract(y, move, move)  # a new array at every step: a user may keep the points seen
            after.flags.writeable = False
            if run.step >= opens:
                if decay == 1.0:
                    np.add(total, after if tail else y, spare)
                else:
                    np.multiply(total, decay, spare)
                    spare += after if tail else y
                total, spare, mass = spare, total, 1.0 + mass * decay
                memory.sums = total, mass  # at once: an interrupt finds the sums of whole steps
                memory.output = None  # it is total / mass, divided when someone asks
            else:
                memory.output = after
            memory.y = y = after
            memory.at = at + 1
            yield


def accelerated(run: Run, memory: SimpleNamespace) -> Iterator[None]:
    """Similar triangles: x = (alpha z + A y)/A', z <- z - alpha g(x), y <- (alpha z + A y)/A', alpha = eta t."""
    for stage, telescope in run.stages_left():
        sample = run.sampler(telescope)
        if not memory.at:
            memory.z, memory.weight = memory.y, 0.0
        while memory.at < stage.steps:
            y, z = memory.y, memory.z
            alpha = run.plan.eta * (memory.at + 1)
            share = alpha / (memory.weight + alpha)
            x = y if z is y else y + share * (z - y)
            z = z - alpha * sample(x)
            memory.y = memory.output = y + share * (z - y)
            memory.z, memory.weight, memory.at = z, memory.weight + alpha, memory.at + 1
            yield


def refine(run: Run, memory: SimpleNamespace) -> Iterator[None]:
    """Coarse to fine: a deterministic solver on each stage's level, started where the one before ended."""
    problem = run.plan.problem
    for stage, telescope in run.stages_left():
        level = telescope.prefix
        if not memory.at:
            memory.inner = SimpleNamespace(y=memory.y)
        gradient = partial(run.value, level)
        if stage.solver == "nesterov":
            solver = nesterov(gradient, memory.inner, stage.steps, problem.beta, problem.mu)
        else:
            solver = quasi_newton(gradient, memory.inner, stage.steps, stage.tolerance or 0.0, problem.beta)
        for _ in solver:
            memory.y = memory.output = memory.inner.y
            memory.at += 1
            yield
        missed = stage.tolerance is not None and memory.inner.norm > stage.tolerance
        if missed and stage is run.plan.stages[-1]:
            run.buyer.broken = (
                f"the solver left level {level} with a gradient of norm {memory.inner.norm:.3g} where "
                f"{stage.tolerance:.3g} was planned: nothing is promised; give it more steps"
            )


METHODS: dict[str, Method] = {  # every other plan is `averaged`
    "accelerated": accelerated,
    "refine": refine,
    "anchored": anchored,
    "corrected": corrected,
}
