"""The paper's second size, m = 65536, streamed and resumable: `python -m mlgd.experiment.large`.

Its design (appendix E.2.1) has 65536 x 4,194,304 entries, 1.1 TB, never held. What is needed of
them is b = A X*, the residuals of a descent in the first k_max columns, and products of those
residuals with every column. With K = A_{<=k_max} A_{<=k_max}^T that descent has the residuals r_s =
-(I - eta K)^s b and the iterates x_s = A^T z_s, where K z_s = b + r_s. Both are functions of K
applied to b, so a few dozen Lanczos vectors, each one pass over the first k_max columns, give them
to rounding.

A pass is cut into tasks. A task is a function of the design and a few vectors, its result is kept
in a folder as soon as it is there, and results are summed in the order of the columns: the outcome
does not depend on who computed what, or when, or after how many kills.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from mlgd.checkpoint import load, save

from .design import BLOCK, Design
from .reduce import PROBES, read_levels
from .sweep import read_signed, workers, write_signed

PROTOCOL = 1  # raised with every change that moves a stored number
NUMBERS = 2**31  # random numbers in a task of a long pass: some ten seconds
# and in one of a pass over the first k_max columns, of which there are dozens
HEAD_NUMBERS = 2**27
SLICES = 8  # blocks whose share of b is kept in the result, for a test to draw again
SETTLED = 1e-12  # Lanczos stops when its last coefficients are this small


# -- tasks: what one worker does with some blocks of columns ---------------------------------------


def shares(design: Design, blocks: range) -> np.ndarray:
    """The blocks' share of b; then, by block, its norm, product with u, first and last entry."""
    total, marks = np.zeros(design.m), []
    for block in blocks:
        target, share = design.target(block), np.zeros(design.m)
        for first, g, shared, own in design.pieces(block, np.float32):
            x = target[first - block * BLOCK :][: len(g)]
            share += (own * x).astype(np.float32) @ g + (shared @ x) * design.shared
        total += share
        marks.append([np.linalg.norm(share), design.shared @ share, share[0], share[-1]])
    return np.concatenate([total, np.ravel(marks)])


def apply(design: Design, blocks: range, q: np.ndarray) -> np.ndarray:
    """The blocks' share of K q = sum_i A_i (A_i . q)."""
    out, along = np.zeros(design.m), design.shared @ q
    for block in blocks:
        for _, g, shared, own in design.pieces(block, float):
            y = own * (g @ q) + shared * along
            out += (own * y) @ g + (shared @ y) * design.shared
    return out


def products(design: Design, blocks: range, vectors: np.ndarray) -> np.ndarray:
    """A_i . v for every column of the blocks and every vector v: vector x column."""
    along, parts = vectors @ design.shared, []
    for block in blocks:
        for _, g, shared, own in design.pieces(block, float):
            parts.append(own * (vectors @ g.T) + np.outer(along, shared))
    return np.hstack(parts)


def tails(design: Design, blocks: range, vectors: np.ndarray, k_max: int) -> np.ndarray:
    """sum_i (A_i . v)^2 over the blocks' columns past k_max, for every v; in single precision."""
    along, single = vectors @ design.shared, vectors.astype(np.float32)
    out = np.zeros(len(vectors))
    for block in blocks:
        for first, g, shared, own in design.pieces(block, np.float32):
            past = np.arange(first, first + len(g)) >= k_max
            out += np.sum(
                (own * (single @ g.T) + np.outer(along, shared)) ** 2 * past, axis=1
            )
    return out


def windows(
    design: Design, blocks: range, x: np.ndarray, edges: np.ndarray
) -> np.ndarray:
    """sum_i x_i A_i over the columns of the blocks between two edges: edge x vector x row."""
    out = np.zeros((len(edges) - 1, len(x), design.m))
    for block in blocks:
        for first, g, shared, own in design.pieces(block, float):
            each = (
                np.searchsorted(edges, np.arange(first, first + len(g)), side="right") - 1
            )
            for j in np.unique(each[each < len(out)]):
                part = x[:, first : first + len(g)] * (each == j)
                out[j] += (part * own) @ g + np.outer(part @ shared, design.shared)
    return out


# -- the run ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Biases:
    """What a run leaves: a few kilobytes."""

    design: Design
    k_max: int
    levels: np.ndarray
    exact: np.ndarray  # probe x level: |A_{<=k}^T r - grad L|
    truncated: np.ndarray  # probe x level: |A_{<=k}^T (A_{<=k} X - b) - grad L|
    losses: np.ndarray  # at the probes
    smoothness: float  # beta of the first k_max columns
    lanczos: int  # passes over them
    # block: norm of its share of b, product with u, first, last
    slices: dict[int, list[float]]

    def to_json(self) -> dict:
        arrays = {name: getattr(self, name).tolist() for name in ARRAYS}
        return json.loads(json.dumps({**asdict(self), **arrays}))

    @classmethod
    def from_json(cls, data: dict) -> Biases:
        changed = {name: np.array(data[name]) for name in ARRAYS}
        changed["slices"] = {int(k): v for k, v in data["slices"].items()}
        return cls(**{**data, **changed, "design": Design(**data["design"])})


ARRAYS = ("levels", "exact", "truncated", "losses")


class Passes:
    """Tasks sent to an executor, a few at a time; each result is kept, whole or not at all.

    The folder's name is a key of what the results are made by: those of other parameters are never
    mixed in.
    """

    def __init__(
        self,
        executor: Executor,
        folder: Path | None,
        made_by: dict,
        ahead: int,
        progress: Callable,
    ):
        self.executor, self.ahead, self.progress = executor, ahead, progress
        key = hashlib.sha256(json.dumps(made_by, sort_keys=True).encode()).hexdigest()[
            :12
        ]
        self.folder = folder and Path(folder) / key
        if self.folder:
            self.folder.mkdir(parents=True, exist_ok=True)

    def keep(self, name: str, value: np.ndarray) -> np.ndarray:
        if self.folder:
            save(self.folder / name, {"value": value})
        return value

    def kept(self, name: str) -> np.ndarray | None:
        """A kept result; None if there is none, or if it is damaged, which a warning then says."""
        if not self.folder or not (self.folder / name).exists():
            return None
        try:
            return load(self.folder / name)["value"]
        except ValueError:
            warnings.warn(f"{name} is damaged and computed again", stacklevel=2)
            return None

    def run(
        self,
        stage: str,
        task: Callable,
        design: Design,
        blocks: range,
        numbers: int,
        *others,
    ) -> Iterator[np.ndarray]:
        """The task's result for each group of blocks, in the order of the columns."""
        size = max(1, numbers // (BLOCK * design.m))
        groups = [blocks[i : i + size] for i in range(0, len(blocks), size)]
        names = [f"{stage}-{group.start:06d}.npz" for group in groups]
        ready = {
            i: value
            for i, name in enumerate(names)
            if (value := self.kept(name)) is not None
        }
        waiting, flying = [i for i in range(len(groups)) if i not in ready], {}
        for i in range(len(groups)):
            while i not in ready:
                while waiting and len(flying) < self.ahead:
                    j = waiting.pop(0)
                    flying[self.executor.submit(task, design, groups[j], *others)] = j
                for future in wait(flying, return_when=FIRST_COMPLETED).done:
                    j = flying.pop(future)
                    ready[j] = self.keep(names[j], future.result())
            self.progress(len(groups[i]) * BLOCK * design.m)
            yield ready.pop(i)


def biases(
    design: Design,
    k_max: int,
    executor: Executor,
    folder: str | Path | None = None,
    ahead: int = 4,
    progress: Callable[[int], object] = lambda numbers: None,
) -> Biases:
    """The biases of both truncations along a descent at level k_max, streamed.

    executor: anything of concurrent.futures' shape (dask's `Client.get_executor()` fits). folder:
    where results of tasks are kept; what is there is not computed again. ahead: tasks sent out at
    once. progress(random numbers just used).
    """
    if not 1 <= k_max <= min(design.m, design.n):
        raise ValueError(
            f"k_max={k_max} must lie between 1 and both m={design.m} and n={design.n}"
        )
    if k_max & (k_max - 1):
        raise ValueError(
            f"k_max={k_max} is not among the levels read: take a power of two"
        )
    made_by = {"design": asdict(design), "k_max": k_max, "protocol": PROTOCOL}
    passes, m = Passes(executor, folder, made_by, ahead, progress), design.m
    b, marks = np.zeros(m), []
    for part in passes.run("b", shares, design, range(design.blocks), NUMBERS):
        b += part[:m]
        marks.extend(part[m:].reshape(-1, 4).tolist())
    chosen = np.unique(np.linspace(0, len(marks) - 1, SLICES).astype(int)).tolist()
    head = replace(design, n=k_max)  # the same columns up to k_max, and zeros
    residuals, sources, beta, passed = _descent(passes, head, b)
    rest = range(k_max // BLOCK, design.blocks)
    beyond = sum(passes.run("tails", tails, design, rest, NUMBERS, residuals, k_max))
    vectors = np.vstack([residuals, sources])
    both = passes.run(
        "products", products, head, range(head.blocks), HEAD_NUMBERS, vectors
    )
    gradient, x = np.split(np.hstack(list(both)), 2)
    levels = read_levels(k_max)
    exact = np.array([np.sum(gradient[:, k:] ** 2, axis=1) + beyond for k in levels]).T
    return Biases(
        design=design,
        k_max=k_max,
        levels=levels,
        exact=np.sqrt(exact),
        truncated=np.sqrt(exact + _crossings(passes, head, levels, x)),
        losses=np.sum(residuals**2, axis=1) / 2,
        smoothness=beta,
        lanczos=passed,
        slices={i: marks[i] for i in chosen},
    )


def _descent(passes: Passes, head: Design, b: np.ndarray):
    """Residuals r_s and sources z_s of the descent, by Lanczos on K from b; beta; its passes."""
    basis, diagonal, off, every = [b / np.linalg.norm(b)], [], [], range(head.blocks)
    while True:
        stage = f"krylov-{len(basis):03d}"
        w = sum(passes.run(stage, apply, head, every, HEAD_NUMBERS, basis[-1]))
        diagonal.append(basis[-1] @ w)
        values, vectors = np.linalg.eigh(
            np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1)
        )
        powers = np.array([(1 - values / (4 * values[-1])) ** s for s in PROBES])
        start = np.linalg.norm(b) * vectors[0]
        coefficients = np.vstack([-powers, (1 - powers) / values]) * start @ vectors.T
        size = np.linalg.norm(coefficients, axis=1)
        last = np.max(np.abs(coefficients[:, -2:]).max(axis=1)[size > 0] / size[size > 0])
        for _ in range(2):  # orthogonal to rounding
            for q in basis:
                w = w - (q @ w) * q
        off.append(np.linalg.norm(w))
        if last < SETTLED or off[-1] < SETTLED * values[-1]:
            residuals, sources = np.split(coefficients @ np.array(basis), 2)
            return residuals, sources, float(values[-1]), len(basis)
        basis.append(w / off[-1])


def _crossings(
    passes: Passes, head: Design, levels: np.ndarray, x: np.ndarray
) -> np.ndarray:
    """|A_{<=k}^T R_k x|^2 for each iterate and level: probe x level."""
    edges, every = np.append(0, levels), range(head.blocks)
    parts = sum(passes.run("windows", windows, head, every, NUMBERS, x, edges))
    out, beyond = np.zeros((len(x), len(levels))), np.zeros_like(parts[0])
    for j in range(len(levels) - 2, -1, -1):  # R_k x, from the finest level down
        beyond, k = beyond + parts[j + 1], int(levels[j])
        near = range(-(-k // BLOCK))
        y = passes.run(f"cross-{k:06d}", products, head, near, NUMBERS, beyond)
        out[:, j] = np.sum(np.hstack(list(y))[:, :k] ** 2, axis=1)
    return out


def read(path: str | Path) -> Biases:
    """A kept result."""
    return Biases.from_json(read_signed(path))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m mlgd.experiment.large",
        description="Biases of both truncations for a design of m x 64 m, streamed. "
        "A run that was stopped continues when the same command is given again.",
    )
    parser.add_argument(
        "--m", type=int, default=65536, help="rows; k_max is m/4, n is 64 m"
    )
    parser.add_argument(
        "--workers", type=int, default=2, help="processes, one BLAS thread each"
    )
    parser.add_argument(
        "--folder", default="results/large", help="where results of tasks are kept"
    )
    parser.add_argument("--out", required=True, help="the file of the result")
    options = parser.parse_args(arguments)
    design = Design(m=options.m, n=64 * options.m, seed=100, pairs=True)
    # two passes, and two dozen short ones
    total = options.m * (2 * design.n + 24 * options.m // 4)
    with workers(options.workers) as pool, tqdm(total=total, unit_scale=True) as bar:
        ahead = 2 * options.workers
        result = biases(design, options.m // 4, pool, options.folder, ahead, bar.update)
    command = f"python -m mlgd.experiment.large --m {options.m}"
    write_signed(options.out, command, PROTOCOL, result.to_json())


if __name__ == "__main__":
    main()
