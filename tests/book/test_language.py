"""What is tested is printed: no digit typed into a check's words or a theorem's box."""

import ast
import json
import re
from pathlib import Path

import pytest

from mlgd.book.chapters import notebooks

KINDS = ("identity", "certificate", "enclosure", "exact", "measured", "refuted")
# Digits that are no constants: names ($d_0$, $y_1$), places in the paper, and numbered parts of it.
NO_CONSTANT = re.compile(
    r"_\{?\d\}?|\bl(?:ines?|\.) ?\d+(?:-\d+)?|(?:Theorem|Table|Figure|Section|Remark|Appendix) \S+"
)


def sources(path: Path, kind: str) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(c["source"]) for c in cells if c["cell_type"] == kind]


def sentences(code: str) -> list[list[str]]:
    """Of each check in a cell, the texts that its author typed: words, names, reasons."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in KINDS:
            parts = [
                *node.args[1:],
                *(k.value for k in node.keywords if k.arg != "paper"),
            ]
            found.append([text for part in parts for text in texts(part)])
    return found


def texts(node: ast.AST) -> list[str]:
    """Typed texts below a node, those of calls inside it left out: they are not the reader's."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.Call | ast.Subscript | ast.FormattedValue):
        return []
    return [text for child in ast.iter_child_nodes(node) for text in texts(child)]


def typed(path: Path) -> list[str]:
    """The sentences of a page's checks that have a digit typed in them."""
    all_checks = [s for code in sources(path, "code") for s in sentences(code)]
    return [
        " | ".join(s)
        for s in all_checks
        if re.search(r"\d", NO_CONSTANT.sub("", " ".join(s)))
    ]


PAGES = notebooks(Path(__file__).parents[2] / "book")


@pytest.mark.parametrize("name", PAGES)
def test_no_digit_is_typed_into_a_sentence(name):
    assert typed(PAGES[name]) == []


def test_typed_digits_are_found_and_names_are_not():
    code = (
        "group('g', identity('row-7', r'at most $\\\\frac54$', f(2), sp.Symbol('x_7')),\n"
        "exact('r', f'{3 * n} from $d_0$, line 12', 1.0, '<=', 2.0, slack='by 3 times'),\n"
        "measured('r', 'The slope', v, paper='2.5'), certificate('r', 'Theorem 1(a)', a, b, [1]))"
    )
    assert sentences(code) == [
        [r"at most $\\frac54$"],
        [" from $d_0$, line 12", "<=", "by 3 times"],
        ["The slope"],
        ["Theorem 1(a)"],
    ]


BOX = re.compile(
    r"^(`{3,})\{prf:(?:theorem|lemma|proposition|corollary)\}(.*?)^\1$", re.M | re.S
)
PRINTED = re.compile(  # glued formulas, labels, links and names
    r"`{3}\{glue:math\}.*?`{3}|\{[\w:]+\}`[^`]*`|^:\w+:[^\n]*|<a .*?</a>|_\{?\d\}?",
    re.M | re.S,
)


def constants(text: str) -> list[str]:
    """The numbers typed into a text's theorem boxes; 0, 1, 2 (a case, a rate) are no constants."""
    boxes = [PRINTED.sub("", match[2]) for match in BOX.finditer(text)]
    return [
        n
        for box in boxes
        for n in re.findall(r"\d+(?:\.\d+)?", box)
        if n not in ("0", "1", "2")
    ]


@pytest.mark.parametrize("name", PAGES)
def test_the_constants_of_a_theorem_are_printed_from_a_formula(name):
    assert [n for text in sources(PAGES[name], "markdown") for n in constants(text)] == []


def test_typed_constants_are_found():
    box = "```{{prf:theorem}} T\n:label: thm-3\n\nLet $\\gamma>2$, $d_0$ {}.\n```"
    assert constants(box.format("and {glue:md}`key-16:myst`")) == []
    assert constants(box.format("at most $18\\eps$")) == ["18"]
