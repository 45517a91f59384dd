"""Figures: one palette, one style, pieces that pages draw with, and the experiment's long figures.

Every figure is drawn inside `loglog`, `pair` or `style`, so that it looks the same on every page:
colours that survive grey printing and colour-blind readers, a white ground that book.css turns
dark on a dark page, and PNG bytes that do not change when nothing changed.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from mlgd.experiment.frontier import across_seeds
from mlgd.experiment.tables import COMMON, PAPER_COSTS, Findings, spread

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
        frame = plt.Rectangle((0, 0), 1, 1, transform=figure.transFigure, fill=False, linewidth=0)
        figure.add_artist(frame)  # notebooks crop to what is drawn: nothing may move the middle
        yield left.subplots(), right.subplots()
        plt.show()


def slope(
    ax: Axes, x: ArrayLike, y0: float, exponent: float, label: str | None = None, **line
) -> None:
    """Draw the power law y0 (x / x[0])^exponent over x: the theory's slope beside the data."""
    x = np.asarray(x, dtype=float)
    options = {"color": GREY, "linestyle": ":", "linewidth": 1.4, "marker": "", "zorder": 1.5}
    ax.plot(x, y0 * (x / x[0]) ** exponent, label=label, **(options | line))


# --- the experiment: every title says what to look at ---

LAW = {"color": GREEN, "linestyle": "-.", "linewidth": 2.0}
METHODS = {  # label, colour, line, marker
    "fixed": ("one fixed level", GREY, "-", "s"),
    "truncated": ("multilevel, truncated", ORANGE, "--", "^"),
    "exact": ("multilevel, exact", BLUE, "-", "o"),
    "krylov": ("conjugate gradients", PURPLE, ":", ""),
}


def target_axis(ax: Axes, last: float) -> None:  # tight targets to the right
    ticks = [t for t in (0.5, 0.2, 0.1, 0.05, 0.02, 0.01) if t >= last]
    ax.set(xlim=(0.6, 0.9 * last), xlabel="target loss, over the start's")
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.set_xticks([], minor=True)
    ax.legend(loc="upper left", fontsize=8.5)


def frontier(found: Findings) -> None:
    """Compute to reach a target, and the advantage: the theorem's slopes and the paper's beside."""
    targets = found.protocol.losses
    with pair(4.4) as (one, two):
        for name, (label, color, dashes, marker) in METHODS.items():
            low, middle, high = across_seeds(found.flops(name))
            one.fill_between(targets, low, high, color=color, alpha=0.18, linewidth=0)
            one.plot(targets, middle, color=color, linestyle=dashes, marker=marker, label=label)
        slope(one, targets[COMMON], 4e5, -4, label=r"slope $\gamma+1$", color=GREEN)
        slope(one, targets[COMMON], 2.5e4, -3, label=r"slope $\gamma$", **LAW)
        for column, name in ((3, "exact"), (5, "truncated")):
            _, color, dashes, marker = METHODS[name]
            low, middle, high = across_seeds(found.advantage(name))
            two.fill_between(targets, low, high, color=color, alpha=0.18, linewidth=0)
            two.plot(targets, middle, color=color, linestyle=dashes, label=f"{name}, ours")
            x, y = PAPER_COSTS[:, [0, column]].T
            two.plot(x, y, marker, color=color, ls="none", label=f"{name}, the paper's")
        two.axhline(1, color=GREY, linewidth=1)
        logs(one, "", "compute to reach it (flops)", "The fixed level climbs steepest")
        logs(two, "", "fixed over multilevel", "The advantage opens as targets tighten")
        for ax in (one, two):
            target_axis(ax, 0.01)


def frozen(found: Findings, exponents: Mapping[str, np.ndarray]) -> None:
    """Costs as they are and with errors frozen; all exponents, {kind: method x seed}."""
    targets, kinds = found.protocol.losses[COMMON], {"as it is": "", "frozen": "frozen "}
    with pair(3.9) as (one, two):
        for kind, prefix in kinds.items():
            for name in ("fixed", "exact"):
                _, color, _, marker = METHODS[name]
                dashes, alpha = ("-", 1.0) if prefix else (":", 0.55)
                look = {"color": color, "marker": marker, "ls": dashes, "alpha": alpha}
                middle = across_seeds(found.flops(prefix + name))[1][COMMON]
                one.plot(targets, middle, label=f"{name}, {kind}", **look)
        logs(one, "", "compute to reach it (flops)", "Frozen errors cost more")
        target_axis(one, 0.02)
        for column, values in enumerate(exponents.values()):
            for row, name in zip(values, ("fixed", "exact"), strict=True):
                _, color, _, marker = METHODS[name]
                x = column + np.linspace(-0.12, 0.12, len(row))
                two.plot(x, row, marker, color=color, alpha=0.5, linestyle="none")
                mean, error = spread(row)
                two.errorbar(column + 0.2, mean, 2 * error, color="black", marker="_", capsize=4)
        for height, text in ((4, r"$\gamma+1$"), (3, r"$\gamma$")):
            two.axhline(height, **LAW)
            two.text(1.42, height + 0.05, text, color=GREEN)
        two.set(xlim=(-0.4, 1.65), ylabel="exponent against the excess loss")
        two.set_title("Frozen: most of the way to the theorem's")
        two.set_xticks(range(len(exponents)), list(exponents))
