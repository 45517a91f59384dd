"""minimize: from a hierarchy and a starting point to a result, by a plan of yours or by the cheapest there is."""

from collections.abc import Callable

import numpy as np

from .hierarchy import Hierarchy, positive
from .methods import METHODS, averaged
from .results import Result, State
from .runs import Run
from .schemes import Plan


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
    """Run a plan on a hierarchy from y0.

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
    _refuse(h, plan, eps, loss, callback, executor)
    if max_cost is not None:
        max_cost = positive("max_cost", max_cost)
    options = {
        "rng": rng,
        "loss": loss,
        "callback": callback,
        "max_cost": max_cost,
        "progress": progress,
        "checkpoint": checkpoint,
        "executor": executor,
    }
    if plan is None:
        eps = positive("eps", eps)
        raise NotImplementedError("a run without a plan comes with mlgd.choices")
    return Run(h, y0, plan, **options).go(METHODS.get(plan.method, averaged))


def _refuse(h, plan, eps, loss, callback, executor) -> None:
    """The sentences for arguments that can't be what was meant; nothing was evaluated yet."""
    if not isinstance(h, Hierarchy):
        hint = ": give its .hierarchy" if hasattr(h, "hierarchy") else ""
        raise TypeError(f"the first argument must be a Hierarchy; got a {type(h).__name__}{hint}")
    if plan is not None and not isinstance(plan, Plan):
        hint = ": give its .best" if hasattr(plan, "best") else ": make one with mlgd.plan(problem, eps)"
        raise TypeError(f"plan must be a Plan; got a {type(plan).__name__}{hint}")
    if (plan is None) == (eps is None):
        got = "neither" if plan is None else "both"
        raise ValueError(f"give either a plan (its eps is in it) or eps; got {got}")
    for name, given in (("loss", loss), ("callback", callback)):
        if given is not None and not callable(given):
            raise TypeError(f"{name} must be a function; got a {type(given).__name__}")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(
            f"executor must have a submit method, as those of concurrent.futures; got a {type(executor).__name__}"
        )
