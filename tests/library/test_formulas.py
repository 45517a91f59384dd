"""The formulas against independent expressions: the paper's table, its constants, and what the plan relies on."""

import math

import pytest
import sympy as sp

from mlgd import formulas as F
from mlgd.formulas import beta, c, d0, delta, eps, eta, gamma, mu, sigma

# Table 1 of the paper, typed by hand as floats' functions of (gamma, beta, mu, d0, eps), without sympy.
TABLE = {
    ("deterministic", "any", "convex"): lambda g, b, m, r, e: r ** (g + 2) * b * e ** -(g + 1),
    ("deterministic", "any", "strong"): lambda g, b, m, r, e: (m * e) ** (-g / 2) * (b / m),
    ("gd", "ETMC", "convex"): lambda g, b, m, r, e: r**2 * b ** (1 - g / 2) * e ** -(1 + g / 2),
    ("gd", "ETMC", "strong"): lambda g, b, m, r, e: (m * e) ** (-g / 2) * (b / m) ** (1 - g / 2),
    ("gd", "MC", "convex"): lambda g, b, m, r, e: r**2 / e**2 * math.log(b * r**2 / e) ** 2,
    ("gd", "MC", "strong"): lambda g, b, m, r, e: math.log(b / m) ** 2 / (m * e),
    ("gd", "HTMC", "convex"): lambda g, b, m, r, e: (r / e) ** g,
    ("gd", "HTMC", "strong"): lambda g, b, m, r, e: (m * e) ** (-g / 2),
    ("accelerated", "ETMC", "convex"): lambda g, b, m, r, e: (
        r ** (1 + g / 2) * b ** ((2 - g) / 4) * e ** (-(2 + 3 * g) / 4)
    ),
    ("accelerated", "ETMC", "strong"): lambda g, b, m, r, e: (
        (m * e) ** (-g / 2) * (b / m) ** ((2 - g) / 4)
    ),
    ("accelerated", "MC", "convex"): lambda g, b, m, r, e: (
        r**2 / e**2 * math.log(b * r**2 / e) ** 2
    ),
    ("accelerated", "MC", "strong"): lambda g, b, m, r, e: math.log(b / m) ** 2 / (m * e),
    ("accelerated", "HTMC", "convex"): lambda g, b, m, r, e: (
        r ** (2 * g - 2) * b ** ((g - 2) / 2) * e ** (-(3 * g - 2) / 2)
    ),
    ("accelerated", "HTMC", "strong"): lambda g, b, m, r, e: (
        (m * e) ** (-g / 2) * (b / m) ** ((g - 2) / 4)
    ),
}
POINTS = [
    (7.0, 0.3, 1.7, 0.01),
    (0.9, 0.02, 0.4, 0.003),
    (31.0, 2.0, 5.0, 0.7),
]  # beta, mu, d0, eps


@pytest.fixture(scope="module")
def cells():
    return F.table_of_bounds()


def test_the_table_has_fourteen_cells(cells):
    assert set(cells) == set(TABLE)
    assert len(cells) == 14


@pytest.mark.parametrize("key", TABLE, ids="-".join)
def test_a_cell_is_the_papers(cells, key):
    rates = {
        "any": (0.5, 2.0, 5.0),
        "ETMC": (0.4, 1.0, 1.9),
        "MC": (2.0,),
        "HTMC": (2.1, 3.0, 8.0),
    }[key[1]]
    for g in rates:
        for b, m, r, e in POINTS:
            ours = cells[key].subs({gamma: g, beta: b, mu: m, d0: r, eps: e})
            assert float(ours) == pytest.approx(TABLE[key](g, b, m, r, e), rel=1e-9)


def test_a_wrong_cell_would_be_noticed(cells):
    key = ("gd", "HTMC", "convex")
    b, m, r, e = POINTS[0]
    ours = float(cells[key].subs({gamma: 3, beta: b, mu: m, d0: r, eps: e}))
    assert ours != pytest.approx(TABLE["accelerated", "HTMC", "convex"](3, b, m, r, e), rel=1e-3)


@pytest.mark.parametrize(
    ("rate", "name"),
    [
        (1e-9, "ETMC"),
        (2 - 1e-12, "ETMC"),
        (2, "MC"),
        (2.0, "MC"),
        (2 + 1e-12, "HTMC"),
        (18.0, "HTMC"),
    ],
)
def test_regime(rate, name):
    assert F.regime(rate) == name


@pytest.mark.parametrize("rate", [2.5, 3.0, 6.0])
def test_constants_of_the_paper(rate):
    ratio = 2 ** (1 - rate / 2)
    assert F.value(F.C_GAMMA, gamma=rate) == pytest.approx(9 / (1 - ratio) ** 2)
    assert F.value(F.LAMBDA, gamma=rate) == pytest.approx(16 ** (rate - 1) * 9 / (1 - ratio) ** 2)
    assert F.value(F.LAMBDA_PRIME, gamma=rate) == pytest.approx(
        256 * math.log(2) * 8 ** (rate - 2) * 9 / (1 - ratio) ** 2
    )
    assert F.value(F.LAMBDA_EXECUTED, gamma=rate) == pytest.approx(
        1.25 * (1 + 2**-rate) * 2 ** (rate - 2) * 16 ** (rate - 1) * 9 / (1 - ratio) ** 2
    )


def test_theorem_hyperparameters():
    numbers = {"d0": 3.0, "eta": 0.1, "eps": 0.2}
    assert F.value(F.CONVEX["T"], **numbers) == pytest.approx(1800)
    assert F.value(F.CONVEX["delta"], d0=3.0, eps=0.2) == pytest.approx(0.2 / 48)
    assert F.value(F.CONVEX["sigma2"], eta=0.1, eps=0.2) == pytest.approx(0.5)
    assert F.value(F.STRONG["T"], mu=0.5, **numbers) == pytest.approx(
        4 / 0.05 * math.log(256 * 0.5 * 9 / 0.2)
    )
    assert F.value(F.STRONG["delta"], mu=0.5, eps=0.2) == pytest.approx(math.sqrt(0.1) / 8)
    assert F.value(F.STRONG["sigma2"], eta=0.1, eps=0.2) == pytest.approx(0.25)


def test_convex_bound_is_the_product_of_its_parts():
    product = F.CONVEX["T"] * F.CALL["HTMC"].subs(
        {delta: F.CONVEX["delta"], sigma: sp.sqrt(F.CONVEX["sigma2"])}
    )
    at = {gamma: 3, c: sp.Rational(2, 3), d0: 5, eps: sp.Rational(1, 7), eta: sp.Rational(1, 11)}
    assert float((product / F.UPPER_CONVEX).subs(at)) == pytest.approx(1)
    assert float((product / F.UPPER_CONVEX).subs({**at, eta: 1})) == pytest.approx(
        1
    )  # the step has cancelled


def test_convex_budget_is_below_the_target():
    at = {d0: 2.0, eta: 0.25, eps: 0.3}
    numbers = {
        **at,
        F.T: math.ceil(float(F.CONVEX["T"].subs(at))),
        delta: F.CONVEX["delta"].subs(at),
        sigma: sp.sqrt(F.CONVEX["sigma2"].subs(at)),
    }
    terms = {name: float(e.subs(numbers)) for name, e in F.CONVEX_BUDGET.items()}
    assert terms["horizon"] <= 0.3 / 4
    assert terms["bias"] == pytest.approx(0.3 / 4)
    assert sum(terms.values()) <= 0.3


def test_coarse_rate_keeps_the_one_step_lemma_and_the_budget():
    for b, first, e in [(1.0, 3, 0.1), (1.0, -4, 0.1), (50.0, 0, 1e-3)]:
        rate = F.value(F.COARSE_RATE, beta=b, first=first, eps=e)
        assert rate >= 4 * b
        assert 2 * 4.0**-first / rate <= e / 16 * (1 + 1e-12)


def test_value_takes_ascii_names_and_says_what_is_missing():
    assert F.value(F.FIRST, c=0.5, first=3, gamma=2.0) == pytest.approx(16)
    assert F.value(F.FIRST, c=0.5, first=3, gamma=2.0, eps=7.0) == pytest.approx(
        16
    )  # one set of numbers for several
    with pytest.raises(TypeError, match="the formula needs c, gamma, first; missing: first"):
        F.value(F.FIRST, c=0.5, gamma=2.0)
    with pytest.raises(
        TypeError, match="'varepsilon' is not a symbol of the formulas; those are gamma, c, beta"
    ):
        F.value(F.FIRST, c=0.5, first=3, gamma=2.0, varepsilon=1.0)
    with pytest.raises(ValueError, match=r"the symbols \[z\] of z are not the formulas'"):
        F.value(sp.Symbol("z"), c=1.0)


def test_order_drops_the_constant_only():
    assert (
        sp.simplify(
            F.order(7 * 4**gamma * d0**gamma * eps ** (-gamma / 2))
            - d0**gamma * eps ** (-gamma / 2)
        )
        == 0
    )
