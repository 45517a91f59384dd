"""What a climb knows: evaluations bought once, what vectors mean by coarse curvature, and one remainder.

A gradient or an increment v means a loss v^T H^-1 v/2 and a step -H^-1 v. H is that of a coarser level, by Lanczos on
differences over the distance travelled, corrected by the pairs of steps on the level asked. Eigenvalues that noise hides, or
the next level changes, are raised to what is resolved.
"""

import math
from itertools import pairwise

import numpy as np

from .audits import beyond
from .bill import Bill
from .hierarchy import LevelError
from .solvers import Krylov, curvature, dot, inverse, norm

AIM = 0.5  # of eps: what is aimed at, as estimates are off by a factor; a level more, now and then;
TIGHT, EXPENSIVE = 0.9, 8.0  # where one costs eight times the last, less margin is bought
HIDDEN = 3.0  # times the loss seen where curvature is not resolved: what may hide there
ROUGH = 0.004  # of an increment's square: errors that jump by more prove nothing at a zero
SHARE = 0.5  # of a gradient: what products for one step may cost; more of them for better steps
LOST = 6  # steps refused in a row: Lanczos is not asked again, and nothing is promised
PRODUCTS = 120  # per step, at most: enough for condition numbers of 1e4


class Remainder:
    """What the state of a climb means; `s` is that state."""

    def __init__(self, bill: Bill, state, eps: float | None, radius: float | None):
        self.bill, self.s, self.eps, self.radius = bill, state, eps or 0.0, radius
        self.levels, self.top = bill.h.levels, len(bill.h.levels) - 1
        self.price = [bill.h.cost(k) for k in self.levels]
        self.exact = getattr(bill.h, "exact", False)

    def tried(self, i: int, x: np.ndarray, purpose: str = "curvature") -> np.ndarray | None:
        """The level of rank i at x, or None where it has nothing to say: a trial went too far."""
        try:
            value = self.bill.value(self.levels[i], x, purpose)
        except LevelError:
            return None
        return value if np.abs(value).max() < 1e100 else None

    def at(self, i: int, purpose: str = "gradients") -> np.ndarray:
        """The level of rank i at y, bought once."""
        if str(i) not in self.s.known:
            self.s.known[str(i)] = self.bill.value(self.levels[i], self.s.y, purpose)
        return self.s.known[str(i)]

    def move(self, x: np.ndarray, g: np.ndarray) -> None:
        x.flags.writeable = False
        self.s.y, self.s.gradient, self.s.known = x, g, {str(self.s.level): g}

    def back(self, i: int) -> None:
        """Where the finer level of rank i has no value at y, go half of the way to the start, up to six times."""
        s, x, halves = self.s, self.s.y, 0
        while str(i) not in s.known:
            try:
                there = self.bill.value(self.levels[i], x, "gradients")
            except LevelError as error:
                x, halves = (s.start + x) / 2, halves + 1
                if error.__cause__ or halves > 6 or np.array_equal(s.y, s.start):
                    raise  # an error of its own, or no way back
                continue
            if halves:
                self.move(x, self.bill.value(self.levels[s.level], x, "gradients"))
                s.decide(f"level {self.levels[i]} has no value at y: {halves} times half-way back")
            s.known[str(i)] = there

    def take(self, gain: float) -> None:
        """The last move is for good."""
        s = self.s
        s.gains.append(gain)
        s.memo["reach"] = max(s.memo["reach"], norm(s.y - s.start))

    # --- curvature ---

    def affordable(self, limit: float) -> int | None:
        """The finest rank whose products cost no more than the limit."""
        s, n = self.s, self.s.memo["products"]
        fits = [j for j in range(s.memo["base"], s.level + 1) if n * self.price[j] <= limit]
        return max(fits) if fits and s.memo["reach"] and s.memo["lost"] < LOST else None

    @property
    def base(self) -> int:
        """The rank whose curvature steps on this level take."""
        j = self.affordable(SHARE * self.price[self.s.level])
        return min(self.s.memo["base"], self.s.level) if j is None else j

    def weigh(self, v: np.ndarray, j: int, own: list | tuple = (), finely=False) -> dict:
        """What v means at y by the curvature of rank j, corrected by steps here: loss and step.

        Eigenvalues that noise hides, or the next level changes, are raised to what is resolved.
        """
        s, t = self.s, self.radius and self.radius**2 / (4 * math.e * self.eps / 3)
        out = dict(rank=j, hidden=0.0, flow=0.0, jump=0.0, convex=True, flowed=v)

        def first(q: np.ndarray) -> np.ndarray:
            if not q.any():
                return q
            rng, longest = np.random.default_rng([s.seed, s.step]), 2 * s.memo["reach"]
            f, at = lambda z: self.tried(j, z), self.at(j, "curvature")
            found = curvature(f, s.y, at, q, longest, PRODUCTS, rng, 0.0 if finely else 0.02)
            s.memo["products"] = found.nodes.size + 6
            floor = max(found.unresolved, 3 * self.drift(j, found), 1e-14 * found.nodes[-1], 1e-150)
            raised = np.maximum(found.nodes, floor)
            below = found.nodes <= floor
            out["hidden"] = float((found.weights / raised)[below].sum()) / 2
            out["jump"], out["convex"] = found.jump, bool(found.nodes[0] > -floor / 3)
            if t:
                bent = np.maximum(found.nodes, 1e-12 / t)  # a flow needs no floor
                filtered = -np.expm1(-bent * t) / bent
                out["flow"] = float(found.weights @ (bent * filtered**2)) / 2
                out["flowed"] = found.apply(filtered).reshape(v.shape)
            return found.apply(1 / raised).reshape(v.shape)

        out["step"] = -inverse(own, v, first)
        out["loss"] = max(-dot(v, out["step"]) / 2 + (HIDDEN - 1) * out["hidden"], 0.0)
        return out

    def drift(self, j: int, found: Krylov) -> float:
        """What the next level changes the curvature of rank j by: where it is flattest, on average."""
        s, drift = self.s, self.s.memo["drift"]
        if j == s.level:
            return 0.0
        if j + 1 == s.level and str(j - 1) in drift:  # the next level is the one asked
            return drift[str(j - 1)] / 2
        if str(j) not in drift:
            flattest = (found.basis.T @ found.ritz[:, 0]).reshape(s.y.shape)
            there = [self.tried(m, s.y + found.t * flattest) for m in (j, j + 1)]
            if there[0] is None or there[1] is None:
                return 0.0
            now = [self.at(m, "curvature") for m in (j, j + 1)]
            gap = (there[1] - now[1] - there[0] + now[0]) / found.t
            average = norm(found.basis @ gap.ravel()) / math.sqrt(len(found.nodes))
            drift[str(j)] = max(abs(dot(gap, flattest)) / 2, average)
        return drift[str(j)]

    # --- one remainder ---

    @property
    def aim(self) -> float:
        return self.eps * (TIGHT if self.expensive else AIM)

    @property
    def expensive(self) -> bool:
        """Whether the next level is."""
        i = self.s.level
        return i < self.top and self.price[i + 1] >= EXPENSIVE * self.price[i]

    @property
    def rough(self) -> bool:
        return self.s.memo.get("jumps", 0.0) > ROUGH

    @property
    def now(self) -> float:
        """The loss that is left by the level asked: by Lanczos, or by pairs and the last gains."""
        s = self.s
        if not s.gradient.any():
            return 0.0
        if s.look is not None:
            return s.look["loss"]
        if not s.pairs:
            return math.inf
        seen = dot(s.gradient, inverse(s.pairs, s.gradient)) / 2
        return s.memo["short"] * max(seen, sum(s.gains[-3:]) / 3, 0.0)

    def falls(self) -> tuple[float, float]:
        """By what increments fall per level, and their cosine; one alone may keep its direction."""
        last = [d for d in self.s.increments[-4:] if d.any()]
        sizes = [norm(d) for d in last]
        ratios = [b / a for a, b in pairwise(sizes)] or [0.5]
        r = max(math.prod(ratios) ** (1 / len(ratios)), ratios[-1] / 2, 0.25 / len(ratios))
        r = min(r, 0.95)
        own = -r / (1 + r * r)  # of errors with directions of their own
        if self.rough or len(last) < 2:
            return r, own if self.rough else 1.0
        units = [d / n for d, n in zip(last[-3:], sizes[-3:], strict=True)]
        return r, max(own, float(np.mean([np.vdot(a, b) for a, b in pairwise(units)])))

    @property
    def tail(self) -> float:
        """What errors beyond the level asked cost, if they go on as they fell so far."""
        s = self.s
        if s.level == self.top and (self.exact or not self.top):
            return 0.0
        if (
            not s.worths or not s.increments[-1].any()
        ):  # two that repeat the one before may be exact
            return 0.0 if len(s.worths) > 1 and not s.increments[-2].any() else math.inf
        return s.worths[-1] * beyond(*self.falls()) ** 2

    def whole(self, now: float) -> float:
        """What is left and the tail; errors that keep their direction add up with what is left."""
        tail = self.tail
        if not now or not tail or math.isinf(now + tail):
            return now + tail
        return now + tail + 2 * max(self.falls()[1], 0.0) * math.sqrt(now * tail)

    def weighed(self, look: dict) -> None:
        """Keep what an increment is worth, and whether errors jump."""
        s, j = self.s, look["rank"]
        size = norm(s.increments[max(j - 1, 0)]) * (1 if j else 2)
        s.memo["jumps"] = (look["jump"] / size) ** 2 if size else 0.0
        s.worths[-1:] = [look["loss"]]
        s.memo["flow"] = look["flow"] / look["loss"] if look["loss"] else 0.0
