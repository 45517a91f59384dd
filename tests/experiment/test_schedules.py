"""The schedule's theorems, over random problems and the corners of their range: prices and exact moments never exceed the bounds."""

import math
from dataclasses import replace

import numpy as np
import pytest

from mlgd import Problem, flow, minimize, plan
from mlgd import formulas as F
from mlgd.experiment import schedules as S
from mlgd.experiment.worst import ladder

CASES = S.problems(200, 0)  # the audit takes a thousand
PROBLEM, TARGET = Problem(beta=4.0, mu=1.0, d0=1.0, gamma=3.0, c=0.13), 0.02


def test_the_corners_are_among_the_problems():
    corners = [(p.c, p.beta / p.mu, e / p.d0**2, p) for p, e in CASES[:16]]
    found = {(round(math.log10(c)), round(math.log10(kappa))) for c, kappa, _, _ in corners}
    assert found == {(-3, 0), (-3, 8), (3, 0), (3, 8)}
    assert {p.gamma for *_, p in corners} == {2.01, 6.0}
    ends = [
        min(abs(target / p.beta - 1), abs(target / (1e-8 * p.mu) - 1)) for *_, target, p in corners
    ]
    assert max(ends) < 1e-9


def test_a_scheduled_plan_costs_at_most_its_bound():
    bills = [S.plan_bill(p, e) for p, e in CASES]
    assert (
        S.over(bills, 1) <= 1 < S.over(bills, 0.9)
    )  # nothing below a unit: the coarse term is needed, all of it
    assert 0.3 < S.over([S.plan_bill(S.every_accuracy(p, e), e) for p, e in CASES[:80]], 0) <= 1


def test_a_scheduled_plan_reaches_its_target():
    for p, e in CASES[:80]:
        assert plan(p, e, "scheduled").budget.total <= e * (1 + 1e-9)
        assert S.reached(p, e) <= 1
    assert (
        max(S.reached(p, e, 4.0) for p, e in CASES[:80]) > 1
    )  # tolerances four times too lax are noticed


def test_the_moments_of_a_plan_are_those_of_its_recursion():
    bill = plan(PROBLEM, TARGET, "scheduled")
    curvature, worst = 2.0, 0.0
    for side in (1.0, -1.0):
        y, yy, mean, square, cross, mass = side, 1.0, 0.0, 0.0, 0.0, 0.0
        for stage in bill.stages:
            h = ladder(PROBLEM, PROBLEM.prices(stage.delta).levels, curvature)
            t = bill.telescope(h, stage)
            bias, noise = float(t.mean(np.zeros(1))[0]), t.variance(np.zeros(1))
            for _ in range(stage.steps):
                mass = 1 + mass / bill.growth
                w = 1 / mass
                mean, cross, square = (
                    (1 - w) * mean + w * y,
                    (1 - w) * cross + w * yy,
                    (1 - w) ** 2 * square + 2 * w * (1 - w) * cross + w * w * yy,
                )
                shrink = 1 - bill.eta * curvature
                yy = (
                    shrink**2 * yy
                    - 2 * shrink * bill.eta * bias * y
                    + bill.eta**2 * (bias**2 + noise)
                )
                cross = shrink * cross - bill.eta * bias * mean
                y = shrink * y - bill.eta * bias
        worst = max(worst, curvature / 2 * square)
    assert S.plan_loss(bill, curvature) == pytest.approx(worst, rel=1e-9)


def test_the_jump_process_costs_at_most_its_bound():
    bills = [S.flow_bill(p, e) for p, e in CASES]
    assert S.over(bills, 1) <= 1 < S.over(bills, 0.9)
    assert 0.3 < S.over([S.flow_bill(p, e, sold=True) for p, e in CASES], 0) <= 1


@pytest.mark.parametrize("mu", [1.0, 0.0])
def test_a_kink_costs_at_most_its_bound(mu):
    kinks = np.random.default_rng(1).choice([0.01, 1.0, 100.0], len(CASES))
    cases = [(replace(p, mu=mu * p.mu), e, k) for (p, e), k in zip(CASES, kinks, strict=True)]
    bills = [S.flow_bill(p, e, kink=k) for p, e, k in cases]
    assert S.over(bills, 1) <= 1 < S.over(bills, 0.8)
    smooth = [sum(S.flow_bill(p, e)[1:]) for p, e, _ in cases]
    assert (
        max(bill[0] / bound for bill, bound in zip(bills, smooth, strict=True)) > 1
    )  # a smooth loss's bound does not cover it
    # every accuracy on sale: neither kink nor smoothness is paid for, and the rates are those of a smooth loss
    assert 0.8 < S.over([S.flow_bill(p, e, sold=True, kink=k) for p, e, k in cases], 0) <= 1
    for p, e, k in cases[:40]:
        case = S.setting(p, e, sold=True, kink=k)
        assert F.value(F.ROUGH, first=case.h.levels[0], kink=k) == 1
        times = np.linspace(0, case.horizon, 5)
        plain = S.setting(replace(p, beta=p.mu or 1e-12, first=case.h.levels[0]), e).schedule
        np.testing.assert_allclose(case.schedule.rates(times), plain.rates(times))
        assert case.schedule.rates(times)[0].min() >= 4 * p.beta


@pytest.mark.parametrize("sold", [False, True])
def test_the_jump_process_reaches_its_target(sold):
    assert max(S.flowed(p, e, sold=sold) for p, e in CASES[:80]) <= 1
    assert max(S.flowed(p, e, 4.0, sold) for p, e in CASES[:80]) > 1


def test_without_strong_convexity_too():
    assert max(S.flowed(replace(p, mu=0.0), e) for p, e in CASES[:80]) <= 1


def test_the_price_does_not_see_the_horizon_when_every_accuracy_is_on_sale():
    short, long = (S.setting(PROBLEM, TARGET, sold=True, longer=x).price for x in (10.0, 40.0))
    assert long == pytest.approx(short, rel=0.02)


def test_bias_and_variance_are_those_of_the_theorem():
    for p, e in CASES:
        case = S.setting(p, e)
        times = case.horizon * np.array([0.03, 0.5, 0.98])
        rates, accuracy = (
            case.schedule.rates(times),
            np.array([case.h.accuracy(k) for k in case.schedule.levels]),
        )
        for t, row in zip(times, rates.T, strict=True):
            at = {"mu": p.mu, "eps": e, "horizon": case.horizon, "t": float(t)}
            delta, nu2 = (
                F.value(F.SCHEDULE["delta"], **at) / math.sqrt(2),
                F.value(F.SCHEDULE["nu2"], **at) / 2,
            )
            used = row > 0
            assert accuracy[used][-1] <= max(delta * (1 + 1e-9), accuracy[0])
            assert accuracy[used].size == 1 or 2 * accuracy[used][-1] > delta
            variance = float((9 * accuracy[used] ** 2 / row[used]).sum())
            assert variance <= nu2 * (1 + 1e-9)
            assert row[0] >= 4 * p.beta * (1 - 1e-9)
            if row[0] > 4 * p.beta * 1.001:
                assert variance == pytest.approx(nu2, rel=1e-9)  # no more is bought than is needed


def test_the_rate_of_a_kink():
    case, plain = S.setting(PROBLEM, TARGET, kink=1.0), S.setting(PROBLEM, TARGET)
    factor = F.value(F.ROUGH, first=PROBLEM.first, kink=1.0)
    assert factor == pytest.approx(2 * (4.0**-PROBLEM.first + 1) / (9 * 4.0**-PROBLEM.first))
    times = np.linspace(0.1, case.horizon - 0.1, 9)
    low = S.proposition_schedule(case.h, 1.0, TARGET, 3.0, case.horizon, 0.0, 2.0).rates(times)
    np.testing.assert_allclose(case.schedule.rates(times)[0], np.maximum(16.0, factor * low[0]))
    np.testing.assert_allclose(case.schedule.rates(times)[1:], plain.schedule.rates(times)[1:])


def test_the_moments_of_the_jump_process_are_those_of_runs():
    coarse = Problem(beta=1.0, mu=1.0, d0=1.0, gamma=3.0, c=1.0)
    case = S.setting(coarse, 0.3)
    h = ladder(coarse, case.h.levels, 1.0)
    losses = [
        float(flow(h, [side], case.schedule, case.horizon, [side > 0, n]).y[0]) ** 2 / 2
        for side in (1.0, -1.0)
        for n in range(200)
    ]
    means = [np.mean(losses[:200]), np.mean(losses[200:])]
    error = max(np.std(losses[:200]), np.std(losses[200:])) / math.sqrt(200)
    expected = S.flow_loss(case.schedule, coarse, case.horizon, 1.0)
    assert abs(max(means) - expected) <= 4.9 * error
    assert S.flow_loss(case.schedule, coarse, case.horizon, 1.0, 20) == pytest.approx(
        expected, rel=1e-3
    )
    twice = S.setting(
        coarse, 0.3, relax=0.5
    )  # tolerances twice too large are noticed by these runs
    assert abs(max(means) - S.flow_loss(twice.schedule, coarse, twice.horizon, 1.0)) > 4.9 * error


def test_ten_times_the_tolerances_are_noticed():
    fine = Problem(beta=1.0, mu=1.0, d0=1.0, gamma=3.0, c=0.13)
    lax = S.setting(fine, 0.005, relax=0.02)
    assert S.flow_loss(lax.schedule, fine, lax.horizon, 1.0) > 0.005
    right = S.setting(fine, 0.005)
    assert S.flow_loss(right.schedule, fine, right.horizon, 1.0) < 0.005 / 10


def test_a_run_of_a_scheduled_plan_pays_what_it_says():
    bill = plan(PROBLEM, TARGET, "scheduled")
    h = ladder(PROBLEM, PROBLEM.prices(bill.delta).levels, 1.0)
    costs = [minimize(h, np.ones(1), bill, rng=n).cost / bill.expected_cost for n in range(60)]
    assert abs(np.mean(costs) - 1) <= 5.5 * np.std(costs, ddof=1) / math.sqrt(60)


def test_a_scheduled_plan_is_the_one_of_the_theorem():
    for p, e in CASES[:40]:
        bill = plan(p, e, "scheduled")
        x = 1 / (1 - bill.eta * p.mu / 2)
        log_x = -math.log1p(-bill.eta * p.mu / 2)
        steps, block = (
            math.ceil(math.log1p(2 * p.mu * p.d0**2 / e) / log_x - 1e-9),
            math.floor(2 * math.log(2) / log_x),
        )
        blocks = bill.stages[::-1]
        assert (bill.steps, bill.growth) == (max(1, steps), pytest.approx(x))
        assert all(stage.steps == block for stage in blocks[:-1])
        assert len(blocks) == math.ceil(bill.steps / block)
        ends = np.cumsum([0, *(stage.steps for stage in blocks)])
        shares = np.diff(-np.expm1(-log_x * ends)) / -np.expm1(-log_x * bill.steps)
        mean = float(shares @ 2.0 ** np.arange(len(blocks)))  # J
        assert 1 <= mean <= 5 / 3
        for b, stage in enumerate(blocks):
            assert stage.delta**2 == pytest.approx(
                2**b * 3 * p.mu * e / (16 * (1 + bill.eta * p.mu) * mean), rel=1e-6
            )
            assert stage.sigma**2 == pytest.approx(2**b * 3 * e / (8 * bill.eta * mean), rel=1e-6)


def test_the_lasso_wants_a_coarser_beginning_or_a_higher_rate():
    (missed, cheap), (begun, dearer) = (
        S.lasso_gaps(40, 0, 0.0, begin) for begin in (S.LASSO.first, 0)
    )
    assert min(missed.min(), begun.min()) >= 0  # above the minimum
    assert (
        begun.mean() + 6 * begun.std() / math.sqrt(40)
        < 1
        < missed.mean() - 6 * missed.std() / math.sqrt(40)
    )
    asked = S.setting(S.LASSO, 0.25, sold=True, kink=S.KINK)
    assert asked.h.levels[0] == -4
    assert 4.0**4 >= 2 * S.KINK**2 / 7 > 4.0**3
    assert cheap < dearer < asked.price < S.setting(S.LASSO, 0.25, kink=S.KINK).price / 100
