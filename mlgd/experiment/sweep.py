"""The whole experiment, seed by seed, on any executor: `python -m mlgd.experiment.sweep`.

The paper's section 4.2 and appendix E.1.1, E.3. A seed is one unit of work: its design is streamed
once and every run of the protocol is made on the reduced problem. Results depend on the protocol
and the seed only, never on the executor.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from tqdm import tqdm

from .design import SEEDS, Design, Protocol
from .frontier import Reached, beyond, fixed_frontier, fixed_level, telescope_frontier
from .reduce import WIDE, Reduced, read_levels, read_rate, reduce

PROTOCOL = 4  # raised with every change that moves a number of a seed
METHODS = ("fixed", "exact", "truncated")
# losses are read at each step, and again every so many steps only
EVERY = (
    1,
    10,
    25,
    50,
    100,
)


@dataclass(frozen=True)
class SeedResult:
    """One seed: its constants, its biases and the frontiers of every method."""

    seed: int
    loss_zero: float
    curvature: float  # mu, the smallest eigenvalue of the problem in k_max coordinates
    distance: float  # d0 there, from 0 to its minimizer
    alignment: float  # |u.b| / |b|: how much of b lies along the direction that all columns share
    # smallest loss over L0 in the first k coordinates, by baseline level
    floors: dict[int, float]
    smoothness: dict[int, float]  # beta_k, by baseline level
    exact: np.ndarray  # bias of the exact residual: probe x level
    wide: np.ndarray  # its largest over sixteen probes, by level
    truncated: np.ndarray  # bias of the truncated residual: probe x level
    # 'fixed', 'exact', 'truncated'; 'fixed 25', ...: read rarely
    frontiers: dict[str, Reached]
    # of processor time
    seconds: dict[str, float] = field(default_factory=dict, compare=False)

    @property
    def floor(self) -> float:
        """The smallest loss in the first k_max coordinates, over L0."""
        return self.floors[max(self.floors)]

    @property
    def crossing(self) -> float:
        """mu d0^2 over L0: below it the strongly convex theorem takes over."""
        return self.curvature * self.distance**2 / self.loss_zero

    def to_json(self, m: int) -> dict:
        """All but timings, to six digits; flops in units of 2m."""
        plain = {n: six(getattr(self, n)) for n in (*SCALARS, *ARRAYS)}
        by_level = {
            n: {str(k): six(v) for k, v in getattr(self, n).items()} for n in BY_LEVEL
        }
        pairs = {
            name: [
                [int(f) // (2 * m), int(s)]
                for f, s in zip(r.flops, r.steps, strict=True)
                if s < np.inf
            ]
            for name, r in self.frontiers.items()
        }
        return {"seed": self.seed, **plain, **by_level, "frontiers": pairs}

    @classmethod
    def from_json(cls, data: dict, m: int, targets: int) -> SeedResult:
        frontiers = {name: Reached.nothing(targets) for name in data["frontiers"]}
        for name, pairs in data["frontiers"].items():
            for j, (products, steps) in enumerate(pairs):
                frontiers[name].note(j, 2.0 * m * products, steps)
        by_level = {name: {int(k): v for k, v in data[name].items()} for name in BY_LEVEL}
        arrays = {name: np.array(data[name]) for name in ARRAYS}
        return cls(**{**data, **arrays, **by_level, "frontiers": frontiers})


Also = Callable[[Protocol, Reduced], dict[str, Reached]]
SCALARS = ("loss_zero", "curvature", "distance", "alignment")
ARRAYS = ("exact", "wide", "truncated")
BY_LEVEL = ("floors", "smoothness")


def six(values: float | np.ndarray) -> float | list:
    return np.vectorize(lambda v: float(f"{v:.6g}"), otypes=[float])(values).tolist()


def run_seed(protocol: Protocol, seed: int, also: Also | None = None) -> SeedResult:
    """One seed, from its random numbers to its frontiers; `also` adds frontiers of its own."""
    clock = time.process_time()
    problem = reduce(protocol.design(seed), protocol.k_max, WIDE)
    design_seconds, clock = time.process_time() - clock, time.process_time()
    result = sweep_problem(protocol, problem)
    if also:
        result.frontiers.update(also(protocol, problem))
    result.seconds.update(design=design_seconds, sweep=time.process_time() - clock)
    return result


def sweep_problem(protocol: Protocol, problem: Reduced) -> SeedResult:
    """Every run of the protocol on one reduced problem."""
    targets, levels, m = protocol.losses, read_levels(protocol.k_max), protocol.m
    runs = [
        (k, fixed_level(problem, k, shrink, targets))
        for k in protocol.baseline
        for shrink in protocol.shrinks
    ]
    limits = {"fixed capped": protocol.max_steps, "fixed fifth": protocol.max_steps // 5}
    frontiers = {name: fixed_frontier(runs, m, limit) for name, limit in limits.items()}
    for every in EVERY:
        frontiers[named("fixed", every)] = fixed_frontier(runs, m, every=every)
    for form in METHODS[1:]:
        reached = telescope_frontier(problem, protocol, form == "exact", EVERY)
        frontiers |= {named(form, e): r for e, r in zip(EVERY, reached, strict=True)}
    right, u = problem.right, problem.design.shared
    return SeedResult(
        seed=problem.design.seed,
        loss_zero=problem.loss_zero,
        curvature=float(problem.spectrum(protocol.k_max)[0][0]),
        distance=float(np.linalg.norm(problem.minimizer(protocol.k_max))),
        alignment=float(abs(u @ right) / np.linalg.norm(right)),
        floors={k: problem.floor(k) for k in protocol.baseline},
        smoothness={k: problem.smoothness(k) for k in protocol.baseline},
        exact=problem.biases(levels),
        wide=problem.biases(levels, steps=WIDE).max(axis=0),
        truncated=problem.biases(levels, truncated=True),
        frontiers=frontiers,
    )


def named(method: str, every: int = 1) -> str:
    return method if every == 1 else f"{method} {every}"


@contextmanager
def workers(count: int = 2) -> Iterator[Executor]:
    """Processes with one BLAS thread each (set before a worker imports numpy)."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ[name] for name in names if name in os.environ}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
            yield pool
    finally:
        for name in names:
            os.environ.pop(name)
        os.environ.update(before)


def sweep(
    protocol: Protocol,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    also: Also | None = None,
) -> list[SeedResult]:
    """Run every seed of the protocol, in the order of its seeds whatever order they finish in.

    executor: anything of concurrent.futures' shape (dask's `Client.get_executor()` fits); two
    processes if None. progress(done, total) is called after every seed. also(protocol, reduced
    problem) adds frontiers to each.
    """
    if executor is None:
        with workers(min(2, len(protocol.seeds))) as pool:
            return sweep(protocol, pool, progress, also)
    futures = [executor.submit(run_seed, protocol, seed, also) for seed in protocol.seeds]
    for done, _ in enumerate(as_completed(futures), 1):
        if progress:
            progress(done, len(futures))
    return [future.result() for future in futures]


def quarters(done: int, total: int) -> None:
    """Progress on standard output: a line after each quarter of the seeds, in whatever order."""
    if 4 * done // total > 4 * (done - 1) // total:
        print(f"{done} of {total} seeds", flush=True)


def write_signed(
    path: str | os.PathLike, command: str, protocol: int, result: object
) -> None:
    """A small result as the book keeps it: with its command, its protocol's number, a checksum."""
    body = json.dumps(result, sort_keys=True, separators=(",", ":"))
    checksum = hashlib.sha256(body.encode()).hexdigest()
    head = json.dumps({"command": command, "protocol": protocol, "checksum": checksum})
    Path(path).write_text(f'{head[:-1]}, "result": {body}}}\n')


def read_signed(path: str | os.PathLike) -> object:
    """A kept result; refused if its numbers are not those of its checksum."""
    record = json.loads(Path(path).read_text())
    body = json.dumps(record["result"], sort_keys=True, separators=(",", ":"))
    if hashlib.sha256(body.encode()).hexdigest() != record["checksum"]:
        raise ValueError(
            f"{path}: the checksum is not that of the numbers; {record['command']} makes them again"
        )
    return record["result"]


def read(path: str | os.PathLike) -> list[SeedResult]:
    """The results of a run that was kept."""
    kept = read_signed(path)["seeds"]
    return [SeedResult.from_json(s, Protocol.m, len(Protocol.targets)) for s in kept]


def studies() -> dict[str, list[tuple[Design, int, int]]]:
    """Smaller designs whose rate is read: directions shared to four degrees, and three lengths."""
    shared, lengths = (0.0, 0.2, 0.4, 0.6), (64, 256, 1024)
    return {
        "shared": [
            (Design(n=16384, rho=r, seed=s), 512, 1) for s in SEEDS[:6] for r in shared
        ],
        "lengths": [
            (Design(1024, 256 * n, seed=s), 256, 16) for s in SEEDS[:3] for n in lengths
        ],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the paper's protocol on our seeds and keep what the audit reads."""
    parser = argparse.ArgumentParser(
        prog="python -m mlgd.experiment.sweep", description=main.__doc__
    )
    parser.add_argument("--out", required=True, help="the file of the results")
    parser.add_argument(
        "--workers", type=int, default=2, help="processes, one BLAS thread each"
    )
    options = parser.parse_args(arguments)
    with workers(options.workers) as pool, tqdm(total=len(SEEDS), unit="seed") as bar:
        results = sweep(
            Protocol(), pool, lambda done, total: bar.update(done - bar.n), beyond
        )
        tasks = {name: zip(*tasks, strict=True) for name, tasks in studies().items()}
        rates = {
            name: six(list(pool.map(read_rate, *task))) for name, task in tasks.items()
        }
    kept = {"seeds": [r.to_json(Protocol.m) for r in results], "rates": rates}
    write_signed(options.out, "make figure-seeds", PROTOCOL, kept)


if __name__ == "__main__":
    main()
