"""The small language in which the chapters check the paper: what was checked, how, and with which verdict.

Each function below runs one check, shows it able to fail on a claim broken on purpose, and returns a `Check`
that a notebook displays. A check that does not succeed, or whose broken twin is not caught, raises
`CheckFailed`: a chapter with a false statement does not execute. Kinds of evidence, strongest first:

    certificate   lhs <= rhs, because rhs - lhs is a sum of products of non-negative factors (sympy: exactly 0)
    identity      lhs == rhs symbolically
    enclosure     f > 0 on a whole box, by interval arithmetic
    exact         a finite computation with nothing random in it
    statistical   Monte Carlo, demonstrated at 4.9 standard errors (false alarms below one in a million)
    measured      an experimental figure beside the paper's, with both spreads
    cited         taken from the literature

`refuted` is for what does not hold as printed: a counterexample in numbers, and the repair, itself a check.
Statements are Markdown-free text with LaTeX between `$`; ids are rows of `book/claims.tsv`.
"""

import csv
import html
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import sympy as sp
from mpmath import iv

KINDS = ("certificate", "identity", "enclosure", "exact run", "statistical", "measured", "cited")
VERDICTS = ("holds", "repaired", "fails", "cited")
MIME = "application/vnd.mlgd.check+json"
Z = 4.9  # one-sided normal tail 4.8e-7: the false-alarm rate of every statistical check

_shown: Counter[str] = Counter()


class CheckFailed(AssertionError):
    """A claim was not confirmed, or its broken twin was not caught."""


@dataclass(frozen=True)
class Check:
    """One check: the rows it serves, its evidence, its verdict, and the lines a reader sees."""

    ids: tuple[str, ...]
    kind: str
    verdict: str
    statement: str
    lines: tuple[str, ...] = ()
    twin: str = ""
    repair: "Check | None" = None
    anchor: str = field(default="", compare=False)

    def record(self) -> dict:
        """The machine-readable form from which the ledger is derived."""
        return {
            "ids": list(self.ids),
            "kind": self.kind,
            "verdict": self.verdict,
            "statement": self.statement,
            "anchor": self.anchor,
        }

    def __str__(self) -> str:
        body = [f"[{self.verdict}] {self.statement}", *self.lines]
        if self.twin:
            body.append(f"broken twin: {self.twin}")
        if self.repair:
            body.append("repair: " + str(self.repair))
        return "\n  ".join([*body, f"({self.kind}; {', '.join(self.ids)})"])

    def _html(self) -> str:
        rows = "".join(f"<div class='mlgd-line'>{_mathml(x)}</div>" for x in self.lines)
        if self.twin:
            rows += f"<div class='mlgd-twin'>broken on purpose: {_mathml(self.twin)}</div>"
        if self.repair:
            r = self.repair
            rows += f"<div class='mlgd-repair'><b>Repair</b> ({r.kind}). {_mathml(r.statement)}"
            rows += "".join(f"<div class='mlgd-line'>{_mathml(x)}</div>" for x in r.lines)
            rows += f"<div class='mlgd-twin'>broken on purpose: {_mathml(r.twin)}</div></div>" if r.twin else "</div>"
        links = " ".join(f"<a href='ledger.html#row-{slug(i)}'>{html.escape(i)}</a>" for i in self.ids)
        head = f"<span class='mlgd-verdict mlgd-{self.verdict}'>{self.verdict}</span> {_mathml(self.statement)}"
        return (
            f"<div class='mlgd-check' id='{self.anchor}'><div class='mlgd-head'>{head}</div>{rows}"
            f"<div class='mlgd-foot'>{self.kind}: {links}</div></div>"
        )

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {"text/plain": str(self), "text/html": self._html(), MIME: self.record()}


def slug(claim_id: str) -> str:
    """A claim's id as an HTML anchor."""
    return re.sub(r"[^a-z0-9]+", "-", claim_id.lower()).strip("-")


def show(*checks: Check) -> None:
    """Display several checks from one cell."""
    from IPython.display import display

    for check in checks:
        display(check)


def _mathml(text: str) -> str:
    parts = text.split("$")
    return "".join(rf"\({html.escape(p)}\)" if i % 2 else html.escape(p) for i, p in enumerate(parts))


def _check(ids, kind, verdict, statement, lines=(), twin="", repair=None) -> Check:
    ids = (ids,) if isinstance(ids, str) else tuple(ids)
    if not ids and kind != "repair":
        raise ValueError("a check names at least one claim id")
    base = "check-" + slug(ids[0]) if ids else ""
    _shown[base] += 1
    anchor = base if _shown[base] == 1 else f"{base}-{_shown[base]}"
    return Check(ids, kind, verdict, statement, tuple(lines), twin, repair, anchor)


def _need(condition, message: str) -> None:
    if not condition:
        raise CheckFailed(message)


# --- symbolic evidence -------------------------------------------------------------------------------------


def is_zero(expression) -> bool:
    """Whether sympy reduces the expression to exactly 0 (under its symbols' assumptions)."""
    expression = sp.sympify(expression)
    if expression == 0:
        return True
    # logarithms are split without asking only where no symbol can be negative
    safe = all(s.is_nonnegative for s in expression.free_symbols)
    for form in (
        sp.expand,
        sp.simplify,
        lambda e: sp.simplify(sp.powsimp(sp.expand(sp.expand_log(e, force=safe)))),
    ):
        if form(expression) == 0:
            return True
    return False


def _sample(expression, shift: int = 0) -> dict:
    """Distinct positive rationals for the free symbols, to show that two expressions differ."""
    symbols = sorted(sp.sympify(expression).free_symbols, key=str)
    return {s: sp.Rational(sp.prime(i + 3 + shift), sp.prime(i + 2)) for i, s in enumerate(symbols)}


def _nonnegative(factor, given) -> bool:
    if factor.is_nonnegative:
        return True
    if isinstance(factor, sp.Pow) and factor.exp.is_even and factor.base.is_real:
        return True
    for hypothesis in given:
        ratio = sp.simplify(factor / hypothesis)
        if ratio.is_number and ratio.is_positive:
            return True
    return False


def certificate(
    ids,
    statement: str,
    *,
    lhs,
    rhs,
    terms: Sequence,
    given: Mapping | Iterable = (),
    broken: Mapping,
    names: Mapping | None = None,
    detail: str | Sequence[str] = (),
) -> Check:
    """lhs <= rhs, proved: rhs - lhs = sum(terms), each term a product of factors non-negative by hypothesis.

    `given` lists the expressions assumed >= 0 (a mapping gives each a name the reader sees). `broken` is
    {"rhs": or "lhs": a stronger false claim, "at": {symbol: value} where it fails under the same hypotheses,
    "why": what was broken}. `detail` replaces the printed terms where they would fill the page.
    """
    lhs, rhs, terms = sp.sympify(lhs), sp.sympify(rhs), [sp.sympify(t) for t in terms]
    labels = dict(given) if isinstance(given, Mapping) else {g: "" for g in given}
    for term in terms:
        for factor in sp.Mul.make_args(sp.factor_terms(term, sign=False) if term.is_Add else term):
            _need(_nonnegative(factor, labels), f"{ids}: the factor {factor} is not known to be non-negative")
    _need(is_zero(rhs - lhs - sum(terms)), f"{ids}: right - left is not the sum of the terms")
    bad_lhs, bad_rhs, at = broken.get("lhs", lhs), broken.get("rhs", rhs), broken["at"]
    _need(
        all(sp.sympify(g).subs(at) >= 0 for g in labels),
        f"{ids}: the broken twin's point violates a hypothesis",
    )
    gap = sp.N(sp.sympify(bad_rhs - bad_lhs).subs(at))
    _need(gap.is_number and gap < 0, f"{ids}: the broken twin is not refuted at {at} (gap {gap})")
    _need(not is_zero(bad_rhs - bad_lhs - sum(terms)), f"{ids}: the broken twin has the same certificate")
    show_term = lambda t: sp.latex(t, symbol_names=dict(names or {}))  # noqa: E731
    lines = [r"$\text{right}-\text{left}=" + "+".join(rf"\left[{show_term(t)}\right]" for t in terms) + "$"]
    lines += [f"${show_term(sp.sympify(g))}\\ge 0$: {label}" for g, label in labels.items() if label]
    lines = _tuple(detail) if detail else lines
    twin = f"{broken.get('why', 'a stronger right side')} fails, by {_short(gap)} at " + _point(at, names)
    return _check(ids, "certificate", "holds", statement, lines, twin)


def identity(
    ids, statement: str, lhs, rhs, *, broken, why: str = "another exponent", detail: str | Sequence[str] = ()
) -> Check:
    """lhs == rhs exactly; both may be tuples of expressions. `broken` replaces (the first) rhs and must differ.

    `detail` replaces the printed pairs where they would fill the page.
    """
    pairs = list(zip(_tuple(lhs), _tuple(rhs), strict=True))
    for left, right in pairs:
        _need(is_zero(sp.sympify(left) - sp.sympify(right)), f"{ids}: {left} differs from {right}")
    gap = sp.sympify(pairs[0][0]) - sp.sympify(broken)
    _need(not is_zero(gap) and abs(sp.N(gap.subs(_sample(gap)))) > 1e-9, f"{ids}: the broken twin is not caught")
    shown = [(sp.latex(sp.sympify(left)), sp.latex(sp.sympify(right))) for left, right in pairs]
    shown = [pair for pair in shown if pair[0] != pair[1]] or shown  # x = x tells a reader nothing
    lines = _tuple(detail) if detail else [f"${left}={right}$" for left, right in shown]
    return _check(ids, "identity", "holds", statement, lines, f"{why}: ${sp.latex(sp.sympify(broken))}$ is refused")


def enclosure(ids, statement: str, f: Callable, box: Mapping, *, broken: Callable, why: str, pieces=20000) -> Check:
    """f > 0 on the whole box {name: (low, high)}: f maps mpmath intervals (keywords) to an interval."""
    count = _positive_on(f, box, pieces)
    _need(count, f"{ids}: not proved positive on {box}")
    _need(_negative_somewhere(broken, box, pieces), f"{ids}: the broken twin is not refuted")
    ranges = ", ".join(f"{k} in [{_short(a)}, {_short(b)}]" for k, (a, b) in box.items())
    line = f"interval arithmetic over {ranges}: positive on each of {count} pieces"
    return _check(ids, "enclosure", "holds", statement, [line], f"{why} is negative on a piece")


def _split(box):
    name = max(box, key=lambda k: box[k][1] - box[k][0])
    low, high = box[name]
    middle = (low + high) / 2
    return {**box, name: (low, middle)}, {**box, name: (middle, high)}


def _intervals(box):
    return {k: iv.mpf([a, b]) for k, (a, b) in box.items()}


def _positive_on(f, box, pieces) -> int:
    todo, done = [dict(box)], 0
    while todo:
        if done + len(todo) > pieces:
            return 0
        piece = todo.pop()
        if f(**_intervals(piece)).a > 0:
            done += 1
        else:
            todo.extend(_split(piece))
    return done


def _negative_somewhere(f, box, pieces) -> bool:
    todo = [dict(box)]
    for _ in range(pieces):
        piece = todo.pop(0)
        value = f(**_intervals(piece))
        if value.b < 0:
            return True
        if value.a < 0:
            todo.extend(_split(piece))
        if not todo:
            return False
    return False


# --- computed evidence -------------------------------------------------------------------------------------


def exact(ids, statement: str, test: Callable, on, *, broken, why: str, detail: str | Sequence[str] = ()) -> Check:
    """test(on) is true and test(broken) is false; nothing in the computation is random."""
    _need(bool(test(on)), f"{ids}: the test fails")
    _need(not bool(test(broken)), f"{ids}: the test accepts the broken twin ({why})")
    return _check(ids, "exact run", "holds", statement, _tuple(detail) if detail else (), f"{why} is refused")


def statistical(
    ids,
    statement: str,
    sample,
    bound: float,
    *,
    side="below",
    broken: float,
    why: str,
    unit: float = 1.0,
    detail="",
) -> Check:
    """The mean of the sample lies below (or equals) the bound, at 4.9 standard errors; `broken` is another bound.

    below: mean + 4.9 se <= bound and the same test refuses the bound `broken`.
    equal: |mean - bound| <= 4.9 se, and |mean - broken| > 4.9 se.
    """
    sample = np.asarray(sample, float)
    mean, error = sample.mean(), sample.std(ddof=1) / math.sqrt(sample.size)

    def accepts(value):
        return mean + Z * error <= value if side == "below" else abs(mean - value) <= Z * error

    _need(accepts(bound), f"{ids}: mean {mean:.6g} +- {error:.2g} against {bound:.6g} ({side})")
    _need(
        not accepts(broken),
        f"{ids}: the broken twin {broken:.6g} is accepted (mean {mean:.6g} +- {error:.2g})",
    )
    sign = r"\le" if side == "below" else "="
    line = f"{sample.size} runs: mean ${_short(mean / unit)}\\pm{_short(error / unit, 1)}{sign}{_short(bound / unit)}$"
    lines = [line + " at 4.9 standard errors", *([detail] if detail else [])]
    return _check(ids, "statistical", "holds", statement, lines, f"{why} ({_short(broken / unit)}) is refused")


def measured(
    ids,
    statement: str,
    *,
    ours: float,
    paper: float,
    spread: float = 0.0,
    paper_spread: float = 0.0,
    tolerance: float | None = None,
    broken: float,
    why: str = "another value",
    expect: str = "holds",
    digits: int = 3,
    detail: str | Sequence[str] = (),
) -> Check:
    """Our figure beside the paper's: they agree when they differ by at most three joint spreads (or `tolerance`).

    `spread`s are standard errors of the two figures. Agreement gives `holds`, disagreement `fails`; `expect`
    says which one the chapter's prose reports, and the check refuses to say the other.
    """
    reach = tolerance if tolerance is not None else 3 * math.hypot(spread, paper_spread)
    verdict = "holds" if abs(ours - paper) <= reach else "fails"
    _need(
        verdict == expect,
        f"{ids}: ours {ours:.6g}, paper {paper:.6g}, reach {reach:.3g}: {verdict}, not {expect}",
    )
    _need(
        (abs(ours - broken) <= reach) != (verdict == "holds"),
        f"{ids}: the broken twin {broken} is not told apart",
    )
    pm = lambda v, s: f"{_short(v, digits)}" + (rf"\pm{_short(s, 1)}" if s else "")  # noqa: E731
    line = f"ours ${pm(ours, spread)}$, the paper ${pm(paper, paper_spread)}$: " + (
        "they agree" if verdict == "holds" else "they do not agree"
    )
    lines = [line, *(_tuple(detail) if detail else ())]
    twin = f"{why} (${_short(broken, digits)}$) is {'refused' if verdict == 'holds' else 'accepted'}"
    return _check(ids, "measured", verdict, statement, lines, twin)


def cited(ids, statement: str, key: str) -> Check:
    """Taken from the literature; `key` is an entry of book/references.bib."""
    return _check(ids, "cited", "cited", statement, [f"source: {key}"])


def refuted(
    ids,
    statement: str,
    test: Callable,
    *,
    at,
    passes_at,
    numbers: str | Sequence[str],
    repair: Check,
    verdict: str = "repaired",
) -> Check:
    """What the paper prints does not hold: test(at) is false, though test(passes_at) is true; `repair` is proved.

    `statement` says what is printed and what is wrong with it; `numbers` gives the counterexample; `verdict` is
    'repaired' when the paper's conclusion stands and only a step or constant is mended, 'fails' when the
    statement itself is false and needs the hypothesis that `repair` adds.
    """
    if verdict not in ("repaired", "fails"):
        raise ValueError(f"verdict must be 'repaired' or 'fails', not {verdict!r}")
    _need(not bool(test(at)), f"{ids}: the counterexample does not refute the printed claim")
    _need(bool(test(passes_at)), f"{ids}: the test of the printed claim can never pass")
    return _check(ids, repair.kind, verdict, statement, _tuple(numbers), "", repair)


def _tuple(x) -> tuple:
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def _short(value, digits: int = 3) -> str:
    if isinstance(value, int):
        return str(value)
    value = float(value)
    return f"{value:.{digits}g}" if math.isfinite(value) else str(value)


def _point(at: Mapping, names: Mapping | None = None) -> str:
    told = {k: v for k, v in at.items() if v != 0} if len(at) > 8 else at
    shown = {
        sp.latex(sp.sympify(k), symbol_names=dict(names or {})): sp.latex(sp.nsimplify(v)) for k, v in told.items()
    }
    return ", ".join(f"${name}={number}$" for name, number in shown.items()) + (", all else 0" if told != at else "")


# --- the rows and the notebooks ----------------------------------------------------------------------------


def read_claims(path: str | Path = "book/claims.tsv") -> list[dict[str, str]]:
    """The rows of claims.tsv: id, chapter, where, kind, claim."""
    with open(path, encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE))


def checks_in(notebook: str | Path) -> list[dict]:
    """The records of all checks stored in a notebook's outputs, in order, each with its cell's index."""
    found = []
    for index, cell in enumerate(json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]):
        for output in cell.get("outputs", ()):
            if MIME in output.get("data", {}):
                found.append({**output["data"][MIME], "cell": index})
    return found


def main(chapters: Sequence[str]) -> int:
    """Print the rows of each chapter (all by default) that no check of its notebook names."""
    rows = read_claims()
    missing = 0
    for chapter in chapters or sorted({r["chapter"] for r in rows}):
        notebook = Path("book") / f"{chapter}.ipynb"
        covered = {i for c in (checks_in(notebook) if notebook.exists() else ()) for i in c["ids"]}
        known = {r["id"] for r in rows}
        own = [r for r in rows if r["chapter"] == chapter]
        open_rows = [r for r in own if r["id"] not in covered]
        missing += len(open_rows)
        print(f"{chapter}: {len(own) - len(open_rows)} of {len(own)} rows checked")
        for row in open_rows:
            print(f"  open    {row['id']}  ({row['kind']})")
        for stray in sorted(covered - known):
            print(f"  unknown {stray}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
