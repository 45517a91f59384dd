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
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .ladders import optimum
from .moments import worst
from .oracle import bridges

SHARES = (0.2, 0.5, 0.8)  # how much of what the bias leaves may be noise
AVERAGES = np.array([0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995])  # theta, the bias's share, as far as it may go


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
        return 2 / self.eta * float(worst(self.beta, self.mu, self.eta, np.ones(1), many).noise[0, 0])


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


def contraction(h: float, b: float, v: float, steps: int) -> float:
    """The bound of the distance after so many steps, over the distance at the reference."""
    if b * b + 4 * v > 1:
        return math.inf
    squares = (1 - h * (1 - 2 * v)) ** steps + (b * b + 2 * v) / (1 - 2 * v)
    return min(1.0, math.sqrt(squares), (1 - h) ** steps * (1 - b) + b + 2 * math.sqrt(v / (2 - h)))


def steps_to(h: float, b: float, v: float, q: float) -> float:
    """The least number of steps after which `contraction` is at most q; infinite where there is none."""
    if b * b + 4 * v > 1 or q <= b:
        return math.inf
    least = math.inf
    left = q * q - (b * b + 2 * v) / (1 - 2 * v)
    if left > 0:
        least = _power(left, 1 - h * (1 - 2 * v))
    left = (q - b - 2 * math.sqrt(v / (2 - h))) / (1 - b)
    if left > 0:
        least = min(least, _power(left, 1 - h))
    return max(1.0, least)


def _power(target: float, base: float) -> float:
    """The least t with base^t <= target."""
    if target >= 1:
        return 1.0
    return math.ceil(math.log(target) / math.log(base) - 1e-9) if base > 0 else 1.0


def average_loss(s: Setting, radius: float, delta: float, v: float, steps: int, theta: float) -> float:
    """The bound of the mean loss of the average."""
    b = delta / (s.mu * radius)
    if b * b + 4 * v > 1:
        return math.inf
    if s.h == 1:
        horizon = 0.0
    elif theta == 1:
        horizon = (1 - s.h) * radius**2 / (2 * s.eta * steps)
    else:
        growth = steps * (math.log1p(-s.h * theta) - math.log1p(-s.h))
        horizon = s.mu * (1 - theta) * radius**2 / (2 * math.expm1(growth)) if growth < 700 else 0.0
    return horizon + delta**2 / (2 * s.mu * theta) + 4 * v * s.mu * radius**2


def last_loss(s: Setting, radius: float, delta: float, v: float, steps: int) -> float:
    """The bound of the mean loss of the last point, for quadratics."""
    b = delta / (s.mu * radius)
    if b * b + 4 * v > 1:
        return math.inf
    flat = min(max(s.beta / (2 * steps + 1), s.mu), s.beta)  # where sqrt(lambda) (1 - lambda/beta)^t is largest
    horizon = math.sqrt(flat / 2) * (1 - flat / s.beta) ** steps * radius
    return (horizon + delta / math.sqrt(2 * s.mu) + radius * math.sqrt(2 * v * s.mu * s.turning)) ** 2


class Calls:
    """The least mean price of a call with finest level K and s^2 = variance: quick, by water-filling on a run of levels."""

    def __init__(self, s: Setting):
        pairs = s.price + np.where(s.shared, 0.0, np.append(0.0, s.price[:-1]))
        root, square = s.change * np.sqrt(pairs), s.change**2
        self.price = s.price
        self.first = np.append(s.change[1:] / np.sqrt(pairs[1:]), 0.0)  # the largest p over its scale
        self.root = np.cumsum(np.append(0.0, root[1:]))
        self.square = np.cumsum(np.append(0.0, square[1:]))

    def __call__(self, finest: int, variance: float) -> float:
        n = finest + 1
        root, square = self.root[finest] - self.root[:n], self.square[finest] - self.square[:n]
        scale = root / (variance + square + 1e-300)
        return float((self.price[:n] + np.where(scale * self.first[:n] <= 1, root * scale, np.inf)).min())


def cheapest(s: Setting) -> tuple[Epoch, ...] | None:
    """The cheapest epochs that end with loss at most eps, radii falling by powers of two; None if the ladder can't."""
    calls = Calls(s)
    count = max(1, math.floor(math.log2(max(2.0, s.d0 / math.sqrt(s.eps / s.mu)))) + 1)
    radii = [s.d0 * 2.0**-i for i in range(count)]
    best: dict[int, tuple[float, tuple[Epoch, ...]]] = {}
    for i in reversed(range(count)):
        price, epoch = _last(s, calls, radii[i])
        options = [(price, (epoch,))] if epoch else []
        for j in range(i + 1, count):
            if j in best:
                price, epoch = _middle(s, calls, radii[i], radii[j])
                if epoch:
                    options.append((price + best[j][0], (epoch, *best[j][1])))
        if options:
            best[i] = min(options, key=lambda option: option[0])
    if 0 not in best:
        return None
    return tuple(with_levels(s, epoch) for epoch in best[0][1])


def _middle(s: Setting, calls: Calls, radius: float, goal: float):
    """The cheapest epoch from one radius to a smaller one."""
    q, found, best = goal / radius, None, math.inf
    for ratio in (0.9, 0.7, 0.45, 0.2):
        finest = int(np.argmax(s.accuracy <= ratio * q * s.mu * radius))
        b = s.accuracy[finest] / (s.mu * radius)
        if b > ratio * q:
            break
        for share in SHARES:
            for v in (share * (q * q - b * b) / 2, (share * (q - b) / 2) ** 2 * (2 - s.h)):
                v = min(v, (1 - b * b) / 4)
                steps = steps_to(s.h, b, v, q)
                price = s.price[finest] + steps * calls(finest, v * s.mu / s.eta)
                if price < best:
                    best, found = price, Epoch(radius, finest, int(steps), v, reached=goal)
    return best, found


def _last(s: Setting, calls: Calls, radius: float):
    """The cheapest epoch from a radius to loss eps."""
    found, best = None, math.inf
    for finest in range(s.price.size):
        delta = float(s.accuracy[finest])
        b = delta / (s.mu * radius)
        if delta**2 / (2 * s.mu) >= 0.999 * s.eps or b >= 1:
            continue
        for share in SHARES:
            for v, theta, steps in _shares(s, radius, delta, share):
                v = min(v, (1 - b * b) / 4)
                price = s.price[finest] + steps * calls(finest, v * s.mu / s.eta)
                if price < best:
                    best, found = price, Epoch(radius, finest, int(steps), v, theta)
        if s.price[min(finest + 1, s.price.size - 1)] > best:
            break
    return best, found


def _shares(s: Setting, radius: float, delta: float, share: float):
    """Ways to split eps between bias, noise and horizon: (v, theta, steps)."""
    if not s.averaged:
        left = math.sqrt(s.eps) - delta / math.sqrt(2 * s.mu)
        v = (share * left / radius) ** 2 / (2 * s.mu * s.turning)
        goal = (1 - share) * left * math.sqrt(2 / s.mu) / radius
        steps = max(_power(goal, 1 - s.h), math.ceil((s.beta / s.mu - 1) / 2)) if goal < 1 else 1.0
        return [(v, 1.0, max(1.0, steps))]
    least = delta**2 / (2 * s.mu * s.eps)  # what theta must exceed
    out = []
    for theta in least + (1 - least) * AVERAGES:
        left = s.eps - delta**2 / (2 * s.mu * theta)
        v = share * left / (4 * s.mu * radius**2)
        need = s.mu * (1 - theta) * radius**2 / (2 * (1 - share) * left)
        rate = math.log1p(-s.h * theta) - math.log1p(-s.h) if s.h < 1 else math.inf
        out.append((v, theta, max(1.0, math.ceil(math.log1p(need) / rate - 1e-9))))
    return out


def with_levels(s: Setting, epoch: Epoch) -> Epoch:
    """The levels and probabilities of the cheapest call, and the bound of what the epoch reaches."""
    n = epoch.finest + 1
    norms = np.append(0.0, np.maximum(s.change, 1e-12 * s.accuracy / s.d0)[1:n])  # none vanishes: see ladders.TINY
    variance = epoch.noise * s.mu / s.eta
    chain, p, _ = optimum(s.price[:n], bridges(norms) ** 2, variance, s.shared[:n])
    delta, radius, steps = float(s.accuracy[epoch.finest]), epoch.radius, epoch.steps
    if not math.isnan(epoch.reached):
        reached = radius * contraction(s.h, delta / (s.mu * radius), epoch.noise, steps)
    elif s.averaged:
        reached = average_loss(s, radius, delta, epoch.noise, steps, epoch.theta)
    else:
        reached = last_loss(s, radius, delta, epoch.noise, steps)
    return replace(epoch, reached=reached, levels=tuple(chain), probabilities=tuple(p.tolist()))
