"""The paper's exponents, bounds and constants, each one sympy expression that the reader sees and
the plan evaluates.

A name in capitals is such an expression, or a table of them by regime ('HTMC': gamma > 2, 'MC':
gamma = 2, 'ETMC': gamma < 2) or by what it is a formula for. `value` and `values` evaluate them,
`prescribed` makes of them what a method runs. The sections follow the paper: one call of the
oracle, descent, the schedule, the lower bound; acceleration is the book's own.

Names marked `executed` carry what running costs and the paper leaves out: the ceiling on the number
of steps, the rounding of delta to a level, two evaluations per increment and the coarsest level
drawn at every call.
"""

import math
from functools import cache

import sympy as sp


def _positive(name: str) -> sp.Symbol:
    return sp.Symbol(name, positive=True)


gamma = _positive("gamma")  # a gradient of accuracy a costs (c/a)^gamma
c = _positive("c")
beta = _positive("beta")  # smoothness
mu = _positive("mu")  # strong convexity
d0 = _positive("d_0")  # from the start to a minimizer
eps = _positive("varepsilon")  # the target
eta = _positive("eta")  # the step
delta = _positive("delta")  # bias of the oracle
sigma = _positive("sigma")  # its noise
T = _positive("T")  # steps
n = _positive("n")  # levels between delta and sigma/3
first = _positive("k_min")  # the coarsest level
nu = _positive("nu")  # noise of the schedule, per unit of time
theta = _positive("theta")
# of RATIO^k over the levels past the coarsest, delta <= 2^-k <= sigma
total = _positive("Sigma_sigma")
injection = _positive("J")  # of bias and noise, by all blocks of a schedule
t = sp.Symbol("t", nonnegative=True)
horizon = sp.Symbol("T_c", nonnegative=True)
kappa = beta / mu

# the names that `value` takes
SYMBOLS = {
    "gamma": gamma,
    "c": c,
    "beta": beta,
    "mu": mu,
    "d0": d0,
    "eps": eps,
    "eta": eta,
    "delta": delta,
    "sigma": sigma,
    "T": T,
    "n": n,
    "first": first,
    "nu": nu,
    "theta": theta,
    "t": t,
    "horizon": horizon,
    "injection": injection,
    "total": total,
}


@cache
def _function(expression):
    """The names of an expression's symbols, and the function of them that it is."""
    free = expression.free_symbols
    names = [name for name, symbol in SYMBOLS.items() if symbol in free]
    symbols = [SYMBOLS[name] for name in names]
    return names, sp.lambdify(symbols, expression, "math")


def value(expression, **numbers) -> float:
    """The number an expression takes; keywords are names in SYMBOLS (eps, d0, first, ...).

    Names that the expression does not contain are allowed: one set of numbers serves several.
    """
    names, function = _function(sp.sympify(expression))
    missing = [name for name in names if name not in numbers]
    if missing:
        needed = ", ".join(names)
        raise TypeError(f"the formula needs {needed}; missing: {', '.join(missing)}")
    arguments = [numbers[name] for name in names]
    try:
        return _finite(float(function(*arguments)))
    except ValueError as error:  # the logarithm of what was rounded to zero
        raise FloatingPointError(str(error)) from error


def values(table: dict, **numbers) -> dict:
    """The values of a table of formulas, each known to the next; T becomes a whole number."""
    found = {}
    for name, formula in table.items():
        number = value(formula, **numbers, **found)
        if name == "T":
            number = _ceiling(number)
        found[name] = number
    return found


def _finite(number: float) -> float:
    """The number, if the range of floats held all that it was made of."""
    if not math.isfinite(number):
        raise FloatingPointError(f"a formula's value is {number}")
    return number


def _ceiling(number: float) -> int:
    """A whole number of steps; what is above one by rounding alone is that one."""
    return math.ceil(number - 1e-9)


def _root(number: float) -> float:
    """The square root of what is positive, but for rounding."""
    if not number >= 0:
        raise FloatingPointError(f"a square is {number}")
    return math.sqrt(number)


def _by_regime(harder, at, easier) -> dict:
    """One formula for each regime: harder than Monte Carlo, gamma > 2, at it, easier."""
    return {"HTMC": harder, "MC": at, "ETMC": easier}


def _call(steps, bias, variance) -> dict:
    """How many calls a theorem makes, of which bias and variance."""
    return {"T": steps, "delta": bias, "sigma2": variance}


def _budget(horizon, bias, noise) -> dict:
    """What the three errors cost in loss."""
    return {"horizon": horizon, "bias": bias, "noise": noise}


# --- the paper's Proposition 1: one call of the oracle ---

_half = gamma / 2
# of consecutive terms of the geometric sum: above one, one, or below one
RATIO = 2 ** (_half - 1)
# one over the sum: from its fine end, where gamma > 2, and from its coarse end, where gamma < 2
_FROM_FINE = 1 - 1 / RATIO
_FROM_COARSE = 1 - RATIO
C_GAMMA = 9 / _FROM_FINE**2

# the C of p_k = min(C 2^{-(1+gamma/2) k}, 1) that makes the variance at most sigma^2
_harder = 9 * delta ** (1 - _half) / (_FROM_FINE * sigma**2)
_at = 9 * n / sigma**2
_easier = (9 / (_FROM_COARSE * sigma**2)) ** ((1 + _half) / 2)
SCALE = _by_regime(_harder, _at, _easier)

# the paper's price of one call, up to a factor of gamma (HTMC: with the paper's factor)
_harder = C_GAMMA * c**gamma * delta ** (2 - gamma) / sigma**2
_at = c**2 / sigma**2 * sp.log(sigma / delta) ** 2
_easier = (c / sigma) ** gamma
CALL = _by_regime(_harder, _at, _easier)

# one evaluation of the coarsest level
FIRST = (c * 2**first) ** gamma
# an increment is two evaluations
PAIR = 1 + 2**-gamma
_EASY = 1 + PAIR / _FROM_COARSE

# an upper bound of what is evaluated beyond the coarsest level; delta is a level's own
_harder = PAIR * C_GAMMA * c**gamma * delta ** (2 - gamma) / sigma**2
_evaluations = 1 + sp.Rational(5, 4) * n
_at = 9 * c**2 * n / sigma**2 * _evaluations
_easier = _EASY * (3 * c / (sigma * sp.sqrt(_FROM_COARSE))) ** gamma
CALL_EXECUTED = _by_regime(_harder, _at, _easier)

# one call at any rate, up to a factor of gamma and the coarsest level
ORDER = c**gamma * total**2 / sigma**2
# the cheapest call, sigma >= delta; the lower side where levels are no better than promised
_lower = (1 - 2**-gamma) * (FIRST + ORDER / 5)
_upper = FIRST + 9 * PAIR * ORDER
OPTIMUM = {"lower": _lower, "upper": _upper}

# --- the paper's Theorem 1: descent ---

# the number of steps that any plain descent needs, up to a factor
_PLAIN = d0**2 / (eta * eps)
# what strong convexity makes of the target
_RELATIVE = mu * d0**2 / eps

# part (a), convex losses
_steps = 4 * _PLAIN
_bias = eps / (16 * d0)
_variance = eps / (4 * eta)
CONVEX = _call(_steps, _bias, _variance)

_NOISE = eta * (sigma**2 + 2 * delta**2)
_horizon = d0**2 / (eta * T)
_bias = 4 * delta * d0
CONVEX_BUDGET = _budget(_horizon, _bias, _NOISE)
# of rounding up: ceil(x) <= 5x/4 once x >= 4, that is eta eps <= d0^2
CONVEX_CEILING = sp.Rational(5, 4)

# part (b), strongly convex losses
_steps = 4 / (eta * mu) * sp.log(256 * _RELATIVE)
_bias = sp.sqrt(mu * eps) / 8
_variance = eps / (8 * eta)
STRONG = _call(_steps, _bias, _variance)

_horizon = 2 * mu * d0**2 * (1 - eta * mu) ** T
_bias = 4 * delta * sp.sqrt(eps / mu)
STRONG_BUDGET = _budget(_horizon, _bias, _NOISE)

# a gradient of accuracy eps/d0, and one of the accuracy that strong convexity asks for
_FINE = c * d0 / eps
_GRADIENT = (c / sp.sqrt(mu * eps)) ** gamma

# the price of part (a), the paper's and as executed; MC, ETMC: largest step, eps <= 4 beta d0^2
LAMBDA = 16 ** (gamma - 1) * C_GAMMA
UPPER_CONVEX = LAMBDA * _FINE**gamma
# of delta to a level, and two evaluations for an increment
ROUNDING = PAIR * 2 ** (gamma - 2)
_finer = 16 ** (gamma - 2)
LAMBDA_EXECUTED = 16 * CONVEX_CEILING * ROUNDING * _finer * C_GAMMA
_Z = beta * d0**2 / eps
_harder = LAMBDA_EXECUTED * _FINE**gamma
_levels = sp.log(sp.E + _Z)
_at = sp.Rational(19845, 4) * _FINE**2 * _levels**2
_price = 9 * c**2 / (beta * eps * _FROM_COARSE)
_easier = 20 * _EASY * _Z * _price**_half
EXECUTED_CONVEX = _by_regime(_harder, _at, _easier)

# The one condition of the descent theorems for gamma > 2: the coarsest level's probability is at
# least LEAST. With the closed form it is, for every step, up to these targets.
LEAST = 4 * beta * eta
_first_share = 2 ** (-(1 + _half) * first) / (_FROM_FINE * beta)
_finer = (16 * d0) ** (_half - 1)
RANGE_CONVEX = (9 * _finer * _first_share) ** (2 / gamma)
_finer = (8 / sp.sqrt(mu)) ** (_half - 1)
RANGE_STRONG = (18 * _finer * _first_share) ** (4 / (gamma + 2))

# the price of part (b), as executed; MC, ETMC: largest step
_LOG = 1 + sp.log(_RELATIVE)
_LOG_2 = sp.log(2)
# at least STRONG["T"] rounded up
_rate = 32 * _LOG_2 + sp.Rational(1, 4)
STRONG_STEPS = _rate / (eta * mu) * _LOG
_STEPS = 128 * _LOG_2 + 1
_finer = 8 ** (gamma - 2)
LAMBDA_PRIME_EXECUTED = ROUNDING * (2 * _STEPS) * _finer * C_GAMMA
_harder = LAMBDA_PRIME_EXECUTED * _LOG * _GRADIENT
_levels = sp.log(512 * kappa / 9, 2)
_price = c**2 / (mu * eps) * _levels**2
_at = sp.Rational(81, 8) * _STEPS * _LOG * _price
_easier = _STEPS * _EASY * (18 / _FROM_COARSE) ** _half * _LOG * _GRADIENT
_easier *= kappa ** (1 - _half)
EXECUTED_STRONG = _by_regime(_harder, _at, _easier)

# one level, fine enough, at every step
_price = beta * c**gamma * d0 ** (gamma + 2)
FIXED_CONVEX = 16 ** (gamma + 1) * _price * eps ** -(gamma + 1)

# --- the paper's Proposition 2: the schedule ---

_left = horizon - t
_bias = sp.sqrt(mu * eps / 8) * sp.exp(mu * _left / 8)
_variance = eps / 4 * sp.exp(mu * _left / 4)
SCHEDULE = {"delta": _bias, "nu2": _variance}
LAMBDA_SECOND = 32 / gamma * 8 ** ((gamma - 2) / 2) * C_GAMMA
UPPER_SCHEDULE = LAMBDA_SECOND * _GRADIENT

# In discrete time, from the one-step lemma with Young's inequality (half of mu): J = sum of the
# weights' shares times 2^block; bias and noise are such that each costs 3/8 of the target.
_bias = 3 * eps * mu / (16 * injection * (1 + eta * mu))
_variance = 3 * eps / (8 * injection * eta)
DISCRETE = {"delta2": _bias, "sigma2": _variance}
_grown = (1 - eta * mu / 2) ** -T
_horizon = mu * d0**2 / 2 / (_grown - 1)
_bias = (2 / mu + 2 * eta) * delta**2
_noise = eta * sigma**2
DISCRETE_BUDGET = _budget(_horizon, _bias, _noise)
# the bound of a run, within its range
_blocks = 9 * (1 - 2**-_half)
EXECUTED_DISCRETE = ROUNDING * C_GAMMA * 160 * _LOG_2 / _blocks
EXECUTED_DISCRETE *= sp.Rational(10, 3) ** (gamma - 2) * _GRADIENT

# --- the paper's Theorem 2: the lower bound ---

# who succeeds on both signs pays for a fine level at least this often
_OFTEN = sp.Rational(3, 4)
LOWER_CONVEX = _OFTEN * (c * d0 / (8 * eps)) ** gamma
LOWER_STRONG = _OFTEN * (c / sp.sqrt(8 * mu * eps)) ** gamma

# --- acceleration ---
# The scheme that is run (similar triangles, weights alpha_t = eta t), with constants proved in the
# chapter: A_T = sum alpha, S_T = sum alpha^2, and the loss is at most 3 d0^2 / (2 A_T).

WEIGHT_SUM = eta * T * (T + 1) / 2
WEIGHT_SQUARES = eta**2 * T * (T + 1) * (2 * T + 1) / 6
# the root of A_T = 3 d0^2 / (2 eps)
_steps = (sp.sqrt(1 + 12 * _PLAIN) - 1) / 2
_bias = d0 / (4 * WEIGHT_SUM)
_variance = d0**2 / (2 * WEIGHT_SQUARES) - delta**2
SIMILAR = _call(_steps, _bias, _variance)
# a stage that reaches it halves the squared distance
STAGE_TARGET = mu * d0**2 / 4

# Its price: SIMILAR_FACTOR (most steps of a stage) times ROUNDED (fewest) times (c d0/eps)^gamma,
# or times STAGE_SUM (c/sqrt(mu eps))^gamma where it restarts, and the coarsest level every time.
LAMBDA_SIMILAR = 6 * ROUNDING * 6 ** (gamma - 2) * C_GAMMA
_levels = sp.log(112 * T / 9, 2)
_at = sp.Rational(729, 32) * _levels**2
_easier = _EASY * (54 / _FROM_COARSE) ** _half * T ** (1 - _half)
SIMILAR_FACTOR = _by_regime(LAMBDA_SIMILAR, _at, _easier)
ROUNDED = ((T + 1) / (T - 1)) ** gamma
STAGE_SUM = 2**gamma * (1 + 1 / (1 - 2**-_half))
SIMILAR_STEPS = 1 + sp.sqrt(3 * _PLAIN)
STAGE_STEPS = 1 + sp.sqrt(12 / (eta * mu))

# --- what plans take from it ---


def prescribed(method: str, d0: float, mu: float, eta: float, eps: float) -> dict:
    """Stages (T, delta, sigma), error budget, averaging and guarantee of a method, in numbers."""
    if method == "accelerated":
        return _similar_triangles(d0, mu, eta, eps)
    if method == "scheduled":
        return _proposition_2(d0, mu, eta, eps)
    return _theorem_1(d0, mu, eta, eps, noisy=method != "fixed")


def _theorem_1(d0: float, mu: float, eta: float, eps: float, noisy: bool) -> dict:
    """Part (b) where eps <= mu d0^2, or else part (a); the fixed level makes no noise."""
    part, table, losses, growth = "a", CONVEX, CONVEX_BUDGET, 1.0
    if mu > 0 and eps <= mu * d0**2:
        part, table, losses = "b", STRONG, STRONG_BUDGET
        growth = 1 / (1 - eta * mu)
    known = {"d0": d0, "mu": mu, "eta": eta, "eps": eps}
    steps, bias, variance = values(table, **known).values()
    noise = _root(variance) if noisy else 0.0
    known |= {"T": steps, "delta": bias, "sigma": noise}
    budget = values(losses, **known)
    if part == "b" and growth == 1:  # (1 - eta mu)^T, where 1 - eta mu is rounded to one
        decay = math.exp(steps * math.log1p(-eta * mu))
        budget["horizon"] = 2 * mu * d0**2 * decay
    return {
        "stages": [(steps, bias, noise)],
        "budget": budget,
        "growth": growth,
        "guarantee": f"the paper's Theorem 1({part})",
    }


def _similar_triangles(d0: float, mu: float, eta: float, eps: float) -> dict:
    """Loss at most 3 R^2 / (2 A_T) from distance R; with mu, restarted at halved R^2."""
    stages = []
    radius = d0
    target = math.inf
    while target > eps:
        target = value(STAGE_TARGET, mu=mu, d0=radius)
        call = values(SIMILAR, d0=radius, eta=eta, eps=max(target, eps))
        steps, bias, variance = call.values()
        stages.append((steps, bias, _root(variance)))
        third = 2 * radius * bias  # R^2 / (2 A_T): each of the three terms
        radius = radius / math.sqrt(2)
    return {
        "stages": stages,
        "budget": _budget(third, third, third),
        "window": 1,
        "guarantee": "similar triangles, constants proved in the book",
    }


def _proposition_2(d0: float, mu: float, eta: float, eps: float) -> dict:
    """In discrete time: weights rho^-t; a block of steps earlier, delta^2 and sigma^2 double.

    Half of mu goes to the bias by Young's inequality, so that rho = 1 - eta mu/2. The weights make
    up for the doubling if it takes a block of steps: rho^-block is then at most 4.
    """
    if not eta * mu < 2:
        raise FloatingPointError(f"eta mu is {eta * mu:g}")
    rate = -math.log1p(-eta * mu / 2)  # rho = e^-rate
    growth = math.log1p(
        2 * mu * d0**2 / eps
    )  # what the weights must grow by, its logarithm
    steps = max(1, _ceiling(growth / rate))
    block = max(1, math.floor(2 * math.log(2) / rate))
    counts = []  # of steps, in the blocks from the end
    for ago in range(0, steps, block):
        counts.append(min(block, steps - ago))

    # the sum of 2^i over the blocks, each with its share of the weights
    weighted = 0
    for i, count in enumerate(counts):
        share = math.exp(-rate * block * i) * math.expm1(-rate * count)
        weighted += share * 2**i
    worst = weighted / math.expm1(-rate * steps)
    last = values(DISCRETE, mu=mu, eta=eta, eps=eps, injection=worst)
    stages = []
    for i, count in enumerate(counts):
        bias = _root(last["delta2"] * 2.0**i)
        noise = _root(last["sigma2"] * 2.0**i)
        stages.append((count, bias, noise))
    stages.reverse()

    # the formula's own horizon cancels where rate * steps is tiny
    reached = mu * d0**2 / 2 / math.expm1(steps * rate)
    each = 3 * eps / 8
    return {
        "stages": stages,
        "budget": _budget(reached, each, each),
        "growth": 1 / (1 - eta * mu / 2),
        "guarantee": "the paper's Proposition 2 in discrete time, proved in the book",
    }
