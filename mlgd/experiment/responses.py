"""Exact second moments of descent and of Nesterov's method under lasting and fresh errors, and the cheapest stages by them.

A stage from a point with second moments P (per eigenvalue) ends, for plain descent with the mean of its last points or for
Nesterov's method, at a^2 P + C^2 lasting/d + S noise/d: a, C, S answer to the start, to an error that stays and to one that is
drawn anew. A stage with a new finest level meets a lasting error that is independent of all before it, so stages chain exactly.
Every setting of a stage is tried, hindsight included; nothing is sampled. On smooth errors a level bends as well: the answers
are means over either sign of its slope. What the draws of slopes add is left to `affine`, which has the last word there.
"""

import math
from dataclasses import dataclass

import numpy as np

from .fields import LEVELS, Family
from .moments import Responses

BELOW = 0.9  # of eps: where a method tuned on some instances may end, so that others have a chance to be below eps too
SHARES = (
    0.0,
    0.1,
    0.3,
    0.5,
    0.7,
    1.0,
)  # of a stage: its last points that are averaged (0: the last one alone)


@dataclass(frozen=True, eq=False)
class Ways:
    """Settings of a stage with their responses: arrays (settings, eigenvalues), and the steps that each takes."""

    steps: np.ndarray
    start: np.ndarray  # a^2
    bias: np.ndarray  # C^2/d
    noise: np.ndarray  # S/d
    names: list[tuple]
    jitter: np.ndarray  # the mean square by which a coordinate of the gradient comes to move, over that of the noise per step

    @classmethod
    def descent(cls, f: Family, shares=SHARES) -> "list[Ways]":
        """y <- y - eta g, the mean of the last points; by finest level."""
        steps = np.unique(np.round(np.geomspace(1, 15 * f.kappa, 60)))
        found = sorted(
            {
                (eta, float(t), max(1.0, round(w * t)))
                for eta in (1.0, 1.8)
                for t in steps
                for w in shares
            }
        )
        eta, t, w = (np.array(column) for column in zip(*found, strict=True))
        names = [("descent", e, int(n), int(m)) for e, n, m in found]

        def answers(lam):
            with np.errstate(
                over="ignore", invalid="ignore"
            ):  # a level that bends the wrong way: its long stages are never taken
                r = Responses.at(lam, eta, w, t)
                noise = (
                    r.noise
                    if lam.min() > 0
                    else Responses.at(np.maximum(lam, 1e-3 / f.kappa), eta, w, t).noise
                )
                return np.array([r.start**2, r.lasting**2 / f.d, noise / f.d])

        jitter = (eta[:, None] * f.spectrum / (2 - eta[:, None] * f.spectrum)).mean(axis=1)
        return [
            cls(t, *np.mean([answers(lam) for lam in signs], axis=0), names, jitter)
            for signs in _distinct(f)
        ]

    @classmethod
    def nesterov(cls, f: Family) -> "list[Ways]":
        """Nesterov's method with constant momentum, begun at rest; its last point; by finest level."""
        etas, distinct = (1.0, 0.3, 0.1), _distinct(f)
        parts = [_nesterov(f, eta, distinct) for eta in etas]
        steps = np.concatenate([part[0] for part in parts])
        names = [
            ("nesterov", eta, int(t), 1)
            for eta, part in zip(etas, parts, strict=True)
            for t in part[0]
        ]
        answers = np.concatenate([part[1] for part in parts], axis=1)  # (3, settings, levels, d)
        return [
            cls(steps, *answers[:, :, k], names, answers[2, :, k] @ f.spectrum**2)
            for k in range(len(distinct))
        ]


def _distinct(f: Family) -> np.ndarray:
    """Eigenvalues (levels, signs, d): one row for all levels where errors do not bend them."""
    return f.bent(f.accuracy).swapaxes(0, 1) if f.kind == "smooth" else f.spectrum[None, None]


def _nesterov(f: Family, eta: float, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and the answers (3, settings, levels, d), means over the signs."""
    ratio = math.sqrt(eta / f.kappa)
    m, x = (1 - ratio) / (1 + ratio), 1 - eta * lam
    looks = set(
        np.unique(np.round(np.geomspace(1, 12 * math.sqrt(f.kappa / eta), 60))).astype(int).tolist()
    )
    y = before = np.ones(lam.shape)  # the start, carried on without errors
    pulse, pulse_before, squares = (
        np.full(lam.shape, eta),
        np.zeros(lam.shape),
        np.zeros(lam.shape),
    )  # one error
    rows = []
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(1, max(looks) + 1):
            y, before = x * (y + m * (y - before)), y
            squares = squares + pulse**2
            pulse, pulse_before = x * (pulse + m * (pulse - pulse_before)), pulse
            if t in looks:
                rows.append(
                    [v.mean(axis=1) for v in (y**2, ((1 - y) / lam) ** 2 / f.d, squares / f.d)]
                )
    return np.array(sorted(looks)), np.array(rows).swapaxes(0, 1)


@dataclass(frozen=True)
class Stage:
    """One stage in hindsight: setting, always-evaluated level, finest level, probabilities past the first, mean price."""

    way: tuple
    base: int
    finest: int
    p: tuple[float, ...]
    price: float


@dataclass(frozen=True)
class Found:
    """The cheapest way of a method, in units of level 0's price, and the mean loss that its moments predict."""

    price: float
    loss: float
    stages: tuple[Stage, ...]


NOTHING = Found(math.inf, math.inf, ())


def call_price(cost: np.ndarray, base: int, finest: int, p: np.ndarray) -> np.ndarray:
    """The mean price of a call that always looks at `base` and draws the later increments with p (settings, levels)."""
    both = np.concatenate([np.ones((len(p), 1)), p], axis=1)
    after = np.concatenate([p, np.zeros((len(p), 1))], axis=1)
    return (both + after - both * after) @ cost[base : finest + 1]


def stage(
    f: Family, by_level: list[Ways], second, goal: float, gamma: float, above: int, random: bool
) -> tuple[Stage, np.ndarray, float] | None:
    """The cheapest stage from these second moments to a mean loss of `goal`, with a finest level above `above`."""
    lam, cost = f.spectrum, 2.0 ** (gamma * np.arange(LEVELS))
    best = (math.inf, None)
    tried = 0
    for finest in range(above + 1, LEVELS):
        ways = by_level[finest % len(by_level)]
        bias, noise = ways.bias @ (lam * f.weight) / 2, ways.noise @ (lam * f.weight) / 2
        room = (
            goal
            - ways.start @ (lam * second) / 2
            - bias * f.lasting[finest]
            - noise * f.fresh[finest]
        )
        can = np.flatnonzero(room > 0)
        if not can.size:
            continue
        tried += 1
        if not f.dither:
            price = ways.steps[can] * cost[finest]
            i = int(price.argmin())
            best = min(best, (float(price[i]), (can[i], finest, finest, ())), key=lambda b: b[0])
        for base in range(finest) if random else ():
            v, drawn = f.increments[base + 1 : finest + 1], slice(base + 1, finest + 1)
            pairs = cost[drawn] + cost[base:finest] * (np.arange(finest - base) > 0)
            scale = np.sqrt(v * pairs).sum() / (room[can] / noise[can] + v.sum())
            p = scale[:, None] * np.sqrt(v / pairs)
            moved = (
                ways.jitter[can] * ((1 / p - 1) @ v) / (2 * f.accuracy[finest]) ** 2
            )  # in squares of the grid
            fits = (p <= 1).all(axis=1) & (moved >= f.dither)
            price = np.where(fits, ways.steps[can] * call_price(cost, base, finest, p), np.inf)
            i = int(price.argmin())
            best = min(
                best, (float(price[i]), (can[i], base, finest, tuple(p[i]))), key=lambda b: b[0]
            )
        if tried == 3:
            break
    if best[0] == math.inf:
        return None
    i, base, finest, p = best[1]
    ways = by_level[finest % len(by_level)]
    chosen = Stage(ways.names[i], base, finest, tuple(map(float, p)), best[0])
    drawn = ways.noise[i] * call_noise(f, chosen)
    after = ways.start[i] * second + (ways.bias[i] * f.lasting[finest] + drawn) * f.weight
    return chosen, after, float(lam @ after) / 2


def call_noise(f: Family, s: Stage) -> float:
    """The mean square of what a call draws anew."""
    v = f.increments[s.base + 1 : s.finest + 1]
    return float(f.fresh[s.finest] + sum((1 / q - 1) * w for q, w in zip(s.p, v, strict=True)))


def chain(
    f: Family,
    ways: list[Ways],
    last: list[Ways],
    eps: float,
    gamma: float,
    random: bool,
    stages: bool,
) -> Found:
    """The cheapest chain of stages, coarse to fine, whose goals fall by a fixed factor; the last one may average (`last`)."""
    best = NOTHING
    for fall in (4.0, 16.0, 64.0, math.inf) if stages else (math.inf,):
        count = 1 if fall == math.inf else math.ceil(math.log(1 / eps) / math.log(fall))
        goals = [eps * fall**j for j in range(count - 1, 0, -1)] + [eps]
        second, above, paid, done = f.square, -1, 0.0, []
        for goal in goals:
            if f.spectrum @ second / 2 <= goal:
                continue
            found = stage(f, last if goal == eps else ways, second, goal, gamma, above, random)
            if found is None:
                break
            chosen, second, loss = found
            above, paid = chosen.finest, paid + chosen.price
            done.append(chosen)
        else:
            best = min(best, Found(paid, loss, tuple(done)), key=lambda b: b.price)
    return best


# method: its stages, the last one's, whether levels are drawn, whether stages go from coarse to fine
LINEAR = {
    "fixed level": ("last", "last", False, False),
    "Nesterov, coarse to fine": ("nesterov", "nesterov", False, True),
    "plain telescope": ("tail", "tail", True, False),
    "accelerated telescope": ("nesterov", "nesterov", True, False),
    "scheduled telescope": ("last", "tail", True, True),
}


def linear_methods(
    f: Family, eps: float, gamma: float, made: dict[str, list[Ways]], methods=tuple(LINEAR)
) -> dict[str, Found]:
    """Every method whose second moments are exact, tuned in hindsight."""
    return {
        m: chain(f, made[w], made[last], eps, gamma, r, s)
        for m, (w, last, r, s) in LINEAR.items()
        if m in methods
    }


def ways(f: Family) -> dict[str, list[Ways]]:
    return {"last": Ways.descent(f, (0.0,)), "tail": Ways.descent(f), "nesterov": Ways.nesterov(f)}


# --- runs ----------------------------------------------------------------------------------------------------------------


def run(instances, found: Found, gamma: float, rng) -> tuple[np.ndarray, np.ndarray]:
    """Loss and price of every instance after the stages of a method."""
    y, paid = instances.start, np.zeros(len(instances.start))
    rng = np.random.default_rng(rng)
    for s in found.stages:
        y, price = _run_stage(instances, y, s, 2.0 ** (gamma * np.arange(LEVELS)), rng)
        paid = paid + price
    return instances.family.loss(y), paid


def _run_stage(instances, y, s: Stage, cost, rng):
    kind, eta, steps, window = s.way
    n, mean, paid, p = len(y), np.zeros_like(y), np.zeros(len(y)), np.array(s.p)
    ratio = math.sqrt(eta / instances.family.kappa)
    m, before = (1 - ratio) / (1 + ratio) if kind == "nesterov" else 0.0, y
    for t in range(steps):
        z = y + m * (y - before)
        drawn = rng.random((n, p.size)) < p
        top = s.base + (np.flatnonzero(drawn.any(axis=0)).max(initial=-1) + 1)
        values = instances.gradients(range(s.base, top + 1), z)
        g = values[0]
        for k in range(s.base + 1, top + 1):
            i = k - s.base - 1
            g = g + np.where(
                drawn[:, i : i + 1], (values[k - s.base] - values[k - s.base - 1]) / p[i], 0.0
            )
        used = np.concatenate([np.ones((n, 1), bool), drawn], axis=1)
        used[:, :-1] |= drawn
        paid = paid + used @ cost[s.base : s.finest + 1]
        before, y = y, z - eta * g
        if t >= steps - window:
            mean = mean + y / window
    return mean, paid
