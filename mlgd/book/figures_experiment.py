"""Figures of the experiment's chapter, one function each; every one ends in plt.show()."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullFormatter

from mlgd import formulas
from mlgd.experiment.frontier import across_seeds
from mlgd.experiment.protocol import Protocol, SeedResult
from mlgd.experiment.studies import Profile

from .figures import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, band, slope, style

METHODS = {  # frontier: label, colour, line, marker
    "fixed": ("fixed level", GREY, "-", "s"),
    "truncated": ("multilevel, truncated residual", ORANGE, "--", "^"),
    "exact": ("multilevel, exact residual", BLUE, "-", "o"),
}


def _frontier(ax, targets, flops, label, color, line, marker) -> None:
    low, middle, high = across_seeds(flops)
    ok = np.isfinite(middle)
    band(ax, targets[ok], low[ok], high[ok], color)
    ax.plot(targets[ok], middle[ok], color=color, linestyle=line, marker=marker, label=label)


def _bias(ax, levels, m, curves, color, marker, label) -> None:
    low, middle, high = np.quantile(curves, [0.25, 0.5, 0.75], axis=0)
    band(ax, 2.0 * m * levels, low, high, color)
    ax.plot(2.0 * m * levels, middle, color=color, marker=marker, linestyle="none", label=label)


def forms(protocol: Protocol, results: Sequence[SeedResult]) -> None:
    """The paper's main figure: compute to reach a target, and bias against the compute of a level."""
    targets, m = protocol.losses, protocol.m
    with style():
        _, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained")
        for name, look in METHODS.items():
            _frontier(left, targets, np.array([r.frontiers[name].flops for r in results]), *look)
        floor = max(r.floor for r in results)
        left.axvline(floor, color=GREY, linestyle=":", linewidth=1.2)
        left.text(floor, 1.3e5, " largest floor", rotation=90, va="bottom", ha="right", fontsize=9, color=GREY)
        left.set(xscale="log", yscale="log", xlabel="target loss $L/L_0$", ylabel="compute to reach it (flops)")
        left.invert_xaxis()
        left.legend(loc="upper left")
        chosen = [protocol.wide_probes.index(s) for s in protocol.probes]
        for form, color, marker, label in (
            ("truncated", ORANGE, "^", "truncated residual"),
            ("exact", BLUE, "o", "exact residual"),
        ):
            curves = np.array([r.biases[form][chosen].max(axis=0) for r in results])
            _bias(right, results[0].levels, m, curves / curves[:, :1], color, marker, label)
        right.axvline(2.0 * m * protocol.fit_from, color=GREY, linestyle="--", linewidth=1.2)
        right.text(2.0 * m * protocol.fit_from, 1.0, " fit starts here", fontsize=9, color=GREY, va="top")
        x = 2.0 * m * results[0].levels
        slope(right, x, 1.25, -1 / protocol.gamma, label=r"closed form, slope $-1/\gamma$", color=GREEN, linestyle="-.")
        right.set(
            xscale="log", yscale="log", xlabel="compute of the level (flops)", ylabel="bias over the coarsest bias"
        )
        right.legend(loc="lower left")
        plt.show()


def residual(panels: Mapping[str, Profile]) -> None:
    """Both truncations along a descent, with the envelopes that the assumption grants each of them."""
    with style():
        _, axes = plt.subplots(1, len(panels), figsize=(5.2 * len(panels), 4.2), layout="constrained", squeeze=False)
        for ax, (title, profile) in zip(axes[0], panels.items(), strict=True):
            k, m = profile.levels, profile.design.m
            exact, truncated = profile.exact.max(axis=0), profile.truncated.max(axis=0)
            shape = k ** (-1 / profile.design.gamma)
            low, high = np.max(exact[k >= 32] / shape[k >= 32]), np.max(truncated / shape)
            ax.fill_between(2.0 * m * k, low * shape, high * shape, color=SKY, alpha=0.2, linewidth=0)
            for level, color in ((low, BLUE), (high, ORANGE)):
                ax.plot(2.0 * m * k, level * shape, color=color, linestyle=":")
            ax.plot(2.0 * m * k, truncated, color=ORANGE, marker="^", linestyle="--", label="(a) truncated residual")
            ax.plot(2.0 * m * k, exact, color=BLUE, marker="o", linestyle="-", label="(b) exact residual")
            ax.set(xscale="log", yscale="log", xlabel="compute of the level (flops)", title=title)
        axes[0][0].set_ylabel("largest bias along a descent")
        axes[0][0].legend(loc="lower left")
        plt.show()


def bounds(targets: np.ndarray, curves: Mapping[str, np.ndarray], spent: Mapping[str, np.ndarray]) -> None:
    """The theorem's bound on the axes of the experiment, above the compute actually spent."""
    looks = iter(((PURPLE, "-"), (GREEN, "-."), (SKY, "--")))
    with style():
        _, ax = plt.subplots(figsize=(6.6, 4.6), layout="constrained")
        for label, values in curves.items():
            color, line = next(looks)
            ax.plot(targets, values, color=color, linestyle=line, label=label)
        for name, flops in spent.items():
            _frontier(ax, targets, flops, *METHODS[name])
        ax.set(xscale="log", yscale="log", xlabel="target loss $L/L_0$", ylabel="compute (flops)")
        ax.invert_xaxis()
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=8.5)
        plt.show()


def frozen(targets: np.ndarray, local: Mapping[str, np.ndarray], fixed_prefactor: Mapping[str, np.ndarray]) -> None:
    """Costs on the instance, and on the same instance with its prefactor frozen."""
    with style():
        _, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
        panels = zip(
            axes,
            (local, fixed_prefactor),
            ("the instance: bias shrinks with the residual", "prefactor frozen"),
            strict=True,
        )
        for ax, curves, title in panels:
            for name, flops in curves.items():
                _frontier(ax, targets, flops, *METHODS[name])
            ax.set(xscale="log", yscale="log", xlabel="target loss $L/L_0$", title=title)
            ax.set_xlim(0.6, 0.008)
            ax.set_xticks([0.3, 0.1, 0.03, 0.01], ["0.3", "0.1", "0.03", "0.01"])
            ax.xaxis.set_minor_formatter(NullFormatter())
        axes[0].set_ylabel("compute to reach it (flops)")
        axes[0].legend(loc="upper left")
        plt.show()


def theory(c: float, d0: float, eps: np.ndarray, gamma: float) -> np.ndarray:
    """Theorem 1(a): Lambda_gamma (c d0 / eps)^gamma."""
    return np.array([formulas.value(formulas.UPPER_CONVEX, c=c, d0=d0, eps=e, gamma=gamma) for e in eps])
