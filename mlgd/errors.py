"""What a run without a plan knows of its levels' errors: how large they are, how they fall, and what they cost in loss."""

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from .curvature import Look
from .rates import beyond

ROUGH = 0.004  # of an increment's square: from here on errors are said to jump from point to point
NEARLY_ALL = 50.0  # times what is seen: where more than that hides, an estimate rests on nothing
FASTEST = 0.25  # by which increments are taken to fall where two of them are all that is known
DEEPEST = (
    4.0  # times the loss that can be seen below the noise of products: what may lie there, at most
)


@dataclass
class Errors:
    """Increments as they were asked, from the second level on, and looks at the last of them.

    `depth` is what lies below the noise of products, times what can be seen there, by how steps reduce it; `jumps` is the share
    of an increment's square that differs from point to point.
    """

    alone: bool  # whether there is but one level: its own error can't be told
    increments: list[np.ndarray] = field(default_factory=list)
    shapes: list[Look] = field(default_factory=list)
    means: bool = False  # whether levels are means over the same points: their errors may resemble one another
    lasting: float = 0.0  # what of the errors of means does not average out, in loss
    depth: float = 2.0
    jumps: float = 0.0

    def worth(self, found: Look) -> float:
        """The loss that a look stands for: what is seen, and what may be hidden."""
        return found.seen + (min(self.depth, 2.0) if self.rough else self.depth) * found.hidden

    def blind(self, found: Look) -> bool:
        """Whether most of the loss hides below the noise of products, and steps do not show how much it is."""
        return self.depth >= DEEPEST and self.depth * found.hidden > NEARLY_ALL * found.seen

    def deepen(self, before: Look, after: Look) -> None:
        """A step leaves a share 1 - lambda/floor of what is hidden: so much for the eigenvalues there."""
        if before.hidden > 0 and after.level == before.level and not self.rough:
            fall = math.sqrt(after.mass / before.mass)
            self.depth = min(1 / (1 - fall), DEEPEST) if fall < 1 else DEEPEST

    def size(self, i: int) -> float:
        return float(np.linalg.norm(self.increments[i]))

    @property
    def largest(self) -> float:
        """What the gradient of the level asked may be off by."""
        return 3 * self.size(-1) if self.increments else 0.0 if self.alone else math.inf

    @property
    def ratio(self) -> float:
        """By what increments fall per level, in the mean over the last three."""
        last = [size for d in self.increments[-4:] if (size := float(np.linalg.norm(d)))]
        falls = [b / a for a, b in pairwise(last)]
        if len(falls) < 2:
            return max(falls[0], FASTEST) if falls else 0.5
        return max(math.prod(falls) ** (1 / len(falls)), falls[-1] / 2)

    @property
    def cosine(self) -> float:
        """Between increments, in the mean over the last three; no less than that of errors with directions of their own.

        One increment tells nothing: errors may all have one direction, and then they add up.
        """
        own, last = (
            -self.ratio / (1 + self.ratio**2),
            [d for d in self.increments[-3:] if d.any()],
        )
        if self.rough:
            return 0.0 if self.means else own
        if len(last) < 2:
            return 1.0
        last = [d / np.linalg.norm(d) for d in last]
        return max(own, float(np.mean([np.vdot(a, b) for a, b in pairwise(last)])))

    @property
    def tail(self) -> float:
        """What errors beyond the level asked cost, if they go on as they fell so far."""
        if not self.increments:
            return 0.0 if self.alone else math.inf
        if not self.size(-1):  # one level that repeats another proves nothing
            return 0.0 if len(self.increments) > 1 and not self.size(-2) else math.inf
        share = beyond(self.ratio, self.cosine) if self.ratio < 0.9 else 1.0
        weights = [self.worth(s) / s.size**2 for s in self.shapes if s.size]
        return max(
            (share * self.size(-1)) ** 2 * float(np.mean(weights or [math.inf])), self.lasting
        )

    @property
    def before(self) -> float:
        """The loss at the zero of the level before the last one asked."""
        return self.tail / self.ratio**2 if self.ratio else 0.0

    def whole(self, now: float) -> float:
        """The loss where the level asked says `now`: errors beyond it that keep their direction add up with what is left."""
        tail = self.tail
        if math.isinf(now + tail):
            return math.inf
        return (
            now
            + tail
            + (2 * max(self.cosine, 0.0) * math.sqrt(now * tail) if self.increments else 0.0)
        )

    @property
    def rough(self) -> bool:
        return self.jumps > ROUGH

    @property
    def fresh(self) -> float:
        """The part of the level's error that differs from point to point, in loss: a mean over points has less of it."""
        return min(self.jumps * self.worth(self.shapes[-1]), self.tail / 2) if self.shapes else 0.0

    def averaged(self, now: float, n: int) -> float:
        """The loss of the mean of n + 1 steps where a gradient at the mean of n still says `now`, jumps and all."""
        jumps = min(self.fresh, now / (1 + 1 / n))
        rest = (now - jumps * (1 + 1 / n)) * (1 - 1 / (n + 1)) ** 2
        return self.tail - jumps * (1 - 1 / (n + 1)) + rest

    @property
    def doubt(self) -> str:
        """Why nothing is promised although all that can be seen is well."""
        if sum(d.any() for d in self.increments) < 2:
            return "fewer than three levels that differ can't tell how errors fall, so nothing is promised"
        if self.rough or self.means:
            return "errors jump from point to point, which no gradient can rule out, so nothing is promised"
        if not self.increments[-1].any():
            return "the last level asked repeats the one before: either is exact or the ladder stalls, so nothing is promised"
        return ""
