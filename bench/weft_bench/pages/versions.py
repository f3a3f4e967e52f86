# SPDX-License-Identifier: MIT
"""A report beside an earlier one of the same machine, row by row. What the rivals of a row moved by in the meantime is
the machine: ours must have moved by more."""

from weft_bench import results, stats
from weft_bench.harness import cells


def change(before, now, lives=stats.LIVES_MIN):
    """The interval of how many times faster it is now, from the rounds of both times. `lives`: the fewest processes of
    either; of too few the interval is unknown.

    >>> change([2.0, 2.0, 2.0], [1.0, 1.0, 1.0]), change([2.0, 2.0, 2.0], [1.0, 1.0, 1.0], lives=2)
    ([2.0, 2.0, 2.0], [2.0, None, None])
    """
    def times_faster(before, now):
        return max(stats.median(before), 1e-12) / max(stats.median(now), 1e-12)
    if lives < stats.LIVES_MIN:
        return [times_faster(before, now), None, None]
    return stats.bootstrap(times_faster, before, now, draws=1000)


def is_latency(row):
    return row.startswith(cells.TRIPS) or (row.startswith("echo") and "load" in row)


def compare_row(before, now):
    """{"suite", "row", "change", "noise", "verdict"}: faster, slower or same."""
    lives = min(each.get("lives", 0) for each in (before, now))  # a report of before that has none knew of none
    ours = change(before["samples"][before["ours"]], now["samples"][now["ours"]], lives)
    rivals = [name for name in now["samples"] if name in before["samples"] and not name.startswith("weft")
              and name not in (now["ours"], before["ours"])]
    noise = max((abs(change(before["samples"][name], now["samples"][name])[0] - 1) for name in rivals), default=0.0)
    least = stats.LATENCY_LEAST if is_latency(now["row"]) else stats.THROUGHPUT_LEAST
    return {"suite": now["suite"], "row": now["row"], "change": ours, "noise": noise,
            "verdict": stats.verdict_of_change(ours, noise, least)}


def compare_all(baseline, now):
    """One for each row of both reports that is not void and was measured on cores that stood alike."""
    found = []
    for name in dict.fromkeys((result["suite"], result["row"]) for result in now["results"]):
        before, after = results.best(baseline["results"], *name), results.best(now["results"], *name)
        if before is None or "void" in before or "void" in after:
            continue
        if before["placement"] == after["placement"] and before["ours"] in before["samples"]:
            found.append({**compare_row(before, after), "before": before, "now": after})
    return found
