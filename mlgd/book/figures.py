"""Figures: one palette, one style, and pieces that pages draw with.

Every figure is drawn inside `loglog`, `pair` or `style`, so that it looks the same on every page:
colours that survive grey printing and colour-blind readers, a white ground that book.css turns
dark on a dark page, and PNG bytes that do not change when nothing changed.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

# Okabe and Ito's palette; in grey the first four are still four different shades.
BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
YELLOW = "#E69F00"
GREY = "#6B6B6B"
BLACK = "#1A1A1A"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, SKY, YELLOW)

# A line is told from its neighbour by its dashes too, for readers who see no colour.
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
# a theorem's line beside data
LAW = {
    "color": GREEN,
    "linestyle": "-.",
    "linewidth": 2.0,
}
CYCLE = cycler(color=PALETTE) + cycler(linestyle=DASHES)
LOOK = Path(__file__).with_name("look.mplstyle")


def style() -> AbstractContextManager[None]:
    """The one look of all figures, as a context: ``with plots.style(): ...``."""
    return plt.style.context([LOOK, {"axes.prop_cycle": CYCLE}])


def logs(ax: Axes, x: str, y: str, title: str = "") -> None:
    """Two logarithmic axes with their labels."""
    ax.set(xscale="log", yscale="log", xlabel=x, ylabel=y, title=title)


@contextmanager
def loglog(x: str, y: str, figsize: tuple[float, float] | None = None) -> Iterator[Axes]:
    """One pair of labelled log-log axes in the book's style, shown at the end."""
    with style():
        _, ax = plt.subplots(figsize=figsize, layout="constrained")
        logs(ax, x, y)
        yield ax
        plt.show()


@contextmanager
def pair(height: float = 3.8, width: float = 10.0) -> Iterator[tuple[Axes, Axes]]:
    """Two axes side by side, each in its own half of the picture, so that a phone can stack them.

    The cell's metadata gives the image the class `mlgd-panels`; shown at the end.
    """
    with style():
        figure = plt.figure(figsize=(width, height), layout="constrained")
        left, right = figure.subfigures(1, 2)
        frame = plt.Rectangle(
            (0, 0), 1, 1, transform=figure.transFigure, fill=False, linewidth=0
        )
        # notebooks crop to what is drawn: nothing may move the middle
        figure.add_artist(frame)
        yield left.subplots(), right.subplots()
        plt.show()


def slope(
    ax: Axes, x: ArrayLike, y0: float, exponent: float, label: str | None = None, **line
) -> None:
    """Draw the power law y0 (x / x[0])^exponent over x: the theory's slope beside the data."""
    x = np.asarray(x, dtype=float)
    options = {
        "color": GREY,
        "linestyle": ":",
        "linewidth": 1.4,
        "marker": "",
        "zorder": 1.5,
    }
    ax.plot(x, y0 * (x / x[0]) ** exponent, label=label, **(options | line))
