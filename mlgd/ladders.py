"""The cheapest telescope: which levels to keep and with what probabilities, for a variance that is allowed.

A telescope on the levels s_0 < s_1 < ... < s_m, the first drawn always, costs

    c_0 + sum over i >= 1 of  c_{i-1} (1 - q_{i-1}) q_i + c_i q_i     (q_0 = 1; s_m is the finest level)

because an evaluation that two drawn increments need is paid once, and has variance sum (1/q_i - 1) v_i. In an optimum no
q_i past the first is one: then everything below level i could be left out, for less money and less noise. On given levels
the stationary point is found by water-filling with the effective prices d_i = c_{i-1}(1 - q_{i-1}) + c_i (1 - q_{i+1}),
repeated; every iterate meets the variance, so the best of them is always a telescope that may be used. The levels come
from shortest paths (the same problem with the evaluations of later increments paid in pairs is a shortest path for each
multiplier) and from exchanging levels one by one until nothing is gained. The tests compare with brute force.
"""

import numpy as np

TINY = 1e-300  # a vanishing increment still needs a positive probability, or the mean would be another level's
MULTIPLIERS = 33
ROUNDS = 60


def optimum(
    cost: np.ndarray, v: np.ndarray, variance: float, shared: np.ndarray | None = None
) -> tuple[tuple[int, ...], np.ndarray, float]:
    """(indices of the levels kept, their probabilities, price): mean the last level, noise at most `variance`.

    v[i, j] is the squared increment from level i to level j; shared[j] says that the step from j-1 to j is one
    evaluation of its own at price cost[j], and not two values.
    """
    last = cost.size - 1
    shared = np.zeros(cost.size, bool) if shared is None else shared
    only = ((last,), np.ones(1), float(cost[last]))
    if variance <= 0 or last == 0:
        return only
    v = np.maximum(v, TINY)
    tried: set[tuple[int, ...]] = {(last,)}
    best, fresh = only, paths(cost, v, variance, shared)
    while fresh := {c for c in fresh if c not in tried}:
        tried |= fresh
        chains = sorted(fresh)
        q, price = polished(chains, cost, v, variance, shared)
        winner = int(np.argmin(price))
        if price[winner] < best[2] * (1 - 1e-12):
            best = (chains[winner], q[winner, : len(chains[winner])], float(price[winner]))
        elif best is not only:
            break
        fresh = _neighbours(best[0], last)
    return best


def paths(cost: np.ndarray, v: np.ndarray, variance: float, shared: np.ndarray) -> set[tuple[int, ...]]:
    """The levels kept by the shortest path to the last, for a range of multipliers of the variance."""
    n = cost.size
    step = np.where(_shares(n, shared), 0.0, cost[:, None]) + cost[None, :]  # paid in pairs, the first edge not
    edges = np.triu_indices(n, 1)
    middle = np.median(cost[edges[1]] / v[edges])
    scale = np.geomspace(1e-3, 1e3, MULTIPLIERS)
    nu = np.unique(np.concatenate([scale * cost.sum() / variance, scale * middle, scale * cost[0] / variance]))

    def weight(squared, price):
        q = np.minimum(np.sqrt(nu * squared / price), 1.0)
        return q * price + nu * squared * (1 / q - 1)

    later = np.full((n, nu.size), np.inf)  # shortest way to the last level from a level that is not the first used
    then = np.zeros((n, nu.size), int)
    later[-1] = 0.0
    first = np.empty((n, nu.size))
    towards = np.zeros((n, nu.size), int)
    for i in range(n - 2, -1, -1):
        ways = np.array([weight(v[i, j], step[i, j]) + later[j] for j in range(i + 1, n)])
        then[i], later[i] = ways.argmin(axis=0) + i + 1, ways.min(axis=0)
        starts = np.array([weight(v[i, j], cost[j]) + later[j] for j in range(i + 1, n)])
        towards[i], first[i] = starts.argmin(axis=0) + i + 1, starts.min(axis=0) + cost[i]
    found = set()
    for column in range(nu.size):
        for start in {int(first[:-1, column].argmin()), *range(max(0, n - 3), n - 1)}:
            chain = [start, int(towards[start, column])]
            while chain[-1] != n - 1:
                chain.append(int(then[chain[-1], column]))
            found.add(tuple(chain))
    return found


def polished(
    chains: list[tuple[int, ...]], cost: np.ndarray, v: np.ndarray, variance: float, shared: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities of each chain (a row, padded with zeros) and its price: infinite where one would pass one."""
    size = max(map(len, chains))
    at = np.array([[*c, *[-1] * (size - len(c))] for c in chains])
    real = at[:, 1:] >= 0
    before, here = at[:, :-1], at[:, 1:]
    squared = np.where(real, v[before, here], 0.0)
    value = real & ~(shared[here] & (here == before + 1))  # steps that are differences of two values
    c_before, c_here = cost[before], cost[here]  # where nothing is real q vanishes
    known = np.ones((len(chains), 1))
    q = np.zeros(squared.shape)
    best_q, best = np.zeros((len(chains), size)), np.full(len(chains), np.inf)
    for _ in range(ROUNDS):
        used = np.where(value, q, 0.0)
        behind, ahead = np.hstack([known, used[:, :-1]]), np.hstack([used[:, 1:], 0 * known])
        price = np.where(value, c_before * (1 - behind) + c_here * (1 - ahead), c_here)
        price = np.where(real, np.maximum(price, 1e-12 * c_here), 1.0)
        scale = np.sqrt(squared * price).sum(axis=1) / (variance + squared.sum(axis=1))
        q = scale[:, None] * np.sqrt(squared / price)
        used = np.where(value, q, 0.0)
        behind = np.hstack([known, used[:, :-1]])
        total = cost[at[:, 0]] + (np.where(value, c_before * (1 - behind), 0.0) * q + c_here * q).sum(axis=1)
        total = np.where((q > 1).any(axis=1), np.inf, total)
        better = total < best
        best[better] = total[better]
        best_q[better] = np.hstack([known, q])[better]
        q = np.minimum(q, 1.0)
    return best_q, best


def _shares(n: int, shared: np.ndarray) -> np.ndarray:
    """Which steps i -> j are one shared evaluation: those between neighbours whose work is shared."""
    return np.eye(n, k=1, dtype=bool) & shared[None, :]


def _neighbours(chain: tuple[int, ...], last: int) -> set[tuple[int, ...]]:
    """The chain with one level more, one less, or one exchanged for another; the last level stays."""
    kept = set(chain)
    more = [kept | {k} for k in range(last) if k not in kept]
    less = [kept - {k} for k in chain[:-1]]
    moved = [s - {k} for s in more for k in chain[:-1]]
    return {tuple(sorted(s)) for s in (*more, *less, *moved) if len(s) > 1}
