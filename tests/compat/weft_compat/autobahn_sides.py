# SPDX-License-Identifier: MIT
"""Both ends that Autobahn's test-suite tests: our server beside its client, and our client beside its server."""

import json
import re
import socket
import subprocess
import sys
import time

from weft_compat.autobahn import CASES, pattern_of, read_results, set_up
from weft_compat.runs import free_port

LIMIT = 8000  # seconds for a run of the suite: its cases of a part of group 12 may take 7,200 together
START = 60  # seconds until the suite's server listens
PROGRESS = 30  # seconds between two lines about a run


def progress_in(log):
    """(the number of begun cases, the last one) in what the suite printed.

    >>> progress_in("Running test case ID 12.1.1 for agent a from peer b\\nRunning test case ID 12.1.2 for agent a from peer b")
    (2, '12.1.2')
    >>> progress_in("")
    (0, 'none')
    """
    cases = re.findall(r"Running test case ID (\S+)", log)
    return len(cases), cases[-1] if cases else "none"


def wait_for(process, spec, side, name):
    """The exit status of a process of the run; prints now and then at which case the suite is."""
    began, log = time.monotonic(), spec.with_suffix(".log")
    while True:
        seconds = time.monotonic() - began
        try:
            return process.wait(PROGRESS)
        except subprocess.TimeoutExpired:
            if seconds > LIMIT:
                process.kill()
                process.wait()
                sys.exit(f"compat: {name} is not ready after {LIMIT} s; {log}")
        begun, case = progress_in(log.read_text(errors="replace"))
        of = f" of {CASES[name]}" if name in CASES else ""
        print(f"{side:6s}  {name:>5s}  case {case}, {begun}{of} begun, {time.monotonic() - began:.0f} s", flush=True)


class Side:
    """What both sides have: the files of a run, which is named by the beginning of its cases' numbers."""

    def __init__(self, program, work):
        self.program, self.work = program, work

    def spec(self, name):
        """The suite's description of a run. Its log and its report stand beside it."""
        return self.work / f"{self.SIDE}-{name}.json"

    def write_spec(self, name, settings):
        """Describes a run, and forgets the results of an earlier one."""
        report = self.spec(name).with_suffix("")
        (report / "index.json").unlink(missing_ok=True)
        common = {"outdir": str(report), "cases": [pattern_of(name)], "exclude-cases": [], "exclude-agent-cases": {}}
        self.spec(name).write_text(json.dumps(common | settings))

    def results(self, name):
        return read_results(self.spec(name).with_suffix(""), self.AGENT)

    def earlier(self, name):
        """The results of an earlier run that ended, of the program as it is; None: there are none."""
        index = self.spec(name).with_suffix("") / "index.json"
        if not index.exists() or index.stat().st_mtime < self.program.stat().st_mtime:
            return None
        found = self.results(name)
        return found if len(found) == CASES.get(name, len(found)) else None


class Server(Side):
    """examples/websocket_echo on a port that the system chose."""

    SIDE, AGENT = "server", "websocket_echo"

    def __init__(self, program, work):
        super().__init__(program, work)
        self.process = subprocess.Popen([program, "0"], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip().replace("serving at tcp://", "ws://")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        alive = self.process.poll() is None
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        if not alive:
            sys.exit("compat: examples/websocket_echo ended by itself")

    def run(self, name):
        """The results of the cases whose numbers begin with the name."""
        command, environment = set_up()
        spec = self.spec(name)
        self.write_spec(name, {"servers": [{"agent": self.AGENT, "url": self.url, "options": {"version": 18}}]})
        with spec.with_suffix(".log").open("w") as log:
            suite = [*command, "-m", "fuzzingclient", "-s", spec]
            client = subprocess.Popen(suite, stdout=log, stderr=log, env=environment, cwd=self.work)
            try:
                status = wait_for(client, spec, self.SIDE, name)
            finally:
                client.kill()
                client.wait()
        if status != 0:
            sys.exit(f"compat: the suite failed with {status}; {spec.with_suffix('.log')}")
        return self.results(name)


def wait_until_listening(port, process):
    deadline = time.monotonic() + START
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        except OSError:
            time.sleep(0.05)
    return False


class Client(Side):
    """autobahn/client_side.cc, whose WebSocketClient echoes; the suite is the server."""

    SIDE, AGENT = "client", "websocket_client"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, name):
        """The results of the cases whose numbers begin with the name."""
        command, environment = set_up()
        spec, port = self.spec(name), free_port()
        url = f"ws://127.0.0.1:{port}"
        self.write_spec(name, {"url": url})
        with spec.with_suffix(".log").open("w") as log:
            suite = [*command, "-m", "fuzzingserver", "--webport", "0", "-s", spec]  # without its pages for people
            server = subprocess.Popen(suite, stdout=log, stderr=log, env=environment, cwd=self.work)
            try:
                if not wait_until_listening(port, server):
                    sys.exit(f"compat: the suite's server does not listen; {spec.with_suffix('.log')}")
                client = subprocess.Popen([self.program, url])
                try:
                    status = wait_for(client, spec, self.SIDE, name)
                finally:
                    client.kill()
                    client.wait()
                if status != 0:
                    sys.exit(f"compat: {self.program} failed with {status}; {spec.with_suffix('.log')}")
            finally:
                server.kill()
                server.wait()
        return self.results(name)
