"""The language in which the chapters check the paper: one statement, one test.

An author writes words; the mathematics beside them is printed from the expressions that the test
compares, and the numbers from what was computed. Every kind notices a constant that is wrong by ten
percent (a statistical or measured one by a factor of two), or says what slack it leaves, and why.

    certificate   lhs <= rhs: rhs - lhs is a sum of products of factors that are non-negative by hypothesis
    identity      lhs = rhs, by sympy
    enclosure     lhs <= rhs on a whole box, by interval arithmetic
    exact         a computed number beside a bound or a value; nothing random
    statistical   a mean over runs; false alarms below one in a million
    measured      our figure beside the paper's, with both spreads: agrees or differs
    cited         taken from the literature

`refuted` is for what does not hold as printed: a counterexample, which the mended claim survives,
and the repair, itself a check. A claim that is not confirmed raises `CheckFailed`; a check that
could not fail, or that hides its slack, raises `ValueError`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

import numpy as np
import sympy as sp
from scipy import stats

from .boxes import Check, Group
from .pieces import tex
from .proofs import equal, factors, is_zero, negative_somewhere, non_negative, positive_on

__all__ = ["CheckFailed", "certificate", "cited", "enclosure", "exact", "group", "identity"]
__all__ += ["measured", "refuted", "statistical"]

FALSE_ALARM = 1e-6
TENTH = sp.Rational(11, 10)
SIGNS = {"<=": r"\le", ">=": r"\ge", "=": "="}
Rows = str | Sequence[str]


class CheckFailed(AssertionError):
    """A claim was not confirmed."""


def _need(condition, message: str) -> None:
    if not condition:
        raise CheckFailed(message)


def _sound(condition, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _rows(rows: Rows) -> tuple[str, ...]:
    return (rows,) if isinstance(rows, str) else tuple(rows)


def _value(side):
    return next(iter(side.values())) if isinstance(side, Mapping) else side


def _where(where: Mapping) -> tuple[str, ...]:
    """What was substituted, as a line of evidence."""
    told = ", ".join(f"${tex(k)}={tex(v)}$" for k, v in where.items())
    return (f"with {told}",) if told else ()


# --- symbols ---------------------------------------------------------------------------------------


def identity(rows: Rows, words: str, lhs, rhs, *, where: Mapping = {}) -> Check:
    """lhs = rhs exactly, after `where` is substituted; lists make several equations.

    A left side keeps its shape on the page if it is unevaluated (sp.Sum, sp.Integral, symbols that
    `where` replaces); one that is only computed is given as {its name in words: expression}.
    """
    formulas, many = [], isinstance(lhs, list | tuple)
    for left, right in zip(lhs, rhs, strict=True) if many else [(lhs, rhs)]:
        a, b = (sp.sympify(_value(side)) for side in (left, right))
        _need(equal(a.subs(where), b.subs(where)), f"{rows}: {a} differs from {b}")
        _sound(b.subs(where) != 0, f"{rows}: the right side is 0: write terms on both sides")
        shown = tex(left if isinstance(left, Mapping) else a)
        _sound(shown != tex(b), f"{rows}: both sides read {shown}: name the left one in words")
        formulas.append(f"{shown}={tex(b)}")
    lines = (*_where(where), "both sides are reduced to one expression by sympy")
    return Check(_rows(rows), "identity", "holds", words, tuple(formulas), lines)


def certificate(
    rows: Rows,
    words: str,
    lhs,
    rhs,
    terms: Sequence,
    given: Mapping | None = None,
    *,
    where: Mapping = {},
) -> Check:
    """lhs <= rhs, proved: rhs - lhs = sum(terms), each a product of factors non-negative by hypothesis.

    `given` names each expression that is assumed non-negative: {expression: "why"}.
    """
    lhs, rhs, terms = sp.sympify(lhs), sp.sympify(rhs), [sp.sympify(t) for t in terms]
    given = {sp.sympify(g): why for g, why in (given or {}).items()}
    gap = (rhs - lhs).subs(where)
    for factor in (f for term in terms for f in factors(term)):
        _need(non_negative(factor, given), f"{rows}: {factor} is not known to be non-negative")
    _need(is_zero(gap - sum(terms)), f"{rows}: right - left is not the sum of the terms")
    itself = [g for g in given if len(terms) == 1 and sp.simplify(gap / g).is_number]
    _sound(not itself, f"{rows}: the hypothesis {itself} is the claim itself")
    line = "+".join(rf"\left[{tex(t)}\right]" for t in terms)
    lines = [*_where(where), rf"right minus left: ${line}$"]
    lines += [f"${tex(g)}\\ge 0$: {why}" for g, why in given.items() if why]
    formula = rf"{tex(lhs)}\le {tex(rhs)}"
    return Check(_rows(rows), "certificate", "holds", words, (formula,), tuple(lines))


def enclosure(rows: Rows, words: str, lhs, rhs, over: Mapping, *, slack: str = "") -> Check:
    """lhs <= rhs for all values in the box {symbol: (low, high)}, strictly, by interval arithmetic."""
    lhs, rhs = sp.sympify(lhs), sp.sympify(rhs)
    pieces = positive_on(rhs - lhs, over)
    _need(pieces, f"{rows}: not proved on {over}")
    sharp = any(negative_somewhere(rhs * part - lhs, over) for part in (TENTH, 1 / TENTH))
    lines = (f"positive on each of {pieces} pieces", _sharpness(rows, sharp, slack, ""))
    ranges = r",\ ".join(rf"{tex(s)}\in[{tex(a)},{tex(b)}]" for s, (a, b) in over.items())
    formula = rf"{tex(lhs)}\le {tex(rhs)}\quad({ranges})"
    return Check(_rows(rows), "enclosure", "holds", words, (formula,), lines)


def _sharpness(rows: Rows, sharp: bool, slack: str, distance: str) -> str:
    """The line that says what the test notices; slack is stated exactly where there is some."""
    _sound(sharp or slack, f"{rows}: ten percent would not be noticed ({distance}): give slack=why")
    _sound(not (sharp and slack), f"{rows}: there is no slack to explain: take slack= out")
    return f"slack: {distance}{slack}" if slack else "a bound sharper by a tenth would fail"


# --- numbers ---------------------------------------------------------------------------------------


def exact(
    rows: Rows, words: str, computed, relation: str, figure, *, at: Mapping = {}, slack: str = ""
) -> Check:
    """computed <= figure (or >=, =): arrays elementwise; the case nearest to the bound is shown.

    `figure` may be a formula, evaluated `at` the given numbers. An equality holds to nine digits.
    """
    _sound(relation in SIGNS, f"{rows}: the relation is one of {', '.join(SIGNS)}")
    formula = isinstance(figure, sp.Basic)
    bound = np.asarray(float(figure.subs(at)) if formula else figure, float)
    value, bound = map(np.ravel, np.broadcast_arrays(np.asarray(computed, float), bound))
    _sound(value.size and bound.any() and np.isfinite(bound).all(), f"{rows}: figures of 0 or inf")
    beyond = {"<=": value - bound, ">=": bound - value, "=": abs(value - bound)}[relation]
    nearest = int(np.argmax(beyond / np.maximum(abs(bound), 1e-300)))
    a, b = value[nearest], bound[nearest]
    allowed = 1e-9 if relation == "=" else 1e-12  # of the largest figure: rounding
    _need((beyond <= allowed * abs(bound).max()).all(), f"{rows}: {a:.6g} {relation} {b:.6g}?")
    lines = [f"the nearest of {value.size} cases"] if value.size > 1 else []
    if relation == "=":
        lines.append("equal to nine digits")
    else:
        sharp = bool(a * b > 0 and abs(math.log(a / b)) <= math.log(TENTH))
        distance = f"the computed number is ${tex(a / b)}$ of the bound; " if b else ""
        lines.append(_sharpness(rows, sharp, slack, distance))
    printed = (tex(figure) + f"={tex(b)}" * bool(at)) if formula else tex(b)
    points = r",\ ".join(f"{tex(k)}={tex(v)}" for k, v in at.items())
    shown = f"{tex(a)}{SIGNS[relation]} {printed}" + rf"\quad({points})" * bool(at)
    return Check(_rows(rows), "exact run", "holds", words, (shown,), tuple(lines))


def _spread(value: float, error: float) -> str:
    return tex(value) + (rf"\pm{tex(float(f'{error:.1g}'))}" if error else "")


def statistical(
    rows: Rows,
    words: str,
    run: Callable,
    relation: str,
    figure: float,
    *,
    runs: int,
    rng: int = 0,
    slack: str = "",
) -> Check:
    """The mean of run(rng, runs) against a positive figure, by Student's law.

    For equality its power against twice and half the figure is stated; a bound that is more than
    twice the mean has slack, and says why.
    """
    _sound(relation in SIGNS and figure > 0, f"{rows}: {relation!r}, {figure}?")
    values = np.asarray(run(np.random.default_rng(rng), runs), float)
    _sound(values.shape == (runs,) and np.ptp(values) > 0, f"{rows}: {runs} varying values needed")
    mean, error = values.mean(), values.std(ddof=1) / math.sqrt(runs)
    t = stats.t.isf(FALSE_ALARM / (2 if relation == "=" else 1), runs - 1)
    away = (mean - figure) / error
    held = {"<=": away <= -t, ">=": away >= t, "=": abs(away) <= t}[relation]
    _need(held, f"{rows}: mean {mean:.6g} +- {error:.2g} against {figure:.6g}, t = {t:.3g}")
    lines = [f"{runs} runs: {abs(away):.1f} standard errors from the figure, with t = {t:.1f}"]
    if relation == "=":
        power = stats.norm.cdf(figure / 2 / error - t)  # with this spread
        _sound(power > 0.99, f"{rows}: half the figure would be refused with chance {power:.2g}")
        lines.append(f"twice or half the figure would be refused with chance {power:.2%} or more")
    else:
        distance = f"the mean is ${tex(mean / figure)}$ of the figure; "
        said = _sharpness(rows, bool(0.5 <= mean / figure <= 2), slack, distance)
        lines.append(said if slack else "a figure on the other side by a factor of two is refused")
    shown = f"{_spread(mean, error)}{SIGNS[relation]} {tex(figure)}"
    return Check(_rows(rows), "statistical", "holds", words, (shown,), tuple(lines))


def measured(
    rows: Rows, words: str, ours, paper: str, *, spread: float = 0.0, one_run: bool = False
) -> Check:
    """Our figure and the paper's: they agree within three standard errors and rounding, or differ.

    `ours` holds a value per seed, or is (value, standard error). `paper` is the figure as printed,
    with `spread` its standard error; if it is `one_run`, the reach is three standard deviations of
    ours. A comparison that would accept twice or half the figure is none, and is refused.
    """
    values = np.asarray(ours, float)
    if isinstance(ours, tuple):
        value, error = map(float, values)
    else:
        _sound(values.size > 2, f"{rows}: ours needs a value per seed, or (value, standard error)")
        value, error = values.mean(), values.std(ddof=1)
        error /= 1 if one_run else math.sqrt(values.size)
    figure = float(paper)
    rounding = float(Decimal(1).scaleb(Decimal(paper).as_tuple().exponent)) / 2
    reach = rounding + 3 * math.hypot(error, spread)
    agrees, twice, half = (abs(value - f) <= reach for f in (figure, 2 * figure, figure / 2))
    _sound(not agrees or not (twice or half), f"{rows}: twice or half of {paper} would agree too")
    formula = (
        rf"\text{{ours }}{_spread(value, error)},\ \text{{the paper }}{_spread(figure, spread)}"
    )
    lines = [f"they {'agree' if agrees else 'differ'}: the reach is ${tex(reach)}$"]
    lines += ["twice and half the paper's figure would differ"] * bool(agrees)
    verdict = "agrees" if agrees else "differs"
    return Check(_rows(rows), "measured", verdict, words, (formula,), tuple(lines))


def cited(rows: Rows, words: str, key: str) -> Check:
    """Taken from the literature; `key` is an entry of book/references.bib."""
    return Check(_rows(rows), "cited", "cited", words, (), (f"source: {key}",))


def refuted(
    rows: Rows,
    words: str,
    lhs,
    relation: str,
    rhs,
    *,
    at: Mapping = {},
    mended=None,
    needs=None,
    repair: Check,
    verdict: str = "repaired",
) -> Check:
    """What is printed, lhs <= rhs, is false `at` a point, or for the numbers computed.

    What mends it is `mended`, a right side (or a pair of sides) with which the same point is no
    counterexample, or `needs`, an expression that must be non-negative and is negative there. Then
    `repair` proves the mended statement. 'repaired': the paper's conclusion stands, a step, constant
    or range is mended; 'fails': the statement is false and needs the hypothesis that repair adds.
    """
    _sound(verdict in ("repaired", "fails") and relation in SIGNS, f"{verdict!r}, {relation!r}?")
    _sound((mended is None) != (needs is None), f"{rows}: give mended= or needs=, and not both")

    def numbers(*sides) -> list[float]:
        return [float(sp.sympify(_value(side)).subs(at)) for side in sides]

    def true(a: float, b: float) -> bool:
        return {"<=": a <= b, ">=": a >= b, "=": math.isclose(a, b, rel_tol=1e-9)}[relation]

    a, b = numbers(lhs, rhs)
    _need(not true(a, b), f"{rows}: {a:.6g} {relation} {b:.6g} is no counterexample")
    point = ", ".join(f"${tex(k)}={tex(v)}$" for k, v in at.items())
    begin = f"At {point}: " if point else "Computed: "
    against = [f"{begin}${tex(a)}$ on the left, ${tex(b)}$ on the right."]
    if needs is None:
        pair = mended if isinstance(mended, tuple) else (lhs, mended)
        x, y = numbers(*pair)
        _need(true(x, y), f"{rows}: mended, {x:.6g} {relation} {y:.6g} is still false")
        sign = SIGNS[relation]
        against.append(f"Mended: ${tex(pair[0])}{sign} {tex(pair[1])}$, ${tex(x)}{sign} {tex(y)}$.")
    else:
        (missing,) = numbers(needs)
        _need(missing < 0, f"{rows}: the counterexample satisfies {needs} >= 0")
        against.append(rf"It lacks ${tex(needs)}\ge 0$, which is ${tex(missing)}$ there.")
    formula = f"{tex(lhs)}{SIGNS[relation]} {tex(rhs)}"
    proof = (repair.kind, verdict, words, (formula,), (), tuple(against), repair)
    return Check(_rows(rows), *proof)


def group(title: str, *checks: Check) -> Group:
    """The checks of one passage in one box; the title says what the passage claims, and where."""
    _sound(checks and title.strip(), "a group has a title and at least one check")
    return Group(title, checks)
