"""The small-step limit, event by event: each level fires at its own Poisson rate, without a step.

Per unit of flow time the iteration makes 1/eta calls and draws level k with probability p_k in
each. With p_k = eta rate_k and eta -> 0, level k fires as a Poisson process of rate rate_k, and
each firing moves the iterate by -(A_k - A_{k-})/rate_k: jumps whose size does not shrink. Between
events nothing moves.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .hierarchy import Hierarchy, by_level, positive
from .result import Bill, Result
from .run import Run, State, refuse

BLOCK = 1024  # events are drawn and thinned about this many at a time
SLACK = 1 + 1e-6  # a rate's bound is taken just inside a piece; thinning undoes what is too much


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
        return list(pairwise([0.0, *sorted({t for t in self.breaks if 0 < t < horizon}), horizon]))

    def integral(self, values: Sequence[float], horizon: float) -> float:
        """The integral of sum over levels of value_k rate_k(t): with ones, the events on average.

        Gauss's rule with 16 points on every stretch, exact to rounding for a schedule's rates.
        """
        nodes, weights = np.polynomial.legendre.leggauss(16)
        total = 0.0
        for start, end in self.stretches(horizon):
            half = (end - start) / 2
            rates = self.rates(start + half * (1 + nodes))
            if not ((rates >= 0) & (rates <= self._bounds(start, end)[:, None])).all():
                raise ValueError("rates must be non-negative, monotone between breaks: add breaks")
            total += half * float(np.asarray(values, float) @ rates @ weights)
        return total

    def events(self, horizon: float, rng) -> Iterator[tuple[float, int, float]]:
        """Firings, exact by thinning: the time, the index of the level, its rate then."""
        for start, end in self.stretches(horizon) if horizon else ():
            n = 1 + int(self._bounds(start, end).sum() * (end - start) / BLOCK)
            for low, high in pairwise(np.linspace(start, end, n + 1).tolist()):
                bound = self._bounds(low, high)
                total = np.cumsum(bound)
                times = np.sort(rng.uniform(low, high, rng.poisson(total[-1] * (high - low))))
                which = np.searchsorted(total, rng.random(times.size) * total[-1], side="right")
                rate = self.rates(times)[which, np.arange(times.size)]
                fires = rng.random(times.size) * bound[which] < rate
                columns = (column[fires].tolist() for column in (times, which, rate))
                yield from zip(*columns, strict=True)

    def _bounds(self, start: float, end: float) -> np.ndarray:
        """An upper bound of each rate on a piece that no break divides."""
        inside = 1e-9 * (end - start)
        return self.rates(np.array([start + inside, end - inside])).max(axis=1) * SLACK


@dataclass
class Flow(State):
    """Where a flow is: its path, the time, and the average of the path up to then."""

    mean: np.ndarray | None = None
    time: float = 0.0

    @property
    def output(self) -> np.ndarray:
        return self.mean.copy()

    def steps(self, bill: Bill, schedule: Schedule, horizon: float, rng) -> Iterator[None]:
        """Fire, event by event. Between events the path is constant, so its average is exact."""
        pairs, weight = [bill.h.pair(k) for k in schedule.levels], schedule.weight

        def averaged(t: float) -> np.ndarray:
            """The average up to t: y has stood still since the last event."""
            gap = t - self.time
            share = math.expm1(-weight * gap) / math.expm1(-weight * t) if weight else gap / t
            return self.mean + share * (self.y - self.mean)

        for t, i, rate in schedule.events(horizon, rng):
            *coarse, fine = bill.values(pairs[i], self.y)
            jump = fine - coarse[0] if coarse else fine
            self.mean, self.y, self.time = averaged(t), self.y - jump / rate, t
            yield
        if horizon:
            self.mean = averaged(horizon)
        self.status = "ended"
        self.message = f"flowed for {horizon:g} units of time: nothing is promised of one run"


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
    ('done', True, True)
    """
    refuse(h, loss=loss)
    if isinstance(rates, Schedule):
        schedule = rates
    else:
        given = by_level("rate", rates, h.levels)
        column = np.array([*given.values()])[:, None]
        schedule = Schedule(lambda times: np.repeat(column, np.size(times), axis=1), tuple(given))
    for name, number in (("horizon", horizon), ("weight", schedule.weight)):
        positive(f"the {name}", number, zero=True)
    bill, y = Bill(h.only(schedule.levels), max_cost), h.point(y0)
    events = schedule.integral(np.ones(len(schedule.levels)), horizon)
    run = Run(bill, Flow(y, mean=y), loss, steps=events)
    return run.go(run.state.steps(bill, schedule, horizon, np.random.default_rng(rng)))
