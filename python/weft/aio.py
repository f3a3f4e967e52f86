# SPDX-License-Identifier: MIT
"""Sockets for asyncio, and topics: Topics. A wake-up of the event loop takes every message that is there, up to a bound, not one."""

from __future__ import annotations

import asyncio
import collections
import errno
from typing import TYPE_CHECKING, Deque, Dict, List

from . import EVENTS, Again, Context, Error, Parts
from . import Socket as _Socket
from ._lazy import names_of

if TYPE_CHECKING:
    from .aio_topics import *

__all__ = ["Socket"]
_POLLIN, _POLLOUT = 1, 2


class Socket:
    """A weft.Socket in the running event loop, for any number of coroutines of that loop. `batch` is the most messages that
    one wake-up takes, and the bound on those that wait here; the rest stay in the socket, below its RCVHWM."""

    def __init__(self, context: Context, kind: int, *, batch: int = 256) -> None:
        if batch < 1:
            raise ValueError("batch must be at least 1")
        self.socket: _Socket = context.socket(kind)
        self._batch = batch
        self._ready: Deque[List[bytes]] = collections.deque()
        # By the bit of EVENTS that each waits for: a DEALER with room to send must not wake its receivers.
        self._waiting: Dict[int, Deque["asyncio.Future[None]"]] = {_POLLIN: collections.deque(), _POLLOUT: collections.deque()}
        self._closed = False
        self._busy = 0  # messages since a call of this socket let other tasks run
        self._loop = asyncio.get_running_loop()
        self._fd = self.socket.fileno()
        self._loop.add_reader(self._fd, self._wake)

    async def recv(self) -> List[bytes]:
        """The parts of the next message. Raises Error: after a `close`, or when it comes meanwhile, that of ENOTSOCK. The messages
        that were taken before are given first."""
        await self._pass_turn()
        while not self._ready:
            self._take()
            if not self._ready:
                await self._wait(_POLLIN)
        message = self._ready.popleft()
        self._busy += 1
        if self._ready:
            self._wake()  # this call took messages for others, whose descriptor has no edge for them
        return message

    async def recv_batch(self) -> List[List[bytes]]:
        """Waits for a message, then returns all that one wake-up took, in order."""
        first = await self.recv()
        batch = [first, *self._ready]
        self._busy += len(self._ready)
        self._ready.clear()
        return batch

    async def send(self, message: Parts) -> None:
        """Sends one message; waits while there is no room. Raises Error: of ENOTSOCK as `recv` does."""
        await self._pass_turn()
        while True:
            try:
                self.socket.send(message, wait=False)
            except Again:
                await self._wait(_POLLOUT)
                continue
            self._busy += 1
            self._wake()  # a send may consume the descriptor's edge: what arrived meanwhile must wake the receivers
            return

    def close(self) -> None:
        """Closes the socket and ends the waiting calls with an Error. A second call has no effect."""
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._fd)
            for queue in self._waiting.values():
                while queue:
                    future = queue.popleft()
                    if not future.done():
                        future.set_exception(Error(errno.ENOTSOCK, "the socket was closed"))
            self.socket.close()

    def __repr__(self) -> str:
        return repr(self.socket).replace("<weft.Socket", "<weft.aio.Socket", 1)

    async def __aenter__(self) -> "Socket":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def _take(self) -> None:
        room = self._batch - len(self._ready)
        if room > 0:
            self._ready.extend(self.socket.recv_batch(room))
            self._wake()  # a receive may consume the descriptor's edge: there may be room to send

    async def _pass_turn(self) -> None:
        """Lets other tasks run, also in a flood."""
        if self._busy >= self._batch:
            self._busy = 0
            await asyncio.sleep(0)

    async def _wait(self, event: int) -> None:
        self._busy = 0
        future: "asyncio.Future[None]" = self._loop.create_future()
        self._waiting[event].append(future)
        # EVENTS after the refusal and before the sleep: an edge between the two is not lost.
        self._wake()
        await future

    def _wake(self) -> None:
        if self._closed or not (self._waiting[_POLLIN] or self._waiting[_POLLOUT]):
            return
        events = self.socket.get_int(EVENTS) | (_POLLIN if self._ready else 0)
        for event, queue in self._waiting.items():
            while queue and events & event:
                future = queue.popleft()
                if not future.done():
                    future.set_result(None)


__getattr__ = names_of("weft.aio_topics", __name__)
