"""The constants of *The constant*: what proved descent costs in the limit, and what nothing beats.

All of them stand in front of (c d0/eps)^gamma, the price of one gradient of accuracy eps/d0, and
hold as eps -> 0 with beta, d0, c and the coarsest level fixed. Accuracies are in units of eps/d0:
r_k = u 2^-k, where the phase u, from 1 to 2, says how eps/d0 lies between two levels.

Every choice of the free numbers gives a valid bound; the searches here look for good ones.
"""

import numpy as np
from scipy.optimize import brentq, minimize_scalar

FINEST = 12  # the levels beyond it would never be bought
DROPPED = 17  # of the sum over levels 2^-17 lies below the coarsest that is kept
NODES = 160  # of Gauss's rule over a run; 400 change the sixth digit
SHARES = (0.02, 0.98)  # what the potential may lose over a run


def ladder(gamma: float, phase: float) -> tuple[np.ndarray, np.ndarray]:
    """Accuracies of the levels that count in the limit, from coarse to fine, and their prices."""
    depth = int(DROPPED / (gamma / 2 - 1))
    accuracy = phase * 2.0 ** -np.arange(-depth, FINEST + 1.0)
    return accuracy, accuracy**-gamma


def moments() -> tuple[np.ndarray, np.ndarray]:
    """Moments of a run, from 0 to 1, and their weights, dense at the end where 1 - s has a root."""
    node, weight = np.polynomial.legendre.leggauss(NODES)
    root = (node + 1) / 2
    return (1 - root**2)[:, None], root * weight


def price(gamma: float, phase: float, fall: float, stop: bool) -> float:
    """The price at which the theorem's loss is the target; the potential loses the share `fall`.

    Minimizes  int left sum_k N_k c_k ds  under  int sum_k v_k / (x + (1 - x s) N_k) ds = 1, where
    left = 1 - s is the probability that the run still goes on, or 1 if it returns the average.
    """
    accuracy, cost = ladder(gamma, phase)
    jump = 3 * accuracy**2
    s, weight = moments()
    left = 1 - s if stop else np.ones_like(s)
    potential = 1 - fall * s

    def bought(log_rate):
        worth = np.sqrt(jump * potential / (np.exp(log_rate) * cost * left))
        return np.maximum(worth - fall, 0) / potential

    def excess(log_rate):
        left_over = jump / (fall + potential * bought(log_rate))
        return weight @ left_over.sum(axis=1) + accuracy[-1] ** 2 / fall - 1

    rate = brentq(excess, -60, 60, xtol=1e-12)
    return float(weight @ ((left * bought(rate)) @ cost))


def upper(gamma: float, phase: float, stop: bool = True) -> float:
    """K_up: the limit of Theorem S's price, the best potential chosen."""
    found = minimize_scalar(
        lambda fall: price(gamma, phase, fall, stop),
        bounds=SHARES,
        method="bounded",
        options={"xatol": 1e-4},
    )
    return float(found.fun)


# --- on the way from the paper's constant to this one: the same descent with fewer ideas ---


def telescope(gamma: float, bias: float) -> float:
    """The root of price times variance of the paper's telescope, in whole increments by pairs.

    An increment is at most r_{k-1} + r_k = 3 r_k, and both of its levels are paid.
    """
    pair = np.sqrt(1 + 2**-gamma)
    return 3 * pair * bias ** (1 - gamma / 2) / (1 - 2 ** (1 - gamma / 2))


def by_price(gamma: float, phase: float) -> float:
    """The paper's descent, its three shares by price: horizon + noise + bias times the ball."""

    def paid(log_time, bias):
        time = np.exp(log_time)

        def excess(noise):
            ball = time * bias + np.sqrt((time * bias) ** 2 + 1 + time * noise)
            return 1 / (2 * time) + noise / 2 + bias * ball - 1

        if excess(0) >= 0:
            return np.inf
        return time * telescope(gamma, bias) ** 2 / brentq(excess, 0, 2)

    def best(bias):
        times = np.linspace(-0.6, 2, 131)
        start = times[int(np.argmin([paid(t, bias) for t in times]))]
        near = (start - 0.03, start + 0.03)
        return minimize_scalar(paid, bounds=near, args=(bias,), method="bounded").fun

    return float(min(best(phase * 2.0**-k) for k in range(2, 8)))


def by_potential(gamma: float, phase: float) -> float:
    """The same telescope with a decaying potential: bias and noise add up like squares."""

    def paid(fall, bias):
        density = 2 * (1 - np.sqrt(1 - fall)) / fall  # int (1 - x s)^(-1/2) ds
        return (telescope(gamma, bias) * density) ** 2 / (1 - bias**2 / fall)

    def best(bias):
        return minimize_scalar(
            paid, bounds=(bias**2, 1), args=(bias,), method="bounded"
        ).fun

    return float(min(best(phase * 2.0**-k) for k in range(1, 8)))


# --- the hidden chains ---


def chain(weight: np.ndarray) -> np.ndarray:
    """n with sum over 0 <= i < n of (n - i) = weight: the best length of a chain."""
    whole = np.maximum(np.ceil((np.sqrt(1 + 8 * weight) - 1) / 2 - 1e-12), 1)
    return (weight + whole * (whole - 1) / 2) / whole


def squares(n: np.ndarray) -> np.ndarray:
    """Z(n) = sum over 0 <= i < n of (n - i)^2, for real n."""
    m = np.ceil(n)
    return m * n**2 - n * m * (m - 1) + (m - 1) * m * (2 * m - 1) / 6


LONGEST = 600  # of the logarithm of a chain's length: its third power must be a float
SCALES = np.exp(np.arange(-6, 22, 0.04))[:, None]  # of the lengths of chains


def chains(gamma: float, phase: float, finest: int, count: int, room: float) -> float:
    """Theorem B's bound with `count` levels down to the finest, their lengths the best on a grid.

    room = eps/(beta d0^2); zero is the limit.
    """
    accuracy = phase * 2.0 ** -np.arange(finest - count + 1.0, finest + 1.0)
    hidden = 3 * accuracy**2
    hidden[-1] = 4 * accuracy[-1] ** 2
    step = np.diff(accuracy**-gamma, prepend=0.0)
    n = chain(SCALES * hidden / step)
    Q = np.sqrt((step**2 * squares(n) / hidden).sum(axis=1))
    allowed = (2 * room * Q[:, None] * hidden < step).all(axis=1)
    coarsest = (2 * accuracy[0]) ** 2 * (room > 0)
    bounds = n @ step - Q * (1 + coarsest * room / 2)
    return float(np.max(bounds, where=allowed, initial=0.0))


def lower(gamma: float, phase: float, room: float = 0.0) -> float:
    """K_low: Theorem B's bound, the finest level and the number of levels chosen."""
    most = int(min(DROPPED / (gamma / 2 - 1), LONGEST / (gamma + 2)))
    counts = range(1, 16) if room else [most]
    return max(
        chains(gamma, phase, finest, count, room)
        for finest in range(-2, 6)
        for count in counts
    )
