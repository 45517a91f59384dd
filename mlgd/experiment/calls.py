"""One call of the oracle on ladders that are no better than promised: every error and every price equals its bound."""

import math
from collections.abc import Callable

import numpy as np

from mlgd import Hierarchy, Telescope
from mlgd import formulas as F
from mlgd.examples import biased


def ladder(gamma: float, finest: int, coarsest: int = 1, alternate: bool = True) -> Hierarchy:
    """Levels off by exactly 2^-k at price 2^(gamma k), c = 1; with `alternate` neighbours err on opposite sides."""
    return biased(np.zeros_like, gamma, 1.0, range(coarsest, finest + 1), alternate=alternate)


def cheapest(
    gamma: float, finest: int, sigma: float, coarsest: int = 1, alternate: bool = True
) -> Telescope:
    """The cheapest telescope there with deviation sigma, any levels, from the exact norms of all differences."""
    h = ladder(gamma, finest, coarsest, alternate)
    values = np.array([h.value(k, np.zeros(1))[0] for k in h.levels])
    return Telescope.cheapest(h, sigma, np.abs(values[:, None] - values[None, :]))


def level_sum(gamma: float, finest: int, sigma: float, coarsest: int | None = None) -> float:
    """Sigma_sigma: the terms 2^((gamma/2-1)k) of the levels past the coarsest with accuracy between delta and sigma."""
    start = math.ceil(-math.log2(sigma) - 1e-12)
    start = start if coarsest is None else max(start, coarsest + 1)
    return sum(2.0 ** ((gamma / 2 - 1) * k) for k in range(start, finest + 1))


def sides(gamma: float, finest: int, sigma: float, coarsest: int = 1) -> tuple[float, float]:
    """The two sides of the theorem on the price of a call, c = 1: what the cheapest telescope costs lies between."""
    numbers = {"gamma": gamma, "c": 1.0, "first": coarsest, "sigma": sigma}
    total = level_sum(gamma, finest, sigma, coarsest)
    return tuple(F.value(F.OPTIMUM[side], total=total, **numbers) for side in ("lower", "upper"))


def closed_form_price(gamma: float, finest: int, sigma: float, coarsest: int = 1) -> float:
    """What the paper's probabilities may cost with the coarsest level certain, c = 1: the proved bound."""
    numbers = {"gamma": gamma, "c": 1.0, "sigma": sigma, "delta": 2.0**-finest, "first": coarsest}
    numbers["n"] = max(
        1, math.ceil(math.log2(sigma * 2.0**finest / 3))
    )  # only the threshold reads it
    return F.value(F.FIRST, **numbers) + F.value(F.CALL_EXECUTED[F.regime(gamma)], **numbers)


def enumerated(t: Telescope, y: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Mean, variance and mean price of a telescope as sums over all its draws, without its formulas."""
    draws = list(t.outcomes(y))
    mean = sum(chance * draw.value for chance, draw in draws)
    variance = sum(chance * float(np.sum((draw.value - mean) ** 2)) for chance, draw in draws)
    return mean, variance, sum(chance * draw.cost for chance, draw in draws)


def in_pairs(t: Telescope) -> float:
    """The mean price over all tosses if every drawn increment paid for its two levels, certain ones included."""
    price = 0.0
    for bits in np.ndindex(*(2,) * len(t.levels)):
        chance = float(np.prod(np.where(bits, t.p, 1 - t.p)))
        price += chance * sum(
            t.h.step_cost(k) for k, bit in zip(t.levels, bits, strict=True) if bit
        )
    return price


def split(gamma: float, finest: int, sigma: float, within: Callable[[float, float], bool]) -> float:
    """The paper's minimum over cuts of prefix plus tail, c = 1 and coarsest level 1.

    `within(2^-k, cut)` says whether level k belongs to the tail: the paper's `<=` or `<`.
    """
    levels = range(1, finest + 1)
    tails = {
        at: [2.0 ** ((gamma / 2 - 1) * k) for k in levels if within(2.0**-k, 2.0**-at)]
        for at in levels
    }
    return min(2.0 ** (gamma * at) + sum(tail) ** 2 / sigma**2 for at, tail in tails.items())
