"""The ledger: every claim of the paper, joined with the checks stored in the chapters' own outputs.

Nothing here is typed in: a row's verdict and evidence come from the committed notebooks, and `problems` names each
row that lost its check, each check without a row, and each verdict that differs from the one recorded.
"""

import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .boxes import KINDS, OURS, checks_in
from .boxes_old import VERDICTS, fold
from .chapters import notebooks
from .pieces import Html, read_table, sentence, slug, with_formulas

LABEL = re.compile(r"\b(?:ass|thm|prop|app|sec|eq|rem|fig|lem|def):[\w-]+(?:/[\w-]+)?")
# the verdict a row shows when its checks differ: the first of these
WORST = ("fails", "repaired", "holds", "cited")


@dataclass(frozen=True)
class Row:
    """One claim with the checks that serve it."""

    id: str
    chapter: str
    where: str
    kind: str
    claim: str
    recorded: str
    checks: tuple[dict, ...]

    @property
    def found(self) -> str:
        """What the chapters say of the row, check by check, as claims.tsv records it."""
        return "; ".join(f"{c['verdict']} by {c['kind']}" for c in self.checks)

    @property
    def verdict(self) -> str:
        found = {c["verdict"] for c in self.checks}
        return next((v for v in WORST if v in found), "open")

    @property
    def evidence(self) -> str:
        """The strongest kind among the checks that gave the verdict."""
        kinds = {c["kind"] for c in self.checks if c["verdict"] == self.verdict}
        return next((k for k in KINDS if k in kinds), "none")


def collect(book: str | Path = "book") -> dict[str, list[dict]]:
    """{page: the checks stored in its notebook}, for stories (`oracle`) and audits (`audit/oracle`)."""
    return {name: checks_in(path) for name, path in notebooks(Path(book)).items()}


def join(claims: Iterable[Mapping[str, str]], pages: Mapping[str, Sequence[dict]]) -> list[Row]:
    """The claims, each with the checks of all pages that name it."""
    found: dict[str, list[dict]] = {}
    for page, checks in pages.items():
        for check in checks:
            for claim_id in check["ids"]:
                found.setdefault(claim_id, []).append({**check, "page": page})
    fields = ("id", "chapter", "where", "kind", "claim")
    return [
        Row(*(r[f] for f in fields), r.get("checks") or "", tuple(found.get(r["id"], ())))
        for r in claims
    ]


def read_ledger(book: str | Path = "book") -> list[Row]:
    """The rows of claims.tsv joined with the checks of the committed notebooks."""
    return join(read_table(Path(book) / "claims.tsv"), collect(book))


def problems(claims: Sequence[Mapping[str, str]], pages: Mapping[str, Sequence[dict]]) -> list[str]:
    """What is wrong between the claims and the checks, one sentence per row; empty when all is well."""
    rows = join(claims, pages)
    out = [
        f"{i}: stands {n} times in claims.tsv"
        for i, n in Counter(r.id for r in rows).items()
        if n > 1
    ]
    known = {r.id for r in rows}
    for row in rows:
        if not row.checks:
            out.append(f"{row.id}: no check names this row; add one to {row.chapter}.ipynb")
        elif row.recorded != row.found:
            out.append(
                f"{row.id}: claims.tsv records {row.recorded!r}, the chapters say {row.found!r}"
            )
    for page, checks in pages.items():
        for check in checks:
            strange = [i for i in check["ids"] if i not in known and not i.startswith(OURS)]
            out += [f"{i}: checked in {page}, but no row of claims.tsv" for i in strange]
            if check["kind"] not in KINDS or check["verdict"] not in VERDICTS:
                out.append(
                    f"{check['ids'][0]}: {page} stores {check['kind']!r}, {check['verdict']!r}"
                )
    return out


def record(book: str | Path = "book") -> None:
    """Write what the chapters say into the last two columns of claims.tsv (to be looked at, then committed)."""
    rows = read_ledger(book)
    lines = ["\t".join(("id", "chapter", "where", "kind", "claim", "verdict", "checks"))]
    lines += [
        "\t".join((r.id, r.chapter, r.where, r.kind, r.claim, r.verdict, r.found)) for r in rows
    ]
    (Path(book) / "claims.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def counts(rows: Iterable[Row], by: str, columns: Sequence[str], of: str) -> list[tuple]:
    """A cross table: one line for each value of `by`, one column for each value of `of`, and the total."""
    table = Counter((getattr(r, by), getattr(r, of)) for r in rows)
    lines = sorted({key for key, _ in table})
    return [
        (line, *(table[line, c] for c in columns), sum(table[line, c] for c in columns))
        for line in lines
    ]


def read_names(path: str | Path) -> dict[str, str]:
    """{a label of the paper's source: how the book calls what it labels}, from labels.tsv."""
    return {e["label"]: e["name"] for e in read_table(path)}


def chapter_table(rows: Iterable[Row], chapter: str, names: Mapping[str, str]) -> Html:
    """The rows of one chapter: all there as it is, folded, filtered and searched by ledger.js where scripts run."""
    own = [r for r in rows if r.chapter == chapter]
    body = []
    for r in own:
        links = " ".join(
            f"<a href='{c['page']}.html#{c['anchor']}' title='{html.escape(c['kind'])}'>{html.escape(c['page'])}</a>"
            for c in r.checks
        )
        body.append(
            f"<tr id='row-{slug(r.id)}' data-verdict='{r.verdict}' data-kind='{r.kind}' data-evidence='{r.evidence}'>"
            f"<td><code>{html.escape(r.id)}</code><br><small>{with_formulas(r.where)}</small></td>"
            f"<td>{LABEL.sub(lambda m: f'<i>{names[m.group()]}</i>', with_formulas(r.claim))}</td>"
            f"<td><span class='mlgd-verdict mlgd-{r.verdict}'>{r.verdict}</span><br>{r.evidence}<br>{links}</td></tr>"
        )
    head = "<thead><tr><th>claim</th><th>what it says</th><th>verdict, evidence, check</th></tr></thead>"
    table = (
        f"<table class='mlgd-ledger tex2jax_process'>{head}<tbody>{''.join(body)}</tbody></table>"
    )
    return Html(fold(f"{len(own)} rows", table), f"{chapter}: {len(own)} rows")


# --- errata ------------------------------------------------------------------------------------------------


def errata_problems(rows: Sequence[Row], errata: Sequence[Mapping[str, str]]) -> list[str]:
    """Rows that do not hold and stand in no erratum, and errata that name a row which holds or does not exist."""
    wrong = {r.id for r in rows if r.verdict in ("fails", "repaired")}
    named = [i for e in errata for i in e["ids"].split()]
    out = [f"{i}: does not hold and stands in no erratum" for i in sorted(wrong - set(named))]
    return out + [
        f"{i}: named in the errata, but its verdict is not fails or repaired"
        for i in named
        if i not in wrong
    ]


def findings(rows: Iterable[Row]) -> list[dict]:
    """The checks by which these rows do not hold, each once: what is printed, the numbers against it, the repair."""
    found = [
        c
        for r in rows
        for c in r.checks
        if c["verdict"] in ("fails", "repaired") and "numbers" in c
    ]
    return list({(c["page"], c["anchor"]): c for c in found}.values())


def errata_list(rows: Sequence[Row], errata: Sequence[Mapping[str, str]]) -> Html:
    """The errata in order of weight, each made of the checks of its rows: what is said, the numbers, the repair."""
    by_id = {r.id: r for r in rows}
    items, plain = [], []
    for number, entry in enumerate(sorted(errata, key=lambda e: int(e["weight"])), 1):
        own = [by_id[i] for i in entry["ids"].split()]
        verdict = next((v for v in WORST if v in {r.verdict for r in own}), "open")
        places = with_formulas("; ".join(dict.fromkeys(r.where for r in own)))
        links = " ".join(f"<a href='#row-{slug(r.id)}'>{html.escape(r.id)}</a>" for r in own)
        first, *others = map(_finding, findings(own))
        more = (
            f"{len(others)} more checks, "
            if len(others) > 1
            else "one more check, "
            if others
            else ""
        )
        rest = f"{''.join(others)}<p><small>{places}</small></p><p><small>rows: {links}</small></p>"
        items.append(
            f"<div class='mlgd-erratum tex2jax_process' id='erratum-{number}'><p><b>{number}. "
            f"{with_formulas(entry['title'])}</b> <span class='mlgd-verdict mlgd-{verdict}'>{verdict}</span></p>{first}"
            f"<p><i>What else it touches.</i> {with_formulas(entry['downstream'])}</p>"
            f"{fold(f'{more}places and rows', rest)}</div>"
        )
        plain.append(f"{number}. {entry['title']} [{verdict}]")
    return Html("".join(items), "\n".join(plain))


def _finding(check: Mapping) -> str:
    numbers = " ".join(with_formulas(sentence(text)) for text in check["numbers"])
    repair = (
        f" <i>Repair.</i> {with_formulas(sentence(check['repair']))}" if check["repair"] else ""
    )
    link = f"<a href='{check['page']}.html#{check['anchor']}'>check</a>"
    return f"<p>{with_formulas(sentence(check['statement']))} <i>In numbers.</i> {numbers}{repair} {link}</p>"


# --- what rests on what ------------------------------------------------------------------------------------


def read_graph(path: str | Path) -> dict[str, tuple[str, ...]]:
    """{result: the results its proof uses}, from rests_on.tsv."""
    return {e["result"]: tuple(e["uses"].split()) for e in read_table(path)}


def layers(graph: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """How deep each result stands: 0 for hypotheses, one more than the deepest thing it uses otherwise."""
    depth: dict[str, int] = {}

    def visit(node, path=()):
        if node in path:
            raise ValueError(f"the proofs form a circle: {' -> '.join((*path, node))}")
        if node not in depth:
            depth[node] = max((visit(u, (*path, node)) + 1 for u in graph.get(node, ())), default=0)
        return depth[node]

    for node in graph:
        visit(node)
    return depth


def group_verdict(rows: Iterable[Row], group: str) -> str:
    """The worst verdict among the rows of a result: those whose id is the group or begins with it."""
    found = {
        r.verdict for r in rows if r.id == group or r.id.startswith((group + "/", group + "-"))
    }
    if not found:
        raise ValueError(f"{group}: no row of claims.tsv belongs to it")
    return next((v for v in WORST if v in found), "open")


def draw_graph(
    graph: Mapping[str, Sequence[str]], rows: Sequence[Row], names: Mapping[str, str]
) -> None:
    """The graph of proofs, hypotheses at the bottom, each result in the colour and shape of its worst verdict."""
    import matplotlib.pyplot as plt

    from . import figures as plots

    looks = {
        "holds": (plots.GREEN, "o"),
        "repaired": (plots.YELLOW, "s"),
        "fails": (plots.ORANGE, "X"),
        "cited": (plots.SKY, "D"),
    }
    depth = layers(graph)
    levels: dict[int, list[str]] = {}
    for node in depth:
        levels.setdefault(depth[node], []).append(node)
    place = {}
    for d in sorted(levels):
        below = {n: [place[u][0] for u in graph.get(n, ()) if u in place] for n in levels[d]}
        ordered = sorted(
            levels[d], key=lambda n: (sum(below[n]) / len(below[n]) if below[n] else 0.0, n)
        )
        for i, node in enumerate(ordered):
            place[node] = ((i + 0.5) / len(ordered), d)
    with plots.style():
        _, ax = plt.subplots(figsize=(9, 7.4), layout="constrained")
        for node, uses in graph.items():
            for used in uses:
                (x0, y0), (x1, y1) = place[used], place[node]
                ax.plot([x0, x1], [y0, y1], color=plots.GREY, lw=0.7, ls="-", alpha=0.55, zorder=1)
        for verdict, (colour, marker) in looks.items():
            own = [n for n in place if group_verdict(rows, n) == verdict]
            if own:
                xs, ys = zip(*(place[n] for n in own), strict=True)
                ax.scatter(
                    xs,
                    ys,
                    s=90,
                    color=colour,
                    marker=marker,
                    edgecolor=plots.BLACK,
                    label=verdict,
                    zorder=2,
                )
        for layer in levels.values():
            crowded = len(layer) > 5  # then every other name stands below its mark
            for i, node in enumerate(sorted(layer, key=lambda n: place[n][0])):
                x, y = place[node]
                ax.text(
                    x,
                    y + (-0.36 if crowded and i % 2 else 0.2),
                    names[node],
                    ha="center",
                    fontsize=7.5,
                    zorder=3,
                )
        ax.set_axis_off()
        ax.set_ylim(-0.6, max(levels) + 0.5)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=4)
        plt.show()


if __name__ == "__main__":
    record()
    print(
        "\n".join(problems(read_table("book/claims.tsv"), collect()))
        or "every row has its check; the verdicts are recorded in book/claims.tsv"
    )
