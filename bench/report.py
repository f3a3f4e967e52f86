#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns the records of bench_sockets into a table. `report.py FILE` prints the one that `sockets.py --json FILE` saved.

Every ratio is a median over rounds of one measured value over another of the same round; its interval is a 95 %
bootstrap interval. A ratio above 1 means that Weft is better, whatever the column.
"""

import json
import random
import statistics
import sys

PLACEMENT_ROUNDS_MIN = 5  # fewer rounds than this of one placement make no row of their own


def placement(probe_ns):
    """How the two sides stood to each other: the limits are those of bench_sockets.

    >>> [placement(ns) for ns in (60, 250, 480, 4000)]
    ['near', 'between', 'far', 'shared']
    """
    return "near" if probe_ns < 200 else "between" if probe_ns <= 350 else "far" if probe_ns < 1500 else "shared"


def median_interval(values, samples=2000):
    """The median and a 95 % bootstrap interval around it; the same values always give the same interval.

    >>> median_interval([2.0] * 9)
    (2.0, 2.0, 2.0)
    >>> low_high = median_interval([1.0, 1.1, 0.9, 1.0, 1.2, 0.8, 1.0, 1.1, 0.9])[1:]
    >>> low_high[0] < 1 < low_high[1]
    True
    """
    source = random.Random(1)
    medians = sorted(statistics.median(source.choices(values, k=len(values))) for _ in range(samples))
    return statistics.median(values), medians[int(samples * 0.025)], medians[int(samples * 0.975) - 1]


def verdict(low, high):
    """A win or a loss is claimed only when the interval excludes 1.

    >>> verdict(1.2, 1.4), verdict(0.9, 1.1), verdict(0.5, 0.7)
    ('faster', 'same', 'SLOWER')
    """
    return "faster" if low > 1 else "SLOWER" if high < 1 else "same"


def rounds_of(runs):
    """The runs of one cell as one dictionary {library: run} per round, in order, each with the round's placement."""
    rounds = {}
    for run in runs:
        rounds.setdefault(run["round"], {})[run["library"]] = run
    result = []
    for _, pair in sorted(rounds.items()):
        seen = {placement(run[when]) for run in pair.values() for when in ("before_ns", "after_ns")}
        result.append((seen.pop() if len(seen) == 1 else "mixed", pair))
    return result


def split_by_placement(rounds, all_placements):
    """[(placement, rounds)]: near and far apart; everything as `mixed` when neither was seen often enough."""
    apart = [(name, [pair for where, pair in rounds if where == name]) for name in ("near", "far")]
    apart = [(name, pairs) for name, pairs in apart if len(pairs) >= PLACEMENT_ROUNDS_MIN]
    if not apart:
        return [("mixed", [pair for _, pair in rounds])]
    return apart if all_placements else [max(apart, key=lambda entry: len(entry[1]))]


def cost(run, pattern):
    """Seconds per message (throughput) or per median round trip: less is better."""
    return run["median_ns"] / 1e9 if pattern == "round_trip" else run["seconds"] / (run["messages"] - 1)


def row_of(cell, name, pairs):
    """One row of the table from the rounds of one placement.

    >>> def run(seconds, cpu): return {"seconds": seconds, "messages": 1001, "cpu_seconds": cpu}
    >>> rounds = [{"weft": run(0.001, 0.001), "libzmq": run(0.004, 0.006)}] * 5
    >>> row = row_of({"cell": "push_pull/tcp/64", "pattern": "push_pull"}, "near", rounds)
    >>> round(row["weft"]), round(row["libzmq"]), row["ratio"], row["verdict"], row["cpu_ratio"]
    (1000000, 250000, [4.0, 4.0, 4.0], 'faster', 6.0)
    """
    pattern = cell["pattern"]
    ours = next(library for library in pairs[0] if library != "libzmq")
    costs = {library: [cost(pair[library], pattern) for pair in pairs] for library in pairs[0]}
    cpu = {library: [pair[library]["cpu_seconds"] / pair[library]["messages"] for pair in pairs] for library in costs}
    row = {"cell": cell["cell"], "pattern": pattern, "placement": name, "rounds": len(pairs)}
    for title, library in (("weft", ours), ("libzmq", "libzmq")):
        if library in costs:
            middle = statistics.median(costs[library])
            row[title] = middle if pattern == "round_trip" else 1 / middle
            row[title + "_cpu_us"] = statistics.median(cpu[library]) * 1e6
            if pattern == "round_trip":
                row[title + "_p99"] = statistics.median(pair[library]["p99_ns"] for pair in pairs) / 1e9
    if "libzmq" in costs:
        row["ratio"] = list(median_interval([theirs / mine for theirs, mine in zip(costs["libzmq"], costs[ours])]))
        row["verdict"] = verdict(row["ratio"][1], row["ratio"][2])
        shares = [theirs / mine for theirs, mine in zip(cpu["libzmq"], cpu[ours]) if mine > 0]
        row["cpu_ratio"] = statistics.median(shares) if shares else None
    return row


def summarise(records, all_placements=False):
    """One row per cell and, with `all_placements`, per placement that was seen often; a failure is a row too."""
    rows = []
    for record in records:
        if record["kind"] == "failure":
            rows.append({"cell": record["cell"], "failure": record["why"]})
        elif record["kind"] == "cell":
            runs = [run for run in records if run["kind"] == "run" and run["cell"] == record["cell"]]
            for name, pairs in split_by_placement(rounds_of(runs), all_placements):
                row = row_of(record, name, pairs)
                foreign = record["busy_seconds"] - record["own_seconds"]
                row["foreign"] = max(foreign, 0) / max(record["busy_seconds"], 1e-9)
                rows.append(row)
    return rows


def quantity(value, pattern):
    """
    >>> quantity(3_456_789, "push_pull"), quantity(45_600, "push_pull"), quantity(0.0000123, "round_trip")
    ('3.46 M/s', '45.6 k/s', '12.3 us')
    """
    if value is None:
        return "-"
    if pattern == "round_trip":
        return f"{value * 1e6:.2f} us" if value < 10e-6 else f"{value * 1e6:.1f} us"
    return f"{value / 1e6:.2f} M/s" if value >= 1e6 else f"{value / 1e3:.1f} k/s"


def line_of(row):
    pattern = row["pattern"]
    cells = [row["cell"], quantity(row.get("weft"), pattern), quantity(row.get("libzmq"), pattern)]
    if "ratio" in row:
        middle, low, high = row["ratio"]
        cells += [f"{middle:.2f} [{low:.2f}, {high:.2f}]", row["verdict"]]
        cells.append(f"{row['cpu_ratio']:.2f}" if row["cpu_ratio"] else "-")
    else:
        cells += ["-", "-", "-"]
    if pattern == "round_trip":
        cells.append(" / ".join(quantity(row.get(name), pattern) for name in ("weft_p99", "libzmq_p99")))
    else:
        cells.append("")
    others = f", others {row['foreign']:.0%}" if row["foreign"] > 0.05 else ""
    return cells + [f"{row['rounds']} {row['placement']}{others}"]


HEADER = ["cell", "Weft", "libzmq", "ratio [95 %]", "Weft is", "CPU ratio", "p99 Weft / libzmq", "rounds"]
LEFT_COLUMNS = (0, 4, 7)


def format_lines(lines):
    """Aligned text; a column that is empty in every line but the first is left out.

    >>> print(format_lines([["cell", "Weft", "x"], ["a/b", "12", ""]]))
    cell  Weft
    a/b     12
    """
    keep = [i for i in range(len(lines[0])) if any(line[i] for line in lines[1:])]
    widths = {i: max(len(line[i]) for line in lines) for i in keep}
    texts = []
    for line in lines:
        parts = [line[i].ljust(widths[i]) if i in LEFT_COLUMNS else line[i].rjust(widths[i]) for i in keep]
        texts.append("  ".join(parts).rstrip())
    return "\n".join(texts)


CONTROLS = [("memcpy_64_ns", "memcpy 64 B", "ns"), ("getppid_ns", "getppid", "ns"),
            ("ping_pong_ns", "cache line ping-pong", "ns"), ("futex_us", "futex round trip", "us")]


def format_controls(records):
    """What the machine did before and after, without a library."""
    controls = [record for record in records if record["kind"] == "controls"]
    parts = []
    for key, title, unit in CONTROLS:
        values = [f"{record[key]:.3g}" for record in controls]
        parts.append(f"{title} {' -> '.join(values)} {unit}")
    return "controls: " + ", ".join(parts) if controls else ""


TITLES = {"push_pull": "Throughput, PUSH to PULL, one way", "round_trip": "Round trip, REQ to REP"}
LEGEND = """\
A ratio above 1 means that Weft is better: more messages per second, a shorter median round trip, less CPU time per
message. `faster` and `SLOWER` are said only where the 95 % interval excludes 1. near and far: the two cores are close
or distant at that time; mixed: neither for long enough. others: the share of the busy CPU time that belonged to other
programs; a row that shows it was disturbed. eco: Weft sleeps at once instead of spinning first; libzmq is the same."""


def format_report(records, all_placements=False):
    rows = summarise(records, all_placements)
    versions = {record["name"]: record["version"] for record in records if record["kind"] == "library"}
    texts = [", ".join(f"{name} {version}" for name, version in versions.items()), format_controls(records)]
    for pattern, title in TITLES.items():
        lines = [line_of(row) for row in rows if row.get("pattern") == pattern]
        if lines:
            texts.append(f"\n{title}\n" + format_lines([HEADER] + lines))
    failures = [row for row in rows if "failure" in row]
    if failures:
        texts.append("\nNot measured\n" + "\n".join(f"{row['cell']}: {row['failure']}" for row in failures))
    texts.append("\n" + LEGEND)
    return "\n".join(text for text in texts if text)


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print("usage: report.py FILE, where FILE was written by `./dev bench sockets --json FILE`", file=sys.stderr)
        return 0 if sys.argv[1:] == ["--help"] else 2
    with open(sys.argv[1], encoding="utf-8") as file:
        print(format_report([json.loads(line) for line in file], all_placements=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
