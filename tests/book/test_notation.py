"""A symbol says what it means where a page first writes it alone."""

import pytest
from bs4 import BeautifulSoup

from mlgd.book.notation import listed, plain


def test_every_row_of_the_list_has_an_anchor_and_a_meaning(book):
    text = (book / "notation.md").read_text(encoding="utf-8")
    known = listed(text)
    assert len({anchor for anchor, _ in known.values()}) == text.count("{#sym-")
    assert all(meaning for _, meaning in known.values())
    assert known[plain(r"\varepsilon")] == known[plain(r"\eps")]
    assert known[plain("d_{0}")][0] == known[plain("d_0")][0]


@pytest.mark.built
def test_a_symbol_is_explained_where_it_first_stands_alone(html):
    page = BeautifulSoup((html / "book" / "convex.html").read_text(encoding="utf-8"), "html.parser")
    links = [
        (a.get_text().strip(r"\()"), a["href"], a["title"]) for a in page.select("a.mlgd-symbol")
    ]
    assert ("delta", "notation.html#sym-delta") in {link[:2] for link in links}
    assert all(title for _, _, title in links)
    assert len({tex for tex, _, _ in links}) == len(links) >= 8
