"""mlgd.audits: it reads ready-made hierarchies back, or says why it cannot."""

import math

import numpy as np
import pytest
from families import FAMILIES, POINTS, alternating, gradient

from mlgd import Hierarchy, audit
from mlgd.examples import biased


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
