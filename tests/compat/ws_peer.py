# SPDX-License-Identifier: MIT
"""One role of ws.py on Debian's pyzmq, which takes the libzmq.so.5 of LD_LIBRARY_PATH: ROLE bind|connect ENDPOINT COUNT."""

import sys

import zmq

PATIENCE = 30_000  # milliseconds
KINDS = {"pub": zmq.XPUB, "sub": zmq.SUB, "req": zmq.REQ, "rep": zmq.REP, "dealer": zmq.DEALER, "router": zmq.ROUTER}
KINDS |= {"push": zmq.PUSH, "pull": zmq.PULL}
ALPHABET = bytes(ord("a") + i % 26 for i in range(1000))


def make(number):
    """The message with this number: page.js of ws.py makes the same."""
    return [b"%d" % number, ALPHABET[number % 26 : number % 26 + number % 301]]


def check(number, parts):
    if parts != make(number):
        sys.exit(f"message {number} is {parts}")


def run(socket, role, count):
    if role == "pub" and socket.recv() != b"\1":  # a browser subscribes in the same way
        sys.exit("no subscription to everything")
    for number in range(count):
        if role in ("push", "pub"):
            socket.send_multipart(make(number))
        elif role in ("pull", "sub"):
            check(number, socket.recv_multipart())
        elif role == "req":
            socket.send_multipart(make(number))
            check(number, socket.recv_multipart())
        elif role == "rep":
            parts = socket.recv_multipart()
            check(number, parts)
            socket.send_multipart(parts)
        elif role == "router":
            parts = socket.recv_multipart()
            check(number, parts[1:])
            socket.send_multipart(parts)
        elif role == "dealer":
            socket.send_multipart(make(number))
    for number in range(count if role == "dealer" else 0):
        check(number, socket.recv_multipart())


def main():
    role, way, endpoint, count = sys.argv[1:]
    context = zmq.Context()
    socket = context.socket(KINDS[role])
    socket.sndhwm = socket.rcvhwm = 0
    socket.rcvtimeo = socket.sndtimeo = PATIENCE
    socket.linger = 0 if role in ("sub", "pull") else PATIENCE
    if role == "sub":
        socket.subscribe(b"")
    if way == "bind":
        socket.bind(endpoint)
        print(socket.last_endpoint.rstrip(b"\0").decode(), flush=True)
    else:
        socket.connect(endpoint)
    run(socket, role, int(count))
    print("ok", flush=True)
    if way == "connect":
        sys.stdin.read()  # until the other end has read everything
    context.destroy()


main()
