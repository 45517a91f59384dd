"""One run of a plan: it pays, records, watches and keeps, whatever the method; a method only makes steps.

A method is a generator `method(run, memory)`. It yields after every step, and all that it needs to go on is in
`memory` by then: so a run that was killed starts the generator again with the memory of its last file. `memory.y` is
the iterate, `memory.output` what would be returned now, or None where it is the quotient of `memory.sums`.
"""

import sys
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import numpy as np

from .checkpoints import Keeper, digest, load
from .hierarchy import Hierarchy, LevelError, generator
from .oracle import Telescope
from .purchases import Buyer, Sampler, Stop, consult
from .results import Result, State, log
from .schemes import Plan, Stage

FAR = 1e4  # a run this many d0 away from its start has diverged: the theorems keep it within a few
NEAR = 4.0  # without a loss to rank outputs, the best one is the last whose iterate was this many d0 from the start
PATIENCE = 0.02  # seconds between two looks at the clock
LINE = 0.2  # seconds between two looks of the line
ROWS = 200  # records of a run

Method = Callable[["Run", SimpleNamespace], Iterator[None]]


class Bar:
    """How far a run is, what it has paid and how long it will take: tqdm's line where it is installed, else a plain one."""

    def __init__(self, steps: int, step: int):
        self.steps, self.first, self.begin, self.due = steps, step, time.monotonic(), 0.0
        try:
            from tqdm import tqdm
        except ImportError:
            self.tqdm = None
        else:
            self.tqdm = tqdm(total=steps, initial=step, unit="step", file=sys.stderr, mininterval=0.0)

    def show(self, step: int, price: float, last: bool = False) -> None:
        now = time.monotonic()
        self.due = now + LINE
        if self.tqdm is not None:
            self.tqdm.set_postfix_str(f"price {price:.3g}", refresh=False)
            self.tqdm.update(step - self.tqdm.n)
            if last:
                self.tqdm.refresh()
                self.tqdm.close()
            return
        left = (now - self.begin) * (self.steps - step) / max(1, step - self.first)
        text = f"\r{step} of {self.steps} steps ({step / self.steps:.0%}), price {price:.3g}, {left:.0f} s left "
        print(text, end="\n" if last else "", file=sys.stderr, flush=True)


class Run:
    """The state of one run, shared by its stages."""

    def __init__(
        self, h: Hierarchy, y0: np.ndarray, plan: Plan, rng, loss, callback, max_cost, progress, checkpoint, executor
    ):
        self.h, self.plan, self.loss, self.callback = h, plan, loss, callback
        self.telescopes = [plan.telescope(h, stage) for stage in plan.stages]  # refuses a ladder that is too short
        self.start = h.point(y0)
        self.start.setflags(write=False)
        self.keeper = None if checkpoint is None else Keeper(checkpoint)
        self.rng = generator(rng)
        content = load(self.keeper.path) if self.keeper is not None and self.keeper.path.exists() else None
        first = self.telescopes[0]
        opening = first.levels[0] if first.prefix is None else first.prefix
        self.buyer = Buyer(h, self.start, opening, plan.accuracies, max_cost, executor)
        self.meter, self.value, self.values = self.buyer.meter, self.buyer.value, self.buyer.values
        self.memory = SimpleNamespace(y=self.start, output=self.start, stage=0, at=0)
        self.step, self.distance, self.best, self.safe = 0, 0.0, np.inf, self.start
        self.every = -(-plan.steps // ROWS)
        self.rows: list[tuple[int, float, float]] = []
        self.sampled: Sampler | None = None
        self.coins: dict | None = None
        if self.keeper is not None:
            self.fingerprint = self.fingerprinted(seeded=rng is not None)
            if content is not None:
                self.keeper.compare(content, self.fingerprint)
                self.resume(content)
        self.bar = Bar(plan.steps, self.step) if progress else None
        self.due = self.step + 1  # the next step that someone waits for,
        self.stride, self.looked = 1, 0.0  # and after how many the clock is looked at, which was when

    # --- what a method uses ---

    @property
    def output(self) -> np.ndarray:
        """What would be returned now, in an array of its own."""
        if self.memory.output is not None:
            return self.memory.output.copy()
        total, mass = self.memory.sums
        return total / mass

    def sampler(self, telescope: Telescope) -> Sampler:
        """Draws of a telescope; the first one after a resumption goes on with the coins of the file."""
        self.sampled = Sampler(self.buyer, telescope, self.rng, self.coins)
        self.coins = None
        return self.sampled

    def stages_left(self) -> Iterator[tuple[Stage, Telescope]]:
        """The stages that are not finished; `memory.at` counts the steps made in stage number `memory.stage`."""
        memory = self.memory
        while memory.stage < len(self.telescopes):
            yield self.plan.stages[memory.stage], self.telescopes[memory.stage]
            memory.stage, memory.at = memory.stage + 1, 0

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
                self.bar.show(self.step, self.meter.total, last=True)
        if self.keeper is not None:
            self.keep()  # before the last record, which a longer run does not have
        if status != "diverged":
            self.record(last=True)
        log.info("%s after %d steps, price %.4g: %s", status, self.step, self.meter.total, message)
        return self.result(status, message, error)

    def attend(self) -> None:
        """After a step that someone waits for: look, keep and tell."""
        if self.step % self.every == 0:
            self.guard()
            self.record()
        self.due = self.step // self.every * self.every + self.every
        if self.keeper is not None or self.bar is not None:
            now = time.monotonic()
            if self.keeper is not None and now >= self.keeper.due:
                self.keep()
            if self.bar is not None and now >= self.bar.due:
                self.bar.show(self.step, self.meter.total)
            self.stride = max(1, self.stride // 2 if now - self.looked > PATIENCE else min(2 * self.stride, self.every))
            self.looked, self.due = now, min(self.due, self.step + self.stride)
        if self.callback is not None:
            self.due, meter, y = self.step + 1, self.meter, self.memory.y.copy()
            state = State(self.step, y, self.output, meter.total, meter.by_level, self.rows[-1][2])
            consult(self.callback, state)  # last: a callback that stops the run leaves a whole step behind

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
        output, value, good = self.output, np.nan, self.distance <= NEAR * self.plan.problem.d0
        if self.loss is not None:
            value = float(self.loss(output.copy()))
            good = value <= self.best
        self.rows.append((self.step, self.meter.total, value))
        if good:
            self.best, self.safe = value, output

    # --- what is kept ---

    def fingerprinted(self, seeded: bool) -> dict:
        """What makes this run this run; a file that disagrees is another run's."""
        plan = self.plan
        chosen = (plan.method, plan.eps, plan.eta, plan.stages, plan.averaging, plan.growth, plan.window)
        return {
            "set of levels": list(self.h.levels),
            "list of prices": list(self.meter.price.values()),
            "plan": digest(repr(chosen)),
            "start": self.start,
            "gradient there": self.buyer.opened,
            "seed": digest(repr(self.rng.bit_generator.state)) if seeded else None,
        }

    def keep(self) -> None:
        """Write where the run stands; only after whole steps."""
        buyer, meter = self.buyer, self.meter
        coins = self.coins if self.sampled is None else self.sampled.coins
        if coins is None:
            coins = {"state": self.rng.bit_generator.state, "at": 0, "open": False}
        state = [self.step, self.best, self.safe, self.distance, self.rows, buyer.notes, buyer.broken]
        content = {"fingerprint": self.fingerprint, "memory": self.memory, "coins": coins, "state": state}
        content |= {"generator": type(self.rng.bit_generator).__name__, "meter": [meter.total, meter.counts]}
        problem = self.keeper.write(content)
        if problem and problem not in buyer.notes:
            buyer.notes.append(problem)

    def resume(self, content: dict) -> None:
        """Stand where the file says."""
        if type(self.rng.bit_generator).__name__ != content["generator"]:
            self.rng = np.random.Generator(getattr(np.random, content["generator"])())
        fresh, self.memory, self.coins = self.memory, content["memory"], content["coins"]
        self.meter.total, self.meter.counts = content["meter"]
        self.step, self.best, self.safe, self.distance, self.rows, *said = content["state"]
        self.buyer.notes, self.buyer.broken = said
        if not self.step:
            self.memory = fresh  # at the start itself the evaluation made there is of use
        log.info("resumed from %s at step %d, price %.4g", self.keeper.path, self.step, self.meter.total)

    def result(self, status: str, message: str, error: Exception | None) -> Result:
        if not self.rows or self.rows[-1][0] != self.step:
            self.rows.append((self.step, self.meter.total, np.nan))
        promise = "none"
        if status == "done":
            message = f"{self.step} steps, as planned: {self.buyer.broken or self.plan.promised}"
            promise = "none" if self.buyer.broken else self.plan.promise
        y, message = self.safe.copy() if status == "diverged" else self.output, "; ".join([message, *self.buyer.notes])
        return Result.of(y, self.meter, self.rows, self.step, status, message, promise=promise, error=error)
