# SPDX-License-Identifier: MIT
"""PLAIN, CURVE and ZAP between Weft's libzmq.so.5 (through ctypes) and pyzmq's libzmq: each is the server once, over tcp
and ipc, with right and with wrong credentials. One line per cell."""

import argparse
import ctypes
import itertools
import sys
import tempfile
import threading
from pathlib import Path

from peers import PeerError, wait_until

try:
    import zmq
    from zmq.utils import z85
except ImportError:
    print("security_test: pyzmq is not installed (see deps/pip.txt)")
    sys.exit(2)

LONG = 20_000  # ms: a broken test fails instead of hanging
SIZES = [0, 1, 47, 255, 256, 4096, 40_000, 300_000, 3_000_000]


class WeftSocket:
    """The part of zmq.Socket that the tests need."""

    def __init__(self, library, context, kind: int):
        self.library, self.handle = library, library.zmq_socket(context, kind)
        assert self.handle, "zmq_socket"
        for option in (zmq.RCVTIMEO, zmq.SNDTIMEO):
            self.set(option, LONG)
        self.set(zmq.LINGER, 0)
        self.set(zmq.RECONNECT_IVL, 20)

    def check(self, result: int) -> int:
        if result < 0:
            raise zmq.ZMQError(self.library.zmq_errno())
        return result

    def set(self, option: int, value) -> None:
        raw = value if isinstance(value, bytes) else ctypes.c_int(value)
        size = len(value) if isinstance(value, bytes) else ctypes.sizeof(raw)
        self.check(self.library.zmq_setsockopt(self.handle, option, raw if isinstance(value, bytes) else ctypes.byref(raw), size))

    def get(self, option: int, size: int) -> bytes:
        buffer, length = ctypes.create_string_buffer(size), ctypes.c_size_t(size)
        self.check(self.library.zmq_getsockopt(self.handle, option, buffer, ctypes.byref(length)))
        return buffer.raw[: length.value]

    def bind(self, endpoint: str) -> str:
        self.check(self.library.zmq_bind(self.handle, endpoint.encode()))
        return self.get(zmq.LAST_ENDPOINT, 256).rstrip(b"\0").decode()

    def connect(self, endpoint: str) -> None:
        self.check(self.library.zmq_connect(self.handle, endpoint.encode()))

    def send_multipart(self, parts: list[bytes]) -> None:
        for i, part in enumerate(parts):
            more = zmq.SNDMORE if i + 1 < len(parts) else 0
            self.check(self.library.zmq_send(self.handle, part, len(part), more))

    def recv_multipart(self) -> list[bytes]:
        parts, more = [], 1
        while more:
            buffer = ctypes.create_string_buffer(4 << 20)
            size = self.check(self.library.zmq_recv(self.handle, buffer, len(buffer), 0))
            parts.append(buffer.raw[:size])
            more = int.from_bytes(self.get(zmq.RCVMORE, 4), "little")
        return parts

    def close(self) -> None:
        self.library.zmq_close(self.handle)


class LibzmqSocket:
    def __init__(self, context: zmq.Context, kind: int):
        self.socket = context.socket(kind)
        self.socket.setsockopt(zmq.LINGER, 0)
        for option in (zmq.RCVTIMEO, zmq.SNDTIMEO):
            self.socket.setsockopt(option, LONG)
        self.send_multipart, self.recv_multipart = self.socket.send_multipart, self.socket.recv_multipart
        self.set, self.connect, self.close = self.socket.setsockopt, self.socket.connect, self.socket.close

    def bind(self, endpoint: str) -> str:
        self.socket.bind(endpoint)
        return self.socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()


class Side:
    """One library: a context and an authenticator in it that answers `requests` times and keeps the requests."""

    def __init__(self, name: str, library=None):
        self.name, self.library = name, library
        self.context = library.zmq_ctx_new() if library else zmq.Context()
        self.asked: list[list[bytes]] = []
        self.handler = None

    def socket(self, kind: int):
        return WeftSocket(self.library, self.context, kind) if self.library else LibzmqSocket(self.context, kind)

    def authenticate(self, admits) -> None:
        self.handler = self.socket(zmq.REP)
        self.handler.set(zmq.RCVTIMEO, 50)
        self.handler.bind("inproc://zeromq.zap.01")
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.answer, args=(admits,))
        self.thread.start()

    def answer(self, admits) -> None:
        while not self.ending.is_set():
            try:
                request = self.handler.recv_multipart()
            except zmq.ZMQError:
                continue
            self.asked.append(request)
            status = b"200" if admits(request) else b"400"
            self.handler.send_multipart([b"1.0", request[1], status, b"why", b"user", b""])

    def end(self) -> None:
        if self.handler:
            self.ending.set()
            self.thread.join()
            self.handler.close()
        if self.library:
            self.library.zmq_ctx_term(self.context)
        else:
            self.context.term()


def echo(server, client) -> None:
    for size in SIZES:
        body = [b"x" * size, b"y", b"z" * (size // 2)]
        client.send_multipart(body)
        assert server.recv_multipart() == body, f"the request of {size} bytes arrived changed"
        server.send_multipart(body)
        assert client.recv_multipart() == body, f"the reply of {size} bytes arrived changed"


def publish(server_side: Side, client_side: Side, secure_server, secure_client, endpoint: str) -> None:
    """The client subscribes; the server publishes single parts, which are batched."""
    server, client = server_side.socket(zmq.XPUB), client_side.socket(zmq.SUB)
    try:
        secure_server(server)
        secure_client(client)
        client.set(zmq.SUBSCRIBE, b"t")
        client.connect(server.bind(endpoint))
        assert server.recv_multipart() == [b"\1t"], "another subscription"
        for i in range(500):
            server.send_multipart([b"t%d" % i])
        for i in range(500):
            assert client.recv_multipart() == [b"t%d" % i], f"message {i}"
        client.set(zmq.UNSUBSCRIBE, b"t")
        assert server.recv_multipart() == [b"\0t"], "no unsubscription"
    finally:
        client.close()
        server.close()


def refused(server, client) -> None:
    client.set(zmq.SNDTIMEO, 300)
    server.set(zmq.RCVTIMEO, 300)
    try:
        client.send_multipart([b"let me in"])
        server.recv_multipart()
    except zmq.ZMQError:
        return
    raise AssertionError("a client got in that must not")


def run_cell(sides: dict[str, "callable"], server_name: str, mechanism: str, right: bool, endpoint: str) -> None:
    server_side = sides[server_name]()
    client_side = sides["libzmq" if server_name == "weft" else "weft"]()
    server_public, server_secret = zmq.curve_keypair()
    client_public, client_secret = zmq.curve_keypair()

    def secure_server(socket) -> None:
        socket.set(zmq.ZAP_DOMAIN, b"global")
        if mechanism == "plain":
            socket.set(zmq.PLAIN_SERVER, 1)
        elif mechanism == "curve":
            socket.set(zmq.CURVE_SECRETKEY, server_secret)
            socket.set(zmq.CURVE_SERVER, 1)

    def secure_client(socket) -> None:
        if mechanism == "plain":
            socket.set(zmq.PLAIN_USERNAME, b"admin")
            socket.set(zmq.PLAIN_PASSWORD, b"secret" if right else b"guess")
        elif mechanism == "curve":
            socket.set(zmq.CURVE_PUBLICKEY, client_public)
            socket.set(zmq.CURVE_SECRETKEY, client_secret)
            socket.set(zmq.CURVE_SERVERKEY, server_public)

    def admits(request: list[bytes]) -> bool:
        if mechanism == "plain":
            return request[6:] == [b"admin", b"secret"]
        return right

    server_side.authenticate(admits)
    server, client = server_side.socket(zmq.REP), client_side.socket(zmq.REQ)
    try:
        secure_server(server)
        secure_client(client)
        client.connect(server.bind(endpoint))
        if right:
            echo(server, client)
            publish(server_side, client_side, secure_server, secure_client, endpoint + "2" if "ipc" in endpoint else endpoint)
        else:
            wait_until(lambda: server_side.asked, "the authenticator is asked")
            refused(server, client)
        assert server_side.asked, "the authenticator was not asked"
        request = server_side.asked[0]
        assert request[0] == b"1.0" and request[2] == b"global" and request[5] == mechanism.upper().encode(), request
        if mechanism == "curve":
            assert [z85.encode(request[6])] == [client_public], "another key"
    finally:
        client.close()
        server.close()
        client_side.end()
        server_side.end()


def load(build_dir: Path):
    library = ctypes.CDLL(str(build_dir / "capi" / "libzmq.so.5"))
    for name in ("zmq_ctx_new", "zmq_socket"):
        getattr(library, name).restype = ctypes.c_void_p
    library.zmq_socket.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.zmq_ctx_term.argtypes = library.zmq_close.argtypes = [ctypes.c_void_p]
    for name in ("zmq_bind", "zmq_connect"):
        getattr(library, name).argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    for name in ("zmq_send", "zmq_recv"):
        getattr(library, name).argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
    library.zmq_setsockopt.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
    library.zmq_getsockopt.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    return library


def options_follow_libzmq(library) -> None:
    side = Side("weft", library)
    socket = side.socket(zmq.REQ)
    public, secret = zmq.curve_keypair()
    socket.set(zmq.CURVE_PUBLICKEY, public)
    assert socket.get(zmq.CURVE_PUBLICKEY, 41) == public + b"\0"
    assert z85.encode(socket.get(zmq.CURVE_PUBLICKEY, 32)) == public
    assert socket.get(zmq.MECHANISM, 4) == bytes([zmq.CURVE, 0, 0, 0])
    socket.set(zmq.PLAIN_USERNAME, b"me")
    assert socket.get(zmq.MECHANISM, 4) == bytes([zmq.PLAIN, 0, 0, 0])
    assert socket.get(zmq.PLAIN_USERNAME, 10) == b"me\0"
    for option, value in [(zmq.CURVE_SECRETKEY, b"short"), (zmq.CURVE_SERVERKEY, b"#" * 40), (zmq.PLAIN_USERNAME, b""),
                          (zmq.PLAIN_PASSWORD, b"x" * 256), (zmq.PLAIN_SERVER, 2), (zmq.CURVE_SERVER, -1)]:
        try:
            socket.set(option, value)
        except zmq.ZMQError as error:
            assert error.errno == zmq.EINVAL, error
            continue
        raise AssertionError(f"option {option} took {value}")
    socket.close()
    side.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build_dir", type=Path)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    library = load(arguments.build_dir)
    sides = {"weft": lambda: Side("weft", library), "libzmq": lambda: Side("libzmq")}
    options_follow_libzmq(library)
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        cells = itertools.product(("weft", "libzmq"), ("null", "plain", "curve"), (True, False), ("tcp", "ipc"))
        for number, (server, mechanism, right, transport) in enumerate(cells):
            name = f"{server}-serves {mechanism} {'right' if right else 'wrong'} {transport}"
            if arguments.only not in name:
                continue
            endpoint = "tcp://127.0.0.1:*" if transport == "tcp" else f"ipc://{directory}/{number}"
            error = ""
            try:
                run_cell(sides, server, mechanism, right, endpoint)
            except (AssertionError, PeerError, zmq.ZMQError) as reason:
                error = f"{type(reason).__name__}: {reason}"
                failures += 1
            print(f"{'FAIL' if error else 'ok':4} {name:40} {error}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
