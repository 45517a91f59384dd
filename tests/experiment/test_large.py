"""The streamed run: the same numbers on every executor and after every kill; the book's result."""

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

from mlgd.experiment import large
from mlgd.experiment.design import Design
from mlgd.experiment.large import biases, shares
from mlgd.experiment.reduce import reduce

SMALL = Design(m=128, n=4096, seed=5, pairs=True)


def run(design=SMALL, k_max=64, **options):
    with ThreadPoolExecutor(2) as threads:
        return biases(design, k_max, threads, **options)


@pytest.fixture(scope="module")
def small():
    return run()


@pytest.mark.parametrize("pairs", [True, False])
def test_it_is_the_reduction_of_the_same_numbers(pairs):
    design = replace(SMALL, pairs=pairs)
    found, problem = run(design), reduce(design, 64)
    np.testing.assert_allclose(found.exact, problem.biases(found.levels), rtol=1e-5)
    np.testing.assert_allclose(
        found.truncated, problem.biases(found.levels, True), rtol=1e-5
    )
    np.testing.assert_allclose(
        found.losses, [problem.loss(x) for x in problem.probes], rtol=1e-5
    )
    assert found.smoothness == pytest.approx(problem.smoothness(64), rel=1e-12)


def test_what_is_kept_gives_the_same_bits_and_what_is_damaged_is_made_again(
    small, tmp_path, monkeypatch
):
    assert (
        run(folder=tmp_path).to_json()
        == small.to_json()
        == run(folder=tmp_path).to_json()
    )
    for path in sorted(next(tmp_path.iterdir()).iterdir())[::3]:
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="damaged"):
        assert run(folder=tmp_path).to_json() == small.to_json()
    monkeypatch.setattr(large, "PROTOCOL", large.PROTOCOL + 1)
    run(folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2, (
        "results of another protocol are not mixed in"
    )


@pytest.mark.slow
def test_it_runs_on_dask(small):
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        assert biases(SMALL, 64, client.get_executor()).to_json() == small.to_json()


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["a worker", "everything"])
def test_a_killed_run_loses_at_most_what_was_in_flight(tmp_path, victim):
    """Killed by SIGKILL at a random moment and given again, it ends with the same bits."""
    psutil = pytest.importorskip("psutil")
    options = [
        "--m",
        "512",
        "--folder",
        str(tmp_path / "kept"),
        "--out",
        str(tmp_path / "out"),
    ]
    script = tmp_path / "run.py"  # a file, since spawned workers import the main module
    script.write_text(
        "from mlgd.experiment import large\n\nif __name__ == '__main__':\n"
        f"    large.NUMBERS = {2**18}\n    large.main({options!r})\n"
    )

    def kept():
        return {p.name: p.stat().st_mtime_ns for p in (tmp_path / "kept").glob("*/*.npz")}

    def start(log):
        return subprocess.Popen(
            [sys.executable, script], stderr=log, cwd=tmp_path, start_new_session=True
        )

    enough, end = (
        int(np.random.default_rng(len(victim)).integers(2, 50)),
        time.monotonic() + 240,
    )
    with open(tmp_path / "log", "w+") as log:
        one = start(log)
        while len(kept()) < enough and one.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        family = psutil.Process(one.pid).children(recursive=True)
        if victim == "a worker":
            [p for p in family if "spawn_main" in " ".join(p.cmdline())][-1].kill()
        else:
            os.killpg(one.pid, signal.SIGKILL)
        one.wait(timeout=60)
        psutil.wait_procs(family, timeout=60)
        before = kept()
        assert len(before) >= enough
        assert not (tmp_path / "out").exists()
        assert start(log).wait(timeout=400) == 0
    assert kept().items() >= before.items(), "nothing that was kept is computed again"
    design = Design(m=512, n=32768, seed=100, pairs=True)
    large.NUMBERS, usual = 2**18, large.NUMBERS
    try:
        assert large.read(tmp_path / "out").to_json() == run(design, 128).to_json(), (
            "the same bits"
        )
    finally:
        large.NUMBERS = usual


def test_bad_sizes_are_refused():
    for k_max, words in ((129, "between 1 and"), (96, "a power of two")):
        with pytest.raises(ValueError, match=words):
            run(k_max=k_max)


def test_the_book_s_result_is_of_this_protocol_and_its_streams(book):
    """Blocks of 512 columns at m = 65536, drawn again: their share of b is the one summed."""
    record = json.loads((book / "data" / "large.json").read_text())
    assert record["protocol"] == large.PROTOCOL, (
        "a stored number changed: run make figure-large"
    )
    found = large.read(book / "data" / "large.json")
    assert found.design == Design(m=65536, n=4_194_304, seed=100, pairs=True)
    assert found.k_max == 16384
    for block in list(found.slices)[:: len(found.slices) - 1]:
        again = shares(found.design, range(block, block + 1))[-4:]
        np.testing.assert_allclose(again, found.slices[block], rtol=1e-4)
