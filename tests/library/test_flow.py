"""The jump process: its law against exact moments and tiny steps, its average, its price."""

import math

import numpy as np
import pytest
from families import failing

from mlgd import Hierarchy, LevelError
from mlgd import flow as module
from mlgd.flow import Schedule, flow

Z = 4.9


def near(sample, value, other=None):
    """Whether a sample's mean is a number, or another sample's mean, at 4.9 standard errors."""
    sample = np.asarray(sample, float)
    variance = sample.var(ddof=1) / sample.size
    if other is not None:
        other = np.asarray(other, float)
        value, variance = other.mean(), variance + other.var(ddof=1) / other.size
    return abs(sample.mean() - value) <= Z * math.sqrt(variance)


# every level affine, A_k(y) = slope_k y + offset_k: the flow's moments solve linear equations
SLOPES, OFFSETS = {0: 0.5, 1: 0.8, 2: 1.0}, {0: 0.3, 1: -0.1, 2: 0.05}
AFFINE = Hierarchy(lambda k, y: SLOPES[k] * y + OFFSETS[k], lambda k: 4.0**k, [0, 1, 2])
RATES = {0: 6.0, 1: 2.0, 2: 1.0}


def steady(weight):
    """The constant rates as a schedule, its average weighted by e^(weight t)."""
    column = np.array([*RATES.values()])[:, None]
    return Schedule(
        lambda t: np.repeat(column, np.size(t), axis=1), tuple(RATES), weight=weight
    )


def exact_moments(horizon, steps=500):
    """E y and E y^2 at the horizon from y = 1: the generator's equations, by Runge and Kutta."""

    def velocity(m):
        first, second = m
        drift1 = -(SLOPES[2] * first + OFFSETS[2])
        drift2 = -2 * (SLOPES[2] * second + OFFSETS[2] * first)
        for k, rate in RATES.items():
            a = SLOPES[k] - SLOPES.get(k - 1, 0.0)
            b = OFFSETS[k] - OFFSETS.get(k - 1, 0.0)
            drift2 += (a * a * second + 2 * a * b * first + b * b) / rate
        return np.array([drift1, drift2])

    m, dt = np.array([1.0, 1.0]), horizon / steps
    for _ in range(steps):
        k1 = velocity(m)
        k2 = velocity(m + dt / 2 * k1)
        k3 = velocity(m + dt / 2 * k2)
        m = m + dt / 6 * (k1 + 2 * k2 + 2 * k3 + velocity(m + dt * k3))
    return m


def last_points(runs, horizon=1.5, seed=0):
    """The end points of flows: a weight so large that the average is the last point."""
    return np.array(
        [flow(AFFINE, [1.0], steady(1e9), horizon, [seed, r]).y[0] for r in range(runs)]
    )


def test_mean_and_second_moment_are_those_of_the_generator():
    y = last_points(1000)
    first, second = exact_moments(1.5)
    assert near(y, first)
    assert near(y**2, second)
    # it is random: not the second moment of the mean path
    assert not near(y**2, first**2)


@pytest.mark.parametrize("weight", [0.0, 1.3, 40.0])
def test_the_average_is_exact_between_events(monkeypatch, weight):
    times, which = [0.2, 0.5, 0.55, 1.7], [0, 1, 0, 2]
    events = [(t, i, RATES[i]) for t, i in zip(times, which, strict=True)]
    monkeypatch.setattr(Schedule, "events", lambda *_: iter(events))
    result = flow(AFFINE, [1.0], steady(weight), 2.0, 0)
    plain = flow(AFFINE, [1.0], RATES, 2.0, 0)
    # constant rates are averaged evenly
    assert (plain.y[0] == result.y[0]) == (not weight)
    path = [1.0]
    for i in which:
        slope, offset = (
            SLOPES[i] - SLOPES.get(i - 1, 0),
            OFFSETS[i] - OFFSETS.get(i - 1, 0),
        )
        path.append(path[-1] - (slope * path[-1] + offset) / RATES[i])
    ends = np.array([0.0, *times, 2.0])
    mass = np.diff(np.exp(weight * (ends - 2.0))) if weight else np.diff(ends)
    assert result.y[0] == pytest.approx(float(mass @ path) / mass.sum(), rel=1e-13)
    assert (result.steps, result.cost) == (4, 1 + (4 + 1) + 1 + (16 + 4))


# --- firing ---


def still(levels=(0, 1)):
    return Hierarchy(lambda k, y: np.zeros_like(y), lambda k: 1.0 + k, levels)


def wave(scale=1.0):
    """Rates 5 t^2 and 8 (2 - t) on [0, 2], with a jump of the second at 1."""

    def rates(t):
        t = np.asarray(t, float)
        return scale * np.array([5 * t**2, np.where(t < 1, 8 * (2 - t), 1.0)])

    return Schedule(rates, (0, 1), breaks=(1.0,))


def test_thinning_fires_a_poisson_number_of_times_with_the_integrated_rate():
    mean = [5 * 8 / 3, 8 * 1.5 + 1.0]
    assert wave().integral([1, 0], 2.0) == pytest.approx(mean[0], rel=1e-13)
    assert wave().integral([0, 1], 2.0) == pytest.approx(mean[1], rel=1e-13)
    runs = [wave().events(2.0, np.random.default_rng([7, r])) for r in range(1500)]
    first, second = np.array(
        [np.bincount([i for _, i, _ in run], minlength=2) for run in runs]
    ).T
    for counts, value in ((first, mean[0]), (second, mean[1])):
        assert near(counts, value)
        # a Poisson variable's variance is its mean
        assert near((counts - value) ** 2, value)
        assert not near(counts, 1.05 * value)
    assert near((first - mean[0]) * (second - mean[1]), 0.0)


@pytest.mark.parametrize("block", [4, 1024])
def test_thinning_places_events_by_the_rate(monkeypatch, block):
    monkeypatch.setattr(module, "BLOCK", block)
    times = []
    for r in range(400):
        events = list(wave().events(2.0, np.random.default_rng([8, r])))
        t, which, rate = (np.array(column) for column in zip(*events, strict=True))
        assert (np.diff(t) >= 0).all()
        np.testing.assert_allclose(rate, wave().rates(t)[which, np.arange(t.size)])
        times.extend(t[which == 0])
    n = len(times)
    for power, uniform in ((3, True), (2, False)):  # the rate is 5 t^2 on [0, 2]
        u = np.sort((np.array(times) / 2) ** power)
        distance = np.max(np.abs(u - (np.arange(n) + 0.5) / n)) * math.sqrt(n)
        assert (
            distance < 2.7
        ) == uniform  # Kolmogorov's tail at 2.7: below one in a million


def test_price_agrees_with_its_expectation():
    levels, prices = (2, 5), {2: 1.0, 3: 7.0, 5: 30.0}  # level 3 is skipped
    h = Hierarchy(lambda k, y: np.zeros_like(y), prices, [2, 3, 5])
    schedule = Schedule(wave().rates, levels, breaks=(1.0,))
    results = [flow(h, [0.0], schedule, 2.0, [9, r]) for r in range(400)]
    cost, expected = (
        np.array([r.cost for r in results]),
        schedule.integral([1.0, 31.0], 2.0),
    )
    assert near(cost, expected)
    assert not near(cost, 1.1 * expected)
    assert near([r.steps for r in results], schedule.integral(np.ones(2), 2.0))
    assert results[0].cost == pytest.approx(sum(results[0].cost_by_level.values()))


# --- the contract ---


def test_same_seed_same_run_and_a_longer_run_agrees():
    one, two = (
        flow(AFFINE, [1.0], RATES, 50.0, 4, loss=lambda y: float(y @ y)) for _ in "ab"
    )
    assert one.y == two.y
    assert one.cost_by_level == two.cost_by_level
    np.testing.assert_array_equal(one.trace.loss, two.trace.loss)
    assert (one.trace.step[-1], one.trace.cost[-1]) == (one.steps, one.cost)
    assert 100 < len(one.trace.loss) <= 202
    assert flow(AFFINE, [1.0], RATES, 50.0, 5).y != one.y
    seen = {100: [], 200: []}
    for room, asked in seen.items():
        h = Hierarchy(lambda k, y, s=asked: s.append((k, *y)) or y, lambda k: 1.0, [0, 1])
        result = flow(h, [1.0], [9.0, 3.0], 40.0, 4, max_cost=room)
        assert (room - 2 < result.cost <= room, result.status) == (True, "budget")
        assert "max_cost" in result.message
    assert seen[200][: len(seen[100])] == seen[100]
    # prices 1 and 2, bought together or not at all
    assert flow(still(), [0.0], [1e-9, 9.0], 40.0, 4, max_cost=100.0).cost == 99


def test_zero_horizon():
    start = np.array([1.0, 2.0])
    result = flow(AFFINE, start, RATES, 0.0, 1, loss=lambda y: float(y[0]))
    assert (result.cost, result.steps, result.status) == (0.0, 0, "ended")
    np.testing.assert_array_equal(result.trace.loss, [1.0])
    assert result.y is not start
    assert result.message == "flowed for 0 units of time: nothing is promised of one run"


def test_divergence_returns_the_start():
    steep = Hierarchy(lambda k, y: 1e3 * y, lambda k: 1.0, [0])
    with np.errstate(over="ignore"):  # of the user's own product
        result = flow(steep, [1.0], [1.0], 1e5, 1)
    assert (result.status, result.y) == ("diverged", [1.0])
    assert "or a rate, too small" in result.message


@pytest.mark.parametrize("number", [2, 700, 1500])
@pytest.mark.parametrize("error", [ZeroDivisionError, np.full(3, np.nan)])
def test_a_level_that_fails_keeps_the_average_so_far(number, error):
    h, start = Hierarchy(lambda k, y: 0.5 * y, lambda k: 1.0, [0]), np.ones(3)
    result = flow(
        failing(h, number, error), start, [100.0], 20.0, 1, loss=lambda y: float(y @ y)
    )
    assert (result.status, result.nit, result.nfev) == ("failed", number - 1, number)
    assert result.message.startswith(f"step {number}: ")
    assert "level 0" in result.message
    assert isinstance(result.error, LevelError)
    kept = flow(h, start, [100.0], 20.0, 1, max_cost=number - 1)
    np.testing.assert_array_equal(result.y, kept.y)
    with pytest.raises(
        LevelError, match="level 0"
    ):  # no gradient at the start is refused
        flow(failing(h, 1, error), start, [100.0], 20.0, 1)


def test_a_failed_event_has_paid_for_both_of_its_levels():
    torn = Hierarchy(lambda k, y: y if k == 0 else y[:1], lambda k: 1.0, [0, 1])
    result = flow(torn, np.ones(2), [1.0, 1.0], 100.0, 1)
    assert result.message.startswith(
        f"step {result.nit + 1}: level 1 returned shape (1,)"
    )
    assert result.evaluations == {0: result.nit + 1, 1: 1}
