"""Which method: one small tree, from which every page and the README take what they recommend."""

import html

from .pieces import Html

ONE = {
    "leaf": "L-BFGS on one level",
    "words": "The level that the target needs, alone: scipy's L-BFGS if levels have values, "
    "`minimize(h.only([k]), y0, eps=eps)` if they have gradients only.",
}
NESTED = {
    "leaf": "coarse to fine",
    "words": "Your own solver on one level after the other, each from the last point: scipy's "
    "L-BFGS if levels have values.",
}
CALL = {
    "leaf": "one call",
    "words": "`minimize(h, y0, eps=eps)`; with `exact=True` on the hierarchy if its finest level "
    "is the problem. Extrapolate first where errors have a known order. Where they do not repeat "
    "the run promises nothing.",
}
PLAN = {
    "leaf": "a plan with a proof",
    "words": "`plan(problem, eps, on=h)` for each method by `compare`, the cheapest run by "
    "`minimize(h, y0, plan)`.",
}
TREE = {
    "ask": "expensive",
    "words": "Does a gradient at the accuracy you need cost ten coarse ones or more?",
    "no": ONE,
    "yes": {
        "ask": "repeats",
        "words": "Do the levels' errors repeat themselves at nearby points?",
        "yes": {
            "ask": "loose",
            "words": "Is the target loose: will one of the three coarsest levels do?",
            "yes": NESTED,
            "no": CALL,
        },
        "no": {
            "ask": "known",
            "words": "Do you need a proof, and know a rate above 2, the smoothness, the distance?",
            "yes": PLAN,
            "no": CALL,
        },
    },
}


def advice(expensive: bool, repeats: bool, loose: bool, known: bool) -> dict[str, str]:
    """The leaf for these answers: its name, and the call or the other tool.

    >>> advice(expensive=True, repeats=True, loose=False, known=False)["leaf"]
    'one call'
    """
    facts, node = locals().copy(), TREE
    while "ask" in node:
        node = node["yes" if facts[node["ask"]] else "no"]
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
        return f"{code(node['words'])}<ul>{branches}</ul>"

    return Html(f"<div class='mlgd-tree'>{part(node)}</div>", markdown(node))
