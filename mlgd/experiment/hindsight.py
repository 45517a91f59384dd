"""Each method tuned in hindsight on one instance with linear errors, by exact second moments: what is the least it could cost?

Prices are in units of one gradient at the coarsest level whose zero is good enough. The tuner knows the instance: its floors, its
minimizer, the moments on the way. Settings are sifted by a quick model of the moments (covariances without their off-diagonal entries),
and the few best are judged by the exact ones.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from .linear_errors import Affine, Moments, Sampling, anchored_path, instance, plain_path

LOOKS = 30  # per kappa steps: where an epoch may end
EXACT = 2  # settings that pass by exact moments, the cheapest of which is taken


@dataclass(frozen=True)
class Found:
    """The price of one setting, in units of one gradient, by purpose, and the setting."""

    price: float
    parts: dict[str, float] = field(default_factory=dict)
    setting: tuple = ()


NOTHING = Found(np.inf)


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
            judged += np.isfinite(exactly.price)  # a setting that the quick model took for good enough need not be
            best = min(best, exactly, key=lambda f: f.price)
    return best


# --- the anchored telescope ------------------------------------------------------------------------------------


def anchored(family: Affine, eps: float, graded: bool = True, lazy: bool = True) -> Found:
    """Epochs with references at ever finer levels (`graded`), or all at the finest."""

    def run(setting, path, limit):
        return _epochs(family, eps, setting, lazy, path, limit)

    return _best(run, _quick_anchored, anchored_path, _ladders(family, eps, graded))


def _ladders(family, eps, graded) -> Iterator[tuple]:
    """(levels of the references, base, step, share of noise, how close to its floor an epoch comes)."""
    unit = family.unit(eps)
    for finest, base, eta in product((unit, unit + 1), range(min(2, unit)), (1.2, 1.9)):
        if graded:
            ladders = {tuple(range(finest, base, -gap))[::-1] for gap in (1, 2, 3, 4)} | {(finest,)}
            ladders |= {(*ladder, finest) for ladder in ladders}
        else:
            ladders = {(finest,) * n for n in (1, 2, 3, 4)}
        for levels, noise, far in product(sorted(ladders), (0.004, 0.02, 0.1, 0.4, 1.6), (1.1, 1.5, 3.0)):
            if len(levels) > 1 or far == 1.5:
                yield levels, base, eta, noise, far


def _epochs(family, eps, setting, lazy, path, limit) -> Found:
    levels, base, eta, noise, far = setting
    unit = family.price[family.unit(eps)]
    now, parts = Moments.at(family.e0), {"reference": 0.0, "coarse": 0.0, "sampled": 0.0}
    for i, finest in enumerate(levels):
        floor = family.floors[finest]
        if i == len(levels) - 1:
            goal = eps
        else:  # references all at one level: the loss falls by a fixed factor per epoch
            goal = eps ** ((i + 1) / len(levels)) if levels[0] == levels[-1] else max(eps, far * floor)
        if now.loss(family.spectrum) <= goal:
            continue
        if floor >= goal:
            return NOTHING
        variance = noise * goal / (eta * now.distance**2)
        draw = Sampling.cheapest(min(base, finest), finest, family.lipschitz**2, family.price, variance)
        every = max(1, round(1 / (LOOKS * family.spectrum[0])))
        for look, point in enumerate(path(family, now, eta, draw, every), start=1):
            cost = draw.epoch(family.price, look * every, lazy)
            if point.loss(family.spectrum) <= goal:
                break
            if (sum(parts.values()) + sum(cost.values())) / unit > limit or look > 10 * LOOKS:
                return NOTHING
        now = point
        parts = {name: parts[name] + cost[name] for name in parts}
    parts = {name: value / unit for name, value in parts.items()}
    return Found(sum(parts.values()), parts, setting)


class _Quick:
    """Moments whose covariance is diagonal: the quick model's."""

    def __init__(self, mean, variance):
        self.mean, self.variance = mean, variance

    def loss(self, spectrum) -> float:
        return float(spectrum @ (self.mean**2 + self.variance)) / 2

    @property
    def distance(self) -> float:
        return float(np.sqrt(self.mean @ self.mean + self.variance.sum()))


def _strides(family, finest, eta, every):
    """`every` steps at once of the mean, of a diagonal covariance, and of noise injected into it."""
    m, c = family.matrix[finest], family.offset[finest]
    zero = np.linalg.solve(m, -c)
    stride = np.linalg.matrix_power(np.eye(zero.size) - eta * m, every)
    ratio = (1 - eta * family.spectrum) ** 2
    return zero, stride, ratio**every, np.where(ratio < 1, (1 - ratio**every) / (1 - ratio), every)


def _quick_anchored(family, start, eta, draw, every) -> Iterator[_Quick]:
    mean, reference = start.mean, start.mean
    variance = start.variance if isinstance(start, _Quick) else np.zeros_like(mean)
    kept, fresh = variance, np.zeros_like(mean)
    zero, stride, keep, gain = _strides(family, draw.finest, eta, every)
    noise = (eta * np.sqrt(1 / draw.p - 1))[:, None, None] * family.slopes[draw.base + 1 : draw.finest + 1]
    squares = (noise**2).sum(axis=0)
    while True:
        after = zero + stride @ (mean - zero)
        injected = sum(((noise @ (point - reference)) ** 2).sum(axis=0) for point in (mean, after)) / 2
        fresh = keep * fresh + (injected + squares @ fresh) * gain
        kept, mean = keep * kept, after
        yield _Quick(mean, kept + fresh)


# --- the plain telescope ---------------------------------------------------------------------------------------


def plain(family: Affine, eps: float) -> Found:
    """The plain telescope with constant noise and a tail average (weights growing geometrically)."""

    def run(setting, path, limit):
        return _plain(family, eps, setting, path, limit)

    unit = family.unit(eps)
    settings = product(
        (unit, unit + 1), (0, 1), (0.4, 1.2, 1.9), eps * np.geomspace(0.3, 300, 10), (0.0, 0.5, 1.0, 2.0)
    )
    return _best(run, _quick_plain, plain_path, settings)


def _plain(family, eps, setting, path, limit) -> Found:
    finest, base, eta, noise, growth = setting
    if family.floors[finest] >= eps:
        return NOTHING
    mu, unit = family.spectrum[0], family.price[family.unit(eps)]
    shifts = np.diff(family.offset, axis=0, prepend=0.0)
    squares = (shifts**2).sum(axis=1)  # the increments at the minimizer, where a run spends its time
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


def _quick_plain(family, start, eta, draw, growth, every) -> Iterator[tuple[_Quick, _Quick]]:
    mean = start.mean
    d = mean.size
    zero, stride, keep, gain = _strides(family, draw.finest, eta, every)
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
        yield _Quick(mean, variance), _Quick(total, smooth)


# --- the corrected coarse model --------------------------------------------------------------------------------


def corrected(family: Affine, eps: float) -> Found:
    """Solve A_k(y) + [A_K - A_k](y_j) = 0 from y_j, K rising to the finest; the coarse solves are charged as GMRES steps."""
    unit, best = family.unit(eps), NOTHING
    for finest, base, gap in product((unit, unit + 1), range(unit + 1), (1, 2, 3, 4, 20)):
        ladder = tuple(range(finest, base, -gap))[::-1] or (finest,)
        for repeats, inner in product((1, 2, 3), (0.3, 0.1, 0.03)):
            found = _corrected(family, eps, (ladder + (finest,) * (repeats - 1), base, inner), best.price)
            best = min(best, found, key=lambda f: f.price)
    return best


def _corrected(family, eps, setting, limit) -> Found:
    ladder, base, inner = setting
    unit = family.price[family.unit(eps)]
    y, parts = family.e0, {"reference": 0.0, "coarse": 0.0, "sampled": 0.0}
    for finest in ladder:
        fine = family.matrix[finest] @ y + family.offset[finest]
        move, evaluations = _gmres(family.matrix[base], -fine, inner, family.spectrum)
        parts["reference"] += family.price[finest] / unit
        parts["coarse"] += evaluations * family.price[base] / unit
        y = y + move
        if family.loss(y) <= eps:
            return Found(sum(parts.values()), parts, setting)
        if sum(parts.values()) > limit:
            return NOTHING
    return NOTHING


def _gmres(matrix, right, reduction, spectrum):
    """The first Krylov iterate whose residual, weighed by 1/sqrt(spectrum), has fallen to `reduction`; evaluations used."""
    weight = 1 / np.sqrt(spectrum)
    goal, basis = reduction * np.linalg.norm(weight * right), [right / np.linalg.norm(right)]
    images = []
    while True:
        images.append(matrix @ basis[-1])
        pushed = np.array(images).T
        coefficients = np.linalg.lstsq(weight[:, None] * pushed, weight * right, rcond=None)[0]
        if np.linalg.norm(weight * (right - pushed @ coefficients)) <= goal or len(basis) == right.size:
            return np.array(basis).T @ coefficients, len(basis) + 1
        new = images[-1]
        for _ in range(2):
            new = new - np.array(basis).T @ (np.array(basis) @ new)
        basis.append(new / np.linalg.norm(new))


# --- the table of the chapter on anchored descent ---------------------------------------------------------------------

CELLS = [(kappa, gamma, eps) for kappa in (100, 1000, 10000) for eps in (1e-2, 1e-4) for gamma in (3, 4, 6)]
CELLS += [(100, 3, 1e-6), (100, 1.5, 1e-6)]
METHODS = {"anchored": anchored, "corrected": corrected}
FIGURE = {"plain": plain, "finest": lambda family, eps: anchored(family, eps, graded=False, lazy=False)}


def table(cells: Iterable[tuple], seeds: Iterable[int], methods: dict) -> Iterator[str]:
    """Rows of book/data/hindsight.tsv: kappa, gamma, eps, seed, method, price and the base level's part of it."""
    for (kappa, gamma, eps), seed in product(cells, seeds):
        family = instance(kappa, gamma, seed, levels=18)
        for name, method in methods.items():
            found = method(family, eps)
            if found.setting:
                coarse = f"{found.parts['coarse']:.4f}" if name == "anchored" else ""
                yield f"{kappa:g}\t{gamma:g}\t{eps:g}\t{seed}\t{name}\t{found.price:.4f}\t{coarse}"


if __name__ == "__main__":
    print("kappa\tgamma\teps\tseed\tmethod\tprice\tcoarse")
    for row in table(CELLS, range(10), METHODS):
        print(row, flush=True)
    for row in table([(100, 3, eps) for eps in (1e-2, 1e-4, 1e-6)], range(6), FIGURE):
        print(row, flush=True)
