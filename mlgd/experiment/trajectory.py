"""One trajectory of the randomized telescope on least squares, in Gram space, exactly and without stepping.

The paper's appendix E.3. Between two draws of the finest level only the coordinates of the level below it move; between two draws
of any level past the always-drawn prefix, only that prefix moves, and in its eigenbasis any number of such steps is one
multiplication. The flops charged are the paper's and have nothing to do with the work done here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .design import TELESCOPE, stream
from .features import Reduced

DRAWS = 4096  # steps whose coins are tossed at once
CHUNK = 1024  # steps whose losses are read at once
DIVERGED = 1e6  # times L0


def coins(seed: int, name: tuple[int, ...], probabilities: np.ndarray) -> Iterator[np.ndarray]:
    """Independent coins B_k, `DRAWS` steps at a time: the one source of randomness of a trajectory."""
    rng = stream(seed, TELESCOPE, *name)
    while True:
        yield rng.random((DRAWS, len(probabilities))) < probabilities


def prices(ladder: Sequence[int], m: int, exact: bool, drawn: np.ndarray) -> np.ndarray:
    """Flops of each step from its coins: every drawn increment pays for the two levels it spans.

    The exact form also pays 2m k_t for moving the residual, k_t the finest level drawn.
    """
    k = np.asarray(ladder, float)
    pair = k + np.concatenate([[0.0], k[:-1]])
    if exact:
        return 2.0 * m * (drawn @ pair + np.max(drawn * k, axis=1))
    return 4.0 * m * (drawn @ pair)


@dataclass(frozen=True)
class Readings:
    """What a chunk of a run showed: at these steps and flops, the loss of the last and of the averaged iterate."""

    steps: np.ndarray
    flops: np.ndarray
    last: np.ndarray
    average: np.ndarray | None  # None: nowhere in the chunk below the goal


@dataclass(frozen=True)
class Frame:
    """The problem in coordinates whose first d, the prefix, are the eigenbasis of its Gram matrix.

    The first n, the inner ones, are all that moves between two draws of the finest level.
    """

    d: int
    n: int
    values: np.ndarray  # of the prefix
    gram: np.ndarray
    v: np.ndarray
    square: float
    head: np.ndarray  # inner x inner
    strip: np.ndarray  # all x inner
    side: np.ndarray  # prefix x the other inner ones

    @classmethod
    def of(cls, problem: Reduced, d: int, n: int, size: int) -> Frame:
        values, rotation = np.linalg.eigh(problem.gram[:d, :d])
        gram, v = problem.gram[:size, :size].copy(), problem.moment[:size].copy()
        gram[:d] = rotation.T @ gram[:d]
        gram[:, :d] = gram[:, :d] @ rotation
        gram[:d, :d] = np.diag(values)
        v[:d] = rotation.T @ v[:d]
        parts = (np.ascontiguousarray(a) for a in (gram[:n, :n], gram[:, :n], gram[:d, d:n]))
        return cls(d, n, values, gram, v, problem.square, *parts)


class Moves:
    """Steps as linear maps, one for each outcome of the coins; bit k of a code is the coin B_k."""

    def __init__(self, frame: Frame, ladder: Sequence[int], p: np.ndarray, eta: float, exact: bool):
        self.frame, self.ladder, self.p, self.eta, self.exact = frame, tuple(ladder), p, eta, exact
        self.powers = (1 - eta * frame.values) ** np.arange(CHUNK + 1)[:, None]
        self.known: dict[
            int, np.ndarray
        ] = {}  # the maps that were needed, by stretch and code in one number
        self.tops: dict[int, object] = {}

    def weights(self, code: int) -> np.ndarray:
        """eta B_k / p_k."""
        return self.eta * np.array([code >> i & 1 for i in range(len(self.p))]) / self.p

    def by_coordinate(self, code: int) -> np.ndarray:
        """The exact step as a factor for each coordinate of the gradient."""
        return np.repeat(self.weights(code), np.diff((0, *self.ladder)))

    def by_level(self, code: int) -> list[tuple[int, float]]:
        """The truncated step as a combination of levels: increments regrouped, zero weights dropped."""
        weight = self.weights(code)
        weight = weight - np.append(weight[1:], 0.0)
        return [(k, w) for k, w in zip(self.ladder, weight, strict=True) if w]

    def inner(self, stretch: int, code: int) -> np.ndarray:
        """`stretch` steps of the prefix, then one with these coins (none if 0): the rows that move, as (x, c) -> x.

        c is what v and the coordinates past the inner ones add to the gradient; the truncated form knows v only, and
        its c is the number 1.
        """
        f, d, n, decay = self.frame, self.frame.d, self.frame.n, self.powers[stretch]
        if self.exact:
            weight = self.by_coordinate(code)[:n]
            step = np.eye(n) - weight[:, None] * f.head
            settle = (1 - decay) / f.values
            m, k = step.copy(), -np.diag(weight)
            m[:, :d] = step[:, :d] * decay
            m[:, d:] -= step[:, :d] @ (settle[:, None] * f.side)
            k[:, :d] -= step[:, :d] * settle
        else:
            m, k = np.eye(n), np.zeros((n, 1))
            for j, weight in self.by_level(code):
                m[:j, :j] -= weight * f.head[:j, :j]
                k[:j, 0] += weight * f.v[:j]
            k[:, 0] += m[:, :d] @ ((1 - decay) / f.values * f.v[:d])
            m[:, :d] *= decay
        moved = max(d, *(j for i, j in enumerate(self.ladder) if code >> i & 1 and j <= n), 0)
        return np.ascontiguousarray(np.hstack([m, k])[:moved])

    def top(self, code: int, x: np.ndarray, gx: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A step that draws the finest level: every coordinate moves."""
        f = self.frame
        if code not in self.tops:
            self.tops[code] = self.by_coordinate(code) if self.exact else self.by_level(code)
        gradient, weights = gx - f.v, self.tops[code]
        if self.exact:
            change = weights * gradient
        else:
            change = np.zeros(len(x))
            for j, weight in weights:
                g = gradient if j == len(x) else f.gram[:j, :j].dot(x[:j]) - f.v[:j]
                change[:j] += weight * g
        return x - change, gx - f.gram.dot(change)


@dataclass(frozen=True)
class Walk:
    """A chunk of steps: segments between two draws of the finest level, cut into stretches in which only the prefix moves."""

    x: np.ndarray  # each segment's first point, and its product with G
    gx: np.ndarray
    c: np.ndarray  # what the gradient's inner coordinates have besides head @ x[:n]
    begins: np.ndarray  # each stretch's first step, its inner coordinates there, and its segment
    starts: np.ndarray
    owners: np.ndarray
    count: int

    @cached_property
    def lengths(self) -> np.ndarray:
        return np.diff(self.begins, append=self.count)

    @cached_property
    def each(self) -> np.ndarray:
        """The stretch of every step."""
        return np.repeat(np.arange(len(self.begins)), self.lengths)


class Trajectory:
    """A run from 0, with the loss of its last and of its averaged iterate at every step."""

    def __init__(
        self,
        problem: Reduced,
        ladder: Sequence[int],
        probabilities: np.ndarray,
        eta: float,
        exact: bool,
        name: tuple[int, ...],
    ):
        p = np.asarray(probabilities, float)
        self.prefix = int(np.argmax(p < 1)) if (p < 1).any() else len(p)
        if self.prefix == 0:
            raise ValueError("the coarsest level must always be drawn: its probability has to be 1")
        self.finest = 1 << (len(p) - 1) if self.prefix < len(p) else 0
        inner = ladder[-2] if self.finest else ladder[-1]
        self.frame = Frame.of(problem, ladder[self.prefix - 1], inner, ladder[-1])
        self.moves, self.m = Moves(self.frame, ladder, p, eta, exact), problem.design.m
        self.x, self.gx, self.sum, self.gsum = (np.zeros(ladder[-1]) for _ in range(4))
        self.steps, self.flops, self.diverged = 0, 0.0, False
        self.coins, self.at = coins(problem.design.seed, name, p), DRAWS
        self.mean_price = float(prices(ladder, self.m, exact, np.diag(p)).sum())

    def toss(self, limit: int) -> tuple[np.ndarray, np.ndarray]:
        """Coins (as codes) and prices of the next steps."""
        if self.at == DRAWS:
            drawn, self.at = next(self.coins), 0
            self.codes = drawn @ (1 << np.arange(drawn.shape[1]))
            self.price = prices(self.moves.ladder, self.m, self.moves.exact, drawn)
        rows = slice(self.at, min(self.at + min(CHUNK, limit), DRAWS))
        self.at = rows.stop
        return self.codes[rows], self.price[rows]

    def advance(self, goal: float, limit: int = CHUNK) -> Readings:
        """Run one chunk of at most `limit` steps; read its averages only if one of them may be below `goal`."""
        with np.errstate(over="ignore", invalid="ignore"):  # a run may diverge within its chunk
            codes, price = self.toss(limit)
            walk = self.walk(codes)
            prefix, losses = self.losses(walk)
            times, bill = self.steps + np.arange(1, len(codes) + 1), self.flops + np.cumsum(price)
            averages = (
                self.averages(walk, prefix, times) if self.may_reach(goal, losses, times) else None
            )
            self.add(walk, prefix)
            self.steps, self.flops = int(times[-1]), float(bill[-1])
            now = self.x @ self.gx / 2 - self.frame.v @ self.x + self.frame.square / 2
            losses = np.append(losses[1:], now)  # after each step
            self.diverged = not losses.max() < DIVERGED * self.frame.square / 2
            if self.diverged:
                losses = np.nan_to_num(losses, nan=np.inf)
                averages = None if averages is None else np.nan_to_num(averages, nan=np.inf)
            return Readings(times, bill, losses, averages)

    def walk(self, codes: np.ndarray) -> Walk:
        """Move through these steps, one map for each draw past the prefix."""
        n, v, exact, known = self.frame.n, self.frame.v, self.moves.exact, self.moves.known
        count, past = len(codes), np.flatnonzero(codes != (1 << self.prefix) - 1)
        begins = np.append(0, past + 1)
        drawn = codes[past]
        top = (drawn & self.finest) > 0
        kinds = np.append(np.where(top, 0, drawn), 0)  # 0: a segment ends
        keys = (np.diff(begins, append=count + 1) - 1) * (1 << len(self.moves.p)) + kinds
        rows = np.empty((len(begins) + 1, n + (n if exact else 1)))  # a stretch's start, and c
        views, xs, gxs, cs, fresh = list(rows), [], [], [], True
        for i, key, code in zip(range(len(begins)), keys.tolist(), kinds.tolist(), strict=True):
            row = views[i]
            if fresh:
                c = self.gx[:n] - self.frame.head.dot(self.x[:n]) - v[:n]
                xs.append(self.x), gxs.append(self.gx), cs.append(c)
                row[:n], row[n:], fresh = self.x[:n], c if exact else 1.0, False
            step = known.get(key)
            if step is None:
                step = known[key] = self.moves.inner(key >> len(self.moves.p), code)
            after = views[i + 1]
            after[:] = row
            step.dot(row, out=after[: len(step)])
            if not code:
                self.gx = self.gx + self.frame.strip.dot(after[:n] - self.x[:n])
                self.x = np.concatenate([after[:n], self.x[n:]])
                if i < len(past):
                    self.x, self.gx = self.moves.top(int(drawn[i]), self.x, self.gx)
                    fresh = True
        states = (np.array(xs), np.array(gxs), np.array(cs))
        owners = np.append(0, np.cumsum(top))
        return Walk(*states, begins, rows[:-1, :n], owners, count)

    def losses(self, walk: Walk) -> tuple[np.ndarray, np.ndarray]:
        """The prefix's coordinates and the loss before each step.

        The loss is a square in the prefix, around a point that only the exact form heads for.
        """
        f, d, n, owners, each = self.frame, self.frame.d, self.frame.n, walk.owners, walk.each
        best = -(walk.starts[:, d:] @ f.side.T + walk.c[owners, :d]) / f.values
        rest = best if self.moves.exact else np.broadcast_to(f.v[:d] / f.values, best.shape)
        age = np.arange(walk.count) - walk.begins[each]
        prefix = rest[each] + self.moves.powers[age] * (walk.starts[:, :d] - rest)[each]
        moved = walk.starts - walk.x[owners, :n]
        losses = (np.einsum("ij,ij->i", walk.x, walk.gx) / 2 - walk.x @ f.v + f.square / 2)[owners]
        losses += np.einsum("ij,ij->i", moved, (walk.gx - f.v)[owners, :n] + moved @ f.head / 2)
        losses -= (walk.starts[:, :d] - best) ** 2 @ f.values / 2
        return prefix, losses[each] + (prefix - best[each]) ** 2 @ f.values / 2

    def may_reach(self, goal: float, losses: np.ndarray, times: np.ndarray) -> bool:
        """Whether an average can be below the goal: t times its residual shrinks at most by the iterates' residuals."""
        now = (
            self.sum @ self.gsum
            - 2 * self.steps * (self.frame.v @ self.sum)
            + self.steps**2 * self.frame.square
        )
        low = np.sqrt(max(now, 0.0)) - np.cumsum(np.sqrt(2 * np.maximum(losses, 0)))
        return self.steps == 0 or not (low > np.sqrt(2 * goal) * times).all()

    def add(self, walk: Walk, prefix: np.ndarray) -> None:
        """Add the chunk's iterates to their sum."""
        d, n = self.frame.d, self.frame.n
        shares = np.bincount(walk.owners[walk.each], minlength=len(walk.x)).astype(float)
        total = walk.lengths @ walk.starts - shares @ walk.x[:, :n]
        total[:d] = prefix.sum(axis=0) - shares @ walk.x[:, :d]
        self.sum = self.sum + shares @ walk.x
        self.sum[:n] += total
        self.gsum = self.gsum + shares @ walk.gx + self.frame.strip @ total

    def averages(self, walk: Walk, prefix: np.ndarray, times: np.ndarray) -> np.ndarray:
        """The loss of the average of the first t iterates, for each t of the chunk."""
        f, n, xs, gxs = self.frame, self.frame.n, walk.x, walk.gx
        path, owners = walk.starts[walk.each], walk.owners[walk.each]
        path[:, : f.d] = prefix
        first = np.searchsorted(owners, np.arange(len(xs)))
        shift = np.cumsum(path - xs[owners, :n], axis=0)  # then from the start of each segment
        before = np.vstack([np.zeros(n), shift])[first]
        shift -= before[owners]
        i = np.arange(1, len(path) + 1) - first[owners]
        # sums of all iterates before each segment, and their products with G
        shares = np.diff(first, append=len(path))[:, None]
        inner = np.diff(
            before, axis=0, append=(before[-1] + shift[-1] if shares[-1] else before[-1])[None]
        )
        sums, products = shares * xs, shares * gxs + inner @ f.strip.T
        sums[:, :n] += inner
        sums = self.sum + np.vstack([np.zeros(len(self.x)), np.cumsum(sums, axis=0)[:-1]])
        products = self.gsum + np.vstack([np.zeros(len(self.x)), np.cumsum(products, axis=0)[:-1]])
        squares = (
            np.einsum("ij,ij->i", sums, products)[owners]
            + 2 * i * np.einsum("ij,ij->i", sums, gxs)[owners]
        )
        squares += i**2 * np.einsum("ij,ij->i", xs, gxs)[owners]
        squares += np.einsum(
            "ij,ij->i",
            shift,
            shift @ f.head + 2 * products[owners, :n] + 2 * i[:, None] * gxs[owners, :n],
        )
        linear = (sums @ f.v)[owners] + i * (xs @ f.v)[owners] + shift @ f.v[:n]
        return squares / (2 * times**2) - linear / times + f.square / 2
