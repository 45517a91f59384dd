"""Exact runs against the theorems on anchored descent, in a few dimensions and however many steps.

On a quadratic with errors linear in y the first two moments of a run obey a linear recursion, so that a run of any length is a power
of a small matrix: nothing is sampled. `one_set`, `corrected_set` and `convex_set` draw everything that a theorem leaves open.
"""

import math
from dataclasses import replace

import numpy as np

from .anchored_theorem import dyadic, epochs, price, price_bound
from .epochs import Epoch, Setting
from .linear_errors import Moments


def exact_epoch(
    s: Setting,
    epoch: Epoch,
    start: Moments,
    spectrum: np.ndarray,
    matrix: np.ndarray,
    offset: np.ndarray,
    slopes: dict,
    left_out: np.ndarray | float = 0.0,
) -> tuple[Moments, Moments]:
    """The exact moments of the last point and of the average of y_1, ..., y_T, for A_K(e) = matrix e + offset.

    `slopes[k]` is the matrix of the increment to level k, `left_out` what is missing of the change since the reference. With x = (z, s, r, 1), z = y - r and s the weighted sum of the points,
    E xx' obeys a linear recursion; its matrix is raised to the power T by squaring.
    """
    d = spectrum.size
    growth = (1 - s.h * epoch.theta) / (1 - s.h) if epoch.theta < 1 else 1.0
    n = 3 * d + 1
    t = np.eye(n)
    move = -s.eta * np.hstack([matrix - left_out, np.zeros((d, d)), matrix, offset[:, None]])
    t[:d] += move
    t[d : 2 * d] = t[:d]
    t[d : 2 * d, d : 2 * d] = np.eye(d) / growth
    t[d : 2 * d, 2 * d : 3 * d] += np.eye(d)
    operator = np.kron(t, t)
    for above, k, p in zip(epoch.levels, epoch.levels[1:], epoch.probabilities[1:], strict=False):
        noise = np.zeros((n, n))
        noise[:d, :d] = noise[d : 2 * d, :d] = s.eta * sum(
            slopes[i] for i in range(above + 1, k + 1)
        )
        operator += (1 / p - 1) * np.kron(noise, noise)
    begin = np.zeros((n, n))
    begin[2 * d : 3 * d, 2 * d : 3 * d] = start.second
    begin[2 * d : 3 * d, -1] = begin[-1, 2 * d : 3 * d] = start.mean
    begin[-1, -1] = 1.0
    end = (np.linalg.matrix_power(operator, epoch.steps) @ begin.ravel()).reshape(n, n)
    mass = sum_of_powers(1 / growth, epoch.steps)
    last = (
        end[:d, :d]
        + end[:d, 2 * d : 3 * d]
        + end[2 * d : 3 * d, :d]
        + end[2 * d : 3 * d, 2 * d : 3 * d]
    )
    average = end[d : 2 * d, d : 2 * d] / mass**2
    return Moments(end[:d, -1] + end[2 * d : 3 * d, -1], last), Moments(
        end[d : 2 * d, -1] / mass, average
    )


def sum_of_powers(ratio: float, count: int) -> float:
    """1 + ratio + ... + ratio^(count-1)."""
    return float(count) if ratio == 1 else -math.expm1(count * math.log(ratio)) / (1 - ratio)


def worst(
    s: Setting, plan, rng, flat: bool = False, most: int = 3, sampled: bool = True
) -> tuple[float, float]:
    """The largest distance over its bound, and the loss over eps, on one random quadratic with linear errors of the class.

    `flat`: start, error and noise all in the flattest direction, the error constant: a corner where bounds are nearly attained.
    Without `sampled` the change of the increments since the reference is left out: the corrected coarse model.
    """
    d = int(rng.integers(1, most + 1))
    ends = (s.mu, s.beta) if d > 1 else ((s.mu,) if flat or rng.random() < 0.5 else (s.beta,))
    spectrum = np.array([*ends, *rng.uniform(s.mu, s.beta, max(0, d - 2))])
    direction = np.eye(d)[0] if flat else _unit(rng, d)
    now, distances, loss = Moments.at(s.d0 * direction), 0.0, math.inf
    for i, epoch in enumerate(plan):
        share = 0.0 if flat else rng.random() * (rng.random() < 0.5)
        error = s.accuracy[epoch.finest]
        side = -direction if flat and i % 2 else (direction if flat else _unit(rng, d))
        slope = (
            share * error / epoch.radius * _orthogonal(rng, d)
        )  # no distance exceeds the radius, no error its bound
        slopes = {
            k: s.change[k] * (_orthogonal(rng, d) if not flat else np.eye(d))
            for k in range(1, epoch.finest + 1)
        }
        left_out = sum(
            slopes[k] for k in range(epoch.levels[0] + 1, epoch.finest + 1) if not sampled
        )
        matrix, offset = np.diag(spectrum) + slope, (1 - share) * error * side
        last, average = exact_epoch(s, epoch, now, spectrum, matrix, offset, slopes, left_out)
        if i == len(plan) - 1:
            loss = (average if s.averaged else last).loss(spectrum) / s.eps
        else:
            distances = max(distances, last.distance / plan[i + 1].radius)
        now = last
    return distances, loss


def _unit(rng, d: int) -> np.ndarray:
    u = rng.standard_normal(d)
    return u / np.linalg.norm(u)


def _orthogonal(rng, d: int) -> np.ndarray:
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


def random_parameters(rng) -> dict:
    """One set of everything the theorem lets one choose, over many decades."""
    mu = 10.0 ** rng.uniform(-3, 1)
    beta = mu * 10.0 ** rng.uniform(0.01, 4)
    d0 = 10.0 ** rng.uniform(-1, 2)
    return {
        "beta": beta,
        "mu": mu,
        "d0": d0,
        "eps": mu * d0**2 * 10.0 ** rng.uniform(-8, 0),
        "gamma": float(rng.choice([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0])),
        "c": 10.0 ** rng.uniform(-2, 1),
        "l": 10.0 ** rng.uniform(-2, 2) / d0,
    }


def one_set(seed: int, stretch: float = 1.0) -> tuple[float, float, float]:
    """The largest distance, the loss and the price over their bounds, for one random set of parameters and errors.

    Every other set is the flat corner. With `stretch` the errors are that many times what the levels declare.
    """
    rng = np.random.default_rng([seed, 13])
    numbers = random_parameters(rng)
    first = math.floor(-math.log2(numbers["mu"] * numbers["d0"])) - 1
    s = dyadic(**numbers, first=first, levels=40)
    plan = epochs(
        s, numbers["gamma"], rng.uniform(0.05, 0.5), rng.uniform(0.02, 0.5), rng.uniform(2, 20)
    )
    reached = worst(
        replace(s, accuracy=stretch * s.accuracy), plan, rng, flat=seed % 2 == 0, most=2
    )
    return *reached, price(s, plan) / price_bound(s, numbers["gamma"], plan)


def corrected_set(seed: int, stretch: float = 1.0) -> tuple[float, float]:
    """Distance and loss over the bounds of the theorem on the corrected coarse model, for one random set; mu = R = 1.

    Every other set has start, error and what is left out in one flat direction. With `stretch` more is left out than declared.
    """
    rng = np.random.default_rng([seed, 17])
    kappa, steps, theta = (
        10.0 ** rng.uniform(0.01, 5),
        int(10.0 ** rng.uniform(0, 7)),
        rng.uniform(0.05, 0.95),
    )
    w = rng.uniform(0, 0.5)
    b = rng.uniform(0, 1 - 2 * w) * rng.choice([0, 1])
    s = Setting(
        kappa, 1.0, 1.0, 1.0, np.ones(2), np.array([1.0, b]), np.array([0.0, w]), np.zeros(2, bool)
    )
    spectrum = np.array([1.0, kappa ** rng.random()])
    flat, one = seed % 2 == 0, np.eye(2)
    side, start = (one[0], one[0]) if flat else (_unit(rng, 2), _unit(rng, 2))
    out = stretch * w * (one if flat else _orthogonal(rng, 2))
    epoch = Epoch(1.0, 1, steps, 0.0, theta, levels=(0, 1))
    last, average = exact_epoch(
        s, epoch, Moments.at(start), spectrum, np.diag(spectrum), b * side, {}, out
    )
    far = (1 - s.h * (1 - w)) ** steps + (b + w) / (1 - w)
    off, growth = b + 2 * w, steps * (math.log1p(-s.h * theta) - math.log1p(-s.h))
    loss = off**2 / (2 * theta) + ((1 - theta) / (2 * math.expm1(growth)) if growth < 700 else 0.0)
    return last.distance / far, average.loss(spectrum) / loss


def convex_set(seed: int) -> float:
    """The mean loss over 0.89 eps of the convex proposition, for one random set."""
    rng = np.random.default_rng([seed, 19])
    beta, d0 = 10.0 ** rng.uniform(-2, 2, 2)
    eps = beta * d0**2 * 10.0 ** rng.uniform(-6, 0.5)
    steps = math.ceil(d0**2 * beta / eps)
    delta, noise = d0 * beta / (8 * steps), beta / math.sqrt(22 * steps)
    s = Setting(
        beta,
        0.0,
        d0,
        eps,
        np.ones(2),
        np.array([1.0, delta]),
        np.array([0.0, noise]),
        np.zeros(2, bool),
    )
    epoch = Epoch(d0, 1, steps, 0.0, 1.0, levels=(0, 1), probabilities=(1.0, 0.5))
    spectrum = beta * np.minimum(1.0, rng.choice([0.0, 1e-9, 0.5 / steps, 3 / steps, 0.1, 1.0], 2))
    slopes = {1: noise * (np.eye(2)[:, ::-1] if seed % 2 else _orthogonal(rng, 2))}
    side, start = _unit(rng, 2), _unit(rng, 2)
    average = exact_epoch(
        s, epoch, Moments.at(d0 * start), spectrum, np.diag(spectrum), delta * side, slopes
    )[1]
    return average.loss(spectrum) / (0.89 * eps)
