"""Stories stay short, audits stand beside them, rows that say the same have one verdict, and exemptions are few."""

import limits
import nbformat
import pytest
from limits import Problem
from nbformat import v4

from mlgd.book.boxes import MIME
from mlgd.book.ledger import Row

SEEN_UNBUILT = ("code", "cell", "view", "theory", "audit", "folded", "link", "language", "same")


def test_every_exemption_is_of_a_known_kind_about_a_known_place_and_has_a_reason(book):
    for entry in limits.read_table(book / "exemptions.tsv"):
        assert entry["what"] in (*SEEN_UNBUILT, "height")
        assert entry["why"].strip()


def test_exemptions_excuse_what_they_name_and_nothing_else():
    found = [Problem("code", "oracle", "500 lines"), Problem("cell", "oracle", "40 lines")]
    assert (
        limits.unexcused(
            found, {("code", "oracle"), ("cell", "oracle"), ("height", "oracle")}, ["code", "cell"]
        )
        == []
    )
    [needed, needless] = limits.unexcused(
        found, {("code", "oracle"), ("cell", "convex")}, ["code", "cell"]
    )
    assert needed == "oracle (cell): 40 lines"
    assert needless == "convex (cell): take its exemption out, it is not needed"


def notebook(path, *sources, checks=0, prose="", tags=("hide-input",)):
    cells = [
        v4.new_markdown_cell(prose),
        *(v4.new_code_cell(s, metadata={"tags": [*tags]}) for s in sources),
    ]
    outputs = [
        v4.new_output("display_data", data={MIME: {"checks": [{"anchor": str(n)}]}})
        for n in range(checks)
    ]
    cells[1].outputs = outputs
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(v4.new_notebook(cells=cells), path)


def test_a_story_beyond_a_limit_is_named(tmp_path):
    lines = "\n".join(["x = 1"] * 30)
    notebook(tmp_path / "short.ipynb", *[lines] * 10, checks=10)
    notebook(tmp_path / "audit" / "long.ipynb", *[lines * 2] * 20, checks=40)
    notebook(tmp_path / "ledger.ipynb", *[lines] * 20)
    assert limits.story_problems(tmp_path) == []
    notebook(tmp_path / "long.ipynb", *[lines] * 9, lines + "\nx = 2", checks=11)
    assert [p.what for p in limits.story_problems(tmp_path)] == ["code", "cell", "view"]


def test_the_chapters_on_the_paper_have_a_limit_together(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "THEORY", 40)
    for name in ("part", "audit/part", "peers"):
        notebook(tmp_path / f"{name}.ipynb", "\n".join(["x = 1"] * 20))
    assert limits.theory_problems(tmp_path) == []
    notebook(tmp_path / "audit" / "part.ipynb", "\n".join(["x = 1"] * 21))
    assert limits.theory_problems(tmp_path) == [
        Problem("theory", "all", "41 lines of code, at most 40")
    ]


def test_story_and_audit_link_to_one_another(tmp_path):
    (tmp_path / "claims.tsv").write_text("id\tchapter\na\tpart\n")
    notebook(tmp_path / "part.ipynb", "x", prose="See {doc}`audit/part`.")
    assert limits.audit_problems(tmp_path) == [Problem("audit", "part", "has no audit/part")]
    notebook(
        tmp_path / "audit" / "part.ipynb", "x", checks=1, prose="See {doc}`the story <../part>`."
    )
    assert limits.audit_problems(tmp_path) == []
    notebook(tmp_path / "part.ipynb", "x")
    notebook(tmp_path / "audit" / "part.ipynb", "x", prose="See the story.", tags=())
    assert [(p.what, p.where) for p in limits.audit_problems(tmp_path)] == [
        ("audit", "audit/part"),
        ("folded", "audit/part"),
        ("link", "audit/part"),
        ("link", "part"),
    ]


def row(name, verdict):
    return Row(name, "part", "", "step", "", "", ({"verdict": verdict, "kind": "identity"},))


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ([("a b", "")], []),
        ([("a c", "")], ["one statement, different verdicts: a holds, c fails"]),
        ([("a c", "two readings")], []),
        ([("a b", "two readings")], ["gives a reason for verdicts that do not differ"]),
        ([("a x", "")], ["is in same.tsv, but no row of claims.tsv"]),
        ([("a b", ""), ("b a", "")], ["stands in two groups of same.tsv"] * 2),
        ([("a", "")], ["is alone in its group"]),
    ],
)
def test_rows_that_say_the_same_have_one_verdict_or_a_reason(groups, says):
    rows = [row("a", "holds"), row("b", "holds"), row("c", "fails")]
    found = limits.same_problems(rows, [{"ids": ids, "why": why} for ids, why in groups])
    assert [p.says for p in found] == says


def test_the_old_language_is_noticed(tmp_path):
    notebook(tmp_path / "new.ipynb", "x", checks=2)
    assert limits.language_problems(tmp_path) == []
    stored = v4.new_output("display_data", data={MIME: {"ids": ["a"], "anchor": "a"}})
    nbformat.write(
        v4.new_notebook(cells=[v4.new_code_cell("x", outputs=[stored])]), tmp_path / "old.ipynb"
    )
    assert [p.where for p in limits.language_problems(tmp_path)] == ["old"]
