"""One run of a plan: it pays, records, watches and keeps, whatever the method; a method only makes steps.

A method is a generator `method(run, memory)`. It yields after every step, and all that it needs to go on is in
`memory` by then: so a run that was killed starts the generator again with the memory of its last file. `memory.y` is
the iterate and `memory.output` what would be returned now.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace

import numpy as np

from .checkpoints import Keeper
from .hierarchy import Hierarchy, LevelError
from .hierarchy import _taken as taken
from .oracle import Telescope
from .plans import Plan, Stage
from .progress import Bar
from .results import Result, State, Trace, log

BLOCK = 256  # uniform numbers are drawn for this many calls at once; stopping early does not change them
FAR = 1e4  # a run this many d0 away from its start has diverged: the theorems keep it within a few
NEAR = 4.0  # without a loss to rank outputs, the best one is the last whose iterate was this many d0 from the start
SLACK = 1 + 1e-9  # rounding in what two levels may differ by
ROWS = 200  # records of a run

Method = Callable[["Run", SimpleNamespace], Iterator[None]]


class Stop(Exception):
    """Ends a run before its last step, in good order."""

    def __init__(self, status: str, message: str):
        super().__init__(message)
        self.status, self.message = status, message


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


class Sampler:
    """Draws of a telescope along a run: coins in blocks from one generator, each level evaluated once per call."""

    def __init__(self, run: "Run", telescope: Telescope, coins: dict | None = None):
        self.run, self.telescope, self.rng = run, telescope, run.rng
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
            value = self.telescope.combine(y, self.hits[at], self.run.values).value
        else:
            value = self.run.glance(self.prefix, y)
        self.at = at + 1  # only now: a level that failed meets the same coins when the run is resumed
        return value

    @property
    def coins(self) -> dict:
        """What a file keeps of the generator."""
        opened = self.state is not None
        return {"state": self.state if opened else self.rng.bit_generator.state, "at": self.at, "open": opened}


class Run:
    """The state of one run, shared by its stages."""

    def __init__(
        self, h: Hierarchy, y0: np.ndarray, plan: Plan, *, rng, loss, callback, max_cost, progress, checkpoint, executor
    ):
        self.h, self.plan, self.loss, self.callback, self.executor = h, plan, loss, callback, executor
        self.telescopes = [plan.telescope(h, stage) for stage in plan.stages]  # refuses a ladder that is too short
        self.start = h.point(y0)
        self.start.setflags(write=False)
        self.meter = Meter(h, np.inf if max_cost is None else float(max_cost))
        self.keeper = None if checkpoint is None else Keeper(checkpoint)
        seed = None if rng is None else _digest(repr(np.random.default_rng(rng).bit_generator.state))
        self.rng = np.random.default_rng(rng)
        self.memory = SimpleNamespace(y=self.start, output=self.start, stage=0, at=0)
        self.step, self.distance, self.best, self.safe = 0, 0.0, np.inf, self.start
        self.every = -(-plan.steps // ROWS)
        self.rows: list[tuple[int, float, float]] = []
        self.notes: list[str] = []  # what went wrong without ending the run
        self.broken = ""  # a level that was seen to break its declared accuracy
        self.sampled: Sampler | None = None
        self.coins: dict | None = None
        first = self.telescopes[0]
        self.opening = first.levels[0] if first.prefix is None else first.prefix
        self.opened = h.value(self.opening, self.start)  # refused at once if it is no gradient; paid when it is used
        if self.keeper is not None:
            self.fingerprint = {
                "set of levels": list(h.levels),
                "list of prices": [self.meter.price[k] for k in h.levels],
                "plan": _digest(
                    repr(
                        (
                            plan.method,
                            plan.eps,
                            plan.eta,
                            plan.stages,
                            plan.averaging,
                            plan.growth,
                            getattr(plan, "window", None),
                        )
                    )
                ),
                "start": self.start,
                "gradient there": self.opened,
                "seed": seed,
            }
            self.resume(self.keeper.read(self.fingerprint))
        self.bar = Bar(plan.steps, self.step) if progress else None
        self.impatient = not (callback is None and self.keeper is None and self.bar is None)
        self.due = self.step + 1  # the next step that someone waits for

    # --- what a method uses ---

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
        return self.opened if y is self.start and k == self.opening else taken(self.h.evaluate, k, y, False)

    def values(self, needs: Sequence[tuple[bool, int]], y: np.ndarray) -> list[np.ndarray]:
        """Several levels at one point, on the executor if there is one: (True, k) is the increment that shares work."""
        out = None
        self.meter.afford(*(k for _, k in needs))
        if self.executor is not None and len(needs) > 1:
            out = self._together(needs, y)
        if out is None:
            out = []
            for shared, k in needs:
                if shared:
                    self.meter.charge(k)
                out.append(self.h.step(k, y) if shared else self.value(k, y))
        if not self.broken:
            self._watch(needs, out)
        return out

    def sampler(self, telescope: Telescope) -> Sampler:
        """Draws of a telescope; the first one after a resumption goes on with the coins of the file."""
        self.sampled = Sampler(self, telescope, self.coins)
        self.coins = None
        return self.sampled

    def stages_left(self) -> Iterator[tuple[Stage, Telescope]]:
        """The stages that are not finished; `memory.at` counts the steps made in stage number `memory.stage`."""
        memory = self.memory
        while memory.stage < len(self.telescopes):
            yield self.plan.stages[memory.stage], self.telescopes[memory.stage]
            memory.stage, memory.at = memory.stage + 1, 0

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
            self.note(f"the executor failed at step {self.step + 1} ({what}) and the run went on without it")
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
                other = self.h.before(k) if shared else before[0]
                moved = (value if shared else value - before[1]).reshape(-1)
                allowed = self.h.accuracy(k) + self.h.accuracy(other)
                if moved.dot(moved) > (allowed * SLACK) ** 2:
                    self.suspect(other, k, moved, value, allowed)
            if not shared:
                before = (k, value)

    def suspect(self, j: int, k: int, moved: np.ndarray, value: np.ndarray, allowed: float) -> None:
        """Two levels are further apart than they say; rounding of large gradients alone is no offence."""
        distance = float(np.linalg.norm(moved))
        if distance > allowed * SLACK + 1e-14 * float(np.linalg.norm(value)):
            self.broken = (
                f"levels {j} and {k} differ by {distance:.3g} at step {self.step + 1} where their declared "
                f"accuracies allow {allowed:.3g}: nothing is promised; audit the hierarchy"
            )
            log.warning("%s", self.broken)

    # --- the way ---

    def go(self, method: Method) -> Result:
        """Make all steps, or as many as there can be."""
        log.info("%s: %d steps, expected price %.4g", self.plan.method, self.plan.steps, self.plan.expected_cost)
        error, status, message = None, "done", ""
        try:
            if not self.rows:
                self.record()
            if self.keeper is not None and not self.step:
                self.keep()
            steps = method(self, self.memory)
            for _ in steps:
                self.step += 1
                if self.step >= self.due:
                    self.attend()
            self.guard()
        except Stop as stop:
            status, message = stop.status, f"{stop.message} (step {self.step})"
        except LevelError as failure:
            status, message, error = "failed", f"step {self.step + 1}: {failure}; the output so far is kept", failure
            try:
                self.guard()
            except Stop as stop:
                status, message = stop.status, stop.message
        except BaseException as raised:  # an interrupt, or the user's own callback or loss: it goes on to the caller
            what = "interrupted" if isinstance(raised, KeyboardInterrupt) else f"{type(raised).__name__} was raised"
            if isinstance(raised, KeyboardInterrupt) and self.rows:
                self.record(last=True)
            raised.result = self.result("stopped", f"{what} at step {self.step}: the output so far is kept", None)
            raise
        finally:
            if self.bar is not None:
                self.bar.close(self.step, self.meter.total)
        if status != "diverged":
            self.record(last=True)
        if self.keeper is not None:
            self.keep()
        log.info("%s after %d steps, price %.4g: %s", status, self.step, self.meter.total, message)
        return self.result(status, message, error)

    def attend(self) -> None:
        """After a step that someone waits for: tell, look and keep."""
        if self.callback is not None:
            self.consult()
        if self.step % self.every == 0:
            self.guard()
            self.record()
        if self.keeper is not None and time.monotonic() >= self.keeper.due:
            self.keep()
        if self.bar is not None and time.monotonic() >= self.bar.due:
            self.bar.show(self.step, self.meter.total)
        self.due = self.step + 1 if self.impatient else self.step // self.every * self.every + self.every

    def consult(self) -> None:
        memory, meter = self.memory, self.meter
        state = State(self.step, memory.y.copy(), memory.output.copy(), meter.total, meter.by_level, self.rows[-1][2])
        try:
            stop = self.callback(state)
        except StopIteration:
            stop = True
        if stop:
            raise Stop("stopped", "the callback stopped the run")

    def guard(self) -> None:
        moved = self.memory.y - self.start
        self.distance = float(np.vdot(moved, moved)) ** 0.5
        if not self.distance <= FAR * self.plan.problem.d0:
            raise Stop(
                "diverged",
                f"the iterate left the region the theorem allows before step {self.step}: the best output so far is "
                "returned; check that beta is not too small, and that the levels approximate one gradient",
            )

    def record(self, last: bool = False) -> None:
        if last and self.rows[-1][0] == self.step:
            return
        output = self.memory.output.copy()
        value = np.nan if self.loss is None else float(self.loss(output.copy()))
        self.rows.append((self.step, self.meter.total, value))
        if self.distance <= NEAR * self.plan.problem.d0 if self.loss is None else value <= self.best:
            self.best, self.safe = value, output

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)
        log.warning("%s", sentence)

    # --- what is kept ---

    def keep(self) -> None:
        """Write where the run stands; only after whole steps."""
        meter = self.meter
        coins = self.coins if self.sampled is None else self.sampled.coins
        if coins is None:
            coins = {"state": self.rng.bit_generator.state, "at": 0, "open": False}
        problem = self.keeper.write(
            {
                "fingerprint": self.fingerprint,
                "memory": self.memory,
                "coins": coins,
                "generator": type(self.rng.bit_generator).__name__,
                "meter": [meter.total, meter.counts],
                "state": [self.step, self.best, self.safe, self.distance, self.rows, self.notes, self.broken],
            }
        )
        if problem and problem not in self.notes:
            self.notes.append(problem)

    def resume(self, content: dict | None) -> None:
        if content is None:
            return
        if type(self.rng.bit_generator).__name__ != content["generator"]:
            self.rng = np.random.Generator(getattr(np.random, content["generator"])())
        self.memory, self.coins = content["memory"], content["coins"]
        self.meter.total, self.meter.counts = content["meter"]
        self.step, self.best, self.safe, self.distance, rows, self.notes, self.broken = content["state"]
        self.rows = [tuple(row) for row in rows]
        log.info("resumed from %s at step %d, price %.4g", self.keeper.path, self.step, self.meter.total)

    def result(self, status: str, message: str, error: Exception | None) -> Result:
        if not self.rows or self.rows[-1][0] != self.step:
            self.rows.append((self.step, self.meter.total, np.nan))
        step, cost, loss = (np.array(column) for column in zip(*self.rows, strict=True))
        promise = _promise(self.plan)[0] if status == "done" and not self.broken else "none"
        if status == "done":
            message = f"{self.step} steps, as planned: {self.broken or _promise(self.plan)[1]}"
        return Result(
            y=np.array(self.safe if status == "diverged" else self.memory.output),
            cost=self.meter.total,
            cost_by_level=self.meter.by_level,
            evaluations=dict(self.meter.counts),
            steps=self.step,
            status=status,
            message="; ".join([message, *self.notes]),
            trace=Trace(step, cost, loss),
            promise=promise,
            error=error,
        )


def _evaluate(h: Hierarchy, shared: bool, k: int, y: np.ndarray) -> np.ndarray:
    return h.step(k, y) if shared else h.value(k, y)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _promise(plan):  # until plans.py has both
    kind = getattr(plan, "promise", "none" if plan.method == "tuned" else "proved")
    said = "nothing promised: set by hand" if kind == "none" else f"mean loss at most {plan.eps:g} (proved)"
    return kind, getattr(plan, "promised", said)
