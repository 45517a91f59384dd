"""The theorem of *Pay for the fine levels once* as numbers, and exact runs against sampled ones."""

import math

import numpy as np
import pytest
import sympy as sp

from mlgd.examples import HeatSource
from mlgd.experiment.anchored import Affine, Ladder, earlier, heat_ladder, last

TOY = {"beta": 1.0, "mu": 0.01, "d0": 1.0, "c": 1.0, "l": 0.2, "k0": 3}


def test_the_table_is_one_formula_for_numbers_and_symbols():
    q, R, mu, kappa, x, rho, eps = sp.symbols("q R mu kappa x rho epsilon", positive=True)
    at = {q: 0.3, R: 2.0, mu: 0.1, kappa: 50.0, x: 0.2, rho: 4.0, eps: 1e-3}
    symbols = earlier(q, R, mu, kappa, sp.log), last(x, rho, eps, mu, kappa, sp.log)
    numbers = earlier(0.3, 2.0, 0.1, 50.0), last(0.2, 4.0, 1e-3, 0.1, 50.0)
    for forms, values in zip(symbols, numbers, strict=True):
        assert [float(f.subs(at)) for f in forms] == pytest.approx(values)


@pytest.mark.parametrize(
    ("gamma", "bound"),
    [(1.5, 43094493.50638866), (2.0, 1408829498.3188767), (3.0, 3154829873031.3584)],
)
def test_the_price_of_one_case_by_hand(gamma, bound):
    assert Ladder(gamma=gamma, **TOY).bound(1e-6, 0.35, 0.1, 4.0) == pytest.approx(bound)


@pytest.mark.parametrize("gamma", [1.0, 2.0, 3.0])
def test_the_price_tends_to_one_gradient(gamma):
    ladder, over = Ladder(gamma=gamma, **TOY), []
    for eps in (1e-6, 1e-10, 1e-14):
        one = ladder.price(ladder.finest(math.sqrt(2 * ladder.mu * eps)))
        over.append(ladder.cheapest(eps) / one)
    assert over[0] > over[1] > over[2] >= 1 - 1e-12
    assert over[2] < 2


def test_the_heat_source_satisfies_what_its_ladder_says():
    heat = HeatSource(range(3, 8))
    ladder, h = heat_ladder(heat), heat.hierarchy
    rng = np.random.default_rng(0)
    for i, k in enumerate(h.levels[1:], 1):
        y, z = rng.standard_normal((2, 16))
        change = (
            h.evaluate(k, y)
            - h.evaluate(k - 1, y)
            - h.evaluate(k, z)
            + h.evaluate(k - 1, z)
        )
        bound = ladder.l * 2.0 ** -(ladder.k0 + i) * np.linalg.norm(y - z)
        assert np.linalg.norm(change) <= bound
        assert heat.errors[k] <= 2.0 ** -(ladder.k0 + i) * (1 + 1e-12)
        assert ladder.price(ladder.k0 + i) >= h.cost(k) * (1 - 1e-12)


@pytest.mark.parametrize("anchored", [True, False])
def test_an_exact_run_is_the_mean_of_sampled_ones(anchored):
    heat = HeatSource(range(3, 6))
    s = Affine.of(heat.hierarchy, heat.start, heat.minimizer, heat.hessian[None])
    eta, steps, runs, rng = 1 / heat.beta, 30, 4000, np.random.default_rng(1)
    noise = 100.0 if anchored else 10.0  # coins that show in a tenth of the steps
    exact = s.run(eta, steps, noise, anchored)
    y, x = np.tile(s.e0, (runs, 1)), np.concatenate([s.e0, s.e0, [[1.0]]], axis=1)
    X = x[:, :, None] * x[:, None]
    for K in range(3):
        if (
            anchored and K
        ):  # the probabilities of an epoch depend on how far its start is from y*
            X[0, :16, :16] = y.T @ y / runs
        p = s._step(K, X, eta, steps, noise, anchored)[2]
        r, average = y.copy(), y.copy()
        for _ in range(steps):
            g = y @ s.M[K, 0].T + s.b[K, 0]
            for k in range(K):
                N, shift = s.M[k + 1, 0] - s.M[k, 0], s.b[k + 1, 0] - s.b[k, 0]
                since = (y - r) @ N.T if anchored else y @ N.T + shift
                g += ((rng.random(runs) < p[k]) / p[k] - 1)[:, None] * since
            y, average = y - eta * g, average + 4 / steps * (y - average)
        ends = [y] if anchored else [y, average]
        losses = [np.einsum("ri,ij,rj->r", e, s.H[0], e) / 2 for e in ends]
        best = min(losses, key=np.mean)
        mean = exact[(K + 1) * steps - 1, 1]
        assert abs(best.mean() - mean) < 6 * best.std() / math.sqrt(runs) + 2e-3 * mean
    paid = exact[:steps, 0]
    base = 1 + (2 * anchored)  # the reference and the base at it, before any step
    assert paid[0] == pytest.approx(base * s.price[0])
