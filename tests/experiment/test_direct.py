"""mlgd.experiment.direct: the literal runs, held against what a few lines of algebra give."""

import numpy as np
import pytest

from mlgd.experiment import direct

RNG = np.random.default_rng(5)
COLUMNS = RNG.standard_normal((40, 8)) * np.arange(1, 9) ** -0.8
RIGHT = RNG.standard_normal(40)


def test_a_fixed_level_is_descent_on_its_columns():
    head = COLUMNS[:, :3]
    last, average = direct.fixed(COLUMNS, RIGHT, 3, 0.01, 20)
    x, path = np.zeros(3), []
    for _ in range(20):
        path.append(x.copy())
        x = x - 0.01 * head.T @ (head @ x - RIGHT)
    assert last[-1] == pytest.approx(0.5 * np.sum((head @ x - RIGHT) ** 2), rel=1e-12)
    assert average[-1] == pytest.approx(
        0.5 * np.sum((head @ np.mean(path, axis=0) - RIGHT) ** 2), rel=1e-12
    )


@pytest.mark.parametrize("exact", [True, False])
def test_a_telescope_that_draws_everything_is_its_finest_level(exact):
    run = direct.telescope(
        COLUMNS, RIGHT, (1, 4, 8), np.ones(3), 0.01, exact, np.random.default_rng(0), 30
    )
    last, average = direct.fixed(COLUMNS, RIGHT, 8, 0.01, 30)
    np.testing.assert_allclose(run.last, last, rtol=1e-10)
    np.testing.assert_allclose(run.average, average, rtol=1e-10)
    update = 2 * 40 * 8 if exact else 0
    assert run.flops[0] == (2 if exact else 4) * 40 * (1 + 5 + 12) + update


def test_the_maintained_residual_is_the_recomputed_one():
    run = direct.telescope(
        COLUMNS,
        RIGHT,
        (1, 4, 8),
        np.array([1.0, 0.5, 0.2]),
        0.01,
        True,
        np.random.default_rng(0),
        200,
    )
    np.testing.assert_allclose(run.residual, COLUMNS @ run.x - RIGHT, atol=1e-10)


def test_the_meter_charges_two_flops_for_each_entry_of_a_product():
    design = direct.Products(COLUMNS)
    np.testing.assert_array_equal(design.times(np.ones(3)), COLUMNS[:, :3].sum(axis=1))
    np.testing.assert_array_equal(design.transposed(RIGHT, 5), COLUMNS[:, :5].T @ RIGHT)
    assert design.flops == 2 * 40 * 3 + 2 * 40 * 5


def test_it_takes_nothing_from_the_modules_that_it_judges():
    import ast
    from pathlib import Path

    tree = ast.parse(Path(direct.__file__).read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert modules | names == {"__future__", "collections.abc", "dataclasses", "numpy"}
