"""The synthetic families: the tool's price over the best in hindsight, one cell per line.

Their seeds from 8000 on were never used to set a threshold of the library (those below 100, 9000
to 9999 and 12000 to 12003 were): take new ones after a change of its decisions.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np

from mlgd import minimize

from .families import EPS, Member, hindsight

LARGE, SMALL = EPS
SPOTS = [  # gamma, kappa, eps
    *((3, 1e2, LARGE), (6, 1e2, SMALL), (2, 1e3, LARGE), (3, 1e3, LARGE)),
    *((6, 1e3, LARGE), (4, 1e3, SMALL), (4, 1e4, LARGE), (8, 1e4, LARGE)),
]
CELLS = {
    "vectors": [*product((3, 4, 6), (1e2, 1e3, 1e4, 1e5), (LARGE,))],
    "turned": [*product((3, 4, 6), (1e2, 1e3, 1e4), (LARGE, 1e-4))],
    "isotropic": [*product((3, 4, 6), (1e3, 1e4), (LARGE,))],  # with a radius
    "smooth": SPOTS,
    "fresh": SPOTS,
}
KINDS = tuple(CELLS)


def cell(
    kind: str, gamma: float, kappa: float, eps: float, seeds: Sequence[int]
) -> np.ndarray:
    """For each seed: the true loss over eps, the price over that in hindsight, success."""
    flat = kind == "isotropic"
    family = "fresh" if flat else kind
    rows = []
    for seed in seeds:
        member = Member(family, kappa, float(gamma), seed, flat)
        radius = member.d0 if flat else None
        result = minimize(member.hierarchy, member.start, eps=eps, radius=radius)
        loss = member.loss(result.y) / eps
        price = result.cost / hindsight(member, eps)
        rows.append((loss, price, result.success))
    return np.array(rows)


def line(name: str, rows: np.ndarray) -> str:
    """Loss and price of one cell, or of all."""
    losses, prices, successes = rows.T
    return (
        f"{name:36s} loss/eps {losses.mean():6.3f} (worst {losses.max():6.3g})   "
        f"price {np.median(prices):7.2f} (worst {prices.max():8.2f})   "
        f"done {int(successes.sum())} of {len(rows)}"
    )


def synthetic(kinds: Sequence[str], seeds: Sequence[int]) -> None:
    """Print every cell of these families, and each family in total."""
    for kind in kinds:
        found = []
        for gamma, kappa, eps in CELLS[kind]:
            found.append(cell(kind, gamma, kappa, eps, seeds))
            name = f"{kind}, gamma {gamma}, kappa {kappa:.0e}, {eps:.0e}"
            print(line(name, found[-1]), flush=True)
        print(line(f"== {kind}", np.concatenate(found)), flush=True)
