"""The ledger: every doubtful claim has its check, every id of the paper's list its row, and losing one is noticed."""

import itertools
import re

import pytest
from test_language import PAGES, sources

from mlgd.book import ledger
from mlgd.book.pieces import OURS, VERDICTS, Check, read_table, slug


@pytest.fixture(scope="module")
def claims(book):
    return read_table(book / "claims.tsv")


@pytest.fixture(scope="module")
def homes(book):
    return ledger.read_rows(book)


@pytest.fixture(scope="module")
def pages(book):
    return ledger.collect(book)


@pytest.fixture(scope="module")
def rows(claims, homes, pages):
    return ledger.join(claims, homes, pages)


def test_every_row_has_its_check_and_every_check_its_row(claims, homes, pages):
    assert ledger.problems(claims, homes, pages) == []


def test_every_id_of_the_paper_s_list_has_a_row_or_a_reason(homes, claims):
    reasons = [h for h in homes.values() if h.startswith(ledger.NO_CLAIM)]
    assert len(homes) == 525
    assert len(claims) + len(reasons) <= 400
    assert all(len(h) > len(ledger.NO_CLAIM) + 5 for h in reasons)


def test_rows_stand_together_by_chapter(claims):
    chapters = [c["chapter"] for c in claims]
    changes = sum(a != b for a, b in itertools.pairwise(chapters))
    assert changes == len(set(chapters)) - 1


def test_one_scale_of_verdicts(pages):
    for checks in pages.values():
        for check in checks:
            assert (check["kind"] == "measured") == (check["verdict"] in ("agrees", "differs"))
            assert (check["kind"] == "cited") == (check["verdict"] == "cited")
            if check["verdict"] in ("repaired", "fails"):
                assert check["numbers"], f"{check['ids']}: a counterexample in numbers"
                assert check["repair"], f"{check['ids']}: and what mends it"


def test_a_lost_check_a_flipped_verdict_and_a_lost_row_are_noticed(claims, homes, pages):
    flips = {v: "holds" if v != "holds" else "fails" for v in VERDICTS}
    alone = [
        (page, n, check)
        for page, checks in pages.items()
        for n, check in enumerate(checks)
        if not check["ids"][0].startswith(OURS)
        and sum(
            homes.get(check["ids"][0]) in map(homes.get, c["ids"])
            for p in pages.values()
            for c in p
        )
        == 1
        and not homes[check["ids"][0]].startswith(ledger.NO_CLAIM)
    ]
    assert len(alone) > 50
    for page, n, check in alone[::10]:
        others = [*pages[page][:n], *pages[page][n + 1 :]]
        for change in ([], [{**check, "verdict": flips[check["verdict"]]}]):
            found = ledger.problems(claims, homes, {**pages, page: others + change})
            assert any(p.startswith(f"{homes[check['ids'][0]]}: ") for p in found)
    for n in range(0, len(claims), 40):
        found = ledger.problems([*claims[:n], *claims[n + 1 :]], homes, pages)
        assert any(f"leads to {claims[n]['id']}, which is no row" in p for p in found)


def test_errata_name_exactly_the_rows_that_do_not_hold_each_once(rows, book):
    errata = read_table(book / "errata.tsv")
    assert ledger.errata_problems(rows, errata) == []
    assert ledger.errata_problems(rows, errata[1:]), "dropping an erratum must be noticed"
    named = [i for e in errata for i in e["rows"].split()]
    assert len(named) == len(set(named))


def test_an_id_shares_the_row_and_the_worst_verdict_counts():
    records = [
        {"ids": [i], "kind": "identity", "verdict": v, "anchor": f"check-{i}"}
        for i, v in (("a", "holds"), ("b", "fails"))
    ]
    claim = {"id": "a", "chapter": "part", "where": "l.1", "claim": "x", "verdict": "fails"}
    (row,) = ledger.join([claim], {"a": "a", "b": "a"}, {"audit/part": records})
    assert (row.verdict, row.ids, len(row.checks)) == ("fails", ("a", "b"), 2)


STATEMENT = re.compile(r"^(`{3,})\{prf:(?!proof)(\w+)\}.*?^\1$", re.M | re.S)
MARK = re.compile(r'class="mlgd-mark" href="(?:\.\./)?ledger\.html#row-([^"]+)"')


def test_every_statement_about_the_paper_carries_a_mark_that_leads_to_its_row(claims, homes):
    about = {r["chapter"] for r in claims}
    known = {slug(i) for i in homes}
    found = [
        (name, m.group(0))
        for name, path in PAGES.items()
        if name.removeprefix("audit/") in about
        for text in sources(path, "markdown")
        for m in STATEMENT.finditer(text)
    ]
    assert len(found) > 10
    marks = [(name, box.splitlines()[0], MARK.search(box)) for name, box in found]
    assert [(n, title) for n, title, mark in marks if not mark or mark[1] not in known] == []


@pytest.mark.built
def test_errata_and_filter_show_what_is_asked_for(visit, html, book, rows):
    page, problems = visit(html / "book" / "ledger.html")

    def shown():
        return page.locator("table.mlgd-ledger tbody tr:not([hidden])").count()

    assert shown() == len(rows)
    assert page.locator(".mlgd-erratum").count() == len(read_table(book / "errata.tsv"))
    page.locator(".mlgd-filter select").first.select_option("fails")
    assert shown() == sum(r.verdict == "fails" for r in rows) > 0
    page.locator(".mlgd-filter input[type=search]").fill("no such words anywhere")
    assert shown() == 0
    assert problems == []
    page.close()


def test_the_book_s_own_theorems_are_no_claims_of_the_paper():
    check = {"ids": ["ours:anchored/step"], "kind": "identity", "verdict": "holds", "anchor": "x"}
    assert ledger.problems([], {}, {"anchored": [check]}) == []
    assert ledger.problems([], {}, {"anchored": [check | {"ids": ["anchored/step"]}]}) != []
    assert "href" not in Check(("ours:anchored/step",), "identity", "holds", "so it is").html()
