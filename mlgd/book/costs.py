"""The one table that runs through the stories: what we changed, and what the heat source costs now.

Every row is a plan's expected price, computed where it is shown: nothing is stored. A chapter adds
its rows to ROWS and shows the table up to itself by `costs(heat, "its name")`.
"""

from collections.abc import Callable
from dataclasses import replace

from mlgd import plan
from mlgd.examples import HeatSource

from .pieces import Html


def planned(method: str, convex: bool = False) -> Callable[[HeatSource], float]:
    """The expected price of a method's plan on the heat source's own levels; convex: told no mu."""

    def price(heat: HeatSource) -> float:
        problem = replace(heat.problem, mu=0.0) if convex else heat.problem
        return plan(problem, heat.eps, method, on=heat.hierarchy).expected_cost

    return price


def one_gradient(heat: HeatSource) -> float:
    """One evaluation of the level that the fixed level's plan needs: the unit of the last column."""
    convex = replace(heat.problem, mu=0.0)
    delta = plan(convex, heat.eps, "fixed", on=heat.hierarchy).delta
    return heat.hierarchy.cost(heat.hierarchy.level_for(delta))


ROWS: tuple[tuple[str, str, Callable[[HeatSource], float]], ...] = (
    ("", "one accurate gradient, for comparison", one_gradient),
    ("", "descent on one fixed level", planned("fixed", convex=True)),
    ("convex", "a random telescope for the gradient", planned("multilevel", convex=True)),
    ("strongly_convex", "the same, told that the loss is strongly convex", planned("multilevel")),
    ("schedule", "accuracy scheduled along the run", planned("scheduled")),
    ("acceleration", "momentum in place of many steps", planned("accelerated")),
)


def costs(heat: HeatSource, chapter: str) -> Html:
    """The table as far as this chapter, its own rows in bold."""
    last = max(i for i, (name, _, _) in enumerate(ROWS) if name == chapter)
    unit, lines, plain = one_gradient(heat), [], []
    for name, changed, price in ROWS[: last + 1]:
        paid = price(heat)
        cells = (changed, f"{paid:.1e}", f"{paid / unit:.3g}")
        mark = "b" if name == chapter else "span"
        lines.append("<tr>" + "".join(f"<td><{mark}>{c}</{mark}></td>" for c in cells) + "</tr>")
        plain.append("  ".join(cells))
    head = ("what we changed", "price, in operations", "in accurate gradients")
    head_row = "".join(f"<th>{h}</th>" for h in head)
    table = f"<thead><tr>{head_row}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return Html(f"<table class='mlgd-grid'>{table}</table>", "\n".join(["  ".join(head), *plain]))
