"""mlgd.experiment.frontier: the searches and fits behind the frontiers (whole frontiers: test_sweep.py)."""

import numpy as np
import pytest

from mlgd.experiment.frontier import across_seeds, first_below, fixed_frontier, power_law, probabilities, rate


def test_first_below_is_the_first():
    needed = np.array([0.9, 0.5, 1e-3, 1e-9, 0.0, -1.0])
    found = first_below(lambda t: 1 / t, needed)
    np.testing.assert_array_equal(found[:4], [2, 2, 1000, 1e9])
    assert np.isinf(found[4:]).all()
    assert np.isinf(first_below(lambda t: np.ones_like(t), np.array([0.5]))).all()


def test_power_laws_are_read_back():
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    slope, r2 = power_law(x, 3 * x**-0.7)
    assert (slope, r2) == (pytest.approx(-0.7), pytest.approx(1.0))
    with_gap = np.where(x == 4, np.inf, 3 * x**-0.7)
    assert power_law(x, with_gap)[0] == pytest.approx(-0.7)
    levels = np.array([1, 8, 32, 64, 128])
    plateau = np.where(levels < 32, 32.0 ** (-1 / 3), levels ** (-1 / 3.0))
    assert rate(levels, plateau, 32)[0] == pytest.approx(3.0)
    assert rate(levels, plateau, 1)[0] != pytest.approx(3.0, abs=0.3)


def test_probabilities_follow_the_biases_and_are_clamped():
    p = probabilities(np.array([1.0, 0.5, 0.25]), 3.0, 2.0)
    np.testing.assert_allclose(p, [1.0, 2 * 0.5**2.5, 2 * 0.25**2.5])


def test_reading_rarely_rounds_the_steps_up():
    steps = {(4, 1.0, "last"): np.array([7.0, 150.0, np.inf])}
    np.testing.assert_array_equal(fixed_frontier(steps, 10).flops, [7 * 160.0, 150 * 160.0, np.inf])
    np.testing.assert_array_equal(fixed_frontier(steps, 10, every=100).flops, [100 * 160.0, 200 * 160.0, np.inf])
    assert np.isinf(fixed_frontier(steps, 10, max_steps=100).flops[1])


def test_quartiles_need_half_of_the_seeds():
    flops = np.array([[1.0, 1.0], [3.0, np.inf], [2.0, np.inf]])
    low, middle, high = across_seeds(flops)
    assert (low[0], middle[0], high[0]) == (1.5, 2.0, 2.5)
    assert np.isnan(middle[1])
