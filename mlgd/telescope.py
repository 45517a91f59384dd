"""The randomized telescope (the paper's Proposition 1): one dial, accuracy, becomes two, bias and
variance.

    sum over levels k of  B_k / p_k (A_k - A_{k-}),   B_k ~ Bernoulli(p_k) independent,

has mean A_{k_max} whatever the probabilities, so its bias is the finest level's; its variance and
its price are exact sums. Levels drawn with probability one at the coarse end, the *prefix*, come
down to one evaluation of the finest of them.

`Telescope` is the estimator: its exact sums, its samples. Two of its constructors choose the
probabilities: `for_accuracy` by the paper's closed form, or the same shape solved for a ladder that
is not dyadic; `cheapest` by price, the levels by a search among chains, and on each chain the
probabilities by water-filling (the end of this file).
"""

import math
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from .hierarchy import LARGEST, Hierarchy, LevelError, by_level, ladder, positive

# of a probability, and of the square of a norm: none of them may vanish
TINY = 1e-300
# of a squared norm over the variance, at least: an increment that vanishes is almost free
FAINT = 1e-100
# a noise, at most: its square must be a float
LOUD = 1e150


LEAST = 1e-150  # probability: a value divided by it is an ordinary float


def regime(gamma: float) -> str:
    """'ETMC', 'MC' or 'HTMC': easier than, at, or harder than Monte Carlo."""
    if gamma == 2:
        return "MC"
    return "HTMC" if gamma > 2 else "ETMC"


@contextmanager
def within_floats(what: str) -> Iterator[None]:
    """Refuses numbers so extreme that what is computed of them is none, in one sentence."""
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
    except ArithmeticError as error:
        raise LevelError(
            f"{what}: its numbers leave the range of floats ({error}); state the problem "
            "in other units, or ask for less"
        ) from error


Probabilities = Sequence[float] | Mapping[int, float]


def sound(name: str, number: float) -> float:
    """A number that is positive and finite, as it would be without rounding."""
    if not 0 < number < math.inf:
        raise FloatingPointError(f"{name} is {number:g}")
    return number


# one sample: its value, what it cost, and the levels evaluated for it
Draw = namedtuple("Draw", "value cost levels")

# how outcomes of the coins become a value: the sum over `levels` of weight times value
Recipe = namedtuple("Recipe", "levels weights price")


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
    # the finest of the levels always drawn, evaluated once for all of them
    prefix: int | None
    # the probabilities of the others, past the prefix
    random: np.ndarray

    def __init__(self, h: Hierarchy, probabilities: Probabilities):
        given = by_level("probability", probabilities, ladder(h).levels)
        for k, q in given.items():
            if q < LEAST:
                raise ValueError(
                    f"a probability is at least {LEAST:g}, since values are divided by it; got "
                    f"{q!r} at level {k}: leave that level out"
                )
            if q > 1:
                raise ValueError(f"a probability is at most 1; got {q!r} at level {k}")
        levels = tuple(given)
        p = np.array([*given.values()])
        p.flags.writeable = False  # its recipes are made of them
        always = 0
        while always < p.size and p[always] == 1:
            always += 1
        self._set("h", h if levels == h.levels else h.only(levels))
        self._set("levels", levels)
        self._set("p", p)
        self._set("prefix", levels[always - 1] if always else None)
        self._set("random", p[always:])
        self._set("_recipes", {})

    def _set(self, name: str, value) -> None:
        """Set a field: a telescope is frozen for everyone else."""
        object.__setattr__(self, name, value)

    @property
    def always(self) -> int:
        """How many levels are in the prefix."""
        return self.p.size - self.random.size

    # --- exact sums ---

    def mean(self, y: np.ndarray) -> np.ndarray:
        """The exact mean: the increments telescope to the finest level."""
        return self.h.value(self.levels[-1], y)

    def variance(self, y: np.ndarray) -> float:
        """The exact variance `E||f~ - E f~||^2`, the sum of `(1/p_k - 1) ||A_k - A_{k-}||^2`."""
        total = 0.0
        for k, q in zip(self.levels, self.p.tolist(), strict=True):
            if q < 1:
                step = self.h.step(k, y)
                with np.errstate(over="ignore"):  # it may well be infinite
                    squared = float(np.sum(step**2))
                total += (1 / q - 1) * squared
        return total

    def expected_cost(self) -> float:
        """What `draw` charges on average; the prefix and what two increments need is paid once."""
        p = [*self.p.tolist(), 0.0]
        total = 0.0
        for i in range(max(0, self.always - 1), self.p.size):
            own = p[i]
            next_one = p[i + 1]  # its increment needs this level too
            used = own + next_one - own * next_one
            total += used * float(self.h.cost(self.levels[i]))
        return total

    # --- samples ---

    def draw(self, y: np.ndarray, rng=None) -> Draw:
        """One sample at y."""
        coins = np.random.default_rng(rng).random(self.random.size)
        drawn = coins < self.random
        recipe = self._recipe(drawn)
        value = self.combine(drawn, self._values, y)
        return Draw(value, recipe.price, recipe.levels)

    def draws(
        self, rng: np.random.Generator, number: int, one: Callable, several: Callable
    ) -> list[Callable]:
        """So many draws as functions of the point, a run's hot path; what they need is bought by
        one(level, y, fresh=...) or several(levels, y)."""
        always = partial(one, self.prefix, fresh=False)
        hits = rng.random((number, self.random.size)) < self.random
        alone = ~hits.any(axis=1) & (self.prefix is not None)
        draws = []
        for only_always, hit in zip(alone.tolist(), hits, strict=True):
            draws.append(always if only_always else partial(self.combine, hit, several))
        return draws

    def combine(self, drawn: Sequence[bool], buy: Callable, y: np.ndarray) -> np.ndarray:
        """The value for given outcomes B_k past the prefix, made of buy(levels, y)."""
        recipe = self._recipe(drawn)
        values = buy(recipe.levels, y)
        for weight, value in zip(recipe.weights, values, strict=True):
            value *= weight
        for value in values[1:]:
            values[0] += value
        return values[0] if values else np.zeros(np.shape(y))

    def _values(self, levels: Sequence[int], y: np.ndarray) -> list[np.ndarray]:
        return [self.h.value(k, y) for k in levels]

    def _recipe(self, drawn: Sequence[bool]) -> Recipe:
        """What outcomes need, coarsest level first; remembered, because runs toss many coins."""
        key = bytes(drawn)
        if key not in self._recipes:
            self._recipes[key] = self._cooked(drawn)
        return self._recipes[key]

    def _cooked(self, drawn: Sequence[bool]) -> Recipe:
        """The prefix with weight one, and of each increment drawn both of its levels."""
        weights = {}  # by the index of the level
        if self.always:
            weights[self.always - 1] = 1.0
        for i in (np.flatnonzero(drawn) + self.always).tolist():
            weight = 1 / float(self.p[i])
            if i:
                weights[i - 1] = weights.get(i - 1, 0.0) - weight
            weights[i] = weight
        levels = tuple(self.levels[i] for i in weights)
        price = sum(float(self.h.cost(k)) for k in levels)  # integers of numpy overflow
        return Recipe(levels, tuple(weights.values()), float(price))

    # --- choices of the probabilities ---

    @classmethod
    def for_accuracy(
        cls,
        h: Hierarchy,
        delta: float,
        sigma: float,
        gamma: float,
        coarsest: float = 1.0,
    ) -> "Telescope":
        """The paper's closed form: bias at most delta, variance at most sigma^2, with
        p_k = min(C acc_k^(1+gamma/2), 1).

        `coarsest` is the least probability of the coarsest level, whose value is not an increment
        and may be unbounded: drawn always, the variance is at most sigma^2 at every point; with 0.0
        it is drawn as printed, like the others. sigma = 0 is the fixed level. On a ladder that is
        not dyadic the same shape is scaled to the same guarantee.
        """
        sigma = min(positive("sigma", sigma, zero=True), LOUD)
        gamma = positive("gamma", gamma)
        if not 0 <= coarsest <= 1:
            needed = "coarsest, a probability, must lie in [0, 1]"
            raise ValueError(f"{needed}; got {coarsest!r}")
        finest = ladder(h).levels.index(h.level_for(delta))
        levels = h.levels[: finest + 1]
        p = np.ones(len(levels))
        free = 1 if coarsest == 1 else 0  # a level drawn always makes no variance
        if sigma > 0 and len(levels) > free:
            accuracy = np.array([h.accuracy(k) for k in levels])
            asked = f"a telescope of sigma = {sigma:g} for gamma = {gamma:g} on {h}"
            with within_floats(asked):
                shape = accuracy[free:] ** (1 + gamma / 2)
                if _is_dyadic(levels, accuracy):
                    scale = _closed_scale(accuracy[-1], sigma, gamma)
                else:
                    scale = _solved_scale(accuracy, shape, free, sigma)
                p[free:] = np.clip(scale * shape, TINY, 1.0)
            p[0] = max(p[0], coarsest)
        return cls(h, p)

    @classmethod
    def cheapest(
        cls,
        h: Hierarchy,
        sigma: float,
        increments: Sequence[float] | np.ndarray,
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
        sigma = min(positive("sigma", sigma, zero=True), LOUD)
        norms = _norms(ladder(h), increments)
        levels = h.levels[: len(norms)]
        variance = sigma**2
        if variance == 0:
            return cls(h, {levels[-1]: 1.0})
        cost = np.array([h.cost(k) for k in levels], float)
        with within_floats(f"the cheapest telescope of sigma = {sigma:g} on {h}"):
            squared = np.maximum(norms**2, FAINT * variance)
            chain, p = _cheapest_chain(cost, squared, variance)
        used = [levels[i] for i in chain]
        return cls(h, dict(zip(used, p, strict=True)))


# --- the closed form ---


def _is_dyadic(levels: Sequence[int], accuracy: np.ndarray) -> bool:
    """Whether levels follow each other and level k has the accuracy 2^-k."""
    levels = np.array(levels, float)
    if not np.allclose(accuracy, 2.0**-levels, rtol=1e-9, atol=0.0):
        return False
    return bool((np.diff(levels) == 1).all())


def _closed_scale(delta: float, sigma: float, gamma: float) -> float:
    """The paper's C of p_k = min(C 2^(-(1+gamma/2) k), 1)."""
    from . import formulas  # here, because sympy is slow to load

    delta = float(delta)
    wide = sound("sigma over delta", sigma / (3 * delta))
    between = math.ceil(math.log2(wide))  # levels between delta and sigma/3
    return formulas.value(
        formulas.SCALE[regime(gamma)],
        sigma=sigma,
        delta=delta,
        gamma=gamma,
        n=max(between, 1),  # one draws every level where sigma <= 3 delta
    )


def _solved_scale(
    accuracy: np.ndarray,
    shape: np.ndarray,
    free: int,
    sigma: float,
) -> float:
    """The C of p_k = min(C shape_k, 1) that makes the variance sigma^2 on any ladder.

    An increment is at most the sum of two accuracies, the coarsest level, whose value is none, is
    taken for three of its own. If level j is the first that is left to chance, the variance is the
    sum over k >= j of (1/(C shape_k) - 1) squared_k: solved for C, for every j. The levels before j
    would pass one, and make no noise.
    """
    before = np.append(2 * accuracy[:1], accuracy[:-1])
    squared = ((accuracy + before) ** 2)[free:]
    shape = np.maximum(shape, TINY)  # an exact level's accuracy may be next to nothing
    noise = _sums_to_the_end(squared / shape)
    saved = _sums_to_the_end(squared)
    scale = noise / (sigma**2 + saved)
    first = np.argmax(scale * shape <= 1)
    return float(scale[first])


def _sums_to_the_end(terms: np.ndarray) -> np.ndarray:
    """The sum of each term and all after it."""
    return np.cumsum(terms[::-1])[::-1]


# --- the cheapest telescope ---

# levels by their index, from coarse to fine
Chain = tuple[int, ...]

# of water-filling: prices that depend on the probabilities are updated so often
ROUNDS = 10
# to begin with every level, every second and every third: where errors alternate in sign, odd and
# even levels are rival valleys
STRIDES = (1, 2, 3)
# chains whose neighbours are tried: the best one alone may lead nowhere
KEPT = 4
# of a level's price, at least: a marginal price may be rounded to zero, or below it
LEAST_PRICE = 1e-12


def _norms(h: Hierarchy, increments: Sequence[float] | np.ndarray) -> np.ndarray:
    """The norms between any two levels, as given, or bounded by sums of increments."""
    norms = np.asarray(increments, float)
    n = len(norms) if norms.ndim else 0
    shaped = norms.shape in ((n,), (n, n))
    real = (
        (norms >= 0) & (norms <= LARGEST)
    ).all()  # so that sums and squares are finite
    if not (shaped and real and 0 < n <= len(h.levels)):
        raise ValueError(
            "increments: one finite norm for each of the first levels, or a square array "
            f"of the norms between any two of them; got {increments!r} for the levels "
            f"{h.levels}"
        )
    if norms.ndim == 2:
        return norms
    # row i, column j: the increments from i + 1 to j; no differences, which would cancel
    past = np.triu(np.tile(norms, (n, 1)), 1)
    return np.cumsum(past, axis=1)


def _cheapest_chain(
    cost: np.ndarray,
    squared: np.ndarray,
    variance: float,
) -> tuple[Chain, list[float]]:
    """Levels by their index, the last among them, and their probabilities, at the least price.

    Beginning with even strides, levels are added and left out one at a time, from the best few
    chains so far, until nothing is gained; the tests compare with brute force.
    """
    last = len(cost) - 1
    # {chain: (price, probabilities)}
    known = {(last,): (float(cost[last]), np.ones(1))}

    def price_of(chain: Chain) -> float:
        return known[chain][0]

    fresh = set()
    for first in range(last):
        for stride in (*STRIDES, last + 1):
            strided = range(first, last, stride)
            fresh.add((*strided, last))
    while fresh:
        chains = sorted(fresh)
        prices, p = _water_filled(chains, cost, squared, variance)
        for i, chain in enumerate(chains):
            known[chain] = float(prices[i]), p[i, : len(chain)]
        best = sorted(known, key=price_of)[:KEPT]
        fresh = _neighbours(best, last) - known.keys()
    chain = min(known, key=price_of)
    return chain, known[chain][1].tolist()


def _neighbours(chains: list[Chain], last: int) -> set[Chain]:
    """The chains with one level more or one less; the last is always kept."""
    found = set()
    for chain in chains:
        for k in range(last):
            changed = {*chain} ^ {k}
            found.add(tuple(sorted(changed)))
    return found


def _water_filled(
    chains: list[Chain],
    cost: np.ndarray,
    squared: np.ndarray,
    variance: float,
) -> tuple[np.ndarray, np.ndarray]:
    """The price of each chain of levels, and its cheapest probabilities, padded with zeros.

    On the levels 0, 1, ..., m a telescope costs c_0 + sum over i >= 1 of q_i (c_{i-1} (1 - q_{i-1})
    + c_i), because an evaluation that two drawn increments need is paid once, and has variance sum
    (1/q_i - 1) v_i. In an optimum no q_i past the first is one: everything below level i could be
    left out, for less money and less noise; so a chain where one passes one has an infinite price.
    The stationary point is found by water-filling, q_i = C sqrt(v_i / price_i), with the marginal
    prices c_{i-1} (1 - q_{i-1}) + c_i (1 - q_{i+1}), repeated; of the iterates that meet the
    variance the best may be used.
    """
    # a row per chain, padded to one length
    length = max(map(len, chains))
    index = np.full((len(chains), length), -1)
    for row, chain in zip(index, chains, strict=True):
        row[: len(chain)] = chain
    below = index[:, :-1]
    level = index[:, 1:]
    real = level >= 0
    v = np.where(real, squared[below, level], 0.0)
    coarse = cost[below]
    fine = cost[level]
    first = cost[index[:, 0]]

    q = np.zeros((len(chains), length + 1))  # with a zero after the last
    q[:, 0] = 1.0
    earlier = q[:, :-2]
    drawn = q[:, 1:-1]
    later = q[:, 2:]
    best_q = np.zeros((len(chains), length))
    best = np.full(len(chains), np.inf)
    # what leaves the range of floats is not better than anything
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for _ in range(ROUNDS):
            price = coarse * (1 - earlier) + fine * (1 - later)
            price = np.maximum(price, LEAST_PRICE * fine)
            price = np.where(real, price, 1.0)
            weight = np.sqrt(v * price).sum(axis=1)
            scale = weight / (variance + v.sum(axis=1))
            drawn[:] = scale[:, None] * np.sqrt(v / price)

            paid = coarse * (1 - earlier) + fine
            total = first + (drawn * paid).sum(axis=1)
            chance = np.where(real, drawn, 1.0)
            noise = (v / chance - v).sum(axis=1)  # term by term: sums would cancel
            allowed = noise <= variance * (1 + 1e-9)
            better = allowed & (q <= 1).all(axis=1) & (total < best)
            best[better] = total[better]
            best_q[better] = q[better, :-1]
            np.minimum(q, 1.0, out=q)
    return best, best_q
