# SPDX-License-Identifier: MIT
"""The parts of Weft beside other libraries' that do the same work: every row of bench/micro, contenders in turns."""

import argparse
import fnmatch
import os

from weft_bench import command_line, tables
from weft_bench.harness import micro_rounds, rounds
from weft_bench.harness.child import ChildError


def parse_arguments(texts):
    parser = argparse.ArgumentParser(prog="./dev bench micro", description=__doc__)
    parser.add_argument("--rows", metavar="GLOB,...", default="*", help="for example 'SpscQueue_*,Result_*'")
    command_line.add(parser, tiny=False)
    arguments = parser.parse_args(texts)
    arguments.program = micro_rounds.program_of(arguments.build)
    command_line.check(parser, arguments, [arguments.program])
    globs = arguments.rows.split(",")
    try:
        known = micro_rounds.rows_of(arguments.program)
    except ChildError as error:
        parser.error(str(error))
    arguments.chosen = {name: row for name, row in known.items()
                        if any(fnmatch.fnmatchcase(name, glob) for glob in globs)}
    if not arguments.chosen:
        parser.error(f"no row matches {arguments.rows}; see --list")
    return arguments


def measure(arguments, records):
    """All rows that were chosen, one after the other: printed, and added to `records`."""
    setting = micro_rounds.QUICK if arguments.quick else micro_rounds.FULL
    records.append({"kind": "setup", "suite": "micro", "cpus": len(os.sched_getaffinity(0)), "effort": setting})

    def measure_row(name):
        new = micro_rounds.measure_row(arguments.program, arguments.chosen[name], **setting)
        print("\n".join(tables.parts(new)), flush=True)
        return new
    rounds.one_by_one(list(arguments.chosen), measure_row, records, command_line.say)


def main(texts):
    arguments = parse_arguments(texts)
    if arguments.list:
        for name, row in arguments.chosen.items():
            print(f"{name}: {', '.join(row['contenders'])}")
        return 0
    return command_line.run(lambda records: measure(arguments, records), arguments,
                       lambda records: "\n".join(tables.sum_of_parts(records)))
