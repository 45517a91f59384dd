"""Multilevel gradient descent: from a hierarchy of approximate gradients to a priced plan and a run."""

from .hierarchy import Audit, Hierarchy, LevelError, audit, biased, first_level, rounded, series
from .oracle import Draw, Telescope

__all__ = ["Audit", "Draw", "Hierarchy", "LevelError", "Telescope", "audit", "biased", "first_level", "rounded", "series"]
