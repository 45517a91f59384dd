"""The search for the cheapest sharp plan: which schedule, and what to buy at each step.

Units are those in which beta, d0 and the largest price are one. For a schedule, bound and price
are sums over stretches of steps that share one telescope, and both are sums over levels (`Trade`):
at an exchange rate of loss for price the cheapest probabilities stand in closed form, and the rate
is the one at which the bound is eps. Schedules are compared by that price: for each number of steps
the step size and Young's numbers by Nelder and Mead's method, then the number of steps.
"""

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from .hierarchy import LevelError
from .potential import Impossible, Potential, potential

# Sums are rounded, and so is 1 - h beta where h is next to 1/beta: this much of eps is left.
ROUNDED = 1e-9

# Of the logarithm of what decides the purchases: what it may change within a stretch. Half of it
# gains less than a thousandth of the price.
SPREAD = 0.25
LEAST_PRICE = 1e-100
MOST_STRETCHES = 100


@dataclass(frozen=True)
class Rungs:
    """Levels from coarse to fine: a bound on the error of each, and the price of one evaluation."""

    accuracy: np.ndarray
    price: np.ndarray

    @classmethod
    def of(cls, accuracy: np.ndarray, price: np.ndarray) -> "Rungs":
        """Prices in units of the largest; those that a float hardly holds count a little more."""
        return cls(accuracy, np.maximum(price / price.max(initial=0.0), LEAST_PRICE))

    def only(self, kept: np.ndarray) -> "Rungs":
        return Rungs(self.accuracy[kept], self.price[kept])

    def worth(self) -> np.ndarray:
        """The indices of a sub-ladder with the least sum of sqrt((r_i^2 - r_j^2) c_j), which is
        what rare draws cost. On it, jumps over prices fall, so that reach falls as it must."""
        if not self.price.size:
            return np.array([], int)
        squared = self.accuracy**2
        best = [0.0]
        before = [0]
        for j in range(1, len(squared)):
            jumps = np.maximum(squared[:j] - squared[j], 0)
            through = best + np.sqrt(jumps * self.price[j])
            before.append(int(np.argmin(through)))
            best.append(float(through[before[j]]))
        path = [len(squared) - 1]
        while path[-1]:
            path.append(before[path[-1]])
        return np.array(path[::-1])


class Bought(NamedTuple):
    """At one exchange rate: reach and base by stretch, the noise's part of the bound, the price."""

    reach: np.ndarray
    base: np.ndarray
    noise: float
    price: float


@dataclass(frozen=True)
class Trade:
    """What a schedule's purchases come to. Its bound is  horizon + finest + noise."""

    edges: np.ndarray  # of the stretches
    made: np.ndarray  # how many steps of each are made on average
    shrinkage: np.ndarray
    noisy: (
        np.ndarray
    )  # by stretch and level: what it brings into the bound if it is never bought
    cost: np.ndarray  # and what it costs to buy it always
    ratio: np.ndarray
    horizon: float
    finest: float
    base: np.ndarray | None = (
        None  # the finest level that is always bought, if it is prescribed
    )

    @classmethod
    def of(cls, rungs: Rungs, schedule: Potential, average: bool) -> "Trade":
        edges = schedule.edges(SPREAD, MOST_STRETCHES)
        first, last = edges[:-1], edges[1:]
        mass = schedule.masses(first, last)
        psi = schedule.psi(first)
        # the mean of all outputs needs every step
        made = last - first if average else schedule.expected(first, last)
        squared = rungs.accuracy**2
        jumps = np.append(0.0, squared[:-1] - squared[1:])
        noisy = schedule.step / 2 * mass[:, None] * np.maximum(jumps, 0)
        cost = made[:, None] * rungs.price
        return cls(
            edges=edges,
            made=made,
            shrinkage=(schedule.step * psi)[:, None],
            noisy=noisy,
            cost=cost,
            ratio=np.sqrt(noisy / cost),
            horizon=schedule.start / 2,
            finest=float(mass @ (1 / psi)) / 2 * float(squared[-1]),
        )

    def bought(self, rate: float) -> Bought:
        """The cheapest purchases at a rate of loss per price.

        Level by level the least of  noisy (1 - P)/(s (1 - P) + P) + rate cost P;  then the best
        base, the finest level that is always bought and for which no coarser one is paid.
        """
        s = self.shrinkage
        reach = np.clip((self.ratio / math.sqrt(rate) - s) / (1 - s), 0.0, 1.0)
        noise = self.noisy * (1 - reach) / (s * (1 - reach) + reach)
        price = self.cost * reach
        base = self.base
        if base is None:
            both = noise + rate * price
            finer = np.cumsum(both[:, ::-1], axis=1)[:, ::-1] - both
            base = np.argmin(rate * self.cost + finer, axis=1)[:, None]
        level = np.arange(self.cost.shape[1])
        above = level > base
        at = level == base
        paid = float(price[above].sum() + self.cost[at].sum())
        return Bought(np.where(above, reach, 1.0), base, float(noise[above].sum()), paid)


# --- the exchange rate ---

FAR = 200.0  # logarithms of a rate from the first guess: beyond it nothing more is bought, or less
CLOSE = 0.02  # of the noise, in logarithms: the price is then known to the square of it
NEXT = 1e-13  # of a rate, in logarithms: two that are next to each other, for a plan,
ROUGHLY = 1e-4  # and where plans are compared
LONG = 6.0  # in logarithms of the rate: at most so far at once
NOTHING = 1e-300


def over(found: Bought, room: float) -> float:
    """The logarithm of the noise over the room there is for it."""
    return math.log(max(found.noise, NOTHING) / max(room, NOTHING))


def near(trade: Trade, room: float, guess: float) -> float:
    """The logarithm of a rate at which the noise is about `room`, or passes it in a jump.

    Where levels are drawn rarely the noise grows like the root of the rate.
    """
    low, high = -math.inf, math.inf
    log_rate = guess
    hurry = 1.0  # where the noise hardly changes, steps must grow
    while high - low > CLOSE / 4 and abs(log_rate - guess) < FAR:
        beyond = over(trade.bought(math.exp(log_rate)), room)
        if abs(beyond) < CLOSE:
            break
        if beyond > 0:
            high = log_rate
        else:
            low = log_rate
        log_rate -= max(min(2 * hurry * beyond, LONG), -LONG)
        hurry *= 2
        if not low < log_rate < high:
            log_rate = (low + high) / 2
            hurry = 1.0
    return log_rate


def least_price(trade: Trade, room: float, guess: float) -> tuple[float, float]:
    """About the least price whose noise is at most `room`, and the logarithm of the rate.

    It is the dual value, price + (noise - room)/rate: below the least price, and by the square of
    what the noise is off.
    """
    coarsest = float((trade.noisy / trade.shrinkage).sum())
    if coarsest <= room:
        return float(trade.cost[:, 0].sum()), guess
    log_rate = near(trade, room, guess)
    rate = math.exp(log_rate)
    found = trade.bought(rate)
    return found.price + (found.noise - room) / rate, log_rate


def balanced(trade: Trade, room: float, guess: float, next_to: float) -> Bought:
    """The cheapest purchases whose noise is at most `room`; rates are known to `next_to`.

    Where the noise jumps past it, since a base does, both bases are tried at rates of their own.
    """
    low, high = around(trade, room, near(trade, room, guess), next_to)
    tried = []
    for log_rate in (low, high):
        base = trade.bought(math.exp(log_rate)).base
        held = replace(trade, base=base)
        below, _ = around(held, room, log_rate, next_to)
        tried.append(held.bought(math.exp(below)))
    fitting = [found for found in tried if found.noise <= room]
    return min(fitting, key=lambda found: found.price)


def around(
    trade: Trade, room: float, guess: float, next_to: float
) -> tuple[float, float]:
    """Logarithms of two rates next to each other: at the lower one the noise is at most `room`."""

    def beyond(log_rate: float) -> bool:
        return trade.bought(math.exp(log_rate)).noise > room

    low = high = guess
    while beyond(low) and low > guess - FAR:
        low -= 1.0
    while not beyond(high) and high < guess + FAR:
        high += 1.0
    while high - low > next_to * max(1.0, abs(low)):
        middle = (low + high) / 2
        if beyond(middle):
            high = middle
        else:
            low = middle
    return low, high


# --- the schedule ---

TOLERANCE = (
    0.02  # of all plans within this of the least price, the one with the fewest steps
)
HALVED = 0.02  # of a number of steps: the fewest is known so well
STRIDE = 1.5  # from one number of steps to the next
HOPELESS = 1.1  # over the least price: with more steps it is dearer still
MOST_STRIDES = 20  # a ladder that does not reach eps with so many steps never does
LARGEST = 2.0**52  # steps: a float tells one from the next
LONGEST = 1 - 1e-4  # step times beta: next to one 1 - h beta has few digits
LEAST = 1e-6  # Young's number over eps/d0^2: where the finest level is exact it may be nothing
BEYOND = 1e3  # more than the logarithm of any price
USUAL = 5.0  # logarithms of rate times price over eps: a rate that may serve as the next guess
TRIVIAL = 1e3  # an eps above a half needs no step: a plan for more would save nothing
FLAT = 0.01  # of eps: a curvature that makes so little of a difference is left out


class Found(NamedTuple):
    """A schedule, and what is bought on it."""

    schedule: Potential
    trade: Trade
    bought: Bought


class Trial(NamedTuple):
    """The best schedule of a kind with a number of steps, by its coordinates, and its price."""

    price: float
    steps: int
    at: np.ndarray


def cheapest(mu: float, eps: float, rungs: Rungs, average: bool) -> Found | None:
    """The cheapest plan, of all within two percent of it the one with the fewest steps."""
    if not rungs.price.size:
        return None
    eps = min(eps, TRIVIAL)
    search = Search(mu if mu > FLAT * eps else 0.0, eps, rungs, average)
    # without curvature 1/psi >= 1/chi, and the bound is at least M/2 + r^2/(2 M) >= r, M = phi_{-1}
    if not search.mu and rungs.accuracy[-1] > eps:
        return None
    best = search.found()
    if not math.isfinite(best.price):
        return None
    return search.built(best.steps, best.at, NEXT)


@dataclass
class Search:
    """The problem in its own units, and where the last exchange rate was."""

    mu: float
    eps: float
    rungs: Rungs
    average: bool
    log_rate: float = field(default=0.0)

    # --- one schedule ---

    def schedule(self, steps: int, at: np.ndarray) -> Potential:
        """From the log odds of h beta and log chi; with a burn-in from log chi in it and the log
        odds of its share of the steps too."""
        least = LEAST * min(self.eps, 1.0)
        step = min(from_odds(at[0]), LONGEST)
        young = max(math.exp(at[1]), least)
        if len(at) == 2:
            return potential(self.mu, step, 0, steps + 1, young, young)
        early = max(math.exp(at[2]), least)
        burn = round(steps * from_odds(at[3]))
        return potential(self.mu, step, burn, steps + 1 - burn, early, young)

    def room(self, trade: Trade) -> float:
        """What is left of eps for the noise."""
        return self.eps * (1 - ROUNDED) - trade.horizon - trade.finest

    def log_price(self, at: np.ndarray, steps: int) -> float:
        """About the logarithm of a schedule's price; more than any price where it can't prove eps,
        so that what is least leads back."""
        try:
            schedule = self.schedule(steps, at)
        except (Impossible, OverflowError):
            return math.inf
        trade = Trade.of(self.rungs, schedule, self.average)
        if self.room(trade) < 0:
            return BEYOND + math.log((trade.horizon + trade.finest) / self.eps)
        price, log_rate = least_price(trade, self.room(trade), self.log_rate)
        if not 0 < price < math.inf:
            return math.inf
        if abs(log_rate + math.log(price / self.eps)) < USUAL:
            self.log_rate = log_rate
        return math.log(price)

    def built(self, steps: int, at: np.ndarray, next_to: float) -> Found:
        """A schedule, with what is bought on it."""
        schedule = self.schedule(steps, at)
        trade = Trade.of(self.rungs, schedule, self.average)
        bought = balanced(trade, self.room(trade), self.log_rate, next_to)
        return Found(schedule, trade, bought)

    # --- the best one with a number of steps ---

    def starts(self, steps: int, burning: bool) -> list[np.ndarray]:
        """Where to begin: steps next to 1/beta, and what limits of small eps suggest for chi."""
        odds = math.log(max(math.sqrt(steps) / 1.3 - 1, 0.5))
        natural = math.log(0.6 * min(self.eps, 1.0))
        if not burning:
            return [np.array([odds, natural])]
        # with chi = mu in the burn-in the potential grows from eps/d0^2 to mu in so many steps
        forget = math.log(max(self.mu / self.eps, 2.0)) / self.mu
        early = math.log(self.mu)
        found = []
        for share, late in ((0.5, 1.0), (0.9, 1.0), (1.3, 0.5)):
            share = min(share * forget / steps, 0.95)
            late = max(early + math.log(late), natural)
            found.append(np.array([odds, late, early, math.log(share / (1 - share))]))
        return found

    def best(self, steps: int, starts: list[np.ndarray]) -> Trial:
        """The best schedule with so many steps that is found from these."""
        from scipy.optimize import minimize  # here, because scipy is slow to load

        lowest, there = math.inf, starts[0]
        for at in starts:
            corners = np.vstack([at, at + 0.3 * np.eye(len(at))])
            options = {
                "xatol": 1e-2,
                "fatol": 3e-4,
                "maxfev": 40 * len(at),
                "initial_simplex": corners,
            }
            found = minimize(
                self.log_price, at, (steps,), method="Nelder-Mead", options=options
            )
            if found.fun < lowest:
                lowest, there = found.fun, found.x
        price = math.inf
        if lowest < BEYOND / 2:
            price = self.built(steps, there, ROUGHLY).bought.price
        return Trial(price, steps, there)

    # --- the number of steps ---

    def found(self) -> Trial:
        """The schedule with the fewest steps of all within two percent of the least price."""
        # the horizon alone needs half of beta d0^2/eps steps, or, with mu, some beta over mu
        fewest = 0.5 / self.eps
        if self.mu:
            fewest = min(fewest, 0.5 / self.mu)
        if fewest > LARGEST:
            raise LevelError(
                f"a sharp plan would need more than {fewest:.3g} steps: ask for a larger eps"
            )
        kinds = [self.tried(max(1.0, fewest), burning=False)]
        if self.mu:
            kinds.append(self.tried(max(1.0, fewest), burning=True))
        for trials in kinds:
            self.refine(trials)
        least = min(trial.price for trials in kinds for trial in trials)
        enough = (1 + TOLERANCE) * least
        found = [self.fewest(trials, enough) for trials in kinds]
        return min(found, key=lambda trial: (trial.price > enough, trial.steps))

    def tried(self, fewest: float, burning: bool) -> list[Trial]:
        """Schedules of one kind with more and more steps, until that is clearly dearer."""
        trials = []
        least = math.inf
        steps = fewest
        reached = 0
        for _ in range(MOST_STRIDES):
            starts = self.starts(round(steps), burning)
            if trials:
                starts = [
                    trials[-1].at,
                    *starts[: 3 if burning and 0 < reached < 3 else 1],
                ]
            if burning and reached >= 3:
                starts = starts[:1]
            trials.append(self.best(round(steps), starts))
            reached += trials[-1].price < math.inf
            least = min(least, trials[-1].price)
            if trials[-1].price > HOPELESS * least:
                break
            steps = max(steps * STRIDE, steps + 1)
        return trials

    def refine(self, trials: list[Trial]) -> None:
        """Two more, between the cheapest and its neighbours."""
        cheapest = min(trials, key=lambda trial: trial.price)
        if not math.isfinite(cheapest.price):
            return
        for factor in (STRIDE**-0.5, STRIDE**0.5):
            steps = max(round(cheapest.steps * factor), 1)
            trials.append(self.best(steps, [cheapest.at]))
        trials.sort(key=lambda trial: trial.steps)

    def fewest(self, trials: list[Trial], enough: float) -> Trial:
        """The fewest steps whose price is low enough; halves the gap in the list of those tried."""
        low = 0
        for found in trials:
            if found.price <= enough:
                break
            low = found.steps
        else:
            return trials[-1]
        while found.steps - low > max(1, HALVED * found.steps):
            middle = self.best((low + found.steps) // 2, [found.at])
            if middle.price <= enough:
                found = middle
            else:
                low = middle.steps
        return found


def from_odds(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds))
