"""Figures of the experiment's chapter: the frame of all of them, and the two that are long.

Every panel's title says what to look at; the other figures are cells of the chapter.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from mlgd.experiment.frontier import across_seeds
from mlgd.experiment.tables import COMMON, PAPER_COSTS, Findings, spread

from . import figures
from .figures import BLUE, GREEN, GREY, ORANGE, PURPLE, band, slope, style

LAW = {"color": GREEN, "linestyle": "-.", "linewidth": 2.0}
METHODS = {  # label, colour, line, marker
    "fixed": ("one fixed level", GREY, "-", "s"),
    "truncated": ("multilevel, truncated", ORANGE, "--", "^"),
    "exact": ("multilevel, exact", BLUE, "-", "o"),
    "krylov": ("conjugate gradients", PURPLE, ":", ""),
}


@contextmanager
def panels(height: float = 3.8) -> Iterator[tuple[Axes, Axes]]:
    """Two panels side by side in the book's style, shown at the end."""
    with style():
        yield figures.panels(height, 10.5)
        plt.show()


def logs(ax: Axes, x: str, y: str, title: str) -> None:
    ax.set(xscale="log", yscale="log", xlabel=x, ylabel=y, title=title)


def target_axis(ax: Axes, last: float) -> None:  # tight targets to the right
    ticks = [t for t in (0.5, 0.2, 0.1, 0.05, 0.02, 0.01) if t >= last]
    ax.set(xlim=(0.6, 0.9 * last), xlabel="target loss, over the start's")
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.set_xticks([], minor=True)
    ax.legend(loc="upper left", fontsize=8.5)


def frontier(found: Findings) -> None:
    """Compute to reach a target, and the advantage: the theorem's slopes and the paper's beside."""
    targets = found.protocol.losses
    with panels(4.4) as (one, two):
        for name, (label, color, dashes, marker) in METHODS.items():
            low, middle, high = across_seeds(found.flops(name))
            band(one, targets, low, high, color)
            one.plot(targets, middle, color=color, linestyle=dashes, marker=marker, label=label)
        slope(one, targets[COMMON], 4e5, -4, label=r"slope $\gamma+1$", color=GREEN)
        slope(one, targets[COMMON], 2.5e4, -3, label=r"slope $\gamma$", **LAW)
        for column, name in ((3, "exact"), (5, "truncated")):
            _, color, dashes, marker = METHODS[name]
            low, middle, high = across_seeds(found.advantage(name))
            band(two, targets, low, high, color)
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
    with panels(3.9) as (one, two):
        for kind, prefix in kinds.items():
            for name in ("fixed", "exact"):
                _, color, _, marker = METHODS[name]
                dashes, alpha = ("-", 1.0) if prefix else (":", 0.55)
                look = {"color": color, "marker": marker, "ls": dashes, "alpha": alpha}
                middle = across_seeds(found.flops(prefix + name))[1][COMMON]
                one.plot(targets, middle, label=f"{name}, {kind}", **look)
        logs(one, "", "compute to reach it (flops)", "Frozen errors cost more and more")
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
