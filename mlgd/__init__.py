"""Multilevel gradient descent: from a hierarchy of approximate gradients to a priced plan and a run.

Each name is read from its module when it is first used, so that `import mlgd` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .adversary import Adversary as Adversary
    from .audits import audit as audit
    from .bill import Result as Result
    from .descent import minimize as minimize
    from .hierarchy import Hierarchy as Hierarchy
    from .hierarchy import LevelError as LevelError
    from .jumps import Schedule as Schedule
    from .jumps import flow as flow
    from .planning import compare as compare
    from .planning import plan as plan
    from .plans import Plan as Plan
    from .plans import Problem as Problem
    from .solvers import constants as constants
    from .telescope import Telescope as Telescope

__version__ = "0.3.0"

_HOMES = {
    "Adversary": "adversary",
    "Hierarchy": "hierarchy",
    "LevelError": "hierarchy",
    "Plan": "plans",
    "Problem": "plans",
    "Result": "bill",
    "Schedule": "jumps",
    "Telescope": "telescope",
    "audit": "audits",
    "compare": "planning",
    "constants": "solvers",
    "flow": "jumps",
    "minimize": "descent",
    "plan": "planning",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'mlgd' has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(f".{_HOMES[name]}", __name__), name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
