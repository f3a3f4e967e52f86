# SPDX-License-Identifier: MIT
"""Message sockets with ZeroMQ's patterns, and topics, on Weft. `python -m weft.run program.py` runs a pyzmq program on Weft."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _lib
from ._lazy import names_of
from ._numbers import Event, Option, Poll, SocketType
from ._sockets import Again, Context, Error, Monitor, MonitorEvent, Part, Parts, Poller, Socket, Statistics, curve_keypair

if TYPE_CHECKING:
    from .topics import *

__all__ = [
    "Again", "Context", "Error", "Event", "Monitor", "MonitorEvent", "Option", "Part", "Parts", "Poll", "Poller", "Socket",
    "SocketType", "Statistics", "curve_keypair", "library",
    "PAIR", "PUB", "SUB", "REQ", "REP", "DEALER", "ROUTER", "PULL", "PUSH", "XPUB", "XSUB", "STREAM",
    "IDENTITY", "SUBSCRIBE", "UNSUBSCRIBE", "FD", "EVENTS", "LINGER", "SNDHWM", "RCVHWM", "RCVTIMEO", "SNDTIMEO",
    "LAST_ENDPOINT",
]
__version__ = _lib.version()

PAIR = SocketType.PAIR
PUB = SocketType.PUB
SUB = SocketType.SUB
REQ = SocketType.REQ
REP = SocketType.REP
DEALER = SocketType.DEALER
ROUTER = SocketType.ROUTER
PULL = SocketType.PULL
PUSH = SocketType.PUSH
XPUB = SocketType.XPUB
XSUB = SocketType.XSUB
STREAM = SocketType.STREAM

IDENTITY = Option.ROUTING_ID
SUBSCRIBE = Option.SUBSCRIBE
UNSUBSCRIBE = Option.UNSUBSCRIBE
FD = Option.FD
EVENTS = Option.EVENTS
LINGER = Option.LINGER
SNDHWM = Option.SNDHWM
RCVHWM = Option.RCVHWM
RCVTIMEO = Option.RCVTIMEO
SNDTIMEO = Option.SNDTIMEO
LAST_ENDPOINT = Option.LAST_ENDPOINT
RCVMORE = Option.RCVMORE


def library() -> str:
    """The path of the shared library that the package carries: a drop-in for libzmq.so.5."""
    return str(_lib.LIBRARY)


__getattr__ = names_of("weft.topics", __name__)
