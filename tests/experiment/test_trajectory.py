"""mlgd.experiment.trajectory: coins and prices (its runs are held against literal ones in test_sweep.py)."""

import numpy as np

from mlgd.experiment.trajectory import DRAWS, Reached, coins, prices


def test_coins_are_reproducible_and_fall_with_their_probabilities():
    p = np.array([1.0, 0.3, 0.01])
    first, again = next(coins(3, (1, 2), p)), next(coins(3, (1, 2), p))
    assert first.shape == (DRAWS, 3)
    assert (first == again).all()
    assert (first != next(coins(3, (1, 3), p))).any()
    spread = np.sqrt(p * (1 - p) / DRAWS)
    assert (np.abs(first.mean(axis=0) - p) <= 4.9 * spread).all()


def test_every_increment_pays_for_two_levels_and_the_exact_form_for_its_residual():
    drawn = np.array([[True, False, False], [True, True, False], [True, False, True]])
    np.testing.assert_array_equal(prices((1, 8, 64), 10, False, drawn), 40.0 * np.array([1, 10, 73]))
    np.testing.assert_array_equal(prices((1, 8, 64), 10, True, drawn), 20.0 * np.array([1 + 1, 10 + 8, 73 + 64]))


def test_the_cheapest_run_to_a_target_is_kept():
    best = Reached.nothing(2)
    for flops, run in ((5.0, "a"), (7.0, "b"), (3.0, "c")):
        best.note(0, flops, 1, run)
    assert best.flops[0] == 3.0
    assert best.run == ["c", ""]
    assert np.isinf(best.flops[1])
