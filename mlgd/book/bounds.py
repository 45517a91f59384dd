"""The table of bounds as a page shows it: cells by substitution, the smallest bound of each regime in bold."""

import sympy as sp
from IPython.display import HTML

from mlgd import formulas as F

ROWS = {
    "deterministic": "one fixed level",
    "gd": "multilevel descent",
    "accelerated": "accelerated",
}
REGIMES = {
    "any": "any",
    "ETMC": r"\(\gamma&lt;2\)",
    "MC": r"\(\gamma=2\)",
    "HTMC": r"\(\gamma&gt;2\)",
}
COLUMNS = ("convex", "strong")
INSIDE = {
    "ETMC": (0, 2),
    "HTMC": (2, 8),
}  # where a regime's exponents are compared; all are linear in gamma
_inside = {"convex": r"(\beta d_0^2/\varepsilon)", "strong": r"\kappa"}
_x = sp.Symbol("x", positive=True)
_SCALE = {
    "convex": {F.eps: F.beta * F.d0**2 / _x},
    "strong": {F.beta: _x * F.mu},
}  # x > 1: beta d0^2/eps, or kappa


def exponent(one, other, column: str):
    """The exponent of beta d0^2/eps (or of kappa) in the quotient of two cells of one column; it is affine in gamma."""
    quotient = sp.simplify(sp.powdenest((one / other).subs(_SCALE[column]), force=True))
    return sp.expand(sp.simplify(_x * sp.diff(sp.log(quotient), _x)))


def smallest(cells: dict, name: str, column: str) -> str | None:
    """The row with the smallest bound of a regime and column, None where two bounds agree.

    An exponent that is affine in gamma and not positive at both ends of the regime is negative inside.
    """
    rows = {row: cells[row, "any" if row == "deterministic" else name, column] for row in ROWS}
    if name == "MC":
        return None if sp.simplify(rows["gd"] / rows["accelerated"]) == 1 else "differ"
    for row, cell in rows.items():
        powers = [exponent(cell, other, column) for key, other in rows.items() if key != row]
        ends = [[p.subs(F.gamma, end) for end in INSIDE[name]] for p in powers]
        if all(max(pair) <= 0 and min(pair) < 0 for pair in ends) and all(
            sp.diff(p, F.gamma, 2) == 0 for p in powers
        ):
            return row
    return None


def bold(cells: dict) -> set[tuple]:
    """What the table prints in bold: (row, regime, column), with row None where two bounds agree."""
    return {
        (smallest(cells, name, column), name, column) for name in F.REGIMES for column in COLUMNS
    }


def powers(cell, column: str) -> dict:
    """{factor: exponent} of a cell, in the paper's factors: d0, beta, eps and a logarithm, or mu eps, kappa and a logarithm."""
    logarithm = sp.Mul(*(a for a in cell.args if a.has(sp.log)))
    power = lambda s: sp.expand(sp.simplify(s * sp.diff(sp.log(cell / logarithm), s)))  # noqa: E731
    if column == "convex":
        found = {F.d0: power(F.d0), F.beta: power(F.beta), F.eps: power(F.eps)}
    else:
        found = {F.mu * F.eps: power(F.eps), F.kappa: power(F.beta)}
    return {
        base: e
        for base, e in [*found.items(), (sp.sqrt(logarithm), sp.Integer(2))]
        if e != 0 and base != 1
    }


def monomial(cell, column: str) -> str:
    """A cell in LaTeX, as the paper writes it."""
    names = {F.mu * F.eps: r"(\mu\varepsilon)", F.kappa: r"\kappa", sp.log(F.kappa): r"\log"}
    factors = []
    for base, e in powers(cell, column).items():
        name = names.get(base, r"\log" if base.has(sp.log) else sp.latex(base))
        factors.append(
            (name if e == 1 else f"{name}^{{{sp.latex(e)}}}")
            + ("" if name != r"\log" else _inside[column])
        )
    return r"\,".join(factors)


def table(cells: dict) -> HTML:
    """The table of bounds; c^gamma, constants of gamma and the strongly convex column's logarithm are left out."""
    marked = bold(cells)

    def cell(row, name, column):
        text = monomial(cells[row, name, column], column)
        return (
            rf"<td>\(\boldsymbol{{{text}}}\)</td>"
            if (row, name, column) in marked
            else rf"<td>\({text}\)</td>"
        )

    lines = [
        ("deterministic", "any"),
        *((row, name) for row in ("gd", "accelerated") for name in F.REGIMES),
    ]
    body = "".join(
        f"<tr><td>{ROWS[row]}</td><td>{REGIMES[name]}</td>{cell(row, name, 'convex')}{cell(row, name, 'strong')}</tr>"
        for row, name in lines
    )
    head = "<tr><th>method</th><th>regime</th><th>convex</th><th>strongly convex</th></tr>"
    return HTML(
        f"<div class='tex2jax_process'><table class='mlgd-grid'><thead>{head}</thead><tbody>{body}</tbody></table></div>"
    )
