"""What `minimize` costs in 300,000 unknowns, per evaluation, beside scipy's L-BFGS-B; and memory.

Both solve the same quadratic by gradients that are a product with a vector, so that what is seen is
the arithmetic between gradients: `minimize` over nine levels, scipy on the finest. Each runs in a
process of its own, whose peak memory is read.
"""

import multiprocessing
import resource
import sys
import time

import numpy as np

UNKNOWNS = 300_000
SLOWER, GIGABYTES = 1.5, 0.6  # allowed


def problem():
    curvature = np.geomspace(0.01, 1.0, UNKNOWNS)
    off = np.random.default_rng(0).standard_normal(UNKNOWNS)
    off /= np.linalg.norm(off)
    return curvature, off


def tool() -> int:
    from mlgd import Hierarchy, minimize

    curvature, off = problem()

    def level(k, y):
        return curvature * (y - 1) + 0.2 * 2.0**-k * off

    run = minimize(
        Hierarchy(level, lambda k: 8.0**k, range(9)), np.zeros(UNKNOWNS), eps=1e-3
    )
    assert run.success
    return run.nfev


def scipys() -> int:
    from scipy.optimize import minimize

    curvature, off = problem()

    def level(y):
        gradient = curvature * (y - 1) + 0.2 * 2.0**-8 * off
        return float(gradient @ (y - 1)) / 2, gradient

    return minimize(level, np.zeros(UNKNOWNS), jac=True, method="L-BFGS-B", tol=1e-9).nfev


def measure(solve, out) -> None:
    solve()  # once to warm up
    times = []
    for _ in range(3):
        began = time.perf_counter()
        evaluations = solve()
        times.append((time.perf_counter() - began) / evaluations)
    out.put((min(times), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6))


def measured(solve) -> tuple[float, float]:
    """Seconds per evaluation and gigabytes at the peak."""
    spawn = multiprocessing.get_context("spawn")
    out = spawn.Queue()
    process = spawn.Process(target=measure, args=(solve, out))
    process.start()
    found = out.get()
    process.join()
    return found


def main() -> int:
    (ours, memory), (theirs, less) = measured(tool), measured(scipys)
    slower = ours / theirs
    print(
        f"per evaluation {1e3 * ours:.2f} ms, scipy {1e3 * theirs:.2f} ms: {slower:.2f} times"
    )
    print(f"peak memory {memory:.2f} GB, scipy {less:.2f} GB")
    return int(slower > SLOWER or memory > GIGABYTES)


if __name__ == "__main__":
    sys.exit(main())
