# SPDX-License-Identifier: MIT
"""Topics for asyncio: weft.aio.Topics. The same calls as weft.Topics, of which those that may wait are coroutines.

An object belongs to the event loop that opened its Topics. A waiting coroutine is cancelled without a lost message: a message
is taken in the step that returns it. A flood leaves every 64th step to other tasks. A `close` ends the coroutines that wait
with Closed.
"""

from __future__ import annotations

import asyncio
import collections
import functools
import os
import warnings
from typing import (Any, Awaitable, Callable, ClassVar, Deque, Generator, Generic, Iterable, List, Optional, Sequence, Type, TypeVar,
                    Union)

from . import _topics
from ._home import Home
from ._mixins import Filters, LiveReader, LiveWatch, Named
from ._shared import (Closed, Code, Curve, Data, Draft, Entry, From, Full, Headers, Keep, Login, Message, NotFound, Outcome, Published,
                      Request, Start, Stored, StreamInfo, Survives, Timeout, Tls, TopicsError, WhenFull, batch,
                      consume_arguments, duration, filters_of, give, give_error, header_dict, make_error, milliseconds,
                      open_arguments, start_of)
from ._waits import ENTRY, INFO, KEYS, REPLY, STORED, Ready, Turns

__all__ = ["Consumer", "Delivery", "KeyValue", "Publisher", "Reader", "Service", "Stream", "Subscription", "Topics", "Watch"]

_KEYS_MAX = 1_000_000  # of one answer of keys()

_T = TypeVar("_T")
_Self = TypeVar("_Self")
_M = TypeVar("_M", bound=Message)


class _Object(Named):
    """A handle of the library, with the name that its errors have, in the loop of its Topics."""

    _native_close: ClassVar["staticmethod[[int, str], None]"]

    def __init__(self, home: Home, handle: int, name: str) -> None:
        self._home, self._handle, self._name = home, handle, name
        self._closed = False
        self._process = os.getpid()
        home.children.add(self)

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._closed

    def close(self) -> None:
        """Ends the coroutines that wait with Closed. A second call has no effect."""
        if not self._closed:
            self._home.check_thread()
            self._closed = True
            self._native_close(self._handle, self._name)

    async def __aenter__(self: _Self) -> _Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True) and self._process == os.getpid():
            self._closed = True
            self._native_close(self._handle, self._name)

    def __repr__(self) -> str:
        return f"<weft.aio.{type(self).__name__} {self._name!r}{' closed' if self._closed else ''}>"


class _Source(_Object, Generic[_M]):
    """An object that gives messages. An `async for` loop over it ends when the program closes it or its Topics."""

    _native_try_next: ClassVar["staticmethod[..., Any]"]
    _native_fd: ClassVar["staticmethod[[int, str], int]"]
    _kind: ClassVar[Type[Message]]
    _of_other_handles: ClassVar[bool] = False  # the messages, and not of the hub

    def __init__(self, home: Home, handle: int, name: str) -> None:
        super().__init__(home, handle, name)
        self._ready = Ready(home.loop, home.waiting if self._of_other_handles else set())
        self._turns = Turns()
        self._rest: Deque[_M] = collections.deque()  # what close() kept

    async def next(self, timeout: Timeout = None) -> _M:
        """The next message. Raises TimedOut, also for a timeout of 0 if there is none, and Closed."""
        self._home.check_loop()
        time = None if timeout is None else milliseconds(timeout)
        if self._turns.is_due():
            await asyncio.sleep(0)
        message = self.try_next()
        return message if message is not None else await self._wait_next(time)

    async def _wait_next(self, timeout: Optional[int]) -> _M:
        end = None if timeout is None else self._home.loop.time() + timeout / 1000
        self._turns.waited()
        if self._of_other_handles and not self._closed:
            self._home.watch_input()
        while True:
            in_time = timeout != 0 and await self._ready.wait(self._native_fd(self._handle, self._name), end)
            message = self.try_next()  # it may have come with the last moment
            if message is not None:
                return message
            if not in_time:
                raise make_error(Code.TIMED_OUT if timeout else Code.WOULD_BLOCK, "no message came in time",
                                 "wait for message of", self._name)

    def try_next(self) -> Optional[_M]:
        """The next message, or None: there is none now. Raises Closed."""
        try:
            found: Optional[_M] = self._native_try_next(self._handle, self._name, self._kind)
            return found
        except Closed:
            if not self._rest:
                raise
            return self._rest.popleft()

    def __aiter__(self: _Self) -> _Self:
        return self

    async def __anext__(self) -> _M:
        try:
            return await self.next()
        except Closed:
            if self._closed:
                raise StopAsyncIteration from None
            raise

    def close(self) -> None:
        """Ends the coroutines that wait with Closed. A second call has no effect."""
        if not self._closed:
            self._home.check_thread()
            self._ready.stop()
        super().close()

    def __del__(self) -> None:
        if getattr(self, "_closed", True) or self._process != os.getpid():
            return
        self._closed = True
        end = functools.partial(_end, self._ready, self._native_close, self._handle, self._name)
        self._home.end_there(end)


def _end(ready: Ready, native_close: Callable[[int, str], None], handle: int, name: str) -> None:
    ready.stop()
    native_close(handle, name)


class Publisher(_Object):
    """Publishes to one topic, which was checked and encoded once: faster than Topics.publish()."""

    _native_close = staticmethod(_topics.publisher_close)

    async def publish(self, data: Data = b"", *, headers: Headers = None, wait: bool = False,
                      timeout: Timeout = None) -> None:
        """Publishes one message. Without `wait`, a peer whose queue is full misses it. With it, the coroutine waits at most
        `timeout` until every peer has room, and raises TimedOut; then the message goes to no peer. A cancelled wait may
        still publish."""
        await self._home.publish(_topics.publisher_publish, self._handle, self._name, data, headers, wait, timeout)

    async def wait_subscribers(self, count: int = 1, timeout: Timeout = None) -> int:
        """Waits until `count` subscriptions of the fleet are ready for the topic, and returns the number of ready ones."""
        return await self._home.poll(lambda ms: _topics.wait_subscribers(self._handle, self._name, count, ms), timeout)

    @property
    def topic(self) -> str:
        return self._name


class Subscription(Filters, _Source[Message]):
    """The messages of one or more filters, in a bounded queue. After close(), next() still gives those that were queued."""

    _native_close = staticmethod(_topics.unsubscribe)
    _native_try_next = staticmethod(_topics.try_next)
    _native_fd = staticmethod(_topics.subscription_fd)
    _kind = Message
    _of_other_handles = True

    def close(self) -> None:
        """Ends the coroutines that wait. The queued messages stay readable."""
        if not self._closed:
            self._home.check_thread()
            try:
                while (message := self.try_next()) is not None:
                    self._rest.append(message)
            except TopicsError:  # it has ended
                pass
        super().close()


class Service(_Source[Request]):
    """The requests to a topic. Any task answers them, in any order."""

    _native_close = staticmethod(_topics.service_close)
    _native_try_next = staticmethod(_topics.service_try_next)
    _native_fd = staticmethod(_topics.service_fd)
    _kind = Request
    _of_other_handles = True

    def status(self) -> None:
        """Raises why no request arrives any longer, or no reply: Closed (the Topics); TopicsError with the code NOT_PERMITTED
        (the fleet's server refuses the service, or refused a reply of this process since it connected)."""
        _topics.service_status(self._handle, self._name)

    async def run(self, handler: Callable[[Request], Awaitable[Optional[Data]]], *, at_a_time: int = 16) -> None:
        """Answers each request with what `handler` returns, `at_a_time` at once; None: the handler answers by itself. An
        exception of the handler is logged, and the request fails with its type's name. Returns when the program closes the
        service or its Topics, after the handlers that run."""

        async def answer(request: Request) -> None:
            try:
                give(request, await handler(request))
            except Exception as error:
                give_error(request, error)
            finally:
                places.release()

        places = asyncio.Semaphore(at_a_time)
        async with asyncio.TaskGroup() as group:
            while True:
                await places.acquire()
                try:
                    request = await self.__anext__()
                except StopAsyncIteration:
                    return
                group.create_task(answer(request))


class Reader(LiveReader, _Source[Stored]):
    """The messages of a stream in their order: first the stored ones, then the new ones."""

    _native_close = staticmethod(_topics.reader_close)
    _native_try_next = staticmethod(_topics.reader_try_next)
    _native_fd = staticmethod(_topics.reader_fd)
    _kind = Stored


class Delivery(Outcome):
    """A message of a weft.aio.Consumer."""

    __slots__ = ("_home",)
    _home: Home

    async def ack_confirmed(self) -> None:
        """The same as ack(), and waits until the hub has kept it."""
        topic = self.topic
        await self._home.calls().run("settle message of", topic, STORED, _topics.calls_ack_confirmed, self, topic)

    def belongs_to(self, home: Home) -> None:
        """For its consumer, before the program gets the message."""
        self._home = home


class Consumer(_Source[Delivery]):
    """A member of a consumer: all members with its name share the messages, and each message goes to a member at least once,
    until one acknowledges it."""

    _native_close = staticmethod(_topics.consumer_close)
    _native_try_next = staticmethod(_topics.consumer_try_next)
    _native_fd = staticmethod(_topics.consumer_fd)
    _kind = Delivery

    def try_next(self) -> Optional[Delivery]:
        """The next message, or None: there is none now. Raises Closed."""
        found = super().try_next()
        if found is not None:
            found.belongs_to(self._home)
        return found


class Watch(LiveWatch, _Source[Entry]):
    """The newest values of the keys that match, then each change."""

    _native_close = staticmethod(_topics.watch_close)
    _native_try_next = staticmethod(_topics.watch_try_next)
    _native_fd = staticmethod(_topics.watch_fd)
    _kind = Entry


class Stream(_Object):
    """Topics whose messages are kept. close() keeps the stream; remove() removes it."""

    _native_close = staticmethod(_topics.stream_close)

    async def publish(self, topic: str, data: Data = b"", *, id: Optional[str] = None, headers: Headers = None,
                      timeout: Timeout = None, expect_last: Optional[int] = None, strict: bool = False,
                      ttl: Timeout = None, delay: Timeout = None) -> Published:
        """Waits until the stream keeps the message, for 30 s without `timeout`, with the arguments of weft.Stream.publish().
        4,096 messages and 8 MiB of a Topics are under way at most, and 8 strict ones; a publish beyond waits. A cancelled one
        may be kept."""
        arguments = (self._handle, topic, data, id, header_dict(headers), duration(timeout), expect_last, strict,
                     duration(ttl), duration(delay))
        if strict:
            return Published(*await self._home.run(_topics.stream_publish, *arguments))
        return Published(*await self._home.calls().run("publish", topic, STORED, _topics.calls_publish, *arguments))

    async def publish_all(self, messages: Iterable[Draft], *, timeout: Timeout = None) -> Published:
        """Stores all of the messages, with consecutive sequences, or none, as weft.Stream.publish_all() does."""
        return Published(*await self._home.calls().run("publish to", self._name, STORED, _topics.calls_publish_all,
                                                       self._handle, self._name, duration(timeout), *batch(messages)))

    async def message(self, sequence: int) -> Stored:
        """The message with this sequence. Raises NotFound."""
        found: Stored = await self._home.calls().run("read message of", self._name, STORED, _topics.calls_message,
                                                        self._handle, self._name, sequence)
        return found

    async def newest(self, topic: str) -> Stored:
        """The newest message of the topic, an erasure, too. Raises NotFound."""
        found: Stored = await self._home.calls().run("read newest message of", topic, STORED, _topics.calls_newest,
                                                        self._handle, topic)
        return found

    async def info(self) -> StreamInfo:
        return StreamInfo(*await self._home.calls().run("ask about stream", self._name, INFO, _topics.calls_info, self._handle,
                                                        self._name))

    async def purge(self, before: int) -> None:
        """Deletes every message before the sequence."""
        await self._home.calls().run("purge stream", self._name, STORED, _topics.calls_purge, self._handle, self._name, before)

    async def remove(self) -> None:
        """Removes the stream, its messages and consumers from the hub."""
        await self._home.calls().run("remove stream", self._name, STORED, _topics.calls_remove, self._handle, self._name)

    async def read(self, filter: Optional[str] = None, *, start: Start = From.FIRST, queue_messages_max: int = 0,
                   queue_bytes_max: int = 0) -> Reader:
        """Reads the messages without acknowledgements, with the arguments of weft.Stream.read()."""
        handle = await self._home.run(_topics.read, self._handle, self._name, filter, *start_of(start), queue_messages_max,
                                         queue_bytes_max, undo=_topics.reader_close)
        return Reader(self._home, handle, self._name)

    async def consume(self, name: str, filter: Optional[str] = None, *, start: Start = From.FIRST, tries_max: int = 0,
                      ack_wait: Timeout = None, retry_waits: Sequence[Timeout] = (), dead_letters: Optional[str] = None,
                      unacked_max: int = 0, queue_messages_max: int = 0, queue_bytes_max: int = 0,
                      redeclare: bool = False, priority: Optional[int] = None) -> Consumer:
        """Makes the consumer or joins it, with the arguments of weft.Stream.consume()."""
        arguments = consume_arguments(self._handle, name, filter, start, tries_max, ack_wait, retry_waits, dead_letters,
                                      unacked_max, queue_messages_max, queue_bytes_max, redeclare, priority)
        return Consumer(self._home, await self._home.run(_topics.consume, *arguments, undo=_topics.consumer_close), name)


class KeyValue(_Object):
    """Keys with values that are kept."""

    _native_close = staticmethod(_topics.kv_close)

    async def put(self, key: str, value: Data, *, ttl: Timeout = None) -> int:
        """Sets the value, and returns the revision of the change, as every change does. `ttl`: that of weft.KeyValue.put()."""
        return await self._change("put value of", key, _topics.calls_put, value, None, duration(ttl))

    async def create(self, key: str, value: Data, *, ttl: Timeout = None) -> int:
        """Raises Conflict if the key has a value."""
        return await self._change("put value of", key, _topics.calls_create, value, None, duration(ttl))

    async def update(self, key: str, value: Data, seen: int, *, ttl: Timeout = None) -> int:
        """Raises Conflict unless `seen` is the revision of the key's newest change; 0: it never had a value."""
        return await self._change("put value of", key, _topics.calls_put, value, seen, duration(ttl))

    async def delete(self, key: str) -> int:
        return await self._change("delete value of", key, _topics.calls_delete)

    async def get(self, key: str) -> Optional[Entry]:
        """The newest value with its revision, or None."""
        try:
            found: Entry = await self._home.calls().run("get value of", key, ENTRY, _topics.calls_get, self._handle, key)
            return found
        except NotFound:
            return None

    async def _change(self, operation: str, key: str, begin: Callable[..., bool], *arguments: Any) -> int:
        answer = await self._home.calls().run(operation, key, ENTRY, begin, self._handle, key, *arguments)
        return Published(*answer).sequence

    async def keys(self, filter: Optional[str] = None) -> List[str]:
        """The keys that match the filter and have a value, in byte order; None: all keys."""
        keys: List[str] = []
        after: Optional[str] = None
        while True:
            page, after = await self._home.calls().run("list keys of", self._name, KEYS, _topics.calls_keys, self._handle,
                                                       self._name, filter, after)
            keys += page
            if len(keys) > _KEYS_MAX:
                raise make_error(Code.RESOURCE_EXHAUSTED, "more than 1,000,000 keys: watch() gives any number", "list keys of",
                                 self._name)
            if after is None:
                return keys

    async def watch(self, filter: Optional[str] = None, *, all: bool = False) -> Watch:
        """The newest values of the keys that match, then each change. `all`: also the older values that are kept."""
        handle = await self._home.run(_topics.kv_watch, self._handle, self._name, filter, all, undo=_topics.watch_close)
        return Watch(self._home, handle, self._name)


class Topics:
    """A handle on a fleet, as weft.Topics, whose arguments it has: `async with weft.aio.Topics("local") as topics`, or
    `topics = await weft.aio.Topics("local")` and `await topics.close()`.

    The calls that a program makes per message, request or key need no thread, and 65,536 of them may be under way. The openings of
    the handle, of streams, buckets, readers, consumers and watches, and a strict publish wait in threads, of which a handle has at
    most 8; a call beyond them waits for one. An opening waits for the hub for at most 30 s, a cancelled one, too."""

    def __init__(self, fleet: str = "local", *, space: Optional[str] = None, node: Optional[str] = None,
                 listen: Optional[str] = None, advertise: Optional[str] = None,
                 runtime_directory: Union[None, str, "os.PathLike[str]"] = None,
                 store_directory: Union[None, str, "os.PathLike[str]"] = None, hosts: bool = True, separator: str = ".",
                 queue_messages_max: int = 0, queue_bytes_max: int = 0, peer_messages_max: int = 0,
                 presence: Timeout = None, curve: Optional[Curve] = None, tls: Optional[Tls] = None,
                 hub: Optional[str] = None, login: Optional[Login] = None, outage_bytes_max: int = 0,
                 ping_every: Timeout = None) -> None:
        self._arguments = open_arguments(fleet, space, node, listen, advertise, runtime_directory, store_directory, hosts,
                                         separator, queue_messages_max, queue_bytes_max, peer_messages_max, presence, curve, tls,
                                         hub, login, outage_bytes_max, ping_every)
        self._home = Home(fleet)

    async def _open(self) -> "Topics":
        await self._home.open(self._arguments)
        return self

    def __await__(self) -> Generator[Any, None, "Topics"]:
        return self._open().__await__()

    async def __aenter__(self) -> "Topics":
        return await self._open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._home.closed

    async def close(self) -> None:
        """Closes its objects, then itself: the coroutines that wait raise Closed. A second call has no effect."""
        await self._home.close()

    def __del__(self) -> None:
        home: Optional[Home] = self.__dict__.get("_home")
        if home is not None and home.is_forgotten():
            try:
                warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self)
            finally:
                home.drop()

    def __repr__(self) -> str:
        home = self._home
        return f"<weft.aio.Topics {home.name!r}{' closed' if home.closed else '' if home.handle else ' not open'}>"

    async def sync(self, timeout: Timeout = None) -> int:
        """Waits until the roster of every peer has arrived: from then on, requests and publishers reach those peers. Returns
        the number of the other handles in the fleet."""
        return await self._home.poll(lambda ms: _topics.sync(self._home.handle, self._home.name, ms), timeout)

    def publisher(self, topic: str) -> Publisher:
        return Publisher(self._home, _topics.publisher_open(self._home.handle, topic), topic)

    async def publish(self, topic: str, data: Data = b"", *, headers: Headers = None, wait: bool = False,
                      timeout: Timeout = None) -> None:
        """Publishes one message, as Publisher.publish() does."""
        await self._home.publish(_topics.publish, self._home.handle, topic, data, headers, wait, timeout)

    def subscribe(self, *filters: str, full: Full = Full.DROP_OLDEST, queue_messages_max: int = 0,
                  queue_bytes_max: int = 0) -> Subscription:
        """Receives the messages of the filters from now on. A filter is a topic or tokens: "px.AAPL", "px.*" (one token
        there), "px.>" (one token or more)."""
        if not filters:
            raise TypeError("a subscription has at least one filter")
        self._home.check_loop()
        made = Subscription(self._home, _topics.subscribe(self._home.handle, filters[0], full, queue_messages_max, queue_bytes_max),
                            " ".join(filters))
        try:
            made.add(*filters[1:])
        except BaseException:
            made.close()
            raise
        return made

    async def request(self, topic: str, data: Data = b"", *, timeout: Timeout = 10.0, headers: Headers = None) -> Message:
        """Sends the request to one member of each group that serves the topic, and returns the first reply. Raises
        Unreachable, at once, if no handle serves it; TimedOut; TopicsError with the code and text of the service."""
        reply: Message = await self._home.calls().run("request", topic, REPLY, _topics.calls_request, topic, data,
                                                 milliseconds(timeout), header_dict(headers))
        return reply

    def serve(self, topic: str, *, group: Optional[str] = None, queue_max: int = 0) -> Service:
        """Takes the requests to the topic from now on. One member of each group gets a request."""
        self._home.check_loop()
        return Service(self._home, _topics.serve(self._home.handle, topic, group, queue_max), topic)

    async def stream(self, name: str, topics: Union[str, Sequence[str]] = (), *, keep: Keep = Keep.LOG,
                     survives: Survives = Survives.POWER, when_full: WhenFull = WhenFull.DEFAULT, redeclare: bool = False,
                     bytes_max: int = 0, age_max: Timeout = None, same_id_window: Timeout = None) -> Stream:
        """Declares the stream, with the arguments of weft.Topics.stream()."""
        handle = await self._home.run(_topics.stream_open, self._home.handle, name, filters_of(topics), keep, survives, when_full,
                                 redeclare, bytes_max, duration(age_max), duration(same_id_window), undo=_topics.stream_close)
        return Stream(self._home, handle, name)

    async def key_value(self, name: str, *, history: int = 0, survives: Survives = Survives.POWER,
                        when_full: WhenFull = WhenFull.DEFAULT, redeclare: bool = False, bytes_max: int = 0,
                        age_max: Timeout = None) -> KeyValue:
        """Declares the bucket, with the arguments of weft.Topics.key_value()."""
        handle = await self._home.run(_topics.kv_open, self._home.handle, name, history, survives, when_full, redeclare, bytes_max,
                                 duration(age_max), undo=_topics.kv_close)
        return KeyValue(self._home, handle, name)
