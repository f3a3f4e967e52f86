# SPDX-License-Identifier: MIT
"""Weft's server beside epoll by hand and Boost.Asio: the same frames, one load generator, in turns."""

import sys

from weft_bench import command_line
from weft_bench.harness import crates, rounds, server_cells, server_rounds, wrk_check

PROGRAMS = ("bench/server/bench_load", "bench/server/bench_server_raw", "bench/bench_sockets")


def parse_arguments(texts):
    parser = command_line.cell_parser(
        "server", __doc__, server_cells.GROUPS, "A name is PATTERN/SIZE/xCONNECTIONS and perhaps depth16 (requests "
        "under way), load50 (per cent of what\nthe slowest server can do, in an open loop), close, file or publish, or a kind "
        "of bad peers;\n"
        "bench/server/README.md says what they mean.", "'one_way', 'echo/*/x128', 'echo/100/x3/depth4'", "all")
    parser.add_argument("--threads", metavar="N", type=int, default=1, help="threads of each server (default: 1)")
    parser.add_argument("--wrk", action="store_true", help="compare the load generator with wrk and h2load on "
                        f"{wrk_check.CELL} instead: they must agree within {wrk_check.MOST:.0%}%")
    arguments = command_line.parse_cells(parser, texts, server_cells.choose, "all",
                                         (server_rounds.FULL, server_rounds.QUICK, server_rounds.TINY))
    if arguments.threads < 1:
        parser.error("a server has at least one thread")
    if not arguments.list:
        command_line.check(parser, arguments, [arguments.build / file for file in PROGRAMS])
        if not arguments.wrk:
            command_line.say(f"Measuring {len(arguments.chosen)} cells; the load generator and the server are processes")
    return arguments


def make_crates(build, arguments):
    """The crates among the rivals that are built now. The smallest effort, that of tests, builds none."""
    wanted = () if arguments.list or arguments.tiny else tuple(server_cells.crates_of(arguments.chosen))
    if not wanted:
        return ()
    command_line.say(f"cargo builds {', '.join(wanted)}: some minutes the first time")
    try:
        why = crates.make(build, wanted)
    except KeyboardInterrupt:
        sys.exit(command_line.INTERRUPTED)
    if why is not None:
        command_line.say(f"without {', '.join(wanted)}: {why}")
    return () if why else wanted


def main(texts):
    arguments = parse_arguments(texts)
    folder = arguments.build / "bench/server"
    if arguments.wrk:
        return wrk_check.main(server_rounds.Setup(folder, arguments.effort))

    built = make_crates(folder, arguments)

    def measure(records):
        with server_rounds.files_for(arguments.chosen) as root:
            measure_below(root, records)

    def measure_below(root, records):
        setup = server_rounds.Setup(folder, arguments.effort, arguments.threads, root, built)
        for line in server_rounds.missing_rivals(arguments.chosen, setup):
            command_line.say(line)
        records.append(rounds.setup_record("server", arguments.effort, threads=arguments.threads))
        rounds.measure_all(arguments.chosen, lambda name: server_rounds.measure_cell(setup, name), records,
                           arguments.build / "bench/bench_sockets", command_line.say)
    return command_line.run_cells("server", measure, arguments)
