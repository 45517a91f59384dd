"""Where a long run stands, on disk: data and no code, whole or not at all.

A file is numpy's .npz: one JSON text, the arrays that it names, and a checksum over both. It is written beside its
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

FORMAT = "mlgd checkpoint 1"
EVERY = 1.0  # seconds between two files,
SHARE = 50  # or this many times what the last one took to write
NEAR = 1e-6  # the coarse gradient at y0 may differ by this share: float32 on other hardware is the same problem


class Keeper:
    """Writes the state of one run to a path, not too often."""

    def __init__(self, path):
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"checkpoint must be the path of a file; got {path!r}")
        self.path = Path(path)
        if self.path.is_dir():
            raise ValueError(f"checkpoint must be the path of a file; {self.path} is a folder: add a name to it")
        if not self.path.parent.is_dir():
            raise ValueError(f"checkpoint can't be written: there is no folder {self.path.parent}; make it first")
        self.due = 0.0

    def compare(self, content: dict, fingerprint: dict) -> None:
        """Refuse a file that belongs to another run; a seed that is not given again is taken from the file."""
        other = []
        for name, value in fingerprint.items():
            there = content["fingerprint"][name]
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
        begin = time.monotonic()
        problem = ""
        try:
            save(self.path, content)
        except OSError as error:
            problem = f"the checkpoint {self.path} could not be written ({error})"
            log.warning("%s", problem)
        now = time.monotonic()
        self.due = now + max(EVERY, SHARE * (now - begin))
        return problem


def save(path: Path, content: dict) -> None:
    """Write a tree of numbers, texts, lists, dicts, namespaces and arrays to a file, atomically."""
    arrays: list[np.ndarray] = []
    text = json.dumps({"format": FORMAT, "content": _pack(content, arrays)}).encode()
    named = {f"array{i}": a for i, a in enumerate(arrays)}
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        checksum = np.frombuffer(_checksum(text, arrays), np.uint8)
        np.savez(file, text=np.frombuffer(text, np.uint8), checksum=checksum, **named)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    if os.name == "posix":  # the name is on the disk once its folder is
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def load(path: Path) -> dict:
    """Read such a file; no code in it is ever run."""
    try:
        with np.load(path, allow_pickle=False) as file:
            text = file["text"].tobytes()
            arrays = [file[f"array{i}"] for i in range(len(file.files) - 2)]
            checksum = file["checksum"].tobytes()
        whole = checksum == _checksum(text, arrays)
        tree = json.loads(text) if whole else {}
    except OSError as error:
        if isinstance(error, PermissionError):
            raise
        whole = False
    except Exception:  # a damaged archive raises whatever its first bad byte leads to
        whole = False
    if not whole:
        raise ValueError(f"the checkpoint {path} is damaged or not one of mlgd's: delete it to start anew")
    if tree.get("format") != FORMAT:
        raise ValueError(f"the checkpoint {path} has the format {tree.get('format')!r}; this version reads {FORMAT!r}")
    return _unpack(tree["content"], arrays)


def digest(content: str) -> str:
    """A short name for what a text says."""
    return hashlib.sha256(content.encode()).hexdigest()


def _checksum(text: bytes, arrays: list[np.ndarray]) -> bytes:
    digest = hashlib.sha256(text)
    for a in arrays:
        digest.update(f"{a.dtype.str}{a.shape}".encode())
        digest.update(np.ascontiguousarray(a).data)
    return digest.digest()


def _pack(value, arrays: list[np.ndarray]):
    """A tree that JSON can write: arrays by number, dicts as pairs (their keys may be integers)."""
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError("an array of objects can't be kept in a checkpoint")
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, SimpleNamespace):
        return {"names": [[name, _pack(v, arrays)] for name, v in vars(value).items()]}
    if isinstance(value, dict):
        return {"pairs": [[_pack(k, arrays), _pack(v, arrays)] for k, v in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_pack(v, arrays) for v in value]}
    if isinstance(value, list):
        return [_pack(v, arrays) for v in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a {type(value).__name__} can't be kept in a checkpoint")


def _unpack(tree, arrays: list[np.ndarray]):
    if isinstance(tree, list):
        return [_unpack(v, arrays) for v in tree]
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        return arrays[tree["array"]]
    if "tuple" in tree:
        return tuple(_unpack(v, arrays) for v in tree["tuple"])
    if "names" in tree:
        return SimpleNamespace(**{name: _unpack(v, arrays) for name, v in tree["names"]})
    return {_unpack(k, arrays): _unpack(v, arrays) for k, v in tree["pairs"]}
