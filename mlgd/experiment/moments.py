"""Descent on a quadratic, eigenvalue by eigenvalue: how the mean of the last W of T points answers to its errors.

With x = 1 - eta lambda and M = T - W, the mean of y_{M+1}, ..., y_T is off the minimizer by

    a(lambda) (y_0 - y*) - sum over s of c_s(lambda) e_s,      e_s the error of the gradient at step s,
    a = x^{M+1} (1 - x^W) / (W eta lambda),   c_s = (1 - x^n) / (W lambda) for n = T - s <= W,
                                              c_s = x^{n-W} (1 - x^W) / (W lambda) for n > W.

`worst` maximizes over the eigenvalues in [mu, beta] (the chapter on strong convexity proves what that means);
`Responses` integrates against spectral measures.
"""

from typing import NamedTuple

import numpy as np

EIGENVALUES = 128  # in a grid of [mu, beta]; with sums over a geometric grid of steps the error is below MARGIN
RATIO = 1.06
MARGIN = 1.002


class Worst(NamedTuple):
    """Responses at their worst: the loss is at most (sqrt(horizon d0^2 + noise sigma^2) + sqrt(bias) delta)^2."""

    horizon: np.ndarray
    bias: np.ndarray
    noise: np.ndarray


def powers(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    """x^n for |x| <= 1 of either sign and whole n, without overflow; broadcasts."""
    size = np.abs(x) ** np.asarray(n, float)
    return np.where((x < 0) & (n % 2 == 1), -size, size)


def falls(eta: np.ndarray, lam: np.ndarray, n: np.ndarray) -> np.ndarray:
    """1 - (1 - eta lambda)^n, exact where eta lambda is tiny."""
    small = np.minimum(eta * lam, 0.5)
    return np.where(eta * lam <= 0.5, -np.expm1(n * np.log1p(-small)), 1 - powers(1 - eta * lam, n))


def spectrum(beta: float, mu: float, eta: float, steps: float) -> np.ndarray:
    """Eigenvalues where the maxima may lie: below 1/(100 eta T) every response grows with the eigenvalue."""
    low = max(mu, min(0.01 / (eta * steps), beta))
    return np.geomspace(low, beta, EIGENVALUES) if low < beta else np.array([beta])


def worst(beta: float, mu: float, eta: float, windows: np.ndarray, lags: np.ndarray) -> Worst:
    """The worst responses for every window W and lag M = T - W: arrays of shape (windows, lags).

    The noise term is the sum over steps of the largest response; the bias term that of an error which keeps its
    direction, the worst of all where `certified_bias` says so.
    """
    windows, lags = np.asarray(windows, float), np.asarray(lags, float)
    lam = spectrum(beta, mu, eta, windows.max() + lags.max())
    x = 1 - eta * lam
    horizon, bias, noise = (np.empty((windows.size, lags.size)) for _ in range(3))
    n = steps_grid(windows.max(), windows)
    rising = np.where(
        x < 0, 1 + np.abs(powers(x, n[:, None])), falls(eta, lam, n[:, None])
    )  # of even and odd n
    late = _sums(n, (rising**2 / lam).max(axis=1), windows)
    m = steps_grid(lags.max(), lags)
    decay = np.abs(powers(x, m[:, None]))
    geometric = np.abs(x) / (1 - np.abs(x))  # of |x|^m from m = 1
    for i, w in enumerate(windows):
        full = falls(eta, lam, w)
        early = _sums(m, ((decay * full) ** 2 / lam).max(axis=1), lags)
        noise[i] = (late[i] + early) / w**2 / 2
        a = np.abs(powers(x, lags[:, None] + 1)) * full / (w * eta * lam)
        horizon[i] = (lam * a**2).max(axis=1) / 2
        inside = w - x * full / (eta * lam)  # the sum of 1 - x^n
        outside = full * geometric * (1 - np.abs(powers(x, lags[:, None])))
        bias[i] = ((inside + outside) ** 2 / lam).max(axis=1) / w**2 / 2
    return Worst(horizon * MARGIN, bias * MARGIN, noise * MARGIN)


def certified_bias(beta: float, mu: float, eta: float, window: int, steps: int) -> float:
    """An upper bound of the bias response over all errors that may change from step to step.

    For any positive r: |sum c_s sqrt(lambda) e_s|^2 <= (sum r_s) max over lambda of sum lambda c_s^2 / r_s, with equality
    for r_s^2 the mean of lambda c_s^2 under the worst distribution of eigenvalues; that is found by multiplicative steps.
    """
    lam = spectrum(beta, mu, eta, steps)
    x = 1 - eta * lam
    n, m = steps_grid(window, [window]), steps_grid(steps - window, [steps - window])
    late, early = (
        falls(eta, lam, n[:, None]),
        powers(x, m[:, None]) * falls(eta, lam, float(window)),
    )
    square = (np.vstack([late, early]) / (window * lam)) ** 2 * lam
    weight = np.concatenate([_weights(n), _weights(m)])
    share = np.full(lam.size, 0.5 / lam.size)
    share[(weight @ np.sqrt(square)).argmax()] += (
        0.5  # where an error that keeps its direction does most harm
    )
    best = np.inf
    for _ in range(40):
        r = np.sqrt(square @ share) + 1e-300
        gain = (weight / r) @ square
        best = min(best, float(weight @ r) * float(gain.max()))
        share *= gain / (share @ gain)
    return MARGIN * best / 2


def steps_grid(last: float, wanted) -> np.ndarray:
    """Whole numbers from 1 to `last`, all of them at first and then geometrically spaced, with those wanted among them."""
    if last < 1:
        return np.zeros(0)
    first = np.arange(1.0, min(last, 32) + 1)
    more = (
        np.round(np.geomspace(32, last, int(np.log(last / 32) / np.log(RATIO)) + 2))
        if last > 32
        else []
    )
    wanted = np.asarray(wanted, float)
    return np.unique(np.concatenate([first, more, wanted[wanted >= 1]]))


def _weights(n: np.ndarray) -> np.ndarray:
    """Weights that turn a sum over these grid points into the sum over all whole numbers from 1 to the last."""
    around = np.concatenate([n[:1] - 1, n, n[-1:] + 1])
    return (around[2:] - around[:-2]) / 2


def _sums(n: np.ndarray, f: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The sums of f over 1..end for each end on the grid."""
    gains = np.diff(n) * (f[1:] + f[:-1]) / 2 + np.diff(f) / 2
    total = np.concatenate([[0.0], f[:1], f[:1] + np.cumsum(gains)])
    return total[np.searchsorted(n, ends) + (ends >= 1)]


class Responses(NamedTuple):
    """a, the sum C of the c_s, and the sum S of their squares, at given eigenvalues: arrays (settings, eigenvalues)."""

    start: np.ndarray
    lasting: np.ndarray
    noise: np.ndarray

    @classmethod
    def at(
        cls, lam: np.ndarray, eta: np.ndarray, window: np.ndarray, steps: np.ndarray
    ) -> "Responses":
        eta, w, t = (np.asarray(v, float)[:, None] for v in (eta, window, steps))
        x = 1 - eta * lam
        full, lag = falls(eta, lam, w), t - w
        start = powers(x, lag + 1) * full / (w * eta * lam)
        square = x**2 / np.maximum(1 - x**2, 1e-300)
        late = w - 2 * x * full / (eta * lam) + square * falls(eta, lam, 2 * w)
        tiny = eta * lam * w < 1e-3  # where the three terms cancel, the sum of (eta lambda n)^2
        late = np.where(tiny, (eta * lam) ** 2 * w * (w + 1) * (2 * w + 1) / 6, late)
        early = full**2 * square * falls(eta, lam, 2 * lag)
        return cls(start, (1 - start) / lam, np.maximum(late + early, 0.0) / (w * lam) ** 2)
