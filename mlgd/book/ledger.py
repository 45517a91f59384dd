"""The ledger: every claim of the paper that can be doubted, joined with the checks in the chapters' outputs.

`claims.tsv` has the rows, by chapter, each with the verdict that was last recorded. `rows.tsv` leads
from every id of the paper's list of claims to the row that holds it, restatements sharing one, or
says why it is no claim. Nothing else is typed in: `problems` names each row that lost its check, each
check without a row, and each verdict that differs from the one recorded.
"""

import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .boxes import KINDS, OURS, VERDICTS, checks_in
from .chapters import notebooks
from .pieces import Html, fold, read_table, sentence, slug, with_formulas

LABEL = re.compile(r"\b(?:ass|thm|prop|app|sec|eq|rem|fig|lem|def):[\w-]+(?:/[\w-]+)?")
NO_CLAIM = "not a claim: "
# the verdict of a row whose checks differ: the first of these
WORST = ("fails", "repaired", "differs", "agrees", "holds", "cited")


@dataclass(frozen=True)
class Row:
    """One claim with the checks that serve it; ids: all that share the row, its own first."""

    id: str
    chapter: str
    where: str
    claim: str
    recorded: str
    ids: tuple[str, ...]
    checks: tuple[dict, ...]

    @property
    def verdict(self) -> str:
        """What the chapters say of it."""
        found = {c["verdict"] for c in self.checks}
        return next((v for v in WORST if v in found), "open")

    @property
    def evidence(self) -> str:
        """The strongest kind among the checks that gave the verdict."""
        kinds = {c["kind"] for c in self.checks if c["verdict"] == self.verdict}
        return next((k for k in KINDS if k in kinds), "none")


def collect(book: str | Path = "book") -> dict[str, list[dict]]:
    """{page: the checks stored in its notebook}, for stories (`oracle`) and audits (`audit/oracle`)."""
    return {name: checks_in(path) for name, path in notebooks(Path(book)).items()}


def read_rows(book: str | Path = "book") -> dict[str, str]:
    """{id of the paper's list: its row, or why it is no claim}."""
    return {e["id"]: e["row"] for e in read_table(Path(book) / "rows.tsv")}


def join(
    claims: Iterable[Mapping[str, str]],
    homes: Mapping[str, str],
    pages: Mapping[str, Sequence[dict]],
) -> list[Row]:
    """The claims, each with the checks of all pages that name it or an id that shares its row."""
    found: dict[str, dict] = {}
    for page, checks in pages.items():
        for check in checks:
            for row in {homes.get(i, i) for i in check["ids"]}:
                found.setdefault(row, {})[page, check["anchor"]] = {**check, "page": page}
    shared: dict[str, list[str]] = {}
    for i, row in homes.items():
        shared.setdefault(row, []).append(i)
    fields = ("id", "chapter", "where", "claim", "verdict")
    return [
        Row(
            *(c[f] for f in fields),
            (c["id"], *(i for i in shared.get(c["id"], ()) if i != c["id"])),
            tuple(found.get(c["id"], {}).values()),
        )
        for c in claims
    ]


def read_ledger(book: str | Path = "book") -> list[Row]:
    """The rows of claims.tsv joined with the checks of the committed notebooks."""
    return join(read_table(Path(book) / "claims.tsv"), read_rows(book), collect(book))


def problems(
    claims: Sequence[Mapping[str, str]],
    homes: Mapping[str, str],
    pages: Mapping[str, Sequence[dict]],
) -> list[str]:
    """What is wrong between claims, ids and checks, one sentence each; empty when all is well."""
    rows = join(claims, homes, pages)
    known = Counter(r.id for r in rows)
    out = [f"{i}: stands {n} times in claims.tsv" for i, n in known.items() if n > 1]
    for row in rows:
        if not row.checks:
            out.append(f"{row.id}: no check names this row; add one to {row.chapter}.ipynb")
        elif row.recorded != row.verdict:
            out.append(f"{row.id}: recorded {row.recorded!r}, the chapters say {row.verdict!r}")
        if homes.get(row.id) != row.id:
            out.append(f"{row.id}: rows.tsv does not lead to it")
    for i, home in homes.items():
        if home not in known and not home.startswith(NO_CLAIM):
            out.append(f"{i}: rows.tsv leads to {home}, which is no row")
    for page, checks in pages.items():
        for check in checks:
            strange = [i for i in check["ids"] if i not in homes and not i.startswith(OURS)]
            out += [f"{i}: checked in {page}, but no row of claims.tsv" for i in strange]
            if check["kind"] not in KINDS or check["verdict"] not in VERDICTS:
                out.append(f"{check['ids'][0]}: {check['kind']!r}, {check['verdict']!r} in {page}")
    return out


def record(book: str | Path = "book") -> None:
    """Write what the chapters say into claims.tsv (to be looked at, then committed)."""
    fields = ("id", "chapter", "where", "claim", "verdict")
    lines = [fields, *([getattr(r, f) for f in fields] for r in read_ledger(book))]
    text = "".join("\t".join(line) + "\n" for line in lines)
    (Path(book) / "claims.tsv").write_text(text, encoding="utf-8")


def counts(rows: Iterable[Row], by: str, columns: Sequence[str], of: str) -> list[tuple]:
    """A cross table: a line for each value of `by`, a column for each value of `of`, the total."""
    table = Counter((getattr(r, by), getattr(r, of)) for r in rows)
    lines = dict.fromkeys(key for key, _ in table)
    return [
        (line, *(table[line, c] for c in columns), sum(table[line, c] for c in columns))
        for line in lines
    ]


def badge(verdict: str) -> str:
    """The verdict as it stands in boxes and tables."""
    return f"<span class='mlgd-verdict mlgd-{verdict}'>{verdict}</span>"


def chapter_table(rows: Iterable[Row], chapter: str, names: Mapping[str, str]) -> Html:
    """The rows of one chapter, folded; ledger.js filters and searches them where scripts run."""
    own, body = [r for r in rows if r.chapter == chapter], []
    for r in own:
        targets = "".join(f"<a id='row-{slug(i)}'></a>" for i in r.ids[1:])
        links = " ".join(
            f"<a href='{c['page']}.html#{c['anchor']}'>{c['kind']}</a>" for c in r.checks
        )
        claim = LABEL.sub(lambda m: f"<i>{names[m.group()]}</i>", with_formulas(r.claim))
        body.append(
            f"<tr id='row-{slug(r.id)}' data-verdict='{r.verdict}' data-evidence='{r.evidence}'>"
            f"<td>{targets}{claim}<br><small>{with_formulas(r.where)}</small></td>"
            f"<td>{badge(r.verdict)}<br><small>{links}</small></td></tr>"
        )
    head = "<thead><tr><th>what the paper says</th><th>verdict and checks</th></tr></thead>"
    table = (
        f"<table class='mlgd-ledger tex2jax_process'>{head}<tbody>{''.join(body)}</tbody></table>"
    )
    return Html(fold(f"{len(own)} rows", table), f"{chapter}: {len(own)} rows")


def no_claims(homes: Mapping[str, str]) -> Html:
    """What stands in the paper's list and is no claim, by reason."""
    reasons: dict[str, list[str]] = {}
    for i, home in homes.items():
        if home.startswith(NO_CLAIM):
            reasons.setdefault(home.removeprefix(NO_CLAIM), []).append(i)
    lines = [
        f"<p>{reason} ({len(ids)}): "
        + ", ".join(f"<code id='row-{slug(i)}'>{html.escape(i)}</code>" for i in ids)
        + "</p>"
        for reason, ids in reasons.items()
    ]
    total = sum(map(len, reasons.values()))
    return Html(fold(f"{total} passages", "".join(lines)), f"{total} passages are no claims")


# --- errata ----------------------------------------------------------------------------------------


def errata_problems(rows: Sequence[Row], errata: Sequence[Mapping[str, str]]) -> list[str]:
    """Rows that do not hold and stand in no erratum, and errata that name a row which holds."""
    wrong = {r.id for r in rows if r.verdict in ("fails", "repaired")}
    named = {i for e in errata for i in e["rows"].split()}
    out = [f"{i}: does not hold and stands in no erratum" for i in sorted(wrong - named)]
    return out + [f"{i}: stands in an erratum and holds" for i in sorted(named - wrong)]


def errata_list(rows: Sequence[Row], errata: Sequence[Mapping[str, str]]) -> Html:
    """The errata by weight: what the paper says, the counterexample, the repair, from the checks."""
    by_id = {r.id: r for r in rows}
    items, plain = [], []
    for number, entry in enumerate(sorted(errata, key=lambda e: int(e["weight"])), 1):
        own = [by_id[i] for i in entry["rows"].split()]
        verdict = next((v for v in WORST if v in {r.verdict for r in own}), "open")
        found = {c["anchor"]: c for r in own for c in r.checks if "repair" in c}
        first, *others = [_finding(c) for c in found.values()] or [""]
        says = f"<p>{with_formulas(entry['says'])}</p>" if entry["says"] else ""
        links = ", ".join(f"<a href='#row-{slug(r.id)}'>{with_formulas(r.where)}</a>" for r in own)
        rest = fold("places and further checks", f"{''.join(others)}<p><small>{links}</small></p>")
        items.append(
            f"<div class='mlgd-erratum tex2jax_process' id='erratum-{number}'><p><b>{number}. "
            f"{with_formulas(entry['title'])}</b> {badge(verdict)}</p>{says}{first}"
            f"<p><i>What else it touches.</i> {with_formulas(entry['downstream'])}</p>{rest}</div>"
        )
        plain.append(f"{number}. {entry['title']} [{verdict}]")
    return Html("".join(items), "\n".join(plain))


def _finding(check: Mapping) -> str:
    numbers = " ".join(with_formulas(sentence(text)) for text in check["numbers"])
    repair = f" <i>Repair.</i> {with_formulas(sentence(check['repair']))}" * bool(check["repair"])
    link = f"<a href='{check['page']}.html#{check['anchor']}'>check</a>"
    said = with_formulas(sentence(check["statement"]))
    return f"<p>{said} <i>In numbers.</i> {numbers}{repair} {link}</p>"


if __name__ == "__main__":
    record()
    found = problems(read_table("book/claims.tsv"), read_rows(), collect())
    print("\n".join(found) or "every row has its check; the verdicts are recorded")
