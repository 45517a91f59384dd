"""The Makefile's words when something is missing: one sentence that says what to do."""

import shutil
import subprocess

import pytest

from mlgd.book import chapters


def make(folder, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["make", *arguments], cwd=folder, capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def house(root, tmp_path):
    """A checkout without a .venv, where nothing can be installed."""
    for name in ("Makefile", "requirements.txt", "pyproject.toml"):
        shutil.copy(root / name, tmp_path)
    return tmp_path


def fake_python(folder, refuses: str) -> str:
    """A Python that fails whatever mentions a word."""
    script = folder / "fake-python"
    script.write_text(
        f'#!/bin/sh\ncase "$*" in *{refuses}*) exit 1;; esac\nexec python3 "$@"\n'
    )
    script.chmod(0o755)
    return f"PYTHON={script}"


def test_plain_make_lists_every_target(house):
    listed = make(house).stdout
    for target in ("book", "pdf", "test", "check", "run", "lab", "bench", "clean"):
        assert f"\n  {target} " in listed


@pytest.mark.parametrize(
    ("refuses", "sentence"),
    [
        ("version_info", "This book needs Python 3.11, 3.12 or 3.13"),
        (
            "ensurepip",
            "has no venv module: install it (on Debian and Ubuntu: apt-get install python3-venv)",
        ),
    ],
)
def test_a_missing_python_or_venv_is_one_sentence(house, refuses, sentence):
    ran = make(house, "check", fake_python(house, refuses))
    assert ran.returncode != 0
    assert sentence in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (house / ".venv").exists()


def test_without_a_browser_the_pdf_says_what_it_needs(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert chapters.main(["pdf"]) == 1
    assert "make pdf needs a browser (chromium, " in capsys.readouterr().err
