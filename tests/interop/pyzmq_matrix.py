# SPDX-License-Identifier: MIT
"""pyzmq talks to Weft: every pattern, each side binding once, over tcp and ipc, in one part and in several, from 0
bytes to 16 MB; and each side ends and restarts. One line per cell. --tls: over tls+tcp, with pyzmq on our own library."""

import argparse
import functools
import itertools
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

try:
    import zmq
except ImportError:
    print("pyzmq_matrix: pyzmq is not installed (see deps/pip.txt)")
    sys.exit(77 if "--tls" in sys.argv else 2)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import tls_options as tls
from payload import Shape
from peers import Peer, PeerError
from pyzmq_roles import PARTNERS, ROLES, Job, run_role

SIZES = [0, 1, 64, 112, 113, 255, 256, 4096, 65_536, 1 << 20, 16 << 20]
TLS_SIZES = [0, 64, 256, 65_536, 1 << 20]
RESTARTS = [None, "weft", "pyzmq"]  # the side that ends and restarts


@dataclass
class Cell:
    role: str  # Weft's
    transport: str
    weft_binds: bool
    multipart: bool
    size: int
    restarts: str | None

    @property
    def count(self) -> int:
        if self.restarts:
            return 50
        most = 50 if self.role in ("req", "rep") else 100
        return max(2, min(most, (2 << 20) // max(self.size, 1)))

    @property
    def name(self) -> str:
        binds = "weft-binds" if self.weft_binds else "pyzmq-binds"
        parts = "multipart" if self.multipart else "single"
        restarts = f" {self.restarts}-restarts" if self.restarts else ""
        return f"weft-{self.role} pyzmq-{PARTNERS[self.role]} {self.transport} {binds} {parts} {self.size}{restarts}"


def all_cells(transports: tuple[str, ...]) -> list[Cell]:
    cells = []
    for role, transport, binds in itertools.product(ROLES, transports, (True, False)):
        sizes = TLS_SIZES if transport == "tls+tcp" else SIZES
        cells += [Cell(role, transport, binds, many, size, None) for many in (False, True) for size in sizes]
        if role not in ("xpub", "xsub"):
            cells += [Cell(role, transport, binds, False, 64, who) for who in RESTARTS[1:]]
    return cells


class Run:
    """One cell: a Weft process, or one after the other, and a pyzmq role in this process."""

    def __init__(self, program: Path, context: zmq.Context, cell: Cell, endpoint: str, directory: str):
        self.program, self.context, self.cell, self.endpoint = program, context, cell, endpoint
        self.certificates = directory if cell.transport == "tls+tcp" else ""
        self.shape = Shape(cell.size, cell.multipart)
        self.peers: list[Peer] = []

    def start_peer(self, bind: list[str], rounds: int = 1, first_round: int = 0) -> Peer:
        arguments = [self.cell.role, "--count", self.cell.count, "--size", self.cell.size, "--rounds", rounds]
        arguments += ["--first-round", first_round, "--set", "reconnect_interval=20"]
        arguments += ["--bind", ",".join(bind)] if bind else ["--connect"]
        arguments += ["--multipart"] if self.cell.multipart else []
        if self.certificates:
            for option, name in (("certificate", "peer.crt"), ("key", "peer.key"), ("authorities", "ca.crt")):
                arguments += ["--set", f"tls_{option}={self.certificates}/{name}"]
        self.peers.append(Peer(self.program, *arguments))
        return self.peers[-1]

    def job(self, bind: list[str], **more: object) -> Job:
        secure = functools.partial(tls.secure, folder=self.certificates) if self.certificates else None
        return Job(PARTNERS[self.cell.role], bind, self.shape, self.cell.count, secure=secure, **more)

    def play(self) -> tuple[int, int]:
        """Messages that pyzmq sent and received."""
        weft_bind, our_bind = ([self.endpoint], []) if self.cell.weft_binds else ([], [self.endpoint])
        if self.cell.restarts == "pyzmq":
            return self.play_leaving(weft_bind, our_bind)
        job = self.job(our_bind, rounds=2 if self.cell.restarts else 1)
        job.on_lost = lambda: self.replace_peer(job)
        side = run_role(self.context, job, self.start_peer(weft_bind))
        finish(self.peers[-1], side)
        return side.sent, side.received

    def replace_peer(self, job: Job) -> Peer:
        self.peers[-1].expect("done")
        self.peers[-1].finish()
        peer = self.start_peer(job.endpoints if self.cell.weft_binds else [], first_round=1)
        if self.cell.weft_binds:
            peer.expect("at")
        else:
            peer.send(" ".join(["at", *job.endpoints]))
        return peer

    def play_leaving(self, weft_bind: list[str], our_bind: list[str]) -> tuple[int, int]:
        peer = self.start_peer(weft_bind, rounds=2)
        first = self.job(our_bind)
        before = run_role(self.context, first, peer)
        lost = {"dealer": 3, "sub": 5}.get(self.cell.role, 1)
        for _ in range(lost):
            peer.expect("lost")
        again = self.job(first.endpoints if our_bind else [], first_round=1)
        again.endpoints = [] if our_bind else first.endpoints
        after = run_role(self.context, again, peer)
        finish(peer, after, before)
        return before.sent + after.sent, before.received + after.received


def finish(peer: Peer, side, before=None) -> None:
    """The peer's counts over its whole life must equal ours: its sent our received, and the reverse."""
    sent, received = map(int, peer.expect("done").split())
    peer.finish()
    pub = "pub" in side.job.role or "sub" in side.job.role  # not every message is for everybody
    ours_sent = (side.sent if side.job.rounds == 1 else side.sent // 2) + (before.sent if before else 0)
    ours_received = (side.received if side.job.rounds == 1 else side.received // 2) + (before.received if before else 0)
    if not pub and (sent, received) != (ours_received, ours_sent):
        raise PeerError(f"Weft says sent {sent} received {received}")


def run_cell(program: Path, context: zmq.Context, cell: Cell, directory: str, number: int) -> bool:
    endpoint = f"ipc://{directory}/{number}" if cell.transport == "ipc" else f"{cell.transport}://127.0.0.1:*"
    run = Run(program, context, cell, endpoint, directory)
    start, counts, error = time.monotonic(), (0, 0), ""
    try:
        counts = run.play()
    except (PeerError, ValueError, OSError, zmq.ZMQError) as reason:
        error = f"{type(reason).__name__}: {reason}"
        if run.peers and run.peers[-1].has_line(0):
            try:
                error += f" ({run.peers[-1].read_line(0.1)})"
            except PeerError as more:
                error += f" ({more})"
    finally:
        for peer in run.peers:
            peer.kill()
    elapsed = (time.monotonic() - start) * 1000
    result = "FAIL" if error else "ok"
    numbers = f"{counts[0]} messages to Weft, {counts[1]} back" if not error else ""
    print(f"{result:4} {cell.name:70} {numbers:32} {elapsed:6.0f} ms  {error}", flush=True)
    return not error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build_dir", type=Path)
    parser.add_argument("--filter", action="append", default=[], help="only cells whose name has each of the words")
    parser.add_argument("--every", type=int, default=1, help="of those each N-th")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--tls", action="store_true")
    arguments = parser.parse_args()
    program = arguments.build_dir / "tests" / "interop" / "interop_peer"
    if not program.exists():
        parser.error(f"{program} is not built")
    if arguments.tls and shutil.which("openssl") is None:
        print("skipped: no openssl to make certificates")
        return 77
    words = " ".join(arguments.filter).split()
    right = wrong = 0
    with tempfile.TemporaryDirectory(prefix="weft-interop-") as directory, zmq.Context() as context:
        if arguments.tls:
            tls.make_certificates(directory)
        transports = ("tls+tcp",) if arguments.tls else ("tcp", "ipc")
        cells = [cell for cell in all_cells(transports) if all(word in f" {cell.name} " for word in words)]
        cells = cells[::arguments.every]
        for number, cell in enumerate(cell for cell in cells for _ in range(arguments.repeat)):
            if run_cell(program, context, cell, directory, number):
                right += 1
            else:
                wrong += 1
    print(f"pyzmq {zmq.__version__}, libzmq {zmq.zmq_version()}: {right} cells right, {wrong} wrong")
    return 1 if wrong or not right else 0


if __name__ == "__main__":
    sys.exit(main())
