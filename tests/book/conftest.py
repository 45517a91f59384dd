"""A real headless Chromium for the tests of the built pages."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from mlgd.book.chapters import BROWSERS

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
]
QUIET += ["--disable-background-networking", "--disable-component-update"]

TYPESET = """() => !(window.MathJax && MathJax.startup) || Promise.race([
  MathJax.startup.promise,
  new Promise((_, late) => setTimeout(() => late(new Error('not typeset in 60 s')), 60000)),
]).then(() => true)"""


@pytest.fixture(scope="session")
def browser():
    """The system's Chromium; without one the test is skipped, or fails if one is required."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        message = "no Chromium here: install it (Debian: apt-get install chromium)"
        if os.environ.get("MLGD_REQUIRE_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser) -> Callable[..., tuple[Page, list[str]]]:
    """Open a page from its file, wait for its mathematics; with it, what it logs and asks for."""

    def opened(path: Path, query: str = "", width: int = 1280) -> tuple[Page, list[str]]:
        page = browser.new_page(
            viewport={"width": width, "height": 900}, color_scheme="light"
        )
        problems: list[str] = []
        told = problems.append
        page.on(
            "console", lambda m: m.type == "error" and told(f"the console says: {m.text}")
        )
        page.on("pageerror", lambda error: told(f"a script failed: {error}"))
        page.on("requestfailed", lambda r: told(f"a request failed: {r.url}"))
        page.on("request", lambda r: local(r.url) or told(f"the page asked for {r.url}"))
        page.route(lambda url: not local(url), lambda route: route.abort())
        page.set_default_timeout(60_000)
        page.goto(path.as_uri() + query)
        page.evaluate(TYPESET)
        return page, problems

    return opened


def local(url: str) -> bool:
    return url.startswith(("file:", "data:", "blob:", "about:"))
