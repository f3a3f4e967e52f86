# SPDX-License-Identifier: MIT
"""Topics for threads: weft.Topics. docs/python.md is the guide; docs/topics.md has the promises and the limits.

Every object may be used by several threads at once. A call that waits lets other threads run, and an exception of a signal
handler, such as KeyboardInterrupt, ends it. A `close` by another thread ends it with Closed. After fork() a child opens objects
of its own.
"""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from types import TracebackType
from typing import (Any, Callable, ClassVar, Generic, Iterable, Iterator, List, Optional, Sequence, Type, TypeVar, Union,
                    overload)

from . import _topics
from ._mixins import Filters, LiveReader, LiveWatch, Named
from ._shared import (Closed, Code, Conflict, Curve, Data, Delivery, Draft, Entry, From, Full, Headers, Keep, Login, Message,
                      NotFound, OutcomeUnknown, Published, Request, Start, Stored, StreamInfo, Survives, TimedOut, Timeout, Tls,
                      TopicsError, Unreachable, WhenFull, batch, consume_arguments, duration, filters_of, give, give_error,
                      header_dict, milliseconds, open_arguments, start_of)

__all__ = [
    "Closed", "Code", "Conflict", "Consumer", "Curve", "Data", "Delivery", "Draft", "Entry", "From", "Full", "Headers", "Keep",
    "KeyValue", "Login", "Message", "NotFound", "OutcomeUnknown", "Pending", "Published", "Publisher", "Reader", "Request", "Service",
    "Start", "Stored", "Stream", "StreamInfo", "Subscription", "Survives", "TimedOut", "Timeout", "Tls", "Topics",
    "TopicsError", "Unreachable", "Watch", "WhenFull",
]

_Self = TypeVar("_Self", bound="_Object")
_M = TypeVar("_M", bound=Message)
_D = TypeVar("_D")


class _Object(Named):
    """A handle of the library, with the name that its errors have."""

    _native_close: ClassVar["staticmethod[[int, str], None]"]
    _warns: ClassVar[bool] = False  # if it was not closed

    def __init__(self, handle: int, name: str) -> None:
        self._handle, self._name = handle, name
        self._closed = False
        self._process = os.getpid()

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._closed

    def close(self) -> None:
        """Ends the calls that wait with Closed. A second call has no effect."""
        if not self._closed:
            self._closed = True
            self._native_close(self._handle, self._name)

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True) and self._process == os.getpid():
            try:
                if self._warns:
                    warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self)
            finally:
                self.close()

    def __repr__(self) -> str:
        return f"<weft.{type(self).__name__} {self._name!r}{' closed' if self._closed else ''}>"


class _Source(_Object, Generic[_M]):
    """An object that gives messages. A `for` loop over it ends when the program closes it or its Topics."""

    _native_next: ClassVar["staticmethod[..., Any]"]
    _native_try_next: ClassVar["staticmethod[..., Any]"]
    _native_fd: ClassVar["staticmethod[[int, str], int]"]
    _kind: ClassVar[Type[Message]]

    def next(self, timeout: Timeout = None) -> _M:
        """The next message. Raises TimedOut, also for a timeout of 0 if there is none, and Closed."""
        found: _M = self._native_next(self._handle, self._name, milliseconds(timeout), self._kind)
        return found

    def try_next(self) -> Optional[_M]:
        """The next message, or None: there is none now. Raises Closed."""
        found: Optional[_M] = self._native_try_next(self._handle, self._name, self._kind)
        return found

    def fileno(self) -> int:
        """A descriptor for select, selectors and event loops: readable while there may be a message. After a try_next() that
        returned None it is not. The program only waits for it, until close()."""
        return self._native_fd(self._handle, self._name)

    def __iter__(self: _Self) -> _Self:
        return self

    def __next__(self) -> _M:
        try:
            found: _M = self._native_next(self._handle, self._name, -1, self._kind)
            return found
        except Closed:
            if self._closed:
                raise StopIteration from None
            raise


class Publisher(_Object):
    """Publishes to one topic, which was checked and encoded once: faster than Topics.publish()."""

    _native_close = staticmethod(_topics.publisher_close)

    def publish(self, data: Data = b"", *, headers: Headers = None, wait: bool = False, timeout: Timeout = None) -> None:
        """Publishes one message. Without `wait`, a peer whose queue is full misses it. With it, the call waits at most
        `timeout` until every peer has room, and raises TimedOut; then the message goes to no peer."""
        _topics.publisher_publish(self._handle, self._name, data, header_dict(headers),
                                  milliseconds(timeout) if wait else None)

    def wait_subscribers(self, count: int = 1, timeout: Timeout = None) -> int:
        """Waits until `count` subscriptions of the fleet are ready for the topic, and returns the number of ready ones. Each
        of them receives the messages that are published from now on. Raises TimedOut."""
        return _topics.wait_subscribers(self._handle, self._name, count, milliseconds(timeout))

    @property
    def topic(self) -> str:
        return self._name


class Subscription(Filters, _Source[Message]):
    """The messages of one or more filters, in a bounded queue. After close(), next() still gives those that were queued."""

    _native_close = staticmethod(_topics.unsubscribe)
    _native_next = staticmethod(_topics.next)
    _native_try_next = staticmethod(_topics.try_next)
    _native_fd = staticmethod(_topics.subscription_fd)
    _kind = Message

    def close(self) -> None:
        """Ends the calls that wait. The queued messages stay readable."""
        if not self._closed:
            self._closed = True
            _topics.subscription_drain(self._handle, self._name)

    def __del__(self) -> None:
        super().__del__()
        if getattr(self, "_closed", False) and self._process == os.getpid():
            self._native_close(self._handle, self._name)


class Service(_Source[Request]):
    """The requests to a topic. Any thread answers them, in any order."""

    _native_close = staticmethod(_topics.service_close)
    _native_next = staticmethod(_topics.service_next)
    _native_try_next = staticmethod(_topics.service_try_next)
    _native_fd = staticmethod(_topics.service_fd)
    _kind = Request

    def status(self) -> None:
        """Raises why no request arrives any longer, or no reply: Closed (the Topics); TopicsError with the code NOT_PERMITTED
        (the fleet's server refuses the service, or refused a reply of this process since it connected)."""
        _topics.service_status(self._handle, self._name)

    def run(self, handler: Callable[[Request], Optional[Data]]) -> None:
        """Answers each request with what `handler` returns; None: the handler answers by itself. An exception of the handler
        is logged, and the request fails with its type's name. Returns when the program closes the service or its Topics."""
        for request in self:
            try:
                give(request, handler(request))
            except Exception as error:
                give_error(request, error)


class Pending:
    """The answer of the hub to a message of Stream.publish_later(), which may not have arrived."""

    def __init__(self, handle: int, topic: str) -> None:
        self._handle, self._topic = handle, topic
        self._process = os.getpid()

    def wait(self, timeout: Timeout = None) -> Published:
        """Waits for the answer, which the program may read more than once. Raises TimedOut (the program may wait again), and
        the errors of Stream.publish(). A close of the Topics does not end the wait."""
        return Published(*_topics.pending_wait(self._handle, self._topic, milliseconds(timeout)))

    def try_result(self) -> Optional[Published]:
        """The answer, or None: it has not arrived."""
        found = _topics.pending_try(self._handle, self._topic)
        return found and Published(*found)

    def fileno(self) -> int:
        """A descriptor that is readable when there may be an answer. A try_result() that returns None clears it."""
        return _topics.pending_fd(self._handle, self._topic)

    def __del__(self) -> None:
        if self._process == os.getpid():
            _topics.pending_close(self._handle, self._topic)

    def __repr__(self) -> str:
        return f"<weft.Pending {self._topic!r}>"


class Reader(LiveReader, _Source[Stored]):
    """The messages of a stream in their order: first the stored ones, then the new ones."""

    _native_close = staticmethod(_topics.reader_close)
    _native_next = staticmethod(_topics.reader_next)
    _native_try_next = staticmethod(_topics.reader_try_next)
    _native_fd = staticmethod(_topics.reader_fd)
    _kind = Stored


class Consumer(_Source[Delivery]):
    """A member of a consumer: all members with its name share the messages, and each message goes to a member at least once,
    until one acknowledges it."""

    _native_close = staticmethod(_topics.consumer_close)
    _native_next = staticmethod(_topics.consumer_next)
    _native_try_next = staticmethod(_topics.consumer_try_next)
    _native_fd = staticmethod(_topics.consumer_fd)
    _kind = Delivery


class Watch(LiveWatch, _Source[Entry]):
    """The newest values of the keys that match, then each change."""

    _native_close = staticmethod(_topics.watch_close)
    _native_next = staticmethod(_topics.watch_next)
    _native_try_next = staticmethod(_topics.watch_try_next)
    _native_fd = staticmethod(_topics.watch_fd)
    _kind = Entry


class _Family(_Object):
    """An object that makes others, and closes them with itself."""

    def __init__(self, handle: int, name: str) -> None:
        super().__init__(handle, name)
        self._children: "weakref.WeakSet[_Object]" = weakref.WeakSet()
        self._lock = threading.Lock()

    def _adopt(self, child: _Self) -> _Self:
        with self._lock:
            self._children.add(child)
        return child

    def close(self) -> None:
        """Closes its objects, then itself: the calls that wait raise Closed. A second call has no effect."""
        with self._lock:
            children = list(self._children)
            self._children.clear()
        for child in children:
            child.close()
        super().close()


class Stream(_Family):
    """Topics whose messages are kept. close() keeps the stream; remove() removes it."""

    _native_close = staticmethod(_topics.stream_close)

    def publish(self, topic: str, data: Data = b"", *, id: Optional[str] = None, headers: Headers = None,
                timeout: Timeout = None, expect_last: Optional[int] = None, strict: bool = False,
                ttl: Timeout = None, delay: Timeout = None) -> Published:
        """Waits until the stream keeps the message, for 30 s without `timeout`. `id`: the stream stores an id once.
        `expect_last`: raises Conflict unless the topic's last message has this sequence; 0: there is none. `strict`: one
        message of a topic is under way at a time. `ttl`: the message is readable for that time, 1 s to 100 years, in whole
        seconds, rounded up. `delay`: the message is readable after that time, at most 100 years, and its `ttl` begins then;
        the answer has the sequence 0. Raises OutcomeUnknown: the message was sent, and no answer came in time; TopicsError
        with NOT_SUPPORTED for a `ttl`: servers of NATS before 2.11.3, and for a `delay`: all of them."""
        return Published(*_topics.stream_publish(self._handle, topic, data, id, header_dict(headers), duration(timeout),
                                                 expect_last, strict, duration(ttl), duration(delay)))

    def publish_later(self, topic: str, data: Data = b"", *, id: Optional[str] = None, headers: Headers = None,
                      timeout: Timeout = None, expect_last: Optional[int] = None, ttl: Timeout = None,
                      delay: Timeout = None) -> Pending:
        """The same, but waits only for a place: at most 4,096 messages and 8 MiB of a Topics are under way."""
        return Pending(_topics.stream_publish_later(self._handle, topic, data, id, header_dict(headers), duration(timeout),
                                                    expect_last, False, duration(ttl), duration(delay)), topic)

    def publish_all(self, messages: Iterable[Draft], *, timeout: Timeout = None) -> Published:
        """Stores all of the messages, with consecutive sequences, or none: 1 to 1,000 messages, 1 MiB in all. Returns the
        sequence of the first one. Raises Conflict also if a message of the id was stored before, unless a hub stored the
        whole batch; TopicsError with NOT_SUPPORTED: servers of NATS before 2.12."""
        return Published(*_topics.stream_publish_all(self._handle, self._name, duration(timeout), *batch(messages)))

    def message(self, sequence: int) -> Stored:
        """The message with this sequence. Raises NotFound."""
        return _topics.stream_message(self._handle, self._name, sequence, Stored)

    def newest(self, topic: str) -> Stored:
        """The newest message of the topic, an erasure, too. Raises NotFound."""
        return _topics.stream_newest(self._handle, topic, Stored)

    def info(self) -> StreamInfo:
        return StreamInfo(*_topics.stream_info(self._handle, self._name))

    def purge(self, before: int) -> None:
        """Deletes every message before the sequence."""
        _topics.stream_purge(self._handle, self._name, before)

    def remove(self) -> None:
        """Removes the stream, its messages and consumers from the hub."""
        _topics.stream_remove(self._handle, self._name)

    def read(self, filter: Optional[str] = None, *, start: Start = From.FIRST, queue_messages_max: int = 0,
             queue_bytes_max: int = 0) -> Reader:
        """Reads the messages without acknowledgements. A bound of 0 has its default: 256 messages, 8 MiB."""
        return self._adopt(Reader(_topics.read(self._handle, self._name, filter, *start_of(start), queue_messages_max,
                                               queue_bytes_max), self._name))

    def consume(self, name: str, filter: Optional[str] = None, *, start: Start = From.FIRST, tries_max: int = 0,
                ack_wait: Timeout = None, retry_waits: Sequence[Timeout] = (), dead_letters: Optional[str] = None,
                unacked_max: int = 0, queue_messages_max: int = 0, queue_bytes_max: int = 0,
                redeclare: bool = False, priority: Optional[int] = None) -> Consumer:
        """Makes the consumer or joins it. `tries_max`: deliveries of one message; 0: any number; a message beyond goes to the
        topic `dead_letters`. `ack_wait` (30 s): after it the hub delivers a message again. `retry_waits`: after each refused
        delivery. A bound of 0 has its default. `priority`: of this member, 0 (first) to 9; a message goes to a member of the
        lowest number that has room in its queue; None is 0. Raises Conflict: it has other settings, or on NATS its first member
        had no priority; TopicsError with NOT_SUPPORTED for a `priority`: servers of NATS before 2.12."""
        return self._adopt(Consumer(_topics.consume(*consume_arguments(
            self._handle, name, filter, start, tries_max, ack_wait, retry_waits, dead_letters, unacked_max,
            queue_messages_max, queue_bytes_max, redeclare, priority)), name))


class KeyValue(_Family):
    """Keys with values that are kept. bucket[key] is the bytes of a value, also to set and to delete."""

    _native_close = staticmethod(_topics.kv_close)

    def put(self, key: str, value: Data, *, ttl: Timeout = None) -> int:
        """Sets the value, and returns the revision of the change, as every change does. `ttl`: after that time the key has no
        value, and watches get its erasure; bounds and errors: those of Stream.publish(), and a bucket with a history on NATS
        has none."""
        return _topics.kv_put(self._handle, key, value, None, duration(ttl))

    def create(self, key: str, value: Data, *, ttl: Timeout = None) -> int:
        """Raises Conflict if the key has a value."""
        return _topics.kv_create(self._handle, key, value, None, duration(ttl))

    def update(self, key: str, value: Data, seen: int, *, ttl: Timeout = None) -> int:
        """Raises Conflict unless `seen` is the revision of the key's newest change; 0: it never had a value."""
        return _topics.kv_put(self._handle, key, value, seen, duration(ttl))

    def delete(self, key: str) -> int:
        return _topics.kv_delete(self._handle, key)

    @overload
    def get(self, key: str) -> Optional[Entry]: ...
    @overload
    def get(self, key: str, default: _D) -> Union[Entry, _D]: ...
    def get(self, key: str, default: Any = None) -> Any:
        """The newest value with its revision, or `default`."""
        try:
            return _topics.kv_get(self._handle, key, Entry)
        except NotFound:
            return default

    def keys(self, filter: Optional[str] = None) -> List[str]:
        """The keys that match the filter and have a value, in byte order; None: all keys."""
        return _topics.kv_keys(self._handle, self._name, filter)

    def watch(self, filter: Optional[str] = None, *, all: bool = False) -> Watch:
        """The newest values of the keys that match, then each change. `all`: also the older values that are kept."""
        return self._adopt(Watch(_topics.kv_watch(self._handle, self._name, filter, all), self._name))

    def __getitem__(self, key: str) -> bytes:
        return _topics.kv_get(self._handle, key, Entry).data

    def __setitem__(self, key: str, value: Data) -> None:
        self.put(key, value)

    def __delitem__(self, key: str) -> None:
        self.delete(key)

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())


class Topics(_Family):
    """A handle on a fleet. `fleet` is "local" or "local:NAME" (the handles of one user on this host), "inproc:NAME" (of this
    process), or "tcp://10.0.0.1:7300,..." (the listed hosts; "tls+tcp://...": encrypted). docs/topics.md explains them and the
    options; an option of 0 or None has its default. Raises TopicsError."""

    _native_close = staticmethod(_topics.close)
    _warns = True

    def __init__(self, fleet: str = "local", *, space: Optional[str] = None, node: Optional[str] = None,
                 listen: Optional[str] = None, advertise: Optional[str] = None,
                 runtime_directory: Union[None, str, "os.PathLike[str]"] = None,
                 store_directory: Union[None, str, "os.PathLike[str]"] = None, hosts: bool = True, separator: str = ".",
                 queue_messages_max: int = 0, queue_bytes_max: int = 0, peer_messages_max: int = 0,
                 presence: Timeout = None, curve: Optional[Curve] = None, tls: Optional[Tls] = None,
                 hub: Optional[str] = None, login: Optional[Login] = None, outage_bytes_max: int = 0,
                 ping_every: Timeout = None) -> None:
        super().__init__(_topics.open(*open_arguments(
            fleet, space, node, listen, advertise, runtime_directory, store_directory, hosts, separator, queue_messages_max,
            queue_bytes_max, peer_messages_max, presence, curve, tls, hub, login, outage_bytes_max,
            ping_every)), fleet)

    def sync(self, timeout: Timeout = None) -> int:
        """Waits until the roster of every peer has arrived: from then on, requests and publishers reach those peers. Returns
        the number of the other handles in the fleet."""
        return _topics.sync(self._handle, self._name, milliseconds(timeout))

    def publisher(self, topic: str) -> Publisher:
        return self._adopt(Publisher(_topics.publisher_open(self._handle, topic), topic))

    def publish(self, topic: str, data: Data = b"", *, headers: Headers = None, wait: bool = False,
                timeout: Timeout = None) -> None:
        """Publishes one message, as Publisher.publish() does."""
        _topics.publish(self._handle, topic, data, header_dict(headers), milliseconds(timeout) if wait else None)

    def subscribe(self, *filters: str, full: Full = Full.DROP_OLDEST, queue_messages_max: int = 0,
                  queue_bytes_max: int = 0) -> Subscription:
        """Receives the messages of the filters from now on. A filter is a topic or tokens: "px.AAPL", "px.*" (one token
        there), "px.>" (one token or more)."""
        if not filters:
            raise TypeError("a subscription has at least one filter")
        made = self._adopt(Subscription(_topics.subscribe(self._handle, filters[0], full, queue_messages_max,
                                                          queue_bytes_max), " ".join(filters)))
        try:
            made.add(*filters[1:])
        except BaseException:
            made.close()
            raise
        return made

    def request(self, topic: str, data: Data = b"", *, timeout: Timeout = 10.0, headers: Headers = None) -> Message:
        """Sends the request to one member of each group that serves the topic, and returns the first reply. Raises
        Unreachable, at once, if no handle serves it; TimedOut; TopicsError with the code and text of the service. A signal
        does not end the wait."""
        return _topics.request(self._handle, topic, data, milliseconds(timeout), header_dict(headers), Message)

    def serve(self, topic: str, *, group: Optional[str] = None, queue_max: int = 0) -> Service:
        """Takes the requests to the topic from now on. One member of each group gets a request. `queue_max` (1,024): requests
        that wait to be taken."""
        return self._adopt(Service(_topics.serve(self._handle, topic, group, queue_max), topic))

    def stream(self, name: str, topics: Union[str, Sequence[str]] = (), *, keep: Keep = Keep.LOG,
               survives: Survives = Survives.POWER, when_full: WhenFull = WhenFull.DEFAULT, redeclare: bool = False,
               bytes_max: int = 0, age_max: Timeout = None, same_id_window: Timeout = None) -> Stream:
        """Declares the stream, and waits for the hub for at most 30 s. `topics`: filters of the topics that it takes; none:
        every topic. `bytes_max` (1 GiB), `age_max` (any) and `same_id_window` (2 minutes) bound it. Raises Conflict: it exists
        with other settings, and `redeclare` is false; not_supported: the fleet does not keep topics in this way."""
        return self._adopt(Stream(_topics.stream_open(
            self._handle, name, filters_of(topics), keep, survives, when_full, redeclare, bytes_max, duration(age_max),
            duration(same_id_window)), name))

    def key_value(self, name: str, *, history: int = 0, survives: Survives = Survives.POWER,
                  when_full: WhenFull = WhenFull.DEFAULT, redeclare: bool = False, bytes_max: int = 0,
                  age_max: Timeout = None) -> KeyValue:
        """Declares the bucket. `history` (1): values that are kept of each key, at most 64. Raises the errors of stream()."""
        return self._adopt(KeyValue(_topics.kv_open(self._handle, name, history, survives, when_full, redeclare, bytes_max,
                                                    duration(age_max)), name))
