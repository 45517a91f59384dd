"""What decides a check: zero by sympy, signs by hypotheses, whole ranges by interval arithmetic."""

from collections.abc import Callable, Iterable, Mapping

import sympy as sp
from mpmath import iv

PIECES = 20_000  # into which a box is cut before it is given up
Box = Mapping[sp.Symbol, tuple[float, float]]


def is_zero(expression) -> bool:
    """Whether sympy reduces the expression to exactly 0 under its symbols' assumptions."""
    expression = sp.sympify(expression).doit()
    if expression == 0:
        return True
    value = number(expression.subs(sample(expression.free_symbols)))
    if value is not None and abs(value) > 1e-12:
        return False
    # a logarithm may be split only where no symbol can be negative
    safe = all(s.is_nonnegative for s in expression.free_symbols)
    forms: tuple[Callable, ...] = (
        sp.expand,
        sp.simplify,
        lambda e: sp.simplify(sp.powsimp(sp.expand(sp.expand_log(e, force=safe)))),
    )
    return any(form(expression) == 0 for form in forms)


def equal(a, b) -> bool:
    """Whether a - b is 0, or both are positive products of powers whose logarithms are the same."""
    a, b = sp.sympify(a).doit(), sp.sympify(b).doit()
    if is_zero(a - b):
        return True
    if not all(s.is_positive for s in a.free_symbols | b.free_symbols):
        return False
    at = sample(a.free_symbols | b.free_symbols)
    x, y = number(a.subs(at)), number(b.subs(at))
    if not x or not y or abs(x / y - 1) > 1e-12:
        return False
    logs = [sp.expand(sp.expand_log(sp.log(sp.factor_terms(e)), force=True)) for e in (a, b)]
    return is_zero(logs[0] - logs[1])


def sample(symbols: Iterable[sp.Symbol], shift: int = 0) -> dict[sp.Symbol, sp.Expr]:
    """A point without structure: ratios of consecutive primes, integers where those are asked for."""
    point = {}
    for i, s in enumerate(sorted(symbols, key=str), 2 + shift):
        size = sp.Integer(i + 1) if s.is_integer else sp.Rational(sp.prime(i + 1), sp.prime(i))
        point[s] = -size if s.is_negative else size
    return point


def number(expression) -> float | None:
    """The number that an expression without symbols is, its modulus if complex; None if it is none."""
    try:
        value = complex(sp.sympify(expression).evalf(30))
    except (TypeError, ValueError, ZeroDivisionError, RecursionError):
        return None
    return abs(value) if value.imag else value.real


def factors(term: sp.Expr) -> tuple[sp.Expr, ...]:
    """The factors of a product, a common factor of a sum among them."""
    return sp.Mul.make_args(sp.factor_terms(term, sign=False) if term.is_Add else term)


def non_negative(factor: sp.Expr, hypotheses: Iterable[sp.Expr]) -> bool:
    """Whether a factor is at least 0 by its symbols, as a square, or as a multiple of a hypothesis."""
    if factor.is_nonnegative:
        return True
    if isinstance(factor, sp.Pow) and factor.exp.is_even and factor.base.is_real:
        return True
    ratios = [sp.simplify(factor / hypothesis) for hypothesis in hypotheses]
    return any(ratio.is_number and ratio.is_positive for ratio in ratios)


# --- whole ranges ----------------------------------------------------------------------------------


def interval(expression: sp.Expr, box: Mapping):
    """An interval that contains every value of the expression over a box of intervals."""
    if expression.is_Symbol:
        return box[expression]
    if expression.is_Rational:
        return iv.mpf(int(expression.p)) / iv.mpf(int(expression.q))
    if expression.is_Float:
        return iv.mpf(str(expression))
    if expression in (sp.pi, sp.E):
        return iv.pi if expression == sp.pi else iv.e
    inside = [interval(e, box) for e in expression.args]
    match expression:
        case sp.Add():
            return sum(inside[1:], inside[0])
        case sp.Mul():
            product = inside[0]
            for factor in inside[1:]:
                product = product * factor
            return product
        case sp.Pow():
            power = expression.exp
            return inside[0] ** (int(power) if power.is_Integer else inside[1])
        case sp.exp():
            return iv.exp(inside[0])
        case sp.log():
            return iv.log(inside[0])
    raise ValueError(f"no interval arithmetic for {expression.func.__name__}: write it otherwise")


def positive_on(expression: sp.Expr, over: Box) -> int:
    """Into how many pieces the box was cut until the expression was positive on each; 0 if never."""
    todo, done = [dict(over)], 0
    while todo:
        if done + len(todo) > PIECES:
            return 0
        piece = todo.pop()
        if interval(expression, _intervals(piece)).a > 0:
            done += 1
        else:
            todo.extend(_halves(piece))
    return done


def negative_somewhere(expression: sp.Expr, over: Box) -> bool:
    """Whether the expression is negative on some piece of the box."""
    todo = [dict(over)]
    for _ in range(PIECES):
        if not todo:
            return False
        piece = todo.pop(0)
        value = interval(expression, _intervals(piece))
        if value.b < 0:
            return True
        if value.a < 0:
            todo.extend(_halves(piece))
    return False


def _intervals(piece: Box) -> dict:
    return {symbol: iv.mpf([low, high]) for symbol, (low, high) in piece.items()}


def _halves(piece: Box) -> tuple[dict, dict]:
    widest = max(piece, key=lambda s: piece[s][1] - piece[s][0])
    low, high = piece[widest]
    middle = (low + high) / 2
    return {**piece, widest: (low, middle)}, {**piece, widest: (middle, high)}
