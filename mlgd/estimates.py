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

from .curvature import Distance, distance, first_length
from .hierarchy import Hierarchy, generator, positive, shown
from .spectra import Krylov, Measure, Measures, lanczos

PRODUCTS = (
    60  # per measured vector, at least: enough for the price of a plan at condition numbers of 1e4
)
MOST = 500  # and at most, where they cost next to nothing
SHARE = 0.02  # of one finest gradient: what the products may cost in all before they are held to the least
DRIFT = 1e-4  # of the curvature: what finer levels may change it by, for a level to stand for them
INCREMENTS = 4  # levels whose increments are measured, at most
VECTORS = 2 + INCREMENTS  # with a random one and the gradient
CLEAR = 1e-3  # of the largest eigenvalue: asymmetry below this is not worth another distance
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
        return "\n".join(
            [
                *rows,
                f"paid {self.cost:.4g}: {paid} evaluations",
                *(f"! {note}" for note in self.notes),
            ]
        )


def estimate(
    h: Hierarchy, y0: np.ndarray, rng=None, *, known=None, budget: float | None = None
) -> Scale:
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
    if known is not None and not hasattr(known, "values"):
        raise ValueError(f"known must be an audit, as audit(h, [y0]) returns; got {shown(known)}")
    around = Around(h, y0, known)
    allowed = SHARE * around.dearest if budget is None else positive("budget", budget)
    level, along = _chosen(around, rng, allowed, budget is not None)
    steps = around.increments(level)
    g = around.value(
        max([level, *around.at_start]), y0
    )  # the finest that is paid for has the smallest bias
    if not g.any():
        raise ValueError(
            f"the gradient of level {level} at y0 is zero: start elsewhere, nothing can be measured here"
        )
    most = min(
        allowed / (VECTORS * h.cost(level)), MOST, math.sqrt(1e10 / y0.size)
    )  # the last: to orthogonalize them

    def measured(v: np.ndarray, t: float, tolerance: float = 0.01) -> Krylov:
        return lanczos(
            partial(around.product, level, t), v.ravel(), max(PRODUCTS, int(most)), tolerance
        )

    random = measured(rng.standard_normal(y0.size), along.length, 0.002)
    if (
        random.asymmetry > CLEAN * np.abs(random.measure.nodes).max()
    ):  # it may bend in directions that were not tried
        closer = measured(random.basis[0], along.length / 100, 0.002)
        if closer.asymmetry < 0.5 * random.asymmetry:
            random, along = closer, replace(along, length=along.length / 100)
    start = measured(g, along.length)
    for _ in range(
        3
    ):  # over the distance to the model's minimizer, errors that jump from point to point count less
        nodes, asymmetry = start.measure.nodes, start.asymmetry
        if not CLEAR * nodes[-1] < asymmetry < nodes[-1]:
            break
        far = float(np.linalg.norm(start.solve(np.maximum(nodes, asymmetry))))
        longer = distance(partial(around.value, level), y0, g, max(far, along.length))
        if longer.length < 2 * along.length:
            break
        along, random, start = (
            longer,
            measured(random.basis[0], longer.length),
            measured(g, longer.length),
        )
    increments = {k: measured(d, along.length) for k, d in steps.items()}
    runs = [random, start, *increments.values()]
    beta, mu, hidden, drift = _ends(around, level, along, runs)
    measures = Measures(
        start.measure.above(hidden),
        {k: r.measure.above(hidden) for k, r in increments.items()},
        level,
        mu.low,
    )
    nodes = start.measure.nodes
    step = -start.solve(
        np.where(nodes > hidden, nodes, math.inf)
    )  # to the minimizer of the quadratic model
    length, off = float(np.linalg.norm(step)), 0.0
    if length:  # by what share of |g| the gradient there is not what the model says
        far, near = (around.product(level, t, step / length) for t in (length, along.length))
        off = length * float(np.linalg.norm(far - near) / np.linalg.norm(g))
    d0 = _distance(measures, mu.low, off)
    if (
        not hidden < GARBAGE * beta.best or not beta.low
    ):  # nothing is known then, and the ranges say so
        beta, mu, d0 = (Range(0.0, x.best, math.inf) for x in (beta, mu, d0))
        measures, step = None, 0 * step
    notes = _notes(level, beta, mu, d0, hidden, off, drift, min(r.least[0] for r in runs))
    reached = y0 + step.reshape(y0.shape)
    return Scale(
        beta,
        mu,
        d0,
        measures,
        level,
        along.length,
        hidden,
        reached,
        around.count,
        around.cost,
        notes,
    )


class Around:
    """Values at y0 and elsewhere, each paid once and counted; those that an audit has are free, and so is its word on curvature."""

    def __init__(self, h: Hierarchy, y0: np.ndarray, known):
        self.h, self.y0, self.count, self.at_start = h, y0, {}, {}
        for i, point in enumerate(known.points if known is not None else ()):
            if point.shape == y0.shape and (point == y0).all():
                self.at_start = {k: v[i] for k, v in known.values.items() if k in h.levels}
        self.dearest = h.cost(max(self.at_start, default=h.levels[-1]))
        told = known is not None and not np.isnan(known.change).any()
        self.change = dict(zip(known.levels, known.change.tolist(), strict=True)) if told else {}

    @property
    def cost(self) -> float:
        return float(sum(n * self.h.cost(k) for k, n in self.count.items()))

    def value(self, k: int, y: np.ndarray) -> np.ndarray:
        if y is self.y0 and k in self.at_start:
            return self.at_start[k]
        self.count[k] = self.count.get(k, 0) + 1
        value = self.h.value(k, y)
        if y is self.y0:
            self.at_start[k] = value
        return value

    def product(self, k: int, t: float, v: np.ndarray) -> np.ndarray:
        """(A_k(y0 + t v) - A_k(y0))/t for a unit vector v."""
        return (
            self.value(k, self.y0 + t * v.reshape(self.y0.shape)) - self.value(k, self.y0)
        ).ravel() / t

    def drift(self, level: int) -> float:
        """How much the levels after this one change the curvature, by an audit's word."""
        return sum(c for k, c in self.change.items() if k > level)

    def increments(self, level: int) -> dict[int, np.ndarray]:
        """Increments at y0: those that are paid for, or else those whose levels cost no more than the products do."""
        h, spent, usable = self.h, 0.0, []
        for k in h.levels:
            spent += 0.0 if k in self.at_start else h.cost(k)
            if {k, h.before(k)} <= self.at_start.keys() or spent <= INCREMENTS * PRODUCTS * h.cost(
                level
            ):
                usable.append(k)
        pairs = [(h.before(k), k) for k in usable[-INCREMENTS:] if h.before(k) in usable]
        found = {k: self.value(k, self.y0) - self.value(j, self.y0) for j, k in pairs}
        return {
            k: d
            for k, d in found.items()
            if np.linalg.norm(d) > 1e-13 * np.linalg.norm(self.at_start[k])
        }


def _chosen(around: Around, rng, allowed: float, finest: bool) -> tuple[int, Distance]:
    """The level to difference, and how far: so that half the distance gives the same product.

    Over the length of a gradient step or less, along the gradient and a little of everything.
    """
    h, y0, found = around.h, around.y0, []
    fits = [k for k in h.levels if VECTORS * PRODUCTS * h.cost(k) <= allowed] or h.levels[:1]
    first = fits[-1 if finest else 0]
    if around.change:
        first = next(
            (k for k in fits if around.drift(k) <= DRIFT * around.change[h.levels[0]]), fits[-1]
        )
    for level in h.levels[h.levels.index(first) :]:
        if found and (min(found)[0] <= CLEAN or PRODUCTS * h.cost(level) > around.dearest):
            break
        gradient = partial(around.value, level)
        g = gradient(y0)
        size = max(
            float(np.linalg.norm(v)) for v in around.at_start.values()
        )  # at a coarse minimizer finer ones tell
        probe = g / max(float(np.linalg.norm(g)), 1e-300) + rng.standard_normal(
            y0.shape
        ) / math.sqrt(y0.size)
        longest = first_length(gradient, y0, probe * (size / np.linalg.norm(probe)))
        along = distance(gradient, y0, probe, longest) if longest else Distance(1.0, math.inf)
        found.append((along.off, level, along))
    return min(found)[1:]


def _ends(
    around: Around, level: int, along: Distance, runs: list[Krylov]
) -> tuple[Range, Range, float, float | None]:
    """beta, mu, the eigenvalue below which nothing is resolved, and what finer levels change mu by, if that is known.

    Ritz values lie inside the spectrum. Its upper end is missed, with probability 1 - RISK, by at most a share
    (log(1.648 sqrt(d)/RISK)/(2 n - 1))^2 after n products from a random start, the first of the runs (Kuczynski and
    Wozniakowski, 1992). For the lower end that says little; its range goes down by twice the residual of the smallest Ritz
    value, within one of which an eigenvalue must lie. What is not symmetric, or negative, is an error of the products, and
    hides as much. Finer levels change the ends by the audit's word, or by twice what the next one does along the two
    vectors, where that is not too dear.
    """
    h, random = around.h, runs[0]
    highest, lowest = (
        max(runs, key=lambda r: r.measure.nodes[-1]),
        min(runs, key=lambda r: r.measure.nodes[0]),
    )
    top, (least, residual) = (
        max(1e-300, float(highest.measure.nodes[-1])),
        min(r.least for r in runs),
    )
    share = math.log(1.648 * math.sqrt(around.y0.size) / RISK) / (2 * random.measure.nodes.size - 1)
    missed = 0.0 if random.measure.complete else min(share**2, 0.5)
    hidden = max(along.off * top, 1e-15 * top, -least, *(r.asymmetry for r in runs))
    high, low = (around.drift(level) if around.change else None,) * 2
    after = next((k for k in h.levels if h.before(k) == level), None)
    paid = PRODUCTS * h.cost(level) + around.dearest * (after in around.at_start)
    if high is None and after is not None and 3 * h.cost(after) <= paid:
        ends = highest.direction(-1), lowest.direction(0)
        moved = [[around.product(k, along.length, v) for k in (level, after)] for v in ends]
        high, low = (
            2 * abs(float(v @ (fine - coarse)))
            for v, (coarse, fine) in zip(ends, moved, strict=True)
        )
    up, down, seen = high or 0.0, low or 0.0, max(least, hidden)
    beta = Range(max(0.0, top - hidden - up), top, top / (1 - missed) + hidden + up)
    mu = Range(
        max(0.0, least - 2 * residual - hidden - down), seen, max(seen, least + hidden) + down
    )
    return beta, mu, hidden, low


def _distance(measures: Measures, floor: float, off: float) -> Range:
    """|y0 - y*| from the gradient's measure, give or take what finer levels move the minimizer by.

    That is taken to be at most twice what the finest increment measured moves it by.
    """

    def length(measure: Measure) -> float:
        return math.sqrt(measure.integral(lambda x: x**-2.0))

    def most(measure: Measure) -> float:
        return length(measure.radau(floor)) if measure.complete or floor > 0 else math.inf

    best, finest = (
        length(measures.gradient),
        [measures.increments[k] for k in sorted(measures.increments)[-1:]],
    )
    high = most(measures.gradient) + 2 * sum(map(most, finest))
    return Range(
        max(0.0, best - 2 * sum(map(length, finest))),
        best,
        high / (1 - off) if off < 0.5 else math.inf,
    )


def _notes(level, beta, mu, d0, resolution, off, drift, bottom) -> tuple[str, ...]:
    """What the estimate cannot know, each in a sentence."""
    if math.isinf(beta.high):
        return (
            f"differences of level {level} are mostly noise, or it does not grow with y as the gradient of a convex loss would: "
            "nothing can be told, give beta, mu and d0 yourself or begin the ladder at a finer level",
        )
    finer, change = "a budget= lets a finer level be differenced", drift or 0.0
    said = [
        (
            True,
            f"all of this is the curvature of level {level} around y0, as if the loss were quadratic there",
        ),
        (
            -bottom == resolution,
            f"level {level} has a direction of negative curvature {bottom:.2g} at y0: its loss is not convex there",
        ),
        (
            resolution > 0.1 * mu.high,
            f"eigenvalues below {resolution:.3g} drown in errors of level {level} that are no curvature: {finer}",
        ),
        (drift is None, "what finer levels change of it is not told: the ranges leave that out"),
        (
            change > mu.best,
            f"finer levels change mu by about {change:.2g}, more than it is: {finer}",
        ),
        (
            mu.low == 0,
            f"mu may be as small as 0: all that can be seen is that it is at most {mu.high:.3g}",
        ),
        (
            mu.low > 0,
            "the lower end of mu is no bound: a smaller eigenvalue that no vector measured sees escapes it",
        ),
        (
            math.isinf(d0.high),
            f"d0 has no upper end: it is {d0.best:.3g} in the directions that can be seen, and plans take that",
        ),
        (
            off > 0.3,
            f"the loss is far from quadratic (at the model's minimizer the gradient is off by {off:.0%}): the numbers "
            "hold near y0 only, estimate again from a later point",
        ),
    ]
    return tuple(sentence for so, sentence in said if so)
