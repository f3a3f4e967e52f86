#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""budget_test.py SOURCE COMPILER: what `#include "weft/weft.h"` costs each file of a user has a budget, in lines of Weft's
own headers and in the compiler's time, as a multiple of the time for the standard headers that these include."""

import pathlib
import re
import resource
import subprocess
import sys
import tempfile

LINES = 4000  # 3,568 in November 2026, beside 69,000 lines of the standard library
TIMES = 2.0  # 1.4 in November 2026


def own_lines(preprocessed):
    """The lines of Weft's headers that are not blank."""
    count, own = 0, False
    for line in preprocessed.splitlines():
        if line.startswith("# "):
            own = "weft/" in line.split('"')[1]
        else:
            count += own and bool(line.strip())
    return count


def cpu_seconds(commands):
    """The processor time of each command: the least of three runs, in turns."""
    def once(command):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run(command, check=True)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    rounds = [[once(command) for command in commands] for _ in range(3)]
    return [min(times) for times in zip(*rounds)]


def main():
    source, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
    options = [compiler, "-std=c++20", f"-I{source}"]
    with tempfile.TemporaryDirectory() as folder:
        ours, standard = pathlib.Path(folder, "ours.cc"), pathlib.Path(folder, "standard.cc")
        ours.write_text('#include "weft/weft.h"\n', encoding="utf-8")
        preprocessed = subprocess.run([*options, "-E", ours], capture_output=True, text=True, check=True).stdout
        headers = sorted(set(re.findall(r'^# \d+ "([^"]*weft/[^"]*\.h)"', preprocessed, re.MULTILINE)))
        includes = sorted({line for header in headers for line in pathlib.Path(header).read_text("utf-8").splitlines()
                           if line.startswith("#include <")})
        standard.write_text("\n".join(includes) + "\n", encoding="utf-8")
        lines = own_lines(preprocessed)
        mine, least = cpu_seconds([[*options, "-fsyntax-only", file] for file in (ours, standard)])
        times = mine / least
    print(f"{len(headers)} headers of Weft with {lines} lines (at most {LINES}); {times:.2f} times the time of the "
          f"{len(includes)} standard headers that they include (at most {TIMES})")
    return 0 if lines <= LINES and times <= TIMES else 1


if __name__ == "__main__":
    sys.exit(main())
