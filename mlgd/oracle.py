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

from .hierarchy import Hierarchy, Need
from .ladders import bridges, optimum
from .lazy import formulas

RECIPES = 4096  # outcomes whose sums are remembered
ACCOUNTINGS = ("evaluated", "pairs", "paper")


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

    def mean(self, y: np.ndarray) -> np.ndarray:
        """The exact mean, the sum of all increments (it telescopes to the finest level)."""
        return sum(
            (self.h.step(k, y) for k in self.levels[1:]), start=self.h.step(self.levels[0], y)
        )

    def variance(self, y: np.ndarray) -> float:
        """The exact variance E||f~ - E f~||^2, the sum of (1/p_k - 1) ||A_k - A_{k-}||^2."""
        free = [(i, q) for i, q in enumerate(self.p.tolist()) if q < 1]
        return float(sum((1 / q - 1) * float(np.sum(self._sampled(i, y) ** 2)) for i, q in free))

    def _sampled(self, i: int, y: np.ndarray) -> np.ndarray:
        """What the i-th level is drawn for."""
        return self.h.step(self.levels[i], y)

    def expected_cost(self, accounting: str = "evaluated") -> float:
        """The exact mean price of a draw.

        evaluated: what `draw` charges. The always-drawn prefix is one evaluation, and a level that two
                   neighbouring increments need is evaluated once.
        pairs:     each drawn increment pays for its two levels (the paper's Appendix B.1.2).
        paper:     each drawn increment pays for its finer level only (the paper's Appendix B.1.1).
        """
        if accounting not in ACCOUNTINGS:
            raise ValueError(f"accounting must be one of {ACCOUNTINGS}; got {accounting!r}")
        if accounting == "evaluated":
            return sum(self.expected_by_level().values())
        price = self.h.cost if accounting == "paper" else self.h.step_cost
        return float(sum(q * price(k) for k, q in zip(self.levels, self.p, strict=True)))

    def expected_by_level(self) -> dict[int, float]:
        """What `draw` charges on average, level by level."""
        m, paid, parts = self._prefix, {}, [self.h.parts(k) for k in self.levels]
        for i in range(max(0, m - 1), self.p.size):
            own, k = float(self.p[i]), self.levels[i]
            after = float(self.p[i + 1]) if (False, k) in [*parts, ()][i + 1] else 0.0
            # a shared increment is an evaluation of its own, beside the value that the next one may need
            both = 0.0 if i >= m and (True, k) in parts[i] else own * after
            paid[k] = (own + after - both) * self.h.cost(
                k
            )  # not 1 - (1-own)(1-after): a rare level costs much
        return paid

    def draw(self, y: np.ndarray, rng=None) -> Draw:
        """One sample at y."""
        return self.combine(y, np.random.default_rng(rng).random(self.random.size) < self.random)

    def needs(self, drawn: Sequence[bool]) -> tuple[Need, ...]:
        """What a call with these outcomes evaluates, each once, coarsest first: (False, k) is A_k, (True, k) a shared increment."""
        wanted = {(False, self.prefix)} if self._prefix else set()
        wanted.update(
            part
            for i in np.flatnonzero(drawn)
            for part in self.h.parts(self.levels[self._prefix + i])
        )
        return tuple(sorted(wanted, key=lambda need: need[::-1]))

    def combine(
        self, y: np.ndarray, drawn: Sequence[bool], evaluate: Callable | None = None
    ) -> Draw:
        """The value for given outcomes B_k of the levels past the prefix; each level is evaluated at most once.

        `evaluate(needs, y)` returns the list of values that `needs` asks for; without it they are taken here.
        """
        needs, base, terms, paid = self._recipe(drawn)
        values = (
            [self.h.part(need, y) for need in needs] if evaluate is None else evaluate(needs, y)
        )
        value = np.zeros_like(y, dtype=float) if base is None else values[base].copy()
        for fine, coarse, p in terms:
            value += (values[fine] if coarse is None else values[fine] - values[coarse]) / p
        return Draw(value, dict(paid))

    def _recipe(self, drawn: Sequence[bool]) -> tuple:
        """What these outcomes need, where its sum begins, its terms (fine, coarse, p) by place, and its price by level."""
        drawn = np.asarray(drawn, bool)
        key = drawn.tobytes()
        if key not in self._recipes:
            needs, paid, terms = self.needs(drawn), {}, []
            place = {need: i for i, need in enumerate(needs)}
            for i in (np.flatnonzero(drawn) + self._prefix).tolist():
                *coarse, fine = (place[part] for part in self.h.parts(self.levels[i]))
                terms.append((fine, coarse[0] if coarse else None, float(self.p[i])))
            for _, k in needs:
                paid[k] = paid.get(k, 0.0) + float(self.h.cost(k))
            if len(self._recipes) >= RECIPES:
                self._recipes.clear()
            self._recipes[key] = needs, place.get((False, self.prefix)), terms, paid
        return self._recipes[key]

    def outcomes(self, y: np.ndarray) -> Iterator[tuple[float, Draw]]:
        """Every possible draw with its probability, one for each subset of the levels past the prefix."""
        free = self.random
        for drawn in product((False, True), repeat=free.size):
            yield float(np.prod(np.where(drawn, free, 1 - free))), self.combine(y, drawn)

    # --- choices of the probabilities ---

    @classmethod
    def for_accuracy(
        cls, h: Hierarchy, delta: float, sigma: float, gamma: float, coarsest: str = "always"
    ) -> "Telescope":
        """The paper's Proposition 1: bias at most delta, variance at most sigma^2, p_k = min(C acc_k^(1+gamma/2), 1).

        The coarsest level is drawn always, because its value is not an increment and may be unbounded;
        coarsest='paper' draws it like the others, sound only where ||A_{k_min}|| <= 3 * 2^-k_min. sigma = 0 is
        the fixed level. On a ladder that is not dyadic the same shape is scaled to the same guarantee.
        """
        if not (delta > 0 and sigma >= 0 and gamma > 0):
            raise ValueError(
                f"need delta > 0, sigma >= 0, gamma > 0; got {delta!r}, {sigma!r}, {gamma!r}"
            )
        if coarsest not in ("always", "paper"):
            raise ValueError(f"coarsest must be 'always' or 'paper'; got {coarsest!r}")
        levels = h.levels[: h.levels.index(h.level_for(delta)) + 1]
        accuracy = np.array([h.accuracy(k) for k in levels])
        shape, free = accuracy ** (1 + gamma / 2), 1 if coarsest == "always" else 0
        p = np.ones(len(levels))
        if sigma > 0 and len(levels) > free:
            p[free:] = np.minimum(
                _scale(levels, accuracy, shape, free, sigma, gamma) * shape[free:], 1.0
            )
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
        shaped = norms.ndim == 1 or (norms.ndim == 2 and norms.shape == (n, n))
        if not (
            shaped and 0 < n <= len(h.levels) and np.isfinite(norms).all() and (norms >= 0).all()
        ):
            raise ValueError(
                "increments: one finite norm for each of the first levels, or a square array of the norms between "
                f"any two of them; got {increments!r} for the levels {h.levels}"
            )
        levels = h.levels[:n]
        chain, p, _ = optimum(
            np.array([h.cost(k) for k in levels], float),
            bridges(norms) ** 2,
            float(sigma) ** 2,
            np.array([h.shares(k) for k in levels]),
        )
        return cls(h, {levels[i]: q for i, q in zip(chain, p.tolist(), strict=True)})


def _scale(levels, accuracy, shape, free, sigma, gamma) -> float:
    """The constant C of p_k = min(C acc_k^(1+gamma/2), 1): the closed form on a dyadic ladder, else solved for."""
    name, delta = formulas.regime(gamma), float(accuracy[-1])
    dyadic = np.allclose(accuracy * 2.0 ** np.array(levels, float), 1.0, rtol=1e-9, atol=0.0)
    if dyadic and (np.diff(levels) == 1).all():
        tail = max(
            math.ceil(math.log2(sigma / (3 * delta))), 1
        )  # at one, sigma <= 3 delta draws every level
        names = {
            "HTMC": {"delta": delta, "gamma": gamma},
            "MC": {"n": tail},
            "ETMC": {"gamma": gamma},
        }[name]
        return formulas.value(formulas.SCALE[name], sigma=sigma, **names)
    squared = ((accuracy + np.append(2 * accuracy[:1], accuracy[:-1])) ** 2)[free:]
    low, high = 0.0, 1.0 / shape[free:].min()
    for _ in range(200):
        middle = (low + high) / 2
        met = (
            middle > 0
            and ((1 / np.minimum(middle * shape[free:], 1.0) - 1) * squared).sum() <= sigma**2
        )
        low, high = (low, middle) if met else (middle, high)
    return high
