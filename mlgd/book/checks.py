"""The language in which the chapters check the paper: one statement, one test.

An author writes words; the mathematics beside them is printed from the expressions that the test
compares, and the numbers from what was computed. Every kind notices a constant that is wrong by
ten percent (a measured one by a factor of two), or says what slack it leaves, and why.

`refuted` is for what does not hold as printed: a counterexample, and the repair, itself a check,
with what it says of the counterexample. A claim that is not confirmed raises `CheckFailed`; a
check that could not fail, or that hides its slack, raises `ValueError`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np
import sympy as sp

from .pieces import Check, Group, tex

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


def _check(rows: Rows, *rest, **more) -> Check:
    return Check((rows,) if isinstance(rows, str) else tuple(rows), *rest, **more)


def _value(side):
    return next(iter(side.values())) if isinstance(side, Mapping) else side


def _point(where: Mapping) -> str:
    return ", ".join(f"${tex(k)}={tex(v)}$" for k, v in where.items())


# --- symbols -----------------------------------------------------------------------------------


def equal(a, b) -> bool:
    """Whether sympy reduces a - b to 0, or log a - log b where all symbols are positive."""
    a, b = sp.sympify(a).doit(), sp.sympify(b).doit()
    symbols = sorted(a.free_symbols | b.free_symbols, key=str)
    # a point without structure first: what differs there need not be simplified
    at = {s: sp.Rational(sp.prime(i + 1), sp.prime(i)) for i, s in enumerate(symbols, 2)}
    at |= {s: sp.Integer(i) for i, s in enumerate(symbols, 3) if s.is_integer}
    at |= {s: -at[s] for s in symbols if s.is_negative}
    # moduli: roots there may change branch
    x, y = (abs(sp.N(e.subs(at), 30)) for e in (a, b))
    if abs(x - y) > 1e-12 * max(1, y):
        return False
    forms = [a - b, sp.expand_log(a - b, force=all(s.is_nonnegative for s in symbols))]
    if b != 0 and all(s.is_positive for s in symbols):
        left, right = (
            sp.expand_log(sp.log(sp.factor_terms(e)), force=True) for e in (a, b)
        )
        forms.append(left - right)
    ways = (sp.expand, sp.simplify, lambda e: sp.simplify(sp.powsimp(sp.expand(e))))
    return any(way(form) == 0 for way in ways for form in forms)  # the quick way first


def identity(rows: Rows, words: str, lhs, rhs, *, where: Mapping = {}) -> Check:
    """lhs = rhs exactly, after `where` is substituted; lists make several equations.

    A left side keeps its shape on the page if it is unevaluated (sp.Sum, sp.Integral, symbols that
    `where` replaces); one that is only computed is given as {its name in words: expression}.
    """
    formulas, sides, many = [], [], isinstance(lhs, list | tuple)
    for left, right in zip(lhs, rhs, strict=True) if many else [(lhs, rhs)]:
        a, b = (sp.sympify(_value(side)) for side in (left, right))
        _need(equal(a.subs(where), b.subs(where)), f"{rows}: {a} differs from {b}")
        _sound(
            b.subs(where) != 0, f"{rows}: the right side is 0: write terms on both sides"
        )
        shown = tex(left if isinstance(left, Mapping) else a)
        _sound(
            shown != tex(b),
            f"{rows}: both sides read {shown}: name the left one in words",
        )
        formulas.append(f"{shown}={tex(b)}")
        sides.append((a.subs(where), "=", b.subs(where)))
    lines = [f"with {_point(where)}"] * bool(where)
    lines, kept = (
        (*lines, "both sides are reduced to one expression by sympy"),
        tuple(sides),
    )
    return _check(rows, "identity", "holds", words, tuple(formulas), lines, sides=kept)


def non_negative(factor: sp.Expr, hypotheses: Sequence[sp.Expr]) -> bool:
    """Whether a factor is at least 0 by its symbols, as a square, or as a hypothesis' multiple."""
    square = isinstance(factor, sp.Pow) and factor.exp.is_even and factor.base.is_real
    ratios = (sp.simplify(factor / hypothesis) for hypothesis in hypotheses)
    return bool(
        factor.is_nonnegative
        or square
        or any(r.is_positive and r.is_number for r in ratios)
    )


def certificate(
    rows: Rows,
    words: str,
    lhs,
    rhs,
    terms: Sequence,
    given: Mapping = {},
    *,
    where: Mapping = {},
) -> Check:
    """lhs <= rhs, proved: rhs - lhs = sum(terms), products of factors non-negative by hypothesis.

    `given` names each expression that is assumed non-negative: {expression: "why"}.
    """
    lhs, rhs, terms = sp.sympify(lhs), sp.sympify(rhs), [sp.sympify(t) for t in terms]
    given = {sp.sympify(g): why for g, why in given.items()}
    gap = (rhs - lhs).subs(where)
    for term in terms:  # a common factor of a sum is a factor too
        product = sp.factor_terms(term, sign=False) if term.is_Add else term
        for factor in sp.Mul.make_args(product):
            _need(
                non_negative(factor, [*given]),
                f"{rows}: {factor} is not known to be >= 0",
            )
    _need(equal(gap - sum(terms), 0), f"{rows}: right - left is not the sum of the terms")
    itself = [g for g in given if len(terms) == 1 and sp.simplify(gap / g).is_number]
    _sound(not itself, f"{rows}: the hypothesis {itself} is the claim itself")
    lines = [f"with {_point(where)}"] * bool(where)
    lines.append(
        "right minus left: $" + "+".join(rf"\left[{tex(t)}\right]" for t in terms) + "$"
    )
    lines += [f"${tex(g)}\\ge 0$: {why}" for g, why in given.items() if why]
    formula = rf"{tex(lhs)}\le {tex(rhs)}"
    kept = {"sides": ((lhs.subs(where), "<=", rhs.subs(where)),), "given": given}
    return _check(rows, "certificate", "holds", words, (formula,), tuple(lines), **kept)


# --- numbers -----------------------------------------------------------------------------------


def exact(
    rows: Rows, words: str, computed, relation: str, figure, *, slack: str = ""
) -> Check:
    """computed <= figure (or >=, =): arrays elementwise; the case nearest to the bound is shown.

    An equality holds to nine digits; a bound that ten percent would not pass says why, by slack.
    """
    _sound(relation in SIGNS, f"{rows}: the relation is one of {', '.join(SIGNS)}")
    arrays = np.broadcast_arrays(np.asarray(computed, float), np.asarray(figure, float))
    value, bound = map(np.ravel, arrays)
    _sound(
        value.size and bound.any() and np.isfinite(bound).all(),
        f"{rows}: figures of 0 or inf",
    )
    beyond = {"<=": value - bound, ">=": bound - value, "=": abs(value - bound)}[relation]
    # the first of those that only rounding tells apart: another processor must show the same
    unit = abs(bound).max() if relation == "=" else np.maximum(abs(bound), 1e-300)
    nearest = int(np.argmax(np.round(beyond / unit, 8)))
    a, b = value[nearest], bound[nearest]
    allowed = 1e-9 if relation == "=" else 1e-12  # of the largest figure: rounding
    _need(
        (beyond <= allowed * abs(bound).max()).all(),
        f"{rows}: {a:.6g} {relation} {b:.6g}?",
    )
    lines = [f"the nearest of {value.size} cases"] if value.size > 1 else []
    if relation == "=":
        lines.append("equal to nine digits")
    else:
        sharp = bool(a * b > 0 and abs(math.log(a / b)) <= math.log(1.1))
        away = f"the computed number is ${tex(a / b)}$ of the bound; " if b else ""
        _sound(
            sharp or slack,
            f"{rows}: ten percent would not be noticed ({away}): give slack=why",
        )
        _sound(
            not (sharp and slack),
            f"{rows}: there is no slack to explain: take slack= out",
        )
        lines.append(
            f"slack: {away}{slack}" if slack else "a bound sharper by a tenth would fail"
        )
    shown = (
        f"{tex(a)}{SIGNS[relation]} {tex(figure if isinstance(figure, sp.Basic) else b)}"
    )
    return _check(rows, "exact run", "holds", words, (shown,), tuple(lines))


def _spread(value: float, error: float) -> str:
    return tex(value) + (rf"\pm{tex(float(f'{error:.1g}'))}" if error else "")


def measured(
    rows: Rows,
    words: str,
    ours,
    paper: str,
    *,
    spread: float = 0.0,
    one_run: bool = False,
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
        _sound(
            values.size > 2,
            f"{rows}: ours needs a value per seed, or (value, standard error)",
        )
        value, error = values.mean(), values.std(ddof=1)
        error /= 1 if one_run else math.sqrt(values.size)
    figure = float(paper)
    rounding = float(Decimal(1).scaleb(Decimal(paper).as_tuple().exponent)) / 2
    reach = rounding + 3 * math.hypot(error, spread)
    agrees, twice, half = (
        abs(value - f) <= reach for f in (figure, 2 * figure, figure / 2)
    )
    _sound(
        not agrees or not (twice or half),
        f"{rows}: twice or half of {paper} would agree too",
    )
    theirs = rf"\text{{the paper }}{_spread(figure, spread)}"
    formula = rf"\text{{ours }}{_spread(value, error)},\ {theirs}"
    lines = [f"they {'agree' if agrees else 'differ'}: the reach is ${tex(reach)}$"]
    lines += ["twice and half the paper's figure would differ"] * bool(agrees)
    verdict = "agrees" if agrees else "differs"
    return _check(rows, "measured", verdict, words, (formula,), tuple(lines))


def cited(rows: Rows, words: str, key: str) -> Check:
    """Taken from the literature; `key` is an entry of book/references.bib."""
    return _check(rows, "cited", "cited", words, (), (f"source: {key}",))


def _there(at: Mapping, *sides) -> list[float]:
    """The values of sides at a point; none where it lacks one of their symbols."""
    values = [sp.sympify(_value(side)).subs(at) for side in sides]
    return [float(v) for v in values] if all(v.is_number for v in values) else []


def _true(a: float, relation: str, b: float) -> bool:
    return {"<=": a <= b, ">=": a >= b, "=": math.isclose(a, b, rel_tol=1e-9)}[relation]


def refuted(
    rows: Rows,
    words: str,
    lhs,
    relation: str,
    rhs,
    *,
    at: Mapping = {},
    repair: Check,
    verdict: str = "repaired",
) -> Check:
    """What is printed, lhs <= rhs, is false `at` a point, or for the numbers computed.

    `repair`, a check of the same row, takes its place. Shown are its hypotheses that the point
    lacks or, if there is none, what it says at the point. 'repaired': the paper's conclusion
    stands, a step, constant or range is mended; 'fails': it needs what the repair adds.
    """
    _sound(
        verdict in ("repaired", "fails") and relation in SIGNS,
        f"{verdict!r}, {relation!r}?",
    )
    (a, b), sign = _there(at, lhs, rhs), SIGNS[relation]
    _need(
        not _true(a, relation, b),
        f"{rows}: {a:.6g} {relation} {b:.6g} is no counterexample",
    )
    begin = f"At {_point(at)}" if at else "Computed,"
    begin += f" the left side is ${tex(a)}$, the right side ${tex(b)}$."
    made = _check(rows, repair.kind, verdict, words, (f"{tex(lhs)}{sign} {tex(rhs)}",))
    _sound({*made.rows} & {*repair.rows}, f"{rows}: the repair is one of {repair.rows}")
    return replace(made, against=(begin, *_mends(repair, at)), repair=repair)


def _mends(repair: Check, at: Mapping) -> list[str]:
    """What a repair says of the counterexample: hypotheses that it lacks, else both sides there."""
    lacks = [(tex(g), tex(v)) for g in repair.given for v in _there(at, g) if v < 0]
    if lacks:
        return [
            rf"The repair assumes ${g}\ge 0$; here the left side is ${v}$."
            for g, v in lacks
        ]
    sides = [(_there(at, left, right), sign) for left, sign, right in repair.sides if at]
    _need(
        all(_true(v[0], sign, v[1]) for v, sign in sides if v), f"{repair}: false at {at}"
    )
    said = [tex(v[0]) + f"{SIGNS[s]} {tex(v[1])}" * (s != "=") for v, s in sides if v]
    return [f"At the same point the repair gives ${'$, $'.join(said)}$."] * bool(said)


def group(title: str, *checks: Check) -> Group:
    """The checks of one passage in one box; the title says what the passage claims, and where."""
    _sound(checks and title.strip(), "a group has a title and at least one check")
    return Group(title, checks)
