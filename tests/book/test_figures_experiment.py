"""mlgd.book.figures_experiment: the theorem's curve is the formula's, and figures draw what they are given."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mlgd import formulas
from mlgd.book.figures_experiment import bounds, theory


def test_the_bound_is_theorem_one():
    eps = np.array([0.1, 0.05])
    values = theory(2.0, 3.0, eps, 3.0)
    assert values[0] == pytest.approx(formulas.value(formulas.LAMBDA, gamma=3.0) * (2 * 3 / 0.1) ** 3)
    assert values[1] / values[0] == pytest.approx(8.0)


def test_a_bound_is_drawn_above_what_was_spent(monkeypatch):
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gcf()))
    targets = np.array([0.3, 0.1, 0.03])
    spent = {"fixed": np.outer([1.0, 2.0], targets**-3)}
    bounds(targets, {"bound": 1e6 * targets**-3}, spent)
    (axes,) = shown[0].axes
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    assert (lines["bound"] > 2 * targets**-3).all()
    assert axes.get_yscale() == "log"
    plt.close("all")
