"""Problems whose levels are meshes: a state solved for, or an integral taken, on finer cells.

Where they come from: optimal control and parameter identification with elliptic equations,
inverse heat conduction, variational problems by Ritz's method. The price of a level is its
number of unknowns, or its time steps.
"""

import numpy as np
from scipy.fft import dstn
from scipy.linalg import solve_banded, solveh_banded

from .problem import (
    PRECISE,
    Ladder,
    bell,
    inside,
    middles,
    powers,
    problem,
    sines,
    softplus,
)


def area(n: int) -> float:
    """The price of n x n cells."""
    return float(n) ** 2


def stiffness(conducts: np.ndarray) -> np.ndarray:
    """Linear finite elements for -(a u')' on (0, 1), zero at both ends, as an upper band."""
    n = conducts.size
    band = np.zeros((2, n - 1))
    band[0, 1:] = -n * conducts[1:-1]
    band[1] = n * (conducts[:-1] + conducts[1:])
    return band


@problem("bar control", "mesh", convex=True, truth="8192 cells", shares=PRECISE)
def bar_control(rng: np.random.Generator) -> Ladder:
    """Twenty heaters along a bar of varying conductivity, to bring it near a given temperature.

    Linear finite elements on n cells, lumped; a quadratic tracking loss with a small ridge.
    """
    phase, wave = rng.uniform(0, 6, 2)
    modes = np.arange(1, 21)
    sizes, finer = powers(3, 10), 8192

    def table(n: int) -> tuple[np.ndarray, np.ndarray, float]:
        x = inside(n)
        band = stiffness(1 + 0.9 * np.sin(7 * middles(n) + phase))
        growth = np.exp(x)
        heaters = sines(x, modes) * growth[:, None]
        state = solveh_banded(band, heaters / n)
        hump = x * (1 - x) * (1 + np.cos(5 * x + wave))
        wanted = hump + 0.05 * (x > 0.4)
        hessian = state.T @ state / n
        hessian += 1e-7 * np.eye(modes.size)
        offset = state.T @ wanted / n
        return hessian, offset, wanted @ wanted / (2 * n)

    tables = {n: table(n) for n in (*sizes, finer)}

    def level(n, q):
        hessian, offset, constant = tables[n]
        image = hessian @ q
        value = q @ image / 2 - offset @ q + constant
        return value, image - offset

    return Ladder(start=np.zeros(modes.size), sizes=sizes, level=level, finer=finer)


@problem("membrane", "mesh", convex=True, truth="128 x 128 cells", shares=PRECISE)
def membrane(rng: np.random.Generator) -> Ladder:
    """Twenty-five loads on a square membrane, which is to take a shape and stay below a lid.

    Five-point differences on n x n cells, inverted by sine transforms; the lid is a penalty.
    """
    peak = rng.uniform(0.2, 0.8, 2)
    centres = np.linspace(0.1, 0.9, 5)
    lid, stiff, ridge = 0.06, 20.0, 1e-5
    sizes, finer = powers(2, 6), 128

    def table(n: int) -> tuple[np.ndarray, np.ndarray]:
        x = inside(n)
        rates = 4 * n**2 * np.sin(np.pi * x / 2) ** 2
        bumps = bell(centres[:, None] - x, 0.08)
        loads = np.einsum("ai,bj->abij", bumps, bumps)
        loads = loads.reshape(25, n - 1, n - 1)
        spectrum = dstn(loads, type=1, axes=(1, 2))
        spectrum /= rates[:, None] + rates
        state = dstn(spectrum, type=1, axes=(1, 2)) / (4 * n**2)
        across = np.abs(x - peak[0])
        along = np.abs(x - peak[1])
        tent = 1 - 2 * (across[:, None] + along)
        wanted = 0.1 * np.maximum(tent, 0)
        return 100 * state.reshape(25, -1).T, wanted.ravel()

    tables = {n: table(n) for n in (*sizes, finer)}

    def level(n, q):
        states, wanted = tables[n]
        u = states @ q
        off = u - wanted
        above = np.maximum(u - lid, 0)
        squares = off @ off + stiff * above @ above
        value = squares / (2 * n**2) + ridge * q @ q / 2
        slope = (off + stiff * above) @ states / n**2
        return value, slope + ridge * q

    return Ladder(start=np.zeros(25), sizes=sizes, level=level, price=area, finer=finer)


@problem(
    "heat flux", "time steps", convex=True, truth="12,288 time steps", shares=PRECISE
)
def heat_flux(rng: np.random.Generator) -> Ladder:
    """The history of a heat flux into a wall, from thermocouples inside: an inverse problem.

    Implicit Euler with n time steps, 30 cells across; a flux below zero is penalized smoothly.
    The flux is constant on 24 pieces of the time interval.
    """
    pieces, cells = 24, 30
    sizes = tuple(pieces * 2**k for k in range(7))
    finer = pieces * 512
    times = np.linspace(0.1, 1.0, 37)
    neighbours = np.eye(cells, k=1) + np.eye(cells, k=-1)
    operator = cells**2 * (2 * np.eye(cells) - neighbours)
    operator[0, 0] = cells**2  # the far side is kept cold, and the near one is heated
    rates, modes = np.linalg.eigh(operator)
    sensors = modes[[4, 12]]
    heated = sensors * modes[0] * cells

    def response(n: int) -> np.ndarray:
        """What each sensor shows after each step, of each piece of the flux."""
        decay = 1 / (1 + rates / n)
        impulse = heated @ decay[:, None] ** np.arange(1, n + 1) / n
        since = np.zeros((2, n + 1))  # a flux of one, begun so many steps ago
        since[:, 1:] = np.cumsum(impulse, axis=1)
        steps = np.arange(n + 1)
        shown = np.zeros((2, n + 1, pieces))
        for piece in range(pieces):
            begun = np.maximum(steps - piece * n // pieces, 0)
            ended = np.maximum(begun - n // pieces, 0)
            shown[:, :, piece] = since[:, begun] - since[:, ended]
        return shown

    def table(n: int) -> np.ndarray:
        """From the pieces to the readings, linear in time between steps."""
        shown = response(n)
        at = times * n
        before = np.minimum(at.astype(int), n - 1)
        share = (at - before)[:, None]
        first = (1 - share) * shown[:, before]
        read = first + share * shown[:, before + 1]
        return read.reshape(-1, pieces)

    tables = {n: table(n) for n in (*sizes, finer)}
    centre = rng.uniform(0.3, 0.5)
    t = middles(pieces)
    flux = 2 * bell(t - centre, 0.07) + (t > 0.7)
    clean = tables[finer] @ flux
    noise = 0.01 * np.abs(clean).max() * rng.standard_normal(clean.size)
    data = clean + noise

    def level(n, q):
        off = tables[n] @ q - data
        below, slope = softplus(-q, 0.05)
        change = np.diff(q)
        penalty = change @ change / 2 + 10 * below.sum()
        bend = np.append(0, change) - np.append(change, 0)
        value = off @ off / 2 + 1e-3 * penalty
        return value, tables[n].T @ off + 1e-3 * (bend - 10 * slope)

    return Ladder(start=np.ones(pieces), sizes=sizes, level=level, finer=finer)


@problem("soap film", "quadrature", convex=True, truth="128 x 128 cells")
def soap_film(rng: np.random.Generator) -> Ladder:
    """A soap film over a square frame with a bend, by Ritz's method in thirty-six sine modes.

    The area is taken by the midpoint rule on n x n cells, which is the level.
    """
    bend = rng.uniform(0.3, 0.7)
    tilt = rng.uniform(0.5, 2.0)
    modes = np.arange(1, 7)
    sizes, finer = powers(3, 6), 128

    def table(n: int) -> tuple[np.ndarray, np.ndarray]:
        """Slopes of the modes in both directions, and those of the frame's own surface."""
        x = middles(n)
        wave = sines(x, modes)
        steep = np.pi * modes * np.cos(np.pi * np.outer(x, modes))
        across = np.einsum("ia,jb->abij", steep, wave)
        along = np.einsum("ia,jb->abij", wave, steep)
        slopes = np.stack([across, along]).reshape(2, 36, -1)
        height = tilt * np.sqrt((x - bend) ** 2 + 0.05**2)
        rise = tilt**2 * (x - bend) / height
        one = np.ones(n)
        frame = np.stack([np.outer(rise, x), np.outer(height, one)])
        return slopes, frame.reshape(2, -1)

    tables = {n: table(n) for n in (*sizes, finer)}

    def level(n, q):
        slopes, frame = tables[n]
        steep = frame + q @ slopes
        stretch = np.sqrt(1 + steep[0] ** 2 + steep[1] ** 2)
        unit = steep / (stretch * n**2)
        gradient = slopes[0] @ unit[0] + slopes[1] @ unit[1]
        return stretch.mean(), gradient

    return Ladder(start=np.zeros(36), sizes=sizes, level=level, price=area, finer=finer)


@problem("reacting bar", "mesh", convex=False, truth="2048 cells")
def reacting_bar(rng: np.random.Generator) -> Ladder:
    """Sources in a reacting bar, -u'' + 50 u^3 = q: control of a semilinear equation.

    Newton's method on n cells to rounding, and the adjoint at the state found.
    """
    modes = np.arange(1, 11)
    wave = rng.uniform(2, 5)
    strength, ridge = 100.0, 1e-4
    sizes, finer = powers(3, 9), 2048
    sources = {n: strength * sines(inside(n), modes) for n in (*sizes, finer)}
    wanted = {n: 0.5 * np.sign(np.sin(wave * np.pi * inside(n))) for n in sources}

    def solved(n: int, load: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state, and the band of its linearized equation; nan where there is none."""
        band = np.zeros((3, n - 1))
        band[0, 1:] = band[2, :-1] = -(n**2)
        band[1] = 2 * n**2
        u = np.zeros(n - 1)
        for _ in range(60):
            jacobian = band.copy()
            jacobian[1] += 150 * u**2
            residual = 2 * n**2 * u + 50 * u**3 - load
            residual[1:] -= n**2 * u[:-1]
            residual[:-1] -= n**2 * u[1:]
            if not np.isfinite(residual).all():
                return u * np.nan, jacobian
            step = solve_banded((1, 1), jacobian, residual)
            u = u - step
            if np.abs(step).max() <= 1e-11 * np.abs(u).max():
                break
        return u, jacobian

    def level(n, q):
        u, jacobian = solved(n, sources[n] @ q)
        off = u - wanted[n]
        value = off @ off / (2 * n) + ridge * q @ q / 2
        if not np.isfinite(value):
            return np.inf, q * np.nan
        adjoint = solve_banded((1, 1), jacobian, off / n)
        return value, sources[n].T @ adjoint + ridge * q

    return Ladder(start=np.zeros(modes.size), sizes=sizes, level=level, finer=finer)


@problem("conductivity", "mesh", convex=False, truth="4096 cells", shares=PRECISE)
def conductivity(rng: np.random.Generator) -> Ladder:
    """The conductivity of a rod from temperatures under two loads: parameter identification.

    -(exp(m) u')' = f with m a sum of eight cosines, on n cells; fifteen sensors for each load.
    """
    numbers = np.arange(8)
    true = rng.normal(size=8) / (1 + numbers)
    weights = 1e-3 * (1 + numbers) ** 2
    sizes, finer = powers(4, 10), 4096
    waves = {n: np.cos(np.pi * np.outer(middles(n), numbers)) for n in (*sizes, finer)}

    def state(n: int, conducts: np.ndarray) -> np.ndarray:
        x = inside(n)
        loads = [np.ones(n - 1), 6 * np.sign(x - 0.4)]
        return solveh_banded(stiffness(conducts), np.stack(loads, axis=1) / n)

    def places(n: int) -> np.ndarray:
        return np.arange(1, 16) * (n // 16) - 1

    clean = state(finer, np.exp(waves[finer] @ true))[places(finer)]
    noise = 0.02 * np.abs(clean).max(axis=0) * rng.standard_normal(clean.shape)
    data = clean + noise
    scale = 1 / np.abs(data).max(axis=0)

    def rises(u: np.ndarray) -> np.ndarray:
        """From cell to cell, zero at both ends."""
        return np.diff(np.pad(u, ((1, 1), (0, 0))), axis=0)

    def level(n, q):
        if not np.abs(q).sum() < 30:
            return np.inf, q * np.nan
        conducts = np.exp(waves[n] @ q)
        u = state(n, conducts)
        sensors = places(n)
        off = (u[sensors] - data) * scale
        right = np.zeros_like(u)
        right[sensors] = off * scale
        adjoint = solveh_banded(stiffness(conducts), right)
        products = rises(u) * rises(adjoint)
        each = -n * conducts * products.sum(axis=1)
        value = (off**2).sum() / 2 + weights @ q**2 / 2
        return value, waves[n].T @ each + weights * q

    return Ladder(start=np.zeros(8), sizes=sizes, level=level, finer=finer)


PROBLEMS = (bar_control, membrane, heat_flux, soap_film, reacting_bar, conductivity)
