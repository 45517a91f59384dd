"""Multilevel gradient descent: from a hierarchy of approximate gradients to a priced plan and a run."""

from .adversary import Adversary
from .audit import Audit, audit
from .descent import Result, State, Trace, minimize
from .flow import Schedule, constant_rates, flow, proposition_schedule
from .hierarchy import Hierarchy, LevelError, biased, first_level, rounded, series
from .oracle import Draw, Telescope
from .plan import Comparison, Plan, Problem, Stage, compare, plan, tuned

__all__ = [
    "Adversary",
    "Audit",
    "Comparison",
    "Draw",
    "Hierarchy",
    "LevelError",
    "Plan",
    "Problem",
    "Result",
    "Schedule",
    "Stage",
    "State",
    "Telescope",
    "Trace",
    "audit",
    "biased",
    "compare",
    "constant_rates",
    "first_level",
    "flow",
    "minimize",
    "plan",
    "proposition_schedule",
    "rounded",
    "series",
    "tuned",
]
