# SPDX-License-Identifier: MIT
"""A report beside an earlier one of the same machine, row by row. What the rivals of a row moved by in the meantime is
the machine: ours must have moved by more."""

from weft_bench import results, stats
from weft_bench.harness import cells


def change(before, now):
    """The interval of how many times faster it is now, from the rounds of both times.

    >>> change([2.0, 2.0, 2.0], [1.0, 1.0, 1.0])
    [2.0, 2.0, 2.0]
    """
    def times_faster(before, now):
        return max(stats.median(before), 1e-12) / max(stats.median(now), 1e-12)
    return stats.bootstrap(times_faster, before, now, draws=1000)


def is_latency(row):
    return row.startswith(cells.TRIPS) or (row.startswith("echo") and "load" in row)


def compare_row(before, now):
    """{"suite", "row", "change", "noise", "verdict"}: faster, slower or same."""
    ours = change(before["samples"][before["ours"]], now["samples"][now["ours"]])
    rivals = [name for name in now["samples"] if name in before["samples"] and not name.startswith("weft")
              and name not in (now["ours"], before["ours"])]
    noise = max((abs(change(before["samples"][name], now["samples"][name])[0] - 1) for name in rivals), default=0.0)
    least = stats.LATENCY_LEAST if is_latency(now["row"]) else stats.THROUGHPUT_LEAST
    return {"suite": now["suite"], "row": now["row"], "change": ours, "noise": noise,
            "verdict": stats.verdict_of_change(ours, noise, least)}


def compare_all(baseline, now):
    """One for each row of both reports that was measured on cores that stood alike."""
    found = []
    for name in dict.fromkeys((result["suite"], result["row"]) for result in now["results"]):
        before, after = results.best(baseline["results"], *name), results.best(now["results"], *name)
        if before is not None and before["placement"] == after["placement"] and before["ours"] in before["samples"]:
            found.append({**compare_row(before, after), "before": before, "now": after})
    return found
