"""The explorer: its printed formulas are the plan's, and its sliders show mlgd.compare's numbers to six digits."""

import json
from pathlib import Path

import pytest

from mlgd import Problem, compare
from mlgd import formulas as F
from mlgd.book.explorer import PRINTED, javascript, territory

# slider positions: gamma, log10 kappa (5: convex), log10 eps, log10 d0, coarsest level
SETTINGS = [(3, 2, -2, 0, 1), (1.2, 5, -1.5, 0.5, 0), (2, 3, -3, -0.5, 2), (4.5, 1, -1, 1, -1), (2, 5, -2, 0, 1)]


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
            slider.evaluate("(e, v) => { e.value = v; e.dispatchEvent(new Event('input')); }", position)
        gamma, kappa, eps, d0, first = setting
        mu = 0.0 if kappa == 5 else 10.0**-kappa
        expected = compare(Problem(beta=1, c=1, d0=10.0**d0, gamma=gamma, mu=mu, first=first), 10.0**eps)
        shown = page.eval_on_selector_all(
            "#mlgd-explorer tr[data-method]", "rows => rows.map(r => [r.dataset.method, Number(r.dataset.cost)])"
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
    plan = next(p for p in compare(Problem(beta=1, c=1, d0=1, gamma=3), 0.01).plans if p.method == "fixed")
    assert shown != pytest.approx(plan.expected_cost, rel=1e-3)
    assert F.value(F.CONVEX["delta"], eps=0.01, d0=1) == 0.01 / 16
    page.close()


@pytest.mark.built
def test_curves_and_map_move_with_the_sliders(visit, html):
    """The winner's dot stands on compare's price; the ring stands where rate and conditioning lie; nothing is asked of the net."""
    page, problems = visit(html / "book" / "explorer.html")
    page.wait_for_selector("#mlgd-explorer svg.mlgd-curves")
    assert page.locator("#mlgd-explorer polyline[data-curve]").count() == 4
    best = compare(Problem(beta=1, c=1, d0=1, gamma=3, mu=0.01, first=1), 0.01).best
    assert page.locator("#mlgd-explorer circle[data-winner]").get_attribute("data-winner") == best.method
    before = page.locator("#mlgd-explorer circle[data-here]").get_attribute("cx")
    slider = page.locator("#mlgd-explorer input[name=kappa]")
    slider.focus()
    slider.press("ArrowRight")
    assert float(page.locator("#mlgd-explorer circle[data-here]").get_attribute("cx")) > float(before)
    said = page.locator("#mlgd-explorer svg.mlgd-curves").get_attribute("aria-label")
    assert "cheapest" in said
    assert problems == []
    page.close()


def test_the_map_on_the_page_is_the_stored_one():
    path = Path(__file__).parents[2] / "book/data/territory.json"
    shown = json.loads(territory(path).removeprefix("window.mlgdMap = ").removesuffix(";"))
    stored = [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["kind"] == "fresh"]
    assert len(shown["cells"]) == len(stored)
    for (eps, kappa, gamma, winner, *_, price), cell in zip(shown["cells"], stored, strict=True):
        assert (eps, kappa, gamma) == (cell["eps"], cell["kappa"], cell["gamma"])
        assert cell["prices"][winner] == min(cell["prices"].values()) == pytest.approx(float(price), rel=0.01)
