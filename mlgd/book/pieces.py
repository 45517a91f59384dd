"""What pages are made of: text with formulas, tables, checks, and the one table of costs."""

import csv
import hashlib
import html
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import sympy as sp

from mlgd import Problem, formulas, minimize, plan
from mlgd.examples import HeatSource
from mlgd.experiment.anchored import heat_ladder

from .notation import Author

KINDS = ("certificate", "identity", "enclosure", "exact run", "measured", "cited")
VERDICTS = ("holds", "repaired", "fails", "agrees", "differs", "cited")
MIME = "application/vnd.mlgd.check+json"
OURS = "ours:"  # begins the row of a theorem of the book's own: no claim of the paper
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
LONG = 70  # characters of LaTeX beyond which a formula has a line of its own


@dataclass(frozen=True)
class Html:
    """Something a notebook shows: as HTML, or in other forms by their types, and plain."""

    markup: str
    plain: str
    forms: Mapping[str, str] = field(default_factory=dict)

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {"text/plain": self.plain, **(self.forms or {"text/html": self.markup})}


def formula(key: str, *parts: str | sp.Basic | float) -> None:
    """Glue what boxes and prose show: LaTeX printed from formulas, joined by LaTeX without digits.

    Quoted as a display by a glue:math directive, in a line by {glue:md}`key:myst`.
    """
    from myst_nb import glue

    latex = " ".join(p if isinstance(p, str) else tex(p) for p in parts)
    forms = {"text/markdown": f"${latex}$", "text/latex": f"$${latex}$$"}
    glue(key, Html("", latex, forms), display=False)


def written(text: str) -> str:
    """The text with its numbers as one writes them: 3.8e+12 is 3.8·10¹², 7e-03 is 0.007."""

    def number(found: re.Match) -> str:
        if -5 < int(found[2]) < 4:
            return f"{float(found[0]):g}"
        return f"{found[1]}·10".removeprefix("1·") + str(int(found[2])).translate(RAISED)

    return re.sub(r"(?<![\w.-])(\d+(?:\.\d+)?)e([+-]\d+)", number, text)


def table(
    header: Sequence[str], lines: Iterable[str], plain: Iterable[Sequence[str]]
) -> Html:
    """A small table: its header, its lines as markup, and their cells as they are printed."""
    head = "".join(f"<th>{html.escape(h)}</th>" for h in header)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    markup = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    text = "\n".join("  ".join(line) for line in [tuple(header), *plain])
    return Html(written(f"<table class='mlgd-grid'>{markup}</table>"), written(text))


def grid(header: Sequence[str], lines: Iterable[Sequence]) -> Html:
    """A small table of texts and numbers."""
    cells = [tuple(map(str, line)) for line in lines]
    return table(
        header,
        ("".join(f"<td>{html.escape(x)}</td>" for x in line) for line in cells),
        cells,
    )


def with_formulas(text: str, long: float = math.inf) -> str:
    """Escaped text; what stands between dollars is for MathJax, on its own line if it is long."""
    parts = [html.escape(p) for p in text.split("$")]
    for i, p in enumerate(parts):
        if i % 2:
            display = len(html.unescape(p)) > long
            parts[i] = (
                rf"<div class='mlgd-display'>\({p}\)</div>" if display else rf"\({p}\)"
            )
    return "".join(parts)


def fold(label: str, body: str) -> str:
    """What opens on a click, with no script."""
    return f"<details class='mlgd-fold'><summary>{label}</summary>{body}</details>"


def badge(verdict: str) -> str:
    """The verdict as it stands in boxes and tables."""
    return f"<span class='mlgd-verdict mlgd-{verdict}'>{verdict}</span>"


def order(expression: sp.Expr) -> sp.Expr:
    """The expression over its value where every symbol but gamma is one: without its constant."""
    ones = {s: 1 for s in expression.free_symbols if s != formulas.gamma}
    ratio = sp.expand_power_base(expression / expression.subs(ones), force=True)
    return sp.powsimp(
        sp.simplify(sp.powdenest(ratio, force=True)), combine="exp", force=True
    )


def tex(value) -> str:
    """LaTeX of an expression, of a number to three digits, or of {words: value} by its words."""
    if isinstance(value, Mapping):
        name = next(iter(value))
        assert "$" not in name, f"{name}: words between dollars hold no other dollars"
        return rf"\text{{{name}}}"
    if isinstance(value, sp.Basic):
        return Author().doprint(value).replace("k_{min}", r"k_{\min}")
    if isinstance(value, int | np.integer) and abs(value) < 10**6:
        return str(value)
    value = float(value)
    if not math.isfinite(value):
        return {math.inf: r"\infty", -math.inf: r"-\infty"}.get(
            value, r"\text{undefined}"
        )
    mantissa, _, exponent = f"{value:.3g}".partition("e")
    return rf"{mantissa}\cdot10^{{{int(exponent)}}}" if exponent else mantissa


def sentence(text: str) -> str:
    """The text with a capital letter before it and a full stop after it."""
    text = text.strip()
    return (
        text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", ":", "!")) else ".")
    )


def slug(claim_id: str) -> str:
    """A claim's id as an HTML anchor."""
    return re.sub(r"[^a-z0-9]+", "-", claim_id.lower()).strip("-")


def read_table(path: str | Path) -> list[dict[str, str]]:
    """The rows of a tab-separated file with a header and no quoting."""
    with open(path, encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE))


# --- checks on a page --------------------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """One check: the rows of the ledger that it serves, its verdict, and what a reader sees.

    `words` are the author's; `formulas` are printed from what was compared and stand where the
    words have {}, or after them.
    """

    rows: tuple[str, ...]
    kind: str
    verdict: str
    words: str
    formulas: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    against: tuple[str, ...] = ()  # the counterexample, in view
    repair: "Check | None" = None
    sides: tuple[tuple[sp.Expr, str, sp.Expr], ...] = ()  # what was compared, and under
    # which hypotheses: {>= 0: why}
    given: Mapping[sp.Expr, str] = field(default_factory=dict)

    @property
    def statement(self) -> str:
        """The sentence, its formulas between dollars."""
        printed = ",  ".join(f"${f}$" for f in self.formulas)
        if "{}" in self.words or not printed:
            return self.words.replace("{}", printed, 1)
        return f"{self.words.rstrip(': ')}: {printed}"

    @property
    def anchor(self) -> str:
        """Made of what is checked alone, so that running a cell again moves nothing."""
        text = f"{self.rows} {self.kind} {self.words} {self.formulas}"
        return (
            f"check-{slug(self.rows[0])}-{hashlib.sha256(text.encode()).hexdigest()[:4]}"
        )

    @property
    def record(self) -> dict:
        """The machine-readable form: of what does not hold, all that an erratum says."""
        record = {"ids": list(self.rows), "kind": self.kind, "verdict": self.verdict}
        record |= {"statement": self.statement, "anchor": self.anchor}
        if self.repair:
            record |= {"numbers": list(self.against), "repair": self.repair.statement}
        return record

    def __str__(self) -> str:
        lines = [f"[{self.verdict}] {self.statement}", *self.against, *self.evidence]
        lines += [f"repair: {self.repair}"] if self.repair else []
        return "\n  ".join([*lines, f"({self.kind})"])

    def html(self) -> str:
        """Verdict and sentence; a counterexample with its repair; the evidence on a click."""

        def lines(texts: Iterable[str]) -> str:
            return "".join(
                f"<div class='mlgd-line'>{with_formulas(t, LONG)}</div>" for t in texts
            )

        view = f"{badge(self.verdict)} {with_formulas(sentence(self.statement), LONG)}"
        view += lines(self.against)
        if self.repair:
            mended = with_formulas(sentence(self.repair.statement), LONG)
            view += f"<div class='mlgd-repair'><b>Repair.</b> {mended}</div>"
        up = "../" if Path.cwd().name == "audit" else ""  # kernels run there
        link = f"<a href='{up}ledger.html#row-{{}}'>its row in the ledger</a>"
        foot = " ".join(link.format(slug(r)) for r in self.rows if not r.startswith(OURS))
        own = lines((self.repair or self).evidence)
        proof = fold(self.kind, f"{own}<div class='mlgd-foot'>{foot}</div>")
        return (
            f"<div class='mlgd-check' id='{self.anchor}'><div class='mlgd-head'>{view}</div>"
            f"{proof}</div>"
        )

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {
            "text/plain": str(self),
            "text/html": self.html(),
            MIME: {"checks": [self.record]},
        }


@dataclass(frozen=True)
class Group:
    """The checks of one passage in one box: what does not hold in view, the others on a click."""

    title: str
    checks: tuple[Check, ...]

    def __str__(self) -> str:
        return "\n".join([self.title, *map(str, self.checks)])

    def html(self) -> str:
        """Counterexamples, then one line that opens to all that holds."""
        quiet = [c for c in self.checks if c.repair is None and c.verdict != "differs"]
        body = "".join(c.html() for c in self.checks if c not in quiet)
        if quiet:
            told = {v: sum(c.verdict == v for c in quiet) for v in VERDICTS}
            label = ", ".join(f"{n} × {v}" for v, n in told.items() if n)
            body += fold(label, "".join(c.html() for c in quiet))
        title = f"<div class='mlgd-title'>{with_formulas(self.title)}</div>"
        return f"<div class='mlgd-group'>{title}{body}</div>"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        view = 1 + sum(c.repair is not None for c in self.checks)
        bundle = {"checks": [check.record for check in self.checks], "in_view": view}
        return {"text/plain": str(self), "text/html": self.html(), MIME: bundle}


def bundles_in(notebook: str | Path) -> list[dict]:
    """Of each output that is a check or a group: its `checks`, and how many are `in_view`."""
    cells = json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]
    data = [
        output.get("data", {}) for cell in cells for output in cell.get("outputs", ())
    ]
    return [{"in_view": 1, **bundle[MIME]} for bundle in data if MIME in bundle]


# --- what we changed, what it costs now --------------------------------------------------------


def prices(heat: HeatSource) -> Iterator[tuple[str, str, float]]:
    """The table that runs through the stories: (chapter, what we changed, price), computed.

    A chapter adds its rows here, in the order of the book, and shows the table as far as itself.
    """
    # not told mu
    p, h, convex = (
        heat.problem,
        heat.hierarchy,
        replace(heat.problem, mu=0.0),
    )

    def planned(problem: Problem, method: str) -> float:
        return plan(problem, heat.eps, method, on=h).expected_cost

    fixed = plan(convex, heat.eps, "fixed", on=h)
    yield "", "one gradient at the plan's level", h.cost(h.level_for(fixed.delta))
    yield "", "descent on one fixed level", fixed.expected_cost
    yield "convex", "a random telescope for the gradient", planned(convex, "multilevel")
    yield (
        "strongly_convex",
        "the same, told of strong convexity",
        planned(p, "multilevel"),
    )
    yield "schedule", "accuracy scheduled along the run", planned(p, "scheduled")
    least = formulas.value(
        formulas.LOWER_CONVEX, c=p.c, d0=p.d0, eps=heat.eps, gamma=p.gamma
    )
    yield (
        "lower_bound",
        "(any method, on the worst problem of the class: at least)",
        least,
    )
    yield "acceleration", "momentum in place of many steps", planned(p, "accelerated")
    yield "pay_once", "fine levels paid for once", heat_ladder(heat).cheapest(heat.eps)
    run = minimize(h, heat.start, eps=heat.eps)
    yield "your_hierarchy", "a run without constants: measured, not proved", run.cost


def costs(heat: HeatSource, chapter: str) -> Html:
    """The table as far as this chapter, its own rows in bold."""
    lines, plain, unit = [], [], 0.0
    for name, changed, paid in prices(heat):
        unit = unit or paid  # the first row's
        share = f"{paid / unit:,.0f}" if paid >= 100 * unit else f"{paid / unit:.3g}"
        plain.append((changed, f"{paid:.1e}", share))
        mark = "b" if name == chapter else "span"
        lines.append("".join(f"<td><{mark}>{c}</{mark}></td>" for c in plain[-1]))
        if name == chapter:
            break
    return table(
        ("what we changed", "price, in operations", "in such gradients"), lines, plain
    )
