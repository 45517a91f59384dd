"""How a vector spreads over the eigenvalues of a matrix that is only known by its products: Lanczos and Gauss.

For a symmetric H and a vector v, n products give nodes and weights with v^T f(H) v ~ sum of weights times f(nodes),
exact for polynomials f of degree 2n - 1. For f = 1/lambda and 1/lambda^2 the Gauss rule is too small, and the Gauss-Radau
rule with a node below all eigenvalues is too large (Golub and Meurant): together they are a bracket.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

FEW = 3.0  # times the noise of one entry: eigenvalues below that are not told from zero


@dataclass(frozen=True)
class Measure:
    """Nodes and weights of v^T f(H) v; `jacobi` holds the recurrence they come from.

    >>> m = Measure(np.array([0.5, 2.0]), np.array([1.0, 3.0]))
    >>> m.total, m.integral(lambda x: 1 / x)
    (4.0, 3.5)
    """

    nodes: np.ndarray
    weights: np.ndarray
    jacobi: tuple[np.ndarray, np.ndarray] | None = field(default=None, repr=False, compare=False)

    @property
    def total(self) -> float:
        """|v|^2."""
        return float(self.weights.sum())

    def integral(self, f: Callable[[np.ndarray], np.ndarray]) -> float:
        """v^T f(H) v, by the rule."""
        with np.errstate(
            divide="ignore", over="ignore"
        ):  # an integral of 1/lambda with a node at zero is infinite
            return float(self.weights @ f(self.nodes))

    @property
    def complete(self) -> bool:
        """Whether the rule is exact: the products span all that v ever reaches."""
        return self.jacobi is not None and bool(self.jacobi[1][-1] == 0)

    def above(self, least: float) -> "Measure":
        """Nodes below what can be resolved are moved up to it: their place is not known, their weight is."""
        return (
            self
            if self.nodes.min() > least
            else Measure(np.maximum(self.nodes, max(least, 1e-300)), self.weights)
        )

    def scaled(self, factor: float) -> "Measure":
        """The measure of sqrt(factor) v."""
        return Measure(self.nodes, factor * self.weights, self.jacobi)

    def radau(self, floor: float) -> "Measure":
        """The rule with one more node, at `floor`: integrals of 1/lambda from above if no eigenvalue is below it."""
        if self.jacobi is None or self.complete or not floor < self.nodes.min():
            return self  # the Gauss rule is already exact, or leaves no room
        diagonal, off = self.jacobi
        n = diagonal.size
        matrix = np.diag(np.append(diagonal, 0.0)) + np.diag(off, 1) + np.diag(off, -1)
        last = np.append(np.zeros(n - 1), off[-1] ** 2)
        matrix[n, n] = floor + np.linalg.solve(matrix[:n, :n] - floor * np.eye(n), last)[-1]
        nodes, vectors = np.linalg.eigh(matrix)
        nodes[0] = floor
        return Measure(nodes, self.total * vectors[0] ** 2)


@dataclass(frozen=True)
class Measures:
    """Spectral measures in the Hessian of one coarse level at y0: of the gradient, and of the increments by level.

    The starting distance is the square root of gradient.integral(1/lambda^2), the starting loss half the integral of
    1/lambda. `floor` is the lower end of mu.
    """

    gradient: Measure
    increments: dict[int, Measure]
    level: int
    floor: float

    def increment(self, k: int, norm: float) -> Measure:
        """The measure for an increment of level k and this norm: the shape is that of the nearest measured level."""
        if not self.increments:
            return self.gradient.scaled(norm**2 / self.gradient.total)
        shape = self.increments[min(self.increments, key=lambda j: (abs(j - k), -j))]
        return shape.scaled(norm**2 / shape.total)


@dataclass(frozen=True)
class Krylov:
    """What n products from one vector gave: the Gauss measure, the space they span, and how far they are from symmetric.

    `ritz` holds eigenvectors of the symmetric part of the products seen in the `basis`. `asymmetry` is what products are off by
    in that space, at most; `noise` is the mean square root of one entry: errors that jump from point to point move a single
    eigenvalue by no more than a few of these.
    """

    measure: Measure
    basis: np.ndarray
    ritz: np.ndarray
    norm: float
    asymmetry: float
    noise: float

    @property
    def least(self) -> tuple[float, float]:
        """The smallest Ritz value and its residual: some eigenvalue lies within that of it."""
        return float(self.measure.nodes[0]), float(
            self.measure.jacobi[1][-1] * abs(self.ritz[-1, 0])
        )

    def direction(self, i: int) -> np.ndarray:
        """The unit vector that belongs to the i-th node."""
        return self.basis.T @ self.ritz[:, i]

    def solve(self, curvature: np.ndarray) -> np.ndarray:
        """H^-1 v in the space spanned, with these eigenvalues in place of the nodes: conjugate gradients' answer."""
        return self.norm * self.basis.T @ (self.ritz @ (self.ritz[0] / curvature))


def lanczos(
    product: Callable[[np.ndarray], np.ndarray],
    v: np.ndarray,
    steps: int,
    tolerance: float = 0.0,
    least: int = 10,
) -> Krylov:
    """At most `steps` products from v, each new direction orthogonal to all before it (twice, against rounding).

    It ends early where the space is exhausted, or where the last fifth of the products moved the integral of 1/lambda,
    eigenvalues below the noise taken for as large as it, by less than `tolerance`, as a share of itself; not before `least` of them.

    >>> H = np.diag([1.0, 2.0, 4.0])
    >>> found = lanczos(lambda v: H @ v, np.ones(3), steps=9)
    >>> found.measure.nodes.round(9), found.measure.weights.round(9), found.measure.complete
    (array([1., 2., 4.]), array([1., 1., 1.]), True)
    """
    norm = float(np.linalg.norm(v))
    steps = min(steps, v.size)
    basis, seen, off = np.empty((steps, v.size)), np.zeros((steps + 1, steps)), np.zeros(steps)
    basis[0] = v / norm
    before, look = math.inf, least
    for n in range(1, steps + 1):
        w = product(basis[n - 1])
        seen[:n, n - 1] = basis[:n] @ w
        for _ in range(2):
            w = w - basis[:n].T @ (basis[:n] @ w)
        size = float(np.linalg.norm(w))
        if n == v.size or size <= 1e-12 * np.abs(np.diag(seen)[:n]).max():
            break  # exhausted: the last off-diagonal entry stays 0
        off[n - 1] = seen[n, n - 1] = size
        if n >= look:
            nodes, vectors, _, noise = _symmetric(seen[:n, :n])
            now = float(
                vectors[0] ** 2 @ (1 / np.maximum(nodes, max(FEW * noise, -nodes[0], 1e-300)))
            )
            if abs(now - before) <= tolerance * now:
                break
            before, look = now, math.ceil(1.2 * n)
        if n < steps:
            basis[n] = w / size
    nodes, vectors, asymmetry, noise = _symmetric(seen[:n, :n])
    measure = Measure(nodes, norm**2 * vectors[0] ** 2, (np.diag(seen)[:n].copy(), off[:n]))
    return Krylov(measure, basis[:n], vectors, norm, asymmetry, noise)


def _symmetric(seen: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Eigenvalues and vectors of the symmetric part; the size of the rest, and the mean square root of an error per entry."""
    n, rest = len(seen), (seen - seen.T) / 2
    nodes, vectors = np.linalg.eigh((seen + seen.T) / 2)
    noise = float(np.linalg.norm(rest)) * math.sqrt(2 / max(2, n * (n - 1)))
    return nodes, vectors, float(np.linalg.norm(rest, 2)), noise
