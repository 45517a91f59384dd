"""Figures of the experiment's chapter, one function each; every panel's title says what to look at."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from mlgd.experiment.frontier import across_seeds
from mlgd.experiment.reduce import Reduced, rate
from mlgd.experiment.tables import COMMON, PAPER_COSTS, Findings, spread

from .figures import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, band, slope, style

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
        yield plt.subplots(1, 2, figsize=(10.5, height), layout="constrained")[1]
        plt.show()


def logs(ax: Axes, x: str, y: str, title: str) -> None:
    ax.set(xscale="log", yscale="log", xlabel=x, ylabel=y, title=title)


def target_axis(ax: Axes, last: float) -> None:  # tight targets to the right
    ticks = [t for t in (0.5, 0.2, 0.1, 0.05, 0.02, 0.01) if t >= last]
    ax.set(xlim=(0.6, 0.9 * last), xlabel="target loss, over the start's")
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.set_xticks([], minor=True)
    ax.legend(loc="upper left", fontsize=8.5)


def geometry(phi: float = 1.2) -> None:
    """What each level discards, and its norm."""
    i, tints = np.arange(1, 131073), ("#9ecae1", "#6baed6", "#3182bd", "#08519c")
    weight = i ** (-2 / phi)
    left_over = np.sqrt(np.cumsum(weight[::-1])[::-1])  # the norm of columns i, i + 1, ...
    i, weight, left_over = i[:3000], weight[:3000], left_over[1:3001]
    with panels(3.6) as (one, two):
        one.plot(i, weight, color=GREY)
        two.plot(i, left_over, color=GREY, zorder=1)
        for cut, color in zip((1, 8, 64, 512), tints, strict=True):
            one.fill_between(i[cut:], 1e-6, weight[cut:], color=color)
            two.plot(cut, left_over[cut - 1], "o", color=color, markersize=9)
            two.text(1.2 * cut, 1.1 * left_over[cut - 1], f"level {cut}")
        slope(two, [8, 3000], 0.36, -1 / 3, label=r"slope $-1/\gamma=-1/3$", **LAW)
        logs(one, "column $i$", r"its weight $\|A_i\|^2=i^{-2/\varphi}$", "What a level discards")
        logs(
            two,
            "columns kept",
            "norm of those discarded",
            "Eight times the columns, half the error",
        )
        one.set_ylim(1e-6, 2)
        two.set_ylim(0.04, 1.7)
        two.legend(loc="lower left")


def shared(problems: Mapping[str, Reduced], levels: np.ndarray) -> None:
    """The gradient at the start, and the biases, of designs with and without a shared direction."""
    edges = np.unique(np.geomspace(1, levels[-1] + 1, 19).astype(int))
    with panels() as (one, two):
        looks = ((ORANGE, "^", "-"), (BLUE, "o", "--"))
        for (name, problem), (color, marker, dashes) in zip(problems.items(), looks, strict=True):
            size = [np.sqrt(v.mean()) for v in np.split(problem.moment**2, edges[1:-1] - 1)]
            middle, look = np.sqrt(edges[:-1] * edges[1:]), {"color": color, "linestyle": dashes}
            one.plot(middle, size, marker=marker, label=name, **look)
            bias = problem.biases(levels).max(axis=0)
            label = f"{name}: a line reads {rate(levels, bias, 1)[0]:.2f}"
            two.plot(levels, bias, marker, color=color, linestyle="none", label=label)
            line = np.polyval(np.polyfit(np.log(levels), np.log(bias), 1), np.log(levels))
            two.plot(levels, np.exp(line), **look)
        slope(one, [1, 512], 1.0, -2 / 1.2, label=r"slope $-2/\varphi$")
        slope(one, [1, 512], 0.35, -1 / 1.2, label=r"slope $-1/\varphi$", **LAW)
        logs(one, "coordinate $j$", "size of the gradient there", "The gradient at the start")
        logs(two, "columns kept", "bias of the level", "What would be read")
        one.legend(loc="lower left", fontsize=8.5)
        two.legend(loc="lower left", fontsize=8.5)


def window(found: Findings) -> None:
    """Truncated over exact bias by level, and what a line through each form reads."""
    curves = found.envelope("truncated") / found.envelope()
    height, line = curves.max(axis=1), found.fit(found.envelope("truncated"))[0]
    with panels(3.6) as (one, two):
        one.plot(found.levels, curves[height <= 1.3].T, color=GREY, linestyle="-", linewidth=0.8)
        one.plot(found.levels, curves[height > 1.3].T, color=ORANGE, linestyle="-", linewidth=1.6)
        text, arrow = "closed: no column is left\nthat only the iterate uses", {"arrowstyle": "->"}
        one.annotate(text, (512, 1.02), (50, 2.8), arrowprops=arrow, fontsize=9)
        one.set(xscale="log", xlabel="columns kept", ylabel="truncated over exact bias")
        one.set_title("A window that closes")
        two.plot(height, line, "^", color=ORANGE, linestyle="none", label="truncated residual")
        two.plot(height, found.gamma, "o", color=BLUE, linestyle="none", label="exact residual")
        two.axhline(found.protocol.gamma, label="closed form", **LAW)
        two.set(xlabel="height of the window", ylabel=r"fitted $\gamma$ of a seed")
        two.set_title("The higher it opens, the less a line reads")
        two.legend(loc="lower left")


def reading(found: Findings) -> None:
    """How gamma is read on the exact residual, and which seeds misread it."""
    curves, (gamma, r2) = found.envelope() / found.envelope()[:, -1:], found.fit()
    aligned, bent = np.array([r.alignment for r in found.results]), r2 < 0.999
    with panels() as (one, two):
        one.plot(found.levels, curves[~bent].T, color=BLUE, linestyle="-", linewidth=1)
        one.plot(found.levels, curves[bent].T, color=ORANGE, linestyle="--", linewidth=1)
        slope(one, found.levels, 8.0, -1 / 3, label="closed form", zorder=3, **LAW)
        one.axvline(32, color=GREY, linestyle=":", label="the fit starts here")
        logs(one, "columns kept", "bias over the finest's", "Past 32 columns the slopes agree")
        one.legend(loc="lower left")
        two.axhline(found.protocol.gamma, label="closed form", **LAW)
        two.plot(aligned[~bent], gamma[~bent], "o", color=BLUE, ls="none", label="a straight line")
        two.plot(aligned[bent], gamma[bent], "D", color=ORANGE, ls="none", label="a bent one")
        two.set(xscale="log", xlabel=r"share of $b$ along the shared direction")
        two.set(ylabel=r"fitted $\gamma$", title="Misread only where $b$ misses it")
        two.set_xticks([0.05, 0.1, 0.2, 0.5, 1.0], ["0.05", "0.1", "0.2", "0.5", "1"])
        two.legend(loc="lower right")


def frontier(found: Findings) -> None:
    """Compute to reach a target, with the theorem's slopes; and the advantage, with the paper's beside it."""
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
            theirs = {"marker": marker, "color": color, "linestyle": "none"}
            two.plot(
                PAPER_COSTS[:, 0], PAPER_COSTS[:, column], label=f"{name}, the paper's", **theirs
            )
        two.axhline(1, color=GREY, linewidth=1)
        logs(one, "", "compute to reach it (flops)", "The fixed level climbs steepest")
        logs(two, "", "fixed over multilevel", "The advantage opens as targets tighten")
        for ax in (one, two):
            target_axis(ax, 0.01)


def frozen(found: Findings, exponents: Mapping[str, np.ndarray]) -> None:
    """Costs as they are and with every error frozen; the exponents of all seeds, {kind: method x seed}."""
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
        two.set_title("Frozen, they come most of the way to the theorem's")
        two.set_xticks(range(len(exponents)), list(exponents))


def sizes(curves: Mapping[int, tuple[np.ndarray, np.ndarray, np.ndarray]]) -> None:
    """Both truncations along a descent at two sizes, {m: (levels, exact bias, truncated bias)}."""
    with panels() as axes:
        for ax, (m, (k, exact, truncated)) in zip(axes, curves.items(), strict=True):
            shape = k ** (-1 / 3)
            low, high = np.max((exact / shape)[k >= 32]), np.max(truncated / shape)
            ax.fill_between(k, low * shape, high * shape, color=SKY, alpha=0.2, linewidth=0)
            ax.plot(k, truncated, color=ORANGE, marker="^", ls="--", label="truncated residual")
            ax.plot(k, exact, color=BLUE, marker="o", ls="-", label="exact residual")
            ax.plot(k, low * shape, label=r"slope $-1/3$", **(LAW | {"linewidth": 1.4}))
            logs(ax, "columns kept", "", f"m = {m}")
        axes[0].set_ylabel("largest bias along a descent")
        axes[0].legend(loc="lower left")
