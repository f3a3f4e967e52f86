# SPDX-License-Identifier: MIT
"""Processes that run one cell on one library, and take commands."""

import ctypes
import importlib.util
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

ANSWER_S = 150  # bench_sockets gives up earlier, and says why


class ChildError(Exception):
    """A child refused, failed, or said nothing for too long."""


class Child:
    """bench_sockets with one cell. `env` is added to the environment. A context manager: it ends the process."""

    def __init__(self, program, arguments, env=None, before=()):
        self.errors = tempfile.TemporaryFile()  # read when it failed
        command = [*before, str(program), *arguments]
        # A session of its own: Ctrl-C reaches only us, and we end the whole group.
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                            start_new_session=True, env=os.environ | (env or {}))
        except OSError:
            self.errors.close()
            raise
        self.text = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def answer(self):
        """The next line, as a value."""
        deadline = time.monotonic() + ANSWER_S
        while b"\n" not in self.text:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise ChildError(f"no answer in {ANSWER_S} s")
            more = os.read(self.process.stdout.fileno(), 1 << 20)
            if not more:
                raise ChildError(self.reason())
            self.text += more
        line, self.text = self.text.split(b"\n", 1)
        return json.loads(line)

    def ask(self, command):
        try:
            self.process.stdin.write(command.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise ChildError(self.reason()) from None
        return self.answer()

    def run(self, count, interval_ns=0, verify_all=False):
        return self.ask(f"run {count} {interval_ns} {int(verify_all)}")

    def count(self, count):
        return self.ask(f"count {count} 0 0")

    def finish(self):
        """Lets it close its sockets and end. Its descriptors are closed too: a cell has many processes, one after the other.

        >>> with Child("cat", []) as child:
        ...     child.finish()
        ...     child.process.stdout.closed, child.errors.closed
        (True, True)
        """
        self.process.stdin.close()
        try:
            status = self.process.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            raise ChildError("it does not end") from None
        if status != 0:
            raise ChildError(self.reason())
        self.process.stdout.close()
        self.errors.close()

    def reason(self):
        self.process.wait()
        self.errors.seek(0)
        text = self.errors.read().decode(errors="replace").strip()
        return text or f"exit status {self.process.returncode}"

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            try:
                stream.close()
            except BrokenPipeError:
                pass


def libzmq_of_pyzmq():
    """The library inside the installed pyzmq wheel, or None."""
    found = importlib.util.find_spec("zmq")
    if found is None or found.origin is None:
        return None
    libraries = pathlib.Path(found.origin).resolve().parent.parent / "pyzmq.libs"
    return next(iter(sorted(libraries.glob("libzmq*.so*"))), None)


BUILT = pathlib.Path(__file__).resolve().parents[3] / "build/compat/libzmq/reference/lib/libzmq.so.5"


def has_websocket(library):
    """Whether a libzmq.so.5 has ws://. libzmq writes the name in capitals."""
    if not library.is_file():
        return False
    has = ctypes.CDLL(str(library)).zmq_has
    return bool(has(b"WS") or has(b"ws"))


class Libraries:
    """Where the dynamic linker finds each libzmq.so.5, whatever the file is called. A context manager.

    "libzmq_ws" is the libzmq for cells over WebSocket: "libzmq" itself, or the one that ./dev compat ws built; it may be
    missing.
    """

    def __init__(self, weft, libzmq, rivals=None):
        """`rivals`: {name: rival_libraries.Library}."""
        self.folder = tempfile.TemporaryDirectory(prefix="weft-bench-")
        self.files = {"weft": pathlib.Path(weft).resolve(), "libzmq": pathlib.Path(libzmq).resolve()}
        self.files |= {name: library.file.resolve() for name, library in (rivals or {}).items()}
        self.built = {name: library.built for name, library in (rivals or {}).items()}
        with_websocket = next(filter(has_websocket, (self.files["libzmq"], BUILT)), None)
        if with_websocket is not None:
            self.files["libzmq_ws"] = with_websocket.resolve()
        self.paths = {}
        for name, file in self.files.items():
            place = pathlib.Path(self.folder.name, name)
            place.mkdir()
            (place / "libzmq.so.5").symlink_to(file)
            self.paths[name] = f"{place}:{file.parent}"  # the second one for what lies beside it

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def environment(self, name):
        return {"LD_LIBRARY_PATH": self.paths[name]}

    def preload(self, name):
        """For a program that brings a libzmq of its own along: that of pyzmq, which is the one under "libzmq"."""
        return {"LD_PRELOAD": str(self.files[name])} if name == "weft" else {}

    def check(self, name, ready):
        """`ready` is what a child said of itself: whether it runs on the library that was meant."""
        if pathlib.Path(ready["path"]).resolve() != self.files[name]:
            raise ChildError(f"it runs on {ready['path']} instead of {self.files[name]}")


def count_by_strace(program, arguments, env, count):
    """System calls per repetition, from the difference of runs with one and three of them; None where it cannot be."""
    strace = shutil.which("strace")
    if strace is None:
        return None
    totals = []
    for repetitions in (1, 3):
        with tempfile.NamedTemporaryFile(mode="r") as table:
            before = [strace, "-f", "-c", "-U", "calls,name", "-o", table.name]
            try:
                with Child(program, arguments, env, before) as child:
                    child.answer()
                    for _ in range(repetitions):
                        child.count(count)
                    child.finish()
            except ChildError:
                return None
            totals.append(sum_of_calls(table.read()))
    return max(totals[1] - totals[0], 0) // 2


def sum_of_calls(table):
    """The calls in a table of `strace -c -U calls,name`.

    >>> sum_of_calls("    calls syscall\\n--------- ----\\n       12 read\\n        3 futex\\n--------- ----\\n       15 total\\n")
    15
    """
    rows = [line.split() for line in table.splitlines()]
    return sum(int(row[0]) for row in rows if len(row) == 2 and row[0].isdigit() and row[1] != "total")
