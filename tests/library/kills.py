"""Kill a process by what it has written and not by the clock: in the middle of its work."""

import signal
import subprocess
import time
from pathlib import Path


def killed(command: list[str], path: Path, writes: int) -> bool:
    """Kill a process once its file was written so many times; False if it ended before."""
    process, last = subprocess.Popen(command), _written(path)
    while writes and process.poll() is None:
        if (now := _written(path)) != last:
            last, writes = now, writes - 1
        time.sleep(2e-4)
    process.send_signal(signal.SIGKILL)
    return process.wait() < 0


def _written(path: Path) -> tuple[int, int] | None:
    """What changes when the file is replaced."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns
