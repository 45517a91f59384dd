"""Figures: one palette, one style, and the pieces that more than one page draws with.

Every figure is drawn inside ``with plots.style():``, so that it looks the same on every page:
colours that survive grey printing and colour-blind readers, a white ground that book.css turns
dark on a dark page, and PNG bytes that do not change when nothing changed.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
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
RC = {
    "figure.figsize": (6.4, 4.0),
    "figure.dpi": 120,
    "savefig.dpi": 120,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 12,
    "axes.labelsize": 11,
    "axes.prop_cycle": cycler(color=PALETTE) + cycler(linestyle=DASHES),
    "font.size": 10.5,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.framealpha": 0.9,
    "legend.edgecolor": "#DDDDDD",
    "legend.fontsize": 9.5,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
}


def style() -> AbstractContextManager[None]:
    """The one look of all figures, as a context: ``with plots.style(): ...``."""
    return plt.rc_context(RC)


def loglog(
    xlabel: str, ylabel: str, title: str | None = None, figsize: tuple[float, float] | None = None
) -> tuple[Figure, Axes]:
    """A figure with one pair of labelled log-log axes; call it inside ``style()``."""
    figure, ax = plt.subplots(figsize=figsize, layout="constrained")
    ax.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel)
    if title:
        ax.set_title(title)
    return figure, ax


def panels(height: float = 3.8, width: float = 10.0) -> tuple[Axes, Axes]:
    """Two axes side by side, each in its own half of the picture, so that a phone can stack them.

    The cell's metadata gives the image the class `mlgd-panels`; call it inside ``style()``.
    """
    figure = plt.figure(figsize=(width, height), layout="constrained")
    left, right = figure.subfigures(1, 2)
    frame = plt.Rectangle((0, 0), 1, 1, transform=figure.transFigure, fill=False, linewidth=0)
    figure.add_artist(frame)  # notebooks crop to what is drawn: nothing may move the middle
    return left.subplots(), right.subplots()


def slope(
    ax: Axes, x: ArrayLike, y0: float, exponent: float, label: str | None = None, **line
) -> None:
    """Draw the power law y0 (x / x[0])^exponent over x: the theory's slope beside the data."""
    x = np.asarray(x, dtype=float)
    options = {"color": GREY, "linestyle": ":", "linewidth": 1.4, "marker": "", "zorder": 1.5}
    ax.plot(x, y0 * (x / x[0]) ** exponent, label=label, **(options | line))


def band(ax: Axes, x: ArrayLike, low: ArrayLike, high: ArrayLike, color: str = BLUE) -> None:
    """Shade the spread between low and high, in the colour of the line it belongs to."""
    ax.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)
