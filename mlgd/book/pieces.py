"""Pieces that pages are made of: text with formulas, tables, and the one table of costs."""

import csv
import html
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import sympy as sp

from mlgd import formulas, plan
from mlgd.examples import HeatSource
from mlgd.experiment.anchored import heat_ladder


class Html:
    """Something a notebook shows as HTML, with a plain form beside it."""

    def __init__(self, markup: str, plain: str):
        self.markup, self.plain = markup, plain

    def _repr_html_(self) -> str:
        return self.markup

    def __repr__(self) -> str:
        return self.plain


class Printed:
    """A formula for the prose, as LaTeX in a line and on a line of its own."""

    def __init__(self, latex: str):
        self.latex = latex

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        line = f"${self.latex}$"
        return {"text/plain": self.latex, "text/markdown": line, "text/latex": f"$${self.latex}$$"}


def formula(key: str, *parts: str | sp.Basic | float) -> None:
    """Glue what theorem boxes and prose show: LaTeX printed from formulas, joined by LaTeX without digits.

    Quoted as a display by a glue:math directive, in a line by {glue:md}`key:myst`.
    """
    from myst_nb import glue

    glue(key, Printed(" ".join(p if isinstance(p, str) else tex(p) for p in parts)), display=False)


def grid(header: Sequence[str], lines: Iterable[Sequence]) -> Html:
    """A small table."""
    lines = [tuple(map(str, line)) for line in lines]
    head = "".join(f"<th>{html.escape(h)}</th>" for h in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(x)}</td>" for x in line) + "</tr>" for line in lines
    )
    plain = "\n".join("  ".join(line) for line in [tuple(header), *lines])
    return Html(
        f"<table class='mlgd-grid'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>",
        plain,
    )


def with_formulas(text: str) -> str:
    """Escaped text whose parts between dollars are marked as formulas for MathJax."""
    parts = text.split("$")
    return "".join(
        rf"\({html.escape(p)}\)" if i % 2 else html.escape(p) for i, p in enumerate(parts)
    )


def fold(label: str, body: str) -> str:
    """What opens on a click, with no script."""
    return f"<details class='mlgd-fold'><summary>{label}</summary>{body}</details>"


def tex(value) -> str:
    """LaTeX of an expression, of a number to three digits, or of {words: value} by its words."""
    if isinstance(value, Mapping):
        return r"\text{" + next(iter(value)) + "}"
    if isinstance(value, sp.Basic):
        return sp.latex(value).replace("k_{min}", r"k_{\min}")
    if isinstance(value, int | np.integer) and abs(value) < 10**6:
        return str(value)
    value = float(value)
    if not math.isfinite(value):
        return {math.inf: r"\infty", -math.inf: r"-\infty"}.get(value, r"\text{undefined}")
    text = f"{value:.3g}"
    mantissa, _, exponent = text.partition("e")
    return rf"{mantissa}\cdot10^{{{int(exponent)}}}" if exponent else text


def sentence(text: str) -> str:
    """The text with a capital letter before it and a full stop after it."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", ":", "!")) else ".")


def slug(claim_id: str) -> str:
    """A claim's id as an HTML anchor."""
    return re.sub(r"[^a-z0-9]+", "-", claim_id.lower()).strip("-")


def read_table(path: str | Path) -> list[dict[str, str]]:
    """The rows of a tab-separated file with a header and no quoting."""
    with open(path, encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE))


# --- what we changed, what it costs now --------------------------------------------------------------
# The table that runs through the stories. Every row is computed where it is shown; a chapter adds its
# rows to COSTS, in the order of the book, and shows the table as far as itself.


def planned(method: str, convex: bool = False) -> Callable[[HeatSource], float]:
    """The expected price of a method's plan on the heat source's own levels; convex: told no mu."""

    def price(heat: HeatSource) -> float:
        problem = replace(heat.problem, mu=0.0) if convex else heat.problem
        return plan(problem, heat.eps, method, on=heat.hierarchy).expected_cost

    return price


def paid_once(heat: HeatSource) -> float:
    """The price of the theorem on anchored descent."""
    return heat_ladder(heat).cheapest(heat.eps)


def one_gradient(heat: HeatSource) -> float:
    """One evaluation of the level that the fixed level's plan needs: the unit of the last column."""
    convex = replace(heat.problem, mu=0.0)
    delta = plan(convex, heat.eps, "fixed", on=heat.hierarchy).delta
    return heat.hierarchy.cost(heat.hierarchy.level_for(delta))


def least(heat: HeatSource) -> float:
    """The lower bound for the class of problems that the heat source belongs to."""
    p = heat.problem
    return formulas.value(formulas.LOWER_STRONG, c=p.c, mu=p.mu, eps=heat.eps, gamma=p.gamma)


COSTS: tuple[tuple[str, str, Callable[[HeatSource], float]], ...] = (
    ("", "one accurate gradient, for comparison", one_gradient),
    ("", "descent on one fixed level", planned("fixed", convex=True)),
    ("convex", "a random telescope for the gradient", planned("multilevel", convex=True)),
    ("strongly_convex", "the same, told that the loss is strongly convex", planned("multilevel")),
    ("schedule", "accuracy scheduled along the run", planned("scheduled")),
    ("lower_bound", "no method is cheaper on the worst problem of this class", least),
    ("acceleration", "momentum in place of many steps", planned("accelerated")),
    ("pay_once", "fine levels paid for once, changes sampled", paid_once),
)


def costs(heat: HeatSource, chapter: str) -> Html:
    """The table as far as this chapter, its own rows in bold."""
    last = max(i for i, (name, _, _) in enumerate(COSTS) if name == chapter)
    unit, lines, plain = one_gradient(heat), [], []
    for name, changed, price in COSTS[: last + 1]:
        paid = price(heat)
        share = f"{paid / unit:,.2f}" if paid >= unit / 100 else f"{paid / unit:.0e}"
        cells = (changed, f"{paid:.1e}", share)
        mark = "b" if name == chapter else "span"
        lines.append("<tr>" + "".join(f"<td><{mark}>{c}</{mark}></td>" for c in cells) + "</tr>")
        plain.append("  ".join(cells))
    head = ("what we changed", "price, in operations", "in accurate gradients")
    head_row = "".join(f"<th>{h}</th>" for h in head)
    table = f"<thead><tr>{head_row}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return Html(f"<table class='mlgd-grid'>{table}</table>", "\n".join(["  ".join(head), *plain]))
