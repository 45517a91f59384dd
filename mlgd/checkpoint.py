"""A run's state on disk: data and no code, whole or not at all.

A file is numpy's .npz with one JSON text and the arrays that it names, written beside its place,
flushed and renamed, so that a process killed at any moment leaves the file before or the file
after. What is kept is always a whole step: a step that something ended is made again.
"""

import json
import os
import sys
import time
import warnings
from collections.abc import Iterable
from dataclasses import is_dataclass
from pathlib import Path

import numpy as np

from .result import Bill

FORMAT = "mlgd checkpoint 8"
EVERY = 1.0  # seconds between two files,
SPACING = 50  # or this many times what the last one took to write
SAME_START = 1e-6  # relative: a start that was computed elsewhere is the same start


class Checkpoint:
    """The file of one run: what began it, the last whole step, and what was paid since."""

    def __init__(self, path: str | os.PathLike, beginning: dict):
        self.path = path
        self.beginning = beginning
        self.due = 0.0  # when the next file may be written
        self.held: dict = {}  # the state at the last whole step

    def read(self) -> dict:
        """What the file holds, nothing if there is none; that of another beginning is refused."""
        kept = load(self.path)
        if kept:
            there = kept["beginning"]
            other = []
            for name, value in self.beginning.items():
                # what a run of another kind lacks is other too
                if name not in there or not same(there[name], value, SAME_START):
                    other.append(name)
            self.refuse(other)
            # what is not given again, a seed, is still that of the file
            given = {k: v for k, v in self.beginning.items() if v is not None}
            self.beginning = there | given
        return kept

    def refuse(self, other: Iterable[str]) -> None:
        """Refuse the file of a run that has another start, another plan, ..."""
        if named := ", another ".join(other):
            raise ValueError(
                f"the checkpoint {self.path} belongs to another run: it has another {named}; give "
                "this run a file of its own, or delete that one"
            )

    def hold(self, state, bill: Bill) -> None:
        """Remember a whole step: what ends the next one finds it half made."""
        self.held = state.kept()
        bill.settle()

    def write(self, bill: Bill, rows: list) -> None:
        """Write the last whole step, and what was paid in all; a disk that refuses is a warning."""
        began = time.monotonic()
        content = {
            "beginning": self.beginning,
            "state": self.held,
            "bill": bill.kept(),
            "rows": rows,
        }
        try:
            save(self.path, content)
        except OSError as error:
            what = f"the checkpoint {self.path} was not written: {error}"
            warnings.warn(what, stacklevel=levels_to_the_caller())
        now = time.monotonic()
        self.due = now + max(EVERY, SPACING * (now - began))


def copied(tree):
    """A tree of lists and dicts of its own; its arrays are never changed in place."""
    if is_dataclass(tree):
        return copied(vars(tree))
    if isinstance(tree, dict):
        return {name: copied(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [copied(value) for value in tree]
    return tree


def levels_to_the_caller() -> int:
    """How many frames of this package lie above the line of the user's that led here."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("mlgd."):
        level, frame = level + 1, frame.f_back
    return level


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
    if here is None or not could_be_a_file(here):
        why = "must be the path of a file, in a folder that is there"
        raise ValueError(f"checkpoint {why}; got {path!r}")
    if not here.exists():
        return {}
    try:
        return _content(here)
    except PermissionError:
        raise
    except Exception:  # a damaged archive raises whatever its first bad byte leads to
        raise ValueError(
            f"the checkpoint {path} is damaged, or not one of this version: delete it to start anew"
        ) from None


def could_be_a_file(path: Path) -> bool:
    """Whether a path is that of a file, or free for one; a pipe or a device would never end."""
    try:
        os.stat(path.parent / f"{path.name}.part")  # its name too may be too long
    except (FileNotFoundError, PermissionError):
        pass
    except (OSError, ValueError):  # ValueError: a zero byte
        return False
    return path.parent.is_dir() and (path.is_file() or not path.exists())


def _content(path: Path) -> dict:
    """The tree in an intact file of this version."""
    # opened here: numpy leaves the handle of a damaged archive open
    with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
        text = file["text"].tobytes()
        arrays = [file[f"arr_{i}"] for i in range(len(file.files) - 1)]

    def unpack(entry: dict):
        return arrays[entry["array"]] if entry.keys() == {"array"} else entry

    tree = json.loads(text, object_hook=unpack)
    if tree["format"] != FORMAT:
        raise ValueError(tree["format"])
    return tree["content"]


def same(there, value, within: float) -> bool:
    """Whether a file's entry is the one of this run; what is not given again, a seed, agrees."""
    if not isinstance(value, np.ndarray):
        return value is None or there == value
    close = there.shape == value.shape
    return close and bool(np.linalg.norm(there - value) <= within * np.linalg.norm(value))
