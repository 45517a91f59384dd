"""Adversaries on quadratics stay within the theorem, and each alone attains its part of it."""

import numpy as np
import pytest

from mlgd.experiment.moments import Responses
from mlgd.experiment.quadratics import attacks, output


def test_the_output_has_the_responses_of_the_closed_form():
    lam, eta, window, steps = np.array([0.1, 0.6, 1.0]), 1.3, 7, 20
    found = Responses.at(lam, np.array([eta]), np.array([window]), np.array([steps]))
    start, error = np.array([1.0, -2.0, 3.0]), np.array([0.3, 0.1, -0.2])
    expected = found.start[0] * start - found.lasting[0] * error
    np.testing.assert_allclose(
        output(lam, eta, window, start, np.tile(error, (steps, 1))), expected, rtol=1e-12
    )


@pytest.mark.parametrize(("eta", "window", "steps"), [(1.0, 20, 60), (1.6, 50, 120)])
def test_adversaries_attain_each_part_and_never_exceed_the_whole(eta, window, steps):
    found = attacks(np.geomspace(0.02, 1.0, 128), eta, window, steps, (1.0, 0.1, 0.5))
    assert all(value <= 1 for value in found.values())
    assert all(found[name] > 0.98 for name in ("start", "bias", "noise"))
    assert found["all"] > 0.5
