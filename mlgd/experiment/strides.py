"""Exact second moments of an epoch of anchored descent, in strides that grow with the time: as quick for a million steps as for a thousand.

With e = y - zero of the finest level, P = I - eta M and the reference r,  E(e_t | r) = P^t (r - zero), and the fluctuation F_t obeys

    F_{t+1} = P F_t P' + G_t,    G_t = sum_k N_k E[(y_t - r)(y_t - r)'] N_k',    N_k = eta sqrt(1/p_k - 1) slope_k.

In the eigenbasis of M a stride of n steps is exact for a forcing G that is a parabola in the time. The first steps are made one
by one; then a stride is an eighth of the time passed, over which G hardly bends: what forgets faster has forgotten. Against single
steps the moments are right to four digits (a test).
"""

import numpy as np

from .linear_errors import Affine, Moments, Sampling, _stack

SINGLE = 40  # steps made one by one
STRIDES = 8  # a stride is this part of the time passed


class Epoch:
    """The moments of one epoch at ever later times; `time` steps have been made."""

    def __init__(self, family: Affine, start: Moments, eta: float, draw: Sampling):
        values, self.v, self.back = family.eigen(draw.finest)
        self.zero = family.zeros[draw.finest]
        off = start.mean - self.zero
        shift = np.outer(start.mean, self.zero)
        second = start.second - shift - shift.T + np.outer(self.zero, self.zero)
        self.start, self.off = self.back @ second @ self.back.conj().T, self.back @ off
        self.x, self.family = 1 - eta * values, family
        self.noise = _stack(family, draw, eta)
        self.weigh = (self.v.conj().T * family.spectrum) @ self.v / 2
        self.a = np.multiply.outer(self.x, self.x.conj())
        self.time, self.fluctuation = 0, np.zeros_like(self.start)
        self.seen = [(0, self._forcing(0, self.fluctuation))]

    def _forcing(self, t: int, fluctuation: np.ndarray) -> np.ndarray:
        """G at a time, from the fluctuation there."""
        moved = self.x**t - 1
        zz = np.multiply.outer(moved, moved.conj()) * self.start + fluctuation
        real = (self.v @ zz @ self.v.conj().T).real
        pushed = (
            np.einsum("kij,klj->il", self.noise @ real, self.noise, optimize=True)
            if len(self.noise)
            else 0 * real
        )
        return self.back @ pushed @ self.back.conj().T

    def _after(self, n: int, nodes: list) -> np.ndarray:
        """The fluctuation n steps on, the forcing interpolated through up to three (time, value)."""
        power, sums = _sums(self.a, n)
        times = np.array([t - self.time for t, _ in nodes], float)
        weights = np.linalg.inv(np.vander(times, increasing=True))  # of the monomials in the values
        coefficients = np.tensordot(weights, np.array([g for _, g in nodes]), 1)
        return power * self.fluctuation + sum(
            s * c for s, c in zip(sums, coefficients, strict=False)
        )

    def stride(self, n: int) -> tuple[np.ndarray, list]:
        """(the fluctuation n steps on, the nodes used): predicted with what was seen, then corrected with what it makes."""
        if n == 1:
            return self._after(1, self.seen[-1:]), self.seen[-1:]
        ahead = self._after(n, self.seen[-3:])
        nodes = [*self.seen[-2:], (self.time + n, self._forcing(self.time + n, ahead))]
        return self._after(n, nodes), nodes

    def go(self, n: int, fluctuation: np.ndarray) -> None:
        self.time, self.fluctuation = self.time + n, fluctuation
        self.seen = [*self.seen[-2:], (self.time, self._forcing(self.time, fluctuation))]

    def loss(self, n: int = 0, fluctuation: np.ndarray | None = None) -> float:
        """The mean loss, now or n steps on."""
        power = self.x ** (self.time + n)
        f = self.fluctuation if fluctuation is None else fluctuation
        second = np.multiply.outer(power, power.conj()) * self.start + f
        shift = (self.v @ (power * self.off)).real @ (self.family.spectrum * self.zero)
        return float((self.weigh.conj() * second).real.sum() + shift + self.family.loss(self.zero))

    def moments(self) -> Moments:
        power = self.x**self.time
        mean = (self.v @ (power * self.off)).real
        second = (
            self.v
            @ (np.multiply.outer(power, power.conj()) * self.start + self.fluctuation)
            @ self.v.conj().T
        )
        shift = np.outer(mean, self.zero)
        return Moments(
            mean + self.zero, second.real + shift + shift.T + np.outer(self.zero, self.zero)
        )


def _sums(a: np.ndarray, n: int):
    """a^n and the sums over s < n of a^(n-1-s) s^p for p = 0, 1, 2, by the binary digits of n."""
    power, sums, m = np.ones_like(a), [np.zeros_like(a) for _ in range(3)], 0
    for digit in bin(n)[2:]:
        s0, s1, s2 = sums  # m -> 2m
        sums = [
            power * s0 + s0,
            power * s1 + s1 + m * s0,
            power * s2 + s2 + 2 * m * s1 + m * m * s0,
        ]
        power, m = power * power, 2 * m
        if digit == "1":
            sums = [a * s + float(m) ** p for p, s in enumerate(sums)]
            power, m = power * a, m + 1
    return power, sums


def reach(epoch: Epoch, goal: float, most: int) -> int | None:
    """Go on until the mean loss is at most `goal`; the number of steps, or None if `most` are not enough."""
    while epoch.time < most:
        n = 1 if epoch.time < SINGLE else epoch.time // STRIDES
        fluctuation, nodes = epoch.stride(n)
        loss = epoch.loss(n, fluctuation)
        if not np.isfinite(loss):
            return None
        if loss <= goal:
            low = 0
            while n - low > 1:
                middle = (low + n) // 2
                inside = epoch._after(middle, nodes)
                if epoch.loss(middle, inside) <= goal:
                    n, fluctuation = middle, inside
                else:
                    low = middle
            epoch.go(n, fluctuation)
            return epoch.time
        epoch.go(n, fluctuation)
    return None
