"""The ready-made hierarchies on one gradient, for the tests of hierarchy and audit."""

import numpy as np

from mlgd.examples import biased, rounded

CURVATURE = np.array([1.0, 3.0, 0.5, 2.0])


def gradient(y):
    return CURVATURE * y


def alternating(*arguments):
    return biased(*arguments, alternate=True)


FAMILIES = {"rounded": rounded, "biased": biased, "alternating": alternating}
POINTS = list(np.random.default_rng(3).normal(size=(60, 4)))
