"""All problems of the bench, and its instances: every problem with every data seed.

None of them is in the tests of the library, and nothing in the library was tuned on them.
"""

from collections.abc import Iterator
from functools import cache

from . import meshes, paths, samples, truncated
from .problem import Problem

PROBLEMS = (*meshes.PROBLEMS, *paths.PROBLEMS, *samples.PROBLEMS, *truncated.PROBLEMS)
SEEDS = range(4)
MAKERS = {make(0).name: make for make in PROBLEMS}


@cache
def instance(name: str, seed: int) -> Problem:
    """A problem by its name, made once."""
    return MAKERS[name](seed)


def instances(names: tuple[str, ...] = (), seeds=SEEDS) -> Iterator[Problem]:
    """Every problem, or those named, with every data seed."""
    for name in names or MAKERS:
        for seed in seeds:
            yield instance(name, seed)
