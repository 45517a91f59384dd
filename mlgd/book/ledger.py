"""The ledger: every claim of the paper that can be doubted, joined with the chapters' checks.

`claims.tsv` has the rows, by chapter, each with the verdict that was last recorded. `rows.tsv`
leads from every id of the paper's list of claims to the row that holds it, restatements sharing
one, or says why it is no claim. Nothing else is typed in; a test names each row that lost its
check, each check without a row, and each verdict that differs from the one recorded.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .chapters import notebooks
from .pieces import bundles_in, read_table

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
    return {
        name: [c for b in bundles_in(path) for c in b["checks"]] for name, path in pages
    }


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
    return [
        Row(
            *(c[f] for f in FIELDS),
            (c["id"], *(i for i, row in homes.items() if row == c["id"] != i)),
            tuple(found.get(c["id"], {}).values()),
        )
        for c in claims
    ]


def read_ledger(book: str | Path = "book") -> list[Row]:
    """The rows of claims.tsv joined with the checks of the committed notebooks."""
    return join(read_table(Path(book) / "claims.tsv"), read_rows(book), collect(book))
