"""The heat source: the adjoint is the forward map's transpose, levels converge at first order, the rate is near three."""

import numpy as np
import pytest

from mlgd import audit
from mlgd.experiment.heat import HeatSource, Solver, exact_map


def test_the_adjoint_is_the_transpose():
    rng = np.random.default_rng(0)
    for k in (3, 5):
        solver = Solver(k, 0.1)
        q, r = rng.standard_normal(16), rng.standard_normal(98)
        assert solver.forward(q) @ r == pytest.approx(q @ solver.adjoint(r), rel=1e-12)


def test_levels_approach_the_exact_map_at_first_order():
    truth = exact_map(0.1)
    errors = []
    for k in (4, 5, 6, 7):
        solver = Solver(k, 0.1)
        errors.append(np.abs(np.array([solver.forward(e) for e in np.eye(16)]).T - truth).max())
    ratios = np.divide(errors[:-1], errors[1:])
    assert (ratios > 1.6).all()
    assert (ratios < 2.2).all()


def test_the_measured_rate_is_near_three_and_harder_than_monte_carlo():
    heat = HeatSource(levels=(3, 4, 5, 6, 7))
    report = audit(
        heat.hierarchy(),
        [np.zeros(16), heat.minimizer, heat.minimizer / 2],
        reference=heat.gradient,
    )
    assert report.gamma == pytest.approx(3, rel=0.1)
    assert report.regime == "HTMC"


def test_the_minimizer_has_no_exact_gradient_and_no_gap():
    heat = HeatSource()
    assert np.linalg.norm(heat.gradient(heat.minimizer)) < 1e-12
    assert heat.loss_gap(heat.minimizer) == 0
    assert heat.loss_gap(np.zeros(16)) > 0


def test_a_grid_too_coarse_for_the_sensors_is_refused():
    with pytest.raises(ValueError, match="level 3 and finer"):
        Solver(2, 0.1)
