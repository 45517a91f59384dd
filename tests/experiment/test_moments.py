"""The responses of averaged descent against descent itself, and the worst case against adversaries."""

import math

import numpy as np
import pytest

from mlgd.experiment.moments import MARGIN, Responses, certified_bias, worst

CASES = [  # beta, mu, eta, window, steps
    (1.0, 1e-2, 1.0, 30, 100),
    (1.0, 1e-2, 1.6, 30, 101),
    (2.0, 0.0, 0.5, 100, 400),
    (2.0, 0.0, 0.5, 17, 17),
    (1.0, 0.3, 1.0, 1, 9),
    (1.0, 1e-3, 1.8, 200, 900),
]


def coefficients(lam, eta, window, steps):
    """a, and the response to each step's error, by running descent from one without errors and from zero with one each."""
    y = np.vstack([np.ones(lam.size), np.zeros((steps, lam.size))])
    out = np.zeros_like(y)
    for s in range(steps):
        y *= 1 - eta * lam
        y[1 + s] -= eta
        if s >= steps - window:
            out += y / window
    return out[0], -out[1:]


@pytest.mark.parametrize(("beta", "mu", "eta", "window", "steps"), CASES)
def test_worst_responses_are_maxima_over_eigenvalues(beta, mu, eta, window, steps):
    lam = np.geomspace(max(mu, 1e-3 / steps), beta, 300)
    a, c = coefficients(lam, eta, window, steps)
    found = worst(beta, mu, eta, np.array([window]), np.array([steps - window]))
    root = np.sqrt(lam) * np.abs(c)
    for name, truth in {
        "horizon": (lam * a**2).max() / 2,
        "bias": root.sum(axis=0).max() ** 2 / 2,
        "noise": (root.max(axis=1) ** 2).sum() / 2,
    }.items():
        assert truth * (1 - 1e-9) <= getattr(found, name)[0, 0] <= truth * MARGIN * 1.01, name
    # between an error that keeps its direction and one that takes each step's own: the certificate
    assert root.sum(axis=0).max() ** 2 / 2 <= certified_bias(beta, mu, eta, window, steps)
    assert (
        certified_bias(beta, mu, eta, window, steps)
        <= root.max(axis=1).sum() ** 2 / 2 * MARGIN * 1.01
    )


@pytest.mark.parametrize(("beta", "mu", "eta", "window", "steps"), CASES)
def test_responses_at_eigenvalues_are_sums_of_coefficients(beta, mu, eta, window, steps):
    lam = np.geomspace(max(mu, 1e-2 / steps), beta, 40)
    a, c = coefficients(lam, eta, window, steps)
    found = Responses.at(lam, np.array([eta]), np.array([window]), np.array([steps]))
    np.testing.assert_allclose(found.start[0], a, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(found.lasting[0], c.sum(axis=0), rtol=1e-7)
    np.testing.assert_allclose(found.noise[0], (c**2).sum(axis=0), rtol=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_no_moving_error_exceeds_the_certificate(seed):
    """Errors of norm one aimed, step by step, along the response of a random direction: the best an adversary can do for it."""
    rng = np.random.default_rng(seed)
    lam = np.geomspace(1e-2, 1.0, 40)
    _, c = coefficients(lam, 1.0, 20, 60)
    bound = certified_bias(1.0, 1e-2, 1.0, 20, 60)
    for _ in range(50):
        u = rng.dirichlet(np.full(lam.size, 0.1)) ** 0.5
        aimed = np.sqrt(lam) * c * u
        aimed /= np.linalg.norm(aimed, axis=1, keepdims=True)
        assert np.sum((np.sqrt(lam) * c * aimed).sum(axis=0) ** 2) / 2 <= bound


def test_errors_that_follow_the_noise_do_more_harm_but_at_most_double():
    """T = 2, W = 1, one eigenvalue: the second error copies the sign of the first noise."""
    lam, eta, sigma, delta = 0.5, 1.0, 1.0, 0.4
    x = 1 - eta * lam
    harm = lam / 2 * eta**2 * (x * sigma + delta) ** 2  # xi_0 = +-sigma, b_1 = delta sign(xi_0)
    free = lam / 2 * eta**2 * (x**2 * sigma**2 + delta**2)
    assert harm > 1.5 * free
    assert harm <= 2 * free
    assert math.isclose(
        harm, (math.sqrt(lam / 2) * eta * x * sigma + math.sqrt(lam / 2) * eta * delta) ** 2
    )
