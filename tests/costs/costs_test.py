# SPDX-License-Identifier: MIT
"""costs_test.py COSTS_SIDE [--full] [--write] [--only WORDS]: what strangers cost a process, by transport, phase and behaviour.

The peers of a cell reach one phase of a connection. There they stop, or send a byte at a time, or send as much as they
can. The bytes and descriptors of each peer are within their bounds, and docs/security.md has the same rows and bounds.
--full: 1,000 peers; prints what a peer beside them notices, too. --write: the same, and writes the table of docs/security.md.
"""

import argparse
import re
import resource
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from strangers import Door, Script, Stranger, Without, record_hello, script

from peers import Peer, PeerError, wait_until
from tls_options import make_certificates

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "security.md"
BEGIN, END = "<!-- costs -->\n", "<!-- end of costs -->"
ROW = re.compile(r"^\| ([\w+]+) \| ([\w ()]+) \| (stop|dribble|flood) \| ([\d.]+) \| (\d+) \| ([\d.]+) \| (\d+) \|$",
                 re.MULTILINE)
ACTS = ("stop", "dribble", "flood")

PEERS, PEERS_FULL = 100, 1000
DRIBBLED, DRIBBLED_FULL = 20, 60  # bytes of each peer, one at a time
CHUNK = 16 * 1024
SLACK = 512 * 1024  # bytes of a process beside its peers: tables that grow, and blocks that a pool keeps
SPARE_DESCRIPTORS = 8  # of a process, beside one for each peer
ASKED_MS = 1000  # by the peer beside

# --- the bounds, in KiB: the sums of docs/security.md ---

LOBBY = 2
LINK = 4
HANDSHAKE = 16 + 8  # its commands, and bytes that were read ahead
WEBSOCKET = 16
OPENSSL, OPENSSL_OPEN = 64, 24  # of a connection, before the end of its handshake and after that
HELLO = 16  # of a client
KEPT = 4  # by the allocators, for an open connection
QUEUED = 512  # 1,000 short messages, and bytes that were read after them


def bound(transport: str, phase: str, act: str) -> int:
    if phase == "accepted":
        return LOBBY
    if phase == "TLS":
        return LINK + OPENSSL + HELLO
    web, tls = transport in ("ws", "wss"), transport in ("tls+tcp", "wss")
    below = OPENSSL_OPEN if tls else 0
    if phase == "open":
        return LINK + KEPT + below + (QUEUED if act == "flood" else 0)
    return LINK + HANDSHAKE + below + (WEBSOCKET if web else 0)


# --- the cells ---

@dataclass
class Row:
    transport: str
    phase: str
    act: str

    @property
    def name(self) -> str:
        return f"{self.transport} {self.phase} {self.act}"

    @property
    def most(self) -> int:
        return bound(self.transport, self.phase, self.act)


def rows() -> list[Row]:
    phases = {
        "tcp": ("accepted", "greeting", "mechanism", "mechanism (CURVE)", "open"),
        "ipc": ("accepted", "greeting", "mechanism", "open"),
        "ws": ("accepted", "upgrade", "mechanism", "open"),
        "tls+tcp": ("accepted", "TLS", "greeting", "mechanism", "open"),
        "wss": ("accepted", "TLS", "upgrade", "mechanism", "open"),
    }
    return [Row(transport, phase, act) for transport, names in phases.items() for phase in names
            for act in (ACTS[:1] if phase == "accepted" else ACTS)]


@dataclass
class Cost:
    kib: float  # of a peer, beyond what the process had before
    descriptors: float
    processor_us: float
    rate: float = 0  # of the peer beside, of its rate while the same peers are at another process
    wait_ms: float = 0  # its longest wait for an answer
    join_ms: float = 0  # for a connection and the first answer


class Reading:
    def __init__(self, door: Door):
        self.door = door
        self.before = self.now()
        self.resident = self.descriptors = 0

    def now(self) -> tuple[int, int, int]:
        wait_until(self.door.rests, "the process does not come to rest")
        return self.door.resident(), self.door.descriptors(), self.door.processor()

    def take(self) -> None:
        resident, descriptors, _ = self.now()
        self.resident = max(self.resident, resident - self.before[0])
        self.descriptors = max(self.descriptors, descriptors - self.before[1])

    def cost(self, peers: int) -> Cost:
        spent = self.door.processor() - self.before[2]
        return Cost(self.resident / peers / 1024, self.descriptors / peers, spent / 1000 / peers)


def settle_in(act: str, strangers: list[Stranger], sent: Script) -> None:
    """What comes before the peers stop, or send on."""
    for stranger in strangers if sent.welcome and act != "dribble" else []:
        stranger.socket.sendall(sent.welcome)
        stranger.read(1)


def act_out(act: str, strangers: list[Stranger], sent: Script, dribbled: int, took) -> None:
    """Calls took() where the peers hold most, and at the end."""
    settle_in(act, strangers, sent)
    if act == "stop" and not sent.welcome:
        for stranger in strangers:
            stranger.send(sent.half[:len(sent.half) // 2])
    elif act == "dribble":
        for at in range(min(dribbled, len(sent.half))):
            for stranger in strangers:
                stranger.send(sent.half[at:at + 1])
    elif act == "flood":
        for data in (sent.most, sent.beyond):
            takes = strangers
            for at in range(0, len(data), CHUNK):
                takes = [stranger for stranger in takes if stranger.send(data[at:at + CHUNK])]
            took()
    took()


class Cell:
    """A process, the peer beside, and the strangers of a row."""

    def __init__(self, program: Path, folder: str, row: Row, full: bool):
        self.row = row
        self.peers = PEERS_FULL if full else PEERS
        self.dribbled = DRIBBLED_FULL if full else DRIBBLED
        self.came = 0
        self.strangers = []
        self.door = Door(program, row.transport, folder, "CURVE" in row.phase)
        self.beside = Peer(program, "beside", self.door.beside)
        try:
            self.sent = script(row.transport, row.phase, record_hello(program, self.door.key) if self.door.key else b"")
            self.come(1, row.phase if "CURVE" in row.phase else "open")  # what a first peer costs is no peer's cost
            self.leave()
            self.ask(0)
        except BaseException:
            self.kill()
            raise

    def come(self, count: int, phase: str) -> None:
        for _ in range(count):
            self.strangers.append(Stranger(self.door))
            self.strangers[-1].reach(phase)
        self.came += count
        wait_until(lambda: self.door.accepted() == self.came, "not all peers are accepted")

    def leave(self) -> None:
        for stranger in self.strangers:
            stranger.close()
        self.strangers = []

    def start_asking(self, milliseconds: int) -> None:
        self.beside.send(str(milliseconds))

    def answers(self) -> list[int]:
        """Their number, and the longest waits for an answer and for a connection in microseconds."""
        return [int(word) for word in self.beside.expect("ran").split()]

    def ask(self, milliseconds: int) -> list[int]:
        self.start_asking(milliseconds)
        return self.answers()

    def measure_process(self) -> Cost:
        reading = Reading(self.door)
        self.come(self.peers, self.row.phase)
        act_out(self.row.act, self.strangers, self.sent, self.dribbled, reading.take)
        cost = reading.cost(self.peers)
        self.ask(0)  # a peer beside them is served
        self.leave()
        return cost

    def ask_beside(self, crowded: "Cell") -> list[int]:
        """The answers of the peer beside, while the peers of the row are at that cell's process."""
        crowded.come(self.peers, self.row.phase)
        self.start_asking(ASKED_MS)
        act_out(self.row.act, crowded.strangers, crowded.sent, self.dribbled, lambda: None)
        answers = self.answers()
        crowded.leave()
        return answers

    def measure_beside(self, cost: Cost, twin: "Cell") -> None:
        """The rate beside the row's peers, divided by that while they are at the twin: they take processors there, too."""
        elsewhere, here = self.ask_beside(twin), self.ask_beside(self)
        cost.rate = here[0] / elsewhere[0]
        cost.wait_ms = here[1] / 1000
        cost.join_ms = here[2] / 1000

    def kill(self) -> None:
        self.leave()
        self.beside.kill()
        self.door.kill()


def twin_folder(folder: str) -> str:
    return f"{folder}/twin"


def measure(program: Path, folder: str, row: Row, full: bool) -> Cost:
    cell = Cell(program, folder, row, full)
    try:
        cost = cell.measure_process()
        if full:
            twin = Cell(program, twin_folder(folder), row, full)
            try:
                cell.measure_beside(cost, twin)
            finally:
                twin.kill()
        return cost
    finally:
        cell.kill()


def exceeded(row: Row, cost: Cost, peers: int) -> list[str]:
    wrong = []
    if cost.kib * peers > row.most * peers + SLACK / 1024:
        wrong.append(f"{row.name}: {cost.kib:.1f} KiB of a peer, at most {row.most} and {SLACK // 1024} for all")
    if cost.descriptors * peers > peers + SPARE_DESCRIPTORS:
        wrong.append(f"{row.name}: {cost.descriptors:.2f} descriptors of a peer, at most 1")
    return wrong


# --- the page ---

def table(costs: list[tuple[Row, Cost]]) -> str:
    lines = ["| transport | phase | peers | KiB | at most | descriptors | CPU, us |", "|---|---|---|---|---|---|---|"]
    lines += [f"| {row.transport} | {row.phase} | {row.act} | {max(cost.kib, 0):.1f} | {row.most} | {cost.descriptors:.1f} |"
              f" {cost.processor_us:.0f} |" for row, cost in costs]
    return "\n".join(lines) + "\n"


def wrong_page() -> list[str]:
    """The page has these rows and bounds, and what it says was measured is within them."""
    text = PAGE.read_text()
    written = {found[:3]: found[3:] for found in ROW.findall(text[text.find(BEGIN):text.find(END)])}
    wrong = []
    for row in rows():
        kib, most, descriptors = written.pop((row.transport, row.phase, row.act), (None,) * 3)[:3]
        if kib is None:
            wrong.append(f"docs/security.md has no row {row.name}")
        elif int(most) != row.most:
            wrong.append(f"docs/security.md: {row.name}: at most {most} KiB, and here {row.most}")
        elif float(kib) > row.most or float(descriptors) > 1:
            wrong.append(f"docs/security.md: {row.name}: the measured cost exceeds its bound")
    return wrong + [f"docs/security.md has the row {' '.join(name)}, which is no cell" for name in written]


def write_page(costs: list[tuple[Row, Cost]]) -> None:
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    PAGE.write_text(before + BEGIN + table(costs) + END + rest.partition(END)[2])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="", help="rows whose name has each of the words")
    arguments = parser.parse_args()
    full = arguments.full or arguments.write
    peers = PEERS_FULL if full else PEERS
    if shutil.which("openssl") is None:
        print("skipped: no openssl to make certificates")
        return 77
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * PEERS_FULL), hard))
    costs, wrong = [], []
    with tempfile.TemporaryDirectory() as folder:
        Path(twin_folder(folder)).mkdir()
        for place in (folder, twin_folder(folder)):
            make_certificates(place)
        for row in rows():
            if not all(word in row.name for word in arguments.only.split()):
                continue
            try:
                cost = measure(arguments.program, folder, row, full)
            except Without as reason:
                print(f"{row.name:34} {reason}")
                continue
            except (PeerError, OSError) as error:
                print(f"FAIL {row.name}: {error}")
                return 1
            costs.append((row, cost))
            wrong += exceeded(row, cost, peers)
            beside = f"  rate {cost.rate:.2f}  answer {cost.wait_ms:.1f} ms  join {cost.join_ms:.1f} ms" if full else ""
            print(f"{row.name:34}{cost.kib:8.1f} of {row.most:3} KiB {cost.descriptors:5.2f} descriptors"
                  f"{cost.processor_us:8.1f} us{beside}", flush=True)
    if arguments.write:
        write_page(costs)
    else:
        wrong += wrong_page()
    for line in wrong:
        print(f"FAIL {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
