"""The map of the chapter on rivals: who is cheapest, by how much, and the borders that formulas predict."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgba

from . import figures as plots

SHORT = {
    "fixed level": ("F", plots.GREY),
    "Nesterov, coarse to fine": ("N", plots.YELLOW),
    "CG, coarse to fine": ("CG", plots.ORANGE),
    "corrected coarse model": ("C", plots.GREEN),
    "plain telescope": ("T", plots.SKY),
    "accelerated telescope": ("A", "#999933"),
    "scheduled telescope": ("S", plots.BLUE),
    "anchored telescope": ("R", plots.PURPLE),
    "corrected, dithered": ("D", "#BBCC33"),
}
SECOND_ORDER = (
    "CG, coarse to fine",
    "corrected coarse model",
    "corrected, dithered",
)  # they use products with the Hessian


def ranked(prices: dict[str, float], without=()) -> list[tuple[str, float]]:
    """Methods by price, cheapest first."""
    return sorted(((m, p) for m, p in prices.items() if m not in without), key=lambda pair: pair[1])


def digits(number: float, count: int = 2) -> str:
    """A number to so many digits, in full: 210,000 and not 2.1e+05."""
    return (
        f"{float(f'{number:.{count}g}'):,.0f}"
        if number >= 10 ** (count - 1)
        else f"{number:.{count}g}"
    )


RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def tiny(price: float) -> str:
    """A price of any size in a few letters."""
    if price >= 0.01:
        return digits(price, 3 if price >= 1 else 2)
    front, power = f"{price:.0e}".split("e")
    return f"{front}·10{str(int(power)).translate(RAISED)}"


def power(number: float) -> str:
    """The nearest power of ten, where digits would not fit into a square of the map."""
    return f"10{str(round(np.log10(number))).translate(RAISED)}"


def part(eps: float) -> str:
    """A target as a part of the starting loss."""
    return f"1/{1 / eps:.0f}"


def panel(ax, cells: list[dict], without=(), border=None) -> None:
    """One map: a square per cell with the winner's letter, its price, and the ratio to the next; the paler, the closer."""
    gammas, kappas = (sorted({c[name] for c in cells}) for name in ("gamma", "kappa"))
    for cell in cells:
        places = ranked(cell["prices"], without)
        if not places:  # nobody reached the target
            continue
        winner, price = places[0]
        ratio = places[1][1] / price if len(places) > 1 else np.inf
        letter, colour = SHORT[winner]
        x, y = kappas.index(cell["kappa"]), gammas.index(cell["gamma"])
        strength = min(1.0, 0.25 + 0.5 * np.log(ratio) / np.log(4))
        ax.add_patch(
            plt.Rectangle(
                (x - 0.5, y - 0.5), 1, 1, facecolor=to_rgba(colour, strength), edgecolor="white"
            )
        )
        far = "alone" if np.isinf(ratio) else f"×{digits(ratio) if ratio < 1000 else power(ratio)}"
        shown = f"{letter} {tiny(price) if price >= 0.01 else power(price)}\n{far}"
        ax.text(x, y, shown, ha="center", va="center", fontsize=8, color="black")
    if (
        border is not None
    ):  # the line where it is zero; rates lie evenly on the axis, whatever their values
        x, y = np.linspace(-0.5, len(kappas) - 0.5, 61), np.linspace(-0.5, len(gammas) - 0.5, 49)
        rates = np.interp(y, range(len(gammas)), gammas)
        z = [[border(g, kappas[0] * (kappas[1] / kappas[0]) ** i) for i in x] for g in rates]
        ax.contour(x, y, np.maximum(z, -9), [0.0], colors="black", linestyles="--", linewidths=1.5)
    ax.set(xlim=(-0.5, len(kappas) - 0.5), ylim=(-0.5, len(gammas) - 0.5))
    ax.set_xticks(range(len(kappas)), [f"$10^{{{np.log10(k):.0f}}}$" for k in kappas])
    ax.set_yticks(range(len(gammas)), [f"{g:g}" for g in gammas])
    ax.grid(False)


def whole(cells: list[dict], views, targets, borders=None) -> None:
    """Columns: (title, kind, methods left out); rows: targets."""
    figure, axes = plt.subplots(
        len(targets),
        len(views),
        figsize=(3.1 * len(views), 3.7 * len(targets)),
        layout="constrained",
        sharey=True,
    )
    for row, eps in zip(np.atleast_2d(axes), targets, strict=True):
        for ax, (title, kind, without) in zip(row, views, strict=True):
            chosen = [c for c in cells if c["kind"] == kind and c["eps"] == eps]
            panel(ax, chosen, without, (borders or {}).get((title, eps)))
            ax.set_title(f"{title}\ntarget {part(eps)} of the start", fontsize=9)
    for ax in np.atleast_2d(axes)[-1]:
        ax.set_xlabel("conditioning κ")
    for ax in np.atleast_2d(axes)[:, 0]:
        ax.set_ylabel("rate γ")
    marks = [
        plt.Line2D([], [], marker="s", ls="", color=c, label=f"{letter}: {m}")
        for m, (letter, c) in SHORT.items()
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=5, fontsize=8)
