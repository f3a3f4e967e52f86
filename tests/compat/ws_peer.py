# SPDX-License-Identifier: MIT
"""One role of ws.py on Debian's pyzmq, which takes the libzmq.so.5 of LD_LIBRARY_PATH.

ws_peer.py ROLE bind|connect ENDPOINT COUNT [FOLDER]. With wss:// the folder has a certificate and its key.
ws_peer.py has NAME prints whether the library has that capability.
"""

import ctypes
import sys
from pathlib import Path

import zmq

PATIENCE = 60_000  # milliseconds: the machine may do much besides
WSS_KEY_PEM, WSS_CERT_PEM, WSS_TRUST_PEM, WSS_HOSTNAME = 103, 104, 105, 106  # Debian's pyzmq does not know the drafts
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


def set_text(socket, option, text):
    function = ctypes.CDLL("libzmq.so.5").zmq_setsockopt
    function.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
    if function(socket.underlying, option, text, len(text)) != 0:
        sys.exit(f"zmq_setsockopt refuses option {option}")


def use_certificate(socket, way, folder):
    certificate = (folder / "certificate.pem").read_bytes()
    if way == "bind":
        set_text(socket, WSS_CERT_PEM, certificate)
        set_text(socket, WSS_KEY_PEM, (folder / "key.pem").read_bytes())
    else:
        set_text(socket, WSS_TRUST_PEM, certificate)
        set_text(socket, WSS_HOSTNAME, b"weft.example")


def main():
    if sys.argv[1] == "has":
        return print(zmq.has(sys.argv[2]))
    role, way, endpoint, count, *folder = sys.argv[1:]
    context = zmq.Context()
    socket = context.socket(KINDS[role])
    socket.sndhwm = socket.rcvhwm = 0
    socket.rcvtimeo = socket.sndtimeo = PATIENCE
    socket.linger = 0 if role in ("sub", "pull") else PATIENCE
    if role == "sub":
        socket.subscribe(b"")
    if folder:
        use_certificate(socket, way, Path(folder[0]))
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
