"""The jump process: descent in the limit of small steps, event by event (the paper's Section 3.1).

In one unit of flow time the iteration makes 1/eta calls and draws level k with probability p_k in
each. With p_k = eta rate_k and eta -> 0, level k fires as a Poisson process of rate rate_k, and
each firing moves the iterate by -(A_k - A_{k-})/rate_k: jumps whose size does not shrink. Between
events nothing moves, so there is no step size left to choose.

`Schedule` holds the rates, which may change with time, and draws the events; `Flow` is the state of
a run and moves it from event to event; `flow` is the call that a user makes.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .hierarchy import Hierarchy, by_level, positive, shown
from .result import Bill, Result
from .run import Run, State, refuse

# candidates for an event are drawn about this many at a time: a bound on memory
BLOCK = 1024
# a rate's bound is taken just inside a piece; thinning undoes what is too much
SLACK = 1 + 1e-6
# of Gauss's rule on a stretch: exact to rounding for the exponentials of a schedule
NODES = 16


@dataclass(frozen=True)
class Schedule:
    """Rates that change with time: `rates(times)`, a row per level and a column per time.

    `breaks` are the times between which every rate is monotone and smooth, so that its values at
    the two ends of a piece bound it: firing is then exact by thinning. The path is averaged with
    weights e^(weight t).
    """

    rates: Callable[[np.ndarray], np.ndarray]
    levels: tuple[int, ...]
    breaks: tuple[float, ...] = ()
    weight: float = 0.0

    def stretches(self, horizon: float) -> list[tuple[float, float]]:
        """The horizon, cut at the breaks."""
        inside = {t for t in self.breaks if 0 < t < horizon}
        return list(pairwise([0.0, *sorted(inside), horizon]))

    def at(self, times: np.ndarray) -> np.ndarray:
        """The rates at some times, or a refusal."""
        given = self.rates(times)
        shape = (len(self.levels), times.size)
        try:
            read = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            read = np.empty(0)
        if read.shape != shape:
            raise ValueError(
                f"rates(times) must return a row per level and a column per time, here {shape}; "
                f"got {shown(given)}"
            )
        return read

    def integral(self, values: Sequence[float], horizon: float) -> float:
        """The integral of sum over levels of value_k rate_k(t): with ones, the events on average.

        Gauss's rule on every stretch, exact to rounding for a schedule's rates.
        """
        values = np.asarray(values, float)
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        total = 0.0
        for start, end in self.stretches(horizon):
            half = (end - start) / 2
            rates = self.at(start + half * (1 + nodes))
            bounded = rates <= self._bounds(start, end)[:, None]
            if not (bounded & (rates >= 0)).all():
                needed = "rates must be non-negative, monotone between breaks"
                raise ValueError(f"{needed}: add breaks")
            with np.errstate(over="ignore"):
                total += half * float(values @ rates @ weights)
        return total

    def events(self, horizon: float, rng) -> Iterator[tuple[float, int, float]]:
        """Firings in their order: the time, the index of the level, its rate then."""
        if not horizon:
            return
        for start, end in self.stretches(horizon):
            expected = self._bounds(start, end).sum() * (end - start)
            number = 1 + int(expected / BLOCK)
            for low, high in _pieces(start, end, number):
                yield from self._fired(low, high, rng)

    def _fired(self, low: float, high: float, rng) -> Iterator[tuple[float, int, float]]:
        """The firings within a piece, exact by thinning.

        Candidates fire at the rates' bounds, which are constant; each is kept with the probability
        that its rate has of its bound.
        """
        bound = self._bounds(low, high)
        total = np.cumsum(bound)
        number = rng.poisson(total[-1] * (high - low))
        times = np.sort(rng.uniform(low, high, number))
        which = rng.random(number) * total[-1]
        level = np.searchsorted(total, which, side="right")
        rate = self.at(times)[level, np.arange(number)]
        kept = rng.random(number) * bound[level] < rate
        times = times[kept].tolist()
        level = level[kept].tolist()
        return zip(times, level, rate[kept].tolist(), strict=True)

    def _bounds(self, start: float, end: float) -> np.ndarray:
        """An upper bound of each rate on a piece that no break divides."""
        inside = 1e-9 * (end - start)  # at a break itself a rate may jump
        ends = np.array([start + inside, end - inside])
        return self.at(ends).max(axis=1) * SLACK


def constant(rates: Mapping[int, float]) -> Schedule:
    """The schedule whose rates, {level: rate}, stay as they are."""
    column = np.array([*rates.values()])[:, None]

    def repeated(times: np.ndarray) -> np.ndarray:
        return np.repeat(column, np.size(times), axis=1)

    return Schedule(repeated, tuple(rates))


def _pieces(start: float, end: float, number: int) -> Iterator[tuple[float, float]]:
    """So many equal pieces of a stretch, one at a time: there may be too many for a list."""
    length = (end - start) / number
    low = start
    for i in range(1, number):
        high = start + i * length
        yield low, high
        low = high
    yield low, end


@dataclass
class Flow(State):
    """Where a flow is: its path, the time, and the average of the path up to then."""

    mean: np.ndarray | None = None
    time: float = 0.0

    @property
    def output(self) -> np.ndarray:
        return self.mean.copy()

    def steps(self, bill: Bill, schedule: Schedule, horizon: float, rng):
        """Fire, event by event: a generator, as every method's steps are."""
        weight = schedule.weight
        pairs = [bill.h.pair(k) for k in schedule.levels]
        for time, level, rate in schedule.events(horizon, rng):
            *coarse, fine = bill.values(pairs[level], self.y)
            increment = fine - coarse[0] if coarse else fine
            self.mean = self.averaged(time, weight)
            with np.errstate(
                over="ignore", invalid="ignore"
            ):  # the run sees that it diverges
                self.y = self.y - increment / rate
            self.time = time
            yield
        if horizon:
            self.mean = self.averaged(horizon, weight)
        self.status = "ended"
        flowed = f"flowed for {horizon:g} units of time"
        self.message = f"{flowed}: nothing is promised of one run"

    def averaged(self, now: float, weight: float) -> np.ndarray:
        """The average of the path from 0 to now, exact: y has stood still since the last event."""
        still = now - self.time
        if weight:
            share = math.expm1(-weight * still) / math.expm1(-weight * now)
        else:
            share = still / now
        with np.errstate(over="ignore", invalid="ignore"):
            return self.mean + share * (self.y - self.mean)


def flow(
    h: Hierarchy,
    y0: np.ndarray,
    rates: Mapping[int, float] | Sequence[float] | Schedule,
    horizon: float,
    rng=None,
    loss: Callable[[np.ndarray], float] | None = None,
    max_cost: float | None = None,
) -> Result:
    """Run the jump process for a flow time `horizon`; y is the average of the path.

    `rates`: {level: rate} or a sequence for the first levels (constant), or a Schedule. `steps` of
    the result counts events; its trace is indexed by event. A level that fails ends the run with
    status 'failed' and the average up to then; an interrupt carries it as `.result`.

    >>> from mlgd.examples import biased
    >>> h = biased(lambda y: y - 1, gamma=3, c=1, levels=range(1, 5))
    >>> run = flow(h, np.zeros(1), {1: 40.0, 2: 10.0}, horizon=8.0, rng=0)
    >>> run.status, run.nit > 300, bool(abs(run.x[0] - 0.75) < 0.2)
    ('ended', True, True)
    """
    refuse(h, loss=loss)
    if isinstance(rates, Schedule):
        schedule = rates
    else:
        schedule = constant(by_level("rate", rates, h.levels))
    horizon = positive("the horizon", horizon, zero=True)
    positive("the weight", schedule.weight, zero=True)
    bill = Bill(h.only(schedule.levels), max_cost)
    start = h.point(y0)
    rng = np.random.default_rng(rng)
    state = Flow(start, mean=start)
    events = schedule.integral(np.ones(len(schedule.levels)), horizon)
    positive("the number of events, rates times horizon,", events, zero=True)
    run = Run(bill, state, loss, steps=events)
    return run.go(state.steps(bill, schedule, horizon, rng))
