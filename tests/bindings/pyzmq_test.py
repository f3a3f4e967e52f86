# SPDX-License-Identifier: MIT
"""Debian's python3-zmq, linked with libzmq.so.5, on our library, whose folder is in LD_LIBRARY_PATH."""

import asyncio
import ctypes
import errno
import pathlib
import shutil
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import tls_options as tls  # noqa: E402

try:
    import zmq
    import zmq.asyncio
    import zmq.auth
    from zmq.auth.asyncio import AsyncioAuthenticator
    from zmq.auth.thread import ThreadAuthenticator
    from zmq.devices import ThreadProxy
    from zmq.utils.monitor import parse_monitor_message, recv_monitor_message
except ImportError as error:
    print(f"skipped: {error} (see deps/apt.txt)")
    sys.exit(77)

PATIENCE = 20_000  # milliseconds for anything that must happen
ANY = "tcp://127.0.0.1:*"


class Case(unittest.TestCase):
    make_context = zmq.Context

    def setUp(self):
        self.context = self.make_context()
        self.sockets = []

    def tearDown(self):
        for socket in self.sockets:
            socket.close()
        self.context.destroy(linger=0)  # also closes the sockets that pyzmq made itself

    def socket(self, kind, **options):
        socket = self.context.socket(kind)
        self.sockets.append(socket)
        socket.set(zmq.LINGER, 0)
        socket.set(zmq.RCVTIMEO, PATIENCE)
        socket.set(zmq.SNDTIMEO, PATIENCE)
        for name, value in options.items():
            setattr(socket, name, value)
        return socket

    def bound(self, kind, **options):
        socket = self.socket(kind, **options)
        socket.bind(ANY)
        return socket, socket.get(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()

    def connected(self, kind, endpoint, **options):
        socket = self.socket(kind, **options)
        socket.connect(endpoint)
        return socket


class Sockets(Case):
    def test_it_runs_on_ours(self):
        ctypes.CDLL("libzmq.so.5").weft_version
        self.assertEqual(zmq.zmq_version(), "4.3.5")

    def test_requests_are_answered(self):
        server, endpoint = self.bound(zmq.REP)
        client = self.connected(zmq.REQ, endpoint)
        for size in (0, 1, 255, 256, 100_000):
            client.send(b"x" * size)
            server.send(server.recv() + b"!")
            self.assertEqual(client.recv(), b"x" * size + b"!")
        with self.assertRaises(zmq.ZMQError) as refused:
            client.recv()
        self.assertEqual(refused.exception.errno, zmq.EFSM)

    def test_objects_travel(self):
        server, endpoint = self.bound(zmq.PULL)
        client = self.connected(zmq.PUSH, endpoint)
        client.send_json({"a": [1, 2]})
        client.send_pyobj((1, "two"))
        client.send_string("drei ß")
        client.send_multipart([b"", b"2", b"3" * 70_000])
        self.assertEqual(server.recv_json(), {"a": [1, 2]})
        self.assertEqual(server.recv_pyobj(), (1, "two"))
        self.assertEqual(server.recv_string(), "drei ß")
        self.assertEqual(server.recv_multipart(), [b"", b"2", b"3" * 70_000])

    def test_memory_that_is_not_copied_is_given_back(self):
        server, endpoint = self.bound(zmq.PULL)
        client = self.connected(zmq.PUSH, endpoint)
        data = bytes(200_000)
        tracker = client.send(data, copy=False, track=True)
        frame = server.recv(copy=False)
        self.assertEqual(frame.bytes, data)
        self.assertEqual(frame.get("Socket-Type"), "PUSH")
        tracker.wait(PATIENCE / 1000)
        self.assertTrue(tracker.done)

    def test_subscribers_get_their_topics(self):
        publisher, endpoint = self.bound(zmq.XPUB)
        subscriber = self.connected(zmq.SUB, endpoint)
        subscriber.subscribe(b"b")
        self.assertEqual(publisher.recv(), b"\1b")
        for topic in (b"a", b"b", b"c", b"ba"):
            publisher.send_multipart([topic, b"news"])
        self.assertEqual([subscriber.recv_multipart()[0] for _ in range(2)], [b"b", b"ba"])
        subscriber.unsubscribe(b"b")
        self.assertEqual(publisher.recv(), b"\0b")

    def test_pollers_tell_what_is_ready(self):
        server, endpoint = self.bound(zmq.ROUTER)
        client = self.connected(zmq.DEALER, endpoint, identity=b"me")
        poller = zmq.Poller()
        poller.register(server, zmq.POLLIN)
        poller.register(client, zmq.POLLIN)
        self.assertEqual(poller.poll(0), [])
        client.send(b"x")
        self.assertEqual(poller.poll(PATIENCE), [(server, zmq.POLLIN)])
        self.assertEqual(server.recv_multipart(), [b"me", b"x"])
        server.send_multipart([b"me", b"y"])
        self.assertEqual(zmq.select([client], [], [], PATIENCE / 1000)[0], [client])

    def test_a_device_in_a_thread_passes_messages_on(self):
        device = ThreadProxy(zmq.ROUTER, zmq.DEALER)
        front = device.bind_in_to_random_port("tcp://127.0.0.1")
        back = device.bind_out_to_random_port("tcp://127.0.0.1")
        device.start()
        client = self.connected(zmq.REQ, f"tcp://127.0.0.1:{front}")
        server = self.connected(zmq.REP, f"tcp://127.0.0.1:{back}")
        client.send(b"x")
        server.send(server.recv())
        self.assertEqual(client.recv(), b"x")

    def test_a_monitor_tells_the_life_of_a_connection(self):
        server = self.socket(zmq.PULL)
        monitor = server.get_monitor_socket()
        monitor.set(zmq.RCVTIMEO, PATIENCE)
        server.bind(ANY)
        endpoint = server.get(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()
        events = []
        while not events or events[-1] != zmq.EVENT_DISCONNECTED:
            events.append(recv_monitor_message(monitor)["event"])
            if events[-1] == zmq.EVENT_LISTENING:
                client = self.connected(zmq.PUSH, endpoint)
            if events[-1] == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                client.close()
        named = [zmq.EVENT_LISTENING, zmq.EVENT_ACCEPTED, zmq.EVENT_HANDSHAKE_SUCCEEDED, zmq.EVENT_DISCONNECTED]
        self.assertEqual(events, named)
        server.disable_monitor()

    def test_closing_the_context_ends_who_waits(self):
        server, _ = self.bound(zmq.PULL)
        server.set(zmq.RCVTIMEO, -1)
        ended = []

        def wait():
            try:
                server.recv()
            except zmq.ContextTerminated:
                ended.append(True)
            server.close()

        thread = threading.Thread(target=wait)
        thread.start()
        self.context.term()
        thread.join(PATIENCE / 1000)
        self.assertEqual(ended, [True])


class Asyncio(Case):
    make_context = zmq.asyncio.Context

    def run_with_limit(self, coroutine):
        asyncio.run(asyncio.wait_for(coroutine, PATIENCE / 1000))

    def test_many_requests_at_once(self):
        async def serve(server, count):
            for _ in range(count):
                peer, number = await server.recv_multipart()
                await server.send_multipart([peer, number + b"!"])

        async def ask(endpoint, first, count):
            client = self.connected(zmq.DEALER, endpoint)
            await asyncio.gather(*(client.send(b"%d" % i) for i in range(first, first + count)))
            answers = [await client.recv() for _ in range(count)]
            self.assertEqual(answers, [b"%d!" % i for i in range(first, first + count)])

        async def main():
            server, endpoint = self.bound(zmq.ROUTER)
            clients = [ask(endpoint, i * 100, 100) for i in range(5)]
            await asyncio.gather(serve(server, 500), *clients)

        self.run_with_limit(main())

    def test_a_poller_and_a_subscriber(self):
        async def main():
            publisher, endpoint = self.bound(zmq.XPUB)
            subscriber = self.connected(zmq.SUB, endpoint)
            subscriber.subscribe(b"")
            await publisher.recv()
            poller = zmq.asyncio.Poller()
            poller.register(subscriber, zmq.POLLIN)
            self.assertEqual(await poller.poll(0), [])
            waiting = asyncio.ensure_future(poller.poll(PATIENCE))
            await publisher.send(b"x")
            self.assertEqual(await waiting, [(subscriber, zmq.POLLIN)])
            self.assertEqual(await subscriber.recv(), b"x")

        self.run_with_limit(main())

    def test_a_wait_that_is_given_up_loses_nothing(self):
        async def main():
            server, endpoint = self.bound(zmq.PULL)
            client = self.connected(zmq.PUSH, endpoint)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(server.recv(), 0.01)
            await client.send(b"x")
            self.assertEqual(await server.recv(), b"x")

        self.run_with_limit(main())

    def test_an_authenticator_in_the_loop(self):
        async def main():
            authenticator = AsyncioAuthenticator(self.context)
            authenticator.start()
            try:
                authenticator.configure_plain(domain="*", passwords={"me": "secret"})
                server, endpoint = self.bound(zmq.REP, plain_server=1)
                client = self.connected(zmq.REQ, endpoint, plain_username=b"me", plain_password=b"secret")
                await client.send(b"x")
                frame = await server.recv(copy=False)
                self.assertEqual(frame.get("User-Id"), "me")
            finally:
                authenticator.stop()

        self.run_with_limit(main())


class Security(Case):
    def setUp(self):
        super().setUp()
        self.authenticator = ThreadAuthenticator(self.context)
        self.authenticator.start()

    def tearDown(self):
        self.authenticator.stop()
        super().tearDown()

    def refused(self, server, **options):
        """How the server refuses a client with these options: the monitor's event and its value."""
        monitor = server.get_monitor_socket(zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_SUCCEEDED)
        monitor.set(zmq.RCVTIMEO, PATIENCE)
        client = self.connected(zmq.PUSH, server.get(zmq.LAST_ENDPOINT).rstrip(b"\0").decode(), **options)
        event = parse_monitor_message(monitor.recv_multipart())
        client.close()
        server.disable_monitor()
        return event["event"], event["value"]

    def test_plain_asks_for_the_password(self):
        self.authenticator.configure_plain(domain="global", passwords={"me": "secret"})
        server, endpoint = self.bound(zmq.PULL, plain_server=1, zap_domain=b"global")
        bad = self.refused(server, plain_username=b"me", plain_password=b"wrong")
        self.assertEqual(bad, (zmq.EVENT_HANDSHAKE_FAILED_AUTH, 400))
        client = self.connected(zmq.PUSH, endpoint, plain_username=b"me", plain_password=b"secret")
        client.send(b"x")
        self.assertEqual(server.recv(), b"x")

    def test_curve_asks_for_the_key(self):
        if not zmq.has("curve"):
            self.skipTest("built without libsodium")
        server_public, server_secret = zmq.curve_keypair()
        client_public, client_secret = zmq.curve_keypair()
        other_public, other_secret = zmq.curve_keypair()
        self.assertEqual(zmq.curve_public(client_secret), client_public)

        class Known:
            def callback(self, domain, key):
                return key == client_public

        self.authenticator.configure_curve_callback(domain="global", credentials_provider=Known())
        server, endpoint = self.bound(zmq.PULL, curve_server=1, curve_secretkey=server_secret, zap_domain=b"global")
        keys = {"curve_serverkey": server_public, "curve_publickey": client_public, "curve_secretkey": client_secret}
        others = {**keys, "curve_publickey": other_public, "curve_secretkey": other_secret}
        self.assertEqual(self.refused(server, **others), (zmq.EVENT_HANDSHAKE_FAILED_AUTH, 400))
        client = self.connected(zmq.PUSH, endpoint, **keys)
        client.send(b"x")
        self.assertEqual(server.recv(), b"x")

    def test_addresses_are_denied(self):
        self.authenticator.deny("127.0.0.1")
        server, _ = self.bound(zmq.PULL, zap_domain=b"global")
        self.assertEqual(self.refused(server), (zmq.EVENT_HANDSHAKE_FAILED_AUTH, 400))


class Authenticators(Case):
    def test_a_reply_that_is_no_zap_is_told(self):
        """Each with the number that libzmq has for it."""
        good = [b"1.0", None, b"200", b"OK", b"user", b""]
        wrong = {0: b"2.0", 1: b"another", 2: b"999", 5: b"no metadata"}
        expected = [0x20000003, 0x20000002, 0x20000004, 0x20000005, 0x20000001]
        replies = [[*good[:i], part, *good[i + 1 :]] for i, part in wrong.items()] + [[*good, b"too many"]]
        authenticator = self.socket(zmq.REP)
        authenticator.bind("inproc://zeromq.zap.01")
        for reply, value in zip(replies, expected):
            server, endpoint = self.bound(zmq.PULL, zap_domain=b"global")
            monitor = server.get_monitor_socket(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
            monitor.set(zmq.RCVTIMEO, PATIENCE)
            client = self.connected(zmq.PUSH, endpoint, reconnect_ivl=-1)
            request = authenticator.recv_multipart()
            authenticator.send_multipart([request[1] if part is None else part for part in reply])
            self.assertEqual(recv_monitor_message(monitor)["value"], value)
            client.close()
            server.close()


@unittest.skipIf(shutil.which("openssl") is None, "no openssl to make certificates")
class Tls(Case):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        tls.make_certificates(self.folder)

    def file(self, name: str) -> bytes:
        return f"{self.folder}/{name}".encode()

    def secured(self, kind, **options):
        socket = self.socket(kind, **options)
        tls.secure(socket, self.folder)
        return socket

    def bound(self, socket) -> str:
        try:
            socket.bind("tls+tcp://127.0.0.1:*")
        except zmq.ZMQError as error:
            if error.errno == zmq.EPROTONOSUPPORT:
                self.skipTest("a build without OpenSSL")
            raise
        return socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()

    def test_both_sides_have_certificates(self):
        router = self.secured(zmq.ROUTER)
        endpoint = self.bound(router)
        self.assertTrue(endpoint.startswith("tls+tcp://127.0.0.1:"))
        dealer = self.secured(zmq.DEALER)
        dealer.connect(endpoint)
        for size in (0, 1, 64, 65_536, 3 << 20):
            dealer.send_multipart([b"question", b"x" * size])
            self.assertTrue(router.poll(PATIENCE))
            name, question, body = router.recv_multipart(copy=False)
            self.assertEqual((question.bytes, len(body)), (b"question", size))
            self.assertEqual(body.get("User-Id"), "CN=worker 7")
            router.send_multipart([name, b"answer"])
            self.assertTrue(dealer.poll(PATIENCE))
            self.assertEqual(dealer.recv(), b"answer")

    def test_a_server_of_an_unknown_authority_is_not_talked_to(self):
        pull = self.socket(zmq.PULL)
        tls.set_text(pull, tls.CERTIFICATE, self.file("peer.crt"))
        tls.set_text(pull, tls.KEY, self.file("peer.key"))
        endpoint = self.bound(pull)
        push = self.socket(zmq.PUSH)  # trusts the system's authorities
        monitor = push.get_monitor_socket(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
        push.connect(endpoint)
        self.assertTrue(monitor.poll(PATIENCE))
        self.assertEqual(recv_monitor_message(monitor)["event"], zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
        push.disable_monitor()
        unverified = self.socket(zmq.PUSH)
        unverified.setsockopt(tls.VERIFY, 0)
        unverified.connect(endpoint)
        unverified.send(b"whoever you are")
        self.assertTrue(pull.poll(PATIENCE))
        self.assertEqual(pull.recv(), b"whoever you are")

    def test_a_new_certificate_is_read_while_bound(self):
        pull = self.secured(zmq.PULL)
        endpoint = self.bound(pull)
        tls.make_certificates(self.folder)  # another authority
        pull.setsockopt(tls.RELOAD, 1)
        push = self.secured(zmq.PUSH)
        tls.set_text(push, tls.SERVER_NAME, b"localhost")
        push.connect(endpoint)
        push.send(b"hello")
        self.assertTrue(pull.poll(PATIENCE))
        with open(self.file("peer.crt"), "w") as file:
            file.write("no certificate")
        with self.assertRaises(zmq.ZMQError) as raised:
            pull.setsockopt(tls.RELOAD, 1)
        self.assertEqual(raised.exception.errno, errno.EINVAL)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
