"""mlgd.hierarchy: ready-made hierarchies obey Assumption 1, and an audit reads them back or says why it cannot."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlgd import Hierarchy, audit, biased, first_level, rounded, series
from mlgd.hierarchy import LevelError

CURVATURE = np.array([1.0, 3.0, 0.5, 2.0])


def gradient(y):
    return CURVATURE * y


def alternating(*arguments):
    return biased(*arguments, alternate=True)


FAMILIES = {"rounded": rounded, "biased": biased, "alternating": alternating, "series": series}
POINTS = list(np.random.default_rng(3).normal(size=(60, 4)))


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-50, 50), min_size=4, max_size=4), st.integers(-3, 20), st.floats(0.3, 6), st.floats(0.1, 4))
def test_ready_made_levels_obey_the_assumption(name, y, k, rate, c):
    h = FAMILIES[name](gradient, rate, c, [k, k + 1])
    y = np.array(y)
    assert np.linalg.norm(h.evaluate(k, y) - gradient(y)) <= 2.0**-k + 1e-12 * (1 + np.linalg.norm(y))
    assert math.isclose(h.cost(k), (c * 2.0**k) ** rate, rel_tol=1e-12)
    assert h.accuracy(k) == 2.0**-k


def test_the_worst_case_reaches_every_bound():
    h = alternating(gradient, 2.0, 1.0, range(1, 8))
    y = POINTS[0]
    for k in h.levels[1:]:
        assert math.isclose(np.linalg.norm(h.evaluate(k, y) - gradient(y)), 2.0**-k, rel_tol=1e-9)
        assert math.isclose(np.linalg.norm(h.step(k, y)), 3 * 2.0**-k, rel_tol=1e-9)


def test_steps_telescope_and_cost_two_levels():
    h = rounded(gradient, 2.0, 1.0, range(1, 8))
    y = POINTS[0]
    np.testing.assert_allclose(sum(h.step(k, y) for k in h.levels), h.evaluate(7, y), atol=1e-12)
    assert h.before(1) is None
    assert h.before(4) == 3
    assert h.step_cost(1) == h.cost(1)
    assert h.step_cost(4) == h.cost(4) + h.cost(3)
    shared = Hierarchy(h.evaluate, h.cost, h.levels, increment=h.step)
    assert shared.step_cost(4) == h.cost(4)
    np.testing.assert_array_equal(shared.step(4, y), h.step(4, y))


@pytest.mark.parametrize("c", [0.3, 0.5, 1.0, 1.7, 4.0])
def test_the_level_before_the_first_costs_at_most_a_unit(c):
    k = first_level(c)
    assert c * 2.0 ** (k - 1) <= 1 < c * 2.0**k


def test_level_for_takes_the_coarsest_that_suffices():
    h = rounded(gradient, 2.0, 1.0, range(1, 8))
    assert h.level_for(0.125) == 3
    assert h.level_for(0.124) == 4
    assert h.level_for(10.0) == 1
    with pytest.raises(LevelError, match=r"accuracy 0.001 is needed and the finest level offers 0.00781: add levels"):
        h.level_for(0.001)


# --- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"levels": []}, "levels must be increasing integers, at least one"),
        ({"levels": [2, 1]}, r"levels must be increasing integers, at least one; got \[2, 1\]"),
        ({"levels": [1, 1]}, "levels must be increasing"),
        ({"cost": lambda k: 0.0}, "the price of level 1 must be positive and finite; got 0.0"),
        ({"cost": lambda k: -1.0 if k == 2 else 1.0}, "the price of level 2 must be positive"),
        ({"cost": lambda k: math.inf}, "the price of level 1 must be positive and finite; got inf"),
        ({"accuracy": lambda k: math.nan}, "the accuracy of level 1 must be positive and finite; got nan"),
    ],
)
def test_a_bad_hierarchy_is_refused(arguments, message):
    good = {"evaluate": lambda k, y: y, "cost": lambda k: 2.0**k, "levels": [1, 2, 3]}
    with pytest.raises(ValueError, match=message):
        Hierarchy(**(good | arguments))


def test_ready_made_hierarchies_refuse_a_bad_rate():
    with pytest.raises(ValueError, match=r"gamma and c must be positive; got gamma=-1\.0"):
        rounded(gradient, -1.0, 1.0, [1])
    with pytest.raises(ValueError, match="gamma and c must be positive"):
        biased(gradient, 1.0, 0.0, [1])


def test_a_level_that_returns_no_gradient_is_named():
    y = np.ones(3)
    shape = Hierarchy(lambda k, y: y[:2] if k == 2 else y, lambda k: 2.0**k, [1, 2, 3])
    with pytest.raises(LevelError, match=r"level 2 returned shape \(2,\) at a point of shape \(3,\)"):
        shape.check(y)
    broken = Hierarchy(lambda k, y: y * math.nan if k == 3 else y, lambda k: 2.0**k, [1, 2, 3])
    with pytest.raises(LevelError, match="level 3 returned a non-finite value at the point given: mend that level"):
        broken.check(y)
    with pytest.raises(LevelError, match="level 3 returned a non-finite value"):
        audit(broken, [y])
    with pytest.raises(ValueError, match="non-finite entry: give finite numbers"):
        broken.check([1.0, math.inf])
    with pytest.raises(LevelError, match=r"level 9 is not one of 1\.\.3"):
        broken.before(9)


def test_check_evaluates_only_the_levels_asked_for():
    seen = []

    def evaluate(k, y):
        seen.append(k)
        return y

    h = Hierarchy(evaluate, lambda k: 2.0**k, range(1, 9))
    assert h.check([1, 2], levels=(2, 5)).dtype == float
    assert seen == [2, 5]


# --- audit -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.5, 1.0, 2.0, 3.0, 6.0])
@pytest.mark.parametrize("reference", [gradient, None], ids=["reference", "finest"])
@pytest.mark.parametrize("name", FAMILIES)
def test_audit_reads_the_rate_and_names_the_regime(name, reference, rate):
    report = audit(FAMILIES[name](gradient, rate, 0.5, range(2, 14)), POINTS, reference=reference)
    assert abs(report.gamma / rate - 1) < 0.02
    assert report.regime == ("MC" if rate == 2 else "HTMC" if rate > 2 else "ETMC")
    assert report.r2 > 0.99
    assert abs(report.gamma - rate) <= report.gamma_error


@pytest.mark.parametrize("name", FAMILIES)
def test_audit_reads_the_prefactor(name):
    """Bias 2^-k x at price (c 2^k)^gamma: the law's c is c x, at most c, and the price law is met at the finest level."""
    report = audit(FAMILIES[name](gradient, 3.0, 0.5, range(2, 14)), POINTS, reference=gradient)
    assert 0.2 < report.c <= 0.52
    predicted = report.price_at(report.bias[-1])
    assert 0.5 < predicted / report.price[-1] < 2
    with pytest.raises(ValueError, match="delta must be positive; got 0"):
        report.price_at(0)


def test_audit_evaluates_each_level_once_a_point():
    calls = []

    def evaluate(k, y):
        calls.append(k)
        return y + 2.0**-k

    audit(Hierarchy(evaluate, lambda k: 2.0**k, range(1, 6)), POINTS[:3])
    assert sorted(calls) == sorted(3 * list(range(1, 6)))


def made(bias, price, gradient=lambda y: 0.0 * y, accuracy=None):
    """A hierarchy with the given bias along the first axis and the given prices."""

    def evaluate(k, y):
        e = np.zeros_like(y)
        e[0] = bias[k]
        return gradient(y) + e

    return Hierarchy(evaluate, lambda k: price[k], range(len(bias)), accuracy or (lambda k: max(bias[k], 1e-300)))


def warned(report, words):
    return any(words in w for w in report.warnings)


def test_a_plateau_is_recognised_and_left_out():
    bias = [0.25] * 4 + [2.0**-k for k in range(3, 12)]
    bias[:4] = [0.26, 0.259, 0.258, 0.257]
    report = audit(made(bias, [4.0**k for k in range(len(bias))]), [np.ones(2)], reference=lambda y: 0.0 * y)
    assert abs(report.gamma / 2 - 1) < 0.05
    assert report.fitted[0] >= 2
    assert warned(report, "lie on a plateau and are left out of the fit: start the ladder at")


def test_each_warning_has_its_cause_and_its_remedy():
    zero = lambda y: 0.0 * y  # noqa: E731
    y = [np.ones(2)]
    halves = [2.0**-k for k in range(10)]
    prices = [8.0**k for k in range(10)]
    clean = audit(made(halves, prices), y, reference=zero)
    assert clean.warnings == ()
    assert clean.regime == "HTMC"

    worse = halves.copy()
    worse[5] = worse[4] * 1.01
    assert warned(
        audit(made(worse, prices), y, reference=zero), "levels [5] do not improve on the one before: drop them"
    )

    flat_price = prices.copy()
    flat_price[4] = flat_price[3]
    assert warned(audit(made(halves, flat_price), y, reference=zero), "the price does not grow at levels [4]: drop")

    exact = [*halves[:8], 0.0, 0.0]
    assert warned(audit(made(exact, prices), y, reference=zero), "levels [8, 9] are exact to rounding: stop the ladder")

    noise = np.random.default_rng(0).uniform(0.5, 1.0, 10)
    report = audit(made(list(noise), prices), y, reference=zero)
    assert warned(report, "no line carries the fit")
    assert warned(report, "do not plan with gamma")

    boast = made(halves, prices, accuracy=lambda k: 0.3 * 2.0**-k)
    assert warned(audit(boast, y, reference=zero), "the bias exceeds the declared accuracy at levels")
    wide = alternating(zero, 3.0, 1.0, range(1, 9))
    small = Hierarchy(wide.evaluate, wide.cost, wide.levels, lambda k: 0.5 * 2.0**-k)
    assert warned(audit(small, y), "increments break their law at levels")

    far = made(halves, prices, gradient=lambda y: 100.0 * y)
    report = audit(far, y, reference=lambda y: 100.0 * y)
    assert warned(report, "draw it always (the default), the paper's own probability for it is unsafe here")


def test_the_report_is_a_table():
    report = audit(biased(gradient, 3.0, 0.5, range(2, 8)), POINTS[:2], reference=gradient)
    text = str(report).splitlines()
    assert text[0].split() == ["level", "bias", "increment", "price", "used"]
    assert text[1].split()[0] == "2"
    assert text[7].startswith("gamma = 3.000 +- 0.060, c = 0.5, R2 = 1.0000: HTMC")
    assert text[8].startswith("! the coarsest level has norm")


def test_too_few_levels_say_so():
    report = audit(biased(gradient, 3.0, 0.5, range(2, 4)), POINTS[:2], reference=gradient)
    assert warned(report, "no line carries the fit")
    single = audit(biased(gradient, 3.0, 0.5, [2]), POINTS[:2], reference=gradient)
    assert single.regime == "unknown"
    assert math.isnan(single.gamma)
    with pytest.raises(ValueError, match="audit needs at least one point"):
        audit(biased(gradient, 3.0, 0.5, [2]), [])
