"""The language of checks: what is shown is what is compared, and every kind notices."""

import pytest
import sympy as sp

from mlgd.book.checks import (
    CheckFailed,
    certificate,
    cited,
    equal,
    exact,
    group,
    identity,
    measured,
    refuted,
)
from mlgd.book.pieces import MIME, Check

x, y = sp.symbols("x y", positive=True)
k, n = sp.symbols("k n", integer=True, positive=True)
SEEDS = [2.9, 3.1, 3.0, 2.95]
BIG = {x - 1: "in range"}


def summed(right=n * (n + 1) / 2) -> Check:
    return identity("row", "The sum", sp.Sum(k, (k, 1, n)), right)


def mean(right=x**2 + y**2) -> Check:
    return certificate("row", "Means", 2 * x * y, right, [(x - y) ** 2])


def computed(bound=1.0, slack="") -> Check:
    return exact("row", "Prices", [0.2, 0.95], "<=", bound, slack=slack)


def slope(paper="3.0") -> Check:
    return measured("row", "The slope", SEEDS, paper, spread=0.05)


def refutation(right=2 * x, repair="row") -> Check:
    mended = certificate(repair, "Mended", 2 * x + 1, 4 * x, [x - 1, x], BIG)
    return refuted("row", "Printed", 2 * x + 1, "<=", right, at={x: 4}, repair=mended)


@pytest.mark.parametrize(
    ("check", "verdict", "shown"),
    [
        (summed, "holds", r"The sum: $\sum_{k=1}^{n} k=\frac{n (n + 1)}{2}$"),
        (mean, "holds", r"Means: $2 x y\le x^{2} + y^{2}$"),
        (computed, "holds", r"Prices: $0.95\le 1$"),
        (
            slope,
            "agrees",
            r"The slope: $\text{ours }2.99\pm0.04,\ \text{the paper }3\pm0.05$",
        ),
        (refutation, "repaired", r"Printed: $2 x + 1\le 2 x$"),
    ],
)
def test_a_check_shows_what_it_compares(check, verdict, shown):
    made = check()
    assert (made.verdict, made.statement) == (verdict, shown)
    assert f"[{verdict}] {shown}" in str(made)
    markup = made.html()
    assert markup.count("<details") == 1
    assert "open" not in markup.split("<summary>")[0]
    assert ">row<" not in markup, "row ids are not for the reader"
    (record,) = made._repr_mimebundle_()[MIME]["checks"]
    assert (record["ids"], record["verdict"]) == (["row"], verdict)


@pytest.mark.parametrize(
    "wrong",
    [
        *(
            lambda f=f: summed(f)
            for f in (1.1 * n * (n + 1) / 2, n * (n - 1) / 2, n**2 / 2)
        ),
        *(lambda f=f: mean(f) for f in (1.1 * x**2 + y**2, x**2 - y**2, x**2.125 + y**2)),
        lambda: computed(0.9),
        lambda: refutation(2 * x + 1),
        lambda: exact("row", "", [1.0, 2.0], "=", [1.0, 2.000001]),
        lambda: certificate("row", "", x, 2 * x, [x - 1, 1]),
    ],
)
def test_a_wrong_constant_exponent_or_sign_is_noticed(wrong):
    with pytest.raises(CheckFailed):
        wrong()


@pytest.mark.parametrize(
    ("blind", "sentence"),
    [
        (lambda: computed(1.2), "ten percent would not be noticed"),
        (lambda: computed(1.0, "why"), "no slack to explain"),
        (lambda: identity("row", "", x, x), "both sides read x"),
        (
            lambda: identity("row", "", sp.Integer(0), sp.Integer(0)),
            "the right side is 0",
        ),
        (lambda: certificate("row", "", x, y, [y - x], {y - x: "?"}), "the claim itself"),
        (lambda: exact("row", "", [0.0], "=", 0.0), "figures of 0"),
        (lambda: measured("row", "", (3.0, 1.0), "3.0"), "twice or half"),
        (lambda: measured("row", "", 3.0, "3.0"), "a value per seed"),
        (lambda: refutation(repair="another"), "the repair is one of"),
        (lambda: group(""), "a title and at least one check"),
    ],
)
def test_a_check_that_could_not_fail_is_refused(blind, sentence):
    with pytest.raises(ValueError, match=sentence):
        blind()


def test_slack_is_stated_with_its_size_and_reason():
    (line,) = exact(
        "row", "", 1.0, "<=", 2.0, slack="levels are better than promised"
    ).evidence
    assert "0.5$ of the bound; levels are better" in line


def test_a_figure_that_moves_apart_differs():
    assert (
        slope("2.0").verdict == slope("6.0").verdict == slope("1.5").verdict == "differs"
    )


def test_a_refutation_says_what_its_repair_says_of_the_counterexample():
    assert refutation().against[1:] == (r"At the same point the repair gives $9\le 16$.",)
    more = {"at": {x: sp.Rational(1, 2)}, "repair": refutation().repair}
    made = refuted("row", "Printed", 2 * x + 1, "<=", 3 * x, verdict="fails", **more)
    assert made.against[1:] == (
        r"The repair assumes $x - 1\ge 0$; here the left side is $-0.5$.",
    )
    assert refuted("row", "", 2, "<=", 1, repair=mean()).against[1:] == ()


def test_what_is_only_computed_is_named_in_words():
    made = identity("row", "It is {} here", {"degree": sp.degree(x**3, x)}, 3)
    assert made.statement == r"It is $\text{degree}=3$ here"


def test_a_group_shows_what_does_not_hold_and_folds_the_rest():
    made = group("A passage", mean(), cited("b", "Known", "key"), refutation())
    outside = made.html().split("<summary>1 × holds, 1 × cited</summary>")[0]
    assert "Repair." in outside
    assert "Known" not in outside
    assert made._repr_mimebundle_()[MIME]["in_view"] == 2


def test_equality_is_decided_exactly():
    assert equal(sp.log(x * y), sp.log(x) + sp.log(y))
    assert equal((2 * x) ** y * sp.sqrt(x) ** (2 * y), 2**y * x ** (2 * y))
    assert not equal(sp.Rational(1, 10**9) * x, 0)
