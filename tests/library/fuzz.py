"""A hostile user: random problems, faults at random calls, and a count of evaluations kept apart.

python tests/library/fuzz.py --runs 2000 --seed 0     (about a minute per thousand; exit code 1 on a
finding, which is printed with the number that --only repeats alone)

Each run draws a kind, a problem and a fault from its own seed and checks what must hold:

R1  an exception of a level ends the run at once and is told; interrupts, and errors of a callback
    or a loss, are raised with the result on them; nan, inf and OutOfDomain shorten a step
R2  the bill is what was paid, over budgets, interrupts, failures, resumptions; max_cost holds
R3  every ending writes the file; a resumed run ends with the bits of the unbroken one; damaged and
    foreign files are refused and left as they are
R4  done, promise and success go together, and nothing is proved that was not declared
R5  a point that the loss said to be worse than the start is neither returned nor a success
R6  what is refused is refused by ValueError, TypeError or LevelError; no warning, no nan in a
    message, no point that is not finite, no hang
R7  results pickle
"""

import argparse
import math
import os
import pickle
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from mlgd import (
    Hierarchy,
    OutOfDomain,
    Plan,
    Problem,
    Telescope,
    audit,
    checkpoint,
    compare,
    constants,
    minimize,
    plan,
)
from mlgd.flow import flow
from mlgd.hierarchy import dyadic

MOST_CALLS = 60_000  # of evaluate in one run: more is a hang
MOST_SECONDS = 60  # of one run
ROUNDING = 1e-9  # relative: of sums of prices

REFUSALS = (ValueError, TypeError)  # LevelError is a ValueError

ERRORS = [
    NameError("typo"),
    ConnectionError("the licence is away"),
    ZeroDivisionError("division by zero"),
    ValueError("math domain error"),
    OverflowError("math range error"),
    FloatingPointError("overflow"),
    np.linalg.LinAlgError("Singular matrix"),
    RuntimeError("no convergence"),
    StopIteration("an iterator's"),
    KeyError("mesh"),
    MemoryError("out of memory"),
    RecursionError("too deep"),
]
INTERRUPTS = [KeyboardInterrupt(), SystemExit(3), GeneratorExit()]
NO_GRADIENTS = [
    None,
    "text",
    {},
    (1.0, np.ones(3)),
    np.ones((2, 7)),
    1j * np.ones(3),
    object(),
]
OUTSIDE = [math.nan, math.inf, -math.inf, OutOfDomain("too far")]

NASTY = [
    5e-324,
    1e-308,
    1e-160,
    1e-100,
    1e-9,
    0.5,
    1.0,
    2.0,
    3.0,
    1e9,
    1e100,
    1e160,
    1e300,
    1e308,
]


class Finding(Exception):
    """A rule that does not hold."""


class Hang(BaseException):
    """More calls, or more time, than a run may take."""


def anew(fault):
    """An exception of its own for each run: a result is kept on it."""
    return type(fault)(*fault.args) if isinstance(fault, BaseException) else fault


def hold(rule: str, holds: bool, *what) -> None:
    if not holds:
        raise Finding(f"{rule}: {' '.join(map(str, what))}")


# --- what a user brings ---


@dataclass
class Meter:
    """A level function that counts what it is asked, and may do something else at one call."""

    level: Callable
    price: Callable
    returns: Callable = field(default=lambda value, y: value)
    at: int = 0  # the call at which `fault` happens, 0 for none,
    beyond: float = math.inf  # or the size of a point at which it does
    fault: object = None
    calls: Counter = field(default_factory=Counter)
    happened: bool = False
    odd: str = ""  # what was wrong with a point asked
    journal: int | None = None  # a file that outlives this process

    def __call__(self, k, y):
        self.calls[k] += 1
        if self.journal is not None:
            os.write(self.journal, f"{k}\n".encode())
        if not np.isfinite(y).all():
            self.odd = f"level {k} was asked at {y}"
        if y.flags.writeable:
            self.odd = f"level {k} got a point that it may write to"
        if self.number > MOST_CALLS:
            raise Hang(f"{self.number} calls")
        if self.number == self.at or np.abs(y).max() > self.beyond:
            self.happened = True
            if isinstance(self.fault, BaseException):
                raise self.fault
            if isinstance(self.fault, float):
                return np.full(y.shape, self.fault)
            return self.fault
        with np.errstate(all="ignore"):
            return self.returns(self.level(k, y), y)

    @property
    def number(self) -> int:
        return self.calls.total()

    @property
    def paid(self) -> float:
        return math.fsum(n * self.price(k) for k, n in self.calls.items())

    def plan_fault(self, at: int, fault) -> None:
        self.at, self.fault, self.happened = at, fault, False


class Vector(np.ndarray):
    """A subclass, as units or names make."""


def returned(rng) -> Callable:
    """How a user's function hands its gradient over."""
    buffer = {}

    def one_buffer(value, y):
        kept = buffer.setdefault(y.shape, np.empty(y.shape))
        kept[...] = value
        return kept

    def frozen(value, y):
        value = np.array(value)
        value.flags.writeable = False
        return value

    ways = [
        lambda value, y: value,
        one_buffer,
        frozen,
        lambda value, y: np.asfortranarray(value),
        lambda value, y: value.tolist(),
        lambda value, y: value.view(Vector),
        lambda value, y: value.astype(object),
        lambda value, y: value.astype(np.longdouble),
        lambda value, y: np.repeat(value[None], 2, 0)[1],
    ]
    return ways[rng.integers(len(ways))]


def gradient(rng, shape: tuple) -> tuple[Callable, Callable]:
    """A loss of some sort: its gradient and itself."""
    size = math.prod(shape)
    bent = np.geomspace(10.0 ** -rng.integers(0, 5), 1, size).reshape(shape)
    at = rng.normal(size=shape) * 10.0 ** rng.integers(-2, 3)
    kinds = {
        "quadratic": (
            lambda y: bent * (y - at),
            lambda y: np.sum(bent * (y - at) ** 2) / 2,
        ),
        "soft": (
            lambda y: np.tanh(y - at),
            lambda y: np.sum(np.logaddexp(y - at, at - y)),
        ),
        "quartic": (lambda y: (y - at) ** 3, lambda y: np.sum((y - at) ** 4) / 4),
        "waves": (
            lambda y: np.sin(y) + 0.1 * y,
            lambda y: np.sum(0.05 * y**2 - np.cos(y)),
        ),
        "endless": (lambda y: -np.exp(-y), lambda y: np.sum(np.exp(-y))),
        "downhill": (lambda y: -bent, lambda y: -np.sum(bent * y)),
        "concave": (lambda y: -bent * y, lambda y: -np.sum(bent * y**2) / 2),
        "corners": (lambda y: np.sign(y - at), lambda y: np.sum(np.abs(y - at))),
        "flat": (lambda y: 0 * y, lambda y: 0.0),
        "log": (lambda y: 2 * y / (1 + y**2), lambda y: np.sum(np.log1p(y**2))),
        "wall": (
            lambda y: np.where(
                np.abs(y) < 9, bent * y - 1e-2 / (9 - np.abs(y)) + 0.3, np.nan
            ),
            lambda y: math.nan,
        ),
    }
    return kinds[rng.choice([*kinds, "quadratic", "quadratic", "soft"])]


def errors_of_levels(rng, shape: tuple) -> Callable:
    """What level k is off by: along fixed directions, rounded, or another one at every point."""
    directions = rng.normal(size=(64, *shape)) / math.sqrt(math.prod(shape))
    falls = float(rng.choice([0.1, 0.3, 0.5, 0.9, 1.0, 2.0]))
    kinds = [
        lambda k, y: falls**k * directions[k],
        lambda k, y: falls**k * directions[0],
        lambda k, y: falls**k * np.sin(1e3 * y + k),
        lambda k, y: np.round(y * 4.0**k) / 4.0**k - y,
        lambda k, y: 0 * y,
    ]
    return kinds[rng.integers(len(kinds))]


@dataclass
class Case:
    """One drawn problem: a hierarchy whose meter counts, a start, a loss."""

    rng: np.random.Generator
    unit: float = 1.0  # of the loss
    length: float = 1.0  # of the point

    def __post_init__(self):
        rng, unit, length = self.rng, self.unit, self.length
        self.shape = [(1,), (2,), (7,), (30,), (3, 4), (2, 1, 3)][rng.integers(6)]
        slope, height = gradient(rng, self.shape)
        off = errors_of_levels(rng, self.shape)
        self.levels = sorted(
            rng.choice(np.arange(10), rng.integers(1, 9), False).tolist()
        )
        base = float(rng.choice([1.0, 1.5, 4.0, 8.0, 8.0, 30.0]))
        self.price = lambda k: 0.1 * base**k
        self.noise = (
            float(rng.choice([0, 0, 0, 1e-9, 1e-3])) if rng.random() < 0.3 else 0.0
        )

        def level(k, y):
            z = y / length
            value = unit / length * (slope(z) + off(k, z))
            return value * (1 + self.noise * rng.normal()) if self.noise else value

        def loss(y):
            with np.errstate(all="ignore"):
                return float(unit * height(y / length))

        self.level, self.loss = level, loss
        with np.errstate(all="ignore"):
            self.y0 = np.clip(length * rng.normal(size=self.shape), -1e308, 1e308)
        self.eps = unit * 10.0 ** -rng.integers(0, 7)
        self.exact = bool(rng.random() < 0.3)
        self.given = {"radius": length * 10.0} if rng.random() < 0.2 else {}
        self.steps = int(rng.integers(1, 700))
        self.eta = float(10.0 ** rng.uniform(-3, 0.5))
        self.chances = [1.0, *rng.uniform(0.01, 0.5, len(self.levels) - 1).tolist()]
        self.method = str(rng.choice(["climb", "climb", "by hand", "theorem", "flow"]))
        self.returns = returned(rng)

    def meter(self) -> Meter:
        return Meter(self.level, self.price, self.returns)

    def run(self, meter: Meter, loss=None, callback=None, max_cost=None, path=None):
        """The run by the method drawn; what a flow lacks is left out."""
        watch = {"loss": loss, "max_cost": max_cost}
        h = Hierarchy(
            meter, self.price, self.levels, dyadic, exact=self.exact, repeats=1e-6
        )
        if self.method == "flow":
            rates = {k: 20.0 * p for k, p in zip(self.levels, self.chances, strict=True)}
            return flow(h, self.y0, rates, min(self.steps / 50, 5.0), rng=1, **watch)
        watch |= {"callback": callback, "checkpoint": path}
        if self.method == "climb":
            return minimize(h, self.y0, self.eps, **self.given, **watch)
        if self.method == "by hand":
            p = Plan.by_hand(Telescope(h, self.chances), self.eta, self.steps)
        else:
            p = self.theorem(h)
        return p.run(h, self.y0, rng=7, **watch)

    def theorem(self, h: Hierarchy) -> Plan:
        """A plan of one of the methods, wrong about the problem as it may be."""
        methods = ["multilevel", "fixed", "accelerated", "scheduled"]
        method = methods[self.steps % 4]
        mu = 0.1 if self.steps % 3 or method == "scheduled" else 0.0
        problem = Problem(beta=1.0, mu=mu, d0=2.0, gamma=3.0, c=1.0)
        for eps in (0.1, 0.5, 2.0, 8.0):
            try:
                made = plan(problem, eps, method, on=h)
            except ValueError:
                continue
            if made.steps < 3000:
                return made
        return Plan.by_hand(Telescope(h, self.chances), self.eta, self.steps)

    @property
    def resumes(self) -> bool:
        return self.method != "flow"


# --- what must hold of every result ---


def check(case: Case, meter: Meter, result, limit: float = math.inf, known=None) -> None:
    """R2, R4, R5, R6, R7 of one result; `known` are the losses that were told, by point."""
    bill(meter, result, limit)
    said = f"{result!r} {result}"
    hold("R6", not meter.odd, meter.odd)
    hold("R6", not re.search(r"\bnan\b", result.message), "nan in:", result.message)
    hold("R4", result.success == (result.status == "done"), said)
    hold("R4", result.success == (result.promise != "none"), said)
    statuses = ("done", "ended", "missed", "stopped", "budget", "diverged", "failed")
    hold("R4", result.status in statuses, result.status)
    if result.promise == "proved":
        hold("R4", case.method == "theorem", "proved by", case.method)
    hold("R6", np.isfinite(result.y).all(), "y =", result.y)
    hold("R6", result.y.shape == case.y0.shape, "y has shape", result.y.shape)
    if known:
        here, start = known.get(result.y.tobytes()), known.get(case.y0.tobytes())
        if here is not None and start is not None and math.isfinite(start):
            hold(
                "R5",
                not here > start,
                f"loss {here} at y, {start} at the start:",
                result.message,
            )
    again = pickle.loads(pickle.dumps(result))
    hold("R7", repr(again) == repr(result), "another result after pickling")


def bill(meter: Meter, result, limit: float) -> None:
    """R2: what is told was paid."""
    paid = meter.paid
    told = {k: n for k, n in result.evaluations.items() if n}
    hold("R2", told == dict(meter.calls), "told", told, "made", dict(meter.calls))
    hold("R2", result.nfev == meter.number, "nfev", result.nfev, "of", meter.number)
    sums = [
        result.cost,
        sum(result.cost_by_level.values()),
        sum(result.cost_by_purpose.values()),
    ]
    close = all(math.isclose(s, paid, rel_tol=ROUNDING, abs_tol=1e-300) for s in sums)
    hold("R2", close, "told", sums, "paid", paid)
    hold("R2", paid <= limit * (1 + ROUNDING), "paid", paid, "of max_cost", limit)


def listening(case: Case) -> tuple[Callable, dict]:
    """The loss, and what it told."""
    known: dict[bytes, float] = {}

    def loss(y):
        known[y.tobytes()] = case.loss(y)
        return known[y.tobytes()]

    return loss, known


# --- kinds of runs ---


def plain(rng, folder: Path) -> None:
    """A healthy run, watched by a loss, under a budget or not."""
    case = Case(rng)
    meter, (loss, known) = case.meter(), listening(case)
    limit = case.price(case.levels[-1]) * 10.0 ** rng.uniform(0, 3)
    result = case.run(meter, loss, max_cost=limit)
    check(case, meter, result, limit, known)
    hold("R1", result.error is None or result.status == "failed", result)


def faulty(rng, folder: Path) -> None:
    """An exception, no gradient, or an interrupt at a random call."""
    case = Case(rng)
    every = [*ERRORS, *INTERRUPTS, *NO_GRADIENTS]
    fault = anew(every[rng.integers(len(every))])
    meter, (loss, known) = case.meter(), listening(case)
    at = int(10.0 ** rng.uniform(0, 2.5))
    meter.plan_fault(at, fault)
    try:
        result = case.run(meter, loss)
    except BaseException as raised:
        judge_raised(case, meter, raised, fault, at, known)
        return
    check(case, meter, result, known=known)
    if not meter.happened:
        return
    hold(
        "R1",
        meter.number == at,
        f"{fault!r} at call {at} of {meter.number}:",
        result.message,
    )
    hold("R1", result.status == "failed", result.status, result.message)
    hold(
        "R1",
        not isinstance(fault, BaseException) or result.error.__cause__ is fault,
        fault,
    )


def runaway(rng, folder: Path) -> None:
    """Steps that are too long, on a level that raises an exception far away."""
    case = Case(rng)
    while case.method not in ("by hand", "flow"):
        case = Case(rng)
    case.eta = 10.0 ** rng.uniform(0.5, 12)
    case.chances = [p**2 for p in case.chances]  # jumps of a flow are long
    meter = case.meter()
    meter.fault = anew(ERRORS[rng.integers(len(ERRORS))])
    meter.beyond = 10.0 ** rng.uniform(2, 12)
    result = case.run(meter)
    check(case, meter, result)
    if meter.happened:
        hold("R1", result.status == "failed", f"{meter.fault!r}, told as", result.message)
        hold("R1", result.error.__cause__ is meter.fault, result.error)


def judge_raised(case, meter, raised, fault, at, known) -> None:
    """R1 of what came out of a run as an exception."""
    if isinstance(raised, Finding | Hang) or not meter.happened:
        raise raised
    hold(
        "R1", meter.number == at, f"{meter.number} calls, and a fault at {at}: {raised!r}"
    )
    if isinstance(raised, INTERRUPT_KINDS):
        hold("R1", raised is fault, f"{raised!r} in place of {fault!r}")
        check(case, meter, raised.result, known=known)
        return
    hold("R1", isinstance(raised, REFUSALS), f"{raised!r} raised at call {at}")
    hold("R1", at == 1, f"{raised!r} raised at call {at}, not the first")
    hold("R1", not isinstance(fault, BaseException) or raised.__cause__ is fault, fault)


def outside(rng, folder: Path) -> None:
    """nan, inf or OutOfDomain at a random call: a shorter step, or the end of a plan."""
    case = Case(rng)
    meter, (loss, known) = case.meter(), listening(case)
    at = int(10.0 ** rng.uniform(0.31, 2.5))
    meter.plan_fault(at, anew(OUTSIDE[rng.integers(len(OUTSIDE))]))
    result = case.run(meter, loss)
    check(case, meter, result, known=known)
    if meter.happened and case.method != "climb":
        ended = ("failed", "diverged")
        hold("R1", meter.number == at and result.status in ended, result.message)
    if meter.happened and result.status == "failed":
        hold("R1", isinstance(result.error, ValueError), result.error)


def watched(rng, folder: Path) -> None:
    """A callback or a loss that stops, or raises, at a random step."""
    case = Case(rng)
    meter, (loss, known) = case.meter(), listening(case)
    every = [*ERRORS, *INTERRUPTS, OutOfDomain("of a loss"), "stop", "loss"]
    fault = anew(every[rng.integers(len(every))])
    left = int(10.0 ** rng.uniform(0, 2))
    told = []

    def act():
        nonlocal left
        left -= 1
        if left:
            return False
        told.append(True)
        if isinstance(fault, BaseException):
            raise fault
        return True

    by_loss = rng.random() < 0.4 or case.method == "flow"

    def acting_loss(y):
        if by_loss and act():  # or it raises, and has told nothing
            return math.nan if fault == "loss" else math.inf
        return loss(y)

    callback = None if by_loss else lambda seen: act()
    stopping = isinstance(fault, str) or (
        isinstance(fault, StopIteration) and not by_loss
    )
    try:
        result = case.run(meter, acting_loss, callback)
    except BaseException as raised:
        if isinstance(raised, Finding | Hang) or not told:
            raise
        hold("R1", raised is fault and not stopping, f"{raised!r} in place of {fault!r}")
        check(case, meter, raised.result, known=known)
        return
    check(case, meter, result, known=known)
    hold("R1", not told or stopping, f"{fault!r} was swallowed: {result.message}")
    if told and callback is not None:
        hold("R1", result.status in ("stopped", "diverged"), result.message)


def chained(rng, folder: Path) -> None:
    """One file, ended and resumed again and again: the bits of the unbroken run, one bill."""
    case = resumable(rng)
    path, meter, limit = folder / "chain", case.meter(), math.inf
    unbroken = case.run(case.meter(), case.loss)
    hold("R2", unbroken.nfev < MOST_CALLS, "")
    for _ in range(rng.integers(1, 6)):
        end = rng.choice(["budget", "error", "interrupt", "stop", "raise"])
        at = meter.number + int(rng.integers(1, max(unbroken.nfev, 2)))
        options = {}
        if end == "budget":
            least = meter.paid + min(map(case.price, case.levels))
            options["max_cost"] = limit = least + unbroken.cost * rng.random()
        if end == "error":
            meter.plan_fault(at, anew(ERRORS[rng.integers(len(ERRORS))]))
        if end == "interrupt":
            meter.plan_fault(at, anew(INTERRUPTS[rng.integers(len(INTERRUPTS))]))
        if end in ("stop", "raise"):
            options["callback"] = ender(rng, unbroken.nit, end == "raise")
        try:
            result = case.run(meter, case.loss, path=path, **options)
        except (*INTERRUPT_KINDS, EndOfCallback) as raised:
            result = raised.result
        except ValueError:
            # at the very first evaluation: there is nothing to resume
            first = meter.happened and not path.exists()
            if not first:
                raise
            meter = case.meter()
            continue
        meter.plan_fault(0, None)
        if not path.exists():  # interrupted in the very first evaluation
            hold("R3", meter.number <= 1, "no file after", meter.number, "evaluations")
            meter = case.meter()
            continue
        check(case, meter, result, limit if end == "budget" else math.inf)
    last = case.run(meter, case.loss, path=path)
    check(case, meter, last)
    hold(
        "R3", same_ending(last, unbroken), last.message, "but unbroken:", unbroken.message
    )


INTERRUPT_KINDS = (KeyboardInterrupt, SystemExit, GeneratorExit)


class EndOfCallback(Exception):
    pass


def ender(rng, steps: int, raises: bool) -> Callable:
    """A callback that ends a run at a random step."""
    left = int(rng.integers(1, max(steps, 2)))

    def callback(seen):
        nonlocal left
        left -= 1
        if left <= 0 and raises:
            raise EndOfCallback
        return left <= 0

    return callback


def resumable(rng) -> Case:
    """A case whose run can be repeated: no noise, and a checkpoint."""
    case = Case(rng)
    while not case.resumes or case.noise:
        case = Case(rng)
    return case


def same_ending(one, other) -> bool:
    """Whether two runs ended alike: the bits of y, and what is said of it."""
    alike = np.array_equal(one.y, other.y) and one.status == other.status
    return alike and one.promise == other.promise


def disk(rng, folder: Path) -> None:
    """A disk that is full, for a while: the run goes on, and what was written is resumed."""
    case = resumable(rng)
    path, unbroken = folder / "disk", case.run(case.meter(), case.loss)
    meter = case.meter()
    case.run(meter, case.loss, path=path, callback=ender(rng, unbroken.nit, False))
    before = path.read_bytes()
    sort = rng.choice(["limit", "folder", "error"])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with failing_disk(str(sort), path, int(rng.integers(1, len(before)))):
            result = case.run(meter, case.loss, path=path)
    check(case, meter, result)
    hold(
        "R3",
        same_ending(result, unbroken),
        result.message,
        "but unbroken:",
        unbroken.message,
    )
    hold(
        "R3",
        any("was not written" in str(w.message) for w in told),
        "no word of a full disk",
    )
    # under a limit of bytes a later, smaller file may have fitted
    kept = sort == "limit" or path.read_bytes() == before
    hold("R3", kept, "the last good file is lost")
    again = case.run(case.meter(), case.loss, path=path)
    hold("R3", same_ending(again, unbroken), "resumed after a full disk:", again.message)


class failing_disk:
    """No byte more than a limit, a folder in the way, or an error at every write."""

    def __init__(self, sort: str, path: Path, size: int):
        self.sort, self.path, self.size = sort, path, size

    def __enter__(self):
        self.save = checkpoint.save
        self.limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        if self.sort == "limit":
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.limits[1]))
        elif self.sort == "folder":
            Path(f"{self.path}.part").unlink(missing_ok=True)
            Path(f"{self.path}.part").mkdir()
        else:
            checkpoint.save = self.full

    def full(self, path, content):
        raise OSError(28, "No space left on device")

    def __exit__(self, *_):
        checkpoint.save = self.save
        resource.setrlimit(resource.RLIMIT_FSIZE, self.limits)
        if self.sort == "folder":
            Path(f"{self.path}.part").rmdir()


def damaged(rng, folder: Path) -> None:
    """A file cut, with bytes turned, or of another run: refused for nothing, and left as it is."""
    case = resumable(rng)
    path, unbroken = folder / "damaged", case.run(case.meter(), case.loss)
    case.run(case.meter(), case.loss, path=path, callback=ender(rng, unbroken.nit, False))
    content = bytearray(path.read_bytes())
    sort = rng.choice(["cut", "turned", "foreign"])
    if sort == "cut":
        content = content[: rng.integers(0, len(content))]
    elif sort == "turned":
        content[rng.integers(len(content))] ^= int(rng.integers(1, 256))
    else:
        path.unlink()
        other = resumable(rng)
        other.run(other.meter(), path=path)
        content = bytearray(path.read_bytes())
    path.write_bytes(content)
    meter = case.meter()
    try:
        result = case.run(meter, case.loss, path=path)
    except ValueError as refused:
        hold("R3", str(path) in str(refused), "which file?", refused)
        hold("R3", path.read_bytes() == content, "the file that was refused is changed")
        hold(
            "R6",
            meter.number == 0 or sort == "foreign",
            f"{meter.number} evaluations are paid",
        )
        return
    hold("R3", sort != "foreign", "another run's file was resumed")
    hold("R3", same_ending(result, unbroken), sort, "a damaged file was resumed")


def killed(rng, folder: Path) -> None:
    """kill -9 in the middle of a run, several times; each evaluation was noted in a file."""
    case = resumable(rng)
    path, journal = folder / "killed", folder / "journal"
    unbroken = case.run(case.meter(), case.loss)
    for _ in range(rng.integers(1, 4)):
        child = os.fork()
        if not child:
            run_until_killed(case, path, journal)
        time.sleep(rng.uniform(0.001, 0.08))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    before = (
        Counter(map(int, journal.read_text().split())) if journal.exists() else Counter()
    )
    meter = case.meter()
    result = case.run(meter, case.loss, path=path)
    hold(
        "R3",
        same_ending(result, unbroken),
        result.message,
        "but unbroken:",
        unbroken.message,
    )
    told = Counter({k: n for k, n in result.evaluations.items() if n})
    hold("R2", told >= meter.calls, "told", told, "made now alone", meter.calls)
    hold("R2", told <= meter.calls + before, "told", told, "made", meter.calls + before)


def run_until_killed(case: Case, path: Path, journal: Path) -> None:
    """In a process of its own, which never comes back."""
    try:
        meter = case.meter()
        meter.journal = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        slow = meter.level

        def level(k, y):
            time.sleep(2e-4)
            return slow(k, y)

        meter.level = level
        case.run(meter, case.loss, path=path)
        time.sleep(1)
    finally:
        os._exit(0)


def extreme(rng, folder: Path) -> None:
    """Units of another world: a result, or a refusal that is a sentence."""
    case = Case(
        rng, unit=NASTY[rng.integers(len(NASTY))], length=NASTY[rng.integers(len(NASTY))]
    )
    for name in ("eps", "eta"):
        if rng.random() < 0.4:
            setattr(case, name, NASTY[rng.integers(len(NASTY))])
    if rng.random() < 0.2:
        case.given = {"radius": NASTY[rng.integers(len(NASTY))]}
    if rng.random() < 0.2:
        price = NASTY[rng.integers(len(NASTY))]
        case.price = lambda k: price
    meter = case.meter()
    try:
        with np.errstate(all="ignore"):
            finite = np.isfinite(case.level(case.levels[0], case.y0)).all()
        result = case.run(meter)
    except REFUSALS as refused:
        hold(
            "R6",
            meter.number <= 2,
            f"refused after {meter.number} evaluations: {refused}",
        )
        hold("R6", "nan" not in str(refused) or not finite, refused)
        return
    check(case, meter, result)


def arguments(rng, folder: Path) -> None:
    """Numbers that mean nothing, given to whatever takes numbers."""
    nasty = [
        *NASTY,
        0,
        -1,
        math.nan,
        math.inf,
        None,
        "1",
        10**400,
        True,
        np.float32(3),
        2,
    ]

    def any_of():
        return nasty[rng.integers(len(nasty))]

    def number():
        return NASTY[rng.integers(len(NASTY))]

    h = Hierarchy(lambda k, y: y + 2.0**-k, lambda k: 8.0**k, range(9), dyadic)
    units, base = (number(), number()), rng.uniform(0.5, 9)
    strange = partial(
        Hierarchy,
        lambda k, y: number() * (y + 2.0 ** -abs(k)),
        lambda k: units[0] * base ** (k % 50),
        sorted({int(k) for k in rng.integers(-60, 60, 6)}),
        lambda k: units[1] * 2.0**-k,
    )
    problem = {"beta": number(), "d0": number(), "gamma": number(), "c": number()}
    y = np.ones(3) * number() / 3
    uses = [
        lambda: Problem(**problem | {str(rng.choice([*problem])): any_of()}),
        lambda: plan(Problem(**problem), number()),
        lambda: plan(
            Problem(**problem, mu=problem["beta"] * rng.random()), number(), "scheduled"
        ),
        lambda: plan(Problem(beta=1, d0=1, gamma=3, c=1), any_of(), on=h),
        lambda: compare(Problem(**problem), number()),
        lambda: Problem(**problem).prices(number()),
        lambda: repr(audit(strange(), [y, 2 * y])),
        lambda: audit(strange(), [y, 2 * y]).problem(beta=number(), d0=number()),
        lambda: constants(strange(), y),
        lambda: minimize(h, y, any_of(), max_cost=any_of(), radius=any_of()).message,
        lambda: (
            flow(h, np.ones(2), [any_of(), 1.0], any_of(), rng=0, max_cost=1e4).message
        ),
        lambda: Plan.by_hand(Telescope(h, [1.0, any_of()]), any_of(), any_of()),
        lambda: Plan.by_hand(Telescope(h, [1.0]), number(), 30).run(
            h, y, rng=0, max_cost=9
        ),
        lambda: Telescope.cheapest(h, number(), [number() for _ in range(4)]),
        lambda: Telescope.for_accuracy(strange(), number(), number(), number()),
        lambda: Telescope(h, [1.0, min(number(), 1.0)]).variance(np.ones(2)),
    ]
    at = rng.integers(len(uses))
    try:
        uses[at]()
    except REFUSALS as refused:
        usual = (
            "math domain error",
            "cannot convert",
            "operands could not",
            "invalid literal",
        )
        hold(
            "R6",
            not str(refused).startswith(usual),
            f"use {at}: {refused}",
        )


KINDS = {
    "plain": (plain, 8),
    "faulty": (faulty, 12),
    "outside": (outside, 8),
    "watched": (watched, 10),
    "chained": (chained, 8),
    "disk": (disk, 3),
    "damaged": (damaged, 6),
    "killed": (killed, 3),
    "runaway": (runaway, 5),
    "extreme": (extreme, 20),
    "arguments": (arguments, 22),
}


# the kind of run 0, 1, ..., and around again
ORDER = [kind for kind, (_, weight) in KINDS.items() for _ in range(weight)]


def numbers(kind: str, count: int) -> list[int]:
    """The first so many runs of a kind."""
    first, weight = ORDER.index(kind), KINDS[kind][1]
    return [first + n // weight * len(ORDER) + n % weight for n in range(count)]


def one(seed: int, number: int) -> tuple[str, str | None]:
    """The kind of a run, and what it found."""
    rng = np.random.default_rng([seed, number])
    kind = ORDER[number % len(ORDER)]
    signal.signal(signal.SIGALRM, late)
    signal.alarm(MOST_SECONDS)
    try:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", message="the checkpoint .* was not written")
            KINDS[kind][0](rng, Path(folder))
    except Finding as found:
        return kind, str(found)
    except BaseException as raised:
        where = traceback.extract_tb(raised.__traceback__)
        own = [frame for frame in where if "mlgd" in frame.filename] or where
        place = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
        return kind, f"{type(raised).__name__} at {place}: {raised}"
    finally:
        signal.alarm(0)
    return kind, None


def late(*_):
    raise Hang(f"more than {MOST_SECONDS} seconds")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=2000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", type=int, help="the number of one run")
    options.add_argument("--kind", choices=[*KINDS], help="runs of one kind alone")
    given = options.parse_args()
    chosen = range(given.runs) if given.only is None else [given.only]
    made, found = Counter(), Counter()
    for number in chosen:
        if given.kind and given.only is None and ORDER[number % len(ORDER)] != given.kind:
            continue
        kind, finding = one(given.seed, number)
        made[kind] += 1
        if finding is not None:
            found[kind] += 1
            print(f"run {number}, {kind}: {finding[:400]}", flush=True)
    print(f"{made.total()} runs ({dict(made)}), {found.total()} findings ({dict(found)})")
    return min(found.total(), 1)


if __name__ == "__main__":
    sys.exit(main())
