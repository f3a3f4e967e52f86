# SPDX-License-Identifier: MIT
"""What weft.topics and weft.aio_topics share: errors, enumerations, messages, and arguments of the C interface."""

from __future__ import annotations

import datetime
import enum
import errno
import json
import logging
import math
import os
import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Type, TypeVar, Union

from . import _topics
from ._sockets import Again, Error

Timeout = Union[None, int, float, datetime.timedelta]
"""Seconds, or a timedelta; None: without a bound; 0: the call does not wait."""
Data = Union[bytes, bytearray, memoryview, str]
"""The bytes of a message: an object with a buffer, which is not copied before the call, or a str, which is sent as UTF-8."""
Headers = Optional[Mapping[str, str]]
Start = Union["From", int, datetime.datetime]
"""The first message: a From, the number of a message in its stream, or the time of its storage."""

_log = logging.getLogger("weft.topics")
_O = TypeVar("_O", bound="Outcome")


class Code(enum.IntEnum):
    """The codes of TopicsError, which docs/errors.md explains."""

    WOULD_BLOCK = -1
    TIMED_OUT = -2
    INTERRUPTED = -3
    TERMINATED = -4
    CLOSED = -5
    INVALID_ARGUMENT = -6
    INVALID_STATE = -7
    NOT_SUPPORTED = -8
    UNKNOWN_OPTION = -9
    MALFORMED_ENDPOINT = -10
    UNKNOWN_TRANSPORT = -11
    ADDRESS_IN_USE = -12
    ADDRESS_UNAVAILABLE = -13
    NAME_UNRESOLVED = -14
    NO_SUCH_ENDPOINT = -15
    UNREACHABLE = -16
    TOO_MANY_SOCKETS = -17
    RESOURCE_EXHAUSTED = -18
    MESSAGE_TOO_LARGE = -19
    BUFFER_TOO_SMALL = -20
    CONNECTION_CLOSED = -21
    CONNECTION_FAILED = -22
    PROTOCOL_ERROR = -23
    INCOMPATIBLE_PEER = -24
    HANDSHAKE_REFUSED = -25
    SYSTEM = -26
    OTHER = -27
    CANCELLED = -28
    JOB_THREW = -29
    NOT_FOUND = -30
    CONFLICT = -31
    NOT_PERMITTED = -32
    OUTCOME_UNKNOWN = -33
    CORRUPT = -34


_ERRNO = {
    Code.WOULD_BLOCK: errno.EAGAIN,
    Code.TIMED_OUT: errno.ETIMEDOUT,
    Code.INTERRUPTED: errno.EINTR,
    Code.CLOSED: errno.EBADF,
    Code.INVALID_ARGUMENT: errno.EINVAL,
    Code.NOT_SUPPORTED: errno.ENOTSUP,
    Code.MALFORMED_ENDPOINT: errno.EINVAL,
    Code.ADDRESS_IN_USE: errno.EADDRINUSE,
    Code.ADDRESS_UNAVAILABLE: errno.EADDRNOTAVAIL,
    Code.UNREACHABLE: errno.EHOSTUNREACH,
    Code.RESOURCE_EXHAUSTED: errno.ENOBUFS,
    Code.MESSAGE_TOO_LARGE: errno.EMSGSIZE,
    Code.CONNECTION_CLOSED: errno.ECONNRESET,
    Code.CONNECTION_FAILED: errno.ECONNREFUSED,
    Code.NOT_FOUND: errno.ENOENT,
    Code.CONFLICT: errno.EEXIST,
    Code.NOT_PERMITTED: errno.EACCES,
}


class TopicsError(Error):
    """A call on topics that failed. `code` says why, `text` has the library's words, `operation` and `name` say what the call
    was about: the topic, the stream, the bucket, the key or the fleet. str() has all of them. `errno` is the nearest one."""

    def __init__(self, code: int, text: str, operation: str, name: Optional[str] = None) -> None:
        try:
            self.code: Union[Code, int] = Code(code)
        except ValueError:  # of a later library
            self.code = code
        number = _ERRNO.get(self.code, errno.EIO) if isinstance(self.code, Code) else errno.EIO
        super().__init__(number, text, operation, name)
        self.text = text

    def __str__(self) -> str:
        return f"{self.operation}: {self.text}" if self.name is None else f"{self.operation} {self.name!r}: {self.text}"

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (int(self.code), self.text, self.operation, self.name)


class TimedOut(TopicsError, Again):
    """The time passed first, or the call would have had to wait, and the timeout was 0. A TimeoutError, too."""


class Closed(TopicsError):
    """The object or its handle was closed, also by another thread or task while the call waited."""


class Unreachable(TopicsError):
    """No handle of the fleet serves the topic."""


class NotFound(TopicsError, KeyError):
    """There is no such key, message or stream."""


class Conflict(TopicsError):
    """The stream or bucket exists with other settings, or the key or topic has changed."""


class OutcomeUnknown(TopicsError):
    """The hub or the service may have carried the call out."""


_CLASSES: Dict[int, Type[TopicsError]] = {
    Code.WOULD_BLOCK: TimedOut, Code.TIMED_OUT: TimedOut, Code.CLOSED: Closed, Code.UNREACHABLE: Unreachable,
    Code.NOT_FOUND: NotFound, Code.CONFLICT: Conflict, Code.OUTCOME_UNKNOWN: OutcomeUnknown,
}


def make_error(code: int, text: str, operation: str, name: Optional[str]) -> TopicsError:
    return _CLASSES.get(code, TopicsError)(code, text, operation, name)


def _set_up() -> None:
    ident = threading.main_thread().ident
    _topics.set_up(make_error, ident if ident is not None else 0)


_set_up()
os.register_at_fork(after_in_child=_set_up)


class Full(enum.IntEnum):
    """The policy of a full queue of a subscription."""

    DROP_OLDEST = 0
    DROP_NEWEST = 1
    NEWEST_PER_TOPIC = 2  # a message replaces a queued one of its topic
    END = 3  # the subscription ends: resource_exhausted after the queued messages


class Keep(enum.IntEnum):
    """The messages that a stream keeps."""

    LOG = 0  # every message, in one order
    WORK = 1  # every message until a consumer has acknowledged it
    LATEST = 2  # the newest value of each topic


class Survives(enum.IntEnum):
    """The fault that loses no acknowledged message. A local fleet has no MACHINE, one on NATS no POWER."""

    POWER = 0
    PROCESS = 1
    NOTHING = 2
    MACHINE = 3


class WhenFull(enum.IntEnum):
    """What a full stream or bucket does. DEFAULT: a log drops its oldest messages, the others refuse new ones."""

    DEFAULT = 0
    OLDEST = 1
    REFUSE = 2


class From(enum.IntEnum):
    """The first message of a reader or consumer."""

    FIRST = 0
    LAST = 1
    NEXT = 2  # those that arrive after the opening
    LAST_PER_TOPIC = 5  # the newest of every topic, then the new ones


class Published(NamedTuple):
    """The hub's answer: `sequence` is the message's number in the stream, `instance` the life of the stream that counts it.
    `duplicate`: a message of this id was stored before, with this sequence. A message with a delay has the sequence 0."""

    sequence: int
    instance: int
    duplicate: bool


class Draft(NamedTuple):
    """A message of Stream.publish_all(), with the arguments of Stream.publish(). `expect_last` compares with the topic before
    the batch."""

    topic: str
    data: Data = b""
    id: Optional[str] = None
    headers: Headers = None
    expect_last: Optional[int] = None
    ttl: Timeout = None


class StreamInfo(NamedTuple):
    """`first` is the sequence of the oldest message, `next` that of the next one. `evicted` messages were dropped by a full
    stream, `dropped_unread` of any bound before a consumer had acknowledged them."""

    first: int
    next: int
    bytes: int
    instance: int
    evicted: int
    dropped_unread: int


@dataclass(frozen=True)
class Curve:
    """Keys, 40 characters of Z85 each: those of a tcp fleet and of this handle; or that of a hub at tcp:// and of this handle."""

    server_public: Optional[str] = None
    server_secret: Optional[str] = field(default=None, repr=False)
    public: Optional[str] = None
    secret: Optional[str] = field(default=None, repr=False)
    hub_public: Optional[str] = None


@dataclass(frozen=True)
class Tls:
    """The PEM files of a tls+tcp fleet. `server_name` is the name in the certificate of every peer."""

    certificate: str
    key: str
    authorities: str
    server_name: Optional[str] = None


@dataclass(frozen=True)
class Login:
    """How a handle enters a nats fleet: a user and its password, a token, or a file, which is read at each connection."""

    user: Optional[str] = None
    password: Optional[str] = field(default=None, repr=False)
    token: Optional[str] = field(default=None, repr=False)
    nkey_seed_file: Optional[str] = None
    credentials_file: Optional[str] = None


class Message(_topics.Message):
    """A message. memoryview(message) is its bytes without a copy; `data` copies them, and len() is their number.
    `missed` is the number of messages that the subscription lost just before this one."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The bytes as UTF-8."""
        return str(memoryview(self), "utf-8")

    def json(self) -> Any:
        """The bytes as JSON."""
        return json.loads(self.data)

    @property
    def headers(self) -> Dict[str, str]:
        """The headers; of several with one name, the first."""
        found: Dict[str, str] = {}
        for line in self.header_block.split("\r\n")[1:]:
            name, colon, value = line.partition(":")
            if colon:
                found.setdefault(name, value.strip())
        return found

    def __repr__(self) -> str:
        data = bytes(memoryview(self)[:40])
        return f"<weft.{type(self).__name__} {self.topic!r} {data!r}{'...' if len(self) > 40 else ''}>"


class Request(Message):
    """A request that a service took. It gets one answer; without one, the caller's request fails when this object ends."""

    __slots__ = ()

    def reply(self, data: Data = b"", *, headers: Headers = None) -> None:
        """Answers, and does not wait."""
        _topics.reply(self, self.topic, data, header_dict(headers))

    def refuse(self, text: str, code: Code = Code.OTHER) -> None:
        """The caller's request fails with this code and text, of which 150 bytes arrive. The library keeps up to 512
        different texts for ever: a text does not name a single request."""
        _topics.refuse(self, self.topic, int(code), text)


class Stored(Message):
    """A message of a stream. `sequence` is its number, from 1; `erased`: its topic has no value now."""

    __slots__ = ()

    @property
    def time(self) -> datetime.datetime:
        """When the hub stored it, in UTC; `time_ns` is exact."""
        return datetime.datetime.fromtimestamp(self.time_ns / 1e9, datetime.timezone.utc)


class Outcome(Stored):
    """A message of a consumer. It gets one outcome: ack, nak or reject. The hub delivers a message without one again. `tries`
    is the number of earlier deliveries. As a context manager it is acknowledged at the end of the block, and delivered again
    after an exception, unless the block gave it an outcome."""

    __slots__ = ()

    def __enter__(self: _O) -> _O:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        try:
            if kind is None:
                self.ack()
            else:
                self.nak()
        except TopicsError as error:
            if error.code != Code.INVALID_STATE:  # it has an outcome
                raise

    def ack(self) -> None:
        """The message is done. Does not wait for the hub."""
        _topics.ack(self, self.topic)

    def nak(self, after: Timeout = None) -> None:
        """The hub delivers it again, after this time; None: after the consumer's `retry_waits`."""
        _topics.nak(self, self.topic, milliseconds(after))

    def reject(self, why: Optional[str] = None) -> None:
        """The hub never delivers it again; `why` is for the dead letters."""
        _topics.reject(self, self.topic, why)

    def working(self) -> None:
        """Restarts the consumer's `ack_wait`. Not an outcome."""
        _topics.working(self, self.topic)


class Delivery(Outcome):
    """A message of a weft.Consumer."""

    __slots__ = ()

    def ack_confirmed(self) -> None:
        """The same as ack(), and waits until the hub has kept it."""
        _topics.ack_confirmed(self, self.topic)


class Entry(Stored):
    """A value of a key, or an erasure."""

    __slots__ = ()

    @property
    def key(self) -> str:
        return self.topic

    @property
    def value(self) -> bytes:
        return self.data

    @property
    def revision(self) -> int:
        """Of this change, for KeyValue.update()."""
        return self.sequence


def milliseconds(timeout: Timeout) -> int:
    """The time for the C interface, rounded up. Raises ValueError and TypeError."""
    if timeout is None:
        return -1
    seconds = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else timeout
    if not 0 <= seconds:  # NaN, too
        raise ValueError(f"a time is not negative: {timeout!r}")
    return math.ceil(min(seconds * 1000, 1e15))


def duration(value: Timeout) -> int:
    """A time of an option, in milliseconds; None: the default."""
    return 0 if value is None else milliseconds(value)


def header_dict(headers: Headers) -> Optional[Dict[str, str]]:
    return headers if headers is None or isinstance(headers, dict) else dict(headers)


def batch(messages: Iterable[Draft]) -> List[Any]:
    """The arguments of a call with a batch."""
    given: List[Any] = []
    for message in messages:
        draft = Draft(*message)
        given += (draft.topic, draft.data, draft.id, header_dict(draft.headers), draft.expect_last, duration(draft.ttl))
    return given


def start_of(start: Start) -> Tuple[int, int]:
    """The C interface's kind of start, and its value."""
    if isinstance(start, From):
        return int(start), 0
    if isinstance(start, datetime.datetime):
        since = start.astimezone(datetime.timezone.utc) - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        return 4, max(0, since // datetime.timedelta(microseconds=1) * 1000)
    return 3, start


def filters_of(filters: Union[str, Sequence[str]]) -> Tuple[str, ...]:
    return (filters,) if isinstance(filters, str) else tuple(filters)


def open_arguments(fleet: str, space: Optional[str], node: Optional[str], listen: Optional[str], advertise: Optional[str],
                   runtime_directory: Union[None, str, "os.PathLike[str]"],
                   store_directory: Union[None, str, "os.PathLike[str]"], hosts: bool, separator: str,
                   queue_messages_max: int, queue_bytes_max: int, peer_messages_max: int, presence: Timeout,
                   curve: Optional[Curve], tls: Optional[Tls], hub: Optional[str], login: Optional[Login],
                   outage_bytes_max: int, ping_every: Timeout) -> Tuple[Any, ...]:
    """The arguments of _topics.open()."""
    if len(separator) != 1 or not separator.isascii():
        raise ValueError("the separator is one character of ASCII")
    keys = (curve.server_public, curve.server_secret, curve.public, curve.secret) if curve else (None,) * 4
    files = (tls.certificate, tls.key, tls.authorities, tls.server_name) if tls else (None,) * 4
    entry = login or Login()
    return (fleet, space, node, listen, advertise, runtime_directory and os.fspath(runtime_directory),
            store_directory and os.fspath(store_directory), not hosts, ord(separator), queue_messages_max, queue_bytes_max,
            peer_messages_max, duration(presence), *keys, *files, hub, entry.user, entry.password, entry.token,
            entry.nkey_seed_file, entry.credentials_file, outage_bytes_max, curve.hub_public if curve else None,
            duration(ping_every))


def consume_arguments(stream: int, name: str, filter: Optional[str], start: Start, tries_max: int, ack_wait: Timeout,
                      retry_waits: Sequence[Timeout], dead_letters: Optional[str], unacked_max: int, queue_messages_max: int,
                      queue_bytes_max: int, redeclare: bool, priority: Optional[int]) -> Tuple[Any, ...]:
    """The arguments of _topics.consume()."""
    return (stream, name, filter, *start_of(start), tries_max, duration(ack_wait), tuple(map(duration, retry_waits)),
            dead_letters, unacked_max, queue_messages_max, queue_bytes_max, redeclare, priority)


def give(request: Request, answer: Optional[Data]) -> None:
    """Answers the request with what a handler returned; None: the handler has answered."""
    if answer is not None:
        request.reply(answer)


def give_error(request: Request, error: Exception) -> None:
    """Logs the exception of a handler, and refuses the request unless it has its answer."""
    _log.error("the service of %r raised", request.topic, exc_info=error)
    try:
        request.refuse(f"the service raised {type(error).__name__}")
    except TopicsError as refused:
        if refused.code not in (Code.INVALID_STATE, Code.CLOSED):  # it has an answer, or nobody waits for one
            raise
