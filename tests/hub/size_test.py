# SPDX-License-Identifier: MIT
"""size_test.py WEFT MEMBERS_SIDE MEMBERS MESSAGES: a `weft hub` with so many members and kept messages, and its successor.

Prints the rows of docs/topics.md ("The size of a fleet and of a hub"). It fails if a member or a message is lost, or if the
hub takes more memory for each than the bounds below, which are several times the measured ones.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WEFT, MEMBERS_SIDE = sys.argv[1:3]
MEMBERS, MESSAGES = int(sys.argv[3]), int(sys.argv[4])
PATIENCE = 600
A_PROCESS = 100  # members of a process
HUB_BYTES_A_MEMBER = 64 * 1024
HANDLE_BYTES = 512 * 1024
HUB_BYTES_A_MESSAGE = 1024
BASE_BYTES = 16 * 1024 * 1024  # of a small load, in whose figures the hub's first pages count


class Hub:
    """A `weft hub`; `began`: the moment of its start."""

    def __init__(self, directory: str):
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [WEFT, "hub", "--directory", directory, "--clients-max", str(MEMBERS + 64)], stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> "Hub":
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def note(self, text: str) -> float:
        """Waits for a note; gives its moment."""
        for line in self.process.stderr:
            if text in line:
                return time.monotonic()
        raise AssertionError((text, self.process.wait()))

    def bytes(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) * 1024

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


@contextlib.contextmanager
def hub_of(directory: str):
    with Hub(directory) as hub:
        hub.note("serves")
        yield hub


def weft(directory: str, *arguments: str, **more) -> str:
    return subprocess.run([WEFT, *arguments, "--directory", directory, "--timeout", str(PATIENCE)], check=True, text=True,
                          stdout=subprocess.PIPE, timeout=PATIENCE, **more).stdout


@contextlib.contextmanager
def take_over(hub: Hub, directory: str):
    """Kills the hub, whose successor waits already; gives the successor, and the moment of the kill."""
    with Hub(directory) as successor:
        successor.note("another process is the hub")
        killed = time.monotonic()
        hub.process.send_signal(signal.SIGKILL)
        yield successor, killed


def members() -> None:
    counts = [min(A_PROCESS, MEMBERS - first) for first in range(0, MEMBERS, A_PROCESS)]
    with tempfile.TemporaryDirectory() as directory, hub_of(directory) as hub, contextlib.ExitStack() as sides:
        weft(directory, "kv", "put", "config", "color", "1")
        before, endpoint = hub.bytes(), f"ipc://{directory}/topics/default/hub.sock"
        began = time.monotonic()
        all_sides = [sides.enter_context(subprocess.Popen([MEMBERS_SIDE, endpoint, str(count)], stdin=subprocess.PIPE,
                                                          stdout=subprocess.PIPE, text=True)) for count in counts]
        joined = [side.stdout.readline().split() for side in all_sides]
        joined_after = time.monotonic() - began
        assert all(each and each[0] == "joined" for each in joined), joined
        of_handle = max(int(each[1]) for each in joined)
        of_member = (hub.bytes() - before) // MEMBERS
        descriptors = hub.descriptors()
        assert descriptors > MEMBERS, descriptors
        with take_over(hub, directory) as (successor, killed):
            successor.note("serves")
            weft(directory, "kv", "put", "config", "color", "2")
            changed = [side.stdout.readline() for side in all_sides]
            changed_after = time.monotonic() - killed
            assert changed == ["changed\n"] * len(all_sides), changed
        print(f"{MEMBERS} members in {len(counts)} processes: all have their first value after {joined_after:.1f} s; "
              f"{of_handle / 1024:.0f} KiB and {joined[0][2]} descriptors of a handle, {of_member / 1024:.1f} KiB of the hub, "
              f"which has {descriptors} descriptors; all have the next hub's first change {changed_after:.1f} s after kill -9")
        assert of_handle < HANDLE_BYTES + BASE_BYTES // A_PROCESS, of_handle
        assert of_member < HUB_BYTES_A_MEMBER + BASE_BYTES // MEMBERS, of_member


def messages() -> None:
    with tempfile.TemporaryDirectory() as directory:
        with hub_of(directory) as hub:
            weft(directory, "stream", "add", "orders", "orders.>")
            before = hub.bytes()
            lines = Path(directory) / "lines"
            lines.write_text("".join(f"{i:099d}\n" for i in range(MESSAGES)))  # a line is a message of 99 bytes
            began = time.monotonic()
            weft(directory, "stream", "publish", "orders", "orders.eu", "--window", "4096", "--lines", str(lines))
            published_after = time.monotonic() - began
            used = hub.bytes() - before
            disk = sum(each.stat().st_size for each in Path(directory).glob("default.topics*"))
            with take_over(hub, directory) as (successor, killed):
                taken_over_after = successor.note("serves") - killed
                check_stream(directory)
        with Hub(directory) as next_hub:
            started_after = next_hub.note("serves") - next_hub.began
            check_stream(directory)
        print(f"{MESSAGES} messages: published in {published_after:.1f} s; {used / 2**20:.0f} MiB of the hub's memory, "
              f"{disk / 2**20:.0f} MiB of disk; a hub serves {started_after:.2f} s after its start, and a waiting one "
              f"{taken_over_after:.2f} s after kill -9 of the last")
        assert used < MESSAGES * HUB_BYTES_A_MESSAGE + BASE_BYTES, used


def check_stream(directory: str) -> None:
    (stream,) = [json.loads(line) for line in weft(directory, "stream", "ls", "--json").splitlines()]
    assert stream["next"] == MESSAGES + 1, stream


members()
messages()
