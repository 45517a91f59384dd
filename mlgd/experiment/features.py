"""Least squares with truncated features: the design of the experiment, streamed, and its levels.

Section 4 and its appendix. A column is the normalised mix of one shared and one own direction, rescaled to norm
i^(-1/phi). Nothing of size m x n is ever needed: the descent lives in the first `k_max` coordinates, so a seed reduces
to the Gram matrix of those columns, their products with b, and the tails of the gradient at a few probes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mlgd.hierarchy import Hierarchy

BLOCK = 512  # columns in a block: the unit in which the design is drawn
PROBE_STEPS = (0, 1, 4, 20, 89, 400)  # the six points at which the paper reads gamma
SHARED, OWN, TARGET, TELESCOPE = range(4)  # names of the random streams of one seed


def stream(seed: int, *name: int) -> np.random.Generator:
    """The random stream of that name: the same numbers in every process, in every order."""
    return np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(seed, spawn_key=name)))


@dataclass(frozen=True)
class Design:
    """The m x n design of one seed (section 4.2.1), with its flat target X* and b = A X*."""

    m: int = 2048
    n: int = 131072
    phi: float = 1.2
    rho: float = 0.6
    seed: int = 0

    def __post_init__(self) -> None:
        if not (self.m >= 2 and self.n >= 1):
            raise ValueError(f"a design needs m >= 2 rows and n >= 1 columns; got m={self.m}, n={self.n}")
        if not 0 < self.phi < 2:
            raise ValueError(
                f"phi={self.phi} is outside (0, 2): the column norms i^(-1/phi) are square summable only for phi < 2"
            )
        if not 0 <= self.rho < 1:
            raise ValueError(f"rho={self.rho} is outside [0, 1): rho = 1 would make all columns parallel")
        if self.seed < 0 or self.seed != int(self.seed):
            raise ValueError(f"seed={self.seed} must be a non-negative integer")

    @property
    def gamma(self) -> float:
        """The closed-form rate 2 phi / (2 - phi) of the hierarchy of truncations."""
        return 2 * self.phi / (2 - self.phi)

    @property
    def blocks(self) -> int:
        return -(-self.n // BLOCK)

    def norms(self, block: int) -> np.ndarray:
        """The norms i^(-1/phi) of the block's columns; 0 past column n."""
        i = np.arange(block * BLOCK + 1, (block + 1) * BLOCK + 1)
        return np.where(i <= self.n, i ** (-1 / self.phi), 0.0)

    def shared(self) -> np.ndarray:
        """The direction u that every column contains."""
        u = stream(self.seed, SHARED).standard_normal(self.m)
        return u / np.linalg.norm(u)

    def target(self, block: int) -> np.ndarray:
        """The block's coordinates of X*: standard normal, with no decay."""
        return stream(self.seed, TARGET, block).standard_normal(BLOCK)

    def weights(self, block: int, squares: np.ndarray, along: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights of u and of the raw Gaussian vector g in each column, from |g|^2 and u.g alone."""
        own = np.sqrt(1 - self.rho**2)
        direction = 1 / np.sqrt(squares)
        scale = self.norms(block) / np.sqrt(1 + 2 * self.rho * own * along * direction)
        return self.rho * scale, own * scale * direction

    def columns(self, k: int) -> np.ndarray:
        """The first k columns, as an m x k matrix."""
        if not 1 <= k <= self.n:
            raise ValueError(f"the design has columns 1 to {self.n}; {k} were asked for")
        u, parts = self.shared(), []
        for block in range(-(-k // BLOCK)):
            g = gaussians(self.seed, self.m, block).astype(float)
            shared, own = self.weights(block, np.einsum("ij,ij->i", g, g), g @ u)
            parts.append(shared[:, None] * u + own[:, None] * g)
        return np.concatenate(parts)[:k].T

    def tail_norm(self, k: int) -> float:
        """The bound (sum_{i>k} |A_i|^2)^(1/2) on |R_k| of the proposition, for this finite n."""
        return float(np.sqrt(np.sum(np.arange(self.n, k, -1.0) ** (-2 / self.phi))))


def gaussians(seed: int, m: int, block: int, out: np.ndarray | None = None) -> np.ndarray:
    """The raw Gaussian vectors of one block, one row a column of the design (float32)."""
    out = np.empty((BLOCK, m), np.float32) if out is None else out
    return stream(seed, OWN, block).standard_normal(dtype=np.float32, out=out)


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

    def crossing(self) -> float:
        """mu d0^2 of the problem in k_max coordinates, as a fraction of L0: where part (b) takes over."""
        d0 = np.linalg.solve(self.gram, self.moment)
        return float(np.linalg.eigvalsh(self.gram)[0] * (d0 @ d0) / self.loss_zero)

    def biases(self, levels: Sequence[int], truncated: bool = False, steps: Sequence[int] | None = None) -> np.ndarray:
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
    """
    seed, m = designs[0].seed, designs[0].m
    if any(d.seed != seed or d.m != m for d in designs):
        raise ValueError("designs reduced together must share their seed and m, and so their random numbers")
    if not 1 <= k_max <= m:
        raise ValueError(f"k_max={k_max} must lie between 1 and m={m}: past m columns a level fits b exactly")
    for d in designs:
        if d.n < k_max:
            raise ValueError(f"n={d.n} is smaller than k_max={k_max}: the finest level would read missing columns")
    total = max(d.blocks for d in designs)
    u, kept = designs[0].shared(), memory(min(total, int(keep // (4 * BLOCK * m))), m)
    scratch = np.empty((BLOCK, m), np.float32)

    def raw(done: int) -> Iterator[tuple[int, np.ndarray]]:
        for block in range(total):
            held = block < len(kept)
            if held and done:
                g = kept[block]
            else:
                g = gaussians(seed, m, block, kept[block] if held else scratch)
            yield block, g
            if progress:
                progress(done + block + 1, 2 * total)

    heads = [d.columns(k_max) for d in designs]
    b, g = np.zeros((len(designs), m)), np.empty((BLOCK, m))
    for block, single in raw(0):
        target = designs[0].target(block)
        g[:] = single
        squares, along = np.einsum("ij,ij->i", g, g), g @ u
        weights = [d.weights(block, squares, along) for d in designs]
        b += np.array([own * target for _, own in weights]) @ g
        b += np.outer([shared @ target for shared, _ in weights], u)
    probes, residuals = [], []
    for head, right in zip(heads, b, strict=True):
        gram, moment = head.T @ head, head.T @ right
        points = descend(gram, moment, steps)
        probes.append((gram, moment, points))
        residuals.append(points @ head.T - right)
    tails = np.zeros((len(designs), len(steps)))
    # each product in single precision, like the draws; their squares are summed in double precision
    flat = np.concatenate([*residuals, u[None]]).astype(np.float32)
    for block, g in raw(total):
        *products, along = (flat @ g.T).astype(float)
        products = np.reshape(products, (len(designs), len(steps), BLOCK))
        squares = np.einsum("ij,ij->i", g, g).astype(float)
        past = np.arange(block * BLOCK, (block + 1) * BLOCK) >= k_max
        for j, d in enumerate(designs):
            shared, own = d.weights(block, squares, along)
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
        raise ValueError(f"{design.m} x {design.n} is too large to store; reduce() streams it instead")
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
