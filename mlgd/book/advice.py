"""Which method: the small tree of book/data/advice.yml, written and answered."""

import yaml

from .chapters import BOOK

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


def markdown(node: dict = TREE, depth: int = 0, leaf: str = "**{leaf}**") -> str:
    """The tree as a nested list: book/advice.md, which pages include, and the README's."""
    if "leaf" in node:
        return leaf.format(**node)
    branches = {
        answer: markdown(node[answer], depth + 1, leaf) for answer in ("no", "yes")
    }
    lines = [
        f"{'  ' * (depth + 1)}- {answer}: {text}" for answer, text in branches.items()
    ]
    return "\n".join([node["words"], *lines])
