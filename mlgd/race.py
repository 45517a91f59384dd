"""A race on one meter: the price at which each method first reaches each target, and its spread over seeds."""

from collections.abc import Callable, Sequence

import numpy as np

from .descent import State, minimize
from .hierarchy import Hierarchy
from .plan import Plan


def reach(
    h: Hierarchy,
    y0: np.ndarray,
    plan: Plan,
    loss: Callable[[np.ndarray], float],
    targets: Sequence[float],
    rng=None,
    max_cost: float | None = None,
) -> np.ndarray:
    """The price at which a run first had each target loss, by its last or its averaged iterate (inf: never).

    The loss is read at every step and not charged: this is for judging methods in hindsight, as the paper does.
    """
    targets = np.asarray(targets, float)
    price = np.full(targets.size, np.inf)

    def look(state: State) -> bool:
        best = min(loss(state.y), loss(state.output))
        price[(targets >= best) & np.isinf(price)] = state.cost
        return bool(np.isfinite(price).all())

    minimize(h, y0, plan, rng=rng, callback=look, max_cost=max_cost)
    return price


def frontier(prices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quartiles over seeds (axis 0) of the price to reach each target; unreached counts as infinite."""
    return tuple(np.quantile(prices, q, axis=0, method="higher") for q in (0.25, 0.5, 0.75))
