"""The protocol of the experiment, and one seed of it from its random numbers to its frontiers.

Appendix E.1.1 (sizes) and E.3 (methods, frontier). A seed's result depends on the protocol and the seed only.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, fields
from itertools import pairwise

import numpy as np

from .design import Design
from .features import PROBE_STEPS, Reduced, reduce
from .frontier import fixed_frontier, fixed_steps, telescope_frontier
from .trajectory import Reached

WIDE_STEPS = (0, 1, 2, 4, 7, 12, 20, 31, 45, 65, 89, 130, 190, 250, 320, 400)  # sixteen probes; the six are among them


@dataclass(frozen=True)
class Protocol:
    """Every choice of the experiment (appendix E.1.1 and E.3.1). The defaults are the paper's."""

    m: int = 2048
    n: int = 131072
    phi: float = 1.2
    rho: float = 0.6
    ladder: tuple[int, ...] = (1, 8, 64, 512)
    seeds: tuple[int, ...] = tuple(range(10))
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
    every: tuple[int, ...] = (1, 100)  # losses are read at every step, and again every hundred steps only

    def __post_init__(self) -> None:
        for f in fields(self):
            if f.type.startswith("tuple"):
                object.__setattr__(self, f.name, tuple(getattr(self, f.name)))
        Design(self.m, self.n, self.phi, self.rho)  # refuses bad sizes
        ladder, k_max = self.ladder, self.ladder[-1] if self.ladder else 0
        if len(ladder) < 2 or ladder[0] < 1:
            raise ValueError(f"the ladder needs at least two levels of at least one column; got {ladder}")
        ratios = [b / a for a, b in pairwise(ladder)]
        if ratios[0] <= 1 or any(r != ratios[0] for r in ratios):
            raise ValueError(f"the ladder {ladder} is not geometric: its ratios are {[round(r, 3) for r in ratios]}")
        if k_max > self.m:
            raise ValueError(
                f"k_max={k_max} exceeds m={self.m}: past m columns a level fits b exactly and has no floor"
            )
        if k_max > self.n:
            raise ValueError(f"n={self.n} is smaller than k_max={k_max}: the design must be longer than its levels")
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise ValueError(f"give at least one seed, each once; got {self.seeds}")
        if not self.scales or min(self.scales) < 1:
            raise ValueError(
                f"every C must be at least 1, or the coarsest level is not always drawn; got {self.scales}"
            )
        if not self.shrinks or not all(0 < s <= 1 for s in self.shrinks):
            raise ValueError(f"steps are fractions in (0, 1] of 1/(4 beta); got {self.shrinks}")
        if not (self.tightest < self.loosest < 0 and self.targets >= 2):
            raise ValueError("targets run from 10^loosest down to 10^tightest of L0, with tightest < loosest < 0")
        if not set(self.probes) <= set(self.wide_probes):
            raise ValueError(f"the probes {self.probes} must be among the wide probes {self.wide_probes}")
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
        count = int(2 * np.log2(self.k_max)) + 1
        return np.array(sorted({round(2 ** (i / 2)) for i in range(count)}))

    @property
    def losses(self) -> np.ndarray:
        """The target losses, as fractions of L0."""
        return np.logspace(self.loosest, self.tightest, self.targets)

    def design(self, seed: int) -> Design:
        return Design(self.m, self.n, self.phi, self.rho, seed)

    def parameters(self) -> dict:
        """What a seed's result depends on: everything but the list of seeds."""
        return {k: v for k, v in json.loads(json.dumps(asdict(self))).items() if k != "seeds"}


@dataclass(frozen=True)
class SeedResult:
    """One seed: its constants, its biases and the frontiers of every method."""

    seed: int
    loss_zero: float
    floor: float  # smallest loss in the first k_max coordinates, over L0
    crossing: float  # mu d0^2 over L0
    smoothness: dict[int, float]  # beta_k on the baseline's ladder
    levels: np.ndarray
    biases: dict[str, np.ndarray]  # 'exact' and 'truncated': wide probe x level
    ladder_biases: np.ndarray  # exact form, wide probe x ladder
    frontiers: dict[str, Reached]
    seconds: dict[str, float]  # of processor time, not compared

    def to_json(self) -> dict:
        return {
            **{k: getattr(self, k) for k in ("seed", "loss_zero", "floor", "crossing", "seconds")},
            "smoothness": {str(k): v for k, v in self.smoothness.items()},
            "levels": self.levels.tolist(),
            "biases": {k: v.tolist() for k, v in self.biases.items()},
            "ladder_biases": self.ladder_biases.tolist(),
            "frontiers": {
                k: {"flops": r.flops.tolist(), "steps": r.steps.tolist(), "run": r.run}
                for k, r in self.frontiers.items()
            },
        }

    @classmethod
    def from_json(cls, data: dict) -> SeedResult:
        return cls(
            **{k: data[k] for k in ("seed", "loss_zero", "floor", "crossing", "seconds")},
            smoothness={int(k): v for k, v in data["smoothness"].items()},
            levels=np.array(data["levels"]),
            biases={k: np.array(v) for k, v in data["biases"].items()},
            ladder_biases=np.array(data["ladder_biases"]),
            frontiers={
                k: Reached(np.array(r["flops"]), np.array(r["steps"]), r["run"]) for k, r in data["frontiers"].items()
            },
        )

    def same_numbers(self, other: SeedResult) -> bool:
        """Whether two results are equal, timings aside."""
        a, b = self.to_json(), other.to_json()
        a.pop("seconds"), b.pop("seconds")
        return a == b


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
    targets, levels, m = protocol.losses, protocol.levels, protocol.m
    steps = fixed_steps(problem, protocol.baseline, targets, protocol.shrinks)
    frontiers = {
        "fixed": fixed_frontier(steps, m),
        "fixed, limited": fixed_frontier(steps, m, protocol.max_steps),
        "fixed, a fifth": fixed_frontier(steps, m, protocol.max_steps // 5),
        **{f"fixed, every {e}": fixed_frontier(steps, m, protocol.max_steps, e) for e in protocol.every if e > 1},
    }
    for form, exact in (("exact", True), ("truncated", False)):
        reached = telescope_frontier(
            problem,
            protocol.ladder,
            protocol.scales,
            exact,
            targets,
            protocol.probes,
            protocol.shrinks,
            protocol.max_steps,
            protocol.max_flops,
            protocol.every,
        )
        frontiers |= {form if e == 1 else f"{form}, every {e}": r for e, r in zip(protocol.every, reached, strict=True)}
    return SeedResult(
        seed=problem.design.seed,
        loss_zero=problem.loss_zero,
        floor=problem.floor(protocol.k_max),
        crossing=problem.crossing(),
        smoothness={k: problem.smoothness(k) for k in protocol.baseline},
        levels=levels,
        biases={"exact": problem.biases(levels), "truncated": problem.biases(levels, truncated=True)},
        ladder_biases=problem.biases(protocol.ladder),
        frontiers=frontiers,
        seconds={},
    )
