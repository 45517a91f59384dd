"""One run, whatever its method: recorded, watched, and its state kept on disk.

A method only makes steps. A file is data and no code, whole or not at all: numpy's .npz with one
JSON text and the arrays that it names, written beside its place, flushed and renamed, so that a
process killed at any moment leaves the file before or the file after.
"""

import hashlib
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

FORMAT = "mlgd checkpoint 3"
EVERY = 1.0  # seconds between two files,
SHARE = 50  # or this many times what the last one took to write
SAME = 1e-6  # relative; float32 on other hardware is the same problem
FAR = 1e8  # a run this many d0 from its start (1 + |y0| where d0 is not known) has diverged
ROWS = 200  # records of a planned run
LEFT = (
    "the iterate left every region and the start is returned: check that beta (the rates of a flow) "
    "is not too small, and that the levels approximate one gradient"
)


class Checkpoint:
    """The file of one run, recognized by a fingerprint of its beginning."""

    def __init__(self, path: str | os.PathLike):
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"checkpoint must be the path of a file; got {path!r}")
        self.path, self.due = Path(path), 0.0
        if self.path.is_dir():
            raise ValueError(
                f"checkpoint must be the path of a file; {self.path} is a folder: add a name to it"
            )
        if not self.path.parent.is_dir():
            raise ValueError(
                f"checkpoint can't be written: there is no folder {self.path.parent}; make it first"
            )
        self.content = load(self.path) if self.path.exists() else {}

    def claim(self, fingerprint: dict) -> None:
        """Refuse the file of another run."""
        there = self.content.get("fingerprint", fingerprint)
        other = [name for name, value in fingerprint.items() if not _same(there[name], value)]
        if other:
            raise ValueError(
                f"the checkpoint {self.path} belongs to another run: it has another "
                f"{', another '.join(other)}; give this run a file of its own, or delete that one"
            )
        self.fingerprint = fingerprint

    def write(self, content: dict) -> None:
        """Write the file; a disk that refuses is a warning and ends no run."""
        begin = time.monotonic()
        try:
            save(self.path, {"fingerprint": self.fingerprint, **content})
        except OSError as error:
            warnings.warn(f"the checkpoint {self.path} was not written: {error}", stacklevel=2)
        now = time.monotonic()
        self.due = now + max(EVERY, SHARE * (now - begin))


def _same(there, value) -> bool:
    """Whether one entry of two fingerprints agrees; what is not given again, a seed, does."""
    if not isinstance(value, np.ndarray):
        return value is None or there == value
    close = there.shape == value.shape
    return close and bool(np.linalg.norm(there - value) <= SAME * np.linalg.norm(value))


def save(path: Path, content: dict) -> None:
    """Write a tree of numbers, texts, lists, arrays and dicts with texts as keys, atomically."""
    arrays: list[np.ndarray] = []

    def pack(value):
        if isinstance(value, np.ndarray):
            arrays.append(value)
            return {"array": len(arrays) - 1}
        return value.item()  # of numpy's own numbers

    text = json.dumps({"format": FORMAT, "content": content}, default=pack).encode()
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        np.savez(file, *arrays, text=np.frombuffer(text, np.uint8))
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def load(path: Path) -> dict:
    """Read such a tree; no code in it is ever run, tuples come back as lists, arrays read-only."""
    try:
        with np.load(path, allow_pickle=False) as file:
            text = file["text"].tobytes()
            arrays = [file[f"arr_{i}"] for i in range(len(file.files) - 1)]
        for array in arrays:
            array.flags.writeable = False
        tree = json.loads(
            text, object_hook=lambda d: arrays[d["array"]] if d.keys() == {"array"} else d
        )
    except PermissionError:
        raise
    except Exception:  # a damaged archive raises whatever its first bad byte leads to
        raise ValueError(
            f"the checkpoint {path} is damaged or not one of mlgd's: delete it to start anew"
        ) from None
    if tree.get("format") != FORMAT:
        raise ValueError(
            f"the checkpoint {path} has the format {tree.get('format')!r}; this version reads "
            f"{FORMAT!r}: delete it to start anew"
        )
    return tree["content"]


def digest(text: str) -> str:
    """A short name for a long text."""
    return hashlib.sha256(text.encode()).hexdigest()


# --- the run ---

# what a callback sees after a step; `loss` is the last one recorded
Progress = namedtuple("Progress", "step y output cost cost_by_level loss")


class Run:
    """One run, whatever its method: it records, watches, keeps files and tells how it ended."""

    def __init__(
        self,
        bill: Bill,
        state: State,
        loss=None,
        callback=None,
        every=0.0,
        scale: float | None = None,
    ):
        self.bill, self.state, self.loss, self.callback = bill, state, loss, callback
        self.start, self.begun = state.y, time.monotonic()
        self.every = max(1, math.ceil(every / ROWS))  # steps between two records
        self.reach = FAR * (scale or 1 + float(np.linalg.norm(state.y)))  # farther is divergence
        self.rows: list = []  # (step, price, loss of the output)
        self.checkpoint: Checkpoint | None = None

    def resume(self, checkpoint: Checkpoint, fingerprint: dict) -> None:
        """Stand where the file says, if there is one."""
        checkpoint.claim(fingerprint)
        self.checkpoint, kept = checkpoint, checkpoint.content
        if kept:
            self.state, self.rows = type(self.state)(**kept["state"]), kept["rows"]
            self.bill.content = kept["bill"]
            if not self.state.step:
                self.state.y = self.start  # the evaluation made there is of use
            log.info("resumed from %s at step %d", checkpoint.path, self.state.step)

    def keep(self) -> None:
        """Write the file, after whole steps only."""
        if self.checkpoint is not None:
            content = {"state": vars(self.state), "bill": self.bill.content, "rows": self.rows}
            self.checkpoint.write(content)

    def go(self, steps: Iterator[None], progress: bool = False, total: int | None = None) -> Result:
        """Make all steps, or as many as there can be."""
        state, error = self.state, None
        watched = bool(self.callback or self.checkpoint or progress)
        bar = tqdm(total=total, initial=state.step, unit="step", disable=not progress)
        try:
            if not self.rows:
                self.record()
                self.keep()
            for _ in steps:
                state.step += 1
                if watched or not state.step % self.every:
                    self.attend(bar)
            self.keep()  # before the last record, which a longer run does not have
            status, message = state.status, state.message
        except Stop as stop:
            said = filter(None, (f"{stop.message} (step {state.step})", state.message))
            status, message = stop.status, "; ".join(said)
        except LevelError as failure:
            status, error = "failed", failure
            message = f"step {state.step + 1}: {failure}; the output so far is kept"
        except BaseException as raised:  # an interrupt, or the user's own callback or loss
            mine = isinstance(raised, KeyboardInterrupt)
            what = "interrupted" if mine else f"{type(raised).__name__} was raised"
            self.record(judged=mine)
            message = f"{what} at step {state.step}: the output so far is kept"
            raised.result = self.result("stopped", message)
            raise
        finally:
            bar.close()
        if self.far:
            status, message = "diverged", LEFT
        if self.rows[-1][0] != state.step:
            self.record()
        log.info("%s after %d steps, price %.4g: %s", status, state.step, self.bill.total, message)
        return self.result(status, message, error)

    def attend(self, bar: tqdm) -> None:
        """After a step that someone waits for: record, keep and tell."""
        state, bill = self.state, self.bill
        if not state.step % self.every:
            if self.far:
                raise Stop("diverged", "")
            self.record()
        if self.checkpoint is not None and time.monotonic() >= self.checkpoint.due:
            self.keep()
        if not bar.disable:
            bar.set_postfix_str(f"price {bill.total:.3g}", refresh=False)
            bar.update()
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

    def record(self, judged: bool = True) -> None:
        value = math.nan
        if judged and self.loss is not None:
            value = float(self.loss(self.state.output))
        self.rows.append((self.state.step, self.bill.total, value))

    def result(self, status: str, message: str, error: Exception | None = None) -> Result:
        state = self.state
        return Result(
            y=self.start.copy() if status == "diverged" else state.output,
            **self.bill.paid,
            **{"steps": state.step, "status": status, "message": message, "error": error},
            promise="none" if status == "diverged" else state.promise,
            estimate=state.estimate,
            decisions=tuple(state.decisions),
            trace=Trace(*map(np.array, zip(*self.rows, strict=True))),
            seconds=time.monotonic() - self.begun,
        )
