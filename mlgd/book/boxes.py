"""What a check looks like on a page, and the record of it from which the ledger is made."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from .pieces import fold, sentence, slug, with_formulas

KINDS = ("certificate", "identity", "enclosure", "exact run", "statistical", "measured", "cited")
VERDICTS = ("holds", "repaired", "fails", "agrees", "differs", "cited")
MIME = "application/vnd.mlgd.check+json"
OURS = "ours:"  # begins the row of a theorem of the book's own: no claim of the paper
LONG = 70  # characters of LaTeX beyond which a formula has a line of its own


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
        return f"check-{slug(self.rows[0])}-{hashlib.sha256(text.encode()).hexdigest()[:4]}"

    @property
    def records(self) -> list[dict]:
        """The machine-readable form: of what does not hold, all that an erratum says."""
        record = {"ids": list(self.rows), "kind": self.kind, "verdict": self.verdict}
        record |= {"statement": self.statement, "anchor": self.anchor}
        if self.repair:
            record |= {"numbers": list(self.against), "repair": self.repair.statement}
        return [record]

    def __str__(self) -> str:
        lines = [f"[{self.verdict}] {self.statement}", *self.against, *self.evidence]
        lines += [f"repair: {self.repair}"] if self.repair else []
        return "\n  ".join([*lines, f"({self.kind})"])

    def html(self) -> str:
        """The verdict and the sentence; a counterexample with its repair; the evidence on a click."""
        head = f"<span class='mlgd-verdict mlgd-{self.verdict}'>{self.verdict}</span> "
        view = head + _math(sentence(self.statement))
        view += "".join(f"<div class='mlgd-line'>{_math(line)}</div>" for line in self.against)
        if self.repair:
            mended = _math(sentence(self.repair.statement))
            view += f"<div class='mlgd-repair'><b>Repair.</b> {mended}</div>"
        own = (self.repair or self).evidence
        lines = "".join(f"<div class='mlgd-line'>{_math(line)}</div>" for line in own)
        foot = " ".join(filter(None, map(_link, self.rows)))
        proof = fold(self.kind, f"{lines}<div class='mlgd-foot'>{foot}</div>")
        return (
            f"<div class='mlgd-check' id='{self.anchor}'><div class='mlgd-head'>{view}</div>"
            f"{proof}</div>"
        )

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {"text/plain": str(self), "text/html": self.html(), MIME: {"checks": self.records}}


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
        records = [record for check in self.checks for record in check.records]
        view = 1 + sum(c.repair is not None for c in self.checks)
        bundle = {"checks": records, "in_view": view}
        return {"text/plain": str(self), "text/html": self.html(), MIME: bundle}


def _math(text: str) -> str:
    """Formulas for MathJax: a short one in the line, a long one displayed below it."""
    parts = text.split("$")
    return "".join(
        f"<div class='mlgd-display'>{with_formulas(f'${p}$')}</div>"
        if i % 2 and len(p) > LONG
        else with_formulas(f"${p}$" if i % 2 else p)
        for i, p in enumerate(parts)
    )


def _link(row: str) -> str:
    if row.startswith(OURS):
        return ""
    up = "../" if Path.cwd().name == "audit" else ""  # the kernel runs beside its page
    return f"<a href='{up}ledger.html#row-{slug(row)}'>its row in the ledger</a>"


def checks_in(notebook: str | Path) -> list[dict]:
    """The records of all checks stored in a notebook's outputs, in order."""
    return [r for bundle in bundles_in(notebook) for r in bundle.get("checks", [bundle])]


def in_view(notebook: str | Path) -> int:
    """How many checks the page of a notebook shows before anything is opened."""
    return sum(bundle.get("in_view", 1) for bundle in bundles_in(notebook))


def bundles_in(notebook: str | Path) -> list[dict]:
    """What each output that is a check or a group of them stores."""
    cells = json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]
    data = [output.get("data", {}) for cell in cells for output in cell.get("outputs", ())]
    return [bundle[MIME] for bundle in data if MIME in bundle]
