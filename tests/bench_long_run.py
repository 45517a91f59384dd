"""A million coarse steps in 1000 dimensions with rare corrections: beside a bare loop, and killed twenty times.

    python tests/bench_long_run.py [STEPS] [KILLS]

The bare loop draws its coins in blocks, evaluates the coarse level, corrects where a coin says so, averages and counts;
it checks and keeps nothing. The killed run is a process of its own that gets SIGKILL at random moments and is started
again with the same checkpoint; its result is compared bit by bit with the unbroken run's. Times are of the CPU.
"""

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from mlgd import Hierarchy, Plan, Telescope, minimize
from mlgd.purchases import BLOCK

DIMENSION, ALLOWED = 1000, 1.5
CURVATURE = np.geomspace(1e-3, 1.0, DIMENSION)
SHIFTS = np.random.default_rng(3).standard_normal((4, DIMENSION)) / np.sqrt(DIMENSION)
CHANCES = (1.0, 1e-2, 1e-3, 1e-4)


def evaluate(k, y):
    return CURVATURE * y + 2.0**-k * SHIFTS[k]


def setting(steps):
    h = Hierarchy(evaluate, lambda k: 8.0**k, range(4))
    return h, np.ones(DIMENSION), Plan.by_hand(Telescope(h, CHANCES), eta=0.3, steps=steps)


def bare(y, p, seed):
    """What a careful user would write for this plan alone."""
    rng, chance, y, price = np.random.default_rng(seed), np.array(CHANCES[1:]), y.copy(), 0.0
    average, mass = y.copy(), 0.0
    for t in range(p.steps):
        if t % BLOCK == 0:
            drawn = rng.random((BLOCK, 3)) < chance
            some = drawn.any(axis=1).tolist()
        g = evaluate(0, y)
        price += 1.0
        if some[t % BLOCK]:
            for i in np.flatnonzero(drawn[t % BLOCK]):
                g = g + (evaluate(i + 1, y) - evaluate(i, y)) / chance[i]
                price += 8.0 ** (i + 1) + (8.0**i if i else 0.0)
        mass = 1 + mass / p.growth
        average += (y - average) / mass
        y -= p.eta * g
    return average, price


def timed(function, *arguments, **options):
    begin = time.process_time()
    return function(*arguments, **options), time.process_time() - begin


def killed(steps, times, folder, seconds):
    """The bytes of a run that was killed at random moments, and how often it was."""
    path, out = folder / "file", folder / "result"
    command = [sys.executable, __file__, "--run", str(steps), str(path), str(out)]
    rng, kills = np.random.default_rng(1), 0
    while not out.exists():
        process = subprocess.Popen(command)
        try:
            if process.wait(timeout=float(rng.uniform(1, seconds)) if kills < times else None):
                raise RuntimeError("the run ended with an error")
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
    return out.read_bytes(), kills


def main() -> int:
    if sys.argv[1:2] == ["--run"]:
        h, y0, p = setting(int(sys.argv[2]))
        Path(sys.argv[4]).write_bytes(minimize(h, y0, p, rng=1, checkpoint=sys.argv[3]).y.tobytes())
        return 0
    steps, kills = map(int, sys.argv[1:3] or ("1000000", "20"))
    h, y0, p = setting(steps)
    with tempfile.TemporaryDirectory() as folder:
        (point, _), by_hand = timed(bare, y0, p, 1)
        plain, ours = timed(minimize, h, y0, p, rng=1)
        kept, keeping = timed(minimize, h, y0, p, rng=1, checkpoint=Path(folder) / "kept")
        assert np.allclose(plain.y, point, rtol=1e-9, atol=1e-12)
        assert kept.y.tobytes() == plain.y.tobytes()
        print(
            f"{steps} steps: bare {by_hand:.1f} s, minimize {ours:.1f} s (ratio {ours / by_hand:.2f}), ",
            end="",
        )
        print(
            f"with a checkpoint {keeping:.1f} s (ratio {keeping / by_hand:.2f}, allowed {ALLOWED})"
        )
        found, count = killed(steps, kills, Path(folder), 3.0)
        same = found == plain.y.tobytes()
        print(f"killed {count} times and resumed: {'the same bits' if same else 'OTHER BITS'}")
    return int(not same or keeping > ALLOWED * by_hand)


if __name__ == "__main__":
    sys.exit(main())
