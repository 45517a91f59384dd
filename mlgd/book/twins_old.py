"""What makes a check of the old language able to fail; it goes with the last chapter that uses it."""

import itertools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from numbers import Number

import numpy as np
import sympy as sp
from mpmath import iv, mp

from .proofs import is_zero, sample

__all__ = ["is_zero", "sample"]


def _value(expression, at: Mapping) -> float | None:
    try:
        value = complex(sp.sympify(expression).subs(at).evalf(30))
    except (TypeError, ValueError, ZeroDivisionError, RecursionError):
        return None
    return abs(value) if value.imag else value.real


# --- near --------------------------------------------------------------------------------------------------


def alike(a, b, factor: float = 4.0) -> bool:
    """Whether b is of a's kind and size: same keys, length, shape, symbols, and numbers within the factor.

    Functions and other objects are not judged.
    """
    if isinstance(a, Mapping):
        return (
            isinstance(b, Mapping)
            and a.keys() == b.keys()
            and all(alike(a[k], b[k], factor) for k in a)
        )
    if isinstance(a, tuple | list):
        return (
            isinstance(b, tuple | list)
            and len(a) == len(b)
            and all(map(alike, a, b, itertools.repeat(factor)))
        )
    if isinstance(a, np.ndarray) and a.dtype.kind in "fiu":
        b = np.asarray(b)
        return a.shape == b.shape and alike(
            float(np.linalg.norm(a)), float(np.linalg.norm(b)), factor
        )
    if isinstance(a, Number | sp.Expr) and not isinstance(a, bool):
        if not isinstance(b, Number | sp.Expr):
            return False
        a, b = sp.sympify(a), sp.sympify(b)
        if a.free_symbols != b.free_symbols:
            return False
        points = [sample(a.free_symbols, shift) for shift in (0, 5)]
        pairs = [(_value(a, at), _value(b, at)) for at in points]
        return all(x is None or y is None or _close(x, y, factor) for x, y in pairs)
    return not isinstance(b, Mapping | tuple | list | Number)


def _close(x: float, y: float, factor: float) -> bool:
    if x == 0 or y == 0:
        return abs(x - y) <= 1
    return x * y > 0 and max(x / y, y / x) <= factor * (1 + 1e-9)


def near_misses(expression) -> list:
    """A constant off by ten percent, and each symbol's exponent by one eighth."""
    expression = sp.sympify(expression)
    symbols = sorted(expression.free_symbols, key=str)
    return [
        sp.Rational(11, 10) * expression,
        *(expression * sp.Abs(s) ** sp.Rational(1, 8) for s in symbols),
    ]


# --- points that refute a stronger claim ---------------------------------------------------------------------

POSITIVE = [
    sp.Rational(n) for n in ("1", "2", "1/2", "3", "1/4", "4", "1/10", "10", "1/100", "100")
]


def allowed(symbol: sp.Symbol, value) -> bool:
    """Whether the value has the properties that the symbol was declared with."""
    value = sp.sympify(value)
    if symbol.is_integer and not value.is_integer:
        return False
    return not (
        (symbol.is_positive and not value > 0)
        or (symbol.is_nonnegative and not value >= 0)
        or (symbol.is_negative and not value < 0)
        or (symbol.is_nonzero and value == 0)
    )


def satisfied(at: Mapping, hypotheses: Iterable) -> bool:
    """Whether a point is one of the symbols' kind where every hypothesis is non-negative."""
    values = [_value(g, at) for g in hypotheses]
    return all(allowed(s, v) for s, v in at.items()) and all(
        v is not None and v >= -1e-25 for v in values
    )


def failing_point(
    gap, hypotheses: Sequence, tight: Sequence = (), attempts: int = 60
) -> dict | None:
    """A point where every hypothesis holds and gap < 0, or None: as many expressions as possible are made zero."""
    gap = sp.sympify(gap)
    everything = sorted(
        set().union(gap.free_symbols, *(sp.sympify(g).free_symbols for g in hypotheses)), key=str
    )
    draw = random.Random(0)
    for attempt in range(attempts):
        wanted = list(tight)
        if attempt:
            draw.shuffle(wanted)
        if attempt % 3 == 2:
            wanted = wanted[: draw.randint(0, len(wanted))]
        solved = _make_zero(wanted, draw)
        free = [s for s in everything if s not in solved]
        formulas = [
            *(solved[s] for s in solved),
            *(sp.sympify(g).subs(solved) for g in hypotheses),
            gap.subs(solved),
        ]
        quick = sp.lambdify(free, formulas, "math")
        for _ in range(40):
            point = {s: draw.choice(_choices(s, 3 + attempt // 2)) for s in free}
            try:
                values = quick(*(float(v) for v in point.values()))
                promising = values[-1] < 0 and all(v >= -1e-9 for v in values[len(solved) : -1])
            except (ArithmeticError, ValueError, TypeError):
                continue
            if not promising:
                continue
            at = {
                s: point[s] if s in point else sp.sympify(solved[s]).subs(point) for s in everything
            }
            value = _value(gap, at)
            if satisfied(at, hypotheses) and value is not None and value < 0:
                return at
    return None


def _choices(symbol: sp.Symbol, width: int) -> list:
    numbers = [v for v in POSITIVE if v.is_integer or not symbol.is_integer][:width]
    return [v for v in (*numbers, sp.Integer(0), *(-n for n in numbers)) if allowed(symbol, v)]


def _make_zero(expressions: Iterable, draw: random.Random) -> dict:
    """Solve one expression after another for a symbol in it, linear ones first; what cannot be solved is left."""
    solved: dict = {}
    for expression in expressions:
        rest = sp.expand(sp.sympify(expression).subs(solved))
        symbols = sorted(rest.free_symbols, key=str)
        draw.shuffle(symbols)
        symbols.sort(
            key=lambda s: (
                s in sp.diff(rest, s).free_symbols,
                bool(s.is_positive),
                bool(s.is_nonnegative),
            )
        )
        for symbol in symbols:
            slope = sp.diff(rest, symbol)
            roots = (
                [-rest.subs(symbol, 0) / slope]
                if symbol not in slope.free_symbols
                else _roots(rest, symbol)
            )
            roots = [
                r
                for r in roots
                if not (symbol.is_positive and (r.is_nonpositive or r == 0))
                and r.is_real is not False
            ]
            if roots:
                solved = {s: v.subs(symbol, roots[-1]) for s, v in solved.items()} | {
                    symbol: sp.simplify(roots[-1])
                }
                break
    return solved


def _roots(expression, symbol) -> list:
    return sorted(sp.roots(expression, symbol), key=str) if expression.is_polynomial(symbol) else []


# --- whole boxes, by intervals -------------------------------------------------------------------------------


def _split(box):
    name = max(box, key=lambda k: box[k][1] - box[k][0])
    low, high = box[name]
    middle = (low + high) / 2
    return {**box, name: (low, middle)}, {**box, name: (middle, high)}


def _intervals(box):
    return {k: iv.mpf([a, b]) for k, (a, b) in box.items()}


def positive_on(f: Callable, box: Mapping, pieces: int) -> int:
    """Into how many pieces the box was cut until f is positive on each by interval arithmetic; 0 if too many."""
    todo, done = [dict(box)], 0
    while todo:
        if done + len(todo) > pieces:
            return 0
        piece = todo.pop()
        if f(**_intervals(piece)).a > 0:
            done += 1
        else:
            todo.extend(_split(piece))
    return done


def negative_somewhere(f: Callable, box: Mapping, pieces: int) -> bool:
    """Whether f is negative on a piece of the box, by interval arithmetic."""
    todo = [dict(box)]
    for _ in range(pieces):
        if not todo:
            break
        piece = todo.pop(0)
        value = f(**_intervals(piece))
        if value.b < 0:
            return True
        if value.a < 0:
            todo.extend(_split(piece))
    return False


# --- Student's law -----------------------------------------------------------------------------------------


@cache
def student(degrees: int, tail: float) -> float:
    """The value that Student's law with these degrees of freedom exceeds with probability tail."""
    low, high = 0.0, 1.0

    def beyond(t):
        return mp.betainc(degrees / 2, 0.5, 0, degrees / (degrees + t * t), regularized=True) / 2

    while beyond(high) > tail:
        low, high = high, 2 * high
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > tail else (low, middle)
    return high
