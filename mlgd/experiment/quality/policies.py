"""What a user could do instead: policies that stop by themselves, and the best in hindsight.

All of them run scipy's L-BFGS-B with its defaults, anew on each level. They see the level's own
loss with its gradient at one price, which `minimize` does not.
"""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from .problem import Instance, Pair
from .references import gap, guarded

PACE = 8  # iterations on each level, of the policy that counts
MOST = 2000  # iterations of a policy that waits for gains to fall: it always ended before
LONG = {"maxiter": MOST, "maxfun": 2 * MOST, "ftol": 0.0, "gtol": 1e-14}


class Shopper:
    """Buys losses with gradients, and knows what it paid."""

    def __init__(self, problem: Instance):
        self.problem = problem
        self.price = 0.0

    def level(self, k: int) -> Callable[[np.ndarray], Pair]:
        """A level as a function whose every call is charged."""

        def bought(y: np.ndarray) -> Pair:
            self.price += self.problem.ladder.price(k)
            return self.problem.pair(k, y)

        return bought

    def descend(
        self, f: Callable[[np.ndarray], Pair], y: np.ndarray, **options
    ) -> np.ndarray:
        """scipy's L-BFGS-B on a function, from y."""
        result = minimize(guarded(f), y, jac=True, method="L-BFGS-B", options=options)
        return result.x

    def until(self, f: Callable[[np.ndarray], Pair], y: np.ndarray, gain: float):
        """The same, until three iterations gain less than that; the end, and the gain in all."""
        values: list[float] = []

        def first(z: np.ndarray) -> Pair:
            pair = f(z)
            if not values:
                values.append(pair[0])
            return pair

        def callback(intermediate_result: OptimizeResult) -> None:
            values.append(float(intermediate_result.fun))
            if len(values) > 3 and values[-4] - values[-1] < gain:
                raise StopIteration

        result = minimize(
            guarded(first),
            y,
            jac=True,
            method="L-BFGS-B",
            callback=callback,
            options=LONG,
        )
        return result.x, values[0] - float(result.fun)


# --- policies: what each pays for eps, and where it ends ---


def finest_default(shopper: Shopper, eps: float) -> np.ndarray:
    """L-BFGS-B on the finest level, with scipy's tolerances."""
    problem = shopper.problem
    return shopper.descend(shopper.level(problem.levels[-1]), problem.start)


def eight_each(shopper: Shopper, eps: float) -> np.ndarray:
    """Eight iterations on each level, and the last to the end by scipy's tolerances."""
    problem, y = shopper.problem, shopper.problem.start
    for k in problem.levels[:-1]:
        y = shopper.descend(shopper.level(k), y, maxiter=PACE)
    return shopper.descend(shopper.level(problem.levels[-1]), y)


def finest_gains(shopper: Shopper, eps: float) -> np.ndarray:
    """The finest level, until three iterations gain less than eps/3."""
    problem = shopper.problem
    y, _ = shopper.until(shopper.level(problem.levels[-1]), problem.start, eps / 3)
    return y


def coarse_to_fine(shopper: Shopper, eps: float, needed: int = 1) -> np.ndarray:
    """Each level until three iterations gain less than eps/4; stop when a new one gained that.

    `needed` is how many new levels are to gain so little.
    """
    problem, y = shopper.problem, shopper.problem.start
    idle = 0
    for rank, k in enumerate(problem.levels):
        y, gained = shopper.until(shopper.level(k), y, eps / 4)
        if rank and gained < eps / 4:
            idle += 1
        if idle == needed:
            break
    return y


def coarse_to_fine_twice(shopper: Shopper, eps: float) -> np.ndarray:
    """The same, until two new levels gained that little."""
    return coarse_to_fine(shopper, eps, needed=2)


def corrected(shopper: Shopper, eps: float) -> np.ndarray:
    """A middle level, tilted to have the finest one's gradient, in rounds with the same stop."""
    problem, y = shopper.problem, shopper.problem.start
    levels = problem.levels
    fine = shopper.level(levels[-1])
    coarse = shopper.level(levels[(len(levels) - 1) // 2])
    value, gradient = fine(y)
    for _ in range(50):
        tilt = gradient - coarse(y)[1]

        def tilted(z: np.ndarray, tilt=tilt, y=y) -> Pair:
            low, slope = coarse(z)
            return low + tilt @ (z - y), slope + tilt

        after, _ = shopper.until(tilted, y, eps / 4)
        lower, slope = fine(after)
        gained = value - lower
        if gained > 0:
            y, value, gradient = after, lower, slope
        if not gained >= eps / 4:
            break
    return y


POLICIES: dict[str, Callable[[Shopper, float], np.ndarray]] = {
    "finest level, scipy's defaults": finest_default,
    "eight iterations on each level": eight_each,
    "finest level, until gains are small": finest_gains,
    "coarse to fine, until gains are small": coarse_to_fine,
    "coarse to fine, until small twice": coarse_to_fine_twice,
    "corrected coarse model": corrected,
}


def follow(problem: Instance, policy: Callable, eps: float) -> tuple[float, float]:
    """What a policy pays, and the true gap where it stops."""
    shopper = Shopper(problem)
    with np.errstate(all="ignore"):
        y = policy(shopper, eps)
    return shopper.price, gap(problem, y)


# --- in hindsight ---


class Enough(Exception):
    """Nothing can be found any more that is cheaper than what was."""


def hindsight(problem: Instance, goals: list[float]) -> list[float]:
    """The least price at which any of these runs first evaluates a point within each goal.

    Runs on a single level, and from a first level to a last with 2, 4, 8 or 16 iterations on
    each and the last to the end. Nobody can know beforehand which it is, nor when to stop.
    """
    best = [math.inf] * len(goals)
    ranks = range(len(problem.levels))
    schedules = [(rank, rank, 0) for rank in ranks]
    firsts = (0, len(ranks) // 3, 2 * len(ranks) // 3)
    paces = product(sorted({*firsts}), ranks, (2, 4, 8, 16))
    schedules += [(first, last, pace) for first, last, pace in paces if first < last]
    for schedule in schedules:
        race(problem, goals, best, schedule)
    return best


def race(problem: Instance, goals: list[float], best: list[float], schedule) -> None:
    """One schedule; `best` is brought up to date, and a run that can't better it ends."""
    first, last, pace = schedule
    shopper = Shopper(problem)
    lowest = math.inf

    def watched(k: int) -> Callable[[np.ndarray], Pair]:
        level = shopper.level(k)

        def f(y: np.ndarray) -> Pair:
            nonlocal lowest
            pair = level(y)
            lowest = min(lowest, gap(problem, y))
            for n, goal in enumerate(goals):
                if lowest <= goal:
                    best[n] = min(best[n], shopper.price)
            if lowest <= min(goals) or shopper.price >= max(best):
                raise Enough
            return pair

        return f

    y = problem.start
    try:
        with np.errstate(all="ignore"):
            for k in problem.levels[first:last]:
                y = shopper.descend(watched(k), y, maxiter=pace)
            shopper.descend(watched(problem.levels[last]), y, **LONG)
    except Enough:
        pass
