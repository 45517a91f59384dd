"""What a climb knows: evaluations bought once, vectors weighed by coarse curvature, one remainder.

A gradient or an increment v means a loss v^T H^-1 v/2 and a step -H^-1 v. H is that of a coarser
level, by Lanczos on differences over the distance travelled. Two levels differ by an increment; as
increments fall and turn, errors beyond the level asked cost `tail`.
"""

import math
from itertools import pairwise

import numpy as np

from .audits import beyond
from .bill import Bill
from .hierarchy import LevelError
from .solvers import Krylov, curvature, dot, inverse, norm

AIM = 0.5  # of eps: what is aimed at, as estimates are off by a factor; a level more, now and then;
TIGHT, EXPENSIVE = 0.75, 8.0  # where one costs eight times the last, less margin is bought
HIDDEN = 3.0  # times the loss seen where curvature is not resolved: what may hide there
ROUGH, LASTS = 0.02, 0.25  # of an error's square: less is not averaged, and no mean takes it away
PRODUCTS = 120  # per look, at most: enough for condition numbers of 1e4


class Remainder:
    """What the state `s` of a climb means."""

    def __init__(self, bill: Bill, state, eps: float | None, radius: float | None):
        self.bill, self.s, self.eps, self.radius = bill, state, eps or 0.0, radius or 0.0
        self.levels, self.top, self.exact = bill.h.levels, len(bill.h.levels) - 1, bill.h.exact
        self.price = [bill.price[k] for k in self.levels]

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

    # --- curvature ---

    def affordable(self, limit: float) -> int | None:
        """The finest rank whose products cost no more than the limit."""
        s = self.s
        fits = [j for j in range(s.base, s.level + 1) if s.products * self.price[j] <= limit]
        return max(fits) if fits and (self.radius or norm(s.y - s.start)) else None

    def weigh(self, v: np.ndarray, j: int, most: float = PRODUCTS, tolerance=0.02) -> dict:
        """What v means at y by the curvature of rank j: the loss v^T H^-1 v/2 and the step -H^-1 v.

        Eigenvalues that noise hides, or the levels beyond change, are raised to what is resolved.
        """
        s, out = self.s, dict(rank=j, loss=0.0, step=0 * v, jump=0.0, flow=0.0, flowed=v, rest=v)
        if not v.any():
            return out
        longest, rng = max(2 * norm(s.y - s.start), 4 * self.radius), np.random.default_rng(s.step)
        f, at, most = lambda z: self.tried(j, z), self.at(j, "curvature"), min(int(most), PRODUCTS)
        found = curvature(f, s.y, at, v, longest, most, rng, tolerance)
        s.products = found.nodes.size + 6
        floor = max(found.unresolved, 3 * self.drift(j, found), 1e-14 * found.nodes[-1], 1e-150)
        raised = np.maximum(found.nodes, floor)
        counted = np.where(found.nodes > floor, 1.0, HIDDEN)
        out["loss"], out["jump"] = float(found.weights @ (counted / raised)) / 2, found.jump
        out["step"] = -found.apply(1 / raised).reshape(v.shape)
        if self.radius:
            t = 3 * self.radius**2 / (4 * math.e * self.eps)  # hides a third of eps
            bent = np.maximum(found.nodes, 1e-12 / t)  # a flow needs no floor
            filtered = -np.expm1(-bent * t) / bent
            out["flow"] = float(found.weights @ (bent * filtered**2)) / 2
            out["flowed"] = found.apply(filtered).reshape(v.shape)
            out["rest"] = found.apply(1 - bent * filtered).reshape(v.shape)
        return out

    def drift(self, j: int, found: Krylov) -> float:
        """What the curvature of rank j is off by: half of what it changed, where it is flattest."""
        s, i = self.s, max(j, 1)
        if j == s.level:
            return 0.0
        flattest = (found.basis.T @ found.ritz[:, 0]).reshape(s.y.shape)
        low, high = (self.tried(m, s.y + found.t * flattest) for m in (i - 1, i))
        if low is None or high is None:
            return 0.0
        gap = (high - self.at(i, "curvature") - low + self.at(i - 1, "curvature")) / found.t
        average = norm(found.basis @ gap.ravel()) / math.sqrt(len(found.nodes))
        return max(abs(dot(gap, flattest)) / 2, average) / (2 if j else 1)

    def increment(self, j: int | None, most: float = PRODUCTS) -> None:
        """Weigh what the level asked changed, at y: by the curvature of rank j, or by pairs."""
        s, d = self.s, self.s.gradient - self.at(self.s.level - 1)
        s.increments[s.level - 1 :], s.known["increment"] = [[d, 0.0, 0.0]], True
        if j is None:
            seen = dot(d, inverse(s.pairs, d)) / 2 if s.pairs else math.inf
            s.increments[-1][1] = max(seen, 0.0)
        elif d.any():
            look, r = self.weigh(d, j, most), self.falls()[0]
            s.increments[-1][1:] = look["loss"], look["flow"]
            error = norm(s.increments[max(j - 1, 0)][0]) * (r if j else 1.0) / math.hypot(1, r)
            share = (look["jump"] / error) ** 2 if error else 0.0
            s.fresh = min(share, 1 - LASTS) if share > ROUGH else 0.0

    # --- one remainder ---

    @property
    def expensive(self) -> bool:
        """Whether the next level is."""
        i = self.s.level
        return i < self.top and self.price[i + 1] >= EXPENSIVE * self.price[i]

    @property
    def aim(self) -> float:
        return self.eps * (TIGHT if self.expensive else AIM)

    def falls(self) -> tuple[float, float]:
        """By what increments fall per level, and their cosine; one alone may keep its direction."""
        last = [d for d, *_ in self.s.increments[-4:] if d.any()]
        sizes = [norm(d) for d in last]
        ratios = [b / a for a, b in pairwise(sizes)] or [0.5]
        r = max(math.prod(ratios) ** (1 / len(ratios)), ratios[-1] / 2, 0.5 / len(ratios))
        r = min(r, 0.95)
        own = -r / (1 + r * r)  # of errors with directions of their own
        if self.s.fresh or len(last) < 2:
            return r, own if self.s.fresh else 1.0
        units = [d / n for d, n in zip(last[-3:], sizes[-3:], strict=True)]
        return r, max(own, float(np.mean([np.vdot(a, b) for a, b in pairwise(units)])))

    @property
    def tail(self) -> float:
        """What errors of the level asked that last cost, if they go on as they fell so far."""
        s = self.s
        if s.level == self.top and (self.exact or not self.top):
            return 0.0
        if not s.level or not s.increments[-1][0].any():
            repeated = s.level > 1 and not s.increments[-2][0].any()  # twice: it may be exact
            return 0.0 if repeated else math.inf
        return (1 - s.fresh) * s.increments[-1][1] * beyond(*self.falls()) ** 2

    @property
    def now(self) -> float:
        """The loss that is left by the level asked: by Lanczos, or by pairs and the last gains."""
        s, steps = self.s, len(self.s.sizes) - 1
        if not s.gradient.any():
            return 0.0
        if s.look is not None:
            error = self.tail / (1 - s.fresh)
            averaged = s.fresh and steps and s.look["loss"] <= 4 * error
            return 1.5 * s.fresh * error / steps if averaged else s.look["loss"]
        if not s.pairs:
            return math.inf
        gains = [product / 2 for *_, product in s.pairs[-min(steps, 3) :] if steps]
        return max(dot(s.gradient, inverse(s.pairs, s.gradient)) / 2, sum(gains) / 3, 0.0)

    @property
    def whole(self) -> float:
        """What is left and the tail; errors that keep their direction add up with what is left."""
        now, tail = self.now, self.tail
        if not now or not tail or math.isinf(now + tail):
            return now + tail
        return now + tail + 2 * max(self.falls()[1], 0.0) * math.sqrt(now * tail)
