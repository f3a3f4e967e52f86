# SPDX-License-Identifier: MIT
"""Both ends that Autobahn's test-suite tests: our server beside its client, and our client beside its server."""

import json
import socket
import subprocess
import sys
import time

from weft_compat.autobahn import patterns_of, read_results, set_up
from weft_compat.runs import free_port, run

LIMIT = 3600  # seconds for a group
START = 60  # seconds until the suite's server listens


def write_spec(path, name, settings):
    """The suite's description of a run; forgets the results of an earlier one."""
    report = path.with_suffix("")
    (report / "index.json").unlink(missing_ok=True)
    common = {"outdir": str(report), "cases": patterns_of([name]), "exclude-cases": [], "exclude-agent-cases": {}}
    path.write_text(json.dumps(common | settings))
    return report


def give_up(path, name):
    sys.exit(f"compat: group {name} is not ready after {LIMIT} s; {path.with_suffix('.log')}")


class Server:
    """examples/websocket_echo on a port that the system chose."""

    AGENT = "websocket_echo"

    def __init__(self, program, work):
        self.work = work
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
        spec = self.work / f"server-{name}.json"
        report = write_spec(spec, name, {"servers": [{"agent": self.AGENT, "url": self.url, "options": {"version": 18}}]})
        suite = [*command, "-m", "fuzzingclient", "-s", spec]
        try:
            run(suite, spec.with_suffix(".log"), env=environment, cwd=self.work, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            give_up(spec, name)
        return read_results(report, self.AGENT)


def wait_until_listening(port, process):
    deadline = time.monotonic() + START
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        except OSError:
            time.sleep(0.05)
    return False


class Client:
    """autobahn/client_side.cc, whose WebSocketClient echoes; the suite is the server."""

    AGENT = "websocket_client"

    def __init__(self, program, work):
        self.program, self.work = program, work

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, name):
        """The results of the cases whose numbers begin with the name."""
        command, environment = set_up()
        spec, port = self.work / f"client-{name}.json", free_port()
        url = f"ws://127.0.0.1:{port}"
        report = write_spec(spec, name, {"url": url})
        with spec.with_suffix(".log").open("w") as log:
            suite = [*command, "-m", "fuzzingserver", "--webport", "0", "-s", spec]  # without its pages for people
            server = subprocess.Popen(suite, stdout=log, stderr=log, env=environment, cwd=self.work)
            try:
                if not wait_until_listening(port, server):
                    sys.exit(f"compat: the suite's server does not listen; {spec.with_suffix('.log')}")
                subprocess.run([self.program, url], timeout=LIMIT, check=True)
            except subprocess.TimeoutExpired:
                give_up(spec, name)
            except subprocess.CalledProcessError as error:
                sys.exit(f"compat: {error}; {spec.with_suffix('.log')}")
            finally:
                server.kill()
                server.wait()
        return read_results(report, self.AGENT)
