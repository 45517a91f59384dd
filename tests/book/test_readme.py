"""README's promises: its commands exist, its estimate holds, its dependencies are pinned."""

import json
import re

import numpy as np
import pytest

import mlgd


@pytest.fixture(scope="module")
def readme(root):
    return (root / "README.md").read_text(encoding="utf-8")


def test_its_bill_is_what_was_paid_and_its_estimate_holds(readme):
    (block,), names = re.findall(r"```python\n(.*?)```", readme, re.S), {}
    exec(block, names)
    result, minimum = names["result"], (3 * (1 - np.exp(-1 / 3))) ** 3
    assert sum(result.cost_by_purpose.values()) == pytest.approx(result.cost)
    assert float(((result.y - minimum) ** 2).sum()) / 2 <= 1e-3


def test_the_false_promises_are_those_of_the_bench(readme, root):
    kept = json.loads((root / "book/data/quality.json").read_text(encoding="utf-8"))
    said = kept["totals"]["promises"]["all"]
    assert f"{said['false']} of {said['successes']}\npromises were false" in readme


def test_every_command_is_a_target(readme, root):
    targets = set(
        re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(encoding="utf-8"), re.M)
    )
    named = set(re.findall(r"make ([a-z-]+)", "\n".join(re.findall(r"`[^`]*`", readme))))
    assert named - targets == set()


def test_the_citation_is_of_this_version(root):
    cited = re.search(
        r"^version: (\S+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.M
    )[1]
    changes = re.findall(
        r"^## (\S+)", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.M
    )
    assert cited == mlgd.__version__ == changes[0]


def test_every_pin_is_a_name_and_a_version(root):
    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [
        pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9a-z.]*", pin)
    ] == []
    assert len({pin.split("==")[0].lower() for pin in pins}) == len(pins)
