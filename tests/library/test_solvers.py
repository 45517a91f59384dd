"""The library's own solvers: they find minimizers from gradients alone, keep their bounds, and go on from any evaluation."""

import math
from copy import deepcopy
from types import SimpleNamespace

import numpy as np
import pytest

from mlgd.solvers import nesterov, quasi_newton

SPECTRUM = np.geomspace(1e-3, 1.0, 60)
START = np.random.default_rng(2).standard_normal(60)
MATRIX = np.random.default_rng(5).standard_normal((40, 12)) / 7
SIGNS = np.sign(np.random.default_rng(6).standard_normal(40))


def quadratic(y):
    return SPECTRUM * (y - 1)


def logistic(y):
    """With a ridge, so that there is a minimizer."""
    return -MATRIX.T @ (SIGNS / (1 + np.exp(SIGNS * (MATRIX @ y)))) + 1e-3 * y


def quartic(y):
    """No Lipschitz gradient: the line search must shorten its first steps."""
    return 4 * (y - 1) ** 3 + 0.01 * (y - 1)


def huber(y):
    return np.clip(y - 1, -0.2, 0.2)


def counted(gradient):
    calls = []

    def count(y):
        calls.append(y)
        return gradient(y)

    return count, calls


@pytest.mark.parametrize(
    ("gradient", "start", "beta"),
    [
        (quadratic, START, 1.0),
        (quadratic, START, None),
        (quadratic, 1e6 * START, None),
        (lambda y: 1e8 * quadratic(y), START, None),
        (lambda y: 1e-8 * quadratic(y), START, None),
        (logistic, np.zeros(12), None),
        (quartic, 3 * np.ones(5) + np.arange(5), None),
        (huber, 5 * np.arange(6.0), 1.0),
        (huber, 5 * np.arange(6.0), None),
    ],
)
def test_a_gradient_alone_leads_to_the_minimizer(gradient, start, beta):
    gradient, calls = counted(gradient)
    memory, first = SimpleNamespace(y=start), np.linalg.norm(gradient(start))
    calls.clear()
    yields = sum(1 for _ in quasi_newton(gradient, memory, 1000, 1e-6 * first, beta))
    assert memory.ended == "converged"
    assert yields == len(calls) == memory.t <= 300
    assert np.linalg.norm(gradient(memory.y)) == memory.norm <= 1e-6 * first


def test_a_quadratic_takes_hardly_more_than_conjugate_gradients():
    """The factor of evaluations over steps of conjugate gradients, to three tolerances."""
    spectrum = np.geomspace(1e-3, 1.0, 300)
    start = 1 / np.sqrt(spectrum) * np.sign(np.random.default_rng(0).standard_normal(300))
    r = -spectrum * start
    first, p, steps = np.linalg.norm(r), r.copy(), 0
    for tolerance in (1e-1, 1e-2, 1e-3):
        while np.linalg.norm(r) > tolerance * first:
            a = (r @ r) / (p @ (spectrum * p))
            new = r - a * spectrum * p
            p, r, steps = new + (new @ new) / (r @ r) * p, new, steps + 1
        memory = SimpleNamespace(y=start)
        taken = sum(
            1 for _ in quasi_newton(lambda y: spectrum * y, memory, 2000, tolerance * first, 1.0)
        )
        assert taken <= 1.4 * steps + 3


def test_the_search_ends_where_a_level_knows_no_more():
    """Rounded gradients: below the rounding no slope is right, and the solver says so instead of going on."""

    def rounded(y):
        return np.round(quadratic(y) * 1e3) / 1e3

    memory = SimpleNamespace(y=START)
    made = sum(1 for _ in quasi_newton(rounded, memory, 5000, 1e-9, 1.0))
    assert memory.ended in ("stalled", "converged")
    assert made < 1000
    assert np.linalg.norm(rounded(memory.y)) <= 0.02


def test_steps_are_a_cap():
    gradient, calls = counted(quadratic)
    for _ in quasi_newton(gradient, SimpleNamespace(y=START), 7, 0.0, 1.0):
        pass
    assert len(calls) == 7


@pytest.mark.parametrize("mu", [0.0, 1e-3])
def test_nesterovs_method_keeps_its_bound(mu):
    memory, distance = SimpleNamespace(y=START), np.linalg.norm(START - 1)
    loss = lambda y: 0.5 * float(SPECTRUM @ (y - 1) ** 2)  # noqa: E731
    for t, _ in enumerate(nesterov(quadratic, memory, 300, 1.0, mu), start=1):
        if mu:
            bound = (1 - math.sqrt(mu)) ** t * (loss(START) + mu / 2 * distance**2)
        else:
            bound = 2 * distance**2 / (t + 1) ** 2
        assert loss(memory.y) <= bound
    assert memory.t == t == 300


@pytest.mark.parametrize(
    ("solver", "gradient"),
    [(s, g) for s in ("quasi-newton", "nesterov") for g in (quadratic, huber)]
    + [("quasi-newton", quartic)],
)
def test_a_solver_goes_on_from_any_evaluation(solver, gradient):
    """All that it needs is in its memory, also inside a line search."""

    def begin(memory):
        if solver == "nesterov":
            return nesterov(gradient, memory, 60, 1.0, 1e-3)
        return quasi_newton(gradient, memory, 60, 1e-9)

    whole = SimpleNamespace(y=2 + START[:9] if gradient is not quadratic else START)
    broken = SimpleNamespace(y=whole.y)
    ways = begin(whole), begin(broken)
    for _ in ways[0]:
        next(ways[1])
        assert np.array_equal(whole.y, broken.y)
        broken = deepcopy(broken)
        ways = ways[0], begin(broken)
    assert whole.t == broken.t
