import numpy as np
import pytest

from mlgd import Hierarchy, audit, compare, estimate, minimize, plan
from mlgd.anchors import epoch_price
from mlgd.examples import rounded
from mlgd.plans import NotApplicable

D = 12
SPECTRUM = np.geomspace(0.05, 1.0, D)
rng = np.random.default_rng(3)
U = rng.standard_normal((12, D))
U /= np.linalg.norm(U, axis=1, keepdims=True)
TURN = np.array([np.linalg.qr(rng.standard_normal((D, D)))[0] for _ in range(12)])
START = np.sqrt(2 / (D * SPECTRUM))
EPS = 1e-4


def loss(y):
    return float(SPECTRUM @ y**2) / 2


def evaluate(k, y):
    return SPECTRUM * y + 0.05 * 2.0**-k * (U[k] + TURN[k] @ (y - START) / 4)


@pytest.fixture(scope="module")
def h():
    return Hierarchy(evaluate, lambda k: 8.0**k, range(10), lambda k: 0.1 * 2.0**-k)


@pytest.fixture(scope="module")
def report(h):
    return audit(h, [START, 0.9 * START, 0.3 * START, 0.5 * np.roll(START, 1)])


@pytest.fixture(scope="module")
def problem(report):
    return report.problem(beta=1.0, mu=0.05, d0=float(np.linalg.norm(START)))


@pytest.fixture(scope="module")
def measured(h, report):
    return report.problem(estimate(h, START, rng=0, known=report))


@pytest.mark.parametrize("promise", ["proved", "quadratic"])
def test_an_anchored_run_keeps_its_promise_and_its_bill(h, report, problem, promise):
    chosen = plan(problem, EPS, "anchored", on=report, promise=promise)
    runs = [minimize(h, START, chosen, rng=seed) for seed in range(12)]
    assert all(run.status == "done" for run in runs)
    assert np.mean([loss(run.y) for run in runs]) <= EPS
    assert chosen.budget.total == pytest.approx(EPS, rel=0.2)
    assert chosen.budget.total <= EPS * (1 + 1e-9)
    paid = [run.cost for run in runs]
    assert abs(np.mean(paid) - chosen.expected_cost) < 5 * np.std(paid) / np.sqrt(len(paid)) + 1e-9
    assert chosen.price_on(h) == chosen.expected_cost


@pytest.mark.parametrize("method", ["anchored", "corrected"])
def test_a_plan_on_a_report_rests_on_measured_accuracies_and_not_on_assumed_ones(
    h, report, measured, method
):
    chosen = plan(measured, EPS, method, on=report, promise="measured")
    assert chosen.accuracies == {k: report.hierarchy.accuracy(k) for k in h.levels}
    timid = Hierarchy(
        evaluate, h.cost, h.levels, lambda k: 1e-3 * 2.0**-k
    )  # declares far less than its errors are
    assert minimize(timid, START, chosen, rng=0).promise == "measured"


@pytest.mark.parametrize("method", ["anchored", "corrected"])
def test_measured_plans_come_close_for_about_one_gradient(h, report, measured, method):
    chosen = plan(measured, EPS, method, on=report, promise="measured")
    run = minimize(h, START, chosen, rng=0)
    assert run.status == "done"
    assert loss(run.y) < 2 * EPS
    floors = [loss(np.linalg.solve(*zero(k))) for k in h.levels]
    unit = h.cost(int(np.argmax(np.array(floors) <= EPS)))
    assert run.cost < 12 * unit


def zero(k):
    matrix = np.diag(SPECTRUM) + 0.05 * 2.0**-k * TURN[k] / 4
    return matrix, -0.05 * 2.0**-k * (U[k] - TURN[k] @ START / 4)


def test_anchored_is_far_cheaper_than_the_plain_telescope_at_the_same_promise(report, problem):
    ranked = compare(problem, EPS, on=report)
    prices = {p.method: p.expected_cost for p in ranked.plans}
    assert ranked.best.method == "anchored"
    assert prices["multilevel"] > 50 * prices["anchored"]
    assert "measured" in ranked.left_out["corrected"]


@pytest.mark.parametrize("method", ["anchored", "corrected"])
def test_a_killed_run_goes_on_bit_for_bit(h, report, measured, method, tmp_path):
    chosen = plan(measured, EPS, method, on=report, promise="measured")
    whole = minimize(h, START, chosen, rng=5)
    for at in (1, whole.nit // 2, whole.nit - 1):
        path = tmp_path / f"{method}{at}"

        class Killed(Exception):
            pass

        def kill(state, at=at):
            if state.step == at:
                raise Killed

        with pytest.raises(Killed):
            minimize(h, START, chosen, rng=5, callback=kill, checkpoint=path)
        again = minimize(h, START, chosen, rng=5, checkpoint=path)
        assert np.array_equal(again.y, whole.y)


def test_the_price_of_an_epoch_is_the_mean_of_what_it_pays(h):
    levels, p, steps = (0, 2, 4), (1.0, 0.5, 0.25), 4
    paid = []
    from mlgd import Telescope

    generator = np.random.default_rng(0)
    for _ in range(4000):
        t = Telescope.anchored(h, dict(zip(levels, p, strict=True)), at=START)
        paid.append(
            t.draw(START, generator).cost
            + sum(t.draw(0.5 * START, generator).cost for _ in range(steps - 1))
        )
    assert epoch_price(h, levels, p, steps) == pytest.approx(
        np.mean(paid), abs=5 * np.std(paid) / np.sqrt(len(paid))
    )


def test_a_correction_that_goes_too_far_is_shortened():
    """The coarse model has a tenth of the curvature: solved as it is, the move would be ten times too long."""
    h = Hierarchy(
        lambda k, y: (0.1 if k == 0 else 1.0) * y + 2.0**-k * 1e-3,
        lambda k: 8.0**k,
        range(6),
        lambda k: 2.0**-k,
    )
    y0 = np.ones(3)
    report = audit(h, [y0, 0.9 * y0, 0.2 * y0])
    problem = report.problem(beta=1.0, mu=0.1, d0=2.0)
    from mlgd.schemes import Plan, Stage

    stages = tuple(
        Stage(20, 2.0**-5, 0.0, levels=(0, 5), probabilities=(1.0, 1.0), tolerance=1e-9)
        for _ in range(4)
    )
    chosen = Plan(
        problem=problem,
        eps=1e-3,
        method="corrected",
        promise="none",
        eta=1.0,
        stages=stages,
        averaging="last",
        budget=None,
        expected_cost=1.0,
        cost_bound=None,
        guarantee="set by hand",
    )
    run = minimize(h, y0, chosen)
    assert "shortened" in run.message
    assert np.linalg.norm(run.y) < 0.1 < np.linalg.norm(y0)


def test_rough_errors_and_too_few_points_are_refused_with_a_reason(h, problem):
    rough = audit(
        rounded(lambda y: SPECTRUM * y, 3, 1, range(2, 9)),
        [START * t for t in (1.0, 0.99, 0.9, 0.5, 0.1)],
    )
    with pytest.raises(NotApplicable, match=r"rough|can't tell"):
        plan(problem, EPS, "anchored", on=rough)
    with pytest.raises(NotApplicable, match="three points"):
        plan(problem, EPS, "corrected", on=audit(h, [START]), promise="measured")
    with pytest.raises(NotApplicable, match="on=report"):
        plan(problem, EPS, "anchored", on=h)


def test_a_target_out_of_reach_is_refused(report, problem):
    with pytest.raises(NotApplicable, match="out of reach"):
        plan(problem, 1e-12, "anchored", on=report)
