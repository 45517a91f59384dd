"""Evaluations as a run buys them: billed before they are made, checked, several at once on an executor, and watched."""

from collections.abc import Callable, Sequence

import numpy as np

from .checkpoints import digest
from .hierarchy import Hierarchy, LevelError, taken
from .results import log
from .telescope import Telescope

BLOCK = 256  # uniform numbers are drawn for this many calls at once; stopping early does not change them
SLACK = 1 + 1e-9  # rounding in what two levels may differ by
LARGEST = (
    2**28
)  # bytes of values in a journal; what is bought after that is bought again on resumption


class Stop(BaseException):
    """Ends a run before its last step, in good order; whoever catches the errors of levels lets it pass."""

    def __init__(self, status: str, message: str = ""):
        super().__init__(message)
        self.status, self.message = status, message


class Meter:
    """Counts what is paid, level by level, and refuses what would pass the limit."""

    def __init__(self, h: Hierarchy, limit: float | None = None):
        self.price = {k: float(h.cost(k)) for k in h.levels}
        self.counts = dict.fromkeys(h.levels, 0)
        self.total, self.limit = 0.0, np.inf if limit is None else limit

    def afford(self, *levels: int) -> None:
        """Refuse what would pass the limit, before any of it is evaluated."""
        if self.total + sum(self.price[k] for k in levels) > self.limit:
            raise Stop(
                "budget",
                f"the next evaluation would pass max_cost = {self.limit:g}: raise max_cost or eps",
            )

    def charge(self, k: int) -> None:
        total = self.total + self.price[k]
        if total > self.limit:
            self.afford(k)
        self.counts[k] += 1
        self.total = total

    @property
    def by_level(self) -> dict[int, float]:
        return {k: n * self.price[k] for k, n in self.counts.items()}


class Journal:
    """Values in the order in which they were bought, each under a name for its level and point.

    What a run without a plan decides follows from them and from its generator: resumed, it decides the same again and
    evaluates nothing. Where it goes another way, as after a larger max_cost, the rest is not used any more.
    """

    def __init__(self, tell: Callable[[], None]):
        self.names, self.values, self.at, self.tell = [], [], 0, tell

    def value(self, level: Callable, k: int, y: np.ndarray) -> np.ndarray:
        """The next one, if it is this, or an evaluation."""
        name = digest(f"{k} ".encode(), y.tobytes())
        if self.names[self.at : self.at + 1] == [name]:
            self.at += 1
            return self.values[self.at - 1].copy()
        value = taken(level, k, y)  # a failure is not kept, and leaves what follows it
        del self.names[self.at :], self.values[self.at :]
        if self.at * y.nbytes < LARGEST:
            self.names.append(name)
            self.values.append(value.copy())
            self.at += 1
        self.tell()
        return value


class Buyer:
    """Buys evaluations of one hierarchy; the one made at the start, for a look at the first level, is used there."""

    def __init__(
        self, h: Hierarchy, start, opening, accuracies, meter: Meter, executor=None, journal=None
    ):
        self.h, self.start, self.opening, self.meter = h, start, opening, meter
        self.executor, self.journal = (
            executor if journal is None else None,
            journal,
        )  # a journal has one order
        if meter.price[opening] > meter.limit:
            raise ValueError(
                f"max_cost = {meter.limit:g} does not pay for one evaluation of level {opening}, which costs "
                f"{meter.price[opening]:g}: raise max_cost"
            )
        self.accuracy = {k: (accuracies or {}).get(k) or h.accuracy(k) for k in h.levels}
        self.opened = h.value(
            opening, start
        )  # refused at once if it is no gradient; billed when a method asks for it
        self.notes: list[str] = []  # what went wrong without ending the run
        self.broken = ""  # two levels that were seen to break their declared accuracies

    def value(self, k: int, y: np.ndarray, fresh: bool = True) -> np.ndarray:
        """A_k(y), paid for and checked; not `fresh`: used before the next one is bought."""
        self.meter.charge(k)
        if y is self.start and k == self.opening:
            return self.opened.copy() if fresh else self.opened
        if self.journal is not None:
            return self.journal.value(self.h.evaluate, k, y)
        return taken(self.h.evaluate, k, y, fresh)

    def values(self, needs: Sequence[int], y: np.ndarray) -> list[np.ndarray]:
        """Several levels at one point, on the executor if there is one."""
        if self.meter.limit < np.inf:
            self.meter.afford(*needs)
        out = self._together(needs, y) if self.executor is not None and len(needs) > 1 else None
        if out is None:
            out = [self.value(k, y) for k in needs]
        if not self.broken:
            self._watch(needs, out)
        return out

    def _together(self, needs, y) -> list[np.ndarray] | None:
        """All at once on the executor; None if it broke, and all is evaluated here from now on."""
        futures, paid = [], needs
        try:
            futures = [self.executor.submit(taken, self.h.evaluate, k, y) for k in needs]
            return [future.result() for future in futures]
        except LevelError:
            raise
        except (
            Exception
        ) as error:  # what a user's level raises is a LevelError: this is the executor's own
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            self.note(f"the executor failed ({what}) and the run went on without it")
            self.executor, paid = None, ()  # what is evaluated again is paid for once
            return None
        finally:
            for k in paid:
                self.meter.charge(k)
            for future in futures:
                future.cancel()

    def _watch(self, needs, values) -> None:
        """Two levels differ by at most the sum of their accuracies; one that does not voids the promise."""
        last = None
        for k, value in zip(needs, values, strict=True):
            if last is not None:
                j, moved = last[0], value - last[1]
                allowed, apart = (
                    SLACK * (self.accuracy[j] + self.accuracy[k]),
                    float(np.vdot(moved, moved)) ** 0.5,
                )
                if (
                    apart > allowed + 1e-14 * float(np.vdot(value, value)) ** 0.5
                ):  # the rounding of a large value
                    self.broken = (
                        f"levels {j} and {k} differ by {apart:.3g} where their declared accuracies "
                        f"allow {allowed:.3g}: nothing is promised; audit the hierarchy and plan on the report"
                    )
                    log.warning("%s", self.broken)
                    return
            last = k, value

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)
        log.warning("%s", sentence)


class Sampler:
    """Draws of a telescope along a run: coins in blocks from one generator, each level evaluated once per call."""

    def __init__(
        self,
        buyer: Buyer,
        telescope: Telescope,
        rng: np.random.Generator,
        drawn: dict | None = None,
    ):
        self.buyer, self.telescope, self.rng = buyer, telescope, rng
        self.prefix = telescope.prefix
        self.refill()
        if drawn is not None:
            self.at = drawn["at"]

    def refill(self) -> None:
        self.state, self.at = self.rng.bit_generator.state, 0
        self.hits = self.rng.random((BLOCK, self.telescope.random.size)) < self.telescope.random
        certain = self.prefix is not None
        self.any = self.hits.any(axis=1).tolist() if certain else [True] * BLOCK

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """One draw at y; to be used before the next one."""
        if self.at == BLOCK:
            self.refill()
        if self.any[self.at]:
            levels, weights = self.telescope.recipe(self.hits[self.at])
            values = self.buyer.values(levels, y)
            value = np.zeros_like(y)
            for weight, one in zip(weights, values, strict=True):
                value += weight * one
        else:
            value = self.buyer.value(self.prefix, y, fresh=False)
        self.at += 1  # only now: a level that failed meets the same coins when the run is resumed
        return value

    @property
    def drawn(self) -> dict:
        """What a file keeps: the generator before this block and the next coin in it."""
        return {"state": self.state, "at": self.at}
