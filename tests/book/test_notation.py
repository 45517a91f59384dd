"""mlgd.book.notation: symbols are found in mathematics, and a missing or doubled one is named."""

import pytest

from mlgd.book.notation import problems, symbols

NOTATION = r"""
| symbol | meaning | introduced in |
| --- | --- | --- |
| [$\beta$]{#a} | smoothness | here |
| [$d_0$, $y_0$]{#b} | the start | here |
| [$A_k$]{#c} | a level | here |

| page | symbols | meaning |
| --- | --- | --- |
| {doc}`the oracle <oracle>` | $\Sigma_\sigma$, $q$ | a sum; a ratio |
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"the step $\eta\le1/(4\beta)$ and \$5", {r"\eta", r"\beta"}),
        (r"$$d_0^2+\norm{y_0-y^\ast}$$", {"d_0", "y_0", "y"}),
        (r"$A_{k_{\max}}$ and $A_{k-1}$ are levels, $\text{as said}$", {"A_k"}),
        (r"$\E[\Loss(\hat y)]\le\varepsilon\,\mathscr{L}$", {r"\Loss", "y", r"\eps"}),
        (r"no mathematics: d_0", set()),
    ],
)
def test_symbols_are_found_in_mathematics_only(text, found):
    assert symbols(text) == found


def test_missing_doubled_and_idle_symbols_are_named(tmp_path):
    (tmp_path / "oracle.md").write_text(r"$\beta$, $\Sigma_\sigma$ and $\rho$")
    (tmp_path / "notation.md").write_text(NOTATION + "| {doc}`convex` | $d_0$ | again |\n")
    assert problems(tmp_path, ["oracle"]) == [
        "notation.md lists d_0 for every page and again for convex",
        r"oracle: \rho is not in notation.md",
        "oracle: q is listed for it and not on it",
    ]


def test_what_is_listed_is_on_the_page_and_has_one_meaning(book):
    pages = [p.stem for p in book.glob("*.ipynb")]
    assert [line for line in problems(book, pages) if not line.endswith("is not in notation.md")] == []
