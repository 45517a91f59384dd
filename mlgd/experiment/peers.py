"""What one would use instead: other estimators and other schedules, on the same hierarchies and the same meter.

Every estimator here is a finite table: with probability[i] it returns sum over j of coefficients[i, j] (A_j - A_{j-}).
So its mean, its variance and its price are exact sums, and a level is paid for only if its value is really used.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product

import numpy as np

from mlgd.hierarchy import Hierarchy
from mlgd.oracle import water_filling

from .race import judge

FAR = 1e8  # a run whose loss has grown this many times has diverged


@dataclass(frozen=True, eq=False)
class Estimator:
    """A finite distribution over combinations of the increments of a hierarchy."""

    h: Hierarchy
    probability: np.ndarray  # (outcomes,)
    coefficients: np.ndarray  # (outcomes, levels), of the increments

    @property
    def weights(self) -> np.ndarray:
        """The same combinations written in the levels themselves; a weight of zero is a level that is not evaluated."""
        return self.coefficients - np.pad(self.coefficients[:, 1:], ((0, 0), (0, 1)))

    @property
    def prices(self) -> np.ndarray:
        """The price of each outcome: each level it needs, once."""
        return (self.weights != 0) @ np.array([float(self.h.cost(k)) for k in self.h.levels])

    def expected_cost(self) -> float:
        return float(self.probability @ self.prices)

    def mean(self) -> np.ndarray:
        """The mean coefficients: ones up to the level whose value the estimator has on average."""
        return self.probability @ self.coefficients

    def variance(self, gram: np.ndarray) -> float:
        """E||f~ - E f~||^2 where gram holds the inner products of the increments."""
        off = self.coefficients - self.mean()
        return float(np.einsum("i,ij,jk,ik->", self.probability, off, gram, off))

    def indices(self, draws: int, rng) -> np.ndarray:
        """Which outcomes come up in that many draws."""
        uniform = np.random.default_rng(rng).random(draws)
        return np.minimum(
            np.searchsorted(np.cumsum(self.probability), uniform, side="right"), self.probability.size - 1
        )


# --- the estimators -------------------------------------------------------------------------------------------


def fixed(h: Hierarchy, level: int) -> Estimator:
    """One level, always: plain inexact gradient descent."""
    return Estimator(h, np.ones(1), (np.array(h.levels) <= level)[None].astype(float))


def extrapolated(h: Hierarchy, level: int) -> Estimator:
    """Richardson's 2 A_k - A_{k-}: no longer first order where the error is a first-order term plus smaller ones."""
    coefficients = (np.array(h.levels) <= level).astype(float)
    coefficients[h.levels.index(level)] = 2.0
    return Estimator(h, np.ones(1), coefficients[None])


def independent(h: Hierarchy, chosen: Sequence[int], p: Sequence[float]) -> Estimator:
    """The paper's telescope: a coin of its own for each chosen increment past the first, which is always taken."""
    p = np.asarray(p, float)
    drawn = np.array(list(product((0, 1), repeat=p.size)))
    return _on(h, chosen, np.where(drawn, p, 1 - p).prod(axis=1), drawn / p)


def single(h: Hierarchy, chosen: Sequence[int], q: Sequence[float]) -> Estimator:
    """The single-term telescope (Rhee and Glynn 2015): one increment is drawn, or none, over its probability."""
    q = np.asarray(q, float)
    return _on(h, chosen, np.append(q, max(0.0, 1 - q.sum())), np.vstack([np.diag(1 / q), np.zeros(q.size)]))


def roulette(h: Hierarchy, chosen: Sequence[int], p: Sequence[float]) -> Estimator:
    """Russian roulette (McLeish 2011; Rhee and Glynn 2015): all increments up to a random N, over p_k = P(N >= k).

    One uniform for all levels, B_k = [U < p_k], is the same estimator: that is the paper's telescope with shared draws.
    """
    p = np.asarray(p, float)
    if (np.diff(p) > 0).any():
        raise ValueError(f"P(N >= k) falls with k; got {p.tolist()}")
    survives = np.tril(np.ones((p.size + 1, p.size)), -1)
    return _on(h, chosen, -np.diff([1.0, *p, 0.0]), survives / p)


def average(estimator: Estimator, n: int) -> Estimator:
    """The mean of n independent draws at one point; a level that several of them need is evaluated once."""
    probability, coefficients = estimator.probability, estimator.coefficients
    for _ in range(n - 1):
        sums = (coefficients[:, None] + estimator.coefficients[None]).reshape(-1, coefficients.shape[1])
        both = np.outer(probability, estimator.probability).ravel()
        _, first, where = np.unique(np.round(sums, 9), axis=0, return_index=True, return_inverse=True)
        probability, coefficients = np.bincount(where.ravel(), both), sums[first]
    return Estimator(estimator.h, probability, coefficients / n)


def _on(h, chosen, probability, drawn) -> Estimator:
    """Coefficients of a telescope on some of the levels: an increment between two chosen levels is that of all in between."""
    at = [h.levels.index(k) for k in chosen]
    coefficients = np.zeros((len(drawn), len(h.levels)))
    coefficients[:, : at[0] + 1] = 1.0
    for i, (low, high) in enumerate(pairwise(at)):
        coefficients[:, low + 1 : high + 1] = drawn[:, i : i + 1]
    keep = probability > 0
    return Estimator(h, probability[keep], coefficients[keep])


# --- their cheapest probabilities ------------------------------------------------------------------------------


def cheapest(kind: Callable, h: Hierarchy, finest: int, sigma: float, gram: np.ndarray) -> Estimator:
    """The cheapest estimator of a kind with mean A_finest and variance at most sigma^2, given the increments' gram.

    Which levels to use is tried out over all subsets. On one of them, with increments of squared norm v_i and price c_i,
    independent and roulette have p_i ~ sqrt(w_i/c_i) (w_i = v_i; for roulette v_i and twice the products with all
    finer increments), the single term q_i ~ sqrt(v_i/(c_i + nu)) with nu >= 0 so that they sum to at most one.
    """
    end = h.levels.index(finest)
    best = fixed(h, finest)
    for size in range(1, end + 1):
        for coarse in combinations(h.levels[:end], size):
            chosen = (*coarse, finest)
            p = _probabilities(kind, h, chosen, sigma**2, gram)
            if p is not None:
                rival = kind(h, chosen, p)
                if rival.expected_cost() < best.expected_cost():
                    best = rival
    return best


def _probabilities(kind, h, chosen, variance, gram) -> np.ndarray | None:
    """The best probabilities on the chosen levels; None where this kind cannot have so small a variance on them."""
    at = [h.levels.index(k) for k in chosen]
    merge = np.zeros((len(at) - 1, len(h.levels)))
    for row, (low, high) in zip(merge, pairwise(at), strict=True):
        row[low + 1 : high + 1] = 1.0
    g = merge @ gram @ merge.T
    v = np.maximum(np.diag(g), 1e-300)
    cost = np.array([float(h.cost(k)) for k in chosen])
    pairs = cost[1:] + np.where(np.arange(cost.size - 1) > 0, cost[:-1], 0.0)  # the always-evaluated level is known
    if kind is independent:
        return water_filling(v, pairs, variance)
    if kind is single:
        return _single_term(v, pairs, variance + g.sum())
    w = v + 2 * np.triu(g, 1).sum(axis=1)
    if (w <= 0).any():
        return None
    p = np.sqrt(w / cost[1:]) * np.sqrt(w * cost[1:]).sum() / (variance + w.sum())
    return p if p[0] <= 1 and (np.diff(p) <= 0).all() else None


def _single_term(v, price, second) -> np.ndarray | None:
    """argmin sum q_i price_i  subject to  sum v_i/q_i <= second  and  sum q_i <= 1."""

    def at(nu):
        return np.sqrt(v / (price + nu)) * np.sqrt(v * (price + nu)).sum() / second

    if np.sqrt(v).sum() ** 2 > second:
        return None
    low, high = 0.0, 0.0
    while at(high).sum() > 1 and high < 1e12 * price.max():
        low, high = high, 4 * high + price.max()
    for _ in range(60 if high else 0):
        middle = (low + high) / 2
        low, high = (low, middle) if at(middle).sum() <= 1 else (middle, high)
    q = at(high)
    return q / max(1.0, q.sum())


# --- runs ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Arena:
    """A problem to race on: levels, start, and the loss that judges, for many iterates at once (one a row).

    `batch(levels, ys)` evaluates several levels at several points, (levels, points, d): the same values as the
    hierarchy's, spent more cheaply. `proximal(ys, step)` handles a term that is not part of the gradients.
    """

    h: Hierarchy
    start: np.ndarray
    loss: Callable[[np.ndarray], np.ndarray]
    beta: float
    mu: float
    batch: Callable[[Sequence[int], np.ndarray], np.ndarray] | None = None
    proximal: Callable[[np.ndarray, float], np.ndarray] | None = None

    def gradients(self, levels: Sequence[int], ys: np.ndarray) -> np.ndarray:
        if self.batch is not None:
            return self.batch(levels, ys)
        return np.array([[self.h.evaluate(k, y) for y in ys] for k in levels])

    def increments(self, points: np.ndarray) -> np.ndarray:
        """The inner products of the increments, averaged over some points (rows)."""
        values = self.gradients(self.h.levels, np.atleast_2d(points))
        steps = np.diff(values, axis=0, prepend=0.0)
        return np.einsum("ipd,jpd->ij", steps, steps) / values.shape[1]


Stages = Sequence[tuple[int, Estimator]]


def descend(
    arena: Arena,
    stages: Stages,
    eta: float,
    seeds: Sequence[int] = (0,),
    accelerated: bool = False,
    max_cost: float = np.inf,
) -> tuple[np.ndarray, np.ndarray]:
    """Descent with the estimators of some stages: prices (seeds, steps), losses (seeds, steps, 2) of last and average.

    Plain: y <- y - eta g(y), averaged with weights growing as in Proposition 2. Accelerated: similar triangles,
    restarted at each stage; last iterate only. Ends when every seed has paid `max_cost`.
    """
    y = np.tile(np.asarray(arena.start, float), (len(seeds), 1))
    out, mass, growth = y.copy(), 0.0, 1 / (1 - eta * arena.mu / 2)
    paid, limit = np.zeros(len(seeds)), FAR * float(arena.loss(y[:1])[0])
    costs, losses = [], []
    generators = [np.random.default_rng(seed) for seed in seeds]
    for steps, estimator in stages:
        drawn = np.array([estimator.indices(steps, rng) for rng in generators])
        weights, prices = estimator.weights, estimator.prices
        z, total = y, 0.0
        for t in range(steps):
            w = weights[drawn[:, t]]
            used = np.flatnonzero(w.any(axis=0))
            alpha = eta * (t + 1) if accelerated else eta
            share = alpha / (total + alpha) if accelerated else 1.0
            total += alpha
            x = y + share * (z - y) if accelerated else y
            values = arena.gradients([arena.h.levels[i] for i in used], x)
            z = (z if accelerated else y) - alpha * np.einsum("sn,nsd->sd", w[:, used], values)
            if arena.proximal is not None:
                z = arena.proximal(z, alpha)
            if accelerated:
                y = y + share * (z - y)
                out = y
            else:
                mass = 1.0 + mass / growth
                out = out + (y - out) / mass
                y = z
            paid = paid + prices[drawn[:, t]]
            found = arena.loss(np.concatenate([y, out]))
            costs.append(paid)
            losses.append(found.reshape(2, -1).T)
            if paid.min() >= max_cost or not found.max() < limit:
                return np.array(costs).T, np.array(losses).transpose(1, 0, 2)
    return np.array(costs).T, np.array(losses).transpose(1, 0, 2)


def coarse_to_fine(h: Hierarchy, levels: Sequence[int], first: int, ratio: float, steps: int) -> Iterator:
    """Deterministic refinement: `first` steps on the coarsest level, `ratio` times as many on each next, then the finest."""
    for i, k in enumerate(levels[:-1]):
        yield max(1, round(first * ratio**i)), fixed(h, k)
    yield steps, fixed(h, levels[-1])


def scheduled(kind, h: Hierarchy, gram, sigma: float, bias: float, length: int, stages: int, ratio=0.5) -> Iterator:
    """Proposition 2 as a ladder of stages: the noise falls by sqrt(ratio) a stage, and the finest level with it.

    A stage uses the coarsest level beyond which the increments amount to at most `bias` times its noise.
    """
    tail = np.sqrt([gram[i:, i:].sum() for i in range(1, len(h.levels))] + [0.0])
    for j in range(stages):
        noise = sigma * ratio ** (j / 2)
        finest = h.levels[int(np.argmax(tail <= bias * noise))]
        yield length, cheapest(kind, h, finest, noise, gram)


def conjugate_gradients(arena: Arena, stages: Stages) -> tuple[np.ndarray, np.ndarray]:
    """Conjugate gradients (Hestenes and Stiefel 1952) on affine gradients without noise, restarted at each stage.

    Charged two evaluations to begin a stage, at the iterate and at the origin (one if they agree), and one an iteration.
    """
    y, paid, costs, losses = np.array(arena.start, float), 0.0, [], []
    for iterations, estimator in stages:
        at, price = _noiseless(arena, estimator)
        zero = at(np.zeros_like(y))
        paid += price * (2 if y.any() else 1)
        residual = -at(y)
        direction = residual
        for _ in range(iterations):
            square = float(residual @ residual)
            moved = at(direction) - zero
            curvature = float(direction @ moved)
            if curvature <= 0 or square == 0:  # nothing left to gain on this level, to rounding
                break
            y = y + square / curvature * direction
            residual = residual - square / curvature * moved
            direction = residual + float(residual @ residual) / square * direction
            paid += price
            costs.append(paid)
            losses.append(float(arena.loss(y[None])[0]))
    return np.array(costs)[None], np.array(losses)[None, :, None]


def lbfgs(arena: Arena, objective: Callable, stages: Stages) -> tuple[np.ndarray, np.ndarray]:
    """L-BFGS (scipy's) without noise, warm started at each stage; `objective(level, y)` is the loss of a level.

    Every evaluation of the loss with its gradient is charged a gradient's price, those of the line search too.
    """
    from scipy.optimize import minimize

    y, paid, costs, losses = np.array(arena.start, float), 0.0, [], []

    def look(x):
        costs.append(paid)
        losses.append(float(arena.loss(x[None])[0]))

    for iterations, estimator in stages:
        at, price = _noiseless(arena, estimator)
        terms = [(k, w) for k, w in zip(arena.h.levels, estimator.weights[0], strict=True) if w]

        def both(x, at=at, price=price, terms=terms):
            nonlocal paid
            paid += price
            return sum(w * objective(k, x) for k, w in terms), at(x)

        options = {"maxiter": iterations, "ftol": 0.0, "gtol": 1e-14, "maxcor": 20}
        y = minimize(both, y, jac=True, method="L-BFGS-B", callback=look, options=options).x
    return np.array(costs)[None], np.array(losses)[None, :, None]


def _noiseless(arena, estimator):
    """The gradient of an estimator with one outcome, and its price."""
    if estimator.probability.size != 1:
        raise ValueError("this method needs the same gradient at every call: give fixed(...) or extrapolated(...)")
    used = np.flatnonzero(estimator.weights[0])
    levels, weights = [arena.h.levels[i] for i in used], estimator.weights[0, used]
    return lambda y: weights @ arena.gradients(levels, y[None])[:, 0], float(estimator.prices[0])


def hindsight(runs: Iterator[tuple[np.ndarray, np.ndarray]], targets: Sequence[float]) -> np.ndarray:
    """The best of several settings at each target, by its median price: quartiles over seeds, (3, targets)."""
    best = np.full((3, len(targets)), np.inf)
    for costs, losses in runs:
        found = judge(costs, losses, targets)
        better = found[1] < best[1]
        best[:, better] = found[:, better]
    return best
