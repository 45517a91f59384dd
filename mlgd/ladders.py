"""The cheapest telescope: which levels to keep and with what probabilities, for a variance that is allowed.

A telescope on the levels s_0 < s_1 < ... < s_m, the first drawn always, costs

    c_0 + sum over i >= 1 of  c_{i-1} (1 - q_{i-1}) q_i + c_i q_i     (q_0 = 1; s_m is the finest level)

because an evaluation that two drawn increments need is paid once, and has variance sum (1/q_i - 1) v_i. In an optimum no
q_i past the first is one: then everything below level i could be left out, for less money and less noise. On given levels
the stationary point is found by water-filling with the effective prices d_i = c_{i-1}(1 - q_{i-1}) + c_i (1 - q_{i+1}),
repeated; every iterate meets the variance, so the best of them is always a telescope that may be used. The levels are found
by adding or leaving out one, from the best few so far, beginning with even strides, until nothing is gained. The tests compare with brute force.
"""

import numpy as np

TINY = 1e-300  # a vanishing increment still needs a positive probability, or the mean would be another level's
ROUNDS = 60
GAPS = (
    1,
    2,
    3,
)  # strides to begin with: where errors alternate, odd and even levels are rival valleys
KEPT = 4  # choices of levels whose neighbours are tried: one alone may lead nowhere


def bridges(norms: np.ndarray) -> np.ndarray:
    """All norms ||A_j - A_i||, i < j, from those of consecutive levels (by the triangle inequality), or as given."""
    if norms.ndim == 2:
        return norms
    total = np.cumsum(norms)
    return np.triu(total[None, :] - total[:, None], 1)


def optimum(
    cost: np.ndarray, v: np.ndarray, variance: float, shared: np.ndarray
) -> tuple[tuple[int, ...], np.ndarray, float]:
    """(indices of the levels kept, their probabilities, price): mean the last level, noise at most `variance`.

    v[i, j] is the squared increment from level i to level j; shared[j] says that the step from j-1 to j is one
    evaluation of its own at price cost[j], and not two values.
    """
    last = cost.size - 1
    only = ((last,), np.ones(1), float(cost[last]))
    if variance <= 0:
        return only
    v, known, best = np.maximum(v, TINY), {(last,): only}, [only]
    fresh = {(*range(i, last, gap), last) for i in range(last) for gap in (*GAPS, last)}
    while fresh:
        chains = sorted(fresh)
        for chain, q, price in zip(
            chains, *polished(chains, cost, v, variance, shared), strict=True
        ):
            known[chain] = chain, q[: len(chain)], float(price)
        best = sorted(known.values(), key=lambda found: found[2])[:KEPT]
        fresh = {
            tuple(sorted({*chain} ^ {k})) for chain, *_ in best for k in range(last)
        } - known.keys()
    return best[0]


def polished(
    chains: list[tuple[int, ...]],
    cost: np.ndarray,
    v: np.ndarray,
    variance: float,
    shared: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities of each chain (a row, padded with zeros) and its price: infinite where one would pass one."""
    size = max(map(len, chains))
    at = np.array([[*c, *[-1] * (size - len(c))] for c in chains])
    before, here = at[:, :-1], at[:, 1:]
    real = here >= 0
    value = real & ~(
        shared[here] & (here == before + 1)
    )  # steps that are differences of two values
    squared, back, ahead = (
        np.where(real, v[before, here], 0.0),
        np.where(value, cost[before], 0.0),
        cost[here],
    )
    used = np.zeros((len(chains), size + 1))  # the chance that a step has a level's value evaluated
    used[:, 0] = 1.0
    best_q, best = np.zeros((len(chains), size)), np.full(len(chains), np.inf)
    for _ in range(ROUNDS):
        price = back * (1 - used[:, :-2]) + ahead * (1 - value * used[:, 2:])
        price = np.where(real, np.maximum(price, 1e-12 * ahead), 1.0)
        scale = np.sqrt(squared * price).sum(axis=1) / (variance + squared.sum(axis=1))
        q = scale[:, None] * np.sqrt(squared / price)
        used[:, 1:-1] = np.where(value, q, 0.0)
        total = cost[at[:, 0]] + (q * (back * (1 - used[:, :-2]) + ahead)).sum(axis=1)
        better = (total < best) & (q <= 1).all(axis=1)
        best[better] = total[better]
        best_q[better] = np.hstack([used[:, :1], q])[better]
        used = np.minimum(used, 1.0)
    return best_q, best
