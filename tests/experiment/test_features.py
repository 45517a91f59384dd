"""The reduction of a design, and its levels as hierarchies."""

import tracemalloc

import numpy as np
import pytest

from mlgd import Problem, Telescope, audit, minimize, plan
from mlgd.experiment.design import BLOCK, Design
from mlgd.experiment.features import PROBE_STEPS, descend, reduce, truncations

SMALL = Design(m=128, n=1500, seed=4)


def whole(design):
    """The design, X* and b, stored."""
    matrix = design.columns(design.n)
    target = np.concatenate([design.target(block) for block in range(design.blocks)])[: design.n]
    return matrix, target, matrix @ target


def test_reduction_is_the_stored_problem():
    matrix, _, b = whole(SMALL)
    problem = reduce([SMALL], 64)[0]
    head = matrix[:, :64]
    np.testing.assert_allclose(problem.gram, head.T @ head, atol=1e-14)
    np.testing.assert_allclose(problem.moment, head.T @ problem.right, atol=1e-13)
    np.testing.assert_allclose(
        problem.right, b, atol=1e-6
    )  # summed from products in single precision
    for x, exact, truncated in zip(
        problem.probes, problem.biases([1, 8, 64]), problem.biases([1, 8, 64], True), strict=True
    ):
        full = np.zeros(SMALL.n)
        full[:64] = x
        gradient = matrix.T @ (matrix @ full - b)
        assert problem.loss(x) == pytest.approx(np.sum((matrix @ full - b) ** 2) / 2, rel=1e-5)
        for k, a, c in zip([1, 8, 64], exact, truncated, strict=True):
            level = np.zeros(SMALL.n)
            level[:k] = gradient[:k]
            assert a == pytest.approx(np.linalg.norm(level - gradient), rel=1e-5)
            level[:k] = matrix[:, :k].T @ (matrix[:, :k] @ full[:k] - b)
            assert c == pytest.approx(np.linalg.norm(level - gradient), rel=1e-5)


def test_reduction_does_not_depend_on_what_is_kept_nor_on_company():
    alone = reduce([SMALL], 32)[0]
    for keep in (0, 2**18, 2**30):
        again, shorter, other = reduce(
            [SMALL, Design(m=128, n=700, seed=4), Design(m=128, n=1500, rho=0.1, phi=1.5, seed=4)],
            32,
            keep=keep,
        )
        np.testing.assert_allclose(again.moment, alone.moment, atol=1e-6)
        np.testing.assert_allclose(again.tails, alone.tails, rtol=1e-5)
        np.testing.assert_allclose(
            shorter.tails, reduce([Design(m=128, n=700, seed=4)], 32)[0].tails, rtol=1e-5
        )
        assert other.design.phi == 1.5
        assert not np.allclose(other.moment, alone.moment)


def test_memory_does_not_grow_with_n():
    def peak(n):
        tracemalloc.start()
        reduce([Design(m=64, n=n)], 16, steps=(0, 1), keep=0)
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    peak(BLOCK)
    assert peak(64 * BLOCK) < 1.1 * peak(4 * BLOCK)


def test_known_facts_of_the_paper_s_sizes():
    # the top eigenvalues need only the first 512 columns; the floor a moderately long tail
    for seed in (0, 1):
        problem = reduce([Design(n=8192, seed=seed)], 512, steps=(0,))[0]
        assert 1.085 < problem.smoothness(4) < 1.115
        assert 1.185 < problem.smoothness(512) < 1.22
        assert 0.002 < problem.floor(512) < 0.021
        assert 0.8 < problem.crossing() / problem.floor(512) < 1.25


def test_diagnostic_descent_is_the_descent():
    problem = reduce([SMALL], 32)[0]
    x, eta = np.zeros(32), 1 / (4 * problem.smoothness(32))
    path = [x]
    for _ in range(20):
        x = x - eta * (problem.gram @ x - problem.moment)
        path.append(x)
    np.testing.assert_allclose(
        descend(problem.gram, problem.moment, (0, 1, 4, 20)),
        np.array(path)[[0, 1, 4, 20]],
        atol=1e-13,
    )
    assert problem.steps == PROBE_STEPS


def test_truncations_are_hierarchies_at_the_paper_s_prices():
    design = Design(m=64, n=400, seed=2)
    matrix, target, b = whole(design)
    ladder = (1, 8, 64)
    x = np.random.default_rng(0).standard_normal(400)
    x[64:] = 0
    gradient = matrix.T @ (matrix @ x - b)
    for exact in (True, False):
        h = truncations(design, ladder, exact)
        assert [h.cost(k) for k in ladder] == [4 * 64 * k for k in ladder]
        np.testing.assert_allclose(h.evaluate(64, x)[:64], gradient[:64], atol=1e-12)
        coarse = matrix[:, :8].T @ ((matrix @ x if exact else matrix[:, :8] @ x[:8]) - b)
        np.testing.assert_allclose(h.evaluate(8, x)[:8], coarse, atol=1e-12)
        assert not h.evaluate(8, x)[8:].any()
        report = audit(h, [np.zeros(400), x], reference=lambda y: matrix.T @ (matrix @ y - b))
        assert report.gamma > 0
        t = Telescope(h, [1.0, 0.5, 0.1])
        np.testing.assert_allclose(t.mean(x), h.evaluate(64, x), atol=1e-12)
        beta = np.linalg.eigvalsh(matrix @ matrix.T)[-1]
        d0 = float(np.linalg.norm(target))
        problem = Problem(beta=beta, d0=d0, gamma=3.0, c=1.0)
        result = minimize(h, np.zeros(400), plan(problem, 17 * d0 * h.accuracy(64)), rng=0)
        assert result.status == "done"
        assert np.sum((matrix @ result.y - b) ** 2) < 0.5 * np.sum(b**2)


def test_bad_reductions_are_refused():
    with pytest.raises(ValueError, match="past m columns"):
        reduce([SMALL], 129)
    with pytest.raises(ValueError, match="smaller than k_max"):
        reduce([Design(m=128, n=20)], 32)
    with pytest.raises(ValueError, match="share their seed"):
        reduce([SMALL, Design(m=128, n=1500, seed=5)], 32)
    with pytest.raises(ValueError, match="too large to store"):
        truncations(Design(), (1, 8), True)
