"""Figures of the experiment's chapter, one function each; every one ends in plt.show(), every panel's title says what to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from mlgd.experiment.fits import across_seeds, rate
from mlgd.experiment.protocol import Protocol, SeedResult
from mlgd.experiment.tables import PAPER_SEEDS

from .figures import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, band, slope, style

METHODS = {  # label, colour, line, marker
    "fixed": ("one fixed level", GREY, "-", "s"),
    "truncated": ("multilevel, truncated residual", ORANGE, "--", "^"),
    "exact": ("multilevel, exact residual", BLUE, "-", "o"),
}
TICKS = (0.5, 0.3, 0.1, 0.03, 0.01)


def _targets(ax: Axes) -> None:
    """An axis of target losses, tight ones to the right."""
    ax.set(xscale="log", yscale="log", xlabel="target loss, as a share of the loss at the start")
    ax.set_xlim(0.6, 0.009)
    ax.set_xticks(TICKS, [f"{t:g}" for t in TICKS])
    ax.xaxis.set_minor_formatter(NullFormatter())


def _frontier(
    ax: Axes, targets: np.ndarray, flops: np.ndarray, label: str, color: str, line: str, marker: str
) -> None:
    low, middle, high = across_seeds(flops)
    ok = np.isfinite(middle)
    band(ax, targets[ok], low[ok], high[ok], color)
    ax.plot(targets[ok], middle[ok], color=color, linestyle=line, marker=marker, label=label)


def reading(protocol: Protocol, results: Sequence[SeedResult]) -> None:
    """How gamma is read, and which seeds misread it."""
    six = [protocol.wide_probes.index(s) for s in protocol.probes]
    levels, m = results[0].levels, protocol.m
    curves = np.array([r.biases["exact"][six].max(axis=0) for r in results])
    gamma, r2 = np.array([rate(levels, c, protocol.fit_from) for c in curves]).T
    straight, x = r2 >= 0.999, 2.0 * m * levels
    with style():
        _, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.3), layout="constrained")
        for curve, good in zip(curves / curves[:, -1:], straight, strict=True):
            left.plot(
                x,
                curve,
                color=BLUE if good else ORANGE,
                linestyle="-" if good else "--",
                linewidth=1.0,
            )
        law = {"color": GREEN, "linestyle": "-.", "linewidth": 2.4, "zorder": 3}
        slope(left, x, 8.0, -1 / protocol.gamma, label=r"closed form, slope $-1/3$", **law)
        left.axvline(x[levels == protocol.fit_from][0], color=GREY, linestyle=":", linewidth=1.2)
        left.text(
            x[levels == protocol.fit_from][0],
            9.0,
            " the fit starts here",
            fontsize=9,
            color=GREY,
            va="top",
        )
        left.set(
            xscale="log",
            yscale="log",
            xlabel="compute of one level (flops)",
            ylabel="bias over the finest level's",
        )
        left.set_title("Past 32 columns the slopes agree")
        left.legend(loc="lower left")
        aligned = np.array([r.alignment for r in results])
        right.axhline(3.0, color=GREEN, linestyle="-.", linewidth=1.4, label="closed form")
        theirs = PAPER_SEEDS[:, 0]
        right.axhspan(
            theirs.min(),
            theirs.max(),
            color=PURPLE,
            alpha=0.2,
            linewidth=0,
            label="range of the paper's seeds",
        )
        for good, color, marker, label in (
            (True, BLUE, "o", r"$R^2\geq0.999$"),
            (False, ORANGE, "D", r"$R^2<0.999$"),
        ):
            chosen = straight == good
            right.plot(
                aligned[chosen], gamma[chosen], marker, color=color, linestyle="none", label=label
            )
        right.set(
            xscale="log",
            xlabel=r"share of $b$ along the shared direction",
            ylabel=r"fitted $\gamma$, one point per seed",
        )
        right.set_xticks([0.05, 0.1, 0.2, 0.5, 1.0], ["0.05", "0.1", "0.2", "0.5", "1"])
        right.xaxis.set_minor_formatter(NullFormatter())
        right.set_title("Misread only where $b$ misses that direction")
        right.legend(loc="lower right")
        plt.show()


def frontier(
    protocol: Protocol, results: Sequence[SeedResult], paper: np.ndarray, every: int = 1
) -> None:
    """Compute to reach a target, with the theorem's slopes; and the advantage, with the paper's table beside it."""
    targets, flops = (
        protocol.losses,
        {n: np.array([r.frontiers[n, every].flops for r in results]) for n in METHODS},
    )
    with style():
        _, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.6), layout="constrained")
        for name, look in METHODS.items():
            _frontier(left, targets, flops[name], *look)
        for exponent, height, label, line in (
            (4.0, 4e5, r"slope $\gamma+1$", ":"),
            (3.0, 2e4, r"slope $\gamma$", "-."),
        ):
            slope(left, targets, height, -exponent, label=label, color=GREEN, linestyle=line)
        _targets(left)
        left.set_ylabel("compute to reach it (flops)")
        left.set_title("The fixed level climbs steepest")
        left.legend(loc="upper left", fontsize=8.5)
        for column, name in ((3, "exact"), (5, "truncated")):
            label, color, line, marker = METHODS[name]
            both = np.isfinite(flops["fixed"]) & np.isfinite(flops[name])
            ratio = np.where(both, flops["fixed"], np.inf) / np.where(both, flops[name], 1.0)
            low, middle, high = across_seeds(ratio)
            band(right, targets, low, high, color)
            right.plot(
                targets, middle, color=color, linestyle=line, label=f"{label.split(', ')[1]}, ours"
            )
            right.plot(
                paper[:, 0],
                paper[:, column],
                marker,
                color=color,
                linestyle="none",
                label="the paper's",
            )
        right.axhline(1.0, color=GREY, linewidth=1.0)
        right.text(0.0105, 1.05, "equal", fontsize=9, color=GREY, va="bottom", ha="right")
        _targets(right)
        right.set_ylabel("fixed over multilevel compute")
        right.set_title("The advantage opens as the target tightens")
        right.legend(loc="upper left", fontsize=8.5)
        plt.show()


def truncations(
    panels: Mapping[str, tuple[int, np.ndarray, np.ndarray, np.ndarray]], gamma: float
) -> None:
    """Both truncations along a descent: {title: (m, levels, exact bias, truncated bias)}, with the envelopes granted to each."""
    with style():
        _, axes = plt.subplots(
            1, len(panels), figsize=(5.25 * len(panels), 4.3), layout="constrained", squeeze=False
        )
        for ax, (title, (m, k, exact, truncated)) in zip(axes[0], panels.items(), strict=True):
            shape, x = k ** (-1 / gamma), 2.0 * m * k
            low, high = np.max(exact[k >= 32] / shape[k >= 32]), np.max(truncated / shape)
            ax.fill_between(x, low * shape, high * shape, color=SKY, alpha=0.2, linewidth=0)
            for level, color in ((low, BLUE), (high, ORANGE)):
                ax.plot(x, level * shape, color=color, linestyle=":")
            ax.plot(
                x, truncated, color=ORANGE, marker="^", linestyle="--", label="truncated residual"
            )
            ax.plot(x, exact, color=BLUE, marker="o", linestyle="-", label="exact residual")
            ax.set(xscale="log", yscale="log", xlabel="compute of one level (flops)", title=title)
        axes[0][0].set_ylabel("largest bias along a descent")
        axes[0][0].legend(loc="lower left")
        plt.show()


def frozen(
    protocol: Protocol, local: Mapping[str, np.ndarray], fixed_prefactor: Mapping[str, np.ndarray]
) -> None:
    """Costs on the instance, and on the same instance with its prefactor frozen."""
    titles = ("As it is: biases shrink with the loss", "Frozen: steeper, and dearer in the middle")
    with style():
        _, axes = plt.subplots(1, 2, figsize=(10.5, 4.3), layout="constrained", sharey=True)
        for ax, curves, title in zip(axes, (local, fixed_prefactor), titles, strict=True):
            for name, flops in curves.items():
                _frontier(ax, protocol.losses, flops, *METHODS[name])
            _targets(ax)
            ax.set_title(title)
        axes[0].set_ylabel("compute to reach it (flops)")
        axes[0].legend(loc="upper left")
        plt.show()
