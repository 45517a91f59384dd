"""A story asks little of a reader, and an audit stands folded beside it."""

import statistics
from pathlib import Path

import pytest
from test_language import PAGES, sources

from mlgd.book.chapters import code_cells, read
from mlgd.book.pieces import bundles_in

# words of prose; lines of any cell, and of the median one in the open; checks in view
WORDS, CELL, MEDIAN, VIEW = 2300, 25, 15, 10
AUDIT_CELL = 40
NO_STORY = ("index", "ledger", "theorems")  # tables, not stories
APART = ("explorer", "your_hierarchy")  # tools: no theorem, no proof
STORIES = [n for n in PAGES if "/" not in n and n not in (*NO_STORY, *APART)]
AUDITS = [n for n in PAGES if n.startswith("audit/")]


def lengths(path: Path, hidden: bool = True) -> list[int]:
    """Lines of the code cells, or of those that a reader sees."""
    shown = [c for c in code_cells(read(path)) if hidden or "tags" not in c.metadata]
    return [len(cell.source.strip().splitlines()) for cell in shown]


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_short(name):
    path, prose = PAGES[name], " ".join(sources(PAGES[name], "markdown"))
    assert max(lengths(path)) <= CELL
    assert statistics.median(lengths(path, hidden=False)) <= MEDIAN
    assert len(prose.split()) <= WORDS
    assert sum(bundle["in_view"] for bundle in bundles_in(path)) <= VIEW
    if f"audit/{name}" in AUDITS:
        assert f"audit/{name}" in prose, "a story links to its audit"


@pytest.mark.parametrize("name", AUDITS)
def test_an_audit_is_folded_and_leads_back(name):
    path = PAGES[name]
    tags = [{*cell.metadata.get("tags", ())} for cell in code_cells(read(path))]
    assert all(
        own & {"hide-input", "hide-cell", "remove-input", "remove-cell"} for own in tags
    )
    assert "../" + name.removeprefix("audit/") in " ".join(sources(path, "markdown"))
    assert bundles_in(path), "an audit holds checks"
    assert max(lengths(path)) <= AUDIT_CELL


def test_every_chapter_about_the_paper_has_an_audit(book):
    lines = (book / "claims.tsv").read_text(encoding="utf-8").splitlines()[1:]
    assert {f"audit/{line.split(chr(9))[1]}" for line in lines} <= {*AUDITS}
