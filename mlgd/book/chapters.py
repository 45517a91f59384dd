"""Execute the chapters in place, or print the book: what the Makefile calls.

    python -m mlgd.book.chapters run [NAME ...]  execute chapters in fresh kernels, store outputs
    python -m mlgd.book.chapters pdf             print the book as _build/book.pdf

A chapter is a story, `oracle`, or the audit beside it, `audit/oracle`. Outputs are stored in a
normal form that leaves nothing in a notebook that changes by itself (no timings, no editor's
metadata, no version of the kernel), so that a second run leaves the work tree as it was.
"""

import re
import shutil
import subprocess
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
    r"(?<![\w.])/(?:home|root|tmp|work|Users|opt|var|usr)/\w"
    r"|\b[A-Z]:\\\\?(?:Users|Documents|Program|Windows|Temp)\b"
)
CELL_SECONDS = 1200
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class BookError(Exception):
    """Something is wrong with the book; the message is a sentence that says what to do."""


def contents(toc: Path) -> list[str]:
    """The documents that _toc.yml lists, in order."""
    table = yaml.safe_load(toc.read_text(encoding="utf-8"))
    return [
        table["root"],
        *(c["file"] for part in table["parts"] for c in part["chapters"]),
    ]


def notebooks(book: Path) -> dict[str, Path]:
    """{name: file} of every chapter, stories first, then audits."""
    paths = [*sorted(book.glob("*.ipynb")), *sorted(book.glob("audit/*.ipynb"))]
    return {path.relative_to(book).with_suffix("").as_posix(): path for path in paths}


def read(path: Path) -> NotebookNode:
    """The notebook at path, or a BookError that says how to get it back."""
    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
        nbformat.validate(notebook)
    except FileNotFoundError:
        raise BookError(
            f"There is no chapter {path.stem} in {path.parent.name}/."
        ) from None
    except Exception as error:
        reason = str(error).splitlines()[0][:80]
        again = f"restore it with git checkout {path.parent.name}/{path.name}"
        raise BookError(
            f"{path.name} cannot be read as a notebook ({reason}): {again}."
        ) from None
    return notebook


def normal(notebook: NotebookNode) -> NotebookNode:
    """The notebook with nothing in it that changes by itself."""
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for cell in notebook.cells:
        for key in ("execution", "collapsed", "scrolled", "jupyter", "ExecuteTime"):
            cell.metadata.pop(key, None)
    return notebook


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that a run executes: code that is not blank."""
    return [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code" and cell.source.strip()
    ]


def run_problems(notebook: NotebookNode, name: str) -> list[str]:
    """Why this notebook is not the stored result of one clean run from top to bottom."""
    cells, again, problems = code_cells(notebook), f"run make run CHAPTER={name}.", []
    if [cell.execution_count for cell in cells] != list(range(1, len(cells) + 1)):
        problems.append(f"{name} is not one clean run from top to bottom: {again}")
    if cells and not any(cell.outputs for cell in cells):
        problems.append(f"{name} holds no outputs: {again}")
    if dict(notebook.metadata) != METADATA:
        problems.append(f"{name} is not in normal form: {again}")
    for number, output in (
        (n, out) for n, cell in enumerate(cells, 1) for out in cell.outputs
    ):
        shown = {k: v for k, v in output.get("data", {}).items() if k != "image/png"}
        text = str(output.get("text", "")) + "".join(map(str, shown.values()))
        wrong = {
            "stores an error": output.output_type == "error",
            "wrote to stderr": output.get("name") == "stderr",
            "shows a traceback": "Traceback (most recent call last)" in text,
            "shows a path of one machine": MACHINE_PATH.search(text),
        }
        found = [f"{name} cell {number} {what}" for what, there in wrong.items() if there]
        problems += [f"{what}: mend it and run it again." for what in found]
    return problems


def execute(path: Path) -> float:
    """Run one chapter in a fresh kernel; the seconds it took. A failed run changes no file."""
    notebook, started = normal(read(path)), time.perf_counter()
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,  # what is printed in one go may arrive in pieces
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        client.execute()
    except (CellExecutionError, DeadKernelError, TimeoutError) as error:
        raise BookError(
            f"{path.stem} did not run; the file is as it was.\n{error}"
        ) from None
    # what nbval would refuse, a figure that failed to draw too
    if problems := run_problems(normal(notebook), path.stem):
        raise BookError(
            "\n".join([f"{path.stem} ran, and the file is as it was:", *problems])
        )
    nbformat.write(notebook, path)
    return time.perf_counter() - started


def run(names: list[str]) -> None:
    """Execute the named chapters, or every chapter in the order of the contents."""
    names = [name.removeprefix("book/").removesuffix(".ipynb") for name in names]
    if not names:
        listed = [n.removeprefix("book/") for n in contents(BOOK.parent / "_toc.yml")]
        names = [name for name in listed if name in notebooks(BOOK)]
    for number, name in enumerate(names, 1):
        print(f"[{number}/{len(names)}] {name} ...", end=" ", flush=True)
        print(f"{execute(BOOK / f'{name}.ipynb'):.0f} s", flush=True)


def pdf() -> Path:
    """Build the book as one page and print that with the system's Chromium; links lead within."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise BookError(
            f"make pdf needs a browser ({', '.join(BROWSERS)}) and found none."
        )
    built, goal = BOOK.parent / "_build" / "single", BOOK.parent / "_build" / "book.pdf"
    print("[1/3] all pages as one ...", flush=True)
    build = [
        Path(sys.executable).with_name("jupyter-book"),
        "build",
        BOOK.parent,
        "--quiet",
    ]
    subprocess.run(
        [*build, "--path-output", built, "--builder", "singlehtml"], check=True
    )
    pages = built / "_build" / "singlehtml"
    text = (pages / "book" / "index.html").read_text(encoding="utf-8")
    whole = pages / "whole.html"  # its images and scripts are named from here
    whole.write_text(
        re.sub(r"""(href=["'])[\w./]+\.html#""", r"\1#", text), encoding="utf-8"
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox"]
        )
        page = browser.new_page()
        page.set_default_timeout(600_000)
        print("[2/3] the formulas, typeset (a minute or two) ...", flush=True)
        page.goto(whole.as_uri())
        page.evaluate("MathJax.startup.promise.then(() => true)")
        print("[3/3] printed ...", flush=True)
        page.pdf(path=goal, format="A4", print_background=True, scale=0.9)
        browser.close()
    return goal


def main(arguments: list[str]) -> int:
    """Do what the command line asks for; a sentence and a code other than 0 where it fails."""
    try:
        match arguments:
            case ["run", *names]:
                run(names)
            case ["pdf"]:
                print(f"The book is printed: {pdf()}")
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except BookError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped; a chapter that was running is as it was.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
