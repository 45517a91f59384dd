"""One run, whatever its method: recorded, watched, and its state kept on disk.

A file is data and no code, whole or not at all: numpy's .npz with one JSON text and the arrays that
it names, written beside its place, flushed and renamed, so that a process killed at any moment
leaves the file before or the file after.
"""

import json
import math
import os
import time
import warnings
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from .bill import Bill, Result, State, Stop, Trace, log
from .hierarchy import LevelError

FORMAT = "mlgd checkpoint 6"
EVERY = 1.0  # seconds between two files,
SPACING = 50  # or this many times what the last one took to write
SAME = 1e-6  # relative; float32 on other hardware is the same problem
FAR = 1e8  # a run this many d0 from its start (1 + |y0| where d0 is not known) has diverged
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
        self.path, self.beginning, self.due = None, {}, 0.0  # of the file, if there is one

    def resume(self, path: str | os.PathLike, beginning: dict) -> None:
        """Stand where the file says, if there is one; that of another beginning is refused."""
        self.path, self.beginning, kept = path, beginning, load(path)
        if not kept:
            return
        there, first = kept["beginning"], kept["bill"]["first"]
        other = [name for name, value in beginning.items() if not same(there[name], value)]
        if first and not other and not same(first[1], self.bill.h.value(first[0], self.start)):
            other = ["gradient there"]
        if other:
            raise ValueError(
                f"the checkpoint {path} belongs to another run: it has another "
                f"{', another '.join(other)}; give this run a file of its own, or delete that one"
            )
        self.state, self.rows = type(self.state)(**kept["state"]), kept["rows"]
        vars(self.bill).update(kept["bill"])
        for what, counts in self.bill.counts.items():  # the levels came back as texts
            self.bill.counts[what] = dict(zip(self.bill.price, counts.values(), strict=True))
        log.info("resumed from %s at step %d", path, self.state.step)

    def keep(self) -> None:
        """Write the file, after whole steps only; a disk that refuses is a warning."""
        if self.path is None:
            return
        began = time.monotonic()
        paid = {name: getattr(self.bill, name) for name in ("total", "counts", "broken", "first")}
        content = {"state": vars(self.state), "bill": paid, "rows": self.rows}
        try:
            save(self.path, {"beginning": self.beginning, **content})
        except OSError as error:
            warnings.warn(f"the checkpoint {self.path} was not written: {error}", stacklevel=2)
        now = time.monotonic()
        self.due = now + max(EVERY, SPACING * (now - began))

    def go(self, steps: Iterator[None], progress: bool = False, total: int | None = None) -> Result:
        """Make all steps, or as many as there can be, and tell what came of them."""
        state, options = self.state, {"total": total, "initial": self.state.step, "unit": "step"}
        with tqdm(steps, disable=not progress, **options) as bar:
            try:
                status, message, error = self.made(bar)
                self.record()
            except BaseException as raised:  # an interrupt, or the user's own callback or loss
                self.rows.append((state.step, self.bill.total, math.nan))
                what = f"{type(raised).__name__} at step {state.step}: the output so far is kept"
                raised.result = self.result("stopped", what)
                raise
        log.info("%s after %d steps, price %.4g: %s", status, state.step, self.bill.total, message)
        return self.result(status, message, error)

    def made(self, bar: tqdm) -> tuple[str, str, Exception | None]:
        """Make the steps; how they ended: a status, a message, and what a level raised."""
        state, watched = self.state, bool(self.callback or self.path or not bar.disable)
        try:
            if not self.rows:
                self.record()
            for _ in bar:
                state.step += 1
                if watched or not state.step % self.every:
                    self.attend(bar)
            self.keep()  # before the last record, which a longer run does not have
            end = state.status, state.message, None
        except Stop as stop:
            said = filter(None, (f"{stop.message} (step {state.step})", state.message))
            end = stop.status, "; ".join(said), None
        except LevelError as error:
            if self.bill.first is None:  # no gradient at the start: that is refused
                raise
            end = "failed", f"step {state.step + 1}: {error}; the output so far is kept", error
        return ("diverged", DIVERGED, None) if self.far else end

    def attend(self, bar: tqdm) -> None:
        """After a step that someone waits for: record, keep and tell."""
        state, bill = self.state, self.bill
        if not state.step % self.every:
            if self.far:
                raise Stop("diverged", "")
            self.record()
        if self.path and time.monotonic() >= self.due:
            self.keep()
        if not bar.disable:
            bar.set_postfix_str(f"price {bill.total:.3g}, estimate {state.estimate:.2g}", False)
        if self.callback is not None:  # last: a callback that stops the run leaves a whole step
            paid = bill.total, bill.paid["cost_by_level"]
            seen = Progress(state.step, state.y.copy(), state.output, *paid, self.rows[-1][2])
            try:
                stop = self.callback(seen)
            except StopIteration:
                stop = True
            if stop:
                self.keep()
                raise Stop("stopped", "the callback stopped the run")

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

    def result(self, status: str, message: str, error: Exception | None = None) -> Result:
        """What is handed back; a run that diverged ends where it started."""
        state, lost = self.state, status == "diverged"
        return Result(
            y=self.start.copy() if lost else state.output,
            **self.bill.paid,
            **{"steps": state.step, "status": status, "message": message, "error": error},
            promise="none" if lost else state.promise,
            estimate=state.estimate,
            seconds=time.monotonic() - self.begun,
            decisions=tuple(state.decisions),
            trace=Trace(*map(np.array, zip(*self.rows, strict=True))),
        )


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


def same(there, value) -> bool:
    """Whether a file's entry is the one of this run; what is not given again, a seed, agrees."""
    if not isinstance(value, np.ndarray):
        return value is None or there == value
    close = there.shape == value.shape
    return close and bool(np.linalg.norm(there - value) <= SAME * np.linalg.norm(value))
