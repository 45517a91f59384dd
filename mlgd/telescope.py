"""The randomized telescope (the paper's Proposition 1): one dial, accuracy, becomes two, a bias and a variance.

    sum over levels k of  B_k / p_k (A_k - A_{k-}),   B_k ~ Bernoulli(p_k) independent,

has mean A_{k_max} whatever the probabilities, so its bias is the finest level's; its variance and its price are
exact sums. Levels drawn with probability one at the coarse end collapse to one evaluation.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from .hierarchy import Hierarchy

RECIPES = 4096  # outcomes whose sums are remembered


@dataclass(frozen=True)
class Draw:
    """One sample of the telescope: its value, its price level by level, and what it cost in all."""

    value: np.ndarray
    paid: dict[int, float]

    @property
    def cost(self) -> float:
        return sum(self.paid.values())

    @property
    def levels(self) -> tuple[int, ...]:
        """The levels that were evaluated."""
        return tuple(sorted(self.paid))


@dataclass(frozen=True, init=False, eq=False)
class Telescope:
    """The estimator of the paper's Proposition 1 on some levels of a hierarchy, with a probability for each.

    `probabilities`: a sequence for the first levels, or a mapping {level: p} over any of them; a level left out is
    bridged, so that `h` becomes the sub-ladder and an increment reaches back to the level used before.

    >>> from mlgd.examples import biased
    >>> h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 4))
    >>> t = Telescope(h, [1.0, 0.5, 0.1])
    >>> t.mean(np.zeros(1)), round(t.variance(np.zeros(1)), 4), t.expected_cost()
    (array([0.125]), 0.2031, 94.4)
    >>> t.draw(np.zeros(1), rng=0).levels
    (1,)
    >>> Telescope(h, {1: 1.0, 3: 0.1}).expected_cost()
    59.2
    """

    h: Hierarchy
    levels: tuple[int, ...]
    p: np.ndarray

    def __init__(self, h: Hierarchy, probabilities: Sequence[float] | Mapping[int, float]):
        if not isinstance(probabilities, Mapping):
            given = np.asarray(probabilities, float).ravel().tolist()
            if not 0 < len(given) <= len(h.levels):
                raise ValueError(
                    f"probabilities: one for each of the first levels of {h.levels}, at least one; got {len(given)} "
                    "of them: shorten the list, or name the levels, {level: p}"
                )
            probabilities = dict(zip(h.levels, given, strict=False))
        levels = tuple(sorted(probabilities))
        if not levels or not {*levels} <= {*h.levels}:
            raise ValueError(
                f"probabilities must be given for levels among {h.levels}; got them for {levels}"
            )
        p = np.array([probabilities[k] for k in levels], float)
        for k, q in zip(levels, p.tolist(), strict=True):
            if not 0 < q <= 1:
                raise ValueError(f"probabilities must lie in (0, 1]; got {q!r} at level {k}")
        p.flags.writeable = False
        always = int(np.argmin(np.append(p, 0.0) == 1))
        h = h if levels == h.levels else h.only(levels)
        vars(self).update(h=h, levels=levels, p=p, _prefix=always, _recipes={})

    @property
    def prefix(self) -> int | None:
        """The finest level of the always-drawn prefix, evaluated once for all of it; None when there is none."""
        return self.levels[self._prefix - 1] if self._prefix else None

    @property
    def random(self) -> np.ndarray:
        """The probabilities of the levels past the prefix, those that are left to chance."""
        return self.p[self._prefix :]

    # --- exact sums ---

    def mean(self, y: np.ndarray) -> np.ndarray:
        """The exact mean, the sum of all increments (it telescopes to the finest level)."""
        return sum(
            (self.h.step(k, y) for k in self.levels[1:]), start=self.h.step(self.levels[0], y)
        )

    def variance(self, y: np.ndarray) -> float:
        """The exact variance E||f~ - E f~||^2, the sum of (1/p_k - 1) ||A_k - A_{k-}||^2."""
        free = [(k, q) for k, q in zip(self.levels, self.p.tolist(), strict=True) if q < 1]
        return float(sum((1 / q - 1) * float(np.sum(self.h.step(k, y) ** 2)) for k, q in free))

    def expected_cost(self) -> float:
        """The exact mean price of a draw: the prefix is one evaluation, and a level that two increments need is one."""
        return sum(self.expected_by_level().values())

    def expected_by_level(self) -> dict[int, float]:
        """What `draw` charges on average, level by level."""
        paid, p = {}, [*self.p.tolist(), 0.0]
        for i in range(max(0, self._prefix - 1), self.p.size):
            own, after = p[i], p[i + 1]  # its own increment was drawn, or the one above it
            paid[self.levels[i]] = (own + after - own * after) * self.h.cost(self.levels[i])
        return paid

    # --- samples ---

    def draw(self, y: np.ndarray, rng=None) -> Draw:
        """One sample at y."""
        return self.combine(y, np.random.default_rng(rng).random(self.random.size) < self.random)

    def outcomes(self, y: np.ndarray) -> Iterator[tuple[float, Draw]]:
        """Every possible draw with its probability, one for each subset of the levels past the prefix."""
        free = self.random
        for drawn in product((False, True), repeat=free.size):
            yield float(np.prod(np.where(drawn, free, 1 - free))), self.combine(y, drawn)

    def combine(
        self, y: np.ndarray, drawn: Sequence[bool], evaluate: Callable | None = None
    ) -> Draw:
        """The value for given outcomes B_k of the levels past the prefix; each level is evaluated at most once.

        `evaluate(levels, y)` returns the values at these levels; without it they are taken here.
        """
        levels, weights = self.recipe(drawn)
        values = evaluate(levels, y) if evaluate else [self.h.value(k, y) for k in levels]
        value = np.zeros_like(y, dtype=float)
        for weight, one in zip(weights, values, strict=True):
            value += weight * one
        return Draw(value, {k: float(self.h.cost(k)) for k in levels})

    def recipe(self, drawn: Sequence[bool]) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """The levels that these outcomes need, coarsest first, and their weights: the draw is sum of weight * A_k(y)."""
        drawn = np.asarray(drawn, bool)
        key = drawn.tobytes()
        if key not in self._recipes:
            weights = {self._prefix - 1: 1.0} if self._prefix else {}
            for i in (np.flatnonzero(drawn) + self._prefix).tolist():
                for j, sign in ((i - 1, -1.0), (i, 1.0)) if i else ((i, 1.0),):
                    weights[j] = weights.get(j, 0.0) + sign / float(self.p[i])
            if len(self._recipes) >= RECIPES:
                self._recipes.clear()
            used = sorted(weights)
            self._recipes[key] = tuple(self.levels[j] for j in used), tuple(map(weights.get, used))
        return self._recipes[key]

    # --- choices of the probabilities ---

    @classmethod
    def for_accuracy(
        cls, h: Hierarchy, delta: float, sigma: float, gamma: float, coarsest: float = 1.0
    ) -> "Telescope":
        """The paper's Proposition 1: bias at most delta, variance at most sigma^2, p_k = min(C acc_k^(1+gamma/2), 1).

        `coarsest` is the least probability of the coarsest level, whose value is not an increment and may be unbounded:
        drawn always, the variance is at most sigma^2 at every point; with 0.0 it is drawn as printed, like the others.
        sigma = 0 is the fixed level. On a ladder that is not dyadic the same shape is scaled to the same guarantee.
        """
        if not (delta > 0 and sigma >= 0 and gamma > 0):
            raise ValueError(
                f"need delta > 0, sigma >= 0, gamma > 0; got {delta!r}, {sigma!r}, {gamma!r}"
            )
        if not 0 <= coarsest <= 1:
            raise ValueError(f"coarsest must be a probability, in [0, 1]; got {coarsest!r}")
        levels = h.levels[: h.levels.index(h.level_for(delta)) + 1]
        accuracy = np.array([h.accuracy(k) for k in levels])
        p, free = np.ones(len(levels)), int(coarsest == 1)  # a certain level makes no variance
        if sigma > 0 and len(levels) > free:
            shape = accuracy ** (1 + gamma / 2)
            scale = _scale(levels, accuracy, shape, free, sigma, gamma)
            p[free:] = np.minimum(scale * shape[free:], 1.0)
            p[0] = max(p[0], coarsest)
        return cls(h, p)

    @classmethod
    def cheapest(
        cls, h: Hierarchy, sigma: float, increments: Sequence[float] | np.ndarray
    ) -> "Telescope":
        """The cheapest telescope with mean the last level given and variance at most sigma^2: levels and probabilities.

        It minimizes `expected_cost()`, what `draw` charges. `increments` are the norms ||A_k - A_{k-}|| of the first
        levels, in their order (the first is not used: the coarsest level kept is drawn always), and a difference across
        levels left out is bounded by their sum; or a square array of all norms ||A_j - A_i||, rows and columns in the
        order of the levels.

        >>> h = Hierarchy(lambda k, y: y, cost=lambda k: 2.0**k, levels=range(1, 7))
        >>> t = Telescope.cheapest(h, 1 / 16, [3 * 2.0**-k for k in range(1, 7)])
        >>> t.levels, t.p.round(2), round(t.expected_cost(), 2)
        ((5, 6), array([1.  , 0.36]), 55.04)
        """
        if not sigma >= 0:
            raise ValueError(f"sigma must be non-negative; got {sigma!r}")
        norms = np.asarray(increments, float)
        n = len(norms) if norms.ndim else 0
        shaped = norms.shape in ((n,), (n, n)) and 0 < n <= len(h.levels)
        if not (shaped and np.isfinite(norms).all() and (norms >= 0).all()):
            raise ValueError(
                "increments: one finite norm for each of the first levels, or a square array of the norms between "
                f"any two of them; got {increments!r} for the levels {h.levels}"
            )
        if norms.ndim == 1:
            norms = np.abs(np.cumsum(norms)[:, None] - np.cumsum(norms))
        cost = np.array([h.cost(k) for k in h.levels[:n]], float)
        chain, p, _ = optimum(cost, norms**2, float(sigma) ** 2)
        return cls(h, {h.levels[i]: q for i, q in zip(chain, p.tolist(), strict=True)})


def _scale(levels, accuracy, shape, free, sigma, gamma) -> float:
    """The constant C of p_k = min(C acc_k^(1+gamma/2), 1): the closed form on a dyadic ladder, else solved for."""
    delta, nominal = float(accuracy[-1]), 2.0 ** -np.array(levels, float)
    if np.allclose(accuracy, nominal, rtol=1e-9, atol=0.0) and (np.diff(levels) == 1).all():
        from . import formulas  # here, because sympy is slow to load

        # n = 1 draws every level where sigma <= 3 delta
        tail = max(math.ceil(math.log2(sigma / (3 * delta))), 1)
        known = {"sigma": sigma, "delta": delta, "gamma": gamma, "n": tail}
        return formulas.value(formulas.SCALE[formulas.regime(gamma)], **known)
    squared = ((accuracy + np.append(2 * accuracy[:1], accuracy[:-1])) ** 2)[free:]
    low, high = 0.0, 1.0 / shape[free:].min()
    for _ in range(200):
        middle = (low + high) / 2
        odds = 1 / np.minimum(np.maximum(middle * shape[free:], 1e-300), 1.0) - 1
        low, high = (low, middle) if (odds * squared).sum() <= sigma**2 else (middle, high)
    return high


# --- the cheapest telescope ---

TINY = 1e-300  # a vanishing increment still needs a positive probability, or the mean would be another level's
ROUNDS = 25
STRIDES = (1, 2, 3)  # to begin with: where errors alternate, odd and even levels are rival valleys
KEPT = 4  # choices of levels whose neighbours are tried: one alone may lead nowhere


def optimum(
    cost: np.ndarray, squared: np.ndarray, variance: float
) -> tuple[tuple[int, ...], np.ndarray, float]:
    """The cheapest telescope to the last level: the indices of the levels kept, their probabilities, the price.

    squared[i, j] is that of the increment from level i to level j > i. Levels are found by adding or leaving out one,
    from the best few so far, beginning with even strides, until nothing is gained; the tests compare with brute force.
    """
    last = cost.size - 1
    only = ((last,), np.ones(1), float(cost[last]))
    if variance <= 0:
        return only
    squared, known, best = np.maximum(squared, TINY), {(last,): only}, [only]
    fresh = {(*range(i, last, gap), last) for i in range(last) for gap in (*STRIDES, last)}
    while fresh:
        chains = sorted(fresh)
        for chain, q, price in zip(chains, *_filled(chains, cost, squared, variance), strict=True):
            known[chain] = chain, q[: len(chain)], float(price)
        best = sorted(known.values(), key=lambda found: found[2])[:KEPT]
        near = {tuple(sorted({*chain} ^ {k})) for chain, *_ in best for k in range(last)}
        fresh = near - known.keys()
    return best[0]


def _filled(
    chains: list[tuple[int, ...]], cost: np.ndarray, squared: np.ndarray, variance: float
) -> tuple[np.ndarray, np.ndarray]:
    """The cheapest probabilities of each chain (a row, padded with zeros) and its price, infinite where one passes one.

    On the levels 0, 1, ..., m a telescope costs c_0 + sum over i >= 1 of q_i (c_{i-1} (1 - q_{i-1}) + c_i), because an
    evaluation that two drawn increments need is paid once, and has variance sum (1/q_i - 1) v_i. In an optimum no q_i past the
    first is one: everything below level i could be left out, for less money and less noise. The stationary point is found
    by water-filling with the marginal prices c_{i-1} (1 - q_{i-1}) + c_i (1 - q_{i+1}), repeated; every iterate meets the
    variance, so the best of them may be used.
    """
    size = max(map(len, chains))
    at = np.array([[*c, *[-1] * (size - len(c))] for c in chains])
    before, here = at[:, :-1], at[:, 1:]
    real = here >= 0
    v, back, ahead = np.where(real, squared[before, here], 0.0), cost[before], cost[here]
    q = np.zeros((len(chains), size + 1))  # with a zero after the last
    q[:, 0] = 1.0
    best_q, best = np.zeros((len(chains), size)), np.full(len(chains), np.inf)
    for _ in range(ROUNDS):
        price = back * (1 - q[:, :-2]) + ahead * (1 - q[:, 2:])
        price = np.where(real, np.maximum(price, 1e-12 * ahead), 1.0)
        scale = np.sqrt(v * price).sum(axis=1) / (variance + v.sum(axis=1))
        q[:, 1:-1] = scale[:, None] * np.sqrt(v / price)
        total = cost[at[:, 0]] + (q[:, 1:-1] * (back * (1 - q[:, :-2]) + ahead)).sum(axis=1)
        better = (total < best) & (q <= 1).all(axis=1)
        best[better], best_q[better] = total[better], q[better, :-1]
        q = np.minimum(q, 1.0)
    return best_q, best
