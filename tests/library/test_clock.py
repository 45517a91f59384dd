"""What a run does by the clock, with a clock of our own: the line it shows, how often it looks, when it writes a file."""

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from mlgd import Hierarchy, Plan, Telescope, checkpoints, minimize, runs
from mlgd.checkpoints import Keeper, save


class Clock:
    """Every look takes a while."""

    def __init__(self, tick: float):
        self.now, self.tick, self.looks = 100.0, tick, 0

    def monotonic(self) -> float:
        self.looks += 1
        self.now += self.tick
        return self.now


class Stream(io.StringIO):
    """Knows what was pushed out."""

    def flush(self):
        self.pushed = self.getvalue()


def by_hand(steps):
    h = Hierarchy(lambda k, y: y, lambda k: 1.0, [0])
    return (
        h,
        np.ones(1),
        Plan.by_hand(Telescope(h, [1.0]), 0.5, steps),
    )


def test_the_line_says_how_far_and_how_long(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(Keeper, "write", lambda self, content: save(self.path, content) or "")
    minimize(
        *by_hand(100), rng=0, checkpoint=tmp_path / "file", callback=lambda state: state.step == 20
    )
    stream, clock = Stream(), Clock(0.0)
    monkeypatch.setattr(runs, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setattr(runs, "time", clock)

    def wait(state):  # after the line of the step before
        clock.now += {49: 12.0, 50: 0.125, 51: 0.125}.get(state.step, 0.0)

    minimize(*by_hand(100), rng=0, checkpoint=tmp_path / "file", callback=wait, progress=True)
    assert stream.pushed.split("\r")[1:] == [
        "21 of 100 steps (21%), price 21, 0 s left ",  # resumed at step 20
        "50 of 100 steps (50%), price 50, 20 s left ",
        "52 of 100 steps (52%), price 52, 18 s left ",  # not before a fifth of a second is over
        "100 of 100 steps (100%), price 100, 0 s left \n",
    ]


def test_a_file_is_written_every_second_or_every_fifty_times_what_it_took(tmp_path, monkeypatch):
    for took, wait in ((0.001, 1.0), (0.5, 25.0)):
        clock = Clock(took)
        monkeypatch.setattr(checkpoints, "time", clock)
        keeper = Keeper(tmp_path / "file")
        assert keeper.write({"a": 1}) == ""
        assert keeper.due == pytest.approx(clock.now + wait)


def test_the_clock_is_looked_at_once_a_step_where_someone_waits_for_it(tmp_path, monkeypatch):
    monkeypatch.setattr(Keeper, "write", lambda self, content: setattr(self, "due", np.inf) or "")
    for options, looks in (
        ({}, 1),
        ({"checkpoint": tmp_path / "file"}, 2002),
    ):  # at the beginning, and then where a file waits
        clock = Clock(0.0)
        monkeypatch.setattr(runs, "time", clock)
        assert minimize(*by_hand(2000), rng=0, **options).status == "done"
        assert clock.looks == looks


def test_a_file_waits_for_its_time(tmp_path, monkeypatch):
    clock, written = Clock(1 / 16), []
    monkeypatch.setattr(runs, "time", clock)

    def write(self, content):
        written.append(content["memory"].step)
        self.due = clock.now + 2.0

    monkeypatch.setattr(Keeper, "write", write)
    minimize(*by_hand(100), rng=0, checkpoint=tmp_path / "file")
    assert np.diff(written[1:-1]).tolist() == [32] * (len(written) - 3)  # two seconds are 32 steps
