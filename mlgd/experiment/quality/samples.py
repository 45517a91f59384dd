"""Problems whose levels are samples: the first rows of a data set, or frozen random draws.

Where they come from: likelihoods, empirical risk, stochastic programming. Rows are in random
order, so that the first n are a sample of all; the finest level has all of them and is exact.
The price of a level is its rows or draws.
"""

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtri
from scipy.stats import qmc

from .problem import Ladder, powers, problem, sigmoid, softplus

ROWS = "all rows, the finest level"


def correlated(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Features of very different variance, turned, and a column of ones."""
    size = columns - 1
    turn, _ = np.linalg.qr(rng.normal(size=(size, size)))
    scale = np.geomspace(1, 0.05, size)
    features = rng.normal(size=(rows, size)) * scale @ turn
    return np.column_stack([np.ones(rows), features])


@problem("logistic", "rows", convex=True, truth=ROWS)
def logistic(rng: np.random.Generator) -> Ladder:
    """Logistic regression of 8192 rows on twenty correlated features, with a small ridge."""
    ridge = 1e-4
    features = correlated(rng, 8192, 20)
    true = 2 * rng.normal(size=20)
    positive = rng.random(8192) < sigmoid(features @ true)
    signs = np.where(positive, 1.0, -1.0)
    signed = features * signs[:, None]

    def level(n, y):
        rows = signed[:n]
        lost, slope = softplus(-rows @ y)
        value = lost.mean() + ridge * y @ y / 2
        return value, ridge * y - slope @ rows / n

    return Ladder(start=np.zeros(20), sizes=powers(5, 13), level=level)


@problem("poisson", "rows", convex=True, truth=ROWS)
def poisson(rng: np.random.Generator) -> Ladder:
    """Counts by Poisson regression on twelve features: far away the rates overflow to inf."""
    ridge = 1e-3
    features = correlated(rng, 4096, 12)
    true = 0.7 * rng.normal(size=12)
    counts = rng.poisson(np.exp(features @ true))

    def level(n, y):
        rows = features[:n]
        power = rows @ y
        rates = np.exp(power)
        each = rates - counts[:n] * power
        value = each.mean() + ridge * y @ y / 2
        return value, (rates - counts[:n]) @ rows / n + ridge * y

    return Ladder(start=np.zeros(12), sizes=powers(5, 12), level=level)


@problem("survival", "rows", convex=True, truth=ROWS)
def survival(rng: np.random.Generator) -> Ladder:
    """Cox's proportional hazards: the partial likelihood of censored lifetimes.

    A row's term compares it with all that outlived it in the same sample: a level is no mean of
    independent rows.
    """
    ridge = 1e-3
    features = correlated(rng, 2048, 11)[:, 1:]
    hazard = np.exp(features @ rng.normal(size=10))
    died = rng.exponential(size=2048) / hazard
    left = rng.exponential(2.0, size=2048)
    last_seen = np.minimum(died, left)
    sizes = powers(4, 11)

    def sample(n: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows in the order of their times, the longest first; and who was seen to die."""
        order = np.argsort(-last_seen[:n])
        seen = (died <= left)[:n]
        return features[:n][order], seen[order].astype(float)

    samples = {n: sample(n) for n in sizes}

    def level(n, y):
        rows, seen = samples[n]
        power = rows @ y
        top = power.max()
        weight = np.exp(power - top)
        risk = np.cumsum(weight)  # of all that lived at least as long
        each = np.log(risk) + top - power
        value = seen @ each / n + ridge * y @ y / 2
        shares = seen / risk
        counted = np.cumsum(shares[::-1])[::-1]
        slope = weight * counted - seen
        return value, slope @ rows / n + ridge * y

    return Ladder(start=np.zeros(10), sizes=sizes, level=level)


@problem("robust regression", "rows", convex=False, truth=ROWS)
def robust(rng: np.random.Generator) -> Ladder:
    """Regression with Student's t errors, a quarter of the rows spoiled: several minima."""
    rows, ridge = 4096, 1e-4
    features = correlated(rng, rows, 10)
    true = rng.normal(size=10)
    answers = features @ true + 0.3 * rng.standard_t(2, size=rows)
    other = features @ (3 * rng.normal(size=10)) + 5
    spoiled = rng.random(rows) < 0.25
    answers = np.where(spoiled, other, answers)

    def level(n, y):
        off = features[:n] @ y - answers[:n]
        spread = 1 + off**2
        value = 1.5 * np.log(spread).mean() + ridge * y @ y / 2
        return value, 3 * (off / spread) @ features[:n] / n + ridge * y

    start = 0.5 * rng.normal(size=10)
    return Ladder(start=start, sizes=powers(5, 12), level=level)


@problem("clusters", "rows", convex=False, truth=ROWS)
def clusters(rng: np.random.Generator) -> Ladder:
    """Three Gaussian clusters in the plane by maximum likelihood: centres, widths and weights."""
    rows, ridge = 4096, 1e-2
    centres = 2.5 * rng.normal(size=(3, 2))
    widths = np.array([0.5, 1.0, 0.8])
    labels = rng.integers(0, 3, rows)
    noise = rng.normal(size=(rows, 2)) * widths[labels, None]
    points = centres[labels] + noise

    def level(n, y):
        middle = y[:6].reshape(3, 2)
        width, weight = y[6:9], y[9:]
        apart = points[:n, None, :] - middle
        sharp = np.exp(-2 * width)
        square = (apart**2).sum(axis=2) * sharp
        share = weight - logsumexp(weight)
        log = share - 2 * width - square / 2
        total = logsumexp(log, axis=1)
        owner = np.exp(log - total[:, None]) / n
        on_middle = -np.einsum("nc,ncd->cd", owner, apart)
        on_middle *= sharp[:, None]
        on_width = (owner * (2 - square)).sum(axis=0)
        on_weight = np.exp(share) - owner.sum(axis=0)
        slope = np.concatenate([on_middle.ravel(), on_width, on_weight])
        return ridge * y @ y / 2 - total.mean(), slope + ridge * y

    start = np.zeros(12)
    start[:6] = rng.normal(size=6)
    return Ladder(start=start, sizes=powers(5, 12), level=level)


@problem("network", "rows", convex=False, truth=ROWS)
def network(rng: np.random.Generator) -> Ladder:
    """A network of six tanh units on three inputs, least squares with weight decay."""
    rows, decay = 2048, 1e-3
    inputs = np.ones((rows, 4))
    inputs[:, :3] = rng.normal(size=(rows, 3))
    clean = np.sin(2 * inputs[:, 0]) * inputs[:, 1]
    answers = clean + 0.1 * rng.normal(size=rows)

    def level(n, y):
        seen = inputs[:n]
        into = y[:24].reshape(4, 6)
        out, shift = y[24:30], y[30]
        hidden = np.tanh(seen @ into)
        off = hidden @ out + shift - answers[:n]
        back = np.outer(off, out) * (1 - hidden**2)
        on_into = seen.T @ back
        on_out = np.append(off @ hidden, off.sum())
        slope = np.append(on_into.ravel(), on_out) / n
        value = off @ off / (2 * n) + decay * y @ y / 2
        return value, slope + decay * y

    start = 0.5 * rng.normal(size=31)
    return Ladder(start=start, sizes=powers(6, 11), level=level)


@problem("matrix completion", "rows", convex=False, truth="all entries, the finest level")
def completion(rng: np.random.Generator) -> Ladder:
    """A table of 30 x 24 of rank two from some of its entries: matrix factorization."""
    ridge, known = 1e-2, 512
    table = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 24))
    entries = rng.permutation(30 * 24)[:known]
    rows, columns = np.divmod(entries, 24)
    data = table[rows, columns] + 0.1 * rng.normal(size=known)

    def level(n, y):
        left = y[:60].reshape(30, 2)
        right = y[60:].reshape(24, 2)
        i, j = rows[:n], columns[:n]
        off = (left[i] * right[j]).sum(axis=1) - data[:n]
        residual = np.zeros((30, 24))
        residual[i, j] = off / n
        on_left = residual @ right
        on_right = residual.T @ left
        slope = np.append(on_left.ravel(), on_right.ravel())
        value = off @ off / (2 * n) + ridge * y @ y / 2
        return value, slope + ridge * y

    start = 0.3 * rng.normal(size=108)
    return Ladder(start=start, sizes=powers(5, 9), level=level)


@problem("phase retrieval", "rows", convex=False, truth=ROWS)
def phases(rng: np.random.Generator) -> Ladder:
    """A signal from the sizes of its products with known vectors: phase retrieval."""
    rows = 1024
    vectors = rng.normal(size=(rows, 16))
    signal = rng.normal(size=16) / 2
    squares = (vectors @ signal) ** 2
    squares += 0.2 * rng.normal(size=rows)

    def level(n, y):
        product = vectors[:n] @ y
        off = product**2 - squares[:n]
        return off @ off / (4 * n), (off * product) @ vectors[:n] / n

    start = signal + 0.6 * rng.normal(size=16)
    return Ladder(start=start, sizes=powers(5, 10), level=level)


@problem(
    "portfolio",
    "draws",
    convex=True,
    truth="the expectation, in closed form",
    shares=(1e-1, 3e-2, 1e-2),
)
def portfolio(rng: np.random.Generator) -> Ladder:
    """The entropic risk of ten assets in calm and in crisis, from n quasi-random scenarios.

    Scrambled Sobol points, frozen. The truth is the limit: of a mixture of two Gaussians it is
    known in closed form.
    """
    calm, crisis = 0, 1
    chance = np.array([0.9, 0.1])
    means = np.zeros((2, 10))
    means[calm] = rng.uniform(0.0, 0.3, 10)
    means[crisis] = rng.uniform(-1.0, 0.0, 10)
    roots = rng.normal(size=(2, 10, 10))
    roots[calm] *= 0.3
    roots[crisis] *= 0.5
    sizes = powers(4, 14)
    points = qmc.Sobol(11, seed=rng).random(sizes[-1])
    normal = ndtri(np.clip(points[:, :10], 1e-12, 1 - 1e-12))
    state = (points[:, 10] < chance[crisis]).astype(int)
    shocks = np.einsum("nij,nj->ni", roots[state], normal)
    returns = means[state] + shocks

    def level(n, y):
        power = -returns[:n] @ y
        total = logsumexp(power)
        weight = np.exp(power - total)
        value = total - np.log(n) + y @ y / 2
        return value, y - weight @ returns[:n]

    def limit(y):
        turned = np.einsum("sij,i->sj", roots, y)
        variance = (turned**2).sum(axis=1)
        power = np.log(chance) - means @ y + variance / 2
        total = logsumexp(power)
        weight = np.exp(power - total)
        slopes = np.einsum("sij,sj->si", roots, turned) - means
        return total + y @ y / 2, weight @ slopes + y

    return Ladder(start=np.zeros(10), sizes=sizes, level=level, limit=limit)


@problem(
    "stock", "draws", convex=True, truth="the expectation, by Gauss's rule of 1200 nodes"
)
def stock(rng: np.random.Generator) -> Ladder:
    """How much of eight goods to order before demand is known: the newsvendor's problem.

    Demand is lognormal, in n plain frozen draws; all goods share a shelf, a smooth penalty. The
    truth is the limit, an integral for each of the goods.
    """
    ridge, width = 1e-2, 0.02
    spread = rng.uniform(0.3, 0.9, 8)
    margin = rng.uniform(1.5, 6.0, 8)
    draws = np.exp(spread * rng.normal(size=(8192, 8)))
    nodes, weights = np.polynomial.legendre.leggauss(1200)
    z = 8 * nodes
    density = 8 * weights * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    demand = np.exp(np.outer(z, spread))

    def total(demand: np.ndarray, chance: np.ndarray, y: np.ndarray):
        short, slope = softplus(demand - y, width)
        over, push = softplus(y.sum() - 9.0, 0.5)
        off = y - 1
        paid = y.sum() + over + ridge * off @ off / 2
        lost = chance @ short @ margin
        gradient = 1 + push + ridge * off - margin * (chance @ slope)
        return paid + lost, gradient

    def level(n, y):
        return total(draws[:n], np.full(n, 1 / n), y)

    return Ladder(
        start=np.full(8, 3.0),
        sizes=powers(5, 13),
        level=level,
        limit=lambda y: total(demand, density, y),
    )


@problem(
    "random intercepts",
    "draws",
    convex=False,
    truth="the integral, by Gauss and Hermite's rule of 60 nodes",
)
def persons(rng: np.random.Generator) -> Ladder:
    """A probit model with a random intercept for each of a hundred persons, four answers each.

    A person's likelihood is an integral over the intercept, by n frozen draws, one in each of n
    equal strata. The truth is the limit.
    """
    count, ridge = 100, 1e-2
    features = rng.normal(size=(count, 4, 3))
    intercepts = 0.4 + 1.5 * rng.normal(size=(count, 1))
    power = features @ np.array([1.0, -0.5, 0.3]) + intercepts
    signs = np.sign(power + rng.normal(size=(count, 4)))
    sizes = powers(1, 7)

    def strata(n: int) -> np.ndarray:
        within = rng.uniform(0.05, 0.95, n)
        return ndtri((np.arange(n) + within) / n)

    draws = {n: strata(n) for n in sizes}
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    chance = weights / weights.sum()

    def total(z: np.ndarray, chance: np.ndarray, y: np.ndarray):
        """-log of the mean likelihood over intercepts y[3] + exp(y[4]) z."""
        width = np.exp(y[4])
        fixed = signs * (features @ y[:3] + y[3])
        power = fixed[:, :, None] + width * signs[:, :, None] * z
        log = log_ndtr(power)
        each = log.sum(axis=1) + np.log(chance)
        likelihood = logsumexp(each, axis=1)
        share = np.exp(each - likelihood[:, None])
        density = np.exp(-(power**2) / 2 - log) / np.sqrt(2 * np.pi)
        slope = share[:, None, :] * density * signs[:, :, None]
        on_fixed = slope.sum(axis=2)
        on_features = np.einsum("pt,ptf->f", on_fixed, features)
        on_width = width * (slope @ z).sum()
        gradient = np.append(on_features, [on_fixed.sum(), on_width])
        value = ridge * y @ y / 2 - likelihood.mean()
        return value, ridge * y - gradient / count

    def level(n, y):
        return total(draws[n], np.full(n, 1 / n), y)

    return Ladder(
        start=np.array([0.0, 0.0, 0.0, 0.0, -1.0]),
        sizes=sizes,
        level=level,
        limit=lambda y: total(nodes, chance, y),
    )


LIKELIHOODS = (logistic, poisson, survival, robust, clusters, network, completion, phases)
EXPECTATIONS = (portfolio, stock, persons)
PROBLEMS = (*LIKELIHOODS, *EXPECTATIONS)
