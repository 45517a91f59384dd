"""Three packages, one direction: library <- experiment <- book."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import mlgd

# each imports itself and those before it
PACKAGES = (
    "mlgd",
    "mlgd.experiment",
    "mlgd.book",
)


def modules(top: Path) -> dict[str, Path]:
    """{dotted name: file} of every module below a package folder."""
    found = {}
    for path in sorted(top.rglob("*.py")):
        parts = [top.name, *path.relative_to(top).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, source: str, known: set[str], package: bool = False) -> set[str]:
    """The modules among `known` that a source text imports, wherever in the text it does."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            parts = name.split(".")
            base = parts[: len(parts) - node.level + package] if node.level else []
            target = ".".join([*base, *(node.module.split(".") if node.module else [])])
            inside = {f"{target}.{alias.name}" for alias in node.names} & known
            found |= inside or {target} & known
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & known
    return found


def package_of(name: str) -> int:
    return max(i for i, p in enumerate(PACKAGES) if name == p or name.startswith(p + "."))


def problems(top: Path) -> list[str]:
    """Imports against the direction."""
    known, out = modules(top), []
    for name, path in known.items():
        source = path.read_text(encoding="utf-8")
        found = imports(name, source, {*known}, path.name == "__init__.py")
        out += [f"{name} imports {b}" for b in found if package_of(b) > package_of(name)]
    return out


def test_imports_go_one_way(root):
    assert problems(root / "mlgd") == []


def test_the_look_at_imports_can_fail(tmp_path):
    top = tmp_path / "mlgd"
    for name, text in {
        "__init__.py": "from .plans import plan\n",
        "plans.py": "def late():\n    import mlgd.book.figures\n",
        "experiment/sweep.py": "from ..book.figures import draw\n",
        "book/figures.py": "import mlgd\n",
    }.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    late, up = "mlgd.plans", "mlgd.experiment.sweep"
    assert sorted(problems(top)) == [
        f"{name} imports mlgd.book.figures" for name in (up, late)
    ]


def said(script: str) -> list[str]:
    """What a fresh process prints."""
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return ran.stdout.split()


def test_the_library_starts_without_the_slow_packages():
    slow = "{'sympy', 'matplotlib', 'scipy', 'mpmath'}"
    names = "Hierarchy, Plan, Problem, Telescope, audit, minimize"
    assert (
        said(f"import sys; from mlgd import {names}; print(*{slow} & {{*sys.modules}})")
        == []
    )


def test_a_name_is_read_from_its_module_when_it_is_used(root):
    script = "import sys, mlgd; print('numpy' in sys.modules); mlgd.Hierarchy"
    assert said(f"{script}; print('mlgd.climb' in sys.modules)") == ["False", "False"]
    homes = {name: getattr(mlgd, name).__module__ for name in mlgd.__all__}
    assert homes == {name: f"mlgd.{home}" for name, home in mlgd._HOMES.items()}
    assert {*mlgd.__all__, "__version__"} <= {*dir(mlgd)}
    assert {p.stem for p in (root / "mlgd").glob("*.py")} & {*mlgd.__all__} == set()
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        mlgd.nothing  # noqa: B018
