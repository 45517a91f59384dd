"""mlgd.experiment.protocol: the defaults are the paper's, the seeds ours, and a result survives its file."""

import json

import numpy as np
import pytest

from mlgd.experiment.protocol import SEEDS, Protocol, SeedResult, run_seed

TINY = Protocol(
    m=64,
    n=512,
    ladder=(1, 4, 16),
    seeds=(0,),
    scales=(1, 4),
    max_steps=500,
    max_flops=1e6,
    targets=4,
)


def test_the_defaults_are_the_paper_s_and_the_seeds_those_named_in_advance():
    p = Protocol()
    assert (p.m, p.n, p.phi, p.rho, p.ladder) == (2048, 131072, 1.2, 0.6, (1, 8, 64, 512))
    assert p.seeds == SEEDS == tuple(range(100, 120))
    assert abs(p.gamma - 3) < 1e-12
    assert p.baseline == (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    assert (len(p.levels), int((p.levels < 32).sum())) == (18, 9)
    np.testing.assert_allclose(p.losses[[0, -1]], [10**-0.3, 1e-2])
    assert Protocol(ladder=(1, 3, 9, 27), m=64).levels.max() <= 27


def test_a_result_survives_its_file():
    result = run_seed(TINY, 0)
    again = SeedResult.from_json(json.loads(json.dumps(result.to_json())))
    assert again.to_json() == result.to_json()
    assert again.frontiers["exact", 1].runs == result.frontiers["exact", 1].runs
    assert result.to_json() != run_seed(TINY, 1).to_json()


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"m": 256}, "exceeds m=256"),
        ({"n": 400}, "smaller than k_max=512"),
        ({"phi": 2.0}, "phi"),
        ({"phi": 0.0}, "phi"),
        ({"rho": 1.0}, "rho"),
        ({"ladder": (1, 8, 63, 512)}, "not geometric"),
        ({"ladder": (8, 4, 2)}, "not geometric"),
        ({"ladder": (4,)}, "two levels"),
        ({"seeds": ()}, "seed"),
        ({"seeds": (1, 1)}, "seed"),
        ({"scales": (0.5,)}, "coarsest level"),
        ({"shrinks": (2.0,)}, "fractions"),
        ({"tightest": -0.1}, "targets"),
        ({"probes": (0, 3)}, "among the wide probes"),
        ({"max_steps": 0}, "at least 1"),
    ],
)
def test_bad_sizes_are_refused_at_once(sizes, words):
    with pytest.raises(ValueError, match=words):
        Protocol(**sizes)
