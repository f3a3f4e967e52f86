#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Weft's server beside epoll by hand and Boost.Asio: the same frames, one load generator, in turns."""

import argparse
import dataclasses
import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import server_tables  # noqa: E402
from harness import rounds, server_cells, server_rounds  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent


def to_stderr(line):
    print(line, file=sys.stderr, flush=True)


def measure(build, names, effort, threads=1, say=to_stderr, records=None):
    """Measures the cells one after the other; returns all records, and adds them to `records` as they come."""
    records = [] if records is None else records
    setup = server_rounds.Setup(build / "bench/server", effort, threads)
    records.append({"kind": "setup", "threads": threads, "cpus": len(os.sched_getaffinity(0)),
                    "effort": dataclasses.asdict(effort)})
    rounds.measure_all(names, lambda name: server_rounds.measure_cell(setup, name), records,
                       build / "bench/bench_sockets", say)
    return records


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="./dev bench server", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Groups of cells: " + ", ".join(f"{name} ({len(group)})" for name, group in server_cells.GROUPS.items()) +
        ". A name is PATTERN/SIZE/xCONNECTIONS and perhaps\ndepth16 (requests under way), load50 (per cent of what the "
        "slowest server can do, in an open loop)\nor a kind of bad peers; bench/server/README.md says what they mean. "
        "--list prints what --cells chooses.\nStatus: 0, or 1 when a cell failed, 130 after Ctrl-C. Whether the bars "
        "are met is in the report.")
    parser.add_argument("--build", metavar="DIR", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--cells", metavar="CELLS", default=None,
                        help="groups, patterns and names, separated by commas: 'one_way', 'echo/*/x128', "
                             "'echo/100/x3/depth4' (default: all; with --quick: quick)")
    parser.add_argument("--list", action="store_true", help="print the names of the cells and end")
    parser.add_argument("--threads", metavar="N", type=int, default=1, help="threads of each server (default: 1)")
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="a third of the time for each cell, and fewer cells")
    effort.add_argument("--tiny", action="store_true", help="hardly anything: only to see that it works")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="save all records, for bench/server_tables.py")
    arguments = parser.parse_args()
    arguments.chosen, unknown = server_cells.choose(arguments.cells or ("quick" if arguments.quick else "all"))
    if unknown:
        parser.error(f"no cell matches {' or '.join(unknown)}; --list prints all with --cells all")
    if arguments.threads < 1:
        parser.error("a server has at least one thread")
    for file in ("bench/server/bench_load", "bench/server/bench_server_raw", "bench/bench_sockets"):
        if not arguments.list and not (arguments.build / file).is_file():
            parser.error(f"no {arguments.build / file}: run ./dev build release, or give --build DIR")
    if arguments.json is not None and not arguments.json.parent.is_dir():
        parser.error(f"no folder {arguments.json.parent} for --json")
    return arguments


def main():
    arguments = parse_arguments()
    if arguments.list:
        print("\n".join(arguments.chosen))
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the children, like Ctrl-C
    effort = server_rounds.QUICK if arguments.quick else server_rounds.TINY if arguments.tiny else server_rounds.FULL
    to_stderr(f"Measuring {len(arguments.chosen)} cells; the load generator and the server are processes")
    records = []
    interrupted = False
    try:
        measure(arguments.build.resolve(), arguments.chosen, effort, arguments.threads, records=records)
    except KeyboardInterrupt:
        to_stderr("interrupted: what follows is what was measured before")
        interrupted = True
    if arguments.json is not None:
        arguments.json.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    print(server_tables.format_report(records, all_placements=not arguments.quick))
    failed = any(record["kind"] == "failure" for record in records)
    return 130 if interrupted else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
