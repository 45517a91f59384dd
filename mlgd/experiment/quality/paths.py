"""Problems in time: a trajectory by finer steps, a path by more points, a curve by more nodes.

Where they come from: optimal control by single shooting, parameters of differential equations
from data, planning of paths, fits of decay curves. The price of a level is its steps. None is
convex.
"""

import math

import numpy as np

from .problem import PRECISE, Ladder, bell, middles, powers, problem, sines


@problem(
    "pendulum",
    "time steps",
    convex=False,
    truth="384 steps of the leapfrog method",
    shares=PRECISE,
)
def pendulum(rng: np.random.Generator) -> Ladder:
    """A pendulum swung up by twelve torques: single shooting.

    Level n takes n steps of the symplectic Euler method; the truth begins with half a kick,
    which makes it the leapfrog method, of second order. Gradients by the discrete adjoint.
    """
    end, pieces = 4.0, 12
    effort = 0.02 * end / pieces
    wanted = rng.uniform(1.5, 3.0)

    def swing(torque: list[float], kicks: list[float], h: float):
        """The angles at every step, the last one, and the last speed."""
        angle, speed = 0.3, 0.0
        angles = []
        for push, kick in zip(torque, kicks, strict=True):
            angles.append(angle)
            speed += kick * (push - math.sin(angle))
            angle += h * speed
        return angles, angle, speed

    def adjoint(angles: list[float], kicks: list[float], h: float, on_angle, on_speed):
        """The derivative with respect to the torque of every step."""
        pushes = []
        for angle, kick in zip(reversed(angles), reversed(kicks), strict=True):
            on_speed += h * on_angle
            pushes.append(kick * on_speed)
            on_angle -= kick * on_speed * math.cos(angle)
        return np.array(pushes[::-1])

    def level(n, q, first=1.0):
        if not np.abs(q).max() < 1e6:
            return np.inf, q * np.nan
        h = end / n
        kicks = [h] * n
        kicks[0] *= first
        torque = np.repeat(q, n // pieces).tolist()
        angles, angle, speed = swing(torque, kicks, h)
        off = angle - wanted
        value = 5 * off**2 + speed**2 / 2 + effort * q @ q / 2
        pushes = adjoint(angles, kicks, h, 10 * off, speed)
        return value, pushes.reshape(pieces, -1).sum(axis=1) + effort * q

    return Ladder(
        start=0.1 * rng.normal(size=pieces),
        sizes=tuple(pieces * 2**k for k in range(5)),
        level=level,
        limit=lambda q: level(384, q, first=0.5),
    )


@problem(
    "predators", "time steps", convex=False, truth="320 steps of the leapfrog method"
)
def predators(rng: np.random.Generator) -> Ladder:
    """Six numbers of a predator-prey model from noisy counts: the Lotka-Volterra fit.

    In logarithms of both counts; level n takes n steps of the symplectic Euler method, and the
    truth begins with half a step. Far from the data the counts overflow: inf.
    """
    end, records = 6.0, 20
    usual = np.log([1.2, 0.6, 0.5, 0.9, 2.0, 1.0])
    true = usual + 0.1 * rng.normal(size=6)

    def trajectory(n: int, q: np.ndarray, first: float) -> list[tuple[float, ...]]:
        """For every step: both logarithms after it, its length, and both rates in it."""
        a, b, c, d, prey, hunters = np.exp(q).tolist()
        prey, hunters = math.log(prey), math.log(hunters)
        h = end / n
        part = h * first
        rows = []
        for _ in range(n):
            eaten = b * math.exp(hunters)
            prey += part * (a - eaten)
            fed = c * math.exp(prey)
            hunters += h * (fed - d)
            rows.append((prey, hunters, part, eaten, fed))
            part = h
        return rows

    def adjoint(n: int, q: np.ndarray, rows: list, sources: np.ndarray) -> np.ndarray:
        """The derivative of a sum over both logarithms, `sources` its weights."""
        h = end / n
        on_prey = on_hunters = 0.0
        a, b, c, d = 0.0, 0.0, 0.0, 0.0  # derivatives by the logarithms of the rates
        growth, _, _, death = np.exp(q[:4]).tolist()
        for row, source in zip(reversed(rows), sources[::-1].tolist(), strict=True):
            *_, part, eaten, fed = row
            on_prey += source[0]
            on_hunters += source[1]
            c += h * fed * on_hunters
            d -= h * death * on_hunters
            on_prey += h * fed * on_hunters
            a += part * growth * on_prey
            b -= part * eaten * on_prey
            on_hunters -= part * eaten * on_prey
        return np.array([a, b, c, d, on_prey, on_hunters])

    clean = np.array(trajectory(1280, true, 0.5))[63::64, :2]
    data = clean + 0.1 * rng.normal(size=clean.shape)

    def level(n, q, first=1.0):
        each = n // records
        try:
            rows = trajectory(n, q, first)
        except (OverflowError, ValueError):  # of math.exp and math.log
            return np.inf, q * np.nan
        counts = np.array([row[:2] for row in rows[each - 1 :: each]])
        off = counts - data
        value = (off**2).sum() / 2 + 0.01 * q @ q / 2
        if not np.isfinite(value):
            return np.inf, q * np.nan
        sources = np.zeros((n, 2))
        sources[each - 1 :: each] = off
        return value, adjoint(n, q, rows, sources) + 0.01 * q

    return Ladder(
        start=np.log([1.0, 1.0, 1.0, 1.0, 1.5, 1.5]),
        sizes=tuple(records * 2**k for k in range(5)),
        level=level,
        limit=lambda q: level(320, q, first=0.5),
    )


@problem(
    "way across hills", "quadrature", convex=False, truth="2048 pieces", shares=PRECISE
)
def way(rng: np.random.Generator) -> Ladder:
    """The quickest way across hills, a curve of eight sine modes: planning of a path.

    Level n is a way of n straight pieces. There are ways left and right of each hill, and so
    there are many minima.
    """
    modes = np.arange(1, 9)
    hills = rng.uniform(0.15, 0.85, 5)
    aside = rng.uniform(-0.25, 0.25, 5)
    width = 0.1
    sizes, finer = powers(3, 8), 2048
    waves = {n: sines(np.arange(n + 1) / n, modes) for n in (*sizes, finer)}
    tall = {n: 3 * bell(middles(n)[:, None] - hills, width) for n in waves}

    def level(n, q):
        y = waves[n] @ q
        middle = (y[1:] + y[:-1]) / 2
        apart = middle[:, None] - aside
        hill = tall[n] * bell(apart, width)
        slow = 1 + hill.sum(axis=1)
        rise = n * np.diff(y)
        length = 1 + rise**2
        climb = -(hill * apart).sum(axis=1) / width**2
        on_middle = climb * length / (2 * n)
        on_rise = slow * rise
        on_y = np.zeros(n + 1)
        on_y[1:] += on_middle / 2 + on_rise
        on_y[:-1] += on_middle / 2 - on_rise
        return (slow * length).mean() / 2, waves[n].T @ on_y

    start = 0.1 * rng.normal(size=8) / modes
    return Ladder(start=start, sizes=sizes, level=level, finer=finer)


@problem("decays", "quadrature", convex=False, truth="8192 cells", shares=PRECISE)
def decays(rng: np.random.Generator) -> Ladder:
    """A decay curve fitted by three exponentials: a long curved valley, as Rosenbrock's.

    The misfit is an integral over time, by the midpoint rule on n cells.
    """
    end, ridge = 4.0, 1e-5
    rates = np.array([0.5, 2.0, 8.0])
    rates *= np.exp(0.2 * rng.normal(size=3))
    shares = rng.uniform(0.5, 1.5, 3)
    sizes, finer = powers(3, 10), 8192

    def curve(n: int) -> np.ndarray:
        t = end * middles(n)
        return shares @ np.exp(-np.outer(rates, t)) + 0.02 * np.sin(9 * t)

    curves = {n: curve(n) for n in (*sizes, finer)}

    def level(n, q):
        t = end * middles(n)
        size, speed = q[:3], np.exp(q[3:])
        each = np.exp(-np.outer(speed, t))
        off = size @ each - curves[n]
        on_size = each @ off
        on_speed = -size * speed * (each @ (off * t))
        value = end * (off**2).mean() / 2 + ridge * q @ q / 2
        return value, end / n * np.append(on_size, on_speed) + ridge * q

    start = np.append(np.ones(3), np.log([0.3, 1.0, 3.0]))
    return Ladder(start=start, sizes=sizes, level=level, finer=finer)


PROBLEMS = (pendulum, predators, way, decays)
