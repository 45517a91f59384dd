"""How the methods for slowly varying errors run: anchored descent, and the corrected coarse model."""

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np

from .anchors import Telescope
from .runs import Run
from .solvers import quasi_newton

OVERSHOT = 0.5  # a move is shortened where the slope along it comes back this steep, as a share of the first slope


def anchored(run: Run, memory: SimpleNamespace) -> Iterator[None]:
    """Epochs: y <- y - eta g(y) with the telescope anchored at the epoch's first point; the last one may be averaged."""
    plan = run.plan
    for stage, _ in run.stages_left():
        last = memory.stage == len(plan.stages) - 1
        if not memory.at:
            memory.reference, memory.kept, memory.mass = memory.y, [], 0.0
        kept = {(bool(shared), int(k)): value for shared, k, value in memory.kept}
        levels = dict(zip(stage.levels, stage.probabilities, strict=True))
        sample = run.sampler(Telescope.anchored(run.h, levels, at=memory.reference, kept=kept))
        while memory.at < stage.steps:
            y = memory.y - plan.eta * sample(memory.y)
            y.flags.writeable = False
            if last and plan.averaging != "last":
                memory.mass = 1.0 + memory.mass / plan.growth
                memory.output = memory.output + (y - memory.output) / memory.mass
            else:
                memory.output = y
            memory.y, memory.at = y, memory.at + 1
            if len(kept) > len(memory.kept):
                memory.kept = [[shared, k, value] for (shared, k), value in kept.items()]
            yield


def corrected(run: Run, memory: SimpleNamespace) -> Iterator[None]:
    """Per stage one fine gradient at y, then a coarse solve of A_k(x) + [A_K - A_k](y) = 0 from there.

    The next fine gradient judges the move: where the slope along it has turned and is steep, the move went too far (the coarse
    model does not contract), and the run goes back along it to where the slope should vanish and looks again: damping.
    """
    for stage, _ in run.stages_left():
        coarse, fine = stage.levels
        if not memory.at:
            g = run.value(fine, memory.y)
            if memory.stage and (back := float(np.vdot(g, memory.y - memory.origin))) > OVERSHOT * -memory.slope > 0:
                memory.y = memory.origin + memory.slope / (memory.slope - back) * (memory.y - memory.origin)
                run.buyer.note("a coarse correction went too far and was shortened")
                g = run.value(fine, memory.y)
            memory.origin, memory.fine = memory.y, g
            memory.tilt = g - run.value(coarse, memory.y)
            memory.inner = SimpleNamespace(y=memory.y)

        def gradient(x, k=coarse):
            # at the origin the tilted model has the fine gradient, which is known
            return memory.fine if x is memory.origin else run.value(k, x) + memory.tilt

        for _ in quasi_newton(gradient, memory.inner, stage.steps, stage.tolerance or 0.0, run.plan.problem.beta):
            memory.y = memory.output = memory.inner.y
            memory.at += 1
            yield
        memory.slope = float(np.vdot(memory.fine, memory.y - memory.origin))
