"""The map: the cheapest method for every rate, conditioning, target and kind of error, each method tuned in hindsight.

    python -m mlgd.experiment.territory --out book/data/territory.json [--kind fresh] [--kappa 100]

Prices are means over instances, in units of one gradient at the coarsest level whose zero is good enough. Conjugate gradients and the
corrected coarse model: their steps are chosen on instances 0..11 and their losses reported on instances 100..111. Telescopes, descent
and Nesterov's method: on fresh errors exact second moments over the family; on smooth ones exact moments of instances 0..3, chosen by
them, and reported on 100..103; on rounded ones runs on instances 0..7, reported on 100..107, and descent up to kappa 1000 only. There
a mean of 4^k moved points of level 0 is as good as level k (`dithering.Dithered`): what correction costs at rate 2, dither offers at all.
"""

import argparse
import json
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import numpy as np

from . import affine, anchoring, dithering, krylov
from .fields import KINDS, TARGETS, Family, Instances
from .responses import LINEAR, linear_methods, ways

GAMMAS = (1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
KAPPAS = tuple(10.0**j for j in range(1, 7))
TUNING, REPORTING = range(12), range(100, 112)
EXACT = 4  # of them, where moments are exact
METHODS = (
    "fixed level",
    "Nesterov, coarse to fine",
    "CG, coarse to fine",
    "corrected coarse model",
    "plain telescope",
    "accelerated telescope",
    "scheduled telescope",
    "anchored telescope",
    "corrected, dithered",
)


def by_runs(
    f: Family, eps: float, corrected: bool, gammas: Iterable[float]
) -> dict[float, tuple[krylov.Chain, float]]:
    """The cheapest chain at each rate, chosen on the tuning instances, with its mean loss over eps on the reporting ones."""
    found, reported = krylov.tuned(f, TUNING, eps, corrected, gammas), {}
    for chain in set(found.values()):
        reported[chain] = float(krylov.play(Instances(f, REPORTING), chain).mean()) / eps
    return {gamma: (chain, reported[chain]) for gamma, chain in found.items()}


def cells(kind: str, kappa: float, gammas=GAMMAS, targets=TARGETS) -> list[dict]:
    """The cells of one conditioning: for each method its price in gradients, and the loss over eps on other instances."""
    f, out = Family(kappa, kind), []
    made = ways(f)
    tuning, reporting = (
        affine.Affine.of(f, seeds[:EXACT]) if kind == "smooth" else None
        for seeds in (TUNING, REPORTING)
    )
    for eps in targets:
        runs = {
            name: by_runs(f, eps, name.startswith("corrected"), gammas) for name in METHODS[2:4]
        }
        if kind == "rounded":
            runs |= {m: dithering.tuned(f, m, eps, gammas, made) for m in LINEAR}
        for gamma in gammas:
            prices, reported = {}, {}
            for name, best in runs.items():
                if gamma in best:
                    chosen, reported[name] = best[gamma]
                    prices[name] = (
                        chosen.price(gamma)
                        if name in METHODS[2:4]
                        else dithering.price(chosen, gamma)
                    )
            found = linear_methods(f, eps, gamma, made) if kind == "fresh" else {}
            if kind == "smooth":
                found = {m: affine.tuned(f, tuning, m, made, eps, gamma) for m in LINEAR}
                reported |= {
                    m: affine.after(reporting, found[m].stages) / eps
                    for m in found
                    if found[m].stages
                }
                paid, epochs = anchoring.cheapest(tuning, eps, gamma)
                if epochs:
                    prices["anchored telescope"] = paid
                    reported["anchored telescope"] = anchoring.reported(reporting, epochs) / eps
            prices |= {m: best.price for m, best in found.items()}
            unit = 2.0 ** (gamma * f.unit(eps))
            shown = {
                m: float(f"{prices[m] / unit:.4g}")
                for m in METHODS
                if np.isfinite(prices.get(m, np.inf))
            }
            said = {m: round(reported[m], 2) for m in shown if m in reported}
            out.append(
                {
                    "kind": kind,
                    "kappa": kappa,
                    "eps": eps,
                    "gamma": gamma,
                    "prices": shown,
                    "reported": said,
                }
            )
    return dithered(out, f) if kind == "rounded" else out


def dithered(found: list[dict], f: Family) -> list[dict]:
    """The same with the corrected model's price at rate 2 on offer at every larger rate, in its units."""
    two = {c["eps"]: c["prices"]["corrected coarse model"] for c in found if c["gamma"] == 2}
    for c in found:
        if c["gamma"] > 2:
            price = two[c["eps"]] * 2.0 ** ((2 - c["gamma"]) * f.unit(c["eps"]))
            c["prices"]["corrected, dithered"] = float(f"{price:.4g}")
    return found


# --- borders ---------------------------------------------------------------------------------------------------------------


def telescope_price(gamma: float, kappa: float, eps: float, levels: int) -> float:
    """What a plain telescope costs on fresh errors, in gradients, with so many levels below the one that eps needs.

    A lasting error a_K costs half of eps, and the noise may cost the other half. Averaged over W calls of variance s^2 it
    costs s^2/W times what a lasting square costs, and a call costs (sum of sqrt(v_k c_k))^2/s^2: W and s^2 drop out. With
    v_k = 5/2 a_k^2, ten times the lasting square a_k^2/4, the sum over m levels is geometric. The level below them is looked
    at in every step, and descent of step near 2/beta takes kappa/4 ln(1/eps) of them.
    """
    drawn = np.arange(1, levels + 1)
    total = np.cumsum(2.0 ** ((drawn - 1) * (1 - gamma / 2)))
    return float(
        (
            10 * (1 + 2**-gamma) * total**2 + kappa / 4 * np.log(1 / eps) * 2.0 ** (-gamma * drawn)
        ).min()
    )


def nesterov_price(kappa: float, gamma: float) -> float:
    """Nesterov's method coarse to fine: each level takes the loss from four floors to one, an eighth of it to spare."""
    return np.sqrt(kappa) / 2 * np.log(16) / (1 - 2**-gamma)


def pays(gamma: float, kappa: float, eps: float) -> float:
    """The logarithm of Nesterov's price over the telescope's: positive where the telescope pays, by the formulas."""
    levels = Family(kappa).unit(eps)
    return (
        float(np.log(nesterov_price(kappa, gamma) / telescope_price(gamma, kappa, eps, levels)))
        if levels
        else -np.inf
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--kappa", type=float, action="append")
    given = parser.parse_args()
    # asked for a piece, it keeps what the file has; the whole map is begun anew
    whole = not (given.kind or given.kappa) or not given.out.exists()
    old = [] if whole else json.loads(given.out.read_text(encoding="utf-8"))["cells"]
    kept = {(c["kind"], c["kappa"], c["eps"], c["gamma"]): c for c in old}
    for kind in given.kind or KINDS:
        for kappa in given.kappa or KAPPAS:
            for cell in cells(kind, kappa):
                kept[cell["kind"], cell["kappa"], cell["eps"], cell["gamma"]] = cell
            write(given.out, kept)
            print(kind, f"{kappa:g}", flush=True)


def write(path: Path, kept: dict) -> None:
    about = {
        "command": "python -m mlgd.experiment.territory --out book/data/territory.json",
        "seed": 20261116,
        "version": version("mlgd"),
        "numpy": np.__version__,
    }
    lines = ",\n".join(json.dumps(kept[key]) for key in sorted(kept))
    path.write_text(
        f'{{"about": {json.dumps(about)},\n"cells": [\n{lines}\n]}}\n', encoding="utf-8"
    )


if __name__ == "__main__":
    main()
