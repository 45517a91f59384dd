"""A symbol says what it means where a page first writes it alone."""

import re

import pytest
from bs4 import BeautifulSoup

from mlgd.book.notation import listed, plain


def test_every_row_of_the_list_has_a_meaning(book):
    text = (book / "notation.md").read_text(encoding="utf-8")
    known = listed(text)
    assert len({*known.values()}) == text.count("{#sym-")
    assert not [
        meaning for meaning in known.values() if re.search(r"[\\{}$`]|\^[ )]", meaning)
    ]
    assert known["A_k"].startswith(
        "the algorithm at level k: within 2^(-k) of f, at a price"
    )
    assert known[plain(r"\varepsilon")] == known[plain(r"\eps")]
    assert known[plain("d_{0}")] == known[plain("d_0")]


@pytest.mark.built
def test_a_symbol_is_explained_in_place_where_it_first_stands_alone(html):
    page = BeautifulSoup(
        (html / "book" / "convex.html").read_text(encoding="utf-8"), "html.parser"
    )
    told = {
        s.get_text().strip(r"\()"): s["title"] for s in page.select("span.mlgd-symbol")
    }
    assert told["delta"] == "a bias, or the accuracy that bounds it"
    assert all(told.values())
    assert len(told) == len(page.select("span.mlgd-symbol")) >= 8
