"""A story leads to its audit, an audit stands folded beside it, and claims have one."""

import pytest
from test_language import PAGES, sources

from mlgd.book.chapters import code_cells, read
from mlgd.book.pieces import bundles_in

NO_STORY = ("index", "ledger", "theorems")  # tables, not stories
APART = ("explorer", "your_hierarchy")  # tools: no theorem, no proof
STORIES = [n for n in PAGES if "/" not in n and n not in (*NO_STORY, *APART)]
AUDITS = [n for n in PAGES if n.startswith("audit/")]
FOLDED = {"hide-input", "hide-cell", "remove-input", "remove-cell"}


@pytest.mark.parametrize("name", AUDITS)
def test_a_story_leads_to_its_audit_and_back(name):
    story = name.removeprefix("audit/")
    if story in PAGES:
        assert name in " ".join(sources(PAGES[story], "markdown"))
    assert f"../{story}" in " ".join(sources(PAGES[name], "markdown"))


@pytest.mark.parametrize("name", AUDITS)
def test_an_audit_is_folded_and_holds_checks(name):
    for cell in code_cells(read(PAGES[name])):
        assert FOLDED & {*cell.metadata.get("tags", ())}
    assert bundles_in(PAGES[name])


def test_every_chapter_about_the_paper_has_an_audit(book):
    lines = (book / "claims.tsv").read_text(encoding="utf-8").splitlines()[1:]
    assert {f"audit/{line.split(chr(9))[1]}" for line in lines} <= {*AUDITS}
