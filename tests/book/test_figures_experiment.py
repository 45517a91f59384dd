"""mlgd.book.figures_experiment: figures draw what they are given, and say what to look at."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mlgd.book import figures_experiment as figures
from mlgd.experiment.sweep import Protocol, read
from mlgd.experiment.tables import Findings


@pytest.fixture
def shown(monkeypatch):
    """The figures that were shown."""
    kept = []
    monkeypatch.setattr(plt, "show", lambda: kept.append(plt.gcf()))
    yield kept
    plt.close("all")


@pytest.fixture(scope="module")
def found(book):
    return Findings(Protocol(), read(book / "data" / "seeds.json"))


def test_every_panel_has_a_title_labels_and_no_internal_name(shown, found):
    exponents = np.array([found.exponents(name) for name in ("fixed", "exact")])
    figures.frontier(found)
    figures.frozen(found, {"as it is": exponents, "frozen": exponents})
    for figure in shown:
        for ax in figure.axes:
            assert ax.get_title()
            legend = ax.get_legend()
            words = " ".join(t.get_text() for t in (legend.get_texts() if legend else ()))
            assert "_" not in words
    assert len(shown) == 2


def test_the_theory_s_slopes_are_drawn(shown, found):
    figures.frontier(found)
    lines = {line.get_label(): line for line in shown[0].axes[0].lines}
    for label, exponent in ((r"slope $\gamma+1$", 4), (r"slope $\gamma$", 3)):
        x, y = lines[label].get_data()
        assert np.log(y[-1] / y[0]) / np.log(x[0] / x[-1]) == pytest.approx(exponent)
