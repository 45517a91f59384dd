"""Playing the adversary of the lower bound: methods that look, methods that may not, and a gambler who meets the bound."""

from dataclasses import replace

import numpy as np

from mlgd import Adversary, Plan, Problem, minimize, plan


class Recorded(Adversary):
    """An adversary that keeps the transcript of what it was asked: (level, the point's bytes), in order."""

    def reset(self):
        super().reset()
        object.__setattr__(self, "asked", [])

    def _answer(self, k, y):
        self.asked.append((k, np.asarray(y).tobytes()))
        return super()._answer(k, y)


def problem_of(adversary: Adversary) -> Problem:
    """What an honest planner is told: the class, the start and the coarsest level on offer; not the sign."""
    names = ("beta", "d0", "gamma", "c", "mu")
    return Problem(**{name: getattr(adversary, name) for name in names}, first=adversary.levels[0])


def gambler(adversary: Adversary, chance: float) -> tuple[float, float]:
    """(mean loss over eps, mean price over the lower bound) of looking once with the given chance, exactly."""
    adversary.reset()
    jump = adversary.start.copy()
    jump[0] -= adversary.value(adversary.blind_below, adversary.start)[0] / adversary.flatness
    loss = chance * adversary.loss(jump) + (1 - chance) * adversary.loss(adversary.start)
    return loss / adversary.eps, chance * adversary.spent / adversary.lower_bound


def lbfgs(adversary: Adversary, level: int) -> np.ndarray:
    """scipy's L-BFGS-B on one level; it wants values too, and gets those of the level's own potential for free."""
    from scipy.optimize import minimize as scipy_minimize

    options = {"ftol": 0.0, "gtol": 2.0**-level / 4}
    value, slope = (
        (lambda y: adversary.potential(level, y)),
        (lambda y: adversary.evaluate(level, y)),
    )
    return scipy_minimize(value, adversary.start, jac=slope, method="L-BFGS-B", options=options).x


def coarsened(full: Plan, finest: int) -> Plan:
    """The plan with every stage confined to levels no finer than the given one."""
    return replace(
        full, stages=tuple(replace(s, delta=max(s.delta, 2.0**-finest)) for s in full.stages)
    )


def blindfolded(adversary: Adversary, method: str, seed: int) -> np.ndarray:
    """Where a method ends that is allowed the blind levels only."""
    finest = adversary.blind_below - 1
    if method == "L-BFGS-B":
        return lbfgs(adversary, finest)
    full = plan(problem_of(adversary), adversary.eps, method)
    return minimize(adversary, adversary.start, coarsened(full, finest), rng=seed).y


def transcript(sign: int, method: str, seed: int, rounds: int = 400) -> tuple[list, int]:
    """The queries of the first rounds of a run, in order, and the first level that shows the tilt."""
    modulus = 2.0**-10 if method == "scheduled" else 0.0
    shop = Recorded(modulus / 64 or 2.0**-12, 1.0, 1.0, 3.0, 1.0, modulus, sign)
    chosen = plan(problem_of(shop), shop.eps, method)
    minimize(shop, shop.start, chosen, rng=seed, callback=lambda now: now.step >= rounds)
    return shop.asked, shop.blind_below


def chain_queries(curvature: float, target: float, modulus: float = 0.0, length: int = 1200) -> int:
    """The least number of exact gradients whose span holds a point of loss `target`, on Nesterov's chain at distance 1.

    The chain is the quadratic with tridiagonal Hessian of curvatures in [modulus, curvature]; one gradient reveals one
    coordinate, so the span of t gradients is the first t coordinates.
    """
    bend = (curvature - modulus) / 4
    diagonal, off = 2 * bend + modulus, -bend
    pivots, forward = np.empty(length), np.empty(length)
    pivots[0], forward[0] = diagonal, bend
    for i in range(1, length):  # the LDL recurrence of the leading blocks
        ratio = off / pivots[i - 1]
        pivots[i], forward[i] = diagonal - ratio * off, -ratio * forward[i - 1]
    energies = np.concatenate([[0.0], np.cumsum(forward**2 / pivots) / 2])
    solution = np.empty(length)
    solution[-1] = forward[-1] / pivots[-1]
    for i in range(length - 2, -1, -1):
        solution[i] = (forward[i] - off * solution[i + 1]) / pivots[i]
    gaps = (energies[-1] - energies) / float(solution @ solution)
    return int(np.argmax(gaps <= target))
