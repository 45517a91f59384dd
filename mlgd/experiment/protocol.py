"""The protocol of the experiment, and one seed of it from its random numbers to its frontiers.

The paper's appendix E.1.1 (sizes) and E.3 (methods, frontier). A seed's result depends on the protocol and the seed only.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .design import Design
from .features import PROBE_STEPS, Reduced, reduce
from .frontier import Reached, Run, fixed_frontier, fixed_steps, telescope_frontier
from .streaming import levels

SEEDS = tuple(range(100, 120))  # named before any of them was run, and reported whatever they say
WIDE_STEPS = (
    0,
    1,
    2,
    4,
    7,
    12,
    20,
    31,
    45,
    65,
    89,
    130,
    190,
    250,
    320,
    400,
)  # sixteen probes; the six are among them


@dataclass(frozen=True)
class Protocol:
    """Every choice of the experiment (the paper's appendix E.1.1 and E.3.1). The defaults are the paper's, seeds aside."""

    m: int = 2048
    n: int = 131072
    phi: float = 1.2
    rho: float = 0.6
    ladder: tuple[int, ...] = (1, 8, 64, 512)
    seeds: tuple[int, ...] = SEEDS
    scales: tuple[float, ...] = (1, 2, 4, 8, 16, 32)  # the constant C of the probabilities
    shrinks: tuple[float, ...] = (1.0, 0.5)  # steps eta and eta/2, with eta = 1/(4 beta)
    loosest: float = -0.3  # targets: powers of ten of L0
    tightest: float = -2.0
    targets: int = 20
    probes: tuple[int, ...] = PROBE_STEPS
    wide_probes: tuple[int, ...] = WIDE_STEPS
    fit_from: int = 32
    max_steps: int = 250_000
    max_flops: float = 8e9  # of one telescope run; the fixed level has no limit
    every: tuple[int, ...] = (
        1,
        100,
    )  # losses are read at every step, and again every hundred steps only

    def __post_init__(self) -> None:
        for name in ("ladder", "seeds", "scales", "shrinks", "probes", "wide_probes", "every"):
            object.__setattr__(self, name, tuple(getattr(self, name)))  # a range or a list will do
        Design(self.m, self.n, self.phi, self.rho)  # refuses bad sizes
        ladder, k_max = self.ladder, self.ladder[-1] if self.ladder else 0
        if len(ladder) < 2 or ladder[0] < 1:
            raise ValueError(
                f"the ladder needs at least two levels of at least one column; got {ladder}"
            )
        ratios = [b / a for a, b in pairwise(ladder)]
        if ratios[0] <= 1 or any(r != ratios[0] for r in ratios):
            raise ValueError(
                f"the ladder {ladder} is not geometric: its ratios are {[round(r, 3) for r in ratios]}"
            )
        if k_max > self.m:
            raise ValueError(
                f"k_max={k_max} exceeds m={self.m}: past m columns a level fits b exactly and has no floor"
            )
        if k_max > self.n:
            raise ValueError(
                f"n={self.n} is smaller than k_max={k_max}: the design must be longer than its levels"
            )
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise ValueError(f"give at least one seed, each once; got {self.seeds}")
        if not self.scales or min(self.scales) < 1:
            raise ValueError(
                f"every C must be at least 1, or the coarsest level is not always drawn; got {self.scales}"
            )
        if not self.shrinks or not all(0 < s <= 1 for s in self.shrinks):
            raise ValueError(f"steps are fractions in (0, 1] of 1/(4 beta); got {self.shrinks}")
        if not (self.tightest < self.loosest < 0 and self.targets >= 2):
            raise ValueError(
                "targets run from 10^loosest down to 10^tightest of L0, with tightest < loosest < 0"
            )
        if not set(self.probes) <= set(self.wide_probes):
            raise ValueError(
                f"the probes {self.probes} must be among the wide probes {self.wide_probes}"
            )
        if min(self.max_steps, self.max_flops, *self.every) < 1:
            raise ValueError("max_steps, max_flops and the reading intervals must be at least 1")

    @property
    def k_max(self) -> int:
        return self.ladder[-1]

    @property
    def gamma(self) -> float:
        return 2 * self.phi / (2 - self.phi)

    @property
    def baseline(self) -> tuple[int, ...]:
        """The fixed level's own ladder, of ratio 2."""
        return tuple(2**i for i in range(self.k_max.bit_length()) if 2**i <= self.k_max)

    @property
    def levels(self) -> np.ndarray:
        """The levels at which the bias is read: ratio sqrt(2), from 1 to k_max."""
        read = levels(self.k_max)
        return read[read <= self.k_max]

    @property
    def losses(self) -> np.ndarray:
        """The target losses, as fractions of L0."""
        return np.logspace(self.loosest, self.tightest, self.targets)

    def design(self, seed: int) -> Design:
        return Design(self.m, self.n, self.phi, self.rho, seed)


@dataclass(frozen=True)
class SeedResult:
    """One seed: its constants, its biases and the frontiers of every method."""

    seed: int
    loss_zero: float
    floor: float  # smallest loss in the first k_max coordinates, over L0
    crossing: float  # mu d0^2 over L0
    distance: float  # d0, from 0 to the minimizer in the first k_max coordinates
    alignment: float  # |u.b| / |b|: how much of b lies along the direction that all columns share
    floors: dict[
        int, float
    ]  # smallest loss over L0 in the first k coordinates, on the baseline's ladder
    smoothness: dict[int, float]  # beta_k on the baseline's ladder
    levels: np.ndarray
    biases: dict[str, np.ndarray]  # 'exact' and 'truncated': wide probe x level
    ladder_biases: np.ndarray  # exact form, wide probe x ladder
    frontiers: dict[
        tuple[str, int], Reached
    ]  # ('fixed' | 'exact' | 'truncated', steps between two readings of the loss)
    limited: dict[int, Reached]  # the fixed level within so many steps
    seconds: dict[str, float]  # of processor time, not compared

    def to_json(self) -> dict:
        """Everything but the timings, to seven digits."""
        return {
            "seed": self.seed,
            **{name: _digits(getattr(self, name)) for name in SCALARS},
            **{
                name: {str(k): _digits(v) for k, v in getattr(self, name).items()}
                for name in BY_LEVEL
            },
            "levels": self.levels.tolist(),
            "biases": {k: _digits(v) for k, v in self.biases.items()},
            "ladder_biases": _digits(self.ladder_biases),
            "frontiers": {
                f"{method} {every}": _pack(r) for (method, every), r in self.frontiers.items()
            },
            "limited": {str(k): _pack(r) for k, r in self.limited.items()},
        }

    @classmethod
    def from_json(cls, data: dict) -> SeedResult:
        names = {key: key.split() for key in data["frontiers"]}
        return cls(
            seed=data["seed"],
            **{name: data[name] for name in SCALARS},
            **{name: {int(k): v for k, v in data[name].items()} for name in BY_LEVEL},
            levels=np.array(data["levels"]),
            biases={k: np.array(v) for k, v in data["biases"].items()},
            ladder_biases=np.array(data["ladder_biases"]),
            frontiers={
                (names[k][0], int(names[k][1])): _unpack(r) for k, r in data["frontiers"].items()
            },
            limited={int(k): _unpack(r) for k, r in data["limited"].items()},
            seconds={},
        )


SCALARS = ("loss_zero", "floor", "crossing", "distance", "alignment")
BY_LEVEL = ("floors", "smoothness")


def _digits(values: float | np.ndarray) -> float | list:
    """Seven significant digits: what another processor would find again, products being in single precision."""
    return np.vectorize(lambda v: float(f"{v:.7g}"), otypes=[float])(values).tolist()


def _pack(reached: Reached) -> dict:
    flops, steps = (
        [None if np.isinf(v) else int(v) for v in a] for a in (reached.flops, reached.steps)
    )
    return {"flops": flops, "steps": steps, "runs": reached.runs}


def _unpack(data: dict) -> Reached:
    flops, steps = (
        np.array([np.inf if v is None else v for v in data[name]]) for name in ("flops", "steps")
    )
    return Reached(flops, steps, [run and Run(*run) for run in data["runs"]])


def run_seed(protocol: Protocol, seed: int, keep: float = 2**30) -> SeedResult:
    """One seed of the experiment, from its random numbers to its frontiers."""
    clock = time.process_time()
    problem = reduce([protocol.design(seed)], protocol.k_max, protocol.wide_probes, keep)[0]
    design_seconds, clock = time.process_time() - clock, time.process_time()
    result = sweep_problem(protocol, problem)
    result.seconds.update(design=design_seconds, sweep=time.process_time() - clock)
    return result


def sweep_problem(protocol: Protocol, problem: Reduced) -> SeedResult:
    """Every trajectory of the protocol on one reduced problem."""
    targets, read, m = protocol.losses, protocol.levels, protocol.m
    steps = fixed_steps(problem, protocol.baseline, targets, protocol.shrinks)
    frontiers = {
        ("fixed", every): fixed_frontier(steps, m, every=every) for every in protocol.every
    }
    for form in ("exact", "truncated"):
        reached = telescope_frontier(
            problem,
            protocol.ladder,
            protocol.scales,
            form == "exact",
            targets,
            protocol.probes,
            protocol.shrinks,
            protocol.max_steps,
            protocol.max_flops,
            protocol.every,
        )
        frontiers |= {(form, every): r for every, r in zip(protocol.every, reached, strict=True)}
    return SeedResult(
        seed=problem.design.seed,
        loss_zero=problem.loss_zero,
        floor=problem.floor(protocol.k_max),
        crossing=problem.crossing(),
        distance=problem.distance(),
        alignment=float(abs(problem.design.shared() @ problem.right) / np.sqrt(problem.square)),
        floors={k: problem.floor(k) for k in protocol.baseline},
        smoothness={k: problem.smoothness(k) for k in protocol.baseline},
        levels=read,
        biases={"exact": problem.biases(read), "truncated": problem.biases(read, truncated=True)},
        ladder_biases=problem.biases(protocol.ladder),
        frontiers=frontiers,
        limited={
            limit: fixed_frontier(steps, m, limit)
            for limit in (protocol.max_steps, protocol.max_steps // 5)
        },
        seconds={},
    )
