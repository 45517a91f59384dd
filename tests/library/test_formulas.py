"""The formulas against independent expressions: the paper's table and its constants."""

import math

import pytest
from scipy.integrate import quad

from mlgd import formulas as F

# --- values at one point, obtained another way: as a sum, a root or an integral ---

C, BETA, MU, D0, EPS, ETA, DELTA, SIGMA, FIRST = (
    0.7,
    5.0,
    0.2,
    1.5,
    0.003,
    0.04,
    0.0078125,
    0.3,
    2,
)
STEPS, N, J, HORIZON, TIME = 50, 4, 1.7, 9.0, 4.0
AT = {"c": C, "beta": BETA, "mu": MU, "d0": D0, "eps": EPS, "eta": ETA, "delta": DELTA}
AT |= {"sigma": SIGMA, "first": FIRST, "T": STEPS, "n": N, "injection": J}
AT |= {"horizon": HORIZON, "t": TIME, "total": 2.3}
# gamma = 3 and 1: neighbours differ by sqrt 2
halves = sum(2.0 ** (-0.5 * k) for k in range(400))
cubes = sum(2.0 ** (-1.5 * k) for k in range(400))
C3 = 9 * halves**2
CALL3 = C3 * C**3 / (DELTA * SIGMA**2)
ORDER3 = C**3 * 2.3**2 / SIGMA**2
EASY = 1 + 1.5 * halves  # gamma = 1: the coarsest level, and pairs
LOG_R = 1 + math.log(MU * D0**2 / EPS)
ROOT = C / math.sqrt(MU * EPS)
CONVEX = (4 * D0**2 / (ETA * EPS), EPS / (16 * D0), EPS / (4 * ETA))
MOST = 2.0 ** (-2.5 * FIRST) * halves / BETA  # what a finer beginning would lower


def run(steps, delta, sigma2):
    """T calls of the paper's price at gamma = 3."""
    return steps * C3 * C**3 / (delta * sigma2)


def backwards(s):
    """The schedule's price per unit of time, a time s before the end."""
    delta, nu2 = (
        math.sqrt(MU * EPS / 8) * math.exp(MU * s / 8),
        EPS / 4 * math.exp(MU * s / 4),
    )
    return C3 * C**3 / (delta * nu2)


HARDER_A = 1.25 * 1.125 * run(CONVEX[0], CONVEX[1] / 2, CONVEX[2])
HARDER_B, STEPS_B = 1.125 * 2 * 179.445678 * 8 * C3, 89.722839 * LOG_R
GROWN, BLOCK = sum(0.996 ** -(t + 1) for t in range(STEPS)), 160 / 9 * math.log(2)

# what is computed, gamma, what the theory says; factors that a chapter proves are restated as
# numbers, and more of it is in test_plans
VALUES = {
    "C_gamma": (F.C_GAMMA, 3, C3),
    "C, harder": (
        F.SCALE["HTMC"],
        3,
        9 / SIGMA**2 * sum(2 ** (k / 2) for k in range(-400, 8)),
    ),
    "C, at": (F.SCALE["MC"], 2, 9 * 4 / 0.09),
    "C, easier": (F.SCALE["ETMC"], 1, (9 * halves / 0.09) ** 0.75),
    "a call, harder": (F.CALL["HTMC"], 3, CALL3),
    "a call, at": (F.CALL["MC"], 2, (0.7 / 0.3 * math.log(0.3 * 128)) ** 2),
    "a call, easier": (F.CALL["ETMC"], 1, 0.7 / 0.3),
    "executed, harder": (F.CALL_EXECUTED["HTMC"], 3, (8.0**7 + 8.0**6) / 8.0**7 * CALL3),
    "executed, at": (F.CALL_EXECUTED["MC"], 2, 9 * 0.49 * 4 / 0.09 * 6),
    "executed, easier": (F.CALL_EXECUTED["ETMC"], 1, EASY * 3 * 0.7 / 0.3 * halves**0.5),
    "a call, any rate": (F.ORDER, 3, ORDER3),
    "the cheapest call, lower": (F.OPTIMUM["lower"], 3, 7 / 8 * (2.8**3 + ORDER3 / 5)),
    "the cheapest call, upper": (F.OPTIMUM["upper"], 3, 2.8**3 + 10.125 * ORDER3),
    "1(a), horizon": (F.CONVEX_BUDGET["horizon"], 3, 2.25 / 2.0),
    "1(a), bias": (F.CONVEX_BUDGET["bias"], 3, 6 * 0.0078125),
    "1(a), noise": (F.CONVEX_BUDGET["noise"], 3, 0.04 * 0.09 + 0.08 * 0.0078125**2),
    "1(a), price": (F.UPPER_CONVEX, 3, run(*CONVEX)),
    "1(a), as executed": (F.LAMBDA_EXECUTED, 3, HARDER_A / (C * D0 / EPS) ** 3),
    "1(a), harder": (F.EXECUTED_CONVEX["HTMC"], 3, HARDER_A),
    "1(a), at": (
        F.EXECUTED_CONVEX["MC"],
        2,
        4961.25 * (350 * math.log(math.e + 3750)) ** 2,
    ),
    "1(a), easier": (
        F.EXECUTED_CONVEX["ETMC"],
        1,
        75000 * EASY * math.sqrt(294 * halves),
    ),
    "fixed level": (F.FIXED_CONVEX, 3, 16 * 3750 * (C / CONVEX[1]) ** 3),
    "1(b), horizon": (F.STRONG_BUDGET["horizon"], 3, 0.9 * 0.992**50),
    "1(b), bias": (F.STRONG_BUDGET["bias"], 3, 0.03125 * 0.015**0.5),
    "1(b), noise": (F.STRONG_BUDGET["noise"], 3, 0.04 * 0.09 + 0.08 * 0.0078125**2),
    "1(b), as executed": (F.LAMBDA_PRIME_EXECUTED, 3, HARDER_B),
    "1(b), steps": (F.STRONG_STEPS, 3, STEPS_B / 4 / 0.008),
    "1(b), harder": (F.EXECUTED_STRONG["HTMC"], 3, HARDER_B * LOG_R * ROOT**3),
    "1(b), at": (
        F.EXECUTED_STRONG["MC"],
        2,
        81 / 8 * STEPS_B * (ROOT * math.log2(12800 / 9)) ** 2,
    ),
    "1(b), easier": (
        F.EXECUTED_STRONG["ETMC"],
        1,
        STEPS_B * EASY * (18 * halves) ** 0.5 * ROOT * 5,
    ),
    "least probability": (F.LEAST, 3, 0.8),
    "range, convex": (F.RANGE_CONVEX, 3, (9 * (16 * D0) ** 0.5 * MOST) ** (2 / 3)),
    "range, strongly": (F.RANGE_STRONG, 3, (18 * 8**0.5 * MU**-0.25 * MOST) ** 0.8),
    "schedule, delta": (
        F.SCHEDULE["delta"],
        3,
        (0.0006 / 8) ** 0.5 * math.exp(0.2 * 5 / 8),
    ),
    "schedule, nu": (F.SCHEDULE["nu2"], 3, 0.00075 * math.exp(0.25)),
    "schedule, price": (F.UPPER_SCHEDULE, 3, quad(backwards, 0, 600.0)[0]),
    "discrete, delta": (F.DISCRETE["delta2"], 3, 3 / 8 * EPS / J / (2 / MU + 2 * ETA)),
    "discrete, sigma": (F.DISCRETE["sigma2"], 3, 3 / 8 * EPS / J / ETA),
    "discrete, horizon": (F.DISCRETE_BUDGET["horizon"], 3, D0**2 / (ETA * GROWN)),
    "discrete, bias": (F.DISCRETE_BUDGET["bias"], 3, 10.08 * 0.0078125**2),
    "discrete, noise": (F.DISCRETE_BUDGET["noise"], 3, 0.0036),
    "discrete, price": (
        F.EXECUTED_DISCRETE,
        3,
        1.125 * 2 * C3 * BLOCK * cubes * 10 / 3 * ROOT**3,
    ),
    "1(a), gamma 6": (F.LAMBDA_EXECUTED, 6, 1.25 * 65 / 64 * 16 * 16.0**5 * 16),
    "1(b), gamma 6": (F.LAMBDA_PRIME_EXECUTED, 6, 65 / 64 * 16 * 179.445678 * 8**4 * 16),
    "similar, gamma 6": (F.LAMBDA_SIMILAR, 6, 65 / 64 * 16 * 6**5 * 16),
    "discrete, gamma 6": (
        F.EXECUTED_DISCRETE,
        6,
        260 * BLOCK * 8 / 7 * (100 / 9) ** 2 * ROOT**6,
    ),
    "lower, convex": (F.LOWER_CONVEX, 3, 0.75 * (0.7 * 1.5 / 0.024) ** 3),
    "lower, strongly": (F.LOWER_STRONG, 3, 0.75 * (0.7 / 0.0048**0.5) ** 3),
    "similar, harder": (F.SIMILAR_FACTOR["HTMC"], 3, 1.125 * 2 * 36 * C3),
    "similar, at": (F.SIMILAR_FACTOR["MC"], 2, 729 / 32 * math.log2(5600 / 9) ** 2),
    "similar, easier": (F.SIMILAR_FACTOR["ETMC"], 1, EASY * math.sqrt(54 * halves * 50)),
    "similar, fewest steps": (F.ROUNDED, 3, (51 / 49) ** 3),
    "similar, steps": (F.SIMILAR_STEPS, 3, 1 + math.sqrt(6.75 / 0.00012)),
    "a stage's steps": (F.STAGE_STEPS, 3, 1 + math.sqrt(1500)),
    "stages": (F.STAGE_SUM, 3, 8 * (1 + cubes)),
    "a stage's target": (F.STAGE_TARGET, 3, MU * (D0**2 / 2) / 2),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_formula_has_its_value(name):
    formula, rate, theory = VALUES[name]
    computed = F.value(formula, gamma=float(rate), **AT)
    assert computed == pytest.approx(theory, rel=1e-6)
    assert 1.1 * computed != pytest.approx(theory, rel=1e-6)


def test_value_takes_ascii_names_and_says_what_is_missing():
    # chapters simplify with it
    assert all(symbol.is_nonnegative for symbol in F.SYMBOLS.values())
    assert F.value(F.FIRST, c=0.5, first=3, gamma=2.0) == pytest.approx(16)
    # one set of numbers for several
    assert F.value(F.FIRST, c=0.5, first=3, gamma=2.0, eps=7.0) == pytest.approx(16)
    with pytest.raises(
        TypeError, match="the formula needs gamma, c, first; missing: first"
    ):
        F.value(F.FIRST, c=0.5, gamma=2.0)
