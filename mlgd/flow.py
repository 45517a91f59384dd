"""The small-step limit, event by event: each level fires at its own Poisson rate and there is no step size left.

Per unit of flow time the iteration makes 1/eta calls and draws level k with probability p_k in each. With
p_k = eta rate_k and eta -> 0, level k fires as a Poisson process of rate rate_k, and each firing moves the iterate
by -(A_k - A_{k-})/rate_k: jumps whose size does not shrink. Between events nothing moves.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from . import formulas as F
from .descent import Meter, Result, Trace
from .hierarchy import Hierarchy


@dataclass(frozen=True)
class Schedule:
    """Rates that change with time: `rates(t)` gives one rate a level (0: the level is not used at t).

    `breaks` are the times in (0, horizon) between which every rate is monotone, so that its values at the two ends
    of a stretch bound it: firing is then exact by thinning. `weight` is the growth rate of the average's weights.
    """

    rates: Callable[[float], np.ndarray]
    levels: tuple[int, ...]
    breaks: tuple[float, ...] = ()
    weight: float = 0.0


def constant_rates(h: Hierarchy, delta: float, nu2: float, gamma: float, coarsest: float = 0.0) -> dict[int, float]:
    """Rates of bias at most delta and variance at most nu2 per unit time (Proposition 1 with p = eta rate, eta -> 0).

    There is no clamp: rate_k = C acc_k^(1+gamma/2) with C = sum over levels of 9 acc_k^(1-gamma/2) / nu2. `coarsest` is the
    least rate of the coarsest level, whose value is not an increment: give it a few times beta.
    """
    levels = h.levels[: h.levels.index(h.level_for(delta)) + 1]
    accuracy = np.array([h.accuracy(k) for k in levels])
    rates = _scale(accuracy, nu2, gamma) * accuracy ** (1 + gamma / 2)
    rates[0] = max(rates[0], coarsest)
    return dict(zip(levels, rates.tolist(), strict=True))


def _scale(accuracy, nu2, gamma) -> float:
    return 9 * float((accuracy ** (1 - gamma / 2)).sum()) / nu2


def proposition_schedule(
    h: Hierarchy, mu: float, eps: float, gamma: float, horizon: float, coarsest: float = 0.0, relax: float = 1.0
) -> Schedule:
    """Proposition 2: delta(t) and nu^2(t) relaxed backwards in time, weights e^(mu t/2).

    `relax` divides both delta^2 and nu^2 (the chapter's repair of the injection step).
    """
    levels = h.levels[: h.levels.index(h.level_for(math.sqrt(mu * eps / 8 / relax))) + 1]
    accuracy = np.array([h.accuracy(k) for k in levels])
    delta = lambda t: F.value(F.SCHEDULE["delta"], mu=mu, eps=eps, horizon=horizon, t=t) / math.sqrt(relax)  # noqa: E731
    nu2 = lambda t: F.value(F.SCHEDULE["nu2"], eps=eps, mu=mu, horizon=horizon, t=t) / relax  # noqa: E731

    def rates(t):
        used = max(1, int((accuracy > delta(t) * (1 + 1e-12)).sum()) + 1)
        used = min(used, len(levels))
        out = np.zeros(len(levels))
        out[:used] = _scale(accuracy[:used], nu2(t), gamma) * accuracy[:used] ** (1 + gamma / 2)
        out[0] = max(out[0], coarsest)
        return out

    # the finest level in use changes when delta(t) passes an accuracy; between, rates grow or stay
    changes = [horizon + 8 / mu * math.log(math.sqrt(mu * eps / 8 / relax) / a) for a in accuracy]
    grid = np.linspace(0, horizon, max(2, math.ceil(mu * horizon)) + 1)[1:-1]
    breaks = tuple(sorted(t for t in (*changes, *grid) if 0 < t < horizon))
    return Schedule(rates, levels, breaks, weight=mu / 2)


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
    """Run the jump process for a flow time `horizon`; the result's y is the average with weights e^(weight t).

    `rates`: {level: rate} or a sequence for the first levels (constant), or a Schedule. The average is exact: the
    path is constant between events. `steps` of the result counts events; its trace is indexed by event.
    """
    schedule = _as_schedule(h, rates, weight)
    if not (math.isfinite(horizon) and horizon >= 0):
        raise ValueError(f"the horizon must be finite and non-negative; got {horizon!r}")
    y = h.check(y0, levels=schedule.levels)
    rng = np.random.default_rng(rng)
    meter, run = Meter(h), _Average(y, schedule.weight if weight is None else weight)
    rows, events, status = [(0, 0.0, float(loss(y)) if loss else math.nan)], 0, "done"
    message = f"flowed for {horizon:g} units of time"
    ends = [*schedule.breaks, horizon]
    start = 0.0
    for end in ends:
        inside = (start + 1e-9 * (end - start), end - 1e-9 * (end - start))
        bound = np.maximum(schedule.rates(inside[0]), schedule.rates(inside[1]))
        total = float(bound.sum())
        now = start
        while total > 0:
            now += rng.exponential() / total
            if now >= end:
                break
            i = int(np.searchsorted(np.cumsum(bound), rng.random() * total))
            rate = float(schedule.rates(now)[i])
            if rng.random() * bound[i] >= rate:
                continue
            run.advance(now)
            y -= h.step(schedule.levels[i], y) / rate
            for k in _paid(h, schedule.levels[i]):
                meter.charge(k)
            events += 1
            if not np.isfinite(y).all() or events >= max_events:
                status = "diverged" if events < max_events else "budget"
                message = f"ended at time {now:.4g} after {events} events: " + (
                    "the iterate is not finite; raise the rates" if status == "diverged" else "max_events reached"
                )
                break
        if status != "done":
            break
        start = end
    if status == "done":
        run.advance(horizon)
    output = run.value()
    rows.append((events, meter.total, float(loss(output)) if loss else math.nan))
    step, cost, recorded = (np.array(column) for column in zip(*rows, strict=True))
    return Result(output, meter.total, meter.by_level, events, status, message, Trace(step, cost, recorded))


def _paid(h: Hierarchy, k: int) -> tuple[int, ...]:
    previous = h.before(k)
    return (k,) if previous is None or h.increment is not None else (k, previous)


def _as_schedule(h, rates, weight) -> Schedule:
    if isinstance(rates, Schedule):
        return rates
    pairs = dict(rates) if isinstance(rates, Mapping) else dict(zip(h.levels, rates, strict=False))
    levels = tuple(sorted(pairs))
    if levels != h.levels[: len(levels)] or not levels:
        raise ValueError(f"rates must be given for an initial run of the levels {h.levels}; got {levels}")
    values = np.array([float(pairs[k]) for k in levels])
    bad = [(k, v) for k, v in zip(levels, values, strict=True) if not (v > 0 and math.isfinite(v))]
    if bad:
        raise ValueError(f"rates must be positive and finite; got {bad[0][1]!r} at level {bad[0][0]}")
    return Schedule(lambda t: values, levels, weight=weight or 0.0)


class _Average:
    """The average of a piecewise constant path with weights e^(w t), exact between events."""

    def __init__(self, y: np.ndarray, w: float):
        self.y, self.w, self.now, self.mass, self.mean = y, w, 0.0, 0.0, y.copy()

    def advance(self, t: float) -> None:
        """Account for the path staying at y from the last event to time t (masses relative to the latest weight)."""
        span = t - self.now
        gain = -math.expm1(-self.w * span) / self.w if self.w else span
        self.mass = self.mass * math.exp(-self.w * span) + gain
        if self.mass > 0:
            self.mean += (self.y - self.mean) * (gain / self.mass)
        self.now = t

    def value(self) -> np.ndarray:
        return self.mean if self.mass > 0 else self.y.copy()
