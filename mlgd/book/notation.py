"""The symbols of the pages, found in their mathematics, against the list in notation.md.

A symbol is a letter, Greek or Latin, with its subscript; an index (k, t, j, ...) stands for any index. `notation.md` has
tables of symbols that every page may use, and one of symbols that belong to single pages.
"""

import json
import re
from pathlib import Path

GREEK = (
    "alpha beta gamma delta epsilon varepsilon eps zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi varphi chi psi "
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ell"
).split()
SPANS = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$([^$]+?)(?<!\\)\$", re.S)
WORDS = re.compile(
    r"\\(?:text|mathrm|operatorname\*?|label|ref|begin|end|mathbb|mathtt|textit|textbf)\s*\{[^{}]*\}"
    r"|\\(?:color)\{[^{}]*\}|\{(?:glue|prf|cite|doc|eq|numref)[^}]*\}`[^`]*`"
)
SYMBOL = re.compile(
    r"(?P<mark>\\(?:tilde|bar|hat|widetilde|overline)\s*)?\{?"
    r"(?P<base>\\(?:"
    + "|".join(GREEK)
    + r")(?![A-Za-z])|\\(?:mathcal|mathscr|mathsf)[A-Z]|\\Loss(?![A-Za-z])|(?<![\\A-Za-z])[A-Za-z](?![A-Za-z]))"
    r"\}?(?:_(?:\{(?P<group>(?:[^{}]|\{[^{}]*\})*)\}|(?P<one>\\[A-Za-z]+|[A-Za-z0-9])))?"
)
SCRIPT = re.compile(r"\\(mathcal|mathscr|mathsf)\s*\{?\s*([A-Z])\s*\}?")
ALIASES = {r"\varepsilon": r"\eps", r"\mathscrL": r"\Loss"}
INDEX = "ijkmnstTKNM"  # a subscript that begins with one of these is an index
LITERAL = {"d", "e", "i"}  # the differential, the number e and the unit, where they stand alone


def symbols(text: str) -> set[str]:
    """The symbols in the mathematics of a Markdown text."""
    found = set()
    for display, inline in SPANS.findall(
        re.sub(r"```.*?```", lambda m: m.group().split("\n", 1)[-1], text, flags=re.S)
    ):
        span = SCRIPT.sub(r"\\\1\2 ", WORDS.sub(" ", display or inline))
        span = re.sub(r"\\[A-Za-z]+(?=\b)", lambda m: m.group() + " ", span)
        for m in SYMBOL.finditer(span.replace("  ", " ")):
            base = re.sub(r"\s+", "", m["base"])
            sub = (m["group"] if m["group"] is not None else m["one"] or "").replace(" ", "")
            sub = "k" if sub[:1] and sub[0] in INDEX else sub
            name = ALIASES.get(base, base) + (f"_{sub}" if sub else "")
            if name not in LITERAL:
                found.add(name)
    return found


def page_text(path: Path) -> str:
    """The Markdown of a page: of a notebook its Markdown cells."""
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def listed(notation: Path) -> tuple[set[str], dict[str, set[str]], list[str]]:
    """(symbols for every page, symbols of single pages, what is wrong with the list) from the tables of notation.md."""
    everywhere: dict[str, str] = {}
    single: dict[str, set[str]] = {}
    problems = []
    for line in notation.read_text(encoding="utf-8").splitlines():
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) != 3 or cells[0] in ("symbol", "page") or set(cells[0]) <= {"-", " ", ":"}:
            continue
        if page := re.match(r"\{doc\}`(?:[^`<]*<)?(\w+)>?`$", cells[0]):  # page | symbols | meanings
            single.setdefault(page[1], set()).update(symbols(cells[1]))
            continue
        for name in symbols(cells[0]):
            if name in everywhere and everywhere[name] != cells[1]:
                problems.append(f"notation.md gives {name} two meanings")
            everywhere[name] = cells[1]
    for page, names in single.items():
        problems += [
            f"notation.md lists {n} for every page and again for {page}" for n in sorted(names & {*everywhere})
        ]
    return {*everywhere}, single, problems


def problems(book: Path, pages: list[str]) -> list[str]:
    """Symbols on a page that notation.md does not list, listed symbols that are on no page, and double meanings."""
    everywhere, single, out = listed(book / "notation.md")
    for page in pages:
        path = next(p for p in (book / f"{page}.ipynb", book / f"{page}.md") if p.exists())
        used, known = symbols(page_text(path)), everywhere | single.get(page, set())
        out += [f"{page}: {name} is not in notation.md" for name in sorted(used - known)]
        out += [f"{page}: {name} is listed for it and not on it" for name in sorted(single.get(page, set()) - used)]
    return out
