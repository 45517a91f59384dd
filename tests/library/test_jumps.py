"""The jump process: its law against exact moments and against the iteration with a tiny step, its average, its price."""

import math

import numpy as np
import pytest

from mlgd import Hierarchy, LevelError, Schedule, Telescope, flow
from mlgd import jumps as module
from mlgd.examples import biased, rounded
from mlgd.jumps import exponential_schedule, proposition_schedule

Z = 4.9


def near(sample, value, other=None):
    """Whether the mean of a sample equals a number, or another sample's mean, at 4.9 standard errors."""
    sample = np.asarray(sample, float)
    variance = sample.var(ddof=1) / sample.size
    if other is not None:
        other = np.asarray(other, float)
        value, variance = other.mean(), variance + other.var(ddof=1) / other.size
    return abs(sample.mean() - value) <= Z * math.sqrt(variance)


# one dimension, every level affine: A_k(y) = slope_k y + offset_k, so that the moments of the flow solve linear equations
SLOPES, OFFSETS = {0: 0.5, 1: 0.8, 2: 1.0}, {0: 0.3, 1: -0.1, 2: 0.05}
AFFINE = Hierarchy(lambda k, y: SLOPES[k] * y + OFFSETS[k], lambda k: 4.0**k, [0, 1, 2])
RATES = {0: 6.0, 1: 2.0, 2: 1.0}


def exact_moments(horizon, steps=500):
    """E y and E y^2 at the horizon from y = 1: the generator's equations, integrated by Runge and Kutta's method."""

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
        [flow(AFFINE, [1.0], RATES, horizon, [seed, r], weight=1e9).y[0] for r in range(runs)]
    )


def test_mean_and_second_moment_are_those_of_the_generator():
    y = last_points(2000)
    first, second = exact_moments(1.5)
    assert near(y, first)
    assert near(y**2, second)
    assert not near(
        y**2, first**2
    )  # the process is random: its second moment is not that of the mean path


def test_agrees_in_distribution_with_the_iteration_of_tiny_step():
    horizon, eta, runs = 1.5, 1 / 400, 300
    h = rounded(lambda y: np.array([1.0, 3.0]) * y, 3.0, 1.0, range(0, 4))
    loss = lambda y: 0.5 * float(y @ (np.array([1.0, 3.0]) * y))  # noqa: E731
    rates = [12.0, 6.0, 3.0, 1.5]
    start = np.array([1.0, 1.0])
    telescope = Telescope(h, [eta * r for r in rates])
    walked, flowed = [], []
    for r in range(runs):
        rng, y = np.random.default_rng([1, r]), start.copy()
        for _ in range(round(horizon / eta)):
            y -= eta * telescope.draw(y, rng).value
        walked.append(loss(y))
        flowed.append(loss(flow(h, start, rates, horizon, [2, r], weight=1e9).y))
    walked, flowed = np.array(walked), np.array(flowed)
    assert near(walked, None, flowed)
    assert near((walked - walked.mean()) ** 2, None, (flowed - flowed.mean()) ** 2)
    other = [
        loss(flow(h, start, [r / 4 for r in rates], horizon, [3, r], weight=1e9).y)
        for r in range(runs)
    ]
    assert not near(walked, None, other)  # a quarter of the rates makes another law


@pytest.mark.parametrize("weight", [0.0, 1.3, 40.0])
def test_the_average_is_exact_between_events(monkeypatch, weight):
    times, which = np.array([0.2, 0.5, 0.55, 1.7]), np.array([0, 1, 0, 2])
    fixed = (times, which, np.array([RATES[i] for i in which]))
    monkeypatch.setattr(module, "_events", lambda *_: fixed)
    result = flow(AFFINE, [1.0], RATES, 2.0, 0, weight=weight)
    path = [1.0]
    for i in which:
        increment = (
            (SLOPES[i] - SLOPES.get(i - 1, 0)) * path[-1] + OFFSETS[i] - OFFSETS.get(i - 1, 0)
        )
        path.append(path[-1] - increment / RATES[i])
    ends = np.array([0.0, *times, 2.0])
    mass = np.diff(np.exp(weight * (ends - 2.0))) if weight else np.diff(ends)
    assert result.y[0] == pytest.approx(float(mass @ path) / mass.sum(), rel=1e-13)
    assert result.steps == 4
    assert result.cost == 1 + (4 + 1) + 1 + (16 + 4)


def test_the_average_does_not_depend_on_the_blocks(monkeypatch):
    events, calls = module._events, []

    def remembered(*arguments):
        calls.append(events(*arguments))
        return calls[-1]

    monkeypatch.setattr(module, "_events", remembered)
    monkeypatch.setattr(module, "BLOCK", 4)
    many = flow(AFFINE, [1.0], RATES, 3.0, 5, weight=0.7)
    assert len(calls) > 5
    joined = tuple(np.concatenate(parts) for parts in zip(*calls, strict=True))
    monkeypatch.setattr(module, "_events", lambda *_: joined)
    monkeypatch.setattr(module, "BLOCK", 10**6)
    one = flow(AFFINE, [1.0], RATES, 3.0, 5, weight=0.7)
    assert one.steps == many.steps
    assert one.y[0] == pytest.approx(many.y[0], rel=1e-12)


# --- firing ------------------------------------------------------------------------------------------------


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
    results = [flow(still(), [0.0], wave(), 2.0, [7, r]) for r in range(1500)]
    # with prices 1 and 2, level 0 charged by both kinds of events
    second = np.array([r.cost_by_level[1] / 2 for r in results])
    first = np.array([r.cost_by_level[0] for r in results]) - second
    for counts, value in ((first, mean[0]), (second, mean[1])):
        assert near(counts, value)
        assert near((counts - value) ** 2, value)  # a Poisson variable's variance is its mean
        assert not near(counts, 1.05 * value)
    assert near((first - mean[0]) * (second - mean[1]), 0.0)


def test_thinning_places_events_by_the_rate():
    times = []
    for r in range(400):
        rng = np.random.default_rng([8, r])
        for low, high in ((0.0, 1.0), (1.0, 2.0)):
            t, which, rate = module._events(wave(), low, high, rng)
            assert (np.diff(t) >= 0).all()
            np.testing.assert_allclose(rate, wave().rates(t)[which, np.arange(t.size)])
            times.extend(t[which == 0])
    u = np.sort(np.array(times) ** 3 / 8)  # uniform when the rate is 5 t^2
    n = u.size
    distance = np.max(np.abs(u - (np.arange(n) + 0.5) / n))
    assert distance * math.sqrt(n) < 2.7  # Kolmogorov's tail at 2.7 is below one in a million
    v = np.sort(np.array(times) ** 2 / 4)
    assert np.max(np.abs(v - (np.arange(n) + 0.5) / n)) * math.sqrt(n) > 2.7


def test_price_agrees_with_its_expectation():
    h = rounded(lambda y: y, 3.0, 0.25, range(2, 8))
    schedule = proposition_schedule(h, 1.0, 0.05, 3.0, 6.0, coarsest=4.0)
    results = [flow(h, np.ones(2), schedule, 6.0, [9, r]) for r in range(200)]
    cost = np.array([r.cost for r in results])
    expected = schedule.expected_cost(h, 6.0)
    assert near(cost, expected)
    assert not near(cost, 1.1 * expected)
    assert near([r.steps for r in results], schedule.integral(np.ones(len(schedule.levels)), 6.0))
    assert results[0].cost == pytest.approx(sum(results[0].cost_by_level.values()))


# --- schedules ---------------------------------------------------------------------------------------------


def constant_rates(h, delta, nu2, gamma, coarsest=0.0):
    """A schedule that does not change, as {level: rate}."""
    schedule = exponential_schedule(h, (delta, 0.0), (nu2, 0.0), gamma, 1.0, coarsest=coarsest)
    return dict(zip(schedule.levels, schedule.rates(np.zeros(1))[:, 0].tolist(), strict=True))


def test_rates_carry_the_bias_and_the_variance():
    h = biased(lambda y: y, 3.0, 1.0, range(0, 12), alternate=True)
    rates = constant_rates(h, 2.0**-6, 0.3, 3.0)
    assert max(rates) == 6
    assert sum((3 * 2.0**-k) ** 2 / r for k, r in rates.items()) == pytest.approx(0.3)
    assert constant_rates(h, 2.0**-6, 0.3, 3.0, coarsest=1e6)[0] == 1e6
    mu, eps, horizon = 0.5, 0.01, 9.0
    schedule = proposition_schedule(h, mu, eps, 3.0, horizon)
    for t in np.linspace(0.01, 8.99, 40):
        column = schedule.rates(np.array([t]))[:, 0]
        used = column > 0
        delta = math.sqrt(mu * eps / 8) * math.exp(mu * (horizon - t) / 8)
        nu2 = eps / 4 * math.exp(mu * (horizon - t) / 4)
        accuracy = 2.0 ** -np.array(schedule.levels, float)
        assert accuracy[used][-1] <= delta < 2 * accuracy[used][-1] or used.sum() == 1
        assert ((3 * accuracy[used]) ** 2 / column[used]).sum() == pytest.approx(nu2)
    assert schedule.weight == mu / 2


@pytest.mark.parametrize("coarsest", [0.0, 3.0, 40.0])
def test_bounds_hold_on_every_piece(coarsest):
    h = biased(lambda y: y, 3.0, 1.0, range(0, 12))
    schedule = proposition_schedule(h, 0.7, 0.02, 3.0, 12.0, coarsest=coarsest)
    for start, end in schedule.stretches(12.0):
        inner = np.linspace(start + 1e-9 * (end - start), end - 1e-9 * (end - start), 50)
        assert (schedule.rates(inner).max(axis=1) <= schedule.bounds(start, end)).all()


@pytest.mark.parametrize("gamma", [1.0, 2.0, 3.0])
def test_the_repaired_proposition_reaches_its_target(gamma):
    curvature, eps, start = np.array([1.0, 4.0]), 0.05, np.array([0.6, 0.8])
    loss = lambda y: 0.5 * float(y @ (curvature * y))  # noqa: E731
    h = biased(lambda y: curvature * y, gamma, 0.25, range(2, 10), alternate=True)
    horizon = 2 * math.log(1 + 1 / eps)
    schedule = proposition_schedule(h, 1.0, eps, gamma, horizon, coarsest=16.0, relax=2.0)
    losses = np.array([loss(flow(h, start, schedule, horizon, [10, r]).y) for r in range(100)])
    assert losses.mean() + Z * losses.std(ddof=1) / 10 <= eps


# --- the contract ------------------------------------------------------------------------------------------


def test_same_seed_same_run_and_a_longer_run_agrees():
    one = flow(AFFINE, [1.0], RATES, 50.0, 4, loss=lambda y: float(y @ y))
    two = flow(AFFINE, [1.0], RATES, 50.0, 4, loss=lambda y: float(y @ y))
    assert one.y == two.y
    assert one.cost_by_level == two.cost_by_level
    np.testing.assert_array_equal(one.trace.loss, two.trace.loss)
    assert flow(AFFINE, [1.0], RATES, 50.0, 5).y != one.y
    seen = {}
    for room in (100, 200):
        seen[room] = []
        h = Hierarchy(lambda k, y, s=seen[room]: s.append((k, *y)) or y, lambda k: 1.0, [0, 1])
        result = flow(h, [1.0], [9.0, 3.0], 40.0, 4, max_events=room)
        assert (result.steps, result.status) == (room, "budget")
        assert "max_events" in result.message
    assert seen[200][: len(seen[100])] == seen[100]


def test_zero_horizon_and_no_movement():
    result = flow(AFFINE, [1.0], RATES, 0.0, 1, loss=lambda y: float(y[0]))
    assert (result.y, result.cost, result.steps, result.status) == (np.array([1.0]), 0.0, 0, "done")
    np.testing.assert_array_equal(result.trace.loss, [1.0])
    start = np.array([1.0, 2.0])
    result = flow(still(), start, [3.0, 3.0], 5.0, 1)
    np.testing.assert_array_equal(result.y, start)
    assert result.y is not start
    flow(AFFINE, start, RATES, 1.0, 1)
    np.testing.assert_array_equal(start, [1.0, 2.0])


def test_divergence_returns_the_start():
    steep = Hierarchy(lambda k, y: 1e3 * y, lambda k: 1.0, [0])
    with np.errstate(over="ignore"):  # of the user's own product
        result = flow(steep, [1.0], [1.0], 1e5, 1)
    assert result.status == "diverged"
    assert "rates of a flow" in result.message
    assert result.y == [1.0]


def failing(number, error):
    """A level that misbehaves at one of its evaluations: by an exception, or by what it returns."""
    calls = 0

    def evaluate(k, y):
        nonlocal calls
        calls += 1
        if calls == number and isinstance(error, type):
            raise error("mine")
        return np.full(y.shape, np.nan) if calls == number else 0.5 * y

    return Hierarchy(evaluate, lambda k: 1.0, [0])


@pytest.mark.parametrize("number", [1, 2, 700, 1500])
@pytest.mark.parametrize("error", [ZeroDivisionError, "nan"])
def test_a_level_that_fails_keeps_the_average_so_far(number, error):
    result = flow(failing(number, error), np.ones(3), [100.0], 20.0, 1, loss=lambda y: float(y @ y))
    assert (result.status, result.nit, result.nfev) == ("failed", number - 1, number)
    assert result.message.startswith(f"step {number}: ")
    assert "level 0" in result.message
    assert isinstance(result.error, LevelError)
    kept = flow(failing(-1, "nan"), np.ones(3), [100.0], 20.0, 1, max_events=max(1, number - 1))
    if number > 1:
        np.testing.assert_allclose(result.y, kept.y, rtol=1e-12)
    else:
        np.testing.assert_array_equal(result.y, np.ones(3))


def test_an_interrupt_carries_the_result():
    with pytest.raises(KeyboardInterrupt) as caught:
        flow(failing(700, KeyboardInterrupt), np.ones(3), [100.0], 20.0, 1)
    result = caught.value.result
    assert (result.status, result.nit, result.success) == ("stopped", 699, False)
    kept = flow(failing(-1, "nan"), np.ones(3), [100.0], 20.0, 1, max_events=699)
    np.testing.assert_allclose(result.y, kept.y, rtol=1e-12)


@pytest.mark.parametrize("kind", [list, lambda v: pytest.importorskip("jax.numpy").asarray(v)])
def test_whatever_numpy_can_read_moves_the_path(kind):
    plain = Hierarchy(lambda k, y: (y - 1) * (1 + 2.0**-k), lambda k: 1.0, [0, 1])
    other = Hierarchy(lambda k, y: kind((y - 1) * (1 + 2.0**-k)), lambda k: 1.0, [0, 1])
    a, b = (flow(h, np.zeros(3), [50.0, 5.0], 4.0, 1) for h in (plain, other))
    np.testing.assert_allclose(a.y, b.y, rtol=1e-4)
    assert a.cost == b.cost


def test_trace_follows_the_run():
    h = rounded(lambda y: y, 3.0, 1.0, range(0, 5))
    result = flow(h, np.ones(3), [2000.0, 500.0], 4.0, 2, loss=lambda y: 0.5 * float(y @ y))
    assert result.trace.step[0] == 0
    assert result.trace.step[-1] == result.steps
    assert (np.diff(result.trace.cost) >= 0).all()
    assert result.trace.cost[-1] == result.cost
    assert result.trace.loss[-1] < result.trace.loss[0] == 1.5
    assert len(result.trace.loss) > 5
    assert np.isnan(flow(h, np.ones(3), [20.0, 5.0], 1.0, 2).trace.loss).all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"horizon": -1.0}, "horizon must be finite and non-negative; got -1.0"),
        ({"horizon": math.inf}, "horizon must be finite"),
        ({"rates": {0: 1.0, 1: 0.0}}, "rates must be positive and finite; got 0.0 at level 1"),
        ({"rates": [1.0, math.nan]}, "got nan at level 1"),
        ({"rates": {1: 1.0}}, "initial run of the levels"),
        ({"rates": []}, "initial run of the levels"),
        ({"y0": [math.nan]}, "non-finite entry"),
        ({"y0": 1.0}, "at least one entry"),
        ({"max_events": 0}, "max_events must be an integer of at least 1"),
    ],
)
def test_bad_input_is_refused(change, sentence):
    arguments = {"y0": [1.0], "rates": RATES, "horizon": 1.0} | change
    with pytest.raises(ValueError, match=sentence):
        flow(AFFINE, rng=1, **arguments)


def test_a_bad_level_or_schedule_is_refused():
    torn = Hierarchy(lambda k, y: y if k == 0 else y[:1], lambda k: 1.0, [0, 1])
    result = flow(torn, np.ones(2), [1.0, 1.0], 100.0, 1)
    assert result.status == "failed"
    assert f"step {result.nit + 1}: " in result.message
    assert "level 1 returned shape (1,)" in result.message
    assert isinstance(result.error, LevelError)
    assert result.evaluations == {
        0: result.nit + 1,
        1: 1,
    }  # the failed event asked for levels 1 and 0
    assert np.isfinite(result.y).all()
    with pytest.raises(LevelError, match="accuracy 1e-09 is needed"):
        constant_rates(AFFINE, 1e-9, 1.0, 3.0)
    for bad in ({"mu": 0.0}, {"eps": -1.0}, {"relax": 0.0}):
        with pytest.raises(ValueError, match="must be positive"):
            proposition_schedule(
                AFFINE, **({"mu": 1.0, "eps": 8.0, "gamma": 3.0, "horizon": 1.0} | bad)
            )
    with pytest.raises(ValueError, match="nu2 needs a positive end"):
        exponential_schedule(AFFINE, (1.0, 0.0), (0.0, 0.0), 3.0, 1.0)
    with pytest.raises(ValueError, match="gamma > 0 and coarsest"):
        exponential_schedule(AFFINE, (1.0, 0.0), (1.0, 0.0), 3.0, 1.0, coarsest=-1.0)
