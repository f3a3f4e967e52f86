# SPDX-License-Identifier: MIT
"""Rows of two versions, each measured in turns until the gate can tell whether it is slower, or its time is over."""

import time

from weft_bench import stats

VISIT_ROUNDS = 5  # of a row, before another row has its turn; columns that live longer than a repetition are new processes


def numbers_of(visit):
    """
    >>> list(numbers_of(1))
    [5, 6, 7, 8, 9]
    """
    return range(visit * VISIT_ROUNDS, (visit + 1) * VISIT_ROUNDS)


class Comparison:
    """One row. `measure(visit)` gives the rounds of a visit, [{"old", "new", "old again": a cost, "life"}, ...]."""

    def __init__(self, name, measure, warns=stats.GATE_WARNS, fails=stats.GATE_FAILS):
        self.name, self.measure = name, measure
        self.warns, self.fails = warns, fails
        self.visits = 0
        self.rounds = []
        self.result = None

    def visit(self, judge=True):
        self.rounds += self.measure(self.visits)
        self.visits += 1
        if judge:
            self.result = stats.compare_versions(self.rounds, self.warns, self.fails)

    def reach(self, rounds):
        while len(self.rounds) < rounds:
            self.visit(judge=False)
        self.result = stats.compare_versions(self.rounds, self.warns, self.fails)

    def begin(self):
        """The fewest rounds, whatever time they take; as many again to confirm what looks slower."""
        self.reach(stats.GATE_ROUNDS)
        if self.result["suspected"]:
            self.reach(2 * stats.GATE_ROUNDS)

    @property
    def is_open(self):
        return self.result["verdict"] == stats.CANNOT_TELL


def measure_all(comparisons, budget_s, say, clock=time.monotonic):
    """Begins every row, then goes round those of which it cannot tell, until it can tell of all or `budget_s` seconds are
    over. `say(progress, comparison)` is called where a row was begun, and where it could be told of later."""
    for number, each in enumerate(comparisons, 1):
        each.begin()
        say(f"[{number}/{len(comparisons)}]", each)
    end = clock() + budget_s
    left = [each for each in comparisons if each.is_open]
    while left and clock() < end:
        for each in left:
            each.visit()
            if not each.is_open:
                say("[more rounds]", each)
            if clock() >= end:
                break
        left = [each for each in left if each.is_open]
