"""minimize: from a hierarchy and a starting point to a result; and the methods that a plan may name.

Each method is a generator over a run (see `mlgd.runs`): averaged descent, similar triangles, coarse to fine, anchored
descent and the corrected coarse model.
"""

from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace

import numpy as np

from .anchors import Telescope
from .choices import chosen
from .hierarchy import Hierarchy, positive
from .results import Result, State
from .runs import Method, Run
from .schemes import Plan
from .solvers import nesterov, quasi_newton

OVERSHOT = 0.5  # a move is shortened where the slope along it comes back this steep, as a share of the first slope


def minimize(
    h: Hierarchy,
    y0: np.ndarray,
    plan: Plan | None = None,
    *,
    eps: float | None = None,
    rng=None,
    loss: Callable[[np.ndarray], float] | None = None,
    callback: Callable[[State], bool | None] | None = None,
    max_cost: float | None = None,
    progress: bool = False,
    checkpoint=None,
    executor=None,
) -> Result:
    """Minimize from y0: run a plan, or without one measure, step and judge until a loss of eps above the minimum.

    Without a plan, levels are asked from the coarsest upwards, no finer than `eps` needs or `max_cost` pays for, and steps
    use the curvature of coarser ones. `result.estimate` is the loss that is believed, `result.choices` says why, and
    `result.promise` is 'measured' (an estimate) or 'none'.

    `loss` is recorded at about 200 steps, uncharged. `callback(state)` is called after every step and ends the run by
    returning True or raising StopIteration; `max_cost` ends it before the evaluation that would pass that price. A level
    that fails on the way (an exception, another shape, a number that is not finite) ends it with status 'failed' and the
    output so far; an interrupt, and an error of your callback or loss, are raised again with the result on them,
    `error.result`. `checkpoint` is a path: where the run stands is written there every few seconds, and a run that finds
    the file of its own beginning goes on from it, bit for bit. `executor` (of concurrent.futures' shape) evaluates the
    levels of one call at once; the result is the same.

    >>> from mlgd import Problem, plan
    >>> from mlgd.examples import biased
    >>> h = biased(lambda y: y - 1, gamma=3, c=1, levels=range(1, 8))
    >>> run = minimize(h, np.zeros(2), plan(Problem(beta=1, d0=2, gamma=3, c=1), eps=0.25), rng=0)
    >>> run.status, run.nit, bool(abs(run.x - 1).max() < 0.1)
    ('done', 256, True)
    """
    _refuse(h, plan, eps, max_cost, loss, callback, executor)
    eps = None if eps is None else positive("eps", eps)
    max_cost = None if max_cost is None else positive("max_cost", max_cost)

    def run(rng, plan, y, limit, path) -> Result:
        prepared = Run(h, y, plan, rng, loss, callback, limit, progress, path, executor)
        return prepared.go(METHODS.get(plan.method, averaged))

    if plan is None:
        return chosen(h, y0, eps, max_cost, rng, run, loss, callback, checkpoint)
    return run(rng, plan, y0, max_cost, checkpoint)


def _refuse(h, plan, eps, max_cost, loss, callback, executor) -> None:
    """The sentences for arguments that can't be what was meant; nothing was evaluated yet."""
    if not isinstance(h, Hierarchy):
        hint = ": give its .hierarchy" if hasattr(h, "hierarchy") else ""
        raise TypeError(f"the first argument must be a Hierarchy; got a value of type {type(h).__name__}{hint}")
    if plan is not None and not isinstance(plan, Plan):
        hint = ": give its .best" if hasattr(plan, "best") else ": make one with mlgd.plan(problem, eps)"
        raise TypeError(f"plan must be a Plan; got a value of type {type(plan).__name__}{hint}")
    if plan is not None and eps is not None:
        raise ValueError("give a plan (its eps is in it) or eps, not both")
    if plan is None and eps is None and max_cost is None:
        raise ValueError("give a plan (its eps is in it), eps or max_cost; got none of them")
    for name, given in (("loss", loss), ("callback", callback)):
        if given is not None and not callable(given):
            raise TypeError(f"{name} must be a function; got a value of type {type(given).__name__}")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(
            f"executor must have a submit method, as those of concurrent.futures; got a value of type {type(executor).__name__}"
        )


# --- the methods ---


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


def anchored(run: Run, memory: SimpleNamespace) -> Iterator[None]:
    """Epochs: y <- y - eta g(y) with the telescope anchored at the epoch's first point; the last one may be averaged."""
    plan = run.plan
    for stage, _ in run.stages_left():
        last = memory.stage == len(plan.stages) - 1
        if not memory.at:
            memory.reference, memory.kept, memory.mass = memory.y, [], 0.0
        kept = {(bool(shared), int(k)): value for shared, k, value in memory.kept}
        levels = dict(zip(stage.levels, stage.probabilities, strict=True))
        sample = run.sampler(Telescope.anchored(run.h, levels, at=memory.reference, kept=kept))
        while memory.at < stage.steps:
            y = memory.y - plan.eta * sample(memory.y)
            y.flags.writeable = False
            if last and plan.averaging != "last":
                memory.mass = 1.0 + memory.mass / plan.growth
                memory.output = memory.output + (y - memory.output) / memory.mass
            else:
                memory.output = y
            memory.y, memory.at = y, memory.at + 1
            if len(kept) > len(memory.kept):
                memory.kept = [[shared, k, value] for (shared, k), value in kept.items()]
            yield


def corrected(run: Run, memory: SimpleNamespace) -> Iterator[None]:
    """Per stage one fine gradient at y, then a coarse solve of A_k(x) + [A_K - A_k](y) = 0 from there.

    The next fine gradient judges the move: where the slope along it has turned and is steep, the move went too far (the coarse
    model does not contract), and the run goes back along it to where the slope should vanish and looks again: damping.
    """
    for stage, _ in run.stages_left():
        coarse, fine = stage.levels
        if not memory.at:
            g = run.value(fine, memory.y)
            if memory.stage and (back := float(np.vdot(g, memory.y - memory.origin))) > OVERSHOT * -memory.slope > 0:
                memory.y = memory.origin + memory.slope / (memory.slope - back) * (memory.y - memory.origin)
                run.buyer.note("a coarse correction went too far and was shortened")
                g = run.value(fine, memory.y)
            memory.origin, memory.fine = memory.y, g
            memory.tilt = g - run.value(coarse, memory.y)
            memory.inner = SimpleNamespace(y=memory.y)

        def gradient(x, k=coarse):
            # at the origin the tilted model has the fine gradient, which is known
            return memory.fine if x is memory.origin else run.value(k, x) + memory.tilt

        for _ in quasi_newton(gradient, memory.inner, stage.steps, stage.tolerance or 0.0, run.plan.problem.beta):
            memory.y = memory.output = memory.inner.y
            memory.at += 1
            yield
        memory.slope = float(np.vdot(memory.fine, memory.y - memory.origin))


METHODS: dict[str, Method] = {  # every other plan is `averaged`
    "accelerated": accelerated,
    "refine": refine,
    "anchored": anchored,
    "corrected": corrected,
}
