"""Spot cells of the map: runs beside the exact moments, and the tool with nothing given beside the best in hindsight.

python -m mlgd.experiment.spots --out book/data/spots.json
"""

import argparse
import hashlib
import itertools
import json
import math
from pathlib import Path

import numpy as np

from mlgd import Hierarchy, minimize

from . import affine, anchoring
from .fields import KINDS, LEVELS, TARGETS, Family, Instances
from .responses import Found, linear_methods, run, ways

RUNS, OVER = (
    32,
    4,
)  # on smooth errors the runs are spread over so many instances, whose moments are exact
CELLS = [
    (3.0, 1e2, 0),
    (6.0, 1e2, 1),
    (2.0, 1e3, 0),
    (3.0, 1e3, 0),
    (6.0, 1e3, 0),
    (4.0, 1e3, 1),
    (4.0, 1e4, 0),
    (8.0, 1e4, 0),
]
LINEAR = (
    "Nesterov, coarse to fine",
    "plain telescope",
    "accelerated telescope",
    "scheduled telescope",
)
# instances that nothing was tuned on, and that the tool's author did not look at
TOOL = (*range(300, 310), *range(400, 410))
PATIENCE = (
    100_000  # evaluations after which a run of the tool is broken off (its status is then "failed")
)


def compared(
    losses: np.ndarray, prices: np.ndarray, loss: float, price: float, eps: float, unit: float
) -> dict:
    """Means, quartiles and distances from the prediction in standard errors."""

    def errors(sample, predicted):
        se = sample.std(ddof=1) / math.sqrt(sample.size)
        exact = (
            abs(sample.mean() - predicted) <= 1e-9 * predicted
        )  # nothing random: no error to divide by
        return 0.0 if exact else float((sample.mean() - predicted) / se)

    return {
        "predicted loss": round(loss / eps, 3),
        "mean loss": round(float(losses.mean()) / eps, 3),
        "quartiles": [round(float(q) / eps, 2) for q in np.quantile(losses, (0.25, 0.75))],
        "loss off": round(errors(losses, loss), 2),
        "predicted price": float(f"{price / unit:.4g}"),
        "mean price": float(f"{prices.mean() / unit:.4g}"),
        "price off": round(errors(prices, price), 2),
    }


def runs(gamma: float, kappa: float, eps: float, seed: int = 0) -> list[dict]:
    """Every linear method's best setting, run 32 times on fresh and on smooth errors; there the anchored telescope as well."""
    rows = []
    for kind in ("fresh", "smooth"):
        f = Family(kappa, kind)
        unit, made = 2.0 ** (gamma * f.unit(eps)), ways(f)
        fixed = affine.Affine.of(f, range(OVER)) if kind == "smooth" else None
        for method in LINEAR:
            found: Found
            if kind == "fresh":
                found = linear_methods(f, eps, gamma, made, (method,))[method]
                losses, prices = run(
                    Instances(f, range(1000, 1000 + RUNS)), found, gamma, [20261116, seed]
                )
            else:
                found = affine.tuned(f, fixed, method, made, eps, gamma)
                again = [
                    run(Instances(f, range(OVER)), found, gamma, [20261116, seed, i])
                    for i in range(RUNS // OVER)
                ]
                losses, prices = (np.concatenate(column) for column in zip(*again, strict=True))
            row = compared(losses, prices, found.loss, found.price, eps, unit)
            rows.append(
                {"kind": kind, "gamma": gamma, "kappa": kappa, "eps": eps, "method": method, **row}
            )
    price, epochs = anchoring.cheapest(fixed, eps, gamma)
    losses, prices = anchoring.run(fixed, epochs, gamma, RUNS, [20261116, seed])
    row = compared(losses, prices, anchoring.reported(fixed, epochs), price, eps, unit)
    rows.append(
        {
            "kind": "smooth",
            "gamma": gamma,
            "kappa": kappa,
            "eps": eps,
            "method": "anchored telescope",
            **row,
        }
    )
    return rows


def hierarchy(f: Family, gamma: float, seed: int) -> tuple[Hierarchy, np.ndarray]:
    """One instance as a user would hand it over: levels that are functions of y, and the start."""
    i, made = Instances(f, [seed]), itertools.count()

    def evaluate(k, y):
        if next(made) >= PATIENCE:
            raise RuntimeError(f"{PATIENCE} evaluations were made")
        if f.kind == "fresh":  # fresh at every point, the same at the same point
            i.rng = np.random.default_rng(
                int.from_bytes(hashlib.blake2b(y.tobytes() + bytes([k]), digest_size=8).digest())
            )
        return i.gradients([k], y[None])[0, 0]

    return Hierarchy(
        evaluate, lambda k: 2.0 ** (gamma * k), range(LEVELS), lambda k: f.accuracy[k]
    ), i.start[0]


def tool(kind: str, gamma: float, kappa: float, eps: float, seeds=TOOL) -> dict:
    """minimize(h, y0, eps=eps) on instances of a cell: losses over eps, prices in gradients, which share went into curvature."""
    f, losses, prices, bent, ends = Family(kappa, kind), [], [], [], []
    unit = 2.0 ** (gamma * f.unit(eps))
    for seed in seeds:
        h, start = hierarchy(f, gamma, seed)
        result = minimize(h, start, eps=eps, rng=seed)
        losses.append(float(f.loss(result.y)) / eps)
        prices.append(result.cost / unit)
        ends.append(result.status)
        bent.append(result.cost_by_purpose.get("curvature", 0.0) / result.cost)
    return {
        "kind": kind,
        "gamma": gamma,
        "kappa": kappa,
        "eps": eps,
        "loss": [float(f"{v:.3g}") for v in losses],
        "price": [float(f"{v:.4g}") for v in prices],
        "curvature": [round(v, 3) for v in bent],
        "status": ends,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", choices=("runs", "tool"), action="append")
    given = parser.parse_args()
    made = (
        json.loads(given.out.read_text(encoding="utf-8"))
        if given.part and given.out.exists()
        else {}
    )
    made["about"] = {
        "command": "python -m mlgd.experiment.spots --out book/data/spots.json",
        "seed": 20261116,
    }
    for part in given.part or ("runs", "tool"):
        made[part] = []
        for gamma, kappa, target in CELLS:
            cell = (gamma, kappa, TARGETS[target])
            made[part] += runs(*cell) if part == "runs" else [tool(kind, *cell) for kind in KINDS]
            print(part, cell, flush=True)
    given.out.write_text(json.dumps(made, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
