"""What a run pays, at which level and for what; the state every method keeps; and the result.

A method buys each evaluation through a `Bill`, which charges it first and refuses what would pass
the budget. Whatever ends a run, and however often it is resumed, the bill is what was paid: what a
resumed run makes again is charged again, under the purpose 'again', and counts in the budget.
"""

import logging
import math
from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from .hierarchy import Hierarchy, positive, taken

log = logging.getLogger("mlgd")
log.addHandler(logging.NullHandler())  # silent unless the program that imports it asks

MARGIN, DIGITS = 1e-9, 1e-14  # of declared accuracies, and the rounding of a value: relative
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
        """Keep what was decided and why, once, and log it."""
        self.decisions += [sentence] * (sentence not in self.decisions[-1:])
        log.info("%s", sentence)


class Bill:
    """Evaluations of one hierarchy, charged before they are made, checked, and counted by purpose.

    >>> bill = Bill(Hierarchy(lambda k, y: y, cost=lambda k: 10.0**k, levels=range(3)), 150)
    >>> bill.value(2, np.ones(2)), bill.value(1, np.ones(2), "curvature"), bill.total
    (array([1., 1.]), array([1., 1.]), 110.0)
    """

    def __init__(self, h: Hierarchy, max_cost: float | None = None):
        self.h, self.limit = h, math.inf if max_cost is None else positive("max_cost", max_cost)
        self.most = self.limit * (1 + 1e-12)  # a sum of prices is rounded: a plan's own bound fits
        self.price = {k: float(h.cost(k)) for k in h.levels}
        self.accuracy = {k: float(h.accuracy(k)) if h.declared else math.inf for k in h.levels}
        self.total, self.counts = 0.0, {}  # {purpose: {level: evaluations}}
        self.again = dict.fromkeys(self.price, 0)  # by level: what resumptions make once more
        self.lost = 0.0  # and its price
        self.broken = ""  # two levels that were seen to break their declared accuracies
        self.first: list | None = None  # the level evaluated first, and its value
        if self.limit < (least := min(self.price.values())):
            why = f"does not pay for one evaluation, which costs {least:g} or more"
            raise ValueError(f"max_cost = {self.limit:g} {why}: raise max_cost")

    def afford(self, price: float) -> None:
        """End the run here if that price would pass the budget."""
        if self.spent + price > self.most:
            paid = f"{self.spent:g} is paid, and the next evaluations cost {price:g}"
            raise Stop("budget", f"{paid}: max_cost = {self.limit:g} does not cover them")

    def value(self, k: int, y: np.ndarray, purpose: str = "steps", fresh: bool = True):
        """A_k(y), paid for and checked; if not `fresh` it is used before the next is bought."""
        price = self.price[k]
        if self.total + self.lost + price > self.most:
            self.afford(price)
        if purpose not in self.counts:
            self.counts[purpose] = dict.fromkeys(self.price, 0)
        self.counts[purpose][k] += 1
        self.total += price
        value = taken(self.h.evaluate, k, y, fresh)
        if self.first is None:
            self.first = [k, value.copy()]
        return value

    def values(self, levels: Sequence[int], y: np.ndarray) -> list[np.ndarray]:
        """Several levels at one point, from coarse to fine, all of them or none.

        Two of them differ by at most the sum of their accuracies; if not, no promise is left.
        """
        if self.limit < math.inf:
            self.afford(sum(self.price[k] for k in levels))
        values = [self.value(k, y) for k in levels]
        if self.broken:
            return values
        for (j, coarse), (k, fine) in pairwise(zip(levels, values, strict=True)):
            moved, allowed = fine - coarse, (1 + MARGIN) * (self.accuracy[j] + self.accuracy[k])
            apart = math.sqrt(np.vdot(moved, moved))
            if apart > allowed + DIGITS * math.sqrt(np.vdot(fine, fine)):
                far = f"levels {j} and {k} differ by {apart:.3g} where their accuracies"
                advice = "nothing is promised; audit the hierarchy and plan on the report"
                self.broken = f"{far} allow {allowed:.3g}: {advice}"
                log.warning("%s", self.broken)
        return values

    def repeat(self, k: int, y: np.ndarray) -> np.ndarray:
        """A_k(y) once more, to compare it: paid, and no part of the run's own course."""
        self.afford(self.price[k])
        self.lose({k: 1})
        return taken(self.h.evaluate, k, y)

    def lose(self, counts: dict[int, int]) -> None:
        """Charge what was made in vain: a resumed run makes it again."""
        for k, n in counts.items():
            self.again[k] += n
        self.lost = sum(n * self.price[k] for k, n in self.again.items())

    @property
    def spent(self) -> float:
        """What was paid, over all resumptions; `total` is the price of the run's own course."""
        return self.total + self.lost

    @property
    def paid(self) -> dict:
        """What a result says of it: the price, by level and by purpose, and the evaluations."""
        every = self.counts | ({"again": self.again} if self.lost else {})
        number = {k: sum(counts[k] for counts in every.values()) for k in self.price}
        bill = lambda counts: {k: n * self.price[k] for k, n in counts.items()}  # noqa: E731
        purposes = {what: sum(bill(counts).values()) for what, counts in every.items()}
        paid = {"cost": self.spent, "cost_by_level": bill(number), "cost_by_purpose": purposes}
        return paid | {"evaluations": number}


# arrays of steps, prices of the run's course by then, losses of the output (nan without `loss`)
Trace = namedtuple("Trace", "step cost loss")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Result:
    """Where a run ended, what it paid, why it ended and what may be said of y.

    status: 'done' (and something is promised), 'ended' (nothing is: a plan by hand, or levels that
    let nothing be judged), 'missed' (eps is not reached, as far as can be told), 'stopped' (by a
    callback or an interrupt), 'budget', 'diverged' (plans: y is the start), 'failed' (`error`: what
    a level raised).
    promise: 'proved', 'estimate' or 'none'. `estimate` is the loss above the minimum that is
    believed; what is claimed is eps. `fun` is the loss at y, nan without `loss`; y is the start
    where the point reached is known to be worse. `decisions` are sentences, in their order.
    """

    y: np.ndarray
    cost: float
    cost_by_level: dict[int, float]
    status: str
    message: str
    promise: str = "none"
    estimate: float = math.nan
    fun: float = math.nan
    trace: Trace
    steps: int
    evaluations: dict[int, int]
    cost_by_purpose: dict[str, float]
    decisions: tuple[str, ...] = ()
    error: Exception | None = None
    seconds: float = math.nan

    # as scipy calls them; steps of a flow are its events
    x = property(lambda self: self.y)
    nit = property(lambda self: self.steps)
    nfev = property(lambda self: sum(self.evaluations.values()))

    @property
    def success(self) -> bool:
        """Whether the run is done, which is to say that something is promised of y."""
        return self.status == "done"

    def __repr__(self) -> str:
        told = [("loss", self.fun, f"{self.trace.loss[0]:.4g} at the start, {self.fun:.4g} at y")]
        told += [("believed", self.estimate, f"{self.estimate:.4g} above the minimum")]
        rows = [(name, words) for name, number, words in told if not math.isnan(number)]
        rows += [("promise", self.promise), ("status", f"{self.status}: {self.message}")]
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

    def __str__(self) -> str:  # what a notebook displays, the repr, has no digits that change
        return f"{self!r}\n{'seconds':>14s}  {self.seconds:.3g}"
