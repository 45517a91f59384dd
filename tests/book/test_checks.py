"""mlgd.book.checks: each kind of check passes on a true claim, and refuses a false one and a twin that is not broken."""

import json

import numpy as np
import pytest
import sympy as sp
from mpmath import iv

from mlgd.book import checks as claims
from mlgd.book.checks import (
    CheckFailed,
    certificate,
    checks_in,
    cited,
    enclosure,
    exact,
    identity,
    is_zero,
    measured,
    refuted,
    show,
    slug,
    statistical,
)

x, y = sp.symbols("x y", positive=True)
r = sp.Symbol("r", real=True)


def true_certificate(**changes):
    """x^2 + y^2 >= 2xy, and its twin x^2 + y^2 >= 3xy."""
    arguments = {
        "lhs": 2 * x * y,
        "rhs": x**2 + y**2,
        "terms": [(x - y) ** 2],
        "broken": {"lhs": 3 * x * y, "at": {x: 1, y: 1}, "why": "3 for 2"},
    }
    return certificate("row/one", "a statement", **(arguments | changes))


# --- certificates ------------------------------------------------------------------------------------------


def test_a_certificate_holds_and_shows_its_terms():
    check = true_certificate()
    assert (check.kind, check.verdict, check.ids) == ("certificate", "holds", ("row/one",))
    assert "left[\\left(x - y\\right)^{2}" in check.lines[0]
    assert "3 for 2 fails, by -1" in check.twin


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rhs": x**2 + y**2 - 1}, "right - left is not the sum of the terms"),
        ({"terms": [(x - y) ** 2 - 1, 1]}, "is not known to be non-negative"),
        ({"terms": [x - y, (x - y) ** 2 - x + y]}, "is not known to be non-negative"),
        ({"broken": {"lhs": x * y, "at": {x: 1, y: 1}}}, "the broken twin is not refuted"),
        ({"broken": {"lhs": 3 * x * y, "at": {x: 1}}}, "the broken twin is not refuted"),
    ],
)
def test_a_false_certificate_or_twin_is_refused(changes, message):
    with pytest.raises(CheckFailed, match=message):
        true_certificate(**changes)


def test_hypotheses_are_used_and_respected():
    given = {y - x: "y is the larger"}
    good = {"lhs": x, "rhs": y, "terms": [y - x], "given": given}
    check = certificate("row/two", "", **good, broken={"rhs": y / 2, "at": {x: 1, y: 1}})
    assert "y is the larger" in check.lines[1]
    certificate("row/two", "", **(good | {"given": [y - x]}), broken={"rhs": y / 2, "at": {x: 1, y: 1}})
    with pytest.raises(CheckFailed, match="not known to be non-negative"):
        certificate("row/two", "", **(good | {"given": ()}), broken={"rhs": y / 2, "at": {x: 1, y: 1}})
    with pytest.raises(CheckFailed, match="violates a hypothesis"):
        certificate("row/two", "", **good, broken={"rhs": y / 2, "at": {x: 2, y: 1}})


def test_a_negative_multiple_of_a_hypothesis_is_no_hypothesis():
    with pytest.raises(CheckFailed, match="not known to be non-negative"):
        certificate("row", "", lhs=y, rhs=x, terms=[x - y], given=[y - x], broken={"rhs": x / 9, "at": {x: 1, y: 1}})


def test_names_and_details_reach_the_reader():
    check = true_certificate(names={x: "X_0"})
    assert "X_0" in check.lines[0]
    assert "$X_0=1$" in check.twin
    assert true_certificate(detail="short").lines == ("short",)


# --- identities --------------------------------------------------------------------------------------------


def test_an_identity_holds():
    check = identity("row/three", "powers", (x**2 * x, (2**x) ** 2), (x**3, 4**x), broken=x**2)
    assert check.kind == "identity"
    assert check.lines == ("$2^{2 x}=4^{x}$",)  # a pair that prints alike is left out
    assert identity("row", "", x + x, 2 * x, broken=x, detail=("one", "two")).lines == ("one", "two")


@pytest.mark.parametrize(
    ("left", "right", "broken", "message"),
    [
        (x**2, x**3, x, "differs from"),
        (x**2 - y**2, (x - y) * (x + y), x**2 - y**2, "the broken twin is not caught"),
        ((x, y), (x, 2 * y), 0, "differs from"),
    ],
)
def test_a_false_identity_or_twin_is_refused(left, right, broken, message):
    with pytest.raises(CheckFailed, match=message):
        identity("row", "", left, right, broken=broken)


def test_zero_is_decided_only_where_it_is_true():
    assert is_zero(sp.log(x * y) - sp.log(x) - sp.log(y))
    assert not is_zero(sp.log(r**2) - 2 * sp.log(r))  # false for negative r
    assert not is_zero(sp.sqrt(r**2) - r)
    assert is_zero(sp.sqrt(x**2) - x)


# --- enclosures --------------------------------------------------------------------------------------------


def test_an_enclosure_covers_the_box():
    check = enclosure(
        "row/four",
        "t (1 - t) < 0.26",
        lambda t: iv.mpf("0.26") - t * (1 - t),
        {"t": (0, 1)},
        broken=lambda t: iv.mpf("0.24") - t * (1 - t),
        why="0.24",
    )
    assert check.kind == "enclosure"
    assert "t in [0, 1]: positive on each of" in check.lines[0]


def test_an_enclosure_that_is_false_or_touches_zero_is_refused():
    with pytest.raises(CheckFailed, match="not proved positive"):
        enclosure("row", "", lambda t: t - 0.5, {"t": (0, 1)}, broken=lambda t: t - 2, why="", pieces=200)
    with pytest.raises(CheckFailed, match="not proved positive"):
        enclosure("row", "", lambda t: t * t, {"t": (0, 1)}, broken=lambda t: t - 2, why="", pieces=200)
    with pytest.raises(CheckFailed, match="the broken twin is not refuted"):
        enclosure("row", "", lambda t: t + 1, {"t": (0, 1)}, broken=lambda t: t + 2, why="", pieces=200)
    with pytest.raises(CheckFailed, match="the broken twin is not refuted"):
        enclosure("row", "", lambda t: t + 1, {"t": (0, 1)}, broken=lambda t: t * t, why="", pieces=200)


def test_an_enclosure_has_as_many_dimensions_as_its_box():
    def gap(a, b):
        return a * a + b * b - 2 * a * b + 1

    box = {"a": (0, 2), "b": (0, 1)}
    assert enclosure("row", "", gap, box, broken=lambda a, b: gap(a, b) - 2, why="")


# --- computed evidence -------------------------------------------------------------------------------------


def test_exact():
    check = exact("row/five", "even", lambda n: n % 2 == 0, 4, broken=3, why="three")
    assert (check.kind, check.twin) == ("exact run", "three is refused")
    with pytest.raises(CheckFailed, match="the test fails"):
        exact("row", "", lambda n: n % 2 == 0, 3, broken=5, why="")
    with pytest.raises(CheckFailed, match="accepts the broken twin"):
        exact("row", "", lambda n: n % 2 == 0, 4, broken=6, why="six")


def test_statistical_below_and_equal():
    sample = np.random.default_rng(0).normal(1.0, 1.0, 10000)
    assert statistical("row/six", "", sample, 1.1, broken=1.0, why="its mean").kind == "statistical"
    assert statistical("row/six", "", sample, 1.0, side="equal", broken=1.2, why="a fifth more").verdict == "holds"
    with pytest.raises(CheckFailed, match="against"):
        statistical("row", "", sample, 1.0, broken=0.5, why="")
    with pytest.raises(CheckFailed, match="against"):
        statistical("row", "", sample, 1.2, side="equal", broken=2.0, why="")
    with pytest.raises(CheckFailed, match=r"the broken twin 1\.3 is accepted"):
        statistical("row", "", sample, 1.2, broken=1.3, why="")
    with pytest.raises(CheckFailed, match=r"the broken twin 1\.001 is accepted"):
        statistical("row", "", sample, 1.0, side="equal", broken=1.001, why="")


def test_the_false_alarm_rate_is_below_one_in_a_million():
    from scipy.stats import norm

    assert norm.sf(claims.Z) < 1e-6
    assert 2 * norm.sf(claims.Z) < 1e-6


def test_measured():
    agree = measured("row/seven", "", ours=3.0, paper=3.1, spread=0.05, broken=4.0)
    assert agree.verdict == "holds"
    apart = measured("row/seven", "", ours=3.0, paper=3.5, spread=0.05, broken=3.05, expect="fails")
    assert apart.verdict == "fails"
    assert "they do not agree" in apart.lines[0]
    assert measured("row", "", ours=3.0, paper=3.1, tolerance=0.2, broken=4.0).verdict == "holds"
    with pytest.raises(CheckFailed, match="fails, not holds"):
        measured("row", "", ours=3.0, paper=3.5, spread=0.05, broken=9.0)
    with pytest.raises(CheckFailed, match="holds, not fails"):
        measured("row", "", ours=3.0, paper=3.1, spread=0.05, broken=9.0, expect="fails")
    with pytest.raises(CheckFailed, match="not told apart"):
        measured("row", "", ours=3.0, paper=3.1, spread=0.05, broken=3.05)
    with pytest.raises(CheckFailed, match="not told apart"):
        measured("row", "", ours=3.0, paper=3.5, spread=0.05, broken=4.0, expect="fails")


def test_cited():
    check = cited("row/eight", "as they say", "giles2008")
    assert (check.kind, check.verdict, check.lines) == ("cited", "cited", ("source: giles2008",))


def test_refuted_takes_the_kind_of_its_repair():
    repair = true_certificate()
    arguments = {"at": 1, "passes_at": 0, "numbers": "one is not zero", "repair": repair}
    check = refuted("row/nine", "zero", lambda n: n == 0, **arguments)
    assert (check.kind, check.verdict, check.repair) == ("certificate", "repaired", repair)
    assert refuted("row", "zero", lambda n: n == 0, **arguments, verdict="fails").verdict == "fails"
    with pytest.raises(CheckFailed, match="does not refute"):
        refuted("row", "", lambda n: True, **arguments)
    with pytest.raises(CheckFailed, match="can never pass"):
        refuted("row", "", lambda n: False, **arguments)
    with pytest.raises(ValueError, match="verdict must be 'repaired' or 'fails', not 'holds'"):
        refuted("row", "", lambda n: n == 0, **arguments, verdict="holds")


def test_a_check_names_a_row():
    with pytest.raises(ValueError, match="at least one claim id"):
        cited((), "nothing", "key")


# --- what a reader and the ledger see ----------------------------------------------------------------------


def test_a_check_displays_as_text_html_and_record():
    repair = true_certificate()
    check = refuted(
        ("eq:a/b", "eq:c"),
        "is $x<y$ & so",
        lambda n: n,
        at=0,
        passes_at=1,
        numbers="$1$",
        repair=repair,
        verdict="fails",
    )
    bundle = check._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", claims.MIME}
    assert bundle["text/plain"].startswith("[fails] is $x<y$ & so")
    assert r"is \(x&lt;y\) &amp; so" in bundle["text/html"]
    assert "ledger.html#row-eq-a-b" in bundle["text/html"]
    assert "<b>Repair</b> (certificate)" in bundle["text/html"]
    assert bundle[claims.MIME]["ids"] == ["eq:a/b", "eq:c"]
    assert bundle[claims.MIME]["verdict"] == "fails"
    assert f"id='{bundle[claims.MIME]['anchor']}'" in bundle["text/html"]


def test_anchors_are_different():
    anchors = [cited("same/row", "", "key").anchor for _ in range(3)]
    assert len(set(anchors)) == 3
    assert slug("prop:oracle/cost-htmc") == "prop-oracle-cost-htmc"


def test_show_displays_each(capsys):
    show(cited("row/a", "first", "key"), cited("row/b", "second", "key"))
    printed = capsys.readouterr().out
    assert "first" in printed
    assert "second" in printed


def test_the_kinds_and_verdicts_are_the_designs():
    assert claims.KINDS == ("certificate", "identity", "enclosure", "exact run", "statistical", "measured", "cited")
    assert claims.VERDICTS == ("holds", "repaired", "fails", "cited")


def test_rows_and_notebooks_are_compared(tmp_path, monkeypatch, capsys):
    book = tmp_path / "book"
    book.mkdir()
    (book / "claims.tsv").write_text(
        "id\tchapter\twhere\tkind\tclaim\na/one\tpart\tl.1\tstep\t$x$\na/two\tpart\tl.2\tstep\t$y$\n", encoding="utf-8"
    )
    record = {"ids": ["a/one", "a/zero"], "kind": "identity", "verdict": "holds", "statement": "", "anchor": ""}
    cells = [{"cell_type": "markdown"}, {"outputs": [{"data": {claims.MIME: record}}, {"text": "no data"}]}]
    (book / "part.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert checks_in(book / "part.ipynb") == [record | {"cell": 1}]
    assert claims.main(["part"]) == 1
    printed = capsys.readouterr().out
    assert "part: 1 of 2 rows checked" in printed
    assert "open    a/two" in printed
    assert "unknown a/zero" in printed
    record["ids"] = ["a/one", "a/two"]
    (book / "part.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert claims.main([]) == 0
