"""The paper's exponents, bounds and constants, each one sympy expression that the reader sees and
the plan evaluates.

Names marked `executed` carry what running costs and the paper leaves out: the ceiling on the number
of steps, the rounding of delta to a level, two evaluations per increment and the coarsest level
drawn at every call.
"""

import math
from functools import cache

import sympy as sp

gamma, c, beta, mu, d0, eps, eta = sp.symbols("gamma c beta mu d_0 varepsilon eta", positive=True)
delta, sigma, T, n, first, nu, theta = sp.symbols("delta sigma T n k_min nu theta", positive=True)
# total: of RATIO^k over the levels past the coarsest, delta <= 2^-k <= sigma
total, injection = sp.symbols("Sigma_sigma J", positive=True)
t, horizon = sp.symbols("t T_c", nonnegative=True)
kappa = beta / mu

# the names that `value` takes
_NAMES = "gamma c beta mu d0 eps eta delta sigma T n first nu theta t horizon injection total"
SYMBOLS = {name: globals()[name] for name in _NAMES.split()}


@cache
def _function(expression):
    """The names of an expression's symbols, and the function of them that it is."""
    names = [name for name, symbol in SYMBOLS.items() if symbol in expression.free_symbols]
    return names, sp.lambdify([SYMBOLS[name] for name in names], expression, "math")


def value(expression, **numbers) -> float:
    """The number an expression takes; keywords are names in SYMBOLS (eps, d0, first, ...).

    Names that the expression does not contain are allowed: one set of numbers serves several.
    """
    names, function = _function(sp.sympify(expression))
    if missing := [name for name in names if name not in numbers]:
        raise TypeError(f"the formula needs {', '.join(names)}; missing: {', '.join(missing)}")
    try:
        number = float(function(*(numbers[name] for name in names)))
    except ValueError as error:  # a logarithm of what was rounded to zero
        raise FloatingPointError(str(error)) from error
    if not math.isfinite(number):
        raise FloatingPointError(f"the formula's value is {number}")
    return number


def values(table: dict, **numbers) -> dict:
    """The values of a table of formulas, each known to the next; T becomes a whole number."""
    found = {}
    for name, formula in table.items():
        number = value(formula, **numbers, **found)
        found[name] = math.ceil(number - 1e-9) if name == "T" else number
    return found


# --- the paper's Proposition 1: one call of the oracle ---

# of consecutive terms of the geometric sum: above one, one, or below one
RATIO = 2 ** (gamma / 2 - 1)
C_GAMMA = 9 / (1 - 1 / RATIO) ** 2
SCALE = {  # the C of p_k = min(C 2^{-(1+gamma/2) k}, 1) that makes the variance at most sigma^2
    "HTMC": 9 * delta ** (1 - gamma / 2) / ((1 - 1 / RATIO) * sigma**2),
    "MC": 9 * n / sigma**2,  # n levels lie between delta and sigma/3
    "ETMC": (9 / ((1 - RATIO) * sigma**2)) ** ((1 + gamma / 2) / 2),
}
# the paper's price of one call, up to a factor of gamma (HTMC: with the paper's factor)
CALL = {
    "HTMC": C_GAMMA * c**gamma * delta ** (2 - gamma) / sigma**2,
    "MC": c**2 / sigma**2 * sp.log(sigma / delta) ** 2,
    "ETMC": (c / sigma) ** gamma,
}
FIRST = (c * 2**first) ** gamma  # one evaluation of the coarsest level
PAIR = 1 + 2**-gamma  # an increment is two evaluations
_EASY = 1 + PAIR / (1 - RATIO)
# an upper bound of what is evaluated beyond the coarsest level; delta is a level's own
CALL_EXECUTED = {
    "HTMC": PAIR * C_GAMMA * c**gamma * delta ** (2 - gamma) / sigma**2,
    "MC": 9 * c**2 * n / sigma**2 * (1 + sp.Rational(5, 4) * n),
    "ETMC": _EASY * (3 * c / (sigma * sp.sqrt(1 - RATIO))) ** gamma,
}
# one call at any rate, up to a factor of gamma and the coarsest level
ORDER = c**gamma * total**2 / sigma**2
# the cheapest call, sigma >= delta; the lower side where levels are no better than promised
OPTIMUM = {"lower": (1 - 2**-gamma) * (FIRST + ORDER / 5), "upper": FIRST + 9 * PAIR * ORDER}

# --- the paper's Theorem 1: descent ---

CONVEX = {"T": 4 * d0**2 / (eta * eps), "delta": eps / (16 * d0), "sigma2": eps / (4 * eta)}
_NOISE = eta * (sigma**2 + 2 * delta**2)
CONVEX_BUDGET = {"horizon": d0**2 / (eta * T), "bias": 4 * delta * d0, "noise": _NOISE}
CONVEX_CEILING = sp.Rational(5, 4)  # ceil(x) <= 5x/4 once x >= 4, that is eta eps <= d0^2

STRONG = {
    "T": 4 / (eta * mu) * sp.log(256 * mu * d0**2 / eps),
    "delta": sp.sqrt(mu * eps) / 8,
    "sigma2": eps / (8 * eta),
}
STRONG_BUDGET = {
    "horizon": 2 * mu * d0**2 * (1 - eta * mu) ** T,
    "bias": 4 * delta * sp.sqrt(eps / mu),
    "noise": _NOISE,
}

LAMBDA = 16 ** (gamma - 1) * C_GAMMA
UPPER_CONVEX = LAMBDA * (c * d0 / eps) ** gamma
ROUNDING = PAIR * 2 ** (gamma - 2)  # of delta to a level, and two evaluations for an increment
LAMBDA_EXECUTED = 16 * CONVEX_CEILING * ROUNDING * 16 ** (gamma - 2) * C_GAMMA
_Z = beta * d0**2 / eps
# MC, ETMC: largest step, eps <= 4 beta d0^2.
EXECUTED_CONVEX = {
    "HTMC": LAMBDA_EXECUTED * (c * d0 / eps) ** gamma,
    "MC": sp.Rational(19845, 4) * (c * d0 / eps) ** 2 * sp.log(sp.E + _Z) ** 2,
    "ETMC": 20 * _EASY * _Z * (9 * c**2 / (beta * eps * (1 - RATIO))) ** (gamma / 2),
}
# The one condition of the descent theorems for gamma > 2: the coarsest level's probability is at
# least LEAST. With the closed form it is, for every step, up to these targets.
LEAST = 4 * beta * eta
_FIRST_SHARE = 2 ** (-(1 + gamma / 2) * first) / ((1 - 1 / RATIO) * beta)
RANGE_CONVEX = (9 * (16 * d0) ** (gamma / 2 - 1) * _FIRST_SHARE) ** (2 / gamma)
_FINER = (8 / sp.sqrt(mu)) ** (gamma / 2 - 1)
RANGE_STRONG = (18 * _FINER * _FIRST_SHARE) ** (4 / (gamma + 2))
_LOG = 1 + sp.log(mu * d0**2 / eps)
_GRADIENT = (c / sp.sqrt(mu * eps)) ** gamma  # one at the accuracy that strong convexity asks for
# at least STRONG["T"] rounded up
STRONG_STEPS = (32 * sp.log(2) + sp.Rational(1, 4)) / (eta * mu) * _LOG
_STEPS = 128 * sp.log(2) + 1
LAMBDA_PRIME_EXECUTED = ROUNDING * (2 * _STEPS) * 8 ** (gamma - 2) * C_GAMMA
# MC, ETMC: largest step.
EXECUTED_STRONG = {
    "HTMC": LAMBDA_PRIME_EXECUTED * _LOG * _GRADIENT,
    "MC": sp.Rational(81, 8) * _STEPS * _LOG * c**2 / (mu * eps) * sp.log(512 * kappa / 9, 2) ** 2,
    "ETMC": _STEPS * _EASY * (18 / (1 - RATIO)) ** (gamma / 2) * _LOG * _GRADIENT,
}
EXECUTED_STRONG["ETMC"] *= kappa ** (1 - gamma / 2)
FIXED_CONVEX = 16 ** (gamma + 1) * beta * c**gamma * d0 ** (gamma + 2) * eps ** -(gamma + 1)

# --- the paper's Proposition 2: the schedule ---

SCHEDULE = {
    "delta": sp.sqrt(mu * eps / 8) * sp.exp(mu * (horizon - t) / 8),
    "nu2": eps / 4 * sp.exp(mu * (horizon - t) / 4),
}
# In discrete time, from the one-step lemma with Young's inequality (half of mu): J = sum of the
# weights' shares times 2^block.
DISCRETE = {
    "delta2": 3 * eps * mu / (16 * injection * (1 + eta * mu)),
    "sigma2": 3 * eps / (8 * injection * eta),
}
DISCRETE_BUDGET = {
    "horizon": mu * d0**2 / 2 / ((1 - eta * mu / 2) ** -T - 1),
    "bias": (2 / mu + 2 * eta) * delta**2,
    "noise": eta * sigma**2,
}
LAMBDA_SECOND = 32 / gamma * 8 ** ((gamma - 2) / 2) * C_GAMMA
UPPER_SCHEDULE = LAMBDA_SECOND * _GRADIENT
# In discrete time: the bound of a run, within its range.
EXECUTED_DISCRETE = ROUNDING * C_GAMMA * 160 * sp.log(2) / (9 * (1 - 2 ** (-gamma / 2)))
EXECUTED_DISCRETE *= sp.Rational(10, 3) ** (gamma - 2) * _GRADIENT

# --- the paper's Theorem 2: the lower bound ---

LOWER_CONVEX = sp.Rational(3, 4) * (c * d0 / (8 * eps)) ** gamma
LOWER_STRONG = sp.Rational(3, 4) * (c / sp.sqrt(8 * mu * eps)) ** gamma

# --- acceleration ---
# The scheme that is run (similar triangles, weights alpha_t = eta t), with constants proved in the
# chapter: A_T = sum alpha, S_T = sum alpha^2, and the loss is at most 3 d0^2 / (2 A_T).
WEIGHT_SUM = eta * T * (T + 1) / 2
WEIGHT_SQUARES = eta**2 * T * (T + 1) * (2 * T + 1) / 6
SIMILAR = {
    "T": (sp.sqrt(1 + 12 * d0**2 / (eta * eps)) - 1) / 2,  # the root of A_T = 3 d0^2 / (2 eps)
    "delta": d0 / (4 * WEIGHT_SUM),
    "sigma2": d0**2 / (2 * WEIGHT_SQUARES) - delta**2,
}
STAGE_TARGET = mu * d0**2 / 4  # a stage that reaches it halves the squared distance
# Its price: SIMILAR_FACTOR (most steps of a stage) times ROUNDED (fewest) times (c d0/eps)^gamma,
# or times STAGE_SUM (c/sqrt(mu eps))^gamma where it restarts, and the coarsest level every time.
LAMBDA_SIMILAR = 6 * ROUNDING * 6 ** (gamma - 2) * C_GAMMA
SIMILAR_FACTOR = {
    "HTMC": LAMBDA_SIMILAR,
    "MC": sp.Rational(729, 32) * sp.log(112 * T / 9, 2) ** 2,
    "ETMC": _EASY * (54 / (1 - RATIO)) ** (gamma / 2) * T ** (1 - gamma / 2),
}
ROUNDED = ((T + 1) / (T - 1)) ** gamma
STAGE_SUM = 2**gamma * (1 + 1 / (1 - 2 ** (-gamma / 2)))
SIMILAR_STEPS = 1 + sp.sqrt(3 * d0**2 / (eta * eps))
STAGE_STEPS = 1 + sp.sqrt(12 / (eta * mu))

# --- what plans take from it ---


def prescribed(method: str, d0: float, mu: float, eta: float, eps: float) -> dict:
    """Stages (T, delta, sigma), error budget, averaging and guarantee of a method, in numbers."""
    known = {"d0": d0, "mu": mu, "eta": eta, "eps": eps}
    if method in ("accelerated", "scheduled"):
        return (_similar_triangles if method == "accelerated" else _proposition_2)(**known)
    strong = mu > 0 and eps <= mu * d0**2
    steps, bias, noise2 = values(STRONG if strong else CONVEX, **known).values()
    noise = 0.0 if method == "fixed" else math.sqrt(noise2)
    known |= {"T": steps, "delta": bias, "sigma": noise}
    return {
        "stages": [(steps, bias, noise)],
        "budget": values(STRONG_BUDGET if strong else CONVEX_BUDGET, **known),
        "growth": 1 / (1 - eta * mu) if strong else 1.0,
        "guarantee": f"the paper's Theorem 1({'b' if strong else 'a'})",
    }


def _similar_triangles(d0: float, mu: float, eta: float, eps: float) -> dict:
    """Loss at most 3 R^2 / (2 A_T) from distance R; with mu, restarted at halved R^2."""
    stages, target = [], math.inf
    while target > eps:
        target = value(STAGE_TARGET, mu=mu, d0=d0)
        steps, bias, noise2 = values(SIMILAR, d0=d0, eta=eta, eps=max(target, eps)).values()
        stages.append((steps, bias, math.sqrt(noise2)))
        third, d0 = 2 * d0 * bias, d0 / math.sqrt(2)  # R^2 / (2 A_T): each of the three terms
    budget = dict.fromkeys(("horizon", "bias", "noise"), third)
    said = "similar triangles, constants proved in the book"
    return {"stages": stages, "budget": budget, "window": 1, "guarantee": said}


def _proposition_2(d0: float, mu: float, eta: float, eps: float) -> dict:
    """In discrete time: weights rho^-t; a block of steps earlier, delta^2 and sigma^2 double."""
    rate = -math.log1p(-eta * mu / 2)  # rho = e^-rate
    steps = max(1, math.ceil(math.log1p(2 * mu * d0**2 / eps) / rate - 1e-9))
    block = max(1, math.floor(2 * math.log(2) / rate))
    counts = [min(block, steps - ago) for ago in range(0, steps, block)]  # from the end
    share = [math.exp(-rate * block * i) * math.expm1(-rate * n) for i, n in enumerate(counts)]
    worst = sum(s * 2**i for i, s in enumerate(share)) / math.expm1(-rate * steps)
    at = values(DISCRETE, mu=mu, eta=eta, eps=eps, injection=worst).values()
    stages = [(n, *(math.sqrt(x * 2.0**i) for x in at)) for i, n in enumerate(counts)]
    # the formula's own horizon cancels where rate * steps is tiny
    budget = {"horizon": mu * d0**2 / 2 / math.expm1(steps * rate)}
    budget |= dict.fromkeys(("bias", "noise"), 3 * eps / 8)  # delta and sigma are such
    said = "the paper's Proposition 2 in discrete time, proved in the book"
    growth = 1 / (1 - eta * mu / 2)
    return {"stages": stages[::-1], "budget": budget, "growth": growth, "guarantee": said}
