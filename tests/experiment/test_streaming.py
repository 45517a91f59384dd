"""The streamed run: the fast path's numbers on every executor, after every kill, and the book's result at m = 65536."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from mlgd.experiment import large, streaming
from mlgd.experiment.design import Design
from mlgd.experiment.features import reduce
from mlgd.experiment.store import Store
from mlgd.experiment.streaming import STEPS, Biases, biases, shares

SMALL = Design(m=128, n=4096, seed=5, pairs=True)


def run(design=SMALL, k_max=64, **options):
    with ThreadPoolExecutor(2) as threads:
        return biases(design, k_max, executor=threads, **options)


@pytest.fixture(scope="module")
def small():
    return run()


@pytest.mark.parametrize("pairs", [True, False])
def test_it_is_the_reduction_of_the_same_numbers(pairs):
    design = replace(SMALL, pairs=pairs)
    found, problem = run(design), reduce([design], 64, STEPS)[0]
    np.testing.assert_allclose(found.exact, problem.biases(found.levels), rtol=1e-5)
    np.testing.assert_allclose(found.truncated, problem.biases(found.levels, True), rtol=1e-5)
    np.testing.assert_allclose(found.losses, [problem.loss(x) for x in problem.probes], rtol=1e-5)
    assert found.smoothness == pytest.approx(problem.smoothness(64), rel=1e-12)


@pytest.mark.slow
def test_a_whole_run_at_m_1024_by_the_command(tmp_path):
    """The code path of the book's result, at a size that the fast path can check; and by dask the same to the last bit."""
    k_max, n = large.sizes(1024)
    assert (
        large.main(
            ["--m", "1024", "--folder", str(tmp_path / "a"), "--out", str(tmp_path / "a.json")]
        )
        == 0
    )
    found = large.read(tmp_path / "a.json")
    problem = reduce([Design(m=1024, n=n, seed=100, pairs=True)], k_max, STEPS)[0]
    np.testing.assert_allclose(found.exact, problem.biases(found.levels), rtol=1e-5)
    np.testing.assert_allclose(found.truncated, problem.biases(found.levels, True), rtol=1e-5)
    pytest.importorskip("distributed")
    options = [
        "--m",
        "1024",
        "--dask",
        "--folder",
        str(tmp_path / "b"),
        "--out",
        str(tmp_path / "b.json"),
    ]
    assert large.main(options) == 0
    assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text()


def test_bits_do_not_depend_on_the_cut_into_tasks_that_is_kept(small, tmp_path, monkeypatch):
    first = run(folder=tmp_path)
    assert first.to_json() == small.to_json() == run(folder=tmp_path).to_json()
    key = next(tmp_path.iterdir())
    for path in list(key.iterdir())[::3]:
        path.write_bytes(path.read_bytes()[:-1]) if path.suffix == ".npy" else None
    with pytest.warns(UserWarning, match="damaged"):
        assert run(folder=tmp_path).to_json() == small.to_json()
    monkeypatch.setattr(streaming, "PROTOCOL", streaming.PROTOCOL + 1)
    run(folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2, "results of another protocol are not mixed in"


SHORT = 2**21  # random numbers in a task, so that there are many


@pytest.fixture(scope="module")
def unbroken():
    """The run that the kills below break, in one go."""
    patch = pytest.MonkeyPatch()
    patch.setattr(streaming, "NUMBERS", SHORT)
    yield run(Design(m=1024, n=65536, seed=100, pairs=True), 256)
    patch.undo()


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["a worker", "everything", "a dask worker", "the scheduler"])
def test_a_killed_run_loses_at_most_what_was_in_flight(tmp_path, unbroken, victim):
    """SIGKILL at a random moment; dask's scheduler lives in the process that started the run."""
    psutil = pytest.importorskip("psutil")
    arguments = [
        "--m",
        "1024",
        "--folder",
        str(tmp_path / "kept"),
        "--out",
        str(tmp_path / "out.json"),
    ]
    if victim in ("a dask worker", "the scheduler"):
        pytest.importorskip("distributed")
        arguments.append("--dask")
    script = tmp_path / "run.py"  # a file, since spawned workers import the main module
    script.write_text(
        "from mlgd.experiment import large, streaming\n\nif __name__ == '__main__':\n"
        f"    streaming.NUMBERS = {SHORT}\n    large.main({arguments!r})\n"
    )

    def kept():
        return {p.name: p.stat().st_mtime_ns for p in (tmp_path / "kept").glob("*/*.npy")}

    def start(log):
        return subprocess.Popen(
            [sys.executable, script], stderr=log, cwd=tmp_path, start_new_session=True
        )

    enough, end = int(np.random.default_rng(len(victim)).integers(2, 50)), time.monotonic() + 240
    with open(tmp_path / "log", "w+") as log:
        one = start(log)
        while len(kept()) < enough and one.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        family = psutil.Process(one.pid).children(recursive=True)
        inside = [p for p in family if "spawn_main" in " ".join(p.cmdline()) and not p.children()]
        if victim.endswith("worker"):
            inside[-1].kill()
        elif victim == "everything":
            os.killpg(one.pid, signal.SIGKILL)
        else:
            one.kill()
        before = kept()
        assert len(before) >= enough
        assert not (tmp_path / "out.json").exists()
        if not victim.endswith("worker"):
            one.wait()
            psutil.wait_procs(family, timeout=60)
            before = kept()
            one = start(log)
        code = one.wait(timeout=400)
        log.seek(0)
        said = log.read()
    assert code == 0, said
    assert victim != "a worker" or "a worker was lost" in said
    assert kept().items() >= before.items(), "nothing that was kept is computed again"
    assert large.read(tmp_path / "out.json").to_json() == unbroken.to_json(), "the same bits"


def test_memory_does_not_grow_with_n():
    import tracemalloc

    def peak(n):
        tracemalloc.start()
        shares(Design(m=512, n=n, pairs=True), range(n // 512))
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    peak(512)
    assert peak(64 * 512) < 1.1 * peak(8 * 512)


def test_a_result_survives_its_file(small):
    again = Biases.from_json(json.loads(json.dumps(small.to_json())))
    assert again.to_json() == small.to_json()
    assert again.design == SMALL


def test_bad_sizes_are_refused():
    for k_max, words in ((129, "between 1 and"), (96, "a power of two")):
        with pytest.raises(ValueError, match=words):
            biases(SMALL, k_max)


def test_progress_says_how_long(capsys):
    meter = large.Meter(100.0, every=0.0)
    meter("b", 50)
    assert "b:  50.0%, " in capsys.readouterr().err


def test_records_are_whole_or_not_there(tmp_path):
    store = Store(tmp_path, {"a": 1})
    assert store.load("x") is None
    store.save("x", b"body")
    assert store.load("x") == b"body"
    assert Store(tmp_path, {"a": 2}).load("x") is None


def test_the_book_s_result_is_of_this_protocol_and_its_streams(book):
    """Blocks of 512 columns at m = 65536, drawn again: their share of b is the one that the run summed."""
    record = json.loads((book / "data" / "large.json").read_text())
    assert record["protocol"] == streaming.PROTOCOL, (
        "the large run's numbers changed: run make figure-large"
    )
    found = large.read(book / "data" / "large.json")
    assert (found.design.m, found.design.n, found.k_max, found.design.seed) == (
        65536,
        4_194_304,
        16384,
        100,
    )
    assert found.design.pairs
    for block in list(found.slices)[:: len(found.slices) - 1]:
        again = shares(found.design, range(block, block + 1))[-4:]
        np.testing.assert_allclose(again, found.slices[block], rtol=1e-4)
