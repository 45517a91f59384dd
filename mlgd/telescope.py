"""The randomized telescope (the paper's Proposition 1): one dial, accuracy, becomes two, bias and
variance.

    sum over levels k of  B_k / p_k (A_k - A_{k-}),   B_k ~ Bernoulli(p_k) independent,

has mean A_{k_max} whatever the probabilities, so its bias is the finest level's; its variance and
its price are exact sums. Levels drawn with probability one at the coarse end collapse to one
evaluation.
"""

import math
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from .hierarchy import Hierarchy, LevelError, by_level, ladder, positive


def regime(gamma: float) -> str:
    """'ETMC', 'MC' or 'HTMC': easier than, at, or harder than Monte Carlo."""
    return "MC" if gamma == 2 else ("HTMC" if gamma > 2 else "ETMC")


@contextmanager
def within_floats(what: str) -> Iterator[None]:
    """Refuses numbers so extreme that what is computed of them is none, in one sentence."""
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
    except ArithmeticError as error:
        raise LevelError(
            f"{what}: its numbers leave the range of floats ({error}); state the problem in other "
            "units, or ask for less"
        ) from error


# one sample: its value, what it cost, and the levels evaluated for it
Draw = namedtuple("Draw", "value cost levels")


@dataclass(frozen=True, init=False, eq=False)
class Telescope:
    """The estimator of the paper's Proposition 1 on some levels of a hierarchy.

    `probabilities`: a sequence for the first levels, or a mapping {level: p} over any of them; a
    level left out is bridged, so that `h` becomes the sub-ladder and an increment reaches back to
    the level used before.

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
    prefix: int | None  # the finest of the levels always drawn, evaluated once for all of them
    random: np.ndarray  # the probabilities of the others, past the prefix

    def __init__(self, h: Hierarchy, probabilities: Sequence[float] | Mapping[int, float]):
        given = by_level("probability", probabilities, ladder(h).levels)
        for k, q in given.items():
            if q > 1:
                raise ValueError(f"a probability is at most 1; got {q!r} at level {k}")
        levels, p = tuple(given), np.array([*given.values()])
        p.flags.writeable = False
        always = int(np.argmin(np.append(p, 0.0) == 1))
        h = h if levels == h.levels else h.only(levels)
        prefix = levels[always - 1] if always else None
        vars(self).update(h=h, levels=levels, p=p, prefix=prefix, random=p[always:], _recipes={})

    # --- exact sums ---

    def mean(self, y: np.ndarray) -> np.ndarray:
        """The exact mean: the increments telescope to the finest level."""
        return self.h.value(self.levels[-1], y)

    def variance(self, y: np.ndarray) -> float:
        """The exact variance `E||f~ - E f~||^2`, the sum of `(1/p_k - 1) ||A_k - A_{k-}||^2`."""
        free = [(k, q) for k, q in zip(self.levels, self.p.tolist(), strict=True) if q < 1]
        return float(sum((1 / q - 1) * float(np.sum(self.h.step(k, y) ** 2)) for k, q in free))

    def expected_cost(self) -> float:
        """What `draw` charges on average; the prefix and what two increments need is paid once."""
        first, p = max(0, self.p.size - self.random.size - 1), [*self.p.tolist(), 0.0]
        used = [a + b - a * b for a, b in zip(p[first:-1], p[first + 1 :], strict=True)]
        return sum(q * self.h.cost(k) for k, q in zip(self.levels[first:], used, strict=True))

    # --- samples ---

    def draw(self, y: np.ndarray, rng=None) -> Draw:
        """One sample at y."""
        drawn = np.random.default_rng(rng).random(self.random.size) < self.random
        levels, _, cost = self._recipe(drawn)
        buy = lambda levels, y: [self.h.value(k, y) for k in levels]  # noqa: E731
        return Draw(self.combine(drawn, buy, y), cost, levels)

    def combine(self, drawn: Sequence[bool], buy: Callable, y: np.ndarray) -> np.ndarray:
        """The value for given outcomes B_k past the prefix, made of buy(levels, y)."""
        levels, weights, _ = self._recipe(drawn)
        values = buy(levels, y)
        for weight, value in zip(weights, values, strict=True):
            value *= weight
        for value in values[1:]:
            values[0] += value
        return values[0] if values else np.zeros(np.shape(y))

    def _recipe(self, drawn: Sequence[bool]) -> tuple[tuple[int, ...], tuple[float, ...], float]:
        """The levels that outcomes need, coarsest first, the weights of their values, the price."""
        key = bytes(drawn)
        if key not in self._recipes:  # remembered, for speed
            always = self.p.size - self.random.size
            weights = {always - 1: 1.0} if always else {}
            for i in (np.flatnonzero(drawn) + always).tolist():
                if i:
                    weights[i - 1] = weights.get(i - 1, 0.0) - 1 / float(self.p[i])
                weights[i] = 1 / float(self.p[i])
            levels = tuple(self.levels[i] for i in weights)
            price = float(sum(map(self.h.cost, levels)))
            self._recipes[key] = levels, tuple(weights.values()), price
        return self._recipes[key]

    # --- choices of the probabilities ---

    @classmethod
    def for_accuracy(
        cls, h: Hierarchy, delta: float, sigma: float, gamma: float, coarsest: float = 1.0
    ) -> "Telescope":
        """The paper's closed form: bias at most delta, variance at most sigma^2, with
        p_k = min(C acc_k^(1+gamma/2), 1).

        `coarsest` is the least probability of the coarsest level, whose value is not an increment
        and may be unbounded: drawn always, the variance is at most sigma^2 at every point; with 0.0
        it is drawn as printed, like the others. sigma = 0 is the fixed level. On a ladder that is
        not dyadic the same shape is scaled to the same guarantee.
        """
        sigma, gamma = min(positive("sigma", sigma, zero=True), LOUD), positive("gamma", gamma)
        if not 0 <= coarsest <= 1:
            raise ValueError(f"coarsest, a probability, must lie in [0, 1]; got {coarsest!r}")
        levels = ladder(h).levels[: h.levels.index(h.level_for(delta)) + 1]
        accuracy = np.array([h.accuracy(k) for k in levels])
        p, free = np.ones(len(levels)), int(coarsest == 1)  # a certain level makes no variance
        if sigma > 0 and len(levels) > free:
            scale = _scale(np.array(levels, float), accuracy, free, sigma, gamma)
            p[free:] = np.minimum(scale * accuracy[free:] ** (1 + gamma / 2), 1.0)
            p[0] = max(p[0], coarsest)
        return cls(h, p)

    @classmethod
    def cheapest(
        cls, h: Hierarchy, sigma: float, increments: Sequence[float] | np.ndarray
    ) -> "Telescope":
        """The cheapest levels and probabilities with mean the last level given and variance at
        most sigma^2; what is least is `expected_cost()`, that is what `draw` charges.

        `increments` are the norms `||A_k - A_{k-}||` of the first levels, in their order (the first
        is not used: the coarsest level kept is drawn always), and a difference across levels left
        out is bounded by their sum; or a square array of all norms `||A_j - A_i||`.

        >>> h = Hierarchy(lambda k, y: y, cost=lambda k: 2.0**k, levels=range(1, 7))
        >>> t = Telescope.cheapest(h, 1 / 16, [3 * 2.0**-k for k in range(1, 7)])
        >>> t.levels, t.p.round(2), round(t.expected_cost(), 2)
        ((5, 6), array([1.  , 0.36]), 55.04)
        """
        norms, sigma = np.asarray(increments, float), min(positive("sigma", sigma, zero=True), LOUD)
        n = len(norms) if norms.ndim else 0
        shaped = norms.shape in ((n,), (n, n)) and 0 < n <= len(ladder(h).levels)
        if not (shaped and np.isfinite(norms).all() and (norms >= 0).all()):
            raise ValueError(
                "increments: one finite norm for each of the first levels, or a square array of "
                f"the norms between any two of them; got {increments!r} for the levels {h.levels}"
            )
        if norms.ndim == 1:
            norms = np.cumsum(np.triu(np.tile(norms, (n, 1)), 1), axis=1)  # no differences
        cost, last = np.array([h.cost(k) for k in h.levels[:n]], float), n - 1
        squared, variance = np.maximum(norms**2, FAINT * sigma**2), sigma**2
        # levels are found by adding or leaving out one, from the best few choices so far, beginning
        # with even strides, until nothing is gained; the tests compare with brute force
        known = {(last,): (float(cost[last]), np.ones(1))}
        fresh = {(*range(i, last, gap), last) for i in range(last) for gap in (*STRIDES, n)}
        while fresh and variance > 0:
            chains = sorted(fresh)
            prices, p = _filled(chains, cost, squared, variance)
            known |= dict(zip(chains, zip(prices.tolist(), p, strict=True), strict=True))
            best = sorted(known, key=lambda chain: known[chain][0])[:KEPT]
            near = {tuple(sorted({*chain} ^ {k})) for chain in best for k in range(last)}
            fresh = near - known.keys()
        chain = min(known, key=lambda chain: known[chain][0])
        p = known[chain][1].tolist()  # padded
        return cls(h, {h.levels[i]: q for i, q in zip(chain, p, strict=False)})


def _scale(levels, accuracy, free: int, sigma: float, gamma: float) -> float:
    """The C of p_k = min(C acc_k^(1+gamma/2), 1): the closed form, off a dyadic ladder solved."""
    dyadic = np.allclose(accuracy, 2.0**-levels, rtol=1e-9, atol=0.0)
    if dyadic and (np.diff(levels) == 1).all():
        from . import formulas  # here, because sympy is slow to load

        # n = 1 draws every level where sigma <= 3 delta
        known = {"sigma": sigma, "delta": float(accuracy[-1]), "gamma": gamma}
        known["n"] = max(math.ceil(math.log2(sigma / (3 * known["delta"]))), 1)
        return formulas.value(formulas.SCALE[regime(gamma)], **known)
    squared = ((accuracy + np.append(2 * accuracy[:1], accuracy[:-1])) ** 2)[free:]
    shape = np.maximum(accuracy[free:] ** (1 + gamma / 2), TINY)
    # by the first level that is left to chance; those before it would pass one, and make no noise
    noise, most = (np.cumsum(x[::-1])[::-1] for x in (squared / shape, squared))
    scale = noise / (sigma**2 + most)
    return float(scale[np.argmax(scale * shape <= 1)])


# --- the cheapest telescope ---

TINY = 1e-300  # of an exact level, whose probability must not vanish
FAINT, LOUD = 1e-100, 1e150  # squared norms over the variance, at least; a noise, at most
ROUNDS = 10
STRIDES = (1, 2, 3)  # to begin with: where errors alternate, odd and even levels are rival valleys
KEPT = 4  # choices of levels whose neighbours are tried: one alone may lead nowhere


def _filled(
    chains: list[tuple[int, ...]], cost: np.ndarray, squared: np.ndarray, variance: float
) -> tuple[np.ndarray, np.ndarray]:
    """The price of each chain of levels, and its cheapest probabilities, padded with zeros.

    On the levels 0, 1, ..., m a telescope costs c_0 + sum over i >= 1 of q_i (c_{i-1} (1 - q_{i-1})
    + c_i), because an evaluation that two drawn increments need is paid once, and has variance sum
    (1/q_i - 1) v_i. In an optimum no q_i past the first is one: everything below level i could be
    left out, for less money and less noise; so a chain where one passes one has an infinite price.
    The stationary point is found by water-filling with the marginal prices c_{i-1} (1 - q_{i-1}) +
    c_i (1 - q_{i+1}), repeated; of the iterates that meet the variance the best may be used.
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
        noise = (v / np.where(real, q[:, 1:-1], 1.0) - v).sum(axis=1)  # sums may cancel
        better = (total < best) & (q <= 1).all(axis=1) & (noise <= variance * (1 + 1e-9))
        best[better], best_q[better] = total[better], q[better, :-1]
        q = np.minimum(q, 1.0)
    return best, best_q
