"""The house stays small: lines and files per part, lines per file, stored fields per class.

A new feature brings its own deletion; the packages' numbers are what they came to.
"""

import ast
import json
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
LONGEST = 300  # lines of a source file, tests apart
FIELDS = 12  # stored by one class; a result is handed to its reader and may hold more

PARTS = {  # the files of a part: at most so many lines, in at most so many files
    "mlgd/*.py": (2800, 14),
    "mlgd/experiment/*.py": (2400, 13),
    "mlgd/book/*.py": (1100, 8),
    "tests/**/*.py": (6500, 999),
}
CELLS = {"book/*.ipynb": 2400, "book/audit/*.ipynb": 3200}  # lines of code cells
DATA = 200  # KB under book/data
SCRIPTS = 200  # lines of the pages' own scripts


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def code(path: Path) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [
        line
        for c in cells
        if c["cell_type"] == "code"
        for line in "".join(c["source"]).splitlines()
    ]


@pytest.mark.parametrize("pattern", PARTS)
def test_a_part_keeps_its_budget(pattern):
    files = sorted(TOP.glob(pattern))
    most, count = PARTS[pattern]
    assert sum(len(lines(path)) for path in files) <= most
    assert len(files) <= count


@pytest.mark.parametrize("pattern", CELLS)
def test_code_cells_keep_their_budget(pattern):
    assert sum(len(code(path)) for path in TOP.glob(pattern)) <= CELLS[pattern]


def test_data_and_scripts_keep_their_budget():
    assert sum(path.stat().st_size for path in TOP.glob("book/data/*")) <= DATA * 1024
    assert sum(len(lines(path)) for path in TOP.glob("book/_static/*.js")) <= SCRIPTS


def test_no_line_is_hidden_from_the_formatter():
    word = "fmt: " + "skip"
    sources = [*TOP.glob("mlgd/**/*.py"), *TOP.glob("tests/**/*.py"), *TOP.glob("book/**/*.ipynb")]
    assert not [path.name for path in sources if word in path.read_text(encoding="utf-8")]


def test_no_file_is_long_and_no_class_stores_much():
    for path in sorted(TOP.glob("mlgd/**/*.py")):
        assert len(lines(path)) <= LONGEST, path
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name != "Result":
                assert len(stored(node)) <= FIELDS, (node.name, stored(node))


def stored(node: ast.ClassDef) -> set[str]:
    """Names declared in the class's body with a type, and those that its methods set on self."""
    declared = {
        n.target.id
        for n in node.body
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    }
    for n in ast.walk(node):
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store):
            if isinstance(n.value, ast.Name) and n.value.id == "self":
                declared.add(n.attr)
    return declared
