"""Multilevel gradient descent: from a hierarchy of approximate gradients to a plan and a run."""

from importlib import import_module

__version__ = "0.3.0"

_HOMES = {  # each name is read from its module when it is first used: `import mlgd` costs nothing
    "Hierarchy": "hierarchy",
    "LevelError": "hierarchy",
    "Plan": "plans",
    "Problem": "plans",
    "Result": "bill",
    "Telescope": "telescope",
    "audit": "audits",
    "compare": "plans",
    "constants": "solvers",
    "minimize": "descent",
    "plan": "plans",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'mlgd' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
