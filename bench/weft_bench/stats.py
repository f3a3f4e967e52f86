# SPDX-License-Identifier: MIT
"""All statistics: medians, their bootstrap intervals, quantiles of histograms, verdicts and alarms.

An interval is [middle, low, high]: a median, and the ends of its 95 % interval. Low and high are None where the interval is
unknown: no verdict, no alarm and no bar follows from it."""

import bisect
import itertools
import math
import random
import statistics

LIVES_MIN = 3  # from fewer processes of a column the difference between processes cannot be estimated
# The smallest slowdown that is an alarm, as the published baselines had it.
THROUGHPUT_LEAST, LATENCY_LEAST = 0.05, 0.10
# The slowdowns from which the gate warns and fails, and the fewest rounds of a row: twice as many where it is slower.
GATE_WARNS, GATE_FAILS = 0.05, 0.10
GATE_ROUNDS, GATE_DRAWS = 15, 400
SLOWER, NOT_SLOWER, CANNOT_TELL = "slower", "not slower", "cannot tell"  # what the gate says
NEAR_BELOW_NS, FAR_FROM_NS, SHARED_FROM_NS = 280, 350, 1500  # of a cache line's way there and back

CONTROLS_MOVED = 0.25  # between the measurements of a control: the rows between them are void
CONTROL_UNITS = ("_ns", "_us")  # the ends of the names of the controls; other members of their records are none

median = statistics.median


def bootstrap(statistic, *samples, lives=(), draws=2000):
    """The interval of a statistic of one or more independent samples; equal samples always give an equal interval.

    `lives` names the process behind each value of a single sample. The bootstrap then draws processes first, and values
    of the drawn processes after that; of fewer than LIVES_MIN processes the interval is unknown.

    >>> bootstrap(median, [2.0] * 9)
    [2.0, 2.0, 2.0]
    >>> bootstrap(median, [1.0] * 5 + [2.0] * 4, lives=[0] * 5 + [1] * 2 + [2] * 2)
    [1.0, 1.0, 2.0]
    >>> bootstrap(median, [1.0, 2.0, 3.0, 4.0], lives=[0, 0, 1, 1])
    [2.5, None, None]
    >>> middle, low, high = bootstrap(median, [1.0, 1.1, 0.9, 1.0, 1.2, 0.8, 1.0, 1.1, 0.9])
    >>> low < 1 < high
    True
    >>> bootstrap(lambda before, now: median(before) / median(now), [2.0, 2.0, 2.0], [1.0, 1.0])
    [2.0, 2.0, 2.0]
    """
    source = random.Random(1)
    groups = [[value for value, its in zip(samples[0], lives) if its == life] for life in sorted(set(lives))]

    if lives and len(groups) < LIVES_MIN:
        return [statistic(*samples), None, None]

    def draw():
        if not lives:
            return [source.choices(sample, k=len(sample)) for sample in samples]
        drawn = source.choices(groups, k=len(groups))
        return [[value for group in drawn for value in source.choices(group, k=len(group))]]
    drawn = sorted(statistic(*draw()) for _ in range(draws))
    return [statistic(*samples), drawn[int(draws * 0.025)], drawn[int(draws * 0.975) - 1]]


def of_rounds(rounds, measure):
    """The interval of the median over rounds of measure({column: run}), or None where a round has no value.

    >>> of_rounds([{"raw": {"n": 3, "life": life}} for life in range(5)], lambda round: round["raw"]["n"])
    [3, 3, 3]
    >>> of_rounds([{"raw": {"n": 3}}] * 5, lambda round: round["raw"]["n"])
    [3, None, None]
    """
    values = [measure(each) for each in rounds]
    if None in values:
        return None
    return bootstrap(median, values, lives=lives_of(rounds))


def lives_of(rounds):
    """The process of each round; all columns are renewed together. Runs that name none were of one process."""
    return [next(iter(each.values())).get("life", 0) for each in rounds]


def ratio(rounds, measure, above, below):
    """The interval of measure(run of `above`) / measure(run of `below`) in a round; None where a divisor is 0."""
    def of(each):
        divisor = measure(each[below])
        return measure(each[above]) / divisor if divisor > 0 else None
    return of_rounds(rounds, of)


def inverse(interval):
    """
    >>> inverse([2.0, 1.0, 4.0])
    [0.5, 0.25, 1.0]
    >>> inverse([2.0, None, None])
    [0.5, None, None]
    """
    middle, low, high = interval
    return [1 / middle, high and 1 / high, low and 1 / low]


def is_unknown(interval):
    return interval[1] is None


class Pool:
    """The histograms of one column in some rounds, together. A histogram is [[lower end of a bucket, count], ...].

    >>> pool = Pool([[[10, 98], [20, 1]], [[30, 1]]])
    >>> pool.quantile(0.99), pool.quantile(1), pool.quantile(1, [0, 0])
    (20, 30, 20)
    >>> pool.merged()
    [[10, 98], [20, 1], [30, 1]]
    """

    def __init__(self, histograms):
        counts = [dict(map(tuple, histogram)) for histogram in histograms]
        self.levels = sorted({low for histogram in counts for low in histogram})
        self.cumulative = [list(itertools.accumulate(histogram.get(low, 0) for low in self.levels))
                           for histogram in counts]

    def up_to(self, level, rounds=None):
        numbers = range(len(self.cumulative)) if rounds is None else rounds
        return sum(self.cumulative[number][level] for number in numbers)

    def quantile(self, share, rounds=None):
        """Of the named rounds, all by default; a round may be named more than once."""
        last = len(self.levels) - 1
        wanted = share * self.up_to(last, rounds)
        found = bisect.bisect_left(range(last), wanted, key=lambda level: self.up_to(level, rounds))
        return max(self.levels[found], 1)

    def merged(self):
        """One histogram of all rounds."""
        totals = [self.up_to(level) for level in range(len(self.levels))]
        return [[low, total - before] for low, total, before in zip(self.levels, totals, [0, *totals])]


def verdict(interval):
    """A win or a loss is claimed only where the interval excludes 1; above 1 Weft is faster.

    >>> verdict([1.3, 1.2, 1.4]), verdict([1, 0.9, 1.1]), verdict([0.6, 0.5, 0.7])
    ('faster', 'same', 'slower')
    >>> verdict([1.3, None, None])
    'unknown'
    """
    if is_unknown(interval):
        return "unknown"
    return "faster" if interval[1] > 1 else "slower" if interval[2] < 1 else "same"


def is_alarm(slowdown, noise, least):
    """Whether a slowdown is certain, at least `least`, and larger than `noise`, the change of what should not change.

    >>> is_alarm([1.10, 1.08, 1.12], 0.02, 0.05), is_alarm([1.10, 0.99, 1.2], 0.02, 0.05)
    (True, False)
    >>> is_alarm([1.04, 1.03, 1.05], 0.02, 0.05), is_alarm([1.10, 1.08, 1.12], 0.15, 0.05)
    (False, False)
    >>> is_alarm([1.10, None, None], 0.02, 0.05)
    False
    """
    middle, low, _ = slowdown
    return low is not None and low > 1 and middle >= 1 + least and middle - 1 > noise


def verdict_of_change(speedup, noise, least):
    """The verdict of a version beside an earlier one.

    >>> verdict_of_change([0.8, 0.7, 0.9], 0.0, 0.05), verdict_of_change([1.02, 1.01, 1.03], 0.0, 0.05)
    ('slower', 'same')
    """
    if is_alarm(inverse(speedup), noise, least):
        return "slower"
    return "faster" if is_alarm(speedup, noise, least) else "same"


def noise_of(interval):
    """How far from 1 an interval reaches; an unknown one may reach anywhere.

    >>> noise_of([1.0, 0.75, 1.125]), noise_of([1.0, None, None])
    (0.25, inf)
    """
    return math.inf if is_unknown(interval) else max(abs(bound - 1) for bound in interval)


def moved_controls(controls):
    """{name: (low, high)} of the controls that moved while the rows between them were measured.

    >>> moved_controls([{"futex_us": 1.85, "getppid_ns": 86.0}, {"futex_us": 63.0, "getppid_ns": 90.0}])
    {'futex_us': (1.85, 63.0)}
    >>> moved_controls([{"futex_us": 2.0}, {"futex_us": 0.0}, {}])
    {}
    >>> moved_controls([{"kind": "controls", "busy_seconds": 1.0}, {"kind": "controls", "busy_seconds": 9.0}])
    {}
    """
    found = {}
    for name in dict.fromkeys(name for each in controls for name in each if name.endswith(CONTROL_UNITS)):
        values = [each[name] for each in controls if each.get(name)]
        if values and max(values) > min(values) * (1 + CONTROLS_MOVED):
            found[name] = min(values), max(values)
    return found


def placement(probe_ns):
    """How the two sides stood to each other. None: they were not probed.

    >>> [placement(ns) for ns in (60, 300, 480, 4000, None)]
    ['near', 'between', 'far', 'shared', 'unknown']
    """
    if probe_ns is None:
        return "unknown"
    return ("near" if probe_ns < NEAR_BELOW_NS else "between" if probe_ns <= FAR_FROM_NS else
            "far" if probe_ns < SHARED_FROM_NS else "shared")


def placement_of(runs):
    """What all probes of a round agree on, or "mixed"."""
    seen = {placement(run.get(when)) for run in runs for when in ("before_ns", "after_ns")}
    return seen.pop() if len(seen) == 1 else "mixed"


def in_turns(columns, number):
    """The order of the columns in a round: every other round goes backwards, so a drift hits all columns."""
    return columns if number % 2 == 0 else columns[::-1]


def judge(slowdown, noise, fails):
    """What the interval of a slowdown says. `noise` is how far the old version differs from itself.

    A row is slower where that is certain, at least `fails` and more than the noise. It is not slower where less than
    `fails` is certain and the noise is less than that too, or where it is faster by more than the noise.

    >>> judge([1.3, 1.2, 1.4], 0.02, 0.1), judge([1.01, 0.98, 1.04], 0.02, 0.1), judge([1.05, 0.95, 1.15], 0.02, 0.1)
    ('slower', 'not slower', 'cannot tell')
    >>> judge([1.3, 1.2, 1.4], 0.35, 0.1), judge([1.01, 0.98, 1.04], 0.2, 0.1), judge([0.6, 0.5, 0.7], 0.2, 0.1)
    ('cannot tell', 'cannot tell', 'not slower')
    >>> judge([1.3, None, None], 0.02, 0.1)
    'cannot tell'
    """
    if is_unknown(slowdown):
        return CANNOT_TELL
    if is_alarm(slowdown, noise, fails):
        return SLOWER
    high = slowdown[2]
    return NOT_SLOWER if (high < 1 + fails and noise < fails) or high < 1 - noise else CANNOT_TELL


def compare_versions(rounds, warns=GATE_WARNS, fails=GATE_FAILS):
    """What rounds {"old", "new", "old again": a cost, "life"} say: {"slowdown", "noise", "verdict", "warning", "suspected"}.

    A row that looks slower is suspected. It is slower when it has twice the fewest rounds, and each half of them alone
    says so too. A warning is a certain slowdown of at least `warns`, more than the noise, of a row that is not slower."""
    def interval(which, some):
        return bootstrap(median, [each[which] / each["old"] for each in some], lives=[each["life"] for each in some],
                         draws=GATE_DRAWS)

    def intervals(some):
        return interval("new", some), noise_of(interval("old again", some))
    slowdown, noise = intervals(rounds)
    verdict_now, half = judge(slowdown, noise, fails), len(rounds) // 2
    suspected = verdict_now == SLOWER
    if suspected and not (half >= GATE_ROUNDS and all(
            judge(*intervals(some), fails) == SLOWER for some in (rounds[:half], rounds[half:]))):
        verdict_now = CANNOT_TELL
    return {"slowdown": slowdown, "noise": noise, "verdict": verdict_now, "suspected": suspected,
            "warning": verdict_now == NOT_SLOWER and is_alarm(slowdown, noise, warns)}


def verdict_of_all(verdicts):
    """The verdict of all rows together.

    >>> verdict_of_all(["not slower", "cannot tell", "slower"]), verdict_of_all(["not slower", "cannot tell"])
    ('slower', 'cannot tell')
    >>> verdict_of_all([])
    'not slower'
    """
    return next((each for each in (SLOWER, CANNOT_TELL) if each in verdicts), NOT_SLOWER)
