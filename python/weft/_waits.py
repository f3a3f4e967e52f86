# SPDX-License-Identifier: MIT
"""The waits of weft.aio_topics: for descriptors, for calls under way, and for the turn of other tasks."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import itertools
from typing import Any, Callable, Deque, Dict, Optional, Set, Tuple

from . import _topics
from ._shared import Code, Entry, Message, Stored, make_error

_STREAK = 64  # steps in a row that did not wait
_CLASSES = (Message, Stored, Entry)
REPLY, STORED, ENTRY, INFO, KEYS = range(5)  # the class of a call's answer; of an answer without a message any


class Turns:
    """Counts the steps that did not wait: after each 64th one the coroutine leaves the loop to other tasks."""

    def __init__(self) -> None:
        self._streak = 0

    def is_due(self) -> bool:
        """Counts a step. If it returns True, the coroutine sleeps for 0 s."""
        self._streak += 1
        if self._streak < _STREAK:
            return False
        self._streak = 0
        return True

    def waited(self) -> None:
        self._streak = 0


_Waiter = Tuple["asyncio.Future[None]", Optional[float]]  # with the time of its end


class Ready:
    """The coroutines that wait for one descriptor. It is readable while there may be a message, so a coroutine that was woken and
    then cancelled leaves the message to the next one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, group: Set["Ready"]) -> None:
        self._loop = loop
        self._group = group  # of those that have waiters
        self._fd = -1
        self._watched = False
        self._stale = False  # the next event may be older than the look that found nothing
        self._waiters: Deque[_Waiter] = collections.deque()
        self._timer: Optional[asyncio.TimerHandle] = None  # one for all: a timer for each wait would cost as much as the message

    async def wait(self, fd: int, end: Optional[float]) -> bool:
        """Returns False at the time `end` of the loop."""
        self._fd = fd
        if not self._watched:
            self._loop.add_reader(fd, self._wake)
            self._watched = True
        self._stale = True
        future: "asyncio.Future[None]" = self._loop.create_future()
        waiter = future, end
        self._waiters.append(waiter)
        self._group.add(self)
        if end is not None and (self._timer is None or end < self._timer.when()):
            self._set_timer(end)
        try:
            await future
            return True
        except (TimeoutError, asyncio.CancelledError) as error:
            with contextlib.suppress(ValueError):  # it was woken before
                self._waiters.remove(waiter)
            if not self._waiters:
                self._group.discard(self)
            if isinstance(error, TimeoutError):
                return False
            raise

    def stop(self) -> None:
        """Before the descriptor is closed: wakes all, and each finds the end."""
        if self._watched:
            self._watched = False
            if not self._loop.is_closed():
                self._loop.remove_reader(self._fd)
        while self.wake():
            pass
        self._set_timer(None)

    def _wake(self) -> None:
        if self._stale and self._waiters:  # if the descriptor is readable now, the loop reports it again
            self._stale = False
        elif not self.wake() and self._watched:  # nobody waits
            self._watched = False
            self._loop.remove_reader(self._fd)

    def wake(self) -> bool:
        """Wakes the first waiter. Returns False if there is none."""
        while self._waiters:
            future = self._waiters.popleft()[0]
            if not self._waiters:
                self._group.discard(self)
            if not future.done():
                future.set_result(None)
                return True
        self._group.discard(self)
        return False

    def _set_timer(self, end: Optional[float]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if end is None else self._loop.call_at(end, self._expire)

    def _expire(self) -> None:
        now = self._timer.when() if self._timer is not None else 0.0
        for future, end in self._waiters:
            if end is not None and end <= now and not future.done():
                future.set_exception(TimeoutError())
        self._set_timer(min((end for future, end in self._waiters if end is not None and not future.done()), default=None))


class Calls:
    """The calls of one handle that are under way, whose outcomes one descriptor announces."""

    def __init__(self, loop: asyncio.AbstractEventLoop, topics: int, name: str) -> None:
        self._loop, self._name = loop, name
        self._handle = _topics.calls_open(topics, name)
        self._numbers = itertools.count(1)
        self._waiting: Dict[int, Tuple["asyncio.Future[Any]", str, str]] = {}
        self._changed: Deque["asyncio.Future[None]"] = collections.deque()  # of those that wait for a place
        self._fd = _topics.calls_fd(self._handle, name)
        loop.add_reader(self._fd, self.take)

    async def run(self, operation: str, name: str, answer: int, begin: Callable[..., bool], *arguments: Any) -> Any:
        """The answer of the call that `begin(handle, tag, *arguments)` begins. It waits while the call has no place. The answer
        to a cancelled one is dropped."""
        tag = next(self._numbers) << 3 | answer
        while not begin(self._handle, tag, *arguments):
            await self._change()
            if self._handle == 0:
                raise make_error(Code.CLOSED, "the handle of topics was closed", operation, name)
        future: "asyncio.Future[Any]" = self._loop.create_future()
        self._waiting[tag] = future, operation, name
        try:
            return await future
        finally:
            self._waiting.pop(tag, None)

    def take(self) -> None:
        """Gives outcomes to the calls that wait for them; the rest of a flood after other tasks."""
        for _ in range(_STREAK):
            outcome = None if self._handle == 0 else _topics.calls_next(self._handle, self._name, _CLASSES)
            if outcome is None:
                break
            tag, code, value = outcome
            future, operation, name = self._waiting.pop(tag, (None, "", ""))
            if future is not None and not future.done():
                if code == 0:
                    future.set_result(value)
                else:
                    future.set_exception(make_error(code, value, operation, name))
        while self._changed:
            changed = self._changed.popleft()
            if not changed.done():
                changed.set_result(None)

    def close(self) -> None:
        """Gives the last outcomes. The calls that have none end with Closed."""
        if self._handle == 0:
            return
        while True:
            before = len(self._waiting)
            self.take()
            if len(self._waiting) == before:
                break
        self.drop()
        for future, operation, name in self._waiting.values():
            if not future.done():
                future.set_exception(make_error(Code.CLOSED, "the handle of topics was closed", operation, name))
        self._waiting.clear()

    def drop(self) -> None:
        """Ends the queue without its outcomes."""
        handle, self._handle = self._handle, 0
        if handle != 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._fd)
            _topics.calls_close(handle, self._name)

    async def _change(self) -> None:
        """Waits for an outcome, and not long: another object of the program may have the places."""
        changed: "asyncio.Future[None]" = self._loop.create_future()
        self._changed.append(changed)
        timer = self._loop.call_later(0.01, lambda: None if changed.done() else changed.set_result(None))
        try:
            await changed
        finally:
            timer.cancel()
