"""What `import mlgd` costs, over `import numpy`: medians of interleaved fresh processes."""

import statistics
import subprocess
import sys
import time

ROUNDS = 15


def seconds(statement: str) -> float:
    """The time of one statement in a fresh process, without the interpreter's own start."""
    script = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    started = time.perf_counter()
    pairs = [(seconds("import numpy"), seconds("import mlgd")) for _ in range(ROUNDS)]
    alone, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"import mlgd / import numpy: {ours / alone:.2f} (bar: 2), {ROUNDS} interleaved pairs")
    print(f"  numpy {1e3 * alone:.0f} ms, mlgd {1e3 * ours:.0f} ms, measured in {time.perf_counter() - started:.0f} s")
