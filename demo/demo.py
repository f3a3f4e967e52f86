#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Weft at work: verifies every pattern over every transport, with itself and with libzmq, and then measures both."""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

from weft_bench import ROOT, command_line, records, tables
from weft_bench.commands import sockets
from weft_bench.harness import cells, child, rounds

BAD_LINE = re.compile(r"\b(fail(ed|ure)?|error|mismatch|timed out)\b", re.IGNORECASE)
PROGRESS_S = 10  # without a terminal, the time between two progress lines
SHOWN_LINES = 40  # at most, of the output of a program that failed


class Progress:
    """A progress line: rewritten in place on a terminal, printed every PROGRESS_S elsewhere."""

    def __init__(self):
        self.terminal = sys.stdout.isatty()
        self.last = time.monotonic()

    def show(self, text):
        if self.terminal:
            columns = os.get_terminal_size().columns
            print("\r" + text[: columns - 1].ljust(columns - 1), end="", flush=True)
        elif time.monotonic() - self.last >= PROGRESS_S:
            self.last = time.monotonic()
            print(text, flush=True)

    def clear(self):
        if self.terminal:
            self.show("")
            print("\r", end="", flush=True)


def run_matrix(title, command):
    """Runs a verification program that prints one line per cell. True when the program succeeded."""
    start = time.monotonic()
    progress = Progress()
    lines = []
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    except OSError as error:
        print(f"  {title}: FAILED, cannot run {command[0]}: {error.strerror}")
        return False
    with process:
        for line in process.stdout:
            if line.strip():
                lines.append(line.rstrip())
                progress.show(f"  {title}: {len(lines)} lines, {time.monotonic() - start:.0f} s: {lines[-1].strip()}")
    progress.clear()
    seconds = time.monotonic() - start
    if process.returncode != 0:
        bad = [line for line in lines if BAD_LINE.search(line)] or lines
        print("\n".join("    " + line for line in bad[-SHOWN_LINES:]))
        print(f"  {title}: FAILED with exit status {process.returncode} after {seconds:.0f} s")
        return False
    last = lines[-1].strip() if lines else "no output"
    print(f"  {title}: succeeded, {len(lines)} lines, {seconds:.0f} s; the last one: {last}")
    return True


def verify(build):
    """The number of matrices that failed."""
    print("1. Weft with Weft: every pattern over every transport; count, order and content are verified", flush=True)
    native = run_matrix("native matrix", [str(build / "tests/interop/native_matrix")])
    print("\n2. Weft with libzmq (inside pyzmq), in both directions", flush=True)
    script = str(ROOT / "tests/interop/pyzmq_matrix.py")
    mixed = run_matrix("pyzmq matrix", [sys.executable, "-B", script, str(build)])
    return [native, mixed].count(False)


def measure(build, names):
    """Prints the table; the number of cells that could not be measured."""
    against = child.libzmq_of_pyzmq()
    program = build / "bench/bench_sockets"
    if against is None or not program.exists():
        print(f"  FAILED: there is no {program if against else 'pyzmq with a libzmq inside'}")
        return 1
    progress = Progress()
    measured = sockets.measure(build, against, names, rounds.QUICK, say=lambda line: progress.show("  " + line))
    progress.clear()
    print(tables.report("sockets", measured, details=False))
    return len(records.failures(measured))


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__)
    parser.add_argument("build", metavar="BUILD_DIR", type=pathlib.Path, help="where the release was built")
    parser.add_argument("--skip-matrix", action="store_true", help="only measure")
    arguments = parser.parse_args()
    if not arguments.build.is_dir():
        parser.error(f"{arguments.build} is no folder: run ./dev build release")
    arguments.build = arguments.build.resolve()
    return arguments


def main():
    arguments = parse_arguments()
    first = "" if arguments.skip_matrix else "verify Weft with itself and with libzmq, then "
    print(f"This will {first}measure Weft beside libzmq; the measurement takes two to three minutes.\n", flush=True)
    failed = 0
    if not arguments.skip_matrix:
        failed += verify(arguments.build)
        print()
    print("3. Weft beside libzmq, measured now on this machine, in turns", flush=True)
    failed += measure(arguments.build, cells.QUICK)
    loops = os.cpu_count() or 1
    print(f"\n4. The same on a busy machine: beside {loops} busy loops, one for each processor", flush=True)
    with command_line.busy_loops(loops):
        failed += measure(arguments.build, cells.BUSY)
    success = "measured" if arguments.skip_matrix else "everything verified and measured"
    print(f"\ndemo: {f'{failed} FAILED, see above' if failed else success}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
