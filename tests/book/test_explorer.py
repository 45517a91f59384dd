"""The explorer: its printed formulas are the plan's, its table is compare's, and its sliders show both to six digits."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

from mlgd import Problem, compare
from mlgd import formulas as F
from mlgd.book.explorer import PRINTED, expected, javascript, territory
from mlgd.book.figures_map import SECOND_ORDER

DATA = Path(__file__).parents[2] / "book/data"
TABLE = json.loads((DATA / "prices.json").read_text(encoding="utf-8"))

# slider positions: gamma, log10 kappa (6.1: convex), log10 eps, log10 d0, coarsest level
SETTINGS = [
    (3, 2, -2, 0, 1),
    (1.2, 6.1, -1.5, 0.5, 0),
    (2, 3, -3, -0.5, 2),
    (4.5, 1, -1, 1, -1),
    (2, 6.1, -2, 0, 1),
    (3, 6, -2, 0, 1),
]


def test_every_formula_is_printed_once_as_a_function():
    printed = javascript()
    assert all(printed.count(f"  {name}: (") == 1 for name in PRINTED)
    assert "varepsilon" not in printed
    assert "d_0" not in printed


@pytest.mark.built
def test_sliders_show_what_compare_predicts(visit, html):
    page, problems = visit(html / "book" / "explorer.html")
    page.wait_for_selector("#mlgd-explorer tr[data-method]")
    for setting in SETTINGS:
        for name, position in zip(("gamma", "kappa", "eps", "d0", "first"), setting, strict=True):
            slider = page.locator(f"#mlgd-explorer input[name={name}]")
            slider.evaluate(
                "(e, v) => { e.value = v; e.dispatchEvent(new Event('input')); }", position
            )
        gamma, kappa, eps, d0, first = setting
        mu = 0.0 if kappa > 6 else 10.0**-kappa
        expected = compare(
            Problem(beta=1, c=1, d0=10.0**d0, gamma=gamma, mu=mu, first=first), 10.0**eps
        )
        shown = page.eval_on_selector_all(
            "#mlgd-explorer tr[data-method]",
            "rows => rows.map(r => [r.dataset.method, Number(r.dataset.cost)])",
        )
        assert [m for m, _ in shown] == [p.method for p in expected.plans]
        for (_, cost), plan in zip(shown, expected.plans, strict=True):
            assert cost == pytest.approx(plan.expected_cost, rel=1e-6)
    assert problems == []
    page.close()


@pytest.mark.built
def test_sliders_move_by_keyboard(visit, html):
    page, _ = visit(html / "book" / "explorer.html")
    slider = page.locator("#mlgd-explorer input[name=gamma]")
    slider.focus()
    before = page.locator("#mlgd-explorer tr[data-method]").first.get_attribute("data-cost")
    slider.press("ArrowRight")
    assert page.locator("#mlgd-explorer tr[data-method]").first.get_attribute("data-cost") != before
    page.close()


@pytest.mark.built
def test_another_formula_would_show_other_numbers(visit, html):
    """The comparison can fail: the page's formula for delta, replaced by one off by a factor two, disagrees."""
    page, _ = visit(html / "book" / "explorer.html")
    page.evaluate("() => { window.mlgdFormulas.convexDelta = ({d0, eps}) => eps / d0 / 32; }")
    shown = page.evaluate(
        "window.mlgdExplorer.compare({beta: 1, c: 1, d0: 1, gamma: 3, first: 1, mu: 0}, 0.01).find(r => r.method === 'fixed').cost"
    )
    plan = next(
        p for p in compare(Problem(beta=1, c=1, d0=1, gamma=3), 0.01).plans if p.method == "fixed"
    )
    assert shown != pytest.approx(plan.expected_cost, rel=1e-3)
    assert F.value(F.CONVEX["delta"], eps=0.01, d0=1) == 0.01 / 16
    page.close()


@pytest.mark.built
def test_curves_and_map_move_with_the_sliders(visit, html):
    """The winner's dot stands on compare's price; the ring stands where rate and conditioning lie; nothing is asked of the net."""
    page, problems = visit(html / "book" / "explorer.html")
    page.wait_for_selector("#mlgd-explorer svg[data-chart=proved]")
    drawn = [
        page.locator(f"#mlgd-explorer svg[data-chart={name}] polyline").count()
        for name in ("proved", "expected")
    ]
    assert drawn == [4, 5]
    best = compare(Problem(beta=1, c=1, d0=1, gamma=3, mu=0.01, first=1), 0.01).best
    assert page.locator("svg[data-chart=proved] circle").get_attribute("data-winner") == best.method
    before = page.locator("#mlgd-explorer circle[data-here]").get_attribute("cx")
    slider = page.locator("#mlgd-explorer input[name=kappa]")
    slider.focus()
    slider.press("ArrowRight")
    assert float(page.locator("#mlgd-explorer circle[data-here]").get_attribute("cx")) > float(
        before
    )
    for chart in page.locator("#mlgd-explorer svg.mlgd-curves").all():
        assert "cheapest" in chart.get_attribute("aria-label")
    assert problems == []
    page.close()


@pytest.mark.built
def test_the_map_follows_the_kind_of_error_and_the_methods_allowed(visit, html):
    page, problems = visit(html / "book" / "explorer.html")
    page.wait_for_selector("svg.mlgd-map")
    said = {page.locator("svg.mlgd-map").get_attribute("aria-label")}
    page.locator("#mlgd-explorer select[name=kind]").select_option("fresh")
    said.add(page.locator("svg.mlgd-map").get_attribute("aria-label"))
    page.locator("#mlgd-explorer input[name=single]").focus()
    page.keyboard.press("Space")
    said.add(page.locator("svg.mlgd-map").get_attribute("aria-label"))
    assert len(said) == 3
    assert problems == []
    page.close()


def between(gamma, kappa, eps):
    """The table between its entries, by another hand: linear in rate, log of conditioning, log of target and log of price."""
    axes = TABLE["axes"]
    shape = [len(axes[name]) for name in ("kappas", "gammas", "targets", "methods")]
    values = np.log(np.array(TABLE["prices"], float).reshape(shape))[:, :, ::-1]
    points = (np.log(axes["kappas"]), axes["gammas"], np.log(axes["targets"])[::-1])
    found = RegularGridInterpolator(points, values)([[np.log(kappa), gamma, np.log(eps)]])[0]
    return {
        m: float(np.exp(v)) for m, v in zip(axes["methods"], found, strict=True) if np.isfinite(v)
    }


@pytest.mark.built
def test_expected_prices_are_those_of_the_table_and_between_them(visit, html):
    page, problems = visit(html / "book" / "explorer.html")
    page.wait_for_selector("#mlgd-explorer tr[data-expected]")
    for gamma, kappa, eps in (
        (3, 2, -2),
        (4.4, 2.7, -3.3),
        (1.5, 1, -0.5),
        (8, 6, -5),
        (1.5, 6, -0.5),
        (8, 1, -5),
        (3, 5.4, -1.2),
    ):
        for name, position in (("gamma", gamma), ("kappa", kappa), ("eps", eps)):
            slider = page.locator(f"#mlgd-explorer input[name={name}]")
            slider.evaluate(
                "(e, v) => { e.value = v; e.dispatchEvent(new Event('input')); }", position
            )
        shown = page.eval_on_selector_all(
            "#mlgd-explorer tr[data-expected]",
            "rows => rows.map(r => [r.dataset.expected, Number(r.dataset.cost)])",
        )
        known = between(gamma, 10.0**kappa, 10.0**eps)
        assert [m for m, _ in shown] == sorted(known, key=known.get)
        for method, cost in shown:
            assert cost == pytest.approx(known[method], rel=1e-6)
    assert problems == []
    page.close()


def test_the_page_carries_the_stored_table():
    shown = json.loads(
        expected(DATA / "prices.json").removeprefix("window.mlgdPrices = ").removesuffix(";")
    )
    assert shown["prices"] == TABLE["prices"]


def test_the_map_on_the_page_is_the_stored_one():
    shown = json.loads(
        territory(DATA / "territory.json").removeprefix("window.mlgdMap = ").removesuffix(";")
    )
    stored = json.loads((DATA / "territory.json").read_text(encoding="utf-8"))["cells"]
    assert len(shown["cells"]) == len(stored)
    names = [name for name, *_ in shown["methods"]]
    for (*place, best, price, single, alone), cell in zip(shown["cells"], stored, strict=True):
        assert place == [cell[name] for name in ("kind", "eps", "kappa", "gamma")]
        prices = cell["prices"]
        assert prices[names[best]] == min(prices.values()) == pytest.approx(price, rel=0.01)
        left = {m: p for m, p in prices.items() if m not in SECOND_ORDER}
        assert left[names[single]] == min(left.values()) == pytest.approx(alone, rel=0.01)
