"""Ready-made hierarchies: the worst case of the proofs, and the book's running example.

`biased` is what the paper's Assumption 1 allows at its worst: every level is as wrong as it may be.
`HeatSource` is an inverse problem with a partial differential equation; every chapter runs on it.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from .hierarchy import Hierarchy, dyadic, function, positive
from .plans import Problem, price


def biased(
    gradient: Callable,
    gamma: float,
    c: float,
    levels: Sequence[int],
    alternate: bool = False,
) -> Hierarchy:
    """The worst case of the paper's Assumption 1: level k is off by 2^-k along the diagonal.

    With `alternate` the sign flips from level to level: increments reach their bound 3 * 2^-k too.

    >>> h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 4))
    >>> h.evaluate(1, np.zeros(1)), h.evaluate(3, np.zeros(1))
    (array([0.5]), array([0.125]))
    """
    function("gradient(y), exact", gradient)
    gamma = positive("gamma", gamma)
    c = positive("c", c)
    evaluate = partial(_off_diagonal, gradient, alternate)
    cost = partial(price, gamma, c)
    return Hierarchy(evaluate, cost, levels, accuracy=dyadic)


def _off_diagonal(gradient: Callable, alternate: bool, k: int, y: np.ndarray):
    """The gradient, off by 2^-k; a function of the module, so that hierarchies can be pickled."""
    exact = gradient(y)
    sign = 1.0
    if alternate and k % 2:
        sign = -1.0
    return exact + sign * 2.0**-k / np.sqrt(np.size(exact))


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
    TRUTH = (1, 1, 1.0), (1, 2, 0.6), (2, 3, 0.8)  # row, column, strength
    NOISE = 1e-3  # of the readings, relative to the largest
    SENSORS = np.arange(1, 8) / 8  # on the grid of every level from 3 on
    END = 0.1  # of the time interval; the sensors read at half of it and at its end
    ALPHA = 2e-5  # of the regularization
    MODES = 400  # sine modes along each axis; beyond them the bumps hold nothing

    def __init__(self, levels: Sequence[int] = range(3, 14)):
        if min(levels) < 3:
            needed = "sensors lie on the grids of levels 3 and finer"
            raise ValueError(f"{needed}; got {min(levels)}")
        forward = self._map(None)
        self.data = self._readings(forward)
        self.start = np.zeros(16)
        self.hessian, self.offset = self._normal(forward)
        self.minimizer = np.linalg.solve(self.hessian, self.offset)
        spectrum = np.linalg.eigvalsh(self.hessian).tolist()
        self.mu = spectrum[0]
        self.beta = spectrum[-1]
        distance = np.linalg.norm(self.minimizer - self.start)
        self.d0 = float(distance)
        self.eps = 0.01 * self.loss(self.start)  # the target of every chapter

        self._tables = {}
        self.errors = {}
        for k in levels:
            hessian, offset = self._normal(self._map(k))
            self._tables[k] = hessian, offset
            self.errors[k] = self._error(hessian, offset)
        prices = [7 * 8.0**k for k in levels]
        accuracy = self.errors.__getitem__
        self.hierarchy = Hierarchy(self._evaluate, prices, levels, accuracy)

    @property
    def problem(self) -> Problem:
        """What a plan needs; c from the level whose price lies highest above the law of prices."""
        prefactors = []  # price = (c/error)^gamma, gamma = 3
        for k, error in self.errors.items():
            prefactors.append(error * self.hierarchy.cost(k) ** (1 / 3))
        c = max(prefactors)
        return Problem(beta=self.beta, mu=self.mu, d0=self.d0, gamma=3.0, c=c)

    def gradient(self, q: np.ndarray) -> np.ndarray:
        """Without discretization: what an audit may be given as its reference."""
        return self.hessian @ q - self.offset

    def loss(self, q: np.ndarray) -> float:
        """The loss above its minimum, without discretization: it judges runs."""
        away = q - self.minimizer
        return float(away @ self.hessian @ away) / 2

    def _evaluate(self, k: int, q: np.ndarray) -> np.ndarray:
        """The gradient at level k, from its table."""
        hessian, offset = self._tables[k]
        return hessian @ q - offset

    def _readings(self, forward: np.ndarray) -> np.ndarray:
        """What the sensors read of the true sources, and noise of a fixed seed."""
        truth = np.zeros((4, 4))
        for row, column, strength in self.TRUTH:
            truth[row, column] = strength
        clean = forward @ truth.ravel()
        noise = np.random.default_rng(0).standard_normal(clean.size)
        largest = np.abs(clean).max()
        return clean + self.NOISE * largest * noise

    def _normal(self, forward: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The normal equations: a level's gradient is the matrix times q, minus the vector."""
        hessian = forward.T @ forward + self.ALPHA * np.eye(16)
        return hessian, forward.T @ self.data

    def _error(self, hessian: np.ndarray, offset: np.ndarray) -> float:
        """The largest error of a level within 2 d0 of the minimizer: it is affine in q."""
        bent = hessian - self.hessian
        there = bent @ self.minimizer - (offset - self.offset)
        change = np.linalg.norm(bent, 2)
        return float(np.linalg.norm(there) + 2 * self.d0 * change)

    def _map(self, k: int | None) -> np.ndarray:
        """From strengths to readings, by the sine modes; k = None: without discretization."""
        n = 4 * self.MODES if k is None else 2**k  # intervals a side
        highest = min(n - 1, self.MODES)
        mode = np.arange(1, highest + 1)
        line = self._bumps(n, mode)
        sources = np.einsum("ai,bj->abij", line, line)
        sources = sources.reshape(16, mode.size, mode.size)
        sensor = np.sin(np.pi * np.outer(self.SENSORS, mode))
        readings = []
        for excited in self._excited(k, n, mode):
            field = sources * excited
            read = sensor @ field @ sensor.T
            readings.append(read.reshape(16, -1).T)
        return np.concatenate(readings)

    def _bumps(self, n: int, mode: np.ndarray) -> np.ndarray:
        """The sine coefficients of the bumps along one axis, from n intervals."""
        x = np.arange(1, n) / n
        away = self.CENTRES[:, None] - x
        bumps = np.exp(-(away**2) / (2 * self.WIDTH**2))
        sines = np.sin(np.pi * np.outer(x, mode))
        return 2 / n * bumps @ sines

    def _excited(self, k: int | None, n: int, mode: np.ndarray) -> Iterator[np.ndarray]:
        """How far a source drives each pair of modes, at half of the time and at the end.

        Minus the Laplacian has the eigenvalue `rate`; a source that is constant in time drives the
        mode to (1 - left)/rate, where `left` is what a temperature would have kept of itself.
        """
        if k is None:
            line = (np.pi * mode) ** 2
        else:  # second differences
            angle = np.pi * mode / (2 * n)
            line = 4 * n**2 * np.sin(angle) ** 2
        rate = line[:, None] + line
        for halves in (1, 2):
            if k is None:
                left = np.exp(-rate * self.END * (halves / 2))
            else:  # implicit Euler: n steps to the end
                growth = 1 + rate * self.END / n
                left = growth ** -float(halves * n // 2)
            yield (1 - left) / rate
