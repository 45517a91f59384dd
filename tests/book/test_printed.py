"""Formulas are printed as one writes them by hand, and read back they have the same value."""

import math
import random
import re

import pytest
import sympy as sp

from mlgd import formulas as F
from mlgd.book.pieces import tex, written
from mlgd.formulas import c, d0, delta, eps, eta, gamma, mu, sigma

x, n = sp.Symbol("x", positive=True), sp.Symbol("n", positive=True, integer=True)
ROOT, SQUARE = sp.sqrt(8 * mu * eps), sp.log(1 + x / 2) ** 2
HAND = {  # what sympy would print otherwise
    r"\frac{\sqrt{\mu \varepsilon}}{8}": sp.sqrt(mu * eps) / 8,
    r"d_{0} \sqrt{\frac{3}{\eta \varepsilon}}": d0 * sp.sqrt(3 / (eta * eps)),
    r"\left(\frac{c}{\sqrt{8 \mu \varepsilon}}\right)^{\gamma}": (c / ROOT) ** gamma,
    r"2^{\gamma/2 - 1}": 2 ** (gamma / 2 - 1),
    r"2^{-n (1 + \gamma/2)}": 2 ** (-(1 + gamma / 2) * n),
    r"2^{-x/(2 \mu)}": 2 ** (-x / (2 * mu)),
    r"\frac{\varepsilon}{4} e^{\mu x/8}": eps / 4 * sp.exp(mu * x / 8),
    r"\eta \mu - 1": eta * mu - 1,
    r"1 + \log \frac{\mu d_{0}^{2}}{\varepsilon}": 1 + sp.log(mu * d0**2 / eps),
    r"\frac{4}{\eta \mu} \log^{2}\left(1 + \frac{x}{2}\right)": 4 * SQUARE / eta / mu,
    r"\frac{9}{4} \log_2^{2} \frac{x}{3}": sp.Rational(9, 4) * sp.log(x / 3, 2) ** 2,
    r"2 x (1 + 128 \log 2)": x * (2 + 256 * sp.log(2)),
    r"\frac{n (n + 1)}{2}": n * (n + 1) / 2,
    r"\frac{\sqrt{1 + x/\eta} - 1}{2}": (sp.sqrt(1 + x / eta) - 1) / 2,
    r"\frac{x}{\eta} + \eta (\sigma^{2} + 2 \delta^{2})": x / eta
    + eta * (sigma**2 + 2 * delta**2),
    r"\frac{2 x}{1 - x^{2}/8}": 2 * x / (1 - x**2 / 8),
}


class Reader:
    """The value of printed LaTeX; knows nothing of how it was printed."""

    def __init__(self, latex: str, values: dict[str, float]):
        self.rest, self.values = re.sub(r"\\left|\\right|\s", "", latex), values
        self.names = sorted(
            (re.sub(r"\s", "", name) for name in values), key=len, reverse=True
        )

    def take(self, *words: str) -> str:
        word = next((w for w in words if self.rest.startswith(w)), "")
        self.rest = self.rest[len(word) :]
        return word

    def group(self, end: str = "}") -> float:
        total = -self.product() if self.take("-") else self.product()
        while sign := self.take("+", "-"):
            total += self.product() if sign == "+" else -self.product()
        assert self.take(end) == end, self.rest
        return total

    def product(self) -> float:
        value = self.power()
        while self.rest and self.rest[0] not in "+-)}":
            value = value / self.power() if self.take("/") else value * self.power()
        return value

    def power(self) -> float:
        self.take(r"\cdot")
        log = self.take(r"\log_2", r"\log")
        exponent = self.group() if log and self.take("^{") else 1
        base = self.atom()
        if log:
            return (math.log2 if log.endswith("2") else math.log)(base) ** exponent
        return base ** self.group() if self.take("^{") else base

    def atom(self) -> float:
        if self.take(r"\frac{"):
            return self.group("}{") / self.group()
        if self.take(r"\sqrt{"):
            return math.sqrt(self.group())
        if self.take("("):
            return self.group(")")
        if number := re.match(r"\d+(\.\d+)?", self.rest):
            return float(self.take(number[0]))
        return {"e": math.e, **self.values}[self.take(*self.names, "e")]


def same(expression: sp.Expr, rng: random.Random) -> bool:
    at = {s: rng.uniform(1.2, 1.9) for s in sorted(expression.free_symbols, key=str)}
    value = complex(expression.subs(at).evalf())
    if abs(value) > 1e100 or abs(value.imag) > 1e-12:
        return True
    read = Reader(tex(expression), {tex(s): v for s, v in at.items()}).group("")
    return math.isclose(read, value.real, rel_tol=1e-9, abs_tol=1e-9)


def grown(rng: random.Random, depth: int) -> sp.Expr:
    """An expression of random shape."""
    if depth == 0:
        return rng.choice(
            [mu, eps, eta, gamma, d0, sigma, c, sp.Rational(rng.randint(1, 9), 6)]
        )
    a, b = grown(rng, depth - 1), grown(rng, depth - 1)
    forms = [a + b, a - b, a * b, a / b, a * b, -a] if b != 0 else [a]
    if a.is_positive:
        forms += [sp.sqrt(a), 1 / sp.sqrt(a), a ** (1 - gamma / 2), 2**-a, sp.log(1 + a)]
    return rng.choice(forms)


@pytest.mark.parametrize("latex", HAND)
def test_a_formula_is_printed_as_one_writes_it(latex):
    assert tex(HAND[latex]) == latex


@pytest.mark.slow
def test_what_is_printed_has_the_value_of_what_is_computed():
    rng = random.Random(0)
    tables = [
        v if isinstance(v, dict) else {"": v}
        for k, v in vars(F).items()
        if k != "SYMBOLS"
    ]
    formulas = [f for table in tables for f in table.values() if isinstance(f, sp.Expr)]
    shapes = [grown(rng, rng.randint(1, 3)) for _ in range(300)]
    assert [f for f in (*formulas, *HAND.values(), *shapes) if not same(f, rng)] == []


def test_numbers_in_tables_are_written_as_powers_of_ten():
    assert (
        written("3.8e+12 1e+08 1.85e-06 7e-03 d1e8")
        == "3.8·10¹² 10⁸ 1.85·10⁻⁶ 0.007 d1e8"
    )
