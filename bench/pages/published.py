# SPDX-License-Identifier: MIT
"""The rows of the published reports, and what of ours stands beside each."""

import json
import pathlib

FILE = pathlib.Path(__file__).resolve().parent / "published.json"
SECTIONS = {  # in the order of the page
    "queues": "Queues", "allocators": "Allocators", "frame_codec": "Frame codec", "serialization": "Serialization",
    "tables": "Dispatcher and session tables", "sessions_and_timers": "Sessions and timers", "ring_buffer": "Ring buffer",
    "result": "Result", "executors": "Executors", "event_bus": "Event bus",
    "pipeline": "Pipeline, cores and architectures", "router": "ROUTER throughput", "pub_sub": "PUB/SUB throughput",
    "fan_out": "Fan-out", "round_trip": "Round trip", "libzmq": "Beside libzmq", "tcp_server": "TCP server",
    "methods": "Methods compared",
}
# What one published figure is, in the order of preference: key, unit, scale to the unit of our results.
FIGURES = (("cpu_ns", "ns"), ("ns", "ns"), ("messages_per_second", "/s"), ("runs_messages_per_second", "/s"),
           ("p50_us", "us"), ("p95_us", "us"), ("p99_us", "us"), ("mean_us", "us"), ("us", "us"),
           ("tasks_per_second", "/s"), ("mb_per_second", "MB/s"), ("mb", "MB"), ("ratio", "x"), ("intel_ns", "ns"))


def load(file=FILE):
    return json.loads(file.read_text(encoding="utf-8"))


def quantity(value, unit):
    """
    >>> quantity(4667387, "/s"), quantity(12.34, "ns"), quantity(88590000.0, "ns"), quantity(2.7, "x")
    ('4.67 M/s', '12.3 ns', '88.6 ms', '2.70x')
    >>> quantity(30.41, "us"), quantity(0.0, "ns")
    ('30.4 us', '0 ns')
    >>> quantity(1120, "us")
    '1.12 ms'
    """
    if unit == "ns":
        for limit, divisor, name in ((1e4, 1, "ns"), (1e7, 1e3, "us"), (float("inf"), 1e6, "ms")):
            if value < limit:
                return f"{value / divisor:.3g} {name}"
    if unit == "/s":
        for limit, name in ((1e6, " M/s"), (1e3, " k/s")):
            if value >= limit:
                return f"{value / limit:.3g}{name}"
        return f"{value:.3g} /s"
    if unit == "us" and value >= 1e3:
        return f"{value / 1e3:.3g} ms"
    return f"{value:.2f}x" if unit == "x" else f"{value:.3g} {unit}"


def figure(row):
    """The published figure of a row as text.

    >>> figure({"published": {"cpu_ns": 3.6, "real_ns": 3.7}}), figure({"published": {"us": 100, "bound": "less than"}})
    ('3.6 ns', '< 100 us')
    >>> figure({"published": {"runs_messages_per_second": [4933069, 5008946, 4940605]}})
    '4.93 M/s, 5.01 M/s, 4.94 M/s'
    """
    values = row["published"]
    key, unit = next((key, unit) for key, unit in FIGURES if key in values)
    value = values[key]
    shown = ", ".join(quantity(each, unit) for each in value) if isinstance(value, list) else quantity(value, unit)
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
