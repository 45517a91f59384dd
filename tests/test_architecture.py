"""Data flows one way: no module imports one to its right, and each has its tests."""

import ast
from pathlib import Path

import pytest

# From left to right; modules on one line do not import each other.
ORDER = [
    {"claims", "formulas", "hierarchy"},
    {"oracle", "audit"},
    {"plan"},
    {"descent"},
    {"flow", "race", "adversary", "heat", "features", "explorer"},
    {"peers"},
    {"trajectory"},
    {"direct", "frontier"},
    {"protocol"},
    {"studies"},
    {"sweep"},
    {"plots"},
    {"plots_experiment", "ledger"},
    {"reference"},
]


def imports(source: str) -> set[str]:
    """The modules of mlgd that a source text imports, wherever in the text it does."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            inside = node.level == 1 or module.split(".")[0] == "mlgd"
            path = module if node.level == 1 else module.removeprefix("mlgd").lstrip(".")
            if inside:
                found |= {path.split(".")[0]} if path else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("mlgd.")}
    return found


def order_problems(package: Path) -> list[str]:
    """Modules that are out of place, and imports that go to the right or sideways."""
    place = {name: position for position, names in enumerate(ORDER) for name in names}
    modules = {path.stem: path for path in sorted(package.glob("*.py")) if path.stem != "__init__"}
    problems = [f"{name} has no place in the order: give it one" for name in modules if name not in place]
    for name, path in modules.items():
        for other in sorted(imports(path.read_text(encoding="utf-8")) & {*modules} & {*place}):
            if place[other] >= place.get(name, len(ORDER)):
                problems.append(f"{name} imports {other}, which is not to its left")
    return problems


def test_no_module_imports_one_to_its_right(root):
    assert order_problems(root / "mlgd") == []


def test_order_check_can_fail(tmp_path):
    (tmp_path / "oracle.py").write_text("def late():\n    from . import plan\n")
    (tmp_path / "plan.py").write_text("from mlgd.oracle import Telescope\nimport numpy\n")
    (tmp_path / "stray.py").write_text("import mlgd.plan\n")
    assert order_problems(tmp_path) == [
        "stray has no place in the order: give it one",
        "oracle imports plan, which is not to its left",
    ]


@pytest.mark.parametrize(
    "text", ["from mlgd.sweep import run", "from . import sweep", "import mlgd.sweep", "from .sweep import run"]
)
def test_imports_are_seen_in_every_spelling(text):
    assert imports(text) == {"sweep"}


def test_every_module_has_its_tests(root):
    modules = {path.stem for path in (root / "mlgd").glob("*.py")} - {"__init__"}
    tested = {path.stem.removeprefix("test_") for path in (root / "tests").glob("test_*.py")}
    assert sorted(modules - tested) == []
