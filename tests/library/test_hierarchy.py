"""mlgd.hierarchy: ready-made hierarchies obey Assumption 1; bad ones are refused."""

import math

import numpy as np
import pytest
from families import FAMILIES, POINTS, alternating, gradient
from hypothesis import given, settings
from hypothesis import strategies as st

from mlgd import Hierarchy, audit
from mlgd.examples import biased, rounded
from mlgd.hierarchy import LevelError, first_level


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-50, 50), min_size=4, max_size=4), st.integers(-3, 20), st.floats(0.3, 6), st.floats(0.1, 4))
def test_ready_made_levels_obey_the_assumption(name, y, k, rate, c):
    h = FAMILIES[name](gradient, rate, c, [k, k + 1])
    y = np.array(y)
    assert np.linalg.norm(h.evaluate(k, y) - gradient(y)) <= 2.0**-k + 1e-12 * (1 + np.linalg.norm(y))
    assert math.isclose(h.cost(k), (c * 2.0**k) ** rate, rel_tol=1e-12)
    assert h.accuracy(k) == 2.0**-k


def test_the_worst_case_reaches_every_bound():
    h = alternating(gradient, 2.0, 1.0, range(1, 8))
    y = POINTS[0]
    for k in h.levels[1:]:
        assert math.isclose(np.linalg.norm(h.evaluate(k, y) - gradient(y)), 2.0**-k, rel_tol=1e-9)
        assert math.isclose(np.linalg.norm(h.step(k, y)), 3 * 2.0**-k, rel_tol=1e-9)


def test_steps_telescope_and_cost_two_levels():
    h = rounded(gradient, 2.0, 1.0, range(1, 8))
    y = POINTS[0]
    np.testing.assert_allclose(sum(h.step(k, y) for k in h.levels), h.evaluate(7, y), atol=1e-12)
    assert h.before(1) is None
    assert h.before(4) == 3
    assert h.step_cost(1) == h.cost(1)
    assert h.step_cost(4) == h.cost(4) + h.cost(3)
    shared = Hierarchy(h.evaluate, h.cost, h.levels, increment=h.step)
    assert shared.step_cost(4) == h.cost(4)
    np.testing.assert_array_equal(shared.step(4, y), h.step(4, y))


@pytest.mark.parametrize("c", [0.3, 0.5, 1.0, 1.7, 4.0])
def test_the_level_before_the_first_costs_at_most_a_unit(c):
    k = first_level(c)
    assert c * 2.0 ** (k - 1) <= 1 < c * 2.0**k


def test_level_for_takes_the_coarsest_that_suffices():
    h = rounded(gradient, 2.0, 1.0, range(1, 8))
    assert h.level_for(0.125) == 3
    assert h.level_for(0.124) == 4
    assert h.level_for(10.0) == 1
    with pytest.raises(LevelError, match=r"accuracy 0.001 is needed and the finest level offers 0.00781: add levels"):
        h.level_for(0.001)


# --- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"levels": []}, "levels must be increasing integers, at least one"),
        ({"levels": [2, 1]}, r"levels must be increasing integers, at least one; got \[2, 1\]"),
        ({"levels": [1, 1]}, "levels must be increasing"),
        ({"cost": lambda k: 0.0}, "the price of level 1 must be positive and finite; got 0.0"),
        ({"cost": lambda k: -1.0 if k == 2 else 1.0}, "the price of level 2 must be positive"),
        ({"cost": lambda k: math.inf}, "the price of level 1 must be positive and finite; got inf"),
        ({"accuracy": lambda k: math.nan}, "the accuracy of level 1 must be positive and finite; got nan"),
    ],
)
def test_a_bad_hierarchy_is_refused(arguments, message):
    good = {"evaluate": lambda k, y: y, "cost": lambda k: 2.0**k, "levels": [1, 2, 3]}
    with pytest.raises(ValueError, match=message):
        Hierarchy(**(good | arguments))


def test_ready_made_hierarchies_refuse_a_bad_rate():
    with pytest.raises(ValueError, match=r"gamma and c must be positive; got gamma=-1\.0"):
        rounded(gradient, -1.0, 1.0, [1])
    with pytest.raises(ValueError, match="gamma and c must be positive"):
        biased(gradient, 1.0, 0.0, [1])


def test_a_level_that_returns_no_gradient_is_named():
    y = np.ones(3)
    shape = Hierarchy(lambda k, y: y[:2] if k == 2 else y, lambda k: 2.0**k, [1, 2, 3])
    with pytest.raises(LevelError, match=r"level 2 returned shape \(2,\) at a point of shape \(3,\)"):
        shape.check(y)
    broken = Hierarchy(lambda k, y: y * math.nan if k == 3 else y, lambda k: 2.0**k, [1, 2, 3])
    with pytest.raises(LevelError, match="level 3 returned a non-finite value at the point given: mend that level"):
        broken.check(y)
    with pytest.raises(LevelError, match="level 3 returned a non-finite value"):
        audit(broken, [y])
    with pytest.raises(ValueError, match="non-finite entry: give finite numbers"):
        broken.check([1.0, math.inf])
    with pytest.raises(LevelError, match=r"level 9 is not one of 1\.\.3"):
        broken.before(9)


def test_check_evaluates_only_the_levels_asked_for():
    seen = []

    def evaluate(k, y):
        seen.append(k)
        return y

    h = Hierarchy(evaluate, lambda k: 2.0**k, range(1, 9))
    assert h.check([1, 2], levels=(2, 5)).dtype == float
    assert seen == [2, 5]
