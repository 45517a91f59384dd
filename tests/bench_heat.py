"""Wall-clock on the heat source: the best fixed level against multilevel descent, to the same mean loss, in one run."""

import numpy as np

from mlgd import Hierarchy, Problem, Telescope, audit, tuned
from mlgd.experiment.heat import HeatSource
from mlgd.experiment.race import reach, seconds_of

heat = HeatSource(alpha=1e-4)
h, start = heat.hierarchy(), np.zeros(16)
report = audit(h, [start, heat.minimizer, heat.minimizer / 2], reference=heat.gradient)
beta, mu = np.linalg.eigvalsh(heat.hessian)[[-1, 0]]
problem = Problem(
    beta=beta, mu=mu, d0=np.linalg.norm(heat.minimizer), gamma=report.gamma, c=report.c
)
target = 10**-4.5 * heat.loss_gap(start)

fixed = tuned(
    problem, target, Telescope(h, [1.0] * 5), 1.8 / beta, 600
)  # level 7 is the coarsest whose floor is low enough
price = reach(h, start, fixed, heat.loss_gap, [target])[1, 0]
fixed = tuned(problem, target, Telescope(h, [1.0] * 5), 1.8 / beta, round(price / h.cost(7)))

ladder = Hierarchy(h.evaluate, h.cost, h.levels[:5])
telescope = Telescope.cheapest(ladder, 0.0016, report.increment[:5])
multi = tuned(problem, target, telescope, 1 / beta, 1600)
multi_price = reach(h, start, multi, heat.loss_gap, [target], seeds=range(8))[1, 0]
multi = tuned(problem, target, telescope, 1 / beta, round(multi_price / telescope.expected_cost()))

ratios = []
for seed in range(7):
    slow = seconds_of(h, start, fixed)
    ratios.append(slow / seconds_of(h, start, multi, rng=seed))
low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75))
print(f"heat source, loss {10**-4.5:.1e} of the start: fixed level over multilevel descent")
print(f"  flops      {price / multi_price:6.1f}")
print(
    f"  wall-clock {middle:6.1f}   quartiles {low:.1f} to {high:.1f} over {len(ratios)} pairs of runs"
)
