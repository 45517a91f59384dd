"""One run: it pays, records, watches and keeps, whatever the method; a method only makes steps.

A method is a function `method(run, memory)` that says `run.made()` after every step, when all that it needs to go on is in
`memory`: so a run that was killed calls it again with the memory of its last file. `memory.y` is the iterate,
`memory.output` what would be returned now, or None where it is the quotient of `memory.sums`; `memory.at` counts the
steps of stage number `memory.stage`. A run without a plan begins anew, with a journal of what it has bought.
"""

import sys
import time
from collections.abc import Callable, Iterator
from copy import copy
from types import SimpleNamespace

import numpy as np

from .checkpoints import Keeper, digest
from .hierarchy import Hierarchy, LevelError, generator
from .plans import Plan, Stage
from .purchases import Buyer, Journal, Meter, Sampler, Stop
from .results import Result, State, log
from .telescope import Telescope

FAR = 1e4  # a run this many d0 away from its start has diverged: the theorems keep it within a few
NEAR = 4.0  # without a loss to rank outputs, the best one is the last whose iterate was this many d0 from the start
LINE = 0.2  # seconds between two lines that say how far a run is
ROWS = 200  # records of a run

Method = Callable[["Run", SimpleNamespace], None]


class Run:
    """One run, or a part of one: a plan that is carried out on the way, from the same purse."""

    def __init__(
        self,
        h: Hierarchy,
        y0,
        plan: Plan | None,
        eps,
        rng,
        loss,
        callback,
        max_cost,
        progress,
        checkpoint,
        executor,
        method_of: Callable[[Plan | None], Method],
    ):
        self.h, self.eps, self.loss, self.callback, self.progress = h, eps, loss, callback, progress
        self.executor, self.method_of, self.meter, self.journal = (
            executor,
            method_of,
            Meter(h, max_cost),
            None,
        )
        self.keeper, self.rng = None if checkpoint is None else Keeper(checkpoint), generator(rng)
        if self.keeper is not None and plan is None:
            self.journal = Journal(self.clock)
        self.prepare(plan, y0)
        if self.keeper is not None:
            self.fingerprint = self.fingerprinted(seeded=rng is not None)
            if self.keeper.content is not None:
                self.keeper.compare(self.fingerprint)
                self.resume(self.keeper.content)

    def prepare(self, plan: Plan | None, y0) -> None:
        """Stand before the first step."""
        h, self.plan = self.h, plan
        self.telescopes = (
            [plan.telescope(h, s) for s in plan.stages] if plan else []
        )  # refuses too short a ladder
        first = self.telescopes[0] if plan else h
        opening = first.levels[0] if plan is None or first.prefix is None else first.prefix
        self.start = h.point(y0)
        self.start.setflags(write=False)
        accuracies = plan and plan.accuracies
        self.buyer = Buyer(
            h, self.start, opening, accuracies, self.meter, self.executor, self.journal
        )
        self.value = self.buyer.value
        self.memory = SimpleNamespace(
            y=self.start, output=self.start, step=0, stage=0, at=0, rows=[]
        )
        self.memory.best, self.memory.safe = (
            np.inf,
            self.start,
        )  # the best output so far and its loss
        self.d0 = getattr(plan and plan.problem, "d0", np.inf)
        self.every = -(-plan.steps // ROWS) if plan else 1
        # a method may have more to say
        self.told: Callable[[Result], Result] = lambda result: result
        self.sampled: Sampler | None = None
        self.drawn = {"state": self.rng.bit_generator.state, "at": 0}

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
        self.sampled = Sampler(
            self.buyer, telescope, self.rng, None if self.sampled else self.drawn
        )
        return self.sampled

    def stages_left(self) -> Iterator[tuple[Stage, Telescope]]:
        """The stages that are not finished."""
        memory = self.memory
        while memory.stage < len(self.telescopes):
            yield self.plan.stages[memory.stage], self.telescopes[memory.stage]
            memory.stage, memory.at = memory.stage + 1, 0

    def made(self) -> None:
        """A step was made."""
        memory = self.memory
        memory.step += 1
        memory.at += 1
        if not memory.step % self.every or (self.watched and time.monotonic() >= self.due):
            self.attend()

    def part(self, plan: Plan, y: np.ndarray, allowed: float) -> np.ndarray:
        """Carry out a plan from y, for at most this price: where it ends."""
        part, limit, memory = copy(self), self.meter.limit, self.memory
        part.keeper, self.meter.limit = None, min(limit, self.meter.total + allowed)
        part.prepare(plan, y)
        done, self.meter.limit = part.go(), limit
        memory.rows += [(memory.step + step, *paid) for step, *paid in part.memory.rows]
        memory.step += done.steps
        if done.status in ("stopped", "failed"):
            memory.output = done.y
            raise done.error or Stop(done.status, done.message)
        return done.y

    # --- the way ---

    def go(self) -> Result:
        """Make all steps, or as many as there can be."""
        plan, memory, status, message, error = self.plan, self.memory, "done", "", None
        self.begin, self.lined, self.due = (
            (time.monotonic(), memory.step),
            0.0,
            0.0,
        )  # of the line, and of anything
        self.watched, self.bar = bool(self.keeper or self.callback or self.progress), None
        try:
            if plan is not None and not memory.rows:
                log.info(
                    "%s: %d steps, expected price %.4g", plan.method, plan.steps, plan.expected_cost
                )
                self.record()
            if not memory.step:
                self.keep()
            self.method_of(plan)(self, memory)
        except Stop as stop:
            status, message = stop.status, f"{stop.message} (step {memory.step})"
        except LevelError as failure:
            status, message, error = (
                "failed",
                f"step {memory.step + 1}: {failure}; the output so far is kept",
                failure,
            )
        except (
            BaseException
        ) as raised:  # an interrupt, or the user's own callback or loss: it goes on to the caller
            what = (
                "interrupted"
                if isinstance(raised, KeyboardInterrupt)
                else f"{type(raised).__name__} was raised"
            )
            message = f"{what} at step {memory.step}: the output so far is kept"
            if self.journal is not None:
                self.keep()
            judged = isinstance(raised, KeyboardInterrupt) and bool(memory.rows)
            raised.result = self.result("stopped", message, None, judged)
            raise
        finally:
            self.show("\n")
        self.keep()  # before the last record, which a longer run does not have
        if not self.away <= FAR:
            status, message = (
                "diverged",
                (
                    f"the iterate left the region the theorem allows before step {memory.step}: the best output so far is "
                    "returned; check that beta is not too small, and that the levels approximate one gradient"
                ),
            )
        log.info(
            "%s after %d steps, price %.4g: %s", status, memory.step, self.meter.total, message
        )
        return self.result(status, message, error, status != "diverged")

    def attend(self) -> None:
        """After a step that someone waits for: look, keep and tell."""
        memory, meter = self.memory, self.meter
        if not memory.step % self.every:
            away = self.away
            if not away <= FAR:
                raise Stop("diverged")
            self.record(away)
        if self.watched:
            self.clock()
        if (
            self.callback is not None
        ):  # last: a callback that stops the run leaves a whole step behind
            paid = meter.total, meter.by_level
            try:
                stop = self.callback(
                    State(memory.step, memory.y.copy(), self.output, *paid, memory.rows[-1][2])
                )
            except StopIteration:
                stop = True
            if stop:
                raise Stop("stopped", "the callback stopped the run")

    def clock(self) -> None:
        """Write the file and the line where it is time."""
        now = time.monotonic()
        if self.keeper is not None and now >= self.keeper.due:
            self.keep()
        if self.progress and now >= self.lined:
            self.show()
        waits = [
            self.keeper.due if self.keeper else np.inf,
            self.lined if self.progress else np.inf,
        ]
        self.due = 0.0 if self.callback else min(waits)

    def show(self, end: str = "") -> None:
        """How far the run is, what it has paid and how long it will take: tqdm's line where it is installed, else a plain one."""
        if not self.progress or self.plan is None:
            return
        now, step, steps, price = (
            time.monotonic(),
            self.memory.step,
            self.plan.steps,
            f"price {self.meter.total:.3g}",
        )
        self.lined, (begin, first) = now + LINE, self.begin
        if self.bar is None:
            try:
                from tqdm import tqdm
            except ImportError:
                self.bar = False
            else:
                self.bar = tqdm(
                    total=steps, initial=first, unit="step", file=sys.stderr, mininterval=0.0
                )
        if self.bar:
            self.bar.set_postfix_str(price, refresh=False)
            self.bar.update(step - self.bar.n)
            if end:
                self.bar.refresh()
                self.bar.close()
            return
        left = (now - begin) * (steps - step) / max(1, step - first)
        line = f"\r{step} of {steps} steps ({step / steps:.0%}), {price}, {left:.0f} s left "
        print(line, end=end, file=sys.stderr, flush=True)

    @property
    def away(self) -> float:
        """How many d0 the iterate is away from the start."""
        moved = self.memory.y - self.start
        return float(np.vdot(moved, moved)) ** 0.5 / self.d0

    def record(self, away: float | None = None) -> None:
        memory, output, value = self.memory, self.output, np.nan
        if self.loss is not None:
            value = float(self.loss(output.copy()))
        memory.rows.append((memory.step, self.meter.total, value))
        if (
            value <= memory.best
            if self.loss is not None
            else (self.away if away is None else away) <= NEAR
        ):
            memory.best, memory.safe = value, output

    def result(self, status: str, message: str, error: Exception | None, judged: bool) -> Result:
        """What is handed back; `judged`: with the loss of it."""
        buyer, plan, memory, promise = self.buyer, self.plan, self.memory, "none"
        if not memory.rows or memory.rows[-1][0] != memory.step:
            self.record() if judged else memory.rows.append((memory.step, self.meter.total, np.nan))
        if status == "done" and plan is not None:
            message = f"{memory.step} steps, as planned: {buyer.broken or plan.promised}"
            promise = "none" if buyer.broken else plan.promise
        y = memory.safe.copy() if status == "diverged" else self.output
        said = "; ".join(sentence for sentence in (message, *buyer.notes) if sentence)
        return self.told(
            Result.of(
                y, self.meter, memory.rows, memory.step, status, said, promise=promise, error=error
            )
        )

    # --- what is kept ---

    def fingerprinted(self, seeded: bool) -> dict:
        """What makes this run this run; a file that disagrees is another run's."""
        p = self.plan
        chosen = p and (p.method, p.eps, p.eta, p.stages, p.averaging, p.growth, p.window)
        return {
            "set of levels": list(self.h.levels),
            "list of prices": list(self.meter.price.values()),
            "plan": digest(repr(chosen).encode()),
            "eps": self.eps,
            "start": self.start,
            "gradient there": self.buyer.opened,
            "seed": digest(repr(self.rng.bit_generator.state).encode()) if seeded else None,
        }

    def keep(self) -> None:
        """Write where the run stands, after whole steps; of a run without a plan its journal counts, and its first coins."""
        if self.keeper is None:
            return
        meter, buyer, journal = self.meter, self.buyer, self.journal
        content = {
            "fingerprint": self.fingerprint,
            "memory": self.memory,
            "drawn": self.sampled.drawn if self.sampled else self.drawn,
            "paid": [meter.total, [*meter.counts.values()], buyer.notes, buyer.broken],
            "bought": [journal.names, np.array(journal.values)] if journal else None,
        }
        problem = self.keeper.write(content)
        if problem and problem not in buyer.notes:
            buyer.notes.append(problem)

    def resume(self, content: dict) -> None:
        """Stand where the file says."""
        self.drawn, state = content["drawn"], content["drawn"]["state"]
        if type(self.rng.bit_generator).__name__ != state["bit_generator"]:
            self.rng = np.random.Generator(getattr(np.random, state["bit_generator"])())
        self.rng.bit_generator.state = state
        if self.journal is not None:
            self.journal.names, self.journal.values = content["bought"][0], [*content["bought"][1]]
        else:
            self.memory = content["memory"]
            self.meter.total, counts, self.buyer.notes, self.buyer.broken = content["paid"]
            self.meter.counts = dict(zip(self.h.levels, counts, strict=True))
            if not self.memory.step:
                self.memory.y = self.start  # the evaluation made there is of use
        log.info(
            "resumed from %s at step %d, price %.4g",
            self.keeper.path,
            self.memory.step,
            self.meter.total,
        )
