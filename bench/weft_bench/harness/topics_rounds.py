# SPDX-License-Identifier: MIT
"""Measures one cell of topics: every column in turns, in processes of its own, with a Redis of its own where it has one."""

import contextlib
import dataclasses
import functools
import pathlib
import shutil
import subprocess
import tempfile
import time

from weft_bench.harness import rounds, topics_cells
from weft_bench.harness.child import Child, ChildError
from weft_bench.harness.rounds import Effort

COUNT_MIN, COUNT_MAX, TRIPS_MAX = 200, 20_000_000, 100_000
KEPT_MIN = 2_000         # messages: four times those in flight
KEPT_REPETITION_S = 0.3  # some dozens of syncs of a file
KEPT_ROUNDS = 12
READY_S = 20             # for Redis to listen

FULL = Effort(0.3, 0.06, 20, 30, 5, 1000, 40, False)
QUICK = Effort(0.1, 0.04, 8, 12, 5, 250, 15, False)
TINY = Effort(0.002, 0.001, 2, 2, 1, 20, 5, False)
NO_REDIS = "no redis-server: deps/apt.txt names it"

# Of a server that is as fast as it can be: no snapshots, no rewriting of its file, no limit on a subscriber's unread
# messages. Where it keeps, it syncs its file before it answers.
REDIS = ["--port", "0", "--save", "", "--auto-aof-rewrite-percentage", "0", "--appendfsync", "always", "--daemonize", "no",
         "--client-output-buffer-limit", "pubsub 0 0 0"]


@dataclasses.dataclass
class Setup:
    build: pathlib.Path
    effort: Effort

    @property
    def program(self):
        return self.build / "bench/topics/bench_topics"


@functools.cache
def redis_server():
    """The program, or None."""
    return shutil.which("redis-server")


class TopicsColumn(rounds.Column):
    """One engine while it is measured. Between two starts its folders are empty again."""

    def __init__(self, setup, name, column):
        self.setup, self.name = setup, column
        self.cell, self.cell_name = topics_cells.parse(name), name
        self.child = None
        self.keeps = self.cell["pattern"] == "kept"
        self.count_min = KEPT_MIN if self.keeps else COUNT_MIN
        self.count = self.count_min
        self.interval_ns = 0
        self.version, self.path = "", ""
        self.folders = None

    def start(self, stack):
        # The store lies beside the build, on a disk; sockets have short names.
        self.folders = stack.enter_context(contextlib.ExitStack())
        runtime = self.folders.enter_context(tempfile.TemporaryDirectory(prefix="weft-bench-"))
        kept = self.folders.enter_context(tempfile.TemporaryDirectory(prefix="kept-", dir=self.setup.program.parent))
        arguments = ["--cell", self.cell_name, "--engine", self.name, "--runtime", runtime, "--directory", kept,
                     "--ping-pongs", str(self.setup.effort.ping_pongs)]
        if self.name.startswith("redis"):
            arguments += ["--redis", self.start_redis(runtime, kept)]
        self.child = stack.enter_context(Child(self.setup.program, arguments))
        self.version = self.child.answer()["version"]

    def start_redis(self, runtime, kept):
        """The path of its socket, once it listens."""
        path = f"{runtime}/redis.sock"
        keeping = ["--appendonly", "yes" if self.keeps else "no"]
        server = subprocess.Popen([redis_server(), *REDIS, *keeping, "--dir", kept, "--unixsocket", path],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.folders.callback(end_of, server)
        deadline = time.monotonic() + READY_S
        while not pathlib.Path(path).exists():
            if server.poll() is not None or time.monotonic() > deadline:
                raise ChildError("redis-server does not listen")
            time.sleep(0.01)
        return path

    def warm_up(self):
        self.child.run(self.count_min, verify_all=True)
        self.grow_count(self.count_min, TRIPS_MAX if self.cell["pattern"] == "round_trip" else COUNT_MAX)

    def finish(self):
        self.child.finish()
        self.folders.close()
        return []


def end_of(server):
    server.kill()
    server.wait()


def measure_rounds(setup, name, records):
    columns = [TopicsColumn(setup, name, column) for column in topics_cells.columns_of(name)
               if redis_server() or not column.startswith("redis")]
    effort = setup.effort
    if columns[0].keeps and effort.rounds > 2:
        effort = dataclasses.replace(effort, repetition_s=KEPT_REPETITION_S, rounds=KEPT_ROUNDS, rounds_max=KEPT_ROUNDS)
    alone = columns[0].cell["pattern"] in ("filters", "same_handle")  # one thread: there is no placement to wait for
    if alone or columns[0].keeps:
        effort = dataclasses.replace(effort, rounds_max=effort.rounds)
    for column in columns:
        column.setup = dataclasses.replace(setup, effort=effort)
    with contextlib.ExitStack() as stack:
        for column in columns:
            column.start(stack)
            column.warm_up()

        def renew():
            for column in columns:
                column.finish()
                column.start(stack)
                column.child.run(column.count)
        fresh = None if columns[0].cell["pattern"] == "filters" or columns[0].keeps else renew
        number, agreed = rounds.run_in_turns(columns, name, effort, records, renew=fresh)
        for column in columns:
            column.finish()
    return columns, number, agreed


def measure_cell(setup, name):
    """All records of one cell; a failure is a record too, and so is a cell that lacks its rival."""
    records = rounds.record_cell(name, topics_cells.parse(name), lambda found: measure_rounds(setup, name, found))
    if redis_server() is None and any(column.startswith("redis") for column in topics_cells.columns_of(name)):
        records.append({"kind": "skip", "cell": name, "column": "redis", "why": NO_REDIS})
    return records
