# SPDX-License-Identifier: MIT
"""What each of very many connections costs: one socket or one server is opened to, is idle, and loses its connections
in order, in reverse and at random. The cost of a connection does not depend on the number of the others.

By default 1,000 and 4,000 connections. --connections 100000 (as root, because of the limit of descriptors) also shows
1,000 and 10,000 beside it; it takes a minute or two.
"""

import argparse
import resource
import sys
import time
from pathlib import Path

from peers import Peer, PeerError

PATIENCE = 300.0  # seconds for one step with the most connections
SPARE_DESCRIPTORS = 200
# A connection among the most may cost this many times what one among the fewest costs, and this many microseconds more:
# caches miss, and a loaded machine interrupts.
RATIO_MAX, SLACK_US = 3.0, 40.0
PACED = 300  # messages, a millisecond apart, while all other connections are idle
HELD_MAX = 24 * 1024  # bytes for a connection before or after its handshake, blocks of the allocators included
ORDERS = ("in_order", "reverse", "random")
PEERS_OF = {"router": "DEALER", "pull": "PUSH", "server": "lines"}


class Meter:
    """The program with the connections, and its readings."""

    def __init__(self, programs: Path, kind: str):
        self.subject = Peer(programs / "scale_side", kind)
        port = self.subject.expect("bound").rpartition(":")[2]
        self.peers = Peer(programs / "scale_peers", port, PEERS_OF[kind])
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


def compare(kind: str, few: dict[str, float], many: dict[str, float]) -> list[str]:
    wrong = [
        f"{kind}: {step}: {many[step]:.1f} us, with few connections {few[step]:.1f} us"
        for step in few
        if step not in ("bytes", "open, wall") and many[step] > RATIO_MAX * few[step] + SLACK_US
    ]
    if many["bytes"] > HELD_MAX:
        wrong.append(f"{kind}: {many['bytes']:.0f} bytes for a connection")
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
    if not raise_descriptor_limit(most + SPARE_DESCRIPTORS):
        print(f"the system permits no {most} descriptors for a process\nskipped")
        return 77
    counts = [count for count in (1000, 10_000) if count < most] + [most]
    wrong = []
    for kind in arguments.kind or PEERS_OF:
        try:
            rows = [measure(arguments.build_dir / "tests" / "interop", kind, count) for count in counts]
        except PeerError as error:
            print(f"FAIL {kind}: {error}")
            return 1
        print(f"{kind}: microseconds of processor time for each" + "".join(f"{count:>12,}" for count in counts))
        for step in rows[0]:
            print(f"  {step:38}" + "".join(f"{row[step]:12.1f}" for row in rows), flush=True)
        wrong += compare(kind, rows[0], rows[-1])
    for line in wrong:
        print(f"FAIL {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
