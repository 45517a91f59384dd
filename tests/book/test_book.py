"""Notebooks are one clean run, stored in normal form, and strict nbval notices a digit."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import v4

from mlgd.book import chapters
from mlgd.book.chapters import BookError, code_cells, contents, execute, normal, read, run_problems


def tiny(*cells: str) -> nbformat.NotebookNode:
    """A small notebook of code cells, not run."""
    return normal(
        v4.new_notebook(cells=[v4.new_markdown_cell("# Tiny"), *map(v4.new_code_cell, cells)])
    )


def ran(source: str, **data) -> nbformat.NotebookNode:
    """A notebook with one executed cell that displayed data."""
    notebook = tiny(source)
    output = v4.new_output("display_data", data=data)
    notebook.cells[1].update(execution_count=1, outputs=[output])
    return notebook


def write(notebook: nbformat.NotebookNode, folder: Path, name: str = "tiny") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.ipynb"
    nbformat.write(notebook, path)
    return path


@pytest.mark.parametrize("name", chapters.notebooks(chapters.BOOK))
def test_every_notebook_is_one_clean_run(book, name):
    assert run_problems(read(book / f"{name}.ipynb"), name) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"execution_count": 7}, "not one clean run"),
        ({"execution_count": None, "outputs": []}, "not one clean run"),
        ({"outputs": []}, "holds no outputs"),
        (v4.new_output("stream", name="stderr", text="careful"), "stderr"),
        (v4.new_output("error", ename="E", evalue="", traceback=[]), "an error"),
        (v4.new_output("stream", text="Traceback (most recent call last)"), "a traceback"),
        (v4.new_output("stream", text="/ho" + "me/ann/x.py"), "path of one machine"),
    ],
)
def test_clean_run_check_can_fail(change, sentence):
    notebook = ran("1 + 1", **{"text/plain": "2"})
    assert run_problems(notebook, "tiny") == []
    notebook.cells[1].update({"outputs": [change]} if "output_type" in change else change)
    notebook.metadata["language_info"]["version"] = "3.11.7"
    found = " ".join(run_problems(notebook, "tiny"))
    assert sentence in found
    assert "not in normal form" in found


def test_unreadable_or_missing_notebook_is_one_sentence(tmp_path, capsys):
    (tmp_path / "torn.ipynb").write_text('{"cells": [')
    with pytest.raises(BookError, match=r"torn\.ipynb cannot be read .* git checkout"):
        read(tmp_path / "torn.ipynb")
    assert chapters.main(["run", "absent"]) == 1
    assert "There is no chapter absent" in capsys.readouterr().err


@pytest.mark.slow
def test_a_second_run_changes_nothing(tmp_path):
    figure = "from mlgd.book import figures\nwith figures.loglog('x', 'y'):\n    pass"
    path = write(tiny("print(6 * 7)", figure), tmp_path)
    execute(path)
    once = path.read_bytes()
    execute(path)
    assert path.read_bytes() == once
    assert run_problems(read(path), "tiny") == []
    assert [cell.execution_count for cell in code_cells(read(path))] == [1, 2]


UNDRAWN = "import matplotlib.pyplot as plt\nplt.title(r'$\\frac{1$')\nplt.show()"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("1 / 0", "tiny did not run; the file is as it was"),
        ("import sys\nprint('careful', file=sys.stderr)", "wrote to stderr"),
        (UNDRAWN, "tiny (did not run|cell 1)"),
    ],
)
def test_a_failed_run_leaves_the_chapter_as_it_was(tmp_path, cell, sentence):
    path = write(tiny(cell), tmp_path)
    before = path.read_bytes()
    with pytest.raises(BookError, match=sentence):
        execute(path)
    assert path.read_bytes() == before


def nbval(path: Path, root: Path) -> subprocess.CompletedProcess:
    """Strict nbval on a copy of a chapter, under the same rules as the chapters of the book."""
    shutil.copy(root / "book" / "conftest.py", path.parent)
    options = "-q -p no:cacheprovider -p no:xdist --nbval --nbval-current-env --rootdir"
    command = [sys.executable, "-m", "pytest", *options.split(), str(path.parent), path.name]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(root)
    return subprocess.run(
        command, cwd=path.parent, env=environment, capture_output=True, text=True, timeout=300
    )


def excerpt(root: Path, folder: Path) -> tuple[Path, nbformat.NotebookNode, nbformat.NotebookNode]:
    """The first chapter up to its first printed digit: the copy, its notebook and that cell."""
    name = next(name for name in contents(root / "_toc.yml") if (root / f"{name}.ipynb").exists())
    notebook = read(root / f"{name}.ipynb")
    for position, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and re.search(r"\d", " ".join(map(str, printed(cell)))):
            notebook.cells = notebook.cells[: position + 1]
            return write(notebook, folder, Path(name).name), notebook, cell
    raise AssertionError(f"{name} prints no digit")


def printed(cell: nbformat.NotebookNode) -> list[str]:
    """What a cell shows as text."""
    return [out.get("text") or out.get("data", {}).get("text/plain", "") for out in cell.outputs]


@pytest.mark.slow
def test_nbval_passes_a_chapter_and_fails_a_changed_digit_and_stripped_outputs(root, tmp_path):
    path, notebook, cell = excerpt(root, tmp_path)
    untouched = nbval(path, root)
    assert untouched.returncode == 0, untouched.stdout
    for output in cell.outputs:
        holder, key = (
            (output, "text") if "text" in output else (output.get("data", {}), "text/plain")
        )
        digit = re.search(r"\d", holder.get(key, ""))
        if digit:
            other = str((int(digit.group()) + 1) % 10)
            holder[key] = holder[key][: digit.start()] + other + holder[key][digit.end() :]
            break
    corrupted = nbval(write(notebook, tmp_path, path.stem), root)
    assert corrupted.returncode == 1, corrupted.stdout
    assert "1 failed" in corrupted.stdout
    for cell in code_cells(notebook):
        cell.update(execution_count=None, outputs=[])
    stripped = nbval(write(notebook, tmp_path, path.stem), root)
    assert "not one clean run" in stripped.stdout
