# SPDX-License-Identifier: MIT
"""Topics beside sockets of the same shape, beside Redis, and beside their bars."""

from weft_bench import command_line
from weft_bench.harness import rounds, topics_cells, topics_rounds


def parse_arguments(texts):
    parser = command_line.cell_parser(
        "topics", __doc__, topics_cells.GROUPS, "A name is PATTERN/TRANSPORT/SIZE and perhaps x8 (subscribers), or a set of "
        "filters;\nbench/topics/README.md says what they mean.", "'filters', 'cores/inproc/*', 'pub_sub/ipc/1024/x2'", "all")
    arguments = command_line.parse_cells(parser, texts, topics_cells.choose, "all",
                                         (topics_rounds.FULL, topics_rounds.QUICK, topics_rounds.TINY))
    if not arguments.list:
        setup = topics_rounds.Setup(arguments.build, arguments.effort)
        command_line.check(parser, arguments, [setup.program, arguments.build / "bench/bench_sockets"])
        command_line.say(f"Measuring {len(arguments.chosen)} cells")
    return arguments


def main(texts):
    arguments = parse_arguments(texts)

    def measure(records):
        setup = topics_rounds.Setup(arguments.build, arguments.effort)
        records.append(rounds.setup_record("topics", arguments.effort))
        rounds.measure_all(arguments.chosen, lambda name: topics_rounds.measure_cell(setup, name), records,
                           arguments.build / "bench/bench_sockets", command_line.say)
    return command_line.run_cells("topics", measure, arguments)
