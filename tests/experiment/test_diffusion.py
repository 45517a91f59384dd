"""The diffusion equation: its gradient is the loss's, its levels converge, and it is as hard as it should be."""

import numpy as np
import pytest

from mlgd.experiment.diffusion import LEVELS, SIZE, Identification

Q = np.random.default_rng(1).normal(size=SIZE)


def test_the_adjoint_gives_the_gradient_of_each_level():
    task, direction = Identification(0), np.random.default_rng(2).normal(size=SIZE)
    for k in (4, 6):
        slope = (task.loss(Q + 1e-5 * direction, k) - task.loss(Q - 1e-5 * direction, k)) / 2e-5
        assert task.gradient(k, Q) @ direction == pytest.approx(slope, rel=1e-6)


def test_levels_converge_at_first_order():
    values = [Identification(0).gradient(k, Q) for k in range(4, 9)]
    steps = np.linalg.norm(np.diff(values, axis=0), axis=1)
    assert (steps[1:] < 0.7 * steps[:-1]).all()
    assert len(LEVELS) == 5


def test_the_condition_number_is_above_a_thousand():
    task, h = Identification(0), 1e-5
    columns = [(task.gradient(6, h * e) - task.gradient(6, -h * e)) / (2 * h) for e in np.eye(SIZE)]
    values = np.linalg.eigvalsh((np.array(columns) + np.array(columns).T) / 2)
    assert values[-1] > 1e3 * values[0]
