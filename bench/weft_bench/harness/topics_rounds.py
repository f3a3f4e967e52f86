# SPDX-License-Identifier: MIT
"""Measures one cell of topics: every column in turns, in processes of its own, with a Redis of its own where it has one."""

import contextlib
import dataclasses
import functools
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from weft_bench.harness import rounds, topics_cells
from weft_bench.harness.child import Child, ChildError
from weft_bench.harness.rounds import Effort

COUNT_MIN, COUNT_MAX, TRIPS_MAX = 200, 20_000_000, 100_000
PYTHON_MAX = 500_000     # messages: the receiver keeps all of them until it has compared them
KEPT_MIN = 2_000         # messages: four times those in flight
KEPT_REPETITION_S = 0.3  # some dozens of syncs of a file
KEPT_ROUNDS = 12
READY_S = 20             # for Redis to listen

FULL = Effort(0.3, 0.06, 20, 30, 5, 1000, 40, False)
QUICK = Effort(0.1, 0.04, 8, 12, 5, 250, 15, False)
TINY = Effort(0.002, 0.001, 2, 2, 1, 20, 5, False, 1)
NO_REDIS = "no redis-server: deps/apt.txt names it"
BENCH = pathlib.Path(__file__).resolve().parents[2]
# The module and the server of a column in Python; deps/pip-bench.txt and deps/apt.txt name them.
NEEDS = {"pyzmq_weft": ("zmq", None), "pyzmq_libzmq": ("zmq", None), "asyncio_weft": ("zmq", None),
         "asyncio_libzmq": ("zmq", None), **dict.fromkeys(("nats_py", "nats_request"), ("nats", "nats-server")),
         **dict.fromkeys(("redis_py", "redis_aio"), ("redis", "redis-server"))}
# Debian's nats-server is in /usr/sbin.
SERVERS_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"

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

    @property
    def package(self):
        """The folder of the Python package."""
        return self.build / "tests/python/site"


def missing_for(column, name=""):
    """The reason that a column of that cell cannot be measured here, or None.

    >>> missing_for("topics"), NEEDS.update(nothing=("no_such_module", None)), missing_for("nothing")
    (None, None, 'Python has no module no_such_module')
    >>> NEEDS.update(nothing=("json", "no-such-server")), missing_for("nothing")
    (None, 'no no-such-server: deps/apt.txt names it')
    """
    if name.startswith("fleet") and nats_server() is None:
        return "no nats-server: deps/apt.txt names it"
    if column.startswith("libnats") and not pathlib.Path("/usr/include/nats/nats.h").exists():
        return "no libnats-dev: deps/apt-bench.txt names it"
    if column.startswith("redis") and redis_server() is None:
        return NO_REDIS
    module, server = NEEDS.get(column, (None, None))
    if module is not None and importlib.util.find_spec(module) is None:
        return f"Python has no module {module}"
    if server is not None and shutil.which(server, path=SERVERS_PATH) is None:
        return f"no {server}: deps/apt.txt names it"
    return None


@functools.cache
def redis_server():
    """The program, or None."""
    return shutil.which("redis-server")


@functools.cache
def nats_server():
    """The program, or None."""
    return shutil.which("nats-server", path=SERVERS_PATH)


class TopicsColumn(rounds.Column):
    """One engine while it is measured. Between two starts its folders are empty again."""

    def __init__(self, setup, name, column):
        self.setup, self.name = setup, column
        self.cell, self.cell_name = topics_cells.parse(name), name
        self.child = None
        self.keeps = self.cell["pattern"] == "kept"
        self.is_python = self.cell["pattern"].startswith("python")
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
        if self.is_python:
            self.child = stack.enter_context(self.python_child())
            self.version = self.child.answer()["version"]
            return
        arguments = ["--cell", self.cell_name, "--engine", self.name, "--runtime", runtime, "--directory", kept,
                     "--ping-pongs", str(self.setup.effort.ping_pongs)]
        if self.name.startswith("redis"):
            arguments += ["--redis", self.start_redis(runtime, kept)]
        if self.cell["pattern"].startswith("fleet"):
            arguments += ["--nats", self.start_nats(kept)]
        self.child = stack.enter_context(Child(self.setup.program, arguments))
        self.version = self.child.answer()["version"]

    def python_child(self):
        if not (self.setup.package / "weft/_topics.abi3.so").exists():
            raise ChildError(f"no Python package in {self.setup.package}: Python's headers were missing")
        arguments = ["-m", "weft_bench.harness.python_child", "--engine", self.name, "--size", str(self.cell["size"])]
        arguments += ["--trips"] if self.cell["pattern"] == "python_trip" else []
        env = {"PYTHONPATH": f"{self.setup.package}:{BENCH}"}
        if self.name.endswith("_weft"):
            env["LD_PRELOAD"] = str(self.setup.build / "capi/libzmq.so.5")
        return Child(sys.executable, ["-B", *arguments], env)

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

    def start_nats(self, kept):
        """The URL of a server on a port of its choice, once it listens."""
        keeping = ["--jetstream", "--store_dir", kept] if self.cell["pattern"] == "fleet_kept" else []
        server = subprocess.Popen([nats_server(), "--addr", "127.0.0.1", "--port", "-1", *keeping], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.folders.callback(server.stderr.close)
        self.folders.callback(end_of, server)
        port = next((line.rsplit(":", 1)[1].strip() for line in server.stderr if "client connections on " in line), None)
        if port is None:
            raise ChildError("nats-server does not listen")
        return f"nats://127.0.0.1:{port}"

    def warm_up(self):
        self.child.run(self.count_min, verify_all=True)
        self.grow_count(self.count_min, TRIPS_MAX if self.cell["pattern"].endswith(("_trip", "_request")) else
                        PYTHON_MAX if self.is_python else COUNT_MAX)

    def finish(self):
        self.child.finish()
        self.folders.close()
        return []


def end_of(server):
    server.kill()
    server.wait()


def measure_rounds(setup, name, records):
    columns = [TopicsColumn(setup, name, column) for column in topics_cells.columns_of(name)
               if missing_for(column, name) is None]
    if not columns:
        raise ChildError(missing_for("topics", name))
    effort = setup.effort
    if columns[0].keeps and effort.rounds > 2:
        effort = dataclasses.replace(effort, repetition_s=KEPT_REPETITION_S, rounds=KEPT_ROUNDS, rounds_max=KEPT_ROUNDS)
    # One thread, or a server between: there is no placement to wait for.
    alone = columns[0].cell["pattern"] in ("filters", "same_handle", "fleet", "fleet_request", "fleet_kept")
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
        number, agreed = rounds.run_in_turns(columns, name, effort, records, False, renew)
        for column in columns:
            column.finish()
    return columns, number, agreed


def measure_cell(setup, name):
    """All records of one cell; a failure is a record too, and so is a cell that lacks its rival."""
    records = rounds.record_cell(name, topics_cells.parse(name), lambda found: measure_rounds(setup, name, found))
    reasons = {column: missing_for(column, name) for column in topics_cells.columns_of(name)}
    return records + [{"kind": "skip", "cell": name, "column": column, "why": why} for column, why in reasons.items() if why]
