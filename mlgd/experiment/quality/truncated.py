"""Problems whose levels cut something off: iterations, ranks, basis functions, images, bits.

Where they come from: states by an iterative solver that is stopped, kernels of low rank,
spectral methods, lattice sums, arithmetic of few bits, regularized transport.
"""

import numpy as np
from scipy.special import logsumexp

from .meshes import powers
from .problem import PRECISE, Problem, finest, softplus


def sweeps(seed: int) -> Problem:
    """Sources found from a field that Jacobi's iteration leaves unfinished after n sweeps.

    The misfit is Huber's, smoothed, for spoiled readings. The truth solves to the end. Sweeps
    converge slowly: coarse levels see hardly beyond their own neighbourhood.
    """
    rng = np.random.default_rng([41, seed])
    cells = 40
    j = np.arange(1, cells)
    modes = np.sqrt(2 / cells) * np.sin(np.pi * np.outer(j, j) / cells)
    eigenvalues = 1 - np.cos(np.pi * j / cells) + 0.002
    sources = np.exp(-((j[:, None] - np.linspace(3, 37, 15)) ** 2) / 8)
    levels = powers(4, 12)

    def field(n: int) -> np.ndarray:
        left = (1 - 0.9 * eigenvalues) ** n if n else 0
        return modes * ((1 - left) / eigenvalues) @ modes @ sources

    fields = {n: field(n) for n in (*levels, 0)}
    true = np.maximum(rng.normal(size=15), 0)
    data = fields[0] @ true
    data = data + 0.01 * np.abs(data).max() * rng.normal(size=data.size)
    data[rng.integers(0, data.size, 4)] *= 1.5
    scale = np.abs(data).max() * 0.05

    def level(n, y):
        off = (fields[n] @ y - data) / scale
        root = np.sqrt(1 + off**2)
        value = (root - 1).sum() + 1e-3 * y @ y / 2
        return value, fields[n].T @ (off / root) / scale + 1e-3 * y

    return Problem(
        name="sweeps",
        kind="iterations",
        convex=True,
        seed=seed,
        start=np.zeros(15),
        levels=levels,
        price=float,
        level=level,
        truth=lambda y: level(0, y),
        limit="the solution, all sweeps",
    )


def equilibrium(seed: int) -> Problem:
    """A layer whose state is a fixed point, reached by n iterations: a deep equilibrium model.

    Thirty inputs, six states; the gradient goes back through the iterations. Not convex.
    """
    rng = np.random.default_rng([42, seed])
    inputs = np.column_stack([rng.normal(size=(30, 2)), np.ones(30)])
    answers = np.tanh(inputs[:, 0] * inputs[:, 1]) + 0.1 * rng.normal(size=30)
    mix = rng.normal(size=(6, 6))
    mix *= 0.95 / np.linalg.norm(mix, 2)
    levels = powers(0, 6)

    def level(n, y):
        into, out = y[:18].reshape(3, 6), y[18:]
        drive = inputs @ into
        state = np.zeros((30, 6))
        slopes = []
        for _ in range(n):
            state = np.tanh(state @ mix + drive)
            slopes.append(1 - state**2)
        off = state @ out - answers
        back = np.outer(off, out)
        on_drive = np.zeros((30, 6))
        for slope in reversed(slopes):
            back = back * slope
            on_drive += back
            back = back @ mix.T
        gradient = np.append((inputs.T @ on_drive).ravel(), off @ state) / 30
        return off @ off / 60 + 1e-3 * y @ y / 2, gradient + 1e-3 * y

    return Problem(
        name="equilibrium",
        kind="iterations",
        convex=False,
        seed=seed,
        start=0.3 * rng.normal(size=24),
        levels=levels,
        price=float,
        level=level,
        truth=lambda y: level(256, y),
        limit="256 iterations",
        shares=PRECISE,
    )


def kernel(seed: int) -> Problem:
    """Kernel classification of 192 points, the kernel cut to its n largest eigenvalues."""
    rng = np.random.default_rng([43, seed])
    points = rng.normal(size=(192, 2))
    labels = np.sign(np.sin(2 * points[:, 0]) + points[:, 1] + 0.5 * rng.normal(size=192))
    square = ((points[:, None] - points) ** 2).sum(axis=2)
    eigenvalues, vectors = np.linalg.eigh(np.exp(-np.sqrt(square + 1e-12) / 1.5))
    eigenvalues, vectors = eigenvalues[::-1], vectors[:, ::-1]
    levels = (3, 6, 12, 24, 48, 96, 192)
    matrices = {n: vectors[:, :n] * eigenvalues[:n] @ vectors[:, :n].T for n in levels}

    def level(n, y):
        image = matrices[n] @ y
        lost, slope = softplus(-labels * image)
        value = lost.mean() + 5e-3 * y @ image / 2
        return value, matrices[n] @ (-labels * slope / 192 + 5e-3 * y)

    return Problem(
        name="kernel",
        kind="rank",
        convex=True,
        seed=seed,
        start=np.zeros(192),
        levels=levels,
        price=float,
        level=level,
        truth=finest(levels, level),
        limit="the whole kernel, the finest level",
        exact=True,
    )


def transport(seed: int) -> Problem:
    """Sand spread over a square, carried to twelve sites: entropic transport, semi-discrete.

    The integral over the square is a midpoint rule on n x n cells. A constant added to all
    prices changes nothing: one direction is flat.
    """
    rng = np.random.default_rng([44, seed])
    sites = rng.uniform(0, 1, (12, 2))
    wanted = rng.uniform(0.5, 1.5, 12)
    wanted /= wanted.sum()
    heap = rng.uniform(0.2, 0.8, 2)
    width = 0.02
    levels = powers(1, 5)

    def table(n: int):
        x = (np.arange(n) + 0.5) / n
        grid = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
        sand = np.exp(-((grid - heap) ** 2).sum(axis=1) / 0.05) + 0.2
        return ((grid[:, None] - sites) ** 2).sum(axis=2), sand / sand.sum()

    tables = {n: table(n) for n in (*levels, 80)}

    def level(n, y):
        costs, sand = tables[n]
        power = (y - costs) / width + np.log(wanted)
        top = logsumexp(power, axis=1)
        share = np.exp(power - top[:, None])
        return width * sand @ top - wanted @ y, sand @ share - wanted

    return Problem(
        name="transport",
        kind="quadrature",
        convex=True,
        seed=seed,
        start=np.zeros(12),
        levels=levels,
        price=lambda n: float(n) ** 2,
        level=level,
        truth=lambda y: level(80, y),
        limit="80 x 80 cells",
        shares=PRECISE,
    )


def spectrum(seed: int) -> Problem:
    """A potential well shaped until its lowest five energies are as wanted: Schroedinger's.

    The operator is cut to n sine functions; gradients by Hellmann and Feynman. Not convex.
    """
    rng = np.random.default_rng([45, seed])
    cells, most = 400, 80
    x = (np.arange(cells) + 0.5) / cells
    j = np.arange(1, most + 1)
    waves = np.sqrt(2 / cells) * np.sin(np.pi * np.outer(x, j))
    wells = np.exp(-((x - np.linspace(0.1, 0.9, 8)[:, None]) ** 2) / (2 * 0.03**2))
    steps = np.einsum("xi,mx,xj->mij", waves, wells, waves, optimize=True)
    motion = (np.pi * j) ** 2 / 2
    levels = (6, 9, 14, 20, 28, 40)

    def energies(n: int, y: np.ndarray):
        return np.linalg.eigh(np.diag(motion[:n]) + np.tensordot(y, steps[:, :n, :n], 1))

    wanted = energies(most, 60 * rng.normal(size=8))[0][:5] * np.exp(0.03 * rng.normal(size=5))

    def level(n, y):
        if not np.isfinite(y).all():
            return np.inf, y * np.nan
        found, states = energies(n, 60 * y)
        off = (found[:5] - wanted) / 20
        low = states[:, :5]
        each = np.einsum("is,mij,js->ms", low, steps[:, :n, :n], low, optimize=True)
        return off @ off / 2 + 1e-2 * y @ y / 2, 60 * each @ off / 20 + 1e-2 * y

    return Problem(
        name="spectrum",
        kind="basis",
        convex=False,
        seed=seed,
        start=0.1 * rng.normal(size=8),
        levels=levels,
        price=lambda n: float(n) ** 3,
        level=level,
        truth=lambda y: level(most, y),
        limit="80 sine functions",
        shares=PRECISE,
    )


def ions(seed: int) -> Problem:
    """Eight ions in a trap that repeats itself: their energy sums n images on either side.

    Softened Coulomb forces, held across the period and, weakly, along it. Many minima.
    """
    rng = np.random.default_rng([46, seed])
    levels = powers(0, 6)

    def level(n, y):
        x, z = y[:8], y[8:]
        along = (x[:, None] - x)[None] + 6.0 * np.arange(-n, n + 1)[:, None, None]
        across = (z[:, None] - z)[None]
        square = along**2 + across**2 + 0.25
        energy = 1 / np.sqrt(square)
        force = -energy / square
        wide = 1.5 * z
        turn = 2 * np.pi * x / 6
        place = 0.5 * np.sin(turn)
        hold = 0.5 * 6 / (2 * np.pi) * (1 - np.cos(turn))
        value = energy.sum() / 2 + wide @ z / 2 + hold.sum()
        on_x = (force * along).sum(axis=(0, 2)) + place
        on_z = (force * across).sum(axis=(0, 2)) + wide
        return value, np.append(on_x, on_z)

    places = np.linspace(-2.5, 2.5, 8)[rng.permutation(8)] + 0.1 * rng.normal(size=8)
    return Problem(
        name="ions",
        kind="images",
        convex=False,
        seed=seed,
        start=np.append(places, 0.3 * rng.normal(size=8)),
        levels=levels,
        price=lambda n: 2.0 * n + 1,
        level=level,
        truth=lambda y: level(512, y),
        limit="512 images on either side",
    )


def bits(seed: int) -> Problem:
    """A blurred signal sharpened in arithmetic of n bits: every product is rounded.

    The finest level is double precision and counts as exact. The errors of a level jump from
    point to point, and its gradient is that of its loss up to rounding only. Price: bits^2.
    """
    rng = np.random.default_rng([47, seed])
    t = np.arange(40)
    blur = np.exp(-((t[:, None] - t) ** 2) / (2 * 1.5**2))
    blur /= blur.sum(axis=1)[:, None]
    signal = (np.abs(t - rng.uniform(10, 25)) < 5) + 0.5 * (t > 30)
    data = blur @ signal + 0.02 * rng.normal(size=40)
    levels = (5, 8, 11, 15, 24, 53)

    def rounded(n: int, v: np.ndarray) -> np.ndarray:
        if n == 53:
            return v
        mantissa, exponent = np.frexp(v)
        return np.ldexp(np.round(mantissa * 2.0**n) / 2.0**n, exponent)

    def level(n, y):
        off = rounded(n, rounded(n, blur @ rounded(n, y)) - data)
        jumps = rounded(n, np.diff(y))
        root = rounded(n, np.sqrt(jumps**2 + 0.01))
        pull = rounded(n, 0.02 * jumps / root)
        value = float(off @ off / 2 + 0.02 * root.sum())
        back = rounded(n, blur.T @ off)
        return value, rounded(n, back + np.append(0, pull) - np.append(pull, 0))

    return Problem(
        name="few bits",
        kind="bits",
        convex=True,
        seed=seed,
        start=np.zeros(40),
        levels=levels,
        price=lambda n: float(n) ** 2,
        level=level,
        truth=finest(levels, level),
        limit="double precision, the finest level",
        shares=PRECISE,
        exact=True,
        rounded=True,
    )


PROBLEMS = (sweeps, equilibrium, kernel, transport, spectrum, ions, bits)
