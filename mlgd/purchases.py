"""Evaluations as a run buys them: billed before they are made, checked, several at once on an executor, and watched."""

from collections.abc import Callable, Sequence

import numpy as np

from .hierarchy import Hierarchy, LevelError
from .oracle import Telescope
from .results import State, log

BLOCK = 256  # uniform numbers are drawn for this many calls at once; stopping early does not change them
SLACK = 1 + 1e-9  # rounding in what two levels may differ by


class Stop(Exception):
    """Ends a run before its last step, in good order."""

    def __init__(self, status: str, message: str):
        super().__init__(message)
        self.status, self.message = status, message


def consult(callback: Callable[[State], bool | None], state: State) -> None:
    """Show a callback where the run stands; it ends the run by returning True or raising StopIteration."""
    try:
        stop = callback(state)
    except StopIteration:
        stop = True
    if stop:
        raise Stop("stopped", "the callback stopped the run")


class Meter:
    """Counts what is paid, level by level, and refuses what would pass the limit."""

    def __init__(self, h: Hierarchy, limit: float = np.inf):
        self.price = {k: float(h.cost(k)) for k in h.levels}
        self.counts = dict.fromkeys(h.levels, 0)
        self.total, self.limit = 0.0, limit

    def afford(self, *levels: int) -> None:
        """Refuse what would pass the limit, before any of it is evaluated."""
        if self.total + sum(self.price[k] for k in levels) > self.limit:
            raise Stop("budget", f"the next evaluation would pass max_cost = {self.limit:g}: raise max_cost or eps")

    def charge(self, k: int) -> None:
        total = self.total + self.price[k]
        if total > self.limit:
            self.afford(k)
        self.counts[k] += 1
        self.total = total

    @property
    def by_level(self) -> dict[int, float]:
        return {k: n * self.price[k] for k, n in self.counts.items()}


class Buyer:
    """Buys evaluations of one hierarchy; what is bought at the start, for a look at the first level, is used there."""

    def __init__(self, h: Hierarchy, start: np.ndarray, opening: int, accuracies, max_cost: float | None, executor):
        self.h, self.start, self.opening, self.accuracies, self.executor = h, start, opening, accuracies or {}, executor
        self.meter = Meter(h, np.inf if max_cost is None else float(max_cost))
        if self.meter.price[opening] > self.meter.limit:
            raise ValueError(
                f"max_cost = {self.meter.limit:g} does not pay for one evaluation of level {opening}, which costs "
                f"{self.meter.price[opening]:g}: raise max_cost"
            )
        self.opened = h.value(opening, start)  # refused at once if it is no gradient; billed when a method asks for it
        self.allowed: dict[tuple[int, int], float] = {}  # what two levels may differ by
        self.notes: list[str] = []  # what went wrong without ending the run
        self.broken = ""  # two levels that were seen to break their declared accuracies

    def value(self, k: int, y: np.ndarray) -> np.ndarray:
        """A_k(y), paid for and checked."""
        self.meter.charge(k)
        if y is self.start and k == self.opening:
            return self.opened.copy()
        return self.h.value(k, y)

    def glance(self, k: int, y: np.ndarray) -> np.ndarray:
        """The same, to be used before the next evaluation: nothing is copied. The hot path of long runs."""
        meter = self.meter
        total = meter.total + meter.price[k]
        if total > meter.limit:
            meter.afford(k)
        meter.counts[k] += 1
        meter.total = total
        return self.opened if y is self.start and k == self.opening else self.h.glance(k, y)

    def values(self, needs: Sequence[tuple[bool, int]], y: np.ndarray) -> list[np.ndarray]:
        """Several levels at one point, on the executor if there is one: (True, k) is the increment that shares work."""
        out = None
        if self.meter.limit < np.inf:
            self.meter.afford(*(k for _, k in needs))
        if self.executor is not None and len(needs) > 1:
            out = self._together(needs, y)
        if out is None:
            out = [self._increment(k, y) if shared else self.value(k, y) for shared, k in needs]
        if not self.broken:
            self._watch(needs, out)
        return out

    def _increment(self, k: int, y: np.ndarray) -> np.ndarray:
        self.meter.charge(k)
        return self.h.step(k, y)

    def _together(self, needs, y) -> list[np.ndarray] | None:
        """All at once on the executor; None if it broke, and all is evaluated here from now on."""
        before = (self.meter.total, dict(self.meter.counts))
        for _, k in needs:
            self.meter.charge(k)
        futures = []
        try:
            futures = [self.executor.submit(_evaluate, self.h, shared, k, y) for shared, k in needs]
            return [future.result() for future in futures]
        except LevelError:
            raise
        except Exception as error:  # what a user's level raises is a LevelError: this is the executor's own
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            self.note(f"the executor failed ({what}) and the run went on without it")
            self.executor = None
            self.meter.total, self.meter.counts = before  # what is evaluated again is paid for once
            return None
        finally:
            for future in futures:
                future.cancel()

    def _watch(self, needs, values) -> None:
        """Two levels differ by at most the sum of their accuracies; one that does not voids the promise."""
        before = None
        for (shared, k), value in zip(needs, values, strict=True):
            if shared or before is not None:
                pair = (self.h.before(k) if shared else before[0], k)
                allowed = self.allowed.get(pair)
                if allowed is None:
                    declared = [self.accuracies.get(j) or self.h.accuracy(j) for j in pair]
                    allowed = self.allowed[pair] = SLACK * sum(declared)
                moved = value if shared else value - before[1]
                if np.vdot(moved, moved) > allowed * allowed:
                    apart = float(np.linalg.norm(moved))
                    if apart > allowed + 1e-14 * float(np.linalg.norm(value)):  # the rounding of a large value is none
                        self.broken = (
                            f"levels {pair[0]} and {pair[1]} differ by {apart:.3g} where their declared accuracies "
                            f"allow {allowed:.3g}: nothing is promised; audit the hierarchy and plan on the report"
                        )
                        log.warning("%s", self.broken)
                        return
            if not shared:
                before = (k, value)

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)
        log.warning("%s", sentence)


class Sampler:
    """Draws of a telescope along a run: coins in blocks from one generator, each level evaluated once per call."""

    def __init__(self, buyer: Buyer, telescope: Telescope, rng: np.random.Generator, coins: dict | None = None):
        self.buyer, self.telescope, self.rng = buyer, telescope, rng
        self.prefix = telescope.prefix
        self.plain = self.prefix is not None and getattr(telescope, "reference", None) is None
        self.state, self.at = None, 0  # of the generator before the block in use, and the next coin in it
        self.any: list[bool] = []
        if coins is not None:
            self.rng.bit_generator.state = coins["state"]
            if coins["open"]:
                self.refill()
                self.at = coins["at"]

    def refill(self) -> None:
        self.state, self.at = self.rng.bit_generator.state, 0
        self.hits = self.rng.random((BLOCK, self.telescope.random.size)) < self.telescope.random
        self.any = self.hits.any(axis=1).tolist() if self.plain else [True] * BLOCK

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """One draw at y; to be used before the next one."""
        at = self.at
        if at == len(self.any):
            self.refill()
            at = 0
        if self.any[at]:
            value = self.telescope.combine(y, self.hits[at], self.buyer.values).value
        else:
            value = self.buyer.glance(self.prefix, y)
        self.at = at + 1  # only now: a level that failed meets the same coins when the run is resumed
        return value

    @property
    def coins(self) -> dict:
        """What a file keeps of the generator."""
        opened = self.state is not None
        return {"state": self.state if opened else self.rng.bit_generator.state, "at": self.at, "open": opened}


def _evaluate(h: Hierarchy, shared: bool, k: int, y: np.ndarray) -> np.ndarray:
    return h.step(k, y) if shared else h.value(k, y)
