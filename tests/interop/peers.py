# SPDX-License-Identifier: MIT
"""The programs of this folder as child processes that talk in lines."""

import os
import select
import subprocess
import time
from pathlib import Path

PATIENCE = 20.0  # seconds for anything that must happen


class PeerError(Exception):
    """A child process broke the expected course of a cell."""


class Peer:
    """A child process: lines to its input, lines from its output, and its end."""

    def __init__(self, program: Path, *arguments: object, env: dict[str, str] | None = None):
        command = [str(program), *map(str, arguments)]
        self.name = " ".join([program.name, *map(str, arguments[:1])])
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env={**os.environ, **(env or {})}
        )
        self._received = b""

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, line: str) -> None:
        self.process.stdin.write(line.encode() + b"\n")

    def read_line(self, timeout: float = PATIENCE) -> str:
        """The next line; PeerError when no line comes in time."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self._received:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise PeerError(f"{self.name}: said nothing for {timeout:.3f} s")
            block = os.read(self.process.stdout.fileno(), 65536)
            if not block:
                raise PeerError(f"{self.name}: ended with status {self.process.wait(PATIENCE)}")
            self._received += block
        line, self._received = self._received.split(b"\n", 1)
        return line.decode(errors="replace")

    def expect(self, word: str, timeout: float = PATIENCE) -> str:
        """The next line must begin with this word; returns the rest of the line."""
        line = self.read_line(timeout)
        first, _, rest = line.partition(" ")
        if first != word:
            raise PeerError(f"{self.name}: {line}")
        return rest

    def has_line(self, timeout: float) -> bool:
        return b"\n" in self._received or bool(select.select([self.process.stdout], [], [], timeout)[0])

    def finish(self) -> None:
        """Waits for the end of the child, whose exit status must be 0."""
        self.process.stdin.close()
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise PeerError(f"{self.name}: does not end") from None
        finally:
            self.kill()
        if status != 0:
            raise PeerError(f"{self.name}: exit status {status}")

    def kill(self) -> None:
        """kill -9, and closes its pipes; a second call does nothing."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def wait_until(condition, what: str, timeout: float = PATIENCE) -> None:
    """Waits until condition() is true; PeerError when it never is."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise PeerError(f"{what}: not within {timeout:.0f} s")
        select.select([], [], [], 0.005)  # lets others run between two checks
