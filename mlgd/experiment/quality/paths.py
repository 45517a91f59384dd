"""Problems in time: a trajectory by finer steps, a path by more points, a curve by more nodes.

Where they come from: optimal control by single shooting, parameters of differential equations
from data, planning of paths, fits of decay curves. The price of a level is its steps. None is
convex.
"""

import math

import numpy as np

from .meshes import powers
from .problem import PRECISE, Problem


def pendulum(seed: int) -> Problem:
    """A pendulum swung up by twelve torques: single shooting.

    Level n takes n steps of the symplectic Euler method; the truth starts with half a kick,
    which makes it of second order, and takes 384. Gradients by the discrete adjoint.
    """
    rng = np.random.default_rng([11, seed])
    end, pieces = 4.0, 12
    wanted = rng.uniform(1.5, 3.0)
    levels = tuple(12 * 2**k for k in range(5))

    def shoot(n: int, q: np.ndarray, first: float):
        h = end / n
        torque = np.repeat(q, n // pieces).tolist()
        kicks = [first * h, *[h] * (n - 1)]
        angle, speed = 0.3, 0.0
        angles = []
        for push, kick in zip(torque, kicks, strict=True):
            angles.append(angle)
            speed += kick * (push - math.sin(angle))
            angle += h * speed
        off, fast = angle - wanted, speed
        value = 5 * off**2 + fast**2 / 2 + 0.02 * end / pieces * float(q @ q) / 2
        on_angle, on_speed = 10 * off, fast
        pushes = [0.0] * n
        for i in range(n - 1, -1, -1):
            on_speed += h * on_angle
            pushes[i] = kicks[i] * on_speed
            on_angle -= kicks[i] * on_speed * math.cos(angles[i])
        gradient = np.array(pushes).reshape(pieces, -1).sum(axis=1)
        return value, gradient + 0.02 * end / pieces * q

    def level(n, q, first=1.0):
        if not np.abs(q).max() < 1e6:
            return np.inf, q * np.nan
        return shoot(n, q, first)

    return Problem(
        name="pendulum",
        kind="time steps",
        convex=False,
        seed=seed,
        start=rng.normal(size=pieces) * 0.1,
        levels=levels,
        price=float,
        level=level,
        truth=lambda q: level(384, q, 0.5),
        limit="384 steps of the leapfrog method",
        shares=PRECISE,
    )


def predators(seed: int) -> Problem:
    """Six numbers of a predator-prey model from noisy counts: the Lotka-Volterra fit.

    In logarithms of both counts; level n takes n steps of the symplectic Euler method, and the
    truth 320 that start with half a step. Far from the data the counts overflow: inf.
    """
    rng = np.random.default_rng([12, seed])
    end, records = 6.0, 20
    true = np.log([1.2, 0.6, 0.5, 0.9, 2.0, 1.0]) + 0.1 * rng.normal(size=6)
    levels = tuple(20 * 2**k for k in range(5))

    def trajectory(n: int, rates: list[float], first: float):
        a, b, c, d = rates[:4]
        h = end / n
        prey, hunters = math.log(rates[4]), math.log(rates[5])
        visited = []
        for i in range(n):
            part = h * first if i == 0 else h
            eaten = math.exp(hunters)
            prey += part * (a - b * eaten)
            fed = math.exp(prey)
            hunters += h * (c * fed - d)
            visited.append((prey, hunters, part, eaten, fed))
        return visited

    def adjoint(n: int, rates: list[float], visited: list, sources: np.ndarray) -> np.ndarray:
        a, b, c, d = rates[:4]
        h = end / n
        on_prey = on_hunters = 0.0
        slope = [0.0, 0.0, 0.0, 0.0]
        for i in range(n - 1, -1, -1):
            *_, part, eaten, fed = visited[i]
            on_prey += sources[i, 0]
            on_hunters += sources[i, 1]
            slope[2] += h * fed * on_hunters
            slope[3] -= h * on_hunters
            on_prey += h * c * fed * on_hunters
            slope[0] += part * on_prey
            slope[1] -= part * eaten * on_prey
            on_hunters -= part * b * eaten * on_prey
        each = np.array([a, b, c, d]) * slope
        return np.append(each, [on_prey, on_hunters])

    def states(n, q, first):
        visited = trajectory(n, np.exp(q).tolist(), first)
        return visited, np.array([row[:2] for row in visited])

    clean = states(1280, true, 0.5)[1][63::64]
    data = clean + 0.1 * rng.normal(size=clean.shape)

    def level(n, q, first=1.0):
        try:
            visited, found = states(n, q, first)
        except (OverflowError, ValueError):
            return np.inf, q * np.nan
        each = n // records
        off = found[each - 1 :: each] - data
        value = (off**2).sum() / 2 + 0.01 * q @ q / 2
        if not np.isfinite(value):
            return np.inf, q * np.nan
        sources = np.zeros((n, 2))
        sources[each - 1 :: each] = off
        return value, adjoint(n, np.exp(q).tolist(), visited, sources) + 0.01 * q

    return Problem(
        name="predators",
        kind="time steps",
        convex=False,
        seed=seed,
        start=np.log([1.0, 1.0, 1.0, 1.0, 1.5, 1.5]),
        levels=levels,
        price=float,
        level=level,
        truth=lambda q: level(320, q, 0.5),
        limit="320 steps of the leapfrog method",
    )


def way(seed: int) -> Problem:
    """The quickest way across hills, a curve of eight sine modes: planning of a path.

    Level n is a way of n straight pieces. There are ways left and right of each hill: not
    convex, with many minima.
    """
    rng = np.random.default_rng([13, seed])
    hills = np.stack([rng.uniform(0.15, 0.85, 5), rng.uniform(-0.25, 0.25, 5)])
    modes = np.arange(1, 9)
    levels = powers(3, 8)
    waves = {n: np.sin(np.pi * np.outer(np.arange(n + 1) / n, modes)) for n in (*levels, 2048)}

    def level(n, q):
        x = np.linspace(0, 1, n + 1)
        height = waves[n] @ q
        middle = np.stack([(x[1:] + x[:-1]) / 2, (height[1:] + height[:-1]) / 2])
        apart = middle[:, :, None] - hills[:, None, :]
        slow = 3 * np.exp(-(apart**2).sum(axis=0) / (2 * 0.1**2))
        rise = np.diff(height) * n
        speed = 1 + slow.sum(axis=1)
        value = (speed * (1 + rise**2)).mean() / 2
        pull = -(slow * apart[1]).sum(axis=1) / 0.1**2 * (1 + rise**2) / (2 * n)
        steep = speed * rise
        on_height = np.zeros(n + 1)
        on_height[1:] += pull / 2 + steep
        on_height[:-1] += pull / 2 - steep
        return value, waves[n].T @ on_height

    return Problem(
        name="way across hills",
        kind="quadrature",
        convex=False,
        seed=seed,
        start=0.1 * rng.normal(size=8) / modes,
        levels=levels,
        price=float,
        level=level,
        truth=lambda q: level(2048, q),
        limit="2048 pieces",
        shares=PRECISE,
    )


def decays(seed: int) -> Problem:
    """A decay curve fitted by three exponentials: a long curved valley, as Rosenbrock's.

    The misfit is an integral over time, by the midpoint rule on n cells.
    """
    rng = np.random.default_rng([14, seed])
    levels = powers(3, 10)
    rates = np.array([0.5, 2.0, 8.0]) * np.exp(0.2 * rng.normal(size=3))
    shares = rng.uniform(0.5, 1.5, 3)

    def setting(n: int):
        t = 4 * (np.arange(n) + 0.5) / n
        curve = shares @ np.exp(-np.outer(rates, t))
        return t, curve + 0.02 * np.sin(9 * t)

    settings = {n: setting(n) for n in (*levels, 8192)}

    def level(n, q):
        t, curve = settings[n]
        size, speed = q[:3], np.exp(q[3:])
        each = np.exp(-np.outer(speed, t))
        off = size @ each - curve
        value = 2 * (off**2).mean() + 1e-5 * q @ q / 2
        on_size = each @ off
        on_speed = -size * speed * (each @ (off * t))
        return value, 4 / n * np.append(on_size, on_speed) + 1e-5 * q

    return Problem(
        name="decays",
        kind="quadrature",
        convex=False,
        seed=seed,
        start=np.append(np.ones(3), np.log([0.3, 1.0, 3.0])),
        levels=levels,
        price=float,
        level=level,
        truth=lambda q: level(8192, q),
        limit="8192 cells",
        shares=PRECISE,
    )


PROBLEMS = (pendulum, predators, way, decays)
