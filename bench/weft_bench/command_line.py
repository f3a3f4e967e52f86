# SPDX-License-Identifier: MIT
"""What several commands are told, and how they run and end."""

import argparse
import contextlib
import pathlib
import signal
import sys

from weft_bench import ROOT, records, tables
from weft_bench.harness import control_group
from weft_bench.harness.busy_loops import busy_loops

FAILURE, USAGE, REGRESSION, UNTOLD, INTERRUPTED = 1, 2, 3, 4, 130  # exit statuses


BUSY_LOOPS_MAX = 64


def busy_loop_count(text):
    """
    >>> busy_loop_count("2")
    2
    >>> busy_loop_count("-1")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: -1 is not 0 to 64
    """
    if not text.isdecimal() or int(text) > BUSY_LOOPS_MAX:
        raise argparse.ArgumentTypeError(f"{text} is not 0 to {BUSY_LOOPS_MAX}")
    return int(text)


def nice_value(text):
    """
    >>> nice_value("-5")
    -5
    >>> nice_value("high")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: high is not -20 to 19
    """
    if not text.removeprefix("-").isdecimal() or not -20 <= int(text) <= 19:
        raise argparse.ArgumentTypeError(f"{text} is not -20 to 19")
    return int(text)


def cpu_share(text):
    """
    >>> cpu_share("0.5")
    0.5
    >>> cpu_share("0")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: 0 is not 0.01 to 1024
    """
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0.01 <= value <= 1024:
        raise argparse.ArgumentTypeError(f"{text} is not 0.01 to 1024")
    return value


def say(line):
    print(line, file=sys.stderr, flush=True)


def add_build(parser):
    parser.add_argument("--build", metavar="DIR", type=pathlib.Path, default=ROOT / "build/release")


def add(parser, tiny=True):
    """--build, --list, --quick, --tiny, --load and --json."""
    add_build(parser)
    parser.add_argument("--list", action="store_true", help="print the names of the rows and end")
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="a third of the time for each row, and fewer rows")
    if tiny:
        effort.add_argument("--tiny", action="store_true", help="hardly anything: only to see that it works")
    parser.add_argument("--load", metavar="N", type=busy_loop_count, default=0,
                        help=f"measure beside N busy loops, at most {BUSY_LOOPS_MAX} (default: 0)")
    parser.add_argument("--load-nice", metavar="N", type=nice_value, default=0,
                        help="the busy loops' nice value; a negative one needs the right to it (default: 0)")
    parser.add_argument("--cpus", metavar="SHARE", type=cpu_share,
                        help="give what is measured so many processors' time, such as 0.5, by a control group")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="save all records, for ./dev bench tables")


def cell_parser(suite, about, groups, names, examples, default):
    """The parser of a command that measures cells. `names` says what a name of a cell looks like."""
    known = ", ".join(f"{name} ({len(group)})" for name, group in groups.items())
    parser = argparse.ArgumentParser(
        prog=f"./dev bench {suite}", description=about, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"Groups of cells: {known}.\n{names}\n--list prints what --cells chooses. "
               "Exit status: 0, or 1 when a cell failed, 130 after Ctrl-C.\nWhether the bars are met is in the tables.")
    parser.add_argument("--cells", metavar="CELLS", help=f"groups, patterns and names, separated by commas: {examples} "
                        f"(default: {default}; with --quick: quick)")
    add(parser)
    return parser


def parse_cells(parser, texts, choose, default, efforts):
    """The arguments, with the names that --cells means in `chosen`, and one of (full, quick, tiny) in `effort`."""
    arguments = parser.parse_args(texts)
    arguments.build = arguments.build.resolve()
    arguments.chosen, unknown = choose(arguments.cells or ("quick" if arguments.quick else default))
    if unknown:
        parser.error(f"no cell matches {' or '.join(unknown)}; --list prints all with --cells all")
    arguments.effort = efforts[1 if arguments.quick else 2 if arguments.tiny else 0]
    return arguments


def check(parser, arguments, programs):
    """A usage error when a program is not built, or --json could not be written."""
    for program in programs:
        if not program.is_file():
            parser.error(f"no {program}: run ./dev build release, or give --build DIR")
    if arguments.json is not None and not arguments.json.parent.is_dir():
        parser.error(f"no folder {arguments.json.parent} for --json")


def limited(cpus):
    return contextlib.nullcontext() if cpus is None else control_group.limited_to(cpus)


def run(measure, arguments, show):
    """Runs measure(list of records), saves the records and prints show(them), also after Ctrl-C; the exit status."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the children, like Ctrl-C
    found, interrupted = [], False
    try:
        with busy_loops(arguments.load, arguments.load_nice), limited(arguments.cpus):
            measure(found)
    except OSError as error:
        if arguments.cpus is None:
            raise
        say(f"--cpus: {error}")
        return FAILURE
    except KeyboardInterrupt:
        say("interrupted: only what was measured before is shown")
        interrupted = True
    for record in found:
        if record["kind"] == "setup":
            record |= {"busy_loops": arguments.load, "busy_loops_nice": arguments.load_nice} if arguments.load else {}
            record |= {"cpu_share": arguments.cpus} if arguments.cpus else {}
    if arguments.json is not None:
        arguments.json.write_text(records.lines_of(found), encoding="utf-8")
    print(show(found))
    return INTERRUPTED if interrupted else FAILURE if records.failures(found) else 0


def run_cells(suite, measure, arguments):
    """Lists the chosen cells, or measures them and prints their tables; the exit status."""
    if arguments.list:
        print("\n".join(arguments.chosen))
        return 0
    return run(measure, arguments, lambda found: tables.report(suite, found, all_placements=not arguments.quick))
