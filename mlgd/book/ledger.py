"""The ledger: every claim of the paper that can be doubted, joined with the chapters' checks.

`claims.tsv` has the rows, by chapter, each with the verdict that was last recorded. `rows.tsv`
leads from every id of the paper's list of claims to the row that holds it, restatements sharing
one, or says why it is no claim. Nothing else is typed in: `problems` names each row that lost its
check, each check without a row, and each verdict that differs from the one recorded.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .chapters import notebooks
from .pieces import (
    KINDS,
    OURS,
    VERDICTS,
    bundles_in,
    read_table,
)

NO_CLAIM = "not a claim: "
WORST = ("fails", "repaired", "differs", "agrees", "holds", "cited")
FIELDS = ("id", "chapter", "where", "claim", "verdict")


def worst(verdicts: Iterable[str]) -> str:
    """One verdict for several: what does not hold goes before what does."""
    found = {*verdicts}
    return next((v for v in WORST if v in found), "open")


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
        return worst(c["verdict"] for c in self.checks)


def collect(book: str | Path = "book") -> dict[str, list[dict]]:
    """{page: the checks stored in its notebook}, of stories and audits."""
    pages = notebooks(Path(book)).items()
    return {name: [c for b in bundles_in(path) for c in b["checks"]] for name, path in pages}


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
    return [
        Row(
            *(c[f] for f in FIELDS),
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
    lines = [FIELDS, *([getattr(r, f) for f in FIELDS] for r in read_ledger(book))]
    text = "".join("\t".join(line) + "\n" for line in lines)
    (Path(book) / "claims.tsv").write_text(text, encoding="utf-8")


def errata_problems(rows: Sequence[Row], errata: Sequence[Mapping[str, str]]) -> list[str]:
    """Rows that do not hold and stand in no erratum, and errata that name a row which holds."""
    wrong = {r.id for r in rows if r.verdict in ("fails", "repaired")}
    named = {i for e in errata for i in e["rows"].split()}
    out = [f"{i}: does not hold and stands in no erratum" for i in sorted(wrong - named)]
    return out + [f"{i}: stands in an erratum and holds" for i in sorted(named - wrong)]


if __name__ == "__main__":
    record()
    found = problems(read_table("book/claims.tsv"), read_rows(), collect())
    print("\n".join(found) or "every row has its check; the verdicts are recorded")
