"""What nbval does not ask: a chapter without stored outputs has nothing to compare, so it must not pass."""

from pathlib import Path

import pytest
from chapters import BookError, read, run_problems


@pytest.hookimpl(tryfirst=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> None:
    if file_path.suffix == ".ipynb" and parent.config.option.nbval:
        try:
            problems = run_problems(read(file_path), file_path.stem)
        except BookError as error:
            problems = [str(error)]
        if problems:
            raise parent.CollectError("\n".join(problems))
