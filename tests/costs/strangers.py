# SPDX-License-Identifier: MIT
"""Peers by hand that stop, dribble or flood in a phase of a connection, and the process that they connect to."""

import os
import re
import socket
import ssl
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[1] / folder) for folder in ("interop", "support")]

from peers import PATIENCE, Peer, PeerError  # noqa: E402
from web_bytes import upgrade_request, web_frame  # noqa: E402
from zmtp_bytes import command, framed, greeting, ready  # noqa: E402

FLOOD = 256 * 1024  # bytes of each peer, as far as the other end reads them


# --- the bytes of a peer ---

def client_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def tls_hello() -> bytes:
    out = ssl.MemoryBIO()
    try:
        client_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost").do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


def long_hello() -> bytes:
    """A record with the longest hello that is read, except for its last bytes."""
    return b"\x16\x03\x01\x40\x00" + b"\x01\x00\x40\x00" + bytes(16 * 1024 - 4)


class Stranger:
    """A peer by hand: reaches a phase, and sends what a test wants."""

    def __init__(self, door: "Door"):
        if door.transport == "ipc":
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(PATIENCE)
            self.socket.connect(door.endpoint.removeprefix("ipc://"))
        else:
            port = int(re.search(r":(\d+)", door.endpoint.partition("//")[2]).group(1))
            self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.door = door
        self.web = door.transport in ("ws", "wss")

    def reach(self, phase: str) -> None:
        if phase in ("accepted", "TLS"):
            return
        if self.door.transport in ("tls+tcp", "wss"):
            self.socket = self.door.context.wrap_socket(self.socket, server_hostname="localhost")
        if phase == "upgrade":
            return
        if self.web:
            self.socket.sendall(upgrade_request())
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += self.read(1)
            if b" 101 " not in head:
                raise PeerError(f"the upgrade got {head!r}")
        elif phase != "greeting":
            self.socket.sendall(greeting(b"CURVE" if "CURVE" in phase else b"NULL"))
            self.read(64)
        if phase == "open":
            self.socket.sendall(web_frame(b"\2" + ready()) if self.web else framed(ready()))
            self.read(self.read(2)[1])  # the READY of the other end

    def read(self, size: int) -> bytes:
        got = b""
        while len(got) < size:
            some = self.socket.recv(size - len(got))
            if not some:
                raise PeerError("the other end closed before the phase")
            got += some
        return got

    def send(self, data: bytes) -> bool:
        """False: the other end takes no more, or is gone."""
        self.socket.setblocking(False)
        try:
            while data:
                data = data[self.socket.send(data):]
        except OSError:  # a full buffer, a reset, and both of TLS
            return False
        return True

    def close(self) -> None:
        self.socket.close()


@dataclass
class Script:
    """What a peer in a phase sends: to stop in it, a byte at a time, and at once; and then what goes beyond the bounds."""

    half: bytes
    most: bytes
    beyond: bytes
    welcome: bytes = b""  # is sent first and answered, before the peer stops or floods


def script(transport: str, phase: str, hello: bytes) -> Script:
    web = transport in ("ws", "wss")
    if phase == "accepted":
        return Script(b"", b"", b"")
    if phase == "TLS":
        return Script(tls_hello()[:-1], long_hello(), long_hello() * 8)
    if phase == "upgrade":
        return Script(upgrade_request()[:-1], upgrade_request(7980)[:-2], b"p" * FLOOD)
    if phase == "greeting":
        return Script(greeting(b"NULL")[:-1], greeting(b"NULL")[:-1], b"\xff" * FLOOD)
    if phase == "open":
        message = web_frame(bytes(33)) if web else framed(bytes(32), 0)
        whole = web_frame(b"\0" + bytes(200)) if web else framed(bytes(200), 0)
        return Script(whole[:-1], message * (FLOOD // len(message)), message * (FLOOD // len(message)))
    if "CURVE" in phase:
        initiate = framed(command(b"INITIATE", bytes(16_000)))
        return Script(hello[:-1], initiate[:-1], initiate[-1:] + initiate * 8, welcome=hello)
    if web:
        piece = web_frame(b"\2" + ready(9_000), 0x02)
        return Script(web_frame(b"\2" + ready())[:-1], piece, web_frame(b"p" * 9_000, 0x00) * 16)
    long_ready = framed(ready(16_000))
    return Script(framed(ready())[:-1], long_ready[:-1], long_ready[-1:] + long_ready * 8)


# --- the process that they connect to ---

class Door:
    def __init__(self, program: Path, transport: str, folder: str, curve: bool):
        self.transport = transport
        self.context = client_context()
        self.peer = Peer(program, "door", transport, folder, *(["curve"] if curve else []))
        line = self.peer.read_line()
        if line.startswith("without"):
            self.kill()
            raise Without(line)
        self.endpoint, _, self.key = line.removeprefix("door ").partition(" ")
        self.beside = self.peer.expect("beside")
        self.tasks = Path(f"/proc/{self.peer.pid}/task")

    def kill(self) -> None:
        self.peer.kill()

    def accepted(self) -> int:
        self.peer.send("count")
        return int(self.peer.expect("count").split()[0])

    def resident(self) -> int:
        for line in Path(f"/proc/{self.peer.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Rss:"):
                return int(line.split()[1]) * 1024
        raise PeerError("smaps_rollup has no Rss")

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.peer.pid}/fd"))

    def processor(self) -> int:
        """Nanoseconds of all threads."""
        return sum(int((task / "schedstat").read_text().split()[0]) for task in self.tasks.iterdir())

    def rests(self) -> bool:
        """A thread that waits for a processor is not at rest."""
        before = self.processor()
        time.sleep(0.005)
        states = {(task / "stat").read_text().rpartition(")")[2].split()[0] for task in self.tasks.iterdir()}
        return states == {"S"} and self.processor() == before


class Without(Exception):
    """The build lacks the transport or the mechanism."""


def record_hello(program: Path, key: str) -> bytes:
    """The HELLO of a client with CURVE: the server takes it from each connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        knocks = Peer(program, "knock", f"tcp://127.0.0.1:{listener.getsockname()[1]}", key)
        try:
            listener.settimeout(PATIENCE)
            peer, _ = listener.accept()
            with peer:
                peer.settimeout(PATIENCE)
                peer.sendall(greeting(b"CURVE")[:32] + b"\1" + bytes(31))
                data = b""
                while len(data) < 64 + 202:
                    some = peer.recv(64 + 202 - len(data))
                    if not some:
                        raise PeerError("the client with CURVE left")
                    data += some
                return data[64:]
        finally:
            knocks.kill()
