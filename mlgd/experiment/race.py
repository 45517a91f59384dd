"""A race on one meter: the price at which a method's mean loss first reaches each target, and its spread over seeds.

A noisy or biased method can pass a target and leave it again, so the time at which one run *ever* had a loss flatters
it. Here a target counts as reached at the first step from which the mean loss over the seeds stays below it, for at
least the last tenth of the run.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np

from mlgd.descent import State, minimize
from mlgd.hierarchy import Hierarchy
from mlgd.plans import Plan


def trajectory(
    h: Hierarchy, y0, plan: Plan, loss: Callable, rng=None, max_cost: float | None = None
):
    """Price and loss after every step of one run: arrays (steps,) and (steps, 2), for the last and the averaged iterate."""
    cost, losses = [], []

    def look(state: State) -> None:
        cost.append(state.cost)
        losses.append((loss(state.y), loss(state.output)))

    minimize(h, y0, plan, rng=rng, callback=look, max_cost=max_cost)
    return np.array(cost), np.array(losses)


def reach(
    h: Hierarchy,
    y0: np.ndarray,
    plan: Plan,
    loss: Callable[[np.ndarray], float],
    targets: Sequence[float],
    seeds: Sequence[int] = (0,),
    max_cost: float | None = None,
) -> np.ndarray:
    """Quartiles over seeds, (3, targets), of the price paid when the mean loss has come below each target for good.

    The mean is that of the last or of the averaged iterate, whichever is smaller; inf where it never is. The loss is
    read at every step and not charged: this judges methods in hindsight.
    """
    runs = [trajectory(h, y0, plan, loss, rng=s, max_cost=max_cost) for s in seeds]
    steps = min(len(cost) for cost, _ in runs)
    costs, losses = zip(*((cost[:steps], found[:steps]) for cost, found in runs), strict=True)
    return judge(np.array(costs), np.array(losses), targets)


def judge(costs: np.ndarray, losses: np.ndarray, targets: Sequence[float]) -> np.ndarray:
    """The same for runs already made: costs (seeds, steps), losses (seeds, steps, outputs), the best output by mean."""
    steps = costs.shape[1]
    mean = losses.mean(axis=0).min(axis=1)
    worst_ahead = np.maximum.accumulate(mean[::-1])[::-1]
    prices = np.full((3, len(targets)), np.inf)
    for i, target in enumerate(targets):
        hit = int(
            np.searchsorted(-worst_ahead, -target)
        )  # worst_ahead falls, so this is the first step for good
        if hit <= 0.9 * steps:
            prices[:, i] = np.quantile(costs[:, hit], (0.25, 0.5, 0.75))
    return prices


def seconds_of(h: Hierarchy, y0: np.ndarray, plan: Plan, rng=None) -> float:
    """Wall-clock seconds of a whole run."""
    began = time.perf_counter()
    minimize(h, y0, plan, rng=rng)
    return time.perf_counter() - began
