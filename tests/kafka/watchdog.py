"""Ends the brokers of a test run that was itself killed: nobody else would.

It runs as a process of its own, reads `+PID` and `-PID` lines, and kills what is left when its
input ends, however that came about.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys


class Watchdog:
    """The other side: tells the watching process which processes there are."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, start_new_session=True, bufsize=0
        )

    def watch(self, pid: int) -> None:
        """From now on the process is killed when this one ends."""
        self._tell(f"+{pid}\n")

    def forget(self, pid: int) -> None:
        """The process ended: its number may soon belong to another."""
        self._tell(f"-{pid}\n")

    def close(self) -> None:
        """End the watch, and kill what is left."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode())


def main() -> None:
    """Follow standard input to its end, then kill."""
    watched: set[int] = set()
    for line in sys.stdin:
        (watched.add if line[0] == "+" else watched.discard)(int(line[1:]))
    for pid in watched:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
