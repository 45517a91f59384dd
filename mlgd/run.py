"""One run, whatever its method: recorded, watched, stopped, kept on disk, resumed.

A method is a state and a generator that makes the steps: all that must survive a step is in the
state, so that a run that was killed goes on from the state of its last file. What a level raises
ends the run with the error in its result; what a callback or a loss raises is the caller's and is
raised again, with the result on it.
"""

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from .checkpoint import Checkpoint, copied, same
from .hierarchy import Hierarchy, LevelError, OutOfDomain, begins, function, ladder, shown
from .result import Bill, Result, Stop, Trace, log

FAR = (
    1e8  # a run this many d0 from its start (1 + |y0| where d0 is not known) has diverged
)
RECORDS = 200  # losses recorded in a planned run
DIVERGED = (
    "the iterate left every region, and y is the start: is beta, or a rate, too small?"
)
OUTSIDE = (
    " (where a point may be outside of the problem's domain, raise mlgd.OutOfDomain)"
)


class Progress(NamedTuple):
    """What a callback sees after a step; `loss` is the last one recorded."""

    step: int
    y: np.ndarray
    output: np.ndarray
    cost: float
    cost_by_level: dict[int, float]
    loss: float


@dataclass
class State:
    """Where a method is: all that it needs to go on, which is also what a checkpoint holds.

    Fields are arrays, numbers, texts, None, and lists, dicts (with texts as keys) or dataclasses
    of these.
    """

    y: np.ndarray  # the iterate, read-only: a new array whenever it moves
    step: int = 0  # counted by the run
    status: str = "ended"  # how the run ends if nothing cuts it short
    message: str = ""
    promise: str = "none"
    estimate: float = math.nan  # of the loss at y above the minimum, as believed now
    decisions: list[str] = field(default_factory=list)

    @property
    def output(self) -> np.ndarray:
        """What would be returned now, in an array of its own."""
        return self.y.copy()

    def kept(self) -> dict:
        """The fields as they are now, whatever the next step changes in them."""
        return copied(self)

    def decide(self, sentence: str) -> None:
        """Keep what was decided and why, once, and log it."""
        if sentence not in self.decisions[-1:]:
            self.decisions.append(sentence)
        log.info("%s", sentence)


class Ending(NamedTuple):
    """How a run ended; `error` is what a level raised."""

    status: str
    message: str
    error: Exception | None = None


class Run:
    """One run: its method only makes steps, and this records, keeps and tells how they ended."""

    def __init__(
        self, bill: Bill, state: State, loss=None, callback=None, steps=0.0, scale=None
    ):
        self.bill = bill
        self.state = state
        self.loss = loss
        self.callback = callback
        self.start = begins(state.y)
        self.start.flags.writeable = False
        self.begun = time.monotonic()
        self.every = max(1, math.ceil(steps / RECORDS))
        self.reach = FAR * (scale or 1 + float(np.linalg.norm(state.y)))
        self.rows: list = []  # (step, price of the course, loss of the output)
        self.ending: Ending | None = None
        self.far = False  # whether the run diverged: then the start is handed over
        # the iterate whose loss was recorded last
        self.recorded: np.ndarray | None = None
        # whether a run was interrupted where no loss was recorded
        self.unknown = False
        self.file: Checkpoint | None = None
        self.resumed = False

    def keep_in(self, file: Checkpoint) -> None:
        """Keep the state in that file, and go on from what it holds, if there is one."""
        self.file = file
        kept = file.read()
        if kept:
            self.state = type(self.state)(**kept["state"])
            self.rows = kept["rows"]
            if self.rows and self.rows[-1][0] == self.state.step:
                self.recorded = self.state.y
            self.bill.resume(kept["bill"])
            self.resumed = True
            log.info("resumed from %s at step %d", file.path, self.state.step)

    # --- the loop ---

    def go(
        self, steps: Iterator[None], progress: bool = False, total: int | None = None
    ) -> Result:
        """Make all steps, or as many as there can be, and tell what came of them."""
        state, bill = self.state, self.bill
        if self.file is not None:
            self.file.hold(state, bill)
        try:
            if self.is_the_same():
                with progress_bar(progress, total, state.step) as bar:
                    self.make(steps, bar)
                # before the last record, which a longer run does not have
                self.keep()
                self.record()
        # an interrupt, or the caller's callback or loss
        except BaseException as raised:
            self.interrupt(raised)
            raise
        status, message, _ = self.ending
        log.info(
            "%s after %d steps, price %.4g: %s", status, state.step, bill.spent, message
        )
        return self.result()

    def is_the_same(self) -> bool:
        """Whether a resumed run has the gradient of its file: one evaluation, paid for."""
        if not self.resumed:
            return True
        k, value = self.bill.first
        try:
            now = self.bill.repeat(k, self.start)
        except (Stop, LevelError) as ended:
            self.ending = self.cut_short(ended)
            self.keep()
            return False
        if not same(value, now, self.bill.h.repeats):
            other, self.file = self.file, None  # it is left as it is
            other.refuse(["gradient there"])
        return True

    def make(self, steps: Iterator[None], bar: tqdm | None) -> None:
        """Make the steps; `ending` is then how they ended."""
        state = self.state
        watched = bool(self.callback or self.file or bar is not None)
        if not self.rows:
            self.record()
        for _ in self.guarded(steps):
            state.step += 1
            if watched or not state.step % self.every:
                self.attend(bar)
                if self.ending is not None:
                    break
        if self.ending is None:
            self.ending = Ending(state.status, state.message)
        if self.is_far():
            self.diverge()

    def guarded(self, steps: Iterator[None]) -> Iterator[None]:
        """The method's steps. What a level raises in them ends the run; no other error is caught.

        What a callback or a loss raises is not raised here.
        """
        try:
            yield from steps
        except (Stop, LevelError) as ended:
            if isinstance(ended, LevelError) and self.bill.first is None:
                raise  # no gradient at the start: that is refused
            self.ending = self.cut_short(ended)

    def cut_short(self, ended: Stop | LevelError) -> Ending:
        """What is said of a run that a budget or a level ended."""
        state = self.state
        if isinstance(ended, Stop):
            said = [f"{ended.message} (step {state.step})", state.message]
            return Ending(ended.status, "; ".join(filter(None, said)))
        hint = OUTSIDE if of_the_user(ended) else ""
        what = f"step {state.step + 1}: {ended}{hint}; the output so far is kept"
        return Ending("failed", what, ended)

    def interrupt(self, raised: BaseException) -> None:
        """Keep what there is, and hand the result over on what was raised."""
        with warnings.catch_warnings():
            # also where warnings are errors, and one of the disk led here
            warnings.simplefilter("always")
            self.keep()
        # an iterate is a new array whenever it moves
        self.unknown = self.recorded is not self.state.y
        loss = math.nan if self.unknown else self.rows[-1][2]
        self.rows.append((self.state.step, self.bill.total, loss))
        what = f"{type(raised).__name__} at step {self.state.step}: the output so far is kept"
        self.ending = Ending("stopped", what)
        vars(raised)["result"] = self.result()  # also on one that is frozen

    # --- after a step ---

    def attend(self, bar: tqdm | None) -> None:
        """After a step that someone waits for: record, keep and tell."""
        state, bill = self.state, self.bill
        if not state.step % self.every:
            if self.is_far():
                self.diverge()
                return
            self.record()
        if self.file is not None:
            self.file.hold(state, bill)
            if time.monotonic() >= self.file.due:
                self.keep()
        if bar is not None:
            bar.update()
            bar.set_postfix_str(
                f"price {bill.spent:.3g}, estimate {state.estimate:.2g}", False
            )
        if (
            self.callback is not None and self.asks_to_stop()
        ):  # last: that leaves a whole step
            said = [f"the callback stopped the run (step {state.step})", state.message]
            self.ending = Ending("stopped", "; ".join(filter(None, said)))

    def asks_to_stop(self) -> bool:
        """Whether the callback, which sees the step, ends the run."""
        state, bill = self.state, self.bill
        seen = Progress(
            step=state.step,
            y=state.y.copy(),
            output=state.output,
            cost=bill.spent,
            cost_by_level=bill.paid["cost_by_level"],
            loss=self.rows[-1][2],
        )
        try:
            return bool(self.callback(seen))
        except StopIteration:
            return True

    def is_far(self) -> bool:
        """Whether the iterate left every region."""
        moved = self.state.y - self.start
        return not math.sqrt(np.vdot(moved, moved)) <= self.reach

    def diverge(self) -> None:
        """End the run at its start; what a level raised on the way stays told."""
        self.far = True
        failed = self.ending is not None and of_the_user(self.ending.error)
        if failed:
            said = f"{self.ending.message}; {DIVERGED}"
            self.ending = self.ending._replace(message=said)
        else:
            self.ending = Ending("diverged", DIVERGED)

    def record(self) -> None:
        """The loss of the output now, unless that row is there."""
        now = (self.state.step, self.bill.total)
        if self.rows and tuple(self.rows[-1][:2]) == now:
            return
        loss = math.nan
        if self.loss is not None:
            loss = number(self.loss(self.state.output))
        self.rows.append((*now, loss))
        self.recorded = self.state.y

    def keep(self) -> None:
        """Write the file, if there is one and a gradient to know it by."""
        if self.file is not None and self.bill.first is not None:
            self.file.write(self.bill, self.rows)

    # --- the end ---

    def believes(self, above: float) -> bool:
        """Whether a promise stands, now that y is the start and the loss reached so far above it.

        What is proved holds for the mean of many runs, and the start is better than this one.
        """
        if self.state.promise == "proved":
            return math.isfinite(above)
        return above <= self.state.estimate

    def result(self) -> Result:
        """What is handed back: the start where a run diverged, or is known to have ended worse."""
        state = self.state
        status, message, error = self.ending
        y, promise, estimate = state.output, state.promise, state.estimate
        before, after = self.rows[0][2], self.rows[-1][2]
        known = math.isfinite(before) and not self.unknown
        if self.far:
            y, promise, after = self.start.copy(), "none", before
        elif known and not after <= before:
            y = self.start.copy()
            if math.isnan(after):
                message += "; the loss there is no number, and y is the start"
            else:
                worse = f"the loss there, {after:.3g}, is above {before:.3g} at the start"
                message += f"; {worse}, which is y"
            if promise != "none" and not self.believes(after - before):
                promise = "none"
                status = "missed" if status == "done" else status
            estimate, after = math.nan, before
        return Result(
            y=y,
            **self.bill.paid,
            status=status,
            message=message,
            error=error,
            steps=state.step,
            promise=promise,
            estimate=estimate,
            fun=after,
            seconds=time.monotonic() - self.begun,
            decisions=tuple(state.decisions),
            trace=Trace(*map(np.array, zip(*self.rows, strict=True))),
        )


def number(loss) -> float:
    """What a loss returned, as a float; nan where it has no value."""
    try:
        read = np.asarray(loss)
        if read.dtype.kind in "fiubO":  # and no text, no complex number
            return float(read.item())
    except (TypeError, ValueError):
        pass
    raise TypeError(
        f"loss(y) must return a number; it returned {shown(loss)}: return a float"
    )


def of_the_user(error: Exception | None) -> bool:
    """Whether an exception of the user's own is behind what a level raised."""
    return (
        error is not None
        and error.__cause__ is not None
        and not isinstance(error, OutOfDomain)
    )


def progress_bar(shown: bool, total: int | None, made: int):
    """A bar, or nothing at all: bars share a lock between processes, which one may die with."""
    if not shown:
        return nullcontext()
    return tqdm(total=total, initial=made, unit="step")


def refuse(h: Hierarchy, **functions: Callable | None) -> None:
    """The sentences for arguments that can't be what was meant; nothing was evaluated yet."""
    ladder(h)
    for name, given in functions.items():
        if given is not None:
            argument = "progress" if name == "callback" else "y"
            function(f"{name}({argument})", given)
