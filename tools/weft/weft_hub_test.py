# SPDX-License-Identifier: MIT
"""weft_hub_test.py PROGRAM SOURCE METRICS_SIDE KEPT_SIDE: weft hub, its successor, its admin port, and its service manager."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
from pathlib import Path

from weft_cli_support import KEPT_SIDE, PATIENCE, PROGRAM, run, run_all, test

LONG = ["--timeout", "60"]


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o700)
        yield directory


class Hub:
    """A `weft hub` of the folder; `first`: the end of its first note."""

    def __init__(self, directory: str, *arguments: str, environment: dict | None = None):
        self.process = subprocess.Popen([PROGRAM, "hub", "--directory", directory, *arguments], stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(environment or {})})

    def note(self, text: str) -> str:
        """The next note that has the text."""
        for line in self.process.stderr:
            if text in line:
                return line.strip()
        raise AssertionError((text, self.process.wait()))

    def stop(self, number: int, code: int) -> None:
        self.process.send_signal(number)
        assert self.process.wait(PATIENCE) == code, self.process.stderr.read()
        self.process.stderr.close()


def get(endpoint: str, page: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(endpoint.replace("tcp://", "http://") + page, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@test
def serves_a_fleet_and_stops_with_code_0():
    with folder() as directory, folder() as store:
        hub = Hub(directory, "--store", store, "--admin", "tcp://127.0.0.1:0", "--clients-max", "8")
        admin = hub.note("admin port at").split()[-1]
        assert hub.note("serves").endswith(f"{store}/default.topics")
        here = ["--directory", directory, *LONG]
        assert run("kv", "put", "config", "color", "blue", *here) == "1\n"
        assert run("kv", "get", "config", "color", *here) == "blue\n"
        assert get(admin, "/healthz")[0] == 200 and get(admin, "/readyz")[0] == 200
        metrics = get(admin, "/metrics")[1]
        assert 'weft_hub_messages_total{hub="hub",outcome="appended"} 1' in metrics, metrics
        # A stored message is a volatile one, too.
        run("stream", "add", "orders", "orders.>", *here)
        with subprocess.Popen([PROGRAM, "topic", "sub", "orders.*", "-n", "1", *here], stdout=subprocess.PIPE, text=True) as hears:
            while hears.poll() is None:  # the handle of the hub learns of the subscription
                run("stream", "publish", "orders", "orders.eu", "a chair", *here)
            assert hears.stdout.readline() == "orders.eu a chair\n"
        hub.stop(signal.SIGTERM, 0)
        # The next hub has the same store.
        hub = Hub(directory, "--store", store)
        hub.note("serves")
        assert run("kv", "get", "config", "color", *here) == "blue\n"
        hub.stop(signal.SIGINT, 0)


@test
def is_unready_while_it_waits_and_while_it_stops():
    with folder() as directory:
        first = Hub(directory)
        first.note("serves")
        second = Hub(directory, "--admin", "tcp://127.0.0.1:0", "--drain", "60")
        admin = second.note("admin port at").split()[-1]
        second.note("another process is the hub")
        assert get(admin, "/readyz")[0] == 503 and get(admin, "/healthz")[0] == 200
        first.stop(signal.SIGTERM, 0)
        second.note("serves")
        assert get(admin, "/readyz")[0] == 200
        second.process.send_signal(signal.SIGTERM)
        while get(admin, "/readyz")[0] == 200:
            pass
        assert "the hub stops" in get(admin, "/readyz")[1]
        second.process.send_signal(signal.SIGTERM)  # it ends at once
        assert second.process.wait(PATIENCE) == -signal.SIGTERM
        second.process.stderr.close()
        # A hub that waits for another one ends, too.
        first = Hub(directory)
        first.note("serves")
        second = Hub(directory)
        second.note("another process is the hub")
        second.stop(signal.SIGTERM, 0)
        first.stop(signal.SIGTERM, 0)


@test
def tells_its_service_manager():
    with folder() as directory, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{directory}/notify")
        manager.settimeout(PATIENCE)
        hub = Hub(directory, environment={"NOTIFY_SOCKET": f"{directory}/notify"})
        assert manager.recv(4096).startswith(b"READY=1\nSTATUS=the hub serves")
        hub.process.send_signal(signal.SIGTERM)
        assert manager.recv(4096).startswith(b"STOPPING=1")
        assert hub.process.wait(PATIENCE) == 0
        hub.process.stderr.close()


@test
def hands_over_without_a_lost_acknowledgement():
    """A client publishes while hubs are killed and stopped; each successor waits already."""
    with folder() as directory:
        here = ["--directory", directory]
        hub = Hub(directory)
        hub.note("serves")
        run("stream", "add", "orders", "orders.>", *here, *LONG)
        publishes = subprocess.Popen([PROGRAM, "stream", "publish", "orders", "orders.eu", "--window", "64", "--json", *here, *LONG],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        kept: list[dict] = []
        news = threading.Condition()

        def collect() -> None:
            for line in publishes.stdout:
                with news:
                    kept.append(json.loads(line))
                    news.notify_all()
        reader = threading.Thread(target=collect)
        reader.start()
        sent = 0

        def publish(count: int) -> None:
            nonlocal sent
            for _ in range(count):
                publishes.stdin.write(f"{sent}\n")
                sent += 1
            publishes.stdin.flush()
        for turn in range(6):
            successor = Hub(directory)
            successor.note("another process is the hub")
            before = len(kept)
            publish(300)
            with news:  # in the middle of the work
                assert news.wait_for(lambda: len(kept) > before + 20, PATIENCE), len(kept)
            kill = turn % 2 == 0
            hub.stop(signal.SIGKILL if kill else signal.SIGTERM, -signal.SIGKILL if kill else 0)
            successor.note("serves")
            publish(50)
            hub = successor
        publishes.stdin.close()
        reader.join(PATIENCE)
        assert publishes.wait(PATIENCE) == 0 and len(kept) == sent, (len(kept), sent)
        publishes.stdout.close()
        stored = [json.loads(line) for line in run("stream", "read", "orders", "--stored", "--json", *here, *LONG).splitlines()]
        assert [each["body"] for each in stored] == [str(i) for i in range(sent)]  # in order, once
        sequences = [each["sequence"] for each in kept]
        assert sequences == [each["sequence"] for each in stored]
        hub.stop(signal.SIGTERM, 0)


@test
def lets_a_program_host_and_takes_over_from_it():
    with folder() as directory:
        here = ["--directory", directory, *LONG]
        program = subprocess.Popen([KEPT_SIDE, directory, "host"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert program.stdout.readline() == "hosting\n"
        hub = Hub(directory)
        hub.note("another process is the hub")
        assert run("stream", "publish", "jobs", "jobs.1", "x", *here) == "1\n"
        program.communicate(timeout=PATIENCE)
        hub.note("serves")
        assert run("stream", "read", "jobs", "--stored", *here) == "1 jobs.1 x\n"
        hub.stop(signal.SIGTERM, 0)


@test
def takes_more_members_than_the_handles_of_a_fleet():
    """A command for kept topics takes no place among the handles of the fleet."""
    with folder() as directory:
        here = ["--directory", directory]
        hub = Hub(directory)
        hub.note("serves")
        run("kv", "put", "config", "color", "blue", *here, *LONG)
        watches = [subprocess.Popen([PROGRAM, "kv", "watch", "config", "--json", "-n", "2", *here], stdout=subprocess.PIPE, text=True)
                   for _ in range(100)]
        assert all(json.loads(each.stdout.readline())["body"] == "blue" for each in watches)
        run("kv", "put", "config", "color", "red", *here, *LONG)
        assert all(json.loads(each.stdout.readline())["body"] == "red" for each in watches)
        for each in watches:
            assert each.wait(PATIENCE) == 0
            each.stdout.close()
        hub.stop(signal.SIGTERM, 0)


@test
def ends_when_its_store_cannot_be_opened():
    with folder() as directory, folder() as store:
        (Path(store) / "default.topics").write_bytes(b"no database" * 1000)
        hub = Hub(directory, "--store", store)
        assert "the store" in hub.note("the store")
        assert hub.process.wait(PATIENCE) == 1
        hub.process.stderr.close()


if __name__ == "__main__":
    if not KEPT_SIDE:
        raise SystemExit(0)  # a build without SQLite keeps no topics
    run_all()
