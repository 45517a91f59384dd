"""The explorer's formulas: the sympy expressions of `mlgd.formulas`, printed as JavaScript for the page's sliders."""

import sympy as sp

from mlgd import formulas as F

PRINTED = {
    "convexT": F.CONVEX["T"],
    "convexDelta": F.CONVEX["delta"],
    "convexSigma2": F.CONVEX["sigma2"],
    "strongT": F.STRONG["T"],
    "strongDelta": F.STRONG["delta"],
    "strongSigma2": F.STRONG["sigma2"],
    "similarT": F.SIMILAR["T"],
    "similarDelta": F.SIMILAR["delta"],
    "similarSigma2": F.SIMILAR["sigma2"],
    "stageTarget": F.STAGE_TARGET,
    "scaleHTMC": F.SCALE["HTMC"],
    "scaleMC": F.SCALE["MC"],
    "scaleETMC": F.SCALE["ETMC"],
}
NAMES = {F.eps: "eps", F.d0: "d0", F.first: "first", F.horizon: "horizon"}


def javascript() -> str:
    """`window.mlgdFormulas`: one function a formula, taking an object with the symbols' names."""
    lines = []
    for name, expression in PRINTED.items():
        renamed = expression.subs(NAMES)
        symbols = ", ".join(sorted(str(s) for s in renamed.free_symbols))
        lines.append(f"  {name}: ({{{symbols}}}) => {sp.jscode(renamed)},")
    return "window.mlgdFormulas = {\n" + "\n".join(lines) + "\n};"
