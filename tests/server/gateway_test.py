# SPDX-License-Identifier: MIT
"""gateway_test.py GATEWAY: examples/gateway with libzmq (pyzmq) as publisher and worker, and plain sockets as sessions."""
import socket
import struct
import subprocess
import sys
import urllib.request

from checks import check

TIMEOUT = 60
SUBSCRIBE, UNSUBSCRIBE, SEND, MESSAGE, REFUSED = range(1, 6)

try:
    import zmq
except ImportError:
    print("there is no pyzmq")
    sys.exit(77)


class Session:
    def __init__(self, endpoint):
        host, port = endpoint.removeprefix("tcp://").split(":")
        self.socket = socket.create_connection((host, int(port)), TIMEOUT)
        self.file = self.socket.makefile("rb")

    def send(self, kind, body):
        self.socket.sendall(struct.pack(">BBIIH", 2, 0, kind, len(body), 0) + body)

    def receive(self):
        _, _, kind, size, _ = struct.unpack(">BBIIH", self.file.read(12))
        return kind, self.file.read(size)

    def subscribe(self, topic):
        self.send(SUBSCRIBE, topic)
        check("subscribe", (SUBSCRIBE, topic), self.receive())


def talk(endpoints, context):
    listen, sub, push = endpoints[:3]
    publisher = context.socket(zmq.XPUB)
    worker = context.socket(zmq.PULL)
    for each in (publisher, worker):
        each.linger = 0
        each.rcvtimeo = each.sndtimeo = TIMEOUT * 1000
    publisher.connect(sub)
    worker.connect(push)

    first, second = Session(listen), Session(listen)
    first.subscribe(b"news")
    check("the subscription", b"\x01news", publisher.recv())
    second.subscribe(b"news")
    second.subscribe(b"weather")
    check("the subscription", b"\x01weather", publisher.recv())
    for i in range(100):
        publisher.send_multipart([b"news", b"%d" % i])
        publisher.send_multipart([b"newspaper", b"begins alike"])
        publisher.send_multipart([b"weather", b"rain"])
    for i in range(100):
        check("first", (MESSAGE, b"news\0%d" % i), first.receive())
        check("second", (MESSAGE, b"news\0%d" % i), second.receive())
        check("second", (MESSAGE, b"weather\0rain"), second.receive())

    # When the last session unsubscribes, the gateway drops its subscription.
    second.send(UNSUBSCRIBE, b"weather")
    check("unsubscribe", (UNSUBSCRIBE, b"weather"), second.receive())
    check("the end of it", b"\x00weather", publisher.recv())
    second.socket.close()
    second.file.close()

    for i in range(100):
        first.send(SEND, b"job %d" % i)
    for i in range(100):
        check("worker", b"job %d" % i, worker.recv())
    first.send(77, b"")
    check("a kind that there is not", REFUSED, first.receive()[0])
    first.send(SUBSCRIBE, b"x" * 300)
    check("a topic that is too long", REFUSED, first.receive()[0])

    if len(endpoints) > 3:
        with urllib.request.urlopen("http://" + endpoints[3].removeprefix("tcp://") + "/metrics", timeout=TIMEOUT) as answer:
            check("metrics", True, 'weft_server_sessions_opened_total{server="gateway"} 2' in answer.read().decode())
    worker.close()
    publisher.close()


def main():
    gateway = sys.argv[1]
    check("--help", 0, subprocess.run([gateway, "--help"], stdout=subprocess.DEVNULL, timeout=TIMEOUT).returncode)
    check("a wrong option", 2, subprocess.run([gateway, "--no"], stderr=subprocess.DEVNULL, timeout=TIMEOUT).returncode)
    with_admin = ["--admin", "tcp://127.0.0.1:0"] if "admin" in sys.argv[2:] else []
    side = subprocess.Popen([gateway, "--listen", "tcp://127.0.0.1:0", *with_admin],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        endpoints = [side.stdout.readline().strip() for _ in range(4 if with_admin else 3)]
        check("endpoints", True, all(endpoints))
        with zmq.Context() as context:
            talk(endpoints, context)
        side.stdin.close()
        check("what it counted", "published 200, unwanted 100, dropped 0, dropped by slow sessions 0; sent 100, dropped 0\n",
              side.stdout.read())
        check("exit", 0, side.wait(TIMEOUT))
    finally:
        side.kill()


if __name__ == "__main__":
    main()
