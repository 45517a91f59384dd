"""What nbval does not ask: a chapter has stored outputs to compare, and says what time it takes."""

from collections import Counter
from pathlib import Path

import pytest

from mlgd.book.chapters import BookError, read, run_problems


@pytest.hookimpl(tryfirst=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> None:
    """Refuse a chapter that is not one clean run: nbval would compare nothing and pass."""
    if file_path.suffix == ".ipynb" and parent.config.option.nbval:
        try:
            name = file_path.relative_to(Path(__file__).parent).with_suffix("").as_posix()
            problems = run_problems(read(file_path), name)
        except BookError as error:
            problems = [str(error)]
        if problems:
            raise parent.CollectError("\n".join(problems))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The time each chapter took, slowest first."""
    seconds = Counter()
    for report in (
        report for reports in terminalreporter.stats.values() for report in reports
    ):
        name, _, cell = getattr(report, "nodeid", "").partition(".ipynb::")
        if cell:
            seconds[name] += report.duration
    if seconds:
        terminalreporter.section("seconds per chapter, slowest first")
        for name, total in seconds.most_common():
            terminalreporter.write_line(f"{total:7.1f}  {name}.ipynb")
