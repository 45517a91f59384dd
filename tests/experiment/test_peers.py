"""The other contestants: exact means, variances and prices by enumeration, their optimal probabilities, and runs."""

import numpy as np
import pytest

from mlgd import Hierarchy, Telescope
from mlgd.experiment.peers import (
    Arena,
    average,
    cheapest,
    coarse_to_fine,
    conjugate_gradients,
    descend,
    extrapolated,
    fixed,
    hindsight,
    independent,
    lbfgs,
    roulette,
    scheduled,
    single,
)
from mlgd.experiment.race import judge

TARGET = np.array([1.0, -2.0, 0.5])
CURVATURE = np.array([1.0, 0.3, 0.1])
WAVES = np.random.default_rng(5).standard_normal((5, 3))


def evaluate(k, y):
    return CURVATURE * (y - TARGET) + 2.0**-k * (WAVES[k] + np.sin(k + y))


H = Hierarchy(evaluate, lambda k: 8.0**k, range(5))
Y = np.array([0.3, 0.7, -0.2])
ALL = (0, 1, 2, 3, 4)
STEPS = np.array([H.step(k, Y) for k in H.levels])
GRAM = STEPS @ STEPS.T
KINDS = {
    "independent": independent(H, ALL, [0.6, 0.2, 0.3, 0.05]),
    "single": single(H, ALL, [0.3, 0.2, 0.1, 0.05]),
    "single, always one": single(H, ALL, [0.4, 0.3, 0.2, 0.1]),
    "roulette": roulette(H, ALL, [0.7, 0.3, 0.1, 0.02]),
    "on some levels": independent(H, (1, 2, 4), [0.3, 0.1]),
    "average": average(independent(H, ALL, [0.6, 0.2, 0.3, 0.05]), 3),
    "average of roulettes": average(roulette(H, (0, 2, 4), [0.3, 0.02]), 2),
}


@pytest.mark.parametrize("name", KINDS)
def test_mean_and_variance_by_enumeration_of_the_values(name):
    e = KINDS[name]
    levels = np.array([H.evaluate(k, Y) for k in H.levels])
    values = e.weights @ levels
    assert np.isclose(e.probability.sum(), 1)
    mean = e.probability @ values
    assert np.allclose(mean, H.evaluate(4, Y))
    spread = float(e.probability @ ((values - mean) ** 2).sum(axis=1))
    assert np.isclose(e.variance(GRAM), spread)


def test_a_wrong_weight_is_seen_by_the_mean():
    e = independent(H, ALL, [0.6, 0.2, 0.3, 0.05])
    e.coefficients[:, 2] *= 0.2  # multiplied by p instead of divided
    assert not np.allclose(e.mean(), 1)


def test_independent_is_the_telescope_of_the_module():
    p = [1.0, 0.6, 0.2, 0.3, 0.05]
    ours, theirs = independent(H, ALL, p[1:]), Telescope(H, p)
    assert np.isclose(ours.expected_cost(), theirs.expected_cost())
    assert np.isclose(ours.variance(GRAM), theirs.variance(Y))


def test_prices_charge_each_needed_level_once():
    assert fixed(H, 3).prices.tolist() == [8.0**3]
    assert extrapolated(H, 3).prices.tolist() == [8.0**3 + 8.0**2]
    by_end = [1, 1 + 8, 1 + 8 + 64, 1 + 8 + 64 + 512, 1 + 8 + 64 + 512 + 4096]
    assert KINDS["roulette"].prices.tolist() == by_end
    assert np.isclose(KINDS["roulette"].expected_cost(), 1 + 0.7 * 8 + 0.3 * 64 + 0.1 * 512 + 0.02 * 4096)
    # one increment is its two levels beside the coarsest, which the first increment needs anyway
    assert KINDS["single"].prices.tolist() == [1 + 8, 1 + 8 + 64, 1 + 64 + 512, 1 + 512 + 4096, 1]
    # draws of the same level are one evaluation
    twice = average(single(H, (0, 4), [0.25]), 2)
    assert sorted(twice.prices.tolist()) == [1, 4097, 4097]


def test_roulette_is_the_telescope_with_one_uniform_for_all_levels():
    p = np.array([0.7, 0.3, 0.1, 0.02])
    uniform = (np.arange(10_000) + 0.5) / 10_000
    shared = (uniform[:, None] < p) / p
    e = roulette(H, ALL, p)
    rows, counts = np.unique(shared, axis=0, return_counts=True)
    order = np.lexsort(e.coefficients[:, :0:-1].T)
    assert np.allclose(rows[np.lexsort(rows[:, ::-1].T)], e.coefficients[order, 1:])
    assert np.allclose(counts[np.lexsort(rows[:, ::-1].T)] / 10_000, e.probability[order])
    with pytest.raises(ValueError, match="falls with k"):
        roulette(H, ALL, [0.1, 0.3, 0.2, 0.1])


def test_averaging_divides_the_variance_and_one_draw_at_that_price_does_better():
    p = np.array([0.37, 0.11])
    one = independent(H, (0, 2, 4), p)
    four = average(one, 4)
    assert np.isclose(four.variance(GRAM), one.variance(GRAM) / 4)
    better = independent(H, (0, 2, 4), 1 - (1 - p) ** 4)
    assert np.isclose(better.expected_cost(), four.expected_cost())
    assert better.variance(GRAM) < four.variance(GRAM)


@pytest.mark.parametrize("kind", [independent, single, roulette])
def test_cheapest_meets_the_variance_of_any_rival_and_costs_no_more(kind):
    rng, price = np.random.default_rng(1), 8.0 ** np.arange(1, 5)
    for _ in range(60):
        p = np.sort(rng.random(4))[::-1] ** rng.uniform(0.02, 4)
        p = p / p.sum() * rng.random() if kind is single else p
        rival = kind(H, ALL, p)
        variance = rival.variance(GRAM)
        best = cheapest(kind, H, 4, np.sqrt(variance), GRAM)
        assert best.variance(GRAM) <= variance * (1 + 1e-9)
        assert np.allclose(best.mean(), 1)
        # independent coins are optimised as if each increment paid for its two levels
        pairs = 1 + float(p @ (price + np.where(price > 8, price / 8, 0)))
        bound = pairs if kind is independent else rival.expected_cost()
        assert best.expected_cost() <= bound * (1 + 1e-9)


def test_cheapest_over_subsets_is_no_dearer_than_the_module():
    for sigma in (0.1, 0.5, 2.0):
        ours = cheapest(independent, H, 4, sigma, GRAM)
        theirs = Telescope.cheapest(H, sigma, np.sqrt(np.diag(GRAM)))
        assert ours.expected_cost() <= theirs.expected_cost() * (1 + 1e-9)


def quadratic():
    exact = Hierarchy(lambda k, y: CURVATURE * (y - TARGET * (1 + 2.0**-k)), lambda k: 8.0**k, range(5))
    return Arena(exact, np.zeros(3), lambda ys: ((ys - TARGET) ** 2) @ CURVATURE / 2, 1.0, 0.1)


def test_runs_are_the_same_for_the_same_seed_and_charge_what_was_drawn():
    arena = quadratic()
    gram = arena.increments(np.array([arena.start, TARGET]))
    stages = [(30, cheapest(roulette, arena.h, 4, 0.3, gram)), (20, cheapest(single, arena.h, 4, 0.1, gram))]
    costs, losses = descend(arena, stages, 1.0, seeds=(3, 4))
    again, same = descend(arena, stages, 1.0, seeds=(4, 3))
    assert np.array_equal(costs, again[::-1])
    assert np.array_equal(losses, same[::-1])
    assert not np.array_equal(costs[0], costs[1])
    rng = np.random.default_rng(3)
    paid = np.concatenate([e.prices[e.indices(n, rng)] for n, e in stages])
    assert np.allclose(costs[0], np.cumsum(paid))


def test_a_fixed_level_descends_as_by_hand_and_stops_at_its_budget():
    arena = quadratic()
    costs, losses = descend(arena, [(10, fixed(arena.h, 2))], 0.5, max_cost=7 * 64)
    assert costs.tolist() == [[64.0 * n for n in range(1, 8)]]
    y = np.zeros(3)
    for step in range(7):
        y = y - 0.5 * arena.h.evaluate(2, y)
        assert np.isclose(losses[0, step, 0], arena.loss(y[None])[0])


def test_acceleration_and_the_proximal_step():
    arena = quadratic()
    (_, plain), (_, fast) = (descend(arena, [(60, fixed(arena.h, 4))], 0.5, accelerated=a) for a in (False, True))
    assert fast[0, 8, 0] < plain[0, 8, 0]
    shrink = lambda ys, step: np.sign(ys) * np.maximum(np.abs(ys) - 0.2 * step, 0)  # noqa: E731
    lasso = Arena(arena.h, arena.start, arena.loss, 1.0, 0.1, proximal=shrink)
    centre = TARGET * (1 + 2.0**-4)
    soft = np.sign(centre) * np.maximum(np.abs(centre) - 0.2 / CURVATURE, 0)
    for accelerated in (False, True):
        _, losses = descend(lasso, [(150, fixed(lasso.h, 4))] * 3, 0.5, accelerated=accelerated)
        assert np.isclose(losses[0, -1, 0], arena.loss(soft[None])[0], rtol=1e-3)


def test_conjugate_gradients_end_in_as_many_steps_as_coordinates():
    arena = quadratic()
    costs, losses = conjugate_gradients(arena, [(3, fixed(arena.h, 4))])
    assert costs.tolist() == [[4096.0 * n for n in (2, 3, 4)]]
    assert np.isclose(losses[0, -1, 0], arena.loss((TARGET * (1 + 2.0**-4))[None])[0])
    costs, _ = conjugate_gradients(arena, [(1, fixed(arena.h, 0)), (2, fixed(arena.h, 1))])
    assert costs.tolist() == [[2.0, 2 + 8 * 3, 2 + 8 * 4]]


def test_extrapolation_removes_a_first_order_error_and_noise_is_refused():
    arena = quadratic()
    costs, losses = conjugate_gradients(arena, [(3, extrapolated(arena.h, 1))])
    assert costs.tolist() == [[9.0 * n for n in (2, 3, 4)]]
    assert losses[0, -1, 0] < 1e-20
    with pytest.raises(ValueError, match="same gradient at every call"):
        conjugate_gradients(arena, [(3, single(arena.h, (0, 1), [0.5]))])


def test_lbfgs_is_charged_every_evaluation():
    arena, calls = quadratic(), []

    def objective(k, y):
        calls.append(k)
        return float(((y - TARGET * (1 + 2.0**-k)) ** 2) @ CURVATURE / 2)

    costs, losses = lbfgs(arena, objective, [(3, fixed(arena.h, 1)), (20, fixed(arena.h, 4))])
    assert costs[0, -1] <= sum(8.0**k for k in calls) == 8.0 * calls.count(1) + 4096.0 * calls.count(4)
    assert costs[0, -1] > 4096.0 * (calls.count(4) - 3)
    assert np.isclose(losses[0, -1, 0], arena.loss((TARGET * (1 + 2.0**-4))[None])[0], rtol=1e-4)


def test_schedules_refine():
    assert [(n, int(e.mean().sum()) - 1) for n, e in coarse_to_fine(H, (1, 2, 4), 8, 0.5, 100)] == [
        (8, 1),
        (4, 2),
        (100, 4),
    ]
    stages = list(scheduled(independent, H, GRAM, 2.0, 0.3, 10, 8))
    finest = [int(np.flatnonzero(e.mean() > 0.5)[-1]) for _, e in stages]
    assert finest == sorted(finest)
    assert finest[-1] > finest[0]
    for j, (n, e) in enumerate(stages):
        assert n == 10
        assert e.variance(GRAM) <= 4.0 * 0.5**j * (1 + 1e-9)


def test_the_judge_takes_the_mean_for_good():
    costs = np.cumsum(np.ones((2, 20)), axis=1)
    losses = np.linspace(1, 0, 20)[None, :, None] + np.array([0.1, -0.1])[:, None, None]
    assert judge(costs, losses, [0.5]).tolist() == [[11.0], [11.0], [11.0]]
    losses[0, 19] = 9.0  # one seed ends badly: the mean does
    assert np.isinf(judge(costs, losses, [0.5])).all()


def test_hindsight_takes_the_cheaper_setting_at_each_target():
    steps = np.arange(1.0, 21.0)
    quick = (steps[None], np.maximum(1 - steps / 5, 0.5)[None, :, None])  # cheap and inaccurate
    slow = (3 * steps[None], (1 - steps / 20)[None, :, None])
    assert hindsight(iter([quick, slow]), [0.6, 0.2, -1.0])[1].tolist() == [2.0, 48.0, np.inf]
