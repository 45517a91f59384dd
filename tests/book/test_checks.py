"""The language of checks: each kind confirms a true claim, refuses a false one, and refuses to be unable to fail."""

import json

import numpy as np
import pytest
import sympy as sp
from mpmath import iv

from mlgd.book import boxes
from mlgd.book.boxes import MIME, Check, checks_in, in_view
from mlgd.book.checks import (
    TAIL,
    CheckFailed,
    certificate,
    cited,
    enclosure,
    exact,
    group,
    identity,
    measured,
    refuted,
    show,
    statistical,
)
from mlgd.book.pieces import slug
from mlgd.book.twins import alike, failing_point, is_zero, sample, student

x, y = sp.symbols("x y", positive=True)
r = sp.Symbol("r", real=True)
computed = round(np.hypot(3.0, 4.0)) - 1  # four, and not typed


# --- identities --------------------------------------------------------------------------------------------


def test_an_identity_holds_and_shows_one_formula_where_both_sides_print_alike():
    check = identity("row/three", "powers", (x**2 * x, (2**x) ** 2), (x**3, 4**x))
    assert (check.kind, check.verdict, check.ids) == ("identity", "holds", ("row/three",))
    assert check.lines == ("$2^{2 x}=4^{x}$", "both sides: $x^{3}$")
    assert check.twin == "eleven tenths of it, or an exponent off by one eighth, is refused"
    assert identity("row", "", x + x, 2 * x, detail=("one", "two")).lines == ("one", "two")


@pytest.mark.parametrize(
    ("left", "right"),
    [(x**2, x**3), ((x, y), (x, 2 * y)), (x, sp.Rational(11, 10) * x), (x, x ** sp.Rational(9, 8))],
)
def test_a_false_identity_is_refused(left, right):
    with pytest.raises(CheckFailed, match="differs from"):
        identity("row", "", left, right)


def test_every_pair_of_an_identity_gets_its_near_misses(monkeypatch):
    seen = []
    monkeypatch.setattr("mlgd.book.checks.is_zero", lambda e: seen.append(e) or is_zero(e))
    identity("row", "", (x + x, x * y), (2 * x, y * x))
    assert (
        len(seen) == 2 + 2 + 3
    )  # two claims; a constant and one exponent; a constant and two exponents


def test_a_near_miss_of_another_kind_is_refused():
    assert (
        "without the square"
        in identity("row", "", x + x, 2 * x, near=3 * x, why="without the square").twin
    )
    for near, why in ((y, "y"), (5 * x, "five"), (2, "no x"), (3 * x, "")):
        with pytest.raises(ValueError, match="is no near miss"):
            identity("row", "", x + x, 2 * x, near=near, why=why)
    with pytest.raises(CheckFailed, match="is not refused"):
        identity("row", "", (x + 1) ** 2, x**2 + 2 * x + 1, near=(1 + x) ** 2, why="the same")


def test_a_right_side_of_zero_has_no_constant_to_be_off():
    with pytest.raises(ValueError, match="the right side is 0"):
        identity("row", "", sp.diff(x, y), 0)
    assert (
        identity("row", "", sp.diff(x * x, y) * x, 0, near=x * 0 + 0.1, why="a tenth").verdict
        == "holds"
    )


def test_zero_is_decided_only_where_it_is_true():
    assert is_zero(sp.log(x * y) - sp.log(x) - sp.log(y))
    assert not is_zero(sp.log(r**2) - 2 * sp.log(r))  # false for negative r
    assert not is_zero(sp.sqrt(r**2) - r)
    assert is_zero(sp.sqrt(x**2) - x)
    assert all(
        value.is_Rational for value in sample({x, y, r}).values()
    )  # a float there would make true sums look wrong


# --- certificates ------------------------------------------------------------------------------------------


def true_certificate(**changes):
    """x^2 + y^2 >= 2xy."""
    arguments = {"lhs": 2 * x * y, "rhs": x**2 + y**2, "terms": [(x - y) ** 2]}
    return certificate("row/one", "a statement", **(arguments | changes))


def test_a_certificate_holds_shows_its_terms_and_finds_where_its_near_miss_fails():
    check = true_certificate()
    assert (check.kind, check.verdict, check.ids) == ("certificate", "holds", ("row/one",))
    assert "left[\\left(x - y\\right)^{2}" in check.lines[0]
    assert "a right side smaller by a tenth fails, by -" in check.twin


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rhs": x**2 + y**2 - 1}, "right - left is not the sum of the terms"),
        ({"terms": [(x - y) ** 2 - 1, 1]}, "is not known to be non-negative"),
        ({"terms": [x - y, (x - y) ** 2 - x + y]}, "is not known to be non-negative"),
        ({"at": {x: 1, y: 2}}, "does not fail at"),
        ({"at": {x: 1}}, "does not fail at"),
        ({"at": {x: -1, y: -1}}, "is not one where the hypotheses hold"),
        ({"lhs": x * y, "terms": [(x - y) ** 2, x * y]}, "found no point where it fails"),
        ({"near": x**2 + y**2, "why": "the same"}, "found no point where it fails"),
    ],
)
def test_a_false_certificate_or_one_that_nothing_refutes_is_refused(changes, message):
    with pytest.raises(CheckFailed, match=message):
        true_certificate(**changes)


def test_slack_is_owned_up_to():
    slack = {"lhs": x * y, "terms": [(x - y) ** 2, x * y]}
    assert (
        "half of it fails"
        in true_certificate(**slack, near=(x**2 + y**2) / 3, why="half of it").twin
    )
    with pytest.raises(ValueError, match="need why="):
        true_certificate(**slack, near=(x**2 + y**2) / 3)
    with pytest.raises(ValueError, match="is no near miss"):
        true_certificate(**slack, near=(x**2 + y**2) / 30, why="a thirtieth")
    with pytest.raises(ValueError, match="the right side is 0"):
        certificate("row", "", lhs=x - y, rhs=0, terms=[y - x], given=[y - x])


def test_hypotheses_are_used_respected_and_dropped():
    good = {"lhs": x, "rhs": y, "terms": [y - x], "given": {y - x: "y is the larger"}}
    assert "y is the larger" in certificate("row/two", "", **good).lines[1]
    certificate("row/two", "", **(good | {"given": [y - x]}))
    with pytest.raises(CheckFailed, match="not known to be non-negative"):
        certificate("row/two", "", **(good | {"given": ()}))
    with pytest.raises(CheckFailed, match="not one where the hypotheses hold"):
        certificate("row/two", "", **good, at={x: 2, y: 1})
    assert "any two fails" in certificate("row/two", "", **good, drop=y - x, why="any two").twin
    with pytest.raises(ValueError, match="none of the hypotheses"):
        certificate("row/two", "", **good, drop=x - y, why="any two")
    with pytest.raises(
        CheckFailed, match="not known to be non-negative"
    ):  # a negative multiple of a hypothesis
        certificate("row", "", lhs=y, rhs=x, terms=[x - y], given=[y - x])


def test_names_and_details_reach_the_reader():
    check = true_certificate(names={x: "X_0"}, at={x: 1, y: 1})
    assert "X_0" in check.lines[0]
    assert "$X_0=1$" in check.twin
    assert true_certificate(detail="short").lines == ("short",)


def test_the_search_makes_every_hypothesis_tight():
    u, v, w = sp.symbols("u v w", real=True)
    hypotheses = [x - u, y - v, 1 - x * y, w - u - v]
    at = failing_point(w - sp.Rational(19, 10), hypotheses, [*hypotheses, x - y])
    assert at[w] < sp.Rational(19, 10)
    assert all(g.subs(at) >= 0 for g in hypotheses)
    assert failing_point(x + y, hypotheses, hypotheses) is None


# --- enclosures --------------------------------------------------------------------------------------------


def test_an_enclosure_covers_the_box():
    box, near = {"t": (0, 1)}, lambda t: iv.mpf("0.24") - t * (1 - t)
    check = enclosure(
        "row/four",
        "t (1 - t) < 0.26",
        lambda t: iv.mpf("0.26") - t * (1 - t),
        box,
        near=near,
        why="0.24",
    )
    assert check.kind == "enclosure"
    assert "t in [0, 1]: positive on each of" in check.lines[0]


@pytest.mark.parametrize(
    ("f", "near", "message"),
    [
        (lambda t: t - 0.5, lambda t: t - 2, "not proved positive"),
        (lambda t: t * t, lambda t: t - 2, "not proved positive"),
        (lambda t: t + 1, lambda t: t + 2, "is not refused"),
        (lambda t: t + 1, lambda t: t * t, "is not refused"),
    ],
)
def test_an_enclosure_that_is_false_or_touches_zero_is_refused(f, near, message):
    with pytest.raises(CheckFailed, match=message):
        enclosure("row", "", f, {"t": (0, 1)}, near=near, why="", pieces=200)


def test_an_enclosure_has_as_many_dimensions_as_its_box():
    def gap(a, b):
        return a * a + b * b - 2 * a * b + 1

    assert enclosure(
        "row", "", gap, {"a": (0, 2), "b": (0, 1)}, near=lambda a, b: gap(a, b) - 2, why=""
    )


# --- computed evidence -------------------------------------------------------------------------------------


def test_exact():
    check = exact("row/five", "even", lambda n: n % 2 == 0, computed, near=3, why="three")
    assert (check.kind, check.twin) == ("exact run", "three is refused")
    with pytest.raises(CheckFailed, match="the test fails"):
        exact("row", "", lambda n: n % 2 == 1, computed, near=3, why="")
    with pytest.raises(CheckFailed, match="accepts the near miss"):
        exact("row", "", lambda n: n % 2 == 0, computed, near=6, why="six")
    with pytest.raises(ValueError, match="not of on='s kind"):
        exact("row", "", lambda n: n % 2 == 0, computed, near=33, why="far")


def test_alike_judges_kind_and_size():
    assert alike({"a": 1.0, "b": (2, 3)}, {"a": 3.0, "b": (1, 3)})
    assert alike(np.array([3.0, 4.0]), np.array([0.0, 6.0]))
    assert alike(x**2, x ** sp.Rational(17, 8))
    assert alike(len, sum)
    assert alike(0, 1)
    for a, b in (
        ({"a": 1.0}, {"b": 1.0}),
        ((1, 2), (1, 2, 3)),
        (1.0, -1.0),
        (1.0, 5.0),
        (x, y),
        (np.ones(2), np.ones(3)),
        (np.ones(2), 9 * np.ones(2)),
        (1.0, "one"),
        ([1], 1),
        (0, 2),
    ):
        assert not alike(a, b), (a, b)


def noise(rng, n):
    return rng.normal(1.0, 1.0, n)


def louder(rng, n):
    return rng.normal(1.3, 1.0, n)


def test_statistical_below_and_equal():
    below = statistical("row/six", "", noise, 1.1, runs=10000, twin=louder, why="a louder process")
    assert below.kind == "statistical"
    assert "a louder process is refused, with mean $1.2" in below.twin
    assert "10000 runs: mean $0.99" in below.lines[0] or "10000 runs: mean $1" in below.lines[0]
    equal = statistical("row/six", "", noise, 1.0, side="equal", runs=10000)
    assert equal.twin == "the value off by ten percent is refused"
    assert statistical(
        "row",
        "",
        lambda g, n: noise(g, n) - 1,
        0.0,
        side="equal",
        runs=999,
        twin=noise,
        why="one more",
    )


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"bound": 1.0}, CheckFailed, "against 1 "),
        ({"bound": 1.2, "side": "equal"}, CheckFailed, "against"),
        ({"bound": 1.5}, CheckFailed, "the twin is accepted"),
        ({"side": "equal", "bound": 1.0, "runs": 100}, CheckFailed, "is accepted too"),
        ({"twin": None}, ValueError, "give twin="),
        ({"why": ""}, ValueError, "needs why="),
        ({"run": lambda rng, n: np.ones(n)}, ValueError, "does not look at its generator"),
        ({"run": lambda rng, n: 0 * rng.normal(size=n)}, ValueError, "values that vary"),
        ({"run": lambda rng, n: rng.normal(size=3)}, ValueError, "10000 values"),
        ({"side": "above"}, ValueError, "side is"),
    ],
)
def test_a_false_statistic_or_one_without_a_twin_is_refused(changes, error, message):
    arguments = {
        "run": noise,
        "bound": 1.1,
        "runs": 10000,
        "twin": louder,
        "why": "louder",
    } | changes
    with pytest.raises(error, match=message):
        statistical("row", "", **arguments)


def test_the_false_alarm_rate_is_below_one_in_a_million_for_few_runs_too():
    from scipy.stats import t

    for degrees in (1, 2, 11, 59, 999, 10**5):
        assert t.sf(student(degrees, TAIL), degrees) == pytest.approx(TAIL, rel=1e-3)
    assert 2 * TAIL <= 1e-6


seeds = np.linspace(2.9, 3.1, 5)


def test_measured():
    agree = measured("row/seven", "", ours=seeds, paper="3.05")
    assert agree.verdict == "holds"
    assert agree.lines == (r"ours $3\pm0.04$, the paper $3.05$: they agree",)
    assert agree.twin == "0 and 6.1 would be refused"
    apart = measured("row/seven", "", ours=seeds, paper="3.5", expect="fails")
    assert (apart.verdict, apart.records[0]["numbers"]) == ("fails", list(apart.lines))
    assert "they do not agree" in apart.lines[0]
    assert "they do not agree" in apart.html().partition("<details")[0]
    one = measured("row", "", ours=seeds, paper="3.06", paper_is="one run")
    assert "the paper's lies above 80% of our 5 seeds" in one.lines[0]
    assert (
        measured("row", "", ours=(seeds[0], 0.1), paper="3.1", paper_spread=0.1).verdict == "holds"
    )
    assert (
        measured("row", "", ours=seeds[0] + 0.04, paper="2.9", why_no_spread="exact").lines[-1]
        == "exact"
    )
    assert measured("row", "", ours=seeds, paper="3.5", side="below").verdict == "holds"
    assert measured("row", "", ours=seeds, paper="2.5", side="above").verdict == "holds"


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"paper": "3.5"}, CheckFailed, "fails, not holds"),
        ({"expect": "fails"}, CheckFailed, "holds, not fails"),
        ({"ours": 2.99}, ValueError, "ours needs a value per seed"),
        ({"ours": 2.96, "why_no_spread": "exact"}, CheckFailed, "fails, not holds"),
        ({"ours": (3.0, 1.0)}, ValueError, "would also accept 0"),
        ({"paper": "2.0", "paper_spread": 0.7}, ValueError, "would also accept 4"),
        ({"side": "below", "paper": "2.99"}, CheckFailed, "fails, not holds"),
    ],
)
def test_a_figure_that_differs_or_is_no_evidence_is_refused(changes, error, message):
    arguments = {"ours": seeds, "paper": "3.00"} | changes
    with pytest.raises(error, match=message):
        measured("row", "", **arguments)


def test_cited():
    check = cited("row/eight", "as they say", "giles2008")
    assert (check.kind, check.verdict, check.lines) == ("cited", "cited", ("source: giles2008",))


def test_refuted_takes_the_kind_of_its_repair():
    repair = true_certificate()
    arguments = {"at": computed, "passes_at": 3, "numbers": "four is not odd", "repair": repair}
    check = refuted("row/nine", "odd", lambda n: n % 2, **arguments)
    assert (check.kind, check.verdict, check.repair) == ("certificate", "repaired", repair)
    assert refuted("row", "odd", lambda n: n % 2, **arguments, verdict="fails").verdict == "fails"
    with pytest.raises(CheckFailed, match="does not refute"):
        refuted("row", "", lambda n: n > 0, **arguments)
    with pytest.raises(CheckFailed, match="can never pass"):
        refuted("row", "", lambda n: n < 0, **arguments)
    with pytest.raises(ValueError, match="verdict is 'repaired' or 'fails', not 'holds'"):
        refuted("row", "", lambda n: n % 2, **arguments, verdict="holds")
    with pytest.raises(ValueError, match="not near at="):
        refuted("row", "", lambda n: n % 2, **(arguments | {"passes_at": 33}))
    far = refuted(
        "row", "", lambda n: n % 2, **(arguments | {"passes_at": 33}), why="no odd number is nearer"
    )
    assert far.lines[-1] == "no odd number is nearer"


# --- two sides that someone typed ----------------------------------------------------------------------------


def test_two_typed_sides_are_refused():
    three_quarters = 0.75
    repair = true_certificate()
    for attempt in (
        lambda: identity("row", "", sp.Rational(3, 4), 0.75),
        lambda: identity("row", "", (sp.Integer(3), 2), (3, 2.0)),
        lambda: identity("row", "", three_quarters, sp.Rational(3, 4)),
        lambda: identity("row", "", float("0.75"), sp.S(3) / 4),
        lambda: certificate("row", "", lhs=1, rhs=sp.Integer(2), terms=[sp.Integer(1)]),
        lambda: exact("row", "", lambda v: v == 3, 3, near=4, why=""),
        lambda: exact("row", "", lambda v: abs(v - three_quarters) < 0.1, [0.7][0], near=1, why=""),
        lambda: measured("row", "", ours=2.9, paper="3", why_no_spread="typed"),
        lambda: measured("row", "", ours=(three_quarters, 0.1), paper="0.7"),
        lambda: refuted("row", "", lambda v: v < 3, at=3, passes_at=2, numbers="", repair=repair),
    ):
        with pytest.raises(ValueError, match="typed"):
            attempt()


def test_what_is_computed_is_not_called_typed():
    limit = np.hypot(3.0, 4.0)
    assert identity("row", "", sp.integrate(x, (x, 0, 1)), sp.Rational(1, 2))
    assert identity("row", "", sp.zeta(2), sp.pi**2 / 6)
    assert exact("row", "", lambda v: v <= limit, 5.0, near=5.1, why="")
    for value in (computed, computed + 0):
        assert exact("row", "", lambda v: v == 4, value, near=5, why="")


def test_the_same_words_twice_and_a_deaf_test_are_refused():
    with pytest.raises(ValueError, match="the same words"):
        identity("row", "", x * computed, x * computed)
    with pytest.raises(ValueError, match="does not look at its argument"):
        exact("row", "", lambda v: computed == 4, computed, near=5, why="")


# --- what a reader and the ledger see ----------------------------------------------------------------------


def failing_check():
    numbers, repair = {"numbers": "$1$", "verdict": "fails"}, true_certificate()
    return refuted(
        ("eq:a/b", "eq:c"),
        "is $x<y$ & so",
        lambda n: n % 2,
        at=computed,
        passes_at=3,
        repair=repair,
        **numbers,
    )


def test_a_check_displays_as_text_html_and_record():
    check = failing_check()
    bundle = check._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", MIME}
    assert bundle["text/plain"].startswith("[fails] is $x<y$ & so")
    assert r"Is \(x&lt;y\) &amp; so." in bundle["text/html"]
    assert "href='ledger.html#row-eq-a-b'" in bundle["text/html"]
    in_the_open, _, folded = bundle["text/html"].partition("<details class='mlgd-fold' open>")
    assert r"\(1\)" in in_the_open
    assert "<b>Repair.</b> A statement." in in_the_open
    assert "near miss: " in folded
    [record] = bundle[MIME]["checks"]
    assert record | {"anchor": ""} == {
        "ids": ["eq:a/b", "eq:c"],
        "kind": "certificate",
        "verdict": "fails",
        "statement": "is $x<y$ & so",
        "anchor": "",
        "numbers": ["$1$"],
        "repair": "a statement",
    }
    assert f"id='{record['anchor']}'" in bundle["text/html"]


def test_links_lead_up_from_the_folder_of_audits(tmp_path, monkeypatch):
    (tmp_path / "audit").mkdir()
    monkeypatch.chdir(tmp_path / "audit")
    assert "href='../ledger.html#row-row-a'" in cited("row/a", "first", "key").html()


def test_an_anchor_depends_on_what_is_checked_alone():
    one, again = cited("same/row", "one", "key"), cited("same/row", "one", "key")
    other = cited("same/row", "other", "key")
    assert one.anchor == again.anchor != other.anchor
    assert one.anchor.startswith("check-same-row-")
    assert slug("prop:oracle/cost-htmc") == "prop-oracle-cost-htmc"


def test_a_group_folds_what_holds_and_leaves_the_rest_open():
    held = [true_certificate(), identity("row/b", "two", x + x, 2 * x)]
    box = group(
        "Lines 3 to 9: $x$ is small", *held, failing_check(), cited("row/c", "known", "key")
    )
    in_the_open, _, folded = box.html().partition("<summary>2 checks hold, 1 cited</summary>")
    assert "Is \\(x" in in_the_open
    for statement in ("Known.", "Two."):
        assert statement in folded
        assert statement not in in_the_open
    assert box.html().count("</details>") == box.html().count("<details") == 2
    assert box.in_view == 2
    assert "one check holds" in group("Title", held[0]).html()
    assert str(box).startswith("Lines 3 to 9: $x$ is small\n[holds] a statement")
    with pytest.raises(ValueError, match="a title"):
        group("Title")


def test_a_check_names_a_row():
    with pytest.raises(ValueError, match="at least one row"):
        cited((), "nothing", "key")


def test_show_displays_each(capsys):
    show(cited("row/a", "first", "key"), cited("row/b", "second", "key"))
    printed = capsys.readouterr().out
    assert "first" in printed
    assert "second" in printed


def test_the_kinds_and_verdicts_are_the_designs():
    assert boxes.KINDS == (
        "certificate",
        "identity",
        "enclosure",
        "exact run",
        "statistical",
        "measured",
        "cited",
    )
    assert boxes.VERDICTS == ("holds", "repaired", "fails", "cited")


def test_the_records_of_a_notebook_are_read_in_order(tmp_path):
    single = Check(("a/one",), "identity", "holds", "one")
    both = group("Title", Check(("a/two",), "identity", "holds", "two"), failing_check())
    outputs = [{"data": {MIME: c._repr_mimebundle_()[MIME]}} for c in (single, both)]
    cells = [
        {"cell_type": "markdown"},
        {"outputs": [outputs[0], {"text": "no data"}]},
        {"outputs": outputs[1:]},
    ]
    (tmp_path / "part.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert [r["ids"][0] for r in checks_in(tmp_path / "part.ipynb")] == ["a/one", "a/two", "eq:a/b"]
    assert in_view(tmp_path / "part.ipynb") == 1 + 2
