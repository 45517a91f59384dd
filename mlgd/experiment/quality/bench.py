"""One row per run of `minimize`: what it reached and claimed, what it paid, what others paid.

Reached: the true loss is within eps of the reference. A *false promise* is a success at a point
that is not. Where a problem is not convex, the reference is the lowest minimum that descents
from the start are known to reach, so that a run may keep its word about the minimum that it
went to and yet count as false, because that is a higher one: such a run is counted as false and
marked as *elsewhere*. The sentence printed to a user makes no difference between the two.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from mlgd import Result, minimize

from .policies import POLICIES, follow, hindsight
from .problem import Instance
from .problems import PROBLEMS
from .references import descend, gap, targets

FILE = Path(__file__).parents[3] / "book" / "data" / "quality.json"
Tool = Callable[[Instance, float], Result]


@dataclass(frozen=True, kw_only=True)
class Run:
    """A problem, a data seed and a target; the tool there; and the others."""

    name: str
    seed: int
    target: int  # 0 loose, 1 middle, 2 tight
    price: float
    over: float  # the true loss gap where it ended, over eps
    success: bool
    elsewhere: bool = False  # above eps, but within eps of the minimum next to it
    hindsight: float = math.inf
    policies: tuple[tuple[float, float], ...] = ()  # price, and gap over eps, of each

    @property
    def key(self) -> tuple[str, int, int]:
        return self.name, self.seed, self.target

    @property
    def reached(self) -> bool:
        return self.over <= 1

    @property
    def false(self) -> bool:
        """Whether a promise was broken."""
        return self.success and not self.reached

    @property
    def convex(self) -> bool:
        return PROBLEMS[self.name].convex

    @property
    def rival(self) -> float | None:
        """The least price of a policy that stopped by itself within eps; None where none did."""
        prices = [price for price, over in self.policies if over <= 1]
        return min(prices, default=None)


def call(problem: Instance, eps: float) -> Result:
    """The tool as a user calls it who knows nothing but a target."""
    return minimize(problem.hierarchy, problem.start, eps=eps)


def tool_run(problem: Instance, target: int, tool: Tool = call) -> Run:
    """The tool on one problem and target."""
    eps = targets(problem)[target]
    result = tool(problem, eps)
    off = gap(problem, result.y)
    return Run(
        name=problem.name,
        seed=problem.seed,
        target=target,
        price=float(result.cost),
        over=off / eps,
        success=bool(result.success),
        elsewhere=off > eps and not problem.convex and own_gap(problem, result.y) <= eps,
    )


def own_gap(problem: Instance, y: np.ndarray) -> float:
    """How far the true loss at y is above that of the minimum that a descent from y ends in."""
    with np.errstate(all="ignore"):
        bottom = descend(
            problem.truth, y, maxiter=5000, maxfun=10000, ftol=1e-15, gtol=1e-10
        )
    return problem.loss(y) - problem.loss(bottom)


def others(problem: Instance) -> list[dict]:
    """For each target, what does not change when the tool does: policies and hindsight."""
    goals = targets(problem)
    least = hindsight(problem, goals)
    rows = []
    for eps, price in zip(goals, least, strict=True):
        ends = [follow(problem, policy, eps) for policy in POLICIES.values()]
        ends = [(paid, off / eps) for paid, off in ends]
        rows.append({"hindsight": price, "policies": tuple(ends)})
    return rows


def with_others(runs: Sequence[Run], known: Sequence[Run]) -> list[Run]:
    """These runs of the tool, what others pay taken from runs that are known."""
    kept = {run.key: run for run in known}
    found = []
    for run in runs:
        old = kept[run.key]
        found.append(replace(run, hindsight=old.hindsight, policies=old.policies))
    return found


def all_runs(
    problem: Instance, known: Sequence[Run] = (), tool: Tool = call
) -> list[Run]:
    """Every target of a problem; the others are taken from runs that are known, if given."""
    runs = [tool_run(problem, target, tool) for target in range(len(problem.shares))]
    if known:
        return with_others(runs, known)
    rows = others(problem)
    return [replace(run, **row) for run, row in zip(runs, rows, strict=True)]


# --- the file ---


def rounded(number: float, digits: int = 3) -> float | None:
    """A number as the file has it; None where it is infinite."""
    return float(f"{number:.{digits}g}") if math.isfinite(number) else None


def rounded_up(number: float) -> float | None:
    """The same, never smaller: what is above eps stays above."""
    if not 0 < number < math.inf:
        return rounded(number)
    unit = 10.0 ** (math.floor(math.log10(number)) - 2)
    return rounded(math.ceil(number / unit * (1 - 1e-12)) * unit)


def row(run: Run) -> list:
    """A run as a line of the file."""
    fields = asdict(run)
    fields["price"] = rounded(run.price, 6)
    fields["over"] = rounded_up(run.over)
    fields["hindsight"] = rounded(run.hindsight)
    fields["success"] = int(run.success)
    fields["elsewhere"] = int(run.elsewhere)
    fields["policies"] = [[rounded(paid), rounded_up(off)] for paid, off in run.policies]
    return list(fields.values())


def from_row(line: list) -> Run:
    """The run of a line."""
    name, seed, target, price, over, success, elsewhere, least, policies = line

    def number(value: float | None) -> float:
        return math.inf if value is None else value

    return Run(
        name=name,
        seed=seed,
        target=target,
        price=number(price),
        over=number(over),
        success=bool(success),
        elsewhere=bool(elsewhere),
        hindsight=number(least),
        policies=tuple((number(paid), number(off)) for paid, off in policies),
    )


def as_kept(run: Run) -> Run:
    """The run as the file has it: totals are of rounded figures, so that they can be checked."""
    return from_row(row(run))


def read(path: Path = FILE) -> list[Run]:
    """The runs of a file."""
    return [from_row(line) for line in json.loads(path.read_text("utf-8"))["runs"]]


def write(path: Path, runs: Sequence[Run], totals: dict) -> None:
    """Runs, one a line, and what they come to."""
    lines = ",\n".join(json.dumps(row(run), separators=(",", ":")) for run in runs)
    head = json.dumps(totals, indent=1)
    path.write_text(f'{{"totals": {head},\n"runs": [\n{lines}\n]}}\n', "utf-8")
