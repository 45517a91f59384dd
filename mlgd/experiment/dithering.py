"""Methods that step along single gradients, on rounded errors: two models propose settings, runs decide.

A method that hardly moves meets the same rounding error again and again: it lasts, as `responses` assumes. One whose own noise moves the
gradient by more than a cell of the grid meets another error in every step: it averages out, and a coarse level will do. Neither model is
believed: of the settings that they propose for goals around eps, the cheapest whose mean loss in runs is small enough counts.
Whoever knows that can move about on purpose (`Dithered`): halving an error then costs four evaluations, whatever the rate.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from .fields import LEVELS, Family, Instances
from .responses import BELOW, LINEAR, Found, call_price, linear_methods, run

TUNING, REPORTING = range(8), range(100, 108)
DITHERS = (0.0, 0.5, 2.0, 8.0)  # squares of the grid
GOALS = 2.0 ** (np.arange(-7, 5) / 2)  # of eps
RATES = (1.5, 3.0, 6.0)  # that settings are proposed for
QUICK = 1e3  # the largest conditioning at which descent, whose steps grow with it, is run


class Dithered(Instances):
    """Level k: the mean of level 0 at 4^k points around y, in pairs, moved far enough for the gradient to move by a cell of the grid."""

    def gradients(self, levels, y: np.ndarray) -> np.ndarray:
        f = self.family
        reach = 2 * f.accuracy[0] / np.sqrt(f.d * np.mean(f.spectrum**2))
        means = []
        for k in levels:
            moves = [reach * self.rng.standard_normal(y.shape) for _ in range(4**k // 2)]
            points = [y + s * z for z in moves for s in (1, -1)] or [y]
            means.append(
                np.mean([super(Dithered, self).gradients([0], at)[0] for at in points], axis=0)
            )
        return np.array(means)


def price(found: Found, gamma: float) -> float:
    """What these stages cost at another rate."""
    cost = 2.0 ** (gamma * np.arange(LEVELS))
    return sum(
        s.way[2] * float(call_price(cost, s.base, s.finest, np.array([s.p]))[0])
        for s in found.stages
    )


def proposals(f: Family, method: str, eps: float, made: dict) -> list[Found]:
    families = [replace(f, dither=u) for u in (DITHERS if LINEAR[method][2] else DITHERS[:1])]
    found = (
        linear_methods(g, a * eps, r, made, (method,))[method]
        for g in families
        for a in GOALS
        for r in RATES
    )
    return list({x.stages: x for x in found if x.stages}.values())


def tuned(
    f: Family, method: str, eps: float, gammas: Iterable[float], made: dict
) -> dict[float, tuple[Found, float]]:
    """At each rate the cheapest proposal that passes on the tuning instances, and its mean loss over eps on the reporting ones."""
    if LINEAR[method][0] != "nesterov" and f.kappa > QUICK:
        return {}
    known: dict[tuple, float] = {}

    def loss(x: Found, seeds: range) -> float:
        if (x.stages, seeds) not in known:
            with np.errstate(over="ignore", invalid="ignore"):
                known[x.stages, seeds] = (
                    float(run(Instances(f, seeds), x, 0.0, [20261116, 1])[0].mean()) / eps
                )
        return known[x.stages, seeds]

    found, best = proposals(f, method, eps, made), {}
    for gamma in gammas:
        passing = (
            x for x in sorted(found, key=lambda x: price(x, gamma)) if loss(x, TUNING) <= BELOW
        )
        if chosen := next(passing, None):
            best[gamma] = chosen, loss(chosen, REPORTING)
    return best
