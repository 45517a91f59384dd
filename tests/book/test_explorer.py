"""The explorer shows what `compare` predicts, to six digits; pages recommend what the tree does."""

import itertools
import json
import math
from pathlib import Path

import pytest

from mlgd import Problem, compare
from mlgd.adversary import Adversary
from mlgd.book.advice import TREE, advice, markdown

TOP = Path(__file__).parents[2]

# slider positions: gamma, log10 kappa (6.1: convex), -log10 eps, coarsest level
SETTINGS = [
    (3, 2, 2, 1),
    (1.2, 6.1, 1.5, 0),
    (2, 3, 3, 2),
    (4.5, 1, 1, -1),
    (2, 6.1, 2, 1),
    (3, 6, 2, 1),
]


@pytest.fixture
def explorer(visit, html):
    page, problems = visit(html / "book" / "explorer.html")
    page.wait_for_selector("#mlgd-explorer tr[data-method]")
    yield page
    assert problems == []
    page.close()


def move(page, **positions):
    for name, position in positions.items():
        slider = page.locator(f"#mlgd-explorer input[name={name}]")
        slider.evaluate(
            "(e, v) => { e.value = v; e.dispatchEvent(new Event('input', {bubbles: true})); }",
            position,
        )


@pytest.mark.built
def test_sliders_show_what_compare_predicts(explorer):
    for gamma, kappa, target, first in SETTINGS:
        move(explorer, gamma=gamma, kappa=kappa, eps=target, first=first)
        mu, eps = (0.0 if kappa > 6 else 10.0**-kappa), 10.0**-target
        problem = Problem(beta=1, c=1, d0=1, gamma=gamma, mu=mu, first=first)
        # the page has the paper's methods
        plans = [p for p in compare(problem, eps) if p.method != "sharp"]
        known = {p.method: p.expected_cost for p in plans}
        # else the convex instance is strongly convex enough
        flat = mu if eps <= mu / 8 else 0.0
        bound = Adversary(eps=eps, d0=1, beta=1, gamma=gamma, c=1, mu=flat).lower_bound
        known["lower bound"] = bound
        shown = explorer.eval_on_selector_all(
            "#mlgd-explorer tr[data-method]",
            "rows => rows.map(r => [r.dataset.method, Number(r.dataset.cost)])",
        )
        shown = {method: cost for method, cost in shown if cost == cost}
        assert [*shown] == [*known]
        assert shown == pytest.approx(known, rel=1e-6)
        winner = explorer.locator("#mlgd-explorer circle").get_attribute("data-winner")
        assert winner == plans[0].method


@pytest.mark.built
def test_the_verdict_is_the_leaf_of_the_tree(explorer):
    """Its answers follow from the level that a fixed level needs; keys move the sliders too."""
    seen = set()
    for gamma, target, repeats in itertools.product((0.5, 1.5, 6), (0.5, 2, 4), (0, 1)):
        move(explorer, gamma=gamma, kappa=2, eps=target, first=1)
        explorer.locator("input[name=repeats]").set_checked(bool(repeats))
        problem = Problem(beta=1, c=1, d0=1, gamma=gamma, mu=0.01, first=1)
        plan = next(p for p in compare(problem, 10.0**-target) if p.method == "fixed")
        levels = max(0, math.ceil(-math.log2(plan.delta) - 1e-9) - 1)
        leaf = advice(2 ** (gamma * levels) >= 10, bool(repeats), levels <= 2, True)[
            "leaf"
        ]
        assert explorer.locator("p[data-leaf]").get_attribute("data-leaf") == leaf
        seen.add(leaf)
    assert len(seen) >= 3
    before = explorer.locator("tr[data-method]").first.get_attribute("data-cost")
    explorer.locator("input[name=gamma]").press("ArrowLeft")
    assert explorer.locator("tr[data-method]").first.get_attribute("data-cost") != before


def test_the_pages_take_the_tree_from_one_place():
    assert (TOP / "book/advice.md").read_text("utf-8") == f"- {markdown()}\n"
    assert f"\n- {markdown()}\n" in (TOP / "README.md").read_text("utf-8")
    for page in ("index.ipynb", "reference.md"):
        assert "{include} advice.md" in (TOP / "book" / page).read_text("utf-8")
    explorer = json.loads((TOP / "book/explorer.ipynb").read_text("utf-8"))["cells"]
    shown = "".join(explorer[1]["outputs"][0]["data"]["text/html"])
    assert f"window.mlgdTree = {json.dumps(TREE)};" in shown
