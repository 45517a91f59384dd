"""mlgd.book.notation: symbols are found in mathematics, and a missing or doubled one is named."""

import pytest
from bs4 import BeautifulSoup

from mlgd.book.chapters import notebooks
from mlgd.book.notation import alone, problems, symbols

NOTATION = r"""
| symbol | meaning | introduced in |
| --- | --- | --- |
| [$\beta$]{#sym-beta} | smoothness | here |
| [$d_0$, $y_0$]{#sym-start} | the start | here |
| [$A_k$]{#sym-a} | a level | here |

| page | its letters |
| --- | --- |
| [{doc}`oracle`]{#letters-oracle} | $\Sigma_\sigma$: a sum; $q$: a ratio |
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"the step $\eta\le1/(4\beta)$ and \$5", {r"\eta", r"\beta"}),
        (r"$$d_0^2+\norm{y_0-y^\ast}$$", {"d_0", "y_0", "y"}),
        (r"$A_{k_{\max}}$ and $A_{k-1}$ are levels, $\text{as said}$", {"A_k"}),
        (r"$\E[\Loss(\hat y)]\le\varepsilon\,\mathscr{L}$", {r"\Loss", "y", r"\eps"}),
        (
            r"$cd_0$, $\sum_kv_kc_k\,x^{2T}$ and $\Lambda'^{\rm run}_\gamma$",
            {"c", "d_0", "k", "v_k", "c_k", "x", "T", r"\Lambda_\gamma"},
        ),
        (r"no mathematics: d_0", set()),
    ],
)
def test_symbols_are_found_in_mathematics_only(text, found):
    assert symbols(text) == found


def test_missing_doubled_and_idle_symbols_are_named(tmp_path):
    (tmp_path / "audit").mkdir()
    (tmp_path / "oracle.md").write_text(r"$\beta$, $\Sigma_\sigma$ and $\rho$")
    (tmp_path / "audit" / "oracle.md").write_text(r"$\Sigma_\sigma$ and $q$")
    more = "| {doc}`convex` | $d_0$: again; $u$: one; $u$, $v$: two; $w$ |\n"
    (tmp_path / "notation.md").write_text(NOTATION + more)
    assert problems(tmp_path, ["oracle", "audit/oracle"]) == [
        "notation.md gives u of convex two meanings",
        "notation.md gives $w$ of convex no meaning",
        "notation.md lists d_0 for every page and again for convex",
        r"oracle: \rho is not in notation.md",
        "oracle: q is listed for it and not on it",
    ]


def test_every_symbol_of_every_page_is_listed_and_has_one_meaning(book):
    assert problems(book, ["index", *notebooks(book)]) == []


@pytest.mark.parametrize(
    ("tex", "name"),
    [
        (r"\eps", r"\eps"),
        ("d_0", "d_0"),
        (r"A_{k-1}", "A_k"),
        (r"\delta\le1", None),
        ("d_0+1", None),
        ("2", None),
    ],
)
def test_a_formula_that_is_one_symbol_is_recognized(tex, name):
    assert alone(tex) == name


@pytest.mark.built
def test_a_symbol_is_linked_where_it_first_stands_alone(html, book):
    page = BeautifulSoup((html / "book" / "convex.html").read_text(encoding="utf-8"), "html.parser")
    links = [
        (a.get_text().removeprefix(r"\(").removesuffix(r"\)"), a["href"])
        for a in page.select("a.mlgd-symbol")
    ]
    assert (r"\delta", "notation.html#sym-delta") in links
    assert (r"\xi", "notation.html#letters-convex") in links
    assert len({tex for tex, _ in links}) == len(links) >= 20
