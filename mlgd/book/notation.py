"""An extension of the build: the first formula of a page that is nothing but a listed symbol says what it means.

`notation.md` lists the symbols in tables whose first cells are [$\\beta$]{#sym-beta}, the second their meaning.
"""

import re
from pathlib import Path

ROW = re.compile(r"^\| \[([^\]]+)\]\{#(sym-[\w-]+)\} \| (.*?) \|", re.M)


def plain(tex: str) -> str:
    """A formula without what does not change it: spaces, braces, another name for epsilon."""
    return re.sub(r"[\s{}]", "", tex).replace(r"\varepsilon", r"\eps")


def listed(text: str) -> dict[str, tuple[str, str]]:
    """{symbol: the anchor of its row and its meaning} of notation.md's text."""
    return {
        plain(tex): (anchor, re.sub(r"[$`]|\{[^}]*\}", "", meaning))
        for symbols, anchor, meaning in ROW.findall(text)
        for tex in re.findall(r"\$([^$]+)\$", symbols)
    }


def setup(app) -> dict:
    """For Sphinx."""

    def link(app, doctree, docname: str) -> None:
        from docutils import nodes

        source = Path(app.srcdir) / "book" / "notation.md"
        if docname == "book/notation" or not source.exists():
            return
        known = listed(source.read_text(encoding="utf-8"))
        home = app.builder.get_relative_uri(docname, "book/notation")
        for formula in list(doctree.findall(nodes.math)):
            if isinstance(formula.parent, nodes.reference):
                continue
            anchor, meaning = known.pop(plain(formula.astext()), ("", ""))
            if anchor:
                where = {"refuri": f"{home}#{anchor}", "reftitle": meaning}
                link = nodes.reference("", "", formula.deepcopy(), classes=["mlgd-symbol"], **where)
                formula.replace_self(link)

    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
