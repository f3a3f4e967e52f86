# SPDX-License-Identifier: MIT
"""What `./dev bench sockets` and `./dev bench server` are both told, and how both end."""

import json
import pathlib
import signal
import sys


def to_stderr(line):
    print(line, file=sys.stderr, flush=True)


def add(parser, tables):
    """--list, --quick, --tiny and --json; `tables` reads what --json writes."""
    parser.add_argument("--list", action="store_true", help="print the names of the cells and end")
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="a third of the time for each cell, and fewer cells")
    effort.add_argument("--tiny", action="store_true", help="hardly anything: only to see that it works")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help=f"save all records, for bench/{tables}")


def choose(parser, arguments, choose_cells, default):
    """The names of the cells that --cells means; a usage error when a part of it means none."""
    chosen, unknown = choose_cells(arguments.cells or ("quick" if arguments.quick else default))
    if unknown:
        parser.error(f"no cell matches {' or '.join(unknown)}; --list prints all with --cells all")
    return chosen


def check(parser, arguments, programs):
    """A usage error when a program is not built, or --json could not be written."""
    for program in programs:
        if not program.is_file():
            parser.error(f"no {program}: run ./dev build release, or give --build DIR")
    if arguments.json is not None and not arguments.json.parent.is_dir():
        parser.error(f"no folder {arguments.json.parent} for --json")


def failures(records):
    return [record for record in records if record["kind"] == "failure"]


def run(measure, arguments, format_report):
    """Runs measure(records), saves and prints the records, also when it is interrupted; the exit status."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the children, like Ctrl-C
    records = []
    interrupted = False
    try:
        measure(records)
    except KeyboardInterrupt:
        to_stderr("interrupted: what follows is what was measured before")
        interrupted = True
    if arguments.json is not None:
        arguments.json.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    print(format_report(records, all_placements=not arguments.quick))
    return 130 if interrupted else 1 if failures(records) else 0
