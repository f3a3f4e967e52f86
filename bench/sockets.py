#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Throughput and round trips of Weft and libzmq: same patterns, same calls, same options, in turns."""

import argparse
import fnmatch
import importlib.util
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import report  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRANSPORTS = ("tcp", "ipc", "inproc")
THROUGHPUT = [f"push_pull/{transport}/{size}" for transport in TRANSPORTS for size in (64, 1024, 8192, 65536)]
THROUGHPUT_ECO = [f"push_pull/{transport}/64/eco" for transport in TRANSPORTS]
ROUND_TRIPS = [f"round_trip/{transport}/64{mode}" for transport in TRANSPORTS for mode in ("", "/eco")]
QUICK_CELLS = THROUGHPUT + ROUND_TRIPS
ALL_CELLS = THROUGHPUT + THROUGHPUT_ECO + ROUND_TRIPS
A_A = " A/A"  # a cell with this ending is libzmq against itself
A_A_CELLS = ["push_pull/tcp/64" + A_A, "round_trip/tcp/64" + A_A]
CELL_TIMEOUT_S = 150


def libzmq_of_pyzmq():
    """The library inside the installed pyzmq wheel, or None."""
    found = importlib.util.find_spec("zmq")
    if found is None or found.origin is None:
        return None
    libraries = pathlib.Path(found.origin).resolve().parent.parent / "pyzmq.libs"
    return next(iter(sorted(libraries.glob("libzmq*.so*"))), None)


def choose_cells(patterns, known):
    """The known cells that match any of the patterns; a name without wildcards may also be of another size."""
    chosen = [cell for cell in known if any(fnmatch.fnmatchcase(cell, pattern) for pattern in patterns)]
    for pattern in patterns:
        if pattern not in chosen and not any(letter in pattern for letter in "*?[") and pattern.count("/") >= 2:
            chosen.append(pattern)
    return chosen


def run_program(program, arguments):
    """The records that one run of bench_sockets printed; the last one is a failure, if it failed."""
    try:
        command = [program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=CELL_TIMEOUT_S, check=False)
        output, why = done.stdout, done.stderr.strip() or f"exit status {done.returncode}"
        failed = done.returncode != 0
    except subprocess.TimeoutExpired:
        output, why, failed = "", f"not finished after {CELL_TIMEOUT_S} s", True
    if failed:
        return [{"kind": "failure", "why": why}]
    return [json.loads(line) for line in output.splitlines()]


def measure(program, against, cells, quick=False, processes=False, say=print):
    """Measures the cells one after the other, each in a process of its own, and returns all records. `say` is given
    one line per cell with the time that is left. A failed cell is a record too; it does not stop the others."""
    options = (["--quick"] if quick else []) + (["--processes"] if processes else [])
    records = run_program(program, ["--controls"])
    start = time.monotonic()
    for number, cell in enumerate(cells, 1):
        name = cell.removesuffix(A_A)
        arguments = options + ["--cell", name, "--zmq", str(against)] + (["--a-a"] if name != cell else [])
        new = run_program(program, arguments)
        for record in new:
            if "cell" in record or record["kind"] == "failure":
                record["cell"] = cell
        records += new
        passed = time.monotonic() - start
        left = passed / number * (len(cells) - number)
        outcome = "FAILED" if new[-1]["kind"] == "failure" else "done"
        say(f"[{number:2}/{len(cells)}] {cell:28} {outcome}, {left:3.0f} s left")
    return records + run_program(program, ["--controls"])


def failures(records):
    return [record for record in records if record["kind"] == "failure"]


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev bench sockets", description=__doc__)
    parser.add_argument("--against", metavar="PATH", type=pathlib.Path,
                        help="a shared library with libzmq's interface (default: the one inside pyzmq)")
    parser.add_argument("--build", metavar="DIR", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--cells", metavar="GLOB,...", default="*",
                        help="for example 'push_pull/tcp/*,round_trip/*/64'; also other sizes: push_pull/ipc/256")
    parser.add_argument("--processes", action="store_true", help="two processes instead of two threads; without inproc")
    parser.add_argument("--quick", action="store_true", help="about 1 minute instead of 3, fewer cells, no A/A")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="save all records, for bench/report.py")
    arguments = parser.parse_args()
    arguments.against = arguments.against or libzmq_of_pyzmq()
    arguments.program = arguments.build / "bench/bench_sockets"
    if arguments.against is None or not arguments.against.exists():
        parser.error(f"no libzmq at {arguments.against or 'pyzmq.libs'}: run through ./dev, or give --against PATH")
    if not arguments.program.exists():
        parser.error(f"no {arguments.program}: run ./dev build release, or give --build DIR")
    known = QUICK_CELLS if arguments.quick else ALL_CELLS + A_A_CELLS
    arguments.chosen = choose_cells(arguments.cells.split(","), known)
    if arguments.processes:
        arguments.chosen = [cell for cell in arguments.chosen if "/inproc/" not in cell]
    if not arguments.chosen:
        parser.error(f"no cell matches {arguments.cells}; there are {' '.join(known)}")
    return arguments


def main():
    arguments = parse_arguments()
    sides = "two processes" if arguments.processes else "two threads of one process"
    print(f"Measuring {len(arguments.chosen)} cells, {sides}, against {arguments.against}", flush=True)
    records = measure(arguments.program, arguments.against, arguments.chosen, arguments.quick, arguments.processes,
                      say=lambda line: print(line, flush=True))
    if arguments.json is not None:
        arguments.json.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    print()
    print(report.format_report(records, all_placements=not arguments.quick))
    return 1 if failures(records) else 0


if __name__ == "__main__":
    sys.exit(main())
