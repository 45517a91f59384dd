"""Problems of other people's kinds, nothing given: each ends near eps or says why not."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from kills import killed
from scipy.optimize import rosen, rosen_der

from mlgd import Hierarchy, minimize
from mlgd.solvers import norm

D = 30
RNG = np.random.default_rng(7)
LAM, TARGET, OFF = np.geomspace(0.01, 1, D), RNG.normal(size=D), RNG.normal(size=(20, D))
OFF /= np.linalg.norm(OFF, axis=1, keepdims=True)
X = RNG.normal(size=(200, 8))
LABELS = np.sign(X @ RNG.normal(size=8) + RNG.normal(size=200))
ZERO = np.zeros(D)


def off(k, size=0.3):
    return size * 2.0**-k * OFF[k]


def quadratic(y):
    return LAM * (y - TARGET)


def rounded(k, y):
    return np.round(quadratic(y) * 4**k) / 4**k


def above(y):
    return float(LAM @ (y - TARGET) ** 2) / 2


def noisy(k, y):
    return quadratic(y) + off(k)


def logistic(k, y):
    margin = np.clip(LABELS * (X @ y), -500, 500)
    return -(X * (LABELS / (1 + np.exp(margin)))[:, None]).mean(axis=0) + 0.01 * y + off(k, 0.1)[:8]


def logistic_loss(y):
    return float(np.logaddexp(0, -LABELS * (X @ y)).mean() + 0.005 * y @ y)


def least(loss, size):
    from scipy.optimize import minimize as solved

    return solved(loss, np.zeros(size), tol=1e-12).fun


def price(k):
    return 8.0**k


REACHED = {  # levels, start, eps, loss above the minimum
    "one unknown": (
        lambda k, y: y - 3 + 0.3 * 2.0**-k,
        range(12),
        np.zeros(1),
        1e-4,
        lambda y: (y[0] - 3) ** 2 / 2,
    ),
    "one level": (lambda k, y: quadratic(y), [2], ZERO, 1e-4, above),
    "a curved valley": (lambda k, y: rosen_der(y), [2], np.array([-1.0, 2.0]), 1e-6, rosen),
    "exact levels": (lambda k, y: quadratic(y), range(6), ZERO, 1e-6, above),
    "tiny units": (
        lambda k, y: 1e-12 * noisy(k, y),
        range(10),
        ZERO,
        1e-15,
        lambda y: 1e-12 * above(y),
    ),
    "huge units": (
        lambda k, y: 1e12 * noisy(k, y),
        range(10),
        ZERO,
        1e9,
        lambda y: 1e12 * above(y),
    ),
    "tiny unknowns": (
        lambda k, y: 1e9 * noisy(k, 1e9 * y),
        range(10),
        ZERO,
        1e-3,
        lambda y: above(1e9 * y),
    ),
    "a table": (
        lambda k, y: noisy(k, y.ravel()).reshape(5, 6),
        range(9),
        np.zeros((5, 6)),
        1e-3,
        lambda y: above(y.ravel()),
    ),
    "single precision": (lambda k, y: noisy(k, y).astype(np.float32), range(10), ZERO, 1e-3, above),
    "a level of zeros": (lambda k, y: noisy(k, y) if k else 0 * y, range(8), ZERO, 1e-3, above),
    "two levels of zeros": (lambda k, y: noisy(k, y) * (k > 1), range(9), ZERO, 1e-3, above),
    "no value at the start": (
        lambda k, y: noisy(k, y) if k < 1 or norm(y) > 0.3 else y * np.nan,
        range(9),
        ZERO,
        1e-3,
        above,
    ),
    "hardly any errors": (
        lambda k, y: quadratic(y) + 1e-85**k * OFF[k],
        range(9),
        ZERO,
        1e-3,
        above,
    ),
    "a steep level": (lambda k, y: noisy(k, y) * (1 if k else 1e3), range(9), ZERO, 1e-3, above),
    "rounded": (rounded, range(9), ZERO, 1e-1, above),
    "zero at the start": (lambda k, y: noisy(k, y) if k else LAM * y, range(8), ZERO, 1e-3, above),
    "start at the end": (noisy, range(9), TARGET, 1e-3, above),
    "logistic": (
        logistic,
        range(10),
        np.zeros(8),
        1e-4,
        lambda y: logistic_loss(y) - least(logistic_loss, 8),
    ),
    "kinks": (
        lambda k, y: np.clip(5 * (y - TARGET), -1, 1),
        [2],
        ZERO,
        1e-2,
        lambda y: float(
            np.where(abs(y - TARGET) < 0.2, 2.5 * (y - TARGET) ** 2, abs(y - TARGET) - 0.1).sum()
        ),
    ),
    "flat directions": (
        lambda k, y: np.where(LAM > 0.1, noisy(k, y), 0),
        range(9),
        ZERO,
        1e-3,
        lambda y: float(np.where(LAM > 0.1, LAM * (y - TARGET) ** 2, 0).sum()) / 2,
    ),
    "overflow nearby": (
        lambda k, y: np.exp(20 * y) - 1 + off(k),
        range(9),
        -np.ones(D),
        1e-3,
        lambda y: float((np.exp(20 * y) / 20 - y).sum()) - D / 20,
    ),
}


PAID = {  # with and without AVX: whoever changes a rule of `climb` sees what it changes
    "one unknown": 105035,
    "one level": 2048,
    "exact levels": 143,
    "tiny units": 858563,
    "huge units": 858563,
    "tiny unknowns": 860095,
    "a table": 858563,
    "single precision": 858563,
    "a level of zeros": 858831,
    "a steep level": 860197,
    "zero at the start": 860229,
    "start at the end": 858561,
    "logistic": 13544,
    "kinks": 1408,
    "flat directions": 1603,
    "overflow nearby": 271,
    "concave": 2113,
    "at a maximum": 83,
    "a saddle": 2.69879e8,
    "linear": 2113,
    "a plateau": 1.31947e7,
    "too short": 2282,
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", REACHED)
def test_it_ends_near_eps(name):
    evaluate, levels, start, eps, loss = REACHED[name]
    run = minimize(Hierarchy(evaluate, price, levels), start, eps=eps, rng=0)
    assert run.status == "done"
    assert loss(run.y) <= 1.3 * eps
    assert run.estimate <= eps
    assert run.cost == pytest.approx(PAID.get(name, run.cost), rel=1e-3)


MISSED = {
    "concave": (lambda k, y: off(k) - y, "no minimizer is in sight"),
    "at a maximum": (lambda k, y: -y, "no gradient at the start, maybe a minimizer"),
    "a saddle": (lambda k, y: np.where(np.arange(D) == 3, -1, 1) * noisy(k, y), "may not be met"),
    "one way down": (lambda k, y: np.resize([1, 0.3, -0.02], D) * (y - 1) + 0.1, "may not be met"),
    "linear": (lambda k, y: 0 * y + 1 + off(k), "no minimizer is in sight"),
    "a plateau": (
        lambda k, y: quadratic(y) + 0.3 * 2.0 ** -min(k, 4) * OFF[k],
        "eps = 1e-05 may not be met",
    ),
    "too short": (lambda k, y: noisy(min(k, 1), y), "nothing is promised"),
    "rounded to zero": (rounded, "levels repeat one another"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", MISSED)
def test_or_says_why_not(name):
    evaluate, sentence = MISSED[name]
    run = minimize(Hierarchy(evaluate, price, range(8)), ZERO, eps=1e-5, rng=0)
    assert run.promise == "none"
    assert run.status == "missed" or name in ("too short", "rounded to zero", "at a maximum")
    assert sentence in run.message
    assert run.cost == pytest.approx(PAID.get(name, run.cost), rel=1e-3)


def test_prices_may_fall_on_the_way():
    prices = [1, 8, 64, 32, 4096, 8**5, 8**6, 8**7]
    run = minimize(Hierarchy(noisy, lambda k: prices[k], range(8)), ZERO, eps=1e-3, rng=0)
    assert run.status == "done"
    assert above(run.y) <= 1e-3


CHILD = """
import sys, time
import numpy as np
from mlgd import checkpoint
checkpoint.EVERY = checkpoint.SPACING = 0.0
from test_strangers import Hierarchy, ZERO, minimize, noisy, price
def slow(k, y):
    time.sleep(0.002)
    return noisy(k, y)
run = minimize(Hierarchy(slow, price, range(9)), ZERO, eps=1e-3, rng=0, checkpoint=sys.argv[1])
open(sys.argv[2], "wb").write(run.y.tobytes() + np.float64(run.cost).tobytes())
"""


@pytest.mark.slow
def test_killed_at_random_moments_and_resumed_it_ends_with_the_same_bits(tmp_path):
    whole = minimize(Hierarchy(noisy, price, range(9)), ZERO, eps=1e-3, rng=0)
    path, out = tmp_path / "file", tmp_path / "result"
    command = [sys.executable, "-c", CHILD, str(path), str(out)]
    met = [killed(command, path, n, cwd=Path(__file__).parent) for n in (1, 3, 2, 1)]
    subprocess.run(command, check=True, cwd=Path(__file__).parent)
    assert met == [True] * 4
    assert out.read_bytes() == whole.y.tobytes() + np.float64(whole.cost).tobytes()
