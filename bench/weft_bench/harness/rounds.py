# SPDX-License-Identifier: MIT
"""Measures one cell: every column in turns, each in a process of its own, a new one every few rounds."""

import contextlib
import dataclasses
import os
import pathlib
import resource
import sys
import time

from weft_bench import stats
from weft_bench.harness import cells
from weft_bench.harness.child import Child, ChildError, Libraries, count_by_strace
from weft_bench.stats import in_turns

PYZMQ_CHILD = pathlib.Path(__file__).with_name("pyzmq_child.py")
COUNT_MIN, COUNT_MAX, TRIPS_MAX = 100, 100_000_000, 100_000
BURSTS_MIN = 5  # a burst takes milliseconds
STRACE_COUNT, STRACE_TRIPS = 10_000, 500  # every call costs tens of microseconds there
ROUNDS_MIN = 5  # of a cell that takes longer than it should
TRIES = 3  # of a row around which the controls moved
CONTROL_SAMPLES = 3  # of a measurement of the controls


@dataclasses.dataclass
class Effort:
    """How long things take."""

    warm_up_s: float = 0.5  # per column, while the number of messages is found
    repetition_s: float = 0.06  # one timed repetition
    rounds: int = 20  # until so many rounds stood between equal probes ...
    rounds_max: int = 40  # ... or so many were run
    rounds_of_storms: int = 7  # connect_storm and idle_memory take as long as they take
    ping_pongs: int = 1000  # 20 times this many per probe
    cell_s: float = 60  # no new round after so long
    strace: bool = True  # where the kernel does not count system calls
    rounds_of_a_life: int = 2  # until every column is a new process: where its memory and threads lie is luck


QUICK = Effort(0.15, 0.05, 10, 16, 5, 250, 20, False)
TINY = Effort(0.002, 0.001, 2, 2, 1, 20, 5, False, 1)


@dataclasses.dataclass
class Setup:
    program: pathlib.Path  # bench_sockets
    libraries: Libraries
    effort: Effort
    processes: bool = False
    nng: bool = False
    rivals: tuple = ()  # further libraries of `libraries`

    def child(self, column, extra=(), env=None):
        """(program, arguments, environment) of a process that runs the cell of a column."""
        _, engine, library, name = column
        if engine in cells.PYTHON:
            cell = cells.parse(name)
            arguments = ["-B", str(PYZMQ_CHILD), "--api", engine, "--transport", cell["transport"],
                         "--size", str(cell["size"])]
            return sys.executable, arguments, self.libraries.preload(library)
        arguments = ["--cell", name, "--engine", engine, "--ping-pongs", str(self.effort.ping_pongs), *extra]
        arguments += ["--processes"] if self.processes else []
        return self.program, arguments, self.libraries.environment(library) | (env or {})


class Column:
    """One column of a cell while it is measured."""

    built = None  # how a rival was built, where that is known

    def __init__(self, setup, column):
        self.setup = setup
        self.name, self.engine, self.library, cell = column
        self.column = column
        self.cell = cells.parse(cell)
        self.child = None
        self.count = self.count_min = (
            1 if self.cell["rest"] else BURSTS_MIN if self.cell["pattern"] == "burst" else COUNT_MIN)
        self.interval_ns = 0
        self.version = ""
        self.path = str(setup.libraries.files[self.library]) if self.on_libzmq() else ""
        if self.on_libzmq():
            self.built = setup.libraries.built.get(self.library)

    def on_libzmq(self):
        """Whether it runs on one of the two libraries that are compared."""
        return self.engine == "zmq" or self.engine in cells.PYTHON

    def start(self, stack):
        self.child = stack.enter_context(Child(*self.setup.child(self.column)))
        ready = self.child.answer()
        self.version = ready["version"]
        if self.on_libzmq():
            self.setup.libraries.check(self.library, ready)

    def warm_up(self):
        """Verifies every byte once; then grows the count until a repetition takes as long as it should."""
        self.child.run(self.count_min if self.cell["size"] < 65536 else min(self.count_min, 10), verify_all=True)
        self.grow_count(self.count_min, TRIPS_MAX if self.cell["pattern"] in cells.TRIPS else COUNT_MAX)

    def grow_count(self, least, most):
        spent = 0
        while True:
            seconds = max(self.child.run(self.count)["seconds"], 1e-9)
            spent += seconds
            if spent >= self.setup.effort.warm_up_s:
                break
            wanted = min(self.setup.effort.repetition_s / seconds, 4) * self.count
            self.count = int(min(max(wanted, least), most))
        wanted = self.setup.effort.repetition_s / seconds * self.count
        self.count = int(min(max(min(wanted, 4 * self.count), least), most))

    def load_at(self, rate):
        """From now on a request is due at this rate."""
        self.interval_ns = round(1e9 / rate)
        self.count = max(int(self.setup.effort.repetition_s * rate), COUNT_MIN)

    def rate(self):
        """Round trips per second in a closed loop."""
        rates = [self.count / self.child.run(self.count)["seconds"] for _ in range(3)]
        return stats.median(rates)

    def repeat(self):
        return self.child.run(self.count, self.interval_ns)

    def finish(self):
        """Ends the child; the records of what it counted in the meantime."""
        self.child.finish()
        return []

    def record_of_counts(self, cell):
        """System calls and allocations of one repetition, from a child that is not timed."""
        preload = self.setup.program.parent / "libbench_allocations.so"
        env = {"LD_PRELOAD": str(preload)} if preload.exists() else {}
        with Child(*self.setup.child(self.column, ["--counting"], env)) as child:
            child.answer()
            if self.cell["pattern"] != "connect_storm":
                child.count(self.count)  # what is allocated once is there
            counts = child.count(self.count)
            child.finish()
        by = "perf" if counts["syscalls"] is not None else None
        per_message = {"syscalls": counts["syscalls"], "allocations": counts["allocations"]}
        per_message = {key: value and value / counts["messages"] for key, value in per_message.items()}
        if by is None and self.setup.effort.strace:
            most = STRACE_TRIPS if self.cell["pattern"] in cells.TRIPS else STRACE_COUNT
            count = self.cell["times"] if self.cell["pattern"] == "connect_storm" else min(self.count, most)
            calls = count_by_strace(*self.setup.child(self.column), count)
            if calls is not None:
                by = "strace"
                receivers = 1 if self.cell["pattern"] == "connect_storm" else self.cell["times"]
                per_message["syscalls"] = calls / count / receivers
        return {"kind": "count", "cell": cell, "column": self.name, "syscalls_by": by, **per_message}


def slow_down(columns, load):
    """The same rate for all: `load` per cent of what the slowest can do."""
    rate = min(column.rate() for column in columns) * load / 100
    for column in columns:
        column.load_at(rate)


def run_record(cell, number, column, run):
    return {"kind": "run", "cell": cell, "round": number, "column": column.name, **run}


def run_in_turns(columns, name, effort, records, storms, renew):
    """Rounds until enough of them stood between equal probes; (rounds, how many those were). `renew` is called when the
    columns have lived for so many rounds."""
    agreed = number = 0
    wanted, most = (effort.rounds_of_storms,) * 2 if storms else (effort.rounds, effort.rounds_max)
    start = time.monotonic()
    while agreed < wanted and number < most:
        life, age = divmod(number, effort.rounds_of_a_life)
        if life > 0 and age == 0:
            renew()
        runs = [(column, column.repeat()) for column in in_turns(columns, number)]
        for column, run in runs:
            extra = {"interval_ns": column.interval_ns} if column.interval_ns else {}
            records.append(run_record(name, number, column, {**run, **extra, "life": life}))
        agreed += stats.placement_of([run for _, run in runs]) in ("near", "far")
        number += 1
        if time.monotonic() - start > effort.cell_s and number >= ROUNDS_MIN:
            break
    return number, agreed


def started(setup, name, stack, records):
    """The columns of a cell, each verified once. A rival that cannot run the cell is a failure of its column alone."""
    columns = []
    for each in cells.columns_of(name, setup.nng, setup.rivals):
        column = Column(setup, each)
        try:
            column.start(stack)
            if column.cell["pattern"] != "connect_storm":
                column.warm_up()
        except ChildError as error:
            if column.name not in (*cells.RIVALS, "nng"):
                raise
            records.append({"kind": "failure", "cell": name, "column": column.name, "why": str(error)})
            continue
        columns.append(column)
    return columns


def measure_rounds(setup, name, records):
    with contextlib.ExitStack() as stack:
        columns = started(setup, name, stack, records)
        storms = columns[0].cell["pattern"] == "connect_storm"
        load = columns[0].cell["load"]
        if load:
            slow_down(columns, load)

        def renew():
            for column in columns:
                column.finish()
                column.start(stack)
                if not storms:
                    column.repeat()
        number, agreed = run_in_turns(columns, name, setup.effort, records, storms, renew)
        for column in columns:
            column.finish()
    if not load:
        records += [column.record_of_counts(name) for column in columns if column.engine == "zmq"]
    return columns, number, agreed


def measure_apart(columns, name, effort, records):
    """A new process for each repetition: what was allocated before is not given back."""
    rounds = effort.rounds_of_storms
    for number in range(rounds):
        for column in in_turns(columns, number):
            with contextlib.ExitStack() as stack:
                column.start(stack)
                records.append(run_record(name, number, column, {**column.child.run(1), "life": number}))
                records += column.finish()
    return columns, rounds, rounds


def busy_and_stolen():
    """CPU seconds of the whole machine since it started, but idle ones; see proc(5)."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    per_second = os.sysconf("SC_CLK_TCK")
    return (sum(ticks[:3]) + sum(ticks[5:8])) / per_second, ticks[7] / per_second


def own_seconds():
    usages = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measure_cell(setup, name):
    """All records of one cell; a failure is a record too."""
    cell = cells.parse(name)
    if not {library for _, _, library, _ in cells.columns_of(name)} <= setup.libraries.files.keys():
        return [{"kind": "skip", "cell": name, "why": "no libzmq with WebSocket: ./dev compat ws builds one"}]
    if cell["pattern"] == "idle_memory":
        columns = [Column(setup, column) for column in cells.columns_of(name)]
        return record_cell(name, cell, lambda records: measure_apart(columns, name, setup.effort, records))
    found = record_cell(name, cell, lambda records: measure_rounds(setup, name, records))
    if found[-1]["kind"] == "failure" and setup.rivals:  # perhaps theirs
        alone = dataclasses.replace(setup, rivals=(), nng=False)
        return [{**found[-1], "column": "rivals"}, *record_cell(name, cell, lambda records: measure_rounds(alone, name, records))]
    return found


def record_cell(name, cell, measure):
    """What `measure` adds to its records and, from the columns, rounds and agreed rounds that it returns, the rest."""
    records = []
    before, own = busy_and_stolen(), own_seconds()
    try:
        columns, rounds, agreed = measure(records)
    except (ChildError, OSError, ValueError) as error:
        return [{"kind": "failure", "cell": name, "why": str(error)}]
    after = busy_and_stolen()
    records += [{"kind": "library", "name": column.name, "version": column.version, "path": column.path,
                 **({"built": column.built} if column.built else {})}
                for column in columns]
    records.append({
        "kind": "cell", "cell": name, "pattern": cell["pattern"], "size": cell["size"], "rounds": rounds,
        "agreed": agreed, "busy_seconds": after[0] - before[0], "own_seconds": own_seconds() - own,
        "stolen_seconds": after[1] - before[1]})
    return records


def middle_controls(samples):
    """The last record of the controls, with the middle of each control: a moment in which the machine stood still is no move.

    >>> middle_controls([{"futex_us": 2.0, "busy_seconds": 1.0}, {"futex_us": 90.0}, {"futex_us": 2.1, "busy_seconds": 3.0}])
    {'futex_us': 2.1, 'busy_seconds': 3.0}
    """
    names = [name for name in samples[-1] if name.endswith(stats.CONTROL_UNITS)]
    return {**samples[-1], **{name: stats.median([each[name] for each in samples]) for name in names}}


def measure_controls(program):
    def sample():
        with Child(program, ["--controls"]) as child:
            return child.answer()
    try:
        return [middle_controls([sample() for _ in range(CONTROL_SAMPLES)])]
    except (ChildError, OSError) as error:
        return [{"kind": "failure", "cell": "controls", "why": str(error)}]


def measure_between(measure, before, program, tries=TRIES):
    """The records of measure() between the controls `before` and those after it: anew where they moved, until the last try."""
    for left in reversed(range(tries)):
        found, after = measure(), measure_controls(program)
        if left == 0 or not stats.moved_controls([*before, *after]):
            return [*before, *found, *after]
        before = after


def one_by_one(names, measure, records, say):
    """Adds the records of measure(name) for each name, and says after each how long the others take."""
    start = time.monotonic()
    for number, name in enumerate(names, 1):
        new = measure(name)
        records += new
        left = (time.monotonic() - start) / number * (len(names) - number)
        why = next((f"{word}: {record['why']}" for record in new
                    for word in [{"failure": "FAILED", "skip": "skipped"}.get(record["kind"])] if word), "done")
        say(f"[{number:2}/{len(names)}] {name:32} {why}, {left:3.0f} s left")


def measure_all(names, measure, records, controls, say):
    """Adds the records of all cells, between two of what the program `controls` can do without any library."""
    records += measure_controls(controls)
    one_by_one(names, measure, records, say)
    records += measure_controls(controls)


def setup_record(suite, effort, **more):
    return {"kind": "setup", "suite": suite, **more, "cpus": len(os.sched_getaffinity(0)),
            "effort": dataclasses.asdict(effort)}
