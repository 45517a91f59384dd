"""Change the library at random, one small thing at a time, and see whether the quick tests notice.

    python tests/mutate.py [--seed 0] [--count 20] [--jobs 1] [FILE ...]

A mutation is a number off by one (or by a tenth), a comparison, arithmetic or logical operator exchanged, a sign or a
`not` dropped. Each is made in a copy of the library, whose quick tests then run, those of the mutated module first, until
one fails. Survivors are listed, and the script fails if there are any; a mutation that changes nothing a caller could
see stands in tests/equivalent.tsv with its reason.
"""

import argparse
import ast
import csv
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = Path(__file__).with_name("equivalent.tsv")
SECONDS = 600

OPERATORS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.Pow: ("**", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}


@dataclass(frozen=True)
class Mutation:
    """Replace text[start:end] of a file by another text."""

    file: str
    start: int
    end: int
    old: str
    new: str
    line: str
    column: int
    number: int

    @property
    def key(self) -> tuple[str, ...]:
        """What the mutation is, whatever line it moved to."""
        return self.file, self.line, str(self.column), self.old, self.new

    def __str__(self) -> str:
        return f"{self.file}:{self.number}: {self.old} -> {self.new} in: {self.line}"


def mutations(path: Path, name: str) -> list[Mutation]:
    """Every mutation of a file."""
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)

    def place(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    found = []
    for start, end, new in _edits(ast.parse(text), text, place):
        number = text.count("\n", 0, start) + 1
        line = lines[number - 1].lstrip()
        column = start - starts[number - 1] - (len(lines[number - 1]) - len(line))
        found.append(Mutation(name, start, end, text[start:end], new, line.rstrip(), column, number))
    return found


def _edits(tree: ast.AST, text: str, place) -> Iterator[tuple[int, int, str]]:
    ignored = {id(inner) for node in ast.walk(tree) for part in _not_run(node) for inner in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in ignored or not hasattr(node, "lineno"):
            continue
        start, end = place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)
        match node:
            case ast.Constant(value=bool(value)):
                yield start, end, str(not value)
            case ast.Constant(value=int(value)):
                yield start, end, str(value + 1)
            case ast.Constant(value=float(value)):
                yield start, end, repr(value * 1.1 if value else 1.0)
            case ast.UnaryOp(op=ast.USub() | ast.Not()):
                yield start, start + (3 if isinstance(node.op, ast.Not) else 1), ""
            case ast.BinOp(left=left, op=op, right=right):
                yield from _between(text, place, left, right, op)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                yield from _between(text, place, left, right, op)
            case ast.BoolOp(op=op, values=[left, right, *_]):
                yield from _between(text, place, left, right, op)


def _between(text: str, place, left: ast.expr, right: ast.expr, op: ast.AST) -> Iterator[tuple[int, int, str]]:
    if type(op) in OPERATORS:
        old, new = OPERATORS[type(op)]
        start, end = place(left.end_lineno, left.end_col_offset), place(right.lineno, right.col_offset)
        at = re.compile(rf"(?<![*/<>=!]){re.escape(old)}(?![*/=])|\b{old}\b" if old.isalpha() else re.escape(old))
        if hit := at.search(text, start, end):
            yield hit.start(), hit.end(), new


def _not_run(node: ast.AST) -> Iterator[ast.AST]:
    """Annotations, docstrings, f-strings' formats and subscripts of types: nothing a test could see."""
    if isinstance(node, ast.FunctionDef):
        yield from (a.annotation for a in (*node.args.args, *node.args.kwonlyargs) if a.annotation)
        yield from [node.returns] if node.returns else []
    if isinstance(node, ast.AnnAssign):
        yield node.annotation
    if isinstance(node, ast.JoinedStr):
        yield node
    if isinstance(node, ast.Raise):  # the words of a message are free
        yield node


def survives(mutation: Mutation, house: Path) -> bool:
    """Whether the quick tests pass with the mutation in a copy of the library."""
    path = house / mutation.file
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: mutation.start] + mutation.new + text[mutation.end :], encoding="utf-8")
    try:
        return passes(house, first=f"test_{path.stem}")
    finally:
        path.write_text(text, encoding="utf-8")


def passes(house: Path, first: str = "") -> bool:
    """Whether the quick tests of a copy pass, those of one file first; one that does not end does not pass."""
    tests = sorted((house / "tests" / "library").glob("test_*.py"), key=lambda p: (p.stem != first, p.stem))
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist"]
    environment = os.environ | {"PYTHONPATH": str(house), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    try:
        ran = subprocess.run(
            [*command, *map(str, tests)], cwd=house, env=environment, capture_output=True, timeout=SECONDS
        )
        return ran.returncode == 0
    except subprocess.TimeoutExpired:
        return False


def equivalent() -> set[tuple[str, ...]]:
    """The mutations that change nothing a caller could see."""
    with open(EQUIVALENT, encoding="utf-8", newline="") as handle:
        rows = csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {tuple(r[f] for f in ("file", "line", "column", "old", "new")) for r in rows if r["why"].strip()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("files", nargs="*", help="files of the library, such as mlgd/plans.py (all by default)")
    options = parser.parse_args()
    names = options.files or [f"mlgd/{p.name}" for p in sorted((ROOT / "mlgd").glob("*.py")) if p.name != "__init__.py"]
    everything = [m for name in names for m in mutations(ROOT / name, name)]
    chosen = random.Random(options.seed).sample(everything, min(options.count, len(everything)))
    known = equivalent()
    print(f"{len(chosen)} of {len(everything)} mutations, seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        houses = [Path(folder) / str(n) for n in range(options.jobs)]
        for house in houses:
            for part in ("mlgd", "tests"):
                shutil.copytree(ROOT / part, house / part, ignore=shutil.ignore_patterns("__pycache__"))
            for part in ("pyproject.toml", "README.md"):
                shutil.copy(ROOT / part, house)
        if not passes(houses[0]):
            print("the library does not pass its quick tests as it is: mend that first")
            return 2
        shares = [chosen[n :: options.jobs] for n in range(options.jobs)]
        verdicts = pool.map(
            lambda pair: [(m, judge(m, pair[1], known)) for m in pair[0]], zip(shares, houses, strict=True)
        )
        outcomes = [outcome for share in verdicts for outcome in share]
    survivors = [m for m, verdict in outcomes if verdict == "survived"]
    counts = {v: sum(verdict == v for _, verdict in outcomes) for v in ("killed", "equivalent", "survived")}
    print(", ".join(f"{n} {v}" for v, n in counts.items()))
    for mutation in survivors:
        print("\t".join(mutation.key))
    return 1 if survivors else 0


def judge(mutation: Mutation, house: Path, known: set) -> str:
    verdict = "equivalent" if mutation.key in known else "survived" if survives(mutation, house) else "killed"
    print(f"{verdict:10} {mutation}", flush=True)
    return verdict


if __name__ == "__main__":
    sys.exit(main())
