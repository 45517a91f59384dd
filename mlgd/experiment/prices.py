"""What `compare` expects every method to cost on one instance whose spectrum it is told: the table behind the explorer's second chart.

    python -m mlgd.experiment.prices --out book/data/prices.json

The instance is the map's with smooth errors, seed 0; its audit has the exact gradient for a reference, and its spectral measures are
the exact ones. So these are prices of plans that know all, in units of one evaluation of the coarsest level.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

from mlgd import audit, compare
from mlgd.schemes import NotApplicable
from mlgd.spectra import Measure, Measures

from .fields import LEVELS, Family
from .spots import hierarchy

GAMMAS = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
KAPPAS = tuple(10.0**j for j in range(1, 7))
TARGETS = tuple(float(f"{10.0**-e:.6g}") for e in (0.5, 1, 2, 3, 4, 5))
METHODS = ("multilevel", "fixed", "refine", "anchored", "corrected")


def known(kappa: float, gamma: float):
    """(problem, report) of the instance, with nothing left to measure."""
    f = Family(kappa, "smooth")
    h, y0 = hierarchy(f, gamma, 0)
    report = audit(h, [y0, 0.9 * y0, y0 / 2, 0 * y0], reference=lambda y: f.spectrum * y)
    values = [h.value(k, 0 * y0) for k in range(LEVELS)]
    increments = {
        k: Measure(f.spectrum.copy(), (values[k] - values[k - 1]) ** 2) for k in range(1, LEVELS)
    }
    measures = Measures(
        Measure(f.spectrum, (f.spectrum * y0) ** 2), increments, LEVELS - 1, 1 / kappa
    )
    return replace(report.problem(beta=1.0, d0=f.d0, mu=1 / kappa), measures=measures), report


def prices(kappa: float, gamma: float, eps: float, made=None) -> list[float | None]:
    """The expected price of each method, to seven digits; None where no plan can be made."""
    problem, report = made or known(kappa, gamma)
    try:
        found = {
            p.method: p.expected_cost
            for p in compare(problem, eps, on=report, promise="measured").plans
        }
    except NotApplicable:
        found = {}
    return [float(f"{found[m]:.7g}") if m in found else None for m in METHODS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    table = []
    for kappa in KAPPAS:
        for gamma in GAMMAS:
            made = known(kappa, gamma)
            table.append([prices(kappa, gamma, eps, made) for eps in TARGETS])
            print(f"{kappa:g}", gamma, flush=True)
    about = {"command": "python -m mlgd.experiment.prices --out book/data/prices.json", "seed": 0}
    axes = {"kappas": KAPPAS, "gammas": GAMMAS, "targets": TARGETS, "methods": METHODS}
    rows = ",\n".join(json.dumps(row) for row in table)
    given.out.write_text(
        f'{{"about": {json.dumps(about)},\n"axes": {json.dumps(axes)},\n"prices": [\n{rows}\n]}}\n'
    )


if __name__ == "__main__":
    main()
