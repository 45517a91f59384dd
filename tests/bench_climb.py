"""minimize(h, y0, eps=eps) with nothing given: price over the best in hindsight, family by family.

    python tests/bench_climb.py [vectors|turned|smooth|fresh|isotropic ...] [--seeds ...]

Protocol: thresholds of mlgd/climb.py were set on seeds below 100, 9000 to 9999 and 12000 to 12003;
81000 to 81003 were run once, at the end. Take new ones after a change of decisions.
"""

import argparse
from itertools import product

import numpy as np

from mlgd import minimize
from mlgd.experiment.rivals import EPS, Member, hindsight

SPOTS = [(3, 1e2, 0), (6, 1e2, 1), (2, 1e3, 0), (3, 1e3, 0)]
SPOTS += [(6, 1e3, 0), (4, 1e3, 1), (4, 1e4, 0), (8, 1e4, 0)]
CELLS = {
    "vectors": [*product((3, 4, 6), (1e2, 1e3, 1e4, 1e5), (1e-2,))],
    "turned": [*product((3, 4, 6), (1e2, 1e3, 1e4), (1e-2, 1e-4))],
    "isotropic": [*product((3, 4, 6), (1e3, 1e4), (1e-2,))],
} | {kind: [(g, k, EPS[e]) for g, k, e in SPOTS] for kind in ("smooth", "fresh")}


def row(name: str, losses, prices, note: str = "") -> None:
    losses, prices = np.array(losses), np.array(prices)
    middle, worst = np.median(prices), prices.max()
    print(
        f"{name:38s} loss/eps {losses.mean():6.3f} (worst {losses.max():6.3g})   "
        f"price {middle:7.2f} (worst {worst:8.2f})  {note}",
        flush=True,
    )


def bench(kind: str, seeds) -> None:
    cells = []
    for gamma, kappa, eps in CELLS[kind]:
        losses, prices, ends = [], [], []
        for seed in seeds:
            flat = kind == "isotropic"
            m = Member("fresh" if flat else kind, kappa, float(gamma), seed, flat)
            run = minimize(m.hierarchy, m.start, eps=eps, radius=m.d0 if flat else None)
            losses.append(m.loss(run.y) / eps)
            prices.append(run.cost / hindsight(m, eps))
            ends.append(run.status)
        cells.append((losses, prices))
        note = "" if set(ends) == {"done"} else f"done {ends.count('done')} of {len(ends)}"
        row(f"{kind}, gamma {gamma}, kappa {kappa:.0e}, {eps:.0e}", losses, prices, note)
    above = sum(np.mean(losses) > 1 for losses, _ in cells)
    every = [np.concatenate(column) for column in zip(*cells, strict=True)]
    row(f"== {kind}", *every, f"mean loss above eps in {above} of {len(cells)} cells")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=[*CELLS])
    parser.add_argument("--seeds", nargs="+", type=int, default=range(8000, 8004))
    given = parser.parse_args()
    for kind in given.kinds:
        bench(kind, given.seeds)
