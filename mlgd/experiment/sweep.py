"""The whole experiment, seed by seed, on any executor: `python -m mlgd.experiment.sweep --out FILE`.

The paper's section 4.2 and appendix E.3. A seed is one unit of work: its design is streamed once and every trajectory of the
protocol is spent on the reduced problem. Results depend on the protocol and the seed only, never on the executor.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, as_completed
from pathlib import Path

from .protocol import Protocol, SeedResult, run_seed
from .store import read_signed, workers, write_signed

PROTOCOL = 1  # raised with every change that moves a number of a seed


def sweep(
    protocol: Protocol,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    keep: float = 2**30,
) -> list[SeedResult]:
    """Run every seed of the protocol, in the order of its seeds whatever order they finish in.

    executor: anything of concurrent.futures' shape (dask's `Client.get_executor()` fits); two processes if None.
    progress(done, total) is called once at the start and after every seed.
    """
    if executor is None:
        with workers(min(2, len(protocol.seeds))) as pool:
            return sweep(protocol, pool, progress, keep)
    progress = progress or (lambda done, total: None)
    progress(0, len(protocol.seeds))
    futures = [executor.submit(run_seed, protocol, seed, keep) for seed in protocol.seeds]
    for done, _ in enumerate(as_completed(futures), 1):
        progress(done, len(futures))
    return [future.result() for future in futures]


def quarters(done: int, total: int) -> None:
    """Progress on standard output: a line after each quarter of the seeds, the same whatever order they finish in."""
    if done and 4 * done // total > 4 * (done - 1) // total:
        print(f"{done} of {total} seeds", flush=True)


def read(path: str | Path) -> list[SeedResult]:
    """The results of a run that was kept."""
    return [SeedResult.from_json(seed) for seed in read_signed(path)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the paper's protocol on our seeds and keep what the audit reads."""
    parser = argparse.ArgumentParser(
        prog="python -m mlgd.experiment.sweep", description=main.__doc__
    )
    parser.add_argument("--out", required=True, help="the file of the results")
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=list(Protocol.seeds), help="by default %(default)s"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes, one BLAS thread each")
    options = parser.parse_args(arguments)
    protocol = Protocol(seeds=tuple(options.seeds))
    with workers(options.workers) as pool:
        results = sweep(
            protocol, pool, lambda done, total: print(f"{done} of {total} seeds", file=sys.stderr)
        )
    write_signed(options.out, "make figure-seeds", PROTOCOL, [r.to_json() for r in results])
    return 0


if __name__ == "__main__":
    sys.exit(main())
