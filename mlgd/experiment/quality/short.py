"""The short form: most problems at two seeds and two targets, which the tests run again.

Compared with the file: a run's price within a tenth, the geometric mean of all within three
hundredths, false promises not more, reached not fewer. Where rounding alone sends a run another
way (a start moved by 1e-14, another processor) the problem is left out; the bills of the others
are then the same to a hundredth, so that the tolerance is there for changes of the tool that
are meant to do nothing. A rule that makes a third of the runs a tenth dearer moves the mean by
3.2%, and is noticed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .bench import Run, Tool, as_kept, call, read, tool_run
from .problems import PROBLEMS, instance

# bills that hang on rounding
UNSTEADY = ("reacting bar", "kernel", "ions", "few bits", "membrane")
STEADY = [name for name in PROBLEMS if name not in UNSTEADY]
SEEDS = (0, 1)
TARGETS = (1, 2)  # middle and tight
SHORT = [(name, seed, target) for name in STEADY for seed in SEEDS for target in TARGETS]
EACH, ALL = 0.10, 0.03  # of a price, and of the geometric mean
Key = tuple[str, int, int]


def short_runs(tool: Tool = call, keys: Sequence[Key] = SHORT) -> list[Run]:
    """The tool on these few."""
    runs = []
    for name, seed, target in keys:
        run = tool_run(instance(name, seed), target, tool)
        runs.append(as_kept(run))
    return runs


def kept(keys: Sequence[Key] = SHORT) -> list[Run]:
    """The same runs as the file has them."""
    found = {run.key: run for run in read()}
    return [found[key] for key in keys]


@dataclass(frozen=True)
class Verdict:
    """The short form now, against the file."""

    false: int  # more false promises than the file has
    reached: int  # fewer reached
    mean: float  # the geometric mean of prices over the file's
    moved: tuple[str, ...]  # runs whose price moved by more than a tenth

    @property
    def worse(self) -> bool:
        return self.false > 0 or self.reached > 0 or self.mean > 1 + ALL

    def __str__(self) -> str:
        lines = [
            f"against the file: {self.false:+d} false promises, {-self.reached:+d} reached, "
            f"{self.mean:.4f} of the price",
            *self.moved,
        ]
        return "\n".join(lines)


def verdict(now: Sequence[Run], before: Sequence[Run]) -> Verdict:
    """Whether these runs are as good as those."""
    ratios = [a.price / b.price for a, b in zip(now, before, strict=True)]
    moved = [
        f"{run.name}, seed {run.seed}, target {run.target}: {ratio:.3f} of the price"
        for run, ratio in zip(now, ratios, strict=True)
        if abs(math.log(ratio)) > math.log(1 + EACH)
    ]
    mean = sum(map(math.log, ratios)) / len(ratios)
    return Verdict(
        false=false(now) - false(before),
        reached=reached(before) - reached(now),
        mean=math.exp(mean),
        moved=tuple(moved),
    )


def false(runs: Sequence[Run]) -> int:
    return sum(run.false for run in runs)


def reached(runs: Sequence[Run]) -> int:
    return sum(run.reached for run in runs)
