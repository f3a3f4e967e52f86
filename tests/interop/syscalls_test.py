# SPDX-License-Identifier: MIT
"""A round trip of REQ and REP over tcp between two busy processes costs each at most four system calls, all its threads
together. The test compares two runs of different length, so that beginning and end do not count. WEFT_WAIT_MODE=eco
turns spinning off, which would make more and cheaper calls."""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from peers import Peer, PeerError

CALLS_MAX = 4.0
SHORT, LONG = 1000, 4000  # round trips
CALL = re.compile(r"^(?:\d+ +)?(\w+)\(")


def may_trace() -> bool:
    """Whether strace is installed and ptrace permitted."""
    if shutil.which("strace") is None:
        print("strace is not installed (see deps/apt.txt)")
        return False
    result = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        print(f"tracing is not permitted here: {result.stderr.strip().splitlines()[-1:]}")
    return result.returncode == 0


def traced(program: Path, log: Path, *arguments: object) -> Peer:
    return Peer(
        Path(shutil.which("strace")), "-f", "-o", log, "-e", "trace=all", program, *arguments,
        env={"WEFT_WAIT_MODE": "eco"},
    )  # fmt: skip


def count_calls(log: Path) -> Counter:
    """How often each call was made; the second half of a call that was interrupted in the log does not count again."""
    return Counter(match[1] for match in map(CALL.match, log.read_text().splitlines()) if match)


def run(program: Path, directory: Path, round_trips: int) -> tuple[Counter, Counter]:
    """The calls of REQ and of REP."""
    logs = [directory / f"{role}-{round_trips}" for role in ("req", "rep")]
    common = ("--count", round_trips, "--size", 64, "--plain")
    rep = traced(program, logs[1], "rep", "--bind", "tcp://127.0.0.1:*", *common)
    req = traced(program, logs[0], "req", "--connect", *common)
    try:
        req.send("at " + rep.expect("at"))
        for peer in (req, rep):
            peer.expect("done")
            peer.finish()
    finally:
        req.kill()
        rep.kill()
    return count_calls(logs[0]), count_calls(logs[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build_dir", type=Path)
    program = parser.parse_args().build_dir / "tests" / "interop" / "interop_peer"
    if not may_trace():
        return 77
    right = True
    try:
        with tempfile.TemporaryDirectory(prefix="weft-syscalls-") as directory:
            short, long = (run(program, Path(directory), count) for count in (SHORT, LONG))
    except PeerError as error:
        print(f"FAIL {error}")
        return 1
    for role, fewer, more in zip(("REQ", "REP"), short, long):
        more.subtract(fewer)
        calls = {name: round(count / (LONG - SHORT), 2) for name, count in more.most_common() if count > 10}
        total = sum(more.values()) / (LONG - SHORT)
        right &= total <= CALLS_MAX
        print(f"{'ok' if total <= CALLS_MAX else 'FAIL':4} {role}: {total:.2f} system calls for a round trip: {calls}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
