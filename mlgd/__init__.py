"""Multilevel gradient descent: from a hierarchy of approximate gradients to a priced plan and a run."""

from .adversary import Adversary
from .anchors import Telescope
from .audits import audit
from .descent import Result, minimize
from .estimates import estimate
from .hierarchy import Hierarchy, LevelError
from .jumps import Schedule, flow
from .plans import Plan, Problem, compare, plan, tuned

__version__ = "0.2.0"

__all__ = [
    "Adversary",
    "Hierarchy",
    "LevelError",
    "Plan",
    "Problem",
    "Result",
    "Schedule",
    "Telescope",
    "audit",
    "compare",
    "estimate",
    "flow",
    "minimize",
    "plan",
    "tuned",
]
