"""What a run pays, at which level and for what; the state every method keeps; and the result.

A method buys each evaluation through a `Bill`, which charges it first and refuses what would pass
the budget. Whatever ends a run, the bill is what was paid.
"""

import logging
import math
from collections import defaultdict, namedtuple
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from .hierarchy import Hierarchy, taken

log = logging.getLogger("mlgd")
log.addHandler(logging.NullHandler())  # silent unless the program that imports it asks

ROUNDING = 1e-9  # in sums of accuracies
TINY = 1e-14  # rounding of a value, relative
SHOWN = 3  # decisions that a printed result shows; all of them are in `decisions`


class Stop(BaseException):
    """Ends a run in good order; whoever catches the errors of levels lets it pass."""

    def __init__(self, status: str, message: str):
        super().__init__(message)
        self.status, self.message = status, message


@dataclass
class State:
    """Where a method is: all that it needs to go on, which is also what a checkpoint holds.

    Fields are arrays, numbers, texts, None, and lists or dicts (with texts as keys) of these.
    """

    y: np.ndarray  # the iterate, read-only: a new array whenever it moves
    step: int = 0  # counted by the run
    status: str = "done"  # how the run ends if nothing cuts it short
    message: str = ""
    promise: str = "none"
    estimate: float = math.nan  # of the loss at y above the minimum, as believed now
    decisions: list[str] = field(default_factory=list)

    @property
    def output(self) -> np.ndarray:
        """What would be returned now, in an array of its own."""
        return self.y.copy()

    def decide(self, sentence: str) -> None:
        """Keep, and log, what was decided and why."""
        self.decisions.append(sentence)
        log.info("%s", sentence)


class Bill:
    """Evaluations of one hierarchy, charged before they are made, checked, and counted by purpose.

    >>> bill = Bill(Hierarchy(lambda k, y: y, cost=lambda k: 10.0**k, levels=range(3)), 150)
    >>> bill.value(2, np.ones(2)), bill.value(1, np.ones(2), "curvature"), bill.total, bill.left
    (array([1., 1.]), array([1., 1.]), 110.0, 40.0)
    """

    def __init__(self, h: Hierarchy, max_cost: float | None = None):
        self.h, self.limit, self.total = h, math.inf if max_cost is None else max_cost, 0.0
        self.price = {k: float(h.cost(k)) for k in h.levels}
        self.counts: dict[tuple[str, int], int] = defaultdict(int)  # by purpose and level
        self.accuracy = {k: float(h.accuracy(k)) for k in h.levels}
        self.broken = ""  # two levels that were seen to break their declared accuracies
        self.start = self.opening = self.there = None  # see `open`

    def open(self, k: int, start: np.ndarray) -> None:
        """Evaluate a level at the start, so that one that returns no gradient is refused at once.

        It is charged, and not evaluated again, when a method asks for it at that very array.
        """
        if self.price[k] > self.limit:
            why = f"does not pay for one evaluation of level {k}, which costs {self.price[k]:g}"
            raise ValueError(f"max_cost = {self.limit:g} {why}: raise max_cost")
        self.start, self.opening, self.there = start, k, self.h.value(k, start)

    @property
    def left(self) -> float:
        """What the budget still pays for."""
        return self.limit - self.total

    def afford(self, price: float) -> None:
        """End the run here if that price would pass the budget."""
        if self.total + price > self.limit:
            why = f"the next evaluation would pass max_cost = {self.limit:g}"
            raise Stop("budget", f"{why}: raise max_cost or eps")

    def value(self, k: int, y: np.ndarray, purpose: str = "steps", fresh: bool = True):
        """A_k(y), paid for and checked; if not `fresh` it is used before the next is bought."""
        price = self.price[k]
        if self.total + price > self.limit:
            self.afford(price)
        self.counts[purpose, k] += 1
        self.total += price
        if y is self.start and k == self.opening:
            self.start = None
            return self.there.copy()  # a fingerprint keeps it
        return taken(self.h.evaluate, k, y, fresh)

    def values(self, levels: Sequence[int], y: np.ndarray) -> list[np.ndarray]:
        """Several levels at one point, from coarse to fine, all of them or none; and watched."""
        if self.limit < math.inf:
            self.afford(sum(self.price[k] for k in levels))
        values = [self.value(k, y) for k in levels]
        if not self.broken:
            self._watch(levels, values)
        return values

    def _watch(self, levels: Sequence[int], values: list[np.ndarray]) -> None:
        """Two levels differ by at most the sum of their accuracies; if not, no promise is left."""
        for (j, coarse), (k, fine) in pairwise(zip(levels, values, strict=True)):
            moved, allowed = fine - coarse, (1 + ROUNDING) * (self.accuracy[j] + self.accuracy[k])
            apart = math.sqrt(np.vdot(moved, moved))
            if apart > allowed and apart > allowed + TINY * float(np.linalg.norm(fine)):
                far = f"levels {j} and {k} differ by {apart:.3g} where their declared accuracies"
                advice = "nothing is promised; audit the hierarchy and plan on the report"
                self.broken = f"{far} allow {allowed:.3g}: {advice}"
                log.warning("%s", self.broken)
                return

    @property
    def content(self) -> dict:
        """What a checkpoint keeps of it."""
        counts = [[*key, n] for key, n in self.counts.items()]
        return {"total": self.total, "counts": counts, "broken": self.broken}

    @content.setter
    def content(self, kept: dict) -> None:
        self.total, self.broken = kept["total"], kept["broken"]
        self.counts.update({(purpose, k): n for purpose, k, n in kept["counts"]})

    @property
    def paid(self) -> dict:
        """What a result says of it: the price, by level and by purpose, and the evaluations."""
        number, purposes = dict.fromkeys(self.price, 0), defaultdict(float)
        for (purpose, k), n in self.counts.items():
            number[k] += n
            purposes[purpose] += n * self.price[k]
        by_level = {k: n * self.price[k] for k, n in number.items()}
        paid = {"cost": self.total, "cost_by_level": by_level, "cost_by_purpose": dict(purposes)}
        return paid | {"evaluations": number}


# arrays of steps, prices paid by then, and losses of the output (nan without `loss`)
Trace = namedtuple("Trace", "step cost loss")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Result:
    """Where a run ended, what it paid, why it ended and what may be said of y.

    status: 'done', 'missed' (the estimate stayed above eps), 'stopped' (by a callback or an
    interrupt), 'budget', 'diverged' (y is the start) or 'failed' (`error`: what a level raised).
    promise: 'proved', 'estimate' or 'none'. `decisions` are sentences, in their order.
    """

    y: np.ndarray
    cost: float
    cost_by_level: dict[int, float]
    status: str
    message: str
    promise: str = "none"
    estimate: float = math.nan
    trace: Trace
    steps: int
    evaluations: dict[int, int]
    cost_by_purpose: dict[str, float] = field(default_factory=dict)
    decisions: tuple[str, ...] = ()
    error: Exception | None = None
    seconds: float = math.nan

    @property
    def x(self) -> np.ndarray:
        """y, as scipy calls it."""
        return self.y

    @property
    def fun(self) -> float:
        """The loss recorded at y (nan when no `loss` was given)."""
        return float(self.trace.loss[0 if self.status == "diverged" else -1])

    @property
    def success(self) -> bool:
        """Whether the run is done and something is promised of it."""
        return self.status == "done" and self.promise != "none"

    @property
    def nit(self) -> int:
        """The number of steps (of events, for a flow)."""
        return self.steps

    @property
    def nfev(self) -> int:
        """The number of evaluations, all levels together."""
        return sum(self.evaluations.values())

    def __repr__(self) -> str:
        rows = [("promise", self.promise), ("status", f"{self.status}: {self.message}")]
        if not math.isnan(self.estimate):
            rows.insert(0, ("estimate", f"{self.estimate:.4g} above the minimum"))
        if not math.isnan(self.fun):
            rows.insert(0, ("loss", f"{self.trace.loss[0]:.4g} at the start, {self.fun:.4g} at y"))
        rows.append(("price", f"{self.cost:.4g} for {self.nfev} evaluations, {self.steps} steps"))
        for k, n in self.evaluations.items():
            if n:
                share = self.cost_by_level[k] / self.cost
                rows.append((f"level {k}", f"{self.cost_by_level[k]:.4g} for {n} ({share:.1%})"))
        if len(self.cost_by_purpose) > 1:
            rows += [(f"for {what}", f"{paid:.4g}") for what, paid in self.cost_by_purpose.items()]
        rows += [("decided", sentence) for sentence in self.decisions[-SHOWN:]]
        with np.printoptions(threshold=6, edgeitems=2, precision=4):
            rows.append(("y", f"shape {self.y.shape}, {self.y}".replace("\n", "")))
        return "\n".join(["Result", *(f"{name:>14s}  {text}" for name, text in rows)])

    def __str__(self) -> str:
        # seconds differ from run to run: what a notebook displays, the repr, leaves them out
        return f"{self!r}\n{'seconds':>14s}  {self.seconds:.3g}"
