"""Anchored descent (ours, not the paper's), as numbers: what an epoch does, what it costs, and the cheapest sequence of epochs.

An epoch starts at its reference r, at root mean square distance at most R from the minimizer, and makes y <- y - eta g(y) with the
anchored telescope: mean within delta of the gradient, variance at most s^2 |y - r|^2. With h = eta mu, b = delta/(mu R) and
v = eta s^2/mu the chapter on anchored descent proves, for b^2 + 4v <= 1 and eta <= 1/beta,

    distance after t steps over R  <=  sqrt((1 - h(1 - 2v))^t + (b^2 + 2v)/(1 - 2v)),  and  <=  (1-h)^t (1-b) + b + 2 sqrt(v/(2-h)),
    mean loss of the average       <=  mu (1-theta) R^2 / (2 (G^t - 1))  +  delta^2/(2 mu theta)  +  4 v mu R^2,

the average with weights growing by G = (1 - h theta)/(1 - h) per step. On quadratics the last point has
sqrt(loss) <= R max over the spectrum of sqrt(lambda/2) (1 - eta lambda)^t  +  delta/sqrt(2 mu)  +  R sqrt(2 v mu N), where N, the sum
over the steps m of the largest eta lambda (1 - eta lambda)^(2m), is what noise does that turns to the worst direction at each.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter

import numpy as np

from mlgd.telescope import optimum

from .moments import worst

SHARES = np.array([0.2, 0.5, 0.8])  # how much of what the bias leaves may be noise
AVERAGES = np.array(
    [0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995]
)  # theta, the bias's share, as far as it may go


@dataclass(frozen=True)
class Setting:
    """What the epochs are planned for: constants of the loss, and for each level its price, accuracy and rate of change."""

    beta: float
    mu: float
    d0: float
    eps: float
    price: np.ndarray
    accuracy: np.ndarray
    change: np.ndarray  # Lipschitz constants of the increments; the first is not used
    shared: np.ndarray  # whether an increment is one evaluation
    averaged: bool = True  # the output of the last epoch is its average (any loss), or its last point (quadratics)

    @property
    def eta(self) -> float:
        return 1 / self.beta

    @property
    def h(self) -> float:
        return self.mu / self.beta

    @cached_property
    def turning(self) -> float:
        """N, after as many steps as you like."""
        many = np.array([20 * self.beta / self.mu])
        return (
            2 / self.eta * float(worst(self.beta, self.mu, self.eta, np.ones(1), many).noise[0, 0])
        )


@dataclass(frozen=True)
class Epoch:
    """One reference and the steps made from it; `levels` are indices, the first one looked at in every step."""

    radius: float  # bound of the root mean square distance at its reference
    finest: int
    steps: int
    noise: float  # v = eta s^2 / mu
    theta: float = 1.0  # of the average, in the last epoch
    reached: float = math.nan  # bound of the distance at its end; of the loss, in the last one
    levels: tuple[int, ...] = ()
    probabilities: tuple[float, ...] = ()


def contraction(h: float, b, v, steps):
    """The bound of the distance after so many steps, over the distance at the reference."""
    squares = (1 - h * (1 - 2 * v)) ** steps + (b * b + 2 * v) / (1 - 2 * v)
    powers = (1 - h) ** steps * (1 - b) + b + 2 * np.sqrt(v / (2 - h))
    return np.minimum(1.0, np.minimum(np.sqrt(squares), powers))


def average_loss(s: Setting, radius: float, delta, v, steps, theta):
    """The bound of the mean loss of the average, for theta < 1."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        growth = steps * (np.log1p(-s.h * theta) - np.log1p(-s.h))
        horizon = s.mu * (1 - theta) * radius**2 / (2 * np.expm1(growth))
        return horizon + delta**2 / (2 * s.mu * theta) + 4 * v * s.mu * radius**2


def last_loss(s: Setting, radius: float, delta, v, steps):
    """The bound of the mean loss of the last point, for quadratics."""
    flat = np.clip(
        s.beta / (2 * steps + 1), s.mu, s.beta
    )  # where sqrt(lambda) (1 - lambda/beta)^t is largest
    horizon = np.sqrt(flat / 2) * (1 - flat / s.beta) ** steps * radius
    return (horizon + delta / math.sqrt(2 * s.mu) + radius * np.sqrt(2 * v * s.mu * s.turning)) ** 2


def fewest(bound: Callable, goal, shape: tuple[int, ...] = ()) -> np.ndarray:
    """The least t >= 1 with bound(t) <= goal, for bounds that fall with t; infinite past 2^40."""
    late = np.zeros(shape)  # the last that is not enough, digit by digit
    for digit in 2.0 ** np.arange(39, -1, -1):
        late = np.where(bound(late + digit) <= goal, late, late + digit)
    return np.where(late < 2.0**40 - 1, late + 1, np.inf)


def coarse_prices(cost: np.ndarray, weight: np.ndarray, room: np.ndarray) -> np.ndarray:
    """The price of a call for each way and finest level, increments paid in pairs and no level left out: (ways, levels).

    room[i, k] is what the noise may be if level k is the finest, weight[i, k] that of the step to level k at probability 1/2.
    """
    best = np.where(room >= 0, cost, np.inf)
    pair = cost + np.append(0.0, cost[:-1])
    for start in range(cost.size - 1) if (room > 0).any() else ():
        later = slice(start + 1, None)
        price = np.append(cost[start + 1], pair[start + 2 :])
        own, left = np.maximum(weight[:, later], 1e-300), room[:, later]
        root = np.cumsum(np.sqrt(own * price), axis=1)
        q = root / (np.maximum(left, 1e-300) + np.cumsum(own, axis=1))
        allowed = (left > 0) & (q * np.maximum.accumulate(np.sqrt(own / price), axis=1) <= 1)
        best[:, later] = np.minimum(
            best[:, later], np.where(allowed, cost[start] + q * root, np.inf)
        )
    return best


def call_prices(s: Setting, variance: np.ndarray) -> np.ndarray:
    """What a call costs whose variance is at most this times |y - r|^2: by way and finest level."""
    return coarse_prices(s.price, np.broadcast_to(s.change**2, variance.shape), variance)


def cheapest(s: Setting) -> tuple[Epoch, ...] | None:
    """The cheapest epochs that end with loss at most eps, radii falling by powers of two; None if the ladder can't."""
    count = max(1, math.floor(math.log2(max(2.0, s.d0 / math.sqrt(s.eps / s.mu)))) + 1)
    radii = [s.d0 * 2.0**-i for i in range(count)]
    best: list = [None] * count  # from each radius: the price, the epochs
    for i in reversed(range(count)):
        ways = [(*_epoch(s, radii[i]), 0.0, ())]
        ways += [(*_epoch(s, radii[i], radii[j]), *best[j]) for j in range(i + 1, count)]
        best[i] = min(
            ((price + after, (epoch, *then)) for price, epoch, after, then in ways),
            key=itemgetter(0),
        )
    price, epochs = best[0]
    return tuple(with_levels(s, epoch) for epoch in epochs) if price < math.inf else None


def _epoch(s: Setting, radius: float, goal: float | None = None) -> tuple[float, Epoch | None]:
    """The cheapest epoch from one radius to a smaller one, or without a goal to loss eps: rows are ways, columns finest levels."""
    delta, b, share, theta = (
        s.accuracy,
        s.accuracy / (s.mu * radius),
        SHARES[:, None],
        np.ones((1, 1)),
    )

    def bound(t):
        if goal is not None:
            return radius * contraction(s.h, b, v, t)
        return (
            average_loss(s, radius, delta, v, t, theta)
            if s.averaged
            else last_loss(s, radius, delta, v, t)
        )

    if goal is not None:
        q = goal / radius
        v = np.vstack([share * (q * q - b * b) / 2, (share * (q - b) / 2) ** 2 * (2 - s.h)])
    elif s.averaged:
        share, theta = (a.reshape(-1, 1) for a in np.meshgrid(SHARES, AVERAGES))
        least = delta**2 / (2 * s.mu * s.eps)  # what theta must exceed
        theta = least + (1 - least) * theta
        v = share * (s.eps - delta**2 / (2 * s.mu * theta)) / (4 * s.mu * radius**2)
    else:
        v = (share * (math.sqrt(s.eps) - delta / math.sqrt(2 * s.mu)) / radius) ** 2 / (
            2 * s.mu * s.turning
        )
    v = np.clip(v, 0.0, np.maximum(1 - b * b, 0.0) / 4)
    steps = np.where(b <= 1, fewest(bound, s.eps if goal is None else goal, v.shape), np.inf)
    price = s.price + steps * call_prices(s, v * s.mu / s.eta)
    i = np.unravel_index(price.argmin(), price.shape)
    if not np.isfinite(price[i]):
        return math.inf, None
    numbers = (float(a[i]) for a in (v, np.broadcast_to(theta, v.shape), bound(steps)))
    return float(price[i]), Epoch(radius, int(i[1]), int(steps[i]), *numbers)


def with_levels(s: Setting, epoch: Epoch) -> Epoch:
    """The levels and probabilities of the cheapest call."""
    n = epoch.finest + 1
    norms = np.append(
        0.0, np.maximum(s.change, 1e-12 * s.accuracy / s.d0)[1:n]
    )  # none vanishes: see telescope.TINY
    apart = (np.cumsum(norms)[:, None] - np.cumsum(norms)) ** 2
    chain, p, _ = optimum(s.price[:n], apart, epoch.noise * s.mu / s.eta)
    return replace(epoch, levels=tuple(chain), probabilities=tuple(p.tolist()))
