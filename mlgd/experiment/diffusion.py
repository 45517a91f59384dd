"""A nonlinear identification: where a substance decays while it diffuses, from sensors; its gradient by the adjoint.

u_t = u_xx - q u + f on the unit interval, zero at the ends and at the start; q is piecewise linear on 16 knots, the
unknowns. Seven sensors read u at eight times. Level k solves on 2^k cells with 2^k implicit steps: errors of first order
at a price of 4^k. The loss is half the squared misfit, with a small pull of the unknowns to zero.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from mlgd.hierarchy import Hierarchy

SIZE, SENSORS, TIMES = 16, 7, 8
LEVELS = range(4, 9)
TRUTH = 9  # the level that stands for the exact equation
PULL = 1e-3


@lru_cache
def _grid(k: int):
    """The second difference on 2^k cells, how unknowns enter its points, where sensors are, and the source."""
    n = 2**k
    x = np.arange(1, n) / n
    laplace = n**2 * (2 * np.eye(n - 1) - np.eye(n - 1, k=1) - np.eye(n - 1, k=-1))
    into = np.maximum(0, 1 - np.abs(x[:, None] - np.linspace(0, 1, SIZE)) * (SIZE - 1))
    sensors = np.round(np.arange(1, SENSORS + 1) / 8 * n).astype(int) - 1
    return laplace, into, sensors, 100 * np.sin(np.pi * x) + 200 * np.sin(3 * np.pi * x)


def solve(k: int, q: np.ndarray):
    """All states and the step matrix; time runs to 1/2."""
    laplace, into, _, source = _grid(k)
    n = 2**k
    step = np.linalg.inv(np.eye(n - 1) + (laplace + np.diag(into @ q)) / n / 2)
    states = np.zeros((n + 1, n - 1))
    for t in range(n):
        states[t + 1] = step @ (states[t] + source / n / 2)
    return states, step


def readings(k: int, states: np.ndarray) -> np.ndarray:
    every = 2**k // TIMES
    return states[every::every][:, _grid(k)[2]]


@dataclass(frozen=True)
class Identification:
    """One data set; loss and gradient of every level."""

    seed: int = 0

    @cached_property
    def data(self) -> np.ndarray:
        rng = np.random.default_rng(self.seed)
        found = readings(TRUTH, solve(TRUTH, rng.normal(size=SIZE))[0])
        return found + 0.01 * rng.normal(size=found.shape)

    def loss(self, q: np.ndarray, k: int = TRUTH) -> float:
        misfit = readings(k, solve(k, q)[0]) - self.data
        return float((misfit**2).sum() + PULL * q @ q) / 2

    def gradient(self, k: int, q: np.ndarray) -> np.ndarray:
        states, step = solve(k, q)
        _, into, sensors, _ = _grid(k)
        n = 2**k
        misfit = readings(k, states) - self.data
        dual, total = np.zeros(n - 1), np.zeros(n - 1)
        for t in range(n, 0, -1):
            if t % (n // TIMES) == 0:
                dual[sensors] += misfit[t // (n // TIMES) - 1]
            dual = step @ dual  # the step is symmetric
            total -= dual * states[t]
        return into.T @ total / n / 2 + PULL * q

    @cached_property
    def hierarchy(self) -> Hierarchy:
        return Hierarchy(self.gradient, lambda k: 4.0**k, LEVELS)
