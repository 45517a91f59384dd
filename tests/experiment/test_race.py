"""The race: a target counts when the mean loss stays below it, and what it cost is read off there."""

import numpy as np
import pytest

from mlgd import Hierarchy, Problem, Telescope, tuned
from mlgd.experiment.race import reach, seconds_of, trajectory

H = Hierarchy(lambda k, y: y - 2.0**-k, lambda k: 8.0**k, range(0, 4))
PROBLEM = Problem(beta=1, mu=1, d0=2, gamma=3, c=1)


def loss(y):
    return float(y @ y) / 2


def test_a_level_whose_path_crosses_the_target_and_leaves_it_does_not_count():
    # level 0 ends at y = 1, loss 1/2; started at -1 it passes through 0 on the way
    settings = tuned(PROBLEM, 0.1, Telescope(H, [1.0]), 0.05, 200)
    _, losses = trajectory(H, np.array([-1.0]), settings, loss)
    assert losses.min() < 0.1
    assert np.isinf(reach(H, np.array([-1.0]), settings, loss, [0.1])).all()


def test_the_price_is_that_of_the_first_step_for_good():
    settings = tuned(PROBLEM, 0.1, Telescope(H, [1.0] * 4), 0.5, 40)
    cost, losses = trajectory(H, np.array([4.0]), settings, loss)
    price = reach(H, np.array([4.0]), settings, loss, [1.0])
    first = np.flatnonzero(losses.min(axis=1) <= 1.0)[0]
    assert price[1, 0] == cost[first] == (first + 1) * 8.0**3


def test_tuned_plans_refuse_an_unstable_step_and_say_they_guarantee_nothing():
    with pytest.raises(ValueError, match="below 2/beta"):
        tuned(PROBLEM, 0.1, Telescope(H, [1.0]), 2.5, 10)
    assert "nothing is promised" in tuned(PROBLEM, 0.1, Telescope(H, [1.0]), 0.5, 10).promised


def test_seconds_are_positive():
    assert seconds_of(H, np.array([1.0]), tuned(PROBLEM, 0.1, Telescope(H, [1.0]), 0.5, 3)) > 0
