"""What a plan is made of: stages with one telescope each, by the theorems or by price."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .hierarchy import Hierarchy, LevelError
from .telescope import Telescope

SHARES = (0.1, 0.2, 0.35, 0.5, 0.65)  # of mu that Young's inequality gives to the bias
FINALISTS = 3  # of a search on a ladder, for which the cheapest telescope is found


class NotApplicable(ValueError):
    """A method can't be planned for this problem, target or ladder; the message says why."""


@dataclass(frozen=True)
class Stage:
    """A stretch of steps with one oracle: a bias of at most delta, a noise of at most sigma.

    Without `levels` the oracle is the paper's closed form for delta and sigma; with them, these
    levels (others are left out) with these probabilities. A call costs `price` on average and
    never more than `most`.
    """

    steps: int
    delta: float
    sigma: float
    price: float = math.nan
    most: float = math.nan
    levels: tuple[int, ...] | None = None
    probabilities: tuple[float, ...] | None = None

    def on(self, telescope: Telescope, keep: bool = True) -> "Stage":
        """Its prices with this oracle, whose levels and probabilities it keeps."""
        most = float(sum(map(telescope.h.cost, telescope.levels)))
        kept = (telescope.levels, tuple(telescope.p.tolist())) if keep else (None, None)
        return Stage(self.steps, self.delta, self.sigma, telescope.expected_cost(), most, *kept)


class Budget(NamedTuple):
    """How the target is split: what the horizon, the bias and the noise may each cost in loss."""

    horizon: float
    bias: float
    noise: float

    total = property(sum)


# --- by the theorems ---


def prescribed(method: str, problem, eps: float, eta: float) -> dict:
    """Stages, error budget, averaging and guarantee of a method, whatever the ladder."""
    from . import formulas as F  # here, because sympy is slow to load

    known = {"d0": problem.d0, "mu": problem.mu, "eta": eta, "eps": eps}
    if method == "accelerated":
        return _similar_triangles(F, **known)
    if method == "scheduled":
        return _proposition_2(F, **known)
    strong = problem.mu > 0 and eps <= problem.mu * problem.d0**2
    forms, terms = (F.STRONG, F.STRONG_BUDGET) if strong else (F.CONVEX, F.CONVEX_BUDGET)
    at = F.values(forms, **known)
    sigma = 0.0 if method == "fixed" else math.sqrt(at["sigma2"])
    spent = F.values(terms, T=at["T"], delta=at["delta"], sigma=sigma, **known)
    return {
        "stages": (Stage(at["T"], at["delta"], sigma),),
        "budget": Budget(**spent),
        "growth": 1 / (1 - eta * problem.mu) if strong else 1.0,
        "guarantee": f"the paper's Theorem 1({'b' if strong else 'a'})",
    }


def _similar_triangles(F, d0: float, mu: float, eta: float, eps: float) -> dict:
    """Loss at most 3 R^2 / (2 A_T) from distance R; with mu, restarted at halved R^2."""
    stages, target = [], math.inf
    while target > eps:
        target = F.value(F.STAGE_TARGET, mu=mu, d0=d0)
        at = F.values(F.SIMILAR, d0=d0, eta=eta, eps=max(target, eps))
        stages.append(Stage(at["T"], at["delta"], math.sqrt(at["sigma2"])))
        radius, d0 = d0, d0 / math.sqrt(2)
    last = {"T": at["T"], "delta": at["delta"], "sigma": stages[-1].sigma}
    budget = Budget(**F.values(F.SIMILAR_BUDGET, d0=radius, eta=eta, **last))
    said = "similar triangles, constants proved in the book"
    return {"stages": tuple(stages), "budget": budget, "window": 1, "guarantee": said}


def _proposition_2(F, d0: float, mu: float, eta: float, eps: float) -> dict:
    """In discrete time: weights rho^-t; a block of steps earlier, delta^2 and sigma^2 double."""
    rate = -math.log1p(-eta * mu / 2)  # rho = e^-rate
    steps = max(1, math.ceil(math.log1p(2 * mu * d0**2 / eps) / rate - 1e-9))
    block = max(1, math.floor(2 * math.log(2) / rate))
    blocks = [(ago, min(block, steps - ago)) for ago in range(0, steps, block)]  # from the end
    share = [math.exp(-rate * ago) * math.expm1(-rate * count) for ago, count in blocks]
    worst = sum(s * 2**i for i, s in enumerate(share)) / math.expm1(-rate * steps)
    known = {"mu": mu, "eta": eta, "eps": eps, "injection": worst}
    at = F.values(F.DISCRETE, **known)
    bias, noise = math.sqrt(at["delta2"]), math.sqrt(at["sigma2"])
    stages = [
        Stage(n, bias * 2 ** (i / 2), noise * 2 ** (i / 2)) for i, (_, n) in enumerate(blocks)
    ]
    known |= {"delta": bias * math.sqrt(worst), "sigma": noise * math.sqrt(worst)}
    # the formula's own horizon cancels where rate * steps is tiny
    horizon = mu * d0**2 / 2 / math.expm1(steps * rate)
    return {
        "stages": tuple(stages[::-1]),
        "budget": Budget(**F.values(F.DISCRETE_BUDGET | {"horizon": horizon}, **known)),
        "growth": 1 / (1 - eta * mu / 2),
        "guarantee": "the paper's Proposition 2 in discrete time, proved in the book",
    }


# --- on a ladder of your own ---


@dataclass(frozen=True)
class Ladder:
    """What plans choose from; apart[i, j] bounds, or measures, the increment |A_j - A_i|."""

    h: Hierarchy
    cost: np.ndarray
    accuracy: np.ndarray
    apart: np.ndarray

    @classmethod
    def of(cls, on) -> "Ladder":
        """From a Hierarchy (increments bounded by accuracies) or a report of `audit` (measured)."""
        h = getattr(on, "hierarchy", on)
        if not isinstance(h, Hierarchy):
            raise ValueError(
                f"on must be a Hierarchy or the report of audit; got {type(on).__name__}"
            )
        accuracy, cost = h.accuracies(), np.array([float(h.cost(k)) for k in h.levels])
        apart = accuracy[:, None] + accuracy
        if hasattr(on, "values"):
            rows = np.array([np.reshape(on.values[k], (len(on.values[k]), -1)) for k in h.levels])
            apart = np.array([np.linalg.norm(rows - r, axis=2).max(axis=1) for r in rows])
        return cls(h, cost, accuracy, apart)

    def stage(self, steps: int, finest: int, sigma: float) -> Stage:
        """Steps with the cheapest telescope to a finest level (an index) that keeps the noise."""
        top = slice(0, finest + 1)
        call = Telescope.cheapest(self.h, sigma, self.apart[top, top])
        noise = sigma if len(call.levels) > 1 else 0.0
        return Stage(steps, float(self.accuracy[finest]), noise).on(call)

    def about(self, room: np.ndarray) -> np.ndarray:
        """About what a call costs with a variance of at most room[..., k], k the finest level.

        No level past the first is left out, and increments are paid in pairs.
        """
        best = np.where(room >= 0, self.cost, np.inf)
        squared, pair = np.diag(self.apart, 1) ** 2, self.cost[1:] + self.cost[:-1]
        for first in range(self.cost.size - 1):
            v, price, left = squared[first:], pair[first:].copy(), room[..., first + 1 :]
            v, price[0] = np.maximum(v, 1e-300), self.cost[first + 1]  # the first level is there
            root = np.cumsum(np.sqrt(v * price))
            scale = root / (np.maximum(left, 0.0) + np.cumsum(v))
            allowed = (left > 0) & (scale * np.maximum.accumulate(np.sqrt(v / price)) <= 1)
            cost = np.where(allowed, self.cost[first] + scale * root, np.inf)
            best[..., first + 1 :] = np.minimum(best[..., first + 1 :], cost)
        return best


def staged(ladder: Ladder, stages: tuple[Stage, ...], method: str) -> tuple[Stage, ...]:
    """A theorem's stages, each with the cheapest telescope for its bias and noise."""
    found = []
    for s in stages:
        try:
            finest = ladder.h.levels.index(ladder.h.level_for(s.delta))
        except LevelError as short:
            raise NotApplicable(f"{method!r}: {short}") from short
        found.append(replace(ladder.stage(s.steps, finest, s.sigma), sigma=s.sigma))
    return tuple(found)


def searched(ladder: Ladder, problem, eps: float, eta: float, quiet: bool) -> dict:
    """The paper's one-step lemma, summed with uniform weights (a) or growing ones (b).

    (a) loss <= x^2/(eta T) = d0^2/(eta T) + 2 delta x + eta (sigma^2 + 2 delta^2), where no mean
        distance exceeds x: at most eps if the right side is for x^2 = eps eta T;
    (b) loss <= (1-s) mu d0^2 / (rho^-T - 1) + delta^2/(s mu) + eta (sigma^2 + 2 delta^2), weights
        rho^-t, rho = 1 - (1-s) eta mu: Young's inequality gives the share s of mu to the bias.

    For every T, s (0 stands for (a)) and finest level the noise that is left is known (`quiet`: no
    noise), and so is about what a telescope costs that makes no more of it. For the best few pairs
    of s and level the cheapest telescope is found, and T is refined.
    """
    d0, mu, delta = problem.d0, problem.mu, ladder.accuracy

    def left(s, t):
        """What horizon and bias cost, and the variance that is left, by finest level."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            growing = np.expm1(-np.log1p(-(1 - s) * eta * mu) * t)  # rho^-T - 1
            horizon = np.where(s > 0, (1 - s) * mu * d0**2 / growing, d0**2 / (eta * t))
            bias = np.where(s > 0, delta**2 / (s * mu), 2 * delta * np.sqrt(eps * eta * t))
        room = (eps - horizon - bias) / eta - 2 * delta**2
        return horizon, bias, np.minimum(room, 0.0) if quiet else room

    most = {0.0: 64 * d0**2 / (eta * eps)}  # the largest T of each share
    if mu:
        most |= dict.fromkeys(SHARES, 4 / (eta * mu) * math.log1p(256 * mu * d0**2 / eps) + 2)
    grid = np.ceil([np.geomspace(1.0, max(2.0, last), 120) for last in most.values()])[:, :, None]
    about = grid * ladder.about(left(np.array([*most])[:, None, None], grid)[2])
    cells = np.argwhere(np.isfinite(about.min(axis=1))).tolist()  # of share and finest level
    if not cells:
        raise NotApplicable(
            f"the target {eps:g} is out of reach on this ladder: its finest level "
            f"{ladder.h.levels[-1]} has accuracy {delta[-1]:.3g}, which leaves no room for steps: "
            "add finer levels or ask for a larger eps"
        )
    ways = []
    for i, k in sorted(cells, key=lambda cell: about[cell[0], :, cell[1]].min())[:FINALISTS]:
        share, t = [*most][i], int(grid[i, about[i, :, k].argmin(), 0])
        for spread in (1.3, 1.1, 1.03):
            near = {max(1, round(t * r)) for r in np.geomspace(1 / spread, spread, 5)}
            rooms = [(t, float(left(share, t)[2][k])) for t in near]
            stages = [ladder.stage(t, k, math.sqrt(room)) for t, room in rooms if room >= 0]
            best = min(stages, key=lambda stage: stage.steps * stage.price)
            t = best.steps
        ways.append((share, k, best))
    share, k, stage = min(ways, key=lambda way: way[2].steps * way[2].price)
    horizon, bias, _ = left(share, stage.steps)
    noise = eta * (stage.sigma**2 + 2 * stage.delta**2)
    part = "b), with a shorter horizon" if share else "a)"
    return {
        "stages": (stage,),
        "budget": Budget(float(horizon), float(bias[k]), noise),
        "growth": 1 / (1 - (1 - share) * eta * mu) if share else 1.0,
        "guarantee": f"the one-step lemma summed as in the paper's Theorem 1({part}",
    }
