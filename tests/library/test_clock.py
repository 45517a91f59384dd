"""What a run does by the clock, with a clock of our own: the line it shows, how often it looks, when it writes a file."""

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from mlgd import Hierarchy, Problem, Telescope, checkpoints, minimize, runs, tuned
from mlgd.checkpoints import Keeper
from mlgd.runs import Bar


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


def test_the_line_says_how_far_and_how_long(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    stream = Stream()
    monkeypatch.setattr(runs, "sys", SimpleNamespace(stderr=stream))
    clock = Clock(0.0)
    monkeypatch.setattr(runs, "time", clock)
    bar = Bar(100, 20)  # resumed at step 20
    clock.now += 12.0
    bar.show(50, 1234.5)
    assert bar.due == pytest.approx(clock.now + 0.2)
    bar.show(100, 2000.0, last=True)
    bar = Bar(7, 7)
    clock.now += 3.0
    bar.show(7, 1.0)
    assert stream.pushed == (
        "\r50 of 100 steps (50%), price 1.23e+03, 20 s left \r100 of 100 steps (100%), price 2e+03, 0 s left \n"
        "\r7 of 7 steps (100%), price 1, 0 s left "
    )


def test_a_file_is_written_every_second_or_every_fifty_times_what_it_took(tmp_path, monkeypatch):
    for took, wait in ((0.001, 1.0), (0.5, 25.0)):
        clock = Clock(took)
        monkeypatch.setattr(checkpoints, "time", clock)
        keeper = Keeper(tmp_path / "file")
        assert keeper.write({"a": 1}) == ""
        assert keeper.due == pytest.approx(clock.now + wait)


@pytest.mark.parametrize(("tick", "looks"), [(0.0, 204), (0.019, 204), (0.021, 2000), (1.0, 2000)])
def test_the_clock_is_looked_at_more_often_where_steps_are_slow(tick, looks, tmp_path, monkeypatch):
    """At steps 1, 2, 4, 8, 10 and then at every record, each ten steps, where two looks are within a fiftieth of a second."""
    h = Hierarchy(lambda k, y: y, lambda k: 1.0, [0])
    clock = Clock(tick)
    monkeypatch.setattr(runs, "time", clock)
    by_hand = tuned(Problem(beta=1, mu=1, d0=1, gamma=3, c=1), 0.1, Telescope(h, [1.0]), 0.5, 2000)
    monkeypatch.setattr(Keeper, "write", lambda self, content: "")
    assert minimize(h, np.ones(1), by_hand, rng=0, checkpoint=tmp_path / "file").status == "done"
    assert clock.looks == looks


def test_a_bar_and_a_file_wait_for_their_time(tmp_path, monkeypatch):
    clock = Clock(1 / 16)
    monkeypatch.setattr(runs, "time", clock)
    shown, written = [], []
    bar = SimpleNamespace(due=0.0)
    bar.show = lambda step, price, last=False: (shown.append(step), setattr(bar, "due", clock.now + 1.0))
    monkeypatch.setattr(runs, "Bar", lambda steps, step: bar)
    monkeypatch.setattr(
        Keeper,
        "write",
        lambda self, content: written.append(content["state"][0]) or setattr(self, "due", clock.now + 2.0),
    )
    h = Hierarchy(lambda k, y: y, lambda k: 1.0, [0])
    by_hand = tuned(Problem(beta=1, mu=1, d0=1, gamma=3, c=1), 0.1, Telescope(h, [1.0]), 0.5, 100)
    minimize(h, np.ones(1), by_hand, rng=0, checkpoint=tmp_path / "file", progress=True)
    assert np.diff(shown[:-1]).tolist() == [16] * (len(shown) - 2)  # one second is sixteen steps
    assert np.diff(written[1:-1]).tolist() == [32] * (len(written) - 3)
