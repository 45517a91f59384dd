"""The sharp plan: the theorem recomputed step by step, hostile instances, runs, prices."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from families import failing
from long_run import bits

from mlgd import Hierarchy, LevelError, Problem, audit, compare, plan
from mlgd.cheapest import Rungs, Search
from mlgd.examples import HeatSource, biased
from mlgd.hierarchy import dyadic
from mlgd.sharp import SharpPlan

# --- the theorem, line by line, by code that shares nothing with the planner's ---


def potentials(p):
    """Masses, stopping probabilities and 1/psi of every step; every hypothesis is asserted.

    Taken from the plan are its step, the law of its stop, the masses before the first stop, and the
    shrinkage of its telescopes.
    """
    beta, mu, h = p.problem.beta, p.problem.mu, p.eta
    t = np.arange(p.steps + 1)
    alpha = np.asarray(p.schedule.stop(t), float)
    mass = np.asarray(p.schedule.mass(t), float)
    shrunk = np.repeat([s.shrinkage for s in p.stages], [s.steps for s in p.stages])
    loud = 1 - h * (beta - mu)
    omega = (1 - h * beta) / loud
    assert 0 < h * beta < 1
    assert (alpha >= 0).all()
    assert (alpha <= mass * (1 + 1e-12)).all()
    assert alpha.sum() == pytest.approx(1, abs=1e-8)
    phi = mass / h
    before = np.append(p.schedule.start, phi[:-1])
    # the largest chi that the potential allows, but for rounding; it is zero at the last step
    chi = (before - phi) / mass + omega * mu + (1 - alpha / mass) * mu + 1e-12 / h
    assert (chi > 0).all()
    assert (h / shrunk * (1 + 1e-9) >= omega**2 / chi[:-1] + h / loud).all()
    return mass, alpha, h / shrunk


def recomputed(p, accuracy, price):
    """The bound, the expected price and the expected steps of Theorem S.

    `accuracy` and `price` are functions of the level.
    """
    mass, alpha, psi = potentials(p)
    joint, cost = [], []
    for stage in p.stages:
        r = np.array([accuracy(k) for k in stage.reach])
        c = np.array([float(price(k)) for k in stage.reach])
        reach = np.array([*stage.reach.values()])
        assert reach[0] == 1
        assert (np.diff(reach) < 0).all()
        # summed by parts: what is lost of an increment, times the jump of the squared errors
        lost = stage.shrinkage * (1 - reach)
        lost = lost / (lost + reach)
        joint.append(r[-1] ** 2 + lost[1:] @ -np.diff(r**2))
        cost.append(reach @ c)
        assert stage.most == pytest.approx(c.sum())
    each = [s.steps for s in p.stages]
    made = np.cumsum(alpha[::-1])[::-1][1:]  # P(I > t)
    runs = np.ones(p.steps) if p.average else made
    errors = mass[:-1] * psi @ np.repeat(joint, each) / 2
    bound = p.schedule.start * p.problem.d0**2 / 2 + errors
    return bound, float(runs @ np.repeat(cost, each)), float(runs.sum())


def drawn_set(seed):
    """A problem, a target, a ladder or none, and whether the mean is returned: with extremes."""
    rng = np.random.default_rng([44, seed])
    beta, d0 = 10 ** rng.uniform(-6, 6), 10 ** rng.uniform(-4, 4)
    eps = 10 ** rng.uniform(-4.5, 0.5) * beta * d0**2
    gamma = rng.choice(
        [rng.uniform(0.3, 8), 2.0, 2 + 1e-9, 2 - 1e-9], p=[0.7, 0.1, 0.1, 0.1]
    )
    mu = 0.0 if rng.random() < 0.6 else beta * 10 ** rng.uniform(-4, 0)
    c = 10 ** rng.uniform(-3, 3)
    problem = Problem(beta=beta, d0=d0, gamma=float(gamma), c=c, mu=mu)
    average = bool(rng.random() < 0.3)
    if rng.random() < 0.5:
        return problem, eps, None, average
    n = int(rng.integers(1, 14))
    accuracy = (
        beta * d0 * 10 ** rng.uniform(-1, 1) * np.cumprod(10 ** -rng.uniform(0, 0.8, n))
    )
    price = np.cumprod(10 ** rng.uniform(-0.3, 2, n))
    exact = bool(rng.random() < 0.4)
    own = Hierarchy(lambda k, y: y, price, range(n), accuracy.__getitem__, exact=exact)
    return problem, eps, own, average


def check(seed):
    """Whether there is a plan; then its bound and its price are as Theorem S says."""
    problem, eps, own, average = drawn_set(seed)
    try:
        p = plan(problem, eps, "sharp", on=own, average=average)
    except LevelError:
        return False
    accuracy, price = dyadic, lambda k: (problem.c * 2.0**k) ** problem.gamma
    if own is not None:
        accuracy = dict(zip(own.levels, own.accuracies(), strict=True)).__getitem__
        price = own.cost
    bound, paid, steps = recomputed(p, accuracy, price)
    assert bound <= eps, (seed, bound / eps)
    assert sum(p.budget.values()) == pytest.approx(bound, rel=1e-9)
    assert p.expected_cost == pytest.approx(paid, rel=1e-6)
    assert p.expected_steps == pytest.approx(steps, rel=1e-6)
    assert p.expected_cost <= p.cost_bound * (1 + 1e-9)
    assert p.promise == "proved"
    return True


OUT_OF_REACH = {4, 9, 12, 30}  # ladders whose finest level is too coarse


@pytest.mark.parametrize("seed", range(40))
def test_the_bound_is_at_most_eps_and_the_price_is_the_sum(seed):
    assert check(seed) == (seed not in OUT_OF_REACH)


# --- prices ---

UNITS = [  # gamma, log2 of eps, (c d0/eps)^gamma of a first program for the theorem
    (3.0, -7, 23.6),
    (3.0, -14, 45.9),
    (2.2, -7, 25.8),
    (2.2, -14, 76.5),
    (4.0, -7, 24.9),
    (4.0, -14, 36.6),
]


@pytest.mark.parametrize(("gamma", "exponent", "units"), UNITS)
def test_the_price_in_gradients_of_accuracy_eps_over_d0(gamma, exponent, units):
    problem = Problem(beta=1, d0=1, gamma=gamma, c=1)
    p = plan(problem, 2.0**exponent, "sharp")
    assert p.expected_cost * 2.0 ** (exponent * gamma) <= 1.05 * units
    assert p.expected_steps < 0.5 * p.steps


def test_the_unit_is_the_unit():
    """Another beta, d0 and unit of price: the same plan."""
    here = plan(Problem(beta=1, d0=1, gamma=3, c=1), 2.0**-6, "sharp")
    there = Problem(beta=2.0**20, d0=2.0**-5, gamma=3, c=0.5, first=-14)
    p = plan(there, 2.0**4, "sharp")
    assert p.steps == here.steps
    # c d0/eps is 2^-10 where it was 2^6
    assert p.expected_cost * 2.0**48 == pytest.approx(here.expected_cost, rel=1e-6)


HEAT = HeatSource()
FLAT = replace(HEAT.problem, mu=0.0)


def test_the_heat_source_at_one_percent():
    p = plan(FLAT, HEAT.eps, "sharp", on=HEAT.hierarchy)
    assert p.expected_cost <= 1.05 * 1.5e11
    assert p.steps <= 1.05 * 676
    ranked = compare(FLAT, HEAT.eps, on=HEAT.hierarchy)
    assert ranked[0].method == "sharp"
    assert ranked[0].expected_cost < ranked[1].expected_cost / 50
    mean = plan(FLAT, HEAT.eps, "sharp", on=HEAT.hierarchy, average=True)
    assert p.expected_cost < mean.expected_cost <= 1.05 * 3.8e11
    told = plan(HEAT.problem, HEAT.eps, "sharp", on=HEAT.hierarchy)
    assert told.expected_cost < p.expected_cost
    assert mean.expected_steps == mean.steps


def test_of_all_plans_within_two_percent_it_is_the_one_with_the_fewest_steps():
    """Brute force over the number of steps, by the search's own best schedule for each."""
    rungs = Rungs(2.0 ** -np.arange(1.0, 12.0), 8.0 ** np.arange(-10.0, 1.0))
    search = Search(0.0, 2.0**-5, rungs, False)
    prices = {}
    for steps in range(20, 120):
        prices[steps] = search.best(steps, search.starts(steps, burning=False)).price
    found = search.found()
    enough = 1.02 * min(prices.values())
    fewest = min(steps for steps, price in prices.items() if price <= enough)
    assert found.steps <= fewest + 2
    assert found.price <= 1.002 * enough


# --- hostile instances: the mean loss is never above eps ---


def opposed(p, radii, loss, slope, y0, signs):
    """The largest mean loss of a run from y0 whose minimizer is zero, by dynamic programming.

    At every step and every point of the line an opponent chooses the sign of every level's error
    anew (`signs`: rows to choose from), so as to raise the loss at the random stop.
    """
    h, d0 = p.eta, p.problem.d0
    grid = np.linspace(y0 - d0, y0 + d0, 1501)
    alpha = np.asarray(p.schedule.stop(np.arange(p.steps + 1)), float)
    value = alpha[-1] * loss(grid)
    t = p.steps
    for stage in reversed(p.stages):
        reach = np.array([*stage.reach.values()])
        w = 1 / (reach + stage.shrinkage * (1 - reach))
        chances = -np.diff(np.append(reach, 0.0))
        errors = np.array([radii[k] for k in stage.reach]) * signs[:, : reach.size]
        steps = np.diff(errors, axis=1, prepend=0.0) * w
        noise = np.cumsum(
            steps, axis=1
        )  # a row per choice, a column per last level reached
        for _ in range(stage.steps):
            t -= 1
            worst = None
            for choice in noise:
                after = 0.0
                for chance, error in zip(chances, choice, strict=True):
                    there = grid - h * (slope(grid) + error)
                    after = after + chance * np.interp(there, grid, value)
                worst = after if worst is None else np.maximum(worst, after)
            value = alpha[t] * loss(grid) + worst
    return float(np.interp(y0, grid, value))


def huber(beta, mu, width):
    """mu/2 y^2 and a Huber loss of smoothness beta - mu, whose slope is constant past `width`."""
    bend = beta - mu

    def loss(y):
        far = np.maximum(np.abs(y) - width, 0)
        return mu / 2 * y**2 + bend / 2 * (y**2 - far**2)

    def slope(y):
        return mu * y + bend * np.clip(y, -width, width)

    return loss, slope


def hostile(seed):
    """A loss of a random kind against a sharp plan, over eps."""
    rng = np.random.default_rng([5, seed])
    eps = 2.0 ** -rng.uniform(1.5, 4.5)
    n = int(rng.integers(2, 5))
    mu = 0.0 if seed % 3 else float(rng.choice([0.05, 0.2, 1.0]))
    radii = rng.uniform(0.2, 1.5) * max(eps, math.sqrt(mu * eps))
    radii = radii * np.append(1, np.cumprod(rng.uniform(0.2, 0.8, n)))
    price = radii ** -rng.choice([1.5, 2.2, 3.0, 4.0])
    h = Hierarchy(lambda k, y: y, price, range(n + 1), radii.__getitem__)
    problem = Problem(beta=1, d0=1, gamma=3, c=1, mu=mu)
    try:
        p = plan(problem, eps, "sharp", on=h)
    except LevelError:
        return 0.0
    every = np.array([*itertools.product((1.0, -1.0), repeat=n + 1)])
    biased = np.array([np.ones(n + 1), -np.ones(n + 1)])
    alternating = np.array([(-1.0) ** np.arange(n + 1)])
    signs = (every, biased, alternating)[seed % 5 % 3]
    loss, slope = huber(1.0, mu, rng.choice([1e-3, 0.05, 0.2, 0.5, 3.0]))
    return opposed(p, radii, loss, slope, rng.choice([0.5, 1.0]), signs) / eps


@pytest.mark.parametrize("seed", range(12))
def test_the_mean_loss_on_hostile_instances(seed):
    assert hostile(seed) <= 1


def test_the_bound_is_not_idle():
    """An opponent comes near: half of what is proved is lost on one of these."""
    assert max(hostile(seed) for seed in range(12)) > 0.5


@pytest.mark.parametrize("mu", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("average", [False, True])
def test_exact_moments_of_a_quadratic_with_errors_that_never_change(mu, sign, average):
    """No projection: the theorem needs none. Directions as flat as they may be, or steep."""
    h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 12), alternate=sign < 0)
    problem = Problem(beta=1, d0=1, gamma=3, c=1, mu=mu)
    p = plan(problem, 0.05, "sharp", average=average)
    t = 0
    bend = np.array([max(mu, 1e-3), 0.1 + mu / 2, 1.0])
    mean, spread = np.ones(3) / math.sqrt(3), np.zeros(3)
    total = float(p.schedule.stop(0)) * bend @ (mean**2 + spread) / 2
    for stage in p.stages:
        drawn = p.telescope(h, stage)
        error, noise = drawn.mean(np.zeros(3)), drawn.variance(np.zeros(3)) / 3
        for _ in range(stage.steps):
            t += 1
            mean = mean - p.eta * (bend * mean + error)
            spread = (1 - p.eta * bend) ** 2 * spread + p.eta**2 * noise
            # the loss of the mean of all outputs is at most the mean of theirs
            total += float(p.schedule.stop(t)) * bend @ (mean**2 + spread) / 2
    assert total <= p.eps


# --- runs ---

CENTRE = np.array([0.3, -0.2, 0.5, 0.1])
START = CENTRE + np.array([1.0, -1.0, 1.0, 1.0]) / 2
BEND = np.array([1.0, 0.5, 0.1, 0.0])
LADDER = biased(lambda y: BEND * (y - CENTRE), 3.0, 0.5, range(0, 16), alternate=True)
KNOWN = Problem(beta=1, d0=1, gamma=3, c=0.5, first=0)
GOAL = 1 / 16


def late():
    """A seed whose stop is a late one."""
    p = plan(KNOWN, GOAL, "sharp")
    drawn = [np.random.default_rng(seed).random() for seed in range(20)]
    seed = int(np.argmax(drawn))
    assert p.schedule.stopped(drawn[seed]) > p.steps / 2
    return seed


def excess(y):
    return float(BEND @ (y - CENTRE) ** 2 / 2)


@pytest.mark.parametrize("average", [False, True])
def test_runs_pay_and_make_what_is_expected(average):
    p = plan(KNOWN, GOAL, "sharp", average=average)
    runs = [p.run(LADDER, START, rng=seed) for seed in range(400)]
    paid = np.array([run.cost for run in runs])
    steps = np.array([run.steps for run in runs])
    for seen, said in ((paid, p.expected_cost), (steps, p.expected_steps)):
        error = seen.std(ddof=1) / math.sqrt(seen.size)
        assert abs(seen.mean() - said) <= 4.5 * error + 1e-9 * said
    assert paid.max() <= p.cost_bound
    assert steps.max() <= p.steps
    assert np.mean([excess(run.y) for run in runs]) <= GOAL


def test_one_run_may_end_above_eps_and_says_so():
    p = plan(KNOWN, GOAL, "sharp")
    runs = [p.run(LADDER, START, rng=seed) for seed in range(100)]
    assert max(excess(run.y) for run in runs) > GOAL
    for run in runs:
        assert (run.status, run.promise) == ("done", "proved")
        assert p.promised in run.message
        assert "one run may end above it" in run.message


def test_the_stop_has_the_law_that_is_said():
    p = plan(KNOWN, GOAL, "sharp")
    t = np.arange(p.steps + 1)
    until = np.cumsum(p.schedule.stop(t))
    for u in np.linspace(0.0005, 0.9995, 999):
        i = p.schedule.stopped(u)
        assert until[i] >= u - 1e-9
        assert i == 0 or until[i - 1] <= u + 1e-9
    assert p.schedule.stopped(0.0) == 0
    assert p.schedule.stopped(math.nextafter(1, 0)) == p.steps
    told = plan(replace(KNOWN, mu=0.5), 1e-3, "sharp")
    assert told.schedule.burn > 0
    assert told.schedule.stopped(0.0) == told.schedule.burn


def test_no_step_leaves_the_ball_of_radius_d0():
    """Told of a d0 that is a fifth of the way: the run stays on the ball, and goes on."""
    near = replace(KNOWN, d0=0.2)
    p = plan(near, 0.002, "sharp")
    seen = []
    p.run(LADDER, START, rng=3, callback=lambda s: seen.append(s.y))
    away = [np.linalg.norm(y - START) for y in seen]
    assert max(away) <= 0.2 * (1 + 1e-12)
    assert max(away) == pytest.approx(0.2)


def test_the_mean_is_that_of_all_outputs():
    for mu, eps in ((0.0, GOAL), (0.5, 1e-3)):
        p = plan(replace(KNOWN, mu=mu), eps, "sharp", average=True)
        h = replace(LADDER, evaluate=lambda k, y, mu=mu: LADDER.evaluate(k, y) + mu * y)
        points = [START]
        keep = lambda s, points=points: points.append(s.y)  # noqa: E731
        r = p.run(h, START, rng=1, callback=keep)
        assert r.steps == p.steps
        weights = p.schedule.stop(np.arange(p.steps + 1))
        np.testing.assert_allclose(r.y, weights @ np.array(points), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("average", [False, True])
def test_a_resumed_run_ends_with_the_bits_of_the_unbroken_one(average, tmp_path):
    p = plan(KNOWN, GOAL, "sharp", average=average)
    options = {"rng": late(), "loss": excess}
    whole = p.run(LADDER, START, **options)
    assert whole.steps > 15
    for step in {1, 2, 7, p.stages[0].steps, whole.steps // 2, whole.steps - 1}:
        path = tmp_path / f"{step}"
        stop = lambda s, step=step: s.step >= step  # noqa: E731
        assert p.run(LADDER, START, callback=stop, checkpoint=path, **options).nit == step
        resumed = p.run(LADDER, START, checkpoint=path, **options)
        assert bits(resumed) == bits(whole), step
        assert resumed.status == "done"
    # the file of a run that is done; it knows the seed
    again = p.run(LADDER, START, checkpoint=path, loss=excess)
    assert (bits(again), again.status) == (bits(whole), "done")
    other = plan(KNOWN, GOAL, "sharp", average=not average)
    with pytest.raises(ValueError, match=r"belongs to another run.*another plan"):
        other.run(LADDER, START, checkpoint=path)


@pytest.mark.parametrize("calls", [3, 15, 16])
def test_an_interrupted_run_goes_on_with_the_same_bits(calls, tmp_path):
    p = plan(KNOWN, GOAL, "sharp")
    whole = p.run(LADDER, START, rng=late())
    assert whole.nfev > calls
    broken = failing(LADDER, calls, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        p.run(broken, START, rng=late(), checkpoint=tmp_path / "a")
    assert caught.value.result.promise == "none"
    resumed = p.run(LADDER, START, rng=late(), checkpoint=tmp_path / "a")
    assert np.array_equal(resumed.y, whole.y)
    assert resumed.cost > whole.cost  # what was lost is paid again


def test_the_bill_counts_every_evaluation_and_ends_a_run():
    p = plan(KNOWN, GOAL, "sharp")
    calls = []
    counted = replace(
        LADDER, evaluate=lambda k, y: calls.append(k) or LADDER.evaluate(k, y)
    )
    r = p.run(counted, START, rng=late())
    assert {k: calls.count(k) for k in LADDER.levels} == r.evaluations
    assert r.cost == pytest.approx(sum(map(LADDER.cost, calls)))
    short = p.run(LADDER, START, rng=late(), max_cost=r.cost / 2)
    assert (short.status, short.promise) == ("budget", "none")
    assert short.cost <= r.cost / 2


def test_a_run_that_stops_at_once_hands_back_the_start_and_pays_nothing():
    p = plan(KNOWN, GOAL, "sharp")
    drawn = [np.random.default_rng(seed).random() for seed in range(300)]
    seed = int(np.argmin(drawn))
    assert p.schedule.stopped(drawn[seed]) == 0
    r = p.run(LADDER, START, rng=seed)
    assert (r.steps, r.cost, r.status) == (0, 0.0, "done")
    assert np.array_equal(r.y, START)
    assert "after 0 of at most" in repr(r)


def test_levels_seen_to_break_their_accuracies_void_the_promise():
    p = plan(KNOWN, GOAL, "sharp")
    wrong = replace(LADDER, accuracy=lambda k: dyadic(k) / 8)
    r = p.run(wrong, START, rng=6)
    assert r.promise == "none"
    assert "audit the hierarchy" in r.message


# --- ladders ---


def test_a_plan_on_the_papers_ladder_runs_on_any_that_is_as_accurate():
    p = plan(KNOWN, GOAL, "sharp")
    skips = replace(LADDER, levels=(0, 1, 2, 4, 6, 8, 10, 12))
    assert p.run(skips, START, rng=6).promise == "proved"
    drawn = p.telescope(skips, p.stages[0])
    planned = p.telescope(LADDER, p.stages[0])
    assert drawn.joint_bound <= planned.joint_bound
    with pytest.raises(LevelError, match="is needed and the finest level offers"):
        p.run(replace(LADDER, levels=(0, 1, 2)), START)
    bare = replace(LADDER, accuracy=None)
    with pytest.raises(ValueError, match="no accuracy was declared"):
        p.run(bare, START)
    own = plan(KNOWN, GOAL, "sharp", on=LADDER)
    worse = replace(LADDER, accuracy=lambda k: 2 * dyadic(k))
    with pytest.raises(ValueError, match="less accuracy than the plan's: plan on them"):
        own.run(worse, START)


def test_what_was_measured_is_an_estimate():
    h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 9))
    report = audit(h, [np.ones(2), np.zeros(2)], reference=lambda y: y)
    known = Problem(beta=1, d0=2, gamma=3, c=1)
    p = plan(known, 0.1, "sharp", on=report)
    assert p.promise == "estimate"
    assert "mean loss about 0.1 (estimate: the book's Theorem S" in p.promised
    assert p.run(h, np.ones(2), rng=1).promise == "estimate"
    with pytest.raises(ValueError, match="what is not declared proves nothing"):
        plan(known, 0.1, "sharp", on=replace(h, accuracy=None))


def test_one_level_and_an_exact_one():
    one = Hierarchy(lambda k, y: y, [5.0], [3], lambda k: 1e-3)
    known = Problem(beta=1, d0=1, gamma=3, c=1)
    p = plan(known, 0.01, "sharp", on=one)
    assert {*p.stages[0].reach} == {3}
    assert p.expected_cost == pytest.approx(5 * p.expected_steps)
    exact = replace(one, exact=True)
    p = plan(known, 1e-6, "sharp", on=exact)
    # of all outputs of plain descent: beta d0^2/(2 eps) are enough
    assert 0.5e6 <= p.steps <= 0.52e6 * 1.02
    with pytest.raises(
        LevelError, match=r"accuracy, 0.001, leaves no room for steps: add"
    ):
        plan(known, 1e-6, "sharp", on=one)
    with pytest.raises(LevelError, match=r"would need more than 5e.19 steps: ask for a"):
        plan(known, 1e-20, "sharp", on=exact)


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"chooses its own step: leave out eta; got 0.1"):
        plan(KNOWN, GOAL, "sharp", eta=0.1)
    with pytest.raises(ValueError, match=r"average=True is for method='sharp'.*'fixed'"):
        plan(KNOWN, GOAL, "fixed", average=True)
    p = plan(KNOWN, GOAL, "sharp")
    for broken in (replace(p, stages=()), replace(p, stages=p.stages[:2])):
        with pytest.raises(ValueError, match="this plan lacks stages"):
            broken.run(LADDER, START)


def test_it_says_what_it_is():
    p = plan(KNOWN, GOAL, "sharp")
    assert isinstance(p, SharpPlan)
    words = ("sharp: at most ", "a random stop", "error budget", "levels reached")
    words += ("expected price", "never above", "Theorem S (the sharp plan), ours")
    assert [word for word in words if word not in str(p)] == []
    mean = plan(KNOWN, GOAL, "sharp", average=True)
    assert "the mean of all outputs" in str(mean)
    assert mean.expected_cost > p.expected_cost


if (
    __name__ == "__main__"
):  # python tests/library/test_sharp.py 1000 sets; ... 300 hostile
    import sys
    import time

    number, kind = int(sys.argv[1]), sys.argv[2]
    began = time.time()
    found = [(check if kind == "sets" else hostile)(seed) for seed in range(number)]
    made = np.count_nonzero(found)
    print(
        f"{made} plans of {number}, largest {max(found):.4f}, {time.time() - began:.0f} s"
    )
