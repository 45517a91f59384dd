"""Small steps: the moves of the iteration keep their size, and what the printed rates do to an unbounded gradient."""

import math

import numpy as np
import pytest

from mlgd import Hierarchy, Schedule
from mlgd.examples import biased
from mlgd.experiment import schedules as S

H = biased(
    lambda y: np.array([1.0, 4.0]) * y, 3.0, 0.13, range(3, 7), direction=[1.0, 0.0], alternate=True
)
RATES, START = [16.0, 6.0, 2.0, 1.0], np.array([0.6, 0.8])


def test_the_longest_move_does_not_shrink_with_the_step():
    medians = [
        np.median([S.walk(H, RATES, START, 2.0**-n, 4.0, [n, s])[1] for s in range(8)])
        for n in (7, 10)
    ]
    jumps = np.median([S.longest_jump(H, RATES, START, 4.0, [0, s]) for s in range(8)])
    assert medians[1] > medians[0] / 2  # a diffusion's would fall by sqrt 8
    assert jumps == pytest.approx(medians[1], rel=0.5)


def test_a_path_begins_at_the_start_and_is_a_staircase():
    path, _ = S.walk(H, RATES, START, 2.0**-7, 4.0, 0)
    assert path[0].tolist() == [0.0, 0.6, 0.8]
    assert path[-1, 0] == 4.0
    assert (np.diff(path[:, 0]) >= 0).all()
    moved = np.abs(np.diff(path[:, 1:], axis=0)).sum(axis=1) > 0
    assert (np.diff(path[:, 0])[moved] == 0).all()


def test_all_of_the_variance_is_in_long_moves_and_none_for_a_coin():
    assert S.long_share(H, RATES, START, 2.0**-14, 0.02) > 0.99
    assert S.coin_share(START, 2.0**-14, 0.02) < 0.01
    assert S.coin_share(START, 0.25, 0.02) == 1.0


def test_growth_at_a_constant_rate_is_known():
    constant = Schedule(lambda t: np.full((1, np.size(t)), 0.25), (0,), breaks=(1.0, 2.5))
    assert S.log_growth(constant, 4.0) == pytest.approx(8.0)
    assert math.isclose(
        S.log_growth(Schedule(lambda t: 1 / (1 + np.asarray(t))[None], (0,)), 3.0), 1.5
    )


def test_the_jump_process_is_watched_at_every_event():
    still = Hierarchy(lambda k, y: np.ones(1), lambda k: 1.0, [0])
    assert S.longest_jump(still, [4.0], np.zeros(1), 10.0, 0) == pytest.approx(0.25)
