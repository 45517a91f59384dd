"""A run without a plan: what it measures, chooses, pays, tells and keeps."""

import numpy as np
import pytest

from mlgd import Hierarchy, minimize
from mlgd.examples import biased, rounded

CURVATURE = np.geomspace(0.01, 1, 24)
RNG = np.random.default_rng(5)
TARGET = RNG.normal(size=24)
OFF = RNG.normal(size=(12, 24))
OFF /= np.linalg.norm(OFF, axis=1, keepdims=True)


def price(k):
    return 8.0**k


def loss(y):
    return float(CURVATURE @ (y - TARGET) ** 2) / 2


def exact(y):
    return CURVATURE * (y - TARGET)


def smooth(k, y):
    return exact(y) + 0.3 * 2.0**-k * OFF[k]


def made(evaluate=smooth, levels=range(10), **more):
    return Hierarchy(evaluate, price, levels, **more)


Y0 = np.zeros(24)


def test_it_reaches_eps_and_estimates_the_loss():
    for eps in (0.1, 1e-3):
        run = minimize(made(), Y0, eps=eps, rng=0)
        assert run.status == "done"
        assert run.promise == "estimate"
        assert loss(run.y) <= 1.2 * eps
        assert run.estimate == pytest.approx(loss(run.y), rel=1.0)
        assert run.estimate <= eps
        assert "an estimate" in run.message


def test_no_finer_level_is_asked_than_eps_needs():
    run = minimize(made(), Y0, eps=0.01, rng=0)
    finest = max(k for k, n in run.evaluations.items() if n)
    floors = [loss(TARGET - 0.3 * 2.0**-k * OFF[k] / CURVATURE) for k in range(10)]
    adequate = next(k for k, f in enumerate(floors) if f <= 0.01)
    assert finest <= adequate + 1
    assert run.evaluations[finest] == 1  # one look was enough
    assert run.cost < 3 * price(finest)


def test_everything_is_billed_and_told():
    asked = dict.fromkeys(range(10), 0)

    def counted(k, y):
        asked[k] += 1
        return smooth(k, y)

    run = minimize(made(counted), Y0, eps=0.01, rng=0)
    assert run.evaluations == asked
    assert run.cost == pytest.approx(sum(n * price(k) for k, n in asked.items()))
    assert sum(run.cost_by_purpose.values()) == pytest.approx(run.cost)
    assert run.cost == pytest.approx(sum(run.cost_by_level.values()))
    assert set(run.cost_by_purpose) == {"gradients", "curvature"}
    assert any("fine enough" in choice for choice in run.decisions)
    assert run.decisions[-1] in repr(run)


def test_the_choices_are_logged(caplog):
    with caplog.at_level("INFO", logger="mlgd"):
        run = minimize(made(), Y0, eps=0.01, rng=0)
    assert set(run.decisions) <= {record.getMessage() for record in caplog.records}


def test_the_same_seed_gives_the_same_run():
    one, two = (minimize(made(), Y0, eps=0.01, rng=3) for _ in range(2))
    assert (one.y == two.y).all()
    assert one.decisions == two.decisions


def test_a_limit_is_never_passed_and_gives_the_best_that_it_pays_for():
    losses = []
    for limit in (3e2, 1e4, 1e6):
        run = minimize(made(), Y0, max_cost=limit, rng=0)
        assert run.cost <= limit
        losses.append(loss(run.y))
        assert run.promise == "estimate" or run.status == "budget"
    assert losses[2] < losses[1] < losses[0]
    short = minimize(made(), Y0, eps=1e-9, max_cost=2e3, rng=0)
    assert short.cost <= 2e3
    assert short.promise == "none"
    assert short.status in ("budget", "missed")


def test_a_ladder_that_is_too_short_says_so():
    run = minimize(made(levels=range(3)), Y0, eps=1e-6, rng=0)
    assert run.status == "missed"
    assert run.promise == "none"
    assert "eps = 1e-06 was not reached" in run.message
    assert "out of reach" in " ".join(run.decisions)
    assert loss(run.y) < 1.0


def test_declared_accuracies_are_not_believed():
    boast = made(accuracy=lambda k: 0.03 * 2.0**-k)  # ten times too good
    run = minimize(boast, Y0, eps=0.01, rng=0)
    assert loss(run.y) <= 0.02 or run.status == "missed"


def test_curvature_that_changes_with_the_point_is_corrected():
    def steep(k, y):
        return exact(y) + 0.1 * (y - TARGET) ** 3 + 0.3 * 2.0**-k * OFF[k]

    def true(y):
        return loss(y) + 0.025 * float(((y - TARGET) ** 4).sum())

    run = minimize(made(steep), Y0, eps=0.01, rng=0)
    assert true(run.y) <= 0.02 or run.status == "missed"
    assert true(run.y) < 0.1 * true(Y0)


def test_one_shared_direction_is_told_from_directions_of_their_own():
    h = biased(exact, 3, 1, range(1, 10), direction=OFF[0])
    run = minimize(h, Y0, eps=0.01, rng=0)
    assert loss(run.y) <= 0.012
    assert run.status == "done"


@pytest.mark.parametrize("seed", range(2))
def test_rough_errors_promise_nothing_that_does_not_hold(seed):
    def patches(k, y):  # an error of its own in every small cell
        cell = np.floor(y[:2] * 50).astype(int)
        own = np.random.default_rng([seed, k, *(cell % 997)]).normal(size=24)
        return exact(y) + 0.3 * 2.0**-k * own / np.linalg.norm(own)

    for h in (made(patches), rounded(exact, 3, 0.3, range(2, 11))):
        run = minimize(h, Y0, eps=0.02, rng=seed, max_cost=1e9)
        assert loss(run.y) <= 0.02 or run.promise == "none"
        assert loss(run.y) < 0.1 * loss(Y0)


def test_jax_gradients_work_end_to_end():
    jax = pytest.importorskip("jax")
    curvature, target = jax.numpy.asarray(CURVATURE), jax.numpy.asarray(TARGET)
    gradient = jax.jit(jax.grad(lambda y: 0.5 * jax.numpy.sum(curvature * (y - target) ** 2)))
    run = minimize(made(lambda k, y: gradient(y) + 0.3 * 2.0**-k * OFF[k]), Y0, eps=0.01, rng=0)
    assert loss(run.y) <= 0.012
    assert run.status == "done"


def test_a_level_that_fails_keeps_what_was_paid():
    def broken(k, y):
        if k == 2:
            raise RuntimeError("no licence")
        return smooth(k, y)

    run = minimize(made(broken), Y0, eps=0.01, rng=0)
    assert run.status == "failed"
    assert run.error.level == 2
    assert isinstance(run.error.__cause__, RuntimeError)
    assert "level 2" in run.message
    assert run.cost > 0
    assert sum(run.evaluations.values()) > 10
    with pytest.raises(
        ValueError, match="level 0 returned None"
    ):  # refused at once, nothing was paid
        minimize(made(lambda k, y: None), Y0, eps=0.01)


def test_a_callback_stops_it_and_an_interrupt_keeps_the_result():
    run = minimize(made(), Y0, eps=0.01, rng=0, callback=lambda state: True)
    assert run.status == "stopped"
    assert run.cost > 0
    count = []

    def interrupted(k, y):
        count.append(k)
        if len(count) == 40:
            raise KeyboardInterrupt
        return smooth(k, y)

    with pytest.raises(KeyboardInterrupt) as caught:
        minimize(made(interrupted), Y0, eps=0.01, rng=0)
    assert caught.value.result.cost > 0


def test_a_loss_is_recorded_at_the_points_reached():
    run = minimize(made(), Y0, eps=0.01, rng=0, loss=loss)
    assert run.fun == pytest.approx(loss(run.y))
    assert (np.diff(run.trace.cost) >= 0).all()


@pytest.mark.parametrize("levels", [[3], range(5)])
def test_levels_without_errors_end_at_the_minimum_and_a_start_there_ends_at_once(levels):
    h = Hierarchy(lambda k, y: exact(y), price, levels)
    run = minimize(h, Y0, eps=1e-3, rng=0)
    assert run.status == "done"
    assert loss(run.y) <= 1e-3
    there = minimize(h, TARGET, eps=1e-3, rng=0)
    assert there.status == "done"
    assert (there.y == TARGET).all()
