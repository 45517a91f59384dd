"""Three packages, one direction: library <- experiment <- book, and no circle anywhere."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = ("mlgd", "mlgd.experiment", "mlgd.book")  # each imports itself and those before it


def modules(top: Path) -> dict[str, Path]:
    """{dotted name: file} of every module below a package folder; a package's own file has the package's name."""
    found = {}
    for path in sorted(top.rglob("*.py")):
        parts = [top.name, *path.relative_to(top).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, source: str, known: set[str], package: bool = False) -> set[str]:
    """The modules among `known` that a source text imports, absolutely or relatively, wherever in the text it does."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            base = (
                name.split(".")[: len(name.split(".")) - node.level + package] if node.level else []
            )
            target = ".".join([*base, *(node.module.split(".") if node.module else [])])
            inside = {f"{target}.{alias.name}" for alias in node.names} & known
            found |= inside or {target} & known
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & known
    return found


def graph(top: Path) -> dict[str, set[str]]:
    known = modules(top)
    return {
        name: imports(name, path.read_text(encoding="utf-8"), {*known}, path.name == "__init__.py")
        for name, path in known.items()
    }


def package_of(name: str) -> int:
    return max(i for i, p in enumerate(PACKAGES) if name == p or name.startswith(p + "."))


def problems(top: Path) -> list[str]:
    """Imports against the direction, and circles."""
    edges = graph(top)
    out = [
        f"{a} imports {b}" for a in edges for b in sorted(edges[a]) if package_of(b) > package_of(a)
    ]
    state: dict[str, int] = {}

    def visit(name, path):
        if name in path:
            out.append("a circle: " + " -> ".join([*path[path.index(name) :], name]))
        elif state.get(name) is None:
            for other in sorted(edges[name]):
                visit(other, [*path, name])
            state[name] = 1

    for name in edges:
        visit(name, [])
    return out


def test_imports_go_one_way(root):
    assert problems(root / "mlgd") == []


def test_the_look_at_imports_can_fail(tmp_path):
    top = tmp_path / "mlgd"
    for name, text in {
        "__init__.py": "from .plans import plan\n",
        "plans.py": "def late():\n    from . import oracle\n",
        "oracle.py": "import mlgd.plans\n",
        "experiment/__init__.py": "",
        "experiment/sweep.py": "from ..book.figures import draw\n",
        "book/__init__.py": "",
        "book/figures.py": "import mlgd\n",
    }.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    assert problems(top) == [
        "mlgd.experiment.sweep imports mlgd.book.figures",
        "a circle: mlgd.plans -> mlgd.oracle -> mlgd.plans",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "from mlgd.plans import x",
        "from . import plans",
        "import mlgd.plans",
        "from .plans import x",
    ],
)
def test_imports_are_seen_in_every_spelling(text):
    assert imports("mlgd.oracle", text, {"mlgd", "mlgd.plans", "mlgd.oracle"}) == {"mlgd.plans"}


def test_a_package_imported_whole_is_seen():
    assert imports("mlgd.book.reference", "import mlgd", {"mlgd", "mlgd.book.reference"}) == {
        "mlgd"
    }


def test_the_library_starts_without_the_slow_packages():
    script = "import sys; from mlgd import Hierarchy, Plan, Problem, Telescope, audit, flow, minimize; print(*sorted({'sympy', 'matplotlib', 'scipy', 'mpmath'} & {*sys.modules}))"
    assert (
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True
        ).stdout.strip()
        == ""
    )


def test_a_name_is_read_from_its_module_when_it_is_used(root):
    script = "import sys, mlgd; a = 'numpy' in sys.modules; mlgd.Hierarchy; print(a, 'mlgd.descent' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True
        ).stdout.split()
        == ["False"] * 2
    )
    import mlgd

    known = {path.stem for path in (root / "mlgd").glob("*.py")}
    homes = {
        alias.name: node.module
        for node in ast.walk(ast.parse((root / "mlgd" / "__init__.py").read_text()))
        if isinstance(node, ast.ImportFrom) and node.module in known
        for alias in node.names
    }
    assert homes == mlgd._HOMES  # what type checkers read is what is read
    assert all(getattr(mlgd, name).__module__ == f"mlgd.{home}" for name, home in homes.items())
    assert {*mlgd.__all__, "__version__"} <= {*dir(mlgd)}
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        mlgd.nothing  # noqa: B018


def test_no_name_hides_a_module(root):
    import mlgd

    assert {p.stem for p in (root / "mlgd").glob("*.py")} & {*mlgd.__all__} == set()
