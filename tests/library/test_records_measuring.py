"""What measuring a hierarchy finds, on record as in `test_records`: lines, responses, spectra, audits and estimates.

After a change that is meant to move a number, write the records anew and read the difference:

    python tests/library/test_records_measuring.py
"""

import json
from pathlib import Path

import numpy as np
import pytest
from test_records import CURVATURE, LADDERS, MEASURES, PROBLEMS, START, differences, plain

from mlgd import Hierarchy, audit, estimate, minimize
from mlgd.examples import biased, rounded, series
from mlgd.moments import (
    Responses,
    _sums,
    _weights,
    certified_bias,
    falls,
    powers,
    spectrum,
    steps_grid,
    worst,
)
from mlgd.rates import beyond, line, regularity, student
from mlgd.searching import Ladder
from mlgd.seen import Seen, spread
from mlgd.spectra import Measure, lanczos

FILE = Path(__file__).with_name("records_measuring.json")
WIDE = np.geomspace(1e-4, 1, 30)
BEND = np.random.default_rng(7).normal(size=(12, 30, 30)) / 60
ASIDE = np.random.default_rng(8).normal(size=(12, 30)) / 6


def lines():
    rng, out = np.random.default_rng(0), []
    for n, bent, scatter in (
        (2, 0.0, 0.0),
        (3, 0.0, 0.1),
        (5, 0.0, 0.3),
        (7, 0.02, 0.01),
        (9, 0.0, 0.2),
        (9, 0.05, 0.05),
    ):
        price = 3.0 ** np.arange(n) * np.exp(0.2 * rng.normal(size=n))
        size = price**-0.4 * np.exp(scatter * rng.normal(size=n) - bent * np.arange(n) ** 2)
        out += [
            line(price, size, list(range(n))),
            line(price, np.where(np.arange(n) < 2, 20.0, 1.0) * size, list(range(n))),
        ]
    out.append([student(n) for n in (1, 2, 5, 10, 11, 30)])
    out.append([beyond(r, c) for r in (0.2, 0.5, 0.9) for c in (-0.9, -0.4, 0.0, 0.6, 1.0)])
    for reach in (0.03, 0.3, 3.0):
        points = [
            START + reach * s * v
            for s, v in zip((0.0, 0.1, 0.3, 1.0, 1.7), rng.normal(size=(5, 4)), strict=True)
        ]
        fields = (
            lambda k, y: 2.0**-k * np.sin(y),
            lambda k, y: 2.0**-k * np.sign(np.sin(40 * y)),
            lambda k, y: 2.0**-k * np.sin(1e5 * y),
        )
        for f in (
            *fields,
            lambda k, y: 2.0**-k * np.sqrt(np.abs(y - START[0])),
            lambda k, y: 2.0**-k * np.ones(4),
        ):
            out.append(
                regularity(points, np.array([[f(k, y) for y in points] for k in range(5)]), 1e-14)
            )
    return [*out, regularity([START], np.ones((3, 1, 4)), 1e-14)]


def moments():
    out = [
        powers(np.array([-0.5, 0.0, 0.3, 1.0]), np.array([[1], [2], [7]])),
        falls(0.9, CURVATURE, np.array([[1.0], [5.0], [400.0]])),
    ]
    out += [spectrum(1.0, mu, 1.0, t)[::32] for mu, t in ((0.0, 10.0), (0.01, 1e4), (1.0, 10.0))]
    for mu in (0.0, 0.02, 1.0):
        for eta in (0.5, 1.0, 1.8):
            out += [worst(1.0, mu, eta, np.array([1, 10, 200]), np.array([0, 5, 300]))]
            out += [certified_bias(1.0, mu, eta, w, t) for w, t in ((1, 1), (5, 40), (60, 60))]
    settings = (np.array([0.5, 1.0, 1.7]), np.array([1.0, 8.0, 50.0]), np.array([1.0, 20.0, 400.0]))
    out.append(Responses.at(np.append(CURVATURE, 1e-7), *settings))
    grid = steps_grid(500.0, [3, 77, 0, 500])
    return [
        *out,
        grid,
        steps_grid(0.0, [1]),
        _weights(grid),
        _sums(grid, 1 / grid, np.array([0.0, 1.0, 77.0, 500.0])),
    ]


def spectra():
    rng, out = np.random.default_rng(3), []
    turn = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    matrix = turn * WIDE @ turn.T
    for steps, tolerance in ((5, 0.0), (12, 0.0), (30, 0.0), (30, 0.05)):
        found = lanczos(lambda v: matrix @ v, np.ones(30), steps, tolerance)
        m = found.measure
        out.append(
            [
                m.nodes,
                m.weights,
                m.total,
                m.integral(lambda x: 1 / x),
                found.least,
                m.complete,
                m.scaled(2.0).total,
            ]
        )
        out.append([m.radau(floor).weights for floor in (1e-6, 5e-5)])
    for floor in (0.0, 1e-3, 0.015, 0.5):
        out.append(
            [spread(CURVATURE, w, floor) for w in (np.ones(4), np.array([5.0, 1.0, 0.1, 0.0]))]
        )
    out += [spread(np.array([0.3]), np.ones(1), 0.0)]
    for h in LADDERS.values():
        ladder = Ladder.of(h)
        seen = Seen.of(PROBLEMS[0.02], ladder)
        out.append([seen.start, seen.steps, seen.biases, seen.floors, seen.rates])
        out.append(
            seen.losses(np.array([0.5, 1.5]), np.array([3.0, 40.0]), np.array([10.0, 300.0]))
        )
    return [
        *out,
        Measure(*map(np.array, ([0.0, 1.0], [1.0, 1.0]))).integral(lambda x: 1 / x),
        MEASURES.gradient.total,
    ]


def hierarchies():
    """Smooth errors, jumping ones, unrelated ones, constant ones, and a ladder that gets no better."""
    straight = lambda y: WIDE * (y - 1)  # noqa: E731
    near = {
        "bending": lambda k, y: straight(y) + 2.0**-k * (ASIDE[k] + 0.3 * BEND[k] @ y),
        "constant": lambda k, y: straight(y) + 2.0**-k * ASIDE[k],
        "fresh": lambda k, y: straight(y) + 2.0**-k * np.sin(1e7 * y * ASIDE[k]) / 6,
        "useless": lambda k, y: straight(y) + ASIDE[k] * 0.1,
        "tanh": lambda k, y: np.tanh(straight(y)) + 2.0**-k * ASIDE[k],
    }
    made = {name: Hierarchy(f, lambda k: 6.0**k, range(9)) for name, f in near.items()}
    return made | {
        make.__name__: make(straight, 2.5, 0.8, range(1, 10)) for make in (biased, rounded, series)
    }


def measured(name):
    h, y0 = hierarchies()[name], np.zeros(30)
    rng = np.random.default_rng(9)
    points = [
        y0,
        *(
            y0 + s * v
            for s, v in zip((0.001, 0.01, 0.03, 0.3), rng.normal(size=(4, 30)), strict=True)
        ),
    ]
    report, alone = audit(h, points), audit(h, [y0], reference=lambda y: WIDE * (y - 1))
    out = [
        str(report),
        str(alone),
        report.tail,
        report.change,
        report.gamma_range,
        report.cost,
        report.coarse_norm,
        alone.c,
    ]
    out.append([report.hierarchy.accuracy(k) for k in h.levels])
    if name in (
        "bending",
        "constant",
        "tanh",
        "biased",
        "series",
    ):  # where errors jump, rounding decides too
        for options in ({}, {"known": report}, {"budget": 2e4}):
            found = estimate(h, y0, rng=4, **options)
            out.append(
                [
                    found.beta,
                    found.mu,
                    found.d0,
                    found.level,
                    found.step,
                    found.cost,
                    found.evaluations,
                    found.reached[::9],
                ]
            )
            out.append(
                [
                    found.measures.gradient.total,
                    found.measures.floor,
                    {k: m.total for k, m in found.measures.increments.items()},
                ]
            )
    return out


def chosen(name):
    """Runs without a plan: what they decide, count by count; their sentences are other tests' affair."""
    h, out = hierarchies()[name], []
    for options in (
        {"eps": 1e-1},
        {"eps": 1e-3},
        {"eps": 1e-5},
        {"max_cost": 3e4},
        {"eps": 1e-3, "max_cost": 900.0},
    ):
        r = minimize(
            h, np.zeros(30), rng=2, loss=lambda y: float(WIDE @ (y - 1) ** 2) / 2, **options
        )
        out.append(
            [
                r.status,
                r.promise,
                r.steps,
                r.cost,
                sorted(r.cost_by_purpose),
                r.estimate,
                r.fun,
                len(r.choices),
                r.y[::7],
            ]
        )
    return out


CASES = (
    {"lines": lines, "moments": moments, "spectra": spectra}
    | {name: lambda name=name: measured(name) for name in hierarchies()}
    | {
        f"chosen {name}": lambda name=name: chosen(name)
        for name in (
            "bending",
            "constant",
            "tanh",
            "useless",
        )  # on the others rounding decides whether a level is asked
    }
)


@pytest.mark.parametrize("name", CASES)
def test_nothing_has_changed(name):
    exact = name in (
        "lines",
        "moments",
        "spectra",
    )  # elsewhere rounding may add a product, and a run go on from there
    share = 1e-6 if exact else 0.1 if name.startswith("chosen") else 0.02
    found = differences(plain(CASES[name]()), json.loads(FILE.read_text())[name], share=share)
    assert not found, f"{len(found)} numbers: " + "; ".join(found[:3])


if __name__ == "__main__":
    FILE.write_text(
        json.dumps({name: plain(case()) for name, case in CASES.items()}, separators=(",", ":"))
        + "\n"
    )
