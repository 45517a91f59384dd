"""Change the library at random, one small thing at a time, and see whether the quick tests notice.

    python tests/mutate.py [--seed 0 ...] [--count 20] [--jobs 1] [FILE ...]

A mutation is a number off by one (by a tenth; a guard against rounding becomes a thousandth), a comparison, arithmetic or logical operator exchanged, a sign or a
`not` dropped. Each is made in a copy of the library, whose quick tests then run until one fails: first those that call
the mutated function, the fastest first (a run of all of them, watched, says which those are), then the rest. Survivors
are listed, and the script fails if there are any; a mutation that changes nothing a caller could see stands in
tests/equivalent.tsv with its reason. `--reached` leaves the rest out: faster, and a survivor may be a false one.
"""

import argparse
import ast
import csv
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = Path(__file__).with_name("equivalent.tsv")
SECONDS = 900  # of a processor, whoever else uses it: a mutant that takes longer does not end

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
        found.append(
            Mutation(name, start, end, text[start:end], new, line.rstrip(), column, number)
        )
    return found


def _edits(tree: ast.AST, text: str, place) -> Iterator[tuple[int, int, str]]:
    ignored = {
        id(inner) for node in ast.walk(tree) for part in _not_run(node) for inner in ast.walk(part)
    }
    for node in ast.walk(tree):
        if id(node) in ignored or not hasattr(node, "lineno"):
            continue
        start, end = (
            place(node.lineno, node.col_offset),
            place(node.end_lineno, node.end_col_offset),
        )
        match node:
            case ast.Constant(value=bool(value)):
                yield start, end, str(not value)
            case ast.Constant(value=int(value)):
                yield start, end, str(value + 1)
            case ast.Constant(value=float(value)):
                yield (
                    start,
                    end,
                    "1e-3" if 0 < value < 1e-6 else repr(value * 1.1 if value else 1.0),
                )
            case ast.UnaryOp(op=ast.USub() | ast.Not()):
                yield start, start + (3 if isinstance(node.op, ast.Not) else 1), ""
            case ast.BinOp(left=left, op=op, right=right):
                yield from _between(text, place, left, right, op)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                yield from _between(text, place, left, right, op)
            case ast.BoolOp(op=op, values=[left, right, *_]):
                yield from _between(text, place, left, right, op)


def _between(
    text: str, place, left: ast.expr, right: ast.expr, op: ast.AST
) -> Iterator[tuple[int, int, str]]:
    if type(op) in OPERATORS:
        old, new = OPERATORS[type(op)]
        start, end = (
            place(left.end_lineno, left.end_col_offset),
            place(right.lineno, right.col_offset),
        )
        at = re.compile(
            rf"(?<![*/<>=!]){re.escape(old)}(?![*/=])|\b{old}\b"
            if old.isalpha()
            else re.escape(old)
        )
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


def survives(mutation: Mutation, house: Path, reach: "Reach", rest: bool) -> bool:
    """Whether the quick tests pass with the mutation in a copy of the library."""
    path = house / mutation.file
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: mutation.start] + mutation.new + text[mutation.end :], encoding="utf-8")
    first = reach.tests(mutation)
    others = [t for t in reach.seconds if t not in set(first)] if rest else []
    try:
        return all(passes(house, tests) for tests in (first, others) if tests)
    finally:
        path.write_text(text, encoding="utf-8")


def passes(house: Path, tests: list[str] | None = None) -> bool:
    """Whether these tests pass in a copy, in this order (all quick ones: watched); one that does not end does not pass."""
    (house / "order.json").write_text(json.dumps(tests))
    files = ["tests/library"] if tests is None else sorted({t.split("::")[0] for t in tests})
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-m",
        "not slow",
        "-p",
        "no:cacheprovider",
        "-p",
        "mutate",
    ]
    paths = os.pathsep.join(map(str, (house, house / "tests")))
    environment = os.environ | {
        "PYTHONPATH": paths,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "OMP_NUM_THREADS": "1",
    }
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))  # noqa: E731
    options = {
        "cwd": house,
        "env": environment,
        "capture_output": True,
        "preexec_fn": limit,
        "timeout": 4 * SECONDS,
    }
    try:
        return subprocess.run([*command, *files], **options).returncode == 0
    except subprocess.TimeoutExpired:
        return False


# --- as a plugin of pytest, in a copy -------------------------------------------------------------------------------


class Reach:
    """Which tests call which functions of the library: seconds by test, and (file, first line, last line) -> tests."""

    def __init__(self, seconds: dict[str, float], called: list):
        self.seconds, self.called = seconds, called

    def tests(self, mutation: Mutation) -> list[str]:
        """Those that call the innermost function around the mutation; those of the whole file for what is in none."""
        here = [entry for entry in self.called if entry[0] == mutation.file]
        around = [entry for entry in here if entry[1] <= mutation.number <= entry[2]]
        least = min((entry[2] - entry[1] for entry in around), default=0)
        found = {t for entry in around if entry[2] - entry[1] == least for t in entry[3]}
        return sorted(found or {t for entry in here for t in entry[3]}, key=self.seconds.get)


WATCHED: dict = {}  # code -> tests that call it
TOOK: dict[str, float] = {}


def pytest_collection_modifyitems(items):
    order = json.loads(Path("order.json").read_text())
    if order is not None:
        place = {test: i for i, test in enumerate(order)}
        items[:] = sorted((i for i in items if i.nodeid in place), key=lambda i: place[i.nodeid])


def pytest_runtest_call(item):
    if json.loads(Path("order.json").read_text()) is None:
        item.user_properties.append(("began", time.perf_counter()))

        def watch(frame, event, argument):
            code = frame.f_code
            if code.co_flags & 1:  # a function, and no body of a class or module
                WATCHED.setdefault(code, set()).add(item.nodeid)

        threading.settrace(watch)
        sys.settrace(watch)


def pytest_runtest_teardown(item):
    sys.settrace(None)
    threading.settrace(None)
    for name, began in item.user_properties:
        if name == "began":
            TOOK[item.nodeid] = time.perf_counter() - began


def pytest_sessionfinish():
    if TOOK:
        called, top = [], Path("mlgd").resolve()
        for code, tests in WATCHED.items():
            path = Path(code.co_filename)
            if path.parent == top:
                lines = [line for *_, line in code.co_lines() if line]
                called.append([f"mlgd/{path.name}", code.co_firstlineno, max(lines), sorted(tests)])
        Path("reach.json").write_text(json.dumps([TOOK, called]))


def equivalent() -> set[tuple[str, ...]]:
    """The mutations that change nothing a caller could see."""
    with open(EQUIVALENT, encoding="utf-8", newline="") as handle:
        rows = csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {
            tuple(r[f] for f in ("file", "line", "column", "old", "new"))
            for r in rows
            if r["why"].strip()
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, nargs="+", default=[0], help="as many batches")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--reached", action="store_true", help="only tests that call the mutated function"
    )
    parser.add_argument(
        "files", nargs="*", help="files of the library, such as mlgd/plans.py (all by default)"
    )
    options = parser.parse_args()
    names = options.files or [
        f"mlgd/{p.name}" for p in sorted((ROOT / "mlgd").glob("*.py")) if p.name != "__init__.py"
    ]
    everything = [m for name in names for m in mutations(ROOT / name, name)]
    batches = {
        seed: random.Random(seed).sample(everything, min(options.count, len(everything)))
        for seed in options.seed
    }
    known = equivalent()
    print(
        f"{options.count} of {len(everything)} mutations for each of the seeds {options.seed}",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        houses = [Path(folder) / str(n) for n in range(options.jobs)]
        for house in houses:
            for part in ("mlgd", "tests"):
                shutil.copytree(
                    ROOT / part, house / part, ignore=shutil.ignore_patterns("__pycache__")
                )
            for part in ("pyproject.toml", "README.md"):
                shutil.copy(ROOT / part, house)
        if not passes(houses[0]):
            print("the library does not pass its quick tests as it is: mend that first")
            return 2
        reach = Reach(*json.loads((houses[0] / "reach.json").read_text()))
        survivors = []
        for seed, chosen in batches.items():
            shares = [chosen[n :: options.jobs] for n in range(options.jobs)]
            verdicts = pool.map(
                lambda pair: [
                    (m, judge(m, pair[1], known, reach, not options.reached)) for m in pair[0]
                ],
                zip(shares, houses, strict=True),
            )
            outcomes = [outcome for share in verdicts for outcome in share]
            counts = {
                v: sum(verdict == v for _, verdict in outcomes)
                for v in ("killed", "equivalent", "survived")
            }
            print(f"seed {seed}: " + ", ".join(f"{n} {v}" for v, n in counts.items()), flush=True)
            survivors += [m for m, verdict in outcomes if verdict == "survived"]
    for mutation in survivors:
        print("\t".join(mutation.key))
    return 1 if survivors else 0


def judge(mutation: Mutation, house: Path, known: set, reach: Reach, rest: bool) -> str:
    alive = mutation.key not in known and survives(mutation, house, reach, rest)
    verdict = "equivalent" if mutation.key in known else "survived" if alive else "killed"
    print(f"{verdict:10} {mutation}", flush=True)
    return verdict


if __name__ == "__main__":
    sys.exit(main())
