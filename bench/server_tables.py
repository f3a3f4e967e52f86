#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns the records of server.py into tables. `server_tables.py FILE` prints what `server.py --json FILE` saved."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness.server_summary import summarise  # noqa: E402
from tables import amount, format_controls, format_lines, print_file, verdict, with_interval  # noqa: E402

TITLES = {"echo": "Echo: the same frame comes back", "one_way": "One way: received, counted and checked by the server",
          "storm": "Storm: from connect to the first answer, all at once",
          "idle": "Idle: memory of the server per connection that is held",
          "bad": "Bad peers beside 16 good connections"}
HEADER = ["cell", "server", "per second", "p50", "p99", "p99.9", "max", "CPU us", "busy", "switches", "calls",
          "speed to raw [95 %]", "", "rounds"]
IDLE_HEADER = ["cell", "server", "bytes", "core when idle", "to raw [95 %]", "ready per second"]
BAD_HEADER = ["cell", "server", "throughput kept [95 %]", "peers limited", "slowest", "core when out of files",
              "served again after", "counted as"]
BAR_HEADER = ["cell", "placement", "measure", "bar", "measured", ""]
LEGEND = """\
weft_io_uring: weft with its other poller; `epoll` is its speed beside weft. raw: epoll by hand, the ceiling. asio:
Boost.Asio as people write it; asio_tuned: a read per event and a write for all of its answers; asio_awaitable: asio
as coroutines. A speed above 1 is faster than raw; `faster` and `SLOWER` are said only where the interval excludes 1.
CPU, context switches and system calls are the server's, per message. busy: the share of its core; far below 100 % the
load generator was the limit, and CPU says more than speed. With a load the speed is that of p50, and times count from
when a request was due. near, far, mixed: how the two cores stood to each other. others: the share of the busy CPU
time that belonged to other programs. published: another project's figure, of what it sent."""


def rate(cost):
    """
    >>> rate(1 / 3_456_789), rate(1 / 45_600)
    ('3.46 M/s', '45.6 k/s')
    """
    value = 1 / max(cost, 1e-12)
    return f"{value / 1e6:.2f} M/s" if value >= 1e6 else f"{value / 1e3:.1f} k/s"


def duration(seconds):
    """
    >>> duration(0.0000123), duration(0.0123), duration(None)
    ('12.3 us', '12.3 ms', '')
    """
    if seconds is None:
        return ""
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def rounds_of(row):
    others = f", others {row['foreign']:.0%}" if row.get("foreign", 0) > 0.05 else ""
    return f"{row['rounds']} {row['placement']}{others}"


def lines_of(row):
    lines = []
    for name, entry in row["columns"].items():
        ratio = row["ratios"].get(name)
        lines.append([row["cell"] if not lines else "", name, rate(entry["cost"])] +
                     [duration(entry.get(key)) for key in ("p50", "p99", "p999", "max")] +
                     [amount(entry["cpu"] * 1e6), f"{entry['busy']:.0%}", amount(entry["switches"]),
                      amount(entry["syscalls"]), with_interval(ratio) if ratio else "", verdict(ratio),
                      rounds_of(row) if not lines else ""])
    if row["published"]:
        lines.append(["", "published", rate(1 / row["published"])] + [""] * (len(HEADER) - 3))
    if row["published_us"]:
        lines.append(["", "published", "", duration(row["published_us"] / 1e6)] + [""] * (len(HEADER) - 4))
    return lines


def idle_lines_of(row):
    lines = []
    for name, entry in row["columns"].items():
        ratio = row["ratios"].get(name)
        lines.append([row["cell"] if not lines else "", name, f"{entry['cost']:.0f}", f"{entry['idle_cpu']:.2%}",
                      with_interval(ratio) if ratio else "", ""])
    return lines


def bad_lines_of(row):
    lines = []
    for name, entry in row["columns"].items():
        core = f"{entry['exhausted_cpu']:.1%}" if "exhausted_cpu" in entry else ""
        reasons = ", ".join(f"{reason} {count}" for reason, count in entry["reasons"].items() if count)
        lines.append([row["cell"] if not lines else "", name, with_interval(entry["kept"]), f"{entry['limited']:.0%}",
                      duration(entry["slowest_limit_s"]), core, duration(entry["recovery_s"]), reasons])
    return lines


TABLES = {"idle": (IDLE_HEADER, idle_lines_of), "bad": (BAD_HEADER, bad_lines_of)}


def bar_lines_of(row):
    lines = []
    for measure, bar, value, met in row["bars"]:
        whole = measure in ("bytes", "rate")
        text = f"{value[0]:.0f}" if whole else with_interval(value)
        lines.append([row["cell"], row["placement"], measure, bar, text, "met" if met else "MISSED"])
    return lines


def format_report(records, all_placements=False):
    rows = summarise(records, all_placements)
    versions = {record["name"]: record["version"] for record in records if record["kind"] == "library"}
    texts = [", ".join(f"{name}: {version}" for name, version in versions.items() if version), format_controls(records)]
    for pattern, title in TITLES.items():
        header, lines = TABLES.get(pattern, (HEADER, lines_of))
        table = [line for row in rows if row.get("pattern") == pattern for line in lines(row)]
        if table:
            texts.append(f"\n{title}\n" + format_lines([header] + table, (0, 1)))
    bars = [line for row in rows if "bars" in row for line in bar_lines_of(row)]
    if bars:
        met = sum(line[-1] == "met" for line in bars)
        texts.append(f"\nBars: {met} of {len(bars)} met\n" + format_lines([BAR_HEADER] + bars, (0, 1, 2, 3, 5)))
    failed = [f"{row['cell']}: {row.get('failure') or row['skip']}" for row in rows if "columns" not in row]
    if failed:
        texts.append("\nNot measured\n" + "\n".join(failed))
    texts.append("\n" + LEGEND)
    return "\n".join(text for text in texts if text)


if __name__ == "__main__":
    sys.exit(print_file("server_tables.py", "server", format_report))
