"""The two figures of the chapter on anchored descent."""

from collections.abc import Mapping, Sequence

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from .figures import BLUE, GREEN, GREY, ORANGE, SKY

METHODS = {  # in hindsight.tsv: label, colour, marker
    "plain": ("plain telescope", ORANGE, "o"),
    "finest": ("anchored, all references finest", SKY, "s"),
    "anchored": ("anchored, graded", BLUE, "v"),
    "corrected": ("corrected coarse model", GREEN, "^"),
}


def over_target(
    targets: Sequence[float], proved: Mapping[float, Mapping[str, Sequence[float]]], means: Mapping
) -> Figure:
    """Price over one gradient against the target: proved on the left, in hindsight (kappa 100, gamma 3) on the right."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.5), layout="constrained")
    for gamma, curves in proved.items():
        for name, color in (("plain", ORANGE), ("anchored", BLUE)):
            dashes, marker = ("-", "o") if gamma > 2 else ("--", "s")
            left.plot(
                targets,
                curves[name],
                dashes,
                color=color,
                marker=marker,
                label=rf"{name}, $\gamma={gamma:g}$",
            )
    for name, (label, color, marker) in METHODS.items():
        points = [
            (eps, found[name][0])
            for (kappa, gamma, eps), found in means.items()
            if (kappa, gamma) == (100, 3.0) and name in found
        ]
        right.plot(*zip(*sorted(points), strict=True), color=color, marker=marker, label=label)
    for ax, title in ((left, "proved"), (right, r"in hindsight, $\gamma=3$")):
        ax.axhline(1, color=GREY, linestyle=":", linewidth=1.4)
        ax.set(
            xscale="log",
            yscale="log",
            xlabel=r"target $\varepsilon$ (finer to the right)",
            title=title,
        )
        ax.invert_xaxis()
        ax.legend()
    left.set_ylabel("price, in gradients")
    right.set_ylim(0.8, 2000)  # room for the legend above the curves
    return figure


def over_change(
    changes: Sequence[float], prices: Mapping[float, Mapping[str, Sequence[float]]]
) -> Figure:
    """Price over one gradient against l d0, one panel per rate."""
    figure, axes = plt.subplots(
        1, len(prices), figsize=(9.6, 3.0), layout="constrained", sharey=True
    )
    for ax, (gamma, curves) in zip(axes, prices.items(), strict=True):
        for name, color, marker in (
            ("plain", ORANGE, ""),
            ("anchored", BLUE, "o"),
            ("corrected", GREEN, "^"),
        ):
            ax.plot(changes, curves[name], color=color, marker=marker, label=name)
        ax.axhline(1, color=GREY, linestyle=":", linewidth=1.4)
        ax.set(xscale="log", yscale="log", xlabel=r"$l\,d_0$", title=rf"$\gamma={gamma:g}$")
    axes[0].set_ylabel("price, in gradients")
    axes[0].legend()
    return figure
