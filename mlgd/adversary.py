"""The lower bound as an opponent that can be played (the paper's Theorem 2 and its appendix).

Two losses that differ by a tilt of one flat direction,

    L_pm(v, z) = L_0(z) + lambda/2 v^2 +- delta v,

are sold through levels that return the same vector for both until one pays for a level of accuracy
delta. At every point their loss gaps sum to at least delta^2/lambda = 8 eps, so who never pays
fails on one of the two.

Here L_0(z) = sum mu/2 z_i^2 + (beta - mu) log cosh z_i over two coordinates, sold by the worst case
of the paper's Assumption 1; the flat direction comes first.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from .examples import biased
from .hierarchy import Hierarchy, LevelError, dyadic, positive
from .plans import Problem, price
from .telescope import sound, within_floats

HEADROOM = 12  # levels past the blind one: what the most careful plan asks for, with room


def _start() -> np.ndarray:
    start = np.zeros(3)
    start.flags.writeable = False
    return start


@dataclass(frozen=True, eq=False, repr=False)
class Adversary(Hierarchy):
    """One of the two hard instances of the paper's Theorem 2: a hierarchy with a meter.

    Every algorithm that reaches mean loss eps on both signs pays on each, as they answer alike till
    it pays, at least `lower_bound` on average: 3/4 (c d0/(8 eps))^gamma, or, when mu > 0,
    3/4 (c/sqrt(8 mu eps))^gamma. The instance is convex, beta-smooth, mu-strongly convex, started
    within d0 of its minimizer, and its level k is off by at most 2^-k at the price (c 2^k)^gamma.
    `spent`: paid since `reset`.

    >>> one, other = (Adversary(eps=0.01, d0=1, beta=1, gamma=3, c=1, sign=s) for s in (+1, -1))
    >>> coarse = one.blind_below - 1
    >>> bool((one.evaluate(coarse, one.start) == other.evaluate(coarse, other.start)).all())
    True
    >>> round(one.lower_bound)
    1465
    """

    # what a hierarchy is given, an instance makes from its own numbers
    evaluate: Callable = field(init=False)
    cost: Callable | Sequence | Mapping = field(init=False)
    levels: Sequence[int] = field(init=False)
    accuracy: Callable | None = field(init=False)
    exact: bool = field(init=False, default=False)
    measured: bool = field(init=False, default=False)
    repeats: float = field(init=False, default=0.0)

    eps: float
    d0: float
    beta: float
    gamma: float
    c: float
    mu: float = 0.0
    sign: int = +1

    flatness: float = field(init=False)  # lambda
    delta: float = field(init=False)  # the tilt
    blind_below: int = field(init=False)  # the level from which on the tilt is told
    shift: int = field(init=False)  # how many levels deeper the base is read
    base: Hierarchy = field(init=False)  # of L_0
    lower_bound: float = field(init=False)
    spent: float = field(init=False)

    start: ClassVar[np.ndarray] = _start()

    def __post_init__(self):
        given = f"the lower bound's pair for eps = {self.eps!r}, d0 = {self.d0!r}"
        with within_floats(given):
            self._make(self._checked())
        super().__post_init__()
        self.reset()

    def _make(self, known: Problem) -> None:
        """The pair of the paper's Theorem 2, and the levels that sell it."""
        flatness = self.mu or 8 * self.eps / self.d0**2
        if self.mu:
            delta = math.sqrt(8 * self.mu * self.eps)
        else:
            delta = flatness * self.d0
        self._set("flatness", sound("the curvature", flatness))
        self._set("delta", sound("the tilt", delta))
        _, exponent = math.frexp(self.delta)
        self._set("blind_below", 1 - exponent)  # the least k with 2^-k <= delta
        self._set("shift", self._least_shift())
        self._set("lower_bound", self._bound())

        coarsest = min(known.first, self.blind_below - 1)
        levels = range(coarsest, self.blind_below + HEADROOM + 1)
        deeper = [k + self.shift for k in levels]
        cheaper = self.c * 2.0**-self.shift
        base = biased(self._slope, self.gamma, cheaper, deeper, alternate=True)
        self._set("base", base)
        self._set("evaluate", self._answer)
        self._set("cost", partial(price, self.gamma, self.c))
        self._set("levels", levels)
        self._set("accuracy", dyadic)

    def _checked(self) -> Problem:
        """The problem that the instance belongs to, or a refusal."""
        known = Problem(
            beta=self.beta,
            d0=self.d0,
            gamma=self.gamma,
            c=self.c,
            mu=self.mu,
        )
        positive("eps", self.eps)
        if self.sign not in (1, -1):
            raise ValueError(f"sign must be +1 or -1; got {self.sign!r}")
        largest = (self.mu or self.beta) * self.d0**2 / 8
        if self.eps > largest * (1 + 1e-12):
            curvature = "mu" if self.mu else "beta"
            raise ValueError(
                f"eps must be at most {curvature} d0^2 / 8 = {largest:.3g}, else the "
                f"tilted direction leaves the class; got {self.eps!r}: ask for a smaller "
                "eps or give a larger d0"
            )
        return known

    def _least_shift(self) -> int:
        """How much deeper the base is read, so that its error and the tilt fit into a level's own.

        A blind level errs by the tilt, which it leaves out, and at right angles by the base's own
        error. The last one may err by x = 2^-(blind_below - 1): its tilt is u x, u in [1/2, 1), the
        base's error 2^-shift x, so that u^2 + 4^-shift must be at most 1. The paper's split in
        halves needs prefactor 2c for that; here the base has c 2^-shift.
        """
        used = self.delta * 2.0 ** (self.blind_below - 1)
        room = (1 - used) * (1 + used)
        return max(1, math.ceil(-math.log(room, 4)))

    def _bound(self) -> float:
        """The least mean price, by the paper's Theorem 2."""
        from . import formulas  # here, because sympy is slow to load

        bound = formulas.LOWER_STRONG if self.mu else formulas.LOWER_CONVEX
        return formulas.value(
            bound,
            eps=self.eps,
            d0=self.d0,
            gamma=self.gamma,
            c=self.c,
            mu=self.mu,
        )

    def _set(self, name: str, value) -> None:
        """Set a field: the instance is frozen for everyone else."""
        object.__setattr__(self, name, value)

    def _slope(self, z: np.ndarray) -> np.ndarray:
        """The gradient of L_0."""
        return self.mu * z + (self.beta - self.mu) * np.tanh(z)

    def _answer(self, k: int, y: np.ndarray) -> np.ndarray:
        """A_k(y), charged: (lambda v, A0(z)), from `blind_below` on with +- delta."""
        if y.shape != self.start.shape:
            wanted = self.start.shape
            raise LevelError(f"points have shape {wanted}; got {y.shape}: use .start", k)
        self._set("spent", self.spent + self.cost(k))
        tilt = self.sign * self.delta if k >= self.blind_below else 0.0
        flat = self.flatness * y[0] + tilt
        return np.append(flat, self.base.evaluate(k + self.shift, y[1:]))

    def reset(self) -> None:
        """Set the meter to zero."""
        self._set("spent", 0.0)

    # --- what the optimizer does not see ---

    @property
    def minimizer(self) -> np.ndarray:
        return np.array([-self.sign * self.delta / self.flatness, 0.0, 0.0])

    def gradient(self, y: np.ndarray) -> np.ndarray:
        """The exact gradient, not for sale."""
        flat = self.flatness * y[0] + self.sign * self.delta
        return np.append(flat, self._slope(y[1:]))

    def loss(self, y: np.ndarray) -> float:
        """The loss gap `L(y) - L*`."""
        v = y[0] - self.minimizer[0]
        z = np.asarray(y[1:], float)
        log_cosh = np.logaddexp(z, -z) - math.log(2)
        base = self.mu / 2 * (z @ z) + (self.beta - self.mu) * log_cosh.sum()
        return float(base + self.flatness / 2 * v**2)
