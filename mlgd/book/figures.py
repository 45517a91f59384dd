"""Figures: one palette, one style, and the figures that more than one page shows.

Every figure of the book is drawn inside ``with plots.style():``, so that it is the same on every page: colours
that survive grey printing and colour-blind readers, a white ground that book.css turns dark on a dark page, and PNG
bytes that do not change when nothing changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from mlgd import Problem, formulas, plan

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
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "axes.facecolor": "white",
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 12,
    "axes.labelsize": 11,
    "axes.prop_cycle": cycler(color=PALETTE) + cycler(linestyle=DASHES),
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": True,
    "legend.framealpha": 0.9,
    "legend.edgecolor": "#DDDDDD",
    "legend.fontsize": 9.5,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "mathtext.fontset": "dejavusans",
    "text.color": BLACK,
    "axes.labelcolor": BLACK,
    "xtick.color": BLACK,
    "ytick.color": BLACK,
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


def direct_labels(ax: Axes, labels: Iterable[tuple[float, float, str, str]]) -> None:
    """Write each (x, y, text, colour) beside its curve, where a legend would send the eye away."""
    for x, y, text, color in labels:
        offset = {"xytext": (6, 0), "textcoords": "offset points"}
        ax.annotate(text, (x, y), color=color, va="center", fontsize=9.5, **offset)


def cover(gamma: float = 3.0) -> Figure:
    """The paper's result in one picture: what descent costs, beside what one gradient evaluation costs.

    The paper's Theorems 1(a) and 2 for beta = d0 = c = 1, as executed plans: left in absolute price, right in units of
    one evaluation at the accuracy the target needs, eps / (16 d0).
    """
    problem = Problem(beta=1.0, d0=1.0, gamma=gamma, c=1.0)
    eps = 2.0 ** -np.arange(0.0, 17.0)
    one = np.array(
        [
            (problem.c / formulas.value(formulas.CONVEX["delta"], eps=e, d0=1.0)) ** gamma
            for e in eps
        ]
    )
    bound = np.array(
        [formulas.value(formulas.LOWER_CONVEX, c=1.0, d0=1.0, eps=e, gamma=gamma) for e in eps]
    )
    price = {
        m: np.array([plan(problem, e, m).expected_cost for e in eps])
        for m in ("fixed", "multilevel")
    }
    curves = [
        (price["fixed"], "descent at a fixed level", ORANGE, "--", "s"),
        (price["multilevel"], "multilevel descent", BLUE, "-", "o"),
        (one, "one gradient evaluation", BLACK, "-.", ""),
        (bound, "proved lower bound for any method", GREY, ":", ""),
    ]
    figure, axes = plt.subplots(1, 2, figsize=(10.0, 4.2), layout="constrained")
    for ax, unit in zip(axes, (1.0, one), strict=True):
        for y, label, color, dashes, marker in curves:
            ax.plot(
                eps,
                y / unit,
                label=label,
                color=color,
                linestyle=dashes,
                marker=marker,
                markevery=4,
            )
        ax.set(
            xscale="log",
            yscale="log",
            xlabel=r"target accuracy $\varepsilon / (\beta d_0^2)$ (finer to the right)",
        )
        ax.invert_xaxis()
    middle = len(eps) // 2
    exponents = (
        (price["fixed"], gamma + 1, ORANGE, (-8, 8), "right"),
        (one, gamma, BLACK, (6, -14), "left"),
    )
    for y, exponent, color, offset, side in exponents:
        text = rf"slope $\varepsilon^{{-{exponent:g}}}$"
        axes[0].annotate(
            text,
            (eps[middle], y[middle]),
            xytext=offset,
            textcoords="offset points",
            color=color,
            ha=side,
        )
    axes[0].set(ylabel="expected price (operations)", title=rf"what it costs, $\gamma = {gamma:g}$")
    axes[1].set(
        ylabel="price, in gradient evaluations", title="in units of one gradient evaluation"
    )
    axes[1].legend(loc="center", bbox_to_anchor=(0.5, 0.27))
    return figure


def save_cover(path: Path) -> None:
    """Write the cover as a PNG whose bytes depend on the picture alone."""
    with style():
        figure = cover()
        figure.savefig(path, metadata={"Software": None})
        plt.close(figure)
