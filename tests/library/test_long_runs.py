"""Runs that are killed, interrupted, resumed, moved to other processes: always the same bits."""

import json
import logging
import multiprocessing
import os
import pickle
import subprocess
import sys
import time
import warnings
import zipfile
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import long_run
import numpy as np
import pytest
from kills import killed
from long_run import bits, loss, setting

from mlgd import (
    Hierarchy,
    LevelError,
    Plan,
    Problem,
    Telescope,
    checkpoints,
    descent,
    minimize,
    plan,
)
from mlgd.examples import biased

SPAWN = multiprocessing.get_context(
    "spawn"
)  # a fork of a process that has threads, as JAX's, may hang
SCRIPT = Path(long_run.__file__)


@pytest.fixture
def every_step(monkeypatch):
    """A file after every step."""
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", 0)


def plans():
    """One plan of every kind of method, on one ladder."""
    problem = Problem(beta=1.0, mu=0.25, d0=2.0, gamma=3.0, c=1.0)
    h = biased(lambda y: np.array([1.0, 0.5, 0.25]) * (y - 1), 3.0, 1.0, range(1, 12))
    every = {m: plan(problem, 0.1, m) for m in ("multilevel", "fixed", "accelerated", "scheduled")}
    every["tail"] = Plan.by_hand(Telescope(h, {2: 1.0, 4: 0.3, 8: 0.1}), 0.5, 400, window=90)
    return h, every


def stopped(h, y0, p, path, step, **options):
    """The beginning of a run, up to a step."""
    return minimize(h, y0, p, callback=lambda s: s.step >= step, checkpoint=path, **options)


# --- checkpoints -----------------------------------------------------------------------------------------------


METHODS = ["multilevel", "fixed", "accelerated", "scheduled", "tail"]


@pytest.mark.parametrize("method", METHODS)
def test_a_resumed_run_ends_with_the_bits_of_the_unbroken_one(method, tmp_path):
    h, every = plans()
    p, y0 = every[method], np.zeros(3)
    whole = bits(minimize(h, y0, p, rng=5, loss=loss_of_three))
    first = p.stages[0].steps
    for step in sorted({1, 2, 3, 5, 8, 255, 256, 257, first, first + 1, p.steps // 2, p.steps - 1}):
        if 0 < step < p.steps:
            path = tmp_path / f"{method}{step}"
            assert stopped(h, y0, p, path, step, rng=5, loss=loss_of_three).nit == step
            assert bits(minimize(h, y0, p, rng=5, loss=loss_of_three, checkpoint=path)) == whole, (
                step
            )
    again = minimize(
        h, y0, p, rng=5, loss=loss_of_three, checkpoint=path
    )  # the file of a run that is done
    assert (bits(again), again.status) == (whole, "done")
    assert (
        minimize(h, y0, p, rng=6, loss=loss_of_three).cost_by_level.keys()
        == again.cost_by_level.keys()
    )


def loss_of_three(y):
    return float(np.array([1.0, 0.5, 0.25]) @ (y - 1) ** 2)


def test_the_bits_do_not_depend_on_when_files_are_written(tmp_path, every_step):
    h, y0, p = setting(100)
    assert bits(minimize(h, y0, p, rng=1, loss=loss)) == bits(
        minimize(h, y0, p, rng=1, loss=loss, checkpoint=tmp_path / "a")
    )
    assert [f.name for f in tmp_path.iterdir()] == ["a"]  # nothing else is left


@pytest.mark.parametrize(
    "generator", [np.random.MT19937, np.random.SFC64, np.random.Philox, np.random.PCG64DXSM]
)
def test_every_generator_of_numpy_is_kept(generator, tmp_path):
    h, y0, p = setting(600)
    rng = lambda: np.random.Generator(generator(3))  # noqa: E731
    whole = minimize(h, y0, p, rng=rng())
    stopped(h, y0, p, tmp_path / "a", 300, rng=rng())
    assert bits(minimize(h, y0, p, rng=rng(), checkpoint=tmp_path / "a")) == bits(whole)
    stopped(h, y0, p, tmp_path / "b", 300, rng=rng())
    assert bits(minimize(h, y0, p, checkpoint=tmp_path / "b")) == bits(
        whole
    )  # the generator comes from the file


@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
def test_killed_at_random_moments_and_resumed_it_ends_with_the_same_bits(tmp_path):
    steps = 20_000
    h, y0, p = setting(steps)
    whole = bits(minimize(h, y0, p, rng=7, loss=loss))
    path, out = tmp_path / "file", tmp_path / "result"
    command = [sys.executable, str(SCRIPT), str(path), str(out), str(steps), "0.001"]
    met = [killed(command, path, int(n)) for n in np.random.default_rng(11).integers(1, 9, 4)]
    subprocess.run(command, check=True)
    assert met == [True] * 4
    assert out.read_bytes() == whole


def test_a_failed_level_can_be_mended_and_the_run_resumed(tmp_path):
    h, y0, p = setting(400)
    calls = 0

    def evaluate(k, y):
        nonlocal calls
        calls += k == 2
        if calls == 3:
            raise ConnectionError("the licence server is away")
        return long_run.evaluate(k, y)

    r = minimize(replace(h, evaluate=evaluate), y0, p, rng=2, checkpoint=tmp_path / "a")
    assert (r.status, type(r.error.__cause__)) == ("failed", ConnectionError)
    mended = minimize(h, y0, p, rng=2, checkpoint=tmp_path / "a")
    whole = minimize(h, y0, p, rng=2)
    assert np.array_equal(mended.y, whole.y)
    assert mended.nfev > whole.nfev  # what failed was paid for, too


def test_a_budget_can_be_raised_and_the_run_resumed(tmp_path):
    h, y0, p = setting(400)
    whole = minimize(h, y0, p, rng=2)
    for share in (0.1, 0.2, 0.21, 0.6):
        part = minimize(h, y0, p, rng=2, checkpoint=tmp_path / "a", max_cost=share * whole.cost)
        assert part.status == "budget"
        assert part.cost <= share * whole.cost
    assert bits(minimize(h, y0, p, rng=2, checkpoint=tmp_path / "a")) == bits(whole)


def test_an_interrupted_run_is_resumed_from_its_last_file(tmp_path, every_step):
    h, y0, p = setting(100)
    calls = 0

    def evaluate(k, y):
        nonlocal calls
        calls += 1
        if calls == 60:
            raise KeyboardInterrupt
        return long_run.evaluate(k, y)

    with pytest.raises(KeyboardInterrupt) as caught:
        minimize(replace(h, evaluate=evaluate), y0, p, rng=2, checkpoint=tmp_path / "a")
    assert 30 < caught.value.result.nit < 60
    assert bits(minimize(h, y0, p, rng=2, checkpoint=tmp_path / "a")) == bits(
        minimize(h, y0, p, rng=2)
    )


@pytest.mark.parametrize("method", ["multilevel", "accelerated"])
@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor(2)])
def test_a_plan_on_the_way_of_a_run_without_one_shares_its_bill_and_is_resumed(
    method, executor, tmp_path, monkeypatch
):
    h, every = plans()
    calls, last = 0, 0

    def evaluate(k, y):
        nonlocal calls
        calls += 1
        if calls == last:
            raise KeyboardInterrupt
        return h.evaluate(k, y)

    def two_plans(run, memory):
        y = memory.y
        for _ in range(2):
            y = run.part(every[method], y, allowed=1e9)
        memory.output = y - run.value(3, y)
        run.made()

    monkeypatch.setattr(descent, "chosen", two_plans)
    counted = replace(h, evaluate=evaluate)
    whole = minimize(counted, np.zeros(3), eps=0.1, rng=5, executor=executor)
    once = minimize(h, np.zeros(3), every[method], rng=5)
    assert whole.nit == whole.trace.step[-1] == 2 * once.nit + 1
    assert (np.diff(whole.trace.step) >= 0).all()
    last = calls // 3
    for _ in range(3):
        calls = 0
        with pytest.raises(KeyboardInterrupt):
            minimize(
                counted, np.zeros(3), eps=0.1, rng=5, checkpoint=tmp_path / "a", executor=executor
            )
    calls, last = 0, 0
    assert bits(minimize(counted, np.zeros(3), eps=0.1, rng=5, checkpoint=tmp_path / "a")) == bits(
        whole
    )
    assert (
        calls < 15
    )  # what the third life left, and the first gradients of the run and its plans in four lives
    assert minimize(h, np.zeros(3), eps=0.1, rng=5, max_cost=whole.cost / 3).cost <= whole.cost / 3


def other_problems():
    h, y0, p = setting(400)
    return {
        "set of levels": (Hierarchy(h.evaluate, h.cost, range(5)), y0, p, 2),
        "list of prices": (Hierarchy(h.evaluate, lambda k: 9.0**k, h.levels), y0, p, 2),
        "plan": (h, y0, setting(401)[2], 2),
        "start": (h, y0 + 1e-3, p, 2),
        "gradient there": (
            replace(h, evaluate=lambda k, y: 1.01 * long_run.evaluate(k, y)),
            y0,
            p,
            2,
        ),
        "seed": (h, y0, p, 3),
    }


@pytest.mark.parametrize("what", list(other_problems()))
def test_the_file_of_another_run_is_refused(what, tmp_path):
    h, y0, p = setting(400)
    stopped(h, y0, p, tmp_path / "a", 100, rng=2)
    before = (tmp_path / "a").read_bytes()
    h, y0, p, rng = other_problems()[what]
    with pytest.raises(
        ValueError, match=rf"belongs to another run: it has another .*{what}.*a file of its own"
    ):
        minimize(h, y0, p, rng=rng, checkpoint=tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == before


def damages(content: bytes):
    """A file cut short, with one byte changed in each of many places, of nothing, and of something else."""
    yield b""
    yield b"not a checkpoint"
    yield content[: len(content) // 2]
    yield content[:-1]
    for at in range(40, len(content), len(content) // 60):
        yield content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :]


def test_a_damaged_file_is_refused_or_read_as_it_was(tmp_path):
    """A byte that no reader looks at (a date, say) may change: then what is read is what was written."""
    h, y0, p = setting(400)
    path = tmp_path / "a"
    stopped(h, y0, p, path, 100, rng=2)
    content = path.read_bytes()
    whole, refused, read, count = bits(minimize(h, y0, p, rng=2)), 0, 0, 0
    for damaged in damages(content):
        count += 1
        path.write_bytes(damaged)
        try:
            found = bits(minimize(h, y0, p, rng=2, checkpoint=path))
        except ValueError as error:
            refused += "damaged" in str(error)
        else:
            assert found == whole
            read += 1
    assert refused + read == count
    assert refused > 0.8 * count


def test_a_file_is_data_and_never_code(tmp_path):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    h, y0, p = setting(400)
    stopped(h, y0, p, tmp_path / "a", 100, rng=2)
    with zipfile.ZipFile(tmp_path / "a") as file:
        names = file.namelist()
        text = np.frombuffer(file.read("text.npy")[128:], np.uint8).tobytes()
    assert {n.split(".")[1] for n in names} == {"npy"}
    assert json.loads(text)["format"] == checkpoints.FORMAT
    for trap in (pickle.dumps(Trap()), None):
        if trap is None:
            np.savez(tmp_path / "trap.npz", text=np.array([Trap()], object), checksum=np.zeros(1))
        else:
            (tmp_path / "trap.npz").write_bytes(trap)
        with pytest.raises(ValueError, match="damaged or not one of mlgd's"):
            minimize(h, y0, p, rng=2, checkpoint=tmp_path / "trap.npz")
    assert not (tmp_path / "sprung").exists()


def test_a_full_disk_does_not_end_a_run(tmp_path, every_step, monkeypatch):
    h, y0, p = setting(100)
    written, save = 0, checkpoints.save

    def full(path, content):
        nonlocal written
        written += 1
        if written > 10:
            raise OSError(28, "No space left on device")
        save(path, content)

    monkeypatch.setattr(checkpoints, "save", full)
    r = minimize(h, y0, p, rng=2, checkpoint=tmp_path / "a")
    assert r.status == "done"
    assert "No space left on device" in r.message
    assert np.array_equal(r.y, minimize(h, y0, p, rng=2).y)


# --- executors -------------------------------------------------------------------------------------------------

OFTEN = (1.0, 0.6, 0.5, 0.4)


def test_the_same_bits_on_every_executor():
    h, y0, p = setting(200, OFTEN)
    here = minimize(h, y0, p, rng=4)
    for executor in (ThreadPoolExecutor(4), ProcessPoolExecutor(2, SPAWN)):
        with executor:
            there = minimize(h, y0, p, rng=4, executor=executor)
            assert bits(there) == bits(here)
            assert there.message == here.message


def test_the_levels_of_a_call_are_evaluated_at_once():
    h, y0, p = setting(20, (1.0, 0.999, 0.999, 0.999))
    inside, most = 0, 0

    def evaluate(k, y):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.005)
        inside -= 1
        return long_run.evaluate(k, y)

    with ThreadPoolExecutor(4) as executor:
        minimize(replace(h, evaluate=evaluate), y0, p, rng=4, executor=executor)
    assert most > 1


def test_a_worker_that_dies_loses_nothing():
    h, y0, p = setting(200, OFTEN)
    mortal = replace(h, evaluate=long_run.Dies(os.getpid()))
    with ProcessPoolExecutor(2, SPAWN) as executor:
        r = minimize(mortal, y0, p, rng=4, executor=executor)
    assert r.status == "done"
    assert "the executor failed (BrokenProcessPool" in r.message
    here = minimize(h, y0, p, rng=4)
    assert bits(r) == bits(here)  # the price, too


def test_an_executor_that_can_not_take_the_problem_is_done_without():
    h, y0, p = setting(50, OFTEN)
    unpicklable = replace(h, evaluate=lambda k, y: long_run.evaluate(k, y))
    with ProcessPoolExecutor(1, SPAWN) as executor:
        r = minimize(unpicklable, y0, p, rng=4, executor=executor)
    assert r.status == "done"
    assert "went on without it" in r.message


def test_a_level_that_fails_on_an_executor_is_named():
    h, y0, p = setting(200, OFTEN)

    def evaluate(k, y):
        if k == 3:
            raise ZeroDivisionError("mine")
        return long_run.evaluate(k, y)

    with ThreadPoolExecutor(2) as executor:
        r = minimize(replace(h, evaluate=evaluate), y0, p, rng=4, executor=executor)
    assert r.status == "failed"
    assert "level 3 raised ZeroDivisionError: mine" in r.message


class Lazy:
    """An executor of concurrent.futures' shape that breaks at its second call."""

    calls = 0

    def submit(self, function, *arguments):
        self.calls += 1
        if self.calls > 3:
            raise BrokenExecutor("gone")
        return ThreadPoolExecutor(1).submit(function, *arguments)


def test_any_executor_of_that_shape_will_do():
    h, y0, p = setting(60, OFTEN)
    r = minimize(h, y0, p, rng=4, executor=Lazy())
    assert bits(r) == bits(minimize(h, y0, p, rng=4))
    assert "BrokenExecutor: gone" in r.message


@pytest.mark.slow
def test_dasks_executor_will_do():
    distributed = pytest.importorskip("distributed")
    h, y0, p = setting(40, OFTEN)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(
                n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
            ) as c,
            distributed.Client(c) as client,
        ):
            r = minimize(h, y0, p, rng=4, executor=client.get_executor())
    assert bits(r) == bits(minimize(h, y0, p, rng=4))
    assert "executor" not in r.message


# --- pickles, logs, progress -----------------------------------------------------------------------------------


def test_hierarchies_and_results_are_pickled():
    h, y0, p = setting(50)
    assert bits(minimize(pickle.loads(pickle.dumps(h)), y0, p, rng=1)) == bits(
        minimize(h, y0, p, rng=1)
    )
    r = pickle.loads(pickle.dumps(minimize(h, y0, p, rng=1)))
    assert r.status == "done"
    broken = replace(h, evaluate=fails_later)
    r = minimize(broken, y0 + 1, p, rng=1)
    assert isinstance(pickle.loads(pickle.dumps(r)).error, LevelError)


def fails_later(k, y):
    return long_run.evaluate(k, y) if k < 1 else np.full(y.shape, np.nan)


def test_a_run_is_logged(caplog, tmp_path):
    h, y0, p = setting(50)
    with caplog.at_level(logging.INFO, logger="mlgd"):
        stopped(h, y0, p, tmp_path / "a", 20, rng=1)
        minimize(h, y0, p, rng=1, checkpoint=tmp_path / "a")
    said = caplog.text
    for words in (
        "by hand: 50 steps",
        "stopped after 20 steps",
        "resumed from",
        "done after 50 steps",
    ):
        assert words in said


@pytest.mark.parametrize("installed", [True, False])
def test_progress_says_how_far_and_how_long(installed, capsys, monkeypatch):
    if not installed:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    h, y0, p = setting(50)
    minimize(h, y0, p, rng=1)
    assert capsys.readouterr() == ("", "")
    minimize(h, y0, p, rng=1, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    for words in ("100%", "price", *(() if installed else ("50 of 50 steps (100%)", "0 s left"))):
        assert words in err
    assert ("left" in err) == (not installed)
