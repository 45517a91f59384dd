"""The theorem on anchored descent (ours): its constants as sympy expressions, and its epochs as numbers.

Levels k >= k0 with error at most 2^-k, price (c 2^k)^gamma and increments of Lipschitz constant l 2^-k; the step is 1/beta. The
free numbers are q (how much an epoch shrinks the distance), x (what the last epoch leaves to noise and horizon) and rho0 (how far
from the minimizer the last epoch begins, in units of sqrt(eps/mu)).
"""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import sympy as sp

from mlgd.formulas import c, eps, eta, gamma, mu
from mlgd.hierarchy import Hierarchy

from .anchors import epoch_price
from .epochs import Epoch, Setting

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
MIDDLE_SHARE = (
    16 * PAIR * SUM * MIDDLE_STEPS * l**2 * R**2
)  # gamma > 2: sampled part over the reference's price
LAST_SHARE = 32 * PAIR * SUM * LAST_STEPS * rho**2 / x * l**2 * eps / mu
EARLIER = (4 / rho) ** gamma / (
    1 - q**gamma
)  # all earlier references, over the last one; rho is rho0


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
        numbers = {
            "mu": s.mu,
            "eta": s.eta,
            "eps": s.eps,
            "q": q,
            "x": x,
            "R": far * q**j,
            "rho": far * q**j / unit,
        }
        parts = {
            name: value(form, **numbers) for name, form in (LAST if j == count else EPOCH).items()
        }
        finest = int(np.argmax(s.accuracy <= parts["delta"]))
        epoch = Epoch(
            far * q**j,
            finest,
            math.ceil(parts["steps"] - 1e-9),
            parts["v"],
            1 - x if j == count else 1.0,
        )
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
    pairs = (
        2 * (1 + 2.0**-gamma) * scale * slope**2 * _sum(s, gamma, epoch.finest, first) ** 2 / noise
    )
    return float(s.price[first] + pairs)


def price_bound(s: Setting, gamma: float, plan: list[Epoch]) -> float:
    """The theorem's price: sum over the epochs of one fine gradient and the steps."""
    return float(
        sum(s.price[e.finest] + e.steps * call_bound(s, gamma, e, e.levels[0]) for e in plan)
    )


def _closed_form(s: Setting, gamma: float, epoch: Epoch, first: int) -> dict:
    """p_k = min(1, C 2^{-(1+gamma/2)k}) with C = l^2 S/s^2."""
    chosen = tuple(range(first, epoch.finest + 1))
    slope, noise = float(s.change[0] / s.accuracy[0]), epoch.noise * s.mu / s.eta
    scale = slope**2 * _sum(s, gamma, epoch.finest, first) / noise
    p = np.minimum(
        1.0, np.maximum(scale * s.accuracy[first + 1 : epoch.finest + 1] ** (1 + gamma / 2), 1e-300)
    )
    return {"levels": chosen, "probabilities": (1.0, *p.tolist())}


def ladder(s: Setting) -> Hierarchy:
    """The setting's levels as prices, with nothing to evaluate."""
    return Hierarchy(
        lambda k, y: y, lambda k: s.price[k], range(s.price.size), lambda k: s.accuracy[k]
    )


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
                        epoch = Epoch(
                            radii[i], finest, steps, w, levels=(first, finest), reached=radii[j]
                        )
                        options.append((cost + best[j][0], [epoch, *best[j][1]]))
        if options:
            best[i] = min(options, key=lambda option: option[0])
    return best[0][1] if 0 in best else None


def corrected_price(s: Setting) -> float:
    """Its price: one fine gradient per epoch and a look at the base per step."""
    return float(
        sum(s.price[e.finest] + e.steps * s.price[e.levels[0]] for e in corrected_epochs(s))
    )


def _corrected_last(s: Setting, radius: float, finest: int, first: int, w: float) -> list:
    off = float(s.accuracy[finest]) + 2 * w * s.mu * radius
    least = off**2 / (2 * s.mu * s.eps)
    out = []
    for theta in least + (1 - least) * np.array([0.5, 0.8, 0.95]) if least < 1 else ():
        need = s.mu * (1 - theta) * radius**2 / (2 * (s.eps - off**2 / (2 * s.mu * theta)))
        steps = max(
            1, math.ceil(math.log1p(need) / (math.log1p(-s.h * theta) - math.log1p(-s.h)) - 1e-9)
        )
        epoch = Epoch(radius, finest, steps, w, theta, levels=(first, finest), reached=s.eps)
        out.append((s.price[finest] + steps * s.price[first], [epoch]))
    return out
