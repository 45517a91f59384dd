"""The cheapest way to run on a ladder: a grid of ways, the noise that each leaves to each finest level, and its price."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .hierarchy import Hierarchy
from .ladders import optimum
from .schemes import NotApplicable, Plan, Problem, Stage

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
    change: np.ndarray  # Lipschitz constants of the increments, as an audit of smooth errors saw them, else nan

    @property
    def declared(self) -> dict[int, float]:
        """{level: accuracy}."""
        return dict(zip(self.h.levels, self.accuracy.tolist(), strict=True))

    @property
    def weight(self) -> np.ndarray:
        """Squared increments by level, those of neighbours; the first is none."""
        return np.append(0.0, np.diag(self.squared, 1))[None, :]

    @classmethod
    def of(cls, on) -> "Ladder":
        """From a Hierarchy (increments bounded by its accuracies) or a report of `audit` (increments as measured)."""
        h = getattr(on, "hierarchy", on)
        if not isinstance(h, Hierarchy):
            raise ValueError(f"on must be a Hierarchy or the report of audit; got {type(on).__name__}")
        accuracy = np.array([float(h.accuracy(k)) for k in h.levels])
        squared = np.triu(accuracy[:, None] + accuracy[None, :], 1) ** 2
        values = getattr(on, "values", None)
        if values is not None:
            rows = [np.asarray(values[k], float) for k in h.levels]
            flat = np.array([row.reshape(len(row), -1) for row in rows])  # (levels, points, coordinates)
            for i in range(len(flat)):
                squared[i] = ((flat - flat[i]) ** 2).sum(axis=2).max(axis=1)
            squared = np.triu(squared, 1)
        cost = np.array([float(h.cost(k)) for k in h.levels])
        shared = np.array([i > 0 and h.shares(k) for i, k in enumerate(h.levels)])
        smooth = getattr(on, "regularity", None) == "smooth"
        return cls(h, cost, accuracy, shared, squared, np.array(on.change) if smooth else np.full(cost.size, np.nan))

    def stage(self, steps: float, chain: Sequence[int], q: Sequence[float], sigma: float = 0.0, **more) -> Stage:
        """Steps on the levels with these indices, drawn with these probabilities."""
        levels, accuracy = tuple(self.h.levels[i] for i in chain), float(self.accuracy[chain[-1]])
        return Stage(int(steps), accuracy, sigma, levels=levels, probabilities=tuple(map(float, q)), **more)

    def plan(self, problem: Problem, eps: float, method: str, promise: str, stages: Sequence[Stage], **parts) -> Plan:
        """A plan on this ladder; without an expected_cost it is what the stages pay on average."""
        known = {"problem": problem, "eps": eps, "method": method, "promise": promise, "stages": tuple(stages)}
        plan = Plan(
            **known, accuracies=self.declared, warnings=problem.already(eps), **({"expected_cost": math.nan} | parts)
        )
        return plan if "expected_cost" in parts else replace(plan, expected_cost=plan.price_on(self.h))

    def refuse(self, eps: float, promise: str, floor: float) -> NotApplicable:
        """The target is out of reach: what the finest level's bias alone costs, where that is known."""
        costs = f", which alone costs a loss of {floor:.3g}" if np.isfinite(floor) else " and mu = 0"
        return NotApplicable(
            f"the target {eps:g} is out of reach on this ladder by the promise {promise!r}: its finest level "
            f"{self.h.levels[-1]} has accuracy {self.accuracy[-1]:.3g}{costs}: add finer levels or ask for a larger eps"
        )


@dataclass(frozen=True)
class Ways:
    """Ways to run, one entry of each array per way; rows of `room` and `weight` belong to the levels.

    room[i, k]: what the noise may add to the loss when level k is the finest (negative: out of reach);
    weight[i, k]: the noise loss of the step to level k at probability 1/2.
    """

    eta: np.ndarray
    steps: np.ndarray
    window: np.ndarray  # of the tail average; the Young share for the exponential one
    room: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True)
class Choice:
    """A way to run with its telescope: the price of the whole run, and the noise loss it was given."""

    eta: float
    steps: int
    window: float
    finest: int
    chain: tuple[int, ...]
    q: np.ndarray
    price: float


def coarse_prices(ladder: Ladder, ways: Ways, noisy: bool) -> np.ndarray:
    """The price of each way and finest level, increments paid in pairs and no level left out: (ways, levels)."""
    n = ladder.cost.size
    best = np.where(ways.room >= 0, ladder.cost, np.inf)
    pair = ladder.cost + np.concatenate([[0.0], ladder.cost[:-1]]) * ~ladder.shared
    for start in range(n - 1) if noisy else ():
        price = pair[start + 1 :].copy()
        price[0] = ladder.cost[start + 1]
        weight = np.maximum(ways.weight[:, start + 1 :], 1e-300)
        root = np.cumsum(np.sqrt(weight * price), axis=1)
        scale = root / (np.maximum(ways.room[:, start + 1 :], 1e-300) + np.cumsum(weight, axis=1))
        largest = np.maximum.accumulate(np.sqrt(weight / price), axis=1)
        cost = np.where(scale * largest <= 1, ladder.cost[start] + scale * root, np.inf)
        best[:, start + 1 :] = np.minimum(best[:, start + 1 :], np.where(ways.room[:, start + 1 :] > 0, cost, np.inf))
    return best * ways.steps[:, None]


def search(
    ladder: Ladder, make: Callable[..., Ways], grids, noisy: bool, squares: Callable | None = None
) -> Choice | None:
    """The cheapest choice: a coarse grid of ways, a finer one around its best, then exact telescopes for the finalists.

    make(*grids) -> Ways; squares(ways, i) -> the matrix of noise losses between any two levels for way i, their squared
    differences where it is left out.
    """
    for narrow in (1.3, 1.08, 1.0):
        ways = make(*grids)
        price = coarse_prices(ladder, ways, noisy)
        if not np.isfinite(price).any():
            return None
        order = np.argwhere(price <= price.min() * NEAR)
        order = order[np.argsort(ways.steps[order[:, 0]], kind="stable")]
        if narrow > 1:
            grids = refined(ways, order[0, 0], narrow)
    best = None
    for i, k in order[:FINALISTS]:
        top = slice(0, k + 1)
        room = float(ways.room[i, k]) if noisy else 0.0
        between = ladder.squared if squares is None else squares(ways, i)
        chain, q, call = optimum(ladder.cost[top], between[top, top], room, ladder.shared[top])
        total = call * float(ways.steps[i])
        if best is None or total < best.price:
            window = float(ways.window[i])
            best = Choice(float(ways.eta[i]), int(ways.steps[i]), window, int(k), chain, q, total)
    return best


def refined(ways: Ways, i: int, ratio: float):
    """Grids around one way: the same step, windows and lags within a few powers of `ratio`."""
    spread = ratio ** np.arange(-4.0, 5.0)
    window, lag = float(ways.window[i]), float(ways.steps[i] - ways.window[i])
    if not float(window).is_integer():  # a Young share: only the steps are refined
        return np.array([ways.eta[i]]), np.unique(np.ceil(ways.steps[i] * spread)), np.array([window])
    lags = np.unique(np.concatenate([np.round(lag * spread), [0.0]]))
    return np.array([ways.eta[i]]), lags, np.unique(np.maximum(np.round(window * spread), 1))


def finish(problem, eps, method, promise, ladder: Ladder, choice: Choice, **parts) -> Plan:
    stage = ladder.stage(choice.steps, choice.chain, choice.q, math.sqrt(variance(choice, ladder.squared)))
    most = {"expected_cost": choice.price, "cost_bound": dearest(ladder.h, [stage]), "bound_is": "never"}
    return ladder.plan(problem, eps, method, promise, [stage], eta=choice.eta, **most, **parts)


def dearest(h: Hierarchy, stages: Iterable[Stage]) -> float:
    """What no run of these stages exceeds: every increment at every step."""
    return float(sum(s.steps * sum(h.only(s.levels).step_cost(k) for k in s.levels) for s in stages))


def variance(choice: Choice, squared: np.ndarray) -> float:
    steps = zip(choice.q[1:].tolist(), choice.chain, choice.chain[1:], strict=False)
    return sum((1 / q - 1) * float(squared[a, b]) for q, a, b in steps)
