"""One trajectory of the randomized telescope on least squares, in Gram space, exactly and without stepping.

Appendix E.3. Between two draws of the finest level only the coordinates of the level below it move; between two draws
of any level past the always-drawn prefix, only that prefix moves, and in its eigenbasis any number of such steps is one
multiplication. The flops charged are the paper's and have nothing to do with the work done here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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


@dataclass
class Reached:
    """Flops and steps at which each target was first reached (infinite: never), and the run that did it."""

    flops: np.ndarray
    steps: np.ndarray
    run: list[str]

    @classmethod
    def nothing(cls, count: int) -> Reached:
        return cls(np.full(count, np.inf), np.full(count, np.inf), [""] * count)

    def note(self, j: int, flops: float, steps: float, run: str) -> None:
        """Target j was reached at this price: keep it if it is the cheapest so far."""
        if flops < self.flops[j]:
            self.flops[j], self.steps[j], self.run[j] = flops, steps, run


class Trajectory:
    """A run from 0, with the loss of its last and of its averaged iterate at every step.

    Kept between chunks: x, Gx, the sum of the iterates and its product with G, in coordinates whose first d, the prefix,
    are the eigenbasis of its Gram matrix.
    """

    def __init__(
        self,
        problem: Reduced,
        ladder: Sequence[int],
        probabilities: np.ndarray,
        eta: float,
        exact: bool,
        name: tuple[int, ...],
    ):
        self.ladder, self.exact, self.eta, self.m = tuple(ladder), exact, eta, problem.design.m
        self.p = np.asarray(probabilities, float)
        self.levels = len(self.p)
        self.prefix = int(np.argmax(self.p < 1)) if (self.p < 1).any() else self.levels
        if self.prefix == 0:
            raise ValueError("the coarsest level must always be drawn: its probability has to be 1")
        d = self.d = ladder[self.prefix - 1]
        n = self.inner = ladder[-2] if self.prefix < self.levels else ladder[-1]
        size = ladder[-1]
        self.values, self.rotation = np.linalg.eigh(problem.gram[:d, :d])
        gram, v = problem.gram[:size, :size].copy(), problem.moment[:size].copy()
        gram[:d] = self.rotation.T @ gram[:d]
        gram[:, :d] = gram[:, :d] @ self.rotation
        gram[:d, :d] = np.diag(self.values)
        v[:d] = self.rotation.T @ v[:d]
        self.gram, self.v, self.square = gram, v, problem.square
        self.head, self.strip = np.ascontiguousarray(gram[:n, :n]), np.ascontiguousarray(gram[:, :n])
        self.side = np.ascontiguousarray(gram[:d, d:n])
        self.powers = (1 - eta * self.values) ** np.arange(CHUNK + 1)[:, None]
        self.x, self.gx, self.sum, self.gsum = (np.zeros(size) for _ in range(4))
        self.steps, self.flops, self.diverged = 0, 0.0, False
        self.coins, self.at = coins(problem.design.seed, name, self.p), DRAWS
        self.maps: dict[int, np.ndarray] = {}
        self.tops: dict[int, object] = {}
        k = np.asarray(ladder, float)
        self.mean_price = (4.0 * self.m) * float(self.p @ (k + np.append(0.0, k[:-1])))

    def weights(self, code: int) -> np.ndarray:
        """eta B_k / p_k, where bit k of the code is the coin B_k."""
        return self.eta * np.array([code >> i & 1 for i in range(self.levels)]) / self.p

    def by_level(self, code: int) -> list[tuple[int, float]]:
        """The truncated step as a combination of levels: increments regrouped, zero weights dropped."""
        weight = self.weights(code)
        weight = weight - np.append(weight[1:], 0.0)
        return [(k, w) for k, w in zip(self.ladder, weight, strict=True) if w]

    def map(self, stretch: int, code: int) -> np.ndarray:
        """`stretch` steps of the prefix, then one with these coins (none if 0): the rows that move, as (x, c) -> x.

        c is what v and the coordinates past the inner ones add to the gradient; the truncated form knows v only, and
        its c is the number 1.
        """
        d, n = self.d, self.inner
        decay = self.powers[stretch]
        if self.exact:
            weight = np.repeat(self.weights(code), np.diff((0, *self.ladder)))[:n]
            step = np.eye(n) - weight[:, None] * self.head
            settle = (1 - decay) / self.values
            m, k = step.copy(), -np.diag(weight)
            m[:, :d] = step[:, :d] * decay
            m[:, d:] -= step[:, :d] @ (settle[:, None] * self.side)
            k[:, :d] -= step[:, :d] * settle
        else:
            m, k = np.eye(n), np.zeros((n, 1))
            for j, weight in self.by_level(code):
                m[:j, :j] -= weight * self.head[:j, :j]
                k[:j, 0] += weight * self.v[:j]
            k[:, 0] += m[:, :d] @ ((1 - decay) / self.values * self.v[:d])
            m[:, :d] *= decay
        moved = max(d, *(j for i, j in enumerate(self.ladder) if code >> i & 1 and j <= n), 0)
        return np.ascontiguousarray(np.hstack([m, k])[:moved])

    def top(self, code: int) -> None:
        """A step that draws the finest level: every coordinate moves."""
        if code not in self.tops:
            spread = np.repeat(self.weights(code), np.diff((0, *self.ladder)))
            self.tops[code] = spread if self.exact else self.by_level(code)
        gradient, weights = self.gx - self.v, self.tops[code]
        if self.exact:
            change = weights * gradient
        else:
            change = np.zeros(len(self.x))
            for j, weight in weights:
                g = gradient if j == len(change) else self.gram[:j, :j].dot(self.x[:j]) - self.v[:j]
                change[:j] += weight * g
        self.x = self.x - change
        self.gx = self.gx - self.gram.dot(change)

    def toss(self, limit: int) -> tuple[np.ndarray, np.ndarray]:
        """Coins (as codes) and prices of the next steps."""
        if self.at == DRAWS:
            drawn, self.at = next(self.coins), 0
            self.codes = drawn @ (1 << np.arange(self.levels))
            self.price = prices(self.ladder, self.m, self.exact, drawn)
        rows = slice(self.at, min(self.at + min(CHUNK, limit), DRAWS))
        self.at = rows.stop
        return self.codes[rows], self.price[rows]

    def advance(self, goal: float, limit: int = CHUNK) -> Readings:
        """Run one chunk of at most `limit` steps; read its averages only if one of them may be below `goal`."""
        with np.errstate(over="ignore", invalid="ignore"):  # a run may diverge within its chunk
            return self._advance(goal, *self.toss(limit))

    def _advance(self, goal: float, codes: np.ndarray, price: np.ndarray) -> Readings:
        count, n, d = len(codes), self.inner, self.d
        finest = 1 << (self.levels - 1) if self.prefix < self.levels else 0
        interrupted = np.append(np.flatnonzero(codes != (1 << self.prefix) - 1), count)
        coins, maps, levels = codes.tolist(), self.maps, self.levels
        # one row a stretch in which only the prefix moves: where it starts, and c
        rows = np.empty((len(interrupted) + 1, n + (n if self.exact else 1)))
        begins, owners = [], []
        xs, gxs, cs = [], [], []  # of the segments between two draws of the finest level
        begin, fresh = 0, True
        for e in interrupted.tolist():
            if fresh:
                c = self.gx[:n] - self.head.dot(self.x[:n]) - self.v[:n]
                xs.append(self.x), gxs.append(self.gx), cs.append(c)
                row = rows[len(begins)]
                row[:n], row[n:], fresh = self.x[:n], c if self.exact else 1.0, False
                begins.append(begin), owners.append(len(xs) - 1)
            code = 0 if e == count or coins[e] & finest else coins[e]
            key = (e - begin) << levels | code
            if key not in maps:
                maps[key] = self.map(e - begin, code)
            step = maps[key]
            after = rows[len(begins)]
            after[:] = row
            step.dot(row, out=after[: len(step)])
            begin, row = e + 1, after
            if code:
                begins.append(begin), owners.append(len(xs) - 1)
                continue
            self.gx = self.gx + self.strip.dot(row[:n] - self.x[:n])
            self.x = np.concatenate([row[:n], self.x[n:]])
            if e < count:
                self.top(coins[e])
                fresh = True
        begins, starts, owners = np.array(begins), rows[: len(begins), :n], np.array(owners)
        xs, gxs, cs = np.array(xs), np.array(gxs), np.array(cs)
        lengths = np.diff(begins, append=count)
        each = np.repeat(np.arange(len(starts)), lengths)  # the stretch of every state

        # the loss is a square in the prefix, around a point that only the exact form heads for
        best = -(starts[:, d:] @ self.side.T + cs[owners, :d]) / self.values
        rest = best if self.exact else np.broadcast_to(self.v[:d] / self.values, best.shape)
        prefix = rest[each] + self.powers[np.arange(count) - begins[each]] * (starts[:, :d] - rest)[each]
        moved = starts - xs[owners, :n]
        losses = (np.einsum("ij,ij->i", xs, gxs) / 2 - xs @ self.v + self.square / 2)[owners]
        losses += np.einsum("ij,ij->i", moved, (gxs - self.v)[owners, :n] + moved @ self.head / 2)
        losses -= (starts[:, :d] - best) ** 2 @ self.values / 2
        losses = losses[each] + (prefix - best[each]) ** 2 @ self.values / 2

        times, bill = self.steps + np.arange(1, count + 1), self.flops + np.cumsum(price)
        shares = np.bincount(owners[each], minlength=len(xs)).astype(float)
        # t times the average's residual is the sum of the residuals: it shrinks by at most their norms
        now = self.sum @ self.gsum - 2 * self.steps * (self.v @ self.sum) + self.steps**2 * self.square
        low = np.sqrt(max(now, 0.0)) - np.cumsum(np.sqrt(2 * np.maximum(losses, 0)))
        averages = None
        if self.steps == 0 or not (low > np.sqrt(2 * goal) * times).all():
            path = starts[each]
            path[:, :d] = prefix
            averages = self.averages(path, owners[each], xs, gxs, times)
        total = lengths @ starts - shares @ xs[:, :n]
        total[:d] = prefix.sum(axis=0) - shares @ xs[:, :d]
        self.steps, self.flops = int(times[-1]), float(bill[-1])
        self.sum = self.sum + shares @ xs
        self.sum[:n] += total
        self.gsum = self.gsum + shares @ gxs + self.strip @ total
        losses = np.append(losses[1:], self.x @ self.gx / 2 - self.v @ self.x + self.square / 2)
        self.diverged = not losses.max() < DIVERGED * self.square / 2
        if self.diverged:
            losses = np.nan_to_num(losses, nan=np.inf)
            averages = None if averages is None else np.nan_to_num(averages, nan=np.inf)
        return Readings(times, bill, losses, averages)

    def averages(self, path, owners, xs, gxs, times) -> np.ndarray:
        """The loss of the average of the first t iterates, for each t of the chunk."""
        n, first = self.inner, np.searchsorted(owners, np.arange(len(xs)))
        shift = np.cumsum(path - xs[owners, :n], axis=0)  # then from the start of each segment
        before = np.vstack([np.zeros(n), shift])[first]
        shift -= before[owners]
        i = np.arange(1, len(path) + 1) - first[owners]
        # sums of all iterates before each segment, and their products with G
        shares = np.diff(first, append=len(path))[:, None]
        inner = np.diff(before, axis=0, append=(before[-1] + shift[-1] if shares[-1] else before[-1])[None])
        sums, products = shares * xs, shares * gxs + inner @ self.strip.T
        sums[:, :n] += inner
        sums = self.sum + np.vstack([np.zeros(len(self.x)), np.cumsum(sums, axis=0)[:-1]])
        products = self.gsum + np.vstack([np.zeros(len(self.x)), np.cumsum(products, axis=0)[:-1]])
        squares = np.einsum("ij,ij->i", sums, products)[owners] + 2 * i * np.einsum("ij,ij->i", sums, gxs)[owners]
        squares += i**2 * np.einsum("ij,ij->i", xs, gxs)[owners]
        squares += np.einsum(
            "ij,ij->i", shift, shift @ self.head + 2 * products[owners, :n] + 2 * i[:, None] * gxs[owners, :n]
        )
        linear = (sums @ self.v)[owners] + i * (xs @ self.v)[owners] + shift @ self.v[:n]
        return squares / (2 * times**2) - linear / times + self.square / 2


@dataclass(frozen=True)
class Readings:
    """What a chunk of a run showed: at these steps and flops, the loss of the last and of the averaged iterate."""

    steps: np.ndarray
    flops: np.ndarray
    last: np.ndarray
    average: np.ndarray | None  # None: nowhere in the chunk below the goal
