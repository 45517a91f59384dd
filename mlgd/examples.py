"""Ready-made hierarchies, honest about their error, for any gradient, gamma and c."""

import math
from collections.abc import Callable, Sequence
from numbers import Integral

import numpy as np

from .hierarchy import Hierarchy, function, positive


def _dyadic(gradient, evaluate, gamma, c, levels) -> Hierarchy:
    function("gradient", gradient)
    gamma, c = positive("gamma", gamma), positive("c", c)
    return Hierarchy(evaluate, lambda k: (c * 2.0**k) ** gamma, levels)


def rounded(gradient: Callable, gamma: float, c: float, levels: Sequence[int]) -> Hierarchy:
    """An exact gradient seen through fixed-point arithmetic: level k rounds to a grid that keeps the error <= 2^-k.

    >>> h = rounded(lambda y: y, gamma=3, c=1, levels=range(1, 4))
    >>> h.evaluate(1, np.array([0.3])), h.evaluate(3, np.array([0.3])), h.cost(3)
    (array([0.]), array([0.25]), 512.0)
    """

    def evaluate(k, y):
        g = gradient(y)
        grid = 2.0 * 2.0**-k / math.sqrt(g.size)
        return grid * np.round(g / grid)

    return _dyadic(gradient, evaluate, gamma, c, levels)


def biased(
    gradient: Callable,
    gamma: float,
    c: float,
    levels: Sequence[int],
    direction=None,
    alternate=False,
) -> Hierarchy:
    """The worst case of the paper's Assumption 1: every level is off by exactly 2^-k along one unit direction.

    With `alternate` the sign flips from level to level, so that increments reach their bound 3 * 2^-k too.

    >>> h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 4))
    >>> h.evaluate(1, np.zeros(1)), h.evaluate(3, np.zeros(1))
    (array([0.5]), array([0.125]))
    """
    if direction is not None and not np.any(direction):
        raise ValueError(
            "direction must not be zero: give the vector along which every level is off"
        )

    def evaluate(k, y):
        u = np.ones_like(y) if direction is None else np.asarray(direction, float)
        sign = -1.0 if alternate and k % 2 else 1.0
        return gradient(y) + (sign * 2.0**-k / np.linalg.norm(u)) * u

    return _dyadic(gradient, evaluate, gamma, c, levels)


def series(
    gradient: Callable, gamma: float, c: float, levels: Sequence[int], terms: int = 40
) -> Hierarchy:
    """A truncated series: level k leaves out the terms 2^-j cos(j y)/sqrt(d), j > k, of a gradient known by its series.

    >>> h = series(lambda y: y, gamma=3, c=1, levels=range(1, 6))
    >>> [float(np.abs(h.evaluate(k, np.ones(1)) - 1).round(3)[0]) <= 2.0**-k for k in h.levels]
    [True, True, True, True, True]
    """
    if not (isinstance(terms, Integral) and terms >= 0):
        raise ValueError(f"terms must be a whole number, at least 0; got {terms!r}")

    def evaluate(k, y):
        return gradient(y) - sum(
            2.0**-j * np.cos(j * y) / math.sqrt(y.size) for j in range(k + 1, k + 1 + terms)
        )

    return _dyadic(gradient, evaluate, gamma, c, levels)
