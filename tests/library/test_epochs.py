import itertools
import math

import numpy as np
import pytest

from mlgd.epochs import Setting, average_loss, call_prices, cheapest, contraction, fewest, last_loss

LEVELS = np.arange(24)


def setting(kappa=100.0, gamma=3.0, eps=1e-6, l=0.03, averaged=True):  # noqa: E741
    return Setting(
        1.0,
        1 / kappa,
        7.0,
        eps,
        2.0 ** (gamma * LEVELS),
        0.1 * 2.0**-LEVELS,
        l * 2.0**-LEVELS,
        np.zeros(24, bool),
        averaged,
    )


def recursion(h, b, v, steps):
    """The scalar recursion that the closed forms bound: x'^2 = ((1-h) x + h b)^2 + h v (1 + x)^2 from x = 1."""
    x = 1.0
    for _ in range(steps):
        x = math.sqrt(((1 - h) * x + h * b) ** 2 + h * v * (1 + x) ** 2)
    return x


@pytest.mark.parametrize("seed", range(40))
def test_the_contraction_bounds_the_recursion(seed):
    rng = np.random.default_rng(seed)
    h, b = 10.0 ** rng.uniform(-3, -0.01), rng.uniform(0, 0.9)
    v, steps = rng.uniform(0, (1 - b * b) / 4), int(10.0 ** rng.uniform(0, 3.5))
    assert recursion(h, b, v, steps) <= contraction(h, b, v, steps) * (1 + 1e-12)


def test_the_contraction_is_nearly_attained_without_noise():
    assert recursion(0.01, 0.2, 0.0, 400) > 0.999 * contraction(0.01, 0.2, 0.0, 400)
    assert recursion(0.01, 0.2, 0.0, 400) > 0.9 * contraction(0.01, 0.22, 0.0, 400)


@pytest.mark.parametrize("q", [0.5, 0.2, 0.05])
def test_steps_are_the_fewest(q):
    for b, v in ((0.6 * q, 0.01 * q * q), (0.1 * q, 0.1 * q * q)):
        steps = int(fewest(lambda t, b=b, v=v: contraction(0.01, b, v, t), q))
        assert (
            contraction(0.01, b, v, steps)
            <= q * (1 + 1e-9)
            < contraction(0.01, b, v, steps - 1) * (1 + 1e-6)
        )


def test_epochs_reach_what_they_promise():
    for s in (setting(), setting(averaged=False), setting(kappa=1e4, gamma=1.5), setting(l=0.0)):
        plan = cheapest(s)
        for one, after in itertools.pairwise(plan):
            assert one.reached <= after.radius * (1 + 1e-9)
        last = plan[-1]
        delta = s.accuracy[last.finest]
        bound = (
            average_loss(s, last.radius, delta, last.noise, last.steps, last.theta)
            if s.averaged
            else last_loss(s, last.radius, delta, last.noise, last.steps)
        )
        assert last.reached == bound <= s.eps
        for epoch in plan:
            used = np.array(
                [
                    s.change[a + 1 : b + 1].sum()
                    for a, b in zip(epoch.levels, epoch.levels[1:], strict=False)
                ]
            )
            noise = float(((1 / np.array(epoch.probabilities[1:]) - 1) * used**2).sum())
            assert noise <= epoch.noise * s.mu / s.eta * (1 + 1e-9)
            assert epoch.levels[-1] == epoch.finest
            assert epoch.probabilities[0] == 1


def test_the_price_over_one_gradient_falls_towards_one():
    over = []
    for eps in (1e-4, 1e-6, 1e-8, 1e-10):
        s = setting(eps=eps)
        plan = cheapest(s)
        calls = [
            call_prices(s, np.full((1, 24), e.noise * s.mu / s.eta))[0, e.finest] for e in plan
        ]
        price = sum(s.price[e.finest] + e.steps * call for e, call in zip(plan, calls, strict=True))
        over.append(price / s.price[np.argmax(s.accuracy <= math.sqrt(2 * s.mu * eps))])
    assert over == sorted(over, reverse=True)
    assert over[-1] < 1.2


def test_a_ladder_that_is_too_short_has_no_plan():
    s = setting()
    short = Setting(
        s.beta, s.mu, s.d0, s.eps, s.price[:5], s.accuracy[:5], s.change[:5], s.shared[:5]
    )
    assert cheapest(short) is None


def test_errors_that_do_not_change_need_no_sampling():
    plan = cheapest(setting(l=0.0))
    assert all(max(e.probabilities[1:], default=0) < 1e-3 for e in plan)


@pytest.mark.parametrize("kappa", [1.0, 1.5, 100.0, 1e4])
def test_noise_that_turns_is_allowed_for(kappa):
    """The largest x (1 - x)^(2m) lies at x = 1/(2m + 1), or at the lower end of the spectrum."""
    m = np.arange(20 * kappa + 1)
    x = np.maximum(1 / kappa, 1 / (2 * m + 1))
    literal = float((x * (1 - x) ** (2 * m)).sum())
    assert literal <= setting(kappa=kappa).turning <= 1.005 * literal
