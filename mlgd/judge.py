"""What gradients and increments say of the loss: pure functions.

A run stands at a point with the gradient of a level. Three things may still cost loss there:

- what is *left* on this level: the worth of its gradient by the curvature known;
- the *tail*: levels beyond are other functions. An increment is what the level before was wrong
  by, and as the last three fall in size and turn in direction, so will the errors beyond;
- what both cost *together*, as far as they point the same way.

Errors have a part that lasts and, it may be, one that is new at every point (`jumping`, its share
of an error's square): steps average that.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from . import rules
from .curvature import dot, norm


def beyond(ratio: float, cosine: float) -> float:
    """The error of a level over its increment, for errors that fall by `ratio` per level.

    Errors e_k = ratio^k u_k of one size whose directions have correlation rho^j over j levels make
    increments with the cosine (rho (1 + r^2) - r (1 + rho^2))/(1 + r^2 - 2 rho r): solved for rho.

    >>> round(beyond(0.5, 1.0), 9), round(beyond(0.5, -0.17 / 0.95), 9)  # one direction; rho = 0.3
    (1.0, 0.512989176)
    """
    # ratio rho^2 - 2 half rho + last = 0
    square = 1 + ratio**2
    half = square / 2 + cosine * ratio
    last = ratio + cosine * square
    root = math.sqrt(max(half**2 - ratio * last, 0.0))
    rho = (half - root) / ratio
    rho = min(max(rho, -1.0), 1.0)
    return ratio / math.sqrt(square - 2 * rho * ratio)


INCREMENTS = 3  # the last ones, which tell how errors fall


class Fall(NamedTuple):
    """By what increments may go on falling from level to level, and the cosine between two."""

    ratio: float
    cosine: float

    @property
    def beyond(self) -> float:
        """The error of the finest level seen, over its increment."""
        return beyond(self.ratio, self.cosine)


def falling(increments: Sequence[np.ndarray], jumping: float) -> Fall:
    """How the last three increments fall: the geometric mean of two ratios, luck apart.

    One ratio alone may be luck: increments then fall no faster than `FASTEST_FALL`. What jumps
    has no direction of its own: errors e_k drawn anew make increments with a cosine of
    -r / (1 + r^2). Of a single increment nothing is known but its direction.
    """
    ratios, cosines = [], []
    last = [d for d in increments[-INCREMENTS:] if norm(d)]
    for a, b in pairwise(last):
        ratios.append(min(norm(b) / norm(a), rules.SLOWEST_FALL))
        cosines.append(dot(a, b) / norm(a) / norm(b))
    if not ratios:
        ratios, cosines = [rules.FASTEST_FALL], [1.0]
    times = len(ratios)
    mean = math.prod(ratios) ** (1 / times)
    ratio = max(mean, rules.FASTEST_FALL / times)
    if jumping:
        return Fall(ratio, -ratio / (1 + ratio * ratio))
    return Fall(ratio, sum(cosines) / times)


def fell(before: np.ndarray, after: np.ndarray) -> bool:
    """Whether an increment is smaller than the one before."""
    return norm(after) <= rules.SLOWEST_FALL * norm(before)


def tail(
    worths: Sequence[float], fall: Fall, jumping: float, slowly: bool = True
) -> float:
    """What lasting errors of the finest level seen cost, the most that three increments say.

    An increment that is n levels old is worth ratio^(2n) of itself now: worths are squares. The
    last increment had a say in the ratio, and a lucky small one would wipe out those before it:
    where another level can be paid they age `slowly`, no faster than a fall that was seen once.
    """
    ratio = max(fall.ratio, rules.FASTEST_FALL) if slowly else fall.ratio
    aged = []
    for age, worth in enumerate(reversed(worths[-INCREMENTS:])):
        aged.append(worth * ratio ** (2 * age))
    return (1 - jumping) * max(aged) * fall.beyond**2


def extrapolated(gains: Sequence[float], steps: int) -> float:
    """What further steps would gain, if gains go on falling as they did from quarter to quarter.

    A geometric series: late r / (1 - r) with r = late / early, at most 0.9. `steps` were made; the
    gains of the first ones may have been forgotten.
    """
    n = max(2, steps // 4)
    late = sum(gains[-n:])
    early = sum(gains[-2 * n : -n])
    lost = max(early - late, late / 9, 1e-300)
    return late * (late / lost)


def together(fall: Fall, left: np.ndarray, increment: np.ndarray) -> float:
    """What the gradient and the errors beyond cost beside each other, as errors keep direction.

    `left` is the step that the gradient asks for; the error beyond is a multiple of the increment.
    """
    both = fall.beyond * dot(left, increment)
    return max(fall.cosine, 0.0) * max(both, 0.0)


def jumping_share(jump: float, before: float, coarsest: bool) -> float:
    """The share of an error's square that is new at every point, from the size of jumps there.

    `before` is the length of the increment to the level seen, or, at the coarsest, from it. Errors
    that halve from level to level make an increment whose square is 1 + 4 = 5 times that of the
    finer error, and 1 + 1/4 times that of the coarser one.
    """
    if not before:
        return 0.0
    square = 1.25 if coarsest else 5
    share = (jump / before) ** 2 * square
    if share <= rules.JUMPS_COUNT:
        return 0.0
    return min(share, 1 - rules.JUMPS_LAST)


def stands_still(sizes: Sequence[float], steps: int) -> bool:
    """Whether none of the last so many gradients is better than the best of as many before."""
    if len(sizes) < 2 * steps + 1:
        return False
    best = min(sizes[-steps:])
    before = min(sizes[-2 * steps : -steps])
    return best > rules.PLATEAU_BETTER * before
