"""Descent on a quadratic under adversaries, step by step: what start, lasting errors and noise can do at worst.

In an eigenbasis with the minimizer at zero; the output is the mean of the last `window` points.
"""

import numpy as np

from .moments import certified_bias, worst


def output(
    lam: np.ndarray, eta: float, window: int, start: np.ndarray, errors: np.ndarray
) -> np.ndarray:
    """The output of descent from `start` whose gradient at step s is off by errors[s]."""
    y, mean, first = start, np.zeros_like(start), len(errors) - window
    for s, error in enumerate(errors):
        y = y - eta * (lam * y + error)
        if s >= first:
            mean = mean + y / window
    return mean


def attacks(
    lam: np.ndarray, eta: float, window: int, steps: int, sizes: tuple[float, float, float]
) -> dict[str, float]:
    """Exact mean losses under adversaries, over what the theorem on quadratics allows for these d0, delta, sigma.

    Each of start, bias and noise alone goes where it does most harm; then all three at once, bias and start in one
    direction. Errors do not follow the noise.
    """
    d0, delta, sigma = sizes
    n, unit = lam.size, np.eye(lam.size)
    quiet = np.zeros((steps, n))

    def loss(y):
        return float(lam @ y**2) / 2

    def at(i):
        return loss(output(lam, eta, window, unit[i], quiet))

    def lasting(i):
        return loss(output(lam, eta, window, 0 * unit[i], np.tile(unit[i], (steps, 1))))

    def kick(s):
        """The most that one error of size one at step s can cost, over eigendirections: all tried at once."""
        errors = quiet.copy()
        errors[s] = 1.0
        return float((lam * output(lam, eta, window, np.zeros(n), errors) ** 2).max()) / 2

    start, bias = max(range(n), key=at), max(range(n), key=lasting)
    noise = sum(kick(s) for s in range(steps)) * sigma**2
    sure = worst(lam[-1], lam[0], eta, np.array([window]), np.array([steps - window]))
    horizon, lag = (
        float(sure.horizon[0, 0]) * d0**2,
        certified_bias(lam[-1], lam[0], eta, window, steps) * delta**2,
    )
    spread = float(sure.noise[0, 0]) * sigma**2
    together = max(
        loss(output(lam, eta, window, d0 * unit[i], sign * delta * np.tile(unit[i], (steps, 1))))
        for i in (start, bias)
        for sign in (-1, 1)
    )
    return {
        "start": at(start) * d0**2 / horizon,
        "bias": lasting(bias) * delta**2 / lag,
        "noise": noise / spread,
        "all": (together + noise) / ((horizon**0.5 + lag**0.5) ** 2 + spread),
    }
