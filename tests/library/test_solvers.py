"""Solvers: minimizers from gradients alone, bounds that hold, curvature from differences."""

import math

import numpy as np
import pytest

from mlgd import Hierarchy
from mlgd.solvers import advance, constants, curvature, inverse, lanczos

SPECTRUM = np.geomspace(1e-3, 1.0, 60)
START = np.random.default_rng(2).standard_normal(60)
MATRIX = np.random.default_rng(5).standard_normal((40, 12)) / 7
SIGNS = np.sign(np.random.default_rng(6).standard_normal(40))


def quadratic(y):
    return SPECTRUM * (y - 1)


def logistic(y):
    return -MATRIX.T @ (SIGNS / (1 + np.exp(SIGNS * (MATRIX @ y)))) + 1e-3 * y


def quartic(y):
    """No Lipschitz gradient: the line search must shorten its first steps."""
    return 4 * (y - 1) ** 3 + 0.01 * (y - 1)


def barrier(y):
    """Nothing outside of the unit box."""
    return 2 * y / (1 - y**2) - 0.9 if np.abs(y).max() < 1 else None


def solved(f, y, tolerance=1e-9, most=400):
    """L-BFGS until the gradient is small: the point and the evaluations."""
    calls, pairs = [0], []

    def counted(z):
        calls[0] += 1
        return f(z)

    g = counted(y)
    while np.linalg.norm(g) > tolerance and calls[0] < most:
        found = advance(counted, y, g, pairs)
        if found is None:
            break
        assert (g + found[1]) @ (found[0] - y) < 1e-9  # the loss falls, by the trapezoidal rule
        y, g = found
    return y, calls[0]


@pytest.mark.parametrize(("scale", "unit"), [(1e-6, 1.0), (1.0, 1.0), (1e6, 1.0), (1.0, 1e-6)])
@pytest.mark.parametrize(
    ("f", "start", "most"),
    [(quadratic, START, 200), (logistic, 0 * START[:12], 40), (quartic, START[:5], 90)],
)
def test_l_bfgs_finds_the_minimizer_whatever_the_units(f, start, most, scale, unit):
    y, calls = solved(lambda z: scale * f(z / unit), unit * start, tolerance=1e-7 * scale)
    assert np.linalg.norm(f(y / unit)) <= 1e-7
    assert calls <= most


def test_l_bfgs_stays_inside_of_a_domain():
    y, calls = solved(barrier, np.full(4, 0.99))
    assert np.abs(barrier(y)).max() < 1e-8
    assert calls < 60


def test_l_bfgs_says_where_no_step_helps():
    assert advance(lambda y: np.ones(3), np.zeros(3), np.ones(3), []) is None
    assert advance(lambda y: -y, np.ones(3), -np.ones(3), []) is None


def test_pairs_of_a_quadratic_make_its_inverse():
    pairs = []
    for e in np.eye(5):
        pairs.append([e, SPECTRUM[-5:] * e, float(e @ (SPECTRUM[-5:] * e))])
    assert inverse(pairs, np.ones(5)) == pytest.approx(1 / SPECTRUM[-5:])


def test_lanczos_weighs_a_vector_and_solves():
    v = START
    found = lanczos(lambda u: SPECTRUM * u, v, 60)
    assert found.weights @ (1 / found.nodes) == pytest.approx(v @ (v / SPECTRUM), rel=1e-6)
    pairs = found.pairs(0.0, v.shape)
    assert inverse(pairs, v) == pytest.approx(v / SPECTRUM, rel=1e-4, abs=1e-4)
    assert min(bent for *_, bent in found.pairs(0.1, v.shape)) == 0.1
    assert lanczos(lambda u: None, v, 60) is None


def test_long_differences_drown_errors_that_jump_and_short_ones_a_bend():
    def jumps(y):
        size = 1e-3 * np.sin(1e9 * y)
        return quadratic(y) + size

    def bends(y):
        return y + 100 * np.sin(y / 1e-2) * 1e-4

    rng = np.random.default_rng(0)
    rough = curvature(jumps, START, jumps(START), START, 30.0, 60, rng)
    assert rough.jump == pytest.approx(1e-3 * math.sqrt(30), rel=1)
    assert rough.t == 30.0
    assert 1e-5 < rough.unresolved < 1e-3  # per entry, not the whole jump over the distance
    smooth = curvature(bends, 0 * START, 0 * START, START, 30.0, 60, rng)
    assert smooth.t < 1e-2
    assert smooth.nodes[-1] == pytest.approx(2, rel=0.1)


def test_constants_of_a_quadratic_and_what_they_took():
    h = Hierarchy(lambda k, y: quadratic(y) + 1e-6 * 2.0**-k, lambda k: 4.0**k, range(3))
    found = constants(h, START)
    assert found.beta == pytest.approx(1, rel=0.01)
    assert 0 <= found.mu <= 3e-3
    assert found.d0 == pytest.approx(np.linalg.norm(START - 1), rel=0.1)
    assert found.took.startswith("level 0")
    with pytest.raises(ValueError, match="does not move"):
        constants(h.only([2]), np.ones(60) - 1e-6 / 4 / SPECTRUM)
