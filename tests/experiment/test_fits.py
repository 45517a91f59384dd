"""mlgd.experiment.fits: power laws read back, and what many seeds say together."""

import numpy as np
import pytest

from mlgd.experiment.fits import (
    across_seeds,
    percentile,
    power_law,
    rank_of_mean,
    rank_of_median,
    rate,
    spread,
    subsets,
)


def test_power_laws_are_read_back():
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    assert power_law(x, 3 * x**-0.7) == (pytest.approx(-0.7), pytest.approx(1.0))
    assert power_law(x, np.where(x == 4, np.inf, 3 * x**-0.7))[0] == pytest.approx(-0.7)
    levels = np.array([1, 8, 32, 64, 128])
    bent = np.where(levels < 32, 32.0 ** (-1 / 3), levels ** (-1 / 3.0))
    assert rate(levels, bent, 32)[0] == pytest.approx(3.0)
    assert rate(levels, bent, 1)[0] != pytest.approx(3.0, abs=0.3)


def test_medians_need_half_of_the_seeds():
    flops = np.array(
        [[1.0, 1.0, np.inf], [2.0, np.inf, np.inf], [3.0, np.inf, 5.0], [9.0, 2.0, np.inf]]
    )
    low, middle, high = across_seeds(flops)
    assert (middle[0], middle[1]) == (2.5, 1.5)
    assert np.isnan(middle[2])
    assert low[0] < middle[0] < high[0]


def test_spreads_percentiles_and_subsets():
    assert spread([1, 2, 3]) == (2.0, pytest.approx(1 / np.sqrt(3)))
    assert [percentile(v, [1, 2, 3, 4]) for v in (0, 2, 2.5, 9)] == [0, 37.5, 50, 100]
    assert percentile(0.999, [1, 2], rounding=0.005) == 25
    drawn = subsets(np.arange(20), 10, 50)
    assert drawn.shape == (50, 10)
    assert all(len(set(row)) == 10 for row in drawn.tolist())


def test_a_rank_is_even_for_samples_that_are_alike_and_extreme_for_others():
    rng = np.random.default_rng(5)
    ranks = [rank_of_mean(*np.split(rng.standard_normal(30), [10]), count=500) for _ in range(200)]
    assert 35 < np.mean(ranks) < 65
    assert 5 < np.mean(np.array(ranks) < 25) * 100 < 45
    ours = rng.standard_normal(20)
    assert rank_of_mean(ours[:10] + 3, ours) == 100
    assert rank_of_median(np.median(ours), ours) == pytest.approx(50, abs=15)
    assert rank_of_median(ours.max(), np.where(ours > 1, np.inf, ours)) == 100
    assert percentile(np.median(ours) + 0.7, ours) < rank_of_median(np.median(ours) + 0.7, ours), (
        "sharper than among seeds"
    )
