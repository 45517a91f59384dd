"""Where a long run stands, on disk: data and no code, whole or not at all.

A file is numpy's .npz: one JSON text and the arrays that it names, each with the checksum of a zip file. It is written beside its
place, flushed to the disk and renamed, so that a process killed at any moment leaves the file before or the file after.
"""

import hashlib
import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from .results import log

FORMAT = "mlgd checkpoint 2"
EVERY = 1.0  # seconds between two files,
SHARE = 50  # or this many times what the last one took to write
NEAR = 1e-6  # the coarse gradient at y0 may differ by this share: float32 on other hardware is the same problem


class Keeper:
    """The file of one run: what it holds already, and what is written to it, not too often."""

    def __init__(self, path):
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
        self.content = load(self.path) if self.path.exists() else None

    def compare(self, fingerprint: dict) -> None:
        """Refuse a file that belongs to another run; a seed that is not given again is taken from the file."""
        other = []
        for name, value in fingerprint.items():
            there = self.content["fingerprint"][name]
            if isinstance(value, np.ndarray):
                same = there.shape == value.shape
                same = same and np.linalg.norm(there - value) <= NEAR * np.linalg.norm(value)
            else:
                same = there == value or (name == "seed" and value is None)
            other += [] if same else [name]
        if other:
            raise ValueError(
                f"the checkpoint {self.path} belongs to another run: it has another {', another '.join(other)}; "
                "give this run a file of its own, or delete that one"
            )

    def write(self, content: dict) -> str:
        """Write a file now; a disk that refuses does not end a run, and the sentence returned says so."""
        begin, problem = time.monotonic(), ""
        try:
            save(self.path, content)
        except OSError as error:
            problem = f"the checkpoint {self.path} could not be written ({error})"
            log.warning("%s", problem)
        now = time.monotonic()
        self.due = now + max(EVERY, SHARE * (now - begin))
        return problem


def save(path: Path, content: dict) -> None:
    """Write a tree of numbers, texts, lists, namespaces, arrays and dicts with texts as keys to a file, atomically."""
    arrays: list[np.ndarray] = []

    def pack(value):
        if isinstance(value, SimpleNamespace):
            return {"names": vars(value)}
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
    """Read such a file; no code in it is ever run, and tuples come back as lists."""
    try:
        with np.load(path, allow_pickle=False) as file:
            text, arrays = (
                file["text"].tobytes(),
                [file[f"arr_{i}"] for i in range(len(file.files) - 1)],
            )

        def unpack(tree: dict):
            if tree.keys() == {"array"}:
                return arrays[tree["array"]]
            return SimpleNamespace(**tree["names"]) if tree.keys() == {"names"} else tree

        tree = json.loads(text, object_hook=unpack)
    except PermissionError:
        raise
    except Exception:  # a damaged archive raises whatever its first bad byte leads to
        raise ValueError(
            f"the checkpoint {path} is damaged or not one of mlgd's: delete it to start anew"
        ) from None
    if tree.get("format") != FORMAT:
        raise ValueError(
            f"the checkpoint {path} has the format {tree.get('format')!r}; this version reads {FORMAT!r}"
        )
    return tree["content"]


def digest(*content: bytes) -> str:
    """A short name for what was said."""
    return hashlib.sha256(b"".join(content)).hexdigest()
