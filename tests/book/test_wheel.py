"""The wheel alone, with what it declares to need: README's ten lines and the cheat sheet run."""

import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path

import pytest

BUILD = "from setuptools.build_meta import build_wheel; print(build_wheel('dist'))"
ALONE = """
import sys
sys.path.insert(0, {home!r})
import importlib.util, mlgd
assert mlgd.__file__.startswith({home!r}), mlgd.__file__
for name in ("matplotlib", "mlgd.book", "mlgd.experiment"):
    assert importlib.util.find_spec(name) is None, name + " is there"
"""
GIVEN = """
import numpy as np
from mlgd import *

def evaluate(k, y):
    t = np.arange(2**k) / 2**k
    return y - np.exp(-(t[:, None, None] + t[:, None] + t) / 3).mean()

cost, levels, y0, y = lambda k: 8.0**k, range(1, 7), np.zeros(2), np.ones(2)
points = [y0, y]
eps, delta, sigma, gamma, beta, d0, c = 1e-2, 1 / 32, 0.1, 3.0, 1.0, 1.0, 1.0
method, rng, r, horizon, rates, eta, steps = "multilevel", 0, y0, 4.0, {1: 10.0, 2: 2.0}, 0.5, 20
probabilities = [1.0, 0.5, 0.25, 0.1, 0.05, 0.02]
"""


@pytest.fixture(scope="module")
def home(root, tmp_path_factory) -> Path:
    """A folder with the wheel, built from a copy (no stale build folder), and its needs."""
    source, home = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("home")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, source)
    shutil.copytree(
        root / "mlgd", source / "mlgd", ignore=shutil.ignore_patterns("__pycache__")
    )
    built = subprocess.run(
        [sys.executable, "-c", BUILD],
        cwd=source,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert built.returncode == 0, built.stderr
    zipfile.ZipFile(source / "dist" / built.stdout.split()[-1]).extractall(home)
    needs = {
        re.match(r"\w+", need)[0] for need in requires("mlgd") if "extra" not in need
    }
    assert needs == {"numpy", "scipy", "sympy", "tqdm"}
    for name in (*needs, "mpmath"):  # sympy's own need
        package = Path(find_spec(name).origin).parent
        for part in (package, package.with_name(f"{name}.libs")):
            if part.exists():
                (home / part.name).symlink_to(part)
    return home


def run(home: Path, code: str) -> str:
    alone = [
        sys.executable,
        "-I",
        "-S",
        "-W",
        "error",
        "-c",
        ALONE.format(home=str(home)) + code,
    ]
    ran = subprocess.run(alone, cwd=home, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_ten_lines_of_the_readme_run(home, root):
    (block,) = re.findall(
        r"```python\n(.*?)```", (root / "README.md").read_text(encoding="utf-8"), re.S
    )
    printed = run(home, block)
    assert re.search(
        r"status  done: judged on level \d, the loss is about \S+ above", printed
    )
    assert re.search(r"price  \S+ for \d+ evaluations", printed)
    assert "for gradients" in printed


@pytest.mark.slow
def test_every_call_of_the_cheat_sheet_runs(home, book):
    sheet = (book / "reference.md").read_text(encoding="utf-8").split("| regime |")[0]
    cells = [line.split("|")[2] for line in sheet.splitlines() if line.startswith("|")]
    calls = re.findall(r"`([^`]+)`", "\n".join(cells))
    assert len(calls) >= 15
    assert (
        run(home, "\n".join([GIVEN, *calls, "print('every call ran')"]))
        == "every call ran\n"
    )
