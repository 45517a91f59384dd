"""Which method: the small tree of book/data/advice.yml, drawn and answered."""

import html

import yaml

from .chapters import BOOK
from .pieces import Html

TREE = yaml.safe_load((BOOK / "data" / "advice.yml").read_text(encoding="utf-8"))


def advice(expensive: bool, repeats=None, loose=None, known=None) -> dict[str, str]:
    """The leaf for these answers, as far as they are asked: its name, and the call to make.

    >>> advice(expensive=True, repeats=True, loose=False)["leaf"]
    'one call'
    """
    facts, node = locals().copy(), TREE
    while "ask" in node:
        node = node[{True: "yes", False: "no"}[facts[node["ask"]]]]
    return node


def markdown(node: dict = TREE, depth: int = 0) -> str:
    """The tree as a nested list: book/advice.md, which pages include, and the README's."""
    if "leaf" in node:
        return f"**{node['leaf']}**"
    lines = [f"{'  ' * (depth + 1)}- {a}: {markdown(node[a], depth + 1)}" for a in ("no", "yes")]
    return "\n".join([node["words"], *lines])


def drawn(node: dict = TREE) -> Html:
    """The tree as a nested list, which a telephone can show too."""

    def code(words: str) -> str:
        parts = html.escape(words).split("`")
        return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts))

    def part(node: dict) -> str:
        if "leaf" in node:
            return f"<strong>{node['leaf']}</strong>. {code(node['words'])}"
        branches = "".join(f"<li><em>{a}:</em> {part(node[a])}</li>" for a in ("no", "yes"))
        return f"{code(node['words'])}<ul style='padding-left: 1.1rem'>{branches}</ul>"

    return Html(f"<div class='mlgd-tree'>{part(node)}</div>", markdown(node))
