# SPDX-License-Identifier: MIT
"""The rows of the published reports, and what of ours stands beside each."""

import json
import pathlib

from weft_bench import printer

FILE = pathlib.Path(__file__).resolve().parent / "published.json"
SECTIONS = {  # in the order of the page
    "queues": "Queues", "allocators": "Allocators", "frame_codec": "Frame codec", "serialization": "Serialization",
    "tables": "Dispatcher and session tables", "sessions_and_timers": "Sessions and timers", "ring_buffer": "Ring buffer",
    "result": "Result", "executors": "Executors", "event_bus": "Event bus",
    "pipeline": "Pipeline, cores and architectures", "router": "ROUTER throughput", "pub_sub": "PUB/SUB throughput",
    "fan_out": "Fan-out", "round_trip": "Round trip", "libzmq": "Beside libzmq", "tcp_server": "TCP server",
    "methods": "Methods compared",
}
# What one published figure is, in the order of preference: key, unit, scale to that unit.
FIGURES = (("cpu_ns", "s", 1e-9), ("ns", "s", 1e-9), ("messages_per_second", "/s", 1), ("runs_messages_per_second", "/s", 1),
           ("p50_us", "s", 1e-6), ("p95_us", "s", 1e-6), ("p99_us", "s", 1e-6), ("mean_us", "s", 1e-6), ("us", "s", 1e-6),
           ("tasks_per_second", "/s", 1), ("mb_per_second", "MB/s", 1), ("mb", "MB", 1), ("ratio", "x", 1),
           ("intel_ns", "s", 1e-9))


def load(file=FILE):
    return json.loads(file.read_text(encoding="utf-8"))


def figure(row):
    """The published figure of a row as text.

    >>> figure({"published": {"cpu_ns": 3.6, "real_ns": 3.7}}), figure({"published": {"us": 100, "bound": "less than"}})
    ('3.6 ns', '< 100 us')
    >>> figure({"published": {"runs_messages_per_second": [4933069, 5008946, 4940605]}})
    '4.93 M/s, 5.01 M/s, 4.94 M/s'
    """
    values = row["published"]
    key, unit, scale = next(entry for entry in FIGURES if entry[0] in values)
    measured = values[key] if isinstance(values[key], list) else [values[key]]
    shown = ", ".join(printer.quantity(value * scale, unit) for value in measured)
    return ("< " if values.get("bound") == "less than" else "") + shown


def measured_rows(row):
    """The names of our rows for a published one: one, or two where it compares two."""
    return row["measured"] if isinstance(row["measured"], list) else [row["measured"]]


def missing(published, known):
    """Published rows without a row of ours. known: {suite: names of its rows}; other suites are not looked at.

    >>> missing({"rows": [{"row": "a", "suite": "micro", "measured": "x"}]}, {"micro": ["x"]})
    []
    >>> missing({"rows": [{"row": "a", "suite": "micro", "measured": ["x", "y"]}]}, {"micro": ["x"]})
    ['a: y (micro)']
    """
    return [f"{row['row']}: {name} ({row['suite']})" for row in published["rows"] if row["suite"] in known
            for name in measured_rows(row) if name not in known[row["suite"]]]
