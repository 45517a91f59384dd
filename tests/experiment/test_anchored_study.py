import ast

import numpy as np
import pytest

from mlgd import audit
from mlgd.experiment import anchored_search, hindsight
from mlgd.experiment import anchored_study as study
from mlgd.experiment.linear_errors import instance


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


def test_rough_errors_lose_nothing_with_a_coefficient_that_the_draws_tell():
    rng = np.random.default_rng(0)
    start, aside = 0.3 * rng.standard_normal(20), rng.standard_normal((12, 20))
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    errors = study.errors()
    for name in ("constant on cells", "fixed-point rounding"):
        h = study.hierarchy(errors[name])
        assert (
            audit(
                h,
                [
                    start,
                    *(start + t * u for t, u in zip((1, 0.5, 0.1, 0.03), aside[:4], strict=True)),
                ],
            ).regularity
            == "rough"
        )
    error = errors["fixed-point rounding"]
    (plain, before), (paid, after) = (
        study.rough_run(error, a, epochs=2, runs=40) for a in (0.0, None)
    )
    assert plain < paid <= 2 * plain
    off = after - before
    assert off.mean() < 5 * off.std() / 40**0.5 + 0.05 * before.mean()
    assert study.rough_run(error, 1.0, epochs=2, runs=40)[1].mean() > 1.4 * before.mean()


def test_mixing_the_outer_steps_helps_where_the_coarse_model_does_not_contract():
    family = instance(1000, 3, 0, levels=12)
    assert study.corrections(family, 0, 10, mixed=False) == 60
    assert study.corrections(family, 0, 10, mixed=True) < 25
    assert (
        study.corrections(family, 3, 10, mixed=False)
        == study.corrections(family, 3, 10, mixed=True)
        <= 5
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
    price = features.price(0.5, 6, [], 10**6)
    assert price == round(price)
    assert features.price(0.1, 2, [], 30) < features.price(0.1, 6, [], 10**6)
    assert features.price(0.1, 1, [0.4, 0.1, 0.05, 0.02, 0.01], 0) < features.price(
        0.1, 6, [], 10**6
    )


def test_the_stored_table_is_what_the_code_gives(book):
    stored = study.means(book / "data" / "hindsight.tsv")
    assert all(found["anchored"][2] == found["corrected"][2] == 10 for found in stored.values())
    assert len(stored) == 20
    lines = (book / "data" / "hindsight.tsv").read_text(encoding="utf-8").splitlines()
    assert "python -m mlgd.experiment.hindsight" in lines[0]
    methods = {"corrected": hindsight.corrected, "anchored": hindsight.anchored}
    for row in hindsight.table([(100, 6, 1e-2)], [3], methods):
        assert row in lines
    fields = next(line for line in lines if line.startswith("10000\t3\t0.01\t5\tanchored")).split(
        "\t"
    )
    family = instance(10000, 3, 5, levels=18)
    again = anchored_search._epochs(
        family, 1e-2, ast.literal_eval(fields[-1]), True, anchored_search._Exact
    )
    assert f"{again.price:.3f}" == f"{float(fields[5]):.3f}"
