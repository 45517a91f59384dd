"""mlgd.book.figures_experiment: figures draw what they are given, and say what to look at."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mlgd.book import figures_experiment as figures
from mlgd.experiment.protocol import Protocol
from mlgd.experiment.sweep import read
from mlgd.experiment.tables import PAPER_COSTS


@pytest.fixture
def shown(monkeypatch):
    """The figures that were shown."""
    kept = []
    monkeypatch.setattr(plt, "show", lambda: kept.append(plt.gcf()))
    yield kept
    plt.close("all")


def test_every_panel_has_a_title_labels_and_no_internal_name(shown, book):
    protocol, results = Protocol(), read(book / "data" / "seeds.json")
    flops = {
        name: np.array([r.frontiers[name, 1].flops for r in results[:3]])
        for name in ("fixed", "exact")
    }
    figures.reading(protocol, results)
    figures.frontier(protocol, results, PAPER_COSTS)
    figures.frozen(protocol, flops, flops)
    levels = results[0].levels
    figures.truncations({"one": (2048, levels, levels ** (-1 / 3), 2 * levels ** (-1 / 3))}, 3.0)
    for figure in shown:
        for ax in figure.axes:
            assert ax.get_title()
            assert "(" in ax.get_xlabel() or "share" in ax.get_xlabel()
            words = " ".join(
                t.get_text() for t in (ax.get_legend().get_texts() if ax.get_legend() else ())
            )
            assert "_" not in words
    assert len(shown) == 4


def test_the_theory_s_slopes_are_drawn(shown, book):
    figures.frontier(Protocol(), read(book / "data" / "seeds.json"), PAPER_COSTS)
    lines = {line.get_label(): line for line in shown[0].axes[0].lines}
    for label, exponent in ((r"slope $\gamma+1$", 4), (r"slope $\gamma$", 3)):
        x, y = lines[label].get_data()
        assert np.log(y[-1] / y[0]) / np.log(x[0] / x[-1]) == pytest.approx(exponent)
