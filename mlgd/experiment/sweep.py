"""The whole experiment, seed by seed, on any executor, resumable: `python -m mlgd.sweep --help`.

Section 4.2 and appendix E.3. A seed is one unit of work: its design is streamed once and every trajectory of the
protocol is spent on the reduced problem. Results depend on the protocol and the seed only, never on the executor.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import fields
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from mlgd.experiment import features, frontier, protocol, trajectory

from .protocol import Protocol, SeedResult, run_seed


def version() -> str:
    """A fingerprint of the code that computes a seed: results of other code are never mixed in."""
    text = b"".join(Path(module.__file__).read_bytes() for module in (features, trajectory, frontier, protocol))
    return hashlib.sha256(text).hexdigest()[:16]


class Store:
    """Results in a folder, one file a seed, written whole or not at all, with the parameters and code they come from."""

    def __init__(self, folder: str | os.PathLike, protocol: Protocol):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.made_by = {"parameters": protocol.parameters(), "version": version()}
        self.key = hashlib.sha256(json.dumps(self.made_by, sort_keys=True).encode()).hexdigest()[:12]

    def path(self, seed: int) -> Path:
        return self.folder / f"seed-{seed:04d}-{self.key}.json"

    def save(self, result: SeedResult) -> None:
        body = json.dumps(result.to_json())
        record = {"made_by": self.made_by, "digest": hashlib.sha256(body.encode()).hexdigest(), "result": body}
        path = self.path(result.seed)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        with open(partial, "w") as file:
            json.dump(record, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)

    def load(self, seed: int) -> SeedResult | None:
        """The stored result; None if there is none, or if the file is damaged, which is then named in a warning."""
        path = self.path(seed)
        if not path.exists():
            return None
        try:
            record = json.loads(path.read_text())
            if hashlib.sha256(record["result"].encode()).hexdigest() != record["digest"]:
                raise ValueError("its digest does not match its content")
            if record["made_by"] != self.made_by:
                raise ValueError("it was made with other parameters or other code")
            result = SeedResult.from_json(json.loads(record["result"]))
            if result.seed != seed:
                raise ValueError(f"it holds seed {result.seed}")
            return result
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            warnings.warn(f"{path.name} cannot be used ({error}): seed {seed} is computed again", stacklevel=2)
            return None


@contextmanager
def workers(count: int) -> Iterator[Executor]:
    """Processes with one BLAS thread each (the variables must be set before a worker imports numpy)."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
            yield pool
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def sweep(
    protocol: Protocol,
    executor: Executor | None = None,
    folder: str | os.PathLike | None = None,
    progress: Callable[[int, int], None] | None = None,
    keep: float = 2**30,
) -> list[SeedResult]:
    """Run every seed of the protocol, in the order of its seeds whatever order they finish in.

    executor: anything of concurrent.futures' shape (dask's `Client.get_executor()` fits); two processes if None.
    folder: where results are kept as they come; seeds found there are not computed again.
    progress(done, total) is called once at the start and after every seed.
    """
    if executor is None:
        with workers(min(2, len(protocol.seeds))) as pool:
            return sweep(protocol, pool, folder, progress, keep)
    store = Store(folder, protocol) if folder is not None else None
    results = {seed: store.load(seed) if store else None for seed in protocol.seeds}
    missing = [seed for seed, result in results.items() if result is None]
    total = len(results)
    if progress:
        progress(total - len(missing), total)
    futures = {executor.submit(run_seed, protocol, seed, keep): seed for seed in missing}
    for done, future in enumerate(as_completed(futures), total - len(missing) + 1):
        seed = futures[future]
        results[seed] = future.result()
        if store:
            store.save(results[seed])
        if progress:
            progress(done, total)
    return list(results.values())


class Dots:
    """Progress as one growing line on standard output, the same whatever order the seeds finish in."""

    def __init__(self) -> None:
        self.shown = 0

    def __call__(self, done: int, total: int) -> None:
        if self.shown == 0:
            print(f"{total} seeds ", end="")
            self.shown = 1  # the bar's left edge
            print("|", end="")
        print("#" * (done + 1 - self.shown) + ("|\n" if done == total else ""), end="", flush=True)
        self.shown = done + 1


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: every field of the protocol is an option."""
    parser = argparse.ArgumentParser(
        prog="python -m mlgd.sweep",
        description="Run the least-squares experiment and keep its results, one file a seed. A run that is stopped "
        "continues where it was when the same command is given again.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    default = Protocol()
    for f in fields(Protocol):
        value = getattr(default, f.name)
        many = isinstance(value, tuple)
        kind = type(value[0]) if many else type(value)
        if f.name == "scales":
            kind = float
        parser.add_argument(
            "--" + f.name.replace("_", "-"),
            type=kind,
            nargs="+" if many else None,
            default=list(value) if many else value,
            help=HELP[f.name],
        )
    parser.add_argument("--folder", default="results", help="where results are kept")
    parser.add_argument("--workers", type=int, default=2, help="processes, one BLAS thread each")
    parser.add_argument(
        "--keep", type=float, default=1.0, help="GiB of random numbers a worker may keep between passes"
    )
    options = vars(parser.parse_args(arguments))
    folder, count, keep = options.pop("folder"), options.pop("workers"), options.pop("keep") * 2**30
    try:
        protocol = Protocol(**options)
        if count < 1:
            raise ValueError(f"--workers={count}: at least one process is needed")
    except ValueError as error:
        parser.error(str(error))

    def progress(done: int, total: int) -> None:
        print(f"{done} of {total} seeds", file=sys.stderr, flush=True)

    with workers(min(count, len(protocol.seeds))) as pool:
        results = sweep(protocol, pool, folder, progress, keep)
    for line in table(protocol, results):
        print(line)
    return 0


HELP = {
    "m": "rows of the design",
    "n": "columns of the design",
    "phi": "column i has norm i^(-1/phi)",
    "rho": "weight of the direction that all columns share",
    "ladder": "levels of the telescope, geometric",
    "seeds": "one run of the whole protocol each",
    "scales": "the constants C of the probabilities",
    "shrinks": "step sizes, as fractions of 1/(4 beta)",
    "loosest": "log10 of the loosest target over L0",
    "tightest": "log10 of the tightest target over L0",
    "targets": "number of targets between them",
    "probes": "steps of the diagnostic descent at which biases set the probabilities and gamma",
    "wide_probes": "steps at which biases are stored",
    "fit_from": "first level of the fit of gamma",
    "max_steps": "steps of one telescope run",
    "max_flops": "flops of one telescope run",
    "every": "intervals, in steps, at which losses are read",
}


def table(protocol: Protocol, results: Sequence[SeedResult]) -> list[str]:
    """Median flops to each target, as text; a dash where fewer than half of the seeds reached it."""
    names = ("fixed", "exact", "truncated")
    columns = [frontier.across_seeds(np.array([r.frontiers[n].flops for r in results]))[1] for n in names]
    lines = ["   L/L0" + "".join(f"{n:>12}" for n in names)]
    for j, target in enumerate(protocol.losses):
        cells = ["-" if np.isnan(c[j]) else f"{c[j]:.2e}" for c in columns]
        lines.append(f"{target:7.4f}" + "".join(f"{c:>12}" for c in cells))
    return lines


if __name__ == "__main__":
    sys.exit(main())
