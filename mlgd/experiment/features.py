"""Least squares with truncated features: a design reduced to what the experiment needs of it, and its levels.

The paper's section 4 and appendix E. Nothing of size m x n is ever needed: the descent lives in the first `k_max` coordinates, so a seed reduces
to the Gram matrix of those columns, their products with b, and the tails of the gradient at a few probes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mlgd.hierarchy import Hierarchy

from .design import BLOCK, Design

PROBE_STEPS = (0, 1, 4, 20, 89, 400)  # the six points at which the paper reads gamma

_local = threading.local()


def memory(count: int, m: int) -> np.ndarray:
    """Room for blocks, reused from seed to seed: touching fresh memory can cost as much as drawing the numbers."""
    held = getattr(_local, "held", None)
    if held is None or len(held) < count or held.shape[2] != m:
        _local.held = held = np.empty((count, BLOCK, m), np.float32)
    return held[:count]


@dataclass(frozen=True)
class Reduced:
    """All that the experiment needs of one seed: the problem in its first k_max coordinates, and the probes' tails.

    L(X) = 1/2 X'GX - v'X + 1/2 |b|^2 for every X in the first k_max coordinates; `tails[j]` is the squared norm of the
    gradient's coordinates past k_max at `probes[j]`, the iterates of a descent at level k_max.
    """

    design: Design
    gram: np.ndarray
    moment: np.ndarray
    right: np.ndarray
    steps: tuple[int, ...]
    probes: np.ndarray
    tails: np.ndarray

    @property
    def square(self) -> float:
        return float(self.right @ self.right)

    @property
    def loss_zero(self) -> float:
        return self.square / 2

    def loss(self, x: np.ndarray) -> float:
        return float(x @ (self.gram @ x) / 2 - self.moment @ x + self.square / 2)

    def smoothness(self, k: int) -> float:
        """beta_k, the top eigenvalue of the Gram matrix of the first k columns."""
        return float(np.linalg.eigvalsh(self.gram[:k, :k])[-1])

    def floor(self, k: int) -> float:
        """The smallest loss within the first k coordinates, as a fraction of L0."""
        v = self.moment[:k]
        return float(1 - v @ np.linalg.solve(self.gram[:k, :k], v) / self.square)

    def distance(self) -> float:
        """d0, from 0 to the minimizer in the first k_max coordinates."""
        return float(np.linalg.norm(np.linalg.solve(self.gram, self.moment)))

    def crossing(self) -> float:
        """mu d0^2 of the problem in k_max coordinates, as a fraction of L0: where the strongly convex bound takes over."""
        return float(np.linalg.eigvalsh(self.gram)[0] * self.distance() ** 2 / self.loss_zero)

    def biases(
        self, levels: Sequence[int], truncated: bool = False, steps: Sequence[int] | None = None
    ) -> np.ndarray:
        """Bias of each level (columns) at each probe (rows): exact residual, or the truncated form."""
        chosen = range(len(self.steps)) if steps is None else [self.steps.index(s) for s in steps]
        out = np.empty((len(chosen), len(levels)))
        for row, j in enumerate(chosen):
            x = self.probes[j]
            gradient = self.gram @ x - self.moment
            for column, k in enumerate(levels):
                error = gradient[k:] @ gradient[k:] + self.tails[j]
                if truncated:
                    cross = self.gram[:k, k:] @ x[k:]
                    error += cross @ cross
                out[row, column] = np.sqrt(error)
        return out


def reduce(
    designs: Sequence[Design],
    k_max: int,
    steps: Sequence[int] = PROBE_STEPS,
    keep: float = 2**30,
    progress: Callable[[int, int], None] | None = None,
) -> list[Reduced]:
    """Reduce designs that share a seed and m, from one drawing of their random numbers.

    Two passes: the first sums b, the second reads the gradient at the probes, which depend on b. Blocks are kept
    between the passes while they fit in `keep` bytes, and drawn again otherwise: memory does not grow with n.
    Products with a column are made in single precision, like its draws, and summed over columns in double precision.
    """
    seed, m = designs[0].seed, designs[0].m
    if any((d.seed, d.m, d.pairs) != (seed, m, designs[0].pairs) for d in designs):
        raise ValueError(
            "designs reduced together must share their seed and m, and so their random numbers"
        )
    if not 1 <= k_max <= m:
        raise ValueError(
            f"k_max={k_max} must lie between 1 and m={m}: past m columns a level fits b exactly"
        )
    for d in designs:
        if d.n < k_max:
            raise ValueError(
                f"n={d.n} is smaller than k_max={k_max}: the finest level would read missing columns"
            )
    total = max(d.blocks for d in designs)
    u, kept = designs[0].shared(), memory(min(total, int(keep // (4 * BLOCK * m))), m)
    scratch = np.empty((BLOCK, m), np.float32)

    def raw(done: int) -> Iterator[tuple[int, np.ndarray]]:
        for block in range(total):
            held = block < len(kept)
            if held and done:
                g = kept[block]
            else:
                g = designs[0].gaussians(block, kept[block] if held else scratch)
            yield block, g
            if progress:
                progress(done + block + 1, 2 * total)

    heads = [d.columns(k_max) for d in designs]
    b, single = np.zeros((len(designs), m)), u.astype(np.float32)

    def weigh(block: int, g: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        squares, along = np.einsum("ij,ij->i", g, g).astype(float), (g @ single).astype(float)
        return [d.weights(block * BLOCK, squares, along) for d in designs]

    for block, g in raw(0):
        target, weights = designs[0].target(block), weigh(block, g)
        b += np.array([own * target for _, own in weights], np.float32) @ g
        b += np.outer([shared @ target for shared, _ in weights], u)
    probes, residuals = [], []
    for head, right in zip(heads, b, strict=True):
        gram, moment = head.T @ head, head.T @ right
        points = descend(gram, moment, steps)
        probes.append((gram, moment, points))
        residuals.append(points @ head.T - right)
    tails = np.zeros((len(designs), len(steps)))
    flat = np.concatenate(residuals).astype(np.float32)
    for block, g in raw(total):
        products = (flat @ g.T).astype(float).reshape(len(designs), len(steps), BLOCK)
        past = np.arange(block * BLOCK, (block + 1) * BLOCK) >= k_max
        for j, (shared, own) in enumerate(weigh(block, g)):
            gradient = own * products[j] + np.outer(residuals[j] @ u, shared)
            tails[j] += np.sum(gradient**2 * past, axis=1)
    return [
        Reduced(d, gram, moment, right, tuple(steps), points, tail)
        for d, right, (gram, moment, points), tail in zip(designs, b, probes, tails, strict=True)
    ]


def descend(gram: np.ndarray, moment: np.ndarray, steps: Sequence[int]) -> np.ndarray:
    """Iterates, at those steps, of gradient descent from 0 with step 1/(4 beta): closed form in the eigenbasis."""
    values, vectors = np.linalg.eigh(gram)
    rates = 1 - values / (4 * values[-1])
    optimum = vectors.T @ moment / values
    return np.array([vectors @ (optimum * (1 - rates**s)) for s in steps])


def truncations(design: Design, ladder: Sequence[int], exact: bool) -> Hierarchy:
    """The ladder of truncations as a Hierarchy, for designs small enough to be stored whole.

    A level is named by its k. `exact`: the first k coordinates of A'(AX - b), at 2mk flops and as much again for the residual
    that a step moves (the amortization lemma); otherwise A_{<=k}'(A_{<=k} X - b), at 4mk flops. The accuracy of a level
    is the bound |R_k||b| at the origin.
    """
    if design.m * design.n > 2**26:
        raise ValueError(
            f"{design.m} x {design.n} is too large to store; reduce() streams it instead"
        )
    matrix = design.columns(design.n)
    target = np.concatenate([design.target(block) for block in range(design.blocks)])[: design.n]
    b = matrix @ target

    def evaluate(k: int, x: np.ndarray) -> np.ndarray:
        head, out = matrix[:, :k], np.zeros(design.n)
        out[:k] = head.T @ ((matrix @ x if exact else head @ x[:k]) - b)
        return out

    return Hierarchy(
        evaluate,
        cost=lambda k: 4.0 * design.m * k,
        levels=ladder,
        accuracy=lambda k: design.tail_norm(k) * np.linalg.norm(b),
    )
