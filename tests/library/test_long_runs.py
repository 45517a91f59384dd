"""Runs that are killed, interrupted, resumed, moved to other processes: always the same bits."""

import json
import logging
import os
import pickle
import subprocess
import sys
import zipfile
from dataclasses import replace
from itertools import count
from pathlib import Path

import long_run
import numpy as np
import pytest
from kills import killed
from long_run import bits, loss, setting

from mlgd import Hierarchy, LevelError, Problem, checkpoint, minimize, plan
from mlgd.examples import biased
from mlgd.flow import flow
from mlgd.hierarchy import dyadic

SCRIPT = Path(long_run.__file__)


@pytest.fixture
def every_step(monkeypatch):
    """A file after every step."""
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    monkeypatch.setattr(checkpoint, "SPACING", 0)


def plans():
    """One plan of every kind of method, on one ladder."""
    problem = Problem(beta=1.0, mu=0.25, d0=2.0, gamma=3.0, c=1.0)
    h = biased(lambda y: np.array([1.0, 0.5, 0.25]) * (y - 1), 3.0, 1.0, range(1, 12))
    every = {
        m: plan(problem, 0.1, m)
        for m in ("multilevel", "fixed", "accelerated", "scheduled")
    }
    every["tail"] = replace(every["multilevel"], window=9)
    return h, every


def stopped(h, y0, p, path, step, **options):
    """The beginning of a run, up to a step."""
    return p.run(h, y0, callback=lambda s: s.step >= step, checkpoint=path, **options)


# --- checkpoint ---


@pytest.mark.parametrize(
    "method", ["multilevel", "fixed", "accelerated", "scheduled", "tail"]
)
def test_a_resumed_run_ends_with_the_bits_of_the_unbroken_one(method, tmp_path):
    h, every = plans()
    p, y0, options = (
        every[method],
        np.zeros(3),
        {"rng": 5, "loss": lambda y: float(y @ y)},
    )
    whole, first = bits(p.run(h, y0, **options)), p.stages[0].steps
    for step in sorted(
        {1, 2, 8, 255, 256, 257, first, first + 1, p.steps // 2, p.steps - 1}
    ):
        if 0 < step < p.steps:
            path = tmp_path / f"{method}{step}"
            assert stopped(h, y0, p, path, step, **options).nit == step
            assert bits(p.run(h, y0, checkpoint=path, **options)) == whole, step
    again = p.run(h, y0, checkpoint=path, **options)  # the file of a run that is done
    assert (bits(again), again.status) == (whole, "done")


def test_the_bits_do_not_depend_on_when_files_are_written(tmp_path, every_step):
    h, y0, p = setting(100)
    watched = p.run(h, y0, rng=1, loss=loss, checkpoint=tmp_path / "a")
    assert bits(watched) == bits(p.run(h, y0, rng=1, loss=loss))
    assert [f.name for f in tmp_path.iterdir()] == ["a"]  # nothing else is left


@pytest.mark.parametrize(("ticks", "apart"), [(16, 103), (128, 131)])
def test_files_keep_their_distance(ticks, apart, tmp_path, monkeypatch):
    """A second, or fifty times what one takes, by a clock that ticks when it is read."""
    clock, flushed = count(), []
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: next(clock) / ticks)
    monkeypatch.setattr(checkpoint.os, "fsync", lambda _: flushed.append(next(clock)))
    h, y0, p = setting(400)
    p.run(h, y0, rng=1, checkpoint=tmp_path / "a")
    assert set(np.diff(flushed)[:-1]) == {apart}


@pytest.mark.parametrize("generator", ["MT19937", "SFC64", "Philox", "PCG64DXSM"])
def test_every_generator_of_numpy_is_kept(generator, tmp_path):
    h, y0, p = setting(600)
    rng = lambda: np.random.Generator(getattr(np.random, generator)(3))  # noqa: E731
    whole = bits(p.run(h, y0, rng=rng()))
    for name, seed in (
        ("a", rng),
        ("b", lambda: None),
    ):  # None: the generator of the file
        stopped(h, y0, p, tmp_path / name, 300, rng=rng())
        assert bits(p.run(h, y0, rng=seed(), checkpoint=tmp_path / name)) == whole


@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
@pytest.mark.parametrize(
    ("kills", "steps"),
    [(3, 6_000), (4, 0), pytest.param(20, 40_000, marks=pytest.mark.slow)],
)
def test_killed_at_random_moments_and_resumed_it_ends_with_the_same_bits(
    kills, steps, tmp_path
):
    whole = bits(long_run.run(steps))
    path, out = tmp_path / "file", tmp_path / "result"
    command = [sys.executable, str(SCRIPT), str(path), str(out), str(steps), "0.001"]
    met = [
        killed(command, path, int(n))
        for n in np.random.default_rng(11).integers(1, 9 if steps else 4, kills)
    ]
    subprocess.run(command, check=True)
    assert met == [True] * kills
    assert out.read_bytes() == whole


def test_a_budget_can_be_raised_and_the_run_resumed(tmp_path):
    h, y0, p = setting(400)
    whole = p.run(h, y0, rng=2)
    for share in (0.1, 0.2, 0.21, 0.6):
        part = p.run(h, y0, rng=2, checkpoint=tmp_path / "a", max_cost=share * whole.cost)
        assert part.status == "budget"
        assert part.cost <= share * whole.cost
    again = replace(p, eps=0.1)  # what a plan promises is not what it does
    assert bits(again.run(h, y0, rng=2, checkpoint=tmp_path / "a")) == bits(whole)


@pytest.mark.parametrize(
    "fault", [KeyboardInterrupt, ConnectionError("the licence is away")]
)
def test_an_interrupted_or_failed_run_is_resumed_from_its_last_file(
    fault, tmp_path, every_step
):
    h, y0, p = setting(100)
    calls = 0

    def evaluate(k, y):
        nonlocal calls
        calls += 1
        if calls == 60:
            raise fault
        return long_run.evaluate(k, y)

    try:
        part = p.run(replace(h, evaluate=evaluate), y0, rng=2, checkpoint=tmp_path / "a")
    except KeyboardInterrupt as caught:
        part = caught.result
    assert part.status == ("stopped" if fault is KeyboardInterrupt else "failed")
    assert 30 < part.nit < 60
    resumed = p.run(h, y0, rng=2, checkpoint=tmp_path / "a")
    assert bits(resumed) == bits(p.run(h, y0, rng=2))


H, Y0, P = setting(400)
OTHERS = {
    "set of levels": (Hierarchy(H.evaluate, H.cost, range(5), dyadic), Y0, P, 2),
    "list of prices": (
        Hierarchy(H.evaluate, lambda k: 9.0**k, H.levels, dyadic),
        Y0,
        P,
        2,
    ),
    "levels": (replace(H, exact=True), Y0, P, 2),
    "plan": (H, Y0, setting(401)[2], 2),
    "start": (H, Y0 + 1e-3, P, 2),
    "gradient there": (
        replace(H, evaluate=lambda k, y: 1.01 * H.evaluate(k, y)),
        Y0,
        P,
        2,
    ),
    "seed": (H, Y0, P, 3),
}


@pytest.mark.parametrize("what", OTHERS)
def test_the_file_of_another_run_is_refused(what, tmp_path):
    stopped(H, Y0, P, tmp_path / "a", 100, rng=2)
    before = (tmp_path / "a").read_bytes()
    h, y0, p, rng = OTHERS[what]
    words = f"belongs to another run: it has another .*{what}.*a file of its own"
    with pytest.raises(ValueError, match=words):
        p.run(h, y0, rng, checkpoint=tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == before


def test_a_damaged_file_is_refused_or_read_as_it_was(tmp_path):
    """A byte that no reader looks at (a date, say) may change: what is read is what was written."""
    h, y0, p = setting(400)
    path = tmp_path / "a"
    stopped(h, y0, p, path, 100, rng=2)
    content = path.read_bytes()
    damages = [b"", b"not a checkpoint", content[: len(content) // 2], content[:-1]]
    for at in range(40, len(content), len(content) // 60):
        damages.append(content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :])
    whole, refused = bits(p.run(h, y0, rng=2)), 0
    for damaged in damages:
        path.write_bytes(damaged)
        try:
            assert bits(p.run(h, y0, rng=2, checkpoint=path)) == whole
        except ValueError as error:
            refused += "damaged" in str(error)
    assert refused > 0.8 * len(damages)


def test_a_file_is_data_and_never_code_and_of_this_version(tmp_path, monkeypatch):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    h, y0, p = setting(400)
    stopped(h, y0, p, tmp_path / "a", 100, rng=2)
    with zipfile.ZipFile(tmp_path / "a") as file:
        names = file.namelist()
        text = np.frombuffer(file.read("text.npy")[128:], np.uint8).tobytes()
    assert {n.split(".")[1] for n in names} == {"npy"}
    assert json.loads(text)["format"] == checkpoint.FORMAT
    for trap in (pickle.dumps(Trap()), None):
        if trap is None:
            np.savez(
                tmp_path / "trap.npz",
                text=np.array([Trap()], object),
                checksum=np.zeros(1),
            )
        else:
            (tmp_path / "trap.npz").write_bytes(trap)
        with pytest.raises(ValueError, match="damaged, or not one of this version"):
            p.run(h, y0, rng=2, checkpoint=tmp_path / "trap.npz")
    assert not (tmp_path / "sprung").exists()
    monkeypatch.setattr(checkpoint, "FORMAT", "that of another version")
    with pytest.raises(ValueError, match="not one of this version"):
        p.run(h, y0, rng=2, checkpoint=tmp_path / "a")
    monkeypatch.setattr(
        np, "load", lambda *_, **__: (_ for _ in ()).throw(PermissionError)
    )
    with pytest.raises(PermissionError):  # nothing is damaged
        p.run(h, y0, rng=2, checkpoint=tmp_path / "a")


def test_a_full_disk_does_not_end_a_run(tmp_path, every_step, monkeypatch):
    h, y0, p = setting(100)
    written, save = 0, checkpoint.save

    def full(path, content):
        nonlocal written
        written += 1
        if written > 10:
            raise OSError(28, "No space left on device")
        save(path, content)

    monkeypatch.setattr(checkpoint, "save", full)
    with pytest.warns(UserWarning, match="No space left on device"):
        r = p.run(h, y0, rng=2, checkpoint=tmp_path / "a")
    assert r.status == "ended"
    assert np.array_equal(r.y, p.run(h, y0, rng=2).y)


# --- pickles, logs, progress ---


def test_hierarchies_and_results_are_pickled():
    h, y0, p = setting(50)
    copy = p.run(pickle.loads(pickle.dumps(h)), y0, rng=1)
    assert bits(pickle.loads(pickle.dumps(copy))) == bits(p.run(h, y0, rng=1))
    failed = p.run(replace(h, evaluate=fails_later), y0 + 1, rng=1)
    assert isinstance(pickle.loads(pickle.dumps(failed)).error, LevelError)


def fails_later(k, y):
    return long_run.evaluate(k, y) if k < 1 else np.full(y.shape, np.nan)


def test_a_run_is_logged(caplog, tmp_path):
    h, y0, p = setting(50)
    with caplog.at_level(logging.INFO, logger="mlgd"):
        stopped(h, y0, p, tmp_path / "a", 20, rng=1)
        p.run(h, y0, rng=1, checkpoint=tmp_path / "a")
        decided = minimize(h, y0, eps=0.1).decisions
    for words in (
        "stopped after 20 steps",
        "resumed from",
        "ended after 50 steps",
        *decided,
    ):
        assert words in caplog.text


def test_progress_says_how_far_and_what_was_paid(capsys):
    h, y0, p = setting(50)
    p.run(h, y0, rng=1)
    flow(h, y0, [1.0], 9.0)
    assert capsys.readouterr() == ("", "")
    p.run(h, y0, rng=1, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    for words in ("100%", "50/50", "price"):
        assert words in err


def test_a_seed_that_is_not_given_again_stays_that_of_the_file(tmp_path, every_step):
    h, y0, p = setting(100)
    stopped(h, y0, p, tmp_path / "a", 20, rng=2)
    stopped(h, y0, p, tmp_path / "a", 40)
    assert bits(p.run(h, y0, rng=2, checkpoint=tmp_path / "a")) == bits(
        p.run(h, y0, rng=2)
    )
