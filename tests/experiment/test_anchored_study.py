import numpy as np
import pytest

from mlgd import audit
from mlgd.experiment import anchored_study as study
from mlgd.experiment import hindsight


def test_proved_prices_fall_towards_one_gradient():
    prices = study.proved(3.0, [1e-4, 1e-6])
    assert prices["anchored"][1] < prices["anchored"][0]
    assert prices["anchored"][1] < 1.5
    assert prices["plain"][1] > 1000 * prices["anchored"][1]


def test_anchoring_pays_while_errors_change_slowly():
    prices = study.by_change(3.0, [0.01, 1000.0], 1e-5)
    assert prices["anchored"][0] < 2 < prices["plain"][0]
    assert prices["anchored"][1] > 100 * prices["anchored"][0]
    assert prices["corrected"][0] < 2


def test_rough_errors_gain_nothing_and_lose_nothing_with_a_fitted_coefficient():
    rng = np.random.default_rng(0)
    start, aside = 0.3 * rng.standard_normal(20), rng.standard_normal((12, 20))
    points = start + 0.1 * aside / np.linalg.norm(aside, axis=1, keepdims=True)
    fields = study.fields()
    assert study.noise(fields["linear in y"], start, points, fitted=False) < 0.01
    for name in ("constant on cells", "fixed-point rounding"):
        assert study.noise(fields[name], start, points, fitted=False) > 1.2
        assert study.noise(fields[name], start, points, fitted=True) <= 1
        assert (
            audit(fields[name], [start, *points[:2], start + aside[3], start + 0.01 * aside[4]]).regularity != "smooth"
        )


def test_the_heat_source_is_the_one_of_the_library():
    source = study.heat_source()
    from mlgd.experiment.heat import HeatSource

    heat = HeatSource(alpha=1e-4)
    beta = np.linalg.eigvalsh(heat.hessian)[-1]
    assert source.loss(source.e0) * beta == pytest.approx(heat.loss_gap(np.zeros(16)))
    assert np.linalg.norm(source.matrix[2] @ source.e0 + source.offset[2]) * beta == pytest.approx(
        np.linalg.norm(heat.evaluate(heat.levels[2], np.zeros(16)))
    )


def test_features_by_descent_at_the_finest_level_cost_a_gradient_per_step():
    features = study.Features()
    assert features.price(0.5, 6, [], 10**6, runs=1) == pytest.approx(
        1 + round(features.price(0.5, 6, [], 10**6, runs=1) - 1)
    )
    assert features.price(0.1, 2, [], 30, runs=1) < features.price(0.1, 6, [], 10**6, runs=1)


def test_the_stored_table_is_what_the_code_gives(book):
    stored = study.means(book / "data" / "hindsight.tsv")
    row = next(iter(hindsight.table([(100, 6, 1e-2)], [3], {"corrected": hindsight.corrected}))).split("\t")
    lines = (book / "data" / "hindsight.tsv").read_text(encoding="utf-8").splitlines()
    assert "\t".join(row) in lines
    assert stored[100, 3.0, 1e-6]["anchored"][0] < 1.5
