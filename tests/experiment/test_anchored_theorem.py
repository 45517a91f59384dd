import math
from dataclasses import replace

import numpy as np
import pytest

from mlgd.experiment import anchored_exact as runs
from mlgd.experiment import anchored_theorem as theorem
from mlgd.experiment.epochs import cheapest
from mlgd.experiment.linear_errors import Moments, Sampling, after, anchored_path, instance


def drawn(seed):
    """A random parameter set with the theorem's ladder, and the theorem's own free numbers."""
    rng = np.random.default_rng([seed, 7])
    numbers = runs.random_parameters(rng)
    first = math.floor(-math.log2(numbers["mu"] * numbers["d0"])) - 1
    s = theorem.dyadic(**numbers, first=first, levels=40)
    return (
        rng,
        s,
        numbers["gamma"],
        (rng.uniform(0.05, 0.5), rng.uniform(0.02, 0.5), rng.uniform(2, 20)),
    )


@pytest.mark.parametrize("seed", range(60))
def test_the_theorem_is_never_exceeded(seed):
    rng, s, gamma, free = drawn(seed)
    plan = theorem.epochs(s, gamma, *free)
    distance, loss = runs.worst(s, plan, rng, flat=seed % 2 == 0)
    assert distance <= 1 + 1e-9
    assert loss <= 1 + 1e-9
    assert theorem.price(s, plan) <= theorem.price_bound(s, gamma, plan) * (1 + 1e-9)


@pytest.mark.parametrize("averaged", [True, False])
@pytest.mark.parametrize("seed", range(30))
def test_planned_epochs_keep_their_promise(seed, averaged):
    rng, s, gamma, free = drawn(seed)
    s = replace(s, averaged=averaged)
    plan = cheapest(s)
    distance, loss = runs.worst(s, plan, rng, flat=seed % 2 == 0)
    assert distance <= 1 + 1e-9
    assert loss <= 1 + 1e-9
    assert theorem.price(s, plan) <= theorem.price_bound(s, gamma, theorem.epochs(s, gamma, *free))


@pytest.mark.parametrize("seed", range(8))
def test_the_corrected_coarse_model_keeps_its_promise(seed):
    rng, s, _, _ = drawn(seed)
    plan = theorem.corrected_epochs(s)
    distance, loss = runs.worst(s, plan, rng, flat=seed % 2 == 0, sampled=False)
    assert distance <= 1 + 1e-9
    assert loss <= 1 + 1e-9


def test_the_theorem_on_the_corrected_coarse_model_is_never_exceeded_and_attained():
    seen = np.array([runs.corrected_set(seed) for seed in range(200)])
    assert seen.max() <= 1 + 1e-9
    assert seen[:, 0].max() > 1 - 1e-9
    assert max(runs.corrected_set(seed, 1.1)[0] for seed in range(50)) > 1.01


def test_the_convex_proposition_is_never_exceeded():
    assert max(runs.convex_set(seed) for seed in range(200)) <= 1


def last_epoch(stretch: float) -> float:
    """The loss over eps after the theorem's last epoch with l = 0 in the flattest direction, the error `stretch` times delta."""
    s = theorem.dyadic(1.0, 0.01, 1.0, 1e-5, 3.0, 1.0, 0.0, first=0)
    epoch = theorem.epochs(s, 3.0, 0.5, 0.02, 4.0)[-1]
    delta = theorem.value(theorem.LAST["delta"], mu=s.mu, eps=s.eps, x=0.02)
    start = Moments.at(np.array([-epoch.radius]))
    offset = np.array([stretch * delta])
    sure = replace(epoch, levels=(0,), probabilities=(1.0,))
    _, average = runs.exact_epoch(s, sure, start, np.array([s.mu]), np.diag([s.mu]), offset, {})
    return average.loss(np.array([s.mu])) / s.eps


def test_the_accuracy_of_the_last_reference_is_sharp():
    assert 0.95 < last_epoch(1.0) <= 1
    assert last_epoch(1.1) > 1


def test_two_ways_to_exact_moments_agree():
    family = instance(30, 3, seed=0, d=3)
    s = theorem.dyadic(1.0, 1 / 30, 1.0, 1e-3, 3.0, 1.0, 1.0, first=0)
    epoch = theorem.Epoch(1.0, 3, 17, 0.01, 0.8, levels=(0, 1, 3), probabilities=(1.0, 0.4, 0.2))
    slopes = dict(enumerate(family.slopes))
    last, _ = runs.exact_epoch(
        s, epoch, Moments.at(family.e0), family.spectrum, family.matrix[3], family.offset[3], slopes
    )
    merged = replace(family, matrix=family.matrix[[0, 1, 3]], offset=family.offset[[0, 1, 3]])
    path = anchored_path(merged, Moments.at(family.e0), 1.0, Sampling(0, 2, np.array([0.4, 0.2])))
    assert np.allclose(after(path, 17).second, last.second, rtol=1e-9)


def test_what_is_lower_order_vanishes():
    numbers = {"gamma": 3.0, "x": 0.1, "rho": 8.0, "mu": 0.01, "l": 1.0}
    shares = [theorem.value(theorem.LAST_SHARE, eps=eps, **numbers) for eps in (1e-6, 1e-8)]
    assert shares[1] == pytest.approx(shares[0] / 100)


def test_a_set_is_within_its_bounds_and_larger_errors_break_them():
    assert all(max(runs.one_set(seed)) <= 1 + 1e-12 for seed in range(100))
    assert any(max(runs.one_set(seed, 1.5)) > 1 for seed in range(100))
    assert (
        max(runs.one_set(seed)[2] for seed in range(100)) > 0.9
    )  # a price bound smaller by a tenth would fail
