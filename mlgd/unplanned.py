"""Runs without a plan, until `climb` takes their place; they keep no checkpoint."""

from types import SimpleNamespace

from tqdm import tqdm

from .bill import Result
from .checkpoint import Run
from .choices import chosen


def unplanned(run: Run, eps: float | None, rng) -> Result:
    view = SimpleNamespace(h=run.bill.h, meter=run.bill, value=run.bill.value, start=run.start)
    view.eps, view.rng, view.memory, view.told = eps, rng, run.state, lambda found: found
    view.attend = lambda: run.attend(tqdm(disable=True))

    def steps():
        chosen(view, run.state)
        yield from ()

    found = run.go(steps())
    return view.told(found)
