#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Any libzmq.so.5 beside Weft's: same program, same calls, same options, in turns; and beside what the system can do."""

import argparse
import dataclasses
import importlib.util
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tables  # noqa: E402
from harness import cells, options, rounds  # noqa: E402
from harness.child import Libraries  # noqa: E402
from harness.options import failures, to_stderr  # noqa: E402, F401

ROOT = pathlib.Path(__file__).resolve().parent.parent
QUICK_CELLS = cells.QUICK


def libzmq_of_pyzmq():
    """The library inside the installed pyzmq wheel, or None."""
    found = importlib.util.find_spec("zmq")
    if found is None or found.origin is None:
        return None
    libraries = pathlib.Path(found.origin).resolve().parent.parent / "pyzmq.libs"
    return next(iter(sorted(libraries.glob("libzmq*.so*"))), None)


def measure(build, against, names, effort=rounds.Effort(), processes=False, nng=False, ours=None, say=to_stderr,
            records=None):
    """Measures the cells one after the other; returns all records, and adds them to `records` as they come. `say` is
    given one line per cell with the time that is left. A failed cell is a record too; it does not stop the others."""
    records = [] if records is None else records
    program = build / "bench/bench_sockets"
    with Libraries(ours or build / "capi/libzmq.so.5", against) as libraries:
        setup = rounds.Setup(program, libraries, effort, processes, nng)
        records.append({"kind": "setup", "processes": processes, "cpus": len(os.sched_getaffinity(0)),
                        "effort": dataclasses.asdict(effort)})
        rounds.measure_all(names, lambda name: rounds.measure_cell(setup, name), records, program, say)
    return records


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="./dev bench sockets", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Groups of cells: " + ", ".join(f"{name} ({len(group)})" for name, group in cells.GROUPS.items()) +
        ". A name is PATTERN/TRANSPORT/SIZE and then any of\nhwm0, moved, curve, eco, pinned, pyzmq, asyncio, x8, load50; "
        "bench/README.md says what they mean. --list prints what --cells chooses.")
    parser.add_argument("--against", metavar="PATH", type=pathlib.Path,
                        help="a libzmq.so.5, whatever its name (default: the one inside pyzmq)")
    parser.add_argument("--ours", metavar="PATH", type=pathlib.Path,
                        help="the libzmq.so.5 in the column of Weft (default: the one that was built)")
    parser.add_argument("--build", metavar="DIR", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--cells", metavar="CELLS", default=None,
                        help="groups, patterns and names, separated by commas: 'bars', 'push_pull/*/64', "
                             "'pub_sub/ipc/100/x3' (default: bars; with --quick: quick)")
    parser.add_argument("--processes", action="store_true", help="two processes instead of two threads; without inproc")
    parser.add_argument("--nng", action="store_true", help="also nng, where it has the pattern (libnng.so.1)")
    options.add(parser, "tables.py")
    arguments = parser.parse_args()
    arguments.chosen = options.choose(parser, arguments, cells.choose, "bars")
    if arguments.processes:
        arguments.chosen = [name for name in arguments.chosen if cells.runs_in_processes(name)]
        if not arguments.chosen:
            parser.error("inproc does not leave its process: no cell is left with --processes")
    if not arguments.list:
        check_files(parser, arguments)
    return arguments


def check_files(parser, arguments):
    arguments.against = arguments.against or libzmq_of_pyzmq()
    arguments.ours = arguments.ours or arguments.build / "capi/libzmq.so.5"
    program = arguments.build / "bench/bench_sockets"
    if arguments.against is None or not arguments.against.is_file():
        parser.error(f"no libzmq at {arguments.against or 'pyzmq.libs'}: run through ./dev, or give --against PATH")
    options.check(parser, arguments, (program, arguments.ours))


def main():
    arguments = parse_arguments()
    if arguments.list:
        print("\n".join(arguments.chosen))
        return 0
    effort = rounds.QUICK if arguments.quick else rounds.TINY if arguments.tiny else rounds.Effort()
    sides = "two processes" if arguments.processes else "two threads of one process"
    to_stderr(f"Measuring {len(arguments.chosen)} cells, {sides}, against {arguments.against}")
    return options.run(lambda records: measure(arguments.build.resolve(), arguments.against, arguments.chosen, effort,
                                               arguments.processes, arguments.nng, arguments.ours, records=records),
                       arguments, tables.format_report)


if __name__ == "__main__":
    sys.exit(main())
