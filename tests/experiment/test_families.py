"""The first family: exact moments against runs, and plans against a brute-force search and against hindsight."""

import math

import numpy as np
import pytest

from mlgd import Telescope, minimize, plan, tuned
from mlgd.experiment.families import SIZE, Instance, _growing

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


def brute_force(instance):
    """The cheapest worst-case plan over step, steps, window, coarsest and finest level, increments paid in pairs."""
    count = len(instance.errors)
    accuracy, cost = SIZE * 2.0 ** -np.arange(count), 2.0 ** (instance.gamma * np.arange(count))
    v = np.append(0.0, (accuracy[1:] + accuracy[:-1]) ** 2)
    best = math.inf
    for eta in (1.0, 1.5, 1.8):
        for steps in np.unique(np.round(np.geomspace(0.3, 30, 22) / instance.mu)):
            for share in (1e-3, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97):
                window = max(1, round(share * steps))
                horizon, bias, noise = worst_case(instance.mu, eta, int(steps), window)
                for finest in range(count):
                    room = (
                        EPS
                        - (math.sqrt(horizon) * instance.d0 + math.sqrt(bias) * accuracy[finest])
                        ** 2
                    )
                    for first in range(finest + 1) if room > 0 else ():
                        w = noise * v[first + 1 : finest + 1]
                        pair = (
                            cost[first + 1 : finest + 1]
                            + np.append(0.0, cost[first + 1 : finest])[: finest - first]
                        )
                        p = np.sqrt(w * pair).sum() / (room + w.sum()) * np.sqrt(w / pair)
                        if (p <= 1).all():
                            best = min(best, steps * (cost[first] + float(p @ pair)))
    return best


def test_moments_are_those_of_runs():
    instance = Instance.draw(3.0, 1e2, 0, levels=6, size=40)
    h = instance.hierarchy
    telescope = Telescope(h, {1: 1.0, 2: 0.3, 4: 0.05})
    bill = tuned(instance.problem(), EPS, telescope, eta=1.5, steps=60, window=25)
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


@pytest.mark.parametrize("gamma", [3.0, 6.0])
@pytest.mark.parametrize("kappa", [1e2, 1e4])
def test_quadratic_plans_cost_at_most_twice_the_cheapest_worst_case_plan(gamma, kappa):
    instances = [Instance.draw(gamma, kappa, seed) for seed in range(10)]
    bill = plan(instances[0].problem(), EPS, on=instances[0].hierarchy, promise="quadratic")
    assert bill.expected_cost <= 2 * brute_force(instances[0])
    assert all(instance.judged(bill) <= EPS for instance in instances)


@pytest.mark.parametrize(("gamma", "kappa"), [(3.0, 1e2), (4.0, 1e3), (3.0, 1e4)])
def test_measured_plans_are_near_hindsight(gamma, kappa):
    ratios, losses = [], []
    for seed in range(4):
        instance = Instance.draw(gamma, kappa, seed)
        bill = plan(
            instance.problem(instance.measures()), EPS, on=instance.hierarchy, promise="measured"
        )
        losses.append(instance.judged(bill) / EPS)
        ratios.append(bill.expected_cost / instance.telescope(EPS)[0])
    assert np.mean(losses) <= 1.2
    assert np.exp(np.mean(np.log(ratios))) <= 2
