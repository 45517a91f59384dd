"""mlgd.examples: ready-made hierarchies obey Assumption 1, and the worst case reaches it."""

import math
import pickle

import numpy as np
import pytest
from families import FAMILIES, POINTS, alternating, gradient
from hypothesis import given, settings
from hypothesis import strategies as st

from mlgd.examples import HeatSource


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(-50, 50), min_size=4, max_size=4),
    st.integers(-3, 20),
    st.floats(0.3, 6),
    st.floats(0.1, 4),
)
def test_ready_made_levels_obey_the_assumption(name, y, k, rate, c):
    h, y = FAMILIES[name](gradient, rate, c, [k, k + 1]), np.array(y)
    error = np.linalg.norm(h.evaluate(k, y) - gradient(y))
    assert error <= 2.0**-k + 1e-12 * (1 + np.linalg.norm(y))
    assert math.isclose(h.cost(k), (c * 2.0**k) ** rate, rel_tol=1e-12)
    assert h.accuracy(k) == 2.0**-k


def test_a_ready_made_hierarchy_declares_its_accuracies_and_can_be_pickled():
    heat = HeatSource(range(3, 6))
    for h in (alternating(gradient, 2.0, 1.0, range(1, 8)), heat.hierarchy):
        assert h.declared
        k, y = h.levels[1], np.ones(4 if len(h.levels) == 7 else 16)
        copy = pickle.loads(pickle.dumps(h))
        np.testing.assert_array_equal(copy.value(k, y), h.value(k, y))
        assert (copy.cost(k), copy.accuracy(k)) == (h.cost(k), h.accuracy(k))


def test_the_worst_case_reaches_every_bound():
    h, y = alternating(gradient, 2.0, 1.0, range(1, 8)), POINTS[0]
    for k in h.levels[1:]:
        error, step = h.value(k, y) - gradient(y), h.step(k, y)
        assert np.linalg.norm(error) == pytest.approx(2.0**-k, rel=1e-9)
        assert np.linalg.norm(step) == pytest.approx(3 * 2.0**-k, rel=1e-9)


def test_the_heat_source_keeps_its_declared_errors_and_halves_them():
    heat = HeatSource(range(3, 9))
    h = heat.hierarchy
    for k in h.levels:
        error = {
            i: h.evaluate(k, e) - heat.gradient(e) for i, e in enumerate(np.eye(17, 16))
        }
        slope = np.array(
            [error[i] - error[16] for i in range(16)]
        ).T  # affine; the last is at zero
        away = 2 * heat.d0 * np.linalg.svd(slope)[2][0]  # where it grows fastest
        ends = heat.minimizer + away, heat.minimizer - away
        worst = max(np.linalg.norm(h.evaluate(k, q) - heat.gradient(q)) for q in ends)
        assert 0.999 * h.accuracy(k) <= worst <= h.accuracy(k)
    ratios = [heat.errors[k + 1] / heat.errors[k] for k in h.levels[:-1]]
    assert 0.49 < min(ratios) < max(ratios) < 0.56
    assert np.abs(heat.gradient(heat.minimizer)).max() < 1e-15
    assert (
        heat.loss(heat.minimizer)
        == 0
        < 100 * heat.eps
        == pytest.approx(heat.loss(heat.start))
    )
    assert heat.problem.gamma == 3
    laws = [h.cost(k) - (heat.problem.c / heat.errors[k]) ** 3 for k in h.levels]
    assert max(laws) == pytest.approx(0, abs=1e-6 * h.cost(h.levels[-1]))


def test_the_heat_source_is_what_an_implicit_euler_solver_with_its_adjoint_computes():
    heat, k = HeatSource(range(3, 6)), 4
    n, dt = 2**k, heat.END / 2**k
    x = np.arange(1, n) / n
    second = n**2 * (np.eye(n - 1, k=1) + np.eye(n - 1, k=-1) - 2 * np.eye(n - 1))
    laplace = np.kron(second, np.eye(n - 1)) + np.kron(np.eye(n - 1), second)
    step = np.linalg.inv(np.eye((n - 1) ** 2) - dt * laplace)
    bumps = np.exp(-((heat.CENTRES[:, None] - x) ** 2) / (2 * heat.WIDTH**2))
    sources = np.einsum("ai,bj->abij", bumps, bumps).reshape(16, -1)
    at = np.round(heat.SENSORS * n).astype(int) - 1
    q, forward = np.linspace(-1, 1, 16), []
    for strength in np.eye(16):
        u, readings = np.zeros((n - 1) ** 2), []
        for i in range(1, n + 1):
            u = step @ (u + dt * strength @ sources)
            if i in (n // 2, n):
                readings.append(u.reshape(n - 1, n - 1)[np.ix_(at, at)].ravel())
        forward.append(np.concatenate(readings))
    forward = np.array(forward).T
    expected = forward.T @ (forward @ q - heat.data) + heat.ALPHA * q
    np.testing.assert_allclose(
        heat.hierarchy.evaluate(k, q), expected, rtol=1e-9, atol=1e-14
    )
