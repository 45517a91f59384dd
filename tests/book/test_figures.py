"""Figures: one style."""

import matplotlib
import numpy as np
import pytest
from matplotlib import colors
from matplotlib import pyplot as plt

from mlgd.book import figures as plots


@pytest.fixture(autouse=True)
def _no_screen():
    with matplotlib.rc_context({"backend": "agg"}):
        plt.switch_backend("agg")
        yield
        plt.close("all")


def grey(color: str) -> float:
    """The lightness a colour keeps on a grey printer."""
    red, green, blue = colors.to_rgb(color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_style_ends_with_its_context():
    before = dict(matplotlib.rcParams)
    with plots.style():
        assert matplotlib.rcParams["figure.dpi"] == 120
    assert dict(matplotlib.rcParams) == before


def test_lines_differ_without_colour():
    assert len(set(plots.DASHES)) == len(plots.PALETTE)
    assert all(grey(color) < 0.75 for color in (*plots.PALETTE, plots.GREY, plots.BLACK))


def test_slope_is_the_power_law():
    with plots.loglog("x", "y") as ax:
        plots.slope(ax, [1.0, 10.0, 100.0], 5.0, -2.0, "minus two")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [5.0, 0.05, 0.0005])
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_xlabel()) == ("log", "log", "x")


def test_two_panels_fill_half_a_picture_each():
    """A phone shows the picture twice, half of it each time: nothing may reach over the middle."""
    with plots.pair() as (left, right):
        for ax in (left, right):
            ax.set(ylabel="a long label", title="a title that is not too long")
        figure = left.figure.figure
        figure.draw_without_rendering()
    middle = figure.bbox.width / 2
    assert left.get_tightbbox().x1 <= middle <= right.get_tightbbox().x0
