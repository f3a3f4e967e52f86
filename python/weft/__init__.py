# SPDX-License-Identifier: MIT
"""Message sockets with ZeroMQ's patterns, on Weft. `python -m weft.run program.py` runs a pyzmq program on Weft."""

from __future__ import annotations

import ctypes
import errno
from types import TracebackType
from typing import List, Optional, Sequence, Type, Union

from . import _lib

__all__ = ["Again", "Context", "Error", "Socket", "library"]
__version__ = _lib.version()

PAIR, PUB, SUB, REQ, REP, DEALER, ROUTER, PULL, PUSH, XPUB, XSUB, STREAM = range(12)
__all__ += "PAIR PUB SUB REQ REP DEALER ROUTER PULL PUSH XPUB XSUB STREAM".split()

IDENTITY, SUBSCRIBE, UNSUBSCRIBE = 5, 6, 7
RCVMORE, FD, EVENTS, LINGER, SNDHWM, RCVHWM, RCVTIMEO, SNDTIMEO, LAST_ENDPOINT = 13, 14, 15, 17, 23, 24, 27, 28, 32
__all__ += "IDENTITY SUBSCRIBE UNSUBSCRIBE FD EVENTS LINGER SNDHWM RCVHWM RCVTIMEO SNDTIMEO LAST_ENDPOINT".split()
_DONTWAIT, _SNDMORE = 1, 2

Parts = Union[bytes, Sequence[bytes]]


class Error(OSError):
    """A call that the library refused: `errno` is the C interface's number, `strerror` its text."""


class Again(Error, TimeoutError):
    """The call would wait, or its time-out passed."""


def library() -> str:
    """The path of the shared library that the package carries: a drop-in for libzmq.so.5."""
    return str(_lib.LIBRARY)


def _fail() -> "Error":
    number, text = _lib.last_error()
    return (Again if number == errno.EAGAIN else Error)(number, text)


class Context:
    """Owns the sockets that it makes. `close` closes them first: it waits for unsent messages up to each one's LINGER."""

    def __init__(self) -> None:
        self._handle: Optional[int] = _lib.lib.zmq_ctx_new()
        self._sockets: List[Socket] = []
        if not self._handle:
            raise _fail()

    def socket(self, kind: int) -> "Socket":
        """A new socket of the type `kind`, for example weft.PUSH. Raises Error."""
        return Socket(self, kind)

    def close(self) -> None:
        """Closes the sockets, then the context. A second call has no effect."""
        for socket in list(self._sockets):
            socket.close()
        handle, self._handle = self._handle, None
        while handle and _lib.lib.zmq_ctx_term(handle) != 0:
            if ctypes.get_errno() != errno.EINTR:
                raise _fail()

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


class Socket:
    """One socket. It belongs to one thread at a time. Its calls raise Error; after `close`, of ENOTSOCK."""

    def __init__(self, context: Context, kind: int) -> None:
        self._context = context
        self._handle: Optional[int] = _lib.lib.zmq_socket(context._handle, kind)
        if not self._handle:
            raise _fail()
        context._sockets.append(self)

    def bind(self, endpoint: str) -> str:
        """Listens; returns the endpoint with the port that the system chose for `*`."""
        self._check(_lib.lib.zmq_bind(self._handle, endpoint.encode()))
        return self.get_bytes(LAST_ENDPOINT).rstrip(b"\0").decode()

    def connect(self, endpoint: str) -> None:
        """Begins to connect, and returns at once."""
        self._check(_lib.lib.zmq_connect(self._handle, endpoint.encode()))

    def unbind(self, endpoint: str) -> None:
        """Stops listening."""
        self._check(_lib.lib.zmq_unbind(self._handle, endpoint.encode()))

    def disconnect(self, endpoint: str) -> None:
        """Ends the connection of a `connect`."""
        self._check(_lib.lib.zmq_disconnect(self._handle, endpoint.encode()))

    def subscribe(self, prefix: bytes = b"") -> None:
        """SUB: receives messages whose first part begins with `prefix`."""
        self.set(SUBSCRIBE, prefix)

    def set(self, option: int, value: Union[int, bytes]) -> None:
        """Sets an option: an int of 32 bits, or bytes."""
        raw = value if isinstance(value, bytes) else bytes(ctypes.c_int(value))
        self._check(_lib.lib.zmq_setsockopt(self._handle, option, raw, len(raw)))

    def get_int(self, option: int) -> int:
        """The value of an option of 32 bits."""
        value, size = ctypes.c_int(), ctypes.c_size_t(4)
        self._check(_lib.lib.zmq_getsockopt(self._handle, option, ctypes.byref(value), ctypes.byref(size)))
        return value.value

    def get_bytes(self, option: int) -> bytes:
        """The value of an option of bytes, at most 1024."""
        value, size = ctypes.create_string_buffer(1024), ctypes.c_size_t(1024)
        self._check(_lib.lib.zmq_getsockopt(self._handle, option, value, ctypes.byref(size)))
        return value.raw[: size.value]

    def send(self, message: Parts, *, wait: bool = True) -> None:
        """Sends one message of one part or of several. Raises Again if there is no room: at once without `wait`, otherwise
        after SNDTIMEO."""
        parts = [message] if isinstance(message, bytes) else list(message)
        if not parts or not all(isinstance(part, bytes) for part in parts):
            raise TypeError("a message is bytes, or a sequence of one or more bytes")
        for index, part in enumerate(parts):
            flags = (0 if wait else _DONTWAIT) | (_SNDMORE if index + 1 < len(parts) else 0)
            while _lib.lib.zmq_send(self._handle, part, len(part), flags) < 0:
                if ctypes.get_errno() != errno.EINTR:
                    raise _fail()

    def recv(self, *, wait: bool = True) -> List[bytes]:
        """The parts of the next message. Raises Again if there is none: at once without `wait`, otherwise after RCVTIMEO."""
        parts: List[bytes] = []
        message = _lib.Msg()
        pointer = ctypes.byref(message)
        self._check(_lib.lib.zmq_msg_init(pointer))
        try:
            while True:
                size = _lib.lib.zmq_msg_recv(pointer, self._handle, 0 if wait else _DONTWAIT)
                if size < 0:
                    if ctypes.get_errno() == errno.EINTR:
                        continue
                    raise _fail()
                size = _lib.lib.zmq_msg_size(pointer)
                parts.append(ctypes.string_at(_lib.lib.zmq_msg_data(pointer), size) if size else b"")
                if not _lib.lib.zmq_msg_more(pointer):
                    return parts
        finally:
            _lib.lib.zmq_msg_close(pointer)

    def recv_batch(self, most: int = 256) -> List[List[bytes]]:
        """The messages that are there, at most `most`, without waiting; none is an empty list."""
        batch: List[List[bytes]] = []
        while len(batch) < most:
            try:
                batch.append(self.recv(wait=False))
            except Again:
                break
        return batch

    def fileno(self) -> int:
        """The descriptor that becomes readable when the socket's EVENTS change (by edges, as of libzmq)."""
        return self.get_int(FD)

    def close(self) -> None:
        """Closes the socket. A second call has no effect."""
        handle, self._handle = self._handle, None
        if handle:
            self._context._sockets.remove(self)
            if _lib.lib.zmq_close(handle) != 0:
                raise _fail()

    def __enter__(self) -> "Socket":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def _check(self, result: int) -> None:
        if result != 0:
            raise _fail()
