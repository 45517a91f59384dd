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
from numbers import Integral, Real

import numpy as np

from .bill import Bill, Result, State, Stop
from .checkpoint import Run
from .descent import refuse
from .hierarchy import Hierarchy, positive, shown

BLOCK = 1024  # events are drawn and thinned about this many at a time
SLACK = 1 + 1e-6  # a rate's bound is taken just inside a piece; thinning undoes what is too much


@dataclass(frozen=True)
class Schedule:
    """Rates that change with time: `rates(times)`, a row per level and a column per time.

    `breaks` are the times between which every rate is monotone and smooth, so that its values at
    the two ends of a piece bound it: firing is then exact by thinning. `weight` is the growth rate
    of the average's weights.
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
            total += half * float(np.asarray(values, float) @ rates @ weights)
        return total

    def expected_cost(self, h: Hierarchy, horizon: float) -> float:
        """The mean price of a flow: an event at level k evaluates k and the level before it."""
        h = h.only(self.levels)
        return self.integral([h.step_cost(k) for k in self.levels], horizon)

    def events(self, horizon: float, rng) -> Iterator[tuple[np.ndarray, ...]]:
        """Firings, exact by thinning, in blocks: times, the index of each level, its rate then."""
        for start, end in self.stretches(horizon) if horizon else ():
            n = max(1, math.ceil(float(self._bounds(start, end).sum()) * (end - start) / BLOCK))
            for low, high in pairwise(np.linspace(start, end, n + 1).tolist()):
                bound = self._bounds(low, high)
                total = np.cumsum(bound)
                times = np.sort(rng.uniform(low, high, rng.poisson(total[-1] * (high - low))))
                which = np.searchsorted(total, rng.random(times.size) * total[-1], side="right")
                rate = self.rates(times)[which, np.arange(times.size)]
                fires = rng.random(times.size) * bound[which] < rate
                yield times[fires], which[fires], rate[fires]

    def _bounds(self, start: float, end: float) -> np.ndarray:
        """An upper bound of each rate on a piece that no break divides."""
        inside = 1e-9 * (end - start)
        return self.rates(np.array([start + inside, end - inside])).max(axis=1) * SLACK


def proposition_schedule(
    h: Hierarchy, mu: float, eps: float, gamma: float, horizon: float, coarsest: float = 0.0
) -> Schedule:
    """The paper's Proposition 2: bias delta(t) and variance nu^2(t), relaxed backwards in time.

    Mean loss at most eps with coarsest = 4 beta, the least rate of the coarsest level, and a
    horizon of at least (2/mu) log(1 + 2 mu d0^2/eps): the form the chapter proves.

    >>> from mlgd.examples import biased
    >>> h = biased(lambda y: y, gamma=3, c=1, levels=range(1, 8))
    >>> s = proposition_schedule(h, mu=1.0, eps=0.5, gamma=3, horizon=4.0)
    >>> s.levels, s.weight, bool(s.rates(4.0).sum() > s.rates(0.0).sum())
    ((1, 2), 0.5, True)
    """
    from . import formulas

    mu, eps, gamma = positive("mu", mu), positive("eps", eps), positive("gamma", gamma)
    if not coarsest >= 0:
        raise ValueError(f"coarsest must be at least 0; got {coarsest!r}")

    def backwards(name: str) -> tuple[float, float]:
        """One of the formulas as end * exp(growth * (horizon - t))."""
        known = {"mu": mu, "eps": eps, "horizon": 1 / mu}
        first, end = (formulas.value(formulas.SCHEDULE[name], **known, t=t) for t in (0.0, 1 / mu))
        return end, mu * math.log(first / end)

    (delta, relaxed), (nu2, growth) = backwards("delta"), backwards("nu2")
    levels = h.levels[: h.levels.index(h.level_for(delta)) + 1]
    accuracy = np.array([h.accuracy(k) for k in levels])
    shape = accuracy ** (1 + gamma / 2)
    scale = 9 * np.cumsum(accuracy ** (1 - gamma / 2)) / nu2  # by the number of levels in use
    rank = np.arange(len(levels))[:, None]

    def rates(times):
        left = horizon - np.asarray(times, float)
        allowed = delta * np.exp(relaxed * left) * (1 + 1e-12)
        last = np.minimum((accuracy[:, None] > allowed).sum(axis=0), len(levels) - 1)
        out = np.where(rank <= last, shape[:, None] * (scale[last] * np.exp(-growth * left)), 0.0)
        np.maximum(out[0], coarsest, out=out[0])
        return out

    # the finest level changes when delta(t) passes an accuracy, and the coarsest has its floor;
    # and no stretch is so long that a rate grows manyfold in it
    changes = [math.log(a / delta) / relaxed for a in accuracy]
    if coarsest:
        changes += [math.log(s * shape[0] / coarsest) / growth for s in scale]
    pieces = math.ceil(2 * max(relaxed, growth, mu / 2) * horizon) + 1
    changes += np.linspace(0, horizon, pieces).tolist()
    breaks = tuple(sorted(t for t in (horizon - left for left in changes) if 0 < t < horizon))
    return Schedule(rates, levels, breaks, weight=mu / 2)


@dataclass
class Flow(State):
    """Where a flow is: its path, the time, and the average of the path up to then."""

    time: float = 0.0
    mean: np.ndarray | None = None

    @property
    def output(self) -> np.ndarray:
        return self.y.copy() if self.mean is None else self.mean.copy()

    def steps(
        self, bill: Bill, schedule: Schedule, horizon: float, weight: float, most: int, rng
    ) -> Iterator[None]:
        """Fire, event by event. Between events the path is constant, so its average is exact."""
        pairs = [[j for j in (bill.h.before(k), k) if j is not None] for k in schedule.levels]
        self.mean = self.y.copy()

        def shares(times: np.ndarray) -> np.ndarray:
            """Of the average up to each time: what the stretch since the one before it weighs."""
            gaps = np.diff(times, prepend=self.time)
            return np.expm1(-weight * gaps) / np.expm1(-weight * times) if weight else gaps / times

        for times, which, rate in schedule.events(horizon, rng):
            columns = (column.tolist() for column in (times, which, rate, shares(times)))
            for t, i, r, share in zip(*columns, strict=True):
                if self.step == most:
                    raise Stop("budget", f"max_events were made by time {self.time:.4g}")
                values = bill.values(pairs[i], self.y)
                jump = values[-1] - values[0] if len(values) > 1 else values[0]
                self.mean += share * (self.y - self.mean)
                self.y, self.time = self.y - jump / r, t
                self.y.flags.writeable = False
                yield
        if horizon:
            self.mean += shares(np.array([horizon]))[0] * (self.y - self.mean)
        self.message = f"flowed for {horizon:g} units of time: nothing is promised of one run"


def flow(
    h: Hierarchy,
    y0: np.ndarray,
    rates: Mapping[int, float] | Sequence[float] | Schedule,
    horizon: float,
    rng=None,
    weight: float | None = None,
    loss: Callable[[np.ndarray], float] | None = None,
    max_events: int = 10_000_000,
) -> Result:
    """Run the jump process for a flow time `horizon`; y is the average with weights e^(weight t).

    `rates`: {level: rate} or a sequence for the first levels (constant), or a Schedule. `steps` of
    the result counts events; its trace is indexed by event. A level that fails ends the run with
    status 'failed' and the average up to then; an interrupt carries it as `.result`.

    >>> from mlgd.examples import biased
    >>> h = biased(lambda y: y - 1, gamma=3, c=1, levels=range(1, 5))
    >>> run = flow(h, np.zeros(1), {1: 40.0, 2: 10.0}, horizon=8.0, rng=0, weight=0.5)
    >>> run.status, run.nit > 300, bool(abs(run.x[0] - 0.75) < 0.2)
    ('done', True, True)
    """
    refuse(h, loss=loss)
    schedule = rates if isinstance(rates, Schedule) else _constant(h, rates)
    if unknown := [k for k in schedule.levels if k not in h.levels]:
        raise ValueError(f"the schedule uses levels {unknown}, and the hierarchy has {h.levels}")
    if schedule.levels != h.levels[: len(schedule.levels)]:
        h = h.only(schedule.levels)  # an increment reaches back to the level used before
    weight = schedule.weight if weight is None else weight
    for name, given in (("horizon", horizon), ("weight", weight)):
        if not (isinstance(given, Real) and math.isfinite(given) and given >= 0):
            raise ValueError(f"the {name} must be finite and non-negative; got {given!r}")
    if not (isinstance(max_events, Integral) and max_events >= 1):
        raise ValueError(f"max_events must be an integer of at least 1; got {max_events!r}")
    state, rng = Flow(h.point(y0)), np.random.default_rng(rng)
    state.y.flags.writeable = False
    run = Run(Bill(h), state, loss, steps=schedule.integral(np.ones(len(schedule.levels)), horizon))
    return run.go(state.steps(run.bill, schedule, horizon, weight, max_events, rng))


def _constant(h: Hierarchy, rates: Mapping[int, float] | Sequence[float]) -> Schedule:
    """A schedule of rates that do not change, for the first levels."""
    try:
        levels, listed = h.levels[: len(rates)], not isinstance(rates, Mapping)
        pairs = dict(zip(levels, rates, strict=True)) if listed else rates
        fine = levels and pairs.keys() == {*levels}
    except (TypeError, ValueError):
        fine = False
    if not fine:
        what = f"{{level: rate}} or a list, for the first levels of {h.levels}, or a Schedule"
        raise ValueError(f"rates must be {what}; got {shown(rates)}")
    values = np.array([[positive(f"the rate of level {k}", pairs[k])] for k in levels])
    return Schedule(lambda times: np.repeat(values, np.size(times), axis=1), levels)
