"""What `import mlgd` costs, alone and with every public name used, over `import numpy`: medians of interleaved fresh processes.

Bytecode is cached, as it is for anyone who installs the package: where PYTHONDONTWRITEBYTECODE is set, a checkout is compiled anew
at every import, and numpy is not.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 15
STATEMENTS = {"numpy": "import numpy", "mlgd": "import mlgd", "every name": "from mlgd import *"}


def seconds(statement: str, cache: str) -> float:
    """The time of one statement in a fresh process, without the interpreter's own start."""
    script = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {
        "PYTHONPYCACHEPREFIX": cache
    }
    command = [sys.executable, "-c", script]
    return float(
        subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    )


if __name__ == "__main__":
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as cache:
        for statement in STATEMENTS.values():
            seconds(statement, cache)
        rounds = [
            [seconds(statement, cache) for statement in STATEMENTS.values()] for _ in range(ROUNDS)
        ]
    numpy, ours, whole = (statistics.median(column) for column in zip(*rounds, strict=True))
    print(
        f"over import numpy: import mlgd {ours / numpy:.2f} (bar: 2), with every name used {whole / numpy:.2f}"
    )
    print(
        f"  numpy {1e3 * numpy:.0f} ms, {ROUNDS} interleaved rounds in {time.perf_counter() - started:.0f} s"
    )
