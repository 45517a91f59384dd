"""The ledger: every claim has its check, every id its row, and losing one is noticed."""

import re
from collections import Counter

import pytest
from test_language import PAGES, sources

from mlgd.book import ledger
from mlgd.book.chapters import BOOK
from mlgd.book.pieces import KINDS, OURS, VERDICTS, Check, read_table, slug


def problems(
    claims: list[dict], homes: dict[str, str], pages: dict[str, list]
) -> list[str]:
    """What is wrong between claims, ids and checks, one sentence each; empty when all is well."""
    rows = ledger.join(claims, homes, pages)
    known = Counter(r.id for r in rows)
    out = [f"{i}: stands {n} times in claims.tsv" for i, n in known.items() if n > 1]
    for row in rows:
        if not row.checks:
            out.append(
                f"{row.id}: no check names this row; add one to {row.chapter}.ipynb"
            )
        elif row.recorded != row.verdict:
            out.append(
                f"{row.id}: recorded {row.recorded!r}, the chapters say {row.verdict!r}"
            )
        if homes.get(row.id) != row.id:
            out.append(f"{row.id}: rows.tsv does not lead to it")
    for i, home in homes.items():
        if home not in known and not home.startswith(ledger.NO_CLAIM):
            out.append(f"{i}: rows.tsv leads to {home}, which is no row")
    for page, checks in pages.items():
        for check in checks:
            strange = [
                i for i in check["ids"] if i not in homes and not i.startswith(OURS)
            ]
            out += [f"{i}: checked in {page}, but no row of claims.tsv" for i in strange]
            if check["kind"] not in KINDS or check["verdict"] not in VERDICTS:
                out.append(
                    f"{check['ids'][0]}: {check['kind']!r}, {check['verdict']!r} in {page}"
                )
    return out


CLAIMS, HOMES = read_table(BOOK / "claims.tsv"), ledger.read_rows(BOOK)
CHECKS = ledger.collect(BOOK)
ROWS = ledger.join(CLAIMS, HOMES, CHECKS)


def test_every_row_has_its_check_and_every_check_its_row():
    assert problems(CLAIMS, HOMES, CHECKS) == []


def test_every_id_of_the_paper_s_list_has_a_row_or_a_reason():
    reasons = [h for h in HOMES.values() if h.startswith(ledger.NO_CLAIM)]
    assert len(HOMES) == 525
    assert len(CLAIMS) + len(reasons) <= 400
    assert all(len(h) > len(ledger.NO_CLAIM) + 5 for h in reasons)


def test_one_scale_of_verdicts():
    for checks in CHECKS.values():
        for check in checks:
            assert (check["kind"] == "measured") == (
                check["verdict"] in ("agrees", "differs")
            )
            assert (check["kind"] == "cited") == (check["verdict"] == "cited")
            if check["verdict"] in ("repaired", "fails"):
                assert check["numbers"], f"{check['ids']}: a counterexample in numbers"
                assert check["repair"], f"{check['ids']}: and what mends it"


def test_a_lost_check_a_flipped_verdict_and_a_lost_row_are_noticed():
    alone = [row for row in ROWS if len(row.checks) == 1]
    assert len(alone) > 50
    for row in alone[::10]:
        check = row.checks[0]
        flipped = {
            **check,
            "verdict": "fails" if check["verdict"] == "holds" else "holds",
        }
        others = [c for c in CHECKS[check["page"]] if c["anchor"] != check["anchor"]]
        for change in ([], [flipped]):
            found = problems(CLAIMS, HOMES, {**CHECKS, check["page"]: others + change})
            assert any(p.startswith(f"{row.id}: ") for p in found)
    for n in range(0, len(CLAIMS), 40):
        found = problems([*CLAIMS[:n], *CLAIMS[n + 1 :]], HOMES, CHECKS)
        assert any(f"leads to {CLAIMS[n]['id']}, which is no row" in p for p in found)


def test_errata_name_exactly_the_rows_that_do_not_hold_each_once(book):
    wrong = [row.id for row in ROWS if row.verdict in ("fails", "repaired")]
    named = [i for e in read_table(book / "errata.tsv") for i in e["rows"].split()]
    assert sorted(named) == sorted(wrong)


FIGURE = re.compile(r"(?<![\d.])\d+\.\d+(?![\d.]*\d)")


def test_a_figure_in_an_erratum_stands_on_the_page_of_its_rows(book):
    for erratum in read_table(book / "errata.tsv"):
        pages = {
            c["page"] for r in ROWS if r.id in erratum["rows"].split() for c in r.checks
        }
        text = "".join(PAGES[p].read_text("utf-8") for p in pages)
        known = set(FIGURE.findall(re.sub(r'"image/\w+": "[^"]*"', "", text)))
        typed = set(FIGURE.findall(erratum["says"] + erratum["downstream"]))
        assert typed <= known, f"{erratum['title']}: {typed - known}"


def test_an_id_shares_the_row_and_the_worst_verdict_counts():
    records = [
        {"ids": [i], "kind": "identity", "verdict": v, "anchor": f"check-{i}"}
        for i, v in (("a", "holds"), ("b", "fails"))
    ]
    claim = {
        "id": "a",
        "chapter": "part",
        "where": "l.1",
        "claim": "x",
        "verdict": "fails",
    }
    (row,) = ledger.join([claim], {"a": "a", "b": "a"}, {"audit/part": records})
    assert (row.verdict, row.ids, len(row.checks)) == ("fails", ("a", "b"), 2)


STATEMENT = re.compile(r"^(`{3,})\{prf:(?!proof)(\w+)\}.*?^\1$", re.M | re.S)
MARK = re.compile(r'class="mlgd-mark" href="(?:\.\./)?ledger\.html#row-([^"]+)"')


def test_every_statement_about_the_paper_carries_a_mark_that_leads_to_its_row():
    about = {r["chapter"] for r in CLAIMS}
    known = {slug(i) for i in HOMES}
    found = [
        (name, m.group(0))
        for name, path in PAGES.items()
        if name.removeprefix("audit/") in about
        for text in sources(path, "markdown")
        for m in STATEMENT.finditer(text)
    ]
    assert len(found) > 10
    marks = [(name, box.splitlines()[0], MARK.search(box)) for name, box in found]
    assert [
        (n, title) for n, title, mark in marks if not mark or mark[1] not in known
    ] == []


@pytest.mark.built
def test_errata_and_filter_show_what_is_asked_for(visit, html, book):
    page, problems = visit(html / "book" / "ledger.html")

    def shown():
        return page.locator("table.mlgd-ledger tbody tr:not([hidden])").count()

    assert shown() == len(ROWS)
    assert page.locator(".mlgd-erratum").count() == len(read_table(book / "errata.tsv"))
    page.locator(".mlgd-filter select").first.select_option("fails")
    assert shown() == sum(r.verdict == "fails" for r in ROWS) > 0
    page.locator(".mlgd-filter input[type=search]").fill("no such words anywhere")
    assert shown() == 0
    assert problems == []
    page.close()


def test_the_book_s_own_theorems_are_no_claims_of_the_paper():
    check = {
        "ids": ["ours:anchored/step"],
        "kind": "identity",
        "verdict": "holds",
        "anchor": "x",
    }
    assert problems([], {}, {"anchored": [check]}) == []
    assert problems([], {}, {"anchored": [check | {"ids": ["anchored/step"]}]}) != []
    assert (
        "href"
        not in Check(("ours:anchored/step",), "identity", "holds", "so it is").html()
    )
