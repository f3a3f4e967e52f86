# SPDX-License-Identifier: MIT
"""Plain libzmq (pyzmq) sockets at the ports of a tcp fleet: a SUB that connects to a handle's port receives what the
handle publishes, as [topic, body] or [topic, body, headers]; a PUB whose endpoint the handle is given is received."""

import pathlib
import subprocess
import sys

try:
    import zmq
except ImportError:
    print("topics_test: pyzmq is not installed (see deps/pip.txt)")
    sys.exit(2)

PATIENCE = 30_000  # ms: a broken test fails instead of hanging


def start(side: str, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen([side, "tcp://", "/nowhere", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def line(process: subprocess.Popen, begin: str) -> str:
    text = process.stdout.readline().rstrip("\n")
    assert text.startswith(begin), f"{text!r}, not {begin!r}"
    return text[len(begin) :]


def end(process: subprocess.Popen) -> None:
    process.stdin.close()
    assert process.wait(30) == 0, "the handle's process failed"


def expect(what: str, got, wanted) -> None:
    print(f"{what}: {'ok' if got == wanted else f'got {got}, not {wanted}'}", flush=True)
    if got != wanted:
        sys.exit(1)


def socket(context: zmq.Context, kind: int) -> zmq.Socket:
    made = context.socket(kind)
    made.rcvtimeo, made.linger = PATIENCE, 0
    return made


def main() -> int:
    side = str(pathlib.Path(sys.argv[1]) / "tests" / "topic" / "topic_side")
    context = zmq.Context()
    pub, sub, other, everything = (socket(context, kind) for kind in (zmq.XPUB, zmq.SUB, zmq.SUB, zmq.SUB))
    pub.bind("tcp://127.0.0.1:*")
    handle = start(side, "echo", "legacy.", pub.last_endpoint.decode().rstrip("\0"))
    at = line(handle, "ready ").strip()
    sub.subscribe(b"echo.o")  # a prefix
    other.subscribe(b"echo.two")
    everything.subscribe(b"")
    for each in (sub, other, everything):
        each.connect(at)
    # The PUB receives the prefix of the handle's filter, among the messages between handles.
    asked = b""
    while asked != b"\1legacy.":
        asked = pub.recv()
    # A connection may come later than the next message: begin until each has one.
    began, welcome = set(), None
    poller = zmq.Poller()
    for each in (sub, everything):
        poller.register(each, zmq.POLLIN)
    while len(began) < 2:
        pub.send_multipart([b"legacy.begin", b"begin"])
        for each, _ in poller.poll(20):
            parts = each.recv_multipart()
            if len(parts) == 1:
                welcome = parts[0]
            else:
                began.add(each)
    pub.send_multipart([b"legacy.a", b"one"])
    pub.send(b"legacy.only one part")
    pub.send_multipart([b"not asked for", b"x"])
    pub.send_multipart([b"legacy.a", b"end"])

    def rest(receiver: zmq.Socket) -> list:
        got = []
        while not got or got[-1][1] != b"end":
            parts = receiver.recv_multipart()
            if len(parts) > 1 and parts[1] != b"begin":
                got.append(parts)
        return got

    def echoed(topic: bytes, body: bytes) -> list:
        return [b"echo.one", body, b"NATS/1.0\r\nwas: " + topic + b"\r\n\r\n"]

    wanted = [echoed(b"legacy.a", b"one"), echoed(b"legacy.only one part", b""), echoed(b"legacy.a", b"end")]
    expect("a SUB's prefix at a handle's port", rest(sub), wanted)
    expect("a SUB of everything", rest(everything), wanted)
    expect("the welcome, which only a SUB of everything sees", welcome[:4] if welcome else None, b"\2WT\1")
    expect("a SUB of another prefix", other.poll(0), 0)
    end(handle)
    context.destroy(0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
