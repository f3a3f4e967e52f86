# SPDX-License-Identifier: MIT
"""The part of a weft.aio.Topics that its objects use: the handle in its event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
import weakref
from typing import Any, Callable, Optional, Protocol, Set, Tuple, TypeVar

from . import _topics
from ._shared import Code, Data, Headers, TimedOut, Timeout, header_dict, make_error, milliseconds
from ._waits import Calls, Ready, Turns

_T = TypeVar("_T")


class _Closable(Protocol):
    def close(self) -> None: ...


class Home:
    """A handle of the library in one event loop, from open() on, with the threads in which its rare calls wait."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.handle = 0
        self.closed = False
        self.children: "weakref.WeakSet[_Closable]" = weakref.WeakSet()
        self.loop: asyncio.AbstractEventLoop
        self.later: Optional[Calls] = None
        self.waiting: Set[Ready] = set()  # for messages of other handles
        self._input = -1  # the descriptor, in the loop
        self._turns = Turns()
        self._process = os.getpid()
        self._thread = 0
        self._pool: Optional[concurrent.futures.ThreadPoolExecutor] = None

    async def open(self, arguments: Tuple[Any, ...]) -> None:
        if self._pool is not None or self.closed:
            raise make_error(Code.INVALID_STATE, "the handle was opened before", "join fleet", self.name)
        self.loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._pool = concurrent.futures.ThreadPoolExecutor(8, "weft.aio")
        try:
            self.handle = await self.run(_topics.open, *arguments, undo=_topics.close)
        except BaseException:
            self.closed = True
            self._pool.shutdown(wait=False)
            raise

    async def close(self) -> None:
        """Closes the objects, then the handle."""
        if self.closed or self._pool is None:
            return
        self.check_loop()
        self.closed = True
        for child in list(self.children):
            child.close()
        self._stop_input()
        # In a thread of its own: those of the pool may all be waiting for this end.
        closer = concurrent.futures.ThreadPoolExecutor(1, "weft.aio.close")
        closing = closer.submit(_topics.close, self.handle, self.name)
        closer.shutdown(wait=False)
        self._pool.shutdown(wait=False)
        try:
            await asyncio.shield(asyncio.wrap_future(closing))
        finally:
            if self.later is not None:
                self.later.close()

    def is_forgotten(self) -> bool:
        """For a finalizer: whether the handle is open, and of this process."""
        return self.handle != 0 and not self.closed and self._process == os.getpid()

    def drop(self) -> None:
        """The end in a finalizer, which may run on any thread."""
        self.closed = True
        self.end_there(self._end)

    def _end(self) -> None:
        self._stop_input()
        _topics.close(self.handle, self.name)
        if self.later is not None:
            self.later.drop()

    def watch_input(self) -> None:
        """From the first wait on, the loop reads the messages of other handles: no thread stands between."""
        if self._input < 0:
            self._input = _topics.input_fd(self.handle, self.name)
            self.loop.add_reader(self._input, self._take_input)

    def _take_input(self) -> None:
        # Descriptors wake those that wait. A lone one needs none: it is a turn of the loop earlier.
        if _topics.take_input(self.handle, self.name) != 0 and len(self.waiting) == 1:
            for ready in self.waiting:
                ready.wake()
                break

    def _stop_input(self) -> None:
        descriptor, self._input = self._input, -1
        if descriptor >= 0 and not self.loop.is_closed():
            self.loop.remove_reader(descriptor)

    def on_thread(self) -> bool:
        return threading.get_ident() == self._thread

    def end_there(self, end: Callable[[], None]) -> None:
        """Calls `end` on the loop's thread, also from a finalizer that runs on another one."""
        if self.on_thread():
            end()
        else:
            try:
                self.loop.call_soon_threadsafe(end)
            except RuntimeError:  # the loop has ended
                end()

    def check_thread(self) -> None:
        if not self.on_thread():
            raise make_error(Code.INVALID_STATE, "the handle belongs to the event loop of another thread", "use", self.name)

    def check_loop(self) -> None:
        if self._pool is None:
            raise make_error(Code.INVALID_STATE, "the handle is not open: await it", "use", self.name)
        if asyncio.get_running_loop() is not self.loop:
            raise make_error(Code.INVALID_STATE, "the handle belongs to another event loop", "use", self.name)

    def calls(self) -> Calls:
        """The queue of calls under way, which the first one makes."""
        self.check_loop()
        if self.closed:
            raise make_error(Code.CLOSED, "the handle was closed", "use", self.name)
        if self.later is None:
            self.later = Calls(self.loop, self.handle, self.name)
            self.watch_input()
        return self.later

    async def run(self, function: Callable[..., _T], *arguments: Any,
                  undo: Optional[Callable[[Any, str], None]] = None) -> _T:
        """Runs the call in a thread of the handle. `undo` closes the handle that a cancelled call returns."""
        self.check_loop()
        if self.closed or self._pool is None:
            raise make_error(Code.CLOSED, "the handle was closed", "use", self.name)
        call = self._pool.submit(function, *arguments)
        try:
            return await asyncio.wrap_future(call)
        except asyncio.CancelledError:
            if undo is not None:
                call.add_done_callback(lambda done: _close_result(done, undo, self.name))
            raise

    async def poll(self, function: Callable[[int], _T], timeout: Timeout) -> _T:
        """A call that waits and changes nothing: in slices, so that a cancelled one soon gives its thread back."""
        end = None if timeout is None else self.loop.time() + milliseconds(timeout) / 1000
        while True:
            left = 100 if end is None else max(0, min(100, milliseconds(max(0.0, end - self.loop.time()))))
            try:
                return await self.run(function, left)
            except TimedOut:
                if end is not None and self.loop.time() >= end:
                    raise

    async def publish(self, function: Callable[..., None], handle: int, topic: str, data: Data, headers: Headers, wait: bool,
                      timeout: Timeout) -> None:
        self.check_loop()
        named = None if headers is None else header_dict(headers)
        if not wait:
            function(handle, topic, data, named, None)
        else:
            try:
                function(handle, topic, data, named, 0)
            except TimedOut:
                if timeout == 0:
                    raise
                await self.poll(lambda ms: function(handle, topic, data, named, ms), timeout)
                return
        if self._turns.is_due():
            await asyncio.sleep(0)


def _close_result(done: "concurrent.futures.Future[Any]", undo: Callable[[Any, str], None], name: str) -> None:
    if not done.cancelled() and done.exception() is None:
        undo(done.result(), name)
