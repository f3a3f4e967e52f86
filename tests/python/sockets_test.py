# SPDX-License-Identifier: MIT
"""weft.aio.Socket when it is closed and in a flood; weft.Socket, Poller and Monitor: each call, and the errors that name it."""

import array
import asyncio
import errno
import itertools
import os
import pathlib
import pickle
import re
import unittest

import weft
from topics_case import PATIENCE
from weft import _lib, _numbers, aio

LONG_FLOOD = 5000


class Sockets(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.context = weft.Context()
        self.addCleanup(self.context.close)

    def pair(self, **options):
        """Of this loop: a PULL, and a PUSH that is connected to it."""
        pull, push = aio.Socket(self.context, weft.PULL, **options), aio.Socket(self.context, weft.PUSH)
        self.addCleanup(pull.close)
        self.addCleanup(push.close)
        push.socket.connect(pull.socket.bind("inproc://x"))
        return pull, push

    async def test_a_close_ends_the_waiting_calls_with_an_error(self):
        pull, _ = self.pair()
        with self.assertRaises(ExceptionGroup) as raised:
            async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
                waits = group.create_task(pull.recv())
                while not waits.done():
                    await asyncio.sleep(0)
                    pull.close()
        (error,) = raised.exception.exceptions
        self.assertIsInstance(error, weft.Error)
        self.assertEqual(error.errno, errno.ENOTSOCK)

    async def test_a_closed_socket_gives_what_it_had_taken(self):
        pull, push = self.pair(batch=8)
        for number in range(8):
            await push.send(b"%d" % number)
        self.assertEqual(await pull.recv(), [b"0"])
        taken = len(pull._ready)
        pull.close()
        self.assertEqual([await pull.recv() for _ in range(taken)], [[b"%d" % number] for number in range(1, taken + 1)])
        for call in (pull.recv(), pull.send(b"late")):
            with self.assertRaises(weft.Error) as raised:
                await call
            self.assertEqual(raised.exception.errno, errno.ENOTSOCK)

    async def test_other_tasks_run_in_a_flood(self):
        pull, push = self.pair(batch=16)
        turns = 0

        async def count():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counts = asyncio.create_task(count())
        for _ in range(LONG_FLOOD // 100):
            for _ in range(100):
                await push.send(b"x")
            for _ in range(100):
                await pull.recv()
        counts.cancel()
        self.assertGreaterEqual(turns, LONG_FLOOD // 16)


class Calls(unittest.TestCase):
    def setUp(self):
        self.context = weft.Context()
        self.addCleanup(self.context.close)

    def pair(self):
        pull, push = self.context.socket(weft.PULL), self.context.socket(weft.PUSH)
        pull.set(weft.RCVTIMEO, int(PATIENCE * 1000))
        push.connect(pull.bind("inproc://calls"))
        return pull, push

    def test_parts_are_any_buffers(self):
        pull, push = self.pair()
        numbers = array.array("H", [1, 2, 3])
        whole = bytearray(b"0123456789")
        for message, parts in ((bytearray(b"a"), [b"a"]), (memoryview(b"b"), [b"b"]), (memoryview(whole)[2:5], [b"234"]),
                               ([b"c", bytearray(), numbers], [b"c", b"", numbers.tobytes()])):
            push.send(message)
            self.assertEqual(pull.recv(), parts)
        whole.append(0)  # the calls have released it
        for wrong in (memoryview(b"0123")[::2], ):
            with self.assertRaises(BufferError):
                push.send(wrong)
        for wrong in ([], "text", [1], ["text"], 7, None):
            with self.assertRaises(TypeError):
                push.send(wrong)
        push.send_string("\u00fc")
        self.assertEqual(pull.recv_string(), "\u00fc")
        push.send_json({"a": [1, None]})
        self.assertEqual(pull.recv_json(), {"a": [1, None]})
        push.send([b"1", b"2"])
        with self.assertRaises(ValueError):
            pull.recv_json()

    def test_options_have_their_type_and_width(self):
        socket = self.context.socket(weft.DEALER)
        for option, value in ((weft.Option.MAXMSGSIZE, 1 << 40), (weft.Option.MAXMSGSIZE, -1),
                              (weft.Option.AFFINITY, (1 << 64) - 1), (weft.LINGER, -1), (weft.IDENTITY, b"me"),
                              (weft.Option.PLAIN_USERNAME, b"user")):
            socket.set(option, value)
            self.assertEqual(socket.get(option), value, option)
        socket.set(weft.Option.PLAIN_PASSWORD, "\u00fc")
        self.assertEqual(socket.get(weft.Option.PLAIN_PASSWORD), "\u00fc".encode())
        self.assertEqual(socket.get(weft.Option.TYPE), weft.SocketType.DEALER)
        for option, value in ((weft.LINGER, 1 << 31), (weft.LINGER, -(1 << 31) - 1), (weft.Option.MAXMSGSIZE, 1 << 63),
                              (weft.Option.AFFINITY, -1)):
            with self.assertRaisesRegex(OverflowError, option.name):
                socket.set(option, value)
        with self.assertRaises(weft.Error) as raised:
            socket.set(weft.SNDHWM, -2)
        self.assertEqual((raised.exception.errno, raised.exception.operation, raised.exception.name),
                         (errno.EINVAL, "set", "SNDHWM"))
        with self.assertRaisesRegex(weft.Error, "get 4711: "):
            socket.get(4711)

    def test_the_numbers_are_those_of_the_header(self):
        header = (pathlib.Path(__file__).resolve().parents[2] / "capi/zmq.h").read_text(encoding="utf-8")
        numbers = {name: int(number, 0) for name, number in re.findall(r"#define (?:ZMQ|WEFT)_(\w+) (0x[\dA-Fa-f]+|\d+)", header)}
        for names, prefix in ((weft.Option, ""), (weft.SocketType, ""), (weft.Event, "EVENT_"), (weft.Poll, "POLL")):
            for each in names:
                self.assertEqual(each, numbers[prefix + each.name], each)
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs/options.md").read_text(encoding="utf-8")
        types = dict(re.findall(r"^\| `(?:ZMQ|WEFT)_(\w+)` \| \d+ \| ([^|]+?) \|", page, re.MULTILINE))
        self.assertEqual({each.name for each in weft.Option if types[each.name] == "64 bits"},
                         {each.name for each in _numbers.OF_64_BITS})
        self.assertEqual({each.name for each in weft.Option if types[each.name] in ("bytes", "text", "key")},
                         {each.name for each in _numbers.OF_BYTES})

    def test_errors_name_what_they_are_about(self):
        pull, _ = self.pair()
        for call, operation, name in ((lambda: pull.bind("nonsense"), "bind", "nonsense"),
                                      (lambda: pull.bind("inproc://calls"), "bind", "inproc://calls"),
                                      (lambda: pull.unbind("tcp://127.0.0.1:1"), "unbind", "tcp://127.0.0.1:1"),
                                      (lambda: pull.send(b"x"), "send", "PULL inproc://calls"),
                                      (lambda: pull.recv(wait=False), "receive", "PULL inproc://calls"),
                                      (lambda: self.context.socket(99), "make socket", "99")):
            with self.assertRaises(weft.Error) as raised:
                call()
            error = raised.exception
            self.assertEqual((error.operation, error.name), (operation, name))
            self.assertIn(f"{operation} {name}: [Errno {error.errno}] {error.strerror}", str(error))
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(again), str(again)), (type(error), str(error)))
        self.assertIsInstance(raised.exception, OSError)

    def test_a_repr_says_the_type_the_endpoints_and_the_end(self):
        pull, push = self.pair()
        self.assertEqual(repr(pull), "<weft.Socket PULL inproc://calls>")
        push.disconnect("inproc://calls")
        self.assertEqual(repr(push), "<weft.Socket PUSH>")
        self.assertEqual(repr(self.context), "<weft.Context of 2 sockets>")
        push.close()
        self.assertTrue(push.closed)
        self.assertEqual(repr(push), "<weft.Socket PUSH closed>")

    def test_a_poller_waits_for_sockets_and_descriptors(self):
        pull, push = self.pair()
        reads, writes = os.pipe()
        self.addCleanup(os.close, reads)
        poller = weft.Poller()
        poller.register(pull, weft.Poll.IN)
        poller.register(reads, weft.Poll.IN)
        self.assertEqual((len(poller), pull in poller, push in poller), (2, True, False))
        self.assertEqual(poller.poll(0), [])
        push.send(b"x")
        self.assertEqual(poller.poll(PATIENCE), [(pull, weft.Poll.IN)])
        os.write(writes, b"x")
        os.close(writes)
        self.assertEqual({what: events & weft.Poll.IN for what, events in poller.poll(PATIENCE)},
                         {pull: weft.Poll.IN, reads: weft.Poll.IN})
        pull.recv()
        poller.unregister(reads)
        self.assertEqual(poller.poll(0), [])
        poller.register(push)
        self.assertEqual(poller.poll(PATIENCE), [(push, weft.Poll.OUT)])
        for wrong in (-1, float("nan")):
            with self.assertRaises(ValueError):
                poller.poll(wrong)
        push.close()
        with self.assertRaises(weft.Error) as raised:
            poller.poll(0)
        self.assertEqual(raised.exception.errno, errno.ENOTSOCK)
        with self.assertRaises(KeyError):
            poller.unregister(reads)

    def test_a_monitor_gives_the_events_until_the_socket_ends(self):
        pull, push = self.context.socket(weft.PULL), self.context.socket(weft.PUSH)
        with pull.monitor() as monitor:
            with self.assertRaises(weft.Again):
                monitor.next(0)
            endpoint = pull.bind("tcp://127.0.0.1:*")
            event = monitor.next(PATIENCE)
            self.assertEqual((event.event, event.endpoint), (weft.Event.LISTENING, endpoint))
            push.connect(endpoint)
            seen = [monitor.next(PATIENCE).event for _ in range(2)]
            self.assertEqual(seen, [weft.Event.ACCEPTED, weft.Event.HANDSHAKE_SUCCEEDED])
            pull.close()
            self.assertIn(weft.Event.CLOSED, [event.event for event in monitor])  # and the loop ends

    def test_curve_by_names(self):
        try:
            public, secret = weft.curve_keypair()
        except weft.Error as error:
            self.assertEqual(error.errno, errno.ENOTSUP)
            self.skipTest("a build without CURVE")
        self.assertEqual((len(public), len(secret)), (40, 40))
        pull, push = self.context.socket(weft.PULL), self.context.socket(weft.PUSH)
        pull.set(weft.RCVTIMEO, int(PATIENCE * 1000))
        pull.curve_server(secret)
        push.curve_client(public, *weft.curve_keypair())
        push.connect(pull.bind("tcp://127.0.0.1:*"))
        push.send(b"secret")
        self.assertEqual(pull.recv(), [b"secret"])
        self.assertEqual((push.get(weft.Option.MECHANISM), push.get(weft.Option.CURVE_SERVERKEY)), (2, public))


class Counters(unittest.TestCase):
    def test_statistics_are_those_of_the_library(self):
        names = list(itertools.takewhile(bool, map(_lib.lib.weft_socket_statistic_name, itertools.count())))
        self.assertEqual([name.decode() for name in names], list(weft.Statistics._fields))

    def test_statistics_count_messages_and_drops(self):
        with weft.Context() as context, context.socket(weft.PUB) as pub, context.socket(weft.PULL) as pull, \
                context.socket(weft.PUSH) as push:
            push.connect(pull.bind("inproc://counted"))
            push.send([b"two", b"parts"])
            self.assertEqual(pull.recv(), [b"two", b"parts"])
            sent, got = push.statistics(), pull.statistics()
            self.assertEqual((sent.sent, sent.arrived, got.arrived, got.dropped, got.peers), (1, 0, 1, 0, 1))
            self.assertEqual(sent._replace(dropped_full=2, dropped_lost=3).dropped, 5)
            pub.close()
            with self.assertRaises(weft.Error) as refused:
                pub.statistics()
            self.assertEqual(refused.exception.errno, errno.ENOTSOCK)


if __name__ == "__main__":
    unittest.main()
