"""Problems whose levels are meshes: a state solved for, or an integral taken, on finer cells.

Where they come from: optimal control and parameter identification with elliptic equations,
inverse heat conduction, variational problems by Ritz's method. The price of a level is its
number of unknowns (times the time steps).
"""

import numpy as np
from scipy.fft import dstn
from scipy.linalg import solve_banded, solveh_banded

from .problem import PRECISE, Problem, softplus


def powers(first: int, last: int) -> tuple[int, ...]:
    """Levels that are sizes: 2^first to 2^last."""
    return tuple(2**k for k in range(first, last + 1))


def tridiagonal(conductivity: np.ndarray) -> np.ndarray:
    """Linear finite elements for -(a u')' = f on (0, 1), zero at both ends, as an upper band."""
    n = conductivity.size
    band = np.zeros((2, n - 1))
    band[0, 1:] = -n * conductivity[1:-1]
    band[1] = n * (conductivity[:-1] + conductivity[1:])
    return band


def bar_control(seed: int) -> Problem:
    """Twenty heaters along a bar of varying conductivity, to bring it near a given temperature.

    Linear finite elements on n cells, lumped; a quadratic tracking loss with a small ridge.
    """
    rng = np.random.default_rng([1, seed])
    phase, wave = rng.uniform(0, 6, 2)
    modes = np.arange(1, 21)
    levels = powers(3, 10)

    def table(n: int) -> tuple[np.ndarray, np.ndarray, float]:
        x = np.arange(1, n) / n
        middle = (np.arange(n) + 0.5) / n
        band = tridiagonal(1 + 0.9 * np.sin(7 * middle + phase))
        heaters = np.sin(np.pi * np.outer(x, modes)) * np.exp(x)[:, None]
        state = solveh_banded(band, heaters / n)
        wanted = x * (1 - x) * (1 + np.cos(5 * x + wave)) + 0.05 * (x > 0.4)
        hessian = state.T @ state / n + 1e-7 * np.eye(modes.size)
        return hessian, state.T @ wanted / n, wanted @ wanted / (2 * n)

    tables = {n: table(n) for n in (*levels, 8192)}

    def level(n, q):
        hessian, offset, constant = tables[n]
        image = hessian @ q
        return q @ image / 2 - offset @ q + constant, image - offset

    return Problem(
        name="bar control",
        kind="mesh",
        convex=True,
        seed=seed,
        start=np.zeros(modes.size),
        levels=levels,
        price=float,
        level=level,
        truth=lambda q: level(8192, q),
        limit="8192 cells",
        shares=PRECISE,
    )


def membrane(seed: int) -> Problem:
    """Twenty-five loads on a square membrane, which is to take a shape and stay below a lid.

    Five-point differences on n x n cells, inverted by sine transforms; the lid is a penalty.
    """
    rng = np.random.default_rng([2, seed])
    corner = rng.uniform(0.2, 0.8, 2)
    levels = powers(2, 6)

    def table(n: int) -> tuple[np.ndarray, np.ndarray]:
        x = np.arange(1, n) / n
        line = 4 * n**2 * np.sin(np.pi * x / 2) ** 2
        centres = np.linspace(0.1, 0.9, 5)
        bumps = np.exp(-((centres[:, None] - x) ** 2) / (2 * 0.08**2))
        loads = np.einsum("ai,bj->abij", bumps, bumps).reshape(25, n - 1, n - 1)
        spectrum = dstn(loads, type=1, axes=(1, 2)) / (line[:, None] + line)
        state = dstn(spectrum, type=1, axes=(1, 2)) / (4 * n**2)
        far = np.abs(x[:, None] - corner[0]) + np.abs(x - corner[1])
        wanted = 0.1 * np.maximum(1 - 2 * far, 0)
        return state.reshape(25, -1).T / 0.01, wanted.ravel()

    tables = {n: table(n) for n in (*levels, 128)}

    def level(n, q):
        states, wanted = tables[n]
        u = states @ q
        off = u - wanted
        above = np.maximum(u - 0.06, 0)
        value = (off @ off + 20 * above @ above) / (2 * n**2) + 1e-5 * q @ q / 2
        return value, (off + 20 * above) @ states / n**2 + 1e-5 * q

    return Problem(
        name="membrane",
        kind="mesh",
        convex=True,
        seed=seed,
        start=np.zeros(25),
        levels=levels,
        price=lambda n: float(n) ** 2,
        level=level,
        truth=lambda q: level(128, q),
        limit="128 x 128 cells",
        shares=PRECISE,
    )


def heat_flux(seed: int) -> Problem:
    """The history of a heat flux into a wall, from thermocouples inside: an inverse problem.

    Implicit Euler with n time steps, 30 cells across; a flux below zero is penalized smoothly.
    """
    rng = np.random.default_rng([3, seed])
    pieces, cells = 24, 30
    times = np.linspace(0.1, 1.0, 37)
    stiffness = cells**2 * (
        2 * np.eye(cells) - np.eye(cells, k=1) - np.eye(cells, k=-1)
    )  # the far side is kept cold, the near one is heated
    stiffness[0, 0] = cells**2
    rates, modes = np.linalg.eigh(stiffness)
    into = modes[0] * cells
    sensors = modes[[4, 12]]
    sizes = tuple(24 * 2**k for k in range(7))

    def readings(n: int) -> np.ndarray:
        """From the pieces of the flux to the temperatures read, linear in time between steps."""
        decay = 1 / (1 + rates / n)
        impulse = (sensors * into) @ decay[:, None] ** np.arange(1, n + 1) / n
        response = np.zeros((2, n + 1, pieces))
        for piece in range(pieces):
            first, length = piece * n // pieces, n // pieces
            summed = np.concatenate([np.zeros((2, 1)), np.cumsum(impulse, axis=1)], axis=1)
            lag = np.arange(n + 1) - first
            late = np.clip(lag, 0, n)
            early = np.clip(lag - length, 0, n)
            response[:, :, piece] = summed[:, late] - summed[:, early]
        at = times * n
        below = np.minimum(at.astype(int), n - 1)
        share = (at - below)[:, None]
        read = (1 - share) * response[:, below] + share * response[:, below + 1]
        return read.reshape(-1, pieces)

    tables = {n: readings(n) for n in (*sizes, 24 * 512)}
    middle = (np.arange(pieces) + 0.5) / pieces
    flux = 2 * np.exp(-((middle - rng.uniform(0.3, 0.5)) ** 2) / 0.01) + (middle > 0.7)
    data = tables[24 * 512] @ flux
    data = data + 0.01 * np.abs(data).max() * rng.standard_normal(data.size)

    def level(n, q):
        off = tables[n] @ q - data
        below, slope = softplus(-q, 0.05)
        change = np.diff(q)
        value = off @ off / 2 + 1e-3 * (change @ change / 2 + 10 * below.sum())
        smooth = np.append(0, change) - np.append(change, 0)
        return value, tables[n].T @ off + 1e-3 * (smooth - 10 * slope)

    return Problem(
        name="heat flux",
        kind="mesh",
        convex=True,
        seed=seed,
        start=np.ones(pieces),
        levels=sizes,
        price=float,
        level=level,
        truth=lambda q: level(24 * 512, q),
        limit="12,288 time steps",
        shares=PRECISE,
    )


def surface(seed: int) -> Problem:
    """A soap film over a square frame with a bend, by Ritz's method in thirty-six sine modes.

    The area is taken by the midpoint rule on n x n cells, which is the level.
    """
    rng = np.random.default_rng([4, seed])
    bend = rng.uniform(0.3, 0.7)
    tilt = rng.uniform(0.5, 2.0)
    modes = np.arange(1, 7)
    levels = powers(3, 6)

    def table(n: int) -> tuple[np.ndarray, np.ndarray]:
        x = (np.arange(n) + 0.5) / n
        wave = np.sin(np.pi * np.outer(modes, x))
        slope = np.pi * modes[:, None] * np.cos(np.pi * np.outer(modes, x))
        across = np.einsum("ai,bj->abij", slope, wave).reshape(36, -1)
        along = np.einsum("ai,bj->abij", wave, slope).reshape(36, -1)
        height = tilt * np.sqrt((x - bend) ** 2 + 0.05**2)
        rise = tilt**2 * (x - bend) / height
        frame = np.stack([np.outer(rise, x), np.outer(height, np.ones(n))])
        return np.stack([across, along]), frame.reshape(2, -1)

    tables = {n: table(n) for n in (*levels, 128)}

    def level(n, q):
        slopes, frame = tables[n]
        steep = frame + np.stack([q @ slopes[0], q @ slopes[1]])
        area = np.sqrt(1 + steep[0] ** 2 + steep[1] ** 2)
        unit = steep / (area * n**2)
        return area.mean(), slopes[0] @ unit[0] + slopes[1] @ unit[1]

    return Problem(
        name="soap film",
        kind="quadrature",
        convex=True,
        seed=seed,
        start=np.zeros(36),
        levels=levels,
        price=lambda n: float(n) ** 2,
        level=level,
        truth=lambda q: level(128, q),
        limit="128 x 128 cells",
    )


def semilinear(seed: int) -> Problem:
    """Sources in a reacting bar, -u'' + 50 u^3 = q: control of a semilinear equation.

    Newton's method on n cells to rounding, and the adjoint at the state found. Not convex.
    """
    rng = np.random.default_rng([5, seed])
    modes = np.arange(1, 11)
    levels = powers(3, 9)
    wave = rng.uniform(2, 5)

    def setting(n: int):
        x = np.arange(1, n) / n
        return np.sin(np.pi * np.outer(x, modes)), 0.5 * np.sign(np.sin(wave * np.pi * x))

    settings = {n: setting(n) for n in (*levels, 2048)}

    def solved(n: int, load: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        band = tridiagonal(np.ones(n)) * n
        linear = np.stack([np.append(band[0, 1:], 0), band[1], band[0]])[[2, 1, 0]]
        u = np.zeros(n - 1)
        for _ in range(60):
            jacobian = linear.copy()
            jacobian[1] += 150 * u**2
            residual = band[1] * u + 50 * u**3 - load
            residual[1:] += band[0, 1:] * u[:-1]
            residual[:-1] += band[0, 1:] * u[1:]
            if not np.isfinite(residual).all():
                return u * np.nan, jacobian
            step = solve_banded((1, 1), jacobian, residual)
            u = u - step
            if np.abs(step).max() <= 1e-11 * np.abs(u).max():
                break
        return u, jacobian

    def level(n, q):
        sources, wanted = settings[n]
        u, jacobian = solved(n, sources @ (100 * q))
        off = u - wanted
        value = off @ off / (2 * n) + 1e-4 * q @ q / 2
        if not np.isfinite(value):
            return np.inf, q * np.nan
        adjoint = solve_banded((1, 1), jacobian, off / n)
        return value, 100 * sources.T @ adjoint + 1e-4 * q

    return Problem(
        name="reacting bar",
        kind="mesh",
        convex=False,
        seed=seed,
        start=np.zeros(modes.size),
        levels=levels,
        price=float,
        level=level,
        truth=lambda q: level(2048, q),
        limit="2048 cells",
    )


def conductivity(seed: int) -> Problem:
    """The conductivity of a rod from temperatures under two loads: parameter identification.

    -(exp(m) u')' = f with m a sum of eight cosines, on n cells; fifteen sensors a load.
    """
    rng = np.random.default_rng([6, seed])
    levels = powers(4, 10)
    numbers = np.arange(8)
    true = rng.normal(size=8) / (1 + numbers)

    def setting(n: int):
        x = np.arange(1, n) / n
        middle = (np.arange(n) + 0.5) / n
        loads = np.stack([np.ones(n - 1), 6 * np.sign(x - 0.4)], axis=1) / n
        return np.cos(np.pi * np.outer(middle, numbers)), loads

    settings = {n: setting(n) for n in (*levels, 4096)}

    def readings(n: int, q: np.ndarray):
        waves, loads = settings[n]
        conducts = np.exp(waves @ q)
        state = solveh_banded(tridiagonal(conducts), loads)
        sensors = np.arange(1, 16) * (n // 16) - 1
        return state[sensors], state, conducts, sensors

    clean = readings(4096, true)[0]
    data = clean + 0.02 * np.abs(clean).max(axis=0) * rng.standard_normal(clean.shape)

    def level(n, q):
        if not np.abs(q).sum() < 30:
            return np.inf, q * np.nan
        read, state, conducts, sensors = readings(n, q)
        scale = 1 / np.abs(data).max(axis=0)
        off = (read - data) * scale
        right = np.zeros_like(state)
        right[sensors] = off * scale
        adjoint = solveh_banded(tridiagonal(conducts), right)
        rises = np.diff(np.pad(state, ((1, 1), (0, 0))), axis=0)
        falls = np.diff(np.pad(adjoint, ((1, 1), (0, 0))), axis=0)
        each = -n * conducts * (rises * falls).sum(axis=1)
        ridge = 1e-3 * (1 + numbers) ** 2 * q
        return (off**2).sum() / 2 + q @ ridge / 2, settings[n][0].T @ each + ridge

    return Problem(
        name="conductivity",
        kind="mesh",
        convex=False,
        seed=seed,
        start=np.zeros(8),
        levels=levels,
        price=float,
        level=level,
        truth=lambda q: level(4096, q),
        limit="4096 cells",
        shares=PRECISE,
    )


PROBLEMS = (bar_control, membrane, heat_flux, surface, semilinear, conductivity)
