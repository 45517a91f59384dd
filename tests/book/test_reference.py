"""The reference: every public name has a docstring, every function an example that runs."""

import doctest
import importlib
import inspect
import pkgutil
import pydoc
import re

import pytest
from bs4 import BeautifulSoup

import mlgd

MODULES = [m.name for m in pkgutil.iter_modules(mlgd.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(f"mlgd.{name}")
    found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0


def test_public_functions_and_main_classes_have_an_example():
    main = {"Hierarchy", "Telescope", "Problem", "Adversary"}
    public = [
        n for n in mlgd.__all__ if inspect.isfunction(getattr(mlgd, n)) or n in main
    ]
    assert [
        n for n in public if ">>>" not in (inspect.getdoc(getattr(mlgd, n)) or "")
    ] == []


def test_every_public_name_has_a_docstring_and_an_entry(book):
    page = (book / "reference.md").read_text(encoding="utf-8")
    for name in mlgd.__all__:
        assert inspect.getdoc(getattr(mlgd, name)), name
        assert re.search(rf"auto\w+:: mlgd\.{name}\b", page), name
    for name in re.findall(r"auto\w+:: (mlgd\.[\w.]+)", page):
        assert inspect.getdoc(pydoc.locate(name)), name
    for name, members in re.findall(r"(mlgd\.[\w.]+).*\n   :members: (.*)", page):
        missing = [m for m in members.split(", ") if not hasattr(pydoc.locate(name), m)]
        assert missing == [], name


@pytest.mark.built
def test_the_page_shows_signatures_without_types(html):
    page = (html / "book" / "reference.html").read_text(encoding="utf-8")
    call = BeautifulSoup(page, "html.parser").find(id="mlgd.minimize").get_text()
    assert "minimize(h, y0, eps=None, *, radius=None, loss=None, callback=None" in call
