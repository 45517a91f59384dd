"""mlgd.experiment.protocol: the defaults are the paper's, and a result survives its file."""

import json

import numpy as np

from mlgd.experiment.protocol import Protocol, SeedResult, run_seed

TINY = Protocol(m=64, n=512, ladder=(1, 4, 16), seeds=(0,), scales=(1, 4), max_steps=500, max_flops=1e6, targets=4)


def test_the_defaults_are_the_paper_s():
    p = Protocol()
    assert (p.m, p.n, p.phi, p.rho, p.ladder) == (2048, 131072, 1.2, 0.6, (1, 8, 64, 512))
    assert abs(p.gamma - 3) < 1e-12
    assert p.baseline == (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    assert (len(p.levels), int((p.levels < 32).sum())) == (18, 9)
    assert len(p.losses) == 20
    np.testing.assert_allclose(p.losses[[0, -1]], [10**-0.3, 1e-2])


def test_what_a_result_depends_on_does_not_include_the_list_of_seeds():
    assert TINY.parameters() == Protocol(**{**vars(TINY), "seeds": (4, 5)}).parameters()
    assert TINY.parameters() != Protocol(**{**vars(TINY), "rho": 0.5}).parameters()


def test_a_result_goes_through_json_unchanged():
    result = run_seed(TINY, 0)
    again = SeedResult.from_json(json.loads(json.dumps(result.to_json())))
    assert result.same_numbers(again)
    assert not result.same_numbers(run_seed(TINY, 1))
