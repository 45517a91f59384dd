"""How formulas are written, and what a reader is told in place.

`Author` prints an expression as one writes it by hand. In the build the first formula of a page
that is nothing but a listed symbol says on a hover what it means. `notation.md` lists the symbols
in tables: first cells [$\\beta$]{#sym-beta}, second their meaning.
"""

import re
from html import escape
from pathlib import Path

import sympy as sp
from sympy.codegen.cfunctions import log2
from sympy.printing.latex import LatexPrinter
from sympy.printing.precedence import PRECEDENCE

ROW = re.compile(r"^\| \[([^\]]+)\]\{#sym-[\w-]+\} \| (.*?) \|", re.M)
# the first in a product
LETTERS = r"C_{\gamma} \kappa \beta \eta \mu \varepsilon c".split()
# after a logarithm
BARE = re.compile(r"\d+|\\frac(\{([^{}]|\{([^{}]|\{[^{}]*\})*\})*\}){2}")
TALL = re.compile(r"\\(frac|sum|int|prod)|^e\^")
NAMES = "Loss R nabla le to eps ast asymp Lambda Theta beta gamma delta eta mu sigma"
# titles
SIGNS = dict(zip(NAMES.split(), "ℒ ℝ ∇ ≤ → ε * ≍ Λ Θ β γ δ η μ σ".split(), strict=True))
# pages whose letters have meanings of their own
LOCAL = (
    "notation",
    "without_convexity",
)
HALF, ONE = sp.Rational(1, 2), sp.Integer(1)


def degree(term: sp.Expr, name: str) -> sp.Expr:
    """The power of a symbol in a product, if it is a number."""
    return sum(
        p for b, p in term.as_powers_dict().items() if str(b) == name and p.is_number
    )


def content(total: sp.Add) -> tuple[sp.Rational, sp.Expr, bool]:
    """The number common to all terms, the sum without it, and whether it divides them alike."""
    number, rest = total.primitive()
    below = {t.as_coeff_Mul(rational=True)[0].q for t in total.args}
    return number, rest, len(below) == 1


class Author(LatexPrinter):
    """One root, letters in their usual order, a slash where fractions would nest."""

    slash = False  # inside a fraction or an exponent

    def _small(self, write, *parts) -> str:
        outer, self.slash = self.slash, True
        text, self.slash = write(*parts), outer
        return text

    def _add_parens(self, s: str) -> str:
        return rf"\left({s}\right)" if TALL.search(s) else f"({s})"

    def _print_log(self, e: sp.Expr, exp: str = "") -> str:
        text, base = self._print(e.args[0]), "_2" * isinstance(e, log2)
        bare = e.args[0].is_Symbol or BARE.fullmatch(text)
        name = rf"\log{base}^{{{exp}}}" if exp else rf"\log{base}"
        return f"{name} {text}" if bare else name + self._add_parens(text)

    def _print_Pow(self, e: sp.Expr) -> str:
        base, power = e.as_base_exp()
        if power.is_Rational and power < 0:
            return self._print_Mul(e)
        if power == HALF:
            return rf"\sqrt{{{self._print(base)}}}"
        small = self._small(self._print, power)
        if base.is_Function:
            return self._print(base, exp=small)
        text = self.parenthesize(base, PRECEDENCE["Pow"])
        return f"{self.parenthesize_super(text) if base.is_Symbol else text}^{{{small}}}"

    def _print_Add(self, e: sp.Add, order=None) -> str:
        """Constants, then powers of the step; no minus first; halves of all as half of a sum."""
        (number, rest, alike), terms = content(e), self._as_ordered_terms(e)
        if number.q > 1 and alike:
            return self._print_Mul(sp.Mul(number, rest, evaluate=False))
        if len(e.free_symbols) > 1 or not e.is_polynomial() or number.q > 1:
            terms.sort(
                key=lambda t: (not t.is_number, degree(t, "eta"), -degree(t, "sigma"))
            )
        texts = [
            self._add_parens(self._print(t)) if t.is_Add else self._print(t)
            for t in terms
        ]
        if texts[0].startswith("-"):
            texts.sort(key=lambda text: text.startswith("-"))
        return " + ".join(texts).replace("+ -", "- ")

    def _place(self, factor: sp.Expr) -> tuple:
        """Numbers, letters (Greek, Latin, capital), roots, brackets, logarithms, sums."""
        base, power = factor.as_base_exp()
        if base.is_Symbol:
            name = self._print(base)
            first = LETTERS.index(name) if name in LETTERS else 9
            capital = bool(re.match(r"\\?[A-Z]|\\math", name))
            return 1, first, capital, name[0] != "\\", name
        if isinstance(base, sp.log | log2 | sp.Sum | sp.Product | sp.Integral):
            return 6 if base.is_Function else 7, ""
        if base.is_number and not base.is_Add and base != sp.E:
            return 2 if power.is_Symbol and power.name != "gamma" else 0, ""
        return 3 if power == HALF else 4 + base.is_Mul, ""

    def _row(self, number: int, factors: list[sp.Expr], alone: bool = False) -> str:
        """Factors side by side, in brackets where they need them."""
        texts = [str(number)] * (number > 1 or not factors)
        for i, f in enumerate(sorted(factors, key=self._place), 1):
            text, last = self._print(f), i == len(factors)
            if self._needs_mul_brackets(f, last=last) and not (
                alone and last and not texts
            ):
                text = self._add_parens(text)
            dot = texts and texts[-1][0].isdigit() and text[0].isdigit()
            texts += [r"\cdot", text] if dot else [text]
        return " ".join(texts)

    def _print_Mul(self, e: sp.Expr) -> str:  # noqa: C901 (a printer is a list of cases)
        """One fraction, and after it what is tall itself."""
        number, root, over, under = ONE, ONE, [], []
        for f in e.as_ordered_factors():
            base, power = (f, ONE) if f.is_Rational else f.as_base_exp()
            if (
                base.is_Add and power.is_Integer
            ):  # its common number goes in front, 1 + x/2 stays
                common, rest, alike = content(base)
                if alike or common.q == 1 or abs(rest.as_coeff_Add()[0]) == 1:
                    number, base = number * common**power, rest
                if all(t.could_extract_minus_sign() for t in base.args):
                    number, base = number * (-1) ** power, -base
            if f.is_Rational:
                number *= f
            elif abs(power) == HALF and base.is_nonnegative:
                root *= base ** (2 * power)
            elif power.is_Rational and power < 0:
                under.append(base**-power)
            else:
                over.append(base**power)
        if root.as_coeff_Mul()[0] != 1:
            number, root = sp.sign(number), number**2 * root
        side, root = (under, 1 / root) if sp.fraction(root)[0] == 1 else (over, root)
        side += [sp.Pow(root, HALF, evaluate=False)] * (root != 1)
        for i, (base, power) in enumerate(f.as_base_exp() for f in over):
            if isinstance(base, sp.log) and sp.log(2) ** power in under:
                under.remove(sp.log(2) ** power)
                over[i] = log2(base.args[0]) ** power
        sign, p, q = "-" * bool(number < 0), abs(number.p), number.q
        if not under and q == 1:
            return sign + self._row(p, over)
        if self.slash:
            below = self._row(q, under)
            below = f"({below})" if len(under) + (q > 1) > 1 else below
            return f"{sign}{self._row(p, over)}/{below}"
        lone = p == len(over) == 1 and over[0].is_Add
        tall = [f for f in over if TALL.search(self._print(f)) and not lone]
        top = self._small(self._row, p, [f for f in over if f not in tall], True)
        text = rf"{sign}\frac{{{top}}}{{{self._small(self._row, q, under, True)}}}"
        return f"{text} {self._row(1, tall)}" if tall else text

    _print_log2, _print_ExpBase, _print_Rational = _print_log, _print_Pow, _print_Mul


def plain(tex: str) -> str:
    """A formula without what does not change it: spaces, braces, another name for epsilon."""
    return re.sub(r"[\s{}]", "", tex).replace(r"\varepsilon", r"\eps")


def spoken(text: str) -> str:
    """A meaning as a title can show it: letters and signs in place of LaTeX, no links."""
    text = re.sub(r"\{doc\}`(\w+)`", lambda page: page[1].replace("_", " "), text)
    text = re.sub(
        r"\\([A-Za-z]+)", lambda name: SIGNS[name[1]], re.sub(r"[$`]|\\,", "", text)
    )
    return re.sub(r"([_^])\{([^}]*)\}", r"\1(\2)", text)


def listed(text: str) -> dict[str, str]:
    """{symbol: its meaning} of notation.md's text."""
    return {
        plain(tex): spoken(meaning)
        for symbols, meaning in ROW.findall(text)
        for tex in re.findall(r"\$([^$]+)\$", symbols)
    }


def explain(app, doctree, docname: str) -> None:
    """Give the first lone occurrence of each listed symbol on a page its meaning as a title."""
    from docutils import nodes

    source = Path(app.srcdir) / "book" / "notation.md"
    if docname.endswith(LOCAL) or not source.exists() or app.builder.format != "html":
        return
    known = listed(source.read_text(encoding="utf-8"))
    for formula in list(doctree.findall(nodes.math)):
        meaning = known.pop(plain(formula.astext()), "")
        if meaning:
            begin = f'<span class="mlgd-symbol" tabindex="0" title="{escape(meaning)}">'
            marks = [nodes.raw("", text, format="html") for text in (begin, "</span>")]
            formula.replace_self([marks[0], formula.deepcopy(), marks[1]])


def setup(app) -> dict:
    """For Sphinx."""
    app.connect("doctree-resolved", explain)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
