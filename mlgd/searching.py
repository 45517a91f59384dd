"""The cheapest way to run on a ladder: a grid of ways, the noise that each leaves to each finest level, and its price."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .hierarchy import Hierarchy
from .ladders import optimum
from .schemes import Budget, NotApplicable, Plan, Problem, Stage

FINALISTS = 6
NEAR = 1.03  # among prices this close the run of fewest steps is taken: its calls are dearer, its overhead is smaller


@dataclass(frozen=True)
class Ladder:
    """What can be bought and how far levels are apart: squared[i, j] bounds or measures |A_j - A_i|^2."""

    h: Hierarchy
    cost: np.ndarray
    accuracy: np.ndarray
    shared: np.ndarray
    squared: np.ndarray
    change: (
        np.ndarray
    )  # Lipschitz constants of the increments, as an audit of smooth errors saw them, else nan

    @property
    def steps(self) -> np.ndarray:
        """Squared increments by level, those of neighbours; the first is none."""
        return np.append(0.0, np.diag(self.squared, 1))

    @classmethod
    def of(cls, on) -> "Ladder":
        """From a Hierarchy (increments bounded by its accuracies) or a report of `audit` (increments as measured)."""
        h = getattr(on, "hierarchy", on)
        if not isinstance(h, Hierarchy):
            raise ValueError(
                f"on must be a Hierarchy or the report of audit; got {type(on).__name__}"
            )
        accuracy, cost = (np.array([float(f(k)) for k in h.levels]) for f in (h.accuracy, h.cost))
        apart = (accuracy[:, None] + accuracy) ** 2
        if (values := getattr(on, "values", None)) is not None:
            rows = np.array([np.reshape(values[k], (len(values[k]), -1)) for k in h.levels], float)
            apart = np.array([((rows - one) ** 2).sum(axis=2).max(axis=1) for one in rows])
        shared = np.array([i > 0 and h.shares(k) for i, k in enumerate(h.levels)])
        smooth = getattr(on, "regularity", None) == "smooth"
        change = np.array(on.change) if smooth else np.full(cost.size, np.nan)
        return cls(h, cost, accuracy, shared, np.triu(apart, 1), change)

    def stage(
        self, steps: float, chain: Sequence[int], q: Sequence[float], sigma=None, **more
    ) -> Stage:
        """Steps on the levels with these indices, drawn with these probabilities."""
        levels, delta = tuple(self.h.levels[i] for i in chain), float(self.accuracy[chain[-1]])
        sigma = math.sqrt(variance(chain, q, self.squared)) if sigma is None else sigma
        return Stage(
            int(steps), delta, sigma, levels=levels, probabilities=tuple(map(float, q)), **more
        )

    def plan(
        self,
        problem: Problem,
        eps: float,
        method: str,
        promise: str,
        stages: Sequence[Stage],
        **parts,
    ) -> Plan:
        """A plan on this ladder, never dearer than every increment at every step."""
        most = sum(
            s.steps * sum(self.h.only(s.levels).step_cost(k) for k in s.levels) for s in stages
        )
        known = {
            "problem": problem,
            "eps": eps,
            "method": method,
            "promise": promise,
            "stages": tuple(stages),
        }
        known |= {
            "accuracies": dict(zip(self.h.levels, self.accuracy.tolist(), strict=True)),
            "cost_bound": float(most),
        }
        return Plan(**known | parts, warnings=problem.already(eps))

    def refuse(self, eps: float, promise: str, floor: float) -> NotApplicable:
        """The target is out of reach: what the finest level's bias alone costs, where that is known."""
        costs = (
            f", which alone costs a loss of {floor:.3g}" if np.isfinite(floor) else " and mu = 0"
        )
        return NotApplicable(
            f"the target {eps:g} is out of reach on this ladder by the promise {promise!r}: its finest level "
            f"{self.h.levels[-1]} has accuracy {self.accuracy[-1]:.3g}{costs}: add finer levels or ask for a larger eps"
        )


class Ways(NamedTuple):
    """Ways to run, one entry of each array per way.

    terms: the budget (horizon, bias, noise, mixed) of each way and finest level, before anything is sampled;
    scale[i, k]: the loss per variance of the step to level k.
    """

    eta: np.ndarray
    steps: np.ndarray
    window: (
        np.ndarray
    )  # of the tail average, one or more; the bias's share of an exponential one, below one
    terms: tuple[np.ndarray | float, ...]
    scale: np.ndarray


class Choice(NamedTuple):
    """A way to run with its telescope, and the price of the whole run."""

    price: float
    eta: float
    window: float
    stage: Stage
    budget: Budget


def coarse_prices(
    cost: np.ndarray, shared: np.ndarray, weight: np.ndarray, room: np.ndarray
) -> np.ndarray:
    """The price of a call for each way and finest level, increments paid in pairs and no level left out: (ways, levels).

    room[i, k] is what the noise may be if level k is the finest, weight[i, k] that of the step to level k at probability 1/2.
    """
    best = np.where(room >= 0, cost, np.inf)
    pair = cost + np.append(0.0, cost[:-1]) * ~shared
    for start in range(cost.size - 1) if (room > 0).any() else ():
        later = slice(start + 1, None)
        price = np.append(cost[start + 1], pair[start + 2 :])
        own, left = np.maximum(weight[:, later], 1e-300), room[:, later]
        root = np.cumsum(np.sqrt(own * price), axis=1)
        q = root / (np.maximum(left, 1e-300) + np.cumsum(own, axis=1))
        allowed = (left > 0) & (q * np.maximum.accumulate(np.sqrt(own / price), axis=1) <= 1)
        best[:, later] = np.minimum(
            best[:, later], np.where(allowed, cost[start] + q * root, np.inf)
        )
    return best


def search(
    ladder: Ladder, eps: float, make: Callable[..., Ways], grids, noisy: bool
) -> Choice | None:
    """The cheapest choice: a coarse grid of ways, a finer one around its best, then exact telescopes for the finalists."""
    for narrow in (1.3, 1.08, 1.0):
        ways = make(*grids)
        room = eps - sum(ways.terms)  # what sampling may add to the loss
        room = room if noisy else np.minimum(room, 0.0)
        price = ways.steps[:, None] * coarse_prices(
            ladder.cost, ladder.shared, ways.scale * ladder.steps, room
        )
        if not np.isfinite(price).any():
            return None
        order = np.argwhere(price <= price.min() * NEAR)
        order = order[np.argsort(ways.steps[order[:, 0]], kind="stable")][:FINALISTS]
        grids = refined(ways, order[0, 0], narrow)
    found = []
    for i, k in order:
        top = slice(0, k + 1)
        scale = np.broadcast_to(ways.scale[i], ladder.cost.shape)
        apart = (
            np.append(scale[1:], 0.0)[:, None] * ladder.squared
        )  # steps weigh as the first level that they take
        chain, q, call = optimum(
            ladder.cost[top], apart[top, top], float(room[i, k]), ladder.shared[top]
        )
        terms = [float(np.broadcast_to(term, room.shape)[i, k]) for term in ways.terms]
        terms[2] += variance(chain, q, apart)
        stage = ladder.stage(ways.steps[i], chain, q)
        found.append(
            Choice(
                call * stage.steps, float(ways.eta[i]), float(ways.window[i]), stage, Budget(*terms)
            )
        )
    return min(found, key=lambda choice: choice.price)


def refined(ways: Ways, i: int, ratio: float):
    """Grids around one way: the same step, windows and lags within a few powers of `ratio`."""
    spread = ratio ** np.arange(-4.0, 5.0)
    eta, steps, window = (v[i : i + 1] for v in ways[:3])
    if window[0] < 1:  # a share: only the steps are refined
        return eta, np.unique(np.ceil(steps * spread)), window
    lags = np.append(np.round((steps - window) * spread), 0.0)
    return eta, np.unique(lags), np.unique(np.maximum(np.round(window * spread), 1))


def variance(chain: Sequence[int], q: Sequence[float], squared: np.ndarray) -> float:
    """Of a telescope on the levels with these indices."""
    return float(
        sum((1 / p - 1) * squared[a, b] for p, a, b in zip(q[1:], chain, chain[1:], strict=False))
    )
