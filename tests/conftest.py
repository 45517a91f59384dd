"""What the tests of the book share."""

import os
from pathlib import Path

import pytest

# as make has it: a sum must not depend on cores
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def book() -> Path:
    """The folder of the chapters."""
    return ROOT / "book"


@pytest.fixture(scope="session")
def html() -> Path:
    """The built book."""
    built = ROOT / "_build" / "html"
    assert (built / "index.html").exists(), "the book is not built: run make book first"
    return built
