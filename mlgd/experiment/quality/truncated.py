"""Problems whose levels cut something off: iterations, ranks, basis functions, images, bits.

Where they come from: states by an iterative solver that is stopped, kernels of low rank,
spectral methods, lattice sums, arithmetic of few bits, regularized transport.
"""

import numpy as np
from scipy.special import logsumexp

from .problem import PRECISE, Ladder, bell, middles, powers, problem, sines, softplus


@problem("sweeps", "iterations", convex=True, truth="the solution, all sweeps")
def sweeps(rng: np.random.Generator) -> Ladder:
    """Sources found from a field that Jacobi's iteration leaves unfinished after n sweeps.

    The misfit is Huber's, smoothed, for spoiled readings. Sweeps converge slowly: coarse levels
    see hardly beyond their own neighbourhood, and some are worse than none.
    """
    cells, ridge = 40, 1e-3
    j = np.arange(1, cells)
    modes = np.sqrt(2 / cells) * sines(j / cells, j)
    eigenvalues = 1.002 - np.cos(np.pi * j / cells)
    centres = np.linspace(3, 37, 15)
    sources = bell(j[:, None] - centres, 2.0)
    sizes = powers(4, 12)

    def field(left: np.ndarray) -> np.ndarray:
        """Of all sources, where that is left of each mode's error."""
        return modes * ((1 - left) / eigenvalues) @ modes @ sources

    fields = {n: field((1 - 0.9 * eigenvalues) ** n) for n in sizes}
    solution = field(0 * eigenvalues)
    clean = solution @ np.maximum(rng.normal(size=15), 0)
    largest = np.abs(clean).max()
    data = clean + 0.01 * largest * rng.normal(size=clean.size)
    data[rng.integers(0, data.size, 4)] *= 1.5
    scale = 0.05 * largest

    def misfit(matrix: np.ndarray, y: np.ndarray):
        off = (matrix @ y - data) / scale
        root = np.sqrt(1 + off**2)
        value = (root - 1).sum() + ridge * y @ y / 2
        return value, matrix.T @ (off / root) / scale + ridge * y

    return Ladder(
        start=np.zeros(15),
        sizes=sizes,
        level=lambda n, y: misfit(fields[n], y),
        limit=lambda y: misfit(solution, y),
    )


@problem(
    "equilibrium", "iterations", convex=False, truth="256 iterations", shares=PRECISE
)
def equilibrium(rng: np.random.Generator) -> Ladder:
    """A layer whose state is a fixed point, reached by n iterations: a deep equilibrium model.

    Thirty inputs, six states; the gradient goes back through the iterations.
    """
    count, ridge = 30, 1e-3
    inputs = np.ones((count, 3))
    inputs[:, :2] = rng.normal(size=(count, 2))
    clean = np.tanh(inputs[:, 0] * inputs[:, 1])
    answers = clean + 0.1 * rng.normal(size=count)
    mix = rng.normal(size=(6, 6))
    mix *= 0.95 / np.linalg.norm(mix, 2)

    def level(n, y):
        into = y[:18].reshape(3, 6)
        out = y[18:]
        drive = inputs @ into
        state = np.zeros((count, 6))
        slopes = []
        for _ in range(n):
            state = np.tanh(state @ mix + drive)
            slopes.append(1 - state**2)
        off = state @ out - answers
        back = np.outer(off, out)
        on_drive = np.zeros((count, 6))
        for slope in reversed(slopes):
            back = back * slope
            on_drive += back
            back = back @ mix.T
        on_into = inputs.T @ on_drive
        gradient = np.append(on_into.ravel(), off @ state)
        value = off @ off / (2 * count) + ridge * y @ y / 2
        return value, gradient / count + ridge * y

    start = 0.3 * rng.normal(size=24)
    return Ladder(start=start, sizes=powers(0, 6), level=level, finer=256)


@problem("kernel", "rank", convex=True, truth="the whole kernel, the finest level")
def kernel(rng: np.random.Generator) -> Ladder:
    """Kernel classification of 192 points, the kernel cut to its n largest eigenvalues."""
    count, ridge = 192, 5e-3
    points = rng.normal(size=(count, 2))
    score = np.sin(2 * points[:, 0]) + points[:, 1]
    labels = np.sign(score + 0.5 * rng.normal(size=count))
    apart = points[:, None] - points
    distance = np.sqrt((apart**2).sum(axis=2))
    eigenvalues, vectors = np.linalg.eigh(np.exp(-distance / 1.5))
    sizes = (3, 6, 12, 24, 48, 96, count)

    def cut(n: int) -> np.ndarray:
        large = vectors[:, -n:]
        return large * eigenvalues[-n:] @ large.T

    matrices = {n: cut(n) for n in sizes}

    def level(n, y):
        image = matrices[n] @ y
        lost, slope = softplus(-labels * image)
        value = lost.mean() + ridge * y @ image / 2
        each = ridge * y - labels * slope / count
        return value, matrices[n] @ each

    return Ladder(start=np.zeros(count), sizes=sizes, level=level)


@problem("transport", "quadrature", convex=True, truth="80 x 80 cells", shares=PRECISE)
def transport(rng: np.random.Generator) -> Ladder:
    """Sand spread over a square, carried to twelve sites: entropic transport, semi-discrete.

    The integral over the square is a midpoint rule on n x n cells. A constant added to all
    prices changes nothing: one direction is flat.
    """
    width = 0.02
    sites = rng.uniform(0, 1, (12, 2))
    wanted = rng.uniform(0.5, 1.5, 12)
    wanted /= wanted.sum()
    heap = rng.uniform(0.2, 0.8, 2)
    sizes, finer = powers(1, 5), 80

    def table(n: int) -> tuple[np.ndarray, np.ndarray]:
        """What it costs to each site from each cell, and the cells' shares of the sand."""
        across = np.repeat(middles(n), n)
        along = np.tile(middles(n), n)
        cells = np.stack([across, along], axis=1)
        far = ((cells - heap) ** 2).sum(axis=1)
        sand = 0.2 + np.exp(-far / 0.05)
        apart = cells[:, None] - sites
        return (apart**2).sum(axis=2), sand / sand.sum()

    tables = {n: table(n) for n in (*sizes, finer)}

    def level(n, y):
        costs, sand = tables[n]
        power = (y - costs) / width + np.log(wanted)
        total = logsumexp(power, axis=1)
        share = np.exp(power - total[:, None])
        value = width * sand @ total - wanted @ y
        return value, sand @ share - wanted

    return Ladder(
        start=np.zeros(12),
        sizes=sizes,
        level=level,
        price=lambda n: float(n) ** 2,
        finer=finer,
    )


@problem("spectrum", "basis", convex=False, truth="80 sine functions", shares=PRECISE)
def spectrum(rng: np.random.Generator) -> Ladder:
    """A potential well shaped until its lowest five energies are as wanted: Schroedinger's.

    The operator is cut to n sine functions; gradients by Hellmann and Feynman.
    """
    most, unit, ridge = 80, 60.0, 1e-2
    x = middles(400)
    j = np.arange(1, most + 1)
    waves = sines(x, j) / np.sqrt(x.size / 2)
    centres = np.linspace(0.1, 0.9, 8)
    wells = unit * bell(x - centres[:, None], 0.03)
    operators = np.einsum("xi,mx,xj->mij", waves, wells, waves, optimize=True)
    motion = np.diag((np.pi * j) ** 2 / 2)

    def energies(n: int, y: np.ndarray):
        potential = np.tensordot(y, operators[:, :n, :n], 1)
        return np.linalg.eigh(motion[:n, :n] + potential)

    true = rng.normal(size=8)
    noise = np.exp(0.03 * rng.normal(size=5))
    wanted = energies(most, true)[0][:5] * noise

    def level(n, y):
        if not np.abs(y).max() < 1e6:
            return np.inf, y * np.nan
        found, states = energies(n, y)
        off = (found[:5] - wanted) / 20
        low = states[:, :5]
        images = operators[:, :n, :n] @ low
        slopes = (images * low).sum(axis=1)
        value = off @ off / 2 + ridge * y @ y / 2
        return value, slopes @ off / 20 + ridge * y

    return Ladder(
        start=0.1 * rng.normal(size=8),
        sizes=(6, 9, 14, 20, 28, 40),
        level=level,
        price=lambda n: float(n) ** 3,
        finer=most,
    )


@problem("ions", "images", convex=False, truth="512 images on either side")
def ions(rng: np.random.Generator) -> Ladder:
    """Eight ions in a trap that repeats itself: their energy sums n images on either side.

    Softened Coulomb forces, held across the period and, weakly, along it. Many minima.
    """
    period, hold, along_hold = 6.0, 1.5, 0.5

    def level(n, y):
        x, z = y[:8], y[8:]
        images = period * np.arange(-n, n + 1)
        along = x[:, None] - x + images[:, None, None]
        across = z[:, None] - z
        square = along**2 + across**2 + 0.25
        energy = 1 / np.sqrt(square)
        force = -energy / square
        turn = 2 * np.pi * x / period
        well = period / (2 * np.pi) * (1 - np.cos(turn))
        trap = hold * z @ z / 2 + along_hold * well.sum()
        on_x = (force * along).sum(axis=(0, 2)) + along_hold * np.sin(turn)
        on_z = (force * across).sum(axis=(0, 2)) + hold * z
        return energy.sum() / 2 + trap, np.append(on_x, on_z)

    places = rng.permutation(np.linspace(-2.5, 2.5, 8))
    places += 0.1 * rng.normal(size=8)
    aside = 0.3 * rng.normal(size=8)
    return Ladder(
        start=np.append(places, aside),
        sizes=powers(0, 6),
        level=level,
        price=lambda n: 2.0 * n + 1,
        finer=512,
    )


@problem(
    "few bits",
    "bits",
    convex=True,
    truth="double precision, the finest level",
    shares=PRECISE,
    rounded=True,
)
def bits(rng: np.random.Generator) -> Ladder:
    """A blurred signal sharpened in arithmetic of n bits: every product is rounded.

    The errors of a level jump from point to point, and its gradient is that of its loss up to
    rounding only. The price is that of a multiplier, the square of its bits.
    """
    double, weight = 53, 0.02
    t = np.arange(40)
    blur = bell(t[:, None] - t, 1.5)
    blur /= blur.sum(axis=1)[:, None]
    edge = rng.uniform(10, 25)
    signal = (np.abs(t - edge) < 5) + 0.5 * (t > 30)
    data = blur @ signal + 0.02 * rng.normal(size=40)

    def rounded(n: int, v: np.ndarray) -> np.ndarray:
        if n == double:
            return v
        mantissa, exponent = np.frexp(v)
        return np.ldexp(np.round(mantissa * 2.0**n) / 2.0**n, exponent)

    def level(n, y):
        image = rounded(n, blur @ rounded(n, y))
        off = rounded(n, image - data)
        jumps = rounded(n, np.diff(y))
        root = rounded(n, np.sqrt(jumps**2 + 0.01))
        value = off @ off / 2 + weight * root.sum()
        back = rounded(n, blur.T @ off)
        pull = rounded(n, weight * jumps / root)
        slope = np.append(0, pull) - np.append(pull, 0)
        return value, rounded(n, back + slope)

    return Ladder(
        start=np.zeros(40),
        sizes=(5, 8, 11, 15, 24, double),
        level=level,
        price=lambda n: float(n) ** 2,
    )


PROBLEMS = (sweeps, equilibrium, kernel, transport, spectrum, ions, bits)
