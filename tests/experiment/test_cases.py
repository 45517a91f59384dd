"""The real problems of the chapter on one's own hierarchy: levels that approach the judge's gradient, and a rival that gets there."""

import numpy as np

from mlgd.experiment import cases


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
    moved = [np.linalg.norm(case.h.value(2, y + t) - case.h.value(2, y)) for t in np.linspace(0, 0.05, 200)]
    assert len(set(np.round(moved, 6))) < 120  # constant between jumps, up to the ridge
    assert max(moved) > 0.01
