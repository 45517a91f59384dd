"""Dyadic hierarchies on one gradient: the worst case, and fixed-point arithmetic."""

import math

import numpy as np

from mlgd import Hierarchy
from mlgd.examples import biased

CURVATURE = np.array([1.0, 3.0, 0.5, 2.0])


def gradient(y):
    return CURVATURE * y


def rounded(gradient, gamma, c, levels):
    """An exact gradient in fixed-point arithmetic: the grid of level k keeps the error <= 2^-k."""

    def evaluate(k, y):
        grid = 2.0 * 2.0**-k / math.sqrt(y.size)
        return grid * np.round(gradient(y) / grid)

    return Hierarchy(evaluate, lambda k: (c * 2.0**k) ** gamma, levels)


def alternating(*arguments):
    return biased(*arguments, alternate=True)


FAMILIES = {"rounded": rounded, "biased": biased, "alternating": alternating}
POINTS = list(np.random.default_rng(3).normal(size=(60, 4)))
