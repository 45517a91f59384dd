"""The book's own tests. Each check is shown able to fail on a copy that was broken on purpose."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import v4
from pages import (
    anchor_problems,
    figure_problems,
    glue_problems,
    link_problems,
    numbering_problems,
    outside_problems,
)

from mlgd.book import chapters
from mlgd.book.boxes import MIME
from mlgd.book.chapters import (
    BookError,
    code_cells,
    contents,
    contents_problems,
    execute,
    look,
    normal,
    read,
    run_problems,
)

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


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


# -- contents -----------------------------------------------------------------------------------------------


def test_contents_and_folder_agree(root):
    assert contents_problems(root) == []


def test_contents_check_can_fail(root, tmp_path):
    shutil.copytree(root / "book", tmp_path / "book", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "_toc.yml", tmp_path)
    (tmp_path / "book" / "stray.md").write_text("# Stray\n")
    (tmp_path / "book" / "notation.md").unlink()
    problems = "\n".join(contents_problems(tmp_path))
    assert "book/stray is in book/ but not in _toc.yml" in problems
    assert "_toc.yml lists book/notation, which is not in book/" in problems


def test_broken_contents_file_is_one_sentence(tmp_path):
    (tmp_path / "_toc.yml").write_text("root: [")
    with pytest.raises(BookError, match=r"_toc\.yml cannot be read"):
        contents(tmp_path / "_toc.yml")


# -- notebooks ----------------------------------------------------------------------------------------------


def test_every_notebook_is_one_clean_run(root):
    assert look(root) == []


@pytest.mark.parametrize(
    ("breakage", "sentence"),
    [
        (lambda cell: cell.update(execution_count=7), "not one clean run"),
        (lambda cell: cell.update(execution_count=None, outputs=[]), "not one clean run"),
        (lambda cell: cell.update(outputs=[]), "holds no outputs"),
        (
            lambda cell: cell.outputs.append(
                v4.new_output("stream", name="stderr", text="careful")
            ),
            "stderr",
        ),
        (
            lambda cell: cell.outputs.append(
                v4.new_output("error", ename="E", evalue="", traceback=[])
            ),
            "an error",
        ),
        (
            lambda cell: cell.outputs.append(
                v4.new_output("stream", text="Traceback (most recent call last)")
            ),
            "a traceback",
        ),
        (
            lambda cell: cell.outputs.append(v4.new_output("stream", text="/ho" + "me/ann/x.py")),
            "path of one machine",
        ),
    ],
)
def test_clean_run_check_can_fail(breakage, sentence):
    notebook = ran("1 + 1", **{"text/plain": "2"})
    assert run_problems(notebook, "tiny") == []
    breakage(notebook.cells[1])
    assert sentence in " ".join(run_problems(notebook, "tiny"))


def test_normal_form_check_can_fail():
    notebook = ran("1 + 1", **{"text/plain": "2"})
    notebook.metadata["language_info"]["version"] = "3.11.7"
    assert "normal form" in " ".join(run_problems(notebook, "tiny"))
    assert run_problems(normal(notebook), "tiny") == []


def test_unreadable_or_missing_notebook_is_one_sentence(tmp_path):
    (tmp_path / "torn.ipynb").write_text('{"cells": [')
    with pytest.raises(
        BookError, match=r"torn\.ipynb cannot be read as a notebook .* git checkout"
    ):
        read(tmp_path / "torn.ipynb")
    with pytest.raises(BookError, match="There is no chapter absent in "):
        read(tmp_path / "absent.ipynb")


def test_runner_says_one_sentence_for_an_unknown_chapter(capsys):
    assert chapters.main(["run", "absent"]) == 1
    assert "There is no chapter absent" in capsys.readouterr().err


@pytest.mark.slow
def test_a_second_run_changes_nothing(tmp_path):
    figure = "from mlgd.book import figures as plots\nfig, ax = plots.loglog('x', 'y')\nplots.slope(ax, [1, 2], 1, 2)\nplots.plt.show()"
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


# -- figures and glue ---------------------------------------------------------------------------------------


def test_every_figure_has_alt_text_caption_and_name(book):
    assert figure_problems(book) == []


def test_figure_check_can_fail(tmp_path):
    notebook = ran("plt.show()", **{"image/png": PNG})
    write(notebook, tmp_path, "bare")
    figure = {"image": {"alt": "a dot"}, "figure": {"caption": "A dot.", "name": "fig-dot"}}
    notebook.cells[1].metadata["mystnb"] = figure
    write(notebook, tmp_path, "first")
    write(notebook, tmp_path, "second")
    assert figure_problems(tmp_path) == [
        "bare cell 1: a figure without alt text",
        "bare cell 1: a figure without a caption",
        "bare cell 1: a figure without a name",
        "second cell 1: the figure name fig-dot is used twice",
    ]


def test_every_glued_key_is_quoted_and_every_quoted_key_glued(book):
    assert glue_problems(book) == []


def test_glue_check_can_fail(tmp_path):
    notebook = ran("glue(...)", **{"application/papermill.record/text/plain": "'3'"})
    notebook.cells[1].outputs[0].metadata = {"scrapbook": {"name": "tiny-three"}}
    notebook.cells.append(
        v4.new_markdown_cell("It is {glue:text}`tiny-three`, or {glue:text}`tiny-three:.2f`.")
    )
    write(notebook, tmp_path)
    assert glue_problems(tmp_path) == []
    notebook.cells[-1].source = "It is {glue:text}`tiny-four`."
    write(notebook, tmp_path)
    assert glue_problems(tmp_path) == [
        "tiny-three is glued but no prose quotes it",
        "tiny-four is quoted but no cell glues it",
    ]


def test_no_two_checks_of_a_page_share_an_anchor(book):
    assert anchor_problems(book) == []


def test_anchor_check_can_fail(tmp_path):
    record = {"ids": ["a"], "anchor": "check-a-1234"}
    (tmp_path / "audit").mkdir()
    write(ran("check", **{MIME: {"checks": [record]}}), tmp_path / "audit")
    assert anchor_problems(tmp_path) == []
    write(ran("check", **{MIME: {"checks": [record, record]}}), tmp_path / "audit")
    assert "audit/tiny: two checks have the anchor check-a-1234" in anchor_problems(tmp_path)[0]


# -- nbval --------------------------------------------------------------------------------------------------


def nbval(path: Path, root: Path) -> subprocess.CompletedProcess:
    """Strict nbval on a copy of a chapter, under the same rules as the chapters of the book."""
    shutil.copy(root / "book" / "conftest.py", path.parent)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--nbval",
    ]
    command += ["--nbval-current-env", "--rootdir", str(path.parent), path.name]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(root)
    return subprocess.run(
        command, cwd=path.parent, env=environment, capture_output=True, text=True, timeout=300
    )


def excerpt(root: Path, folder: Path) -> tuple[Path, nbformat.NotebookNode, nbformat.NotebookNode]:
    """The first chapter of the book up to its first printed digit: the copy, its notebook and that cell."""
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
def test_nbval_passes_an_untouched_chapter_and_fails_one_changed_digit(root, tmp_path):
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
    write(notebook, tmp_path, path.stem)
    corrupted = nbval(path, root)
    assert corrupted.returncode == 1, corrupted.stdout
    assert "1 failed" in corrupted.stdout


@pytest.mark.slow
def test_nbval_fails_a_chapter_whose_outputs_were_stripped(root, tmp_path):
    path, notebook, _ = excerpt(root, tmp_path)
    for cell in code_cells(notebook):
        cell.update(execution_count=None, outputs=[])
    write(notebook, tmp_path, path.stem)
    stripped = nbval(path, root)
    assert stripped.returncode != 0, stripped.stdout
    assert "not one clean run" in stripped.stdout


# -- whose numbers ------------------------------------------------------------------------------------------


def test_a_typed_number_of_a_theorem_is_called_the_papers(root):
    assert numbering_problems(root) == []


def test_numbering_check_can_fail(tmp_path):
    for folder in ("book", "mlgd"):
        (tmp_path / folder).mkdir()
    sound = "The paper's Theorem 1(a), the paper's\nProposition 2, Theorem 3.4 of {cite}`dg`, {prf:ref}`thm-convex`."
    (tmp_path / "README.md").write_text(sound)
    assert numbering_problems(tmp_path) == []
    (tmp_path / "README.md").write_text(sound + " By Theorem 1 and its\nTheorem 2.")
    (tmp_path / "mlgd" / "plans.py").write_text('"""Proposition 2 in discrete time."""')
    write(ran("bill", **{"text/plain": "by Lemma 3"}), tmp_path / "book")
    found = [line.partition(" is whose?")[0] for line in numbering_problems(tmp_path)]
    assert found == [
        "README.md: 'Theorem 1'",
        "README.md: 'Theorem 2.'",
        "mlgd/plans.py: 'Proposition 2'",
        "tiny: 'Lemma 3'",
    ]


# -- the built pages ----------------------------------------------------------------------------------------


@pytest.mark.built
def test_internal_links_and_references_resolve(html):
    assert link_problems(html) == []


def test_link_check_can_fail(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a id="here" href="b.html#there">x</a> <a href="#here">y</a> <a href="c.html">z</a> <img src="d.png">'
        '<span class="xref myst">lost</span>'
    )
    (tmp_path / "b.html").write_text("<p>nothing</p>")
    assert link_problems(tmp_path) == [
        "a.html: b.html#there leads to no place on that page",
        "a.html: c.html leads to no file",
        "a.html: d.png leads to no file",
        "a.html: the reference 'lost' is unresolved",
    ]


@pytest.mark.built
def test_no_page_loads_anything_from_outside(html):
    assert outside_problems(html) == []


@pytest.mark.parametrize(
    "loads",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<script>const THEBE_JS_URL = "https://cdn.example/thebe/index.js"</script>',
        '<link rel="stylesheet" href="//fonts.example/css">',
        '<img src="http://pictures.example/x.png">',
        "<style>@import url(https://fonts.example/css);</style>",
        '<p style="background: url(https://pictures.example/x.png)">x</p>',
        '<link rel="stylesheet" href="own.css">',
    ],
)
def test_outside_check_can_fail(loads, tmp_path):
    (tmp_path / "own.css").write_text(
        "a { background: url('https://pictures.example/x.png') }" * ("own.css" in loads)
    )
    (tmp_path / "page.html").write_text(
        f'<a href="https://elsewhere.example">a link is no load</a>{loads}'
    )
    assert len(outside_problems(tmp_path)) >= 1
    (tmp_path / "page.html").write_text('<a href="https://elsewhere.example">a link is no load</a>')
    (tmp_path / "own.css").write_text("")
    assert outside_problems(tmp_path) == []


@pytest.mark.slow
def test_a_dangling_reference_fails_the_build(root, tmp_path):
    (tmp_path / "book").mkdir()
    for name in ("_config.yml", "book/references.bib"):
        shutil.copy(root / name, tmp_path / name)
    shutil.copytree(root / "book" / "_static", tmp_path / "book" / "_static")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/index\n")
    command = [
        Path(sys.executable).with_name("jupyter-book"),
        "build",
        ".",
        "--path-output",
        ".",
        "-n",
        "-W",
    ]
    results = []
    for text in (
        "# Sound\n\n$$ 1 + 1 = 2 $$ (eq-two)\n\nSee {eq}`eq-two`.\n",
        "# Broken\n\nSee {prf:ref}`thm-none`.\n",
    ):
        (tmp_path / "book" / "index.md").write_text(text)
        shutil.rmtree(tmp_path / "_build", ignore_errors=True)
        results.append(
            subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        )
    assert results[0].returncode == 0, results[0].stderr
    assert results[1].returncode != 0
    assert "thm-none" in results[1].stderr
