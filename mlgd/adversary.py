"""The lower bound as an opponent that can be played (the paper's Theorem 2 and its appendix).

Two losses that differ by a tilt of one flat direction,

    L_pm(v, z) = L_0(z) + lambda/2 v^2 +- delta v,

are sold through levels that return the same vector for both until one pays for a level of accuracy delta. At every
point their loss gaps sum to at least delta^2/lambda = 8 eps, so who never pays fails on one of the two.
"""

import math

import numpy as np

from .examples import biased
from .hierarchy import Hierarchy, LevelError, first_level, positive

HEADROOM = 12  # levels past the blind one: what the most careful plan asks for, with room
BASE_SIZE = 2


class Adversary(Hierarchy):
    """One of the two hard instances of the paper's Theorem 2, as a hierarchy of prefactor c with a meter.

    Every algorithm that reaches mean loss eps on both signs pays, on each, at least `lower_bound` on average:
    3/4 (c d0/(8 eps))^gamma, or 3/4 (c/sqrt(8 mu eps))^gamma when mu > 0. The instance is convex, beta-smooth,
    mu-strongly convex, started within d0 of its minimizer, and its level k is off by at most 2^-k at the price
    (c 2^k)^gamma. The paper's split of the error needs prefactor 2c for that; here the base has prefactor
    c 2^-shift, with the least shift that leaves room for delta at every level coarser than delta.

    >>> one, other = (Adversary(eps=0.01, d0=1, beta=1, gamma=3, c=1, sign=s) for s in (+1, -1))
    >>> coarse = one.blind_below - 1
    >>> bool((one.evaluate(coarse, one.start) == other.evaluate(coarse, other.start)).all())
    True
    >>> round(one.lower_bound)
    1465
    """

    def __init__(
        self,
        eps: float,
        d0: float,
        beta: float,
        gamma: float,
        c: float,
        mu: float = 0.0,
        sign: int = +1,
    ):
        from . import formulas

        for name, given in (("eps", eps), ("d0", d0), ("beta", beta), ("gamma", gamma), ("c", c)):
            positive(name, given)
        if not 0 <= mu <= beta:
            raise ValueError(f"need 0 <= mu <= beta; got mu={mu!r}, beta={beta!r}")
        if sign not in (1, -1):
            raise ValueError(f"sign must be +1 or -1; got {sign!r}")
        largest = (mu or beta) * d0**2 / 8
        if eps > largest * (1 + 1e-12):
            raise ValueError(
                f"eps must be at most {'mu' if mu else 'beta'} d0^2 / 8 = {largest:.3g}, else the "
                f"tilted direction leaves the class; got {eps!r}: ask for a smaller eps or give a "
                "larger d0"
            )
        given = {"eps": eps, "d0": d0, "beta": beta, "gamma": gamma, "c": c, "mu": mu, "sign": sign}
        vars(self).update(given)
        flatness = mu or 8 * eps / d0**2
        delta = math.sqrt(8 * mu * eps) if mu else flatness * d0
        blind_below = 1 - math.frexp(delta)[1]  # the least k with 2^-k <= delta
        used = delta * 2.0 ** (blind_below - 1)  # of the last blind level, in [1/2, 1)
        shift = max(1, math.ceil(-math.log((1 - used) * (1 + used), 4)))
        levels = range(min(first_level(c), blind_below - 1), blind_below + HEADROOM + 1)
        finer = [k + shift for k in levels]
        bound = formulas.LOWER_STRONG if mu else formulas.LOWER_CONVEX
        scale = {"mu": mu} if mu else {"d0": d0}
        vars(self).update(
            flatness=flatness,
            delta=delta,
            blind_below=blind_below,
            shift=shift,
            start=np.zeros(1 + BASE_SIZE),
            base=biased(self._slope, gamma, c * 2.0**-shift, finer, alternate=True),
            minimizer=np.array([-sign * delta / flatness, *np.zeros(BASE_SIZE)]),
            lower_bound=formulas.value(bound, eps=eps, gamma=gamma, c=c, **scale),
        )
        self.reset()
        super().__init__(self._answer, self._price, levels)

    # --- what is sold ---

    def _price(self, k: int) -> float:
        return float((self.c * 2.0 ** self.levels[self._index(k)]) ** self.gamma)

    def _tilt(self, k: int) -> float:
        return self.sign * self.delta if self.levels[self._index(k)] >= self.blind_below else 0.0

    def _slope(self, z: np.ndarray) -> np.ndarray:
        return self.mu * z + (self.beta - self.mu) * np.tanh(z)

    def _answer(self, k: int, y: np.ndarray) -> np.ndarray:
        """A_k(y), charged: (lambda v, A0(z)), and from the blind level on (lambda v +- delta, A0(z))."""
        tilt = self._tilt(k)
        if y.shape != self.start.shape:
            raise LevelError(f"points have shape {self.start.shape}; got {y.shape}: use .start", k)
        self._meter[k] = self._meter.get(k, 0) + 1
        first = [self.flatness * y[0] + tilt]
        return np.concatenate([first, self.base.evaluate(k + self.shift, y[1:])])

    def point(self, y: np.ndarray) -> np.ndarray:
        """y as floats, refused if it has another shape; asks no level, so nothing is charged."""
        point = super().point(y)
        if point.shape != self.start.shape:
            raise ValueError(f"points have shape {self.start.shape}, as .start; got {point.shape}")
        return point

    def potential(self, k: int, y: np.ndarray) -> float:
        """The function whose gradient is A_k, free, for methods that ask for values too.

        Below the blind level it is the same for both signs, so it separates nothing there.
        """
        drift = self.base.evaluate(
            k + self.shift, np.zeros(BASE_SIZE)
        )  # there the base has slope 0
        flat = self.flatness / 2 * y[0] ** 2 + self._tilt(k) * y[0]
        return float(self._base_gap(y[1:]) + flat + drift @ y[1:])

    # --- the meter ---

    @property
    def queries(self) -> int:
        """How many evaluations were asked for."""
        return sum(self._meter.values())

    @property
    def spent(self) -> float:
        """What was paid in all."""
        return float(sum(n * self._price(k) for k, n in self._meter.items()))

    @property
    def seen(self) -> bool:
        """Whether a level that shows the tilt was paid for."""
        return any(k >= self.blind_below for k in self._meter)

    def reset(self) -> None:
        """Set the meter to zero."""
        vars(self)["_meter"] = {}

    # --- what the optimizer does not see ---

    def gradient(self, y: np.ndarray) -> np.ndarray:
        """The exact gradient, not for sale."""
        return np.concatenate([[self.flatness * y[0] + self.sign * self.delta], self._slope(y[1:])])

    def loss(self, y: np.ndarray) -> float:
        """The loss gap L(y) - L*."""
        y = np.asarray(y, float)
        return float(self._base_gap(y[1:]) + self.flatness / 2 * (y[0] - self.minimizer[0]) ** 2)

    def _base_gap(self, z: np.ndarray) -> float:
        log_cosh = np.logaddexp(z, -z) - math.log(2)
        return float(self.mu / 2 * (z @ z) + (self.beta - self.mu) * log_cosh.sum())

    @property
    def twin(self) -> "Adversary":
        """The other copy, with a meter of its own."""
        return type(self)(self.eps, self.d0, self.beta, self.gamma, self.c, self.mu, -self.sign)

    def __repr__(self) -> str:
        return (
            f"Adversary(sign={self.sign:+d}, blind below level {self.blind_below}, "
            f"lower bound {self.lower_bound:.3g}, spent {self.spent:.3g})"
        )
