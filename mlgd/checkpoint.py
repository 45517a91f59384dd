"""One run, whatever its method: recorded, watched, and its state kept on disk.

A file is data and no code, whole or not at all: numpy's .npz with one JSON text and the arrays that
it names, written beside its place, flushed and renamed, so that a process killed at any moment
leaves the file before or the file after.
"""

import json
import math
import os
import sys
import time
import warnings
from collections import namedtuple
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from .bill import Bill, Result, State, Stop, Trace, log
from .hierarchy import LevelError, OutOfDomain

FORMAT = "mlgd checkpoint 7"
EVERY = 1.0  # seconds between two files,
SPACING = 50  # or this many times what the last one took to write
SAME = 1e-6  # relative: a start that was computed elsewhere is the same start
FAR = 1e8  # a run this many d0 from its start (1 + |y0| where d0 is not known) has diverged
OUTSIDE = " (where a point may be outside of the problem's domain, raise mlgd.OutOfDomain)"
ROWS = 200  # records of a planned run
DIVERGED = "the iterate left every region, and y is the start: is beta, or a rate, too small?"

# what a callback sees after a step; `loss` is the last one recorded
Progress = namedtuple("Progress", "step y output cost cost_by_level loss")


class Run:
    """One run: its method only makes steps, and this records, keeps and tells how they ended."""

    def __init__(self, bill: Bill, state: State, loss=None, callback=None, steps=0.0, scale=None):
        self.bill, self.state, self.loss, self.callback = bill, state, loss, callback
        self.start, self.start.flags.writeable = state.y, False
        self.begun, self.every = time.monotonic(), max(1, math.ceil(steps / ROWS))  # records
        self.reach = FAR * (scale or 1 + float(np.linalg.norm(state.y)))  # farther is divergence
        self.rows: list = []  # (step, price, loss of the output)
        self.end: tuple | None = None  # status, message and what a level raised
        self.path, self.beginning, self.due = None, {}, 0.0  # of the file, if there is one
        self.whole, self.resumed = ({}, 0), False

    def resume(self, path: str | os.PathLike, beginning: dict) -> None:
        """Stand where the file says, if there is one; that of another beginning is refused."""
        self.path, self.beginning, kept = path, beginning, load(path)
        if not kept:
            return
        there = kept["beginning"]
        self.refuse(name for name, value in beginning.items() if not same(there[name], value))
        self.state, self.rows = type(self.state)(**kept["state"]), kept["rows"]
        bill = self.bill
        vars(bill).update(kept["bill"])
        for what, counts in bill.counts.items():  # the levels came back as texts
            bill.counts[what] = dict(zip(bill.price, counts.values(), strict=True))
        bill.lose(dict(zip(bill.price, kept["again"].values(), strict=True)))
        self.resumed = True
        log.info("resumed from %s at step %d", path, self.state.step)

    def compare(self) -> None:
        """Whether a resumed run has the gradient of the file's: one evaluation, paid for."""
        k, value = self.bill.first
        if not same(value, self.bill.repeat(k, self.start), self.bill.h.repeats):
            self.refuse(["gradient there"])

    def refuse(self, other: Iterable[str]) -> None:
        """Refuse a file whose beginning has other things."""
        if named := ", another ".join(other):
            raise ValueError(
                f"the checkpoint {self.path} belongs to another run: it has another {named}; give "
                "this run a file of its own, or delete that one"
            )

    def hold(self) -> None:
        """Remember a whole step, for the file: what ends the next one finds it half made."""
        bill = {name: getattr(self.bill, name) for name in ("total", "counts", "broken", "first")}
        self.whole = copied({"state": vars(self.state), "bill": bill}), len(self.rows)

    def keep(self) -> None:
        """Write the last whole step, and what was paid since; a disk that refuses is a warning."""
        if self.path is None or self.bill.first is None:
            return
        began = time.monotonic()
        content, rows = self.whole
        since = content["bill"]["counts"].values()
        again = dict(self.bill.again)
        for k in again:
            made = sum(counts[k] for counts in self.bill.counts.values())
            again[k] += made - sum(counts[k] for counts in since)
        content |= {"beginning": self.beginning, "rows": self.rows[:rows], "again": again}
        try:
            save(self.path, content)
        except OSError as error:
            what = f"the checkpoint {self.path} was not written: {error}"
            warnings.warn(what, stacklevel=outside())
        now = time.monotonic()
        self.due = now + max(EVERY, SPACING * (now - began))

    def go(self, steps: Iterator[None], progress: bool = False, total: int | None = None) -> Result:
        """Make all steps, or as many as there can be, and tell what came of them."""
        state = self.state
        self.hold()
        try:
            if self.resumed:
                self.compare()
        except (Stop, LevelError) as ended:
            self.end = self.cut(ended)
            self.keep()
            return self.result()
        with tqdm(total=total, initial=state.step, unit="step", disable=not progress) as bar:
            try:
                self.made(steps, bar)
                self.keep()  # before the last record, which a longer run does not have
                self.record()
            except BaseException as raised:  # an interrupt, or the user's own callback or loss
                self.keep()
                self.rows.append((state.step, self.bill.total, math.nan))
                what = f"{type(raised).__name__} at step {state.step}: the output so far is kept"
                self.end = "stopped", what, None
                raised.result = self.result()
                raise
        status, message, _ = self.end
        log.info("%s after %d steps, price %.4g: %s", status, state.step, self.bill.spent, message)
        return self.result()

    def made(self, steps: Iterator[None], bar: tqdm) -> None:
        """Make the steps; `end` is then how they ended."""
        state, watched = self.state, bool(self.callback or self.path or not bar.disable)
        if not self.rows:
            self.record()
        for _ in self.guarded(steps):
            state.step += 1
            if watched or not state.step % self.every:
                self.attend(bar)
                if self.end is not None:
                    break
        if self.end is None:
            self.end = state.status, state.message, None
        if self.far:
            self.end = "diverged", DIVERGED, None

    def guarded(self, steps: Iterator[None]) -> Iterator[None]:
        """The method's steps. What a level raises in them ends the run; no other error is caught.

        What a callback or a loss raises is not raised here.
        """
        try:
            yield from steps
        except (Stop, LevelError) as ended:
            if self.bill.first is None:  # no gradient at the start: that is refused
                raise
            self.end = self.cut(ended)

    def cut(self, ended: Stop | LevelError) -> tuple:
        """What is said of a run that a budget or a level ended."""
        state = self.state
        if isinstance(ended, Stop):
            said = f"{ended.message} (step {state.step})"
            return ended.status, "; ".join(filter(None, (said, state.message))), None
        raised_by_user = ended.__cause__ is not None and not isinstance(ended, OutOfDomain)
        hint = OUTSIDE if raised_by_user else ""
        what = f"step {state.step + 1}: {ended}{hint}; the output so far is kept"
        return "failed", what, ended

    def attend(self, bar: tqdm) -> None:
        """After a step that someone waits for: record, keep and tell."""
        state, bill = self.state, self.bill
        if not state.step % self.every:
            if self.far:
                self.end = "diverged", DIVERGED, None
                return
            self.record()
        if self.path is not None:
            self.hold()
            if time.monotonic() >= self.due:
                self.keep()
        if not bar.disable:
            bar.update()
            bar.set_postfix_str(f"price {bill.spent:.3g}, estimate {state.estimate:.2g}", False)
        if self.callback is not None:  # last: a callback that stops the run leaves a whole step
            paid = bill.spent, bill.paid["cost_by_level"]
            seen = Progress(state.step, state.y.copy(), state.output, *paid, self.rows[-1][2])
            try:
                stop = self.callback(seen)
            except StopIteration:
                stop = True
            if stop:
                said = f"the callback stopped the run (step {state.step})"
                self.end = "stopped", "; ".join(filter(None, (said, state.message))), None

    @property
    def far(self) -> bool:
        """Whether the iterate left every region."""
        moved = self.state.y - self.start
        return not math.sqrt(np.vdot(moved, moved)) <= self.reach

    def record(self) -> None:
        """The loss of the output now, unless that row is there."""
        if self.rows and tuple(self.rows[-1][:2]) == (self.state.step, self.bill.total):
            return
        loss = math.nan if self.loss is None else float(self.loss(self.state.output))
        self.rows.append((self.state.step, self.bill.total, loss))

    def result(self) -> Result:
        """What is handed back: the start where a run diverged, or is known to have ended worse."""
        status, message, error = self.end
        state = self.state
        y, promise, estimate = state.output, state.promise, state.estimate
        before, after = self.rows[0][2], self.rows[-1][2]
        if status == "diverged":
            y, promise, after = self.start.copy(), "none", before
        elif status != "stopped" and math.isfinite(before) and not after <= before:
            y = self.start.copy()
            worse = f"the loss there, {after:.3g}, is above {before:.3g} at the start"
            message += f"; {worse}, which is y"
            if promise == "estimate" and not after - before <= estimate:  # it was believed wrongly
                promise = "none"
                status = "missed" if status == "done" else status
            estimate, after = math.nan, before
        return Result(
            y=y,
            **self.bill.paid,
            **{"steps": state.step, "status": status, "message": message, "error": error},
            promise=promise,
            estimate=estimate,
            fun=after,
            seconds=time.monotonic() - self.begun,
            decisions=tuple(state.decisions),
            trace=Trace(*map(np.array, zip(*self.rows, strict=True))),
        )


def copied(tree):
    """A tree of lists and dicts of its own; its arrays are never changed in place."""
    if isinstance(tree, dict):
        return {name: copied(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [copied(value) for value in tree]
    return tree


def outside() -> int:
    """The stack level of the caller's own code, for a warning."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("mlgd."):
        level, frame = level + 1, frame.f_back
    return level


# --- files ---


def save(path: str | os.PathLike, content: dict) -> None:
    """Write a tree of numbers, texts, lists, arrays and dicts with texts as keys, atomically."""
    arrays: list[np.ndarray] = []

    def pack(value):  # an array, or one of numpy's own numbers
        arrays.append(value)
        return {"array": len(arrays) - 1}

    text = json.dumps({"format": FORMAT, "content": content}, default=pack).encode()
    part = f"{os.fspath(path)}.part"
    with open(part, "wb") as file:
        np.savez(file, *arrays, text=np.frombuffer(text, np.uint8))
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def load(path: str | os.PathLike) -> dict:
    """What a file holds, nothing where there is none yet; no code in it is ever run.

    Tuples come back as lists.
    """
    here = Path(path) if isinstance(path, str | os.PathLike) else None
    if here is None or here.is_dir() or not here.parent.is_dir():
        why = "must be the path of a file, in a folder that is there"
        raise ValueError(f"checkpoint {why}; got {path!r}")
    if not here.exists():
        return {}
    try:
        with np.load(here, allow_pickle=False) as file:
            text = file["text"].tobytes()
            arrays = [file[f"arr_{i}"] for i in range(len(file.files) - 1)]
        hook = lambda d: arrays[d["array"]] if d.keys() == {"array"} else d  # noqa: E731
        tree = json.loads(text, object_hook=hook)
        if tree["format"] != FORMAT:
            raise ValueError(tree["format"])
    except PermissionError:
        raise
    except Exception:  # a damaged archive raises whatever its first bad byte leads to
        raise ValueError(
            f"the checkpoint {path} is damaged, or not one of this version: delete it to start anew"
        ) from None
    return tree["content"]


def same(there, value, within: float = SAME) -> bool:
    """Whether a file's entry is the one of this run; what is not given again, a seed, agrees."""
    if not isinstance(value, np.ndarray):
        return value is None or there == value
    close = there.shape == value.shape
    return close and bool(np.linalg.norm(there - value) <= within * np.linalg.norm(value))
