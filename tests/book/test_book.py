"""Notebooks are one clean run, stored in normal form, and strict nbval notices a digit."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import v4

from mlgd.book import chapters
from mlgd.book.chapters import BookError, code_cells, execute, normal, read, run_problems


def tiny(*cells: str) -> nbformat.NotebookNode:
    """A small notebook of code cells, not run."""
    return normal(
        v4.new_notebook(
            cells=[v4.new_markdown_cell("# Tiny"), *map(v4.new_code_cell, cells)]
        )
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
        (
            v4.new_output("stream", text="Traceback (most recent call last)"),
            "a traceback",
        ),
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
    command = [
        sys.executable,
        "-m",
        "pytest",
        *options.split(),
        str(path.parent),
        path.name,
    ]
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")
    }
    environment["PYTHONPATH"] = str(root)
    return subprocess.run(
        command,
        cwd=path.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.slow
def test_nbval_passes_a_chapter_and_fails_a_changed_digit_and_stripped_outputs(
    root, tmp_path
):
    path = write(tiny("print(6 * 7)", "print(7 * 7)"), tmp_path)
    execute(path)
    notebook = read(path)
    _, cell = code_cells(notebook)
    cell.outputs[0].text = "48\n"
    corrupted = nbval(write(notebook, tmp_path), root)
    assert corrupted.returncode == 1, corrupted.stdout
    assert "1 failed, 1 passed" in corrupted.stdout
    cell.update(execution_count=None, outputs=[])
    stripped = nbval(write(notebook, tmp_path), root)
    assert "not one clean run" in stripped.stdout
