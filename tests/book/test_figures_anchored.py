from matplotlib import pyplot as plt

from mlgd.book import figures as plots
from mlgd.book import figures_anchored


def test_both_figures_show_every_curve_they_are_given():
    curves = {"plain": [100.0, 200.0], "anchored": [9.0, 2.0], "corrected": [8.0, 1.5]}
    cell = {name: (3.0, 0.0, 10) for name in figures_anchored.METHODS}
    means = {(100, 3.0, 1e-2): cell, (100, 3.0, 1e-4): cell, (1000, 3.0, 1e-4): cell}
    with plots.style():
        first = figures_anchored.over_target([1e-2, 1e-4], {1.5: curves, 3.0: curves}, means)
        second = figures_anchored.over_change([0.1, 1.0], {1.5: curves, 3.0: curves})
    left, right = first.axes
    assert [len(ax.lines) for ax in (left, right, *second.axes)] == [5, 5, 4, 4]
    assert all(ax.get_xscale() == ax.get_yscale() == "log" for ax in (*first.axes, *second.axes))
    assert [len(line.get_xdata()) for line in right.lines[:4]] == [2, 2, 2, 2]
    plt.close("all")
