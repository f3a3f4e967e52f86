# SPDX-License-Identifier: MIT
"""For the tests of weft on NATS: Debian's nats-server, that of deps/go.txt, and servers that keep topics."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from weft_cli_support import PATIENCE, SOURCE, start

DEBIAN = shutil.which("nats-server", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
CURRENT = str(SOURCE / "build/go/nats-server")
SERVERS = [each for each in (DEBIAN, CURRENT) if each and os.path.exists(each)]


@contextlib.contextmanager
def keeping(program: str, *arguments: str):
    """The text for --fleet of servers that keep topics: one, or as the arguments of `fleet up` say."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = arguments or ("--servers", "1")
        with start("fleet", "up", "--json", "--store", f"{folder}/kept", "--program", program, *arguments) as command:
            try:
                yield json.loads(command.stdout.readline())["fleet"]
            finally:
                command.send_signal(signal.SIGTERM)
                command.communicate(timeout=PATIENCE)


@contextlib.contextmanager
def configured(program: str, config: str, jetstream: str = ""):
    """(HOST:PORT, the monitor's URL) of a server that keeps topics, with these lines of configuration."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "server.conf")
        file.write_text(f'host: 127.0.0.1\nhttp: "127.0.0.1:-1"\njetstream {{ store_dir: "{folder}/kept" {jetstream} }}\n{config}',
                        encoding="ascii")
        with subprocess.Popen([program, "-c", file, "-p", "-1"], stderr=subprocess.PIPE, text=True) as server:
            try:
                monitor = address = ""
                for line in server.stderr:
                    if "http monitor on " in line:
                        monitor = "http://" + line.split()[-1]
                    if "client connections on " in line:
                        address = line.split()[-1]
                    if "Server is ready" in line:
                        break
                assert monitor and address, (monitor, address)
                yield address, monitor
            finally:
                server.kill()


def request(address: str, subject: str, body: dict) -> None:
    """A request of another client, and its first answer."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection, connection.makefile("rwb") as lines:
        text = json.dumps(body).encode()
        lines.write(b'CONNECT {"user":"all","pass":"p","verbose":false,"headers":true}\r\nSUB _INBOX.other 1\r\n'
                    b"PUB %s _INBOX.other %d\r\n%s\r\n" % (subject.encode(), len(text), text))
        lines.flush()
        for line in lines:
            assert not line.startswith(b"-ERR"), line
            if line.startswith((b"MSG", b"HMSG")):
                return
        raise AssertionError("no answer")
