#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The parts of Weft beside other libraries' that do the same work: every x_bench.cc, contenders in turns."""

import argparse
import fnmatch
import json
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tables  # noqa: E402
from harness import summary  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
FULL = {"rounds": 9, "seconds": 0.05}
QUICK = {"rounds": 7, "seconds": 0.005}
ROUNDS_MIN = 5  # of a row that takes longer than it should
RUN_TIMEOUT_S = 60


def time_of(entry, threads):
    """Nanoseconds per item, or per iteration where the benchmark counts no items.

    >>> time_of({"real_time": 5.0, "cpu_time": 4.0, "time_unit": "ns"}, 1)
    4.0
    >>> time_of({"real_time": 2.0, "cpu_time": 4.0, "time_unit": "us", "items_per_second": 1e9}, 2)
    1.0
    """
    if "items_per_second" in entry:
        return 1e9 / entry["items_per_second"]
    scale = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[entry["time_unit"]]
    return entry["cpu_time" if threads == 1 else "real_time"] * scale


def run_once(program, row, contender, seconds):
    """One repetition of one contender, in a process of its own: {"ns", "placement"}, or {"failure"}."""
    pattern = f"^{re.escape(row['row'])}:{re.escape(contender)}(/.*)?$".replace(r"\ ", " ")
    command = [program, f"--benchmark_filter={pattern}", "--benchmark_format=json", f"--benchmark_min_time={seconds}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=RUN_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return {"failure": f"not finished after {RUN_TIMEOUT_S} s"}
    if done.returncode != 0:
        return {"failure": done.stderr.strip().splitlines()[-1:] or f"exit status {done.returncode}"}
    entry = json.loads(done.stdout)["benchmarks"][0]
    if entry.get("error_occurred"):
        return {"failure": entry["error_message"]}
    probes = {summary.placement(entry[key]) for key in ("before_ns", "after_ns") if key in entry}
    counters = {name: value for name, value in entry.items()
                if isinstance(value, float) and name not in ("real_time", "cpu_time", "items_per_second", "before_ns", "after_ns")}
    return {"ns": time_of(entry, row["threads"]), "placement": probes.pop() if len(probes) == 1 else "mixed",
            "counters": counters}


def measure_row(program, row, rounds, seconds, allowance_s=float("inf")):
    """All rounds of one row, or fewer where it takes longer than it may; every other round goes backwards, so that a
    drift of the machine hits everybody."""
    result = []
    start = time.monotonic()
    for number in range(rounds):
        taken = time.monotonic() - start
        if number >= ROUNDS_MIN and taken + taken / number > allowance_s:
            break
        order = row["contenders"] if number % 2 == 0 else row["contenders"][::-1]
        result.append({contender: run_once(program, row, contender, seconds) for contender in order})
    return result


def bar_of(row, rival, placement):
    """The bar for that rival where the cores stood so; a bar without a placement is one for all of them.

    >>> bar_of({"bars": [{"rival": "x", "ratio": 2.0, "placement": "near"}]}, "x", "far") is None
    True
    """
    return next((bar["ratio"] for bar in row["bars"]
                 if bar["rival"] == rival and bar["placement"] in ("", placement)), None)


def summarise(row, rounds):
    """One result per placement that was seen: the median time of each contender, and ours beside each rival.

    >>> rounds = [{"weft": {"ns": 2.0, "placement": "mixed"}, "x": {"ns": 6.0, "placement": "mixed"}}] * 5
    >>> row = {"row": "r", "threads": 1, "contenders": ["weft", "x"], "bars": [{"rival": "x", "ratio": 2.0, "placement": ""}]}
    >>> result = summarise(row, rounds)[0]
    >>> result["ns"], result["rivals"]["x"]["ratio"], result["rivals"]["x"]["met"]
    ({'weft': 2.0, 'x': 6.0}, [3.0, 3.0, 3.0], True)
    >>> [result.get("ns") for result in summarise(row, [{"weft": rounds[0]["weft"], "x": {"failure": "gone"}}] * 5)]
    [{'weft': 2.0}, None]
    """
    failures = {name: run["failure"] for each in rounds for name, run in each.items() if "failure" in run}
    ours = row["contenders"][0]
    names = [name for name in row["contenders"] if name not in failures]  # the others are compared without it
    placed = []
    for each in [{name: each[name] for name in names} for each in rounds] if ours in names else []:
        seen = {run["placement"] for run in each.values()}
        placed.append((seen.pop() if len(seen) == 1 else "mixed", each))
    results = []
    groups = summary.split_by_placement(placed, True) if placed else []
    for placement, group in groups:
        samples = {name: [each[name]["ns"] for each in group] for name in names}
        ns = {name: statistics.median(samples[name]) for name in names}
        rivals = {}
        for name in names[1:]:
            ratio = list(summary.bootstrap(
                [each[name]["ns"] / max(each[ours]["ns"], 1e-9) for each in group], statistics.median))
            bar = bar_of(row, name, placement)
            rivals[name] = {"ratio": ratio, "verdict": tables.verdict(ratio), "bar": bar,
                            "met": None if bar is None else ratio[0] >= bar}
        results.append({"row": row["row"], "threads": row["threads"], "placement": placement, "rounds": len(group),
                        "ns": ns, "samples": samples, "rivals": rivals})
    if failures:
        results.append({"row": row["row"], "failure": failures})
    return results


def format_time(ns):
    """
    >>> format_time(3.456), format_time(999.6), format_time(12345.0)
    ('3.46 ns', '1 us', '12.3 us')
    """
    return f"{ns:.3g} ns" if ns < 999.5 else f"{ns / 1e3:.3g} us" if ns < 999.5e3 else f"{ns / 1e6:.3g} ms"


def lines_of(result):
    """The text of one result: a line for ours, and one for each rival."""
    if "failure" in result:
        return [f"{result['row']}: FAILED: {result['failure']}"]
    ours = next(iter(result["ns"]))
    where = f"  ({result['placement']}, {result['rounds']} rounds)" if result["threads"] > 1 else ""
    lines = [f"{result['row']}{where}", f"    {ours:28} {format_time(result['ns'][ours]):>10}"]
    for name, rival in result["rivals"].items():
        middle, low, high = rival["ratio"]
        bar = "" if rival["bar"] is None else f"  bar {rival['bar']:g}: {'met' if rival['met'] else 'NOT MET'}"
        lines.append(f"    {name:28} {format_time(result['ns'][name]):>10}  {middle:7.2f}x [{low:.2f}, {high:.2f}]  "
                     f"{rival['verdict']}{bar}")
    return lines


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev bench micro", description=__doc__)
    parser.add_argument("--rows", metavar="GLOB,...", default="*", help="for example 'SpscQueue_*,Result_*'")
    parser.add_argument("--list", action="store_true", help="name the rows and their contenders, measure nothing")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--build", metavar="DIR", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="save every round of every row")
    arguments = parser.parse_args()
    arguments.program = arguments.build / "bench/micro/bench_micro"
    if not arguments.program.exists():
        parser.error(f"no {arguments.program}: run through ./dev, or give --build DIR")
    text = subprocess.run([arguments.program, "--list"], capture_output=True, text=True, check=True).stdout
    known = [json.loads(line) for line in text.splitlines()]
    globs = arguments.rows.split(",")
    arguments.chosen = [row for row in known if any(fnmatch.fnmatchcase(row["row"], glob) for glob in globs)]
    if not arguments.chosen:
        parser.error(f"no row matches {arguments.rows}; see --list")
    return arguments


def measure(arguments, records):
    """All rows that were chosen, one after the other: printed, and added to `records`."""
    setting = QUICK if arguments.quick else FULL
    start = time.monotonic()
    for number, row in enumerate(arguments.chosen, 1):
        rounds = measure_row(arguments.program, row, **setting)
        results = summarise(row, rounds)
        records.append({"row": row, "rounds": rounds, "results": results})
        print("\n".join(line for result in results for line in lines_of(result)), flush=True)
        left = (time.monotonic() - start) / number * (len(arguments.chosen) - number)
        print(f"[{number}/{len(arguments.chosen)}] {left:.0f} s left", file=sys.stderr, flush=True)


def main():
    arguments = parse_arguments()
    if arguments.list:
        for row in arguments.chosen:
            print(f"{row['row']}: {', '.join(row['contenders'])}")
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    records, interrupted = [], False
    try:
        measure(arguments, records)
    except KeyboardInterrupt:
        print("interrupted: what stands above was measured before", file=sys.stderr)
        interrupted = True
    bars = [rival["met"] for record in records for result in record["results"] if "rivals" in result
            for rival in result["rivals"].values() if rival["met"] is not None]
    print(f"\n{sum(bars)} of {len(bars)} bars met. A ratio above 1 means that Weft is faster; `faster` and `SLOWER` are "
          "said only where the 95 % interval excludes 1.")
    if arguments.json is not None:
        arguments.json.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    failed = any("failure" in result for record in records for result in record["results"])
    return 130 if interrupted else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
