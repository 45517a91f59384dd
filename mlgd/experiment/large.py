"""The second panel of the paper's figure on the two truncations, m = 65536: `python -m mlgd.experiment.large --help`.

The run is `streaming.biases`; here are its command, its progress and the small file that it leaves.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .design import Design
from .store import read_signed, write_signed
from .streaming import PROTOCOL, STEPS, Biases, biases


def sizes(m: int) -> tuple[int, int]:
    """k_max = m/4 and n = 256 k_max, the paper's proportions."""
    return m // 4, 64 * m


class Meter:
    """Progress on standard error: what is done, and when it will be."""

    def __init__(self, total: float, every: float = 20.0):
        self.total, self.every, self.done, self.fresh = total, every, 0, 0
        self.begun = self.shown = time.monotonic()

    def __call__(self, stage: str, numbers: int) -> None:
        self.done += numbers
        now = time.monotonic()
        if now - self.begun < 1:  # what was found in the folder says nothing about speed
            self.fresh = self.done
        if now - self.shown < self.every:
            return
        self.shown = now
        rate = max(self.done - self.fresh, 1) / (now - self.begun)
        left = max(self.total - self.done, 0) / rate / 60
        print(
            f"{time.strftime('%H:%M:%S')} {stage}: {self.done / self.total:6.1%}, {left:.0f} minutes left",
            file=sys.stderr,
            flush=True,
        )


def read(path: str | Path) -> Biases:
    """A kept result."""
    return Biases.from_json(read_signed(path))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m mlgd.experiment.large",
        description="Biases of both truncations for a design of m x 64 m, streamed. A run that is stopped, by whatever "
        "means, continues where it was when the same command is given again.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--m", type=int, default=65536, help="rows; k_max is m/4 and n is 64 m")
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2, help="processes, one BLAS thread each")
    parser.add_argument(
        "--dask", action="store_true", help="on a local dask cluster of that many workers"
    )
    parser.add_argument("--folder", default="results/large", help="where results of tasks are kept")
    parser.add_argument("--out", required=True, help="the file of the result")
    options = parser.parse_args(arguments)
    k_max, n = sizes(options.m)
    design = Design(m=options.m, n=n, seed=options.seed, pairs=True)
    meter = Meter(
        options.m * (2.0 * n + 24 * k_max)
    )  # two passes, and some two dozen over the first k_max columns
    if options.dask:
        from distributed import Client, LocalCluster

        with (
            LocalCluster(options.workers, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            result = biases(
                design, k_max, STEPS, client.get_executor(), options.folder, meter, options.workers
            )
    else:
        result = biases(design, k_max, STEPS, None, options.folder, meter, options.workers)
    command = f"python -m mlgd.experiment.large --m {options.m} --seed {options.seed}"
    write_signed(options.out, command, PROTOCOL, result.to_json())
    return 0


if __name__ == "__main__":
    sys.exit(main())
