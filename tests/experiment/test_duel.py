"""mlgd.experiment.duel: the gambler, the blindfold and the chain against what a few lines of algebra give."""

import numpy as np
import pytest

from mlgd import Adversary
from mlgd.experiment.duel import blindfolded, chain_queries, gambler, lbfgs, transcript


@pytest.mark.parametrize("mu", [0.0, 0.25])
def test_the_gambler_meets_the_bound_at_three_quarters_only(mu):
    adversary = Adversary(2.0**-9, 1.0, 1.0, 3.0, 1.0, mu)
    assert gambler(adversary, 0.75) == pytest.approx((1, 1))
    assert gambler(adversary, 0.74)[0] > 1


@pytest.mark.parametrize("method", ["fixed", "multilevel", "accelerated", "L-BFGS-B"])
def test_blindfolded_methods_see_nothing_and_end_at_one_point(method):
    one = Adversary(2.0**-5, 1.0, 1.0, 3.0, 1.0)
    two = one.twin
    ends = [blindfolded(copy, method, 0) for copy in (one, two)]
    assert not one.seen
    assert not two.seen
    assert ends[0].tobytes() == ends[1].tobytes()
    assert one.loss(ends[0]) + two.loss(ends[1]) >= 8 * one.eps * (1 - 1e-9)


def test_lbfgs_at_a_level_that_shows_the_tilt_succeeds():
    adversary = Adversary(2.0**-6, 1.0, 1.0, 3.0, 1.0)
    assert adversary.loss(lbfgs(adversary, adversary.blind_below)) <= adversary.eps


def test_transcripts_agree_until_the_first_look():
    (one, blind_below), (two, _) = (transcript(sign, "multilevel", 3) for sign in (1, -1))
    tau = next(t for t, (k, _) in enumerate(one) if k >= blind_below)
    assert one[: tau + 1] == two[: tau + 1]
    assert one != two


def test_the_chain_counts_what_dense_linear_algebra_counts():
    curvature, modulus, length, target = 16.0, 1.0, 40, 1 / 64
    bend = (curvature - modulus) / 4
    hessian = (2 * bend + modulus) * np.eye(length) - bend * (
        np.eye(length, k=1) + np.eye(length, k=-1)
    )
    push = bend * np.eye(length)[0]
    best = np.linalg.solve(hessian, push)

    def gap(t):
        y = np.zeros(length)
        if t:
            y[:t] = np.linalg.solve(hessian[:t, :t], push[:t])
        return (y - best) @ hessian @ (y - best) / 2 / (best @ best)

    count = next(t for t in range(length) if gap(t) <= target)
    assert chain_queries(curvature, target, modulus, length) == count
