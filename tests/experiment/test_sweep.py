"""The sweep: the same results on every executor, and those of the book's file on the story's page."""

import json
import os
import signal
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import pytest

from mlgd.experiment import sweep as module
from mlgd.experiment.protocol import Protocol, run_seed
from mlgd.experiment.store import read_signed, write_signed
from mlgd.experiment.sweep import quarters, read, sweep
from mlgd.experiment.tables import Findings, costs_table, exponents_table

TINY = Protocol(
    m=96, n=1024, ladder=(1, 4, 16), seeds=(0, 1, 2), max_flops=2e6, max_steps=2000, scales=(1, 4)
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
    return [r.to_json() for r in a] == [r.to_json() for r in b]


@pytest.fixture(scope="module")
def tiny():
    return [run_seed(TINY, seed) for seed in TINY.seeds]


def test_same_numbers_on_every_executor(tiny):
    assert same(sweep(TINY, Backwards()), tiny)
    with ThreadPoolExecutor(3) as threads:
        assert same(sweep(TINY, threads), tiny)
    assert not same(tiny, tiny[::-1])


@pytest.mark.slow
def test_same_numbers_in_processes(tiny):
    assert same(sweep(TINY), tiny)


@pytest.mark.slow
def test_same_numbers_on_dask_when_a_worker_dies(tmp_path):
    distributed = pytest.importorskip("distributed")
    protocol = Protocol(m=256, n=16384, ladder=(1, 8, 64), seeds=tuple(range(6)), max_flops=2e7)
    killed = []
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            local_directory=tmp_path,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):

        def kill_one(done, total):
            if done == 2 and not killed:
                victim = next(iter(cluster.workers.values()))
                killed.append(victim.pid)
                os.kill(victim.pid, signal.SIGKILL)

        results = sweep(protocol, client.get_executor(), progress=kill_one)
    assert killed
    with ThreadPoolExecutor(1) as one:
        assert same(results, sweep(protocol, one))


def test_progress_is_a_line_per_quarter(capsys):
    for done in range(11):
        quarters(done, 10)
    assert capsys.readouterr().out == "".join(f"{n} of 10 seeds\n" for n in (3, 5, 8, 10))


def test_a_signed_result_is_refused_when_its_numbers_changed(tmp_path):
    path = tmp_path / "result.json"
    write_signed(path, "make it", 1, [1.5, None])
    assert read_signed(path) == [1.5, None]
    path.write_text(path.read_text().replace("1.5", "1.6"))
    with pytest.raises(ValueError, match="make it"):
        read_signed(path)


def test_the_book_s_file_is_of_this_protocol_and_of_all_seeds(book):
    record = json.loads((book / "data" / "seeds.json").read_text())
    assert record["protocol"] == module.PROTOCOL, "a seed's numbers changed: run make figure-seeds"
    assert [r.seed for r in read(book / "data" / "seeds.json")] == list(Protocol().seeds)


def test_the_story_s_run_printed_the_tables_of_the_book_s_file(book):
    """The audit reads the file; the story runs the seeds. Their tables are the same to the last digit shown."""
    found = Findings(Protocol(), read(book / "data" / "seeds.json"))
    cells = json.loads((book / "experiment.ipynb").read_text())["cells"]
    printed = "".join(
        text for c in cells for o in c.get("outputs", ()) for text in o.get("text", ())
    )
    for table in (exponents_table(found), costs_table(found)):
        assert table in printed
