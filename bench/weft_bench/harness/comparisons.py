# SPDX-License-Identifier: MIT
"""Rows of two versions, each measured in turns until the gate can tell whether it is slower, or its time is over.

Rounds are compared with rounds in which the two processors stood alike: a virtual machine moves them, for some seconds each
time, and a line of memory then takes four times as long from the one to the other."""

import time

from weft_bench import stats

ORDER = ("old", "new", "old again")
VISIT_ROUNDS = 3  # of a row, before another row has its turn; columns that live longer than a repetition are new processes
PLACES = {"near": "near", "between": "apart", "far": "apart", "shared": "shared", "unknown": "unknown"}  # of stats.placement
BUSY = 0.93  # of the time, a server that its load keeps busy computes
WAITING = ", waiting"  # after the place of a round whose servers did not
MIXED = "mixed"  # the place of a round whose runs stood differently, and of a row whose rounds did


def numbers_of(visit):
    """
    >>> list(numbers_of(1))
    [3, 4, 5]
    """
    return range(visit * VISIT_ROUNDS, (visit + 1) * VISIT_ROUNDS)


def place_of(runs):
    """How the processors stood in each run of a round. The scheduler parts two threads that begin on one processor within
    milliseconds, so that they were together before a run says nothing.

    >>> place_of([{"before_ns": 70, "after_ns": 75}, {"before_ns": 9000, "after_ns": 80}, {"before_ns": 70, "after_ns": 66}])
    'near'
    >>> place_of([{"before_ns": 70, "after_ns": 75}, {"before_ns": 70, "after_ns": 320}])
    'mixed'
    >>> place_of([{"before_ns": 320, "after_ns": 410}]), place_of([{}, {}])
    ('apart', 'unknown')
    """
    def places(when):
        return {PLACES[stats.placement(run.get(when))] for run in runs}
    seen = places("after_ns") | (places("before_ns") - {"shared"})
    return seen.pop() if len(seen) == 1 else MIXED


def place_of_servers(runs):
    """How the processors stood in each run of a round of servers, and whether the servers waited for the load: one that has time
    left answers as fast with a delay as without.

    >>> near = {"before_ns": 70, "after_ns": 75, "seconds": 1.0}
    >>> busy, waiting = {**near, "cpu_seconds": 0.97}, {**near, "cpu_seconds": 0.86}
    >>> place_of_servers([busy, busy]), place_of_servers([waiting, waiting]), place_of_servers([waiting, busy])
    ('near', 'near, waiting', 'mixed')
    """
    place = place_of(runs)
    waited = {run["cpu_seconds"] < BUSY * run["seconds"] for run in runs}
    if place == MIXED or len(waited) > 1:
        return MIXED
    return place + WAITING if waited.pop() else place


def order_of(visit):
    """The order of the versions in all rounds of a visit, so that each rests equally long between its repetitions: what ran a
    moment ago is faster. Each is the first one in every third visit.

    >>> order_of(0), order_of(1)
    (('old', 'new', 'old again'), ('new', 'old again', 'old'))
    """
    first = visit % len(ORDER)
    return ORDER[first:] + ORDER[:first]


def round_of(visit, once, cost, life, place=place_of):
    """A round as Comparison wants it. once(which): the run of a version; cost(run): what it cost; place(runs): where."""
    runs = {which: once(which) for which in order_of(visit)}
    return {**{which: cost(run) for which, run in runs.items()}, "life": life, "place": place(runs.values())}


class Comparison:
    """One row. `measure(visit)` gives the rounds of a visit, [{"old", "new", "old again": a cost, "life", "place"}, ...]."""

    def __init__(self, name, measure, warns=stats.GATE_WARNS, fails=stats.GATE_FAILS):
        self.name, self.measure = name, measure
        self.warns, self.fails = warns, fails
        self.visits = 0
        self.rounds = []
        self.result = None

    def often(self):
        """The rounds of the place that was seen most often."""
        places = {}
        for each in self.rounds:
            places.setdefault(each["place"], []).append(each)
        places.pop(MIXED, None)
        return max(places.values(), key=len, default=[])

    def counted(self):
        """The rounds by which it is judged: all, where no place was seen often enough."""
        often = self.often()
        return often if len(often) >= stats.GATE_ROUNDS else self.rounds

    def judge(self):
        rounds = self.counted()
        places = {each["place"] for each in rounds}
        self.result = {**stats.compare_versions(rounds, self.warns, self.fails), "rounds": len(rounds),
                       "place": places.pop() if len(places) == 1 else MIXED}

    def visit(self):
        self.rounds += self.measure(self.visits)
        self.visits += 1

    def reach(self, rounds):
        """So many rounds in one place; twice as many where the processors move."""
        while len(self.often()) < rounds and len(self.rounds) < 2 * rounds:
            self.visit()
        self.judge()

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
            each.judge()
            if not each.is_open:
                say("[more rounds]", each)
            if clock() >= end:
                break
        left = [each for each in left if each.is_open]
