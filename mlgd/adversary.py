"""The lower bound as an opponent that can be played (the paper's Theorem 2 and its appendix).

Two losses that differ by a tilt of one flat direction,

    L_pm(v, z) = L_0(z) + lambda/2 v^2 +- delta v,

are sold through levels that return the same vector for both until one pays for a level of accuracy
delta. At every point their loss gaps sum to at least delta^2/lambda = 8 eps, so who never pays
fails on one of the two.
"""

import math

import numpy as np

from .examples import biased
from .hierarchy import Hierarchy, LevelError, dyadic, positive
from .plans import Problem

HEADROOM = 12  # levels past the blind one: what the most careful plan asks for, with room


class Adversary(Hierarchy):
    """One of the two hard instances of the paper's Theorem 2: a hierarchy with a meter.

    Every algorithm that reaches mean loss eps on both signs pays on each, as they answer alike till
    it pays, at least `lower_bound` on average: 3/4 (c d0/(8 eps))^gamma, or, when mu > 0,
    3/4 (c/sqrt(8 mu eps))^gamma. The instance is convex, beta-smooth, mu-strongly convex, started
    within d0 of its minimizer, and its level k is off by at most 2^-k at the price (c 2^k)^gamma.
    The paper's split of the error needs prefactor 2c for that; here the base has c 2^-shift, with
    the least shift that leaves room for delta at coarser levels. `spent`: paid since `reset`.

    >>> one, other = (Adversary(eps=0.01, d0=1, beta=1, gamma=3, c=1, sign=s) for s in (+1, -1))
    >>> coarse = one.blind_below - 1
    >>> bool((one.evaluate(coarse, one.start) == other.evaluate(coarse, other.start)).all())
    True
    >>> round(one.lower_bound)
    1465
    """

    start = np.zeros(3)
    start.flags.writeable = False

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

        known = Problem(beta=beta, d0=d0, gamma=gamma, c=c, mu=mu)  # or what it refuses
        positive("eps", eps)
        if sign not in (1, -1):
            raise ValueError(f"sign must be +1 or -1; got {sign!r}")
        largest = (mu or beta) * d0**2 / 8
        if eps > largest * (1 + 1e-12):
            raise ValueError(
                f"eps must be at most {'mu' if mu else 'beta'} d0^2 / 8 = {largest:.3g}, else the "
                f"tilted direction leaves the class; got {eps!r}: ask for a smaller eps or give a "
                "larger d0"
            )
        flatness = mu or 8 * eps / d0**2
        delta = math.sqrt(8 * mu * eps) if mu else flatness * d0
        blind = 1 - math.frexp(delta)[1]  # the least k with 2^-k <= delta
        used = delta * 2.0 ** (blind - 1)  # of the last blind level, in [1/2, 1)
        shift = max(1, math.ceil(-math.log((1 - used) * (1 + used), 4)))
        levels = range(min(known.first, blind - 1), blind + HEADROOM + 1)
        bound = formulas.LOWER_STRONG if mu else formulas.LOWER_CONVEX
        least = formulas.value(bound, eps=eps, d0=d0, gamma=gamma, c=c, mu=mu)
        base = biased(self._slope, gamma, c * 2.0**-shift, [k + shift for k in levels], True)
        vars(self).update(eps=eps, beta=beta, mu=mu, sign=sign, flatness=flatness, delta=delta)
        vars(self).update(blind_below=blind, shift=shift, base=base, lower_bound=least)
        self.reset()
        super().__init__(self._answer, [(c * 2.0**k) ** gamma for k in levels], levels, dyadic)

    def _slope(self, z: np.ndarray) -> np.ndarray:
        return self.mu * z + (self.beta - self.mu) * np.tanh(z)

    def _answer(self, k: int, y: np.ndarray) -> np.ndarray:
        """A_k(y), charged: (lambda v, A0(z)), from `blind_below` on with +- delta."""
        if y.shape != self.start.shape:
            raise LevelError(f"points have shape {self.start.shape}; got {y.shape}: use .start", k)
        vars(self)["spent"] += self.cost(k)
        tilt = self.sign * self.delta if k >= self.blind_below else 0.0
        return np.append(self.flatness * y[0] + tilt, self.base.evaluate(k + self.shift, y[1:]))

    def reset(self) -> None:
        """Set the meter to zero."""
        vars(self)["spent"] = 0.0

    # --- what the optimizer does not see ---

    @property
    def minimizer(self) -> np.ndarray:
        return np.array([-self.sign * self.delta / self.flatness, 0.0, 0.0])

    def gradient(self, y: np.ndarray) -> np.ndarray:
        """The exact gradient, not for sale."""
        return np.append(self.flatness * y[0] + self.sign * self.delta, self._slope(y[1:]))

    def loss(self, y: np.ndarray) -> float:
        """The loss gap `L(y) - L*`."""
        v, z = y[0] - self.minimizer[0], np.asarray(y[1:], float)
        log_cosh = (np.logaddexp(z, -z) - math.log(2)).sum()
        base = self.mu / 2 * (z @ z) + (self.beta - self.mu) * log_cosh
        return float(base + self.flatness / 2 * v**2)
