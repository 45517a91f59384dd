"""README's promises: its ten lines run, its commands exist, and its dependencies are the ones that are pinned."""

import re
import subprocess
import sys

import numpy as np
import pytest

import mlgd


@pytest.fixture(scope="module")
def readme(root):
    return (root / "README.md").read_text(encoding="utf-8")


def example(readme) -> str:
    (block,) = re.findall(r"```python\n(.*?)```", readme, re.S)
    return block


def test_the_ten_lines_run(readme, root, tmp_path):
    block = example(readme)
    ran = subprocess.run(
        [sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"status  done: a loss of about \S+ by level", ran.stdout)
    assert re.search(r"price  \S+ for \d+ evaluations", ran.stdout)
    assert "for gradients" in ran.stdout


def test_its_bill_is_what_was_paid_and_its_estimate_holds(readme):
    names: dict = {}
    exec(example(readme), names)
    result, minimum = names["result"], (3 * (1 - np.exp(-1 / 3))) ** 3
    assert sum(result.cost_by_purpose.values()) == pytest.approx(result.cost)
    assert float(((result.y - minimum) ** 2).sum()) / 2 <= 1e-3


def test_every_command_is_a_target(readme, root):
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(encoding="utf-8"), re.M))
    named = set(re.findall(r"make ([a-z-]+)", "\n".join(re.findall(r"`[^`]*`", readme))))
    assert named - targets == set()


def test_the_citation_is_of_this_version(root):
    cited = re.search(
        r"^version: (\S+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.M
    )[1]
    changes = re.findall(r"^## (\S+)", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert cited == mlgd.__version__ == changes[0]


def test_every_pin_is_a_name_and_a_version(root):
    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9a-z.]*", pin)] == []
    assert len({pin.split("==")[0].lower() for pin in pins}) == len(pins)
