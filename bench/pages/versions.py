# SPDX-License-Identifier: MIT
"""A report beside an earlier one of the same machine, row by row. What the rivals of a row moved by in the meantime is
the machine: ours must have moved by more."""

import random
import statistics

from harness import cells, compare
from pages import results

SAMPLES = 1000


def change(before, now):
    """(middle, low, high) of how many times faster it is now, from the rounds of both times, with a 95 % interval.

    >>> change([2.0, 2.0, 2.0], [1.0, 1.0, 1.0])
    (2.0, 2.0, 2.0)
    >>> middle, low, high = change([1.0, 1.1, 0.9, 1.0, 1.2], [1.0, 0.9, 1.1, 1.0, 0.8])
    >>> low < 1 < high
    True
    """
    source = random.Random(1)

    def median_of(rounds):
        return max(statistics.median(rounds), 1e-12)
    drawn = sorted(median_of(source.choices(before, k=len(before))) / median_of(source.choices(now, k=len(now)))
                   for _ in range(SAMPLES))
    return median_of(before) / median_of(now), drawn[int(SAMPLES * 0.025)], drawn[int(SAMPLES * 0.975) - 1]


def is_latency(row):
    return row.startswith(cells.TRIPS) or (row.startswith("echo") and "load" in row)


def compare_row(before, now):
    """{"suite", "row", "change", "noise", "verdict"}: faster, slower or same."""
    ours = change(before["samples"][before["ours"]], now["samples"][now["ours"]])
    rivals = [name for name in now["samples"] if name in before["samples"] and not name.startswith("weft")
              and name not in (now["ours"], before["ours"])]
    noise = max((abs(change(before["samples"][name], now["samples"][name])[0] - 1) for name in rivals), default=0.0)
    least = compare.LATENCY_LEAST if is_latency(now["row"]) else compare.THROUGHPUT_LEAST
    slowdown = (1 / ours[0], 1 / ours[2], 1 / ours[1])
    floor = (1.0, 1 - noise, 1 + noise)
    said = ("slower" if compare.is_alarm(slowdown, floor, least) else
            "faster" if compare.is_alarm(ours, floor, least) else "same")
    return {"suite": now["suite"], "row": now["row"], "change": ours, "noise": noise, "verdict": said}


def compare_all(baseline, now):
    """One for each row of both reports that was measured on cores that stood alike."""
    found = []
    for name in dict.fromkeys((result["suite"], result["row"]) for result in now["results"]):
        before, after = results.best(baseline["results"], *name), results.best(now["results"], *name)
        if before is not None and before["placement"] == after["placement"] and before["ours"] in before["samples"]:
            found.append({**compare_row(before, after), "before": before, "now": after})
    return found
