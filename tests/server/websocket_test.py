# SPDX-License-Identifier: MIT
"""websocket_test.py WEBSOCKET_ECHO: examples/websocket_echo as a WebSocket client of RFC 6455 sees it, byte by byte.

With the package `websockets` the same echoes run through it, too.
"""
import base64
import hashlib
import os
import socket
import struct
import subprocess
import sys
import zlib

from checks import check

TIMEOUT = 60
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Client:
    """One connection. It writes frames as it is told, right or wrong."""

    def __init__(self, address, fields=""):
        self.socket = socket.create_connection(address, TIMEOUT)
        self.file = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n{fields}\r\n").encode())
        self.status = self.file.readline().split()[1]
        self.fields = {}
        while line := self.file.readline().decode().strip():
            name, value = line.split(": ", 1)
            self.fields[name.lower()] = value
        accept = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        check("the status of the upgrade", b"101", self.status)
        check("the proof", base64.b64encode(accept).decode(), self.fields["sec-websocket-accept"])

    def send(self, opcode, body, last=True, bits=0):
        size = len(body)
        head = bytes([(0x80 if last else 0) | bits | opcode])
        head += (bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack(">H", size) if size < 65536
                 else b"\xff" + struct.pack(">Q", size))
        mask = os.urandom(4)
        pad = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        self.socket.sendall(head + mask + (int.from_bytes(body, "big") ^ pad).to_bytes(size, "big"))

    def receive(self):
        """A frame: its opcode and body; None at the end of the stream."""
        head = self.file.read(2)
        if len(head) < 2:
            return None
        size = head[1]
        if size == 126:
            size, = struct.unpack(">H", self.file.read(2))
        elif size == 127:
            size, = struct.unpack(">Q", self.file.read(8))
        self.compressed = head[0] & 0x40 != 0
        check("a whole frame without a mask", 0x80, head[0] & 0xb0)
        return head[0] & 15, self.file.read(size)


def echoes(address):
    client = Client(address)
    for size in (0, 1, 125, 126, 65535, 65536, 1_000_000):
        for opcode, body in ((TEXT, b"x" * size), (BINARY, os.urandom(size))):
            client.send(opcode, body)
            check(f"{size} bytes of {opcode}", (opcode, body), client.receive())
    client.send(TEXT, "κόσ".encode()[:3], last=False)
    client.send(PING, b"between")
    client.send(0, "κόσ".encode()[3:], last=False)
    client.send(0, b"")
    check("a ping between fragments", (PONG, b"between"), client.receive())
    check("fragments", (TEXT, "κόσ".encode()), client.receive())
    client.send(CLOSE, struct.pack(">H", 1000) + b"bye")
    check("the closing handshake", (CLOSE, struct.pack(">H", 1000)), client.receive())
    check("the server ends the stream", None, client.receive())


def compressed_echoes(address):
    """Each way: by a stream of zlib that keeps its window if the server does. Without zlib the server takes no offer."""
    for offer in ("permessage-deflate", "permessage-deflate; client_max_window_bits; server_max_window_bits=10",
                  "permessage-deflate; server_max_window_bits=8, permessage-deflate; client_no_context_takeover"):
        client = Client(address, f"Sec-WebSocket-Extensions: {offer}\r\n")
        answer = client.fields.get("sec-websocket-extensions", "")
        if not answer:
            print("skipped: the server was built without zlib")
            return
        check("the server forgets messages", True, "server_no_context_takeover" in answer)
        for body in (b"", b"x", b"word " * 100_000, os.urandom(100_000)):
            squeeze = zlib.compressobj(wbits=-15)
            payload = (squeeze.compress(body) + squeeze.flush(zlib.Z_SYNC_FLUSH))[:-4]
            client.send(BINARY, payload[:10], last=False, bits=0x40)
            client.send(0, payload[10:])
            opcode, echo = client.receive()
            check("the opcode", BINARY, opcode)
            check("compressed if it pays", body.startswith(b"word"), client.compressed)
            if client.compressed:
                echo = zlib.decompressobj(wbits=-(10 if "=10" in offer else 15)).decompress(echo + b"\0\0\xff\xff")
            check("the echo", body, echo)
        bomb = zlib.compressobj(wbits=-15)
        payload = (bomb.compress(bytes(20_000_000)) + bomb.flush(zlib.Z_SYNC_FLUSH))[:-4]
        client.send(BINARY, payload, bits=0x40)
        check("a bomb", (CLOSE, struct.pack(">H", 1009)), client.receive())
        check("the end after a bomb", None, client.receive())


def refusals(address):
    for status, frames in ((1002, [(3, b"", True)]), (1002, [(0, b"x", True)]), (1002, [(PING, b"x" * 126, True)]),
                           (1007, [(TEXT, b"\xed\xa0\x80", True)]), (1007, [(TEXT, b"\xce", False), (0, b"", True)]),
                           (1002, [(CLOSE, b"x", True)]), (1009, None)):
        client = Client(address)
        if frames is None:
            client.socket.sendall(b"\x82\xff" + struct.pack(">Q", 1 << 40) + bytes(4))  # a header without its body
        else:
            for frame in frames:
                client.send(*frame)
        check(f"refusal {status}", (CLOSE, struct.pack(">H", status)), client.receive())
        check(f"the end after {status}", None, client.receive())


def by_websockets(address):
    try:
        from websockets.sync.client import connect
    except ImportError:
        return
    for compression in (None, "deflate"):
        by_connection(connect(f"ws://{address[0]}:{address[1]}/", compression=compression, max_size=None))


def by_connection(connection):
    with connection as client:
        for message in ("", "κόσμε", "x" * 100_000, b"", bytes(range(256)) * 1000):
            client.send(message)
            check("websockets", message, client.recv(TIMEOUT))
        client.send(["frag", "ments"])
        check("fragments of websockets", "fragments", client.recv(TIMEOUT))
        check("a ping of websockets", True, client.ping().wait(TIMEOUT))


def main():
    side = subprocess.Popen([sys.argv[1], "0"], stdout=subprocess.PIPE, text=True)
    try:
        host, port = side.stdout.readline().strip().removeprefix("serving at tcp://").split(":")
        address = host, int(port)
        echoes(address)
        compressed_echoes(address)
        refusals(address)
        by_websockets(address)
    finally:
        side.kill()


if __name__ == "__main__":
    main()
