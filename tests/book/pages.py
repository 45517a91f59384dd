"""What the pages must be, as functions that return a sentence for each thing that is wrong.

The tests call each of them on the book itself, where it must find nothing, and on a copy broken on purpose, where it
must find what was broken.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

from bs4 import BeautifulSoup
from nbformat import NotebookNode

from mlgd.book.boxes import checks_in
from mlgd.book.chapters import code_cells, notebooks, read

GLUE_USE = re.compile(
    r"\{glue(?::(?:text|math|md|figure|any))?\}`([^`]+)`|^[`:]{3,}\{glue(?::\w+)?\} *(\S+)", re.M
)
OUTSIDE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:)?//", re.I)
LOADED_BY_SCRIPT = re.compile(
    r"""["'](https?://[^"']+?\.(?:js|mjs|css|woff2?|png|svg)(?:\?[^"']*)?)["']"""
)
# A numbered statement, unless it is someone's ("the paper's Theorem 2") or of a work cited ("Theorem N of {cite}").
NUMBERED = re.compile(
    r"(?<!'s )\b(?:Theorem|Proposition|Lemma|Corollary|Assumption|Remark|Table)s? \d\S*+(?! of \{cite)"
)
LOADED_BY_STYLE = re.compile(r"""(?:@import\s+(?:url\()?|url\()\s*["']?((?:https?:)?//[^"')\s]+)""")


def chapters(book: Path) -> Iterator[tuple[str, NotebookNode]]:
    """Each chapter's name and notebook."""
    for name, path in notebooks(book).items():
        yield name, read(path)


def figure_problems(book: Path) -> list[str]:
    """Figures without alt text, caption or name, and names used twice."""
    problems, seen = [], set()
    for chapter, notebook in chapters(book):
        for number, cell in enumerate(code_cells(notebook), 1):
            if not any(
                mime.startswith("image/") for out in cell.outputs for mime in out.get("data", {})
            ):
                continue
            myst = cell.metadata.get("mystnb", {})
            name = myst.get("figure", {}).get("name", "")
            wanted = {
                "alt text": myst.get("image", {}).get("alt", ""),
                "a caption": myst.get("figure", {}).get("caption", ""),
                "a name": name,
            }
            problems += [
                f"{chapter} cell {number}: a figure without {what}"
                for what, text in wanted.items()
                if not text.strip()
            ]
            if name and name in seen:
                problems.append(f"{chapter} cell {number}: the figure name {name} is used twice")
            seen.add(name)
    return problems


def glued(notebook: NotebookNode) -> list[str]:
    """The keys a chapter glues, read from its stored outputs."""
    metadata = [out.get("metadata", {}) for cell in code_cells(notebook) for out in cell.outputs]
    return [entry["scrapbook"]["name"] for entry in metadata if "scrapbook" in entry]


def glue_problems(book: Path) -> list[str]:
    """Keys glued and never quoted, quoted and never glued, or glued twice."""
    defined: list[str] = []
    used: set[str] = set()
    for _, notebook in chapters(book):
        defined += glued(notebook)
        used |= glue_uses(
            "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        )
    for page in sorted(book.glob("*.md")):
        used |= glue_uses(page.read_text(encoding="utf-8"))
    problems = [f"{key} is glued but no prose quotes it" for key in sorted({*defined} - used)]
    problems += [f"{key} is quoted but no cell glues it" for key in sorted(used - {*defined})]
    problems += [f"{key} is glued twice" for key in sorted({*defined}) if defined.count(key) > 1]
    return problems


def glue_uses(prose: str) -> set[str]:
    """The keys a text quotes; a key may come with a page (page::key) or a format (key:.2f)."""
    keys = [inline or block for inline, block in GLUE_USE.findall(prose)]
    return {key.rpartition("::")[2].partition(":")[0] for key in keys}


def anchor_problems(book: Path) -> list[str]:
    """Checks of one page that share an anchor: no link could tell them apart."""
    counts = {
        name: Counter(check["anchor"] for check in checks_in(path))
        for name, path in notebooks(book).items()
    }
    found = [
        (name, anchor) for name, count in counts.items() for anchor, n in count.items() if n > 1
    ]
    return [
        f"{name}: two checks have the anchor {anchor}: say in the statements what each adds"
        for name, anchor in found
    ]


def numbering_problems(root: Path) -> list[str]:
    """Numbers of theorems that do not say whose they are, in pages, outputs and the modules' texts: the book's own
    are made by the build, so a number that someone typed is the paper's and is called that."""
    texts = [
        (path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
        for path in _sources(root)
    ]
    for chapter, notebook in chapters(root / "book"):
        texts += [(chapter, cell.source) for cell in notebook.cells]
        outputs = [out for cell in code_cells(notebook) for out in cell.outputs]
        texts += [
            (chapter, str(out.get("text", "")) + str(out.get("data", {}).get("text/plain", "")))
            for out in outputs
        ]
    found = [
        (name, m.group())
        for name, text in texts
        for m in NUMBERED.finditer(re.sub(r"[\s#]+", " ", text))
    ]
    return [
        f"{name}: {number!r} is whose? Write the paper's {number}"
        for name, number in dict.fromkeys(found)
    ]


def _sources(root: Path) -> list[Path]:
    return [
        root / "README.md",
        *sorted((root / "book").glob("*.md")),
        *sorted((root / "mlgd").rglob("*.py")),
    ]


def pages(html: Path) -> Iterator[tuple[str, BeautifulSoup]]:
    """Each built page's path below html, and its tree."""
    for path in sorted(html.rglob("*.html")):
        if "_static" not in path.parts:
            yield (
                path.relative_to(html).as_posix(),
                BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser"),
            )


def anchors(soup: BeautifulSoup) -> set[str]:
    """Every id and name a link may point to."""
    return {
        tag.get("id") or tag.get("name")
        for tag in soup.find_all(lambda tag: tag.get("id") or tag.get("name"))
    }


def link_problems(html: Path) -> list[str]:
    """Internal links and images that lead nowhere, and references the build left unresolved."""
    trees = dict(pages(html))
    known = {page: anchors(soup) for page, soup in trees.items()}
    problems = []
    for page, soup in trees.items():
        links = [tag["href"] for tag in soup.find_all("a", href=True)] + [
            tag["src"] for tag in soup.find_all("img", src=True)
        ]
        for link in links:
            target, fragment = urldefrag(link)
            if urlsplit(link).scheme or OUTSIDE.match(link):
                continue
            there = unquote(urlsplit(target).path)
            goal = os.path.normpath(os.path.join(os.path.dirname(page), there)) if there else page
            if not (html / goal).exists():
                problems.append(f"{page}: {link} leads to no file")
            elif fragment and goal in known and unquote(fragment) not in known[goal]:
                problems.append(f"{page}: {link} leads to no place on that page")
        for span in soup.select("span.xref, code.xref, span.problematic, .system-message"):
            if not span.find_parent("a"):
                problems.append(f"{page}: the reference {span.get_text()!r} is unresolved")
    return problems


def outside_problems(html: Path) -> list[str]:
    """Scripts, styles, fonts, images and frames that a page would load from another machine."""
    problems = []
    for page, soup in pages(html):
        for tag in soup.find_all(
            ["script", "img", "iframe", "source", "video", "audio", "embed", "object", "link"]
        ):
            rel = tag.get("rel") or []
            if tag.name == "link" and not {
                "stylesheet",
                "preload",
                "icon",
                "modulepreload",
                "preconnect",
            } & {*rel}:
                continue
            loads = [tag.get(key, "") for key in ("src", "href", "data")]
            loads += [entry.strip().split(" ")[0] for entry in tag.get("srcset", "").split(",")]
            problems += [
                f"{page}: <{tag.name}> loads {load}" for load in loads if OUTSIDE.match(load)
            ]
            if tag.name == "script" and tag.string:
                problems += [
                    f"{page}: a script names {url}" for url in LOADED_BY_SCRIPT.findall(tag.string)
                ]
        for tag in soup.find_all(lambda tag: tag.name == "style" or tag.get("style")):
            style = tag.string or "" if tag.name == "style" else tag["style"]
            problems += [f"{page}: a style loads {url}" for url in LOADED_BY_STYLE.findall(style)]
    for sheet in sorted(html.rglob("*.css")):
        urls = LOADED_BY_STYLE.findall(sheet.read_text(encoding="utf-8", errors="replace"))
        problems += [f"{sheet.relative_to(html)}: the style sheet loads {url}" for url in urls]
    return problems
