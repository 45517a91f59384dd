"""The anchored telescope (ours, not the paper's): every level is paid for once at a reference point r, and only the change since then is sampled.

    A_prefix(y)  +  sum over later k of  a_k D_k(r) + B_k/p_k [D_k(y) - a_k D_k(r)],     D_k = A_k - A_{k-},

has mean A_{k_max}(y) whatever the probabilities and the coefficients a_k. With a_k = 1, the default, the noise shrinks with the
distance to r wherever the increments change slowly; a_k = 0 is the plain telescope, right for levels whose errors do not repeat.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from mlgd.hierarchy import Hierarchy
from mlgd.telescope import Draw, Telescope


class Anchored(Telescope):
    """A telescope of increments since a reference point; what was evaluated there is kept and never paid twice.

    `coefficients` gives the a_k, one for each level (that of the coarsest is not used). A value at the reference is bought when
    it is first needed: the finest level at once, one in between when it is first drawn. `kept` holds what is already known there.

    >>> from mlgd.examples import biased
    >>> h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 4))
    >>> t = Anchored(h, [1.0, 0.5, 0.1], at=np.ones(1))
    >>> t.mean(np.zeros(1)), t.variance(np.zeros(1))  # an error that is the same everywhere is no noise
    (array([0.125]), 0.0)
    >>> t.draw(np.ones(1), rng=0).paid, t.draw(np.zeros(1), rng=0).paid  # at the reference itself one fine value is all
    ({3: 512.0}, {1: 16.0})
    """

    reference: np.ndarray
    coefficients: np.ndarray
    kept: dict[int, np.ndarray]

    def __init__(
        self,
        h: Hierarchy,
        probabilities: Sequence[float] | Mapping[int, float],
        at: np.ndarray,
        coefficients: Sequence[float] | None = None,
        kept: dict[int, np.ndarray] | None = None,
    ):
        super().__init__(h, probabilities)
        if self.prefix is None:
            raise ValueError(
                "an anchored telescope looks at its coarsest level at every call: give that level probability 1"
            )
        a = np.ones(self.p.size) if coefficients is None else np.array(coefficients, float)
        if a.shape != self.p.shape or not ((a >= 0) & (a <= 1)).all():
            raise ValueError(
                f"coefficients: one in [0, 1] for each of the levels {self.levels}; got {coefficients!r}"
            )
        a[: self._prefix] = 1.0  # the prefix is evaluated at every call, nothing of it is sampled
        point = self.h.point(at)
        point.flags.writeable = False
        vars(self).update(
            reference=point, coefficients=a, kept={} if kept is None else kept, _constant=None
        )

    @property
    def base(self) -> dict[int, float]:
        """The levels whose values at the reference enter every call, with their weights: sum over k of a_k D_k(r), collected."""
        a = np.append(self.coefficients[self._prefix :], 0.0)
        weights = np.append(-a[0], a[:-1] - a[1:]).tolist()
        return {k: w for k, w in zip(self.levels[self._prefix - 1 :], weights, strict=True) if w}

    def _sampled(self, i: int, y: np.ndarray) -> np.ndarray:
        k, a = self.levels[i], self.coefficients[i]
        return self.h.step(k, y) - a * self.h.step(k, self.reference)

    def variance(self, y: np.ndarray) -> float:
        free = [(i, q) for i, q in enumerate(self.p.tolist()) if q < 1]
        return float(sum((1 / q - 1) * float(np.sum(self._sampled(i, y) ** 2)) for i, q in free))

    def _parts(self, i: int) -> list[int]:
        """The levels of the i-th increment, coarse and fine."""
        return [*self.levels[max(0, i - 1) : i + 1]]

    def combine(self, y: np.ndarray, drawn: Sequence[bool]) -> Draw:
        """The value for given outcomes; what is missing at the reference is evaluated there, and kept."""
        paid = {}
        if (self.coefficients == 1).all() and np.array_equal(
            y, self.reference
        ):  # nothing has changed: the finest value is all
            return Draw(self._recall([self.levels[-1]], paid)[0].copy(), paid)
        if self._constant is None:
            there = self._recall([*self.base], paid)
            weighted = (w * v for w, v in zip(self.base.values(), there, strict=True))
            vars(self).update(_constant=sum(weighted, start=np.zeros_like(self.reference)))
        value = self._constant.copy()
        for i in (np.flatnonzero(drawn) + self._prefix).tolist():
            if self.coefficients[i]:
                *coarse, fine = self._recall(self._parts(i), paid)
                value -= self.coefficients[i] / self.p[i] * (fine - coarse[0] if coarse else fine)
        here = super().combine(y, drawn)
        for k, cost in here.paid.items():
            paid[k] = paid.get(k, 0.0) + cost
        return Draw(value + here.value, paid)

    def reference_cost(self, calls: int) -> float:
        """The mean price of what is evaluated at the reference in that many calls elsewhere."""
        missed = {k: 0.0 for k in self.base}  # by need: the chance that one call does without it
        for i in range(self._prefix, self.p.size):
            for k in self._parts(i) if self.coefficients[i] else ():
                missed[k] = missed.get(k, 1.0) * (1 - float(self.p[i]))
        return float(sum((1 - q**calls) * self.h.cost(k) for k, q in missed.items()))

    def _recall(self, needs: Sequence[int], paid: dict[int, float]) -> list[np.ndarray]:
        """Values at the reference: kept ones, and the others evaluated, paid and kept."""
        if missing := tuple(need for need in needs if need not in self.kept):
            self.kept.update({k: self.h.value(k, self.reference) for k in missing})
            for k in missing:
                paid[k] = paid.get(k, 0.0) + float(self.h.cost(k))
        return [self.kept[need] for need in needs]


def epoch_price(
    h: Hierarchy, levels: Sequence[int], probabilities: Sequence[float], steps: int
) -> float:
    """The exact mean price of that many draws, the first of which is made at the reference and needs one fine value."""
    if steps == 1 or len(levels) == 1:
        return float(h.cost(levels[-1])) * (steps if len(levels) == 1 else 1)
    telescope = Anchored(h, dict(zip(levels, probabilities, strict=True)), at=np.zeros(1))
    return telescope.reference_cost(steps - 1) + (steps - 1) * telescope.expected_cost()
