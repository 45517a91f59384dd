"""Solvers: minimizers from gradients alone, bounds that hold, curvature from differences."""

import math

import numpy as np
import pytest

from mlgd import Hierarchy
from mlgd.curvature import Curvature, Pair, lanczos, spectrum_around
from mlgd.solvers import TRIES, advance, constants, search

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
    calls, pairs = [0], Curvature()

    def counted(z):
        calls[0] += 1
        return f(z)

    g = counted(y)
    while np.linalg.norm(g) > tolerance and calls[0] < most:
        found = advance(counted, y, g, pairs)
        if found is None:
            break
        assert (g + found[1]) @ (
            found[0] - y
        ) < 1e-9  # the loss falls, by the trapezoidal rule
        y, g = found
    return y, calls[0]


@pytest.mark.parametrize(
    ("scale", "unit"), [(1e-6, 1.0), (1.0, 1.0), (1e6, 1.0), (1.0, 1e-6)]
)
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
    calls, pairs = [], Curvature([Pair(np.ones(3), np.ones(3), 3.0)])
    assert (
        advance(lambda y: calls.append(y) or np.ones(3), np.zeros(3), np.ones(3), pairs)
        is None
    )
    assert len(calls) == 3 + 14  # with the pairs, and without
    assert advance(lambda y: -y, np.ones(3), -np.ones(3), Curvature()) is None


NOTHING, FURTHER = math.inf, [10.0**n for n in (*range(10), 11, 14, 18, 23)]
TRIALS = {  # the slope along a line, and the lengths that are tried until one is taken, or nothing
    "at the minimizer": (lambda t: t - 1, [1]),
    "0.79 of it, beyond": (lambda t: 1.79 * t - 1, [1]),
    "0.81 of it, beyond": (lambda t: 1.81 * t - 1, [1, 1 / 1.81]),
    "0.89 of it": (lambda t: 0.11 * t - 1, [1]),
    "0.91 of it": (lambda t: 0.09 * t - 1, [1, 10]),
    "a steep wall": (lambda t: 101 * t - 1, [1, 0.1, 0.01]),
    "a cliff before": (lambda t: {0: -1, 1: -99, 10: 1}.get(t, 0), [1, 10, 9.1]),
    "nothing from 1 on": (lambda t: -1 if t < 1 else None, [1, 0.25, 0.4375]),
    "a plain": (lambda t: -1, [1, 10, 100, NOTHING]),
    "upwards": (lambda t: 1 + t, [NOTHING]),
}


def tried(slope, further):
    """The lengths tried; a value of the slope that is None is outside of the domain."""
    seen = []

    def f(x):
        seen.append(float(x[0]))
        return None if slope(x[0]) is None else np.array([slope(x[0])], float)

    found = search(f, np.zeros(1), np.array([slope(0.0)], float), np.ones(1), further)
    assert found is None or found[0][0] == seen[-1]
    return seen if found else [*seen, NOTHING]


@pytest.mark.parametrize("where", TRIALS)
def test_a_line_search_tries_no_more_than_it_must(where):
    slope, lengths = TRIALS[where]
    assert tried(slope, 2) == pytest.approx(lengths, rel=1e-12)
    assert tried(lambda t: -1, TRIES) == pytest.approx([*FURTHER, NOTHING])


def test_without_pairs_the_first_step_is_a_hundredth_of_the_point():
    for start, length in ((np.zeros(3), 1e-4), (np.full(4, 5.0), 0.1)):
        seen = []
        advance(lambda y, s=seen: s.append(y) or y - 1, start, start - 1, Curvature())
        assert np.linalg.norm(seen[0] - start) == pytest.approx(length)


def test_pairs_of_a_quadratic_make_its_inverse():
    known = Curvature()
    for e in np.eye(5):
        known.learn(e, SPECTRUM[-5:] * e)
    for cosine in (-1.0, 0.95e-10):  # no curvature, and too little
        known.learn(np.eye(5)[0], cosine * np.eye(5)[0] + np.eye(5)[1])
    other = Curvature()
    other.learn(np.eye(5)[0], 1.05e-10 * np.eye(5)[0] + np.eye(5)[1])
    assert len(other.pairs) == 1
    for _ in range(200):
        other.learn(np.ones(1), np.ones(1))
    # the oldest are forgotten
    assert [len(other.pairs), other.pairs[0].step.size] == [
        150,
        1,
    ]
    assert known.solve(np.ones(5)) == pytest.approx(1 / SPECTRUM[-5:])


def test_what_was_solved_is_remembered_until_a_pair_comes():
    known, v = Curvature(), START[:5]
    known.learn(np.eye(5)[0], 2 * np.eye(5)[0])
    first = known.solve(v)
    assert known.solve(v) is first
    assert known.worth(v) == pytest.approx(v @ first / 2)
    known.learn(np.eye(5)[1], 8 * np.eye(5)[1])
    assert known.solve(v) is not first
    known.forget()
    assert (known.worth(v), known.worth(0 * v)) == (math.inf, 0.0)


def test_lanczos_weighs_a_vector_and_solves():
    v = START
    found = lanczos(lambda u: SPECTRUM * u, v, 60)
    assert found.weights @ (1 / found.nodes) == pytest.approx(
        v @ (v / SPECTRUM), rel=1e-6
    )
    pairs = found.pairs(0.0, v.shape)
    assert Curvature(pairs).solve(v) == pytest.approx(v / SPECTRUM, rel=1e-4, abs=1e-4)
    assert min(pair.product for pair in found.pairs(0.1, v.shape)) == 0.1
    assert lanczos(lambda u: None, v, 60) is None
    sizes = [
        len(lanczos(lambda u: SPECTRUM * u, v, 60, tolerance).nodes)
        for tolerance in (0.1, 0.02)
    ]
    assert sizes == [18, 27]  # looked at after 6, and whenever there are a fifth more


def test_long_differences_drown_errors_that_jump_and_short_ones_a_bend():
    def jumps(y):
        size = 1e-3 * np.sin(1e9 * y)
        return quadratic(y) + size

    def bends(y):
        return y + 100 * np.sin(y / 1e-2) * 1e-4

    def looked(f, at):
        calls, rng = [], np.random.default_rng(0)
        counted = lambda y: calls.append(1) or f(y)  # noqa: E731
        found = spectrum_around(counted, at, f(at), START, 30.0, 60, rng)
        return found, len(calls) - len(found.nodes)

    (rough, few), (smooth, more) = looked(jumps, START), looked(bends, 0 * START)
    # lengths tried
    assert (few, more, looked(lambda y: np.sin(1e3 * y), START)[1]) == (
        5,
        7,
        7,
    )
    assert rough.jump == pytest.approx(1e-3 * math.sqrt(30), rel=0.08)
    assert rough.spacing == 30.0
    # per entry, not the whole jump over the distance
    assert 1e-5 < rough.unresolved < 1e-3
    assert rough.unresolved == max(3 * rough.noise, -rough.nodes[0])
    assert (smooth.spacing, smooth.jump) == (30 / 8**5, 0.0)
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


def test_a_point_with_no_value_around_it_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="no value at any point around"):
        spectrum_around(lambda y: None, np.ones(3), np.ones(3), np.ones(3), 1.0, 5, rng)
