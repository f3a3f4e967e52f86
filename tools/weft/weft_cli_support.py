# SPDX-License-Identifier: MIT
"""For the tests of weft, which are called with PROGRAM SOURCE METRICS_SIDE KEPT_SIDE: runs of the program, and
peers of pyzmq.

METRICS_SIDE is the program of tests/server that has an admin port, KEPT_SIDE the one of tests/topic that hosts a hub.
"""

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

try:
    import zmq
except ImportError:
    print("pyzmq is not installed (see deps/pip.txt)")
    sys.exit(77)

PROGRAM = sys.argv[1]
SOURCE = Path(sys.argv[2])
METRICS_SIDE = sys.argv[3]
KEPT_SIDE = sys.argv[4] if len(sys.argv) > 4 else ""  # a process that hosts a hub; empty: a build without SQLite
PATIENCE = 20
LONG = ["--timeout", "50"]  # less than the tests wait: the command tells why it failed
tests = []


def test(function):
    tests.append(function)
    return function


def run(*arguments: str, code: int = 0, text: str | bytes = "", **more) -> str:
    """Runs weft to its end; gives standard output, or standard error if the code is not 0."""
    done = subprocess.run([PROGRAM, *arguments], input=text.encode() if isinstance(text, str) else text,
                          capture_output=True, timeout=PATIENCE, **more)
    out, err = done.stdout.decode("latin-1"), done.stderr.decode()
    assert done.returncode == code, (arguments, done)
    assert "\033" not in out + err, (arguments, "colour without a terminal")
    return out if code == 0 else err


def objects(text: str) -> list[dict]:
    """Of lines of JSON."""
    return [json.loads(line) for line in text.splitlines()]


def run_blocks(page: str, of: str = "") -> int:
    """Runs each block of the shell on a page of docs/ that has these words, whose comments are its output; gives their number."""
    blocks = [block.split("```")[0] for block in (SOURCE / "docs" / page).read_text().split("```sh\n")[1:]]
    blocks = [block for block in blocks if of in block]
    for block in blocks:
        expected = [line[2:] for line in block.splitlines() if line.startswith("# ")]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["bash", "-euc", block], cwd=folder, capture_output=True, text=True, timeout=PATIENCE,
                                  env={**os.environ, "PATH": f"{Path(PROGRAM).parent}:{os.environ['PATH']}"})
        assert done.returncode == 0 and done.stdout.splitlines() == expected, (block, done)
    return len(blocks)


def start(*arguments: str) -> subprocess.Popen:
    return subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def end(process: subprocess.Popen, code: int = 0) -> str:
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, (process.args, process.returncode, out, err)
    return out


def on_terminal(columns: int, *arguments: str) -> list[str]:
    """The lines of a command whose standard streams are a terminal of so many columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([PROGRAM, *arguments], stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # the terminal's end
        while read := os.read(master, 65536):
            shown += read
    os.close(master)
    assert process.wait(PATIENCE) == 0, (arguments, shown)
    return re.sub(r"\x1b\[[0-9]*[mKJH]", "", shown.decode()).split("\r\n")


@contextlib.contextmanager
def peer(kind: int, **options):
    """A bound socket of pyzmq, and its endpoint."""
    with zmq.Context() as context, context.socket(kind) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, PATIENCE * 1000)
        socket.setsockopt(zmq.SNDTIMEO, PATIENCE * 1000)
        for name, value in options.items():
            socket.setsockopt(getattr(zmq, name), value)
        socket.bind("tcp://127.0.0.1:0")
        yield socket, socket.getsockopt_string(zmq.LAST_ENDPOINT)


@contextlib.contextmanager
def admin_port(*security: str):
    """The endpoint of a program with one of everything that counts, and the program; no endpoint: the build has none.

    `security`: a token; a certificate and its key; the authorities of clients.
    """
    arguments = ["--token", *security] if security else []
    with subprocess.Popen([METRICS_SIDE, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as side:
        try:
            yield side.stdout.readline().strip(), side
        finally:
            side.kill()


def commands_of(page: str) -> list[str]:
    return [line.split()[0] for line in page.split("Commands:\n")[1].split("\n\n")[0].splitlines() if line[2] != " "]


def all_commands() -> list[list[str]]:
    names = []
    for command in commands_of(run("--help")):
        inner = run(command, "--help")
        names += [[command, each] for each in commands_of(inner)] if "Commands:" in inner else [[command]]
    return names


def run_all():
    for each in tests:
        each()
        print("ok", each.__name__.replace("_", " "))
