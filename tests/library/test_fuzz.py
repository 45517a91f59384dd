"""A short slice of the fuzzer, the same each time; the whole is `python tests/library/fuzz.py`."""

import fuzz
import pytest

from mlgd.result import Bill

EACH = 4  # runs of a kind
# when a kill comes is not the same each time; test_long_runs.py has kills
SLICE = [kind for kind in fuzz.KINDS if kind != "killed"]


@pytest.mark.parametrize("kind", SLICE)
def test_a_hostile_user_finds_nothing(kind):
    for number in fuzz.numbers(kind, EACH):
        assert fuzz.one(0, number) == (kind, None), f"run {number}"


def test_the_fuzzer_can_find_something(monkeypatch):
    """A bill that is a millionth too small."""
    true = Bill.paid.fget

    def forgetful(self):
        told = true(self)
        return told | {"cost": told["cost"] * (1 - 1e-6)}

    monkeypatch.setattr(Bill, "paid", property(forgetful))
    _, finding = fuzz.one(0, fuzz.numbers("plain", 1)[0])
    assert finding.startswith("R2: told")
