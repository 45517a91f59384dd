"""Every page in a real headless Chromium: mathematics, console, requests, a phone, the dark theme.

The fixtures `browser` and `visit` are in conftest.py.
"""

from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from playwright.sync_api import Page, TimeoutError
from test_audits_beside import STORIES

from mlgd.book.chapters import contents

pytestmark = pytest.mark.built

ROOT = Path(__file__).resolve().parents[2]
PAGES = [f"{name}.html" for name in contents(ROOT / "_toc.yml")] + [
    "search.html",
    "genindex.html",
]
NARROW = 400
# The constant tells two stories, the method and the problem that is as hard, and has two proofs.
TWICE = ("constant",)

# Error nodes, and TeX that nothing typeset: both are what a reader would see as broken mathematics.
MATHEMATICS = r"""() => {
  const said = node => node.getAttribute('data-mjx-error') || node.textContent;
  const problems = [...document.querySelectorAll('mjx-merror, [data-mjx-error]')].map(
    node => 'mathematics does not typeset: ' + said(node));
  const root = document.querySelector('article, .bd-article, main') || document.body;
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const skipped = 'pre, code, script, style, mjx-container';
  const left = /\\\(|\\\[|\$[^$\n]*\\|\$\$|\\[a-zA-Z]{2,}/;
  for (let node; node = walk.nextNode();)
    if (!node.parentElement.closest(skipped) && left.test(node.data))
      problems.push('mathematics was left as text: ' + node.data.trim().slice(0, 60));
  return problems;
}"""

# The elements a reader sees as boxes or text; a formula is its outer box.
ELEMENTS = """
  const skipped = node => node.matches('.visually-hidden, .headerlink, script, style')
    || node.parentElement.closest('mjx-container, svg');
  const elements = [...document.querySelectorAll('.bd-article')].flatMap(article => {
    const filter = node => skipped(node) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT;
    const walk = document.createTreeWalker(article, NodeFilter.SHOW_ELEMENT, filter), found = [];
    for (let node; node = walk.nextNode();) if (node.checkVisibility()) found.push(node);
    return found;
  });
  const kind = node => node.getAttribute('class') || '';
  const name = node => `<${node.tagName.toLowerCase()} class="${kind(node)}">`;
"""

# What sticks out of the window and has no box of its own to scroll in.
OVERFLOW = f"""() => {{ {ELEMENTS}
  const problems = [], page = document.documentElement;
  const width = page.clientWidth, total = page.scrollWidth;
  if (total > width) problems.push(`the page is ${{total}} px wide on a ${{width}} px screen`);
  const scrolls = node => ['auto', 'scroll', 'hidden'].includes(getComputedStyle(node).overflowX);
  for (const node of elements) {{
    const right = node.getBoundingClientRect().right;
    if (right <= width + 1) continue;
    const holds = box => scrolls(box) && box.getBoundingClientRect().right <= width + 1;
    let box = node;
    while (box && !holds(box)) box = box.parentElement;
    if (!box || !box.closest('.bd-article')) {{
      problems.push(`${{name(node)}} sticks out to ${{Math.round(right)}} px`);
      break;
    }}
  }}
  return problems;
}}"""

# The contrast of each text with the nearest painted background behind it (WCAG: 4.5 for text).
DARK = f"""() => {{ {ELEMENTS}
  const parse = text => [...text.match(/[\\d.]+/g).map(Number), 1].slice(0, 4);
  const linear = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3]));
  const grounds = new Map();
  const ground = node => {{
    if (!node) return [255, 255, 255];
    if (!grounds.has(node)) {{
      const colour = parse(getComputedStyle(node).backgroundColor);
      grounds.set(node, colour[3] === 1 ? colour : over(colour, ground(node.parentElement)));
    }}
    return grounds.get(node);
  }};
  const problems = [], seen = new Set();
  if (light(ground(document.body)) > 0.2) problems.push('the dark page is not dark');
  for (const node of elements) {{
    const own = [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
    if (!own && node.tagName !== 'MJX-CONTAINER') continue;
    const style = getComputedStyle(node), below = ground(node);
    const both = [light(over(parse(style.color), below)), light(below)];
    const ratio = (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
    const needed = parseFloat(style.fontSize) >= 24 ? 3 : 4.5;
    if (ratio >= needed || seen.has(name(node))) continue;
    seen.add(name(node));
    const words = node.textContent.trim().slice(0, 40);
    problems.push(`${{name(node)}} has contrast ${{ratio.toFixed(2)}}: ${{words}}`);
  }}
  return problems;
}}"""


def night(page) -> None:
    """The dark theme without its fade, asked for again where no script was listening yet."""
    page.add_style_tag(content="* { transition: none !important }")
    for _ in range(30):
        page.emulate_media(color_scheme="light")
        page.emulate_media(color_scheme="dark")
        with suppress(TimeoutError):
            page.wait_for_function(
                "document.documentElement.dataset.theme === 'dark'", timeout=400
            )
            return
    raise AssertionError("the page does not turn dark")


def page_problems(visit: Callable, path: Path) -> list[str]:
    """Everything a reader would trip over: at a desk, at night, and on a telephone."""
    page, problems = visit(path, width=1400)
    problems += page.evaluate(MATHEMATICS)
    height = page.evaluate("document.documentElement.scrollHeight")
    screens = 20_000 if path.stem in TWICE else 12_000
    if path.parent.name == "book" and path.stem in STORIES and height > screens:
        problems.append(f"a story of {height} px is higher than twelve screens")
    night(page)
    problems += page.evaluate(DARK) + dark_figures(page)
    page.set_viewport_size({"width": NARROW, "height": 900})
    problems += page.evaluate(OVERFLOW)
    page.close()
    return problems


def dark_figures(page: Page) -> list[str]:
    """Figures that the browser paints on a bright ground in the dark theme, or with pale ink."""
    problems = []
    for image in page.locator(".bd-article img").all():
        if not image.is_visible():
            continue
        colours = imread(BytesIO(image.screenshot()))[..., :3].reshape(-1, 3)
        linear = np.where(
            colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4
        )
        light = linear @ (0.2126, 0.7152, 0.0722)
        ground, ink = np.median(light), np.quantile(light, 0.995)
        if ground > 0.1 or (ink + 0.05) / (ground + 0.05) < 4.5:
            problems.append(
                f"a figure's ground is {ground:.2f} and its ink {ink:.2f} in the dark"
            )
    return problems


@pytest.mark.parametrize("name", PAGES)
def test_page(visit, html, name):
    assert page_problems(visit, html / name) == []


def test_a_fold_is_open_without_scripts_and_closed_with_them(visit, html, tmp_path):
    inside = "<summary>2 checks hold</summary><p id='inside'>evidence</p>"
    path = changed_page(
        html, tmp_path, f"<details class='mlgd-fold' open>{inside}</details>"
    )
    page, problems = visit(path)
    assert not page.locator("#inside").is_visible()
    page.get_by_text("2 checks hold").click()
    assert page.locator("#inside").is_visible()
    page.close()
    page, more = visit(path, "#inside")
    assert page.locator("#inside").is_visible()
    assert problems + more == []
    page.close()


def test_two_panels_stack_on_a_phone(visit, html, tmp_path):
    path = changed_page(
        html, tmp_path, "<img class='mlgd-panels' src='../_static/cover.png'>"
    )
    for width, shown in ((1280, 1), (NARROW, 2)):
        page, problems = visit(path, width=width)
        halves = page.locator(".mlgd-half:visible")
        assert halves.count() == shown
        wide = page.locator(".mlgd-half img").first.bounding_box()["width"]
        assert wide == pytest.approx(
            halves.first.bounding_box()["width"] * shown, rel=0.01
        )
        assert problems + page.evaluate(OVERFLOW) == []
        page.close()


def test_search_finds_a_word(visit, html):
    page, problems = visit(html / "search.html", "?q=accuracy")
    page.wait_for_selector("#search-results li", timeout=20_000)
    assert page.locator("#search-results li").count() >= 1
    assert problems == []
    page.close()


WHITE = "filter: none !important; background: white"
BROKEN = {
    "mathematics does not typeset": r'<div class="math">\[ \nosuchmacro{x} \]</div>',
    "mathematics was left as text": r'<div class="mathjax_ignore">\( x \)</div>',
    "the console says: on purpose": "<script>console.error('on purpose')</script>",
    "a script failed: on purpose": "<script>throw new Error('on purpose')</script>",
    "the page asked for https://far.example/x.png": '<img src="https://far.example/x.png">',
    "a request failed: file://": '<img src="absent.png">',
    "sticks out": '<div style="width: 900px">wide</div>',
    "has contrast": '<p style="color: #444">dim</p>',
    "is higher than twelve screens": '<div style="height: 12001px"></div>',
    "a figure's ground is": f'<img src="../_static/favicon.png" style="{WHITE}">',
}


def changed_page(html: Path, folder: Path, addition: str) -> Path:
    """A page of the book with something added at its end."""
    text = (html / "book" / "duality.html").read_text(encoding="utf-8")
    (folder / "book").mkdir(exist_ok=True)
    for name in ("_static", "searchindex.js"):
        if not (folder / name).exists():
            (folder / name).symlink_to(html / name)
    page = folder / "book" / "duality.html"
    page.write_text(
        text.replace("</article>", f"{addition}</article>", 1), encoding="utf-8"
    )
    return page


def test_page_check_can_fail(visit, html, tmp_path):
    """One of each thing that can break, added to a page."""
    found = page_problems(visit, changed_page(html, tmp_path, "".join(BROKEN.values())))
    assert [told for told in BROKEN if not any(told in line for line in found)] == [], (
        found
    )
