# SPDX-License-Identifier: MIT
"""Measures one row of bench_micro: its contenders in turns, each repetition in a process of its own."""

import contextlib
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from weft_bench.harness.child import ChildError
from weft_bench.stats import in_turns

FULL = {"rounds": 9, "seconds": 0.05}
QUICK = {"rounds": 7, "seconds": 0.005}
ROUNDS_MIN = 5  # of a row that takes longer than it should
RUN_TIMEOUT_S = 60
SCALE_NS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
NOT_COUNTERS = ("real_time", "cpu_time", "items_per_second", "before_ns", "after_ns")


def program_of(build):
    return build / "bench/micro/bench_micro"


def layout_of(program, number):
    """A bench_micro that was linked with its code elsewhere."""
    return program.with_name(f"{program.name}.layout{number}")


def layouts_of(build):
    """All layouts of the bench_micro of a build, or itself where it has only one."""
    program = program_of(build)
    found = list(itertools.takewhile(pathlib.Path.exists, (layout_of(program, number) for number in itertools.count())))
    return found or [program]


def rows_of(program):
    """{name: {"row", "threads", "contenders", "bars"}} of the rows that a bench_micro has."""
    try:
        text = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ChildError(f"bench_micro does not run: {error}") from error
    return {row["row"]: row for row in map(json.loads, text.splitlines())}


def time_of(entry, threads):
    """Nanoseconds per item, or per iteration where the benchmark counts no items.

    >>> time_of({"real_time": 5.0, "cpu_time": 4.0, "time_unit": "ns"}, 1)
    4.0
    >>> time_of({"real_time": 2.0, "cpu_time": 4.0, "time_unit": "us", "items_per_second": 1e9}, 2)
    1.0
    """
    if "items_per_second" in entry:
        return 1e9 / entry["items_per_second"]
    return entry["cpu_time" if threads == 1 else "real_time"] * SCALE_NS[entry["time_unit"]]


@contextlib.contextmanager
def copy_of(program):
    """A new copy of a program. The place of its pages in memory makes a row a tenth slower or faster, and it stays for as long
    as the kernel keeps the file in memory: of two copies of one program, one was 11 % slower in each of 30 rounds."""
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        yield shutil.copy2(program, pathlib.Path(folder, program.name))


def run_once(program, row, contender, seconds, environment=None):
    """Runs one repetition of one contender and returns {"ns", "counters"} and, with two sides, {"before_ns", "after_ns"}.
    environment: {name: value}, beside that of this process."""
    pattern = f"^{re.escape(row['row'])}:{re.escape(contender)}(/.*)?$".replace(r"\ ", " ")
    options = [f"--benchmark_filter={pattern}", "--benchmark_format=json", f"--benchmark_min_time={seconds}"]
    try:
        with copy_of(program) as copy:
            done = subprocess.run([copy, *options], capture_output=True, text=True, check=False, timeout=RUN_TIMEOUT_S,
                                  env={**os.environ, **(environment or {})})
    except subprocess.TimeoutExpired:
        raise ChildError(f"not finished after {RUN_TIMEOUT_S} s") from None
    except OSError as error:
        raise ChildError(f"a copy of bench_micro does not run: {error}") from error
    if done.returncode != 0:
        raise ChildError("".join(done.stderr.strip().splitlines()[-1:]) or f"exit status {done.returncode}")
    entry = json.loads(done.stdout)["benchmarks"][0]
    if entry.get("error_occurred"):
        raise ChildError(entry["error_message"])
    counters = {name: value for name, value in entry.items() if isinstance(value, float) and name not in NOT_COUNTERS}
    probes = {name: entry[name] for name in ("before_ns", "after_ns") if name in entry}
    return {"ns": time_of(entry, row["threads"]), **probes, "counters": counters}


def measure_row(program, row, rounds, seconds, allowance_s=float("inf")):
    """The records of all rounds of a row, or of fewer where it takes longer than it may."""
    records, failed = [], {}
    start = time.monotonic()
    for number in range(rounds):
        taken = time.monotonic() - start
        if number >= ROUNDS_MIN and taken + taken / number > allowance_s:
            rounds = number
            break
        for contender in in_turns(row["contenders"], number):
            try:
                run = run_once(program, row, contender, seconds)
            except ChildError as error:
                failed.setdefault(contender, str(error))
                continue
            records.append({"kind": "run", "cell": row["row"], "round": number, "column": contender, "life": number, **run})
    records += [{"kind": "failure", "cell": row["row"], "column": name, "why": why} for name, why in failed.items()]
    return records + [{"kind": "cell", "cell": row["row"], "rounds": rounds, "threads": row["threads"],
                       "contenders": row["contenders"], "bars": row["bars"]}]
