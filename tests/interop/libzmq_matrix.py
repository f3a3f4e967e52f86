# SPDX-License-Identifier: MIT
"""Our libzmq.so.5 talks to the libzmqs of others: every pair of socket types, NULL, PLAIN and CURVE, tcp and ipc, each
side binding once, with heartbeats and without. The same program is on both sides; counts and checksums must agree."""

import argparse
import itertools
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from peers import Peer, PeerError

NUMBERS = dict(pair=0, pub=1, sub=2, req=3, rep=4, dealer=5, router=6, pull=7, push=8, xpub=9, xsub=10)
PUBLISHERS, SUBSCRIBERS = ("pub", "xpub"), ("sub", "xsub")
HALF = [("push", "pull"), ("req", "rep"), ("req", "router"), ("dealer", "rep"), ("dealer", "router")]
HALF += itertools.product(PUBLISHERS, SUBSCRIBERS)
SAME = [("dealer", "dealer"), ("router", "router"), ("pair", "pair")]
PAIRS = HALF + [(second, first) for first, second in HALF] + SAME
DEBIAN = [Path(f"/usr/lib/{machine}-linux-gnu/libzmq.so.5") for machine in ("x86_64", "aarch64")]


@dataclass
class Cell:
    ours: str
    theirs: str
    mechanism: str
    transport: str
    ours_binds: bool
    heartbeats: bool

    @property
    def name(self) -> str:
        binds = "ours-binds" if self.ours_binds else "theirs-binds"
        beats = " heartbeats" if self.heartbeats else ""
        return f"ours-{self.ours} theirs-{self.theirs} {self.mechanism} {self.transport} {binds}{beats}"


def works_in_libzmq(cell: Cell) -> bool:
    """A REQ of libzmq that binds and uses an authenticator never gets a reply, not even from libzmq's own REP."""
    return cell.theirs != "req" or cell.ours_binds or cell.mechanism == "null"


def all_cells() -> list[Cell]:
    rows = itertools.product(PAIRS, ("null", "plain", "curve"), ("tcp", "ipc"), (True, False), (False, True))
    return [cell for pair, *rest in rows if works_in_libzmq(cell := Cell(*pair, *rest))]


class Side(Peer):
    """A process that plays cells on the library in this folder."""

    def __init__(self, program: Path, folders: str):
        super().__init__(program, env={"LD_LIBRARY_PATH": folders})
        self.whose, self.version, self.key = self.expect("ready").split()

    def start(self, cell: Cell, ours: bool, binds: bool, endpoint: str, server_key: str) -> None:
        types = (cell.ours, cell.theirs) if ours else (cell.theirs, cell.ours)
        numbers = " ".join(str(NUMBERS[name]) for name in types)
        how = "bind" if binds else "connect"
        self.send(f"cell {how} {numbers} {cell.mechanism} {int(cell.heartbeats)} {endpoint} {server_key}")


def play(ours: Side, theirs: Side, cell: Cell, endpoint: str) -> None:
    binder, connector = (ours, theirs) if cell.ours_binds else (theirs, ours)
    binder.start(cell, binder is ours, True, endpoint, "-")
    connector.start(cell, connector is ours, False, binder.expect("at"), binder.key)
    if cell.ours in PUBLISHERS + SUBSCRIBERS:
        publisher, subscriber = (ours, theirs) if cell.ours in PUBLISHERS else (theirs, ours)
        subscriber.expect("synced")
        publisher.send("go")
    results = [side.expect("done").split() for side in (ours, theirs)]
    for side in (ours, theirs):
        side.send("end")
    if results[0] != results[1][2:] + results[1][:2]:
        raise PeerError(f"ours: {' '.join(results[0])}; theirs: {' '.join(results[1])}")
    if int(results[0][0]) + int(results[0][2]) < 12:
        raise PeerError("nothing was exchanged")


def libraries(directory: Path) -> list[tuple[str, str]]:
    """Names and search paths of the others' libraries: that of Debian's package, and that inside the wheel of pyzmq."""
    found = [("that of Debian", str(library.parent)) for library in DEBIAN if library.exists()]
    for library in Path(sys.prefix).glob("lib/python*/site-packages/pyzmq.libs/libzmq-*.so.5*"):
        (directory / "libzmq.so.5").symlink_to(library)
        found.append(("that of the wheel", f"{directory}:{library.parent}"))
    return found


def version_of(program: Path, path: str) -> str:
    side = Side(program, path)
    side.finish()
    return side.version


def run_library(program: Path, ours_path: str, theirs_path: str, cells: list[Cell], places: Path) -> list[str]:
    """Plays the cells; returns the names of those that failed. New processes continue after a failure."""
    wrong: list[str] = []
    sides: list[Side] = []
    for number, cell in enumerate(cells):
        try:
            if not sides:
                sides = [Side(program, ours_path)]
                sides.append(Side(program, theirs_path))
                if [side.whose for side in sides] != ["weft", "libzmq"]:
                    raise PeerError(f"not the libraries that were meant: {[side.whose for side in sides]}")
            endpoint = "tcp://127.0.0.1:*" if cell.transport == "tcp" else f"ipc://{places}/{number}"
            play(*sides, cell, endpoint)
        except PeerError as reason:
            wrong.append(cell.name)
            print(f"FAIL {cell.name}: {reason}", flush=True)
            for side in sides:
                side.kill()
            sides = []
            if len(wrong) == 20:
                break
    for side in sides:
        side.finish()
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build_dir", type=Path)
    parser.add_argument("--filter", default="", help="only cells whose name has each of the words")
    parser.add_argument("--every", type=int, default=1, help="of those each N-th")
    arguments = parser.parse_args()
    program = arguments.build_dir / "tests/interop/libzmq_side"
    words = arguments.filter.split()
    cells = [cell for cell in all_cells() if all(word in f" {cell.name} " for word in words)][::arguments.every]
    failed = False
    with tempfile.TemporaryDirectory(prefix="weft-libzmq-") as directory:
        found = libraries(Path(directory))
        for number, (name, path) in enumerate(found):
            start = time.monotonic()
            places = Path(directory, str(number))  # of ipc endpoints
            places.mkdir()
            version = version_of(program, path)
            wrong = run_library(program, str(arguments.build_dir / "capi"), path, cells, places)
            print(f"libzmq {version}, {name}: {len(cells)} cells, {len(wrong)} wrong, {time.monotonic() - start:.1f} s", flush=True)
            failed = failed or bool(wrong)
    if not found:
        print("skipped: no other libzmq.so.5 (see deps/apt.txt and deps/pip.txt)")
        return 77
    return 1 if failed or not cells else 0


if __name__ == "__main__":
    sys.exit(main())
