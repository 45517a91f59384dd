"""An extension of the build: what a reader is told in place.

The first formula of a page that is nothing but a listed symbol says on a hover what it means.
`notation.md` lists the symbols in tables: first cells [$\\beta$]{#sym-beta}, second their meaning.
Docstrings are plain text: for the reference page their asterisks and bars are no markup.
"""

import re
from html import escape
from pathlib import Path

ROW = re.compile(r"^\| \[([^\]]+)\]\{#sym-[\w-]+\} \| (.*?) \|", re.M)


def plain(tex: str) -> str:
    """A formula without what does not change it: spaces, braces, another name for epsilon."""
    return re.sub(r"[\s{}]", "", tex).replace(r"\varepsilon", r"\eps")


def listed(text: str) -> dict[str, str]:
    """{symbol: its meaning} of notation.md's text."""
    return {
        plain(tex): re.sub(r"[$`]|\{[^}]*\}", "", meaning)
        for symbols, meaning in ROW.findall(text)
        for tex in re.findall(r"\$([^$]+)\$", symbols)
    }


def explain(app, doctree, docname: str) -> None:
    """Give the first lone occurrence of each listed symbol on a page its meaning as a title."""
    from docutils import nodes

    source = Path(app.srcdir) / "book" / "notation.md"
    if docname == "book/notation" or not source.exists() or app.builder.format != "html":
        return
    known = listed(source.read_text(encoding="utf-8"))
    for formula in list(doctree.findall(nodes.math)):
        meaning = known.pop(plain(formula.astext()), "")
        if meaning:
            begin = f'<span class="mlgd-symbol" tabindex="0" title="{escape(meaning)}">'
            marks = [nodes.raw("", text, format="html") for text in (begin, "</span>")]
            formula.replace_self([marks[0], formula.deepcopy(), marks[1]])


def unmarked(app, what, name, thing, options, lines: list[str]) -> None:
    """A docstring's prose as plain text: `code` stays code, other marks are letters."""
    example = False
    for i, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            parts = re.split(r"`([^`]+)`", line)
            parts[::2] = [re.sub(r"([*|_\\])", r"\\\1", part) for part in parts[::2]]
            lines[i] = "".join(f"``{p}``" if j % 2 else p for j, p in enumerate(parts))


def setup(app) -> dict:
    """For Sphinx."""
    app.connect("doctree-resolved", explain)
    app.connect("autodoc-process-docstring", unmarked)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
