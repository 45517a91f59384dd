"""Problems whose levels are samples: the first rows of a data set, or frozen random draws.

Where they come from: likelihoods, empirical risk, stochastic programming. Rows are in random
order, so that the first n are a sample of all; the finest level has all of them and is exact.
The price of a level is its rows or draws.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtri
from scipy.stats import qmc

from .meshes import powers
from .problem import Problem, finest, sigmoid, softplus


def empirical(name: str, convex: bool, seed: int, start, levels, level: Callable) -> Problem:
    """A problem whose levels are the first rows of its data, the finest all of them."""
    return Problem(
        name=name,
        kind="rows",
        convex=convex,
        seed=seed,
        start=start,
        levels=levels,
        price=float,
        level=level,
        truth=finest(levels, level),
        limit="all rows, the finest level",
        exact=True,
    )


def correlated(rng, rows: int, columns: int) -> np.ndarray:
    """Features of very different variance, turned, and a column of ones."""
    turn = np.linalg.qr(rng.normal(size=(columns - 1, columns - 1)))[0]
    scale = np.geomspace(1, 0.05, columns - 1)
    features = rng.normal(size=(rows, columns - 1)) * scale @ turn
    return np.column_stack([np.ones(rows), features])


def logistic(seed: int) -> Problem:
    """Logistic regression of 8192 rows on twenty correlated features, with a small ridge."""
    rng = np.random.default_rng([21, seed])
    features = correlated(rng, 8192, 20)
    chance = sigmoid(features @ (2 * rng.normal(size=20)))
    signs = np.where(rng.random(8192) < chance, 1.0, -1.0)
    signed = features * signs[:, None]

    def level(n, y):
        lost, slope = softplus(-signed[:n] @ y)
        return lost.mean() + 1e-4 * y @ y / 2, -slope @ signed[:n] / n + 1e-4 * y

    return empirical("logistic", True, seed, np.zeros(20), powers(5, 13), level)


def poisson(seed: int) -> Problem:
    """Counts by Poisson regression on twelve features: far away the rates overflow to inf."""
    rng = np.random.default_rng([22, seed])
    features = correlated(rng, 4096, 12)
    counts = rng.poisson(np.exp(features @ (0.7 * rng.normal(size=12)))).astype(float)

    def level(n, y):
        power = features[:n] @ y
        rates = np.exp(power)
        value = (rates - counts[:n] * power).mean() + 1e-3 * y @ y / 2
        return value, (rates - counts[:n]) @ features[:n] / n + 1e-3 * y

    return empirical("poisson", True, seed, np.zeros(12), powers(5, 12), level)


def survival(seed: int) -> Problem:
    """Cox's proportional hazards: the partial likelihood of censored lifetimes.

    A row's term compares it with all that outlived it in the same sample: a level is no mean of
    independent rows.
    """
    rng = np.random.default_rng([23, seed])
    features = correlated(rng, 2048, 11)[:, 1:]
    hazard = np.exp(features @ rng.normal(size=10))
    died = rng.exponential(size=2048) / hazard
    left = rng.exponential(2.0, size=2048)
    time = np.minimum(died, left)
    levels = powers(4, 11)

    def sample(n: int):
        order = np.argsort(-time[:n])  # those at risk come first
        return features[:n][order], (died <= left)[:n][order].astype(float)

    samples = {n: sample(n) for n in levels}

    def level(n, y):
        rows, seen = samples[n]
        power = rows @ y
        top = power.max()
        weight = np.exp(power - top)
        risk = np.cumsum(weight)
        value = seen @ (np.log(risk) + top - power) / n + 1e-3 * y @ y / 2
        later = np.cumsum((seen / risk)[::-1])[::-1]
        return value, (weight * later - seen) @ rows / n + 1e-3 * y

    return empirical("survival", True, seed, np.zeros(10), levels, level)


def robust(seed: int) -> Problem:
    """Regression with Student's t errors, a quarter of the rows spoiled: several minima."""
    rng = np.random.default_rng([24, seed])
    features = correlated(rng, 4096, 10)
    answers = features @ rng.normal(size=10) + 0.3 * rng.standard_t(2, size=4096)
    spoiled = rng.random(4096) < 0.25
    answers = np.where(spoiled, features @ (3 * rng.normal(size=10)) + 5, answers)

    def level(n, y):
        off = features[:n] @ y - answers[:n]
        value = 1.5 * np.log1p(off**2).mean() + 1e-4 * y @ y / 2
        return value, 3 * (off / (1 + off**2)) @ features[:n] / n + 1e-4 * y

    start = 0.5 * rng.normal(size=10)
    return empirical("robust regression", False, seed, start, powers(5, 12), level)


def mixture(seed: int) -> Problem:
    """Three Gaussian clusters in the plane by maximum likelihood: centres, widths and weights."""
    rng = np.random.default_rng([25, seed])
    centres = 2.5 * rng.normal(size=(3, 2))
    labels = rng.integers(0, 3, 4096)
    points = centres[labels] + rng.normal(size=(4096, 2)) * np.array([0.5, 1.0, 0.8])[labels, None]

    def level(n, y):
        middle, width, weight = y[:6].reshape(3, 2), y[6:9], y[9:]
        apart = points[:n, None, :] - middle
        square = (apart**2).sum(axis=2) * np.exp(-2 * width)
        share = weight - logsumexp(weight)
        log = share - 2 * width - square / 2
        total = logsumexp(log, axis=1)
        owner = np.exp(log - total[:, None]) / n
        on_middle = -np.einsum("nc,ncd->cd", owner, apart) * np.exp(-2 * width)[:, None]
        on_width = (owner * (2 - square)).sum(axis=0)
        on_weight = np.exp(share) - owner.sum(axis=0)
        ridge = 1e-2 * y
        value = -total.mean() + y @ ridge / 2
        return value, np.concatenate([on_middle.ravel(), on_width, on_weight]) + ridge

    start = np.concatenate([rng.normal(size=6), np.zeros(6)])
    return empirical("clusters", False, seed, start, powers(5, 12), level)


def network(seed: int) -> Problem:
    """A network of six tanh units on three inputs, least squares with weight decay."""
    rng = np.random.default_rng([26, seed])
    inputs = np.column_stack([rng.normal(size=(2048, 3)), np.ones(2048)])
    answers = np.sin(2 * inputs[:, 0]) * inputs[:, 1] + 0.1 * rng.normal(size=2048)

    def level(n, y):
        into, out = y[:24].reshape(4, 6), y[24:]
        hidden = np.tanh(inputs[:n] @ into)
        off = hidden @ out[:6] + out[6] - answers[:n]
        back = np.outer(off, out[:6]) * (1 - hidden**2)
        on_out = np.append(off @ hidden, off.sum())
        gradient = np.append((inputs[:n].T @ back).ravel(), on_out) / n
        return off @ off / (2 * n) + 1e-3 * y @ y / 2, gradient + 1e-3 * y

    return empirical("network", False, seed, 0.5 * rng.normal(size=31), powers(6, 11), level)


def completion(seed: int) -> Problem:
    """A table of 30 x 24 of rank two from some of its entries: matrix factorization."""
    rng = np.random.default_rng([27, seed])
    left, right = rng.normal(size=(30, 2)), rng.normal(size=(24, 2))
    order = rng.permutation(720)[:512]
    rows, columns = np.divmod(order, 24)
    data = (left @ right.T)[rows, columns] + 0.1 * rng.normal(size=512)

    def level(n, y):
        u, v = y[:60].reshape(30, 2), y[60:].reshape(24, 2)
        i, j = rows[:n], columns[:n]
        off = (u[i] * v[j]).sum(axis=1) - data[:n]
        table = np.zeros((30, 24))
        table[i, j] = off / n
        gradient = np.append((table @ v).ravel(), (table.T @ u).ravel())
        return off @ off / (2 * n) + 1e-2 * y @ y / 2, gradient + 1e-2 * y

    start = 0.3 * rng.normal(size=108)
    return empirical("matrix completion", False, seed, start, powers(5, 9), level)


def phases(seed: int) -> Problem:
    """A signal from the sizes of its products with known vectors: phase retrieval."""
    rng = np.random.default_rng([28, seed])
    vectors = rng.normal(size=(1024, 16))
    signal = rng.normal(size=16) / 2
    squares = (vectors @ signal) ** 2 + 0.2 * rng.normal(size=1024)

    def level(n, y):
        seen = vectors[:n] @ y
        off = seen**2 - squares[:n]
        return off @ off / (4 * n), (off * seen) @ vectors[:n] / n

    start = signal + 0.6 * rng.normal(size=16)
    return empirical("phase retrieval", False, seed, start, powers(5, 10), level)


def portfolio(seed: int) -> Problem:
    """The entropic risk of ten assets in calm and in crisis, from n quasi-random scenarios.

    Scrambled Sobol points, frozen. The truth is the limit: a mixture of two Gaussians has it in
    closed form.
    """
    rng = np.random.default_rng([31, seed])
    means = np.stack([rng.uniform(0.0, 0.3, 10), rng.uniform(-1.0, 0.0, 10)])
    roots = np.stack([0.3 * rng.normal(size=(10, 10)), 0.5 * rng.normal(size=(10, 10))])
    crisis = 0.1
    levels = powers(4, 14)
    points = qmc.Sobol(11, seed=rng).random(levels[-1])
    normal = ndtri(np.clip(points[:, :10], 1e-12, 1 - 1e-12))
    bad = (points[:, 10] < crisis).astype(int)
    returns = means[bad] + np.einsum("nij,nj->ni", roots[bad], normal)

    def level(n, y):
        power = -returns[:n] @ y
        value = logsumexp(power) - np.log(n)
        weight = np.exp(power - logsumexp(power))
        return value + y @ y / 2, -weight @ returns[:n] + y

    def truth(y):
        turned = np.einsum("sij,i->sj", roots, y)
        power = -means @ y + (turned**2).sum(axis=1) / 2
        power = power + np.log([1 - crisis, crisis])
        weight = np.exp(power - logsumexp(power))
        slopes = -means + np.einsum("sij,sj->si", roots, turned)
        return logsumexp(power) + y @ y / 2, weight @ slopes + y

    return Problem(
        name="portfolio",
        kind="draws",
        convex=True,
        seed=seed,
        start=np.zeros(10),
        levels=levels,
        price=float,
        level=level,
        truth=truth,
        limit="the expectation, in closed form",
        shares=(1e-1, 3e-2, 1e-2),
    )


def stock(seed: int) -> Problem:
    """How much of eight goods to order before demand is known: the newsvendor's problem.

    Demand is lognormal, in n plain frozen draws; all goods share a shelf, a smooth penalty. The
    truth is the limit, by the lognormal's partial expectations.
    """
    rng = np.random.default_rng([32, seed])
    spread = rng.uniform(0.3, 0.9, 8)
    margin = rng.uniform(1.5, 6.0, 8)
    draws = np.exp(spread * rng.normal(size=(8192, 8)))
    levels = powers(5, 13)

    def shelf(y):
        over, slope = softplus(y.sum() - 9.0, 0.5)
        ridge = 1e-2 * (y - 1)
        return over + y.sum() + ridge @ (y - 1) / 2, slope + 1 + ridge

    def level(n, y):
        short, slope = softplus(draws[:n] - y, 0.02)
        value, gradient = shelf(y)
        return value + margin @ short.mean(axis=0), gradient - margin * slope.mean(axis=0)

    nodes, weights = np.polynomial.legendre.leggauss(1200)
    z = 8 * nodes[:, None]
    density = 8 * weights[:, None] * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    demand = np.exp(spread * z)

    def truth(y):
        short, slope = softplus(demand - y, 0.02)
        value, gradient = shelf(y)
        return value + margin @ (density * short).sum(axis=0), gradient - margin * (
            density * slope
        ).sum(axis=0)

    return Problem(
        name="stock",
        kind="draws",
        convex=True,
        seed=seed,
        start=np.full(8, 3.0),
        levels=levels,
        price=float,
        level=level,
        truth=truth,
        limit="the expectation, by Gauss's rule of 1200 nodes",
    )


def persons(seed: int) -> Problem:
    """A probit model with a random intercept for each of a hundred persons, four answers each.

    A person's likelihood is an integral over the intercept, by n frozen draws, one in each of n
    equal strata. The truth is the limit, by Gauss and Hermite's rule. Not convex.
    """
    rng = np.random.default_rng([33, seed])
    features = rng.normal(size=(100, 4, 3))
    coefficients = np.array([1.0, -0.5, 0.3])
    hidden = 1.5 * rng.normal(size=(100, 1)) + 0.4
    signs = np.sign(features @ coefficients + hidden + rng.normal(size=(100, 4)))
    levels = powers(1, 7)
    strata = {n: ndtri((rng.permutation(n) + rng.uniform(0.05, 0.95, n)) / n) for n in levels}
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)

    def marginal(z, log_weights, y):
        """-log of the mean likelihood over intercepts y[3] + exp(y[4]) z."""
        width = np.exp(y[4])
        power = signs * (features @ y[:3] + y[3])
        power = power[:, :, None] + width * signs[:, :, None] * z
        log = log_ndtr(power)
        each = log.sum(axis=1) + log_weights
        total = logsumexp(each, axis=1)
        share = np.exp(each - total[:, None])
        slope = np.exp(-(power**2) / 2 - log) / np.sqrt(2 * np.pi) * signs[:, :, None]
        pulled = share[:, None, :] * slope
        on_line = pulled.sum(axis=2)
        gradient = [
            *np.einsum("pt,ptf->f", on_line, features),
            on_line.sum(),
            width * (pulled @ z).sum(),
        ]
        return -total.mean() + 1e-2 * y @ y / 2, -np.array(gradient) / 100 + 1e-2 * y

    return Problem(
        name="random intercepts",
        kind="draws",
        convex=False,
        seed=seed,
        start=np.array([0.0, 0.0, 0.0, 0.0, -1.0]),
        levels=levels,
        price=float,
        level=lambda n, y: marginal(strata[n], -np.log(n), y),
        truth=lambda y: marginal(nodes, np.log(weights / weights.sum()), y),
        limit="the integral, by Gauss and Hermite's rule of 60 nodes",
    )


PROBLEMS = (
    *(logistic, poisson, survival, robust, mixture, network, completion, phases),
    *(portfolio, stock, persons),
)
