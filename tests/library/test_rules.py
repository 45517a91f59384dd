"""Each number that decides a run, moved by a third: a run of somebody's problem changes.

Whoever moves one sees what it does to the bills that `test_strangers.py` pins, and to the quality
bench. Of the others, `rules.py` says which no run was seen to notice.
"""

import numpy as np
import pytest
from test_strangers import REACHED, price

from mlgd import Hierarchy, minimize, rules

NOTICED = {  # by a stranger's problem, and how it is asked: a share of its eps, exact, by a radius
    "AIM": ("one unknown", "four", "four"),
    "AIM_BELOW_EXPENSIVE": ("rounded", 64, 64),
    "COARSEST_SOLVED": ("kinks", 64, "radius"),
    "CURVATURE_SHARE": ("rounded", 64, "radius"),
    "FASTEST_FALL": ("rounded", "radius", 64),
    "FLATTEST": ("rounded", 64, 64),
    "GAINS_TELL": ("rounded", "four", "four"),
    "HIDDEN_BY_RADIUS": ("rounded", "radius", "radius"),
    "LAST_CHECK": ("kinks", 64, "four"),
    "LEVEL_SOLVED": ("rounded", "radius", "radius"),
    "MISLEADS": ("rounded", 64, 64),
    "PLATEAU": ("a steep level", 64, 64),
}


def asked(name, how):
    """What a run pays and promises."""
    evaluate, levels, start, eps, _ = REACHED[name]
    given, cost = {"eps": eps}, price
    if how == "radius":
        given["radius"] = 5.0 + float(np.linalg.norm(start))
    elif how == "four":
        cost = lambda k: 4.0**k  # noqa: E731
    else:
        given["eps"] = how * eps
    run = minimize(Hierarchy(evaluate, cost, levels), start, **given)
    return run.cost, run.promise


@pytest.mark.parametrize("number", NOTICED)
def test_a_number_moved_by_a_third_is_noticed(number, monkeypatch):
    name, *ways = NOTICED[number]
    before = {how: asked(name, how) for how in ways}
    kept = getattr(rules, number)
    seen = []
    for factor in (2 / 3, 4 / 3):
        moved = kept * factor
        moved = moved if isinstance(kept, float) else round(moved)
        monkeypatch.setattr(rules, number, moved)
        seen.append({how: asked(name, how) for how in ways} != before)
    assert any(seen)
