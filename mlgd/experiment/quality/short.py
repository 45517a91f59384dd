"""The short form: a dozen problems at one or two targets, which the tests run again.

Compared with the file: a run's price within a tenth, the geometric mean of all within three
hundredths. Chosen are runs whose bills are the same on other processors (rounding sends the rest
another way sooner or later), so the tolerance is for changes of the tool that are meant to do
nothing. A rule that makes a third of the runs a tenth dearer moves the mean by 3.2%.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .bench import Run, Tool, as_kept, call, read, tool_run
from .problems import PROBLEMS, instance

UNSTEADY: set[tuple[str, int]] = set()
TARGETS = (1, 2)  # middle and tight
SHORT = tuple(
    (name, 0, target) for name in PROBLEMS for target in TARGETS if (name, target) not in UNSTEADY
)  # name, data seed, target
EACH, ALL = 0.10, 0.03  # of a price, and of the geometric mean


def short_runs(tool: Tool = call) -> list[Run]:
    """The tool on these few."""
    return [as_kept(tool_run(instance(name, seed), target, tool)) for name, seed, target in SHORT]


def kept() -> list[Run]:
    """The same runs as the file has them."""
    found = {(run.name, run.seed, run.target): run for run in read()}
    return [found[key] for key in SHORT]


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


def verdict(now: Sequence[Run], before: Sequence[Run]) -> Verdict:
    """Whether these runs are as good as those."""
    ratios = [a.price / b.price for a, b in zip(now, before, strict=True)]
    moved = [
        f"{run.name}, seed {run.seed}, target {run.target}: {ratio:.3f} of the price"
        for run, ratio in zip(now, ratios, strict=True)
        if abs(math.log(ratio)) > math.log(1 + EACH)
    ]
    return Verdict(
        false=sum(run.false for run in now) - sum(run.false for run in before),
        reached=sum(run.reached for run in before) - sum(run.reached for run in now),
        mean=math.exp(sum(map(math.log, ratios)) / len(ratios)),
        moved=tuple(moved),
    )
