"""What the explorer's page is given: the sympy expressions of `mlgd.formulas` as JavaScript, and the map of the chapter on rivals."""

import json
from pathlib import Path

import sympy as sp

from mlgd import formulas as F

from .figures_map import SHORT, ranked

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


def territory(path: str | Path, kind: str = "fresh") -> str:
    """`window.mlgdMap`: targets, conditionings, rates and, for each cell of the stored map, its winner, letter, colour and price."""
    stored = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
    cells = [c for c in stored if c["kind"] == kind]
    rows = []
    for c in cells:
        winner, price = ranked(c["prices"])[0]
        rows.append([c["eps"], c["kappa"], c["gamma"], winner, *SHORT[winner], f"{price:.3g}"])
    found = {
        name: sorted({c[key] for c in cells})
        for name, key in (("targets", "eps"), ("kappas", "kappa"), ("gammas", "gamma"))
    }
    return f"window.mlgdMap = {json.dumps({**found, 'cells': rows})};"
