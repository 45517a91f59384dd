"""The map's figure: winners in order, and cells that one method or none has reached."""

import matplotlib.pyplot as plt

from mlgd.book.figures_map import panel, ranked


def test_ranking_leaves_methods_out():
    assert ranked({"fixed level": 3.0, "plain telescope": 2.0}) == [
        ("plain telescope", 2.0),
        ("fixed level", 3.0),
    ]
    assert ranked({"fixed level": 3.0, "plain telescope": 2.0}, ("plain telescope",)) == [
        ("fixed level", 3.0)
    ]


def test_a_cell_says_its_winner_and_the_ratio_to_the_next():
    cells = [
        {"gamma": 3.0, "kappa": 10.0, "prices": {"fixed level": 8.0, "scheduled telescope": 2.0}},
        {"gamma": 3.0, "kappa": 100.0, "prices": {"corrected coarse model": 1.5}},
        {"gamma": 4.0, "kappa": 10.0, "prices": {}},
    ]
    figure, ax = plt.subplots()
    panel(ax, cells)
    assert [t.get_text() for t in ax.texts] == ["S 2\n×4", "C 1.5\nalone"]
    plt.close(figure)
