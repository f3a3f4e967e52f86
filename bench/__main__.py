# SPDX-License-Identifier: MIT
"""python3 bench NAME [arguments]: one of bench/weft_bench/commands. ./dev bench sets up and builds first."""

import importlib
import pathlib
import sys

COMMANDS = pathlib.Path(__file__).with_name("weft_bench") / "commands"


def main():
    names = sorted(file.stem for file in COMMANDS.glob("*.py") if file.stem[0] != "_" and not file.stem.endswith("_test"))
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        print(f"usage: ./dev bench NAME [arguments]; NAME is one of {' '.join(names)}", file=sys.stderr)
        return 2
    return importlib.import_module(f"weft_bench.commands.{sys.argv[1]}").main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
