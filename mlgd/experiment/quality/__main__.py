"""The quality bench of `minimize`: make quality, or python -m mlgd.experiment.quality.

Prints what the tool reaches and claims on the problems of this folder, and what it pays over
others; a full run writes it to book/data/quality.json. After a change of the tool, --tool is
enough: rivals and the best in hindsight do not change with it. --seeds 100 101 is a look at
problems that nobody has seen.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from .bench import FILE, Run, all_runs, as_kept, read, with_others, write
from .problems import PROBLEMS, SEEDS, instances
from .short import kept, short_runs, verdict
from .synthetic import KINDS, synthetic
from .totals import problem_table, total_table, totals


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m mlgd.experiment.quality",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--short", action="store_true", help="the few runs of the tests")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", choices=[*PROBLEMS], default=[]
    )
    parser.add_argument(
        "--tool", action="store_true", help="take the others from the file"
    )
    parser.add_argument(
        "--out", type=Path, help="the file to write; of a full run, the book's"
    )
    parser.add_argument(
        "--seeds", nargs="+", type=int, help="other data seeds than usual"
    )
    parser.add_argument(
        "--synthetic",
        nargs="*",
        metavar="KIND",
        choices=KINDS,
        help="families of quadratics instead: " + ", ".join(KINDS),
    )
    return parser


def measured(asked: argparse.Namespace) -> list[Run]:
    """The runs that were asked for."""
    if asked.short:
        before = kept()
        runs = with_others(short_runs(), before)
        print(verdict(runs, before))
        return runs
    known = read() if asked.tool else []
    runs = []
    for problem in tqdm([*instances(asked.only, asked.seeds or SEEDS)], disable=None):
        runs += map(as_kept, all_runs(problem, known))
    return runs


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options()
    asked = parser.parse_args(arguments)
    if asked.tool and asked.seeds:
        parser.error(
            "--tool takes the others from the file, which has the usual seeds alone"
        )
    if asked.synthetic is not None:
        synthetic(asked.synthetic or KINDS, asked.seeds or range(8000, 8004))
        return
    runs = measured(asked)
    found = totals(runs)
    print(problem_table(runs))
    print(total_table(found))
    full = not (asked.short or asked.only or asked.seeds)
    out = asked.out or (FILE if full else None)
    if out:
        write(out, runs, found)


if __name__ == "__main__":
    main()
