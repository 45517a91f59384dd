"""What a run without a plan buys outside of its plans: billed, kept where it is needed again, and written down.

Everything such a run decides follows from what it bought and from its generator. So a file of the values bought, in
their order, is all that a resumption needs: it decides the same again without evaluating anything.
"""

import hashlib
import os
import time
from pathlib import Path

import numpy as np

from .checkpoints import Keeper, load
from .hierarchy import Hierarchy
from .purchases import Meter
from .results import Result, log

LARGEST = 2**28  # bytes of values that are written down; what is bought after that is bought again on resumption


class Journal:
    """The bill and the memory of one run without a plan; `rng` is moved to where the file began."""

    def __init__(self, h: Hierarchy, y0: np.ndarray, eps, max_cost, rng: np.random.Generator, seeded: bool, path):
        self.raw, self.rng, self.start = h, rng, y0.tobytes()
        self.meter = Meter(h, np.inf if max_cost is None else float(max_cost))
        first = h.levels[0]
        if self.meter.price[first] > self.meter.limit:
            raise ValueError(
                f"max_cost = {self.meter.limit:g} does not pay for one evaluation of level {first}, which costs "
                f"{self.meter.price[first]:g}: raise max_cost"
            )
        self.keeper = None if path is None else Keeper(path)
        self.opened = h.value(first, y0)  # refused at once if it is no gradient; billed when it is asked for
        self.kept: dict[bytes, dict[int, np.ndarray]] = {}  # values at points that are asked for again
        self.entries: list = []
        self.at = self.size = 0
        if self.keeper is not None:
            self.fingerprint = {
                "set of levels": list(h.levels),
                "list of prices": list(self.meter.price.values()),
                "eps": eps,
                "start": y0,
                "gradient there": self.opened,
                "seed": _digest(repr(rng.bit_generator.state).encode()) if seeded else None,
            }
            if self.keeper.path.exists():
                content = load(self.keeper.path)
                if "entries" not in content:
                    raise ValueError(
                        f"the checkpoint {self.keeper.path} belongs to a run with a plan; give this run a file of its own"
                    )
                self.keeper.compare(content, self.fingerprint)
                self.entries, rng.bit_generator.state = content["entries"], content["generator"]
                log.info("resumed from %s with %d purchases", self.keeper.path, len(self.entries))
            self.generator = rng.bit_generator.state

    def hierarchy(self) -> Hierarchy:
        """The same levels, bought here."""
        return self.raw._like(evaluate=self.evaluate)

    def keep_at(self, y: np.ndarray) -> None:
        """What is bought at this point is bought once."""
        self.kept.setdefault(y.tobytes(), {})

    def evaluate(self, k: int, y: np.ndarray) -> np.ndarray:
        point = y.tobytes()
        kept = self.kept.get(point)
        if kept is not None and k in kept:
            return kept[k]
        self.meter.charge(k)
        value = self.recalled([k, _digest(point)])
        if value is None:
            value = self.opened if k == self.raw.levels[0] and point == self.start else self.raw.value(k, y)
            self.write([k, _digest(point)], value, value.nbytes)
            if self.keeper is not None and time.monotonic() >= self.keeper.due:
                self.keep()
        if kept is not None:
            kept[k] = value
        return value

    def ran(self, run, plan, y: np.ndarray, limit: float) -> dict:
        """Carry out a plan from y, or recall that it was; its own file is beside the journal's."""
        key = ["run", _digest(repr((plan.method, plan.eps, plan.eta, plan.stages)).encode())]
        done = self.recalled(key)
        if done is None:
            beside = None if self.keeper is None else Path(f"{self.keeper.path}.run")
            found: Result = run(plan, y, limit, beside)
            names = ("y", "steps", "status", "message", "evaluations")
            done = {name: getattr(found, name) for name in names} | {"error": None}
            done["rows"] = list(
                zip(*(c.tolist() for c in (found.trace.step, found.trace.cost, found.trace.loss)), strict=True)
            )
            ended = found.status in ("done", "diverged") or (
                found.status == "budget" and limit < self.meter.limit - self.meter.total
            )
            if ended:  # the others go on from their own file
                self.write(key, done | {"generator": self.rng.bit_generator.state}, 0)
                self.keep()
                if beside is not None and beside.exists():
                    os.remove(beside)
            done["error"] = found.error
        else:
            self.rng.bit_generator.state = done["generator"]
        for k, n in done["evaluations"].items():
            self.meter.counts[k] += n
            self.meter.total += n * self.meter.price[k]
        return done

    def recalled(self, key: list):
        """The next entry, if it is this one; a file that goes another way from here on is not used any further."""
        if self.at == len(self.entries):
            return None
        if self.entries[self.at][0] != key:
            del self.entries[self.at :]
            return None
        self.at += 1
        return self.entries[self.at - 1][1]

    def write(self, key: list, value, size: int) -> None:
        if self.keeper is not None and self.size + size <= LARGEST:
            self.entries.append([key, value])
            self.at += 1
            self.size += size

    def keep(self) -> None:
        """Write the file."""
        if self.keeper is not None:
            content = {"fingerprint": self.fingerprint, "generator": self.generator, "entries": self.entries}
            self.keeper.write(content)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
