"""The biases of one design of any size, streamed in passes over its columns.

The paper's second panel (appendix E.2.1) has m = 65536, and so 65536 x 4,194,304 entries: 1.1 TB, never held. What is needed of
them is b = A X*, the residuals of a descent in the first k_max columns, and products of those residuals with every column.
With K = A_{<=k_max} A_{<=k_max}^T that descent has the residuals r_s = -(I - eta K)^s b and the iterates x_s = A^T z_s, where
K z_s = b + r_s. Both are functions of K applied to b, so a few dozen Lanczos vectors, each one pass over the first k_max
columns, give them to rounding. Everything else is two passes over the design. Memory is a few vectors of m entries.

A pass is cut into tasks. A task is a function of the design and a few vectors, its result is kept in a folder as soon as it is there, and
results are summed in the order of the columns: the outcome does not depend on who computed what, or when, or after how many kills.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, wait
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from .design import BLOCK, Design
from .store import Store, workers

PROTOCOL = 1  # raised with every change that moves a stored number
STEPS = (0, 1, 4, 20, 89, 400)  # the six points at which the paper reads a bias
NUMBERS = 2**31  # random numbers in a task of a long pass: some ten seconds
HEAD_NUMBERS = 2**27  # and in one of a pass over the first k_max columns, of which there are dozens
SLICES = 8  # blocks whose share of b is kept in the result, for a test to draw again
SETTLED = 1e-12  # Lanczos stops when its last coefficients are this small


def levels(k_max: int) -> np.ndarray:
    """The levels at which a bias is read: ratio sqrt(2), from 1 to k_max."""
    return np.array(sorted({round(2 ** (i / 2)) for i in range(round(2 * np.log2(k_max)) + 1)}))


# -- tasks: what one worker does with some blocks of columns ----------------------------------------------------------------


def shares(design: Design, blocks: range) -> np.ndarray:
    """Each block's share of b, summed; and below it |share|, u.share, and its first and last entry, for each block."""
    u, total, marks = design.shared(), np.zeros(design.m), []
    for block in blocks:
        target, share = design.target(block), np.zeros(design.m)
        for first, g, shared, own in design.pieces(block, np.float32):
            x = target[first - block * BLOCK :][: len(g)]
            share += (own * x).astype(np.float32) @ g + (shared @ x) * u
        total += share
        marks.append([np.linalg.norm(share), u @ share, share[0], share[-1]])
    return np.concatenate([total, np.ravel(marks)])


def apply(design: Design, blocks: range, q: np.ndarray) -> np.ndarray:
    """The blocks' share of K q = sum_i A_i (A_i . q)."""
    u = design.shared()
    out, along = np.zeros(design.m), u @ q
    for block in blocks:
        for _, g, shared, own in design.pieces(block, float):
            y = own * (g @ q) + shared * along
            out += (own * y) @ g + (shared @ y) * u
    return out


def products(design: Design, blocks: range, vectors: np.ndarray) -> np.ndarray:
    """A_i . v for every column of the blocks and every vector v: vector x column."""
    along, parts = vectors @ design.shared(), []
    for block in blocks:
        for _, g, shared, own in design.pieces(block, float):
            parts.append(own * (vectors @ g.T) + np.outer(along, shared))
    return np.hstack(parts)


def tails(design: Design, blocks: range, vectors: np.ndarray, k_max: int) -> np.ndarray:
    """sum_i (A_i . v)^2 over the blocks' columns past k_max, for every vector v; in single precision, like the draws."""
    along, single = vectors @ design.shared(), vectors.astype(np.float32)
    out = np.zeros(len(vectors))
    for block in blocks:
        for first, g, shared, own in design.pieces(block, np.float32):
            past = np.arange(first, first + len(g)) >= k_max
            out += np.sum((own * (single @ g.T) + np.outer(along, shared)) ** 2 * past, axis=1)
    return out


def windows(design: Design, blocks: range, x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """sum_i x_i A_i over the columns of the blocks between two edges: edge x vector x row."""
    u = design.shared()
    out = np.zeros((len(edges) - 1, len(x), design.m))
    for block in blocks:
        for first, g, shared, own in design.pieces(block, float):
            each = np.searchsorted(edges, np.arange(first, first + len(g)), side="right") - 1
            for j in np.unique(each[each < len(out)]):
                part = x[:, first : first + len(g)] * (each == j)
                out[j] += (part * own) @ g + np.outer(part @ shared, u)
    return out


# -- the run ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Biases:
    """What a run leaves: a few kilobytes."""

    design: Design
    k_max: int
    steps: tuple[int, ...]
    levels: np.ndarray
    exact: np.ndarray  # probe x level: |A_{<=k}^T r - grad L|
    truncated: np.ndarray  # probe x level: |A_{<=k}^T (A_{<=k} X - b) - grad L|
    losses: np.ndarray  # at the probes
    smoothness: float  # beta of the first k_max columns
    lanczos: int  # passes over them
    slices: dict[
        int, list[float]
    ]  # block: |share|, u.share, first and last entry of its share of b

    def to_json(self) -> dict:
        data = asdict(self)
        for name in ("levels", "exact", "truncated", "losses"):
            data[name] = getattr(self, name).tolist()
        return json.loads(json.dumps(data))

    @classmethod
    def from_json(cls, data: dict) -> Biases:
        arrays = {k: np.array(data[k]) for k in ("levels", "exact", "truncated", "losses")}
        slices = {int(k): v for k, v in data["slices"].items()}
        design = Design(**data["design"])
        return cls(
            **{**data, **arrays, "design": design, "steps": tuple(data["steps"]), "slices": slices}
        )


class Passes:
    """Tasks sent to an executor, a few at a time, each result kept before the next is awaited."""

    def __init__(
        self, executor: Executor, store: Store | None, progress: Callable | None, ahead: int
    ):
        self.executor, self.store, self.ahead = executor, store, ahead
        self.progress = progress or (lambda stage, numbers: None)

    def load(self, name: str) -> np.ndarray | None:
        body = self.store.load(name) if self.store else None
        return None if body is None else np.load(io.BytesIO(body))

    def keep(self, name: str, value: np.ndarray) -> np.ndarray:
        if self.store:
            file = io.BytesIO()
            np.save(file, value)
            self.store.save(name, file.getvalue())
        return value

    def run(
        self,
        stage: str,
        task: Callable,
        design: Design,
        blocks: range,
        numbers: int,
        *others: object,
    ) -> Iterator[np.ndarray]:
        """The task's result for each group of blocks, in the order of the columns."""
        size = max(1, numbers // (BLOCK * design.m))
        groups = [
            range(b, min(b + size, blocks.stop)) for b in range(blocks.start, blocks.stop, size)
        ]
        names = [f"{stage}-{g.start:06d}.npy" for g in groups]
        ready = {i: value for i, name in enumerate(names) if (value := self.load(name)) is not None}
        for i in ready:
            self.progress(stage, len(groups[i]) * BLOCK * design.m)
        waiting, flying = [i for i in range(len(groups)) if i not in ready], {}
        for i in range(len(groups)):
            while i not in ready:
                while waiting and len(flying) < self.ahead:
                    j = waiting.pop(0)
                    flying[self.executor.submit(task, design, groups[j], *others)] = j
                for future in wait(flying, return_when=FIRST_COMPLETED).done:
                    j = flying.pop(future)
                    ready[j] = self.keep(names[j], future.result())
                    self.progress(stage, len(groups[j]) * BLOCK * design.m)
            yield ready.pop(i)


def biases(
    design: Design,
    k_max: int,
    steps: Sequence[int] = STEPS,
    executor: Executor | None = None,
    folder: str | Path | None = None,
    progress: Callable[[str, int], None] | None = None,
    count: int = 2,
) -> Biases:
    """The biases of both truncations along a descent at level k_max, streamed.

    executor: anything of concurrent.futures' shape (dask's `Client.get_executor()` fits); `count` local processes if None, which
    are started again when one of them is killed. folder: where results of tasks are kept; what is there is not computed again.
    """
    if not 1 <= k_max <= min(design.m, design.n):
        raise ValueError(f"k_max={k_max} must lie between 1 and both m={design.m} and n={design.n}")
    if levels(k_max)[-1] != k_max:
        raise ValueError(
            f"k_max={k_max} is not among the levels, of ratio sqrt(2), that are read: take a power of two"
        )
    made_by = {"design": asdict(design), "k_max": k_max, "steps": list(steps), "protocol": PROTOCOL}
    store = Store(folder, made_by) if folder is not None else None
    if executor is not None:
        return _biases(design, Passes(executor, store, progress, 2 * count), k_max, tuple(steps))
    while True:
        try:
            with workers(count) as pool:
                return _biases(
                    design, Passes(pool, store, progress, 2 * count), k_max, tuple(steps)
                )
        except BrokenExecutor:
            if store is None:
                raise
            print(
                "a worker was lost: starting again from what is kept", file=sys.stderr, flush=True
            )


def _biases(design: Design, passes: Passes, k_max: int, steps: tuple[int, ...]) -> Biases:
    m, b, marks = design.m, np.zeros(design.m), []
    for part in passes.run("b", shares, design, range(design.blocks), NUMBERS):
        b += part[:m]
        marks.extend(part[m:].reshape(-1, 4).tolist())
    chosen = np.unique(np.linspace(0, len(marks) - 1, SLICES).astype(int)).tolist()
    head = replace(design, n=k_max)  # the same columns up to k_max, and zeros
    residuals, sources, beta, passed = _descent(passes, head, b, steps)
    rest = range(k_max // BLOCK, design.blocks)
    beyond = sum(passes.run("tails", tails, design, rest, NUMBERS, residuals, k_max))
    vectors = np.vstack([residuals, sources])
    both = np.hstack(
        list(passes.run("products", products, head, range(head.blocks), HEAD_NUMBERS, vectors))
    )
    gradient, x = np.split(both, 2)
    ladder = levels(k_max)
    exact = np.array([np.sum(gradient[:, k:] ** 2, axis=1) + beyond for k in ladder]).T
    return Biases(
        design=design,
        k_max=k_max,
        steps=steps,
        levels=ladder,
        exact=np.sqrt(exact),
        truncated=np.sqrt(exact + _crossings(passes, head, ladder, x)),
        losses=np.sum(residuals**2, axis=1) / 2,
        smoothness=beta,
        lanczos=passed,
        slices={i: marks[i] for i in chosen},
    )


def _descent(passes: Passes, head: Design, b: np.ndarray, steps: tuple[int, ...]):
    """Residuals r_s and sources z_s of the descent with step 1/(4 beta), by Lanczos on K from b; beta; the passes it took."""
    basis, diagonal, off = [b / np.linalg.norm(b)], [], []
    while True:
        w = sum(
            passes.run(
                f"krylov-{len(basis):03d}", apply, head, range(head.blocks), HEAD_NUMBERS, basis[-1]
            )
        )
        diagonal.append(basis[-1] @ w)
        values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1))
        rates = 1 - values / (4 * values[-1])
        powers = np.array([rates**s for s in steps])
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


def _crossings(passes: Passes, head: Design, ladder: np.ndarray, x: np.ndarray) -> np.ndarray:
    """|A_{<=k}^T R_k x|^2 for each iterate and level: probe x level."""
    edges = np.append(0, ladder)
    parts = sum(passes.run("windows", windows, head, range(head.blocks), NUMBERS, x, edges))
    out = np.zeros((len(x), len(ladder)))
    beyond = np.zeros_like(parts[0])
    for j in range(len(ladder) - 1, -1, -1):  # R_k x, from the finest level down
        if j < len(ladder) - 1:
            beyond = beyond + parts[j + 1]
            near = range(-(-int(ladder[j]) // BLOCK))
            y = np.hstack(
                list(passes.run(f"cross-{ladder[j]:06d}", products, head, near, NUMBERS, beyond))
            )
            out[:, j] = np.sum(y[:, : ladder[j]] ** 2, axis=1)
    return out
