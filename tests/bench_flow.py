"""What one event of `flow` costs beyond the user's own evaluations; and it agrees with tiny steps.

Run by `make bench`. An evaluation is one copy of the point, so that nearly all time is the flow's.
"""

import math
import time

import numpy as np

from mlgd import Hierarchy, Schedule, Telescope, flow
from mlgd.examples import biased
from mlgd.experiment.exact import proposition_schedule


def microseconds_per_event(dimension: int, scheduled: bool) -> tuple[float, float]:
    """Time an event of flow, and of a hand-written loop that does the same for it."""
    h = Hierarchy(lambda k, y: 0.01 * y, lambda k: 8.0**k, range(3, 14))
    start = np.full(dimension, 1e-3)
    horizon = 8.0
    rates = proposition_schedule(h, 1.0, 1e-3, 3.0, horizon) if scheduled else [8000.0, 2000.0]
    begin = time.perf_counter()
    result = flow(h, start, rates, horizon, 1)
    spent = (time.perf_counter() - begin) / result.steps
    y, mean, n = start.copy(), start.copy(), 20_000
    gaps = np.random.default_rng(1).exponential(1e-4, n).tolist()
    begin, now = time.perf_counter(), 0.0
    for gap in gaps:
        now += gap
        mean += (gap / now) * (y - mean)
        y -= 1e-4 * (h.evaluate(4, y) - h.evaluate(3, y))
    return 1e6 * spent, 1e6 * (time.perf_counter() - begin) / n


def agreement(
    runs: int = 300, horizon: float = 1.5, eta: float = 1 / 400
) -> list[tuple[str, float, float, float]]:
    """Mean and variance of the final loss, of flow and of steps with p = eta rate, joint errors."""
    curvature, rates = np.array([1.0, 3.0]), [12.0, 6.0, 3.0, 1.5]
    h = biased(lambda y: curvature * y, 3.0, 1.0, range(0, 4))
    start = np.ones(2)
    telescope, column = Telescope(h, [eta * r for r in rates]), np.array(rates)[:, None]
    times = lambda t: np.repeat(column, np.size(t), axis=1)  # noqa: E731
    steady = Schedule(times, h.levels, weight=1e9)  # so large a weight averages the last point
    losses = []
    for r in range(runs):
        rng, y = np.random.default_rng([1, r]), start.copy()
        for _ in range(round(horizon / eta)):
            y -= eta * telescope.draw(y, rng).value
        end = flow(h, start, steady, horizon, [2, r]).y
        losses.append([0.5 * float(z @ (curvature * z)) for z in (end, y)])
    losses = np.array(losses)
    squares = (losses - losses.mean(axis=0)) ** 2
    rows = []
    for name, sample in (("mean", losses), ("variance", squares)):
        error = math.sqrt((sample.var(axis=0, ddof=1) / runs).sum())
        rows.append((name, *sample.mean(axis=0), error))
    return rows


if __name__ == "__main__":
    print("dimension  rates      flow (us/event)  by hand (us/event)")
    for dimension in (2, 1000):
        for scheduled in (False, True):
            kind, paid = (
                ("constant", "schedule")[scheduled],
                microseconds_per_event(dimension, scheduled),
            )
            print(f"{dimension:9d}  {kind}  {paid[0]:15.2f}  {paid[1]:18.2f}")
    print("final loss    flow       tiny steps  joint standard errors apart")
    for name, ours, theirs, error in agreement():
        print(f"{name:10s}  {ours:9.5f}  {theirs:10.5f}  {abs(ours - theirs) / error:10.2f}")
