"""Products with the Hessian of a level, from differences of its gradient: how far apart, and what they can be trusted for.

An error that changes with every point puts noise on a product that falls with the distance of the two points; where the
loss is not quadratic a long distance mixes curvatures. So differences are taken over the longest distance, up to that
to the minimizer, over which half of it gives the same.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .hierarchy import LevelError
from .spectra import FEW, Krylov, lanczos

Gradient = Callable[[np.ndarray], np.ndarray]
AGREE = 1e-4  # of a product: what t and t/2 may disagree by, for t to be taken at once
PRECISE = 0.02  # of a loss: where products end
FLAT = 1e-11  # of the largest eigenvalue: what is smaller is zero but for rounding
BLUNT = 0.1  # of the largest eigenvalue: where noise hides that much, another distance is tried


def first_length(gradient: Gradient, x: np.ndarray, step: np.ndarray) -> float:
    """About the length of a gradient step, |step| over the slope along it: no run goes less far; 0 where nothing changes."""
    at, norm = gradient(x), float(np.linalg.norm(step))
    v, t = step / norm, 1e-4 * max(float(np.linalg.norm(x)), 1e-4)
    for _ in range(30):
        there = tried(gradient, x + t * v)
        with np.errstate(over="ignore"):
            moved = math.inf if there is None else float(np.linalg.norm(there - at))
        if math.isinf(moved):
            return t / 64
        longer = (
            min(norm * t / moved, 64 * t) if moved else 8 * t
        )  # a level in steps of its own may not move close by
        if moved and t / 1.5 <= longer <= 1.5 * t:
            return t
        t = longer
    return t if moved else 0.0


def tried(gradient: Gradient, y: np.ndarray) -> np.ndarray | None:
    """The gradient, or None where the level fails: a probe went too far."""
    try:
        return gradient(y)
    except LevelError:
        return None


@dataclass(frozen=True)
class Distance:
    """How far apart to difference. `off` is what products over half of it disagree by, as a share of them.

    `jump` is an error that differs at any two points, `bend` what the curvature changes by on the way.
    """

    length: float
    off: float
    jump: float = 0.0
    bend: float = 0.0


def distance(gradient: Gradient, x: np.ndarray, v: np.ndarray, longest: float) -> Distance:
    """From the longest distance down, along v: where t and t/2 agree best.

    A jump is the same however close the points are, and puts noise on short distances; a bend falls with the distance.
    """
    at, known, t = gradient(x), [], longest
    v = v / np.linalg.norm(v)
    for _ in range(8):
        there = [tried(gradient, x + s * v) for s in (t, t / 2)]
        if there[0] is None or there[1] is None:
            t /= 8
            continue
        one, half = (there[0] - at) / t, (there[1] - at) / (t / 2)
        gap, size = (
            float(np.linalg.norm(one - half)),
            float(min(np.linalg.norm(one), np.linalg.norm(half))),
        )
        if size:
            known.append((gap / size, gap, t))
            if gap <= AGREE * size or gap > max(1.5, 8 * min(known)[0]) * size:
                break
        t /= 8
    if not known:
        return Distance(longest, math.inf)
    off, gap, t = min(known)
    jump = min(g * s for _, g, s in known) / math.sqrt(6)
    return Distance(
        t, off, jump if off > AGREE else 0.0, gap if gap * t > 4 * math.sqrt(6) * jump else 0.0
    )


@dataclass(frozen=True, eq=False)
class Look:
    """What a vector v means at a point by the curvature of a level: v' H^-1 v/2, and the step -H^-1 v.

    Eigenvalues below `floor` are not told from zero. The step takes them to be that; `seen` and `hidden` are the loss
    above it and below it, if they were that, and `mass` is |v|^2 below it.
    """

    level: int
    products: int
    along: Distance
    floor: float
    least: float  # the smallest eigenvalue seen
    size: float
    seen: float
    hidden: float
    mass: float
    step: np.ndarray

    @property
    def downward(self) -> bool:
        """Whether a negative eigenvalue is seen that is more than noise."""
        return self.least < 0 and -self.least >= self.floor


NOTHING = Look(
    0, 0, Distance(0.0, 0.0), 0.0, math.inf, 0.0, 0.0, 0.0, 0.0, np.zeros(0)
)  # what a vector of zeros means


def look(
    gradient: Gradient,
    level: int,
    x: np.ndarray,
    v: np.ndarray,
    longest: float,
    most: int,
    drift: Callable,
    rng: np.random.Generator,
    error: float,
) -> Look | None:
    """Lanczos from v by differences over at most `longest`; `drift(t, direction, basis)` is what finer levels change curvature by.

    `error` is what v may be off by; where it could be all that v has in flat directions, no step is made there.
    Where products over the distance that seemed best are mostly noise, the longest is tried too: rare jumps escape a probe.
    None where nothing changes with the point.
    """
    if not v.any():
        return replace(NOTHING, level=level, step=np.zeros_like(v))
    at = gradient(x)

    def seen(t: float) -> Krylov:
        return lanczos(
            lambda u: (at - gradient(x - t * u.reshape(x.shape))).ravel() / t,
            v.ravel(),
            most,
            PRECISE,
            6,
        )

    def products(t: float) -> tuple[float, Krylov | None]:
        """What hides in noise, as a share of the largest eigenvalue; all, where a level fails that far away."""
        try:
            found = seen(t)
        except LevelError:
            return math.inf, None
        top = float(found.measure.nodes[-1])
        return (_noise(found) / top if top > 0 else math.inf), found

    probe = -v / np.linalg.norm(v) + rng.standard_normal(v.shape) / math.sqrt(v.size)
    along = distance(gradient, x, probe, longest)
    hides, found = products(along.length)
    if hides > BLUNT and along.length < longest:
        further, far = products(longest)
        if further < hides or (
            far is not None and (found is None or not found.measure.nodes.any())
        ):
            found, along = (
                far,
                Distance(longest, along.off, far.noise * longest * math.sqrt(v.size)),
            )
    for _ in range(6):
        if found is None:
            along = replace(along, length=along.length / 64)
            hides, found = products(along.length)
    if found is None:
        found = seen(along.length)  # it says what is wrong
    nodes, weights = found.measure.nodes, found.measure.weights
    if not nodes.any():
        return None
    changed = drift(along.length, found.direction(0).reshape(x.shape), found.basis)
    floor = max(_noise(found), FEW * changed, along.bend, 1e-14 * float(np.abs(nodes).max()))
    curvature, below = np.maximum(nodes, floor), nodes <= floor
    flat = np.abs(nodes) <= FLAT * np.abs(nodes).max()
    if weights[flat].sum() <= error**2:  # no step cures an error where nothing curves
        curvature[flat] = math.inf
    loss, step = weights / curvature / 2, -found.solve(curvature).reshape(x.shape)
    hidden, mass = float(loss[below].sum()), float(weights[below].sum())
    return Look(
        level,
        nodes.size,
        along,
        floor,
        float(nodes[0]),
        found.norm,
        float(loss.sum()) - hidden,
        hidden,
        mass,
        step,
    )


def _noise(found: Krylov) -> float:
    """What eigenvalues are off by: a few times the noise, or as far as they are negative."""
    return max(FEW * found.noise, -float(found.measure.nodes[0]))
