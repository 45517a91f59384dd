"""The first family: quadratics of spread spectrum whose levels are off by a vector of their own, with exact moments.

Eigenvalues log-spaced from 1/kappa to 1, starting loss one shared equally among them, level k off by 0.1 * 2^-k in a
random direction that does not depend on y, at price 2^(gamma k). In the eigenbasis every method's mean loss is a sum, so
that methods can be tuned in hindsight and plans judged without a single sample.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mlgd.hierarchy import Hierarchy
from mlgd.plans import Plan, Problem

SIZE = 0.1  # of the coarsest level's error


@dataclass(frozen=True, eq=False)
class Instance:
    """One problem of the family, in its eigenbasis with the minimizer at zero."""

    gamma: float
    eigenvalues: np.ndarray
    start: np.ndarray
    errors: np.ndarray  # (levels, coordinates)

    @classmethod
    def draw(
        cls, gamma: float, kappa: float, rng=None, levels: int = 16, size: int = 300
    ) -> "Instance":
        rng = np.random.default_rng(rng)
        eigenvalues = np.geomspace(1 / kappa, 1.0, size)
        start = np.sqrt(2 / (size * eigenvalues)) * rng.choice([-1.0, 1.0], size)
        directions = rng.normal(size=(levels, size))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return cls(
            gamma, eigenvalues, start, directions * (SIZE * 2.0 ** -np.arange(levels))[:, None]
        )

    @cached_property
    def hierarchy(self) -> Hierarchy:
        def evaluate(k, y):
            return self.eigenvalues * y + self.errors[k]

        return Hierarchy(
            evaluate, self.cost, range(len(self.errors)), accuracy=lambda k: SIZE * 2.0**-k
        )

    def cost(self, k: int) -> float:
        return 2.0 ** (self.gamma * k)

    def loss(self, y: np.ndarray) -> float:
        return float(self.eigenvalues @ y**2) / 2

    @property
    def d0(self) -> float:
        return float(np.linalg.norm(self.start))

    @property
    def mu(self) -> float:
        return float(self.eigenvalues[0])

    def unit(self, eps: float) -> float:
        """The price of one gradient at the coarsest level whose minimizer is good enough."""
        good = [
            k
            for k in range(len(self.errors))
            if self.loss(self.errors[k] / self.eigenvalues) <= eps
        ]
        return self.cost(good[0])

    def problem(self) -> Problem:
        """What a plan is told of this instance."""
        return Problem(beta=1.0, mu=self.mu, d0=self.d0, gamma=self.gamma, c=SIZE)

    # --- exact moments of averaged descent ---

    def judged(self, bill: Plan) -> float:
        """The exact mean loss of a plan's run on this instance, whatever its average: a tail, uniform or growing weights."""
        stage = bill.stages[0]
        if bill.averaging == "tail":
            return self.mean_loss(
                bill.eta, bill.steps, bill.window, stage.levels, stage.probabilities
            )
        sums = _growing(1 - bill.eta * self.eigenvalues, bill.eta, bill.steps, bill.growth)
        return self._moments(sums, stage.levels, stage.probabilities)

    def mean_loss(
        self, eta: float, steps: int, window: int, levels: Sequence[int], p: Sequence[float]
    ) -> float:
        """The mean loss of the mean of the last `window` of `steps` points, with a telescope on some levels."""
        return self._moments(_sums(1 - eta * self.eigenvalues, eta, steps, window), levels, p)

    def _moments(self, sums, levels, p) -> float:
        a, total, squares = sums
        mean = a * self.start - total * self.errors[levels[-1]]
        noise = sum(
            (1 / q - 1)
            * float(self.eigenvalues * squares @ (self.errors[k] - self.errors[j]) ** 2)
            / 2
            for j, k, q in zip(levels, levels[1:], p[1:], strict=False)
        )
        return self.loss(mean) + noise

    # --- every method tuned in hindsight ---

    def telescope(self, eps: float, exponents: int = 30) -> tuple[float, dict]:
        """The cheapest telescope in hindsight: step, steps, window and levels over a grid, then finer ones around the best."""
        kappa = 1 / self.mu
        eta, steps, share = (
            np.array([1.0, 1.5, 1.9]),
            np.geomspace(2, 20 * kappa, exponents),
            np.linspace(0.05, 1, 12),
        )
        best = (math.inf, {})
        for ratio in (1.35, 1.08, 1.02):
            for e in eta:
                for t in np.unique(np.round(steps)):
                    for w in np.unique(np.maximum(np.round(share * t), 1)):
                        best = min(
                            best, self._priced(eps, float(e), int(t), int(w)), key=lambda b: b[0]
                        )
            if not best[1]:
                break
            t, w = best[1]["steps"], best[1]["window"]
            eta, steps = np.array([best[1]["eta"]]), t * ratio ** np.arange(-3.0, 4.0)
            share = np.clip(w / t * ratio ** np.arange(-3.0, 4.0), 0, 1)
        return best

    def _priced(self, eps, eta, steps, window) -> tuple[float, dict]:
        """The cheapest levels and probabilities for one way to run: water-filling on every run of neighbouring levels."""
        lam, e = self.eigenvalues, self.errors
        a, total, squares = _sums(1 - eta * lam, eta, steps, window)
        mean = ((a * self.start - total * e) ** 2) @ lam / 2
        weight = np.concatenate([[0.0], (np.diff(e, axis=0) ** 2) @ (lam * squares) / 2])
        cost = 2.0 ** (self.gamma * np.arange(len(e)))
        best = (math.inf, {})
        for finest in np.flatnonzero(mean < eps)[:4]:
            room = eps - mean[finest]
            for first in range(finest + 1):
                price = (
                    cost[first + 1 : finest + 1]
                    + np.append(0.0, cost[first + 1 : finest])[: finest - first]
                )
                w = weight[first + 1 : finest + 1]
                scale = np.sqrt(w * price).sum() / (room + w.sum())
                p = scale * np.sqrt(w / price)
                if (p <= 1).all():
                    used = np.append(1.0, p)
                    shared = float(
                        (
                            cost[first : finest + 1]
                            * (used + np.append(p, 0.0) - used * np.append(p, 0.0))
                        ).sum()
                    )
                    found = {
                        "eta": eta,
                        "steps": steps,
                        "window": window,
                        "p": used,
                        "levels": range(first, finest + 1),
                    }
                    best = min(best, (steps * shared, found), key=lambda b: b[0])
        return best

    def fixed(self, eps: float) -> float:
        """Descent on one level: the price of the best level and step in hindsight."""
        best = math.inf
        for k in range(len(self.errors)):
            for eta in (1.0, 1.5, 1.9):
                t = self._steps_needed(eps, eta, k)
                best = min(best, t * self.cost(k))
        return best

    def _steps_needed(self, eps, eta, k) -> float:
        low, high = 0, 1
        at = -self.errors[k] / self.eigenvalues

        def reached(t):
            return self.loss(at + (1 - eta * self.eigenvalues) ** t * (self.start - at)) <= eps

        while not reached(high):
            low, high = high, 2 * high
            if high > 1e9:
                return math.inf
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if reached(middle) else (middle, high)
        return high

    def coarse_to_fine(self, eps: float, solver: str) -> float:
        """Nesterov's method ('nesterov') or conjugate gradients ('cg'), level after level, switching in hindsight."""
        make = {"nesterov": self._nesterov, "cg": self._conjugate}[solver]
        floors = [self.loss(e / self.eigenvalues) for e in self.errors]
        best = math.inf
        for finest in [k for k, f in enumerate(floors) if f < eps][:3]:
            for first in range(finest + 1):
                for patience in (1.1, 1.5, 2.5, 5.0) if first < finest else (1.0,):
                    y, price = self.start, 0.0
                    for k in range(first, finest + 1):
                        goal = eps if k == finest else patience * floors[k]
                        y, calls = self._until(make(y, k), y, goal)
                        price += calls * self.cost(k)
                        if price >= best:
                            break
                    else:
                        best = min(best, price)
        return best

    def _until(self, iterates, y, goal):
        calls = 0
        while self.loss(y) > goal and calls < 20_000:
            y = next(iterates)
            calls += 1
        return y, calls if self.loss(y) <= goal else math.inf

    def _nesterov(self, y, k):
        ratio = math.sqrt(self.mu)
        momentum, z = (1 - ratio) / (1 + ratio), y
        while True:
            x = z - (self.eigenvalues * z + self.errors[k])
            z, y = x + momentum * (x - y), x
            yield y

    def _conjugate(self, y, k):
        r = -(self.eigenvalues * y + self.errors[k])
        p, size = r, float(r @ r)
        while True:
            image = self.eigenvalues * p
            step = size / float(p @ image)
            y, r = y + step * p, r - step * image
            new = float(r @ r)
            p, size = r + new / size * p, new
            yield y


def _sums(
    x: np.ndarray, eta: float, steps: int, window: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean over the window of x^t, and the sums of the errors' coefficients and of their squares (plain series)."""
    lag = steps - window
    tail = (1 - x**window) / (1 - x)  # 1 + x + ... + x^(window-1)
    a = x ** (lag + 1) * tail / window
    total = eta * (1 - a) / (1 - x)
    inside = window - 2 * x * tail + x**2 * (1 - x ** (2 * window)) / (1 - x**2)
    outside = (1 - x**window) ** 2 * x**2 * (1 - x ** (2 * lag)) / (1 - x**2)
    return a, total, (eta / (window * (1 - x))) ** 2 * (inside + outside)


def _growing(
    x: np.ndarray, eta: float, steps: int, growth: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same for weights that grow by `growth` per step on the points y_0, ..., y_(T-1) where a gradient was taken."""
    log = math.log(growth)
    share = (
        math.expm1(log) / -math.expm1(-steps * log) if log else 1 / steps
    )  # growth^T over the sum of the weights
    q = 1 / growth
    a = share * (x**steps - q**steps) / (growth * x - 1)
    n = (
        steps - 1
    )  # the error made n steps before the last point enters with (x^n - q^n) times a constant

    def series(ratio):
        return ratio * (1 - ratio**n) / (1 - ratio)

    squares = series(x**2) - 2 * series(q * x) + (series(q**2) if log else n)
    return a, eta * (1 - a) / (1 - x), (eta * share / (growth * x - 1)) ** 2 * squares
