"""minimize(h, y0, eps=eps) with nothing given: loss reached and price, measuring included, against hindsight.

    python tests/bench_choices.py [first|second|pde|all] [instances]

First family: prices over the cheapest of fixed, coarse to fine, telescope and corrected coarse model, each tuned in hindsight.
Second family (errors linear in y): prices in units of one gradient at the coarsest level whose zero is good enough.
Identification: mlgd.experiment.diffusion, over the better of two quasi-Newton runs that know when to stop.
"""

import math
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np

from mlgd import minimize
from mlgd.experiment.diffusion import LEVELS, SIZE, TRUTH, Identification
from mlgd.experiment.families import Instance
from mlgd.experiment.linear_errors import instance
from mlgd.solvers import quasi_newton


def hindsight(i: Instance, eps: float) -> float:
    """The cheapest of all methods that know the instance; telescopes and descent cost ten gradients and more here, and are not asked."""
    corrected = math.inf
    for k in range(len(i.errors)):
        if i.loss(i.errors[k] / i.eigenvalues) < eps:
            _, calls = i._until(i._conjugate(i.start, k), i.start, eps)
            corrected = min(corrected, i.cost(k) + calls * i.cost(0))
    return min(corrected, i.coarse_to_fine(eps, "cg"))


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
            row(
                f"gamma {gamma}, kappa {kappa:.0e}",
                losses,
                prices,
                " ".join(sorted(told - {"audit", "estimate", "coarse solve"})),
            )
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
                row(
                    f"eps {eps:g}, gamma {gamma}, kappa {kappa:.0e}",
                    losses,
                    prices,
                    " ".join(sorted(told - {"audit", "estimate", "coarse solve"})),
                )
                every += prices
    print(
        "mean of all",
        round(float(np.mean(every)), 2),
        "geometric",
        round(float(np.exp(np.log(every).mean())), 2),
        "worst",
        round(max(every), 2),
    )


def rivals(task: Identification, goal: float) -> dict[str, float]:
    """L-BFGS at the finest level, and coarse to fine with the tolerance that turns out cheapest: the price when the loss is at the goal."""
    levels, h, out = list(LEVELS), task.hierarchy, {}
    for name, ladder, shares in (("finest", levels[-1:], (0.0,)), ("coarse to fine", levels, (1.0, 0.3, 0.1))):
        out[name] = math.inf
        for share in shares:
            y, price = np.zeros(SIZE), 0.0
            for k in ladder:
                trust = share * float(np.linalg.norm(h.value(k + 1, y) - h.value(k, y))) if k < ladder[-1] else 0.0
                memory = SimpleNamespace(y=y)
                for _ in quasi_newton(lambda q, k=k: h.value(k, q), memory, 200, trust):
                    price += h.cost(k)
                    if task.loss(memory.y) <= goal:
                        out[name] = min(out[name], price)
                        break
                y = memory.y
                if out[name] <= price:
                    break
    return out


def pde(n: int) -> None:
    print("a nonlinear identification, eps = 1e-2 of the start above the minimum; price over the better of two L-BFGS")
    for seed in range(min(n, 3)):
        task = Identification(seed)
        memory = SimpleNamespace(y=np.zeros(SIZE))
        for _ in quasi_newton(partial(task.gradient, TRUTH), memory, 150, 1e-7):
            pass
        least, start = task.loss(memory.y), task.loss(np.zeros(SIZE))
        eps = 1e-2 * (start - least)
        r = minimize(task.hierarchy, np.zeros(SIZE), eps=eps, rng=seed)
        found = rivals(task, least + eps)
        row(
            f"seed {seed}",
            [(task.loss(r.y) - least) / eps],
            [r.cost / min(found.values())],
            f"{r.estimate / eps:.2f} {found} {r.status}",
        )
        print(*("    " + c for c in r.choices), r.cost_by_purpose, sep="\n", flush=True)


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else "all"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    for name, bench in {"first": first, "second": second, "pde": pde}.items():
        if what in (name, "all"):
            bench(count)
