# SPDX-License-Identifier: MIT
"""Sockets: Context, Socket, Poller, Monitor, on the C interface of libzmq that the package carries."""

from __future__ import annotations

import ctypes
import datetime
import errno
import functools
import itertools
import json
import math
import sys
import time
import weakref
from types import TracebackType
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Protocol, Sequence, Tuple, Type, TypeVar, Union

from . import _lib
from ._numbers import KEYS, OF_64_BITS, OF_BYTES, OF_TEXT, Event, Option, Poll, SocketType

_DONTWAIT, _SNDMORE = 1, 2

Part = Union[bytes, bytearray, memoryview]
"""A part of a message: bytes, or an object with a contiguous buffer, which the call reads in its place."""
Parts = Union[Part, Sequence[Part]]
_Seconds = Union[None, int, float, datetime.timedelta]


class _Descriptor(Protocol):
    def fileno(self) -> int: ...


Pollable = Union["Socket", int, _Descriptor]
_P = TypeVar("_P", bound=Pollable)


class Error(OSError):
    """A call that the library refused: `errno` is the C interface's number, `strerror` its text with the particulars, `operation`
    the call or "", and `name` the endpoint or the option that it was about, or None. str() has all of them."""

    def __init__(self, number: int, text: str, operation: str = "", name: Optional[str] = None) -> None:
        super().__init__(number, text)
        self.operation, self.name = operation, name

    def __str__(self) -> str:
        if not self.operation:
            return super().__str__()
        return f"{self.operation}{'' if self.name is None else f' {self.name}'}: [Errno {self.errno}] {self.strerror}"

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.errno, self.strerror, self.operation, self.name)


class Again(Error, TimeoutError):
    """The call would wait, or its time-out passed."""


def _fail(operation: str = "", name: Optional[str] = None) -> Error:
    number, text = _lib.last_error()
    return (Again if number == errno.EAGAIN else Error)(number, text, operation, name)


class Context:
    """Owns the sockets that it makes. `close` closes them first: it waits for unsent messages up to each one's LINGER."""

    def __init__(self) -> None:
        self._handle: Optional[int] = _lib.lib.zmq_ctx_new()
        if not self._handle:
            raise _fail("make context")
        _sockets_of[self] = []

    @property
    def underlying(self) -> Optional[int]:
        """The address of the library's context; None after close()."""
        return self._handle

    def socket(self, kind: int) -> "Socket":
        """A new socket of the type `kind`, for example weft.PUSH. Raises Error."""
        return Socket(self, kind)

    def close(self) -> None:
        """Closes the sockets, then the context. A second call has no effect."""
        for socket in list(_sockets_of[self]):
            socket.close()
        handle, self._handle = self._handle, None
        while handle and _lib.lib.zmq_ctx_term(handle) != 0:
            if ctypes.get_errno() != errno.EINTR:
                raise _fail("close context")

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<weft.Context of {len(_sockets_of[self])} sockets{'' if self._handle else ' closed'}>"


_sockets_of: "weakref.WeakKeyDictionary[Context, List[Socket]]" = weakref.WeakKeyDictionary()  # the open ones
_monitors = itertools.count(1)


class Socket:
    """One socket. It belongs to one thread at a time. Its calls raise Error; after `close`, of ENOTSOCK."""

    def __init__(self, context: Context, kind: int) -> None:
        self._context = context
        self._endpoints: List[str] = []
        self._kind = _named(SocketType, kind)
        self._handle: Optional[int] = _lib.lib.zmq_socket(context.underlying, kind)
        if not self._handle:
            raise _fail("make socket", self._kind)
        _sockets_of[context].append(self)

    @property
    def underlying(self) -> Optional[int]:
        """The address of the library's socket; None after close()."""
        return self._handle

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._handle is None

    def bind(self, endpoint: str) -> str:
        """Listens; returns the endpoint with the port that the system chose for `*`."""
        self._check(_lib.lib.zmq_bind(self._handle, endpoint.encode()), "bind", endpoint)
        bound = self.get_bytes(Option.LAST_ENDPOINT).rstrip(b"\0").decode()
        self._endpoints.append(bound)
        return bound

    def connect(self, endpoint: str) -> None:
        """Begins to connect, and returns at once."""
        self._check(_lib.lib.zmq_connect(self._handle, endpoint.encode()), "connect", endpoint)
        self._endpoints.append(endpoint)

    def unbind(self, endpoint: str) -> None:
        """Stops listening."""
        self._check(_lib.lib.zmq_unbind(self._handle, endpoint.encode()), "unbind", endpoint)
        self._forget(endpoint)

    def disconnect(self, endpoint: str) -> None:
        """Ends the connection of a `connect`."""
        self._check(_lib.lib.zmq_disconnect(self._handle, endpoint.encode()), "disconnect", endpoint)
        self._forget(endpoint)

    def subscribe(self, prefix: Union[bytes, str] = b"") -> None:
        """SUB: receives messages whose first part begins with `prefix`."""
        self.set(Option.SUBSCRIBE, prefix)

    def unsubscribe(self, prefix: Union[bytes, str] = b"") -> None:
        """SUB: ends one subscribe() of the same prefix."""
        self.set(Option.UNSUBSCRIBE, prefix)

    def set(self, option: int, value: Union[int, bytes, str]) -> None:
        """Sets an option: an int, which has 32 or 64 bits by the option, bytes, or a str, which is set as UTF-8. Raises
        OverflowError for an int that does not fit."""
        if isinstance(value, int):
            bits = 64 if option in OF_64_BITS else 32
            low, high = (0 if option == Option.AFFINITY else -1 << (bits - 1)), 1 << (bits - (option != Option.AFFINITY))
            if not low <= value < high:
                raise OverflowError(f"{_named(Option, option)} is an int of {bits} bits, and {value} is not")
            raw = (value & ((1 << bits) - 1)).to_bytes(bits // 8, sys.byteorder)
        else:
            raw = value.encode() if isinstance(value, str) else value
        self._check(_lib.lib.zmq_setsockopt(self._handle, option, raw, len(raw)), "set", _named(Option, option))

    def get(self, option: int) -> Union[int, bytes]:
        """The value of an option, in the type that docs/options.md gives it: an int, or bytes. A key is 40 characters of Z85."""
        if option not in OF_BYTES:
            return self.get_int(option)
        value = self.get_bytes(option)
        return value.removesuffix(b"\0") if option in OF_TEXT else value

    def get_int(self, option: int) -> int:
        """The value of an option of 32 or 64 bits."""
        value = ctypes.c_int64() if option in OF_64_BITS else ctypes.c_int()
        size = ctypes.c_size_t(ctypes.sizeof(value))
        self._check(_lib.lib.zmq_getsockopt(self._handle, option, ctypes.byref(value), ctypes.byref(size)), "get",
                    _named(Option, option))
        return value.value if option != Option.AFFINITY else value.value & ((1 << 64) - 1)

    def get_bytes(self, option: int) -> bytes:
        """The value of an option of bytes, at most 1024."""
        size = ctypes.c_size_t(41 if option in KEYS else 1024)
        value = ctypes.create_string_buffer(size.value)
        self._check(_lib.lib.zmq_getsockopt(self._handle, option, value, ctypes.byref(size)), "get", _named(Option, option))
        return value.raw[: size.value]

    def curve_server(self, secret_key: Union[bytes, str]) -> None:
        """From now on only clients that know the public key of this secret one connect. Call it before `bind`."""
        self.set(Option.CURVE_SERVER, 1)
        self.set(Option.CURVE_SECRETKEY, secret_key)

    def curve_client(self, server_key: Union[bytes, str], public_key: Union[bytes, str], secret_key: Union[bytes, str]) -> None:
        """From now on it connects only to the server of this public key, with a pair of its own. Call it before `connect`."""
        self.set(Option.CURVE_SERVERKEY, server_key)
        self.set(Option.CURVE_PUBLICKEY, public_key)
        self.set(Option.CURVE_SECRETKEY, secret_key)

    def send(self, message: Parts, *, wait: bool = True) -> None:
        """Sends one message of one part or of several. Raises Again if there is no room: at once without `wait`, otherwise
        after SNDTIMEO."""
        parts: List[Any] = [message] if isinstance(message, (bytes, bytearray, memoryview)) else list(message)
        if not parts or not all(isinstance(part, bytes) or _is_part(part) for part in parts):
            raise TypeError("a message is bytes or another buffer, or a sequence of one or more of them")
        for index, part in enumerate(parts):
            flags = (0 if wait else _DONTWAIT) | (_SNDMORE if index + 1 < len(parts) else 0)
            while (_lib.lib.zmq_send(self._handle, part, len(part), flags) if isinstance(part, bytes)
                   else _send_buffer(self._handle, part, flags)) < 0:
                if ctypes.get_errno() != errno.EINTR:
                    raise _fail("send", self._where())

    def send_string(self, text: str, *, wait: bool = True) -> None:
        """Sends one message of one part: the text as UTF-8."""
        self.send(text.encode(), wait=wait)

    def send_json(self, value: Any, *, wait: bool = True) -> None:
        """Sends one message of one part: the value as JSON."""
        self.send(json.dumps(value).encode(), wait=wait)

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
                    raise _fail("receive", self._where())
                size = _lib.lib.zmq_msg_size(pointer)
                parts.append(ctypes.string_at(_lib.lib.zmq_msg_data(pointer), size) if size else b"")
                if not _lib.lib.zmq_msg_more(pointer):
                    return parts
        finally:
            _lib.lib.zmq_msg_close(pointer)

    def recv_string(self, *, wait: bool = True) -> str:
        """The text of the next message, which has one part. Raises ValueError for another one."""
        return self._recv_one(wait).decode()

    def recv_json(self, *, wait: bool = True) -> Any:
        """The value of the next message, which has one part of JSON. Raises ValueError for another one."""
        return json.loads(self._recv_one(wait))

    def recv_batch(self, most: int = 256) -> List[List[bytes]]:
        """The messages that are there, at most `most`, without waiting; none is an empty list."""
        batch: List[List[bytes]] = []
        while len(batch) < most:
            try:
                batch.append(self.recv(wait=False))
            except Again:
                break
        return batch

    def monitor(self, events: int = Event.ALL) -> "Monitor":
        """The events of its connections from now on. A later call ends the monitor before. Close it before the socket."""
        endpoint = f"inproc://weft.monitor.{next(_monitors)}"
        self._check(_lib.lib.zmq_socket_monitor(self._handle, endpoint.encode(), int(events)), "monitor", self._where())
        return Monitor(self._context, endpoint)

    def statistics(self) -> "Statistics":
        """Its counters now."""
        names = _statistic_names()
        values = (ctypes.c_uint64 * len(names))()
        if _lib.lib.weft_socket_statistics(self._handle, values, len(names)) < 0:
            raise _fail("read statistics of", self._where())
        numbers = dict(zip(names, values))
        return Statistics(**{name: numbers[name] for name in Statistics._fields})

    def fileno(self) -> int:
        """The descriptor that becomes readable when the socket's EVENTS change (by edges, as of libzmq)."""
        return self.get_int(Option.FD)

    def close(self) -> None:
        """Closes the socket. A second call has no effect."""
        handle, self._handle = self._handle, None
        if handle:
            _sockets_of[self._context].remove(self)
            if _lib.lib.zmq_close(handle) != 0:
                raise _fail("close", self._where())

    def __enter__(self) -> "Socket":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<weft.Socket {self._where()}{'' if self._handle else ' closed'}>"

    def _where(self) -> str:
        return " ".join([self._kind, *self._endpoints[:3], *(["..."] if len(self._endpoints) > 3 else [])])

    def _forget(self, endpoint: str) -> None:
        if endpoint in self._endpoints:
            self._endpoints.remove(endpoint)

    def _recv_one(self, wait: bool) -> bytes:
        parts = self.recv(wait=wait)
        if len(parts) != 1:
            raise ValueError(f"the message has {len(parts)} parts")
        return parts[0]

    def _check(self, result: int, operation: str = "", name: Optional[str] = None) -> None:
        if result != 0:
            raise _fail(operation, name)


class Statistics(NamedTuple):
    """The counters of a socket since it was made, and three gauges: `queued_out`, `queued_in` and `peers`. docs/metrics.md explains
    each, and how they balance."""

    sent: int
    arrived: int
    dropped_full: int
    dropped_no_peer: int
    dropped_lost: int
    dropped_conflated: int
    dropped_unexpected: int
    dropped_excess: int
    dropped_no_memory: int
    dropped_too_long: int
    dropped_refused: int
    dropped_overflow: int
    queued_out: int
    queued_in: int
    peers: int
    binds: int
    binds_failed: int
    accepted: int
    accepts_failed: int
    refused_full: int
    refused_address: int
    refused_rate: int
    connected: int
    connects_failed: int
    reconnects: int
    handshakes: int
    handshakes_failed: int
    disconnected: int
    bounds_exceeded: int
    events_dropped: int

    @property
    def dropped(self) -> int:
        """The messages that vanished, for all reasons."""
        return sum(number for name, number in self._asdict().items() if name.startswith("dropped_"))


@functools.lru_cache(maxsize=1)
def _statistic_names() -> Tuple[str, ...]:
    names = (_lib.lib.weft_socket_statistic_name(index) for index in itertools.count())
    return tuple(name.decode() for name in itertools.takewhile(lambda name: name is not None, names))


class MonitorEvent(NamedTuple):
    """`value` is an errno, a descriptor or an interval, by the event; `endpoint` that of the connection."""

    event: Event
    value: int
    endpoint: str


class Monitor:
    """The events of a socket's connections. A `for` loop over it ends when the socket is closed or has another monitor."""

    def __init__(self, context: Context, endpoint: str) -> None:
        self._pair = context.socket(SocketType.PAIR)
        self._pair.connect(endpoint)
        self._poller = Poller()
        self._poller.register(self._pair, Poll.IN)

    def next(self, timeout: _Seconds = None) -> MonitorEvent:
        """The next event. Raises Again if the time passes first."""
        if not self._poller.poll(timeout):
            raise Again(errno.EAGAIN, "no event came in time", "wait for event of", "monitor")
        frame, endpoint = self._pair.recv()
        return MonitorEvent(Event(int.from_bytes(frame[:2], sys.byteorder)), int.from_bytes(frame[2:6], sys.byteorder), endpoint.decode())

    def close(self) -> None:
        """A second call has no effect."""
        self._pair.close()

    def __iter__(self) -> Iterator[MonitorEvent]:
        while (event := self.next()).event != Event.MONITOR_STOPPED:
            yield event

    def __enter__(self) -> "Monitor":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


class _PollItem(ctypes.Structure):
    _fields_ = [("socket", ctypes.c_void_p), ("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short)]


class Poller:
    """Waits for several sockets and descriptors at once. It belongs to one thread at a time."""

    def __init__(self) -> None:
        self._events: Dict[Pollable, int] = {}

    def register(self, what: Pollable, events: int = Poll.IN | Poll.OUT) -> None:
        """Waits for these events of a Socket, a descriptor, or an object with fileno(); instead of earlier ones."""
        self._events[what] = int(events)

    def unregister(self, what: Pollable) -> None:
        """Raises KeyError if it is not registered."""
        del self._events[what]

    def __contains__(self, what: object) -> bool:
        return what in self._events

    def __len__(self) -> int:
        return len(self._events)

    def poll(self, timeout: _Seconds = None) -> List[Tuple[Pollable, Poll]]:
        """What is ready, with its events; an empty list: the time passed. A timeout is in seconds or a timedelta; None: without
        a bound. A closed socket raises Error."""
        end = None if timeout is None else time.monotonic() + _seconds(timeout)
        whats = list(self._events)
        items = (_PollItem * len(whats))()
        for item, what in zip(items, whats):
            item.events = self._events[what]
            if isinstance(what, Socket):
                if what.underlying is None:
                    raise Error(errno.ENOTSOCK, "the socket was closed", "poll", repr(what))
                item.socket = what.underlying
            else:
                item.fd = what if isinstance(what, int) else what.fileno()
        while True:
            left = -1 if end is None else max(0, min(math.ceil((end - time.monotonic()) * 1000), 1 << 40))
            ready = _lib.lib.zmq_poll(items, len(items), left)
            if ready >= 0:
                return [(what, Poll(item.revents)) for item, what in zip(items, whats) if item.revents]
            if ctypes.get_errno() != errno.EINTR:
                raise _fail("poll")


def curve_keypair() -> Tuple[bytes, bytes]:
    """A new (public key, secret key) of CURVE, 40 characters of Z85 each."""
    public, secret = ctypes.create_string_buffer(41), ctypes.create_string_buffer(41)
    if _lib.lib.zmq_curve_keypair(public, secret) != 0:
        raise _fail("make key pair")
    return public.value, secret.value


def _seconds(timeout: Union[int, float, datetime.timedelta]) -> float:
    seconds = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else float(timeout)
    if not 0 <= seconds:  # NaN, too
        raise ValueError(f"a time is not negative: {timeout!r}")
    return seconds


def _named(names: Union[Type[SocketType], Type[Option]], number: int) -> str:
    try:
        return names(number).name
    except ValueError:
        return str(number)


def _is_part(part: object) -> bool:
    try:
        memoryview(part)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    except TypeError:
        return False
    return True


def _send_buffer(handle: Optional[int], part: Any, flags: int) -> int:
    """Sends from the memory of the object."""
    view = _lib.View(part)
    try:
        sent: int = _lib.lib.zmq_send(handle, view.address, view.size, flags)
        return sent
    finally:
        number = ctypes.get_errno()
        view.release()
        ctypes.set_errno(number)
