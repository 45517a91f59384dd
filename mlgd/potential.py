"""The schedule of a sharp plan: what Theorem S (mlgd/sharp.py) asks of steps and stops.

One step h is used throughout. The potential phi_t, the weight of the squared distance to a
minimizer in the proof, changes by a constant factor per step, and the mass of a step is h phi_t.
Every point after the first `burn` ones may be the output, y_t with the probability h phi_t: so the
stop has a truncated geometric law, and all that a plan needs are sums of geometric series, in
closed form here for stretches of any length.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

Numbers = float | np.ndarray

# Of the logarithm of a potential: floats reach from -708 to 709.
WIDEST = 600.0

# Of a rate times a number of steps: below it the mean of a truncated geometric law is taken from
# its series, whose error is the square of this; above, rounding costs 1e-16 over this.
SERIES = 1e-6


class Impossible(ValueError):
    """Numbers that the theorem does not allow, or floats do not hold; a search passes on."""


def powers(rate: float, first: Numbers, last: Numbers) -> Numbers:
    """The sum of exp(-rate j) over first <= j <= last, nothing where last < first."""
    count = np.maximum(last - first + 1, 0)
    if rate == 0:
        return 1.0 * count
    return np.exp(-rate * first) * np.expm1(-rate * count) / math.expm1(-rate)


def mean_power(rate: float, count: Numbers) -> Numbers:
    """The mean of 0, 1, ..., count - 1 under weights exp(-rate j)."""
    count = np.maximum(count, 1.0)
    series = (count - 1) / 2 - rate * (count**2 - 1) / 12
    apart = rate * count
    small = np.abs(apart) < SERIES
    if rate == 0:
        return series
    exact = 1 / math.expm1(rate) - count / np.expm1(np.where(small, 1.0, apart))
    return np.where(small, series, exact)


@dataclass(frozen=True)
class Potential:
    """Steps, stops and masses, in closed form at every step t = 0, 1, ..., steps - 1."""

    step: float  # h
    burn: int  # steps before the first point that may be the output
    outputs: int  # points that may be
    rate_burn: (
        float  # by which the logarithm of the potential falls per step of the burn-in
    )
    rate: float  # and later
    psi_burn: float  # 1/psi multiplies the squared bias in the burn-in
    psi_late: float  # and later

    @property
    def steps(self) -> int:
        """The most that a run makes: none after the last output."""
        return self.burn + self.outputs - 1

    @property
    def start(self) -> float:
        """phi_{-1}, the potential before the first step: with it the stops sum to one."""
        series = float(powers(self.rate, 1, self.outputs))
        return math.exp(self.rate_burn * self.burn) / (self.step * series)

    def on(self, beta: float) -> "Potential":
        """The same schedule where the smoothness, one here, is beta."""
        return replace(
            self,
            step=self.step / beta,
            psi_burn=self.psi_burn * beta,
            psi_late=self.psi_late * beta,
        )

    # --- step by step ---

    def mass(self, t: Numbers) -> Numbers:
        """a_t = h phi_t, what the errors of step t weigh."""
        return self.masses(t, t + 1)

    def stop(self, t: Numbers) -> Numbers:
        """alpha_t, the probability that y_t is the output."""
        return np.where(np.asarray(t) < self.burn, 0.0, self.mass(t))

    def running(self, t: Numbers) -> Numbers:
        """P(I > t), the probability that step t is made."""
        return self.expected(t, t + 1)

    def psi(self, t: Numbers) -> Numbers:
        return np.where(np.asarray(t) < self.burn, self.psi_burn, self.psi_late)

    def stopped(self, u: float) -> int:
        """I, the number of steps of a run, from a number u that is uniform on (0, 1)."""
        passed = u * self.outputs
        if self.rate:
            falls = math.expm1(-self.rate * self.outputs)
            passed = -math.log1p(u * falls) / self.rate
        return self.burn + min(int(passed), self.outputs - 1)

    # --- stretches of steps, first <= t < last, on one side of the burn-in's end ---

    def masses(self, first: Numbers, last: Numbers) -> Numbers:
        """The sum of the masses of a stretch."""
        begins = np.minimum(first, self.burn)
        ends = np.minimum(last, self.burn)
        burnt = powers(self.rate_burn, begins + 1, ends)
        begins = np.maximum(first - self.burn, 0)
        ends = np.maximum(last - self.burn, 0)
        later = powers(self.rate, begins + 1, ends)
        fallen = math.exp(-self.rate_burn * self.burn)
        return self.step * self.start * (burnt + fallen * later)

    def expected(self, first: Numbers, last: Numbers) -> Numbers:
        """How many steps of a stretch are made on average."""
        burnt = np.minimum(last, self.burn) - np.minimum(first, self.burn)
        begins = np.maximum(first - self.burn, 0)
        ends = np.maximum(last - self.burn, 0)
        every = powers(self.rate, 0, self.outputs - 1)
        # those who pass the stretch make all of its steps, those who stop in it a part
        pass_it = powers(self.rate, ends, self.outputs - 1) / every
        stop_in_it = powers(self.rate, begins, ends - 1) / every
        part = mean_power(self.rate, ends - begins)
        return burnt + (ends - begins) * pass_it + part * stop_in_it

    def edges(self, spread: float, most: int) -> np.ndarray:
        """Where stretches begin and end, so that in each the mass over the probability to be made
        changes by about a factor exp(spread); at most so many stretches in each part."""
        burnt = self.burn * abs(self.rate_burn)
        count = 1 + min(int(burnt / spread), most)
        early = np.linspace(0, self.burn, count + 1)
        # that ratio is 1/|1 - exp(-rate left)|, up to a factor, where so many outputs are left
        if self.rate == 0:
            widest = math.log(self.outputs)
        else:
            ends = np.expm1(-self.rate * np.array([1.0, self.outputs]))
            low, widest = np.log(np.abs(ends))
            widest = widest - low
        count = 2 + min(int(abs(widest) / spread), most)
        logs = np.linspace(0, widest, count)[::-1]
        left = np.exp(logs)
        if self.rate:
            fallen = np.maximum(left * math.expm1(-self.rate), -1)
            with np.errstate(divide="ignore"):
                left = -np.log1p(fallen) / self.rate
        late = np.clip(self.burn + self.outputs - left, self.burn, self.steps)
        edges = np.concatenate([early, late, [self.steps]])
        return np.unique(np.round(edges))


def potential(
    mu: float,
    step: float,
    burn: int,
    outputs: int,
    young_burn: float,
    young: float,
) -> Potential:
    """The largest potential that Theorem S allows, where beta is one, with Young's numbers chi:

    phi_t = phi_{t-1} + a_t (omega mu - chi) + (a_t - alpha_t) mu,   a_t = h phi_t.
    """
    if step >= 1:
        raise Impossible("the step must be below 1/beta")
    loud = 1 / (1 - step * (1 - mu))
    omega = (1 - step) * loud
    growth_burn = step * ((1 + omega) * mu - young_burn)
    growth = step * (omega * mu - young)
    if max(growth_burn, growth) >= 1:
        raise Impossible("the step is too long for this curvature")
    rate_burn = math.log1p(-growth_burn)
    rate = math.log1p(-growth)
    if burn * abs(rate_burn) + outputs * abs(rate) > WIDEST:
        raise Impossible("the potential leaves the range of floats")
    return Potential(
        step=step,
        burn=burn,
        outputs=outputs,
        rate_burn=rate_burn,
        rate=rate,
        psi_burn=1 / (omega**2 / young_burn + step * loud),
        psi_late=1 / (omega**2 / young + step * loud),
    )
