"""Mutants of the code: one small change each, and whether the tests notice.

    python tests/mutants.py [--part mlgd] [--count 200] [--seed 0] [--workers 2]

A mutant moves a number by a third, turns a comparison, a sign or an operator, negates a condition
or drops a statement. It is made in a copy of the checkout, and the part's tests run there until the
first that fails. Mutants that no test could tell (a message's digits, an unreachable guard) count
as survivors all the same: the list is to be read.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import NamedTuple

TOP = Path(__file__).parent.parent
TESTS = {  # of a part, those that notice soonest first
    "mlgd": ["tests/library", "tests/experiment/test_quality.py"],
    "mlgd/experiment": ["tests/experiment"],
    "mlgd/book": ["tests/book", "-m", "not built"],
}
MINUTES = 5  # a mutant that runs longer is noticed too

COMPARED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
COMPARED |= {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In}
COMPARED |= {ast.Is: ast.IsNot, ast.IsNot: ast.Is}
COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}


class Mutant(NamedTuple):
    """A file, where in it, and the text that replaces that part of a line."""

    path: Path
    line: int
    what: str
    text: str


def changes(tree: ast.Module) -> Iterator[tuple[ast.AST, str, ast.AST]]:
    """A node, what is done to it, and what comes in its place."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
            turned = COMPARED[type(node.ops[0])]()
            other = ast.Compare(node.left, [turned, *node.ops[1:]], node.comparators)
            yield node, "comparison", other
        if isinstance(node, ast.BinOp) and type(node.op) in COMPUTED:
            yield (
                node,
                "operator",
                ast.BinOp(node.left, COMPUTED[type(node.op)](), node.right),
            )
        if isinstance(node, ast.BoolOp):
            turned = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, "and/or", ast.BoolOp(turned, node.values)
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            yield node.test, "condition", ast.UnaryOp(ast.Not(), node.test)
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield node, "number", ast.Constant(moved(node.value))
        if isinstance(node, ast.Expr | ast.Assign | ast.AugAssign) and not is_words(node):
            yield node, "statement", ast.Pass()


def moved(value: float) -> float:
    if isinstance(value, int):
        return value + max(1, round(value / 3))
    return value * 4 / 3 or 1.0


def is_words(node: ast.AST) -> bool:
    """A docstring."""
    inner = getattr(node, "value", None)
    return isinstance(inner, ast.Constant) and isinstance(inner.value, str)


def mutants(part: str) -> list[Mutant]:
    """Every mutant of a part's files."""
    found = []
    for path in sorted((TOP / part).glob("*.py")):
        source = path.read_text(encoding="utf-8")
        lines = source.splitlines(keepends=True)
        for node, what, other in changes(ast.parse(source)):
            if node.lineno != node.end_lineno:
                continue  # keep to one line: what it replaces can be read in the report
            line = lines[node.lineno - 1].encode()
            head, tail = line[: node.col_offset], line[node.end_col_offset :]
            new = ast.unparse(ast.fix_missing_locations(other))
            new = new if what == "statement" else f"({new})"
            text = (head + new.encode() + tail).decode()
            found.append(Mutant(path.relative_to(TOP), node.lineno, what, text))
    return found


def fails(home: Path, tests: list[str]) -> bool:
    """Whether the tests of a copy of the checkout fail, or take too long."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        *tests,
    ]
    environment = {
        "PYTHONPATH": str(home),
        "PATH": os.environ["PATH"],
        "OMP_NUM_THREADS": "1",
    }
    limit = 60 * MINUTES
    try:
        ran = subprocess.run(
            command, cwd=home, capture_output=True, timeout=limit, env=environment
        )
    except subprocess.TimeoutExpired:
        return True
    return ran.returncode != 0


def is_noticed(mutant: Mutant, home: Path, tests: list[str]) -> bool:
    path = home / mutant.path
    original = path.read_text(encoding="utf-8")
    lines = original.splitlines(keepends=True)
    lines[mutant.line - 1] = mutant.text
    path.write_text("".join(lines), encoding="utf-8")
    try:
        return fails(home, tests)
    finally:
        path.write_text(original, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", default="mlgd", choices=TESTS)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    every = mutants(given.part)
    chosen = random.Random(given.seed).sample(every, min(given.count, len(every)))
    homes: Queue[Path] = Queue()
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(given.workers) as pool,
    ):
        for n in range(given.workers):
            skipped = shutil.ignore_patterns(".git", ".venv", "_build", ".*_cache")
            homes.put(shutil.copytree(TOP, Path(folder) / str(n), ignore=skipped))

        if fails(Path(folder) / "0", TESTS[given.part]):
            sys.exit("the tests fail without a mutant: mend that first")

        def judge(mutant: Mutant) -> bool:
            home = homes.get()
            try:
                return is_noticed(mutant, home, TESTS[given.part])
            finally:
                homes.put(home)

        noticed = 0
        for mutant, seen in zip(chosen, pool.map(judge, chosen), strict=True):
            noticed += seen
            if not seen:
                where = f"{mutant.path}:{mutant.line}"
                print(
                    f"survives  {where}  {mutant.what}:  {mutant.text.strip()}",
                    flush=True,
                )
    print(f"{noticed} of {len(chosen)} noticed, of {len(every)} there are")
    return 0


if __name__ == "__main__":
    sys.exit(main())
