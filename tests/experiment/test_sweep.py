"""The sweep: closed forms against literal execution, the frontier, executors, storage, the command."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import numpy as np
import pytest

from mlgd.experiment import direct
from mlgd.experiment.features import Design, reduce
from mlgd.experiment.frontier import (
    across_seeds,
    fixed_frontier,
    fixed_level,
    fixed_steps,
    power_law,
    probabilities,
    rate,
    telescope_frontier,
)
from mlgd.experiment.protocol import SeedResult, run_seed
from mlgd.experiment.sweep import Dots, Protocol, Store, main, sweep, version
from mlgd.experiment.trajectory import Reached, Trajectory, prices

LADDER = (1, 4, 16, 64)
TARGETS = np.logspace(-0.3, -1.5, 10)
TINY = Protocol(m=96, n=1024, ladder=(1, 4, 16), seeds=(0, 1, 2), max_flops=2e6, max_steps=2000, scales=(1, 4))


@pytest.fixture(scope="module")
def problem():
    return reduce([Design(m=256, n=2048, seed=3)], 64)[0]


@pytest.fixture(scope="module")
def columns(problem):
    return problem.design.columns(64)


@pytest.fixture(scope="module")
def biases(problem):
    return problem.biases(LADDER).max(axis=0)


def run_whole(problem, p, eta, exact, steps, goal=np.inf):
    run = Trajectory(problem, LADDER, p, eta, exact, (int(exact), 0, 0))
    parts = []
    while run.steps < steps:
        parts.append(run.advance(goal, steps - run.steps))
    return run, parts


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("scale", [1, 2, 8, 1000])
def test_gram_space_is_the_literal_run(problem, columns, biases, exact, scale):
    p, eta = probabilities(biases, 3.0, scale), 1 / (4 * problem.smoothness(64))
    literal = direct.telescope(columns, problem.right, LADDER, p, eta, exact, 3, (int(exact), 0, 0), 3000)
    _, parts = run_whole(problem, p, eta, exact, 3000)
    np.testing.assert_allclose(np.concatenate([q.last for q in parts]), literal.last, rtol=1e-9)
    np.testing.assert_allclose(np.concatenate([q.average for q in parts]), literal.average, rtol=1e-9)
    np.testing.assert_array_equal(np.concatenate([q.flops for q in parts]), literal.flops)


def test_averages_left_unread_were_above_the_goal(problem, biases):
    p, eta = probabilities(biases, 3.0, 1), 1 / (4 * problem.smoothness(64))
    _, read = run_whole(problem, p, eta, True, 20_000)
    goal = np.concatenate([q.average for q in read]).min() * 0.5
    _, sparse = run_whole(problem, p, eta, True, 20_000, goal)
    unread = [j for j, q in enumerate(sparse) if q.average is None]
    assert unread  # the test is worth something only if some chunks were passed over
    for full, some in zip(read, sparse, strict=True):
        if some.average is None:
            assert full.average.min() > goal
        else:
            np.testing.assert_allclose(some.average, full.average, rtol=1e-9)


def test_fixed_level_first_steps_are_exact(problem, columns):
    for k in (1, 4, 32):
        for shrink in (1.0, 0.5):
            losses = direct.fixed(columns, problem.right, k, shrink / (4 * problem.smoothness(k)), 2000)
            found = fixed_level(problem, k, shrink, TARGETS)
            for iterate, loss in zip(("last", "average"), losses, strict=True):
                for target, first in zip(TARGETS, found[iterate], strict=True):
                    below = np.flatnonzero(loss <= target * problem.loss_zero)
                    assert first == below[0] + 1 if len(below) else first > 2000


def test_frontier_is_the_cheapest_run(problem, columns, biases):
    eta = 1 / (4 * problem.smoothness(64))
    budget, steps = 3e7, 4000
    for exact in (True, False):
        best = {e: np.full(len(TARGETS), np.inf) for e in (1, 50)}
        for i, scale in enumerate((1, 8)):
            for j, shrink in enumerate((1.0, 0.5)):
                p = probabilities(biases, 3.0, scale)
                run = direct.telescope(
                    columns, problem.right, LADDER, p, shrink * eta, exact, 3, (int(exact), i, j), steps
                )
                for every, cheapest in best.items():
                    for loss in (run.last, run.average):
                        for t, target in enumerate(TARGETS):
                            hit = np.flatnonzero(
                                (loss <= target * problem.loss_zero) & (np.arange(1, steps + 1) % every == 0)
                            )
                            if len(hit) and run.flops[hit[0]] < budget:
                                cheapest[t] = min(cheapest[t], run.flops[hit[0]])
        found = telescope_frontier(
            problem, LADDER, (1, 8), exact, TARGETS, (0, 1, 4, 20, 89, 400), (1.0, 0.5), steps, budget, (1, 50)
        )
        for every, reached in zip((1, 50), found, strict=True):
            sure = best[every] < budget / 2
            assert sure.sum() >= 3
            np.testing.assert_array_equal(reached.flops[sure], best[every][sure])


def test_targets_below_the_floor_are_never_reached(problem):
    low = np.array([0.4, problem.floor(64) * 0.99])
    for reached in telescope_frontier(problem, LADDER, (1,), True, low, (0, 1), max_flops=1e7):
        assert np.isfinite(reached.flops[0])
        assert np.isinf(reached.flops[1])
    assert np.isinf(fixed_frontier(fixed_steps(problem, LADDER, low), 256).flops[1])


def test_limits_and_reading_intervals_only_cost(problem):
    steps = fixed_steps(problem, LADDER, TARGETS)
    free, limited, coarse = (fixed_frontier(steps, 256, **o).flops for o in ({}, {"max_steps": 300}, {"every": 100}))
    assert (limited >= free).all()
    assert (coarse >= free).all()
    assert (limited > free).any()
    assert (coarse > free).any()


def test_prices_are_the_paper_s():
    drawn = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 1]], bool)
    # exact: 2m (k + k-) a draw and 2m k_t for the residual; truncated: 4m (k + k-)
    assert prices((1, 8, 64), 10, True, drawn).tolist() == [20 * 2, 20 * (1 + 9 + 8), 20 * (1 + 72 + 64)]
    assert prices((1, 8, 64), 10, False, drawn).tolist() == [40 * 1, 40 * 10, 40 * 73]


def test_a_run_that_diverges_is_stopped(problem):
    run = Trajectory(problem, LADDER, np.array([1, 0.01, 0.001, 0.001]), 2.5, True, (0,))
    for _ in range(20):
        run.advance(0.0)
    assert run.diverged
    with pytest.raises(ValueError, match="coarsest level"):
        Trajectory(problem, LADDER, np.array([0.5, 0.1, 0.1, 0.1]), 0.1, True, (0,))


def test_fits():
    k = np.array([1, 2, 4, 8, 32, 64])
    gamma, r2 = rate(k, 5 * k ** (-1 / 3.0))
    assert gamma == pytest.approx(3)
    assert r2 == pytest.approx(1)
    assert rate(k, np.where(k < 32, 9.0, 5 * k ** (-1 / 3.0)), 32)[0] == pytest.approx(3)
    assert power_law([1, 2, 4], [np.inf, 4, 16])[0] == pytest.approx(2)


def test_medians_need_half_of_the_seeds():
    flops = np.array([[1.0, 1.0, np.inf], [2.0, np.inf, np.inf], [3.0, np.inf, 5.0], [9.0, 2.0, np.inf]])
    low, middle, high = across_seeds(flops)
    assert middle[0] == 2.5
    assert middle[1] == 1.5
    assert np.isnan(middle[2])
    assert low[0] < middle[0] < high[0]


# --- executors and storage ----------------------------------------------------------------------------------


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


def assert_same(a, b):
    assert [r.seed for r in a] == [r.seed for r in b]
    assert all(x.same_numbers(y) for x, y in zip(a, b, strict=True))


@pytest.fixture(scope="module")
def tiny():
    return [run_seed(TINY, seed) for seed in TINY.seeds]


def test_same_numbers_on_every_executor(tiny):
    assert_same(sweep(TINY, Backwards()), tiny)
    with ThreadPoolExecutor(3) as threads:
        assert_same(sweep(TINY, threads), tiny)
    assert not tiny[0].same_numbers(tiny[1])


@pytest.mark.slow
def test_same_numbers_in_processes(tiny):
    assert_same(sweep(TINY), tiny)


@pytest.mark.slow
def test_same_numbers_on_dask_when_a_worker_dies(tmp_path):
    distributed = pytest.importorskip("distributed")
    protocol = Protocol(m=256, n=16384, ladder=(1, 8, 64), seeds=tuple(range(6)), max_flops=2e7)
    killed = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=tmp_path
        ) as cluster,
        distributed.Client(cluster) as client,
    ):

        def kill_one(done, total):
            if done == 2 and not killed:
                victim = next(iter(cluster.workers.values()))
                killed.append(victim.pid)
                os.kill(victim.pid, signal.SIGKILL)

        results = sweep(protocol, client.get_executor(), folder=tmp_path / "results", progress=kill_one)
    assert killed
    with ThreadPoolExecutor(1) as one:
        assert_same(results, sweep(protocol, one))


def test_results_are_stored_and_found_again(tmp_path, tiny):
    calls = []

    class Counting(ThreadPoolExecutor):
        def submit(self, *a):
            calls.append(a)
            return super().submit(*a)

    with Counting(1) as pool:
        assert_same(sweep(TINY, pool, tmp_path), tiny)
        assert_same(sweep(TINY, pool, tmp_path), tiny)
    assert len(calls) == 3
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("damage", ["", "{", '{"made_by": 1}', None])
def test_a_damaged_file_is_named_and_computed_again(tmp_path, tiny, damage):
    store = Store(tmp_path, TINY)
    for result in tiny:
        store.save(result)
    path = store.path(1)
    path.write_text(path.read_text().replace("flops", "fl0ps") if damage is None else damage)
    with ThreadPoolExecutor(1) as pool, pytest.warns(UserWarning, match=path.name):
        assert_same(sweep(TINY, pool, tmp_path), tiny)
    assert store.load(1).same_numbers(tiny[1])


def test_results_of_other_parameters_or_code_are_not_mixed_in(tmp_path, tiny, monkeypatch):
    Store(tmp_path, TINY).save(tiny[0])
    other = Protocol(**{**TINY.__dict__, "rho": 0.5})
    assert Store(tmp_path, other).load(0) is None
    assert Store(tmp_path, Protocol(**{**TINY.__dict__, "seeds": (0,)})).load(0) is not None
    os.replace(Store(tmp_path, TINY).path(0), Store(tmp_path, other).path(0))
    with pytest.warns(UserWarning, match="other parameters"):
        assert Store(tmp_path, other).load(0) is None
    Store(tmp_path, TINY).save(tiny[0])
    monkeypatch.setattr("mlgd.experiment.sweep.version", lambda: "another")
    assert Store(tmp_path, TINY).load(0) is None
    assert len(version()) == 16


def test_a_result_survives_its_file(tiny):
    import json

    again = SeedResult.from_json(json.loads(json.dumps(tiny[0].to_json())))
    assert again.same_numbers(tiny[0])
    assert isinstance(again.frontiers["exact"], Reached)


@pytest.mark.slow
def test_a_killed_run_continues_where_it_was(tmp_path):
    sizes = "--m 256 --n 32768 --ladder 1 8 64 --seeds 0 1 2 3 4 5 --max-flops 2e7 --workers 1".split()
    command = [sys.executable, "-m", "mlgd.experiment.sweep", *sizes, "--folder", str(tmp_path)]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    end = time.monotonic() + 120
    while len(list(tmp_path.glob("*.json"))) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    kept = {p.name: p.stat().st_mtime_ns for p in tmp_path.glob("*.json")}
    assert 2 <= len(kept) < 6
    subprocess.run(command, check=True, capture_output=True)
    assert {p.name: p.stat().st_mtime_ns for p in tmp_path.glob("*.json")}.items() >= kept.items()
    protocol = Protocol(m=256, n=32768, ladder=(1, 8, 64), seeds=tuple(range(6)), max_flops=2e7)
    store = Store(tmp_path, protocol)
    with ThreadPoolExecutor(1) as one:
        assert_same([store.load(s) for s in protocol.seeds], sweep(protocol, one))


def test_dots_do_not_depend_on_order(capsys):
    one, resumed = Dots(), Dots()
    for done in (0, 1, 2, 3):
        one(done, 3)
    resumed(3, 3)
    assert capsys.readouterr().out == "3 seeds |###|\n3 seeds |###|\n"


def test_the_command_has_every_size_as_an_option(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for name in Protocol.__dataclass_fields__:
        assert "--" + name.replace("_", "-") in text


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"m": 256}, "exceeds m=256"),
        ({"n": 400}, "smaller than k_max=512"),
        ({"phi": 2.0}, "phi"),
        ({"phi": 0.0}, "phi"),
        ({"rho": 1.0}, "rho"),
        ({"ladder": (1, 8, 63, 512)}, "not geometric"),
        ({"ladder": (8, 4, 2)}, "not geometric"),
        ({"ladder": (4,)}, "two levels"),
        ({"seeds": ()}, "seed"),
        ({"seeds": (1, 1)}, "seed"),
        ({"scales": (0.5,)}, "coarsest level"),
        ({"shrinks": (2.0,)}, "fractions"),
        ({"tightest": -0.1}, "targets"),
        ({"probes": (0, 3)}, "among the wide probes"),
        ({"max_steps": 0}, "at least 1"),
    ],
)
def test_bad_sizes_are_refused_at_once(sizes, words, capsys):
    with pytest.raises(ValueError, match=words):
        Protocol(**sizes)


def test_the_command_refuses_bad_sizes_too(capsys, tmp_path):
    with pytest.raises(SystemExit) as stop:
        main(["--phi", "3", "--folder", str(tmp_path)])
    assert stop.value.code == 2
    assert "outside (0, 2)" in capsys.readouterr().err
