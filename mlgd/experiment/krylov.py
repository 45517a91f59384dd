"""Conjugate gradients coarse to fine, and the corrected coarse model, on gradients with errors: chains of solves, by runs.

A solve takes one gradient of a fine level and as many products with the Hessian as it likes, each the difference of two
gradients of a base level over the starting distance d0: the accuracy of a level is promised where the run goes, and no further.
Base and fine level the same: conjugate gradients on that level. A coarser base: the coarse model tilted by the fine gradient. On
quadratics L-BFGS with an exact line search makes the same steps (Nocedal and Wright, Numerical Optimization, section 7.2).
How many steps a solve takes is chosen in hindsight on one set of instances and reported on another.
"""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from .fields import LEVELS, Family, Instances
from .responses import BELOW

PATIENCE = (
    15  # steps without a smaller loss after which a solve is taken to have ended at its smallest
)
MOST = 3000  # steps of a solve; the cheapest chains seldom take as many


@dataclass(frozen=True)
class Chain:
    """Solves in order: (fine level, base level, steps)."""

    solves: tuple[tuple[int, int, int], ...]

    def price(self, gamma: float) -> float:
        """One fine gradient, one of the base where it is another, and one per step, for each solve."""
        return sum(
            2.0 ** (gamma * k) + (steps + (b != k)) * 2.0 ** (gamma * b)
            for k, b, steps in self.solves
        )


def solve(
    instances: Instances, y: np.ndarray, fine: int, base: int, steps: int, goal: float = -1.0
):
    """The points after at most `steps` steps, ending where the mean loss is at most `goal`; the number of steps made.

    Without a goal all steps are made. A direction without curvature ends its row's solve.
    """
    f = instances.family
    at = instances.gradients(sorted({base, fine}), y)
    r, known = -at[-1], at[0]
    p, size, going = r, (r**2).sum(axis=1), np.ones(len(y), bool)
    best, found = (math.inf, y, 0), y
    for n in range(1, steps + 1):
        reach = f.d0 / np.sqrt((p**2).sum(axis=1))[:, None]
        image = (instances.gradients([base], y + reach * p)[0] - known) / reach
        bend = (p * image).sum(axis=1)
        going = going & (bend > 0) & (size > 0)
        move = np.where(going, size / np.where(going, bend, 1.0), 0.0)[:, None]
        found, r = found + move * p, r - move * image
        new = (r**2).sum(axis=1)
        p = np.where(going[:, None], r + (new / np.where(size > 0, size, 1.0))[:, None] * p, p)
        size = new
        loss = float(f.loss(found).mean())
        if goal >= 0:
            best = min(best, (loss, found, n), key=lambda b: b[0])
            if loss <= goal or not going.any() or n > best[2] + PATIENCE:
                return best[1], best[2]
    return found, steps


def play(instances: Instances, chain: Chain) -> np.ndarray:
    """The loss of every instance after a chain."""
    y = instances.start
    for fine, base, steps in chain.solves:
        y, _ = solve(instances, y, fine, base, steps)
    return instances.family.loss(y)


def tuned(f: Family, seeds, eps: float, corrected: bool, gammas) -> dict[float, Chain]:
    """The cheapest chain at each rate that reaches eps in the mean over these instances."""
    unit, best = f.unit(eps), {}
    for finest, gap in product(range(unit, min(unit + 2, LEVELS)), (1, 2, 20)):
        ladder = list(range(finest, -1, -gap))[::-1]
        if corrected:
            options = [
                ([(k, base) for k in [k for k in ladder if k > base] + [finest] * again], patience)
                for base, again, patience in product(
                    range(max(0, finest - 6), finest), range(5), (1.5, 4.0)
                )
            ]
        else:
            options = [
                ([(k, k) for k in ladder[i:]], patience)
                for i in range(len(ladder))
                for patience in (1.2, 3.0)
            ]
        for option, patience in options:
            chain = _hindsight(f, Instances(f, seeds), option, eps, patience, gammas, best)
            if chain is not None:
                best |= {
                    g: chain for g in gammas if g not in best or chain.price(g) < best[g].price(g)
                }
    return best


def _hindsight(f, instances, option, eps, patience, gammas, best) -> Chain | None:
    """Each solve ends, in the mean over the instances, near the floor of its level, the last one just below eps.

    None where eps is not reached, or not at a price below the best so far for any rate.
    """
    y, solves = instances.start, []
    loss = float(f.loss(y).mean())
    for i, (fine, base) in enumerate(option):
        last = i == len(option) - 1
        goal = BELOW * eps if last else max(BELOW * eps, patience * f.floors[fine])
        if loss <= goal:
            continue
        most = max(0, min(MOST, max(_affordable(solves, fine, base, g, best) for g in gammas)))
        y, n = solve(instances, y, fine, base, min(MOST, int(most) + PATIENCE + 1), goal)
        loss = float(f.loss(y).mean())
        solves.append((fine, base, n))
        if n > most:
            return None
        if loss > 2 or loss <= BELOW * eps:
            break
    return Chain(tuple(solves)) if loss <= eps else None


def _affordable(solves, fine, base, gamma, best) -> float:
    """Steps that another solve may take before the chain costs more than the best so far."""
    if gamma not in best:
        return math.inf
    paid = Chain((*solves, (fine, base, 0))).price(gamma)
    return (best[gamma].price(gamma) - paid) / 2.0 ** (gamma * base)
