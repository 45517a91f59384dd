"""minimize: from a hierarchy and a starting point to a result; and the methods that a plan may name.

Each makes the steps of a run (see `mlgd.runs`): averaged descent and similar triangles.
"""

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from .choices import chosen
from .hierarchy import Hierarchy, positive
from .plans import Plan
from .results import Result, State
from .runs import Method, Run


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
    output so far (without a plan, a step that leads to such a point is shortened first); an interrupt, and an error of your
    callback or loss, are raised again with the result on them, `error.result`. `checkpoint` is a path: where the run stands is written there every few seconds, and a run that finds
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

    return Run(
        h, y0, plan, eps, rng, loss, callback, max_cost, progress, checkpoint, executor, method_of
    ).go()


def _refuse(h, plan, eps, max_cost, loss, callback, executor) -> None:
    """The sentences for arguments that can't be what was meant; nothing was evaluated yet."""
    if not isinstance(h, Hierarchy):
        hint = ": give its .hierarchy" if hasattr(h, "hierarchy") else ""
        raise TypeError(
            f"the first argument must be a Hierarchy; got a value of type {type(h).__name__}{hint}"
        )
    if plan is not None and not isinstance(plan, Plan):
        hint = (
            ": give its .best"
            if hasattr(plan, "best")
            else ": make one with mlgd.plan(problem, eps)"
        )
        raise TypeError(f"plan must be a Plan; got a value of type {type(plan).__name__}{hint}")
    if plan is not None and eps is not None:
        raise ValueError("give a plan (its eps is in it) or eps, not both")
    if plan is None and eps is None and max_cost is None:
        raise ValueError("give a plan (its eps is in it), eps or max_cost; got none of them")
    for name, given in (("loss", loss), ("callback", callback)):
        if given is not None and not callable(given):
            raise TypeError(
                f"{name} must be a function; got a value of type {type(given).__name__}"
            )
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(
            f"executor must have a submit method, as those of concurrent.futures; got a value of type {type(executor).__name__}"
        )


# --- the methods ---


def averaged(run: Run, memory: SimpleNamespace) -> None:
    """y <- y - eta g(y) and an average, with weights that grow by `plan.growth` per step.

    The average is of the points where g was taken; with a window of the last `window` points reached.
    """
    plan, eta, decay = run.plan, run.plan.eta, 1.0 / run.plan.growth
    reached = plan.window is not None  # points reached are averaged, and not before this step
    opens = plan.steps - plan.window if reached else 0
    if not hasattr(
        memory, "sums"
    ):  # of the weighted points and of the weights, both over the latest weight
        memory.sums = np.zeros_like(memory.y), 0.0
    y, (total, mass) = memory.y, memory.sums
    spare = np.empty_like(y)
    for stage, telescope in run.stages_left():
        sample = run.sampler(telescope)
        for _ in range(memory.at, stage.steps):
            move = eta * sample(y)
            after = np.subtract(
                y, move, move
            )  # a new array at every step: a user may keep the points seen
            after.flags.writeable = False
            if memory.step >= opens:
                if decay == 1.0:
                    np.add(total, after if reached else y, spare)
                else:
                    np.multiply(total, decay, spare)
                    spare += after if reached else y
                total, spare, mass = spare, total, 1.0 + mass * decay
                memory.sums = total, mass  # at once: an interrupt finds the sums of whole steps
                memory.output = None  # it is total / mass, divided when someone asks
            else:
                memory.output = after
            memory.y = y = after
            run.made()


def accelerated(run: Run, memory: SimpleNamespace) -> None:
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
            memory.z, memory.weight = z, memory.weight + alpha
            run.made()


def method_of(plan: Plan | None) -> Method:
    """What carries a plan out, or does without one; plans of other names are averaged descent."""
    named = {"accelerated": accelerated}
    return chosen if plan is None else named.get(plan.method, averaged)
