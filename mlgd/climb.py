"""Minimize without constants: from coarse to fine, with fine gradients on coarse curvature.

1. Two evaluations at the start tell whether a level repeats itself. Solve the coarsest by L-BFGS.
2. Go up: one gradient of the next level. L-BFGS goes on there and keeps its pairs; or, where that
   costs less, products with the Hessian of a coarser level (Lanczos on differences) say what loss
   is left and where to step, and the level's own gradient judges the step (MG/Opt).
3. Two levels differ by an increment: its weight by the same curvature is what the coarser one was
   wrong by. As increments fall and turn, errors beyond the level cost `tail`.
4. One remainder, `now` and `tail`, and one decision: solve on, go up, 'done' or 'missed'.
5. Pairs are blind where no step has led: before 'done' is said, Lanczos weighs what is left.
6. With a radius R >= |y0 - y*|, gradient flow for a time t hides at most R^2/(4et) where it is flat.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from .bill import Bill, State, Stop
from .hierarchy import LevelError
from .remainder import LOST, PRODUCTS, SHARE, Remainder
from .solvers import advance, dot, inverse, keep, norm, search

SLOW = 0.5  # a step that leaves more of the loss than this asks for finer, costlier curvature
COARSE = 0.25  # of the first increment: the gradient at which the first level is solved
PLATEAU = 6  # steps without a gradient smaller by a tenth: the next level knows better
TOLD = 0.1  # of eps: no smaller loss is told, as nothing that small was looked for
REPEATS = 1e-6  # of a gradient: what sums in another order change


@dataclass
class Climb(State):
    """`level` is the rank of the level asked, `gradient` its value at y, `look` Lanczos's view."""

    seed: int = 0
    start: np.ndarray | None = None
    gradient: np.ndarray | None = None
    level: int = 0
    pairs: list = field(default_factory=list)  # of L-BFGS, kept across levels
    own: list = field(default_factory=list)  # of steps on this level
    increments: list = field(default_factory=list)
    worths: list = field(default_factory=list)  # what the errors that increments show cost
    gains: list = field(default_factory=list)
    look: dict | None = None
    known: dict = field(default_factory=dict)  # values at y, by rank
    memo: dict = field(
        default_factory=lambda: dict(
            reach=0.0, base=0, products=40, short=1.0, drift={}, lost=0, best=[math.inf, 0]
        )
    )


def climb(bill: Bill, state: Climb, eps: float | None, radius: float | None) -> Iterator[None]:
    """The steps of a run without a plan; all that must survive a step is in the state."""
    run = Ascent(bill, state, eps, radius)
    if state.gradient is None:
        run.begin()
        yield
    while not state.message and run.step():  # the file of a run that has ended has one
        yield


class Ascent(Remainder):
    """One run: what to do next."""

    def begin(self) -> None:
        """The first gradient, asked twice; the next level's there says how far it is worth solving."""
        s, k = self.s, self.levels[0]
        s.start, s.gradient = s.y, self.at(0)
        apart = norm(self.bill.value(k, s.y.copy(), "gradients") - s.gradient)
        size = max(norm(s.gradient), apart)
        if apart > REPEATS * size:
            why = "evaluate must be deterministic: freeze the random numbers of a level"
            raise LevelError(f"level {k} gave two gradients at one point; {why}", k)
        s.memo["error"] = norm(self.at(1) - s.gradient) if self.top else 0.0

    def step(self) -> bool:
        """Solve on while this level has something to say, else decide; whether the run goes on."""
        s, tail, aim = self.s, self.tail, self.aim
        if self.radius and len(s.worths) > 1 and "flow" in s.memo and math.isfinite(tail):
            for i in range(s.level, min(s.level + 1, self.top) + 1):
                error = s.memo["flow"] * tail * self.falls()[0] ** (2 * (i - s.level))
                if self.eps / 3 + error <= aim:
                    return self.flow(i, error)
        share = TOLD if s.level == self.top else 0.5  # no level comes after the finest to mend it
        solved = self.now <= (share * tail if math.isfinite(tail) else 0.02 * aim)
        if tail <= 0.95 * aim:
            solved = self.whole(self.now) <= aim
        coarse = not s.level and norm(s.gradient) <= COARSE * s.memo["error"]
        if coarse or solved or s.memo.get("stalled"):
            return self.decide()
        return self.quasi() if s.look is None else self.newton()

    def quasi(self) -> bool:
        """One step of L-BFGS on the level itself."""
        s = self.s
        found = advance(lambda z: self.tried(s.level, z, "gradients"), s.y, s.gradient, s.pairs)
        s.memo["stalled"] = found is None
        if found is not None:
            self.move(*found[:2])
            self.take(found[2])
            size, (best, since) = norm(found[1]), s.memo["best"]
            s.memo["best"] = [size, 0] if size < 0.9 * best else [best, since + 1]
            plateau = s.level < self.top and since >= PLATEAU
            s.memo["stalled"] = plateau or (len(s.gains) > 5 and max(s.gains[-3:]) <= 0)
        return True

    def newton(self) -> bool:
        """The step that Lanczos advises, judged at its end; refused where the loss has grown."""
        s, before, old, i = self.s, self.s.look["loss"], (self.s.y, self.s.gradient), self.s.level
        step = self.damped()
        if self.below(step):
            return self.end("done")
        for _ in range(6):
            g = self.tried(i, s.y + step, "gradients")
            if g is not None:
                break
            step = step / 4  # it led out of the domain
        else:
            s.memo["stalled"] = True
            return True
        fell = -dot(s.gradient + g, step)  # by the trapezoidal rule
        if not self.rough and keep(s.own, step, g - s.gradient, 10):
            keep(s.pairs, step, g - s.gradient)
        self.move(s.y + step, g)
        look = self.weigh(g, self.base, s.own)
        gain = look["loss"] / before if before else 1.0
        if gain < 1 or (fell > 0 and gain < 2):
            self.take(gain)
            s.look, s.estimate = look, self.whole(look["loss"])
            s.memo |= {"lost": 0, "kept": gain}
            return gain <= SLOW or self.slow()
        self.move(*old)
        s.memo["lost"] += not self.rough
        return self.slow()

    def slow(self) -> bool:
        """Finer curvature if that costs less than the next level; up if errors count; L-BFGS else."""
        s, i, j, tail, aim = self.s, self.s.level, self.s.look["rank"], self.tail, self.aim
        up = self.price[i + 1] if i < self.top and tail > 0.95 * aim else math.inf
        finer = self.price[i] + s.memo["products"] * self.price[min(j + 1, i)]
        if self.rough or (i < self.top and tail > aim and tail >= self.now / 4):
            s.memo["stalled"] = True
        elif j < i and s.memo["lost"] < LOST and finer <= up:
            s.memo["base"] = j + 1
            s.look = self.weigh(s.gradient, self.base, s.own)
        else:
            s.look, s.gains, s.memo["base"] = None, [], min(j + 1, i)
            s.decide(f"steps get on slowly: L-BFGS on level {self.levels[i]} itself")
        return True

    def damped(self) -> np.ndarray:
        """The step, as long as the coarse level tilted to the fine one allows; L-BFGS on if it bends."""
        s, j, step, g = self.s, self.s.look["rank"], self.s.look["step"], self.s.gradient
        at, size = self.at(j, "curvature"), norm(g) + 3 * self.s.look["jump"]

        def tilted(z: np.ndarray) -> np.ndarray | None:
            value = self.tried(j, z)
            return None if value is None else g + value - at

        found = search(tilted, s.y, g, step)
        if found is None:
            return step / 8
        x, left, pairs = s.y + found[0] * step, found[1], []
        if self.rough or not s.look["convex"] or norm(left) <= 0.3 * size:
            return x - s.y
        for _ in range(40):
            found = advance(tilted, x, left, pairs) if norm(left) > 0.1 * size else None
            if found is None or norm(found[0] - s.y) > 8 * norm(step):
                break
            x, left, _ = found
        return x - s.y

    def below(self, step: np.ndarray) -> bool:
        """A last step that by the gains so far will do is judged by the level before, tilted."""
        s, i = self.s, self.s.level
        likely = s.memo.get("kept", 1.0) * s.look["loss"] + self.tail <= self.aim
        if len(s.worths) < 2 or s.look["rank"] >= i - 1 or not likely:
            return False
        old, g, at, there = s.y, s.gradient, self.at(i - 1), self.tried(i - 1, s.y + step)
        if there is None:
            return False
        self.move(s.y + step, g + there - at)
        s.known = {str(i - 1): there}
        s.estimate = self.whole(self.weigh(s.gradient, s.look["rank"], s.own)["loss"])
        if s.estimate > self.aim:
            self.move(old, g)
            s.known[str(i - 1)] = at
        return s.estimate <= self.aim

    def decide(self) -> bool:
        """One remainder: stop, go up, or say by how much eps is missed."""
        s, last = self.s, self.s.level == self.top
        s.estimate = self.whole(self.now)
        seen = s.pairs or (self.exact and not s.gradient.any())
        enough = seen and (len(s.worths) > 1 or (last and not self.tail))
        if enough and s.estimate <= self.aim:
            finer = 0 if self.expensive else self.affordable(SHARE * self.bill.total) or 0
            sure = s.look is not None and (self.rough or s.look["rank"] >= finer)
            return self.end("done") if sure or self.checked() else True
        if s.gains and s.look and self.expensive and not self.rough and self.tail > self.aim:
            s.gains, s.memo["stalled"] = [], False  # once, before it is bought
            self.retake(s.look["rank"])
            return True
        if last:
            return self.end("missed" if self.eps else "done")
        if 2 * self.price[s.level + 1] > self.bill.left:
            k = self.levels[s.level + 1]
            raise Stop("budget", f"level {k} costs more than half of the rest")
        return self.up()

    def retake(self, j: int) -> None:
        """Weigh the last increment where the run has come to; errors that jump vanish there."""
        s = self.s
        if not self.rough:
            s.increments[-1] = s.gradient - self.at(s.level - 1)
        own = () if self.radius or s.look is None else s.own  # a flow starts where none was made
        self.weighed(self.weigh(s.increments[-1], j, own))

    def checked(self) -> bool:
        """Whether Lanczos, for no more than was paid so far, agrees with pairs; else it steps next."""
        s, pairs = self.s, self.now
        if s.memo["lost"] >= LOST or not s.memo["reach"]:
            return True  # and nothing is promised
        j = self.affordable(self.bill.total)
        look = self.weigh(s.gradient, min(s.memo["base"], s.level) if j is None else j)
        if s.worths:
            self.retake(look["rank"])
        s.estimate = self.whole(max(look["loss"], pairs))
        s.decide(
            f"before done is said, Lanczos on level {self.levels[look['rank']]} weighs what is "
            f"left: {look['loss']:.2g}, and errors beyond: {self.tail:.2g}"
        )
        if s.estimate > self.aim:
            s.look, s.own, s.memo["base"], s.memo["stalled"] = look, [], look["rank"], False
            s.memo["short"] *= max(1.0, look["loss"] / pairs) if pairs else 1.0
        return s.estimate <= self.aim

    def up(self) -> bool:
        """One gradient of the next level: the increment, its weight, and what to step by."""
        self.back(self.s.level + 1)
        s, before, steps = self.s, self.s.gradient, len(self.s.gains)
        s.level += 1
        s.gradient = self.at(s.level)
        d = s.gradient - before
        s.increments.append(d)
        s.gains, s.own, s.look = [], [], None
        s.memo |= {"stalled": False, "best": [math.inf, 0]}
        j = self.affordable(max(SHARE, steps / 4 - 1) * self.price[s.level])  # or what L-BFGS took
        if j is not None and j < s.level and s.gradient.any():
            s.look, solved = self.weigh(s.gradient, j), norm(before) < 0.1 * norm(d)
            s.worths.append(math.inf)
            self.weighed(s.look if solved else self.weigh(d, j))
        else:
            worth = dot(d, inverse(s.pairs, d)) / 2 if s.pairs else math.inf
            s.worths.append(s.memo["short"] * max(worth, 0.0))
        s.estimate = self.whole(self.now)
        left = f"by it {self.now:.2g} is left, and errors beyond it cost {self.tail:.2g}"
        s.decide(f"level {self.levels[s.level]} is asked: {left}")
        return True

    def flow(self, i: int, error: float) -> bool:
        """Gradient flow from the start: a level's gradient there on coarse curvature, and the end."""
        s, self.s.level, self.s.memo["products"] = self.s, i, PRODUCTS
        self.move(s.start, self.bill.value(self.levels[i], s.start, "gradients"))
        j = self.affordable(2 * self.price[i])  # a flow leans on its curvature
        step = self.weigh(s.gradient, j or 0, finely=True)["flowed"]
        self.move(s.start - step, s.gradient)
        s.estimate = self.eps / 3 + error
        return self.end("done", f"within {self.radius:g} of the start")

    def end(self, status: str, rests: str = "") -> bool:
        """Say what was reached and what that rests on; a run that missed does not end above y0."""
        s, k, differ = self.s, self.levels[self.s.level], sum(d.any() for d in self.s.increments)
        doubts = {  # the first that holds
            "nothing was seen to curve upwards: no minimizer is in sight": not s.pairs,
            "errors jump from point to point": self.rough,
            "the loss bends too fast for its curvature to be told": s.memo["lost"] >= LOST,
            "fewer than three levels differ, and none is exact": differ < 2 and not self.exact,
            "levels repeat one another": differ > 1 and not s.increments[-1].any(),
        }
        doubt = next((why for why, holds in doubts.items() if holds), "")
        s.estimate = max(s.estimate, TOLD * self.eps)
        s.status, about = status, f"a loss of about {s.estimate:.2g} by level {k} {rests}".strip()
        s.message = about + (f"; nothing is promised: {doubt}" if doubt else "")
        s.promise = "none" if doubt or status == "missed" else "estimate"
        if status == "done":
            return False
        if math.isinf(s.estimate) or not s.pairs:
            about = f"nothing is known of the loss ({doubt or 'errors do not fall'})"
        word = "is" if s.estimate > self.eps else "may be"  # estimates are off by a factor
        s.message = f"eps = {self.eps:g} {word} missed: {about}; errors beyond cost {self.tail:.2g}"
        g = None if np.array_equal(s.y, s.start) else self.tried(s.level, s.start, "gradients")
        if g is not None and dot(g + s.gradient, s.y - s.start) > 0:
            s.y, s.estimate = s.start, math.nan
            s.message = f"level {k} judges every point reached worse than the start: that is y"
        return False
