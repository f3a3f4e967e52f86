# SPDX-License-Identifier: MIT
"""Any libzmq.so.5 beside Weft's: same program, calls and options, in turns; and beside what the system can do."""

import pathlib

from weft_bench import command_line
from weft_bench.harness import cells, rival_libraries, rounds
from weft_bench.harness.child import Libraries, libzmq_of_pyzmq


def measure(build, against, names, effort=rounds.Effort(), processes=False, nng=False, ours=None, say=command_line.say,
            records=None, rivals=None):
    """Measures the cells one after the other; returns all records, and adds them to `records` as they come. `say` is
    given one line per cell with the time that is left. A failed cell is a record too; it does not stop the others."""
    records = [] if records is None else records
    program = build / "bench/bench_sockets"
    with Libraries(ours or build / "capi/libzmq.so.5", against, rivals) as libraries:
        setup = rounds.Setup(program, libraries, effort, processes, nng, tuple(rivals or ()))
        records.append(rounds.setup_record("sockets", effort, processes=processes))
        rounds.measure_all(names, lambda name: rounds.measure_cell(setup, name), records, program, say)
    return records


def parse_arguments(texts):
    parser = command_line.cell_parser(
        "sockets", __doc__, cells.GROUPS, "A name is PATTERN/TRANSPORT/SIZE and then any of hwm0, moved, curve, tls, ws, "
        "eco, pinned, pyzmq, asyncio,\nx8, load50; bench/README.md says what they mean.",
        "'bars', 'push_pull/*/64', 'pub_sub/ipc/100/x3'", "bars")
    parser.add_argument("--against", metavar="PATH", type=pathlib.Path,
                        help="a libzmq.so.5, whatever its name (default: the one inside pyzmq)")
    parser.add_argument("--ours", metavar="PATH", type=pathlib.Path,
                        help="the libzmq.so.5 in the column of Weft (default: the one that was built)")
    parser.add_argument("--processes", action="store_true", help="two processes instead of two threads; without inproc")
    parser.add_argument("--nng", action="store_true", help="also nng, where it has the pattern (libnng.so.1)")
    parser.add_argument("--rivals", action="store_true", help="also libzmq 4.3.5 at its best flags, with one and two I/O threads, "
                        "and omq-libzmq; cargo brings both, and the first build takes minutes")
    arguments = command_line.parse_cells(parser, texts, cells.choose, "bars",
                                         (rounds.Effort(), rounds.QUICK, rounds.TINY))
    if arguments.processes:
        arguments.chosen = [name for name in arguments.chosen if cells.runs_in_processes(name)]
        if not arguments.chosen:
            parser.error("inproc does not leave its process: no cell is left with --processes")
    if not arguments.list:
        arguments.against = arguments.against or libzmq_of_pyzmq()
        arguments.ours = arguments.ours or arguments.build / "capi/libzmq.so.5"
        if arguments.against is None or not arguments.against.is_file():
            parser.error(f"no libzmq at {arguments.against or 'pyzmq.libs'}: run through ./dev, or give --against PATH")
        command_line.check(parser, arguments, (arguments.build / "bench/bench_sockets", arguments.ours))
        sides = "two processes" if arguments.processes else "two threads of one process"
        command_line.say(f"Measuring {len(arguments.chosen)} cells, {sides}, against {arguments.against}")
    return arguments


def main(texts):
    chosen = parse_arguments(texts)
    rivals = rival_libraries.make(chosen.build / "bench/rivals", command_line.say) if chosen.rivals else {}
    return command_line.run_cells(
        "sockets", lambda records: measure(chosen.build, chosen.against, chosen.chosen, chosen.effort, chosen.processes,
                                           chosen.nng, chosen.ours, records=records, rivals=rivals), chosen)
