#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""RADIO and DISH over udp, and DGRAM, between our libzmq.so.5 and libzmq's drafts, each side once.

usage: udp_test.py BUILD

Loads both libraries into this process. `./dev compat libzmq` builds the other one; without it the test is skipped.
"""
import ctypes
import errno
import os
import socket
import struct
import sys
from pathlib import Path

RADIO, DISH, DGRAM = 14, 15, 18
RCVTIMEO, SNDTIMEO, LINGER, RCVMORE, IPV6, RCVBUF, SNDHWM, RCVHWM = 27, 28, 17, 13, 42, 12, 23, 24
SNDMORE = 2
MESSAGES = 10_000
AT_ONCE = 50  # on their way: the system's buffer holds so many
LONGEST = 8000  # libzmq takes 8192 bytes of a datagram, and loses the rest
LONG_GROUP = b"g" * 127  # of a longer one libzmq takes the length for negative, and its process ends

Message = ctypes.c_byte * 64


class Library:
    def __init__(self, name, path):
        self.name = name
        self.zmq = ctypes.CDLL(str(path), mode=os.RTLD_LOCAL)
        for function in ("zmq_ctx_new", "zmq_socket", "zmq_msg_data"):
            getattr(self.zmq, function).restype = ctypes.c_void_p
        self.zmq.zmq_msg_size.restype = ctypes.c_size_t
        self.zmq.zmq_msg_group.restype = ctypes.c_char_p
        self.context = ctypes.c_void_p(self.zmq.zmq_ctx_new())

    def check(self, result):
        if result == -1:
            code = self.zmq.zmq_errno()
            raise OSError(code, f"{self.name}: {os.strerror(code)}")
        return result

    def socket(self, kind, **options):
        pointer = self.zmq.zmq_socket(self.context, kind)
        if not pointer:
            raise OSError(self.zmq.zmq_errno(), f"{self.name}: no socket of type {kind}")
        made = Socket(self, ctypes.c_void_p(pointer))
        for option, value in ((RCVTIMEO, 10_000), (SNDTIMEO, 10_000), (LINGER, 0), (SNDHWM, 0), (RCVHWM, 0)):
            made.set(option, value)
        for option, value in options.items():
            made.set(globals()[option], value)
        return made


class Socket:
    def __init__(self, library, pointer):
        self.library, self.zmq, self.pointer, self.check = library, library.zmq, pointer, library.check

    def set(self, option, value):
        number = ctypes.c_int(value)
        self.check(self.zmq.zmq_setsockopt(self.pointer, option, ctypes.byref(number), ctypes.sizeof(number)))

    def bind(self, endpoint):
        self.check(self.zmq.zmq_bind(self.pointer, endpoint.encode()))

    def connect(self, endpoint):
        self.check(self.zmq.zmq_connect(self.pointer, endpoint.encode()))

    def join(self, group):
        self.check(self.zmq.zmq_join(self.pointer, group))

    def send(self, data, flags=0):
        self.check(self.zmq.zmq_send(self.pointer, data, ctypes.c_size_t(len(data)), flags))

    def send_to_group(self, group, data):
        message = Message()
        self.check(self.zmq.zmq_msg_init_size(message, ctypes.c_size_t(len(data))))
        ctypes.memmove(self.zmq.zmq_msg_data(message), data, len(data))
        self.check(self.zmq.zmq_msg_set_group(message, group))
        self.check(self.zmq.zmq_msg_send(message, self.pointer, 0))

    def recv(self):
        """The group, or an empty one, and the bytes."""
        message = Message()
        self.check(self.zmq.zmq_msg_init(message))
        self.check(self.zmq.zmq_msg_recv(message, self.pointer, 0))
        data = ctypes.string_at(self.zmq.zmq_msg_data(message), self.zmq.zmq_msg_size(message))
        group = self.zmq.zmq_msg_group(message)
        self.check(self.zmq.zmq_msg_close(message))
        return group, data

    def close(self):
        self.zmq.zmq_close(self.pointer)


def free_port(ipv6=False):
    with socket.socket(socket.AF_INET6 if ipv6 else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("::1" if ipv6 else "127.0.0.1", 0))
        return probe.getsockname()[1]


def body(number):
    size = (number * 37) % 200 if number % 100 else LONGEST
    return (b"%d:" % number) + bytes((number + i) % 251 for i in range(size))


def settle(radio, dish):
    """libzmq binds in its I/O thread, after zmq_bind() returned: sends until something arrives."""
    dish.join(b"ready?")
    dish.set(RCVTIMEO, 20)
    for _ in range(500):
        radio.send_to_group(b"ready?", b"")
        try:
            dish.recv()
            break
        except OSError as error:
            if error.errno != errno.EAGAIN:
                raise
    dish.set(RCVTIMEO, 10_000)


def radio_and_dish(sender, receiver, radio_at, dish_at, ipv6=0):
    dish = receiver.socket(DISH, IPV6=ipv6, RCVBUF=1 << 20)
    radio = sender.socket(RADIO, IPV6=ipv6)
    dish.bind(dish_at)
    dish.join(b"news")
    dish.join(LONG_GROUP)
    radio.connect(radio_at)
    settle(radio, dish)
    number = 0
    while number < MESSAGES:
        sent = range(number, min(number + AT_ONCE, MESSAGES))
        for i in sent:
            radio.send_to_group(b"nobody's", b"not for us")
            radio.send_to_group(LONG_GROUP if i % 10 == 0 else b"news", body(i))
        for i in sent:
            group, data = dish.recv()
            while group == b"ready?":
                group, data = dish.recv()
            expected = LONG_GROUP if i % 10 == 0 else b"news"
            assert (group, data) == (expected, body(i)), f"message {i}: {group!r} {data[:40]!r}"
        number = sent.stop
    radio.close()
    dish.close()


def dgrams(asking, answering):
    asker, answerer = asking.socket(DGRAM), answering.socket(DGRAM)
    ports = [free_port(), free_port()]
    asker.bind(f"udp://127.0.0.1:{ports[0]}")
    answerer.bind(f"udp://127.0.0.1:{ports[1]}")
    answerer.set(RCVTIMEO, 20)
    for _ in range(500):  # as in settle()
        asker.send(b"127.0.0.1:%d" % ports[1], SNDMORE)
        asker.send(b"ready?")
        try:
            answerer.recv()
            answerer.recv()
            break
        except OSError as error:
            if error.errno != errno.EAGAIN:
                raise
    answerer.set(RCVTIMEO, 10_000)
    for i in range(MESSAGES // 10):
        asker.send(b"127.0.0.1:%d" % ports[1], SNDMORE)
        asker.send(body(i))
        data = b"ready?"
        while data == b"ready?":
            address = answerer.recv()[1]
            data = answerer.recv()[1]
        assert address == b"127.0.0.1:%d\0" % ports[0], address
        assert data == body(i)
        answerer.send(address, SNDMORE)
        answerer.send(data[::-1])
        assert asker.recv()[1] == b"127.0.0.1:%d\0" % ports[1]
        assert asker.recv()[1] == body(i)[::-1]
    asker.close()
    answerer.close()


def has_ipv6():
    try:
        free_port(ipv6=True)
        return True
    except OSError:
        return False


def has_multicast():
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as member, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            interface = struct.pack("=4s4si", bytes(4), bytes(4), socket.if_nametoindex("lo"))
            member.bind(("", 0))
            member.settimeout(2)
            member.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("239.12.34.61") + interface[4:])
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
            sender.sendto(b"?", ("239.12.34.61", member.getsockname()[1]))
            return member.recv(10) == b"?"
    except OSError:
        return False


def main():
    root = Path(__file__).resolve().parent.parent.parent
    ours = Library("weft", Path(sys.argv[1]) / "capi/libzmq.so.5")
    reference = root / "build/compat/libzmq/reference/lib/libzmq.so.5"
    if not reference.exists():
        print("there is no libzmq with drafts: ./dev compat libzmq builds it; skipped")
        sys.exit(77)
    theirs = Library("libzmq", reference)
    multicast, ipv6 = has_multicast(), has_ipv6()
    for name, there in (("multicast on lo", multicast), ("IPv6", ipv6)):
        if not there:
            print(f"this machine has no {name}: those cells are left out")
    for a, b in ((ours, theirs), (theirs, ours), (ours, ours)):
        port = free_port()
        radio_and_dish(a, b, f"udp://127.0.0.1:{port}", f"udp://*:{port}")
        print(f"radio {a.name} -> dish {b.name}: ok", flush=True)
        if multicast:
            port = free_port()
            group = f"udp://lo;239.12.34.60:{port}"
            radio_and_dish(a, b, group, group)
            print(f"radio {a.name} -> dish {b.name}, a group on lo: ok", flush=True)
        if ipv6:
            port = free_port(ipv6=True)
            radio_and_dish(a, b, f"udp://[::1]:{port}", f"udp://*:{port}", ipv6=1)
            print(f"radio {a.name} -> dish {b.name}, IPv6: ok", flush=True)
        dgrams(a, b)
        print(f"dgram {a.name} <-> dgram {b.name}: ok", flush=True)


main()
