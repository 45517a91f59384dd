"""The real problems of the chapter on one's own hierarchy: levels that approach the judge's gradient, and a rival that gets there."""

import json
from pathlib import Path

import numpy as np
import pytest

from mlgd.experiment import cases, inhabitants
from mlgd.experiment.telescoped import telescoped


def test_levels_of_the_cube_approach_the_gradient_of_the_loss_that_judges():
    case, y = cases.cube(), np.array([0.2, -0.5, 0.1])
    slope = [(case.loss(y + 1e-6 * e) - case.loss(y - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    off = [np.linalg.norm(case.h.value(k, y) - slope) for k in (3, 4, 5)]
    assert off[1] < 0.6 * off[0]
    assert off[2] < 0.6 * off[1]


def test_a_rival_in_hindsight_reaches_the_target_at_the_price_it_names():
    case = cases.cube()
    eps = 1e-2 * case.loss(case.start)
    one, ladder = (cases.rival(case, eps, coarse)[0] for coarse in (False, True))
    assert ladder <= one < case.h.cost(7)


def test_least_absolute_deviations_jump():
    case = cases.deviations(judge=4)
    y = np.full(8, 0.1)
    moved = [
        np.linalg.norm(case.h.value(2, y + t) - case.h.value(2, y))
        for t in np.linspace(0, 0.05, 200)
    ]
    assert len(set(np.round(moved, 6))) < 120  # constant between jumps, up to the ridge
    assert max(moved) > 0.01


def test_extrapolation_cancels_the_error_of_first_order():
    case, y = cases.cube(), np.array([0.2, -0.5, 0.1])
    slope = [(case.loss(y + 1e-6 * e) - case.loss(y - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    better = cases.extrapolated(case)
    off = [np.linalg.norm(better.h.value(k, y) - slope) for k in (3, 4)]
    assert off[1] < 0.3 * off[0] < 0.1 * np.linalg.norm(case.h.value(3, y) - slope)
    assert better.h.cost(4) == case.h.cost(4) + case.h.cost(3)


def test_a_corrected_model_pays_for_its_fine_gradients():
    case = cases.cube()
    eps = 1e-3 * case.loss(case.start)
    price, said, _ = cases.corrected(case, eps)
    assert case.h.cost(3) < price < cases.rival(case, eps, False)[0]
    assert "under" in said


def test_the_gradient_of_the_logistic_loss_is_its_slope_beyond_the_ladder():
    case = inhabitants.logistic(samples=8)
    y, e = np.linspace(-1, 1, 8), np.eye(8)[2]
    slope = (case.loss(y + 1e-5 * e) - case.loss(y - 1e-5 * e)) / 2e-5
    off = [abs(case.h.value(k, y)[2] - slope) for k in (2, 3, 4, 5)]
    assert off[3] < 0.5 * off[0]


def test_no_method_is_below_the_minimum_of_the_absolute_deviations():
    source = inhabitants.Deviations()
    best, _ = source.primal_dual(99, np.zeros(16), np.zeros(98), 30_000)
    more, _ = source.primal_dual(99, best, np.zeros(98), 30_000)
    assert source.value(best) - source.value(more) < 1e-4 * source.value(np.zeros(16))


def test_an_inner_solver_stopped_early_is_off_anew_at_every_point_and_less_at_finer_levels():
    case, _ = inhabitants.stopped()
    y = np.ones(16)
    assert (case.h.value(2, y) == case.h.value(2, y)).all()
    near = [np.linalg.norm(case.h.value(k, y) - case.h.value(k, y + 1e-9)) for k in (2, 4)]
    assert near[0] > 2 * near[1] > 1e-6


def test_a_telescope_in_hindsight_reaches_what_it_says():
    case = cases.cube()
    eps = 1e-2 * case.loss(case.start)
    price, said, _, loss = telescoped(case, eps, most=40)
    assert np.isfinite(price)
    assert loss < 3
    assert "steps" in said


def test_the_stored_races_are_those_of_the_code():
    """The rivals of the smallest race."""
    path = Path(__file__).parents[2] / "book/data/cases.json"
    stored = json.loads(path.read_text(encoding="utf-8"))["cases"]
    assert [row["case"] for row in stored] == list(cases.CASES)
    make, target = cases.CASES["loose"]
    case = make()
    for method, row in stored[0]["rivals"].items():
        assert cases.RIVALS[method](case, target * case.loss(case.start))[:2] == (
            row["price"],
            row["with"],
        )


@pytest.mark.parametrize(
    "make", [inhabitants.logistic, inhabitants.deviations, inhabitants.stopped]
)
def test_the_long_way_to_a_gradient_ends_where_the_short_cut_does(make):
    """What is timed computes what was raced."""
    made = make()
    case = made[0] if isinstance(made, tuple) else made
    y = np.linspace(-1, 1, case.start.size)
    for k in case.h.levels[1:3]:
        np.testing.assert_allclose(case.work(k, y), case.h.value(k, y), rtol=1e-7, atol=1e-12)
    assert not np.allclose(
        case.work(case.h.levels[1], y), case.h.value(case.h.levels[2], y), rtol=1e-4
    )


def test_a_run_is_timed_as_often_as_there_is_time():
    made = []
    assert set(cases.timed(lambda: made.append(1), repeats=5)) == {"seconds", "processor"}
    assert len(made) == 5
    cases.timed(lambda: made.append(1), repeats=5, enough=0.0)
    assert len(made) == 6
