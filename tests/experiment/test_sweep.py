"""The sweep: the paper's protocol, every executor, and the book's file against the story's page."""

import json
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import numpy as np
import pytest

from mlgd.experiment.reduce import read_rate
from mlgd.experiment.sweep import (
    PROTOCOL,
    SEEDS,
    Protocol,
    read,
    read_signed,
    run_seed,
    studies,
    sweep,
    write_signed,
)
from mlgd.experiment.tables import Findings, costs_table, exponents_table

TINY = Protocol(
    m=96,
    n=1024,
    ladder=(1, 4, 16),
    seeds=(0, 1, 2),
    max_flops=2e6,
    max_steps=2000,
    scales=(1, 4),
)


class Backwards(Executor):
    """Runs what it was given in the opposite order."""

    def __init__(self):
        self.waiting = []

    def submit(self, function, *args):
        future = Future()
        self.waiting.append((future, function, args))
        if len(self.waiting) == len(TINY.seeds):
            for f, g, a in reversed(self.waiting):
                f.set_result(g(*a))
        return future


def same(a, b):
    return [r.to_json(96) for r in a] == [r.to_json(96) for r in b]


@pytest.fixture(scope="module")
def tiny():
    return [run_seed(TINY, seed) for seed in TINY.seeds]


def test_the_defaults_are_the_paper_s_and_the_seeds_those_named_in_advance():
    p = Protocol()
    assert (p.m, p.n, p.phi, p.rho, p.ladder) == (2048, 131072, 1.2, 0.6, (1, 8, 64, 512))
    assert (p.scales, p.shrinks, p.max_steps) == (
        (1, 2, 4, 8, 16, 32),
        (1.0, 0.5),
        250_000,
    )
    assert p.seeds == SEEDS == tuple(range(100, 120))
    assert abs(p.gamma - 3) < 1e-12
    assert p.baseline == (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    np.testing.assert_allclose(p.losses[[0, -1]], [10**-0.3, 1e-2])


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"m": 256}, "exceeds m=256"),
        ({"rho": 1.0}, "rho"),
        ({"ladder": (1, 8, 63, 512)}, "not geometric"),
        ({"ladder": (8, 4, 2)}, "not geometric"),
        ({"seeds": ()}, "seed"),
        ({"scales": (0.5,)}, "coarsest level"),
        ({"shrinks": (2.0,)}, "fractions"),
        ({"targets": (0.1, 0.2)}, "tightening"),
        ({"max_steps": 0}, "at least 1"),
    ],
)
def test_bad_sizes_are_refused_at_once(sizes, words):
    with pytest.raises(ValueError, match=words):
        Protocol(**sizes)


@pytest.mark.slow
def test_same_numbers_on_every_executor(tiny):
    assert same(sweep(TINY, Backwards()), tiny)
    with ThreadPoolExecutor(3) as threads:
        assert same(sweep(TINY, threads), tiny)
    assert same(sweep(TINY), tiny)  # in processes
    assert not same(tiny, tiny[::-1])


def test_a_signed_result_is_refused_when_its_numbers_changed(tmp_path):
    path = tmp_path / "result.json"
    write_signed(path, "make it", 1, [1.5, None])
    assert read_signed(path) == [1.5, None]
    path.write_text(path.read_text().replace("1.5", "1.6"))
    with pytest.raises(ValueError, match="make it"):
        read_signed(path)


def test_the_book_s_file_is_of_this_protocol_and_of_all_seeds(book):
    record = json.loads((book / "data" / "seeds.json").read_text())
    assert record["protocol"] == PROTOCOL, (
        "a seed's numbers changed: run make figure-seeds"
    )
    assert [r.seed for r in read(book / "data" / "seeds.json")] == list(SEEDS)


@pytest.mark.parametrize("name", ["shared", "lengths"])
def test_the_kept_rates_of_smaller_designs_are_read_again(book, name):
    kept, tasks = (
        read_signed(book / "data" / "seeds.json")["rates"][name],
        studies()[name],
    )
    assert len(kept) == len(tasks)
    assert kept[0] == pytest.approx(read_rate(*tasks[0]), rel=1e-4)


def test_the_story_s_run_printed_the_tables_of_the_book_s_file(book):
    """The story's tables are those of the file, to the last digit shown."""
    found = Findings(Protocol(), read(book / "data" / "seeds.json"))
    cells = json.loads((book / "experiment.ipynb").read_text())["cells"]
    outputs = (o for c in cells for o in c.get("outputs", ()))
    printed = "".join(text for o in outputs for text in o.get("text", ()))
    for table in (exponents_table(found), costs_table(found)):
        assert table in printed
