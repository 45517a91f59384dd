import numpy as np
import pytest

from mlgd import Hierarchy, Telescope
from mlgd.examples import rounded

R, Y = np.array([0.4, -1.3, 0.8]), np.array([1.1, 0.2, -0.6])
P = [1.0, 0.5, 0.3, 0.2]


def smooth(increment=False):
    """Errors that are linear in y, with a shared increment where asked for."""

    def evaluate(k, y):
        return y + 2.0**-k * (np.roll(y, k) + 1)

    def step(k, y):
        return evaluate(k, y) - (evaluate(k - 1, y) if k > 1 else 0.0)

    return Hierarchy(evaluate, lambda k: 4.0**k, range(1, 5), increment=step if increment else None)


@pytest.mark.parametrize(
    "h",
    [smooth(), smooth(True), rounded(lambda y: y**2, 3, 1, range(1, 5))],
    ids="plain shared rough".split(),
)
@pytest.mark.parametrize("coefficients", [None, [1, 0, 0.5, 1], [1, 1, 0, 0], [0, 0, 0, 0]])
def test_mean_and_variance_are_those_of_all_outcomes(h, coefficients):
    t = Telescope.anchored(h, P, at=R, coefficients=coefficients)
    outcomes = list(t.outcomes(Y))
    mean = sum(p * draw.value for p, draw in outcomes)
    assert np.allclose(mean, h.value(4, Y), rtol=1e-13)
    assert np.allclose(t.mean(Y), mean, rtol=1e-13)
    variance = sum(p * float(np.sum((draw.value - mean) ** 2)) for p, draw in outcomes)
    assert t.variance(Y) == pytest.approx(variance, rel=1e-12)


def test_noise_falls_with_the_distance_to_the_reference():
    t = Telescope.anchored(smooth(), P, at=R)
    near, far = t.variance(R + 0.1 * (Y - R)), t.variance(Y)
    assert near == pytest.approx(far / 100, rel=1e-9)
    point = R + 0.1 * (Y - R)
    assert near < Telescope(smooth(), P).variance(point) / 10


def test_coefficients_of_zero_are_the_plain_telescope():
    h = smooth()
    anchored, plain = Telescope.anchored(h, P, at=R, coefficients=[0] * 4), Telescope(h, P)
    for (_, a), (_, b) in zip(anchored.outcomes(Y), plain.outcomes(Y), strict=True):
        assert np.allclose(a.value, b.value, rtol=1e-14)
        assert a.paid == b.paid
    assert anchored.reference_cost(100) == 0


def test_nothing_at_the_reference_is_paid_twice():
    h, seen = smooth(), []
    counted = Hierarchy(
        lambda k, y: (seen.append((k, y.tobytes())), h.value(k, y))[1], h.cost, h.levels
    )
    t = Telescope.anchored(counted, P, at=R)
    rng, paid = np.random.default_rng(0), 0.0
    for i in range(200):
        paid += t.draw(Y + i, rng).cost
    there = [k for k, point in seen if point == R.tobytes()]
    assert sorted(there) == [1, 2, 3, 4]
    assert paid == sum(h.cost(k) for k, _ in seen)


def test_at_the_reference_itself_one_fine_value_is_all():
    t = Telescope.anchored(smooth(), P, at=R)
    draw = t.draw(R, rng=0)
    assert draw.paid == {4: 256.0}
    assert np.allclose(draw.value, smooth().value(4, R))


@pytest.mark.parametrize("increment", [False, True])
def test_the_mean_price_at_the_reference_is_exact(increment):
    h, calls = smooth(increment), 3
    t = Telescope.anchored(h, P, at=R)
    free = t.random.size
    mean = 0.0
    for code in range(2 ** (free * calls)):
        drawn = np.array([code >> i & 1 for i in range(free * calls)], bool).reshape(calls, free)
        fresh = Telescope.anchored(h, P, at=R)
        chance = float(np.prod(np.where(drawn, t.random, 1 - t.random)))
        elsewhere = sum(h.cost(k) for row in drawn for _, k in fresh.needs(row))
        mean += chance * (sum(fresh.combine(Y, row).cost for row in drawn) - elsewhere)
    assert t.reference_cost(calls) == pytest.approx(mean, rel=1e-12)


def test_what_is_known_at_the_reference_can_be_handed_over():
    h = smooth()
    t = Telescope.anchored(h, P, at=R)
    t.draw(R, rng=0)
    again = Telescope.anchored(h, P, at=R, kept=t.kept)
    assert again.draw(R, rng=0).cost == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"probabilities": [0.5, 0.5], "at": R}, "probability 1"),
        ({"probabilities": P, "at": R, "coefficients": [1, 2, 1, 1]}, "in \\[0, 1\\]"),
        ({"probabilities": P, "at": R, "coefficients": [1]}, "one in"),
        ({"probabilities": P, "at": [np.nan]}, "finite"),
    ],
)
def test_wrong_uses_are_refused_with_a_sentence(arguments, words):
    with pytest.raises(ValueError, match=words):
        Telescope.anchored(smooth(), **arguments)
