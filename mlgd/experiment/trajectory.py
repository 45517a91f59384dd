"""One run of the telescope on least squares, in Gram space: every loss, no product on the design.

The paper's appendix E.3. With A = QR the loss is a constant and half the square of q = Rx - c, and
a step that draws levels up to k moves the first k coordinates of q alone: the few below the two
finest levels at every step, several steps in one small product, the others rarely. Flops are
charged as the paper charges them and have nothing to do with the work done here. `literal` is the
same run with products on the design.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .design import TELESCOPE, stream
from .reduce import Reduced

DRAWS = 2048  # steps whose coins are tossed at once, and at most whose losses are read at once
WORD = 8  # coins of the steps that one product makes
DIVERGED = 1e6  # times L0


class Readings(NamedTuple):
    """What some steps of a run showed: numbers, flops, losses of the last and averaged iterates."""

    steps: np.ndarray
    flops: np.ndarray
    last: np.ndarray
    average: np.ndarray


def coins(seed: int, name: tuple[int, ...], p: np.ndarray) -> Iterator[np.ndarray]:
    """Independent coins B_k, `DRAWS` steps at a time: the one source of randomness of a run."""
    rng = stream(seed, TELESCOPE, *name)
    while True:
        yield rng.random((DRAWS, len(p))) < p


def prices(ladder: Sequence[int], m: int, exact: bool, drawn: np.ndarray) -> np.ndarray:
    """Flops of each step from its coins: every drawn increment pays for the two levels it spans.

    The exact form also pays 2m k_t for moving the residual, k_t the finest level drawn.
    """
    k = np.asarray(ladder, float)
    pair = k + np.append(0.0, k[:-1])
    if exact:
        return 2.0 * m * (drawn @ pair + np.max(drawn * k, axis=1))
    return 4.0 * m * (drawn @ pair)


class Frame:
    """The levels as matrices F_k on the first coordinates of a state, for all runs of one form.

    A step takes the sum of (w_k - w_k+1) F_k s from a state s, with w_k = eta B_k / p_k. The exact
    form's state is q. The truncated form's is (1, x), and F_k s is the gradient of level k.
    """

    def __init__(self, problem: Reduced, ladder: Sequence[int], exact: bool):
        self.problem, self.ladder, self.exact = problem, tuple(ladder), exact
        lower, v = np.linalg.cholesky(problem.gram), problem.moment
        c = np.linalg.solve(lower, v)
        self.floor = problem.loss_zero - c @ c / 2
        if exact:
            self.start = -c
            self.fields = [lower[:k, :k].T @ lower[:k, :k] for k in ladder]
        else:
            self.start = np.eye(1, len(v) + 1)[0]
            finest = np.vstack([0 * self.start, np.column_stack([-v, problem.gram])])
            self.fields = [finest[: k + 1, : k + 1] for k in ladder]
            self.residual = np.column_stack([-c, lower.T])  # q from (1, x)

    def step(self, weights: np.ndarray, count: int) -> np.ndarray:
        """What the first so many levels do in a step, as a matrix."""
        step, shares = (
            np.eye(len(self.fields[count - 1])),
            weights - np.append(weights[1:], 0),
        )
        for field, share in zip(self.fields[:count], shares[:count], strict=True):
            step[: len(field), : len(field)] -= share * field
        return step


def words(letters: np.ndarray, length: int) -> list[np.ndarray]:
    """Every word of so many letters, a letter being a matrix: the products on its way, stacked.

    The first letter is the lowest digit of a word's number.
    """
    n = letters.shape[1]
    parts = [np.eye(n)[None]]
    for _ in range(length):
        parts.append((letters[:, None] @ parts[-1]).reshape(-1, n, n))
    count = len(parts[-1])
    stacks = np.hstack([np.tile(part, (count // len(part), 1, 1)) for part in parts[1:]])
    # BLAS likes tall matrices by columns
    return [np.asfortranarray(word) for word in stacks]


def squares(values: np.ndarray, kept: np.ndarray, before: np.ndarray) -> tuple:
    """Squares, state by state, of coordinates that keep each value for a while, and of their sums.

    `before` is the sum up to the first state; the third is the sum at the end.
    """
    sums = np.vstack([before, kept[:, None] * values]).cumsum(axis=0)
    pairs = ((values, values), (values, sums[:-1]), (sums[:-1], sums[:-1]))
    a, b, c = (np.einsum("ij,ij->i", x, y).repeat(kept) for x, y in pairs)
    j = np.arange(1, len(a) + 1) - (kept.cumsum() - kept).repeat(kept)
    return a, c + j * (2 * b + j * a), sums[-1]


class Trajectory:
    """A run of the telescope from 0, with the losses of both iterates at every step.

    Bit k of a step's code is the coin B_k; the coarsest level is always drawn.
    """

    def __init__(self, frame: Frame, p: np.ndarray, eta: float, name: tuple[int, ...]):
        self.frame, self.steps, self.flops, self.diverged = frame, 0, 0.0, False
        self.coins = coins(frame.problem.design.seed, name, p)
        self.ahead = next(self.coins)  # tossed and not yet used
        # the sum of q so far
        self.state, self.sum = (
            frame.start,
            np.zeros(frame.ladder[-1]),
        )
        drawn = np.arange(1 << len(p))[:, None] >> np.arange(len(p)) & 1
        self.prices = prices(frame.ladder, frame.problem.design.m, frame.exact, drawn)
        weights, few = eta * drawn / p, max(len(p) - 2, 1)
        self.finest = weights[:, -1]
        # all levels but the finest
        self.inner = [frame.step(row, len(p) - 1) for row in weights]
        letters = np.array([frame.step(row, few) for row in weights[1 : 1 << few : 2]])
        self.words = words(letters, WORD // max(few - 1, 1))

    def advance(self, limit: int) -> Readings:
        """At most `limit` steps."""
        if not len(self.ahead):
            self.ahead = next(self.coins)
        drawn, self.ahead = self.ahead[:limit], self.ahead[limit:]
        codes = drawn @ (1 << np.arange(drawn.shape[1]))
        times, bill = (
            self.steps + np.arange(1, len(codes) + 1),
            self.prices[codes].cumsum(),
        )
        bill += self.flops
        self.flops, self.steps = float(bill[-1]), int(times[-1])
        both, first = np.zeros((2, len(codes) + 1)), 0
        with np.errstate(over="ignore", invalid="ignore"):  # a run may diverge on the way
            for values, kept in self.walk(codes):
                before = self.sum[first : first + values.shape[1]]
                *found, after = squares(values, kept, before)
                both += found
                before[:] = after - values[-1]  # the last state is the next to be added
                first += values.shape[1]
            losses = (
                self.frame.floor + np.array([both[0, 1:], both[1, :-1] / times**2]) / 2
            )
            self.diverged = not losses[0].max() < DIVERGED * self.frame.problem.loss_zero
        if self.diverged:
            losses = np.nan_to_num(losses, nan=np.inf)
        return Readings(times, bill, *losses)

    def walk(self, codes: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Make the steps. Coordinates of q, few by few: their values, and how long each is kept.

        The `head` moves at every step, the rest of the `core` where one of the two finest levels is
        drawn, the `tail` where the finest is.
        """
        frame, top, inside, at = self.frame, len(self.inner) // 2, len(self.inner[0]), 0
        height, n = self.words[0].shape
        size, alphabet = height // n, max(top // 4, 1)
        letters = np.append(codes // 2 % alphabet, np.zeros(size - 1, int))
        spelt = np.correlate(
            letters, alphabet ** np.arange(size)
        ).tolist()  # from each step on
        draws = np.flatnonzero(codes >= top // 2)
        ends, kinds = [*draws.tolist(), len(codes)], codes[draws].tolist()
        cores, tails = np.empty((len(ends), inside)), [self.state[inside:]]
        cores[0] = self.state[:inside]
        head, path = cores[0, :n].copy(), []
        for i, end in enumerate(ends):
            path.append(head)
            while at < end:
                word = self.words[spelt[at]]
                head = (word if end - at >= size else word[: (end - at) * n]).dot(
                    head[-n:]
                )
                path.append(head)
                at += size
            cores[i, :n] = head[-n:]
            if i == len(draws):
                break
            after = self.inner[kinds[i]].dot(cores[i], out=cores[i + 1])
            if kinds[i] >= top:
                state = np.append(cores[i], tails[-1])
                state -= self.finest[kinds[i]] * frame.fields[-1].dot(state)
                after += state[:inside] - cores[i]
                tails.append(state[inside:])
            at, head = end + 1, after[:n].copy()
        self.state, heads = (
            np.append(cores[-1], tails[-1]),
            np.concatenate(path).reshape(-1, n),
        )
        once, gaps, tails = (
            np.ones(len(heads), int),
            np.diff([-1, *ends]),
            np.array(tails),
        )
        spans = np.diff([-1, *np.flatnonzero(codes >= top), len(codes)])
        if frame.exact:
            return [(heads, once), (cores[:, n:], gaps), (tails, spans)]
        rows = np.hstack([heads, cores[:, n:].repeat(gaps, axis=0)])
        near, far, k = frame.residual[:, :inside], frame.residual[:, inside:], inside - 1
        moving = rows @ near[:k].T + (tails @ far[:k].T).repeat(spans, axis=0)
        return [(moving, once), (near[k:, 0] + tails @ far[k:].T, spans)]
