"""mlgd.audits: it reads ready-made hierarchies back, or says why it cannot."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from families import FAMILIES, POINTS, alternating, gradient

from mlgd import Hierarchy, OutOfDomain, audit, constants
from mlgd.examples import biased


@pytest.mark.parametrize("rate", [0.5, 1.0, 2.0, 3.0, 6.0])
@pytest.mark.parametrize("reference", [gradient, None], ids=["reference", "finest"])
@pytest.mark.parametrize("name", FAMILIES)
def test_audit_reads_the_rate_and_names_the_regime(name, reference, rate):
    report = audit(
        FAMILIES[name](gradient, rate, 0.5, range(2, 14)), POINTS, reference=reference
    )
    assert abs(report.gamma / rate - 1) < 0.02
    assert report.regime == ("MC" if rate == 2 else "HTMC" if rate > 2 else "ETMC")
    assert report.r2 > 0.99
    assert report.gamma_range[0] <= rate <= report.gamma_range[1]
    if (
        reference is not None
    ):  # bias 2^-k x at price (c 2^k)^gamma: the law's c is c x, at most c
        assert 0.2 < report.c <= 0.52
        assert 0.5 < (report.c / report.bias[-1]) ** rate / report.price[-1] < 2


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

    accuracy = accuracy or (lambda k: max(*bias[k:], 1e-300, 1e-300))
    return Hierarchy(evaluate, list(price), range(len(bias)), accuracy)


def warned(report, words):
    return any(words in w for w in report.warnings)


def test_a_plateau_is_recognised_and_left_out():
    bias = [0.26, 0.259, 0.258, 0.257, *(2.0**-k for k in range(3, 12))]
    h = made(bias, [4.0**k for k in range(len(bias))])
    report = audit(h, [np.ones(2)], reference=lambda y: 0.0 * y)
    assert abs(report.gamma / 2 - 1) < 0.05
    assert report.used[0] >= 2
    assert warned(
        report, "do not follow the law of the finer ones and are left out of the fit"
    )
    for bits, first in (
        (1.42, 0),
        (1.56, 1),
    ):  # off the line of four, three times Student's bound
        off = made([2.0**bits, *HALVES[1:5]], PRICES[:5])
        assert audit(off, [np.ones(2)], lambda y: 0.0 * y).used[0] == first


def test_what_drowns_in_rounding_is_left_out():
    """Of a gradient of norm 1.4e6 an error of 1.4e-7, 1e-13 of it, is still read."""
    h = made(
        [2.0**-k for k in range(30)], [8.0**k for k in range(30)], lambda y: 0 * y + 1e6
    )
    report = audit(h, [np.ones(2)], reference=lambda y: 0 * y + 1e6)
    assert report.used == list(range(23))
    assert report.gamma == pytest.approx(3, rel=1e-3)


def changed(values, **at):
    """A list with some entries changed, named by their index: i5=..."""
    return [at.get(f"i{i}", value) for i, value in enumerate(values)]


HALVES, PRICES = [2.0**-k for k in range(10)], [8.0 ** (k - 9) for k in range(10)]
NOISE = np.random.default_rng(0).uniform(0.5, 1.0, 10).tolist()
BOAST = made(HALVES, PRICES, accuracy=lambda k: 0.95 * 2.0**-k)
SAME = made(changed(HALVES, i5=HALVES[4] * 1.01), PRICES)
CHEAP = made(HALVES, changed(PRICES, i4=PRICES[3]))
WARNINGS = {  # the cause and its remedy
    "levels [5] do not improve on the one before: drop them": SAME,
    "levels [4] cost no more than the one before: drop": CHEAP,
    "levels [1, 2, 3, 4, 5, 6, 7, 8, 9] cost no more than": made(HALVES, [1.0] * 10),
    "no line carries the fit": made(NOISE, PRICES),
    "do not plan with gamma": made(NOISE, PRICES),
    "levels [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] are off by more than their declared accuracy": BOAST,
}


@pytest.mark.parametrize("words", WARNINGS)
def test_each_warning_has_its_cause_and_its_remedy(words):
    y = [np.ones(2), np.zeros(2)]
    assert warned(audit(WARNINGS[words], y, lambda y: 0.0 * y), words)
    assert audit(made(HALVES, PRICES), y, lambda y: 0.0 * y).warnings == ()


def test_levels_that_do_not_improve_are_looked_for_where_it_means_something():
    """Against a reference from the second level on; among increments from the third."""
    zero, y = (lambda y: 0.0 * y), [np.ones(2)]
    prices = [8.0**k for k in range(6)]
    second = made([0.5, 0.6, 0.1, 0.05, 0.02, 0.01], prices)
    assert warned(audit(second, y, reference=zero), "levels [1] do not")
    # increments 0.1 (the level itself), 0.4, 0.45, ...
    growing = made([0.1, 0.5, 0.05, 0.02, 0.01, 0.005], prices)
    assert warned(audit(growing, y), "levels [2] do not improve")
    # increments 0.1, 0.4, 0.1, 0.05, ...: only the first grows
    first = made([0.1, 0.5, 0.4, 0.35, 0.33, 0.32], prices)
    assert not warned(audit(first, y), "do not improve")


def test_the_report_is_a_table():
    report = audit(
        biased(gradient, 3.0, 0.5, range(2, 8)), POINTS[:2], reference=gradient
    )
    text = str(report).splitlines()
    assert text[0].split() == ["level", "bias", "increment", "price", "used"]
    assert text[1].split()[0] == "2"
    assert text[7] == "gamma = 3.000 (2.941 to 3.061), c = 0.5, R2 = 1.0000: HTMC"
    assert len(text) == 8


REGIMES = {(1.61, 2.49): "MC", (1.59, 2.4): "unknown", (1.7, 2.51): "unknown"}
REGIMES |= {(2.01, 9.0): "HTMC", (0.1, 1.99): "ETMC"}


@pytest.mark.parametrize("ends", REGIMES)
def test_the_range_of_gamma_names_the_regime(ends):
    report = replace(
        audit(biased(gradient, 2, 1, range(6)), POINTS[:1]), gamma_range=ends, r2=0.91
    )
    assert report.regime == REGIMES[ends]
    assert replace(report, r2=0.89).regime == "unknown"


def test_an_exact_finest_level_stays_exact():
    h = biased(gradient, 3.0, 0.5, range(2, 8))
    for exact in (True, False):
        report = audit(replace(h, exact=exact), POINTS[:2], reference=gradient)
        assert report.hierarchy.exact == exact


def test_what_declares_nothing_is_not_told_that_it_breaks_its_word():
    """Mesh sizes as levels: 2^-k was assumed of them, and they were accused of it."""
    h = Hierarchy(lambda k, y: y + 1 / k, lambda k: k**3.0, [4, 8, 16, 32, 64])
    for reference in (lambda y: y, None):
        assert audit(h, [np.ones(2)], reference).warnings == ()
        told = audit(replace(h, accuracy=lambda k: 0.9 / k), [np.ones(2)], reference)
        assert warned(told, "are off by more than their declared accuracy")


@pytest.mark.parametrize("unit", [1e-200, 1e200])
@pytest.mark.filterwarnings("error")
def test_the_unit_of_the_gradient_is_free(unit):
    """Squares of such gradients vanish or overflow; with a power of two even the digits stay."""
    unit = 2.0 ** round(math.log2(unit))

    def measured(u):
        h = Hierarchy(lambda k, y: u * (1 + 2.0**-k) * y, lambda k: 8.0**k, range(8))
        return audit(h, POINTS)

    one, other = measured(1.0), measured(unit)
    assert (other.gamma, other.tail) == pytest.approx((one.gamma, one.tail))
    assert other.c == pytest.approx(one.c * unit)
    np.testing.assert_array_equal(other.bias, unit * one.bias)


@pytest.mark.filterwarnings("error")
def test_too_few_levels_say_so():
    report = audit(
        biased(gradient, 3.0, 0.5, range(2, 4)), POINTS[:2], reference=gradient
    )
    assert warned(report, "no line carries the fit")
    assert report.regime == "unknown"
    three = audit(biased(gradient, 3.0, 0.5, range(2, 5)), POINTS[:2], reference=gradient)
    assert three.regime == "HTMC"
    single = audit(biased(gradient, 3.0, 0.5, [2]), POINTS[:2])
    assert single.regime == "unknown"
    assert np.isnan([single.gamma, single.c]).all()
    assert single.hierarchy.accuracy(2) == single.increment[0]
    assert warned(single, "how far the finest level is off cannot be told")


# --- the rate's range covers ---


def subset_means(rng, d, levels, nested, points):
    """Level k averages 4^k noisy gradients: bias ~ 2^-k, price 4^k, so that gamma is 2 exactly.

    The noise has a part that all points share, as samples have, and one of each point's own.
    """
    shape = (len(points), d)
    error, size = {}, 0
    for k in levels:
        fresh = (rng.standard_normal(d) + rng.standard_normal(shape)) / math.sqrt(2)
        if nested and size:
            fresh = (size * error[k - 1] + math.sqrt(4**k - size) * fresh) / 4**k
        else:
            fresh /= 2.0**k
        error[k], size = fresh, 4**k
    index = {p.tobytes(): i for i, p in enumerate(points)}
    return Hierarchy(
        lambda k, y: y + error[k][index[y.tobytes()]], lambda k: 4.0**k, levels
    )


WIDE = pytest.param(300, range(7), marks=pytest.mark.slow)


@pytest.mark.parametrize("nested", [True, False], ids=["nested", "apart"])
@pytest.mark.parametrize("reference", [lambda y: y, None], ids=["reference", "finest"])
@pytest.mark.parametrize(
    ("d", "levels"), [(3, range(6)), (20, range(5)), (20, range(9)), WIDE]
)
def test_the_range_of_gamma_covers(d, levels, reference, nested):
    """At least 90 seeds of 100 cover 2, and a regime that is named is nearly always right."""
    rng = np.random.default_rng([7, d, len(levels), nested, reference is None])
    points = list(rng.standard_normal((3, d)))
    reports = [
        audit(subset_means(rng, d, levels, nested, points), points, reference)
        for _ in range(100)
    ]
    assert sum(r.gamma_range[0] <= 2 <= r.gamma_range[1] for r in reports) >= 90
    assert sum(r.regime in ("ETMC", "HTMC") for r in reports) <= 10
    if d >= 20 and len(levels) > 6:
        # where the data carry it, it is said
        assert sum(r.regime == "MC" for r in reports) >= 90


@pytest.mark.parametrize("rate", [1.0, 3.0])
def test_noise_does_not_hide_a_rate_far_from_two(rate):
    rng = np.random.default_rng(5)
    named = []
    for _ in range(100):
        error = {k: rng.standard_normal(20) * 2.0**-k for k in range(8)}
        h = Hierarchy(
            lambda k, y, error=error: y + error[k], lambda k: 2.0 ** (rate * k), range(8)
        )
        report = audit(h, [np.ones(20)], reference=lambda y: y)
        named.append(
            (report.gamma_range[0] <= rate <= report.gamma_range[1], report.regime)
        )
    assert sum(covered for covered, _ in named) >= 93
    assert sum(name == ("HTMC" if rate > 2 else "ETMC") for _, name in named) >= 95


@pytest.mark.parametrize("d", [5, 40])
def test_the_range_covers_on_nested_subsets_of_data(d):
    """Logistic gradients over the first 4^k rows: the coarsest levels scatter far more."""
    covered = named = 0
    for seed in range(100):
        rng = np.random.default_rng([11, d, seed])
        x, b = rng.standard_normal((4**5, d)), rng.random(4**5)

        def evaluate(k, y, x=x, b=b):
            n = 4**k
            return x[:n].T @ (1 / (1 + np.exp(-x[:n] @ y)) - b[:n]) / n

        h = Hierarchy(evaluate, lambda k: 4.0**k, range(6))
        report = audit(h, rng.standard_normal((3, d)) / 3)
        covered += report.gamma_range[0] <= 2 <= report.gamma_range[1]
        named += report.regime in ("ETMC", "HTMC")
    assert covered >= 90
    assert named <= 10


@pytest.mark.parametrize("reference", [lambda y: y, None], ids=["reference", "finest"])
def test_a_line_that_bends_is_not_believed(reference):
    """Errors 2^-k (1 + 3 * 2^-k) at price 8^k: gamma is 3 in the end, and 1.5 to begin with."""
    h = Hierarchy(
        lambda k, y: y + 2.0**-k * (1 + 3 * 2.0**-k), lambda k: 8.0**k, range(8)
    )
    report = audit(h, [np.ones(3)], reference)
    assert report.gamma_range[0] <= 3 <= report.gamma_range[1]
    assert report.regime in ("unknown", "HTMC")
    mild = Hierarchy(
        lambda k, y: y + 2.0**-k * (1 + 0.3 * 2.0**-k), lambda k: 8.0**k, range(8)
    )
    report = audit(mild, [np.ones(3)], reference)
    assert report.gamma_range[0] <= 3 <= report.gamma_range[1]
    assert report.regime == "HTMC"


# --- what carries on ---


def test_the_measured_accuracies_are_declared():
    h = alternating(gradient, 3.0, 0.5, range(2, 10))
    boast = Hierarchy(h.evaluate, h.cost, h.levels, accuracy=lambda k: 1e-3 * 2.0**-k)
    truth, told = 2.0 ** -np.array(h.levels), audit(boast, POINTS[:3], reference=gradient)
    np.testing.assert_allclose(told.hierarchy.accuracies(), truth, rtol=1e-9)
    # the finest level's own error from increments that alternate in sign
    found = audit(boast, POINTS[:3])
    assert found.c == pytest.approx(0.5)
    declared = found.hierarchy.accuracies()
    assert (declared >= truth).all()
    assert (declared[:-2] <= 2 * truth[:-2]).all()
    assert declared[-1] == pytest.approx(truth[-1])
    worse = [0.5, 0.2, 0.3, 0.0]
    h = made(worse, [1.0, 2.0, 4.0, 8.0])
    kept = audit(h, [np.ones(2)], reference=lambda y: 0 * y).hierarchy
    assert [kept.accuracy(k) for k in range(3)] == [0.5, 0.3, 0.3]
    assert kept.accuracy(3) == pytest.approx(0.5e-16, abs=0)


def test_the_report_becomes_a_problem():
    report = audit(
        biased(gradient, 3.0, 0.5, range(4, 10)), POINTS[:2], reference=gradient
    )
    problem = report.problem(beta=3.0, d0=2.0, mu=0.5)
    assert (problem.beta, problem.d0, problem.mu, problem.first) == (3.0, 2.0, 0.5, 4)
    assert problem.gamma == report.gamma
    assert problem.c == pytest.approx(0.5)
    assert report.problem(SimpleNamespace(beta=3.0, d0=2.0, mu=0.5)) == problem
    for wrong in ((), ("three",), (SimpleNamespace(beta=3.0, d0=2.0, mu=0.5), 1.0)):
        given = {"beta": wrong[1]} if len(wrong) == 2 else {}
        with pytest.raises(ValueError, match="problem needs beta= and d0="):
            report.problem(*wrong[:1], **given)


@pytest.mark.parametrize("border", [1e-2, 1e-3, 1e-4])
def test_constants_are_read_beside_a_border(border):
    """Differences that lead to where the level has no value are made shorter."""

    def evaluate(k, y):
        if not (y < 1 + border).all():
            raise OutOfDomain("beside the border")
        return np.arange(1.0, 5.0) * (y - 1)

    found = constants(Hierarchy(evaluate, lambda k: 8.0**k, range(3)), np.zeros(4))
    assert found[:3] == pytest.approx((4.0, 1.0, 2.0), rel=1e-3)


def test_a_vector_is_one_point():
    seen = []
    h = Hierarchy(
        lambda k, y: seen.append(y.shape) or y + 2.0**-k, lambda k: 8.0**k, range(3)
    )
    for given in (np.zeros(3), [0.0, 1.0, 2.0], [np.float64(0), 1, 2], np.zeros((1, 3))):
        assert len(audit(h, given).values[0]) == 1
    assert set(seen) == {(3,)}
    assert len(audit(h, np.zeros((2, 3))).values[0]) == 2
    assert len(audit(h, iter([np.zeros(3), np.ones(3)])).values[0]) == 2
