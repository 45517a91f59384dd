"""How open the code is: tokens per logical line, branches of a function, long lines.

Ceilings with room, for each part; what they stand for is that one reading is enough. None of them
counts lines or files: both are free.
"""

import ast
import io
import json
import tokenize
from pathlib import Path
from typing import NamedTuple

import pytest

TOP = Path(__file__).parent.parent
LONG = 90  # columns
MOST_BRANCHES = 12

# tokens per logical line; the share of lines that are long; functions with more branches than that
CEILINGS = {
    "mlgd/*.py": (11.5, 0.02, 0),
    "mlgd/experiment/*.py": (16.5, 0.02, 1),
    "mlgd/experiment/quality/*.py": (13.5, 0.02, 0),
    "mlgd/book/*.py": (13.5, 0.02, 3),
    "tests/**/*.py": (15.0, 0.02, 12),
}
CELLS = {"book/*.ipynb": (18.5, 0.02, 0), "book/audit/*.ipynb": (27.5, 0.04, 0)}

TOKENS = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}
if hasattr(tokenize, "FSTRING_START"):
    TOKENS.add(tokenize.FSTRING_START)

BRANCHES = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.IfExp, ast.BoolOp)
BRANCHES += (ast.comprehension, ast.Assert, ast.match_case)
TABLE = 8  # entries: a literal as long as that is data and no code


class Measured(NamedTuple):
    density: float
    long: float
    branched: list[str]


def source(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    cells = json.loads(text)["cells"]
    return (
        "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code") + "\n"
    )


def docstrings(tree: ast.AST) -> set[int]:
    """The lines of docstrings."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
        if isinstance(node, kinds) and ast.get_docstring(node) is not None:
            first = node.body[0]
            lines.update(range(first.lineno, first.end_lineno + 1))
    return lines


def tables(tree: ast.AST) -> list[tuple]:
    """Where tables of data begin and end."""
    found = []
    for node in ast.walk(tree):
        entries = ()
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            entries = node.elts
        if isinstance(node, ast.Dict):
            entries = node.keys
        if len(entries) >= TABLE:
            found.append(
                ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
            )
    return found


def branches(node: ast.FunctionDef) -> int:
    return 1 + sum(isinstance(inner, BRANCHES) for inner in ast.walk(node))


def measured(texts: dict[str, str]) -> Measured:
    tokens, logical, coded, long, branched = 0, 0, 0, 0, []
    for name, text in texts.items():
        tree = ast.parse(text)
        skipped, data, rows = docstrings(tree), tables(tree), text.splitlines()
        code = set()
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.start[0] in skipped:
                continue
            logical += token.type == tokenize.NEWLINE
            is_data = any(first <= token.start < last for first, last in data)
            if token.type in TOKENS and not is_data:
                tokens += 1
                code.add(token.start[0])
        coded += len(code)
        long += sum(len(rows[line - 1]) > LONG for line in code)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and branches(node) > MOST_BRANCHES:
                branched.append(f"{name}: {node.name}")
    return Measured(tokens / max(logical, 1), long / max(coded, 1), branched)


@pytest.mark.parametrize("part", CEILINGS | CELLS)
def test_a_part_stays_open(part):
    density, long, branched = (CEILINGS | CELLS)[part]
    found = measured({path.name: source(path) for path in sorted(TOP.glob(part))})
    assert found.density <= density
    assert found.long <= long
    assert len(found.branched) <= branched, found.branched


def test_the_measures_notice():
    """A packed function, a long line, a maze; and none of them in words or tables."""
    packed = (
        "def f(a, b): return [x * y for x, y in zip(a, b) if x > 0 and y < 1 or x == y]\n"
    )
    assert measured({"packed": packed}).density > 15
    assert measured({"long": "x = " + "1 + " * 30 + "1\n"}).long == 1
    maze = "def f(x):\n" + "".join(
        f"    if x == {n}:\n        return {n}\n" for n in range(13)
    )
    assert measured({"maze": maze}).branched == ["maze: f"]
    words = f'"""{"word " * 40}"""\nx = [{", ".join("123456789")}]\n'
    assert measured({"words": words}) == Measured(2.0, 0.0, [])


def test_no_line_is_hidden_from_the_formatter():
    words = ["fmt: " + word for word in ("skip", "off")]
    for pattern in ("mlgd/**/*.py", "tests/**/*.py", "book/**/*.ipynb"):
        for path in TOP.glob(pattern):
            text = path.read_text(encoding="utf-8")
            assert not [word for word in words if word in text], path
