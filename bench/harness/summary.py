# SPDX-License-Identifier: MIT
"""From records to rows. Every ratio is a median over rounds of one measured value over another of the same round, with a
95 % bootstrap interval. A ratio above 1 means that Weft is better, whatever is measured."""

import bisect
import itertools
import json
import pathlib
import random
import statistics

from harness import cells

PLACEMENT_ROUNDS_MIN = 5  # fewer rounds than this of one placement make no row of their own
BARS = pathlib.Path(__file__).resolve().parent.parent / "bars.json"


def placement(probe_ns):
    """How the two sides stood to each other: the limits are those of harness/rounds.py. None: nobody asked.

    >>> [placement(ns) for ns in (60, 300, 480, 4000, None)]
    ['near', 'between', 'far', 'shared', 'unknown']
    """
    if probe_ns is None:
        return "unknown"
    return "near" if probe_ns < 280 else "between" if probe_ns <= 350 else "far" if probe_ns < 1500 else "shared"


LIVES_MIN = 3  # fewer processes than this of a column say nothing of how processes differ


def bootstrap(rounds, statistic, samples=2000, lives=()):
    """(value, low, high): a statistic of the rounds and a 95 % interval; the same rounds always give the same. `lives`:
    which processes ran each round; then processes are drawn first, and rounds of those that were.

    >>> bootstrap([2.0] * 9, statistics.median)
    (2.0, 2.0, 2.0)
    >>> bootstrap([1.0] * 5 + [2.0] * 4, statistics.median, lives=[0] * 5 + [1] * 2 + [2] * 2)
    (1.0, 1.0, 2.0)
    >>> low_high = bootstrap([1.0, 1.1, 0.9, 1.0, 1.2, 0.8, 1.0, 1.1, 0.9], statistics.median)[1:]
    >>> low_high[0] < 1 < low_high[1]
    True
    """
    source = random.Random(1)
    groups = [[each for each, its in zip(rounds, lives) if its == life] for life in sorted(set(lives))]

    def draw():
        if len(groups) < LIVES_MIN:
            return source.choices(rounds, k=len(rounds))
        return [each for group in source.choices(groups, k=len(groups)) for each in source.choices(group, k=len(group))]
    values = sorted(statistic(draw()) for _ in range(samples))
    return statistic(rounds), values[int(samples * 0.025)], values[int(samples * 0.975) - 1]


def rounds_of(runs):
    """The runs of one cell as [(placement, {column: run})], one per round, in order."""
    rounds = {}
    for run in runs:
        rounds.setdefault(run["round"], {})[run["column"]] = run
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
    """Seconds per message, per median round trip or per connection; bytes of an idle connection: less is better."""
    if pattern in cells.TRIPS:
        return run["p50_ns"] / 1e9
    if pattern == "idle_memory":
        return max(run["memory_bytes"], 1) / run["messages"]
    if pattern == "connect_storm":
        return run["seconds"] / run["messages"]
    return run["seconds"] / (run["messages"] - run["receivers"])


class Pool:
    """The histograms of one column in some rounds, together.

    >>> pool = Pool([{"weft": {"trips": [[10, 98], [20, 1]]}}, {"weft": {"trips": [[30, 1]]}}], "weft")
    >>> pool.quantile([0, 1], 0.99), pool.quantile([0, 1], 1), pool.quantile([0, 0], 1)
    (20, 30, 20)
    """

    def __init__(self, pairs, column):
        histograms = [dict(pair[column]["trips"]) for pair in pairs]
        self.levels = sorted({low for histogram in histograms for low in histogram})
        self.cumulative = [
            list(itertools.accumulate(histogram.get(low, 0) for low in self.levels)) for histogram in histograms]

    def quantile(self, rounds, share):
        """Of all round trips of these rounds; a round may be there more than once."""
        def up_to(level):
            return sum(self.cumulative[number][level] for number in rounds)
        last = len(self.levels) - 1
        found = bisect.bisect_left(range(last), share * up_to(last), key=up_to)
        return max(self.levels[found], 1)


def ratio_of(pairs, measure, above, below):
    """Median over rounds of measure(above) / measure(below), with its interval; None where one of them was 0."""
    ratios = [measure(pair[above]) / measure(pair[below]) for pair in pairs if measure(pair[below]) > 0]
    return bootstrap(ratios, statistics.median, lives=lives_of(pairs)) if len(ratios) == len(pairs) else None


def lives_of(pairs):
    return [next(iter(pair.values())).get("life", 0) for pair in pairs]


def per_message(run):
    return run["cpu_seconds"] / run["messages"]


def add_ratios(row, pairs, ours, pattern):
    """What is compared with libzmq, with our own other pattern, and with the raw limit."""
    def speed(run):
        return cost(run, pattern)
    row["speed"] = ratio_of(pairs, speed, "libzmq", ours)
    if "rate" not in row:  # between two requests the requester spins, whatever the library does
        row["cpu"] = ratio_of(pairs, per_message, "libzmq", ours)
    if pattern in cells.TRIPS:
        row["p99"] = ratio_of(pairs, lambda run: run["p99_ns"], "libzmq", ours)
        pools = [Pool(pairs, column) for column in ("libzmq", ours)]

        def compare(rounds):
            return pools[0].quantile(rounds, 0.999) / pools[1].quantile(rounds, 0.999)
        row["p999"] = bootstrap(range(len(pairs)), compare, 1000, lives_of(pairs))
    if "weft push_pull" in pairs[0]:
        row["own"] = ratio_of(pairs, speed, "weft push_pull", ours)
    limit = "raw_spinning" if "raw_spinning" in pairs[0] and "/eco" not in row["cell"] else "raw"
    if limit in pairs[0]:
        row["limit"] = ratio_of(pairs, speed, ours, limit)


def row_of(cell, name, pairs, counts=()):
    """One row of the table from the rounds of one placement.

    >>> def run(seconds, cpu): return {"seconds": seconds, "messages": 1001, "receivers": 1, "cpu_seconds": cpu,
    ...                                "switches": 10}
    >>> rounds = [{"weft": run(0.001, 0.001), "libzmq": run(0.004, 0.006)}] * 5
    >>> row = row_of({"cell": "push_pull/tcp/64", "pattern": "push_pull"}, "near", rounds)
    >>> round(1 / row["columns"]["weft"]["cost"]), row["speed"], row["cpu"][0]
    (1000000, (4.0, 4.0, 4.0), 6.0)
    """
    pattern = cell["pattern"]
    ours = "libzmq again" if cell["cell"].endswith(cells.A_A) else "weft"
    row = {"cell": cell["cell"], "pattern": pattern, "placement": name, "rounds": len(pairs), "ours": ours, "columns": {}}
    for column in pairs[0]:
        runs = [pair[column] for pair in pairs]
        costs = [cost(run, pattern) for run in runs]
        entry = {"cost": statistics.median(costs), "costs": costs,
                 "cpu": statistics.median(per_message(run) for run in runs),
                 "switches": sum(run["switches"] for run in runs) / sum(run["messages"] for run in runs)}
        if pattern in cells.TRIPS:
            entry |= {"p99": statistics.median(run["p99_ns"] for run in runs) / 1e9,
                      "p999": Pool(pairs, column).quantile(range(len(pairs)), 0.999) / 1e9,
                      "max": max(run["max_ns"] for run in runs) / 1e9}
        for count in counts:
            if count["column"] == column:
                entry |= {key: count[key] for key in ("syscalls", "syscalls_by", "allocations")}
        row["columns"][column] = entry
    if "interval_ns" in pairs[0][ours]:
        row["rate"] = 1e9 / pairs[0][ours]["interval_ns"]
    add_ratios(row, pairs, ours, pattern)
    row["bars"] = [] if ours != "weft" else bars_of(row)
    return row


def bars_of(row, bars=None):
    """[(measure, text of the bar, measured, met)] of a row. Where more than 1 is asked for, the interval's lower end must
    exceed 1; `never worse` is missed when the whole interval is below 1.

    >>> row = {"cell": "pair/tcp/64", "speed": (4.0, 0.9, 5.0), "limit": (1.4, 1.2, 1.6), "columns": {}, "pattern": "pair"}
    >>> [met for *_, met in bars_of(row, [{"cells": ["pair/*/64"], "measure": "speed", "least": 3}])]
    [False]
    >>> bars_of(row, [{"cells": ["*"], "measure": "limit", "most": 1.5}, {"cells": ["*"], "measure": "p99", "least": 1}])
    [('limit', '<= 1.5', (1.4, 1.2, 1.6), True)]
    >>> [met for *_, met in bars_of(row, [{"cells": ["*"], "measure": "speed", "never_worse": True}])]
    [True]
    """
    if bars is None:
        bars = json.loads(BARS.read_text(encoding="utf-8"))
    if row["pattern"] == "idle_memory":
        row = row | {"bytes": (row["columns"]["weft"]["cost"],) * 3}
    result = []
    for bar in bars:
        value = row.get(bar["measure"])
        if value is None or not any(cells.matches(pattern, row["cell"]) for pattern in bar["cells"]):
            continue
        middle, low, high = value
        if "never_worse" in bar:
            result.append((bar["measure"], "never worse", value, high >= 1))
        elif "most" in bar:
            result.append((bar["measure"], f"<= {bar['most']:g}", value, middle <= bar["most"]))
        else:
            met = middle >= bar["least"] and (low > 1 or bar["least"] <= 1)
            result.append((bar["measure"], f">= {bar['least']:g}", value, met))
    return result


def summarise(records, all_placements=False):
    """One row per cell and, with `all_placements`, per placement that was seen often; a failure is a row too."""
    rows = []
    for record in records:
        if record["kind"] == "failure":
            rows.append({"cell": record["cell"], "failure": record["why"]})
        elif record["kind"] == "cell":
            runs = [run for run in records if run["kind"] == "run" and run["cell"] == record["cell"]]
            counts = [count for count in records if count["kind"] == "count" and count["cell"] == record["cell"]]
            for name, pairs in split_by_placement(rounds_of(runs), all_placements):
                row = row_of(record, name, pairs, counts)
                foreign = record["busy_seconds"] - record["own_seconds"]
                row["foreign"] = max(foreign, 0) / max(record["busy_seconds"], 1e-9)
                rows.append(row)
    return rows
