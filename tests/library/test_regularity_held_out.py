"""What `audit` says about how errors vary with y, on hierarchies that nobody set its thresholds by."""

import numpy as np
import pytest

from mlgd import Hierarchy, audit

SEEDS = range(5)


def unit(rng, d):
    v = rng.standard_normal(d)
    return v / np.linalg.norm(v)


def linear(rng, d, change):
    u, w = (
        [unit(rng, d) for _ in range(9)],
        [np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(9)],
    )
    return lambda k, g, y: 2.0**-k * (u[k] + change * w[k] @ y)


def waves(rng, d, length):
    """Eight random cosines per level, of one wavelength."""
    size, phase = rng.standard_normal((9, 8, d)) / np.sqrt(8 * d), rng.uniform(0, 2 * np.pi, (9, 8))
    along = 2 * np.pi / length * np.array([[unit(rng, d) for _ in range(8)] for _ in range(9)])
    return lambda k, g, y: 2.0**-k * np.sqrt(2) * np.cos(along[k] @ y + phase[k]) @ size[k]


def rounding(rng, d, step):
    shift = rng.uniform(0, 1, d)

    def error(k, g, y):
        grid = step * 2.0**-k / np.sqrt(d)
        return grid * (np.round(g / grid + shift) - shift) - g

    return error


def cells(rng, d, side):
    odd, table = 2 * rng.integers(0, 2**20, d) + 1, rng.standard_normal((9, 4096, d)) / np.sqrt(d)
    return lambda k, g, y: 2.0**-k * table[k, int(np.floor(y / side).astype(np.int64) @ odd % 4096)]


def verdicts(family, number):
    found = []
    for seed in SEEDS:
        rng = np.random.default_rng([20261116, seed])
        d = int(rng.choice([4, 12, 40]))
        slope, error = np.geomspace(0.02, 1, d), family(rng, d, number)
        h = Hierarchy(
            lambda k, y, s=slope, e=error: s * y + e(k, s * y, y), lambda k: 8.0**k, range(1, 7)
        )
        start = rng.standard_normal(d) / np.sqrt(d)
        distances = (1.0, 0.5, 0.1, 0.03) if seed % 2 else (1.0, 0.3, 0.1, 0.03, 0.01)
        found.append(audit(h, [start, *(start + t * unit(rng, d) for t in distances)]).regularity)
    return found


@pytest.mark.parametrize(
    ("family", "number"),
    [(linear, change) for change in (0.01, 0.1, 1.0, 10.0)]
    + [(waves, length) for length in (100.0, 10.0, 3.0, 1.0)],
)
def test_errors_that_vary_over_the_distance_are_called_smooth(family, number):
    assert verdicts(family, number) == ["smooth"] * len(SEEDS)


@pytest.mark.parametrize(
    ("family", "number"),
    [(rounding, step) for step in (2.0, 0.5, 0.1, 0.02)]
    + [(cells, side) for side in (1.0, 0.1, 0.01, 0.001)],
)
def test_errors_that_jump_are_never_called_smooth(family, number):
    assert "smooth" not in verdicts(family, number)


def test_waves_shorter_than_the_closest_points_are_rough():
    assert verdicts(waves, 0.003) == ["rough"] * len(SEEDS)
