"""What `import mlgd` costs, alone and with every name used, over `import numpy`: medians.

Bytecode is cached, as it is for anyone who installs the package: where PYTHONDONTWRITEBYTECODE is
set, a checkout is compiled anew at every import, and numpy is not.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 15
STATEMENTS = {
    "numpy": "import numpy",
    "mlgd": "import mlgd",
    "every name": "from mlgd import *",
}


def seconds(statement: str, cache: str) -> float:
    """The time of one statement in a fresh process, without the interpreter's own start."""
    script = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    environment = os.environ | {"PYTHONPYCACHEPREFIX": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    options = {"capture_output": True, "text": True, "check": True, "env": environment}
    return float(subprocess.run([sys.executable, "-c", script], **options).stdout)


if __name__ == "__main__":
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as cache:
        for statement in STATEMENTS.values():
            seconds(statement, cache)
        rounds = [
            [seconds(statement, cache) for statement in STATEMENTS.values()]
            for _ in range(ROUNDS)
        ]
    numpy, ours, whole = (
        statistics.median(column) for column in zip(*rounds, strict=True)
    )
    used = f"with every name used {whole / numpy:.2f}"
    print(f"over import numpy: import mlgd {ours / numpy:.2f} (bar: 2), {used}")
    spent = time.perf_counter() - started
    print(f"  numpy {1e3 * numpy:.0f} ms, {ROUNDS} interleaved rounds in {spent:.0f} s")
