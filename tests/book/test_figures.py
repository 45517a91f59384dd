"""The style of all figures, and the cover."""

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
    """Neighbours in the cycle differ in dashes, and every colour stands out from the white ground."""
    assert len(set(plots.DASHES)) == len(plots.PALETTE)
    assert all(grey(color) < 0.75 for color in (*plots.PALETTE, plots.GREY, plots.BLACK))


def test_slope_is_the_power_law():
    with plots.style():
        _, ax = plots.loglog("x", "y", title="t")
        plots.slope(ax, [1.0, 10.0, 100.0], 5.0, -2.0, "minus two")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [5.0, 0.05, 0.0005])
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_xlabel()) == ("log", "log", "x")


def test_band_spans_low_to_high():
    with plots.style():
        _, ax = plots.loglog("x", "y")
        plots.band(ax, [1, 2], [1, 2], [3, 4])
    heights = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (1, 4)


def test_same_figure_same_bytes(tmp_path):
    for name in ("once.png", "twice.png"):
        plots.save_cover(tmp_path / name)
    assert (tmp_path / "once.png").read_bytes() == (tmp_path / "twice.png").read_bytes()


def test_cover_shows_the_slopes_of_the_theorem():
    """Fixed level: one power of eps more than multilevel descent, which stays within ten evaluations of the gradient."""
    with plots.style():
        absolute, relative = plots.cover(gamma=3.0).axes
    fixed, multilevel, one, bound = (line.get_ydata() for line in absolute.lines)
    eps = absolute.lines[0].get_xdata()
    steepness = [
        np.polyfit(np.log(eps[8:]), np.log(y[8:]), 1)[0] for y in (fixed, multilevel, one, bound)
    ]
    np.testing.assert_allclose(steepness, [-4.0, -3.0, -3.0, -3.0], atol=0.05)
    assert np.all(relative.lines[1].get_ydata() < 10)
    assert np.all(bound < multilevel)


def test_committed_cover_is_the_one_the_code_draws(book, tmp_path):
    plots.save_cover(tmp_path / "cover.png")
    drawn, committed = (
        plt.imread(path) for path in (tmp_path / "cover.png", book / "_static" / "cover.png")
    )
    assert drawn.shape == committed.shape, "run make run: the cover is out of date"
    assert np.abs(drawn - committed).mean() < 1e-3, "run make run: the cover is out of date"
    assert np.abs(drawn[::-1] - committed).mean() > 1e-2
