# SPDX-License-Identifier: MIT
"""Whether a new version is slower than an old one: both in turns, beside the old one against itself, and twice."""

import statistics

from harness import summary

# The smallest change worth failing on, as the published baselines had it.
THROUGHPUT_LEAST, LATENCY_LEAST = 0.05, 0.10
ROUNDS = 15


def change(rounds, above, below):
    """(middle, low, high) of a cost over another of the same round: above 1 is slower."""
    return summary.bootstrap([each[above] / each[below] for each in rounds], statistics.median)


def is_alarm(slowdown, floor, least):
    """Slower for sure, by more than is worth failing on, and by more than the old version differs from itself.

    >>> is_alarm((1.10, 1.08, 1.12), (1.0, 0.98, 1.02), 0.05), is_alarm((1.10, 0.99, 1.2), (1.0, 0.98, 1.02), 0.05)
    (True, False)
    >>> is_alarm((1.04, 1.03, 1.05), (1.0, 0.99, 1.01), 0.05), is_alarm((1.10, 1.08, 1.12), (1.02, 0.9, 1.15), 0.05)
    (False, False)
    """
    middle, low, _ = slowdown
    noise = max(abs(bound - 1) for bound in floor)
    return low > 1 and middle >= 1 + least and middle - 1 > noise


def measure_rounds(once, rounds):
    """once(which) gives a cost of "old", "new" or "old again"; every other round goes backwards."""
    order = ("old", "new", "old again")
    taken = []
    for number in range(rounds):
        taken.append({which: once(which) for which in (order if number % 2 == 0 else order[::-1])})
    return taken


def compare(once, least, rounds=ROUNDS):
    """{"slowdown", "floor", "alarm"}: an alarm is one only when a second run, of its own, says it too."""
    result = None
    for _ in range(2):
        taken = measure_rounds(once, rounds)
        slowdown, floor = change(taken, "new", "old"), change(taken, "old again", "old")
        result = {"slowdown": slowdown, "floor": floor, "alarm": is_alarm(slowdown, floor, least)}
        if not result["alarm"]:
            break
    return result
