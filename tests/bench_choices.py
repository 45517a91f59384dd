"""minimize(h, y0, eps=eps) with nothing given: loss reached and price, measuring included, against hindsight.

    python tests/bench_choices.py [first|second|held|all] [instances]

First family: prices over the cheapest of fixed, coarse to fine, telescope and corrected coarse model, each tuned in hindsight.
Second family (errors linear in y): prices in units of one gradient at the coarsest level whose zero is good enough.
Held: spectra, directions and losses that no threshold was chosen on, in the same units.
"""

import math
import sys

import numpy as np

from mlgd import Hierarchy, minimize
from mlgd.experiment.families import Instance
from mlgd.experiment.linear_errors import instance


def hindsight(i: Instance, eps: float) -> float:
    """The cheapest of all methods that know the instance."""
    corrected = math.inf
    for k in range(len(i.errors)):
        if i.loss(i.errors[k] / i.eigenvalues) < eps:
            _, calls = i._until(i._conjugate(i.start, k), i.start, eps)
            corrected = min(corrected, i.cost(k) + calls * i.cost(0))
    return min(corrected, i.telescope(eps, 12)[0], i.coarse_to_fine(eps, "cg"), i.fixed(eps))


def row(name: str, losses, prices, note="") -> None:
    losses, prices = np.array(losses), np.array(prices)
    print(
        f"{name:28s} loss/eps {losses.mean():7.3f} (worst {losses.max():6.3g})   price median {np.median(prices):7.2f}, "
        f"mean {prices.mean():7.2f}, worst {prices.max():7.2f}  {note}",
        flush=True,
    )


def first(n: int) -> None:
    print("first family, eps = 1e-2; prices over the best in hindsight")
    all_prices = []
    for gamma in (3, 4, 6):
        for kappa in (1e2, 1e3, 1e4, 1e5):
            losses, prices, told = [], [], set()
            for seed in range(n):
                i = Instance.draw(gamma, kappa, seed)
                r = minimize(i.hierarchy, i.start, eps=1e-2, rng=seed)
                losses.append(i.loss(r.y) / 1e-2)
                prices.append(r.cost / hindsight(i, 1e-2))
                told |= {p for p in r.cost_by_purpose}
            row(f"gamma {gamma}, kappa {kappa:.0e}", losses, prices, " ".join(sorted(told - {"audit", "estimate", "coarse solve"})))
            all_prices += prices
    print("median of all", round(float(np.median(all_prices)), 2), "worst", round(max(all_prices), 2))


def second(n: int) -> None:
    print("second family, errors linear in y; prices in gradients")
    every = []
    for eps in (1e-2, 1e-4):
        for gamma in (3, 4, 6):
            for kappa in (1e2, 1e3, 1e4):
                losses, prices, told = [], [], set()
                for seed in range(n):
                    i = instance(kappa, gamma, seed, levels=18)
                    r = minimize(i.hierarchy(), i.e0, eps=eps, rng=seed)
                    losses.append(i.loss(r.y) / eps)
                    prices.append(r.cost / i.price[i.unit(eps)])
                    told |= {p for p in r.cost_by_purpose}
                row(f"eps {eps:g}, gamma {gamma}, kappa {kappa:.0e}", losses, prices, " ".join(sorted(told - {"audit", "estimate", "coarse solve"})))
                every += prices
    print("mean of all", round(float(np.mean(every)), 2), "geometric", round(float(np.exp(np.log(every).mean())), 2), "worst", round(max(every), 2))


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else "all"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    for name, bench in {"first": first, "second": second}.items():
        if what in (name, "all"):
            bench(count)
