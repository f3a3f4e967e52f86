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


class Cluster:
    """Three servers with JetStream, s0 to s2, each of which may be killed and started again."""

    def __init__(self, program: str, folder: str):
        self.program = program
        self.folder = folder
        self.processes: list[subprocess.Popen | None] = [None] * 3
        self.ports = []
        with contextlib.ExitStack() as held:  # servers have the ports of the others before they start
            for _ in range(6):
                self.ports.append(held.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1])

    def fleet(self, *numbers: int) -> str:
        return ",".join(f"nats://127.0.0.1:{self.ports[each]}" for each in numbers or range(3))

    def start(self, number: int, jetstream: bool = True) -> None:
        routes = ", ".join(f'"nats://127.0.0.1:{each}"' for each in self.ports[3:])
        keeps = f'jetstream {{ store_dir: "{self.folder}/s{number}" }}\n' if jetstream else ""
        file = Path(self.folder, f"s{number}.conf")
        file.write_text(f'host: 127.0.0.1\nserver_name: s{number}\n{keeps}cluster {{ name: t, '
                        f'listen: "127.0.0.1:{self.ports[3 + number]}", routes: [{routes}] }}\n', encoding="ascii")
        server = subprocess.Popen([self.program, "-c", file, "-p", str(self.ports[number])], stderr=subprocess.PIPE, text=True)
        self.processes[number] = server
        assert any("Server is ready" in line for line in server.stderr), "the server has ended"

    def kill(self, number: int) -> None:
        process = self.processes[number]
        self.processes[number] = None
        if process is not None:
            process.kill()
            process.communicate(timeout=PATIENCE)


@contextlib.contextmanager
def cluster(program: str):
    with tempfile.TemporaryDirectory() as folder:
        servers = Cluster(program, folder)
        try:
            for number in range(3):
                servers.start(number)
            yield servers
        finally:
            for number in range(3):
                servers.kill(number)


def request(address: str, subject: str, body: dict) -> bytes:
    """The first answer to a request of another client."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection, connection.makefile("rwb") as lines:
        text = json.dumps(body).encode()
        lines.write(b'CONNECT {"user":"all","pass":"p","verbose":false,"headers":true}\r\nSUB _INBOX.other 1\r\n'
                    b"PUB %s _INBOX.other %d\r\n%s\r\n" % (subject.encode(), len(text), text))
        lines.flush()
        for line in lines:
            assert not line.startswith(b"-ERR"), line
            if line.startswith((b"MSG", b"HMSG")):
                *_, headers, size = line.split()
                return lines.read(int(size))[int(headers) if line.startswith(b"HMSG") else 0:]
        raise AssertionError("no answer")
