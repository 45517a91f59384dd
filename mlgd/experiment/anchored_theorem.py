"""The theorem on anchored descent (ours): its constants as sympy expressions, its epochs as numbers, and exact runs against it.

Levels k >= k0 with error at most 2^-k, price (c 2^k)^gamma and increments of Lipschitz constant l 2^-k; the step is 1/beta. The
free numbers are q (how much an epoch shrinks the distance), x (what the last epoch leaves to noise and horizon) and rho0 (how far
from the minimizer the last epoch begins, in units of sqrt(eps/mu)).
"""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import sympy as sp

from mlgd.anchors import epoch_price
from mlgd.epochs import Epoch, Setting
from mlgd.formulas import c, eps, eta, gamma, mu
from mlgd.hierarchy import Hierarchy

from .linear_errors import Moments

q, x, rho, R, l = sp.symbols("q x rho R l", positive=True)  # noqa: E741 - the chapter's name
S, steps, base = sp.symbols("S m k_1", positive=True)

EPOCH = {  # an epoch that takes the root mean square distance from R to q R
    "delta": q * mu * R / sp.sqrt(2),
    "v": q**2 / 16,
    "steps": 2 * sp.log(2 / q) / (eta * mu * (1 - q**2 / 8)),
}
LAST = {  # the last one, from distance rho sqrt(eps/mu) to mean loss eps
    "delta": (1 - x) * sp.sqrt(2 * mu * eps),
    "v": x / (8 * rho**2),
    "steps": sp.log(1 + rho**2) / (eta * mu * x),
}
PAIR = 1 + 2**-gamma
SAMPLED = (
    2 * PAIR * c**gamma * l**2 * S**2
)  # of one call, over s^2; twice, for what is evaluated at the reference on the way
SUM = (1 - 2 ** (1 - gamma / 2)) ** -2  # gamma > 2: S^2 is at most this times 2^{(gamma-2)K}
MIDDLE_STEPS = 2 * sp.log(2 / q) / (1 - q**2 / 8) + 1  # in units of kappa
LAST_STEPS = sp.log(1 + rho**2) / x + 1
MIDDLE_SHARE = 16 * PAIR * SUM * MIDDLE_STEPS * l**2 * R**2  # gamma > 2: sampled part over the reference's price
LAST_SHARE = 32 * PAIR * SUM * LAST_STEPS * rho**2 / x * l**2 * eps / mu
EARLIER = (4 / rho) ** gamma / (1 - q**gamma)  # all earlier references, over the last one; rho is rho0


@cache
def _function(expression):
    symbols = sorted(expression.free_symbols, key=str)
    return [str(s) for s in symbols], sp.lambdify(symbols, expression, "math")


def value(expression, **numbers) -> float:
    """The number an expression takes; keywords are the symbols' ASCII names."""
    names, function = _function(expression)
    known = {"varepsilon" if name == "eps" else name: number for name, number in numbers.items()}
    return float(function(*(known[name] for name in names)))


def dyadic(beta, mu, d0, eps, gamma, c, l, first, levels=60) -> Setting:  # noqa: E741
    """The theorem's ladder."""
    k = np.arange(first, first + levels, dtype=float)
    price = (c * 2.0**k) ** gamma
    return Setting(beta, mu, d0, eps, price, 2.0**-k, l * 2.0**-k, np.zeros(levels, bool))


def epochs(s: Setting, gamma: float, q: float, x: float, rho0: float) -> list[Epoch]:
    """The theorem's epochs on a dyadic ladder, with its closed-form probabilities; the base is the one its price is least with."""
    unit = math.sqrt(s.eps / s.mu)
    far = max(s.d0, rho0 * unit)
    count = math.floor(math.log(far / (rho0 * unit)) / math.log(1 / q) + 1e-12)
    out = []
    for j in range(count + 1):
        numbers = {"mu": s.mu, "eta": s.eta, "eps": s.eps, "q": q, "x": x, "R": far * q**j, "rho": far * q**j / unit}
        parts = {name: value(form, **numbers) for name, form in (LAST if j == count else EPOCH).items()}
        finest = int(np.argmax(s.accuracy <= parts["delta"]))
        epoch = Epoch(far * q**j, finest, math.ceil(parts["steps"] - 1e-9), parts["v"], 1 - x if j == count else 1.0)
        reached = s.eps if j == count else far * q ** (j + 1)
        first = min(range(finest + 1), key=lambda k, e=epoch: call_bound(s, gamma, e, k))
        out.append(replace(epoch, reached=reached, **_closed_form(s, gamma, epoch, first)))
    return out


def _sum(s: Setting, gamma: float, finest: int, first: int) -> float:
    levels = -np.log2(s.accuracy[first + 1 : finest + 1])
    return float((2.0 ** ((gamma / 2 - 1) * levels)).sum())


def call_bound(s: Setting, gamma: float, epoch: Epoch, first: int) -> float:
    """The theorem's price of one step, everything at the reference but its finest level included."""
    scale = s.price[0] * s.accuracy[0] ** gamma  # c^gamma
    slope = float(s.change[0] / s.accuracy[0])
    noise = epoch.noise * s.mu / s.eta
    pairs = 2 * (1 + 2.0**-gamma) * scale * slope**2 * _sum(s, gamma, epoch.finest, first) ** 2 / noise
    return float(s.price[first] + pairs)


def price_bound(s: Setting, gamma: float, plan: list[Epoch]) -> float:
    """The theorem's price: sum over the epochs of one fine gradient and the steps."""
    return float(sum(s.price[e.finest] + e.steps * call_bound(s, gamma, e, e.levels[0]) for e in plan))


def _closed_form(s: Setting, gamma: float, epoch: Epoch, first: int) -> dict:
    """p_k = min(1, C 2^{-(1+gamma/2)k}) with C = l^2 S/s^2."""
    chosen = tuple(range(first, epoch.finest + 1))
    slope, noise = float(s.change[0] / s.accuracy[0]), epoch.noise * s.mu / s.eta
    scale = slope**2 * _sum(s, gamma, epoch.finest, first) / noise
    p = np.minimum(1.0, np.maximum(scale * s.accuracy[first + 1 : epoch.finest + 1] ** (1 + gamma / 2), 1e-300))
    return {"levels": chosen, "probabilities": (1.0, *p.tolist())}


def ladder(s: Setting) -> Hierarchy:
    """The setting's levels as prices, with nothing to evaluate."""
    return Hierarchy(lambda k, y: y, lambda k: s.price[k], range(s.price.size), lambda k: s.accuracy[k])


def price(s: Setting, plan) -> float:
    """The exact mean price of a run of these epochs."""
    h = ladder(s)
    return sum(epoch_price(h, e.levels, e.probabilities, e.steps) for e in plan)


def one_gradient(s: Setting) -> float:
    """The price of the coarsest level of accuracy sqrt(2 mu eps)."""
    return float(s.price[np.argmax(s.accuracy <= math.sqrt(2 * s.mu * s.eps))])


# --- the deterministic counterpart: the samples left out --------------------------------------------------------------


def corrected_epochs(s: Setting) -> list[Epoch] | None:
    """The cheapest epochs that look at a base level and never sample: w = Lambda/mu takes the place of the noise.

    Distance after t steps over R: (1 - h(1-w))^t + (b+w)/(1-w); loss: as with noise, with the error delta + 2 Lambda R.
    """
    count = max(1, math.floor(math.log2(max(2.0, s.d0 / math.sqrt(s.eps / s.mu)))) + 40)
    radii = [s.d0 * 2.0**-i for i in range(count)]
    tail = np.cumsum(np.append(0.0, s.change[1:]))
    best: dict[int, tuple[float, list[Epoch]]] = {}
    for i in reversed(range(count)):
        options = []
        for finest in range(s.price.size):
            b = s.accuracy[finest] / (s.mu * radii[i])
            for first in range(finest + 1):
                w = (tail[finest] - tail[first]) / s.mu
                if b + 2 * w >= 1:
                    continue
                options += _corrected_last(s, radii[i], finest, first, w)
                for j in range(i + 1, min(i + 5, count)):
                    left = radii[j] / radii[i] - (b + w) / (1 - w)
                    if left > 0 and j in best:
                        steps = max(1, math.ceil(math.log(left) / math.log1p(-s.h * (1 - w))))
                        cost = s.price[finest] + steps * s.price[first]
                        epoch = Epoch(radii[i], finest, steps, w, levels=(first, finest), reached=radii[j])
                        options.append((cost + best[j][0], [epoch, *best[j][1]]))
        if options:
            best[i] = min(options, key=lambda option: option[0])
    return best[0][1] if 0 in best else None


def corrected_price(s: Setting) -> float:
    """Its price: one fine gradient per epoch and a look at the base per step."""
    return float(sum(s.price[e.finest] + e.steps * s.price[e.levels[0]] for e in corrected_epochs(s)))


def _corrected_last(s: Setting, radius: float, finest: int, first: int, w: float) -> list:
    off = float(s.accuracy[finest]) + 2 * w * s.mu * radius
    least = off**2 / (2 * s.mu * s.eps)
    out = []
    for theta in least + (1 - least) * np.array([0.5, 0.8, 0.95]) if least < 1 else ():
        need = s.mu * (1 - theta) * radius**2 / (2 * (s.eps - off**2 / (2 * s.mu * theta)))
        steps = max(1, math.ceil(math.log1p(need) / (math.log1p(-s.h * theta) - math.log1p(-s.h)) - 1e-9))
        epoch = Epoch(radius, finest, steps, w, theta, levels=(first, finest), reached=s.eps)
        out.append((s.price[finest] + steps * s.price[first], [epoch]))
    return out


# --- exact runs, in a few dimensions and however many steps -----------------------------------------------------------


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
        noise[:d, :d] = noise[d : 2 * d, :d] = s.eta * sum(slopes[i] for i in range(above + 1, k + 1))
        operator += (1 / p - 1) * np.kron(noise, noise)
    begin = np.zeros((n, n))
    begin[2 * d : 3 * d, 2 * d : 3 * d] = start.second
    begin[2 * d : 3 * d, -1] = begin[-1, 2 * d : 3 * d] = start.mean
    begin[-1, -1] = 1.0
    end = (np.linalg.matrix_power(operator, epoch.steps) @ begin.ravel()).reshape(n, n)
    mass = sum_of_powers(1 / growth, epoch.steps)
    last = end[:d, :d] + end[:d, 2 * d : 3 * d] + end[2 * d : 3 * d, :d] + end[2 * d : 3 * d, 2 * d : 3 * d]
    average = end[d : 2 * d, d : 2 * d] / mass**2
    return Moments(end[:d, -1] + end[2 * d : 3 * d, -1], last), Moments(end[d : 2 * d, -1] / mass, average)


def sum_of_powers(ratio: float, count: int) -> float:
    """1 + ratio + ... + ratio^(count-1)."""
    return float(count) if ratio == 1 else -math.expm1(count * math.log(ratio)) / (1 - ratio)


def worst(s: Setting, plan, rng, flat: bool = False, most: int = 3, sampled: bool = True) -> tuple[float, float]:
    """The largest distance over its bound, and the loss over eps, on one random quadratic with linear errors of the class.

    `flat`: start, error and noise all in the flattest direction, the error constant: the extreme of the class. `most`
    dimensions; without `sampled` the change of the increments since the reference is left out, the corrected coarse model.
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
        )  # the distance stays below the radius, and so the error
        slopes = {k: s.change[k] * (_orthogonal(rng, d) if not flat else np.eye(d)) for k in range(1, epoch.finest + 1)}
        last, average = exact_epoch(
            s, epoch, now, spectrum, np.diag(spectrum) + slope, (1 - share) * error * side, slopes
        )
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

    Every other set is the flat extreme. With `stretch` the errors are that many times what the levels declare.
    """
    rng = np.random.default_rng([seed, 13])
    numbers = random_parameters(rng)
    first = math.floor(-math.log2(numbers["mu"] * numbers["d0"])) - 1
    s = dyadic(**numbers, first=first, levels=40)
    plan = epochs(s, numbers["gamma"], rng.uniform(0.05, 0.5), rng.uniform(0.02, 0.5), rng.uniform(2, 20))
    reached = worst(replace(s, accuracy=stretch * s.accuracy), plan, rng, flat=seed % 2 == 0, most=2)
    return *reached, price(s, plan) / price_bound(s, numbers["gamma"], plan)
