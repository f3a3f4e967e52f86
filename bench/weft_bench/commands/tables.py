# SPDX-License-Identifier: MIT
"""The tables again, from a file that `./dev bench sockets`, `server` or `micro` wrote with --json FILE."""

import argparse
import pathlib

from weft_bench import command_line, records, tables


def main(texts):
    parser = argparse.ArgumentParser(prog="./dev bench tables", description=__doc__)
    parser.add_argument("file", metavar="FILE", type=pathlib.Path)
    file = parser.parse_args(texts).file
    try:
        found = records.read(file)
    except records.RecordError as error:
        command_line.say(f"tables: {error}")
        return command_line.USAGE
    suite = next((record["suite"] for record in found if record["kind"] == "setup"), None)
    if suite is None:
        command_line.say(f"tables: {file} does not say which suite it is of: it has no record of the kind setup")
        return command_line.USAGE
    print(tables.report(suite, found, all_placements=True))
    return 0
