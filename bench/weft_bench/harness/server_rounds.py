# SPDX-License-Identifier: MIT
"""Measures one of the server's cells: for every column a server and a load generator, which take turns."""

import contextlib
import dataclasses
import functools
import importlib.util
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

from weft_bench import BENCH
from weft_bench.harness import crates, rounds, server_cells
from weft_bench.harness.child import Child, ChildError
from weft_bench.harness.rounds import Effort

COUNT_MAX = 20_000_000
COUNTED = ("echo", "one_way", "publish", *server_cells.RPC_PLAIN, *server_cells.WEB_PATTERNS, *server_cells.UDP_PATTERNS)  # whose messages the servers count too
FILES_BESIDE = 64  # that are not connections
IDLE_UPGRADES = 10_000  # connections of abuse_bytes.h

FULL = Effort(0.3, 0.1, 12, 20, 5, 500, 25, False)
QUICK = Effort(0.15, 0.06, 8, 12, 5, 250, 12, False)
TINY = Effort(0.002, 0.001, 2, 2, 1, 20, 5, False, 1)
BAD_REPETITION_S = 0.4  # so long that peers that come at some rate have come


@dataclasses.dataclass
class Setup:
    build: pathlib.Path  # bench/server in the folder of the build
    effort: Effort
    threads: int = 1  # of a server
    root: pathlib.Path = None  # of the files of web servers
    crates: tuple = ()  # those that are built
    load: pathlib.Path = None  # the folder of the load generator, where it is of another build

    def program(self, name):
        return self.build / name

    def generator(self):
        return (self.load or self.build) / "bench_load"

    def command(self, program):
        """The words that run a server, without its arguments."""
        if program in server_cells.CRATES:
            return [str(crates.program(self.build, program))]
        if program not in server_cells.RIVALS:
            return [str(self.program(f"bench_server_{program}"))]
        script = str(BENCH / "server" / server_cells.RIVALS[program][0])
        return [*({"node": [node()]}.get(program) or [sys.executable, "-B"]), script]

    def client(self, program):
        """The program of a client of its own."""
        if program in server_cells.CRATES:
            return crates.program(self.build, program, "client")
        return self.program(f"bench_client_{program}")

    def built(self):
        built = {program for _, program, _ in server_cells.EVERY_SERVER if self.program(f"bench_server_{program}").is_file()}
        built |= set(self.crates) | (rivals() if self.threads == 1 else set())  # each of these has one thread
        return built | ({"io_uring"} if "weft" in built and io_uring_works(self.program("bench_server_weft")) else set())

    def placement(self):
        """(processor of the generator, those of a server): as far apart as they can be, the same when there is one.

        >>> Setup(pathlib.Path(), TINY).placement()[0] == min(os.sched_getaffinity(0))
        True
        """
        allowed = sorted(os.sched_getaffinity(0))
        return allowed[0], allowed[1:][-self.threads:] or allowed


@functools.cache
def io_uring_works(program):
    """Whether that server runs with io_uring here: many systems forbid it. It ends when its input does."""
    return subprocess.run([program, "--variant", "io_uring"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


def nginx():
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def node():
    return shutil.which("node")


NODE_MODULES = "/usr/share/nodejs"  # Debian's


@functools.cache
def rivals():
    """The programs of others that this machine has; "ws" is Node's package for WebSocket."""
    found = {"nginx"} if nginx() else set()
    if node():
        found.add("node")
        has_ws = subprocess.run([node(), "-e", "require('ws')"], env=os.environ | {"NODE_PATH": NODE_MODULES}, check=False,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found |= {"ws"} if has_ws.returncode == 0 else set()
    return found | ({"socketify"} if importlib.util.find_spec("socketify") else set())


def missing_rivals(names, setup):
    """A line for each program of others that a cell could have and this machine lacks."""
    programs = {**server_cells.RIVALS, **{name: (None, how) for name, how in server_cells.BUILT_RIVALS.items()}}
    wanted = {column for name in names if server_cells.parse(name)["pattern"] in (*server_cells.WEB_PATTERNS, *server_cells.RPC_PLAIN)
              for column, *_ in server_cells.columns_of(name, {*programs, "ws"})}
    found = rivals() | setup.built()
    lacks_ws = "node" in found and "ws" not in found and any(name.startswith("websocket/") for name in names)
    return [f"without {column}: {how} is not installed" for column, (_, how) in programs.items()
            if column in wanted and (column not in found or (column == "node" and lacks_ws))]


def letters(size):
    return (b"abcdefghijklmnopqrstuvwxyz" * (size // 26 + 1))[:size]


@contextlib.contextmanager
def files_for(names):
    """A folder with the files of the cells of style `file`; None if there is no such cell."""
    sizes = {cell["size"] for cell in map(server_cells.parse, names) if cell["style"] == "file"}
    if not sizes:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="weft-bench-files-") as folder:
        for size in sizes:
            pathlib.Path(folder, str(size)).write_bytes(letters(size))
        yield pathlib.Path(folder)


class ServerColumn(rounds.Column):
    """One server and its load while they are measured."""

    def __init__(self, setup, name, column):
        self.setup = setup
        self.name, self.program, self.variant = column
        self.cell = server_cells.parse(name)
        self.cell_name = name.removesuffix(server_cells.A_A)
        self.load_name, self.client = server_cells.load_of(name, self.name)
        self.child = self.server = None
        self.interval_ns = self.port = 0
        self.version = ""
        self.command = setup.command(self.program)
        self.path = self.command[-1]
        # A closed loop fills all connections twice before it counts as one.
        self.least = max(2 * self.cell["times"] * self.cell["depth"], 50 if setup.effort.rounds < 5 else 200)
        self.count = self.least

    def start(self, stack, around=(), env=None):
        """`around`: the words before the server's command, such as a tool that counts; `env`: of the server."""
        mine, servers = self.setup.placement()
        arguments = ["--threads", str(self.setup.threads), *server_cells.server_options(self.cell)]
        arguments += ["--variant", self.variant] if self.variant else []
        arguments += ["--root", str(self.setup.root)] if self.cell["style"] == "file" else []
        before = ["taskset", "-c", ",".join(map(str, servers)), *around, *self.command[:-1]]
        self.server = stack.enter_context(Child(self.command[-1], arguments, {"NODE_PATH": NODE_MODULES, **(env or {})}, before))
        ready = self.server.answer()
        self.version = ready["version"]
        self.port = ready["port"]
        load = ["--cell", self.load_name, "--port", str(ready["port"]), "--pid", str(ready["pid"]), "--cpu", str(mine),
                "--peer-cpu", str(servers[0]), "--ping-pongs", str(self.setup.effort.ping_pongs)]
        load += ["--client", str(self.setup.client(self.client))] if self.client else []
        self.child = stack.enter_context(Child(self.setup.generator(), load))
        self.child.answer()

    def warm_up(self):
        self.grow_count(self.least, COUNT_MAX)

    def load_at(self, rate):
        super().load_at(rate)
        self.count = max(self.count, self.least)

    def repeat(self):
        return self.checked(super().repeat)

    def checked(self, measure):
        """The run of `measure`, or a ChildError where the server counted other messages than the generator."""
        before = self.server.ask("counts")["messages"]
        run = measure()
        counted = self.server.ask("counts")["messages"] - before
        ends = self.cell["times"] if self.cell["pattern"] in ("one_way", "rpc_stream") else 0
        copies = self.cell["times"] if "publish" in (self.cell["style"], self.cell["pattern"]) else 1  # of a message that the server counts once
        runs = 2 if self.cell["pattern"] == "udp_flood" else 1  # without the flood, and beside it
        expected = runs * run["messages"] // copies + ends
        if self.cell["pattern"] in COUNTED and counted != expected:
            raise ChildError(f"{self.name} counted {counted} messages instead of {expected}")
        return run

    def record_of_counts(self, cell):
        """System calls of the server in one repetition that is not timed; they stay unknown where `perf` may not."""
        counts = self.checked(lambda: self.child.count(self.count))
        known = counts["syscalls"] is not None
        return {"kind": "count", "cell": cell, "column": self.name, "syscalls_by": "perf" if known else None,
                "syscalls": counts["syscalls"] / counts["messages"] if known else None, "allocations": None}

    def finish(self):
        self.child.finish()
        reasons = self.server.ask("counts")
        self.server.finish()
        return [{"kind": "counts", "cell": self.cell_name, "column": self.name, **reasons}]


def columns_for(setup, name):
    return [ServerColumn(setup, name, column) for column in server_cells.columns_of(name, setup.built())]


def renew(columns, stack, records, warm):
    """A new server and a new load generator for each column."""
    for column in columns:
        records += column.finish()
        column.start(stack)
        if warm:
            column.repeat()


def measure_load(setup, name, records):
    with contextlib.ExitStack() as stack:
        columns = columns_for(setup, name)
        for column in columns:
            column.start(stack)
        cell = columns[0].cell
        if cell["pattern"] != "storm":
            for column in columns:
                column.warm_up()
        if cell["load"]:
            rounds.slow_down(columns, cell["load"])
        storm = cell["pattern"] == "storm"
        number, agreed = rounds.run_in_turns(columns, name, setup.effort, records, storm,
                                             lambda: renew(columns, stack, records, warm=not storm))
        if cell["pattern"] in COUNTED:
            records += [column.record_of_counts(name) for column in columns]
        records += [record for column in columns for record in column.finish()]
    return columns, number, agreed


def measure_bad(setup, name, records):
    """The load is grown without bad peers, by a generator that goes away."""
    if setup.effort.rounds > 2:
        setup = dataclasses.replace(setup, effort=dataclasses.replace(setup.effort, repetition_s=BAD_REPETITION_S))
    with contextlib.ExitStack() as stack:
        cell = server_cells.parse(name)
        plain = server_cells.BAD_PLAIN.format(plain=server_cells.FLOODED[cell["pattern"]], **cell)
        columns = [ServerColumn(setup, plain, column) for column in server_cells.columns_of(name, setup.built())]
        for column in columns:
            column.start(stack)
            column.warm_up()
            column.finish()
    counts = {column.name: column.count for column in columns}
    with contextlib.ExitStack() as stack:
        columns = columns_for(setup, name)
        for column in columns:
            column.start(stack)
            column.count = counts[column.name]
        number, agreed = rounds.run_in_turns(columns, name, setup.effort, records, True,
                                             lambda: renew(columns, stack, records, warm=False))
        records += [record for column in columns for record in column.finish()]
    return columns, number, agreed


def too_few_files(cell):
    """Why a cell cannot be measured here, or None.

    >>> too_few_files({"times": 10**9}) is None, too_few_files({"times": 1}) is None
    (False, True)
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    connections = cell["times"] + (IDLE_UPGRADES if cell.get("abuse") == "idle_upgrade" else 0)
    wanted = connections + FILES_BESIDE
    if limit not in (resource.RLIM_INFINITY, -1) and limit < wanted:
        return f"{connections} connections need {wanted} files, a process may have {limit}: see `ulimit -Hn`"
    return None


def measure_cell(setup, name):
    """All records of one cell; a failure is a record too, and so is a cell that this machine does not allow."""
    cell = server_cells.parse(name)
    why = too_few_files(cell)
    if why is not None:
        return [{"kind": "skip", "cell": name, "why": why}]
    if cell["pattern"] == "idle":
        return rounds.record_cell(name, cell, lambda records: rounds.measure_apart(
            columns_for(setup, name), name, setup.effort, records))
    how = measure_bad if cell["pattern"] in server_cells.FLOODED else measure_load
    return rounds.record_cell(name, cell, lambda records: how(setup, name, records))
