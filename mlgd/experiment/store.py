"""Results kept in a folder as they come: a run that is killed loses at most what was in flight.

A record is written whole or not at all, carries its digest, and sits under a key of what it was made by (parameters and
code), so that results of other parameters or of other code are never mixed in.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType

DIGEST = 64  # hexadecimal digits at the head of a record


def fingerprint(modules: Iterable[ModuleType]) -> str:
    """A short digest of the source of the code that computes a result."""
    return hashlib.sha256(b"".join(Path(m.__file__).read_bytes() for m in modules)).hexdigest()[:16]


class Store:
    """Named records, as bytes."""

    def __init__(self, folder: str | os.PathLike, made_by: dict):
        key = hashlib.sha256(json.dumps(made_by, sort_keys=True).encode()).hexdigest()[:12]
        self.folder = Path(folder) / key
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "made_by.json").write_text(
            json.dumps(made_by, indent=1, sort_keys=True) + "\n"
        )

    def save(self, name: str, body: bytes) -> None:
        partial = self.folder / f"{name}.{os.getpid()}.partial"
        with open(partial, "wb") as file:
            file.write(hashlib.sha256(body).hexdigest().encode() + body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, self.folder / name)

    def load(self, name: str) -> bytes | None:
        """The record; None if there is none, or if it is damaged, which a warning then says."""
        path = self.folder / name
        if not path.exists():
            return None
        content = path.read_bytes()
        if hashlib.sha256(content[DIGEST:]).hexdigest().encode() != content[:DIGEST]:
            warnings.warn(
                f"{path.name} is damaged: its digest does not match; it is computed again",
                stacklevel=2,
            )
            return None
        return content[DIGEST:]


def write_signed(path: str | os.PathLike, command: str, protocol: int, result: object) -> None:
    """A small result as the book keeps it: with the command that makes it, its protocol's number and a checksum."""
    body = json.dumps(result, sort_keys=True)
    checksum = hashlib.sha256(body.encode()).hexdigest()
    record = {"command": command, "protocol": protocol, "checksum": checksum, "result": result}
    Path(path).write_text(json.dumps(record, sort_keys=True) + "\n")


def read_signed(path: str | os.PathLike) -> object:
    """A kept result; refused if its numbers are not those of its checksum."""
    record = json.loads(Path(path).read_text())
    body = json.dumps(record["result"], sort_keys=True)
    if hashlib.sha256(body.encode()).hexdigest() != record["checksum"]:
        raise ValueError(
            f"{path}: the checksum is not that of the numbers; {record['command']} makes them again"
        )
    return record["result"]


@contextmanager
def workers(count: int) -> Iterator[Executor]:
    """Processes with one BLAS thread each (the variables must be set before a worker imports numpy)."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ[name] for name in names if name in os.environ}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
            yield pool
    finally:
        for name in names:
            os.environ.pop(name)
        os.environ.update(before)
