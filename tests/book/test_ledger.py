"""The ledger: full coverage of claims.tsv by the chapters' own outputs, and proof that losing any of it is noticed."""

import json
import re

import pytest

from mlgd.book import ledger
from mlgd.book.boxes import OURS
from mlgd.book.boxes_old import Check
from mlgd.book.chapters import notebooks
from mlgd.book.pieces import read_table, slug


@pytest.fixture(scope="module")
def claims(book):
    return read_table(book / "claims.tsv")


@pytest.fixture(scope="module")
def pages(book):
    return ledger.collect(book)


@pytest.fixture(scope="module")
def rows(claims, pages):
    return ledger.join(claims, pages)


def test_every_row_has_its_check_and_every_check_its_row(claims, pages):
    assert ledger.problems(claims, pages) == []


def test_statistical_evidence_carries_at_most_a_tenth_of_steps_and_constants(rows):
    own = [r for r in rows if r.kind in ("step", "constant")]
    statistical = [r.id for r in own if r.evidence == "statistical"]
    assert len(statistical) <= len(own) / 10, statistical


def test_losing_or_flipping_any_one_check_is_noticed_with_its_row(claims, pages):
    flips = {"holds": "fails", "repaired": "holds", "fails": "holds", "cited": "holds"}
    for page, checks in pages.items():
        for n, check in enumerate(checks):
            if all(i.startswith(OURS) for i in check["ids"]):  # the book's own theorems have no row
                continue
            flipped = {**check, "verdict": flips[check["verdict"]]}
            for change in ([], [flipped]):
                found = ledger.problems(
                    claims, {**pages, page: [*checks[:n], *change, *checks[n + 1 :]]}
                )
                assert any(p.startswith(f"{i}: ") for i in check["ids"] for p in found), (
                    page,
                    check["ids"],
                    change,
                )


def test_a_check_that_loses_its_row_is_noticed(claims, pages):
    for n in range(0, len(claims), 25):
        found = ledger.problems([*claims[:n], *claims[n + 1 :]], pages)
        assert any(p.startswith(f"{claims[n]['id']}: checked in") for p in found)


def test_errata_name_exactly_the_rows_that_do_not_hold(rows, book):
    errata = read_table(book / "errata.tsv")
    assert ledger.errata_problems(rows, errata) == []
    assert ledger.errata_problems(rows, errata[1:]), "dropping an erratum must be noticed"


def test_an_erratum_is_made_of_the_records_of_its_rows():
    record = {
        "ids": ["a"],
        "kind": "identity",
        "verdict": "fails",
        "statement": "printed: $x<1$",
        "anchor": "check-a",
    }
    record |= {"numbers": ["x is 2"], "repair": "assume $x<1$"}
    claim = {"id": "a", "chapter": "part", "where": "l.1", "kind": "step", "claim": "x"}
    own = ledger.join([claim], {"audit/part": [record]})
    markup = ledger.errata_list(
        own, [{"weight": "1", "title": "T", "ids": "a", "downstream": "None."}]
    ).markup
    assert (
        r"Printed: \(x&lt;1\). <i>In numbers.</i> X is 2. <i>Repair.</i> Assume \(x&lt;1\)."
        in markup
    )
    assert "href='audit/part.html#check-a'" in markup
    assert "<i>What else it touches.</i> None." in markup


def test_the_graph_of_proofs_has_no_circle_and_names_known_results(rows, book):
    graph = ledger.read_graph(book / "rests_on.tsv")
    for node in ledger.layers(graph):
        ledger.group_verdict(rows, node)
    with pytest.raises(ValueError, match="circle"):
        ledger.layers({"a": ("b",), "b": ("a",)})
    with pytest.raises(ValueError, match="no row"):
        ledger.group_verdict(rows, "thm:unheard-of")


STATEMENT = re.compile(r"^(`{3,})\{prf:(?!proof)(\w+)\}.*?^\1$", re.M | re.S)


def unmarked(text: str, anchors: set[str]) -> list[str]:
    """The theorem-like statements of a Markdown text that carry no mark leading to a row of the ledger."""
    marked = re.compile(r'class="mlgd-mark" href="(?:\.\./)?ledger\.html#row-([^"]+)"')
    found = [
        (m.group(0).splitlines()[0], marked.search(m.group(0))) for m in STATEMENT.finditer(text)
    ]
    return [title for title, mark in found if mark is None or mark.group(1) not in anchors]


def test_every_statement_about_the_paper_carries_a_mark_that_leads_to_its_row(claims, book):
    anchors, about = {slug(r["id"]) for r in claims}, {r["chapter"] for r in claims}
    texts = []
    for path in (
        path for name, path in notebooks(book).items() if name.removeprefix("audit/") in about
    ):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts += ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
    assert [title for text in texts for title in unmarked(text, anchors)] == []
    statements = [text for text in texts if STATEMENT.search(text)]
    assert len(statements) > 10
    assert all(unmarked(text.replace("#row-", "#raw-"), anchors) for text in statements)


@pytest.mark.built
def test_the_filter_shows_what_is_asked_for(visit, html, rows):
    page, problems = visit(html / "book" / "ledger.html")

    def shown():
        return page.locator("table.mlgd-ledger tbody tr:not([hidden])").count()

    assert shown() == len(rows)
    page.locator(".mlgd-filter select").first.select_option("fails")
    assert shown() == sum(r.verdict == "fails" for r in rows) > 0
    page.locator(".mlgd-filter input[type=search]").fill("no such words anywhere")
    assert shown() == 0
    assert problems == []
    page.close()


def test_the_book_s_own_theorems_are_no_claims_of_the_paper():
    check = {"ids": ["ours:anchored/step"], "kind": "identity", "verdict": "holds"}
    assert ledger.problems([], {"anchored": [check]}) == []
    assert ledger.problems([], {"anchored": [check | {"ids": ["anchored/step"]}]}) != []
    assert "href" not in Check(("ours:anchored/step",), "identity", "holds", "so it is").html()
