"""What a run hands back: where it ended, what it paid and why it ended, also under the names of scipy's users."""

import logging
import math
from dataclasses import dataclass, field
from html import escape

import numpy as np

log = logging.getLogger("mlgd")
log.addHandler(logging.NullHandler())  # silent unless the program that imports it asks


@dataclass(frozen=True, eq=False)
class State:
    """What a callback sees: the step just made, the iterate, the output so far, what it cost, the last recorded loss."""

    step: int
    y: np.ndarray
    output: np.ndarray
    cost: float
    cost_by_level: dict[int, float]
    loss: float


@dataclass(frozen=True, eq=False)
class Trace:
    """What was recorded along the way: steps, prices paid so far, and losses of the output (nan without `loss`)."""

    step: np.ndarray
    cost: np.ndarray
    loss: np.ndarray


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Result:
    """Where a run ended, what it paid and why it ended.

    status: 'done', 'stopped' (by a callback or an interrupt), 'budget', 'diverged' or 'failed' (`error` holds what a
    level raised). `promise` is the kind of promise that stands for y: 'proved', 'quadratic', 'measured', or 'none'.
    A run without a plan also has `estimate` (of the loss at y above the minimum), `choices` (what it decided, in
    sentences), `cost_by_purpose`, and the status 'missed' where the estimate stayed above eps.
    """

    y: np.ndarray
    cost: float
    cost_by_level: dict[int, float]
    evaluations: dict[int, int]
    steps: int
    status: str
    message: str
    trace: Trace
    promise: str = "none"
    error: Exception | None = None
    estimate: float = math.nan
    choices: tuple[str, ...] = ()
    cost_by_purpose: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, y, meter, rows, steps, status, message, **more) -> "Result":
        """From what was paid and recorded, rows of (step, price so far, loss)."""
        trace = Trace(*(np.array(column) for column in zip(*rows, strict=True)))
        paid = {
            "cost": meter.total,
            "cost_by_level": meter.by_level,
            "evaluations": dict(meter.counts),
        }
        return cls(y=y, **paid, steps=steps, status=status, message=message, trace=trace, **more)

    @property
    def x(self) -> np.ndarray:
        """y, as scipy calls it."""
        return self.y

    @property
    def fun(self) -> float:
        """The loss recorded at y; nan when no `loss` was given."""
        losses = self.trace.loss
        return float(
            np.nanmin(losses)
            if self.status == "diverged" and not np.isnan(losses).all()
            else losses[-1]
        )

    @property
    def success(self) -> bool:
        """Whether all that was planned was done."""
        return self.status == "done"

    @property
    def nit(self) -> int:
        """The number of steps (of events, for a flow)."""
        return self.steps

    @property
    def nfev(self) -> int:
        """The number of evaluations, all levels together."""
        return sum(self.evaluations.values())

    def _rows(self) -> list[tuple[str, str]]:
        with np.printoptions(threshold=6, edgeitems=2, precision=4):
            point = str(self.y)
        rows = [
            ("status", f"{self.status}: {self.message}"),
            ("promise", self.promise),
            ("price", f"{self.cost:.4g} for {self.nfev} evaluations in {self.steps} steps"),
            (
                "loss",
                f"{self.fun:.4g}"
                if self.fun == self.fun
                else "not recorded: give minimize a `loss`",
            ),
            ("y", f"shape {self.y.shape}, {point}"),
        ]
        if self.cost_by_purpose:
            rows.insert(
                3,
                (
                    "spent on",
                    ", ".join(f"{what} {c:.3g}" for what, c in self.cost_by_purpose.items()),
                ),
            )
        rows += [("choice", sentence) for sentence in self.choices]
        return rows + ([("error", repr(self.error))] if self.error is not None else [])

    def _bill(self) -> list[tuple[int, int, float, float]]:
        """Level, evaluations, price and its share, of the levels that were evaluated."""
        return [
            (k, n, self.cost_by_level[k], self.cost_by_level[k] / self.cost)
            for k, n in self.evaluations.items()
            if n
        ]

    def __repr__(self) -> str:
        rows = [f"{name:>9s}  {text}" for name, text in self._rows()]
        bill = [
            f"    level {k}: {n} x, price {price:.4g} ({share:.0%})"
            for k, n, price, share in self._bill()
        ]
        return "\n".join(["Result", *rows, *bill])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in self._rows()
        )
        head = "<tr><th>level</th><th>evaluations</th><th>price</th><th>share</th></tr>"
        bill = "".join(
            f"<tr><td>{k}</td><td>{n}</td><td>{price:.4g}</td><td>{share:.1%}</td></tr>"
            for k, n, price, share in self._bill()
        )
        return f"<table>{rows}</table>" + (f"<table>{head}{bill}</table>" if bill else "")
