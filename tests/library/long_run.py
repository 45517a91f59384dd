"""A run long enough to be killed, as a script and as functions that other processes can import.

python long_run.py CHECKPOINT RESULT STEPS SECONDS: a file every SECONDS, then the result's bytes.
No STEPS: a run without a plan.
"""

import sys
import time

import numpy as np

from mlgd import Hierarchy, Plan, Telescope, checkpoint, minimize
from mlgd.hierarchy import dyadic

DIMENSION = 20
CURVATURE = np.geomspace(0.1, 1.0, DIMENSION)
SHIFTS = np.random.default_rng(3).standard_normal((8, DIMENSION))


def evaluate(k, y):
    return CURVATURE * y + 2.0**-k * SHIFTS[k] / np.linalg.norm(SHIFTS[k])


def cost(k):
    return 8.0**k


def setting(steps):
    h = Hierarchy(evaluate, cost, range(4), dyadic)
    telescope = Telescope(h, [1.0, 0.1, 0.02, 0.004])
    return h, np.ones(DIMENSION), Plan.by_hand(telescope, eta=0.3, steps=steps)


def slow(k, y):
    time.sleep(0.002)
    return evaluate(k, y)


def run(steps, **options):
    h, y0, p = setting(steps or 1)
    if steps:
        return p.run(h, y0, rng=7, loss=loss, **options)
    h = Hierarchy(slow, cost, range(8), dyadic)
    return minimize(h, y0, eps=1e-4, loss=loss, **options)


def bits(r):
    """All of a result that must not depend on how it came about: not what was made again."""
    course = [paid for what, paid in r.cost_by_purpose.items() if what != "again"]
    return np.concatenate([r.y, r.trace.step, r.trace.loss, course]).tobytes()


def loss(y):
    return float(CURVATURE @ y**2)


if __name__ == "__main__":
    path, out, steps, seconds = (
        sys.argv[1],
        sys.argv[2],
        int(sys.argv[3]),
        float(sys.argv[4]),
    )
    checkpoint.EVERY, checkpoint.SPACING = seconds, 0
    result = run(steps, checkpoint=path)
    with open(out, "wb") as file:
        file.write(bits(result))
