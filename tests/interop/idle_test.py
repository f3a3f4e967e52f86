# SPDX-License-Identifier: MIT
"""An idle process sleeps: with connected sockets of each kind over tcp, ipc and inproc, and a thread in recv on each
transport, none of its threads wakes in 5 s; with the default heartbeats, only for those."""

import argparse
import os
import sys
import time
from pathlib import Path

from peers import Peer, PeerError, wait_until

WATCHED = 5.0  # seconds
SETTLED = 0.5  # seconds without a switch, after which the start-up is over
HEARTBEAT = 15.0  # seconds: the default heartbeat_interval
# A heartbeat wakes the I/O thread at most for: its timer, the PING at the other end, the PONG back, and the flushing.
WAKES_PER_HEARTBEAT = 6


def count_switches(pid: int) -> dict[str, int]:
    """Thread -> number of its context switches."""
    counts = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        status = Path(f"/proc/{pid}/task/{task}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        name = f"{fields['Name']}/{task}"
        counts[name] = int(fields["voluntary_ctxt_switches"]) + int(fields["nonvoluntary_ctxt_switches"])
    return counts


def all_sleep(pid: int) -> bool:
    """A thread that waits for a processor makes no switch either."""
    threads = [Path(f"/proc/{pid}/task/{task}/stat").read_text() for task in os.listdir(f"/proc/{pid}/task")]
    return all(thread.rpartition(")")[2].split()[0] == "S" for thread in threads)


def has_settled(pid: int) -> bool:
    before = count_switches(pid)
    time.sleep(SETTLED)
    return all_sleep(pid) and count_switches(pid) == before


def count_wakes(program: Path, *arguments: str, settle: bool) -> tuple[dict[str, int], int]:
    """Thread -> switches while nothing happened; and the number of connection ends."""
    peer = Peer(program, *arguments)
    try:
        ends = int(peer.expect("ready"))
        if settle:
            wait_until(lambda: has_settled(peer.pid), "the process does not come to rest")
        before = count_switches(peer.pid)
        time.sleep(WATCHED)
        after = count_switches(peer.pid)
        peer.send("end")
        peer.finish()
    finally:
        peer.kill()
    return {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}, ends


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build_dir", type=Path)
    arguments = parser.parse_args()
    program = arguments.build_dir / "tests" / "interop" / "idle_side"
    right = True
    try:
        woken, ends = count_wakes(program, settle=True)
        result = "FAIL" if woken else "ok"
        print(f"{result:4} without heartbeats: {ends} connection ends, {WATCHED:.0f} s, woken: {woken or 'never'}")
        right &= not woken
        woken, ends = count_wakes(program, "--heartbeats", settle=True)
        bound = int(ends * WAKES_PER_HEARTBEAT * (WATCHED // HEARTBEAT + 1))
        total = sum(woken.values())
        result = "FAIL" if total > bound else "ok"
        print(f"{result:4} with heartbeats: {total} wake-ups of at most {bound}: {woken or 'never'}")
        right &= total <= bound
    except PeerError as error:
        print(f"FAIL {error}")
        right = False
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
