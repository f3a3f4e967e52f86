# SPDX-License-Identifier: MIT
"""A chain of processes that hand their listener on, beside clients: no attempt to connect and no request fails. Then kills
of the old or the new process at each step: one of both serves.

    hand_over_test.py HAND_OVER_SIDE HAND_OVERS CLIENTS
"""
import asyncio
import contextlib
import pathlib
import resource
import socket
import subprocess
import sys
import tempfile
import threading

from checks import check

PATIENCE_S = 60
STEPS = ("starts", "has taken", "listens")


class Side:
    """One process."""

    def __init__(self, program, path, endpoint):
        self.process = subprocess.Popen([program, path, endpoint], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.endpoint = None

    def line(self):
        return self.process.stdout.readline().strip()

    def reach(self, step):
        """Goes on to that step, and stays there."""
        for name in STEPS:
            check("step", name, self.line())
            if name == step:
                return self
            self.go_on()
        return self

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def serve(self, done=()):
        """Goes on from the last of the steps `done` until it serves."""
        for name in STEPS[len(done):]:
            check("step", name, self.line())
            self.go_on()
        word, self.endpoint = self.line().split()
        check("step", "serves", word)
        return self

    def end(self):
        check("the old process", "ended", self.line())
        check("its exit code", 0, self.process.wait(PATIENCE_S))

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE_S)


def ask(address):
    with socket.create_connection(address, PATIENCE_S) as connection:
        connection.sendall(b"hello\n")
        got = b""
        while not got.endswith(b"\n"):
            more = connection.recv(100)
            if not more:
                raise ConnectionError(f"the connection ended after {got!r}")
            got += more
    check("answer", b"hello\n", got)


async def client(address, answers, number, ends):
    """Connects and asks, again and again."""
    loop = asyncio.get_running_loop()
    while not ends.is_set():
        with socket.socket() as connection:
            connection.setblocking(False)
            await loop.sock_connect(connection, address)
            await loop.sock_sendall(connection, b"hello\n")
            got = b""
            while not got.endswith(b"\n"):
                more = await loop.sock_recv(connection, 100)
                if not more:
                    raise ConnectionError(f"the connection ended after {got!r}")
                got += more
        check("answer", b"hello\n", got)
        answers[number] += 1
        await asyncio.sleep(0)


class Clients:
    """Clients on a thread of their own; the first failure ends it."""

    def __init__(self, address, count):
        self.address, self.count = address, count
        self.counts = [0] * count
        self.failure = None
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            asyncio.run(self.all())
        except (OSError, SystemExit) as error:
            self.failure = repr(error)

    async def all(self):
        await asyncio.gather(*(client(self.address, self.counts, number, self.ends) for number in range(self.count)))

    def answers(self):
        return sum(self.counts)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()
        check("the failed attempt or request", None, self.failure)
        check("each client was served", True, all(self.counts))


def address_of(side):
    host, port = side.endpoint.removeprefix("tcp://").rsplit(":", 1)
    return host, int(port)


def test_chain(start, hand_overs, count):
    now = start().serve()
    address = address_of(now)
    with Clients(address, count) as clients:
        for _ in range(hand_overs):
            wanted = clients.answers() + count
            following = start().serve()
            now.end()
            now = following
            check("the endpoint", address, address_of(now))
            while clients.answers() < wanted and clients.thread.is_alive():
                ask(address)
    print(f"{hand_overs} hand-overs, {clients.answers()} requests of {count} clients")
    now.kill()


def test_kills(start):
    for step in STEPS:
        old = start().serve()
        address = address_of(old)
        start().reach(step).kill()
        ask(address)  # the old one serves
        following = start().serve()
        old.end()
        ask(address)
        following.kill()
    for number, step in enumerate(STEPS[1:], 1):  # before "has taken" there is nothing that the new one could serve with
        old = start().serve()
        address = address_of(old)
        new = start().reach(step)
        old.kill()
        new.go_on()
        new.serve(STEPS[:number + 1])
        ask(address)  # the new one serves
        check("the endpoint", address, address_of(new))
        new.kill()


def main():
    program, hand_overs, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a descriptor for each client here and in the process
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        sides = []

        def start():
            side = Side(program, str(pathlib.Path(folder) / "socket"), "tcp://127.0.0.1:0")
            sides.append(side)
            return side
        stack.callback(lambda: [side.kill() for side in sides if side.process.poll() is None])
        test_chain(start, hand_overs, count)
        test_kills(start)


if __name__ == "__main__":
    main()
