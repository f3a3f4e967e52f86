# SPDX-License-Identifier: MIT
"""For the tests of `weft bridge`: a bridge that runs, and sockets of pyzmq beside it."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import zmq
from weft_cli_support import PATIENCE, PROGRAM


class Bridge:
    """A `weft bridge` of the sections, on the local fleet of the folder."""

    def __init__(self, directory: str, sections: str, *arguments: str, name: str = "b", fleet: str = "",
                 drain: str = "1 h"):
        file = f"{directory}/{name}.toml"
        where = fleet or f'directory = "{directory}"'
        with open(file, "w") as out:
            out.write(f'[bridge]\nname = "{name}"\ndrain = "{drain}"\n[fleet]\n{where}\n{sections}')
        self.process = subprocess.Popen([PROGRAM, "bridge", file, "--json", *arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.endpoints = {}
        self.admin = self.process.stderr.readline().split()[-1] if "--admin" in arguments else ""
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "serves":
                return
            self.endpoints[event["section"]] = event["endpoints"][0]
        raise AssertionError(self.process.communicate())

    def stop(self) -> dict:
        """Ends the bridge, and gives the counts of each section."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(self.admin.replace("tcp://", "http://") + "/readyz", timeout=PATIENCE) as answer:
                return answer.status == 200
        except urllib.error.HTTPError as error:
            return error.code != 503

    def ended(self) -> dict:
        out, err = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, err
        counts = {each["section"]: each for each in map(json.loads, out.splitlines())}
        for each in counts.values():  # the books balance
            dropped = sum(number for name, number in each.items() if name.startswith("dropped_"))
            failed = sum(number for name, number in each.items() if name.startswith("failed_"))
            assert each["taken"] == each["given"] + dropped + failed and each["pending"] == 0, each
        return counts

    def counters(self) -> dict:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with urllib.request.urlopen(self.admin.replace("tcp://", "http://") + "/metrics", timeout=PATIENCE) as answer:
                    lines = answer.read().decode().splitlines()
                break
            except urllib.error.HTTPError as error:  # the port answers 10 scrapes a second; a test that waits asks for more
                if error.code != 429 or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o700)
        yield directory


@contextlib.contextmanager
def zmtp(kind: int, endpoint: str, *prefixes: str):
    with zmq.Context() as context, context.socket(kind) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, PATIENCE * 1000)
        for prefix in prefixes:
            socket.setsockopt_string(zmq.SUBSCRIBE, prefix)
        socket.connect(endpoint)
        yield socket


def pause():
    time.sleep(0.02)


def number(bridge: Bridge, name: str, section: str) -> float:
    return sum(value for key, value in bridge.counters().items() if key.startswith(name) and f'section="{section}"' in key)


def until(condition, act=lambda: None):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        act()


def nats_server() -> str | None:
    server = shutil.which("nats-server", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if server is None:
        print("there is no nats-server: deps/setup.sh tests installs it")
    return server
