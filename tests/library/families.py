"""Dyadic hierarchies on one gradient: the worst case, and fixed-point arithmetic."""

import math
from dataclasses import replace
from itertools import product

import numpy as np

from mlgd import Hierarchy
from mlgd.examples import biased
from mlgd.hierarchy import dyadic
from mlgd.telescope import Draw

CURVATURE = np.array([1.0, 3.0, 0.5, 2.0])


def gradient(y):
    return CURVATURE * y


def rounded(gradient, gamma, c, levels):
    """An exact gradient in fixed-point arithmetic: the grid of level k keeps the error <= 2^-k."""

    def evaluate(k, y):
        grid = 2.0 * 2.0**-k / math.sqrt(y.size)
        return grid * np.round(gradient(y) / grid)

    return Hierarchy(evaluate, lambda k: (c * 2.0**k) ** gamma, levels, dyadic)


def alternating(*arguments):
    return biased(*arguments, alternate=True)


def along(direction, gradient, gamma, c, levels):
    """The worst case along another direction than the diagonal, with signs that alternate."""
    unit = np.asarray(direction) / np.linalg.norm(direction)
    evaluate = lambda k, y: gradient(y) + (-2.0) ** -k * unit  # noqa: E731
    return Hierarchy(evaluate, lambda k: (c * 2.0**k) ** gamma, levels, dyadic)


def failing(h, number, fault):
    """The hierarchy, with a fault in one evaluation: an exception, or what it returns."""
    calls = 0

    def evaluate(k, y):
        nonlocal calls
        calls += 1
        if calls == number and isinstance(fault, type):
            raise fault("mine")
        return fault if calls == number else h.evaluate(k, y)

    return replace(h, evaluate=evaluate)


def outcomes(t, y):
    """Every draw of a telescope: its probability, value, levels evaluated and what they cost."""
    for drawn in product((False, True), repeat=t.random.size):
        levels: list[int] = []

        def buy(asked, y, levels=levels):
            levels.extend(asked)
            return [t.h.value(k, y) for k in asked]

        value = t.combine(drawn, buy, y)
        chance = np.prod(np.where(drawn, t.random, 1 - t.random))
        yield float(chance), Draw(value, sum(map(t.h.cost, levels)), tuple(levels))


FAMILIES = {"rounded": rounded, "biased": biased, "alternating": alternating}
POINTS = list(np.random.default_rng(3).normal(size=(60, 4)))
