"""The map: a slice of it is recomputed, its moments are what runs do, and its formulas are where it says."""

import json
from pathlib import Path

import numpy as np
import pytest

from mlgd.experiment import anchoring, krylov, territory
from mlgd.experiment.fields import KINDS, LEVELS, TARGETS, Family, Instances
from mlgd.experiment.responses import linear_methods, run, ways
from mlgd.experiment.spots import hierarchy, runs

CELLS = json.loads((Path(__file__).parents[2] / "book/data/territory.json").read_text(encoding="utf-8"))["cells"]


@pytest.mark.parametrize("kind", KINDS)
def test_levels_are_as_accurate_as_they_promise(kind):
    f = Family(1e3, kind)
    i = Instances(f, range(4))
    for y in (i.start, 0.3 * i.start, 0 * i.start):
        off = np.linalg.norm(i.gradients(range(LEVELS), y) - f.spectrum * y, axis=2)
        assert (off <= f.accuracy[:, None] * (1 + 1e-9)).all()


def test_fresh_errors_are_new_at_every_point_and_the_same_at_the_same():
    h, y = hierarchy(Family(100.0), 3.0, 0)
    assert (h.value(2, y) == h.value(2, y)).all()
    assert np.linalg.norm(h.value(2, y) - h.value(2, y + 1e-12)) > 0.3 * h.accuracy(2)


def test_a_slice_of_the_map_is_what_the_methods_cost():
    f = Family(100.0)
    for gamma in (1.5, 4.0):
        for eps in TARGETS:
            stored = next(
                c for c in CELLS if (c["kind"], c["kappa"], c["gamma"], c["eps"]) == ("fresh", 100.0, gamma, eps)
            )
            unit = 2.0 ** (gamma * f.unit(eps))
            for method, found in linear_methods(f, eps, gamma, ways(f)).items():
                assert found.price / unit == pytest.approx(stored["prices"][method], rel=1e-3)
                assert found.loss <= eps * (1 + 1e-9)


def test_moments_are_what_runs_do():
    for row in runs(3.0, 100.0, TARGETS[0], seed=7)[:4]:
        assert abs(row["loss off"]) < 4
        assert abs(row["price off"]) < 4


def test_half_the_noise_would_be_noticed():
    f, gamma, eps = Family(100.0), 3.0, TARGETS[0]
    found = linear_methods(f, eps, gamma, ways(f))["plain telescope"]
    losses, _ = run(Instances(f, range(1000, 1256)), found, gamma, 1)
    se = losses.std(ddof=1) / 16
    assert abs(losses.mean() - found.loss) < 4 * se
    assert abs(losses.mean() - 0.75 * found.loss) > 4 * se


def test_anchored_moments_are_what_runs_do():
    i = anchoring.Affine.of(Family(100.0, "smooth"), [0])
    epochs = (
        anchoring.Epoch(2, 0, 1.0, 60, (0.2, 0.05), 0.0),
        anchoring.Epoch(4, 1, 1.8, 60, (0.1, 0.02, 0.004), 0.0),
    )
    losses, _ = anchoring.run(i, epochs, 3.0, 1000, 0)
    assert abs(losses.mean() - anchoring.reported(i, epochs)) < 4 * losses.std(ddof=1) / 1000**0.5


def test_conjugate_gradients_without_errors_are_exact_in_as_many_steps_as_eigenvalues():
    f = Family(10.0, "smooth", d=4)
    i = Instances(f, range(3))
    y, _ = krylov.solve(i, i.start, LEVELS - 1, LEVELS - 1, 4)
    assert (f.loss(y) < 1e-6).all()


def test_a_chain_pays_for_fine_gradients_and_for_products():
    assert krylov.Chain(((3, 1, 5), (3, 3, 2))).price(1.0) == 8 + 6 * 2 + 8 + 2 * 8


def test_the_border_is_where_both_formulas_agree():
    for gamma in (2.5, 4.0, 8.0):
        kappa = territory.border(gamma)
        assert territory.nesterov_price(kappa, gamma) == pytest.approx(territory.telescope_price(gamma))
