"""The shrunk telescope: one number decides how far up the ladder to go, each increment is shrunk.

    g = A_0 + sum over 1 <= k <= J of  w_k (A_k - A_{k-1}),   J = the last k with U < P_k,

where U is uniform on (0, 1), the reach P_k is the probability that level k is evaluated, one at the
first level, and w_k = 1/(P_k + s (1 - P_k)) with the shrinkage s: s = 0 leaves the mean at the
finest level, as the paper's telescope does, s = 1 multiplies by nothing. Errors may be traded for
variance then, and the two together are known exactly (Lemma S, the book's own): for whatever errors
e_k = A_k - f,

    |E g - f|^2 + s E|g - E g|^2 = sum over k of q_k |e_k|^2,   q_k = P_k w_k - P_{k+1} w_{k+1}.

The q_k are not negative and their sum is one: the mean of g is the mixture sum q_k A_k.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from .hierarchy import Hierarchy, by_level, ladder, positive
from .telescope import LEAST, Draw, Probabilities, Recipe


def weights(reach: np.ndarray, shrinkage: float) -> np.ndarray:
    """w: what an increment is multiplied by when it is drawn."""
    return 1 / (reach + shrinkage * (1 - reach))


def mixture(reach: np.ndarray, shrinkage: float) -> np.ndarray:
    """q: the share of each level in the mean.

    P_k w_k - P_{k+1} w_{k+1} is s w_k w_{k+1} (P_k - P_{k+1}), which keeps its digits where s is
    tiny.
    """
    w = weights(reach, shrinkage)
    shares = reach * w
    shares[:-1] = shrinkage * w[:-1] * w[1:] * (reach[:-1] - reach[1:])
    return shares


@dataclass(frozen=True, init=False, eq=False)
class ShrunkTelescope:
    """The estimator of Lemma S on some levels of a hierarchy.

    `reach`: a sequence for the first levels, or a mapping {level: P} over any of them, one at the
    first of these and never growing. A level that is reached as often as the next one cancels: it
    is left out of `levels`, and so is a level that is not named.

    >>> from mlgd.examples import biased
    >>> h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 4))
    >>> t = ShrunkTelescope(h, [1.0, 0.5, 0.1], shrinkage=0.25)
    >>> t.levels, t.weights.round(3), t.mixture.round(3), t.expected_cost()
    ((1, 2, 3), array([1.   , 1.6  , 3.077]), array([0.2  , 0.492, 0.308]), 91.2)
    >>> round(t.joint(np.zeros(1), np.zeros(1)), 9), round(t.joint_bound, 9)
    (0.085576923, 0.085576923)
    >>> t.draw(np.zeros(1), rng=0).levels
    (1,)
    """

    h: Hierarchy
    levels: tuple[int, ...]
    reach: np.ndarray
    shrinkage: float

    def __init__(self, h: Hierarchy, reach: Probabilities, shrinkage: float):
        given = by_level("reach", reach, ladder(h).levels)
        shrinkage = positive("the shrinkage", shrinkage, zero=True)
        if shrinkage > 1:
            raise ValueError(f"the shrinkage must lie in [0, 1]; got {shrinkage!r}")
        levels = np.array([*given])
        drawn = np.array([*given.values()])
        if drawn[0] != 1:
            raise ValueError(
                f"the first level is evaluated always, with a reach of one; got {drawn[0]:g} at "
                f"level {levels[0]}"
            )
        if (np.diff(drawn) > 0).any():
            raise ValueError(
                "a level can't be reached more often than the one before it: reach must not grow; "
                f"got {drawn.tolist()}"
            )
        if drawn[-1] < LEAST:
            raise ValueError(
                f"a reach is at least {LEAST:g}, since values are divided by it; got "
                f"{drawn[-1]:g} at level {levels[-1]}: leave that level out"
            )
        bought = np.append(np.diff(drawn) < 0, True)
        reach = drawn[bought]
        reach.flags.writeable = False  # its recipes are made of them
        used = tuple(levels[bought].tolist())
        vars(self)["h"] = h if used == h.levels else h.only(used)
        vars(self)["levels"] = used
        vars(self)["reach"] = reach
        vars(self)["shrinkage"] = shrinkage

    @property
    def base(self) -> int:
        """The level that is always evaluated."""
        return self.levels[0]

    @property
    def weights(self) -> np.ndarray:
        """w: what an increment is multiplied by when it is drawn."""
        return weights(self.reach, self.shrinkage)

    @property
    def mixture(self) -> np.ndarray:
        """q: the share of each level in the mean."""
        return mixture(self.reach, self.shrinkage)

    # --- exact sums ---

    def mean(self, y: np.ndarray) -> np.ndarray:
        """The exact mean, a mixture of the levels."""
        return np.tensordot(self.mixture, self._values_at(y), axes=1)

    def variance(self, y: np.ndarray) -> float:
        """The exact variance: the sum of (1/P_k - 1/P_{k-1}) |R_k|^2, where R_k is the mean of
        what comes from level k on."""
        kept = self.reach * self.weights
        values = self._values_at(y).reshape(len(self.levels), -1)
        increments = np.diff(values, axis=0) * kept[1:, None]
        to_come = np.cumsum(increments[::-1], axis=0)[::-1]
        odds = np.diff(1 / self.reach)
        with np.errstate(over="ignore"):  # it may well be infinite
            return float(odds @ (to_come**2).sum(axis=1))

    def joint(self, y: np.ndarray, gradient: np.ndarray) -> float:
        """|bias|^2 + s variance against that gradient: exactly the mixture of squared errors."""
        errors = (self._values_at(y) - gradient).reshape(len(self.levels), -1)
        squared = (errors**2).sum(axis=1)
        return float(self.mixture @ squared)

    @property
    def joint_bound(self) -> float:
        """What |bias|^2 + s variance is at most, by the declared accuracies."""
        return float(self.mixture @ self.h.accuracies() ** 2)

    def expected_cost(self) -> float:
        """What `draw` charges on average: every level is paid as often as it is reached."""
        prices = np.array([float(self.h.cost(k)) for k in self.levels])
        return float(self.reach @ prices)

    def _values_at(self, y: np.ndarray) -> np.ndarray:
        return np.array([self.h.value(k, y) for k in self.levels])

    # --- samples ---

    def draw(self, y: np.ndarray, rng=None) -> Draw:
        """One sample at y."""
        highest = self.tossed(np.random.default_rng(rng), 1)[0]
        recipe = self._recipes[highest]
        value = self.combine(highest, self._values, y)
        return Draw(value, recipe.price, recipe.levels)

    def tossed(self, rng: np.random.Generator, number: int) -> list[int]:
        """For so many draws the last level that is reached, by its index."""
        uniform = rng.random(number)
        # reach falls: as many levels past the base are reached as have a reach above the number
        found = np.searchsorted(-self.reach[1:], -uniform, side="left")
        return found.tolist()

    def draws(
        self, rng: np.random.Generator, number: int, one: Callable, several: Callable
    ) -> list[Callable]:
        """So many draws as functions of the point; what they buy is bought by one(level, y, ...)
        or several(levels, y)."""
        always = partial(one, self.base, fresh=False)
        draws = []
        for highest in self.tossed(rng, number):
            drawn = partial(self.combine, highest, several)
            draws.append(drawn if highest else always)
        return draws

    def combine(self, highest: int, buy: Callable, y: np.ndarray) -> np.ndarray:
        """The value where that is the last level reached, made of buy(levels, y)."""
        recipe = self._recipes[highest]
        values = buy(recipe.levels, y)
        for weight, value in zip(recipe.weights, values, strict=True):
            value *= weight
        for value in values[1:]:
            values[0] += value
        return values[0]

    def _values(self, levels: Sequence[int], y: np.ndarray) -> list[np.ndarray]:
        return [self.h.value(k, y) for k in levels]

    @cached_property
    def _recipes(self) -> list[Recipe]:
        """What is bought, by the last level reached: of each A_k its weight less that of the
        increment above it."""
        recipes = []
        price = 0.0
        w = self.weights
        for highest, level in enumerate(self.levels):
            price += float(self.h.cost(level))
            shares = w[: highest + 1].copy()
            shares[:-1] -= w[1 : highest + 1]
            bought = self.levels[: highest + 1]
            recipes.append(Recipe(bought, tuple(shares.tolist()), price))
        return recipes
