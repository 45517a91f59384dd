"""mlgd.estimates and mlgd.spectra: quadrature brackets the truth; constants lie in their ranges, and what is unseen is said."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlgd import Hierarchy, audit, estimate
from mlgd.examples import rounded
from mlgd.spectra import Measure, lanczos


def quadratic(spectrum, seed=0, levels=range(7), size=0.1, vary=0.0, gamma=3.0, rotate=True):
    """A quadratic of the given spectrum in random coordinates, minimizer 0; level k is off by size * 2^-k.

    With `vary` errors change with y as 0.1 * 2^-k * vary * W_k y, W_k orthogonal and so not symmetric.
    """
    rng, d = np.random.default_rng(seed), len(spectrum)
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0] if rotate else np.eye(d)
    hessian = (basis * spectrum) @ basis.T
    directions = {k: rng.standard_normal(d) for k in levels}
    turns = {k: np.linalg.qr(rng.standard_normal((d, d)))[0] for k in levels} if vary else {}

    def evaluate(k, y):
        off = directions[k] / np.linalg.norm(directions[k]) + (vary * turns[k] @ y if vary else 0.0)
        return hessian @ y + size * 2.0**-k * off

    start = basis @ (
        rng.choice([-1.0, 1.0], d) * np.sqrt(2 / d / spectrum)
    )  # the loss, one, shared equally
    return Hierarchy(evaluate, lambda k: 2.0 ** (gamma * k), levels), start, hessian


# --- quadrature --------------------------------------------------------------------------------------------


def power(n):
    return lambda x: x ** float(n)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(1, 12), st.floats(0.5, 4))
def test_gauss_is_exact_for_polynomials_and_brackets_inverses(seed, d, steps, decades):
    rng = np.random.default_rng(seed)
    spectrum = np.sort(10 ** -rng.uniform(0, decades, d))
    v = rng.standard_normal(d)
    found = lanczos(lambda x: spectrum * x, v, steps)
    n = found.measure.nodes.size
    assert n <= min(steps, d)
    for degree in range(2 * n):
        assert found.measure.integral(power(degree)) == pytest.approx(
            v**2 @ spectrum**degree, rel=1e-8
        )
    upper = found.measure.radau(0.9 * spectrum[0])
    assert upper.total == pytest.approx(found.measure.total)
    for order in (1, 2):
        truth = float(v**2 @ spectrum**-order)
        assert found.measure.integral(power(-order)) <= truth * (1 + 1e-6)
        assert upper.integral(power(-order)) >= truth * (1 - 1e-6)


def test_radau_has_its_node_where_it_is_asked_for():
    spectrum = np.logspace(-3, 0, 40)
    measure = lanczos(lambda x: spectrum * x, np.ones(40), 8).measure
    upper = measure.radau(1e-3)
    assert upper.nodes[0] == 1e-3
    assert upper.nodes.size == 9
    for degree in range(2 * 8):  # one more node, one more degree: 2n in all
        assert upper.integral(power(degree)) == pytest.approx((spectrum**degree).sum(), rel=1e-8)
    assert measure.radau(0.0).integral(lambda x: 1 / x) == math.inf
    assert measure.radau(1.0) is measure  # no room above the smallest node
    whole = lanczos(lambda x: spectrum * x, np.ones(40), 40).measure
    assert whole.radau(1e-4) is whole or whole.radau(1e-4).integral(
        lambda x: 1 / x
    ) == pytest.approx(whole.integral(lambda x: 1 / x), rel=1e-3)


def test_a_measure_scales():
    m = Measure(np.array([0.5, 2.0]), np.array([1.0, 3.0]))
    with pytest.raises(AttributeError):
        m.nodes = m.weights  # it may be shared
    m = m.scaled(4.0)
    assert m.total == 16.0
    assert m.integral(lambda x: 1 / x) == 14.0


def test_asymmetry_is_noticed():
    rng = np.random.default_rng(0)
    spectrum = np.linspace(0.1, 1, 30)
    turn = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    clean = lanczos(lambda x: spectrum * x, rng.standard_normal(30), 20)
    turned = lanczos(lambda x: spectrum * x + 0.05 * turn @ x, rng.standard_normal(30), 20)
    assert clean.asymmetry < 1e-12
    assert 0.01 < turned.asymmetry < 0.1


# --- the three numbers -------------------------------------------------------------------------------------

SPECTRA = {
    "kappa 1e2": np.logspace(-2, 0, 120),
    "kappa 1e4": np.logspace(-4, 0, 120),
    "uniform": np.linspace(0.01, 1, 120),
    "an outlier": np.append(np.linspace(1, 2, 119), 50.0),
    "two values": np.repeat([0.01, 1.0], 60),
    "ten unknowns": np.logspace(-3, 1, 10),
    "units": 1e-7 * np.logspace(-2, 0, 120),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SPECTRA)
def test_the_ranges_hold_the_truth(name, seed):
    spectrum = SPECTRA[name]
    h, start, _ = quadratic(spectrum, seed, size=1e-3 * spectrum.max())
    scale = estimate(h, start, rng=seed)
    beta, mu, d0 = spectrum.max(), spectrum.min(), np.linalg.norm(start)
    assert scale.beta.low * (1 - 1e-6) <= beta <= scale.beta.high * (1 + 1e-9)
    assert scale.beta.high <= 1.3 * beta
    assert scale.mu.low * (1 - 1e-6) <= mu <= scale.mu.high * (1 + 1e-6)
    assert scale.d0.low <= d0 <= scale.d0.high * (1 + 1e-6)
    assert scale.cost == sum(n * h.cost(k) for k, n in scale.evaluations.items())


def test_few_unknowns_are_known_to_rounding():
    spectrum = np.logspace(-3, 1, 10)
    h, start, _ = quadratic(spectrum, size=1e-9)
    scale = estimate(h, start, rng=0)
    for found, truth in ((scale.beta, 10.0), (scale.mu, 1e-3), (scale.d0, np.linalg.norm(start))):
        assert found.low == pytest.approx(truth, rel=1e-3)
        assert found.high == pytest.approx(truth, rel=1e-3)
    assert np.linalg.norm(scale.reached) < 1e-3 * np.linalg.norm(start)


def test_everything_is_billed_and_evaluated_through_the_ladder():
    h, start, _ = quadratic(np.logspace(-2, 0, 40))
    asked = []
    counted = Hierarchy(lambda k, y: asked.append(k) or h.evaluate(k, y), h.cost, h.levels)
    scale = estimate(counted, start, rng=0)
    assert scale.evaluations == {k: asked.count(k) for k in set(asked)}
    assert scale.level == 0
    assert max(asked) < 5  # 8^5 is more than all the products together
    assert scale.cost <= 6 * 60 + 4 * 60 + 2 * 8**2


def test_an_audit_at_the_start_is_not_paid_again():
    h, start, _ = quadratic(np.logspace(-2, 0, 40))
    report = audit(h, [0.5 * start, start])
    scale = estimate(h, start, rng=0, known=report)
    assert set(scale.evaluations) == {0}
    assert sorted(scale.measures.increments) == [3, 4, 5, 6]
    assert scale.measures.gradient.total == pytest.approx(np.sum(h.value(6, start) ** 2))
    for k, measure in scale.measures.increments.items():
        assert measure.total == pytest.approx(np.sum(h.step(k, start) ** 2))


def test_the_seed_decides():
    h, start, _ = quadratic(np.logspace(-3, 0, 50))
    one, two = estimate(h, start, rng=3), estimate(h, start, rng=3)
    assert str(one) == str(two)
    assert (one.reached == two.reached).all()


# --- the measures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kappa", [1e2, 1e3, 1e4, 1e5])
def test_measures_give_the_integrals_of_a_plan(kappa):
    """Loss of the start, of the increments' noise, and responses of descent, against the exact spectrum."""
    spectrum = np.logspace(-math.log10(kappa), 0, 300)
    h, start, _ = quadratic(spectrum, seed=5, levels=range(8), rotate=False)
    scale = estimate(h, start, rng=0, known=audit(h, start))
    true = spectrum * start
    responses = [
        lambda x, t=t: (1 - x) ** (2 * t) / x for t in (10, 100, 1000)
    ]  # loss left after t steps
    for response in responses:
        exact, measured = (
            float(true**2 @ response(spectrum)),
            scale.measures.gradient.integral(response),
        )
        assert measured == pytest.approx(exact, rel=0.35, abs=0.02)
    for k, measure in scale.measures.increments.items():
        squares = h.step(k, start) ** 2
        for response in (lambda x: x / (2 - x) / x, lambda x: (1 - (1 - x) ** 500) / x):
            assert measure.integral(response) == pytest.approx(
                float(squares @ response(spectrum)), rel=0.15
            )


def test_unmeasured_increments_take_the_nearest_shape():
    h, start, _ = quadratic(np.logspace(-2, 0, 40))
    measures = estimate(h, start, rng=0, known=audit(h, start, levels=range(4))).measures
    assert sorted(measures.increments) == [1, 2, 3]
    finer = measures.increment(6, norm=0.01)
    assert finer.total == pytest.approx(1e-4)
    np.testing.assert_array_equal(finer.nodes, measures.increments[3].nodes)
    np.testing.assert_array_equal(
        measures.increment(2, norm=0.3).nodes, measures.increments[2].nodes
    )


# --- what cannot be known ----------------------------------------------------------------------------------


def noted(scale, words):
    return any(words in note for note in scale.notes)


def test_a_small_mu_is_not_claimed():
    h, start, _ = quadratic(np.linspace(0, 1, 301)[1:] ** 3, size=1e-9, levels=range(3))
    scale = estimate(h, start, rng=0)
    assert scale.mu.low == 0
    assert scale.mu.high < 1e-3
    assert math.isinf(scale.d0.high)
    assert noted(scale, "mu may be as small as 0")
    assert noted(scale, "d0 has no upper end")
    assert "mu   =" in str(scale)
    assert "! mu may be" in str(scale)


def test_rounded_levels_are_differenced_at_a_distance_or_left():
    spectrum = np.logspace(-1, 0, 30)
    start = np.random.default_rng(0).standard_normal(30)
    fine = estimate(rounded(lambda y: spectrum * y, 3.0, 1.0, range(2, 14)), start, rng=0)
    assert fine.level > 2  # the coarsest rounds to a grid of a tenth, its differences say nothing
    assert fine.beta.low <= 1.05
    assert 0.9 <= fine.beta.high
    assert fine.mu.low <= 0.1 <= fine.mu.high * 1.05


@pytest.mark.parametrize("levels", [range(-1, 1), range(1, 3), range(2, 4)])
def test_levels_that_are_mostly_noise_are_called_so(levels):
    spectrum = np.logspace(-1, 0, 30)
    start = np.random.default_rng(0).standard_normal(30)
    h = rounded(lambda y: spectrum * y, 3.0, 1.0, levels)
    scale = estimate(h, start, rng=0)
    assert scale.measures is None
    assert scale.beta.low == scale.mu.low == 0
    assert math.isinf(scale.beta.high)
    assert noted(
        scale,
        "nothing can be told, give beta, mu and d0 yourself or begin the ladder at a finer level",
    )
    with pytest.raises(ValueError, match="the estimate could not tell beta"):
        audit(rounded(lambda y: spectrum * y, 3.0, 1.0, range(1, 9)), start).problem(scale)


@pytest.mark.parametrize("seed", range(5))
def test_a_smallest_eigenvalue_that_products_miss_by_their_noise_lies_in_its_range(seed):
    """Half the spectrum at one small eigenvalue: noise spreads it downwards, and the smallest Ritz value is below it."""
    rng, spectrum = np.random.default_rng(seed), np.repeat([0.01, 1.0], 40)
    turn = np.linalg.qr(rng.standard_normal((80, 80)))[0]
    h = rounded(lambda y: turn @ (spectrum * (turn.T @ y)), 3.0, 0.1, range(1, 9))
    scale = estimate(h, turn @ (rng.choice([-1.0, 1.0], 80) / np.sqrt(40 * spectrum)), rng=seed)
    assert scale.mu.best < 0.01
    assert scale.mu.low <= 0.01 <= scale.mu.high


def test_a_gradient_that_does_not_grow_is_noticed():
    for evaluate in (lambda k, y: 0 * y + 1 + 2.0**-k, lambda k, y: -y):
        scale = estimate(Hierarchy(evaluate, lambda k: 8.0**k, range(4)), np.ones(3), rng=0)
        assert noted(scale, "does not grow with y as the gradient of a convex loss would")


def test_single_precision_is_enough():
    spectrum = np.logspace(-2, 0, 30)
    h = Hierarchy(
        lambda k, y: (spectrum * y + 1e-3 * 2.0**-k).astype(np.float32), lambda k: 8.0**k, range(6)
    )
    double = Hierarchy(lambda k, y: spectrum * y + 1e-3 * 2.0**-k, lambda k: 8.0**k, range(6))
    one, two = estimate(h, np.ones(30), rng=0), estimate(double, np.ones(30), rng=0)
    for name in ("beta", "mu", "d0"):
        assert getattr(one, name).best == pytest.approx(getattr(two, name).best, rel=1e-3)
    assert one.mu.low <= 0.01 <= one.mu.high


def test_errors_that_vary_with_y_hide_small_eigenvalues_and_a_budget_finds_them():
    spectrum = np.logspace(-3, 0, 60)
    h, start, _ = quadratic(spectrum, levels=range(9), vary=0.1, seed=2)
    coarse = estimate(h, start, rng=0)
    assert coarse.level == 0
    assert coarse.resolution > 1e-3
    assert noted(coarse, "a budget= lets")
    fine = estimate(h, start, rng=0, budget=360 * 8.0**6)
    assert fine.level == 6
    assert fine.cost <= 3 * 360 * 8.0**6
    assert fine.resolution < 1e-3
    assert fine.mu.low <= 1e-3 <= fine.mu.high * 1.05


def test_the_audit_says_which_level_stands_for_the_finer_ones():
    points = [np.ones(60), 0.9 * np.ones(60), 0.5 * np.ones(60)]
    for vary, level in (
        (0.0, 0),
        (0.1, 4),
    ):  # errors constant in y: the coarsest; else the finest in 2% of level 9
        h, _, _ = quadratic(np.logspace(-3, 0, 60), levels=range(10), vary=vary)
        assert estimate(h, points[0], rng=0, known=audit(h, points)).level == level
    assert 360 * 8**4 <= 0.02 * 8**9 < 360 * 8**5


def test_the_minimizer_of_the_coarsest_level_is_no_bad_place_to_start():
    spectrum = np.logspace(-2, 0, 40)
    h, _, hessian = quadratic(spectrum, seed=4)
    start = -np.linalg.solve(hessian, h.value(0, np.zeros(40)))
    assert np.linalg.norm(h.value(0, start)) < 1e-14
    scale = estimate(h, start, rng=0)
    assert scale.beta.low <= 1.0 + 1e-6 <= scale.beta.high + 2e-6
    assert scale.resolution < 1e-8
    assert scale.d0.low <= np.linalg.norm(start) <= scale.d0.high


def test_an_array_of_unknowns_may_have_any_shape():
    spectrum = np.logspace(-2, 0, 12)
    flat = Hierarchy(lambda k, y: spectrum * y + 0.1 * 2.0**-k, lambda k: 8.0**k, range(5))
    table = Hierarchy(
        lambda k, y: flat.evaluate(k, y.ravel()).reshape(3, 4), lambda k: 8.0**k, range(5)
    )
    one, two = estimate(flat, np.ones(12), rng=0), estimate(table, np.ones((3, 4)), rng=0)
    assert str(one) == str(two)
    assert two.reached.shape == (3, 4)


def test_a_loss_that_is_not_quadratic_is_noticed():
    weights = np.logspace(-1, 0, 20)
    flat = Hierarchy(
        lambda k, y: weights * np.tanh(5 * (y - 3)) + 1e-3 * y, lambda k: 8.0**k, range(5)
    )
    scale = estimate(flat, np.ones(20), rng=0)
    assert noted(scale, "the loss is far from quadratic")
    assert math.isinf(scale.d0.high)
    mild = Hierarchy(
        lambda k, y: weights * (y + 0.05 * np.sin(y)) + 1e-3 * 2.0**-k, lambda k: 8.0**k, range(5)
    )
    assert not noted(estimate(mild, np.ones(20), rng=0), "far from quadratic")


def test_negative_curvature_is_named():
    bent = Hierarchy(
        lambda k, y: y - 1.1 * np.sin(y) * (np.arange(8) == 3), lambda k: 8.0**k, range(5)
    )
    scale = estimate(bent, 0.1 + np.zeros(8), rng=0)
    assert noted(scale, "level 0 has a direction of negative curvature")
    assert scale.mu.low == 0


def test_a_scale_becomes_a_problem():
    h, start, _ = quadratic(np.logspace(-1, 0, 20), levels=range(6))
    report = audit(h, [start, 0.9 * start, 0.5 * start])
    scale = estimate(h, start, rng=0, known=report)
    problem = report.problem(scale)
    assert problem.beta == scale.beta.high
    assert problem.mu == scale.mu.low > 0
    assert problem.d0 == scale.d0.high
    assert problem.measures is scale.measures


def test_ranges_heed_what_finer_levels_change():
    """The coarsest level is a quarter too steep, and finer ones less and less: a range of no width would miss the truth."""
    h = Hierarchy(
        lambda k, y: (1 + 0.25 * 2.0**-k) * np.array([14.7, 1.0, 0.3]) * y,
        lambda k: 8.0**k,
        range(6),
    )
    scale = estimate(h, np.ones(3), rng=0)
    assert scale.beta.best == pytest.approx(1.25 * 14.7)
    assert scale.beta.low * (1 - 1e-9) <= 14.7 < scale.beta.high
    assert scale.mu.low * (1 - 1e-9) <= 0.3 <= scale.mu.high
    assert noted(scale, "the lower end of mu is no bound") or noted(
        scale, "mu may be as small as 0"
    )
    alone = estimate(h.only([0]), np.ones(3), rng=0)
    assert noted(alone, "what finer levels change of it is not told")


def test_jumps_are_differenced_over_the_distance_to_the_minimizer():
    spectrum = np.logspace(-2, 0, 50)
    h = rounded(lambda y: spectrum * y, 3.0, 0.1, range(1, 8))
    scale = estimate(
        h, 3 / np.sqrt(spectrum) * np.random.default_rng(0).choice([-1.0, 1.0], 50), rng=0
    )
    assert scale.step > 20
    assert scale.beta.low <= 1 <= scale.beta.high
    assert scale.mu.low <= 0.01 <= 1.5 * scale.mu.high
