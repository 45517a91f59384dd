"""The symbols of the pages, found in their mathematics, against the list in notation.md.

A symbol is a letter, Greek or Latin, with its subscript; an index (k, t, j, ...) stands for any index. `notation.md` has
tables of symbols that every page may use, and one of symbols that belong to single pages.
"""

import json
import re
from pathlib import Path

GREEK = (
    "alpha beta gamma delta epsilon varepsilon eps zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi varphi chi psi "
    "vartheta varrho varsigma "
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ell"
).split()
SPANS = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$([^$]+?)(?<!\\)\$", re.S)
WORDS = re.compile(
    r"\\(?:text|mathrm|operatorname\*?|label|ref|begin|end|mathbb|mathtt|textit|textbf)\s*\{[^{}]*\}"
    r"|\\color\{[^{}]*\}|\\rm\s+\w+|\\\\\[\w+\]|\{(?:glue|prf|cite|doc|eq|numref)[^}]*\}`[^`]*`"
)
TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\S")
SCRIPT = re.compile(r"\\(mathcal|mathscr|mathsf)\s*\{?\s*([A-Z])\s*\}?")
ALIASES = {r"\varepsilon": r"\eps", r"\mathscrL": r"\Loss"}
INDEX = "ijkmnstTKNM"  # a subscript that begins with one of these is an index
LITERAL = {"d", "e", "i"}  # the differential, the number e and the unit, where they stand alone


def symbols(text: str) -> set[str]:
    """The symbols in the mathematics of a Markdown text."""
    prose = re.sub(r"```.*?```", lambda m: m.group().split("\n", 1)[-1], text, flags=re.S)
    return {
        name for display, inline in SPANS.findall(prose) for name in _symbols(display or inline)
    } - LITERAL


def _symbols(formula: str) -> list[str]:
    """The symbols of a formula: every letter is one, with its subscript; a superscript is a formula of its own."""
    tokens = TOKEN.findall(SCRIPT.sub(r"\\\1\2 ", WORDS.sub(" ", formula)))
    found, at = [], 0
    while at < len(tokens):
        base, at = tokens[at], at + 1
        name = ALIASES.get(base, base)
        letter = (
            name.isalpha()
            or name.removeprefix("\\") in GREEK
            or name.startswith((r"\Loss", r"\math"))
        )
        index = ""
        while letter and at < len(tokens) - 1 and tokens[at] in "_^'":
            script, at = tokens[at], at + 1
            if script == "'":
                continue
            inside, at = _argument(tokens, at)
            if script == "_":
                index = "".join(inside)
            else:
                found += _symbols(" ".join(inside))
        if letter:
            found.append(name + (f"_{'k' if index[0] in INDEX else index}" if index else ""))
    return found


def _argument(tokens: list[str], at: int) -> tuple[list[str], int]:
    """The tokens of the group, or the one token, that begins here, and where it ends."""
    if tokens[at] != "{":
        return [tokens[at]], at + 1
    depth, end = 1, at + 1
    while depth and end < len(tokens):
        depth += {"{": 1, "}": -1}.get(tokens[end], 0)
        end += 1
    return tokens[at + 1 : end - 1], end


def page_text(path: Path) -> str:
    """The Markdown of a page: of a notebook its Markdown cells."""
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def listed(notation: Path) -> tuple[dict[str, str], dict[str, dict[str, str]], list[str]]:
    """({symbol: meaning} for every page, the same for each single page, what is wrong with the list) from notation.md."""
    everywhere: dict[str, str] = {}
    single: dict[str, dict[str, str]] = {}
    wrong = []
    for line in notation.read_text(encoding="utf-8").splitlines():
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        page = re.search(r"\{doc\}`(?:[^`<]*<)?([\w/]+)>?`", cells[0]) if len(cells) == 2 else None
        if page:
            place, own = page[1], single.setdefault(page[1], {})
            entries = [entry.partition(": ") for entry in cells[1].split("; ")]
        elif len(cells) == 3 and "$" in cells[0]:
            place, own, entries = "every page", everywhere, [(cells[0], "", cells[1])]
        else:
            continue
        for letters, _, meaning in entries:
            wrong += (
                [] if meaning.strip() else [f"notation.md gives {letters} of {place} no meaning"]
            )
            doubled = symbols(letters) & own.keys()
            wrong += [
                f"notation.md gives {name} of {place} two meanings" for name in sorted(doubled)
            ]
            own |= dict.fromkeys(symbols(letters), meaning.strip())
    for page, own in single.items():
        again = sorted(own.keys() & everywhere.keys())
        wrong += [f"notation.md lists {name} for every page and again for {page}" for name in again]
    return everywhere, single, wrong


def known(
    page: str, everywhere: dict[str, str], single: dict[str, dict[str, str]]
) -> dict[str, str]:
    """What a page may use: the letters of every page, its own, and for an audit, behind these, its story's."""
    return everywhere | single.get(page.removeprefix("audit/"), {}) | single.get(page, {})


def problems(book: Path, pages: list[str]) -> list[str]:
    """Symbols on a page that notation.md does not list, listed symbols that are on no page, and double meanings."""
    everywhere, single, out = listed(book / "notation.md")
    for page in pages:
        path = next(p for p in (book / f"{page}.ipynb", book / f"{page}.md") if p.exists())
        used, own = symbols(page_text(path)), single.get(page, {})
        out += [
            f"{page}: {name} is not in notation.md"
            for name in sorted(used - known(page, everywhere, single).keys())
        ]
        out += [
            f"{page}: {name} is listed for it and not on it" for name in sorted(own.keys() - used)
        ]
    return out


# --- links, made while the book is built -------------------------------------------------------------------


def anchors(notation: Path) -> dict[str, str]:
    """{symbol: the anchor of its row} for the letters of every page."""
    rows = re.findall(r"\[([^\]]+)\]\{#(sym-[\w-]+)\}", notation.read_text(encoding="utf-8"))
    return {name: anchor for letters, anchor in rows for name in symbols(letters)}


def alone(tex: str) -> str | None:
    """The symbol that a formula consists of, if it is nothing but one symbol."""
    found = symbols(f"${tex}$")
    bare = re.fullmatch(r"\\?[A-Za-z]+(?:_(?:\\?\w+|\{[^{}]*\}))?", tex.strip())
    return next(iter(found)) if bare and len(found) == 1 else None


def setup(app) -> dict:
    """For Sphinx: the first formula of a page that is nothing but a listed symbol becomes a link to its row."""

    def link(app, doctree, docname: str) -> None:
        from docutils import nodes

        page, source = docname.removeprefix("book/"), Path(app.srcdir) / "book" / "notation.md"
        if page == "notation" or not source.exists():
            return
        everywhere, single, _ = listed(source)
        rows = anchors(source)
        home = app.builder.get_relative_uri(docname, "book/notation")
        for formula in list(doctree.findall(nodes.math)):
            name = alone(formula.astext())
            if name not in known(page, everywhere, single) or isinstance(
                formula.parent, nodes.reference
            ):
                continue
            owner = page if name in single.get(page, {}) else page.removeprefix("audit/")
            anchor = rows.pop(name, None) or (
                single.get(owner, {}).pop(name, None) and "letters-" + re.sub(r"\W|_", "-", owner)
            )
            if anchor:
                formula.replace_self(
                    nodes.reference(
                        "",
                        "",
                        formula.deepcopy(),
                        refuri=f"{home}#{anchor}",
                        classes=["mlgd-symbol"],
                    )
                )

    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
