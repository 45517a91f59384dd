"""mlgd.hierarchy: ladders of levels; evaluations are converted, copied and checked."""

import math
import pickle

import numpy as np
import pytest
from families import POINTS, gradient, rounded

from mlgd import Hierarchy, Problem, Telescope, minimize, plan
from mlgd.hierarchy import LevelError, dyadic

LADDER = rounded(gradient, 2.0, 1.0, range(1, 8))


def twice(k, y):
    return 2 * y


def price(k):
    return 4.0**k


def one(k):
    return 1.0


def test_steps_telescope_and_cost_two_levels_also_where_levels_are_left_out():
    y, part = POINTS[0], LADDER.only([2, 3, 5, 6])
    assert (LADDER.pair(1), LADDER.pair(4), part.pair(5)) == ((1,), (3, 4), (3, 5))
    for h in (LADDER, part):
        whole = sum(h.step(k, y) for k in h.levels)
        np.testing.assert_allclose(whole, LADDER.value(h.levels[-1], y), atol=1e-12)


@pytest.mark.parametrize("c", [0.3, 0.5, 1.0, 1.7, 4.0])
def test_the_level_before_the_first_costs_at_most_a_unit(c):
    k = Problem(beta=1, d0=1, gamma=3, c=c).first
    assert c * 2.0 ** (k - 1) <= 1 < c * 2.0**k


def test_level_for_takes_the_coarsest_that_suffices():
    assert [LADDER.level_for(delta) for delta in (10.0, 0.125, 0.124)] == [1, 3, 4]


@pytest.mark.parametrize(
    "cost", [lambda k: 4.0**k, [4, 16, 64], {1: 4, 2: 16.0, 3: 64, 9: 0}]
)
def test_prices_are_a_function_a_list_or_a_dict(cost):
    h = Hierarchy(twice, cost, range(1, 4))
    assert [h.cost(k) for k in h.levels] == [4, 16, 64]
    assert h.only([1, 3]).cost(3) == 64


def test_mesh_sizes_are_levels_until_an_accuracy_is_asked_for():
    h = Hierarchy(twice, lambda k: k**3.0, [16, 128, 2048])
    np.testing.assert_array_equal(h.value(2048, np.ones(2)), 2.0)
    assert Telescope(h, {16: 1.0, 2048: 0.1}).expected_cost() == pytest.approx(
        4096 + 0.1 * 2.0**33
    )
    known = {16: 0.1, 128: 0.01, 2048: 1e-3}
    assert (
        Hierarchy(h.evaluate, h.cost, h.levels, known.__getitem__).level_for(0.02) == 128
    )
    with pytest.raises(ValueError, match="no accuracy was declared for these levels"):
        h.accuracies()
    steps = Hierarchy(twice, lambda k: -1.0 / k, [-2048, -128])
    assert "price 0.000488 to 0.00781" in repr(steps)
    assert np.abs(minimize(steps, np.ones(2), eps=0.1).y).max() < 0.1


def test_an_exact_level_has_no_error():
    h = Hierarchy(twice, price, range(3), dyadic, exact=True)
    assert h.accuracies().tolist() == [1.0, 0.5, 0.0]
    assert h.level_for(1e-12) == 2
    assert h.only([0, 2]).exact
    assert not h.only([0, 1]).exact
    with pytest.raises(AttributeError):
        h.exact = False


def test_a_hierarchy_says_what_it_is():
    said = "Hierarchy(levels 1 2 3 ... 7, price 4 to 1.64e+04, accuracy 0.5 to 0.00781)"
    assert repr(LADDER) == said
    declared = Hierarchy(twice, price, [1, 2], accuracy=one, exact=True)
    said = "Hierarchy(levels 1 2, price 4 to 16, accuracy 1 to 1, the finest exact)"
    assert repr(declared) == said


def test_a_hierarchy_of_named_functions_can_be_pickled():
    h = Hierarchy(twice, price, range(1, 4), dyadic)
    for other in (h, h.only([1, 3]), Hierarchy(twice, [1, 2, 3], range(1, 4), one)):
        copy = pickle.loads(pickle.dumps(other))
        assert copy.levels == other.levels
        assert [copy.accuracy(k) for k in copy.levels] == [
            other.accuracy(k) for k in other.levels
        ]
        np.testing.assert_array_equal(copy.value(1, np.ones(2)), 2.0)


# --- evaluations as they come ---


class Tensor:
    """The shape of a torch tensor on the CPU: numpy reads it through `__array__` only."""

    def __init__(self, values, tracked=False):
        self.values, self.tracked = values, tracked

    def __array__(self, dtype=None, copy=None):
        if self.tracked:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return np.asarray(self.values, dtype)


def ladder(evaluate):
    return Hierarchy(evaluate, lambda k: 2.0**k, [1, 2, 3])


KINDS = {
    "list": lambda k, y: [float(x) for x in 2 * y],
    "tuple": lambda k, y: tuple(2 * y),
    "integers": lambda k, y: (2 * y).astype(int),
    "float32": lambda k, y: (2 * y).astype(np.float32),
    "objects": lambda k, y: (2 * y).astype(object),
    "strided": lambda k, y: np.repeat(2 * y, 3)[::3],
    "torch's": lambda k, y: Tensor(2 * y),
    "subclass": lambda k, y: np.ma.array(2 * y),
    "fortran": lambda k, y: np.asfortranarray(2 * y),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("y", [np.array([1.0, 2.0]), np.arange(6.0)], ids=["two", "six"])
def test_whatever_numpy_reads_is_taken(kind, y):
    h = ladder(KINDS[kind])
    for value in (h.value(2, y), h.step(1, y)):
        assert type(value) is np.ndarray
        assert value.dtype == float
        np.testing.assert_array_equal(value, 2 * y)
        value -= 1.0  # it is ours


@pytest.mark.slow
def test_a_run_on_jax_gradients_ends_where_numpy_ends():
    """They can't be changed in place: the run once stayed at its start and called that done."""
    jax = pytest.importorskip("jax")
    loss = jax.grad(lambda y: 0.5 * jax.numpy.sum((y - 1.0) ** 2))
    settings, runs = plan(Problem(beta=1, d0=2, gamma=3, c=1), eps=0.25), []
    for f in (lambda y: y - 1.0, loss):
        h = Hierarchy(
            lambda k, y, f=f: f(y) + 2.0**-k, lambda k: 8.0**k, range(1, 8), dyadic
        )
        runs.append(settings.run(h, np.zeros(2), rng=0))
    np.testing.assert_allclose(runs[1].y, runs[0].y, atol=1e-5)
    assert np.linalg.norm(runs[1].y - 1.0) < 0.3
    assert runs[0].cost == runs[1].cost


def moves(k, y):
    y += 1.0
    return y


NONE = "that is no array of real numbers"
FAULTS = {
    "shape": (
        lambda k, y: y[:2],
        r"returned shape \(2,\) at a point of shape \(3,\): return one",
    ),
    "scalar": (lambda k, y: 1.0, r"returned shape \(\) at a point of shape \(3,\)"),
    "column": (lambda k, y: y[:, None], r"returned shape \(3, 1\)"),
    "nan": (
        lambda k, y: y * math.nan,
        r"returned a non-finite value at y = \[1. 1. 1.\]",
    ),
    "inf": (lambda k, y: np.array([0.0, math.inf, 1.0]), "returned a non-finite value"),
    "none": (
        lambda k, y: None,
        r"returned None \(no return statement\?\): return the gradient",
    ),
    "pair": (
        lambda k, y: (1.0, y),
        r"returned a pair, as \(loss, gradient\) .* return the grad",
    ),
    "pair, scipy's": (lambda k, y: (y, 1.0), r"returned a pair, as .*\(gradient, loss\)"),
    "text": (lambda k, y: ["1", "2", "3"], f"returned a list {NONE}"),
    "complex": (lambda k, y: y + 1j, f"returned a ndarray {NONE}"),
    "ragged": (lambda k, y: [[1.0], [1.0, 2.0], [3.0]], f"returned a list {NONE}"),
    "tracked": (
        lambda k, y: Tensor(y, tracked=True),
        "returned a Tensor .*requires grad",
    ),
    "raises": (lambda k, y: 1 / 0, "raised ZeroDivisionError: division by zero"),
    "moves": (moves, "raised ValueError: output array is read-only"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_level_that_returns_no_gradient_is_named(fault):
    (evaluate, sentence), y = FAULTS[fault], np.ones(3)
    for ask in (Hierarchy.value, Hierarchy.step):
        with pytest.raises(LevelError, match=f"^level 2 {sentence}") as caught:
            ask(ladder(evaluate), 2, y)
        assert caught.value.level == 2
        assert pickle.loads(pickle.dumps(caught.value)).level == 2
        assert isinstance(caught.value.__cause__, Exception | None)
    np.testing.assert_array_equal(y, 1.0)


def test_a_pair_is_told_from_a_gradient_of_two_entries():
    np.testing.assert_array_equal(
        ladder(lambda k, y: (3.0, 4.0)).value(1, np.ones(2)), [3.0, 4.0]
    )
    for y in (np.ones(1), np.ones(2)):
        with pytest.raises(LevelError, match="returned a pair"):
            ladder(lambda k, y: (1.0, y)).value(1, y)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", [(2,), (2, 1)])
def test_large_finite_values_pass_without_a_warning(shape):
    y = np.array([1e200, -1e300]).reshape(shape)
    np.testing.assert_array_equal(ladder(lambda k, y: y).value(1, y), y)
