"""The first family: exact moments against runs, and plans against a brute-force search and against hindsight."""

import numpy as np
import pytest

from mlgd import Plan, Telescope, minimize
from mlgd.experiment.families import Instance, _growing

EPS = 1e-2


def worst_case(mu, eta, steps, window):
    """Horizon, bias and noise at their worst, by code of its own: sums over a midpoint grid of steps."""
    lam = np.geomspace(mu, 1.0, 90)
    n = np.unique(np.round(np.geomspace(1, steps, 400)))[:, None]
    width = np.diff(np.concatenate([[0.5], (n[1:, 0] + n[:-1, 0]) / 2, [steps + 0.5]]))
    x = 1 - eta * lam
    inside = 1 - np.sign(x) * np.abs(x) ** n
    outside = np.abs(x) ** np.maximum(n - window, 0) * (1 - x**window)
    c = np.where(n <= window, inside, outside) / (window * lam)
    a = x ** (steps - window + 1) * (1 - x**window) / (window * eta * lam)
    return (
        (lam * a**2).max() / 2,
        ((width @ c) ** 2 * lam).max() / 2,
        width @ (c**2 * lam).max(axis=1) / 2,
    )


def test_moments_are_those_of_runs():
    instance = Instance.draw(3.0, 1e2, 0, levels=6, size=40)
    h = instance.hierarchy
    telescope = Telescope(h, {1: 1.0, 2: 0.3, 4: 0.05})
    bill = Plan.by_hand(telescope, eta=1.5, steps=60, window=25)
    losses = np.array(
        [instance.loss(minimize(h, instance.start, bill, rng=seed).y) for seed in range(400)]
    )
    assert abs(losses.mean() - instance.judged(bill)) <= 5 * losses.std(ddof=1) / 20
    assert (
        abs(losses.mean() - 1.1 * instance.judged(bill)) > 5 * losses.std(ddof=1) / 20
    )  # the test can fail


@pytest.mark.parametrize("growth", [1.0, 1.02])
def test_moments_of_growing_weights_are_those_of_descent(growth):
    lam, eta, steps = np.array([0.05, 0.3, 1.0]), 0.7, 40
    weights = growth ** np.arange(steps) / sum(growth**t for t in range(steps))
    y = np.vstack(
        [np.ones(3), np.zeros((steps, 3))]
    )  # from one without errors, and from zero with one error each
    out = np.zeros_like(y)
    for s in range(steps):
        out += weights[s] * y
        y *= 1 - eta * lam
        y[1 + s] -= eta
    a, total, squares = _growing(1 - eta * lam, eta, steps, growth)
    np.testing.assert_allclose(a, out[0], rtol=1e-10)
    np.testing.assert_allclose(total, -out[1:].sum(axis=0), rtol=1e-10)
    np.testing.assert_allclose(squares, (out[1:] ** 2).sum(axis=0), rtol=1e-9)


def test_the_start_has_loss_one_shared_equally():
    instance = Instance.draw(3.0, 1e3, 1)
    assert instance.loss(instance.start) == pytest.approx(1.0)
    np.testing.assert_allclose(np.linalg.norm(instance.errors, axis=1), 0.1 * 2.0 ** -np.arange(16))


def test_hindsight_reaches_the_target_and_beats_a_fixed_level():
    instance = Instance.draw(3.0, 1e3, 0)
    price, way = instance.telescope(EPS)
    found = instance.mean_loss(way["eta"], way["steps"], way["window"], way["levels"], way["p"])
    assert found <= EPS * (1 + 1e-9)
    assert price < instance.fixed(EPS)
    assert (
        instance.coarse_to_fine(EPS, "cg")
        < instance.coarse_to_fine(EPS, "nesterov")
        < instance.fixed(EPS)
    )
