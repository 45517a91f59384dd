"""Look at the chapters, or execute them in place: what ``make book`` and ``make run`` call.

    python -m mlgd.book.chapters look            say in a sentence each what is wrong with the contents or a notebook
    python -m mlgd.book.chapters run [NAME ...]  execute chapters in fresh kernels and store their outputs in normal form

A chapter is a story, `oracle`, or the audit beside it, `audit/oracle`.

The normal form leaves nothing in a notebook that changes by itself (no timings, no editor's metadata, no version of the
kernel), so that a second run leaves the work tree as it was.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import nbformat
import yaml
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode

BOOK = Path(__file__).resolve().parents[2] / "book"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
METADATA = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
MACHINE_PATH = re.compile(
    r"(?<![\w.])/(?:home|root|tmp|work|Users|opt|var|usr)/\w|\b[A-Z]:\\\\?(?:Users|Documents|Program|Windows|Temp)\b"
)
CELL_SECONDS = 1200


def notebooks(book: Path) -> dict[str, Path]:
    """{name: file} of every chapter, stories first, then audits."""
    paths = [*sorted(book.glob("*.ipynb")), *sorted(book.glob("audit/*.ipynb"))]
    return {path.relative_to(book).with_suffix("").as_posix(): path for path in paths}


class BookError(Exception):
    """Something is wrong with the book; the message is a sentence that says what to do."""


def read(path: Path) -> NotebookNode:
    """The notebook at path, or a BookError that says how to get it back."""
    try:
        text = path.read_text(encoding="utf-8")
        notebook = nbformat.reads(text, as_version=4)
        nbformat.validate(notebook)
    except FileNotFoundError:
        raise BookError(f"There is no chapter {path.stem} in {path.parent.name}/.") from None
    except Exception as error:
        reason = str(error).splitlines()[0][:80]
        raise BookError(
            f"{path.name} cannot be read as a notebook ({reason}): restore it with git checkout {path.parent.name}/{path.name}."
        ) from None
    return notebook


def normal(notebook: NotebookNode) -> NotebookNode:
    """The notebook with nothing in it that changes by itself."""
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for cell in notebook.cells:
        for key in ("execution", "collapsed", "scrolled", "jupyter", "ExecuteTime"):
            cell.metadata.pop(key, None)
        kept = []
        for output in cell.get("outputs", ()):  # what is printed in one go may arrive in pieces
            name = output.get("name")
            if name and kept and kept[-1].get("name") == name:  # only streams have one
                kept[-1].text += output.text
            else:
                kept.append(output)
        if "outputs" in cell:
            cell.outputs = kept
    return notebook


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that a run executes: code that is not blank."""
    return [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]


def run_problems(notebook: NotebookNode, name: str) -> list[str]:
    """Why this notebook is not the stored result of one clean run from top to bottom."""
    cells, again, problems = code_cells(notebook), f"run make run CHAPTER={name}.", []
    if [cell.execution_count for cell in cells] != list(range(1, len(cells) + 1)):
        problems.append(f"{name} is not one clean run from top to bottom: {again}")
    if cells and not any(cell.outputs for cell in cells):
        problems.append(f"{name} holds no outputs: {again}")
    if dict(notebook.metadata) != METADATA:
        problems.append(f"{name} is not in normal form: {again}")
    for number, cell in enumerate(cells, 1):
        for output in cell.outputs:
            shown = {k: v for k, v in output.get("data", {}).items() if k != "image/png"}
            text = str(output.get("text", "")) + "".join(map(str, shown.values()))
            wrong = {
                "stores an error": output.output_type == "error",
                "wrote to stderr": output.get("name") == "stderr",
                "shows a traceback": "Traceback (most recent call last)" in text,
                "shows a path of one machine": MACHINE_PATH.search(text),
            }
            found = [what for what, there in wrong.items() if there]
            problems += [
                f"{name} cell {number} {what}: mend it and run it again." for what in found
            ]
    return problems


def contents(toc: Path) -> list[str]:
    """The documents that _toc.yml lists, in order."""
    table = yaml.safe_load(toc.read_text(encoding="utf-8"))
    return [table["root"], *(c["file"] for part in table["parts"] for c in part["chapters"])]


def look(root: Path) -> list[str]:
    """Everything that would make a notebook wrong or the build fail, as sentences."""
    problems = []
    for name, path in notebooks(root / "book").items():
        try:
            problems += run_problems(read(path), name)
        except BookError as error:
            problems.append(str(error))
    return problems


def execute(path: Path) -> float:
    """Run one chapter in place in a fresh kernel; the seconds it took. A failed run leaves the file as it was."""
    notebook = normal(read(path))
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        record_timing=False,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},
    )
    started = time.perf_counter()
    try:
        client.execute()
    except (CellExecutionError, DeadKernelError, TimeoutError) as error:
        raise BookError(f"{path.stem} did not run; the file is as it was.\n{error}") from None
    seconds = time.perf_counter() - started
    # what nbval would refuse, a figure that failed to draw too
    if problems := run_problems(normal(notebook), path.stem):
        raise BookError("\n".join([f"{path.stem} ran, and the file is as it was:", *problems]))
    nbformat.write(notebook, path)
    return seconds


def run(names: list[str]) -> None:
    """Execute the named chapters, or the cover and every chapter in the order of the contents."""
    if not names:
        from mlgd.book import figures as plots

        plots.save_cover(BOOK / "_static" / "cover.png")
        known = notebooks(BOOK)
        names = [name.removeprefix("book/") for name in contents(BOOK.parent / "_toc.yml")]
        names = [name for name in names if name in known]
    for number, name in enumerate(names, 1):
        print(f"[{number}/{len(names)}] {name} ...", end=" ", flush=True)
        print(f"{execute(BOOK / f'{name}.ipynb'):.0f} s", flush=True)


def main(arguments: list[str]) -> int:
    match arguments:
        case ["look"]:
            problems = look(BOOK.parent)
            for problem in problems:
                print(problem, file=sys.stderr)
            return 1 if problems else 0
        case ["run", *names]:
            try:
                run([name.removeprefix("book/").removesuffix(".ipynb") for name in names])
            except BookError as error:
                print(error, file=sys.stderr)
                return 1
            except KeyboardInterrupt:
                print("Stopped; the chapter that was running is as it was.", file=sys.stderr)
                return 130
            return 0
        case _:
            print("usage: python -m mlgd.book.chapters look | run [NAME ...]", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
