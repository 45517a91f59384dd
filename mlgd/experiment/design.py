"""The design of the experiment, drawn column by column from named streams; and the protocol.

The paper's section 4.2.1 and its appendix E.1. A column is the normalised mix of one direction that
all columns share and one of its own, rescaled to norm i^(-1/phi). A seed is a set of streams, each
with a name, so that any block of columns can be drawn anywhere, in any order, with the same
numbers.

The bit generator is PCG64, the one behind `numpy.random.default_rng`: it is what a reader gets who
chooses nothing. That choice was made before any seed was run with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

BLOCK = 512  # columns that share a random stream
FEW = 2**15  # pairs of normals made at once
# named before any of them was run, and reported whatever they say
SEEDS = tuple(range(100, 120))
SHARED, OWN, TARGET, TELESCOPE = range(4)  # names of the random streams of one seed


def stream(seed: int, *name: int) -> np.random.Generator:
    """The random stream of that name: the same numbers in every process, in every order."""
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence(seed, spawn_key=name))
    )


def box_muller(rng: np.random.Generator, out: np.ndarray) -> None:
    """Standard normals in pairs by Box and Muller.

    A third of numpy's time; the last digit depends on the processor, as numpy's does not.
    """
    half = out.shape[1] // 2
    rows = max(1, FEW // half)  # with more at once, memory is handed back at every call
    radius, angle = np.empty((2, rows, half), np.float32)
    for start in range(0, len(out), rows):
        part = out[start : start + rows]
        r, a, cosine, sine = (
            radius[: len(part)],
            angle[: len(part)],
            part[:, :half],
            part[:, half:],
        )
        bits = rng.bit_generator.random_raw(r.size).view(np.uint32).reshape(len(part), -1)
        r[:], a[:] = bits[:, :half], bits[:, half:]
        r *= np.float32(2.0**-32)
        r += np.float32(2.0**-33)  # never 0
        np.log(r, out=r)
        r *= np.float32(-2)
        np.sqrt(r, out=r)
        a *= np.float32(2 * np.pi * 2.0**-32)
        np.cos(a, out=cosine)
        np.sin(a, out=sine)
        cosine *= r
        sine *= r


@dataclass(frozen=True)
class Design:
    """The m x n design of one seed (the paper's section 4.2.1): its columns, X* and b = A X*."""

    m: int = 2048
    n: int = 131072
    phi: float = 1.2
    rho: float = 0.6
    seed: int = 0
    pairs: bool = (
        False  # normals by Box and Muller, where drawing the design is all of the work
    )

    def __post_init__(self) -> None:
        if not (self.m >= 2 and self.n >= 1):
            raise ValueError(
                f"a design needs m >= 2 rows and n >= 1 columns; got m={self.m}, n={self.n}"
            )
        if self.pairs and self.m % 2:
            raise ValueError(f"normals drawn in pairs need an even m; got m={self.m}")
        if not 0 < self.phi < 2:
            raise ValueError(
                f"phi={self.phi} is outside (0, 2): "
                "the column norms i^(-1/phi) are square summable only for phi < 2"
            )
        if not 0 <= self.rho < 1:
            raise ValueError(
                f"rho={self.rho} is outside [0, 1): rho = 1 would make all columns parallel"
            )
        if self.seed < 0 or self.seed != int(self.seed):
            raise ValueError(f"seed={self.seed} must be a non-negative integer")

    @property
    def gamma(self) -> float:
        """The closed-form rate 2 phi / (2 - phi) of the hierarchy of truncations."""
        return 2 * self.phi / (2 - self.phi)

    @property
    def blocks(self) -> int:
        return -(-self.n // BLOCK)

    def norms(self, first: int, last: int) -> np.ndarray:
        """The norms i^(-1/phi) of columns first + 1 to last; 0 past column n."""
        i = np.arange(first + 1, last + 1)
        return np.where(i <= self.n, i ** (-1 / self.phi), 0.0)

    @cached_property
    def shared(self) -> np.ndarray:
        """The direction u that every column contains."""
        u = stream(self.seed, SHARED).standard_normal(self.m)
        return u / np.linalg.norm(u)

    def target(self, block: int) -> np.ndarray:
        """The block's coordinates of X*: standard normal, with no decay."""
        return stream(self.seed, TARGET, block).standard_normal(BLOCK)

    def targets(self) -> np.ndarray:
        """X* whole."""
        return np.concatenate([self.target(block) for block in range(self.blocks)])[
            : self.n
        ]

    def gaussians(self, block: int, out: np.ndarray | None = None) -> np.ndarray:
        """The raw Gaussian vectors of one block, a row for each column of the design (float32)."""
        out = np.empty((BLOCK, self.m), np.float32) if out is None else out
        self.fill(stream(self.seed, OWN, block), out)
        return out

    def fill(self, rng: np.random.Generator, out: np.ndarray) -> None:
        box_muller(rng, out) if self.pairs else rng.standard_normal(
            dtype=np.float32, out=out
        )

    def weights(self, first: int, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights of u and of the raw Gaussian vectors g (rows) in the columns after `first`."""
        own = np.sqrt(1 - self.rho**2)
        direction = 1 / np.sqrt(np.einsum("ij,ij->i", g, g).astype(float))
        along = (g @ self.shared.astype(g.dtype)).astype(float)
        mixed = np.sqrt(1 + 2 * self.rho * own * along * direction)
        scale = self.norms(first, first + len(g)) / mixed
        return self.rho * scale, own * scale * direction

    def pieces(
        self, block: int, kind: type, size: int = 2**18
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """One block in pieces that fit a processor's cache.

        Each is (first column, its raw vectors, weights of u, weights of them).
        """
        rng = stream(self.seed, OWN, block)
        rows = max(1, min(BLOCK, size // self.m))
        single = np.empty((rows, self.m), np.float32)
        for start in range(0, BLOCK, rows):
            raw = single[: min(rows, BLOCK - start)]
            self.fill(rng, raw)
            g, first = raw.astype(kind, copy=False), block * BLOCK + start
            yield first, g, *self.weights(first, g)

    def columns(self, k: int) -> np.ndarray:
        """The first k columns, as an m x k matrix."""
        if not 1 <= k <= self.n:
            raise ValueError(f"the design has columns 1 to {self.n}; {k} were asked for")
        u = self.shared
        parts = [
            shared[:, None] * u + own[:, None] * g
            for block in range(-(-k // BLOCK))
            for _, g, shared, own in self.pieces(block, float)
        ]
        return np.concatenate(parts)[:k].T


@dataclass(frozen=True)
class Protocol:
    """Every choice of the experiment; the defaults are the paper's (E.1.1, E.3.1), seeds aside."""

    m: int = 2048
    n: int = 131072
    phi: float = 1.2
    rho: float = 0.6
    ladder: tuple[int, ...] = (1, 8, 64, 512)
    seeds: tuple[int, ...] = SEEDS
    # the constant C of the probabilities
    scales: tuple[float, ...] = (
        1,
        2,
        4,
        8,
        16,
        32,
    )
    shrinks: tuple[float, ...] = (1.0, 0.5)  # steps eta and eta/2, with eta = 1/(4 beta)
    # shares of L0
    targets: tuple[float, ...] = tuple(np.logspace(-0.3, -2.0, 20).tolist())
    max_steps: int = 250_000
    max_flops: float = 8e9  # of one telescope run; the fixed level has no limit

    def __post_init__(self) -> None:
        for name in ("ladder", "seeds", "scales", "shrinks", "targets"):
            # a range or a list will do
            object.__setattr__(self, name, tuple(getattr(self, name)))
        Design(self.m, self.n, self.phi, self.rho)  # refuses bad sizes
        ratios = {b / a for a, b in pairwise(self.ladder) if a > 0}
        if len(ratios) != 1 or min(self.ladder) <= 0 or min(ratios) <= 1:
            raise ValueError(
                f"the ladder {self.ladder} is not geometric, of at least two levels"
            )
        if self.k_max > min(self.m, self.n):
            raise ValueError(
                f"k_max={self.k_max} exceeds m={self.m} or n={self.n}: "
                "past m columns a level fits b exactly and has no floor, "
                "and the design must be longer than its levels"
            )
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise ValueError(f"give at least one seed, each once; got {self.seeds}")
        if not self.scales or min(self.scales) < 1:
            raise ValueError(
                "every C must be at least 1, or the coarsest level is not always drawn; "
                f"got {self.scales}"
            )
        if not self.shrinks or not all(0 < s <= 1 for s in self.shrinks):
            raise ValueError(
                f"steps are fractions in (0, 1] of 1/(4 beta); got {self.shrinks}"
            )
        falling = all(1 > a > b > 0 for a, b in pairwise(self.targets))
        if not falling or len(self.targets) < 2:
            raise ValueError(
                "targets are at least two shares of L0 in (0, 1), tightening"
            )
        if min(self.max_steps, self.max_flops) < 1:
            raise ValueError("max_steps and max_flops must be at least 1")

    @property
    def k_max(self) -> int:
        return self.ladder[-1]

    @property
    def gamma(self) -> float:
        return 2 * self.phi / (2 - self.phi)

    @property
    def baseline(self) -> tuple[int, ...]:
        """The fixed level's own ladder, of ratio 2."""
        return tuple(2**i for i in range(self.k_max.bit_length()))

    @property
    def losses(self) -> np.ndarray:
        return np.array(self.targets)

    def design(self, seed: int) -> Design:
        return Design(self.m, self.n, self.phi, self.rho, seed)
