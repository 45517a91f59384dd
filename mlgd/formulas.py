"""The paper's exponents, bounds and constants, each one sympy expression: what the reader sees, what the plan evaluates.

Names ending in nothing are the paper's; those marked `executed` carry what running costs and the paper leaves out:
the ceiling on the number of steps, the rounding of delta to a level, two evaluations per increment and the
coarsest level drawn at every call.
"""

from functools import cache

import sympy as sp

gamma, c, beta, mu, d0, eps, eta = sp.symbols("gamma c beta mu d_0 varepsilon eta", positive=True)
delta, sigma, T, n, first, nu, theta = sp.symbols("delta sigma T n k_min nu theta", positive=True)
total = sp.Symbol(
    "Sigma_sigma", positive=True
)  # of RATIO^k over the levels past the coarsest, delta <= 2^-k <= sigma
t, horizon = sp.symbols("t T_c", nonnegative=True)
injection = sp.Symbol("J", positive=True)
kappa = beta / mu

_NAMES = "gamma c beta mu d0 eps eta delta sigma T n first nu theta t horizon injection total"
_OWN = (gamma, c, beta, mu, d0, eps, eta, delta, sigma, T, n, first, nu, theta, t, horizon)
_OWN += (injection, total)
SYMBOLS = dict(zip(_NAMES.split(), _OWN, strict=True))  # the names that `value` takes
_ASCII = {symbol: name for name, symbol in SYMBOLS.items()}


@cache
def _function(expression):
    symbols = sorted(expression.free_symbols, key=str)
    unknown = [s for s in symbols if s not in _ASCII]
    if unknown:
        raise ValueError(
            f"the symbols {unknown} of {expression} are not the formulas': substitute them first"
        )
    return [_ASCII[s] for s in symbols], sp.lambdify(symbols, expression, "math")


def value(expression, **numbers) -> float:
    """The number an expression takes; keywords are the symbols' names in SYMBOLS (eps, d0, first, horizon, ...).

    Names that the expression does not contain are allowed, so that one set of numbers serves several expressions.
    """
    names, function = _function(sp.sympify(expression))
    wrong = [name for name in numbers if name not in SYMBOLS]
    if wrong:
        raise TypeError(
            f"{wrong[0]!r} is not a symbol of the formulas; those are {', '.join(SYMBOLS)}"
        )
    missing = [name for name in names if name not in numbers]
    if missing:
        raise TypeError(f"the formula needs {', '.join(names)}; missing: {', '.join(missing)}")
    return float(function(*(numbers[name] for name in names)))


# --- the paper's Proposition 1: one call of the oracle --------------------------------------------------------

# of consecutive terms of the geometric sum: above one, one, or below one
RATIO = 2 ** (gamma / 2 - 1)
C_GAMMA = 9 / (1 - 1 / RATIO) ** 2
SCALE = {  # the C of p_k = min(C 2^{-(1+gamma/2) k}, 1) that makes the variance at most sigma^2
    "HTMC": 9 * delta ** (1 - gamma / 2) / ((1 - 1 / RATIO) * sigma**2),
    "MC": 9 * n / sigma**2,  # n levels lie between delta and sigma/3
    "ETMC": (9 / ((1 - RATIO) * sigma**2)) ** ((1 + gamma / 2) / 2),
}
CALL = {  # the paper's price of one call, up to a factor depending on gamma only (HTMC: with the paper's factor)
    "HTMC": C_GAMMA * c**gamma * delta ** (2 - gamma) / sigma**2,
    "MC": c**2 / sigma**2 * sp.log(sigma / delta) ** 2,
    "ETMC": (c / sigma) ** gamma,
}
FIRST = (c * 2**first) ** gamma  # one evaluation of the coarsest level
PAIR = 1 + 2**-gamma  # an increment is two evaluations
_EASY = 1 + PAIR / (1 - RATIO)
CALL_EXECUTED = {  # a true upper bound of what is evaluated beyond the coarsest level; delta is a level's own
    "HTMC": PAIR * C_GAMMA * c**gamma * delta ** (2 - gamma) / sigma**2,
    "MC": 9 * c**2 * n / sigma**2 * (1 + sp.Rational(5, 4) * n),
    "ETMC": _EASY * (3 * c / (sigma * sp.sqrt(1 - RATIO))) ** gamma,
}
# The coarsest level that the closed form draws with certainty (n = 1 errs on the coarse side); all coarser ones too.
START = {
    name: sp.log(scale.subs(n, 1), 2) / (2 if name == "MC" else 1 + gamma / 2)
    for name, scale in SCALE.items()
}
# one call at any rate, up to a factor of gamma and the coarsest level
ORDER = c**gamma * total**2 / sigma**2
OPTIMUM = {  # the cheapest call, sigma >= delta; the lower side where levels are no better than promised
    "lower": (1 - 2**-gamma) * (FIRST + ORDER / 5),
    "upper": FIRST + 9 * PAIR * ORDER,
}
ALL_LEVELS = (c / delta) ** gamma / (
    1 - 2**-gamma
)  # every level down to delta, once each: no call costs more

# --- the paper's Theorem 1: descent ---------------------------------------------------------------------------

CONVEX = {"T": 4 * d0**2 / (eta * eps), "delta": eps / (16 * d0), "sigma2": eps / (4 * eta)}
CONVEX_BUDGET = {
    "horizon": d0**2 / (eta * T),
    "bias": 4 * delta * d0,
    "noise": eta * (sigma**2 + 2 * delta**2),
}
CONVEX_CEILING = sp.Rational(5, 4)  # ceil(x) <= 5x/4 once x >= 4, that is eta eps <= d0^2

STRONG = {
    "T": 4 / (eta * mu) * sp.log(256 * mu * d0**2 / eps),
    "delta": sp.sqrt(mu * eps) / 8,
    "sigma2": eps / (8 * eta),
}
STRONG_BUDGET = {
    "horizon": 2 * mu * d0**2 * (1 - eta * mu) ** T,
    "bias": 4 * delta * sp.sqrt(eps / mu),
    "noise": eta * (sigma**2 + 2 * delta**2),
}

LAMBDA = 16 ** (gamma - 1) * C_GAMMA
UPPER_CONVEX = LAMBDA * (c * d0 / eps) ** gamma
LAMBDA_EXECUTED = (
    CONVEX_CEILING * PAIR * 2 ** (gamma - 2) * LAMBDA
)  # ceiling, two evaluations, rounding of delta
_Z = beta * d0**2 / eps
# MC, ETMC: largest step, eps <= 4 beta d0^2.
EXECUTED_CONVEX = {
    "HTMC": LAMBDA_EXECUTED * (c * d0 / eps) ** gamma,
    "MC": sp.Rational(19845, 4) * (c * d0 / eps) ** 2 * sp.log(sp.E + _Z) ** 2,
    "ETMC": 20
    * _EASY
    * (9 / (1 - RATIO)) ** (gamma / 2)
    * _Z
    * (c**2 / (beta * eps)) ** (gamma / 2),
}
# The one condition of the descent theorems for gamma > 2: the coarsest level's probability is at least LEAST. With the closed
# form it is, for every step, up to these targets.
LEAST = 4 * beta * eta
_FIRST_SHARE = 2 ** (-(1 + gamma / 2) * first) / ((1 - 1 / RATIO) * beta)
RANGE_CONVEX = (9 * (16 * d0) ** (gamma / 2 - 1) * _FIRST_SHARE) ** (2 / gamma)
RANGE_STRONG = (
    18 * 8 ** (gamma / 2 - 1) * mu ** (sp.Rational(1, 2) - gamma / 4) * _FIRST_SHARE
) ** (4 / (gamma + 2))
_LOG = 1 + sp.log(mu * d0**2 / eps)
_GRADIENT = (c / sp.sqrt(mu * eps)) ** gamma  # one at the accuracy that strong convexity asks for
# the least V^2 of the noise floor
FLOOR = 4 * delta**2 / mu**2 + 2 * eta * (sigma**2 + 2 * delta**2) / mu
STRONG_STEPS = (
    (32 * sp.log(2) + sp.Rational(1, 4)) / (eta * mu) * _LOG
)  # at least STRONG["T"] rounded up
LAMBDA_PRIME_EXECUTED = PAIR * 2 ** (gamma - 2) * (256 * sp.log(2) + 2) * 8 ** (gamma - 2) * C_GAMMA
_STEPS = 128 * sp.log(2) + 1
# MC, ETMC: largest step.
EXECUTED_STRONG = {
    "HTMC": LAMBDA_PRIME_EXECUTED * _LOG * _GRADIENT,
    "MC": sp.Rational(81, 16)
    * (256 * sp.log(2) + 2)
    * _LOG
    * c**2
    / (mu * eps)
    * sp.log(512 * kappa / 9, 2) ** 2,
    "ETMC": _STEPS
    * _EASY
    * (18 / (1 - RATIO)) ** (gamma / 2)
    * _LOG
    * _GRADIENT
    * kappa ** (1 - gamma / 2),
}
FIXED_CONVEX = 16 ** (gamma + 1) * beta * c**gamma * d0 ** (gamma + 2) * eps ** -(gamma + 1)
FIXED_CONVEX_LOWER = (_Z - 2) * (
    c * d0 / (2 * eps)
) ** gamma  # what one level for the whole class cannot undercut

# --- the paper's Proposition 2: the schedule ------------------------------------------------------------------

SCHEDULE = {
    "delta": sp.sqrt(mu * eps / 8) * sp.exp(mu * (horizon - t) / 8),
    "nu2": eps / 4 * sp.exp(mu * (horizon - t) / 4),
}
# In discrete time, from the one-step lemma with Young's inequality (half of mu): J = sum of the weights' shares times 2^block.
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
UPPER_SCHEDULE = LAMBDA_SECOND * (c / sp.sqrt(mu * eps)) ** gamma
# In discrete time: the bound of a run; outside its range add COARSE_DISCRETE.
LAMBDA_DISCRETE = (
    160
    * sp.log(2)
    / (9 * (1 - 2 ** (-gamma / 2)))
    * sp.Rational(100, 9) ** (gamma / 2 - 1)
    * C_GAMMA
)
EXECUTED_DISCRETE = PAIR * 2 ** (gamma - 2) * LAMBDA_DISCRETE * (c / sp.sqrt(mu * eps)) ** gamma
COARSE_DISCRETE = (
    1 + 8 * kappa * sp.log(1 + 2 * mu * d0**2 / eps) + 9 * sp.log(2) / (1 - 1 / RATIO)
) * FIRST

# --- the paper's Theorem 2: the lower bound -------------------------------------------------------------------

LOWER_CONVEX = sp.Rational(3, 4) * 8**-gamma * (c * d0 / eps) ** gamma
LOWER_STRONG = sp.Rational(3, 4) * (c / sp.sqrt(8 * mu * eps)) ** gamma

# --- acceleration ----------------------------------------------------------------------------------------------
# The paper's balance, in orders: a bias that accumulates over the horizon.
ACCELERATED = {
    "convex": {
        "T": d0 * sp.sqrt(beta / eps),
        "delta": eps ** sp.Rational(3, 2) / (d0**2 * sp.sqrt(beta)),
        "sigma2": eps ** sp.Rational(3, 2) * sp.sqrt(beta) / d0,
    },
    "strong": {
        "T": sp.sqrt(kappa),
        "delta": sp.sqrt(mu * eps / sp.sqrt(kappa)),
        "sigma2": mu * eps * sp.sqrt(kappa),
    },
}
# The scheme that is run (similar triangles, weights alpha_t = eta t), with constants proved in the chapter:
# A_T = sum alpha, S_T = sum alpha^2, and the loss is at most 3 d0^2 / (2 A_T) with this delta and sigma.
WEIGHT_SUM = eta * T * (T + 1) / 2
WEIGHT_SQUARES = eta**2 * T * (T + 1) * (2 * T + 1) / 6
SIMILAR = {
    "T": (sp.sqrt(1 + 12 * d0**2 / (eta * eps)) - 1) / 2,  # the root of A_T = 3 d0^2 / (2 eps)
    "delta": d0 / (4 * WEIGHT_SUM),
    "sigma2": d0**2 / (2 * WEIGHT_SQUARES) - delta**2,
}
SIMILAR_BUDGET = {
    "horizon": d0**2 / (2 * WEIGHT_SUM),
    "bias": 2 * d0 * delta,
    "noise": (sigma**2 + delta**2) * WEIGHT_SQUARES / WEIGHT_SUM,
}
STAGE_TARGET = mu * d0**2 / 4  # a stage that reaches it halves the squared distance
# Its price: SIMILAR_FACTOR (most steps of a stage) times ROUNDED (fewest) times (c d0/eps)^gamma, or times STAGE_SUM
# (c/sqrt(mu eps))^gamma where it restarts, and the coarsest level at every step.
LAMBDA_SIMILAR = PAIR * 2 ** (gamma - 2) * 6 ** (gamma - 1) * C_GAMMA
SIMILAR_FACTOR = {
    "HTMC": LAMBDA_SIMILAR,
    "MC": sp.Rational(729, 32) * sp.log(112 * T / 9, 2) ** 2,
    "ETMC": _EASY * (54 / (1 - RATIO)) ** (gamma / 2) * T ** (1 - gamma / 2),
}
ROUNDED = ((T + 1) / (T - 1)) ** gamma
STAGE_SUM = 2**gamma * (1 + 1 / (1 - 2 ** (-gamma / 2)))
SIMILAR_STEPS = 1 + sp.sqrt(3 * d0**2 / (eta * eps))
STAGE_STEPS = 1 + sp.sqrt(12 / (eta * mu))

# --- the table of bounds ---------------------------------------------------------------------------------------

REGIMES = ("ETMC", "MC", "HTMC")


def regime(rate) -> str:
    """'ETMC', 'MC' or 'HTMC': easier than, at, or harder than Monte Carlo."""
    return "MC" if rate == 2 else ("HTMC" if rate > 2 else "ETMC")


def order(expression):
    """The expression without its constant: divided by its value where every symbol but gamma is one."""
    ones = {s: 1 for s in sp.sympify(expression).free_symbols if s != gamma}
    ratio = sp.expand_power_base(expression / sp.sympify(expression).subs(ones), force=True)
    return sp.powsimp(sp.simplify(sp.powdenest(ratio, force=True)), combine="exp", force=True)


def price_order(parameters: dict, name: str):
    """T calls at the given T, delta, sigma2 in one regime, as an order; the logarithm of MC counts its argument's order."""
    s, d = sp.sqrt(parameters["sigma2"]), parameters["delta"]
    if name == "MC":
        ratio = sp.simplify(
            order(s / d) ** 2
        )  # a power of beta d0^2/eps or of kappa: the base is what the log keeps
        power = sp.simplify(beta * sp.diff(sp.log(ratio), beta)) or 1
        return (
            order(parameters["T"] * c**2 / s**2)
            * sp.log(sp.powdenest(ratio ** (1 / power), force=True)) ** 2
        )
    return order(parameters["T"] * CALL[name].subs({sigma: s, delta: d}, simultaneous=True))


def table_of_bounds() -> dict:
    """The paper's Table 1 by substitution: {(row, regime, column): expression}, with c^gamma and the column's logarithm left out."""
    step = {eta: 1 / (4 * beta)}
    strong_T = 4 / (eta * mu)  # the logarithm of the strongly convex column is left out
    plain = {"convex": CONVEX, "strong": {**STRONG, "T": strong_T}}
    cells = {}
    for column, parameters in plain.items():
        used = {k: v.subs(step) for k, v in parameters.items()}
        fixed = used["T"] * (c / used["delta"]) ** gamma
        cells["deterministic", "any", column] = order(fixed.subs(c, 1))
        for name in REGIMES:
            cells["gd", name, column] = _without_c(price_order(used, name))
            cells["accelerated", name, column] = _without_c(price_order(ACCELERATED[column], name))
    return cells


def _without_c(expression):
    return sp.simplify(sp.powdenest(expression.subs(c, 1), force=True))
