"""What the pages hold: contents, figures, glued numbers, anchors, links that lead somewhere."""

import os
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from nbformat import NotebookNode
from test_language import PAGES

from mlgd.book.chapters import code_cells, contents, read
from mlgd.book.pieces import bundles_in

NOTEBOOKS = {name: read(path) for name, path in PAGES.items()}
# a key may come with a page (page::key) or a format (key:myst)
QUOTED = re.compile(r"\{glue(?::\w+)?\}`([^`]+)`|^[`:]{3,}\{glue(?::\w+)?\} *(\S+)", re.M)
# A numbered statement, unless it is someone's ("the paper's Theorem 2") or of a work that is cited.
NUMBERED = re.compile(
    r"(?<!'s )\b(?:Theorem|Proposition|Lemma|Corollary|Assumption|Remark|Table)s? \d\S*+"
    r"(?! of \{cite)"
)


def prose(notebook: NotebookNode) -> str:
    return "\n\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")


def test_contents_and_folder_agree(root):
    listed = contents(root / "_toc.yml")
    files = [*(root / "book").glob("*.*"), *(root / "book/audit").glob("*.*")]
    quoted = re.findall(r"\{include\} (\S+)", " ".join(map(prose, NOTEBOOKS.values())))
    pages = [p for p in files if p.suffix in (".md", ".ipynb") and p.name not in quoted]
    assert sorted(listed) == sorted(
        p.relative_to(root).with_suffix("").as_posix() for p in pages
    )


def test_every_figure_has_alt_text_a_caption_and_a_name_of_its_own():
    names = []
    for page, notebook in NOTEBOOKS.items():
        for cell in code_cells(notebook):
            if any("image/png" in out.get("data", {}) for out in cell.outputs):
                myst = cell.metadata.get("mystnb", {})
                figure = myst.get("figure", {})
                wanted = (myst.get("image", {}).get("alt"), figure.get("caption"))
                assert all(wanted), (page, cell.source[:60])
                names.append(figure["name"])
    assert len(names) == len(set(names)) > 10


def test_every_glued_key_is_quoted_and_every_quoted_key_glued_once_a_page(book):
    glued = set()
    for page, notebook in NOTEBOOKS.items():
        stored = [o.get("metadata", {}) for c in code_cells(notebook) for o in c.outputs]
        own = [
            metadata["scrapbook"]["name"]
            for metadata in stored
            if "scrapbook" in metadata
        ]
        assert len(own) == len(set(own)), page
        glued |= {*own}
    texts = [prose(notebook) for notebook in NOTEBOOKS.values()]
    texts += [path.read_text(encoding="utf-8") for path in book.glob("*.md")]
    keys = [inline or block for text in texts for inline, block in QUOTED.findall(text)]
    assert {key.rpartition("::")[2].partition(":")[0] for key in keys} == glued


def test_no_two_checks_of_a_page_share_an_anchor():
    for page, path in PAGES.items():
        counts = Counter(
            c["anchor"] for bundle in bundles_in(path) for c in bundle["checks"]
        )
        assert [anchor for anchor, n in counts.items() if n > 1] == [], page


def test_a_typed_number_of_a_theorem_is_called_the_papers(root):
    texts = [prose(notebook) for notebook in NOTEBOOKS.values()]
    sources = [
        root / "README.md",
        *(root / "book").glob("*.md"),
        *(root / "mlgd").rglob("*.py"),
    ]
    texts += [path.read_text(encoding="utf-8") for path in sources]
    assert [m for t in texts for m in NUMBERED.findall(re.sub(r"[\s#]+", " ", t))] == []
    sound = "The paper's Theorem 1(a), Theorem 3.4 of {cite}`dg`, {prf:ref}`thm-convex`."
    assert NUMBERED.findall(sound + " By Theorem 1 and its Lemma 2.") == [
        "Theorem 1",
        "Lemma 2.",
    ]


class Links(HTMLParser):
    """The places and links of a page, and the references on it that were left unresolved."""

    def __init__(self, text: str):
        super().__init__()
        self.places, self.links, self.lost, self.inside = set(), [], [], 0
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        told = dict(attributes)
        self.places |= {told.get("id"), told.get("name")} - {None}
        self.links += [
            told[key] for key in ("href", "src") if tag in ("a", "img") and key in told
        ]
        classes, self.inside = (
            (told.get("class") or "").split(),
            self.inside + (tag == "a"),
        )
        left = "xref" in classes and not self.inside
        if left or {"problematic", "system-message"} & {*classes}:
            self.lost.append(" ".join(classes))

    def handle_endtag(self, tag: str) -> None:
        self.inside -= tag == "a"


def link_problems(html: Path) -> list[str]:
    """Internal links and images that lead nowhere, and references left unresolved."""
    paths = [p for p in sorted(html.rglob("*.html")) if "_static" not in p.parts]
    pages = {p: Links(p.read_text(encoding="utf-8")) for p in paths}
    problems = []
    for path, page in pages.items():
        for link in page.links:
            target, fragment = urldefrag(link)
            if urlsplit(link).scheme or link.startswith("//"):
                continue
            goal = (
                Path(os.path.normpath(path.parent / unquote(target))) if target else path
            )
            if not goal.exists():
                problems.append(f"{path.name}: {link} leads to no file")
            elif (
                fragment and goal in pages and unquote(fragment) not in pages[goal].places
            ):
                problems.append(f"{path.name}: {link} leads to no place on that page")
        problems += [
            f"{path.name}: a reference ({name}) is unresolved" for name in page.lost
        ]
    return problems


@pytest.mark.built
def test_internal_links_and_references_resolve(html):
    assert link_problems(html) == []


def test_a_dead_link_is_found(tmp_path):
    links = (
        '<a id="here" href="b.html#there">x</a> <a href="#here">y</a> <img src="d.png">'
    )
    (tmp_path / "a.html").write_text(links + '<span class="xref myst">lost</span>')
    (tmp_path / "b.html").write_text("<p>nothing</p>")
    assert link_problems(tmp_path) == [
        "a.html: b.html#there leads to no place on that page",
        "a.html: d.png leads to no file",
        "a.html: a reference (xref myst) is unresolved",
    ]
