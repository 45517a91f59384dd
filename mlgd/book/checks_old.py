"""The language of the chapters that are not converted yet; it goes with the last of them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal

import numpy as np
import sympy as sp

from .boxes_old import Check, Group, show
from .twins_old import (
    alike,
    failing_point,
    is_zero,
    near_misses,
    negative_somewhere,
    positive_on,
    satisfied,
    student,
)

__all__ = [
    "CheckFailed",
    "certificate",
    "cited",
    "enclosure",
    "exact",
    "group",
    "identity",
    "measured",
    "refuted",
]
__all__ += ["show", "statistical"]

TAIL = 5e-7  # on each side: together one false alarm in a million
Text = str | Sequence[str]


class CheckFailed(AssertionError):
    """A claim was not confirmed, or its near miss was not refused."""


def _need(condition, message: str) -> None:
    if not condition:
        raise CheckFailed(message)


def _sound(condition, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _tuple(x) -> tuple:
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def _short(value, digits: int = 3) -> str:
    if isinstance(value, int):
        return str(value)
    value = float(value)
    return f"{value:.{digits}g}" if math.isfinite(value) else str(value)


# --- symbolic evidence -------------------------------------------------------------------------------------


def _tex(expression: sp.Expr) -> str:
    """LaTeX in which the logarithm of a large power is written out, 256 log 2 and not 78 digits."""
    large = lambda e: isinstance(e, sp.log) and e.args[0].is_Integer and e.args[0] > 10**6  # noqa: E731
    return sp.latex(expression.replace(large, lambda e: sp.expand_log(e)))


def identity(
    ids, statement: str, lhs, rhs, *, near=None, why: str = "", detail: Text = ()
) -> Check:
    """lhs == rhs exactly; both may be tuples. Near misses are made of each right side; `near` adds one to the first."""
    pairs = [(sp.sympify(a), sp.sympify(b)) for a, b in zip(_tuple(lhs), _tuple(rhs), strict=True)]
    for left, right in pairs:
        _need(is_zero(left - right), f"{ids}: {left} differs from {right}")
        _sound(
            right != 0 or near is not None,
            f"{ids}: the right side is 0: write terms on both sides, or give near=",
        )
        for miss in near_misses(right) if right != 0 else ():
            _need(not is_zero(left - miss), f"{ids}: the near miss {miss} is not refused")
    twin = "eleven tenths of it" + (
        ", or an exponent off by one eighth" if pairs[0][1].free_symbols else ""
    )
    if near is not None:
        left, right = pairs[0]
        kind = (
            alike(right, near, 2)
            if right != 0
            else sp.sympify(near).free_symbols <= left.free_symbols
        )
        _sound(kind and why, f"{ids}: near={near} is no near miss of {right}, or why= is missing")
        _need(not is_zero(left - sp.sympify(near)), f"{ids}: the near miss {near} is not refused")
        twin = f"{why}, ${sp.latex(sp.sympify(near))}$"
    shown = [(_tex(left), _tex(right)) for left, right in pairs]
    lines = [f"${a}={b}$" for a, b in shown if a != b]
    alone = ", ".join(dict.fromkeys(f"${a}$" for a, b in shown if a == b))
    lines = _tuple(detail) if detail else (*lines, *([f"both sides: {alone}"] if alone else []))
    return Check(_tuple(ids), "identity", "holds", statement, lines, twin + ", is refused")


def certificate(
    ids,
    statement: str,
    *,
    lhs,
    rhs,
    terms: Sequence,
    given: Mapping | Iterable = (),
    at: Mapping | None = None,
    near=None,
    drop=None,
    why: str = "",
    names: Mapping | None = None,
    detail: Text = (),
) -> Check:
    """lhs <= rhs, proved: rhs - lhs = sum(terms), each term a product of factors non-negative by hypothesis.

    `given` lists the expressions assumed >= 0 (a mapping gives each a name the reader sees). The near miss, a right
    side smaller by a tenth of itself, must fail where all hypotheses hold, at a point that is searched for or given
    by `at`. Where the inequality has slack, `near` is a sharper right side, or `drop` one of the hypotheses.
    """
    lhs, rhs, terms = sp.sympify(lhs), sp.sympify(rhs), [sp.sympify(t) for t in terms]
    given = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given, "")
    labels = {sp.sympify(g): label for g, label in given.items()}
    for factor in (f for term in terms for f in _factors(term)):
        _need(
            _nonnegative(factor, labels),
            f"{ids}: the factor {factor} is not known to be non-negative",
        )
    _need(is_zero(rhs - lhs - sum(terms)), f"{ids}: right - left is not the sum of the terms")
    gap, hypotheses, twin = (
        rhs - sp.Abs(rhs) / 10 - lhs,
        list(labels),
        "a right side smaller by a tenth",
    )
    if near is not None or drop is not None:
        _sound(why, f"{ids}: near= and drop= need why=")
        gap, twin = (rhs if near is None else sp.sympify(near)) - lhs, why
        hypotheses = [g for g in labels if drop is None or g != sp.sympify(drop)]
        _sound(
            drop is None or len(hypotheses) < len(labels),
            f"{ids}: drop={drop} is none of the hypotheses",
        )
    else:
        _sound(rhs != 0, f"{ids}: the right side is 0: write terms on both sides")
    if at is None:
        squares = [
            f.base
            for t in terms
            for f in _factors(t)
            if isinstance(f, sp.Pow) and f.exp.is_even and f.exp > 0
        ]
        at = failing_point(gap, hypotheses, [*hypotheses, *squares])
        _need(
            at is not None,
            f"{ids}: {twin}: found no point where it fails; give at=, or near= or drop= with why=",
        )
    _need(satisfied(at, hypotheses), f"{ids}: the point {at} is not one where the hypotheses hold")
    miss = sp.N(gap.subs(at))
    _need(miss.is_number and miss < 0, f"{ids}: {twin} does not fail at {at}: {miss}")
    if near is not None:
        _sound(
            alike(rhs.subs(at), sp.sympify(near).subs(at)),
            f"{ids}: near={near} is no near miss of {rhs} at {at}",
        )
    tex = lambda e: sp.latex(sp.sympify(e), symbol_names=dict(names or {}))  # noqa: E731
    lines = [
        r"$\text{right}-\text{left}=" + "+".join(rf"\left[{tex(t)}\right]" for t in terms) + "$"
    ]
    lines += [f"${tex(g)}\\ge 0$: {label}" for g, label in labels.items() if label]
    told = {k: v for k, v in at.items() if v != 0} if len(at) > 8 else at
    point = ", ".join(
        f"${tex(k)}={tex(sp.nsimplify(v))}$" for k, v in told.items()
    ) + ", all else 0" * (told != at)
    lines = _tuple(detail) if detail else tuple(lines)
    return Check(
        _tuple(ids),
        "certificate",
        "holds",
        statement,
        lines,
        f"{twin} fails, by {_short(miss)} at {point}",
    )


def _factors(term) -> tuple:
    return sp.Mul.make_args(sp.factor_terms(term, sign=False) if term.is_Add else term)


def _nonnegative(factor, given) -> bool:
    if factor.is_nonnegative:
        return True
    if isinstance(factor, sp.Pow) and factor.exp.is_even and factor.base.is_real:
        return True
    ratios = [sp.simplify(factor / hypothesis) for hypothesis in given]
    return any(ratio.is_number and ratio.is_positive for ratio in ratios)


def enclosure(
    ids,
    statement: str,
    f: Callable,
    box: Mapping,
    *,
    near: Callable,
    why: str,
    pieces=20000,
    detail: Text = (),
):
    """f > 0 on the whole box {name: (low, high)}: f maps mpmath intervals (keywords) to an interval; near does not."""
    count = positive_on(f, box, pieces)
    _need(count, f"{ids}: not proved positive on {box}")
    _need(negative_somewhere(near, box, pieces), f"{ids}: the near miss ({why}) is not refused")
    ranges = ", ".join(f"{k} in [{_short(a)}, {_short(b)}]" for k, (a, b) in box.items())
    line = f"interval arithmetic over {ranges}: positive on each of {count} pieces"
    return Check(
        _tuple(ids),
        "enclosure",
        "holds",
        statement,
        (line, *_tuple(detail or ())),
        f"{why} is negative on a piece",
    )


# --- computed evidence -------------------------------------------------------------------------------------


def exact(ids, statement: str, test: Callable, on, *, near, why: str, detail: Text = ()) -> Check:
    """test(on) is true and test(near) is false; nothing in the computation is random."""
    _sound(
        alike(on, near),
        f"{ids}: near= is not of on='s kind, or its numbers differ by more than a factor 4",
    )
    _need(bool(test(on)), f"{ids}: the test fails")
    _need(not bool(test(near)), f"{ids}: the test accepts the near miss ({why})")
    return Check(
        _tuple(ids), "exact run", "holds", statement, _tuple(detail or ()), f"{why} is refused"
    )


def statistical(
    ids,
    statement: str,
    run: Callable,
    bound: float,
    *,
    runs: int,
    side: str = "below",
    twin: Callable | None = None,
    why: str = "",
    rng=0,
    unit: float = 1.0,
    detail: Text = (),
) -> Check:
    """The mean of run(rng, runs), drawn here, lies below (or equals) the bound by Student's tail.

    below: mean + t se <= bound; equal: |mean - bound| <= t se. The same test refuses the process `twin(rng, runs)`
    and, for equality, the bound off by ten percent either way.
    """
    _sound(side in ("below", "equal"), f"{ids}: side is 'below' or 'equal', not {side!r}")
    _sound(
        twin or (side == "equal" and bound != 0),
        f"{ids}: give twin=, another process that the test must refuse",
    )
    _sound(why or not twin, f"{ids}: twin= needs why=")
    t, streams = student(runs - 1, TAIL), np.random.default_rng(rng).spawn(2)

    def draw(process, stream):
        values = np.asarray(process(stream, runs), float)
        _sound(
            values.shape == (runs,) and np.ptp(values) > 0,
            f"{ids}: {runs} values that vary are needed",
        )
        return values.mean(), values.std(ddof=1) / math.sqrt(runs)

    def accepts(mean, error, value):
        return mean + t * error <= value if side == "below" else abs(mean - value) <= t * error

    mean, error = draw(run, streams[0])
    _need(
        accepts(mean, error, bound),
        f"{ids}: mean {mean:.6g} +- {error:.2g} against {bound:.6g} ({side}, t = {t:.3g})",
    )
    misses = ["the value off by ten percent is refused"] if side == "equal" and bound != 0 else []
    for value in (0.9 * bound, 1.1 * bound) if misses else ():
        _need(
            not accepts(mean, error, value),
            f"{ids}: {value:.6g} is accepted too (mean {mean:.6g} +- {error:.2g})",
        )
    if twin:
        other, spread = draw(twin, streams[1])
        _need(
            not accepts(other, spread, bound),
            f"{ids}: the twin is accepted (mean {other:.6g} +- {spread:.2g})",
        )
        misses.append(f"{why} is refused, with mean ${_short(other / unit)}$")
    sign = r"\le" if side == "below" else "="
    line = f"{runs} runs: mean ${_short(mean / unit)}\\pm{_short(error / unit, 1)}{sign}{_short(bound / unit)}$"
    line += f" at {t:.1f} standard errors"
    return Check(
        _tuple(ids),
        "statistical",
        "holds",
        statement,
        (line, *_tuple(detail or ())),
        "; ".join(misses),
    )


def measured(
    ids,
    statement: str,
    *,
    ours,
    paper: str | float,
    paper_spread: float = 0.0,
    paper_is: str = "mean",
    side: str = "equal",
    why_no_spread: str = "",
    expect: str = "holds",
    detail: Text = (),
) -> Check:
    """Our figure beside the paper's: they agree within three standard errors and the rounding of the printed figure.

    `ours` holds one value per seed, or is (value, standard error), or one number with `why_no_spread`. Where the paper
    reports 'one run', the reach is three standard deviations of ours. Agreement gives `holds`, disagreement `fails`;
    `expect` says which one the prose reports.
    """
    _sound(
        paper_is in ("mean", "one run") and side in ("equal", "below", "above"),
        f"{ids}: {paper_is!r}, {side!r}?",
    )
    values = np.atleast_1d(np.asarray(ours, float))
    rank = ""
    if isinstance(ours, tuple):
        value, spread = values
    elif values.size > 2:
        value, spread = (
            values.mean(),
            values.std(ddof=1) / (math.sqrt(values.size) if paper_is == "mean" else 1),
        )
        below = (values < float(paper)).mean()
        rank = (
            f"; the paper's lies above {below:.0%} of our {values.size} seeds"
            if paper_is == "one run"
            else ""
        )
    else:
        _sound(
            why_no_spread,
            f"{ids}: ours needs a value per seed, a standard error, or why_no_spread=",
        )
        value, spread = values[0], 0.0
    figure, rounding = (
        float(paper),
        float(Decimal(1).scaleb(Decimal(str(paper)).as_tuple().exponent)) / 2,
    )
    margin = 3 * math.hypot(spread, paper_spread)

    def agrees(printed):
        if side == "equal":
            return abs(value - printed) <= rounding + margin
        return (value - printed) * (1 if side == "below" else -1) <= rounding - margin

    verdict = "holds" if agrees(figure) else "fails"
    _need(
        verdict == expect,
        f"{ids}: ours {value:.6g}, paper {figure:.6g}, margin {margin:.3g}: {verdict}, not {expect}",
    )
    wrong = (
        {"equal": (0.0, 2 * figure), "below": (0.0,), "above": (2 * figure,)}[side]
        if verdict == "holds"
        else ()
    )
    for other in wrong:
        _sound(
            not agrees(other),
            f"{ids}: a margin of {margin:.3g} would also accept {other:g}: this is no evidence",
        )
    numbers = [
        _short(v, 4) + (rf"\pm{_short(s, 1)}" if s else "")
        for v, s in ((value, spread), (figure, paper_spread))
    ]
    agree = {"holds": "agree", "fails": "do not agree"}[verdict] + (
        "" if side == "equal" else f" that ours is {side}"
    )
    lines = [f"ours ${numbers[0]}$, the paper ${numbers[1]}${rank}: they {agree}"]
    twin = f"{' and '.join(map(_short, wrong))} would be refused" if wrong else ""
    return Check(
        _tuple(ids),
        "measured",
        verdict,
        statement,
        (*lines, *_tuple(detail or ()), *_tuple(why_no_spread or ())),
        twin,
    )


def cited(ids, statement: str, key: str) -> Check:
    """Taken from the literature; `key` is an entry of book/references.bib."""
    return Check(_tuple(ids), "cited", "cited", statement, (f"source: {key}",))


def refuted(
    ids,
    statement: str,
    test: Callable,
    *,
    at,
    passes_at,
    numbers: Text,
    repair: Check,
    verdict: str = "repaired",
    why: str = "",
) -> Check:
    """What the paper prints does not hold: test(at) is false, though test(passes_at) nearby is true; `repair` is proved.

    `statement` says what is printed and what is wrong with it; `numbers` gives the counterexample; `verdict` is
    'repaired' when the paper's conclusion stands and only a step or constant is mended, 'fails' when the statement
    itself is false and needs the hypothesis that `repair` adds. `why` says why no nearer point passes.
    """
    _sound(verdict in ("repaired", "fails"), f"verdict is 'repaired' or 'fails', not {verdict!r}")
    _sound(
        why or alike(at, passes_at),
        f"{ids}: passes_at= is not near at=: numbers within a factor 4, or say why=",
    )
    _need(not bool(test(at)), f"{ids}: the counterexample does not refute the printed claim")
    _need(bool(test(passes_at)), f"{ids}: the test of the printed claim can never pass")
    return Check(
        _tuple(ids),
        repair.kind,
        verdict,
        statement,
        _tuple(numbers) + _tuple(why or ()),
        "",
        repair,
        why,
    )


def group(title: str, *checks: Check) -> Group:
    """The checks of one passage in one box; the title says what the passage claims, with the paper's lines."""
    _sound(checks and title.strip(), "a group has a title and at least one check")
    return Group(title, checks)
