#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Weft's server beside epoll by hand and Boost.Asio: the same frames, one load generator, in turns."""

import argparse
import dataclasses
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import server_tables  # noqa: E402
from harness import options, rounds, server_cells, server_rounds  # noqa: E402
from harness.options import to_stderr  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ("bench/server/bench_load", "bench/server/bench_server_raw", "bench/bench_sockets")


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
    parser.add_argument("--threads", metavar="N", type=int, default=1, help="threads of each server (default: 1)")
    options.add(parser, "server_tables.py")
    arguments = parser.parse_args()
    arguments.chosen = options.choose(parser, arguments, server_cells.choose, "all")
    if arguments.threads < 1:
        parser.error("a server has at least one thread")
    if not arguments.list:
        options.check(parser, arguments, [arguments.build / file for file in PROGRAMS])
    return arguments


def main():
    arguments = parse_arguments()
    if arguments.list:
        print("\n".join(arguments.chosen))
        return 0
    effort = server_rounds.QUICK if arguments.quick else server_rounds.TINY if arguments.tiny else server_rounds.FULL
    to_stderr(f"Measuring {len(arguments.chosen)} cells; the load generator and the server are processes")
    return options.run(lambda records: measure(arguments.build.resolve(), arguments.chosen, effort, arguments.threads,
                                               records=records), arguments, server_tables.format_report)


if __name__ == "__main__":
    sys.exit(main())
