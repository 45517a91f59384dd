"""Ready-made hierarchies: the worst case of the proofs, and the heat source of the whole book."""

from collections.abc import Callable, Sequence

import numpy as np

from .hierarchy import Hierarchy, dyadic, function, positive
from .plans import Problem


def biased(
    gradient: Callable, gamma: float, c: float, levels: Sequence[int], alternate: bool = False
) -> Hierarchy:
    """The worst case of the paper's Assumption 1: level k is off by 2^-k along the diagonal.

    With `alternate` the sign flips from level to level: increments reach their bound 3 * 2^-k too.

    >>> h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 4))
    >>> h.evaluate(1, np.zeros(1)), h.evaluate(3, np.zeros(1))
    (array([0.5]), array([0.125]))
    """
    function("gradient(y), exact", gradient)
    gamma, c = positive("gamma", gamma), positive("c", c)

    def evaluate(k, y):
        g, sign = gradient(y), -1.0 if alternate and k % 2 else 1.0
        return g + sign * 2.0**-k / np.sqrt(np.size(g))

    return Hierarchy(evaluate, lambda k: (c * 2.0**k) ** gamma, levels, dyadic)


class HeatSource:
    """The book's running example: sixteen heat sources found from sensor readings.

    u_t = Laplace(u) + source on the unit square, zero on the boundary and at time 0; q holds the
    strengths of a 4 x 4 grid of bumps; 7 x 7 sensors read u at two times. Level k is implicit Euler
    on 2^k intervals a side and 2^k time steps, solved forwards and backwards: 7 operations per grid
    point and step, a price of 7 * 8^k. A level is affine in q, and the sine basis gives its map in
    closed form: it is tabulated once and charged in full.

    loss(q) = |F q - data|^2 / 2 + alpha |q|^2 / 2 above its minimum, F without discretization.

    >>> heat = HeatSource(range(3, 6))
    >>> round(heat.beta / heat.mu), round(heat.d0, 6), heat.hierarchy.cost(3)
    (1256, 1.184461, 3584.0)
    """

    CENTRES = np.array([0.2, 0.4, 0.6, 0.8])  # of the bumps, along each axis
    WIDTH = 0.12
    SENSORS = np.arange(1, 8) / 8  # on the grid of every level from 3 on
    END = 0.1  # of the time interval; the sensors read at half of it and at its end
    ALPHA = 2e-5  # of the regularization
    MODES = 400  # sine modes along each axis; beyond them bumps of this width hold nothing

    def __init__(self, levels: Sequence[int] = range(3, 14)):
        if min(levels) < 3:
            raise ValueError(f"sensors lie on the grids of levels 3 and finer; got {min(levels)}")
        exact, truth = self._map(None), np.zeros((4, 4))
        truth[1, 1], truth[1, 2], truth[2, 3] = 1.0, 0.6, 0.8
        clean = exact @ truth.ravel()
        noise = np.random.default_rng(0).standard_normal(clean.size)
        self.data = clean + 1e-3 * np.abs(clean).max() * noise
        self.start = np.zeros(16)
        self.hessian, self.offset = self._normal(exact)
        self.minimizer = np.linalg.solve(self.hessian, self.offset)
        self.mu, self.beta = np.linalg.eigvalsh(self.hessian)[[0, -1]].tolist()
        self.d0 = float(np.linalg.norm(self.minimizer - self.start))
        tables = {k: self._normal(self._map(k)) for k in levels}
        self.errors = {k: self._error(*table) for k, table in tables.items()}
        self.eps = 0.01 * self.loss(self.start)  # the target of every chapter
        evaluate = lambda k, q: tables[k][0] @ q - tables[k][1]  # noqa: E731
        prices = [7 * 8.0**k for k in levels]
        self.hierarchy = Hierarchy(evaluate, prices, levels, self.errors.__getitem__)

    @property
    def problem(self):
        """What a plan needs; c from the level whose price lies highest above the law of prices."""
        c = max(e * self.hierarchy.cost(k) ** (1 / 3) for k, e in self.errors.items())
        return Problem(beta=self.beta, mu=self.mu, d0=self.d0, gamma=3.0, c=c)

    def gradient(self, q: np.ndarray) -> np.ndarray:
        """Without discretization: what an audit may be given as its reference."""
        return self.hessian @ q - self.offset

    def loss(self, q: np.ndarray) -> float:
        """The loss above its minimum, without discretization: it judges runs."""
        e = q - self.minimizer
        return float(e @ self.hessian @ e) / 2

    def _normal(self, forward: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A level's gradient is its first matrix times q, minus its second."""
        return forward.T @ forward + self.ALPHA * np.eye(16), forward.T @ self.data

    def _error(self, hessian: np.ndarray, offset: np.ndarray) -> float:
        """The largest error of a level within 2 d0 of the minimizer."""
        there = (hessian - self.hessian) @ self.minimizer - (offset - self.offset)
        change = np.linalg.norm(hessian - self.hessian, 2)
        return float(np.linalg.norm(there) + 2 * self.d0 * change)

    def _map(self, k: int | None) -> np.ndarray:
        """From strengths to readings, by the sine modes; k = None: without discretization."""
        n = 4 * self.MODES if k is None else 2**k
        j = np.arange(1, min(n - 1, self.MODES) + 1)
        x = np.arange(1, n) / n
        bumps = np.exp(-((self.CENTRES[:, None] - x) ** 2) / (2 * self.WIDTH**2))
        bumps = 2 / n * bumps @ np.sin(np.pi * np.outer(x, j))
        line = (np.pi * j) ** 2 if k is None else 4 * n**2 * np.sin(np.pi * j / (2 * n)) ** 2
        rate, sensor = line[:, None] + line, np.sin(np.pi * np.outer(self.SENSORS, j))
        if k is None:
            left = [np.exp(-rate * self.END * part) for part in (0.5, 1.0)]
        else:
            left = [(1 + rate * self.END / n) ** -float(m) for m in (n // 2, n)]
        fields = np.einsum("ai,bj->abij", bumps, bumps).reshape(16, j.size, j.size)
        reached = [sensor @ (fields * ((1 - decayed) / rate)) @ sensor.T for decayed in left]
        return np.concatenate([readings.reshape(16, -1).T for readings in reached])
