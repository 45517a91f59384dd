"""The quality bench: its problems are what they say, and the tool is as good as its file says."""

import json
from dataclasses import replace

import numpy as np
import pytest

from mlgd import minimize
from mlgd.experiment.quality import __main__ as command
from mlgd.experiment.quality import bench, short, totals
from mlgd.experiment.quality.policies import POLICIES, follow
from mlgd.experiment.quality.problems import PROBLEMS, SEEDS, instance
from mlgd.experiment.quality.references import descend, reference, stored, targets

NAMES = [*PROBLEMS]


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_each_level_and_of_the_truth(name):
    problem = instance(name, 0)
    rng = np.random.default_rng(0)
    size = problem.start.size
    y = problem.start + 0.01 * rng.normal(size=size)
    way = rng.normal(size=size)
    h = 1e-5
    levels = problem.levels[-1:] if problem.problem.rounded else problem.levels
    sides = [lambda z, k=k: problem.pair(k, z) for k in levels]
    for f in (*sides, problem.truth):
        slope = f(y)[1] @ way
        difference = (f(y + h * way)[0] - f(y - h * way)[0]) / (2 * h)
        assert difference == pytest.approx(
            slope, rel=1e-5, abs=1e-7 * np.linalg.norm(f(y)[1])
        )


@pytest.mark.parametrize("name", NAMES)
def test_references_are_minima(name):
    """Nothing below them is found from nearby, nor where a problem is convex from far away."""
    for seed in SEEDS:
        problem = instance(name, seed)
        least, tight = reference(problem), targets(problem)[-1]
        assert tight > 0
        point = np.array(stored()[name][seed])
        rng = np.random.default_rng(seed)
        starts = [point + 1e-3 * rng.normal(size=point.size)]
        starts += [(point + problem.start) / 2] * problem.convex
        for y in starts:
            with np.errstate(all="ignore"):
                bottom = descend(problem.truth, y, maxiter=300, ftol=1e-15, gtol=1e-10)
            assert problem.loss(bottom) >= least - 1e-3 * tight


@pytest.mark.parametrize("name", [name for name, p in PROBLEMS.items() if p.convex])
def test_what_is_called_convex_has_monotone_gradients(name):
    problem = instance(name, 0)
    rng = np.random.default_rng(1)
    reach = np.linalg.norm(np.array(stored()[name][0]) - problem.start)
    for _ in range(20):
        a, b = problem.start + reach * rng.normal(size=(2, problem.start.size)) / 5
        change = problem.truth(a)[1] - problem.truth(b)[1]
        assert change @ (a - b) >= -1e-12 * np.linalg.norm(change) * np.linalg.norm(a - b)


def test_a_third_is_not_convex_and_evaluations_do_not_raise_far_away():
    problems = [instance(name, 0) for name in NAMES]
    assert len(problems) >= 18
    assert sum(not problem.convex for problem in problems) >= len(problems) / 3
    for problem in problems:
        for far in (1e3, -1e9, 1e200):
            for k in problem.levels:
                problem.pair(k, problem.start + far)


def test_the_file_is_whole_and_its_totals_are_those_of_its_runs():
    runs = bench.read()
    assert len(runs) == 3 * len(SEEDS) * len(NAMES) >= 250
    assert bench.FILE.stat().st_size < 60_000
    said = json.loads(bench.FILE.read_text("utf-8"))["totals"]
    assert said == json.loads(json.dumps(totals.totals(runs)))
    # within reach of the levels on offer
    assert all(np.isfinite(run.hindsight) for run in runs)
    assert [bench.as_kept(run) for run in runs] == runs


@pytest.mark.parametrize("seed", [0])
def test_others_are_as_the_file_has_them(seed):
    name = "decays"
    problem = instance(name, seed)
    rows = [run for run in bench.read() if (run.name, run.seed) == (name, seed)]
    for run, new in zip(rows, bench.others(problem), strict=True):
        assert new["hindsight"] == pytest.approx(run.hindsight, rel=0.1)
        for (price, _), (before, _) in zip(new["policies"], run.policies, strict=True):
            assert price == pytest.approx(before, rel=0.1)


def test_a_policy_pays_for_what_it_evaluates():
    problem = instance("phase retrieval", 0)
    ladder = problem.ladder
    eps = targets(problem)[1]
    counted = []

    def level(k, y):
        counted.append(ladder.price(k))
        return ladder.level(k, y)

    watched = replace(problem, ladder=replace(ladder, level=level, limit=ladder.truth))
    for policy in POLICIES.values():
        counted.clear()
        price, _ = follow(watched, policy, eps)
        assert price == sum(counted)


def test_the_short_form_is_as_good_as_the_file_says():
    found = short.verdict(short.short_runs(), short.kept())
    assert found.false <= 0
    assert found.reached <= 0
    assert found.mean == pytest.approx(1, abs=short.ALL), (
        "run make quality, and commit its file"
    )
    assert found.moved == ()


def certain(problem, eps):
    """A tool that stops far too early and promises all the same."""
    result = minimize(problem.hierarchy, problem.start, eps=30 * eps)
    return replace(result, status="done", promise="estimate")


def humble(problem, eps):
    """A tool that stops far too early and says so."""
    return replace(certain(problem, eps), promise="none")


def timid(problem, eps):
    """A tool that goes on for longer than it must."""
    return minimize(problem.hierarchy, problem.start, eps=eps / 3)


def wasteful(problem, eps):
    """A tool that makes a third of the runs a tenth dearer."""
    result = bench.call(problem, eps)
    third = problem.name in short.STEADY[::3]
    return replace(result, cost=1.1 * result.cost) if third else result


@pytest.mark.parametrize(
    ("tool", "sign"),
    [
        (certain, lambda found: found.false > 0),
        (humble, lambda found: found.reached > 0),
        (timid, lambda found: found.mean > 1 + short.ALL),
        (wasteful, lambda found: found.mean > 1 + short.ALL),
    ],
)
def test_a_worse_tool_is_noticed(tool, sign):
    keys = [key for key in short.SHORT if key[1:] == (0, 1)]
    found = short.verdict(short.short_runs(tool, keys), short.kept(keys))
    assert sign(found)
    assert found.worse
    assert short.verdict(short.kept(keys), short.kept(keys)) == short.Verdict(
        0, 0, 1.0, ()
    )


def test_promises_that_are_kept_or_broken_are_counted():
    one = bench.read()[0]
    runs = [
        replace(one, over=over, success=told)
        for over in (0.5, 2.0)
        for told in (True, False)
    ]
    said = totals.promises(runs)
    assert [said[key] for key in ("reached", "successes", "false", "worst")] == [
        2,
        2,
        1,
        2.0,
    ]
    low, high = totals.interval(1, 100)
    assert (low, high) == pytest.approx((0.000253, 0.0545), rel=0.01)
    assert totals.interval(0, 10)[0] == 0.0
    assert totals.interval(10, 10)[1] == 1.0


def test_the_command_prints_what_it_is_asked_for(capsys, tmp_path, monkeypatch):
    out = tmp_path / "runs.json"
    command.main(["--only", "transport", "--tool", "--out", str(out)])
    assert "false promises" in capsys.readouterr().out
    assert len(bench.read(out)) == 3 * len(SEEDS)
    monkeypatch.setattr(command, "short_runs", short.kept)
    command.main(["--short"])
    assert "+0 false promises, +0 reached, 1.0000 of the price" in capsys.readouterr().out
