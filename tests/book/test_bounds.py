"""The table of bounds: what is printed is the cell, and bold is the smallest."""

import pytest
import sympy as sp

from mlgd import formulas as F
from mlgd.book import bounds

CELLS = F.table_of_bounds()


@pytest.mark.parametrize("key", CELLS, ids=str)
def test_the_printed_powers_are_the_cell(key):
    product = sp.Mul(*(base**e for base, e in bounds.powers(CELLS[key], key[2]).items()))
    numbers = {F.d0: 2.0, F.beta: 7.0, F.eps: 0.3, F.mu: 0.1, F.gamma: 2.5}
    assert float(product.subs(numbers)) == pytest.approx(float(CELLS[key].subs(numbers)))


def test_cells_are_printed_in_the_papers_factors():
    assert (
        bounds.monomial(CELLS["gd", "MC", "convex"], "convex")
        == r"d_{0}^{2}\,\varepsilon^{-2}\,\log^{2}(\beta d_0^2/\varepsilon)"
    )
    assert bounds.monomial(CELLS["deterministic", "any", "strong"], "strong") == (
        r"(\mu\varepsilon)^{- \frac{\gamma}{2}}\,\kappa"
    )


def test_bold_is_acceleration_below_and_plain_descent_above():
    expected = {("accelerated", "ETMC"), (None, "MC"), ("gd", "HTMC")}
    assert bounds.bold(CELLS) == {(*pair, column) for pair in expected for column in bounds.COLUMNS}
    html = bounds.table(CELLS).data
    assert html.count("boldsymbol") == 4
    assert html.count("<tr>") == 8


def test_a_larger_cell_is_not_bold():
    worse = {**CELLS, ("gd", "HTMC", "convex"): CELLS["deterministic", "any", "convex"] ** 2}
    assert bounds.smallest(worse, "HTMC", "convex") != "gd"
