"""The paper's two tables of results beside ours, and the fits that fill them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .fits import across_seeds, power_law, rank_of_mean, rank_of_median, rate, spread
from .protocol import Protocol, SeedResult

METHODS = ("fixed", "exact", "truncated")
COMMON = slice(0, 16)  # the paper fits exponents over the sixteen targets that all its seeds reach
ROWS = [0, 3, 6, 9, 12, 15]  # of the twenty targets, those in its table of costs
PAPER_SEEDS = np.array(  # table 2: gamma, fixed, multilevel exact, separation, multilevel truncated, separation
    [
        [2.923, 3.357, 2.400, 0.956, 3.172, 0.185],
        [2.977, 3.275, 2.133, 1.141, 2.484, 0.791],
        [2.969, 3.972, 2.462, 1.511, 3.077, 0.896],
        [2.969, 3.522, 2.349, 1.173, 2.965, 0.557],
        [2.994, 3.663, 2.298, 1.365, 2.796, 0.866],
        [2.977, 3.441, 2.185, 1.256, 2.858, 0.583],
        [2.927, 3.366, 2.084, 1.282, 2.807, 0.559],
        [2.950, 2.886, 1.614, 1.272, 2.258, 0.628],
        [2.979, 3.232, 1.746, 1.486, 2.074, 1.158],
        [2.961, 3.663, 2.566, 1.097, 3.065, 0.598],
    ]
)
PAPER_COSTS = np.array(  # table 3: target, fixed, exact, ratio, truncated, ratio
    [
        [5.01e-1, 8.19e5, 2.83e6, 0.3, 3.06e6, 0.3],
        [2.70e-1, 4.92e6, 3.02e6, 1.6, 4.43e6, 1.1],
        [1.46e-1, 3.28e7, 9.47e6, 3.5, 2.14e7, 1.5],
        [7.85e-2, 3.60e8, 3.75e7, 9.6, 1.61e8, 2.2],
        [4.23e-2, 3.28e9, 1.67e8, 19.6, 8.07e8, 4.1],
        [2.28e-2, 3.53e10, 7.69e8, 46.0, 3.25e9, 10.9],
    ]
)
ROUNDING = 0.005  # its costs have three digits
COST_COLUMN = {"fixed": 1, "exact": 2, "truncated": 4}


@dataclass(frozen=True)
class Findings:
    """What is read off the seeds of a run."""

    protocol: Protocol
    results: Sequence[SeedResult]

    @property
    def levels(self) -> np.ndarray:
        return self.results[0].levels

    def envelope(self, form: str, steps: Sequence[int] | None = None) -> np.ndarray:
        """The largest bias of each level over the probes at those steps (the paper's six if None): seed x level."""
        rows = [self.protocol.wide_probes.index(s) for s in steps or self.protocol.probes]
        return np.array([r.biases[form][rows].max(axis=0) for r in self.results])

    def fit(
        self, form: str = "exact", start: int | None = None, steps: Sequence[int] | None = None
    ) -> np.ndarray:
        """gamma and R^2 of every seed: 2 x seed."""
        start = self.protocol.fit_from if start is None else start
        return np.array([rate(self.levels, e, start) for e in self.envelope(form, steps)]).T

    @cached_property
    def gamma(self) -> np.ndarray:
        return self.fit()[0]

    def flops(self, method: str, every: int = 1) -> np.ndarray:
        """Cheapest flops to each target: seed x target."""
        return np.array([r.frontiers[method, every].flops for r in self.results])

    def exponents(self, method: str, every: int = 1) -> np.ndarray:
        """Slope of the cost over the sixteen common targets, those that the seed reached."""
        return self.lines(self.flops(method, every))[0]

    def lines(self, flops: np.ndarray) -> np.ndarray:
        """Slope and R^2 of costs over the common targets: 2 x seed."""
        return np.array([power_law(1 / self.protocol.losses[COMMON], f[COMMON]) for f in flops]).T

    def separation(self, form: str, every: int = 1) -> np.ndarray:
        return self.exponents("fixed", every) - self.exponents(form, every)

    def columns(self, every: int = 1) -> np.ndarray:
        """Our table 2, in the paper's order of columns: seed x column."""
        parts = [self.gamma, self.exponents("fixed", every)]
        for form in ("exact", "truncated"):
            parts += [self.exponents(form, every), self.separation(form, every)]
        return np.array(parts).T

    def medians(self, method: str, every: int = 1) -> np.ndarray:
        """Median flops at the targets of table 3, where at least half of the seeds reached them."""
        return across_seeds(self.flops(method, every))[1][ROWS]

    def rank(self, method: str, row: int, factor: float = 1.0) -> float:
        """Where the paper's median at a row of table 3, times a factor, lies among medians of ten of our seeds, in percent."""
        values = self.flops(method, 100)[:, ROWS[row]]
        return rank_of_median(
            factor * PAPER_COSTS[row, COST_COLUMN[method]], values, rounding=ROUNDING
        )

    def path(self, method: str, every: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Steps to each target along the frontier, and the mean price of one: each seed x target."""
        steps = np.array([r.frontiers[method, every].steps for r in self.results])
        with np.errstate(invalid="ignore"):
            return steps, self.flops(method, every) / steps

    def both(self, form: str, every: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Costs of the fixed level and of the telescope at the targets of table 3, of seeds that reached them with both; else nan."""
        one, other = self.flops("fixed", every)[:, ROWS], self.flops(form, every)[:, ROWS]
        reached = np.isfinite(one) & np.isfinite(other)
        return np.where(reached, one, np.nan), np.where(reached, other, np.nan)

    def advantage(self, form: str, every: int = 1) -> np.ndarray:
        """Ratio of the medians, fixed over multilevel, at the targets of table 3, over the seeds that reached them with both."""
        one, other = self.both(form, every)
        return np.nanmedian(one, axis=0) / np.nanmedian(other, axis=0)


def exponents_table(found: Findings) -> str:
    """The paper's Table 2: one line per seed, then means, standard errors, the paper's, and where its means lie among such means."""
    ours, paper = found.columns(), PAPER_SEEDS
    lines = ["            gamma    fixed    exact     gap  truncated     gap"]

    def line(name: str, values: Sequence[float], form: str = ".3f") -> None:
        lines.append(
            f"{name:9}"
            + "".join(f"{v:>{w}{form}}" for v, w in zip(values, (8, 9, 9, 8, 11, 8), strict=True))
        )

    for result, row in zip(found.results, ours, strict=True):
        line(f"seed {result.seed}", row)
    for name, values in (("ours", ours), ("paper", paper)):
        line(f"{name}", values.mean(axis=0))
        line("  +-", [spread(v)[1] for v in values.T])
    line("rank, %", [rank_of_mean(p, v) for p, v in zip(paper.T, ours.T, strict=True)], ".1f")
    return "\n".join(lines)


def costs_table(found: Findings) -> str:
    """The paper's Table 3: medians read at every step and every hundred, the paper's, and where they lie among our seeds."""
    names = {
        "fixed": "one fixed level",
        "exact": "multilevel, exact",
        "truncated": "multilevel, truncated",
    }
    short = lambda v: f"{v:.1e}".replace("e+0", "e").replace("e+", "e")  # noqa: E731
    lines = [
        "      " + "".join(f"{names[m]:^30}" for m in METHODS),
        "target" + "   each   /100  paper  rank%  " * 3,
    ]
    for i, row in enumerate(PAPER_COSTS):
        cells = ""
        for method in METHODS:
            figure = row[COST_COLUMN[method]]
            rank = found.rank(method, i)
            each, hundred = (found.medians(method, every)[i] for every in (1, 100))
            cells += f"{short(each):>7}{short(hundred):>7}{short(figure):>7}{rank:>7.0f}  "
        lines.append(f"{row[0]:.3f} {cells}")
    return "\n".join(line.rstrip() for line in lines)
