"""Minimize without constants: from coarse to fine, with fine gradients on coarse curvature.

1. Two evaluations at the start tell whether a level repeats itself. Solve the coarsest by L-BFGS.
2. Go up: one gradient of the next level. L-BFGS goes on there and keeps its pairs; or, where that
   costs less, Lanczos on differences of a coarser level says what loss is left and where to step,
   that level tilted to the fine one how far, and the fine gradient whether it helped (MG/Opt).
3. Two levels differ by an increment: its weight by the same curvature is what the coarser one was
   wrong by. As increments fall and turn, errors beyond the level asked cost `tail`.
4. A level is solved until what is left counts little beside its tail, whatever eps is; eps says
   when to stop. Before *done* is said the next level is asked, where it is cheap, and Lanczos in
   any case: pairs are blind where no step has led.
5. Errors that are new at every point are averaged: the n-th step on a level has the weight 1/n.
6. With a radius R >= |y0 - y*|, gradient flow for a time t hides at most R^2/(4et); the level's
   gradient at its end must be what is left by the curvature that it was made of.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from .bill import Bill, State, Stop
from .hierarchy import LevelError
from .remainder import PRODUCTS, Remainder
from .solvers import advance, dot, keep, norm, search

LEFT = 0.25  # of the tail: more than that is worth a step before the next level is bought
LAST = 0.1  # of eps: what may be left on the finest level; and no smaller loss is told
COARSE = 0.25  # of the first increment: the gradient at which the first level is solved
SHARE = 0.5  # of a gradient: what products for one step may cost; more of them for better steps
CHECK = 0.4  # of what was paid so far: what it may cost to doubt that all is done
SLOW = 0.5  # a step that leaves more of the loss than this asks for finer, costlier curvature
PLATEAU = 6  # steps without a gradient smaller by a tenth: the next level knows better
STUCK = [math.inf] * 5 * PLATEAU  # no step on this level helps any more
REPEATS = 1e-6  # of a gradient: what sums in another order change


@dataclass
class Climb(State):
    """`level` is the rank of the level asked, `gradient` its value at y, `look` Lanczos's view."""

    start: np.ndarray | None = None
    gradient: np.ndarray | None = None
    level: int = 0
    pairs: list = field(default_factory=list)  # of L-BFGS, kept across levels
    increments: list = field(default_factory=list)  # [vector, the loss it is worth, after a flow]
    sizes: list = field(default_factory=list)  # of gradients, at arrival and after each step here
    look: dict | None = None  # None: steps are L-BFGS's
    known: dict = field(default_factory=dict)  # values at y, by rank; whether the increment is y's
    base: int = 0  # the rank below which curvature was seen to mislead
    products: int = 40  # that the last look took
    fresh: float = 0.0  # the share of an error's square that is another one at every point
    flows: bool = True  # until the end of a flow is not where it should be


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
        """The first gradient, twice; what the next level changes says how far to solve this one."""
        s, k = self.s, self.levels[0]
        s.start, s.gradient = s.y, self.at(0)
        apart = norm(self.bill.value(k, s.y.copy(), "gradients") - s.gradient)
        if apart > REPEATS * max(norm(s.gradient), apart):
            why = "evaluate must be deterministic: freeze the random numbers of a level"
            raise LevelError(f"level {k} gave two gradients at one point; {why}", k)
        s.sizes = [norm(s.gradient)]
        s.increments = [[self.at(1) - s.gradient, math.inf, 0.0]] if self.top else []

    def step(self) -> bool:
        """Solve on while this level has something to say, else decide; whether the run goes on."""
        s, now, tail, few = (
            self.s,
            self.now,
            self.tail,
            PLATEAU * (5 if self.s.level == self.top else 1),
        )
        if self.radius and s.flows and s.level > 1 and s.look and self.flow():
            return False
        stuck = len(s.sizes) > few and min(s.sizes[-few:]) > 0.9 * min(s.sizes[:-few])
        if not s.level and self.top:
            first = norm(s.increments[0][0])
            solved = now <= 0.02 * self.aim or norm(s.gradient) <= COARSE * first
        elif tail <= 0.95 * self.aim:
            solved = self.whole <= self.aim
        else:
            solved = now < LEFT * tail
            if s.level == self.top:  # no level comes after it to mend what is left
                solved = now < max(LAST * self.eps, LAST**2 * tail)
        if solved or stuck:
            return self.decide()
        self.quasi() if s.look is None else self.newton()
        return True

    def quasi(self) -> None:
        """One step of L-BFGS on the level itself."""
        s = self.s
        found = advance(lambda z: self.tried(s.level, z, "gradients"), s.y, s.gradient, s.pairs)
        if found is None:
            s.sizes += STUCK
        else:
            self.move(*found)
            s.sizes.append(norm(s.gradient))

    @contextmanager
    def trial(self) -> Iterator[dict]:
        """Where the run stands, and stands again if anything ends it before a move is judged."""
        old = {name: getattr(self.s, name) for name in ("level", "y", "gradient", "known", "look")}
        try:
            yield old
        except BaseException:
            vars(self.s).update(old)
            raise

    def newton(self) -> None:
        """The step that Lanczos advises, judged at its end; refused where the loss has grown."""
        s, i, look, before = self.s, self.s.level, self.s.look, self.s.gradient
        at, n = self.at(look["rank"], "curvature"), len(self.s.sizes)

        def tilted(z: np.ndarray) -> np.ndarray | None:
            value = self.tried(look["rank"], z)
            return None if value is None else before + value - at

        averaged = s.fresh and n > 1
        t = 1 / n if averaged else (search(tilted, s.y, before, look["step"]) or [0.125])[0]
        while (g := self.tried(i, s.y + t * look["step"], "gradients")) is None:
            t /= 4  # it led out of the domain
            if t < 1e-4:
                s.sizes += STUCK
                return
        step = t * look["step"]
        fell = -dot(s.gradient + g, step)  # by the trapezoidal rule
        if not s.fresh:
            keep(s.pairs, step, g - s.gradient)
        if look["rank"] == i:  # it led where pairs were blind; L-BFGS goes on
            self.move(s.y + step, g)
            s.look, s.sizes = None, [*s.sizes, norm(g)]
            return
        with self.trial() as old:
            self.move(s.y + step, g)
            s.look = self.weigh(g, max(look["rank"], self.affordable(SHARE * self.price[i]) or 0))
        gain = s.look["loss"] / look["loss"] if look["loss"] else 1.0
        if gain < 1 or (fell > 0 and gain < 2) or averaged:
            s.sizes.append(norm(g))
            s.estimate = self.whole
        else:
            vars(s).update(old)
        if gain > SLOW:
            self.slow()

    def slow(self) -> None:
        """Average on; or up, if errors beyond count; or finer curvature; or L-BFGS."""
        s, i, j, n = self.s, self.s.level, self.s.look["rank"], len(self.s.sizes)
        up = self.price[i + 1] if i < self.top else math.inf
        if s.fresh and 1 < n < 30 and n * self.price[i] < up:
            return
        if s.fresh or (i < self.top and self.tail > self.aim and self.tail >= self.now / 4):
            s.sizes += STUCK
            return
        s.base = min(j + 1, i)
        s.look = self.weigh(s.gradient, j + 1) if j + 1 < i else None
        if s.look is None:
            s.sizes = [norm(s.gradient)]
            s.decide(f"steps get on slowly: L-BFGS on level {self.levels[i]} itself")

    def decide(self) -> bool:
        """One remainder: stop, go up, or say by how much eps is missed."""
        s, i, last = self.s, self.s.level, self.s.level == self.top
        s.estimate, limit = self.whole, CHECK * self.bill.total
        seen = s.pairs or (self.exact and not s.gradient.any())
        if seen and (i > 1 or (last and not self.tail)) and s.estimate <= self.aim:
            cheap = not last and not self.expensive and self.price[i + 1] <= limit
            if cheap and not s.fresh and len(s.sizes) > 1:
                return self.up()  # does the next level agree?
            if s.look is None and s.gradient.any() and norm(s.y - s.start):
                j = self.affordable(limit) or min(s.base, i)
                return self.view(j, max(8, limit / self.price[j]))
            return self.end("done")
        if last:
            return self.end("missed" if self.eps else "done")
        if 2 * self.price[i + 1] > self.bill.left:
            k = self.levels[i + 1]
            raise Stop("budget", f"level {k} costs more than half of the rest")
        if i and self.expensive and "increment" not in s.known and not s.fresh:
            self.increment(s.look and s.look["rank"])  # at y: once more, before that is bought
            s.sizes = [size for size in s.sizes if size < math.inf]
            return True
        return self.up()

    def up(self) -> bool:
        """One gradient of the next level, at y or half-way back to the start where it has none."""
        s, i, steps = self.s, self.s.level + 1, len(self.s.sizes) - 1
        with self.trial():
            for _ in range(6):
                there = self.tried(i, s.y, "gradients")
                if there is not None:
                    s.known[str(i)] = there
                    break
                x = (s.start + s.y) / 2
                self.move(x, self.bill.value(self.levels[i - 1], x, "gradients"))
            s.level, s.gradient = i, self.at(i)
        j = self.affordable(max(SHARE, steps / 4 - 1) * self.price[i])  # or what L-BFGS took
        return self.view(None if j == i or not s.gradient.any() else j)

    def view(self, j: int | None, most: float = PRODUCTS) -> bool:
        """What is left and what lies beyond, by the curvature of rank j, which steps from here."""
        s = self.s
        s.look, s.sizes = None, [norm(s.gradient)]
        if s.level:
            self.increment(j, most)
        if j is not None:
            s.look = self.weigh(s.gradient, j, most)
        s.estimate, by = self.whole, "pairs" if j is None else f"Lanczos on level {self.levels[j]}"
        s.decide(
            f"level {self.levels[s.level]} is asked: {self.now:.2g} is left, errors beyond it cost "
            f"{self.tail:.2g}, by {by}"
        )
        return True

    def flow(self) -> bool:
        """Gradient flow from the start, if that will do: a gradient there on coarse curvature."""
        s, (_, loss, flowed), fall = self.s, self.s.increments[-1], self.falls()[0] ** 2
        error = self.tail / (1 - s.fresh) * flowed / loss if loss else 0.0
        more = error > self.eps / 2 and s.level < self.top
        error *= fall if more else 1
        if error > self.eps / 2:
            return False
        with self.trial() as old:
            s.level, s.products = s.level + more, PRODUCTS
            k, j = self.levels[s.level], self.affordable(2 * self.price[s.level]) or 0
            self.move(s.start, self.bill.value(k, s.start, "gradients"))
            look = self.weigh(s.gradient, j, tolerance=0.0)  # a flow leans on its curvature
            x = s.start - look["flowed"]
            there = self.tried(s.level, x, "gradients")
            if there is not None:
                self.move(x, there)
                error = max(error, self.weigh(there - look["rest"], j)["flow"])
        if there is not None and self.eps / 3 + error <= self.eps:
            s.estimate = self.eps / 3 + error
            self.end("done", f"within {self.radius:g} of the start")
            return True
        vars(s).update(old, flows=False)
        s.decide(f"gradient flow does not lead where level {k} agrees: it is left out")
        return False

    def end(self, status: str, rests: str = "") -> bool:
        """Say what was reached and what that rests on; a run that missed does not end above y0."""
        s, k = self.s, self.levels[self.s.level]
        differ = [d.any() for d, *_ in s.increments[: s.level]]
        doubts = {  # the first that holds
            "nothing was seen to curve upwards: no minimizer is in sight": not s.pairs,
            "errors jump from point to point": s.fresh > 0,
            "levels repeat one another": not all(differ[-2:]),
            "fewer than four levels differ": sum(differ) < 3
            and not (self.exact and s.level == self.top),
        }
        doubt = next((why for why, holds in doubts.items() if holds), "")
        s.estimate = max(s.estimate, LAST * self.eps)
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
