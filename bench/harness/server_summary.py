# SPDX-License-Identifier: MIT
"""From the server's records to rows. Ratios are medians over rounds of values of the same round, with a 95 % bootstrap
interval. In `raw`, `asio` and `kept` more is better; in `cpu` and `ready`, which are our cost over that of raw, less."""

import json
import pathlib
import statistics

from harness import cells, summary
from harness.server_cells import PUBLISHED, PUBLISHED_US, SERVERS
from harness.summary import bootstrap

BARS = pathlib.Path(__file__).resolve().parent.parent / "server/bars.json"
# Members of a run that are there in some patterns only; each is a measure of its own.
OF_BAD_PEERS = ("exhausted_cpu", "recovery_s", "slowest_limit_s")


def cost(run):
    """Seconds per message, or per connection that is ready; bytes of an idle connection.

    >>> cost({"seconds": 2.0, "messages": 100}), cost({"seconds": 2.0, "messages": 100, "memory_bytes": 51200.0})
    (0.02, 512.0)
    """
    return run.get("memory_bytes", run["seconds"]) / run["messages"]


def latency(run):
    return run["p50_ns"] / 1e9


def of_runs(pairs, column, measure):
    """The median over rounds of a value of one column, with its interval.

    >>> of_runs([{"raw": {"n": 3}}] * 5, "raw", lambda run: run["n"])
    (3, 3, 3)
    """
    return bootstrap([measure(pair[column]) for pair in pairs], statistics.median)


def column_of(pairs, column, counts, reasons):
    """What is printed of one column."""
    runs = [pair[column] for pair in pairs]
    entry = {"cost": statistics.median(map(cost, runs)), "costs": list(map(cost, runs)),
             "cpu": statistics.median(map(summary.per_message, runs)),
             "busy": statistics.median(run["cpu_seconds"] / run["seconds"] for run in runs),
             "switches": sum(run["switches"] for run in runs) / sum(run["messages"] for run in runs)}
    if "trips" in runs[0]:
        entry |= {"p50": statistics.median(map(latency, runs)), "p50s": list(map(latency, runs)),
                  "p99": statistics.median(run["p99_ns"] for run in runs) / 1e9,
                  "p999": summary.Pool(pairs, column).quantile(range(len(pairs)), 0.999) / 1e9,
                  "max": max(run["max_ns"] for run in runs) / 1e9}
    if "alone_seconds" in runs[0]:
        entry["kept"] = of_runs(pairs, column, lambda run: run["alone_seconds"] / run["seconds"])
        entry["limited"] = sum(run["limited"] for run in runs) / max(sum(run["peers"] for run in runs), 1)
    for name in OF_BAD_PEERS + ("idle_cpu",):
        if name in runs[0]:
            entry[name] = max(run[name] for run in runs)
    entry["syscalls"] = next((count["syscalls"] for count in counts if count["column"] == column), None)
    entry["reasons"] = next((count["reasons"] for count in reasons if count["column"] == column), {})
    return entry


def in_order(columns):
    """Weft first: in a round that goes backwards they stand the other way round.

    >>> in_order(["asio", "raw", "weft"]), in_order(["raw", "raw again"])
    (['weft', 'raw', 'asio'], ['raw again', 'raw'])
    """
    order = [name for name, *_ in SERVERS]
    return sorted(columns, key=lambda name: order.index(name) if name in order else -1)


def row_of(cell, placement, pairs, counts=(), reasons=()):
    """One row from the rounds of one placement.

    >>> def run(seconds, cpu): return {"seconds": seconds, "messages": 1000, "cpu_seconds": cpu, "switches": 10}
    >>> rounds = [{"weft": run(0.002, 0.002), "raw": run(0.001, 0.001), "asio": run(0.003, 0.006)}] * 5
    >>> row = row_of({"cell": "one_way/64/x1", "pattern": "one_way"}, "near", rounds)
    >>> row["ratios"]["weft"][0], row["raw"][0], row["cpu"][0], row["asio"][0], row["rate"][0]
    (0.5, 0.5, 2.0, 1.5, 500000.0)
    >>> [met for measure, _, _, met in row["bars"]]
    [False]
    """
    name = cell["cell"].removesuffix(cells.A_A)
    row = {"cell": cell["cell"], "pattern": cell["pattern"], "placement": placement, "rounds": len(pairs),
           "published": PUBLISHED.get(name), "published_us": PUBLISHED_US.get(name), "bars": [],
           "columns": {column: column_of(pairs, column, counts, reasons) for column in in_order(pairs[0])}}
    load = next((pair["interval_ns"] for pair in pairs[0].values() if "interval_ns" in pair), None)
    row["load"] = load and 1e9 / load
    measure = latency if load else cost
    row["ratios"] = {column: summary.ratio_of(pairs, measure, "raw", column) for column in pairs[0] if column != "raw"}
    if "weft" in pairs[0]:
        add_measures(row, pairs, measure)
        row["bars"] = summary.bars_of(row, json.loads(BARS.read_text(encoding="utf-8")))
    return row


def add_measures(row, pairs, measure):
    ours = row["columns"]["weft"]
    row["raw"] = row["ratios"]["weft"]
    row["cpu"] = summary.ratio_of(pairs, summary.per_message, "weft", "raw")
    row["rate"] = of_runs(pairs, "weft", lambda run: 1 / max(cost(run), 1e-12))
    if "asio" in pairs[0]:
        row["asio"] = summary.ratio_of(pairs, measure, "asio", "weft")
    if "weft_io_uring" in pairs[0]:
        row["epoll"] = summary.ratio_of(pairs, measure, "weft", "weft_io_uring")
    if row["pattern"] == "storm":
        row["ready"] = summary.ratio_of(pairs, cost, "weft", "raw")
    if row["pattern"] == "idle":
        row["bytes"] = of_runs(pairs, "weft", cost)
    if row["pattern"] == "bad":
        row["kept"] = ours["kept"]
        row["limited"] = (ours["limited"],) * 3
        row |= {name: (ours[name],) * 3 for name in OF_BAD_PEERS if name in ours}


def summarise(records, all_placements=False):
    """One row per cell and, with `all_placements`, per placement that was seen often; a failure or a skip is one too."""
    rows = []
    for record in records:
        if record["kind"] in ("failure", "skip"):
            rows.append({"cell": record["cell"], record["kind"]: record["why"]})
        elif record["kind"] == "cell":
            def of_cell(kind, name=record["cell"]):
                return [entry for entry in records if entry["kind"] == kind and entry["cell"] == name]
            for name, pairs in summary.split_by_placement(summary.rounds_of(of_cell("run")), all_placements):
                row = row_of(record, name, pairs, of_cell("count"), of_cell("counts"))
                foreign = record["busy_seconds"] - record["own_seconds"]
                row["foreign"] = max(foreign, 0) / max(record["busy_seconds"], 1e-9)
                rows.append(row)
    return rows
