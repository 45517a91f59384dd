"""The randomized telescope (Proposition 1): one dial, accuracy, becomes two, a bias and a variance.

    sum over levels k of  B_k / p_k (A_k - A_{k-}),   B_k ~ Bernoulli(p_k) independent,

has mean A_{k_max} whatever the probabilities, so its bias is the finest level's; its variance and its price are
exact sums. Levels drawn with probability one at the coarse end collapse to one evaluation.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from .hierarchy import Hierarchy
from .lazy import formulas

ACCOUNTINGS = ("evaluated", "pairs", "paper")


@dataclass(frozen=True)
class Draw:
    """One sample of the telescope: its value, what it cost, and the levels that were evaluated."""

    value: np.ndarray
    cost: float
    levels: tuple[int, ...]


@dataclass(frozen=True, init=False, eq=False)
class Telescope:
    """The estimator of Proposition 1 on the first levels of a hierarchy, with a probability for each.

    `probabilities`: a sequence for the first levels, or a mapping {level: p} over an initial run of them.

    >>> from mlgd.examples import biased
    >>> h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 4))
    >>> t = Telescope(h, [1.0, 0.5, 0.1])
    >>> t.mean(np.zeros(1)), round(t.variance(np.zeros(1)), 4), t.expected_cost()
    (array([0.125]), 0.2031, 94.4)
    >>> t.draw(np.zeros(1), rng=0).levels
    (1,)
    """

    h: Hierarchy
    levels: tuple[int, ...]
    p: np.ndarray

    def __init__(self, h: Hierarchy, probabilities: Sequence[float] | Mapping[int, float]):
        if isinstance(probabilities, Mapping):
            levels = tuple(sorted(probabilities))
            p = np.array([probabilities[k] for k in levels], float)
        else:
            p = np.asarray(probabilities, float)
            levels = h.levels[: p.size]
        if levels != h.levels[: len(levels)] or not levels or p.size != len(levels):
            raise ValueError(
                f"probabilities must be given for an initial run of the levels {h.levels}; got them for {levels}"
            )
        bad = [(k, float(q)) for k, q in zip(levels, p, strict=True) if not 0 < q <= 1]
        if bad:
            raise ValueError(f"probabilities must lie in (0, 1]; got {bad[0][1]!r} at level {bad[0][0]}")
        prefix = 0
        while prefix < p.size and p[prefix] == 1:
            prefix += 1
        for name, content in (("h", h), ("levels", levels), ("p", p), ("_prefix", prefix)):
            object.__setattr__(self, name, content)

    @property
    def prefix(self) -> int | None:
        """The finest level of the always-drawn prefix, evaluated once for all of it; None when there is none."""
        return self.levels[self._prefix - 1] if self._prefix else None

    def mean(self, y: np.ndarray) -> np.ndarray:
        """The exact mean, the sum of all increments (it telescopes to the finest level)."""
        return sum((self.h.step(k, y) for k in self.levels[1:]), start=self.h.step(self.levels[0], y))

    def variance(self, y: np.ndarray) -> float:
        """The exact variance E||f~ - E f~||^2 = sum (1/p_k - 1) ||A_k - A_{k-}||^2."""
        return float(
            sum((1 / q - 1) * float(np.sum(self.h.step(k, y) ** 2)) for k, q in zip(self.levels, self.p, strict=True))
        )

    def expected_cost(self, accounting: str = "evaluated") -> float:
        """The exact mean price of a draw.

        evaluated: what `draw` charges. The always-drawn prefix is one evaluation, and a level that two
                   neighbouring increments need is evaluated once.
        pairs:     each drawn increment pays for its two levels (the paper's Appendix B.1.2).
        paper:     each drawn increment pays for its finer level only (the paper's Appendix B.1.1).
        """
        h, m = self.h, self._prefix
        if accounting == "paper":
            return float(sum(q * h.cost(k) for k, q in zip(self.levels, self.p, strict=True)))
        if accounting == "pairs":
            return float(sum(q * h.step_cost(k) for k, q in zip(self.levels, self.p, strict=True)))
        if accounting != "evaluated":
            raise ValueError(f"accounting must be one of {ACCOUNTINGS}; got {accounting!r}")
        total = h.cost(self.levels[m - 1]) if m else 0.0
        if h.increment is not None:
            return float(total + sum(q * h.cost(k) for k, q in zip(self.levels[m:], self.p[m:], strict=True)))
        following = [*self.p[m + 1 :], 0.0][: self.p.size - m]
        for k, q, after in zip(self.levels[m:], self.p[m:], following, strict=True):
            total += (q + after - q * after) * h.cost(k)  # not 1 - (1-q)(1-after): a rare level costs much
        return float(total)

    def draw(self, y: np.ndarray, rng=None) -> Draw:
        """One sample at y."""
        rng = np.random.default_rng(rng)
        return self.combine(y, rng.random(self.p.size - self._prefix) < self.p[self._prefix :])

    def combine(self, y: np.ndarray, drawn: Sequence[bool]) -> Draw:
        """The value for given outcomes B_k of the levels past the prefix; each level is evaluated at most once."""
        h, m = self.h, self._prefix
        known: dict[int, np.ndarray] = {}
        cost = 0.0

        def evaluate(k):
            nonlocal cost
            if k not in known:
                known[k] = h.evaluate(k, y)
                cost += h.cost(k)
            return known[k]

        value = evaluate(self.levels[m - 1]) if m else None
        used = []
        for i in np.flatnonzero(drawn):
            k = self.levels[m + i]
            if h.increment is not None:
                step = h.increment(k, y)
                cost += h.cost(k)
                used.append(k)
            else:
                previous = self.levels[m + i - 1] if m + i else None
                step = evaluate(k) - evaluate(previous) if previous is not None else evaluate(k)
            step = step / self.p[m + i]
            value = step if value is None else value + step
        if value is None:
            value = np.zeros_like(y)
        return Draw(value, cost, tuple(sorted({*known, *used})))

    def outcomes(self, y: np.ndarray) -> Iterator[tuple[float, Draw]]:
        """Every possible draw with its probability, one for each subset of the levels past the prefix."""
        free = self.p[self._prefix :]
        for drawn in product((False, True), repeat=free.size):
            yield float(np.prod(np.where(drawn, free, 1 - free))), self.combine(y, drawn)

    # --- choices of the probabilities ---

    @classmethod
    def for_accuracy(
        cls, h: Hierarchy, delta: float, sigma: float, gamma: float, coarsest: str = "always"
    ) -> "Telescope":
        """Proposition 1's closed form: bias at most delta, variance at most sigma^2, p_k = min(C acc_k^(1+gamma/2), 1).

        The coarsest level is drawn always, because its value is not an increment and may be unbounded;
        coarsest='paper' draws it like the others, sound only where ||A_{k_min}|| <= 3 * 2^-k_min. sigma = 0 is
        the fixed level. On a ladder that is not dyadic the same shape is scaled to the same guarantee.
        """
        if not (delta > 0 and sigma >= 0 and gamma > 0):
            raise ValueError(f"need delta > 0, sigma >= 0, gamma > 0; got {delta!r}, {sigma!r}, {gamma!r}")
        if coarsest not in ("always", "paper"):
            raise ValueError(f"coarsest must be 'always' or 'paper'; got {coarsest!r}")
        levels = h.levels[: h.levels.index(h.level_for(delta)) + 1]
        accuracy = np.array([h.accuracy(k) for k in levels])
        free = 1 if coarsest == "always" else 0
        p = np.ones(len(levels))
        if sigma > 0 and len(levels) > free:
            shape = accuracy[free:] ** (1 + gamma / 2)
            p[free:] = np.minimum(_scale(levels, accuracy, free, sigma, gamma) * shape, 1.0)
        return cls(h, p)

    @classmethod
    def cheapest(cls, h: Hierarchy, sigma: float, increments: Sequence[float]) -> "Telescope":
        """The cheapest probabilities with variance at most sigma^2, given the norms ||A_k - A_{k-}||.

        Minimizes  cost(prefix) + sum over later k of p_k (cost(k) + cost(k-))  subject to
        sum (1/p_k - 1) ||A_k - A_{k-}||^2 <= sigma^2 and 0 < p_k <= 1: for each end of the always-drawn prefix
        (at least the coarsest level) the rest is water-filling, p_k = min(1, s ||increment_k|| / sqrt(price_k)).
        """
        v = np.asarray(increments, float) ** 2
        if v.size > len(h.levels) or v.size == 0 or not (np.isfinite(v).all() and (v >= 0).all()):
            raise ValueError(f"increments: one finite norm for each of the first levels; got {increments!r}")
        if not sigma >= 0:
            raise ValueError(f"sigma must be non-negative; got {sigma!r}")
        levels = h.levels[: v.size]
        price = np.array([h.step_cost(k) for k in levels])
        best, best_cost = np.ones(v.size), h.cost(levels[-1])
        for cut in range(1, v.size):
            p = np.concatenate([np.ones(cut), water_filling(v[cut:], price[cut:], sigma**2)])
            cost = h.cost(levels[cut - 1]) + float(p[cut:] @ price[cut:])
            if cost < best_cost:
                best, best_cost = p, cost
        return cls(h, best)


def water_filling(v: np.ndarray, price: np.ndarray, variance: float) -> np.ndarray:
    """argmin sum p_k price_k  subject to  sum (1/p_k - 1) v_k <= variance, p_k <= 1: p_k = min(1, s sqrt(v_k/price_k))."""
    if variance <= 0:
        return np.ones(v.size)
    v = np.maximum(v, 1e-300)  # a vanishing increment still needs a positive probability
    order = np.argsort(-np.sqrt(v / price))  # the clamp p = 1 is reached in this order
    for clamped in range(v.size):
        free = order[clamped:]
        s = np.sqrt(v[free] * price[free]).sum() / (variance + v[free].sum())
        p = s * np.sqrt(v[free] / price[free])
        if p[0] <= 1:
            out = np.ones(v.size)
            out[free] = np.maximum(p, 1e-300)
            return out
    return np.ones(v.size)


def _scale(levels, accuracy, free, sigma, gamma) -> float:
    """The constant C of p_k = min(C acc_k^(1+gamma/2), 1): the closed form on a dyadic ladder, else solved for."""
    name = formulas.regime(gamma)
    delta = float(accuracy[-1])
    if all(b == a + 1 for a, b in pairwise(levels)) and np.allclose(accuracy, 2.0 ** -np.array(levels, float)):
        tail = max(math.ceil(math.log2(sigma / (3 * delta))), 1)  # at one, sigma <= 3 delta draws every level
        names = {"HTMC": {"delta": delta, "gamma": gamma}, "MC": {"n": tail}, "ETMC": {"gamma": gamma}}[name]
        return formulas.value(formulas.SCALE[name], sigma=sigma, **names)
    shape = accuracy[free:] ** (1 + gamma / 2)
    before = np.concatenate([accuracy[free - 1 : free] if free else 2 * accuracy[:1], accuracy[free:-1]])
    v = (accuracy[free:] + before) ** 2

    def variance(scale):
        return float(((1 / np.minimum(scale * shape, 1.0) - 1) * v).sum())

    low, high = 0.0, 1.0 / shape.min()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if middle > 0 and variance(middle) <= sigma**2 else (middle, high)
    return high
