# SPDX-License-Identifier: MIT
"""filter_test.py BUILD: subscriptions by filter with libzmq at the other end, each side binding once.

Our library is loaded beside pyzmq's in one process. A SUB of ours with filters is at a PUB of libzmq, which knows prefixes
only; a SUB of libzmq is at a PUB of ours beside such a SUB."""

import ctypes
import pathlib
import sys
import tempfile

import zmq

PUB, SUB, LAST_ENDPOINT, SUBSCRIBE, RCVTIMEO, LINGER, SNDHWM, RCVHWM = 1, 2, 32, 6, 27, 17, 23, 24
PATIENCE = 20_000  # milliseconds
TOPICS = [b"player:10", b"player:1", b"a:x:c", b"a:x:b", b"px", b"px.A", b"px.A.B", b"other", b"end"]
WANTED = [b"player:1", b"a:x:b", b"px.A", b"end"]
EXACT, TOKENS, GLOB = 1, 2, 4


class Ours:
    """A socket of our library."""

    def __init__(self, library: ctypes.CDLL, context: int, kind: int):
        self._library = library
        self._socket = ctypes.c_void_p(library.zmq_socket(ctypes.c_void_p(context), kind))
        for option, value in ((RCVTIMEO, PATIENCE), (LINGER, 0), (SNDHWM, 0), (RCVHWM, 0)):  # arrives() fills no queue
            self.set(option, bytes(ctypes.c_int(value)))

    def _check(self, result: int) -> int:
        if result < 0:
            raise OSError(self._library.zmq_errno(), "a call of our library failed")
        return result

    def set(self, option: int, value: bytes) -> None:
        self._check(self._library.zmq_setsockopt(self._socket, option, value, ctypes.c_size_t(len(value))))

    def bind(self, endpoint: str) -> str:
        self._check(self._library.zmq_bind(self._socket, endpoint.encode()))
        text, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
        self._check(self._library.zmq_getsockopt(self._socket, LAST_ENDPOINT, text, ctypes.byref(size)))
        return text.value.decode()

    def connect(self, endpoint: str) -> None:
        self._check(self._library.zmq_connect(self._socket, endpoint.encode()))

    def want(self) -> None:
        for kind, text in ((EXACT, b"player:1"), (GLOB, b"a:*:b"), (TOKENS, b"px.*"), (EXACT, b"end"), (EXACT, b"begin")):
            self._check(self._library.weft_socket_subscribe(self._socket, kind, text, ctypes.c_size_t(len(text))))

    def send(self, topic: bytes) -> None:
        self._check(self._library.zmq_send(self._socket, topic, ctypes.c_size_t(len(topic)), 0))

    def recv(self, flags: int = 0) -> bytes | None:
        room = ctypes.create_string_buffer(64)
        size = self._library.zmq_recv(self._socket, room, ctypes.c_size_t(64), flags)
        return None if flags and size < 0 else room.raw[: self._check(size)]

    def close(self) -> None:
        self._check(self._library.zmq_close(self._socket))


def theirs(context: zmq.Context, kind: int) -> zmq.Socket:
    socket = context.socket(kind)
    socket.rcvtimeo, socket.linger = PATIENCE, 0
    socket.sndhwm = socket.rcvhwm = 0
    return socket


def bind(socket: zmq.Socket, endpoint: str) -> str:
    socket.bind(endpoint)
    return socket.last_endpoint.decode().rstrip("\0")


def arrives(sub: Ours, publish) -> None:
    """Publishes until the subscriber has all its subscriptions at the publisher."""
    while sub.recv(zmq.DONTWAIT) != b"begin":
        publish(b"begin")


def until_end(recv) -> list[bytes]:
    got = []
    while not got or got[-1] != b"end":
        topic = recv()
        if topic != b"begin":
            got.append(topic)
    return got


def expect(what: str, got: list[bytes], wanted: list[bytes]) -> None:
    print(f"{what}: {'ok' if got == wanted else f'got {got}, not {wanted}'}")
    if got != wanted:
        sys.exit(1)


def run(library: ctypes.CDLL, ours: int, context: zmq.Context, endpoint: str, name: str) -> None:
    # libzmq removes the file of an ipc endpoint some time after close(): each binding has a path of its own.
    places = iter(endpoint.format(n=n) for n in range(3))
    for we_bind in (True, False):
        place = next(places)
        sub, pub = Ours(library, ours, SUB), theirs(context, zmq.PUB)
        sub.want()
        pub.connect(sub.bind(place)) if we_bind else sub.connect(bind(pub, place))
        arrives(sub, pub.send)
        for topic in TOPICS:
            pub.send(topic)
        expect(f"filters of ours at libzmq's PUB, {name}, {'ours' if we_bind else 'libzmq'} binds", until_end(sub.recv), WANTED)
        sub.close()
        pub.close()
    pub, plain, sub = Ours(library, ours, PUB), theirs(context, zmq.SUB), Ours(library, ours, SUB)
    at = pub.bind(next(places))
    plain.subscribe(b"player:")
    plain.subscribe(b"end")
    plain.subscribe(b"begin")
    sub.want()
    plain.connect(at)
    sub.connect(at)
    arrives(sub, pub.send)
    plain.rcvtimeo = 1
    while True:
        pub.send(b"begin")
        try:
            plain.recv()
            break
        except zmq.Again:
            pass
    plain.rcvtimeo = PATIENCE
    for topic in TOPICS:
        pub.send(topic)
    expect(f"prefixes of libzmq at our PUB, {name}", until_end(plain.recv), [b"player:10", b"player:1", b"end"])
    expect(f"filters of ours beside them, {name}", until_end(sub.recv), WANTED)
    for socket in (pub, plain, sub):
        socket.close()


def main() -> int:
    library = ctypes.CDLL(str(pathlib.Path(sys.argv[1]) / "capi" / "libzmq.so.5"))
    library.zmq_ctx_new.restype = library.zmq_socket.restype = ctypes.c_void_p
    ours, context = library.zmq_ctx_new(), zmq.Context()
    with tempfile.TemporaryDirectory() as directory:
        run(library, ours, context, "tcp://127.0.0.1:*", "tcp")
        run(library, ours, context, f"ipc://{directory}/place-{{n}}", "ipc")
    context.term()
    library.zmq_ctx_term(ctypes.c_void_p(ours))
    return 0


if __name__ == "__main__":
    sys.exit(main())
