"""What a run without a plan sees: gradients bought once, curvature of coarse levels, what steps tell of it, and increments.

The gradient of a level is weighed by the curvature of a coarser one (differences over the distance that the run has come),
corrected by what steps changed the gradient of the level itself by, as in a quasi-Newton method. So are its increments, which tell what
errors beyond the level cost.
"""

import math
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np

from .bill import Stop, log
from .curvature import NOTHING, Look, first_length, look, tried
from .dithering import DIRECTIONS, TRIAL, Dither
from .errors import Errors
from .hierarchy import LevelError
from .solvers import quasi_newton

SHARE = 0.5  # of one gradient of a level: what the products for one look at it may cost
MOST = 120  # products per look: enough for condition numbers of 1e4
PROBES = (
    6  # evaluations of a look that are no products: at which distance, and what finer levels change
)
ENOUGH = 0.97  # of eps: what errors beyond a level may cost for it to be the last
FAR = 2.0  # times the loss at the zero of the level before: increments taken further away say little of errors there
SMOOTH = 1e-4  # of an increment's square: errors that jump by less do not vanish at a zero
CLEAN = 0.01  # of what a step changed the gradient by: jumps below this leave it worth keeping
PAIRS = 10  # steps that are kept with what they changed the gradient by
BENDS = 0.1  # of a gradient: the loss bends where half a step and the whole one disagree by more


class Survey:
    """What is bought, told and measured; `told` is every choice in a sentence, `spent` the bill by purpose."""

    def __init__(self, run):
        self.run, self.meter, self.rng, self.eps = run, run.meter, run.rng, run.eps
        self.h = run.h._like(evaluate=self.bought)
        self.known: dict[
            bytes, dict[int, np.ndarray]
        ] = {}  # values at points that are asked for again
        self.spent: dict[str, float] = {}
        self.told: list[str] = []
        self.y0 = self.x = run.start
        self.g, self.here = (
            np.zeros_like(run.start),
            NOTHING,
        )  # the gradient at x of the level asked, and what it means
        self.i = 0  # the rank of the level that is asked
        self.arrived = 0.0  # what had been paid when it was first asked
        self.reach = self.stride = (
            0.0  # how far the run came, and over which distance gradients were differenced
        )
        self.base = 0  # the least rank that curvature is taken from
        self.products = 40  # evaluations that a look took
        self.errors = Errors(alone=len(self.h.levels) == 1)
        self.drifts: dict[
            int, tuple[float, float]
        ] = {}  # by rank: the next level's change of curvature, at a distance
        self.kept = [1.0]  # what steps left of the loss
        self.averaged, self.wrong = (
            1,
            False,
        )  # steps whose mean is taken; whether the last one was not
        self.short = 1.0  # by what the last step reduced the loss, over what was seen
        self.weighed, self.loss_then = (
            run.start,
            0.0,
        )  # where increments were last weighed, and the loss there
        self.real, self.dither, self.tested = (
            self.h,
            None,
            False,
        )  # the levels; means over points in place of levels; whether they were tried
        self.down: dict[int, float] = {}  # by rank of curvature: how far it is negative
        self.pairs: list[
            tuple[np.ndarray, np.ndarray, float]
        ] = []  # steps, changes of the gradient, their products
        self.estimate, self.basis, self.why = math.inf, "", ""
        self.status = "missed"

    # --- what is paid and told ---

    @property
    def level(self) -> int:
        return self.h.levels[self.i]

    @property
    def called(self) -> str:
        return self.dither.name(self.level) if self.dither else f"level {self.level}"

    @property
    def top(self) -> int:
        """The rank of the finest level that curvature may be taken from: means have that of their level."""
        return self.h.levels.index(self.dither.last) if self.dither else self.i

    def cost(self, i: int) -> float:
        """The price of a level by rank, infinite where there is none or where it leaves nothing to go on with."""
        if i >= len(self.h.levels):
            return math.inf
        return self.h.cost(self.h.levels[i])

    @property
    def up(self) -> float:
        price = self.cost(self.i + 1)
        return price if 2 * price <= self.left else math.inf

    @property
    def left(self) -> float:
        return self.meter.limit - self.meter.total

    @property
    def aim(self) -> float:
        return 0.0 if self.eps is None else self.eps

    def tell(self, sentence: str) -> None:
        self.told.append(sentence)
        log.info("%s", sentence)

    def booked(self, purpose: str, since: float) -> None:
        self.spent[purpose] = self.spent.get(purpose, 0.0) + self.meter.total - since

    def bought(self, k: int, y: np.ndarray) -> np.ndarray:
        """A_k(y), or a mean; at points that are asked for again every level is bought once."""
        known = self.known.get(y.tobytes(), {})
        if k not in known:
            known[k] = (
                self.dither.mean(self.run.value, k, y) if self.dither else self.run.value(k, y)
            )
        return known[k]

    def gradient(self, x: np.ndarray) -> np.ndarray:
        since = self.meter.total
        self.known.setdefault(x.tobytes(), {})
        value = self.h.value(self.level, x)
        self.booked("gradients", since)
        return value

    # --- curvature ---

    def look(self, x: np.ndarray, v: np.ndarray) -> Look:
        """What v means at x, by coarse curvature, corrected by what steps changed the gradient of the level asked by."""
        q, shares = v.copy(), []
        for step, change, product in reversed(self.pairs):
            shares.append(float(np.vdot(step, q)) / product)
            q -= shares[-1] * change
        found = self.coarse_look(x, q)
        if not self.pairs:
            return found
        r, gained = -found.step, 0.0
        for (step, change, product), a in zip(self.pairs, reversed(shares), strict=True):
            r += (a - float(np.vdot(change, r)) / product) * step
            gained += a * a * product / 2
        return replace(found, step=-r, seen=found.seen + gained, size=float(np.linalg.norm(v)))

    def coarse_look(self, x: np.ndarray, v: np.ndarray) -> Look:
        """What v means at x, by the finest curvature whose products cost a share of one gradient here."""
        since = self.meter.total
        fits = [
            j
            for j in range(self.top + 1)
            if self.products * self.cost(j) <= SHARE * self.cost(self.i)
        ]
        j = min(max(max(fits, default=0), self.base), self.top)
        below = partial(self.h.value, self.h.levels[j])
        self.known.setdefault(x.tobytes(), {})
        if v.any() and not self.reach:
            self.reach = self.stride = first_length(below, x, -v)
        longest = min(2 * self.reach, 64 * self.stride)
        found = (
            look(
                below,
                j,
                x,
                v,
                longest,
                MOST,
                partial(self.drift, j, x),
                self.rng,
                self.errors.largest,
            )
            if self.reach or not v.any()
            else None
        )
        self.booked("curvature", since)
        if found is None:
            if j == min(2, len(self.h.levels) - 1):
                raise Stop(
                    "missed",
                    f"the gradient of level {self.level} does not change with y: no minimizer is in sight",
                )
            self.base = j + 1
            return (
                self.coarse_look(x, v)
                if j < self.top
                else replace(NOTHING, step=np.zeros_like(v), seen=math.inf)
            )
        if found.products:
            self.products, self.stride = found.products + PROBES, found.along.length
        return found

    def drift(
        self, j: int, x: np.ndarray, t: float, direction: np.ndarray, basis: np.ndarray
    ) -> float:
        """What finer levels change the curvature of rank j by: the next one's, along the direction where it matters most."""
        if j == self.i:
            return 0.0
        if (
            j + 1 == self.i and j - 1 in self.drifts
        ):  # the next one is the one that is asked: too dear for that
            sizes = [float(np.linalg.norm(d)) for d in self.errors.increments]
            return self.drifts[j - 1][0] * (
                sizes[j - 1] / sizes[j - 2] if j > 1 and sizes[j - 2] else 0.5
            )
        if j not in self.drifts or self.drifts[j][1] < t / 2:
            levels = self.h.levels[j : j + 2]
            there = [tried(partial(self.h.value, k), x + t * direction) for k in levels]
            if any(v is None for v in there):
                return self.drifts.get(j, (0.0,))[0]
            moved = [v - self.h.value(k, x) for k, v in zip(levels, there, strict=True)]
            gap = (moved[1] - moved[0]) / t
            along, seen = (
                abs(float(np.vdot(gap, direction))),
                float(np.linalg.norm(basis @ gap.ravel())),
            )
            self.drifts[j] = max(along / 2, seen / math.sqrt(len(basis))), t
        return self.drifts[j][0]

    def learn(self, step: np.ndarray, change: np.ndarray) -> None:
        """Keep what a step changed the gradient by, where that is more than the jumps of errors."""
        product, size = float(np.vdot(step, change)), float(np.linalg.norm(change))
        sizes = [self.errors.size(i) for i in range(len(self.errors.increments))]
        own = sizes[max(self.here.level - 1, 0)] if sizes else 0.0
        jump = self.here.along.jump * (sizes[-1] / own if own else 1.0)
        if product > 1e-8 * float(np.linalg.norm(step)) * size and jump <= CLEAN * size:
            self.pairs = [*self.pairs[1 - PAIRS :], (step, change, product)]

    def damped(self) -> np.ndarray:
        """The step, shortened while the coarse gradient, tilted to g, rises along it by more than half of its slope.

        Where the loss bends on the way, a quasi-Newton method goes on from there.
        """
        g, here, below = (self.g, self.here, partial(self.h.value, self.h.levels[self.here.level]))
        step = here.step
        if not step.any():
            return step
        since, at = self.meter.total, below(self.x)
        slope, whole, there = (abs(float(np.vdot(step, g))), float(np.linalg.norm(step)), None)
        for tries in range(20):
            length = float(np.linalg.norm(step))
            there = tried(below, self.x + step)
            if there is not None:  # the level had something to say that far away
                rise = float(
                    np.vdot(step, g + there - at)
                ) - 3 * here.along.jump * length / math.sqrt(g.size)
                if rise <= 0.5 * slope * length / whole:
                    break
            step = step / (2 if tries < 3 and there is not None else 8)
        half, size = tried(below, self.x + step / 2), float(np.linalg.norm(g))
        bends = (
            there is not None and half is not None and float(np.linalg.norm(there - 2 * half + at))
        )
        if bends > BENDS * size + 3 * here.along.jump and not (self.wrong or self.errors.rough):
            memory = SimpleNamespace(y=self.x + step)
            with suppress(LevelError):  # a trial went too far
                for _ in quasi_newton(lambda z: below(z) + g - at, memory, MOST, BENDS * size / 3):
                    pass
            step = memory.y - self.x
        self.booked("curvature", since)
        return step

    # --- errors ---

    @property
    def now(self) -> float:
        """The loss by the level asked; more than is seen, by as much as the last step reduced it by more than was seen."""
        return self.short * self.errors.worth(self.here)

    def weigh(self, before: Look | None = None) -> None:
        """Weigh the last increment, and those before it too where that is cheap beside the next level."""
        errors, here = self.errors, self.here
        solved = (
            before is not None
            and before.level == here.level
            and errors.worth(before) < 0.1 * errors.worth(here)
        )
        shape = here if solved else self.look(self.x, errors.increments[-1])
        errors.shapes = [*[s for s in errors.shapes if s.level == shape.level][-2:], shape]
        earlier = errors.increments[-3:-1]
        dear = self.cost(min(self.i + 1, len(self.h.levels) - 1))
        if (
            len(errors.shapes) <= len(earlier)
            and 3 * shape.products * self.cost(shape.level) <= 0.1 * dear
        ):
            errors.shapes = [self.look(self.x, d) for d in earlier] + [shape]
        self.weighed, self.loss_then = self.x, errors.worth(here)
        size = float(np.linalg.norm(errors.increments[max(here.level - 1, 0)])) * (
            1 if here.level else 2
        )
        errors.jumps = (here.along.jump / size) ** 2 if size else 0.0

    @property
    def stale(self) -> bool:
        """Whether increments were last taken where the loss was far above that at the zero of the level before."""
        return self.loss_then > FAR * self.errors.before

    @property
    def sharper(self) -> bool:
        """Whether weighing increments anew, after steps that told more of the curvature, is cheap beside the next level."""
        price = 3 * self.products * self.cost(self.here.level)
        return bool(self.pairs) and price <= 0.25 * self.up < math.inf

    def retake(self, known: tuple[np.ndarray, ...] = ()) -> None:
        """Take the last three increments again, all at x; `known` are gradients there, from the level asked downwards."""
        since, at = self.meter.total, [self.g, *known]
        self.known.setdefault(self.x.tobytes(), {})
        at += [
            self.h.value(self.h.levels[k], self.x)
            for k in range(self.i - len(at), max(self.i - 4, -1), -1)
        ]
        self.booked("gradients", since)
        steps = [b - a for b, a in pairwise(at)][::-1]
        self.errors.increments[self.i - len(steps) :] = steps

    def weigh_anew(self) -> None:
        """The last increments, taken from here, and weighed anew where that may matter. Not where errors jump: they vanish at a zero."""
        errors, below = (self.errors, sum(map(self.cost, range(max(self.i - 3, 0), self.i))))
        if not errors.increments or errors.jumps >= SMOOTH or self.weighed is self.x:
            return
        doubted = self.estimate <= self.aim and (self.stale or below <= SHARE * self.cost(self.i))
        sharper = errors.tail > ENOUGH * self.aim and self.sharper
        if not (doubted or sharper):
            return
        self.retake()
        if (
            sharper
            or self.stale
            or below + self.products * self.cost(self.here.level) <= SHARE * self.cost(self.i)
        ):
            self.weigh()
        self.tell(
            f"errors beyond {self.called}, weighed anew from here, cost about {errors.tail:.2g}"
        )
        self.record(self.x, errors.whole(self.now))

    def dithers(self) -> None:
        """Where errors jump from point to point and average out, means of a cheap level take the place of dearer levels."""
        base = min(range(self.i + 1), key=lambda b: 4.0 ** (self.i - b) * self.cost(b))
        price = 4.0 ** (self.i - base + 1) * self.cost(base)
        if self.tested or not self.i or self.errors.jumps < SMOOTH or price >= self.up:
            return
        self.tested, level = True, self.h.levels[base]
        size = self.errors.size(min(base, self.i - 1)) * math.sqrt(2 / self.x.size)
        draws = size * self.rng.standard_normal((DIRECTIONS, *self.x.shape))
        found = Dither(
            level, np.array([self.look(self.x, w).step for w in draws]), self.level, self.i - base
        )
        since = self.meter.total
        try:
            mean, each = self.lasts(found, TRIAL)
        except LevelError:
            return self.tell(
                "errors jump from point to point, and points around are outside of the domain"
            )
        finally:
            self.booked("curvature", since)
        left = float(np.linalg.norm(mean)) / each if each else 1.0
        if left > 0.5:
            return self.tell(
                f"errors jump from point to point and do not average out: {left:.0%} of them is left in a mean"
            )
        means = found.ladder(self.h)
        if len(means.levels) > self.i + 1:
            self.real, self.dither, self.h, self.errors.means = self.h, found, means, True
            self.tell(
                f"errors jump from point to point and average out: means of level {level} are asked from now on"
            )

    def lasts(self, dither: Dither, n: int) -> tuple[np.ndarray, float]:
        """The mean over points of an increment at the level, and the root mean square of one."""
        fine = max(self.h.levels.index(dither.level) + 1, 1)
        fine -= fine > self.h.levels.index(dither.last)
        one, other = self.h.levels[fine], self.h.levels[fine - 1]
        steps = np.array(
            [
                self.bought(one, self.x + s) - self.bought(other, self.x + s)
                for s in dither.shifts(n)
            ]
        )
        return steps.mean(axis=0), math.sqrt((steps**2).sum() / n)

    def doubt_means(self) -> None:
        """What of a mean's error lasts, or comes from smoothing a loss that bends; where that does not fall, levels are asked again."""
        d, before, since = self.dither, self.errors.lasting, self.meter.total
        n, rank = d.points(self.level), self.h.levels.index(d.level)
        few = int(min(n, 4096, max(TRIAL, n * self.cost(rank) / self.cost(rank + 1))))
        lasting, each = self.lasts(d, few + few % 2)
        smoothing = self.g - d.over(partial(self.bought, d.level), self.x, n, scale=0.5)
        self.booked("curvature", since)
        self.errors.lasting = 0.0
        for v, noise in ((lasting, each**2 / few), (smoothing, 2 * each**2 / n)):
            more = 1 - 2 * noise / float(np.vdot(v, v)) if v.any() else 0.0  # than chance leaves
            if more > 0:
                self.errors.lasting = max(
                    self.errors.lasting, more * self.errors.worth(self.look(self.x, v))
                )
        if before and self.aim < self.errors.lasting > before / 2:
            self.levels_again("what lasts of the errors does not average out")

    def levels_again(self, why: str) -> None:
        """Back from means to levels."""
        self.tell(f"{why}: levels are asked again")
        self.i = self.real.levels.index(self.dither.last)
        self.h, self.dither, self.errors.lasting, self.errors.means = self.real, None, 0.0, False
        del self.errors.increments[self.i :]
        self.g = self.gradient(self.x)
        self.here = self.look(self.x, self.g)
        self.weigh()
