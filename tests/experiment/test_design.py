"""The design: its columns, its random streams, and both ways to draw normals."""

import numpy as np
import pytest

from mlgd.experiment.design import BLOCK, Design, box_muller, stream


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_columns_have_their_norms_and_share_a_direction(rho):
    design = Design(m=4096, n=300, rho=rho, seed=1)
    matrix = design.columns(300)
    np.testing.assert_allclose(
        np.linalg.norm(matrix, axis=0), np.arange(1, 301) ** (-1 / 1.2), rtol=1e-12
    )
    unit = matrix / np.linalg.norm(matrix, axis=0)
    # the common part is rho u: cosines rho with u, rho^2 among themselves
    assert abs(np.mean(design.shared @ unit) - rho) < 5 / np.sqrt(4096 * 300) + 5 / 4096
    assert abs(np.mean((unit.T @ unit)[np.triu_indices(300, 1)]) - rho**2) < 0.01


@pytest.mark.parametrize("pairs", [False, True])
def test_every_block_is_reproducible_on_its_own_and_in_pieces(pairs):
    design = Design(m=64, n=4096, seed=7, pairs=pairs)
    first = design.gaussians(3)
    np.testing.assert_array_equal(design.gaussians(3), first)
    assert not np.array_equal(design.gaussians(2), first)
    assert not np.array_equal(
        Design(m=64, n=4096, seed=8, pairs=pairs).gaussians(3), first
    )
    pieces = list(design.pieces(3, float, size=5 * 64))
    np.testing.assert_array_equal(
        np.concatenate([g.copy() for _, g, _, _ in design.pieces(3, float, size=5 * 64)]),
        first,
    )
    assert [f for f, *_ in pieces] == list(range(3 * BLOCK, 4 * BLOCK, 5))


def test_pairs_are_standard_normals():
    out = np.empty((64, 4096), np.float32)
    box_muller(stream(1, 2), out)
    n = out.size
    moments = [np.mean(out.astype(float) ** q) for q in (1, 2, 3, 4)]
    spreads = np.sqrt(np.array([1, 2, 15, 96]) / n)  # of the mean of x, x^2, x^3, x^4
    np.testing.assert_array_less(np.abs(np.array(moments) - [0, 1, 0, 3]), 5 * spreads)
    # the two of a pair are uncorrelated
    assert abs(np.mean(out[:, :2048] * out[:, 2048:])) < 5 / np.sqrt(n / 2)
    assert 4.3 < np.abs(out).max() < 7


def test_the_columns_past_n_are_zero():
    head, whole = Design(m=32, n=600, seed=1), Design(m=32, n=4000, seed=1)
    np.testing.assert_array_equal(head.columns(600), whole.columns(600))
    assert not head.norms(600, 700).any()


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"phi": 2.0}, "square summable"),
        ({"rho": 1.0}, "parallel"),
        ({"m": 1}, "rows"),
        ({"n": 0}, "columns"),
        ({"seed": -1}, "seed"),
        ({"m": 65, "pairs": True}, "even m"),
    ],
)
def test_bad_designs_are_refused(sizes, words):
    with pytest.raises(ValueError, match=words):
        Design(**sizes)
