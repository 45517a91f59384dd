"""Runs without a plan on losses that bend, levels that repeat, directions without curvature, and errors that jump: price and loss."""

import numpy as np
import pytest

from mlgd import Hierarchy, minimize
from mlgd.dithering import Dither
from mlgd.errors import Errors

D = 40
RNG = np.random.default_rng(11)
BASIS = np.linalg.qr(RNG.normal(size=(D, D)))[0]
LAM, TARGET = np.geomspace(1e-3, 1, D), RNG.normal(size=D)
HESSIAN = (BASIS * LAM) @ BASIS.T
OFF = RNG.normal(size=(20, D))
OFF /= np.linalg.norm(OFF, axis=1, keepdims=True)
ROWS, SHIFT = RNG.normal(size=(5 * D, D)), RNG.normal(size=5 * D)


def loss(y):
    return float((y - TARGET) @ HESSIAN @ (y - TARGET)) / 2


def exact(y):
    return HESSIAN @ (y - TARGET)


def rounding(k, y):
    grid = 0.2 * 2.0**-k / np.sqrt(D)
    return grid * np.round(exact(y) / grid)


def lasting(k, y):
    """Half of the error stays: it does not average out."""
    return rounding(k, y) + 0.05 * 2.0**-k * OFF[k]


def run(evaluate, gamma, eps, levels=range(14), start=None, rng=0):
    h = Hierarchy(evaluate, lambda k: 2.0 ** (gamma * k), levels)
    return minimize(h, np.zeros(D) if start is None else start, eps=eps, rng=rng)


def peaked(y, warmth=0.1):
    """Nearly the maximum of two hundred planes: the curvature changes by orders of magnitude on the way."""
    z = (ROWS @ y + SHIFT) / warmth
    p = np.exp(z - z.max())
    return ROWS.T @ (p / p.sum()) + 0.01 * y


def peaked_loss(y, warmth=0.1):
    z = (ROWS @ y + SHIFT) / warmth
    return float(warmth * (z.max() + np.log(np.exp(z - z.max()).sum())) + 0.005 * y @ y)


def test_a_loss_that_bends_is_followed_on_cheap_levels():
    from scipy.optimize import minimize as solved

    start = 3 * np.random.default_rng(1).normal(size=D)
    least = solved(peaked_loss, start, jac=peaked, tol=1e-12, options={"maxiter": 10000}).fun
    eps = 0.01 * (peaked_loss(start) - least)
    found = run(lambda k, y: peaked(y) + 0.1 * 2.0**-k * OFF[k], 3, eps, start=start)
    assert peaked_loss(found.y) - least <= eps
    assert max(k for k, n in found.evaluations.items() if n) <= 4  # it had climbed the whole ladder


def test_directions_without_curvature_are_left_alone():
    flat = np.where(LAM < 0.01, 0.0, LAM)
    found = run(
        lambda k, y: BASIS @ (flat * (BASIS.T @ (y - TARGET))) + 0.1 * 2.0**-k * OFF[k], 3, 1e-3
    )
    assert found.status == "done"
    assert float(flat @ (BASIS.T @ (found.y - TARGET)) ** 2) / 2 <= 1e-3
    assert np.linalg.norm(found.y) < 10 * np.linalg.norm(TARGET)


@pytest.mark.parametrize("repeated", [1, 2])
def test_one_level_that_repeats_another_proves_nothing(repeated):
    def repeats(k, y):
        j = k - 1 if k == repeated else k
        return exact(y) + 0.3 * 2.0**-j * OFF[j]

    found = run(repeats, 3, 1e-3)
    assert found.status == "done"
    assert loss(found.y) <= 2e-3


def test_fewer_than_three_levels_promise_nothing():
    found = run(lambda k, y: exact(y) + 1e-4 * 2.0**-k * OFF[k], 3, 1e-2, levels=range(2))
    assert (found.status, found.promise) == ("done", "none")
    assert "fewer than three levels that differ" in found.message


def test_rounding_averages_out_for_less_than_the_levels_that_it_would_take():
    """By levels the target takes a gradient of level 5 at least, at this rate a price of 2^30."""
    runs = [run(rounding, 6, 1e-3, rng=seed) for seed in range(6)]
    assert np.mean([loss(found.y) for found in runs]) <= 1e-3
    assert max(found.cost for found in runs) < 1e-3 * 2.0**30
    assert all(
        any("average out: means of level" in told for told in found.decisions) for found in runs
    )
    assert {found.promise for found in runs} == {"none"}
    assert all(sum(found.cost_by_purpose.values()) == pytest.approx(found.cost) for found in runs)


def test_means_are_given_up_where_the_loss_bends_or_a_point_leaves_the_domain():
    """Rounding on a loss that is not quadratic, and within walls: a mean smooths it, or has no value."""

    def bends(k, y):
        grid = 2.0**-k / np.sqrt(D)
        return grid * np.round(((y - TARGET) ** 3 + exact(y)) / grid)

    found = run(bends, 4, 1e-3)
    assert any("levels are asked again" in told for told in found.decisions)
    assert (found.status, found.promise) == ("done", "none")
    assert float(((found.y - TARGET) ** 4).sum()) / 4 + loss(found.y) <= 2e-3

    def walls(k, y):
        return (
            rounding(k, y)
            if np.linalg.norm(y - TARGET) < 1.5 * np.linalg.norm(TARGET)
            else y * np.nan
        )

    assert run(walls, 4, 1e-2).status != "failed"


def test_errors_that_stay_are_not_averaged():
    found = run(lasting, 4, 1e-3)
    assert loss(found.y) <= 1.5e-3
    assert any("do not average out" in told for told in found.decisions)


@pytest.mark.parametrize(("size", "gamma"), [(0.01, 3), (0.025, 4)])
def test_a_small_part_that_stays_is_seen_in_larger_means(size, gamma):
    """A sixth or two fifths of the error: most of it averages out, and what does not is a hundred times eps."""
    found = run(lambda k, y: rounding(k, y) + size * 2.0**-k * OFF[k], gamma, 1e-4)
    assert any("levels are asked again" in told for told in found.decisions)
    assert loss(found.y) <= 1e-4


def test_a_mean_is_of_points_and_their_opposites_and_keeps_a_linear_gradient():
    dither = Dither(2, RNG.normal(size=(3, D)), last=2)
    shifts = np.array(list(dither.shifts(64)))
    assert len(shifts) == 64
    assert abs(shifts.mean(axis=0)).max() < 1e-14
    assert np.linalg.matrix_rank(shifts) == 3
    y = RNG.normal(size=D)
    assert np.allclose(dither.mean(lambda k, z: exact(z), 5, y), exact(y), atol=1e-12)
    coarse = Hierarchy(rounding, lambda k: 2.0 ** (6 * k), range(9))
    ladder = dither.ladder(coarse)
    assert [ladder.cost(k) for k in ladder.levels[:5]] == [1, 64, 4096, 4 * 4096, 16 * 4096]
    ahead = Dither(1, dither.directions, last=3, lead=2)
    assert [ahead.points(k) for k in (4, 5)] == [64, 256]
    assert ahead.ladder(coarse).cost(4) == 64 * 64
    spread = Dither(2, np.linalg.solve(HESSIAN, 0.1 * OFF[:3].T).T, last=2)
    off = [np.linalg.norm(spread.mean(coarse.value, k, y) - exact(y)) for k in (2, 4, 6)]
    assert off[1] < off[0] / 2
    assert off[2] < off[1] / 1.5


def test_a_budget_that_pays_for_no_finer_level_is_named():
    h = Hierarchy(lambda k, y: exact(y) + 0.3 * 2.0**-k * OFF[k], lambda k: 8.0**k, range(12))
    whole = minimize(h, np.zeros(D), eps=1e-3, rng=0)
    found = minimize(h, np.zeros(D), eps=1e-3, rng=0, max_cost=0.5 * whole.cost)
    assert (found.status, found.promise) == ("budget", "none")
    assert found.message.startswith("max_cost ends the run")
    assert found.cost <= 0.5 * whole.cost


def test_errors_of_means_over_shared_points_are_taken_to_be_unrelated():
    """A mean of 4 n points whose first n are another's: the rest of its error is a third of the difference's square."""
    falling = [2.0**-k * OFF[k] for k in range(3)]
    means, levels = (
        Errors(alone=False, increments=falling, jumps=1.0, means=m) for m in (True, False)
    )
    assert means.cosine == 0.0
    assert levels.cosine == pytest.approx(-0.4)  # -r/(1 + r^2) at r = 1/2: directions of their own
