"""What one `minimize` step costs beyond the user's own evaluations, beside a hand-written loop.

The levels of this 1000-dimensional problem are a table look-up, so that a run costs its own
bookkeeping and nothing else. The loop below is what a careful user would write for one plan:
numbers drawn in blocks, one evaluation for the always-drawn levels, the average updated in place,
the price of each level counted. Both return the same point.
"""

import statistics
import sys
import tempfile
import time

import numpy as np

from mlgd import Hierarchy, Plan, Problem, Telescope, plan
from mlgd.descent import BLOCK
from mlgd.hierarchy import dyadic

DIMENSION, REPEATS, ALLOWED = 1000, 15, 1.5
VALUES = np.random.default_rng(0).standard_normal((40, DIMENSION)) / DIMENSION


def by_hand(h, y0, p, seed):
    """The same run without the library: plain descent, averaged, or similar triangles."""
    rng, evaluate, eta = np.random.default_rng(seed), h.evaluate, p.eta
    y, paid = y0.copy(), dict.fromkeys(h.levels, 0.0)
    average, mass = y0.copy(), 0.0
    price = {k: h.cost(k) for k in h.levels}
    for stage in p.stages:
        telescope = p.telescope(h, stage)
        always = max(
            [k for k, q in zip(telescope.levels, telescope.p, strict=True) if q == 1]
        )
        random = [k for k, q in zip(telescope.levels, telescope.p, strict=True) if q < 1]
        chance = np.array([q for q in telescope.p if q < 1])
        z, total = y.copy(), 0.0
        for t in range(stage.steps):
            if p.averaging == "last":
                alpha = eta * (t + 1)
                share = alpha / (total + alpha)
                total += alpha
                x = y + share * (z - y)
            else:
                mass = 1 + mass / p.growth
                average += (y - average) / mass
                x = y
            g = evaluate(always, x)
            used = {always: g}
            if random:
                if t % BLOCK == 0:
                    drawn = rng.random((BLOCK, len(random))) < chance
                if drawn[t % BLOCK].any():
                    for i in np.flatnonzero(drawn[t % BLOCK]):
                        k = random[i]
                        for level in (k, k - 1):
                            if level not in used:
                                used[level] = evaluate(level, x)
                        g = g + (used[k] - used[k - 1]) / chance[i]
            for k in used:
                paid[k] += price[k]
            if p.averaging == "last":
                z = z - alpha * g
                y = y + share * (z - y)
            else:
                y -= eta * g
    return (y if p.averaging == "last" else average), sum(paid.values())


def measure(method, mu=0.0, folder=None):
    """Medians over interleaved repetitions, in microseconds per step, and their ratio."""
    h = Hierarchy(lambda k, y: VALUES[k], lambda k: 8.0**k, range(1, 40), dyadic)
    problem = Problem(beta=1.0, d0=1.0, gamma=3.0, c=1.0, mu=mu)
    eps = 0.0001 if method == "accelerated" else 0.01
    if method == "rare":  # coarse steps, and a correction in one of a hundred
        p = Plan.by_hand(Telescope(h, [1.0, 0.01, 0.001]), eta=0.1, steps=5000)
    else:
        p = plan(problem, eps, method)
    y0, times = np.zeros(DIMENSION), {"ours": [], "hand": []}
    for seed in range(REPEATS):
        start = time.process_time()
        ours = p.run(h, y0, rng=seed, checkpoint=folder and f"{folder}/{seed}")
        middle = time.process_time()
        point, price = by_hand(h, y0, p, seed)
        end = time.process_time()
        assert np.allclose(ours.y, point, rtol=1e-9, atol=1e-15)
        assert np.isclose(ours.cost, price)
        times["ours"].append((middle - start) / p.steps)
        times["hand"].append((end - middle) / p.steps)
    ours, hand = (1e6 * statistics.median(times[k]) for k in ("ours", "hand"))
    return p.steps, ours, hand, ours / hand


def main() -> int:
    """Print a line a method; fail if any ratio is above 1.5."""
    worst = 0.0
    for method, mu in (
        ("rare", 0.0),
        ("multilevel", 0.0),
        ("multilevel", 0.1),
        ("fixed", 0.0),
        ("accelerated", 0.0),
        ("scheduled", 0.02),
    ):
        steps, ours, hand, ratio = measure(method, mu)
        worst = max(worst, ratio)
        kind = "strongly convex" if mu else "convex"
        paid = f"minimize {ours:6.1f} us/step  by hand {hand:6.1f}  ratio {ratio:.2f}"
        print(f"{method:12s} {kind:16s} {steps:5d} steps  {paid}")
    with tempfile.TemporaryDirectory() as folder:
        steps, ours, hand, ratio = measure("rare", folder=folder)
    worst = max(worst, ratio)
    print(f"the first with a checkpoint: ratio {ratio:.2f}")
    print(f"worst ratio {worst:.2f}, allowed {ALLOWED}")
    return int(worst > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
