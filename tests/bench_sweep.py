"""What the experiment costs: its random numbers alone, the whole of it, and its literal execution.

    python tests/bench_sweep.py            ten seeds, the paper's sizes, two processes, three rounds
    python tests/bench_sweep.py --seeds 2  fewer seeds

Prints processor times, shared by the same two workers, and checks the bars: in the median of three
rounds, drawing and running by turns, the whole experiment costs at most 2.5 times the drawing of
its random numbers (2 would be better), and the sweep alone is at least 100 times faster than its
literal execution. The literal execution is timed on a sample of its steps, in single precision, and
scaled by the exact numbers of steps; the two ways are also held against each other in double
precision, on the same draws.
"""

import argparse
import sys
import time

import numpy as np

from mlgd.experiment import literal
from mlgd.experiment.design import TELESCOPE, Design, stream
from mlgd.experiment.frontier import probabilities
from mlgd.experiment.reduce import reduce
from mlgd.experiment.sweep import Protocol, sweep, workers
from mlgd.experiment.trajectory import Frame, Trajectory

SAMPLE = 200  # steps of each literal run that are timed
ROUNDS = 3
WHOLE, LITERAL, APART = 2.5, 100, 1e-9  # the bars


def draw(protocol: Protocol, seed: int) -> float:
    """Processor time of the random numbers of one seed, and of nothing else."""
    design, out = protocol.design(seed), None
    clock = time.process_time()
    for block in range(design.blocks):
        out = design.gaussians(block, out)
    return time.process_time() - clock


def literal_seconds(protocol: Protocol, seed: int) -> float:
    """Processor time of one seed run literally to its guards, from a sample of its steps."""
    design = Design(protocol.m, 4 * protocol.k_max, protocol.phi, protocol.rho, seed)
    problem = reduce(design, protocol.k_max)
    columns = np.asfortranarray(problem.design.columns(protocol.k_max).astype(np.float32))
    right = problem.right.astype(np.float32)
    total = 0.0
    for k in protocol.baseline:
        clock = time.process_time()
        literal.fixed(columns, right, k, np.float32(0.1), SAMPLE)
        total += (
            (time.process_time() - clock)
            / SAMPLE
            * protocol.max_steps
            * len(protocol.shrinks)
        )
    biases = problem.biases(protocol.ladder).max(axis=0)
    for exact in (True, False):
        for scale in protocol.scales:
            p = probabilities(biases, protocol.gamma, scale)
            clock = time.process_time()
            run = literal.telescope(
                columns,
                right,
                protocol.ladder,
                p,
                0.01,
                exact,
                stream(seed, TELESCOPE, 0),
                SAMPLE,
            )
            spent = (time.process_time() - clock) / SAMPLE
            steps = min(protocol.max_steps, protocol.max_flops / (run.flops[-1] / SAMPLE))
            total += spent * steps * len(protocol.shrinks)
    return total


def agreement(seed: int = 3, steps: int = 4000) -> float:
    """The largest relative difference of losses, literal against Gram space, on the same draws."""
    ladder, worst = (1, 8, 64, 512), 0.0
    problem = reduce(Design(n=4096, seed=seed), 512)
    columns, eta = problem.design.columns(512), 1 / (4 * problem.smoothness(512))
    for exact in (True, False):
        p = probabilities(problem.biases(ladder).max(axis=0), 3.0, 2.0)
        run = Trajectory(Frame(problem, ladder, exact), p, eta, (int(exact), 0, 0))
        rng = stream(seed, TELESCOPE, int(exact), 0, 0)
        plain = literal.telescope(
            columns, problem.right, ladder, p, eta, exact, rng, steps
        )
        while run.steps < steps:
            found = run.advance(steps - run.steps)
            rows = found.steps - 1
            for ours, theirs in (
                (found.last, plain.last),
                (found.average, plain.average),
            ):
                worst = max(worst, np.max(np.abs(ours / theirs[rows] - 1)))
    return float(worst)


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Time the experiment against its random numbers and its literal run."
    )
    parser.add_argument("--seeds", type=int, default=10)
    protocol = Protocol(seeds=tuple(range(parser.parse_args().seeds)))
    drawn, swept, whole = [], [], []
    with workers(2) as pool:
        for _ in range(ROUNDS):
            drawn.append(
                sum(pool.map(draw, [protocol] * len(protocol.seeds), protocol.seeds)) / 2
            )
            results = sweep(protocol, pool)
            swept.append(sum(r.seconds["sweep"] for r in results) / 2)
            whole.append(sum(r.seconds["design"] for r in results) / 2 + swept[-1])
        sample = protocol.seeds[:2]
        per_seed = sum(pool.map(literal_seconds, [protocol] * len(sample), sample)) / len(
            sample
        )
    ratio = float(np.median(np.array(whole) / drawn))
    sweeping, literal, worst = (
        float(np.median(swept)),
        per_seed * len(protocol.seeds) / 2,
        agreement(),
    )
    print(
        f"random numbers alone      {np.median(drawn):8.1f} s   "
        f"({len(protocol.seeds)} seeds, two processes)"
    )
    print(
        f"the whole experiment      {np.median(whole):8.1f} s   "
        f"{ratio:.2f} times the random numbers (bar: {WHOLE})"
    )
    print(f"  of which the sweep      {sweeping:8.1f} s")
    print(
        f"the sweep, literally      {literal:8.0f} s   "
        f"{literal / sweeping:.0f} times as long (bar: {LITERAL})"
    )
    print(
        f"literal against Gram space, double precision, same draws: {worst:.1e} (bar: {APART:g})"
    )
    passed = ratio <= WHOLE and literal >= LITERAL * sweeping and worst <= APART
    print("all bars met" if passed else "a bar is missed")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
