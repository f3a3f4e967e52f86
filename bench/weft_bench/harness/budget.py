# SPDX-License-Identifier: MIT
"""A time for a whole run, shared out among its rows. A late run measures fewer rounds of each row and leaves out rows that
are not needed."""

import dataclasses
import time


LEAST_SHARE = 0.7  # of the time of all rounds that the fewest rounds take


@dataclasses.dataclass(frozen=True)
class Row:
    """One row to measure. Rows that are not needed are measured last, when there is time."""

    name: str
    planned_s: float  # with all its rounds, on a quiet machine of two cores
    needed: bool = True


class Budget:
    """Seconds for a list of (suite, Row) in order. Without seconds nothing is cut.

    How long the rows of a suite take, beside what was planned for them, is learnt from those that were measured.

    >>> now = [0.0]
    >>> rows = [("a", Row("x", 4.0)), ("a", Row("y", 4.0)), ("a", Row("z", 4.0, False))]
    >>> budget = Budget(rows, 12.0, lambda: now[0])
    >>> budget.begin(), budget.expected_left()
    (6.0, 12.0)
    >>> now[0] = 8.0; budget.end()
    >>> budget.begin(), budget.expected_left()
    (4.0, 16.0)
    >>> now[0] = 12.0; budget.end()
    >>> budget.begin() is None
    True
    """

    def __init__(self, rows, seconds=None, clock=time.monotonic):
        self.rows, self.seconds, self.clock = list(rows), seconds, clock
        self.start = self.begun = clock()
        self.next = 0
        self.planned, self.spent = {}, {}  # by suite, of what was measured

    def expected(self, entry):
        suite, row = entry
        known = [suite] if suite in self.planned else self.planned  # of another suite until this one has begun
        planned = sum(self.planned[name] for name in known)
        return row.planned_s * (sum(self.spent[name] for name in known) / planned if planned else 1)

    def expected_left(self):
        """Seconds that the rows from the current one on take when nothing is cut."""
        return sum(map(self.expected, self.rows[self.next:]))

    def left(self):
        """Seconds from now to the end, as well as it is known."""
        if self.seconds is None:
            return self.expected_left()
        needed = sum(self.expected(entry) for entry in self.rows[self.next:] if entry[1].needed)
        return max(min(self.expected_left(), self.start + self.seconds - self.clock()), needed * LEAST_SHARE)

    def begin(self):
        """Seconds that the next row may take, or None: it is left out. Endless without a budget."""
        self.begun = self.clock()
        if self.seconds is None:
            return float("inf")
        entry = self.rows[self.next]
        expected, left = self.expected(entry), self.start + self.seconds - self.begun
        if not entry[1].needed:
            return left if left >= expected else None
        needed = sum(self.expected(other) for other in self.rows[self.next:] if other[1].needed)
        return max(left, 0) * expected / needed

    def end(self, measured=True):
        """The row that was begun is done."""
        suite, row = self.rows[self.next]
        self.next += 1
        if measured:
            self.planned[suite] = self.planned.get(suite, 0) + row.planned_s
            self.spent[suite] = self.spent.get(suite, 0) + self.clock() - self.begun
