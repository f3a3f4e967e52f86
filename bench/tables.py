#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns the records of sockets.py into tables. `tables.py FILE` prints what `sockets.py --json FILE` saved."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import cells  # noqa: E402
from harness.summary import summarise  # noqa: E402

LATENCIES = ("round_trip", "burst", "connect_storm")


def quantity(value, pattern):
    """
    >>> quantity(1 / 3_456_789, "push_pull"), quantity(1 / 45_600, "push_pull"), quantity(0.0000123, "round_trip")
    ('3.46 M/s', '45.6 k/s', '12.3 us')
    >>> quantity(4321.4, "idle_memory"), quantity(None, "pair")
    ('4321 B', '-')
    """
    if value is None:
        return "-"
    if pattern == "idle_memory":
        return f"{value:.0f} B"
    if pattern in LATENCIES:
        return f"{value * 1e6:.2f} us" if value < 10e-6 else f"{value * 1e6:.1f} us"
    rate = 1 / value
    return f"{rate / 1e6:.2f} M/s" if rate >= 1e6 else f"{rate / 1e3:.1f} k/s"


def with_interval(ratio):
    """
    >>> with_interval((4.0, 3.5, 12.123)), with_interval(None)
    ('4.00 [3.50, 12.12]', '-')
    """
    return "-" if ratio is None else f"{ratio[0]:.2f} [{ratio[1]:.2f}, {ratio[2]:.2f}]"


def verdict(ratio):
    """A win or a loss is claimed only when the interval excludes 1.

    >>> verdict((1.3, 1.2, 1.4)), verdict((1, 0.9, 1.1)), verdict((0.6, 0.5, 0.7)), verdict(None)
    ('faster', 'same', 'SLOWER', '')
    """
    return "" if ratio is None else "faster" if ratio[1] > 1 else "SLOWER" if ratio[2] < 1 else "same"


def amount(value):
    """
    >>> amount(0.00123), amount(12.345), amount(None), amount(0)
    ('0.0012', '12.3', '-', '0')
    """
    return "-" if value is None else "0" if value == 0 else f"{value:.1f}" if value >= 10 else f"{value:.2g}"


def of_columns(row, key, show):
    """The values of our column and of libzmq's, with a stroke between them."""
    return " / ".join(show(row["columns"].get(column, {}).get(key)) for column in (row["ours"], "libzmq"))


def line_of(row, details=True):
    pattern, columns = row["pattern"], row["columns"]
    line = [row["cell"]] + [quantity(columns[name]["cost"], pattern) for name in (row["ours"], "libzmq")]
    line += [with_interval(row["speed"]), verdict(row["speed"])]
    line.append(f"{row['cpu'][0]:.2f}" if row.get("cpu") else "-")
    limit = row.get("limit")
    raw = next((columns[name]["cost"] for name in ("raw_spinning", "raw") if name in columns), None)
    line.append(f"{quantity(raw, pattern)}, {limit[0]:.2f}x" if limit else "")
    line.append(quantity(columns["nng"]["cost"], pattern) if "nng" in columns else "")
    bars = row["bars"]
    line.append("" if not bars or not details else f"{sum(met for *_, met in bars)} of {len(bars)}")
    others = f", others {row['foreign']:.0%}" if row["foreign"] > 0.05 else ""
    return line + [f"{row['rounds']} {row['placement']}{others}"]


def tail_line_of(row):
    def show(value):
        return quantity(value, "round_trip")
    rate = f"{row['rate']:.0f}/s" if "rate" in row else "closed loop"
    line = [row["cell"], rate] + [of_columns(row, key, show) for key in ("cost", "p99", "p999", "max")]
    return line + [with_interval(row["p99"]), with_interval(row["p999"])]


def use_line_of(row):
    by = row["columns"][row["ours"]].get("syscalls_by") or ""
    line = [row["cell"], of_columns(row, "cpu", lambda value: amount(value and value * 1e6))]
    return line + [of_columns(row, key, amount) for key in ("switches", "syscalls", "allocations")] + [by]


def bar_lines_of(row):
    lines = []
    for measure, bar, value, met in row["bars"]:
        measured = f"{value[0]:.0f}" if measure == "bytes" else with_interval(value)
        lines.append([row["cell"], row["placement"], measure, bar, measured, "met" if met else "MISSED"])
    return lines


HEADER = ["cell", "Weft", "libzmq", "ratio [95 %]", "Weft is", "CPU ratio", "raw limit, Weft takes", "nng", "bars met",
          "rounds"]
TAIL_HEADER = ["cell", "requests", "p50 Weft / libzmq", "p99", "p99.9", "max", "p99 ratio", "p99.9 ratio"]
USE_HEADER = ["cell", "CPU us Weft / libzmq", "context switches", "system calls", "allocations", "calls counted by"]
BAR_HEADER = ["cell", "placement", "measure", "bar", "measured", ""]


def format_lines(lines, left=(0,)):
    """Aligned text; a column that is empty in every line but the first is left out.

    >>> print(format_lines([["cell", "Weft", "x"], ["a/b", "12", ""]]))
    cell  Weft
    a/b     12
    """
    keep = [i for i in range(len(lines[0])) if any(line[i] for line in lines[1:])]
    widths = {i: max(len(line[i]) for line in lines) for i in keep}
    texts = []
    for line in lines:
        parts = [line[i].ljust(widths[i]) if i in left else line[i].rjust(widths[i]) for i in keep]
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


TITLES = {"push_pull": "Throughput, PUSH to PULL, one way", "pub_sub": "Throughput, PUB to SUB: deliveries",
          "router_router": "Throughput, ROUTER to ROUTER, one way",
          "dealer_router": "Throughput, DEALER to ROUTER, one way", "pair": "Throughput, PAIR to PAIR, one way",
          "round_trip": "Round trip, REQ to REP, median",
          "burst": "100 messages after a rest, PUSH to PULL, from the first sent to the last received, median",
          "connect_storm": "Time per peer: all connect at once",
          "idle_memory": "Memory of the server per idle connection"}
LEGEND = """\
A ratio above 1 means that Weft is better: more messages per second, a shorter median round trip, less CPU time per
message. `faster` and `SLOWER` are said only where the 95 % interval excludes 1. near and far: the two cores are close
or distant at that time; mixed: neither for long enough. others: the share of the busy CPU time that belonged to other
programs; a row that shows it was disturbed. eco: Weft sleeps at once instead of spinning first; libzmq is the same.
raw limit: the same messages without a library, and how many times longer Weft takes."""


def format_details(rows):
    """Tails, what a message takes beside time, and the bars."""
    texts = []
    tails = [tail_line_of(row) for row in rows if row["pattern"] in cells.TRIPS]
    if tails:
        texts.append("\nRound trips, from when a request was due; bursts\n" + format_lines([TAIL_HEADER] + tails, (0, 1)))
    uses = [use_line_of(row) for row in rows if row["pattern"] != "idle_memory" and "rate" not in row]
    if uses:
        texts.append("\nBeside the time, per message, both sides together\n" + format_lines([USE_HEADER] + uses, (0, 5)))
    bars = [line for row in rows for line in bar_lines_of(row)]
    if bars:
        met = sum(line[-1] == "met" for line in bars)
        texts.append(f"\nBars: {met} of {len(bars)} met\n" + format_lines([BAR_HEADER] + bars, (0, 1, 2, 3, 5)))
    return texts


def format_report(records, all_placements=False, details=True):
    rows = summarise(records, all_placements)
    versions = {record["name"]: record["version"] for record in records if record["kind"] == "library"}
    versions = {name: version for name, version in versions.items() if name in ("weft", "libzmq", "nng")}
    texts = [", ".join(f"{name} {version}" for name, version in versions.items()), format_controls(records)]
    for pattern, title in TITLES.items():
        lines = [line_of(row, details) for row in rows if row.get("pattern") == pattern]
        if lines:
            texts.append(f"\n{title}\n" + format_lines([HEADER] + lines, (0, 4, 9)))
    if details:
        texts += format_details([row for row in rows if "failure" not in row])
    failures = [row for row in rows if "failure" in row]
    if failures:
        texts.append("\nNot measured\n" + "\n".join(f"{row['cell']}: {row['failure']}" for row in failures))
    texts.append("\n" + LEGEND)
    return "\n".join(text for text in texts if text)


def print_file(name, suite, format_records):
    """What `tables.py FILE` and `server_tables.py FILE` do; the exit status."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(f"usage: {name} FILE, where FILE was written by `./dev bench {suite} --json FILE`", file=sys.stderr)
        return 0 if sys.argv[1:] == ["--help"] else 2
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            print(format_records([json.loads(line) for line in file], all_placements=True))
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"{name}: {sys.argv[1]} cannot be read: {error!r}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(print_file("tables.py", "sockets", format_report))
