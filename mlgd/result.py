"""What a run pays, at which level and for what; and the result that it hands back.

A method buys each evaluation through a `Bill`, which charges it first and refuses what would pass
the budget. Whatever ends a run, and however often it is resumed, the bill is what was paid: what a
resumed run makes again is charged again, under the purpose 'again', and counts in the budget.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .hierarchy import Hierarchy, positive, taken

log = logging.getLogger("mlgd")
log.addHandler(logging.NullHandler())  # silent unless the program that imports it asks

MARGIN = 1e-9  # of declared accuracies, relative: they are rounded too
DIGITS = 1e-14  # of a value, relative: its rounding
BUDGET_ROUNDING = (
    1e-12  # of a budget, relative: a sum of prices is rounded, a plan's bound fits
)
DECISIONS_SHOWN = 3  # that a printed result shows; all of them are in `decisions`


class Stop(BaseException):
    """Ends a run in good order; whoever catches the errors of levels lets it pass."""

    def __init__(self, status: str, message: str):
        super().__init__(message)
        self.status = status
        self.message = message


class Bill:
    """Evaluations of one hierarchy, charged before they are made, checked, and counted by purpose.

    The run's own *course* is `total` and `counts`: what the method's state rests on, the same
    however often the run was resumed. `again` is what resumptions made once more.

    >>> bill = Bill(Hierarchy(lambda k, y: y, cost=lambda k: 10.0**k, levels=range(3)), 150)
    >>> bill.value(2, np.ones(2)), bill.value(1, np.ones(2), "curvature"), bill.total
    (array([1., 1.]), array([1., 1.]), 110.0)
    """

    def __init__(self, h: Hierarchy, max_cost: float | None = None):
        self.h = h
        self.limit = math.inf if max_cost is None else positive("max_cost", max_cost)
        self.most = self.limit * (1 + BUDGET_ROUNDING)
        self.price = {k: float(h.cost(k)) for k in h.levels}
        self.accuracy = dict.fromkeys(h.levels, math.inf)
        if h.declared:
            self.accuracy = {k: float(h.accuracy(k)) for k in h.levels}
        self.total = 0.0
        self.counts: dict[str, dict[int, int]] = {}  # {purpose: {level: evaluations}}
        self.broken = ""  # two levels that were seen to break their declared accuracies
        self.first: list | None = None  # the level evaluated first, and its value
        self.unsettled: list[tuple[str, int]] | None = (
            None  # bought since the last whole step
        )
        self.settled = 0.0  # the total at that step
        self.again = dict.fromkeys(self.price, 0)
        self.price_again = 0.0
        least = min(self.price.values())
        if self.limit < least:
            raise ValueError(
                f"max_cost = {self.limit:g} does not pay for one evaluation, which costs {least:g} "
                "or more: raise max_cost"
            )

    # --- buying ---

    @property
    def spent(self) -> float:
        """What was paid, over all resumptions."""
        return self.total + self.price_again

    def covers(self, price: float) -> bool:
        """Whether the budget covers that price too."""
        return self.spent + price <= self.most

    def afford(self, price: float) -> None:
        """End the run here if that price would pass the budget."""
        if not self.covers(price):
            paid = f"{self.spent:g} is paid, and the next evaluations cost {price:g}"
            raise Stop("budget", f"{paid}: max_cost = {self.limit:g} does not cover them")

    def value(self, k: int, y: np.ndarray, purpose: str = "steps", fresh: bool = True):
        """A_k(y), paid for and checked; if not `fresh` it is used before the next is bought."""
        price = self.price[k]
        if self.total + self.price_again + price > self.most:  # `spent`, on the hot path
            self.afford(price)
        if purpose not in self.counts:
            self.counts[purpose] = dict.fromkeys(self.price, 0)
        self.counts[purpose][k] += 1
        self.total += price
        if self.unsettled is not None:
            self.unsettled.append((purpose, k))
        value = taken(self.h.evaluate, k, y, fresh, squared=True)
        if self.first is None:
            self.first = [k, value.copy()]
        return value

    def values(self, levels: Sequence[int], y: np.ndarray) -> list[np.ndarray]:
        """Several levels at one point, from coarse to fine, all of them or none."""
        if self.limit < math.inf:
            self.afford(sum(self.price[k] for k in levels))
        values = [self.value(k, y) for k in levels]
        if not self.broken:
            for lower, upper in pairwise(zip(levels, values, strict=True)):
                self.compare(*lower, *upper)
        return values

    def compare(self, j: int, coarse: np.ndarray, k: int, fine: np.ndarray) -> None:
        """Two levels differ by at most the sum of their accuracies; if not, no promise is left."""
        moved = fine - coarse
        apart = math.sqrt(np.vdot(moved, moved))
        allowed = (1 + MARGIN) * (self.accuracy[j] + self.accuracy[k])
        if apart > allowed + DIGITS * math.sqrt(np.vdot(fine, fine)):
            self.broken = (
                f"levels {j} and {k} differ by {apart:.3g} where their accuracies allow "
                f"{allowed:.3g}: nothing is promised; audit the hierarchy and plan on the report"
            )
            log.warning("%s", self.broken)

    def repeat(self, k: int, y: np.ndarray) -> np.ndarray:
        """A_k(y) once more, to compare it: paid, and no part of the run's own course."""
        self.afford(self.price[k])
        self.charge_again({k: 1})
        return taken(self.h.evaluate, k, y, squared=True)

    def charge_again(self, counts: dict[int, int]) -> None:
        """Charge evaluations that a resumption makes, or made, once more."""
        for k, n in counts.items():
            self.again[k] += n
        self.price_again = sum(n * self.price[k] for k, n in self.again.items())

    # --- telling ---

    def settle(self) -> None:
        """A whole step was made: a file holds it, and what comes after it is made again."""
        self.unsettled = []
        self.settled = self.total

    def kept(self) -> dict:
        """What a checkpoint keeps: the course up to the last whole step, the rest as made again."""
        counts = {purpose: dict(made) for purpose, made in self.counts.items()}
        again = dict(self.again)
        for purpose, k in self.unsettled:
            counts[purpose][k] -= 1
            again[k] += 1
        return {
            "total": self.settled,
            "counts": counts,
            "again": again,
            "broken": self.broken,
            "first": self.first,
        }

    def resume(self, kept: dict) -> None:
        """Go on from a file, where levels are texts."""
        self.total = kept["total"]
        self.broken = kept["broken"]
        self.first = kept["first"]
        for purpose, counts in kept["counts"].items():
            self.counts[purpose] = dict(zip(self.price, counts.values(), strict=True))
        self.charge_again(dict(zip(self.price, kept["again"].values(), strict=True)))

    def price_of(self, purpose: str) -> float:
        """What the run's own course paid for a purpose."""
        return sum(self.priced(self.counts.get(purpose, {})).values())

    def priced(self, counts: dict[int, int]) -> dict[int, float]:
        return {k: n * self.price[k] for k, n in counts.items()}

    @property
    def paid(self) -> dict:
        """What a result says of it: the price, by level and by purpose, and the evaluations."""
        every = dict(self.counts)
        if self.price_again:
            every["again"] = self.again
        number = {k: sum(counts[k] for counts in every.values()) for k in self.price}
        purposes = {
            what: sum(self.priced(counts).values()) for what, counts in every.items()
        }
        return {
            "cost": self.spent,
            "cost_by_level": self.priced(number),
            "cost_by_purpose": purposes,
            "evaluations": number,
        }


class Trace(NamedTuple):
    """Steps, prices of the run's own course by then, losses of the output (nan without `loss`)."""

    step: np.ndarray
    cost: np.ndarray
    loss: np.ndarray


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

    def rows(self) -> list[tuple[str, str]]:
        """What a printed result says: a name and a text per line."""
        rows = []
        if not math.isnan(self.fun):
            rows.append(
                ("loss", f"{self.trace.loss[0]:.4g} at the start, {self.fun:.4g} at y")
            )
        if not math.isnan(self.estimate):
            rows.append(("believed", f"{self.estimate:.4g} above the minimum"))
        rows.append(("promise", self.promise))
        rows.append(("status", f"{self.status}: {self.message}"))
        paid = f"{self.cost:.4g} for {self.nfev} evaluations, {self.steps} steps"
        rows.append(("price", paid))
        for k, n in self.evaluations.items():
            if n:
                share = self.cost_by_level[k] / self.cost
                rows.append(
                    (f"level {k}", f"{self.cost_by_level[k]:.4g} for {n} ({share:.1%})")
                )
        if len(self.cost_by_purpose) > 1:
            for what, paid in self.cost_by_purpose.items():
                rows.append((f"for {what}", f"{paid:.4g}"))
        for sentence in self.decisions[-DECISIONS_SHOWN:]:
            rows.append(("decided", sentence))
        with np.printoptions(threshold=6, edgeitems=2, precision=4):
            rows.append(("y", f"shape {self.y.shape}, {self.y}".replace("\n", "")))
        return rows

    def __repr__(self) -> str:
        return "\n".join(
            ["Result", *(f"{name:>14s}  {text}" for name, text in self.rows())]
        )

    def __str__(
        self,
    ) -> str:  # what a notebook displays, the repr, has no digits that change
        return f"{self!r}\n{'seconds':>14s}  {self.seconds:.3g}"
