"""What a chapter may ask of a reader, what rows that restate one another must agree on, and the list of exemptions.

Each problem has a `what` and a `where`; `book/exemptions.tsv` may excuse it for a while. An exemption that excuses
nothing is a problem itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mlgd.book.boxes import bundles_in, in_view
from mlgd.book.chapters import code_cells, notebooks, read
from mlgd.book.ledger import Row, read_ledger
from mlgd.book.pieces import read_table

CODE, CELL, VIEW, HEIGHT = 300, 30, 10, 13_000  # lines, lines, checks, pixels at WIDTH
WIDTH = 1400
THEORY = 6_000  # lines of code of the chapters on the paper, stories and audits together
NO_STORY = ("ledger", "reference")  # tables, not stories


class Problem(NamedTuple):
    """Something beyond a limit: which limit, where, and by how much."""

    what: str
    where: str
    says: str


def stories(book: Path) -> dict[str, Path]:
    """The chapters that a reader reads from top to bottom."""
    return {
        name: path
        for name, path in notebooks(book).items()
        if "/" not in name and name not in NO_STORY
    }


def story_problems(book: Path) -> list[Problem]:
    """Stories with too much code, too long a cell, or too many checks in view."""
    problems = []
    for name, path in stories(book).items():
        lines = [len(cell.source.strip().splitlines()) for cell in code_cells(read(path))]
        counted = {
            "code": (sum(lines), CODE, "lines of code"),
            "cell": (max(lines, default=0), CELL, "lines in its longest cell"),
            "view": (in_view(path), VIEW, "checks in view"),
        }
        problems += [
            Problem(w, name, f"{n} {unit}, at most {m}")
            for w, (n, m, unit) in counted.items()
            if n > m
        ]
    return problems


def theory_problems(book: Path) -> list[Problem]:
    """The chapters on the paper, which have audits, with more code than anyone would read."""
    known = notebooks(book)
    about = [
        path
        for name, path in known.items()
        if name.startswith("audit/") or f"audit/{name}" in known
    ]
    lines = sum(
        len(cell.source.strip().splitlines()) for path in about for cell in code_cells(read(path))
    )
    return (
        [Problem("theory", "all", f"{lines} lines of code, at most {THEORY}")]
        if lines > THEORY
        else []
    )


def audit_problems(book: Path) -> list[Problem]:
    """Chapters on the paper without an audit, audits without checks, and the two not linked to one another."""
    known = notebooks(book)
    about = {row["chapter"] for row in read_table(book / "claims.tsv")}
    problems = [
        Problem("audit", name, f"has no audit/{name}")
        for name in sorted(about)
        if f"audit/{name}" not in known
    ]
    for name in known:
        if not name.startswith("audit/"):
            continue
        if not bundles_in(known[name]):
            problems.append(Problem("audit", name, "holds no check"))
        tags = [{*cell.metadata.get("tags", ())} for cell in code_cells(read(known[name]))]
        if not all(
            own & {"hide-input", "hide-cell", "remove-input", "remove-cell"} for own in tags
        ):
            problems.append(Problem("folded", name, "shows code: tag its cells hide-input"))
        story = name.removeprefix("audit/")
        for page, other in ((name, f"../{story}"), (story, name)):
            path = book / f"{page}.ipynb"
            cells = read(path).cells if path.exists() else []
            if not any(
                f"`{other}`" in c.source or f"<{other}>" in c.source
                for c in cells
                if c.cell_type == "markdown"
            ):
                problems.append(Problem("link", page, f"no link to {{doc}}`{other}`"))
    return problems


def language_problems(book: Path) -> list[Problem]:
    """Chapters whose checks were stored by the language as it was, before it made its own near misses."""
    old = [
        name
        for name, path in notebooks(book).items()
        if any("checks" not in b for b in bundles_in(path))
    ]
    return [Problem("language", name, "its checks are written in the old language") for name in old]


def same_problems(rows: Iterable[Row], groups: Sequence[Mapping[str, str]]) -> list[Problem]:
    """Groups of same.tsv whose rows have different verdicts without a reason, do not exist, or stand in two groups."""
    verdicts = {row.id: row.verdict for row in rows}
    problems, seen = [], set()
    for group in groups:
        ids = group["ids"].split()
        problems += [
            Problem("same", i, "is in same.tsv, but no row of claims.tsv")
            for i in ids
            if i not in verdicts
        ]
        problems += [
            Problem("same", i, "stands in two groups of same.tsv") for i in ids if i in seen
        ]
        seen.update(ids)
        found = {verdicts[i] for i in ids if i in verdicts} - {
            "open"
        }  # open rows are another test's matter
        if len(ids) < 2:
            problems.append(Problem("same", ids[0], "is alone in its group"))
        if len(found) > 1 and not group["why"]:
            told = ", ".join(f"{i} {verdicts[i]}" for i in ids)
            problems.append(Problem("same", ids[0], f"one statement, different verdicts: {told}"))
        if len(found) == 1 and group["why"]:
            problems.append(
                Problem("same", ids[0], "gives a reason for verdicts that do not differ")
            )
    return problems


def exemptions(book: Path) -> set[tuple[str, str]]:
    """What is excused, as (what, where)."""
    return {
        (e["what"], e["where"]) for e in read_table(book / "exemptions.tsv") if e["why"].strip()
    }


def problems(book: Path) -> list[Problem]:
    """Everything beyond a limit that can be seen without building the pages."""
    same = same_problems(read_ledger(book), read_table(book / "same.tsv"))
    return [
        *story_problems(book),
        *theory_problems(book),
        *audit_problems(book),
        *language_problems(book),
        *same,
    ]


def unexcused(
    found: Iterable[Problem], excused: set[tuple[str, str]], whats: Iterable[str]
) -> list[str]:
    """Problems without exemption, and exemptions of these kinds without a problem, as sentences."""
    found = list(found)
    out = [f"{p.where} ({p.what}): {p.says}" for p in found if (p.what, p.where) not in excused]
    needless = {e for e in excused if e[0] in set(whats)} - {(p.what, p.where) for p in found}
    return out + [
        f"{where} ({what}): take its exemption out, it is not needed"
        for what, where in sorted(needless)
    ]


if __name__ == "__main__":
    from mlgd.book.chapters import BOOK

    excused = exemptions(BOOK)
    for sentence in unexcused(problems(BOOK), excused, {what for what, _ in excused} - {"height"}):
        print(sentence)
