"""The reduction of a design, and power laws read back."""

import numpy as np
import pytest

from mlgd.experiment.design import Design
from mlgd.experiment.reduce import (
    PROBES,
    WIDE,
    descend,
    power_law,
    rate,
    read_levels,
    reduce,
)

SMALL = Design(m=128, n=1500, seed=4)


def test_reduction_is_the_stored_problem():
    matrix = SMALL.columns(SMALL.n)
    b, problem, head = matrix @ SMALL.targets(), reduce(SMALL, 64), matrix[:, :64]
    np.testing.assert_allclose(problem.gram, head.T @ head, atol=1e-14)
    np.testing.assert_allclose(problem.moment, head.T @ problem.right, atol=1e-13)
    np.testing.assert_allclose(problem.right, b, atol=1e-6)  # summed in single precision
    levels = [1, 8, 64]
    biases = zip(
        problem.probes, problem.biases(levels), problem.biases(levels, True), strict=True
    )
    for x, exact, truncated in biases:
        full = np.append(x, np.zeros(SMALL.n - 64))
        gradient = matrix.T @ (matrix @ full - b)
        assert problem.loss(x) == pytest.approx(
            np.sum((matrix @ full - b) ** 2) / 2, rel=1e-5
        )
        for k, a, c in zip(levels, exact, truncated, strict=True):
            level = np.zeros(SMALL.n)
            level[:k] = gradient[:k]
            assert a == pytest.approx(np.linalg.norm(level - gradient), rel=1e-5)
            level[:k] = matrix[:, :k].T @ (matrix[:, :k] @ full[:k] - b)
            assert c == pytest.approx(np.linalg.norm(level - gradient), rel=1e-5)


def test_reduction_does_not_depend_on_what_is_kept():
    whole = reduce(SMALL, 32)
    for keep in (0, 2**18):
        again = reduce(SMALL, 32, keep=keep)
        np.testing.assert_array_equal(again.moment, whole.moment)
        np.testing.assert_array_equal(again.tails, whole.tails)


def test_diagnostic_descent_is_the_descent():
    problem = reduce(SMALL, 32)
    x, eta, path = np.zeros(32), 1 / (4 * problem.smoothness(32)), []
    for _ in range(21):
        path.append(x)
        x = x - eta * (problem.gram @ x - problem.moment)
    found = descend(problem.gram, problem.moment, (0, 1, 4, 20))
    np.testing.assert_allclose(found, np.array(path)[[0, 1, 4, 20]], atol=1e-13)
    assert problem.steps == PROBES
    assert set(PROBES) < set(WIDE)


def test_power_laws_are_read_back():
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    assert power_law(x, 3 * x**-0.7) == (pytest.approx(-0.7), pytest.approx(1.0))
    assert power_law(x, np.where(x == 4, np.inf, 3 * x**-0.7))[0] == pytest.approx(-0.7)
    levels = read_levels(512)
    assert (len(levels), int((levels < 32).sum())) == (18, 9)
    bent = np.where(levels < 32, 32.0 ** (-1 / 3), levels ** (-1 / 3.0))
    assert rate(levels, bent, 32)[0] == pytest.approx(3.0)
    assert rate(levels, bent, 1)[0] != pytest.approx(3.0, abs=0.3)


def test_bad_reductions_are_refused():
    with pytest.raises(ValueError, match="past m columns"):
        reduce(SMALL, 129)
    with pytest.raises(ValueError, match="between 1 and"):
        reduce(Design(m=128, n=20), 32)
