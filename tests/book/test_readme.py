"""README's promises: its ten lines run, its commands exist, and its dependencies are the ones that are pinned."""

import re
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def readme(root):
    return (root / "README.md").read_text(encoding="utf-8")


def test_the_ten_lines_run(readme, root, tmp_path):
    (block,) = re.findall(r"```python\n(.*?)```", readme, re.S)
    ran = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert "gamma =" in ran.stdout
    assert "mean loss at most 0.2" in ran.stdout


def test_every_command_is_a_target(readme, root):
    targets = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(encoding="utf-8"), re.M))
    named = set(re.findall(r"make ([a-z]+)", "\n".join(re.findall(r"`[^`]*`", readme))))
    assert named - targets == set()
    assert targets - {"help"} == named


def test_every_pin_is_a_name_and_a_version(root):
    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9a-z.]*", pin)] == []
    assert len({pin.split("==")[0].lower() for pin in pins}) == len(pins)
