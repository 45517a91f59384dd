"""Each method tuned in hindsight on one instance with linear errors, by exact second moments: how cheap could it be?

Prices are in units of one gradient at the coarsest level whose zero is good enough. The tuner knows the instance: its floors, its
minimizer, the moments on the way; nobody who has to solve it does. It searches, so a cheaper setting may exist.
"""

import math
import sys
from collections.abc import Iterable, Iterator
from itertools import product

import numpy as np

from . import anchored_search, linear_errors, strides
from .anchored_search import NOTHING, Diagonal, Found, anchored
from .linear_errors import Affine, Moments, Sampling, plain_path
from .store import fingerprint

LOOKS = 30  # per kappa steps: where an epoch may end
INNER = (0.3, 0.1, 0.03)  # how far a coarse solve goes
EXACT = 3  # settings that pass by exact moments, the cheapest of which is taken


def _best(run, quick, exact, settings: Iterable[tuple]) -> Found:
    """Sift by the quick moments, judge by the exact ones."""
    sifted, limit = [], np.inf
    for setting in settings:
        found = run(setting, quick, 1.5 * limit)
        limit = min(limit, found.price)
        sifted.append(found)
    sifted.sort(key=lambda found: found.price)
    best, judged = NOTHING, 0
    for found in sifted[: 10 * EXACT]:
        if found.setting and judged < EXACT:
            exactly = run(found.setting, exact, best.price)
            judged += np.isfinite(
                exactly.price
            )  # a setting that the quick model took for good enough need not be
            best = min(best, exactly, key=lambda f: f.price)
    return best


# --- the plain telescope ---------------------------------------------------------------------------------------


def plain(family: Affine, eps: float) -> Found:
    """The plain telescope with constant noise and a tail average (weights growing geometrically)."""

    def run(setting, path, limit):
        return _plain(family, eps, setting, path, limit)

    unit = family.unit(eps)
    settings = product(
        (unit, unit + 1),
        (0, 1),
        (0.4, 1.2, 1.9),
        (eps * np.geomspace(0.3, 300, 10)).tolist(),
        (0.0, 0.5, 1.0, 2.0),
    )
    return _best(run, _quick_plain, plain_path, settings)


def _plain(family, eps, setting, path, limit) -> Found:
    finest, base, eta, noise, growth = setting
    if family.floors[finest] >= eps:
        return NOTHING
    mu, unit = family.spectrum[0], family.price[family.unit(eps)]
    shifts = np.diff(family.offset, axis=0, prepend=0.0)
    squares = (shifts**2).sum(
        axis=1
    )  # the increments at the minimizer, where a run spends its time
    draw = Sampling.cheapest(base, finest, squares, family.price, noise / eta)
    every = max(1, round(1 / (LOOKS * mu)))
    call = family.price[base] + draw.call(family.price)
    for look, points in enumerate(
        path(family, Moments.at(family.e0), eta, draw, 1 / (1 - growth * eta * mu), every), 1
    ):
        price = look * every * call / unit
        if min(point.loss(family.spectrum) for point in points) <= eps:
            coarse = look * every * family.price[base] / unit
            return Found(price, {"coarse": coarse, "sampled": price - coarse}, setting)
        if price > limit or look > 10 * LOOKS:
            return NOTHING


def _quick_plain(family, start, eta, draw, growth, every) -> Iterator[tuple[Diagonal, Diagonal]]:
    mean = start.mean
    d = mean.size
    zero, m = family.zeros[draw.finest], family.matrix[draw.finest]
    stride = np.linalg.matrix_power(np.eye(d) - eta * m, every)
    ratio = (1 - eta * family.spectrum) ** 2
    keep = ratio**every
    gain = np.where(ratio < 1, (1 - keep) / (1 - ratio), every)
    shifts = np.diff(family.offset, axis=0, prepend=0.0)[draw.base + 1 : draw.finest + 1]
    inject = eta**2 * float((1 / draw.p - 1) @ (shifts**2).sum(axis=1)) / d
    variance, average, mass = np.zeros(d), np.zeros(d), 0.0
    total, square = np.zeros(d), 0.0
    window = growth**every
    while True:
        mass = every + mass / window
        share = every / mass
        average = (1 - share) * average + share * mean
        square = (1 - share) ** 2 * square + share**2 / every  # sum of the squared weights
        mean = zero + stride @ (mean - zero)
        variance = keep * variance + inject * gain
        # steps correlate over 1/(eta lambda): the variance of the average is at most that of white noise through 1/lambda
        smooth = np.minimum(variance, inject * square / (eta * family.spectrum) ** 2)
        total = average
        yield Diagonal(mean, variance), Diagonal(total, smooth)


# --- the corrected coarse model --------------------------------------------------------------------------------


def corrected(family: Affine, eps: float) -> Found:
    """Solve A_k(y) + [A_K - A_k](y_j) = 0 from y_j, K rising to the finest; the coarse solves are charged as GMRES steps."""
    unit, best = family.unit(eps), NOTHING
    known: dict[tuple, tuple] = {
        ((), base, inner): (family.e0, 0.0, 0.0) for base in range(unit + 1) for inner in INNER
    }

    def after(ladder, base, inner):
        """(the point, what its fine and its coarse values cost)."""
        if (ladder, base, inner) not in known:
            y, fine, coarse = after(ladder[:-1], base, inner)
            k = ladder[-1]
            move, n = _gmres(
                family.matrix[base],
                -family.matrix[k] @ y - family.offset[k],
                inner,
                family.spectrum,
            )
            known[ladder, base, inner] = (
                y + move,
                fine + family.price[k],
                coarse + n * family.price[base],
            )
        return known[ladder, base, inner]

    for finest, base, gap, inner in product(
        (unit, unit + 1), range(unit + 1), (1, 2, 3, 4, 20), INNER
    ):
        ladder = tuple(range(finest, base, -gap))[::-1] or (finest,)
        ladder += (finest,) * 2
        for n in range(1, len(ladder) + 1):
            y, fine, coarse = after(ladder[:n], base, inner)
            price = (fine + coarse) / family.price[unit]
            if price >= best.price:
                break
            if family.loss(y) <= eps:
                parts = {
                    "reference": fine / family.price[unit],
                    "coarse": coarse / family.price[unit],
                    "sampled": 0.0,
                }
                best = Found(price, parts, (ladder[:n], base, inner))
    return best


def _gmres(matrix, right, reduction, spectrum):
    """The first Krylov iterate whose residual, weighed by 1/sqrt(spectrum), has fallen to `reduction`; evaluations used."""
    weight = 1 / np.sqrt(spectrum)
    left = weight * right
    goal, n = reduction * np.linalg.norm(left), right.size
    basis, images, pushed = (
        np.zeros((n, n)),
        np.zeros((n, n)),
        np.zeros((n, n)),
    )  # a row per evaluation
    new = right
    for i in range(n):
        basis[i] = _orthogonal_to(basis[:i], new)
        new = images[i] = matrix @ basis[i]
        pushed[i] = _orthogonal_to(pushed[:i], weight * new)
        left = left - pushed[i] * (pushed[i] @ left)
        if np.linalg.norm(left) <= goal:
            break
    used = slice(i + 1)
    coefficients = np.linalg.lstsq((weight * images[used]).T, weight * right, rcond=None)[0]
    return coefficients @ basis[used], i + 2


def _orthogonal_to(rows: np.ndarray, v: np.ndarray) -> np.ndarray:
    for _ in range(2):
        v = v - (rows @ v) @ rows
    return v / np.linalg.norm(v)


# --- the table of the chapter on anchored descent ---------------------------------------------------------------------

CELLS = [
    (kappa, gamma, eps)
    for kappa in (100, 1000, 10000)
    for eps in (1e-2, 1e-4)
    for gamma in (3, 4, 6)
]
CELLS += [(100, 3, 1e-6), (100, 1.5, 1e-6)]
METHODS = {"anchored": anchored, "corrected": corrected}
FIGURE = {
    "plain": plain,
    "finest": lambda family, eps: anchored(family, eps, graded=False, lazy=False),
}
SEEDS = range(10)
COLUMNS = ("kappa", "gamma", "eps", "seed", "method", "price", "coarse", "setting")


def version() -> str:
    """A fingerprint of the code that the table was computed with."""
    return fingerprint([linear_errors, strides, anchored_search, sys.modules[__name__]])


def table(cells: Iterable[tuple], seeds: Iterable[int], methods: dict) -> Iterator[str]:
    """Rows of book/data/hindsight.tsv; `coarse` is the base level's part of the price."""
    for (kappa, gamma, eps), seed in product(cells, seeds):
        family = linear_errors.instance(kappa, gamma, seed, levels=18)
        for name, method in methods.items():
            found = method(family, eps)
            coarse = found.parts.get("coarse", math.nan)
            yield f"{kappa:g}\t{gamma:g}\t{eps:g}\t{seed}\t{name}\t{found.price:.4f}\t{coarse:.4f}\t{found.setting}"


def main() -> None:
    print(
        f"# python -m mlgd.experiment.hindsight > book/data/hindsight.tsv; code {version()}; seeds {min(SEEDS)} to {max(SEEDS)}"
    )
    print(*COLUMNS, sep="\t")
    for row in table(CELLS, SEEDS, METHODS):
        print(row, flush=True)
    for row in table([(100, 3, eps) for eps in (1e-2, 1e-4, 1e-6)], SEEDS, FIGURE):
        print(row, flush=True)


if __name__ == "__main__":
    main()
