"""What is read off the seeds: the paper's two tables beside ours, and the fits that fill them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .frontier import across_seeds
from .reduce import CUT, PROBES, power_law, rate, read_levels
from .sweep import EVERY, METHODS, Protocol, SeedResult, named

# the paper fits exponents over the sixteen targets that all its seeds reach
COMMON = slice(0, 16)
ROWS = [0, 3, 6, 9, 12, 15]  # of the twenty targets, those in its table of costs
COLUMNS = ("gamma", "fixed", "exact", "exact gap", "truncated", "truncated gap")
PAPER_SEEDS = np.array(  # table 2, one row per seed
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
# as printed below it
PAPER_MEANS = (
    "2.963",
    "3.438",
    "2.184",
    "1.254",
    "2.756",
    "0.682",
)
PAPER_ERRORS = (0.007, 0.093, 0.097, 0.054, 0.116, 0.083)
PAPER_LOWEST = 0.82  # R^2 of its least straight line
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
COST_COLUMN = {"fixed": 1, "exact": 2, "truncated": 4}


def spread(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard error."""
    values = np.asarray(values, float)
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


@dataclass(frozen=True)
class Findings:
    """What is read off the seeds of a run."""

    protocol: Protocol
    results: Sequence[SeedResult]

    @property
    def levels(self) -> np.ndarray:
        return read_levels(self.protocol.k_max)

    def envelope(self, form: str = "exact", steps: Sequence[int] = PROBES) -> np.ndarray:
        """The largest bias of each level over the probes at those steps: seed x level."""
        if form == "wide":
            return np.array([r.wide for r in self.results])
        rows = [PROBES.index(s) for s in steps]
        return np.array([getattr(r, form)[rows].max(axis=0) for r in self.results])

    def fit(self, envelope: np.ndarray | None = None, start: int = CUT) -> np.ndarray:
        """gamma and R^2 of every seed: 2 x seed."""
        curves = self.envelope() if envelope is None else envelope
        return np.array([rate(self.levels, curve, start) for curve in curves]).T

    @cached_property
    def gamma(self) -> np.ndarray:
        return self.fit()[0]

    def flops(self, method: str, every: int = 1) -> np.ndarray:
        """Cheapest flops to each target: seed x target."""
        return np.array([r.frontiers[named(method, every)].flops for r in self.results])

    def steps(self, method: str) -> np.ndarray:
        """Steps to each target along the frontier: seed x target."""
        return np.array([r.frontiers[method].steps for r in self.results])

    def exponents(self, costs: str | np.ndarray, every: int = 1) -> np.ndarray:
        """Slope of a method's costs (or of these) over the common targets that the seed reached."""
        return self.lines(self.flops(costs, every) if isinstance(costs, str) else costs)[
            0
        ]

    def lines(self, costs: np.ndarray, excess: bool = False) -> np.ndarray:
        """Slope and R^2 of costs over the common targets: 2 x seed.

        `excess`: against what the convex theorem speaks of, the loss less its minimum, while that
        is above mu d0^2.
        """
        targets, out = self.protocol.losses[COMMON], []
        for result, row in zip(self.results, costs[:, COMMON], strict=True):
            eps = targets - result.floor if excess else targets
            ok = np.isfinite(row) & (eps > (result.crossing if excess else 0))
            out.append(power_law(1 / eps[ok], row[ok]))
        return np.array(out).T

    def lowest(self, every: int = 1) -> float:
        """R^2 of the least straight line, of all methods and seeds."""
        return min(self.lines(self.flops(method, every))[1].min() for method in METHODS)

    @cached_property
    def every(self) -> int:
        """How often a loss is read where exponents are judged, which the paper does not print.

        The interval whose least straight line is nearest to the paper's: no exponent decides.
        """
        return min(EVERY, key=lambda every: abs(self.lowest(every) - PAPER_LOWEST))

    def columns(self, every: int = 1) -> np.ndarray:
        """Our table 2, in the paper's order of columns: seed x column."""
        fixed, exact, truncated = (self.exponents(method, every) for method in METHODS)
        return np.array(
            [self.gamma, fixed, exact, fixed - exact, truncated, fixed - truncated]
        ).T

    def medians(self, method: str, every: int = 1) -> np.ndarray:
        """Median flops at the targets of table 3, where at least half of the seeds reached them."""
        return across_seeds(self.flops(method, every))[1][ROWS]

    def advantage(self, form: str, every: int = 1) -> np.ndarray:
        """Fixed over multilevel flops: seed x target."""
        return quotient(self.flops("fixed", every), self.flops(form, every))

    def price(self, method: str) -> np.ndarray:
        """The mean price of a step along the frontier: seed x target."""
        return quotient(self.flops(method), self.steps(method))


def quotient(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Their ratio where both are finite, else nan."""
    both = np.isfinite(one) & np.isfinite(other)
    return np.divide(one, other, out=np.full(one.shape, np.nan), where=both)


def exponents_table(found: Findings) -> str:
    """The paper's Table 2: a line per interval of readings, ours, and its own.

    Means with their errors, and how far from the paper's in standard errors of the difference.
    """
    paper = [spread(column) for column in PAPER_SEEDS.T[1:]]
    lines = ["read every  lowest R²" + "".join(f"{name:^17}" for name in COLUMNS[1:])]
    for every in EVERY:
        ours = [spread(column) for column in found.columns(every).T[1:]]
        apart = [
            (a - b) / np.hypot(s, t) for (a, s), (b, t) in zip(ours, paper, strict=True)
        ]
        cells = (
            f"  {m:.2f} ±{e:.2f} {z:+.1f}" for (m, e), z in zip(ours, apart, strict=True)
        )
        lines.append(
            f"{every:10}{found.lowest(every):11.2f}" + "".join(f"{c:17}" for c in cells)
        )
    cells = (f"  {m:.2f} ±{e:.2f}" for m, e in paper)
    lines.append(f" the paper{PAPER_LOWEST:11.2f}" + "".join(f"{c:17}" for c in cells))
    return "\n".join(line.rstrip() for line in lines)


def costs_table(found: Findings) -> str:
    """The paper's Table 3: our medians read at each step, and as exponents are judged; its own."""
    short = "{:.1e}".format
    lines = ["      " + "".join(f"{method:^27}" for method in METHODS)]
    lines.append("target" + f"    each{f'/{found.every}':>8}   paper   " * 3)
    for i, row in enumerate(PAPER_COSTS):
        cells = ""
        for method in METHODS:
            each, rare = (found.medians(method, every)[i] for every in (1, found.every))
            cells += "".join(
                f"{short(v).replace('e+0', 'e').replace('e+', 'e'):>8}"
                for v in (each, rare, row[COST_COLUMN[method]])
            )
            cells += "   "
        lines.append(f"{row[0]:.3f} {cells}")
    return "\n".join(line.rstrip() for line in lines)
