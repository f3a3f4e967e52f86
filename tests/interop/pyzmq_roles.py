# SPDX-License-Identifier: MIT
"""The roles of roles.h on pyzmq: the same messages, the same lines on the link."""

import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Callable

import zmq
from zmq.utils.monitor import recv_monitor_message

from payload import Shape, check_message, make_message
from peers import PATIENCE, Peer, PeerError, wait_until

DEALERS, SUBSCRIBERS, PHASES = 3, 5, 2
REPLIES = 10  # stream of a reply = stream of its request + this
BURST = 16
TOPICS = [b"A.", b"AB.", b"B.", b"ABC.", b"C."]
PARTNERS = {"push": "pull", "pub": "sub", "xpub": "xsub", "dealer": "router", "req": "rep", "pair": "echo"}
PARTNERS |= {partner: role for role, partner in PARTNERS.items()}


@dataclass
class Job:
    role: str
    bind: list[str]  # endpoints; empty: connect to the endpoint that the peer names
    shape: Shape
    count: int
    rounds: int = 1
    first_round: int = 0
    on_lost: Callable[[], Peer] | None = None  # called when the peer is gone; returns its successor
    secure: Callable[[zmq.Socket], None] | None = None  # called with each socket before it binds or connects
    endpoints: list[str] = field(default_factory=list)  # result: the endpoints that it bound or connected to


class Side:
    """The sockets of one role and the ways to use them."""

    def __init__(self, context: zmq.Context, job: Job, peer: Peer):
        self.context, self.job, self.peer = context, job, peer
        self.sent = self.received = 0
        self.sockets: list[zmq.Socket] = []
        self._monitors: dict[zmq.Socket, zmq.Socket] = {}

    def open(self, kind: int, **options: object) -> zmq.Socket:
        socket = self.context.socket(kind)
        self.sockets.append(socket)
        for name in ("rcvtimeo", "sndtimeo", "linger"):
            setattr(socket, name, int(PATIENCE * 1000))
        socket.sndhwm = socket.rcvhwm = 100_000
        socket.reconnect_ivl = 20
        for name, value in options.items():
            setattr(socket, name, value)
        if self.job.secure:
            self.job.secure(socket)
        if self.job.rounds > 1:
            self._monitors[socket] = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED)
            self._monitors[socket].rcvtimeo = int(PATIENCE * 1000)
        return socket

    def join(self) -> None:
        if not self.job.bind:
            self.job.endpoints = self.job.endpoints or self.peer.expect("at").split()
            for endpoint in self.job.endpoints:
                for socket in self.sockets:
                    socket.connect(endpoint)
            return
        first = self.job.bind[0]
        for index, socket in enumerate(self.sockets):
            fresh = first if index == 0 or "tcp://" in first else f"{first}-{index}"
            socket.bind(self.job.bind[index] if index < len(self.job.bind) else fresh)
            self.job.endpoints.append(socket.last_endpoint.decode())
        self.peer.send(" ".join(["at", *self.job.endpoints]))

    def close(self) -> None:
        for socket in self.sockets:
            socket.disable_monitor()
            socket.close()

    def send(self, socket: zmq.Socket, stream: int, sequence: int, topic: bytes = b"", routing_id: bytes = b"") -> None:
        parts = make_message(self.job.shape, stream, sequence, topic)
        socket.send_multipart([routing_id, *parts] if routing_id else parts)
        self.sent += 1

    def expect(self, socket: zmq.Socket, stream: int, sequence: int, topic: bytes = b"") -> None:
        self.check(stream, sequence, topic, socket.recv_multipart())

    def check(self, stream: int, sequence: int, topic: bytes, parts: list[bytes]) -> None:
        check_message(self.job.shape, stream, sequence, topic, parts)
        self.received += 1

    def begin_round(self, number: int, peers: int = 1) -> None:
        """For each round but the first: waits until each socket's connections have gone, and starts the next peer. A
        message sent before the new connections stand might go to the old ones."""
        if number > 0:
            self.wait_events(zmq.EVENT_DISCONNECTED, peers)
            if self.job.bind and self.job.role in ("pair", "echo"):  # libzmq's PAIR refuses a second peer
                wait_until(lambda: not self.sockets[0].poll(0, zmq.POLLOUT), "the old connection stays")
            self.peer = self.job.on_lost()
        self.wait_events(zmq.EVENT_HANDSHAKE_SUCCEEDED, peers)

    def wait_events(self, kind: int, count: int) -> None:
        for socket, monitor in self._monitors.items():
            for _ in range(count):
                while recv_monitor_message(monitor)["event"] != kind:
                    pass

    def wait_for_ready(self, timeout: float) -> bool:
        if not self.peer.has_line(timeout):
            return False
        self.peer.expect("ready")
        return True


def run_push(side: Side) -> None:
    socket = side.open(zmq.PUSH)
    side.join()
    for number in range(side.job.rounds):
        side.begin_round(number)
        for i in range(side.job.count):
            side.send(socket, 0, i)


def run_pull(side: Side) -> None:
    socket = side.open(zmq.PULL)
    side.join()
    for number in range(side.job.rounds):
        side.begin_round(number)
        for i in range(side.job.count):
            side.expect(socket, 0, i)


def need_out_of_turn(call: Callable[[], object], what: str) -> None:
    try:
        call()
    except zmq.ZMQError as error:
        if error.errno == zmq.EFSM:
            return
    raise PeerError(what)


def run_req(side: Side) -> None:
    socket = side.open(zmq.REQ)
    side.join()
    for number in range(side.job.rounds):
        side.begin_round(number)
        for i in range(side.job.count):
            side.send(socket, 0, i)
            if i == 0:
                need_out_of_turn(lambda: socket.send(b"out of turn"), "REQ sends twice")
            side.expect(socket, REPLIES, i)


def run_rep(side: Side) -> None:
    socket = side.open(zmq.REP)
    side.join()
    for number in range(side.job.rounds):
        side.begin_round(number)
        for i in range(side.job.count):
            side.expect(socket, 0, i)
            side.send(socket, REPLIES, i)


def ask(side: Side, socket: zmq.Socket, stream: int, first: int) -> None:
    """One burst and the replies to it."""
    burst = range(first, min(first + BURST, side.job.count))
    for i in burst:
        side.send(socket, stream, i)
    for i in burst:
        side.expect(socket, stream + REPLIES, i)


def run_pair(side: Side) -> None:
    socket = side.open(zmq.PAIR)
    side.join()
    for number in range(side.job.rounds):
        side.begin_round(number)
        for i in range(0, side.job.count, BURST):
            ask(side, socket, 0, i)


def run_echo(side: Side) -> None:
    socket = side.open(zmq.PAIR)
    side.join()
    for number in range(side.job.rounds):
        side.begin_round(number)
        for i in range(side.job.count):
            side.expect(socket, 0, i)
            side.send(socket, REPLIES, i)


def dealer_name(dealer: int) -> bytes:
    return b"dealer-%d" % dealer if dealer + 1 < DEALERS else b""


def run_dealers(side: Side) -> None:
    for dealer in range(DEALERS):
        name = dealer_name(dealer)
        side.open(zmq.DEALER, **({"routing_id": name} if name else {}))
    side.join()
    for number in range(side.job.rounds):
        side.begin_round(number)
        for i in range(0, side.job.count, BURST):
            for dealer, socket in enumerate(side.sockets):
                ask(side, socket, dealer, i)


def run_router(side: Side) -> None:
    socket = side.open(zmq.ROUTER, router_handover=1)  # a routing id may come again before its old connection is gone
    side.join()
    names = {dealer_name(dealer): dealer for dealer in range(DEALERS - 1)}
    for number in range(side.job.rounds):
        side.begin_round(number, DEALERS)
        following: dict[int, int] = defaultdict(int)
        for _ in range(DEALERS * side.job.count):
            name, *parts = socket.recv_multipart()
            dealer = names.get(name, DEALERS - 1)
            if dealer == DEALERS - 1 and not name.startswith(b"\0"):
                raise PeerError(f"unexpected routing id {name!r}")
            sequence = following[dealer]
            following[dealer] += 1
            side.check(dealer, sequence, b"", parts)
            side.send(socket, dealer + REPLIES, sequence, routing_id=name)


def filters_of(subscriber: int, phase: int) -> set[bytes]:
    changed = phase % PHASES == 1
    return [
        {b""},
        {b"A"},
        {b"AB", b"B"} if changed else {b"AB"},
        set() if changed else {b"B"},
        {b"A", b"C"} if changed else {b"A", b"B"},
    ][subscriber]


def topic_of(sequence: int) -> bytes:
    return TOPICS[sequence % len(TOPICS)]


def control(phase: int, word: bytes) -> bytes:
    return b"\xff" + bytes([ord("a") + phase]) + word


def head_of(shape: Shape, topic: bytes) -> bytes:
    """The front of a message, as far as a filter reads it."""
    return topic[: shape.sizes[0]]


def phases_of(job: Job, number: int) -> range:
    first = (job.first_round + number) * PHASES
    return range(first, first + PHASES)


def run_publisher(side: Side) -> None:
    socket = side.open(zmq.PUB)
    side.join()
    for number in range(side.job.rounds):
        side.begin_round(number, SUBSCRIBERS)
        for phase in phases_of(side.job, number):
            ready, deadline = 0, time.monotonic() + PATIENCE
            while ready < SUBSCRIBERS:
                if time.monotonic() > deadline:
                    raise PeerError("the subscribers do not see control messages")
                socket.send(control(phase, b"sync"))
                ready += side.wait_for_ready(0.002)
            for i in range(side.job.count):
                side.send(socket, phase, i, topic_of(i))
            socket.send(control(phase, b"end"))


def take_phase(side: Side, socket: zmq.Socket, phase: int, filters: set[bytes]) -> None:
    due = [i for i in range(side.job.count) if head_of(side.job.shape, topic_of(i)).startswith(tuple(filters))]
    due.reverse()
    while True:
        parts = socket.recv_multipart()
        if len(parts) == 1 and parts[0].startswith(b"\xff"):
            if parts[0] == control(phase, b"end"):
                break
            continue
        if not due:
            raise PeerError("a message more than expected")
        i = due.pop()
        side.check(phase, i, topic_of(i), parts)
    if due:
        raise PeerError(f"{len(due)} messages are missing at the end")


def run_subscriber(side: Side, socket: zmq.Socket, subscriber: int) -> None:
    filters: set[bytes] = set()
    for phase in phases_of(side.job, 0):
        changed = filters_of(subscriber, phase)
        for topic in filters - changed:
            socket.unsubscribe(topic)
        for topic in changed - filters:
            socket.subscribe(topic)
        filters = changed
        socket.subscribe(control(phase, b""))
        while socket.recv() != control(phase, b"sync"):
            pass
        side.peer.send("ready")
        take_phase(side, socket, phase, filters)


def run_subscribers(side: Side) -> None:
    for _ in range(SUBSCRIBERS):
        side.open(zmq.SUB)
    side.join()
    first_round = side.job.first_round
    for number in range(side.job.rounds):
        side.begin_round(number)
        side.job.first_round = first_round + number
        errors: list[Exception] = []

        def work(socket: zmq.Socket, subscriber: int) -> None:
            try:
                if number > 0:  # the state that the last phase left behind
                    for topic in filters_of(subscriber, PHASES - 1):
                        socket.unsubscribe(topic)
                run_subscriber(side, socket, subscriber)
            except Exception as error:  # noqa: BLE001 - handed to the main thread
                errors.append(error)

        threads = [threading.Thread(target=work, args=(socket, i)) for i, socket in enumerate(side.sockets)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]


def run_xpub(side: Side) -> None:
    socket = side.open(zmq.XPUB)
    side.join()
    topics = sorted(socket.recv_multipart() for _ in range(2))
    if topics != [[b"\1A"], [b"\1AB"]]:
        raise PeerError(f"first subscriptions {topics}")
    for stream, expected in enumerate(([b"\0A"], [b"\2upstream"])):
        for i in range(side.job.count):
            side.send(socket, stream, i, topic_of(i))
        socket.send(b"AB\xff")
        parts = socket.recv_multipart()
        if parts != expected:
            raise PeerError(f"{parts} instead of {expected}")


def run_xsub(side: Side) -> None:
    socket = side.open(zmq.XSUB)
    side.join()
    for topic in (b"\1A", b"\1AB", b"\1A"):
        socket.send(topic)
    for stream, prefix in enumerate((b"A", b"AB")):
        for i in range(side.job.count):
            if head_of(side.job.shape, topic_of(i)).startswith(prefix):
                side.expect(socket, stream, i, topic_of(i))
        end = socket.recv_multipart()
        if end != [b"AB\xff"]:
            raise PeerError("a message more than expected")
        for line in ((b"\0A", b"\0A"), (b"\2upstream",))[stream]:
            socket.send(line)


ROLES = {
    "push": run_push,
    "pull": run_pull,
    "pub": run_publisher,
    "sub": run_subscribers,
    "xpub": run_xpub,
    "xsub": run_xsub,
    "dealer": run_dealers,
    "router": run_router,
    "req": run_req,
    "rep": run_rep,
    "pair": run_pair,
    "echo": run_echo,
}


def run_role(context: zmq.Context, job: Job, peer: Peer) -> Side:
    """Plays the role to its end; sent messages are delivered by then or within the linger time."""
    side = Side(context, job, peer)
    try:
        ROLES[job.role](side)
    finally:
        side.close()
    return side
