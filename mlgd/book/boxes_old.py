"""What the checks of chapters that are not converted yet look like; it goes with the last of them."""

import hashlib
import html
from dataclasses import dataclass
from pathlib import Path

from .pieces import sentence, slug, with_formulas

KINDS = ("certificate", "identity", "enclosure", "exact run", "statistical", "measured", "cited")
VERDICTS = ("holds", "repaired", "fails", "cited")
MIME = "application/vnd.mlgd.check+json"
OURS = "ours:"  # what a check of the book's own theorems is filed under: no claim of the paper, and not counted as one


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
    aside: str = ""  # a line for whoever opens the box, no part of the erratum

    def __post_init__(self):
        if not self.ids:
            raise ValueError("a check names at least one row of claims.tsv")

    @property
    def anchor(self) -> str:
        """Made of what is checked alone, so that running a cell again moves nothing."""
        digest = hashlib.sha256(f"{self.ids} {self.kind} {self.statement}".encode()).hexdigest()
        return f"check-{slug(self.ids[0])}-{digest[:4]}"

    @property
    def records(self) -> list[dict]:
        """The machine-readable form; of what does not hold, all that an erratum says."""
        record = {"ids": list(self.ids), "kind": self.kind, "verdict": self.verdict}
        record |= {"statement": self.statement, "anchor": self.anchor}
        if self.verdict in ("repaired", "fails"):
            numbers = [line for line in self.lines if line != self.aside]
            record |= {"numbers": numbers, "repair": self.repair.statement if self.repair else ""}
        return [record]

    def __str__(self) -> str:
        body = [f"[{self.verdict}] {self.statement}", *self.lines]
        body += [f"near miss: {self.twin}"] * bool(self.twin) + [f"repair: {self.repair}"] * bool(
            self.repair
        )
        return "\n  ".join([*body, f"({self.kind}; {', '.join(self.ids)})"])

    def html(self, folded: bool = True) -> str:
        """A box with the statement in view and the evidence folded, unless it stands in a group that folds."""
        verdict = f"<span class='mlgd-verdict mlgd-{self.verdict}'>{self.verdict}</span>"
        wrong, proof = self.verdict in ("repaired", "fails"), self.repair or self
        in_view = _lines(self.lines) if wrong else ""
        if self.repair:
            in_view += f"<div class='mlgd-repair'><b>Repair.</b> {with_formulas(sentence(proof.statement))}</div>"
        evidence = _lines(proof.lines) if proof is not self or not wrong else ""
        if proof.twin:
            evidence += f"<div class='mlgd-twin'>near miss: {with_formulas(proof.twin)}</div>"
        links = " ".join(map(_link, self.ids))
        evidence += f"<div class='mlgd-foot'>{self.kind}: {links}</div>"
        if folded:
            evidence = fold(
                "source" if self.kind == "cited" else f"evidence: {self.kind}", evidence
            )
        return (
            f"<div class='mlgd-check' id='{self.anchor}'><div class='mlgd-head'>{verdict} "
            f"{with_formulas(sentence(self.statement))}</div>{in_view}{evidence}</div>"
        )

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {"text/plain": str(self), "text/html": self.html(), MIME: {"checks": self.records}}


@dataclass(frozen=True)
class Group:
    """The checks of one passage in one box: what is repaired or fails in the open, the others folded."""

    title: str
    checks: tuple[Check, ...]

    @property
    def _folded(self) -> list[Check]:
        return [c for c in self.checks if c.verdict in ("holds", "cited")]

    @property
    def in_view(self) -> int:
        return 1 + len(self.checks) - len(self._folded)

    def __str__(self) -> str:
        return "\n".join([self.title, *map(str, self.checks)])

    def html(self) -> str:
        boxes = "".join(c.html() for c in self.checks if c not in self._folded)
        if self._folded:
            held = sum(c.verdict == "holds" for c in self._folded)
            told = ["one check holds" if held == 1 else f"{held} checks hold"] if held else []
            told += [f"{len(self._folded) - held} cited"] if len(self._folded) > held else []
            boxes += fold(", ".join(told), "".join(c.html(folded=False) for c in self._folded))
        return f"<div class='mlgd-group'><div class='mlgd-title'>{with_formulas(self.title)}</div>{boxes}</div>"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        records = [record for check in self.checks for record in check.records]
        return {
            "text/plain": str(self),
            "text/html": self.html(),
            MIME: {"checks": records, "in_view": self.in_view},
        }


def _link(claim: str) -> str:
    """A row of the ledger; a theorem of the book's own, "ours:...", has none."""
    if claim.startswith(OURS):
        return f"the book's own, {html.escape(claim.removeprefix(OURS))}"
    return f"<a href='{_up()}ledger.html#row-{slug(claim)}'>{html.escape(claim)}</a>"


def _lines(lines) -> str:
    return "".join(f"<div class='mlgd-line'>{with_formulas(line)}</div>" for line in lines)


def fold(label: str, body: str) -> str:
    """Open where no script runs; ledger.js closes it."""
    return f"<details class='mlgd-fold' open><summary>{label}</summary>{body}</details>"


def _up() -> str:
    """The way to the ledger from the folder in which the kernel runs: book/ or book/audit/."""
    return "../" if Path.cwd().name == "audit" else ""


def show(*checks: Check | Group) -> None:
    """Display several checks from one cell."""
    from IPython.display import display

    for check in checks:
        display(check)
