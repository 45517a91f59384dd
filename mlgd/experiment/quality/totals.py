"""What the runs come to: reached, false promises with an interval, prices over those of others.

The intervals take runs for independent. The three targets of a problem and its data seeds are
not quite: read them as the least that is uncertain.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise

import numpy as np
from scipy.stats import beta

from .bench import Run, rounded
from .policies import POLICIES

TARGETS = ("loose", "middle", "tight")
CHEAPER = 0.95  # a smaller eps that costs less than this share of a larger one's price


def interval(count: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval for a probability seen `count` times in `total`.

    >>> [round(end, 3) for end in interval(1, 100)]
    [0.0, 0.054]
    """
    tail = (1 - level) / 2
    low = beta.ppf(tail, count, total - count + 1) if count else 0.0
    high = beta.ppf(1 - tail, count + 1, total - count) if count < total else 1.0
    return float(low), float(high)


def median(numbers: Iterable[float]) -> float | None:
    """Rounded; None of nothing."""
    found = [number for number in numbers if number is not None]
    return rounded(float(np.median(found))) if found else None


def promises(runs: Sequence[Run]) -> dict:
    """Reached, successes, and how many of these were false."""
    successes = [run for run in runs if run.success]
    false = [run for run in successes if run.false]
    low, high = interval(len(false), len(successes)) if successes else (0.0, 1.0)
    return {
        "runs": len(runs),
        "reached": sum(run.reached for run in runs),
        "successes": len(successes),
        "false": len(false),
        "elsewhere": sum(run.elsewhere for run in false),
        "interval": [rounded(low), rounded(high)],
        "worst": rounded(max((run.over for run in false), default=0.0)),
    }


def over_rival(runs: Iterable[Run]) -> list[float]:
    """Prices over the best rival that stopped by itself within eps, where both reached it."""
    both = (run for run in runs if run.reached and run.rival)
    return [run.price / run.rival for run in both]


def over_hindsight(runs: Iterable[Run]) -> list[float]:
    """Prices over the least in hindsight, where the tool reached eps."""
    return [
        run.price / run.hindsight
        for run in runs
        if run.reached and run.hindsight < np.inf
    ]


def by_target(prices, runs: Sequence[Run]) -> dict:
    """The median of such prices, of all and for each kind of target."""
    out = {"all": median(prices(runs))}
    for number, name in enumerate(TARGETS):
        out[name] = median(prices([run for run in runs if run.target == number]))
    return out


def cheaper_steps(runs: Sequence[Run]) -> tuple[int, int]:
    """Steps to the next smaller eps, and how many of them made a run clearly cheaper."""
    steps = cheaper = 0
    for _, group in groupby(runs, key=lambda run: (run.name, run.seed)):
        prices = [run.price for run in group]
        for large, small in pairwise(prices):
            steps += 1
            cheaper += small < CHEAPER * large
    return steps, cheaper


def policy_rows(runs: Sequence[Run]) -> dict:
    """For each policy: how often it stopped above eps, and the tool's price over its price.

    The price where the tool reached eps, whether the policy did or not.
    """
    out = {}
    for n, name in enumerate(POLICIES):
        above = [run for run in runs if run.policies[n][1] > 1]
        ratios = [run.price / run.policies[n][0] for run in runs if run.reached]
        out[name] = {
            "above": len(above),
            "above, convex": sum(run.convex for run in above),
            "price": median(ratios),
        }
    return out


def totals(runs: Sequence[Run]) -> dict:
    """All figures that pages quote."""
    convex = [run for run in runs if run.convex]
    other = [run for run in runs if not run.convex]
    rivals = over_rival(runs)
    steps, cheaper = cheaper_steps(runs)
    return {
        "problems": len({run.name for run in runs}),
        "promises": {
            "all": promises(runs),
            "convex": promises(convex),
            "not convex": promises(other),
        },
        "over the best rival": by_target(over_rival, runs),
        "cheaper than it": [sum(ratio < 1 for ratio in rivals), len(rivals)],
        "over hindsight": by_target(over_hindsight, runs),
        "smaller eps cheaper": [cheaper, steps],
        "policies": policy_rows(runs),
    }


# --- as text ---


def shown(number: float | None) -> str:
    return "-" if number is None else f"{number:.3g}"


def problem_table(runs: Sequence[Run]) -> str:
    """A line for each problem."""
    head = f"{'problem':20s} {'reached':>8s} {'done':>5s} {'false':>6s} {'worst':>7s}"
    lines = [f"{head} {'rival':>7s} {'hindsight':>10s}   (price over the best of each)"]
    for name, group in groupby(runs, key=lambda run: run.name):
        own = list(group)
        said = promises(own)
        worst = shown(said["worst"]) if said["false"] else ""
        lines.append(
            f"{name:20s} {said['reached']:4d}/{said['runs']:<3d} {said['successes']:5d} "
            f"{said['false']:6d} {worst:>7s} {shown(median(over_rival(own))):>7s} "
            f"{shown(median(over_hindsight(own))):>10s}{'' if own[0].convex else '   not convex'}"
        )
    return "\n".join(lines)


def total_table(found: dict) -> str:
    """What `totals` found, in words."""
    lines = []
    for name, said in found["promises"].items():
        low, high = said["interval"]
        lines.append(
            f"{name:11s} reached {said['reached']} of {said['runs']}; false promises "
            f"{said['false']} of {said['successes']} ({low:.1%} to {high:.1%}), "
            f"{said['elsewhere']} of them true of another minimum, worst {said['worst']:g} eps"
        )
    for name in ("over the best rival", "over hindsight"):
        each = ", ".join(f"{kind} {shown(price)}" for kind, price in found[name].items())
        lines.append(f"price {name}, median: {each}")
    cheaper, both = found["cheaper than it"]
    lines.append(f"cheaper than the best rival in {cheaper} of {both}")
    cheaper, steps = found["smaller eps cheaper"]
    lines.append(f"a smaller eps was more than 5% cheaper in {cheaper} of {steps} steps")
    head = f"{'policy':40s} {'stopped above eps':>18s} {'(convex)':>9s}"
    lines.append(f"{head} {'our price over its':>20s}")
    said = {
        name: told["runs"] - told["reached"] for name, told in found["promises"].items()
    }
    lines.append(f"{'minimize':40s} {said['all']:18d} {said['convex']:9d} {1:>20d}")
    for name, told in found["policies"].items():
        above = f"{told['above']:18d} {told['above, convex']:9d}"
        lines.append(f"{name:40s} {above} {shown(told['price']):>20s}")
    return "\n".join(lines)
