"""What the explorer's page is given: sympy's formulas as JavaScript, a table of prices from `compare`, and the map of rivals."""

import json
from pathlib import Path

import sympy as sp

from mlgd import formulas as F

from .figures_map import SECOND_ORDER, SHORT, ranked

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
AXES = {"kinds": "kind", "targets": "eps", "kappas": "kappa", "gammas": "gamma"}
NAMES = {F.eps: "eps", F.d0: "d0", F.first: "first", F.horizon: "horizon"}


def javascript() -> str:
    """`window.mlgdFormulas`: one function a formula, taking an object with the symbols' names."""
    lines = []
    for name, expression in PRINTED.items():
        renamed = expression.subs(NAMES)
        symbols = ", ".join(sorted(str(s) for s in renamed.free_symbols))
        lines.append(f"  {name}: ({{{symbols}}}) => {sp.jscode(renamed)},")
    return "window.mlgdFormulas = {\n" + "\n".join(lines) + "\n};"


def territory(path: str | Path) -> str:
    """`window.mlgdMap`: its axes, the methods with letter and colour, and in each cell the winner of all and of single gradients."""
    stored = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
    axes = {name: sorted({c[key] for c in stored}) for name, key in AXES.items()}
    methods, rows = list(SHORT), []
    for c in stored:
        row = [c[key] for key in AXES.values()]
        for without in ((), SECOND_ORDER):
            winner, price = ranked(c["prices"], without)[0]
            row += [methods.index(winner), float(f"{price:.3g}")]
        rows.append(row)
    shown = {**axes, "methods": [[m, *SHORT[m]] for m in methods], "cells": rows}
    return f"window.mlgdMap = {json.dumps(shown, separators=(',', ':'))};"


def expected(path: str | Path) -> str:
    """`window.mlgdPrices`: what `compare` expects, on a grid of conditionings, rates and targets, method by method."""
    stored = json.loads(Path(path).read_text(encoding="utf-8"))
    shown = {**stored["axes"], "prices": stored["prices"]}
    return f"window.mlgdPrices = {json.dumps(shown, separators=(',', ':'))};"
