# SPDX-License-Identifier: MIT
"""What each of very many connections costs: one socket or one server is opened to, is idle, and loses its connections
in order, in reverse and at random. The cost of a connection does not depend on the number of the others.

By default 1,000 and 4,000 connections. --connections 100000 also shows 1,000 and 10,000 beside it, in some minutes. It
needs as many descriptors in a process: the program raises the limit as far as it may, or says that it may not and skips.
"""

import argparse
import resource
import sys
import time
from pathlib import Path

from peers import Peer, PeerError

PATIENCE = 300.0  # seconds for one step with the most connections
SPARE_DESCRIPTORS = 200
# A connection among the most may cost this many times the cost of one among the fewest, and this many microseconds
# more: caches miss, and a loaded machine interrupts.
RATIO_MAX, SLACK_US = 3.0, 40.0
PACED = 300  # messages, a millisecond apart, while all other connections are idle
# Bytes for an idle connection, and for one that has sent 16 KiB of a handshake, the memory that the allocators keep
# included.
HELD_MAX, HALF_HELD_MAX = 12 * 1024, 40 * 1024
ORDERS = ("in_order", "reverse", "random")
PEERS_OF = {"router": "DEALER", "pull": "PUSH", "server": "lines", "inproc": None}


class Meter:
    """The program with the connections, and its readings."""

    def __init__(self, programs: Path, kind: str):
        self.subject = Peer(programs / "scale_side", kind)
        port = self.subject.expect("bound").rpartition(":")[2]
        self.peers = Peer(programs / "scale_peers", port, PEERS_OF[kind]) if PEERS_OF[kind] else None
        self.processor = self.memory = 0
        self.read("open", 0)

    def read(self, what: str, number: int) -> tuple[float, float]:
        """Waits for the count; microseconds of processor time, and KiB, since the last reading."""
        self.subject.send(f"{what} {number}")
        processor, memory = map(int, self.subject.expect(what, PATIENCE).split())
        spent = processor - self.processor, memory - self.memory
        self.processor, self.memory = processor, memory
        return spent

    def order(self, what: str, number: int = 0) -> None:
        self.peers.send(f"{what} {number}")
        self.peers.expect("done", PATIENCE)

    def kill(self) -> None:
        self.subject.kill()
        if self.peers is not None:
            self.peers.kill()


def measure(programs: Path, kind: str, count: int) -> dict[str, float]:
    """Microseconds and bytes for each connection, by step."""
    meter = Meter(programs, kind)
    costs = {}
    try:
        received = 0
        accepted = 0
        for order in ORDERS:
            begin = time.monotonic()
            meter.order("open", count)
            spent, memory = meter.read("open", count)
            accepted += count
            received += count if kind == "server" else 0  # its handshake is a frame
            if order == ORDERS[0]:
                costs["open"] = spent / count
                costs["open, wall"] = (time.monotonic() - begin) * 1e6 / count
                costs["bytes"] = memory * 1024 / count
                meter.order("each")
                received += count
                costs["a message of each"] = meter.read("received", received)[0] / count
                meter.order("pace", PACED)
                received += PACED
                costs["a message among idle ones"] = meter.read("received", received)[0] / PACED
            meter.order(order)
            costs[f"close {order}"] = meter.read("open", 0)[0] / count
        meter.order("silent", count)
        accepted += count
        spent, memory = meter.read("accepted", accepted)
        costs["accept without handshake"] = spent / count
        meter.order("in_order")
        if kind == "server":
            meter.read("open", 0)
        meter.order("open", count)
        meter.read("open", count)
        costs["shut"] = meter.read("shut", 0)[0] / count
        meter.peers.finish()
        meter.subject.finish()
    finally:
        meter.kill()
    return costs


def measure_inproc(programs: Path, count: int) -> dict[str, float]:
    meter = Meter(programs, "inproc")
    costs = {}
    try:
        for step in ("connect", "early"):
            spent, memory = meter.read(step, count)
            costs[step] = spent / count
            costs.setdefault("bytes", memory * 1024 / count)
            meter.read("open", count)
            costs[f"disconnect after {step}"] = meter.read("disconnect", 0)[0] / count
            meter.read("open", 0)
        meter.read("connect", count)
        costs["shut"] = meter.read("shut", 0)[0] / count
        meter.subject.finish()
    finally:
        meter.kill()
    return costs


def measure_half(programs: Path, kind: str, count: int) -> float:
    """Bytes for each connection that has sent 16 KiB of a handshake and stops there."""
    meter = Meter(programs, kind)
    try:
        meter.order("half", count)
        total = meter.read("accepted", count)[1]
        still = 0
        while still < 3:  # the sockets read what has come
            time.sleep(0.1)
            spent, grown = meter.read("accepted", count)
            total += grown
            still = still + 1 if spent < 2000 else 0
        meter.order("in_order")
        meter.peers.finish()
        meter.subject.finish()
        return total * 1024 / count
    finally:
        meter.kill()


def compare(kind: str, few: dict[str, float], many: dict[str, float]) -> list[str]:
    wrong = [
        f"{kind}: {step}: {many[step]:.1f} us, with few connections {few[step]:.1f} us"
        for step in few
        if "bytes" not in step and step != "open, wall" and many[step] > RATIO_MAX * few[step] + SLACK_US
    ]
    for step, most in (("bytes", HELD_MAX), ("bytes, half a handshake", HALF_HELD_MAX)):
        if many.get(step, 0) > most:
            wrong.append(f"{kind}: {step}: {many[step]:.0f} for a connection")
    return wrong


def raise_descriptor_limit(count: int) -> bool:
    try:
        hard = max(count, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
        return True
    except (ValueError, OSError):
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build_dir", type=Path)
    parser.add_argument("--connections", type=int, default=4000)
    parser.add_argument("--kind", choices=PEERS_OF, action="append")
    arguments = parser.parse_args()
    most = arguments.connections
    counts = [count for count in (1000, 10_000) if count < most] + [most]
    kinds = arguments.kind or list(PEERS_OF)
    skips = not raise_descriptor_limit(most + SPARE_DESCRIPTORS)
    if skips:
        print(f"the system permits no {most} descriptors for a process: only connections without them")
        kinds = [kind for kind in kinds if kind == "inproc"]
    wrong = []
    for kind in kinds:
        try:
            programs = arguments.build_dir / "tests" / "interop"
            if kind == "inproc":
                rows = [measure_inproc(programs, count) for count in counts]
            else:
                rows = [measure(programs, kind, count) for count in counts]
            if kind in ("router", "pull"):
                for row, count in zip(rows, counts):
                    row["bytes, half a handshake"] = measure_half(programs, kind, count)
        except PeerError as error:
            print(f"FAIL {kind}: {error}")
            return 1
        print(f"{kind}: microseconds of processor time for each" + "".join(f"{count:>12,}" for count in counts))
        for step in rows[0]:
            print(f"  {step:38}" + "".join(f"{row[step]:12.1f}" for row in rows), flush=True)
        wrong += compare(kind, rows[0], rows[-1])
    for line in wrong:
        print(f"FAIL {line}")
    if skips:
        print("skipped")
    return 1 if wrong else 77 if skips else 0


if __name__ == "__main__":
    sys.exit(main())
