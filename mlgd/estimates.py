"""What a plan needs to know of the loss, from its coarse levels alone: curvature, distance, and how errors spread.

Differences of a coarse gradient are products with its Hessian. Lanczos, started at a random vector, at the gradient
and at increments, turns some dozens of them into beta, mu, d0 and the spectral measures that decide a price.
All of it is local: it describes the loss around y0 as if it were quadratic there.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from .curvature import distance, first_length
from .hierarchy import Hierarchy, generator, positive, shown
from .spectra import Krylov, Measure, Measures, lanczos

PRODUCTS = 60  # per measured vector, at least: enough for the price of a plan at condition numbers of 1e4
MOST = 500  # and at most, where they cost next to nothing
SHARE = 0.02  # of one finest gradient: what the products may cost in all before they are held to the least
DRIFT = 1e-4  # of the curvature: what finer levels may change it by, for a level to stand for them
INCREMENTS = 4  # levels whose increments are measured, at most
VECTORS = 2 + INCREMENTS  # with a random one and the gradient
CLEAR = 1e-3  # of the largest eigenvalue: asymmetry below this is not worth a longer distance
CLEAN = 0.02  # how far products at two distances may disagree, for a level to be taken at once
GARBAGE = 0.3  # of the curvature: where errors hide this much of it no measure is given
RISK = 1e-3  # the chance that beta lies above its range, for a quadratic


class Range(NamedTuple):
    """A number with the ends it lies between."""

    low: float
    best: float
    high: float

    def __str__(self) -> str:
        return f"{self.best:.3g} ({self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True, eq=False)
class Scale:
    """What `estimate` found; `cost` is what it paid, `notes` what it cannot know.

    `level` is the one whose gradient was differenced, at distance `step`; eigenvalues below `resolution` drown in the
    noise of its differences. `reached` is the minimizer of the quadratic model, a start for free.
    """

    beta: Range
    mu: Range
    d0: Range
    measures: Measures | None
    level: int
    step: float
    resolution: float
    reached: np.ndarray
    evaluations: dict[int, int]
    cost: float
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        paid = ", ".join(f"{n} at level {k}" for k, n in sorted(self.evaluations.items()))
        rows = [f"{name:5s}= {getattr(self, name)}" for name in ("beta", "mu", "d0")]
        return "\n".join([*rows, f"paid {self.cost:.4g}: {paid} evaluations", *(f"! {note}" for note in self.notes)])


def estimate(h: Hierarchy, y0: np.ndarray, rng=None, *, known=None, budget: float | None = None) -> Scale:
    """beta, mu and d0 with ranges, and the spectral measures, from coarse levels: about sixty products per vector.

    `known`, an audit with y0 among its points, is not paid again: the gradient and the increments are measured at its
    finest levels. Products are taken at the coarsest level that they fit the `budget` at (2% of the finest gradient
    unless given) and that finer levels change little, by the audit's word; without it at the coarsest, or at the
    finest that fits a budget given. A level whose differences at two distances disagree is passed over.

    >>> curvature = np.logspace(-2, 0, 20)
    >>> h = Hierarchy(lambda k, y: curvature * (y - 1) + 0.1 * 2.0**-k, cost=lambda k: 8.0**k, levels=range(6))
    >>> scale = estimate(h, np.zeros(20), rng=0)
    >>> scale.beta.low <= 1 <= scale.beta.high, scale.mu.low <= 0.01 <= scale.mu.high * (1 + 1e-9), scale.level
    (True, True, 0)
    """
    if not isinstance(h, Hierarchy):
        raise ValueError(f"estimate measures a Hierarchy; got {shown(h)}")
    y0, rng = h.point(y0), generator(rng)
    if budget is not None:
        budget = positive("budget", budget)
    if known is not None and not hasattr(known, "values"):
        raise ValueError(f"known must be an audit, as audit(h, [y0]) returns; got {shown(known)}")
    meter = Meter(h, y0, known)
    differences = _choose(meter, rng, known, budget)
    level, most = differences.level, _products(meter, differences.level, budget)
    steps = meter.increments(level)
    g = meter.start(max([level, *meter.at_start]))  # of the finest level that is paid for: its bias is the smallest
    if not g.any():
        raise ValueError(f"the gradient of level {level} at y0 is zero: start elsewhere, nothing can be measured here")
    differences, random = _symmetric(differences, rng.standard_normal(y0.size), most)
    start = lanczos(differences, g.ravel(), most, 0.01)
    for _ in range(3):  # over the distance to the model's minimizer, errors that jump from point to point count less
        if not CLEAR * start.measure.nodes[-1] < start.asymmetry < start.measure.nodes[-1]:
            break
        far = float(np.linalg.norm(start.solve(np.maximum(start.measure.nodes, start.asymmetry))))
        longer = distance(partial(meter.known, level), y0, g, max(far, differences.step))
        if longer.length < 2 * differences.step:
            break
        differences = Differences(meter, level, longer.length, longer.off)
        random, start = (lanczos(differences, v, most, 0.01) for v in (random.basis[0], g.ravel()))
    increments = {k: lanczos(differences, d.ravel(), most, 0.01) for k, d in steps.items()}
    runs = [random, start, *increments.values()]
    beta, mu, resolution = _ends(runs, random, differences.noise, y0.size)
    high, low = _drift(
        differences, known, max(runs, key=lambda r: r.measure.nodes[-1]), min(runs, key=lambda r: r.measure.nodes[0])
    )
    beta = Range(max(0.0, beta.low - (high or 0.0)), beta.best, beta.high + (high or 0.0))
    mu = Range(max(0.0, mu.low - (low or 0.0)), mu.best, mu.high + (low or 0.0))
    measures = Measures(
        _cut(start.measure, resolution), {k: _cut(r.measure, resolution) for k, r in increments.items()}, level, mu.low
    )
    reached, off = _reached(differences, start, resolution, g)
    d0 = _distance(measures, mu.low, off)
    if not resolution < GARBAGE * beta.best:  # nothing is known then, and the ranges say so
        beta, mu, d0 = (Range(0.0, x.best, math.inf) for x in (beta, mu, d0))
        measures, reached = None, y0.copy()
    bottom = min(r.least[0] for r in runs)
    notes = _notes(level, beta, mu, d0, resolution, off, low, bottom)
    return Scale(beta, mu, d0, measures, level, differences.step, resolution, reached, meter.count, meter.cost, notes)


class Meter:
    """Values at y0 and elsewhere, each paid once and counted; those that an audit has are free."""

    def __init__(self, h: Hierarchy, y0: np.ndarray, known):
        self.h, self.y0, self.count, self.cost = h, y0, {}, 0.0
        self.at_start = {}
        for i, point in enumerate(known.points if known is not None else ()):
            if point.shape == y0.shape and (point == y0).all():
                self.at_start = {k: v[i] for k, v in known.values.items() if k in h.levels}
        self.dearest = h.cost(max(self.at_start, default=h.levels[-1]))

    def value(self, k: int, y: np.ndarray) -> np.ndarray:
        self.count[k] = self.count.get(k, 0) + 1
        self.cost += self.h.cost(k)
        return self.h.value(k, y)

    def start(self, k: int) -> np.ndarray:
        if k not in self.at_start:
            self.at_start[k] = self.value(k, self.y0)
        return self.at_start[k]

    def known(self, k: int, y: np.ndarray) -> np.ndarray:
        return self.start(k) if y is self.y0 else self.value(k, y)

    def increments(self, level: int) -> dict[int, np.ndarray]:
        """Increments at y0: those that are paid for, or else those whose levels cost no more than the products do."""
        levels, allowed = self.h.levels, INCREMENTS * PRODUCTS * self.h.cost(level)
        affordable, spent = [], 0.0
        for k in levels:
            spent += 0.0 if k in self.at_start else self.h.cost(k)
            if (k in self.at_start and self.h.before(k) in self.at_start) or spent <= allowed:
                affordable.append(k)
        pairs = [(self.h.before(k), k) for k in affordable[-INCREMENTS:] if self.h.before(k) is not None]
        found = {k: self.start(k) - self.start(j) for j, k in pairs if j in affordable}
        return {k: d for k, d in found.items() if np.linalg.norm(d) > 1e-13 * np.linalg.norm(self.start(k))}


@dataclass
class Differences:
    """v -> (A_k(y0 + t v) - A_k(y0))/t for unit v; `noise` is what two steps t disagree by, as a share."""

    meter: Meter
    level: int
    step: float
    noise: float = math.inf

    def __call__(self, v: np.ndarray) -> np.ndarray:
        meter, y0 = self.meter, self.meter.y0
        moved = meter.value(self.level, y0 + self.step * v.reshape(y0.shape))
        return (moved - meter.start(self.level)).ravel() / self.step


def _choose(meter: Meter, rng, known, budget: float | None) -> Differences:
    """The level to difference, chosen so that half the distance gives the same product."""
    h, allowed = meter.h, SHARE * meter.dearest if budget is None else budget
    fits = [k for k in h.levels if VECTORS * PRODUCTS * h.cost(k) <= allowed] or h.levels[:1]
    first = fits[0] if budget is None else fits[-1]
    if known is not None and not np.isnan(known.change).any():
        clear = [k for k in fits if _change_after(known, k) <= DRIFT * known.change[0]]
        first = clear[0] if clear else fits[-1]
    best = None
    for level in h.levels[h.levels.index(first) :]:
        if best is not None and (best.noise <= CLEAN or PRODUCTS * h.cost(level) > meter.dearest):
            break
        found = _near(meter, level, rng)
        if best is None or found.noise < best.noise:
            best = found
    return best


def _near(meter: Meter, level: int, rng) -> Differences:
    """Over the length of a gradient step or less, along the gradient and a little of everything."""
    y0, g = meter.y0, meter.start(level)
    size = max(float(np.linalg.norm(v)) for v in meter.at_start.values())  # at a coarse minimizer the finer ones tell
    direction = g / np.linalg.norm(g) if g.any() else np.zeros_like(y0)
    direction = direction + rng.standard_normal(y0.shape) / math.sqrt(y0.size)
    gradient = partial(meter.known, level)
    longest = first_length(gradient, y0, direction * (size / np.linalg.norm(direction)))
    if not longest:
        return Differences(meter, level, 1.0)
    found = distance(gradient, y0, direction, longest)
    return Differences(meter, level, found.length, found.off)


def _products(meter: Meter, level: int, budget: float | None) -> int:
    """How many products per vector: what the budget gives, within limits, one of them the work of orthogonalizing."""
    allowed = SHARE * meter.dearest if budget is None else budget
    most = min(MOST, int(math.sqrt(1e10 / meter.y0.size)))
    return max(PRODUCTS, min(most, int(min(allowed / (VECTORS * meter.h.cost(level)), MOST))))


def _change_after(known, level: int) -> float:
    """How much the levels after this one change the curvature, by an audit's word."""
    return float(sum(c for k, c in zip(known.levels, known.change, strict=True) if k > level))


def _symmetric(differences: Differences, v: np.ndarray, most: int) -> tuple[Differences, Krylov]:
    """Lanczos from a random v, and once more with a much smaller distance where products are far from symmetric.

    They are so where the loss bends within the distance in directions that the choice of the distance did not try.
    """
    found = lanczos(differences, v, most, 0.002)
    if found.asymmetry > CLEAN * np.abs(found.measure.nodes).max():
        closer = replace(differences, step=differences.step / 100)
        again = lanczos(closer, v, most, 0.002)
        if again.asymmetry < 0.5 * found.asymmetry:
            return closer, again
    return differences, found


def _ends(runs: list[Krylov], random: Krylov, noise: float, size: int) -> tuple[Range, Range, float]:
    """beta, mu, and the eigenvalue below which nothing is resolved.

    Ritz values lie inside the spectrum. Its upper end is missed, with probability 1 - RISK, by at most a share
    (log(1.648 sqrt(d)/RISK)/(2 n - 1))^2 after n products from a random start (Kuczynski and Wozniakowski, 1992).
    For the lower end that says little; its range goes down by twice the residual of the smallest Ritz value, within
    one of which an eigenvalue must lie. What is not symmetric, or negative, is an error of the products, and hides as much.
    """
    top = max(1e-300, *(float(r.measure.nodes.max()) for r in runs))
    n = random.measure.nodes.size
    missed = 0.0 if random.complete else (math.log(1.648 * math.sqrt(size) / RISK) / (2 * n - 1)) ** 2
    bottom = min(r.least[0] for r in runs)
    hidden = max(noise * top, 1e-15 * top, -bottom, *(r.asymmetry for r in runs))
    least, residual = min(r.least for r in runs)
    low = least - 2 * residual - hidden
    seen = max(bottom, hidden)
    return Range(top - hidden, top, top / (1 - min(missed, 0.5)) + hidden), Range(max(low, 0.0), seen, seen), hidden


def _cut(measure: Measure, least: float) -> Measure:
    """Nodes below what can be resolved are moved up to it: their place is not known, their weight is."""
    if measure.nodes.min() > least:
        return measure
    return Measure(np.maximum(measure.nodes, max(least, 1e-300)), measure.weights)


def _reached(differences: Differences, start: Krylov, least: float, g: np.ndarray) -> tuple[np.ndarray, float]:
    """The quadratic model's minimizer, and by what share of |g| the gradient there is not what the model says."""
    meter, level, y0 = differences.meter, differences.level, differences.meter.y0
    nodes = start.measure.nodes
    step = -start.solve(np.where(nodes > least, nodes, math.inf))
    length = float(np.linalg.norm(step))
    if not length:
        return y0.copy(), 0.0
    linear = length * differences(step / length)
    moved = meter.value(level, y0 + step.reshape(y0.shape)) - meter.start(level)
    return y0 + step.reshape(y0.shape), float(np.linalg.norm(moved.ravel() - linear) / np.linalg.norm(g))


def _drift(differences: Differences, known, top: Krylov, bottom: Krylov) -> tuple[float | None, float | None]:
    """What finer levels change the largest and the smallest eigenvalue by, if it is known or not too dear to ask.

    The audit's word, or twice what the next level changes along the two vectors.
    """
    meter, level, h = differences.meter, differences.level, differences.meter.h
    if known is not None and not np.isnan(known.change).any():
        return (_change_after(known, level),) * 2
    following = next((k for k in h.levels if h.before(k) == level), None)
    if following is None or 3 * h.cost(following) > PRODUCTS * h.cost(level) + meter.dearest * (
        following in meter.at_start
    ):
        return None, None
    finer = replace(differences, level=following)
    ends = (top.direction(-1), bottom.direction(0))
    return tuple(2 * abs(float(v @ (finer(v) - differences(v)))) for v in ends)


def _distance(measures: Measures, floor: float, off: float) -> Range:
    """|y0 - y*| from the gradient's measure, give or take what finer levels move the minimizer by.

    That is taken to be at most twice what the finest increment measured moves it by.
    """

    def length(measure):
        return math.sqrt(measure.integral(lambda x: x**-2.0))

    def most(measure):
        exact = measure.jacobi is not None and measure.jacobi[1][-1] == 0
        return length(measure) if exact else length(measure.radau(floor)) if floor > 0 else math.inf

    finest = [measures.increments[k] for k in sorted(measures.increments)[-1:]]
    best, low, high = length(measures.gradient), sum(map(length, finest)), sum(map(most, finest))
    high = most(measures.gradient) + 2 * high
    return Range(max(0.0, best - 2 * low), best, high / (1 - off) if off < 0.5 else math.inf)


def _notes(level, beta, mu, d0, resolution, off, drift, bottom) -> tuple[str, ...]:
    """What the estimate cannot know, each in a sentence."""
    if math.isinf(beta.high):
        return (
            f"differences of level {level} are mostly noise, or it does not grow with y as the gradient of a convex loss would: "
            "nothing can be told, give beta, mu and d0 yourself or begin the ladder at a finer level",
        )
    out = [f"all of this is the curvature of level {level} around y0, as if the loss were quadratic there"]
    if -bottom == resolution:
        out.append(
            f"level {level} has a direction of negative curvature {bottom:.2g} at y0: its loss is not convex there"
        )
    if resolution > 0.1 * mu.high:
        out.append(
            f"eigenvalues below {resolution:.3g} drown in errors of level {level} that are no curvature: a budget= lets "
            "a finer level be differenced"
        )
    if drift is None:
        out.append("what finer levels change of it is not told: the ranges leave that out")
    elif drift > mu.best:
        out.append(f"finer levels change mu by about {drift:.2g}, more than it is: a budget= lets one be differenced")
    if mu.low == 0:
        out.append(f"mu may be as small as 0: all that can be seen is that it is at most {mu.high:.3g}")
    else:
        out.append("the lower end of mu is no bound: a smaller eigenvalue that no vector measured sees escapes it")
    if math.isinf(d0.high):
        out.append(f"d0 has no upper end: it is {d0.best:.3g} in the directions that can be seen, and plans take that")
    if off > 0.3:
        out.append(
            f"the loss is far from quadratic (at the model's minimizer the gradient is off by {off:.0%}): the numbers hold "
            "near y0 only, estimate again from a later point"
        )
    return tuple(out)
