"""Multilevel gradient descent: from a hierarchy of approximate gradients to a plan and a run."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.4.0"

if TYPE_CHECKING:  # a type checker reads the real names; a program imports what it uses
    from .audits import audit as audit
    from .climb import minimize as minimize
    from .hierarchy import Hierarchy as Hierarchy
    from .hierarchy import LevelError as LevelError
    from .hierarchy import OutOfDomain as OutOfDomain
    from .plans import Plan as Plan
    from .plans import Problem as Problem
    from .plans import compare as compare
    from .plans import plan as plan
    from .result import Result as Result
    from .solvers import constants as constants
    from .telescope import Telescope as Telescope

_HOMES = {  # each name is read from its module when it is first used: `import mlgd` costs nothing
    "Hierarchy": "hierarchy",
    "LevelError": "hierarchy",
    "OutOfDomain": "hierarchy",
    "Plan": "plans",
    "Problem": "plans",
    "Result": "result",
    "Telescope": "telescope",
    "audit": "audits",
    "compare": "plans",
    "constants": "solvers",
    "minimize": "climb",
    "plan": "plans",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'mlgd' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
