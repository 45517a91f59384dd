"""Minimize without constants: from coarse to fine, with fine gradients on coarse curvature.

1. Two evaluations at the start tell whether a level repeats itself. Solve the coarsest by L-BFGS.
2. Go up: one gradient of the next level. L-BFGS goes on there and keeps its pairs; as far as half
   of what gradients cost will pay, Lanczos on a coarser level, from that gradient, gives more.
3. By the pairs a vector v is worth v^T H^-1 v/2: a gradient is the loss left, an increment what the
   level before was wrong by. As the last three fall and turn, errors beyond the level cost `tail`.
4. *done* needs increments that fall, taken anew and weighed by Lanczos on a level whose curvature
   was not seen to mislead, or an exact finest level; a promise, that it resolves what counts.
5. With a radius R >= |y0 - y*|, r |y - y0|^2/2 is added: that hides r R^2/8 of a quadratic loss at
   most, r R^2/4 of any convex one, and flat directions need no accuracy (the convex theorem).
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from .audits import beyond
from .bill import Bill, State
from .hierarchy import LevelError, OutOfDomain
from .solvers import PAIRS, Krylov, advance, curvature, dot, inverse, norm

AIM = 0.5  # of eps: the aim, as estimates are off by a factor, and the least that is told
TIGHT, EXPENSIVE = 0.75, 8.0  # the aim where the next level costs so many times this one
LEFT = 0.75  # of the tail: a level is left when less than this is left on it
LAST = 0.05  # of eps: left on the coarsest and the finest; of the price: a last check against y0
SHARE = 0.5  # of what gradients cost: for curvature before the end, which spares gradients
PLATEAU, TELL = 6, 4  # steps: none better by a tenth than as many before, go up; gains tell
WAIT = 5, 50  # times as many steps on the finest level, and on one that is exact: no other comes
PRODUCTS, FLAT = 120, 0.1  # per look, for conditions of 1e4; no minimizer is 20 ways farther on
ROUGH, LASTS = 0.02, 0.25  # of an error's square: less is not averaged, and no mean takes it away
RIDGE = 0.5  # of eps: a bound on what a radius hides, seldom met: errors may have all the rest
RAISED = 2.0  # times the loss if raised eigenvalues were a quarter: they can't be what judges
MISLED = 0.5  # of a gradient: not the curvature of one function
TINY, HUGE = 1e-140, 1e100  # entries of gradients beyond them: their squares are lost
SLOW, ONCE = 0.95, 0.55  # of the increment before: more is no fall; less, seen once, may be luck


@dataclass
class Climb(State):
    start: np.ndarray | None = None
    gradient: np.ndarray | None = None  # of the level asked, at y
    level: int = 0  # its rank
    pairs: list = field(default_factory=list)  # of L-BFGS and Lanczos, kept across levels
    increments: list = field(default_factory=list)  # [vector, the loss that it is worth]
    sizes: list = field(default_factory=list)  # of gradients, at arrival and after each step here
    known: dict = field(default_factory=dict)  # at y: values by rank, and what Lanczos showed
    base: int = 0  # the rank below which curvature was seen to mislead
    products: int = 40  # that the last look took
    fresh: float = 0.0  # the share of an error's square that is another one at every point
    stuck: bool = False  # no step on this level helps any more


def climb(bill: Bill, state: Climb, eps: float | None, radius: float | None) -> Iterator[None]:
    """The steps of a run without a plan; all that must survive a step is in the state."""
    run = Ascent(bill, state, eps or 0.0, radius or math.inf)
    if state.gradient is None:
        run.begin()
        yield
    while not state.message and run.step():  # the file of a run that has ended has one
        yield


class Ascent:
    """One run: what its state means, and what to do next."""

    def __init__(self, bill: Bill, state: Climb, eps: float, radius: float):
        self.bill, self.s, self.radius = bill, state, radius
        self.hides = RIDGE * eps if radius < math.inf else 0.0
        self.eps, self.ridge = eps - self.hides, 8 * self.hides / radius / radius
        self.levels, self.top = bill.h.levels, len(bill.h.levels) - 1
        self.ends = self.top if bill.h.exact or not self.top else None  # nothing lies beyond it
        self.price = [bill.price[k] for k in self.levels]
        self.expensive = [b >= EXPENSIVE * a for a, b in pairwise(self.price)] + [False]  # the next
        self.aims = [max(self.eps * (TIGHT if e else AIM), self.hides) for e in self.expensive]

    def value(self, i: int, x: np.ndarray, purpose: str = "gradients") -> np.ndarray:
        """The level of rank i at x, and with a radius the pull of the start."""
        return self.bill.value(self.levels[i], x, purpose) + self.ridge * (x - self.s.start)

    def tried(self, i: int, x: np.ndarray, purpose: str = "gradients") -> np.ndarray | None:
        """The same, or None where the level has no value: a trial went too far."""
        try:
            value = self.value(i, x, purpose)
        except OutOfDomain as outside:
            if not any(said.startswith(f"level {outside.level} ") for said in self.s.decisions):
                self.s.decide(f"{outside}: steps stop short of there")
            return None
        return value if np.abs(value).max() < HUGE else None

    def at(self, i: int, purpose: str = "gradients") -> np.ndarray:
        """The level of rank i at y, bought once."""
        if str(i) not in self.s.known:
            self.s.known[str(i)] = self.value(i, self.s.y, purpose)
        return self.s.known[str(i)]

    def move(self, x: np.ndarray, g: np.ndarray, **known: np.ndarray) -> None:
        x.flags.writeable = False
        self.s.y, self.s.gradient, self.s.known = x, g, {str(self.s.level): g} | known

    def affordable(self) -> int | None:
        """The finest rank below whose products cost no more than curvature may."""
        s, spent = self.s, self.bill.paid["cost_by_purpose"].get("curvature", 0.0)
        limit = SHARE * (self.bill.total - spent) - spent
        fits = [j for j in range(s.base, s.level) if s.products * self.price[j] <= limit]
        return max(fits, default=None) if norm(s.y - s.start) else None

    def look(self, v: np.ndarray, j: int) -> None:
        """Lanczos from v on the level of rank j at y, kept as pairs below those of steps here."""
        s, rng = self.s, np.random.default_rng(self.s.step)
        at, far = self.at(j, "curvature"), 2 * norm(self.s.y - self.s.start) or 1.0
        found = curvature(lambda z: self.tried(j, z, "curvature"), s.y, at, v, far, PRODUCTS, rng)
        s.products = found.nodes.size + 6
        drift = self.drift(j, found) if j < s.level else 0.0
        floor = max(found.unresolved, 2 * drift, FLAT * norm(v) / far)
        bent = [np.maximum(found.nodes, f) for f in (floor, floor / 4)]
        s.known["raised"] = found.weights @ (1 / bent[1] - RAISED / bent[0]) > 0
        place = max(len(s.pairs) - (0 if s.fresh else len(s.sizes) - 1), 0)
        s.pairs[place:place] = found.pairs(max(floor, self.ridge), v.shape)
        del s.pairs[:-PAIRS]
        before = norm(s.increments[max(j - 1, 0)][0])
        share = (found.jump / before) ** 2 * (5 if j else 1.25) if before else 0.0  # of j's error
        s.fresh, s.known["rank"] = min(share, 1 - LASTS) if share > ROUGH else 0.0, j

    def drift(self, j: int, found: Krylov) -> float:
        """What the curvature of rank j is off by: half of what it changed, where it is flattest."""
        s, i, flattest = self.s, max(j, self.s.base + 1), found.ritz[0].reshape(self.s.y.shape)
        low, high = (self.tried(m, s.y + found.t * flattest, "curvature") for m in (i - 1, i))
        if low is None or high is None:
            return 0.0
        gap = high - self.at(i, "curvature") - low + self.at(i - 1, "curvature")
        return abs(dot(gap, flattest)) / found.t / 2

    def worth(self, v: np.ndarray) -> float:
        """The loss that a gradient v means by the pairs; without the ridge."""
        step = inverse(self.s.pairs, v) if self.s.pairs else 0 * v
        if not (gain := dot(v, step)) > 0:  # pairs of a flat region: rounding ate it
            return math.inf if norm(v) else 0.0
        return max(gain - self.ridge * dot(step, step), 0.0) / 2

    def falls(self) -> tuple[float, float]:
        """By what increments may go on falling, luck apart, and their cosine (one alone: 1)."""
        last = [d for d, _ in self.s.increments[-3:] if norm(d)]
        ratios = [min(norm(b) / norm(a), SLOW) for a, b in pairwise(last)] or [ONCE]
        r = max(math.prod(ratios) ** (1 / len(ratios)), ONCE / len(ratios))
        cosines = [dot(a, b) / norm(a) / norm(b) for a, b in pairwise(last)] or [1.0]
        return r, -r / (1 + r * r) if self.s.fresh else sum(cosines) / len(cosines)

    def tail(self) -> float:
        """What lasting errors of the level asked cost, the most that three increments say."""
        s = self.s
        if s.level == self.ends:
            return 0.0
        if not s.level or not s.increments[-1][0].any():  # twice: it may be exact
            return math.inf if s.level < 2 or s.increments[-2][0].any() else 0.0
        r, cosine = self.falls()
        last = [w * r ** (2 * n) for n, (_, w) in enumerate(reversed(s.increments[-3:]))]
        return (1 - s.fresh) * max(last) * beyond(r, cosine) ** 2

    def now(self) -> float:
        """The loss left by the level asked: by the pairs, or gains of steps if these say more."""
        s, steps, left = self.s, len(self.s.sizes) - 1, self.worth(self.s.gradient)
        if "rank" in s.known or steps < TELL or not s.gradient.any():
            jumps = s.fresh * self.tail() / (1 - s.fresh) if s.fresh and steps else 0.0
            return max(left - jumps, 0.0)  # jumps are seen here, and averaged over the steps
        gains, n = [product / 2 for *_, product in s.pairs[-steps:]], max(2, steps // 4)
        late, early = sum(gains[-n:]), sum(gains[-2 * n : -n])
        return max(left, late * (late / max(early - late, late / 9, 1e-300)))

    def whole(self) -> float:
        """What is left and the tail, and what both cost together as errors keep their direction."""
        s, now, tail = self.s, self.now(), self.tail()
        if not (0 < now * tail < math.inf):
            return now + tail
        r, cosine = self.falls()
        both = beyond(r, cosine) * dot(inverse(s.pairs, s.gradient), s.increments[-1][0])
        return now + tail + max(cosine, 0.0) * max(both, 0.0)

    def begin(self) -> None:
        """The first gradient, twice, and what the next level changes there."""
        s, k = self.s, self.levels[0]
        s.start, s.gradient = s.y, self.bill.value(k, s.y, "gradients")
        if (largest := np.abs(s.gradient).max()) and not TINY < largest < HUGE:
            raise ValueError(
                f"the gradient of level {k} at the start is of size {largest:.1g}, whose square is "
                "no ordinary float: choose another unit of the loss (or of the point)"
            )
        again, size = self.bill.value(k, s.y.copy(), "gradients"), norm(s.gradient)
        if (apart := norm(again - s.gradient)) > self.bill.h.repeats * size:
            share = f"{apart / size:.1g}" if size else "all"
            raise LevelError(
                f"level {k} differs from call to call, by {share} of its size: freeze the random "
                "numbers, or, where it is rounding, give the hierarchy a larger repeats",
                k,
            )
        s.sizes, s.known = [norm(s.gradient)], {"0": s.gradient}
        there = self.tried(1, s.y) if self.top else None
        s.increments = [[0 * s.gradient if there is None else there - s.gradient, math.inf]]

    def solved(self) -> bool:
        """Whether too little is left here for another step; the coarsest level waits for gains."""
        s, now, tail, aim = self.s, self.now(), self.tail(), self.aims[self.s.level]
        if not s.level:
            return len(s.sizes) > TELL and now <= LAST * self.eps
        if tail <= aim:
            return self.whole() <= aim
        return now < (LEFT * tail if s.level < self.top else LAST * (self.eps or tail))

    def step(self) -> bool:
        """One step while this level has something to say, else decide; whether the run goes on."""
        s, i, n = self.s, self.s.level, len(self.s.sizes)
        if s.stuck or self.solved():
            return self.decide()
        j = s.known.get("rank", i)
        if s.fresh and self.tail():  # the mean of n steps: what jumps falls as 1/n
            x = s.y - inverse(s.pairs, s.gradient) / n
            g = self.tried(i, x) if n == 1 or (n < 2 * PLATEAU and self.expensive[i]) else None
        else:
            x, g = advance(lambda z: self.tried(i, z), s.y, s.gradient, s.pairs) or (s.y, None)
        s.stuck = g is None
        if g is not None:
            self.move(x, g)
            s.sizes.append(norm(g))
            few = PLATEAU * (1 if i < self.top else WAIT[i == self.ends])
            s.stuck = n >= 2 * few and min(s.sizes[-few:]) > 0.9 * min(s.sizes[-2 * few : -few])
            if norm(g) and s.base <= j < i and s.products * self.price[j] <= self.price[i]:
                with suppress(OutOfDomain):
                    self.look(s.gradient, j)
            s.estimate = self.whole()
        return True

    def decide(self) -> bool:
        """One remainder: stop, go up, or say by how much eps is missed."""
        s, i, last = self.s, self.s.level, self.s.level == self.top
        s.estimate = math.inf if norm(s.y - s.start) > 2 * self.radius else self.whole()
        fell = i > 1 and norm(s.increments[i - 1][0]) <= SLOW * norm(s.increments[i - 2][0])
        falls = fell or i == self.ends
        done = falls and s.estimate <= self.aims[i]
        blind = done and s.estimate > 0 and not s.known.get("judged")
        finer = s.known["rank"] + 1 if done and s.known.get("raised") else i + 1
        if s.base < finer <= i and s.products * self.price[finer] <= self.bill.total:
            s.base = finer
            return self.view(finer)
        if i and (blind or ((done or last or self.expensive[i]) and "judged" not in s.known)):
            j = self.affordable() if blind or self.expensive[i] else None
            return self.view(s.base if blind and j is None else j)
        over = done or last or (i > 1 and not s.pairs)  # nothing curves up
        return self.end("done" if done or not self.eps else "missed", falls) if over else self.up()

    def up(self) -> bool:
        """One gradient of the next level, at y or nearer to the start where it has none."""
        s, i, x = self.s, self.s.level + 1, self.s.y
        while (there := self.tried(i, x)) is None and norm(x - s.start):
            x = (s.start + x) / 2 if norm(x - s.start) > norm(s.y - s.start) / 99 else s.start
        known, s.level = {str(i - 1): s.gradient} if x is s.y else {}, i
        self.move(x, self.value(i, x) if there is None else there, **known)
        if i == 1 and norm(self.at(1) - self.at(0) - s.increments[0][0]) > MISLED * s.sizes[0]:
            s.base = 1  # increments at both ends of the way tell what curvatures differ by
        s.sizes = [norm(s.gradient)]
        return self.view(self.affordable(), arrived=True)

    def view(self, j: int | None, arrived: bool = False) -> bool:
        """What lies beyond, and what is left, by the curvature of rank j or by pairs alone."""
        s, i, before = self.s, self.s.level, max(self.s.level - (1 if arrived else 3), 0)
        s.stuck = s.stuck and len(s.sizes) > PLATEAU
        try:
            s.increments[before:] = [[self.at(k + 1) - self.at(k), 0.0] for k in range(before, i)]
        except OutOfDomain:  # a coarser level has no value here
            if arrived:
                raise
        g, d = s.gradient, s.increments[-1][0]
        v = g if arrived or i == self.ends else g + d * beyond(*self.falls())
        judged = j is not None
        if judged and norm(v):
            try:
                self.look(v, j)
            except OutOfDomain:  # nothing around y has a value: a finer level may
                s.base, judged = min(j + 1, i), j == i
        s.known |= {"judged": judged} if j is not None or not arrived else {}
        for n, pair in enumerate(s.increments):  # worths are compared at one point
            pair[1] = self.worth(pair[0]) if n >= before else 0.0
        by = f"Lanczos on level {self.levels[j]}" if s.known.get("rank", -1) == j else "pairs"
        k, rest = self.levels[s.level], f"errors beyond it cost {self.tail():.2g}, by {by}"
        s.decide(f"level {k} is asked: {self.now():.2g} is left, {rest}")
        return True

    def end(self, status: str, falls: bool) -> bool:
        """Say what was reached and what that rests on; not at a point that is worse than y0."""
        s, k, moved = self.s, self.levels[self.s.level], self.s.y - self.s.start
        if moved.any() and (status == "missed" or self.price[s.level] <= LAST * self.bill.total):
            g, half = (self.tried(s.level, s.start + t * moved) for t in (0.0, 0.5))
            if not (g is None or half is None) and dot(g + 4 * half + s.gradient, moved) > 0:
                s.message = f"level {k} judges the point reached worse than the start, which is y"
                s.estimate, s.status = math.nan, "missed"
                self.move(s.start, g)
                return False
        doubts = {  # the first that holds
            "no gradient at the start, maybe a minimizer": not (moved.any() or s.gradient.any()),
            "the way is longer than twice the radius": norm(moved) > 2 * self.radius,
            "nothing curves upwards: no minimizer is in sight, or a sign is wrong": not s.pairs,
            "levels repeat one another": not all(d.any() for d, _ in s.increments[: s.level][-2:]),
            "what counts curves too little to be told": s.known.get("raised", False),
            "increments were not seen to fall": not (falls and (self.top or self.bill.h.exact)),
        }
        doubt = next((f"; nothing is promised: {why}" for why, true in doubts.items() if true), "")
        s.status, s.estimate = status, s.estimate + self.hides
        s.promise = "none" if doubt or status == "missed" or not self.eps else "estimate"
        if status == "done" and s.promise == "none":
            s.status = "ended"
        s.message = f"judged on level {k}, {self.believed()}{doubt}"
        return False

    def believed(self) -> str:
        """The loss that is believed, and what is claimed of it."""
        s, eps = self.s, self.eps + self.hides
        if math.isfinite(s.estimate):
            said = f"the loss is about {s.estimate:.2g} above the minimum"
        else:
            said = "nothing can be told of the loss"
        if s.status == "missed":
            said += f", and eps = {eps:g} may not be met"
        elif s.promise != "none":
            said += f", and at most {eps:g} is claimed"
            if self.hides:
                said += f", if a minimizer is within {self.radius:g} of the start"
        return said
