"""All problems of the bench, and its instances: every problem with every data seed.

None of them is in the tests of the library, and nothing in the library was tuned on them when
they were made. Whoever changes a rule until these come out better should look once, at the end,
at data seeds that nobody has seen: --seeds.
"""

from collections.abc import Iterator
from functools import cache

from . import meshes, paths, samples, truncated
from .problem import Instance

SEEDS = range(4)
_ALL = (*meshes.PROBLEMS, *paths.PROBLEMS, *samples.PROBLEMS, *truncated.PROBLEMS)
PROBLEMS = {problem.name: problem for problem in _ALL}


@cache
def instance(name: str, seed: int) -> Instance:
    """A problem by its name, made once."""
    return PROBLEMS[name].instance(seed)


def instances(names: tuple[str, ...] = (), seeds=SEEDS) -> Iterator[Instance]:
    """Every problem, or those named, with every data seed."""
    for name in names or PROBLEMS:
        for seed in seeds:
            yield instance(name, seed)
