"""A real hierarchy: recovering a heat source from sensors, the gradient by adjoint of an implicit Euler solver.

The unknown is a 4 x 4 grid of source strengths; the state solves u_t = Laplace(u) + source on the unit square, zero on the
boundary and at time 0; sensors read it at two times. Level k solves on 2^k intervals a side with 2^k time steps:
first order in time, second in space, at a price of 8^k. Everything is numpy; the sine basis diagonalises the solver.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mlgd.hierarchy import Hierarchy

SOURCES = np.array([0.2, 0.4, 0.6, 0.8])  # centres of the bumps, along each axis
WIDTH = 0.12
SENSORS = np.arange(1, 8) / 8  # on the grid of every level from 3 on
FLOPS = 7  # additions and multiplications a grid point and time step, forward and adjoint together


class Solver:
    """The discrete forward map q -> (sensor readings at T/2 and T) on 2^k intervals and steps, and its adjoint."""

    def __init__(self, k: int, end: float):
        if k < 3:
            raise ValueError(f"the sensors lie on grids of level 3 and finer; got level {k}")
        n = 2**k
        x = np.arange(1, n) / n
        sine = np.sqrt(2 / n) * np.sin(np.pi * np.outer(np.arange(1, n), x))
        eigenvalue = 4 * n**2 * np.sin(np.pi * np.arange(1, n) / (2 * n)) ** 2
        self.steps, self.dt = n, end / n
        self.shrink = 1 / (1 + self.dt * (eigenvalue[:, None] + eigenvalue[None, :]))
        bump = np.exp(-((SOURCES[:, None] - x[None, :]) ** 2) / (2 * WIDTH**2))
        self.source = bump @ sine.T  # the bumps in the sine basis
        self.sensor = sine[
            :, np.round(SENSORS * n).astype(int) - 1
        ].T  # reads sine coefficients at the sensors

    def forward(self, q: np.ndarray) -> np.ndarray:
        source = self.dt * (self.source.T @ q.reshape(4, 4) @ self.source)
        u = np.zeros_like(source)
        readings = []
        for step in range(1, self.steps + 1):
            u += source
            u *= self.shrink
            if step in (self.steps // 2, self.steps):
                readings.append(self.sensor @ u @ self.sensor.T)
        return np.array(readings).ravel()

    def adjoint(self, r: np.ndarray) -> np.ndarray:
        late = r.reshape(2, 7, 7)
        p = np.zeros_like(self.shrink)
        total = np.zeros_like(p)
        for step in range(self.steps, 0, -1):
            if step in (self.steps // 2, self.steps):
                p += self.sensor.T @ late[0 if step == self.steps // 2 else 1] @ self.sensor
            p *= self.shrink
            total += p
        return self.dt * (self.source @ total @ self.source.T).ravel()


def exact_map(end: float, modes: int = 512) -> np.ndarray:
    """The forward map without time discretisation, on a fine sine basis: the truth the levels approximate."""
    x = (np.arange(4 * modes) + 0.5) / (4 * modes)
    index = np.arange(1, modes + 1)
    bump = np.exp(-((SOURCES[:, None] - x[None, :]) ** 2) / (2 * WIDTH**2))
    source = (
        2 * bump @ np.sin(np.pi * np.outer(x, index)) / x.size
    )  # Fourier sine coefficients of the bumps
    sensor = np.sin(np.pi * np.outer(SENSORS, index))
    eigenvalue = np.pi**2 * (index[:, None] ** 2 + index[None, :] ** 2)
    columns = []
    for i in range(4):
        for j in range(4):
            field = np.outer(source[i], source[j])
            readings = [
                sensor @ (field * -np.expm1(-eigenvalue * t) / eigenvalue) @ sensor.T
                for t in (end / 2, end)
            ]
            columns.append(np.array(readings).ravel())
    return np.array(columns).T


@dataclass(frozen=True)
class HeatSource:
    """The regularised least-squares problem: loss(q) = |F q - data|^2 / 2 + alpha |q|^2 / 2, F never available exactly."""

    levels: tuple[int, ...] = (3, 4, 5, 6, 7, 8)
    end: float = 0.1
    alpha: float = 2e-5
    noise: float = 1e-3
    seed: int = 0

    @cached_property
    def truth(self) -> np.ndarray:
        """The source to be found: two hot spots of different strength."""
        q = np.zeros((4, 4))
        q[1, 1], q[1, 2], q[2, 3] = 1.0, 0.6, 0.8
        return q.ravel()

    @cached_property
    def map(self) -> np.ndarray:
        return exact_map(self.end)

    @cached_property
    def data(self) -> np.ndarray:
        clean = self.map @ self.truth
        scale = self.noise * np.abs(clean).max()
        return clean + scale * np.random.default_rng(self.seed).standard_normal(clean.size)

    @cached_property
    def solvers(self) -> dict[int, Solver]:
        return {k: Solver(k, self.end) for k in self.levels}

    @cached_property
    def hessian(self) -> np.ndarray:
        return self.map.T @ self.map + self.alpha * np.eye(16)

    @cached_property
    def minimizer(self) -> np.ndarray:
        return np.linalg.solve(self.hessian, self.map.T @ self.data)

    def loss_gap(self, q: np.ndarray) -> float:
        """The loss above its minimum, with the exact map: for judging a run, never used by one."""
        e = q - self.minimizer
        return float(e @ self.hessian @ e) / 2

    def gradient(self, q: np.ndarray) -> np.ndarray:
        """The exact gradient, the reference of an audit."""
        return self.map.T @ (self.map @ q - self.data) + self.alpha * q

    def evaluate(self, k: int, q: np.ndarray) -> np.ndarray:
        """The gradient of level k: one forward and one adjoint solve."""
        solver = self.solvers[k]
        return solver.adjoint(solver.forward(q) - self.data) + self.alpha * q

    def hierarchy(self, accuracy=None) -> Hierarchy:
        """The levels with their price in flops."""
        return Hierarchy(self.evaluate, lambda k: FLOPS * 8.0**k, self.levels, accuracy)
