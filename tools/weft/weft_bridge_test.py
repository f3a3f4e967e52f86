# SPDX-License-Identifier: MIT
"""weft_bridge_test.py PROGRAM SOURCE METRICS_SIDE KEPT_SIDE: weft bridge between pyzmq and a local fleet."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import zmq
from weft_cli_support import PATIENCE, PROGRAM, end, run, run_all, start, test

LONG = ["--timeout", "60"]


class Bridge:
    """A `weft bridge` of the sections, on the local fleet of the folder."""

    def __init__(self, directory: str, sections: str, *arguments: str, name: str = "b", fleet: str = "",
                 drain: str = "2 s"):
        file = f"{directory}/{name}.toml"
        where = fleet or f'directory = "{directory}"'
        with open(file, "w") as out:
            out.write(f'[bridge]\nname = "{name}"\ndrain = "{drain}"\n[fleet]\n{where}\n{sections}')
        self.process = subprocess.Popen([PROGRAM, "bridge", file, "--json", *arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.endpoints = {}
        self.admin = self.process.stderr.readline().split()[-1] if "--admin" in arguments else ""
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "serves":
                return
            self.endpoints[event["section"]] = event["endpoints"][0]
        raise AssertionError(self.process.communicate())

    def stop(self) -> dict:
        """Ends the bridge, and gives the counts of each section."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(self.admin.replace("tcp://", "http://") + "/readyz", timeout=PATIENCE) as answer:
                return answer.status == 200
        except urllib.error.HTTPError as error:
            return error.code != 503

    def ended(self) -> dict:
        out, err = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, err
        counts = {each["section"]: each for each in map(json.loads, out.splitlines())}
        for each in counts.values():  # the books balance
            dropped = sum(number for name, number in each.items() if name.startswith("dropped_"))
            failed = sum(number for name, number in each.items() if name.startswith("failed_"))
            assert each["taken"] == each["given"] + dropped + failed and each["pending"] == 0, each
        return counts

    def counters(self) -> dict:
        with urllib.request.urlopen(self.admin.replace("tcp://", "http://") + "/metrics", timeout=PATIENCE) as answer:
            lines = answer.read().decode().splitlines()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o700)
        yield directory


@contextlib.contextmanager
def zmtp(kind: int, endpoint: str, *prefixes: str):
    with zmq.Context() as context, context.socket(kind) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, PATIENCE * 1000)
        for prefix in prefixes:
            socket.setsockopt_string(zmq.SUBSCRIBE, prefix)
        socket.connect(endpoint)
        yield socket


def pause():
    time.sleep(0.02)  # the admin port answers so many requests a second, and no more


def number(bridge: Bridge, name: str, section: str) -> float:
    return sum(value for key, value in bridge.counters().items() if key.startswith(name) and f'section="{section}"' in key)


def until(condition, act=lambda: None):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        act()


@test
def the_messages_of_a_zeromq_publisher_reach_the_fleet():
    with folder() as directory:
        here = ["--directory", directory, *LONG]
        bridge = Bridge(directory, '[[publishers]]\nname = "in"\nbind = ["tcp://127.0.0.1:*"]\nprefix = "plant."\nseparator = "/"\n')
        with zmtp(zmq.PUB, bridge.endpoints["in"]) as pub:
            reader = start("topic", "sub", "plant.px.*", "-n", "1", "--json", *here)
            until(lambda: reader.poll() is not None, lambda: pub.send_multipart([b"px/A", b"188", b"\0\r\n", b""]))
            got = json.loads(end(reader))
            assert got["topic"] == "plant.px.A" and got["body"] == "188", got
            assert "Weft-Parts" in json.dumps(got) and "2;AA0K," in json.dumps(got), got
            pub.send_multipart([b"not//a name", b"x"])
            pub.send_multipart([b"last", b"x"])
            reader = start("topic", "sub", "plant.last", "-n", "1", *here)
            until(lambda: reader.poll() is not None, lambda: pub.send_multipart([b"last", b"x"]))
            assert end(reader) == "plant.last x\n"
        counts = bridge.stop()["in"]
        assert counts["dropped_name"] == 1, counts


@test
def the_subscriptions_of_zeromq_programs_are_those_of_the_fleet():
    with folder() as directory:
        here = ["--directory", directory, *LONG]
        bridge = Bridge(directory, '[[subscribers]]\nname = "out"\nbind = ["tcp://127.0.0.1:*"]\nprefix = "plant."\n')
        with zmtp(zmq.SUB, bridge.endpoints["out"], "px.A", "news.") as sub:
            # `topic pub` waits until a subscription of the fleet is ready: only that of the bridge is there.
            run("topic", "pub", "plant.px.AAPL", "188", *here)
            assert sub.recv_multipart() == [b"px.AAPL", b"188"]
            run("topic", "pub", "plant.news.de", "tor", *here)
            assert sub.recv_multipart() == [b"news.de", b"tor"]
            error = run("topic", "pub", "plant.px.B", "x", "--directory", directory, "--timeout", "1", code=1)
            assert "subscri" in error or "time" in error, error
            sub.setsockopt_string(zmq.UNSUBSCRIBE, "news.")

            def nobody() -> bool:
                done = subprocess.run([PROGRAM, "topic", "pub", "plant.news.de", "x", "--directory", directory, "--timeout", "1"],
                                      capture_output=True, timeout=PATIENCE)
                return done.returncode == 1
            until(nobody)
        counts = bridge.stop()["out"]
        assert counts["given"] >= 2 and counts["dropped_name"] == 0, counts


@test
def frames_and_bytes_pass_through_two_bridges():
    with folder() as directory:
        a = Bridge(directory, '[[publishers]]\nname = "in"\nbind = ["tcp://127.0.0.1:*"]\n', name="a")
        b = Bridge(directory, '[[subscribers]]\nname = "out"\nbind = ["tcp://127.0.0.1:*"]\n', name="b")
        message = [b"px.A", b"\xff\0", b"", b"\r\n: ,;", bytes(range(256)) * 40]
        with zmtp(zmq.SUB, b.endpoints["out"], "px.") as sub, zmtp(zmq.PUB, a.endpoints["in"]) as pub:
            sub.setsockopt(zmq.RCVTIMEO, 20)
            got = []

            def attempt():
                pub.send_multipart(message)
                with contextlib.suppress(zmq.Again):
                    got.append(sub.recv_multipart())
            until(lambda: got, attempt)
            assert got[0] == message, got
            # More bytes after the body than headers hold: dropped, under its reason.
            pub.send_multipart([b"px.A", b"", b"x" * 70_000])
            pub.send_multipart([b"px.end", b""])
            sub.setsockopt(zmq.RCVTIMEO, PATIENCE * 1000)
            until(lambda: sub.recv_multipart()[0] == b"px.end")
        assert a.stop()["in"]["dropped_too_large"] == 1
        b.stop()


@test
def a_loop_of_two_bridges_ends_after_one_turn():
    with folder() as directory:
        here = ["--directory", directory, *LONG]
        a = Bridge(directory, '[[subscribers]]\nname = "out"\nbind = ["tcp://127.0.0.1:*"]\n', "--admin", "tcp://127.0.0.1:0", name="a")
        b = Bridge(directory, f'[[publishers]]\nname = "in"\nconnect = ["{a.endpoints["out"]}"]\n', name="b")
        run("topic", "pub", "px.A", "1", *here)  # waits for a's subscription, which b's makes
        until(lambda: sum(v for k, v in a.counters().items() if "weft_bridge_messages_dropped" in k and 'reason="loop"' in k) == 1,
              lambda: time.sleep(0.02))
        counts = a.stop()["out"]
        assert counts["taken"] == 2 and counts["given"] == 1 and counts["dropped_loop"] == 1, counts
        assert b.stop()["in"]["given"] == 1


@test
def a_bridge_that_subscribes_to_itself_gives_nothing_back():
    with folder() as directory:
        endpoint = f"ipc://{directory}/out"
        bridge = Bridge(directory, f'[[subscribers]]\nname = "out"\nbind = ["{endpoint}"]\n[[publishers]]\nname = "in"\nconnect = ["{endpoint}"]\n')
        with zmtp(zmq.SUB, endpoint, "px.") as sub:
            run("topic", "pub", "px.A", "1", "--directory", directory, *LONG)
            assert sub.recv_multipart() == [b"px.A", b"1"]
        counts = bridge.stop()
        assert counts["out"]["taken"] == 1 and counts["in"]["dropped_loop"] == counts["in"]["taken"], counts


@test
def a_slow_subscriber_holds_up_nobody_and_its_losses_are_counted():
    with folder() as directory:
        here = ["--directory", directory, *LONG]
        bridge = Bridge(directory, '[[subscribers]]\nname = "out"\nbind = ["tcp://127.0.0.1:*"]\nqueue_messages = 4\n',
                        "--admin", "tcp://127.0.0.1:0")
        body = f"{directory}/body"
        with open(body, "wb") as out:
            out.write(bytes(1 << 20))
        with zmtp(zmq.SUB, bridge.endpoints["out"], "bulk") as slow, zmtp(zmq.SUB, bridge.endpoints["out"], "end") as fast:
            slow.setsockopt(zmq.RCVHWM, 1)

            def lost() -> float:
                return sum(v for k, v in bridge.counters().items() if k.startswith("weft_socket_messages_dropped") and 'reason="full"' in k)
            until(lambda: lost() > 0, lambda: run("topic", "pub", "bulk", "--file", body, "--count", "64", *here))
            fast.setsockopt(zmq.RCVTIMEO, 200)
            got = []

            def attempt():  # again: the bridge's own queue may still be full of the slow subscriber's messages
                run("topic", "pub", "end", "now", *here)
                with contextlib.suppress(zmq.Again):
                    got.append(fast.recv_multipart())
            until(lambda: got, attempt)
            assert got == [[b"end", b"now"]], got
        bridge.stop()


def service(*options: str, dealers: bool = False) -> str:
    """Sections of a service both ways: programs with REQ reach programs with REP through the fleet."""
    more = "\n".join(options)
    kind = "dealers = true\n" if dealers else ""
    return (f'[[clients]]\nname = "ask"\nbind = ["tcp://127.0.0.1:*"]\ntopic = "svc"\n{more}\n'
            f'[[workers]]\nname = "work"\nbind = ["tcp://127.0.0.1:*"]\ntopic = "svc"\n{kind}{more}\n')


def error_of(frames: list) -> int:
    assert len(frames) == 3 and frames[0] == b"Weft-Error" and frames[2], frames
    return int(frames[1])


def ask(req, rep, body: bytes):
    """Asks until the worker has the request: before it is connected, nobody serves."""
    req.send(body)
    while not rep.poll(0):
        if req.poll(10):
            assert error_of(req.recv_multipart()) == UNREACHABLE
            req.send(body)
    assert rep.recv() == body


TIMED_OUT, UNREACHABLE, EXHAUSTED, GONE, REFUSED = 2, 16, 18, 21, 32  # as Errc has them


@test
def a_zeromq_client_gets_the_answer_of_a_service_of_the_fleet():
    with folder() as directory:
        here = ["--directory", directory, *LONG]
        bridge = Bridge(directory, '[[clients]]\nname = "ask"\nbind = ["tcp://127.0.0.1:*"]\ntopic = "svc"\n')
        with zmtp(zmq.REQ, bridge.endpoints["ask"]) as req, zmtp(zmq.DEALER, bridge.endpoints["ask"]) as dealer:
            req.send(b"nobody serves")
            assert error_of(req.recv_multipart()) == UNREACHABLE
            server = start("reply", "svc", "-n", "2", *here)
            answer = []

            def attempt():
                req.send(b"\0\xff")
                answer[:] = req.recv_multipart()
            attempt()
            until(lambda: len(answer) == 1, attempt)  # the service has come
            assert answer == [b"\0\xff"]
            dealer.send_multipart([b"two", b"proxies", b"", b"body"])
            assert dealer.recv_multipart() == [b"two", b"proxies", b"", b"body"]
            end(server)
            dealer.send_multipart([b"no empty frame"])
            assert error_of(dealer.recv_multipart()) == UNREACHABLE
            dealer.send_multipart([b"", ])
            frames = dealer.recv_multipart()
            assert frames[0] == b"" and error_of(frames[1:]) == 6, frames
        counts = bridge.stop()["ask"]
        assert counts["given"] == 2 and counts["failed_nobody"] >= 2 and counts["dropped_malformed"] == 1, counts


@test
def zeromq_workers_serve_a_topic_of_the_fleet():
    with folder() as directory:
        here = ["--directory", directory, *LONG]
        bridge = Bridge(directory, service())
        with zmtp(zmq.REP, bridge.endpoints["work"]) as rep, zmtp(zmq.REQ, bridge.endpoints["ask"]) as req:
            ask(req, rep, b"first")
            rep.send(b"1")
            assert req.recv() == b"1"
            asker = start("request", "svc", "hello", *here)
            assert rep.recv_multipart() == [b"hello"]
            rep.send(b"world")
            assert end(asker).strip().endswith("world")
            # Frames beyond the first one, both ways.
            req.send_multipart([b"a", b"", b"\0\r\n"])
            assert rep.recv_multipart() == [b"a", b"", b"\0\r\n"]
            rep.send_multipart([b"", b"b", b""])
            assert req.recv_multipart() == [b"", b"b", b""]
            # An error of the worker is one of the client.
            req.send(b"x")
            assert rep.recv() == b"x"
            rep.send_multipart([b"Weft-Error", str(REFUSED).encode(), b"why"])
            assert error_of(req.recv_multipart()) == REFUSED
        counts = bridge.stop()
        assert counts["work"]["given"] == 3 and counts["work"]["failed_other"] == 1, counts
        assert counts["ask"]["given"] == 2 and counts["ask"]["failed_other"] == 1, counts


@test
def a_request_waits_for_an_idle_worker_and_not_behind_a_busy_one():
    with folder() as directory:
        bridge = Bridge(directory, service('deadline = "1 h"', dealers=True), "--admin", "tcp://127.0.0.1:0")
        with zmtp(zmq.DEALER, bridge.endpoints["work"]) as a, zmtp(zmq.DEALER, bridge.endpoints["work"]) as b, \
                zmtp(zmq.DEALER, bridge.endpoints["ask"]) as asker:
            until(lambda: number(bridge, "weft_bridge_workers", "work") == 2, pause)
            for i in range(4):
                asker.send_multipart([b"", b"%d" % i])
            first, second = a.recv_multipart(), b.recv_multipart()
            assert sorted([first[2], second[2]]) == [b"0", b"1"]
            for i in range(3):  # b answers all others, while a keeps its one
                b.send_multipart(second)
                assert asker.recv_multipart() == [b"", second[2]]
                if i < 2:
                    second = b.recv_multipart()
            assert a.poll(0) == 0
            a.send_multipart(first)
            assert asker.recv_multipart() == [b"", first[2]]
            a.send_multipart(first)  # no request has this reply
            until(lambda: number(bridge, "weft_bridge_replies_unexpected_total", "work") == 1, pause)
        counts = bridge.stop()
        assert counts["work"]["given"] == 4, counts


@test
def a_request_fails_by_its_deadline_by_the_bound_and_with_its_worker():
    with folder() as directory:
        bridge = Bridge(directory, service('deadline = "200 ms"', "pending = 2", dealers=True), "--admin", "tcp://127.0.0.1:0")
        with zmtp(zmq.DEALER, bridge.endpoints["ask"]) as asker:
            with zmtp(zmq.DEALER, bridge.endpoints["work"]) as worker:
                until(lambda: number(bridge, "weft_bridge_workers", "work") == 1, pause)
                for _ in range(3):
                    asker.send_multipart([b"", b"x"])
                got = sorted(error_of(asker.recv_multipart()[1:]) for _ in range(3))
                assert got == [TIMED_OUT, TIMED_OUT, EXHAUSTED], got
                until(lambda: number(bridge, "weft_bridge_requests_pending", "work") == 0, pause)
                worker.send_multipart(worker.recv_multipart())  # too late for its request
                until(lambda: number(bridge, "weft_bridge_replies_late_total", "work") == 1, pause)
            until(lambda: number(bridge, "weft_bridge_workers", "work") == 0, pause)
            asker.send_multipart([b"", b"x"])
            assert error_of(asker.recv_multipart()[1:]) == UNREACHABLE
        counts = bridge.stop()
        assert counts["ask"]["failed_full"] == 1 and counts["ask"]["failed_nobody"] == 1, counts

    with folder() as directory:
        bridge = Bridge(directory, service('deadline = "1 h"', dealers=True), "--admin", "tcp://127.0.0.1:0")
        with zmtp(zmq.REQ, bridge.endpoints["ask"]) as asker:
            with zmtp(zmq.DEALER, bridge.endpoints["work"]) as worker:
                until(lambda: number(bridge, "weft_bridge_workers", "work") == 1, pause)
                asker.send(b"x")
                assert worker.recv_multipart()[2] == b"x"
            assert error_of(asker.recv_multipart()) == GONE
        counts = bridge.stop()
        assert counts["work"]["failed_lost"] == 1 and counts["ask"]["failed_lost"] == 1, counts


@test
def an_empty_message_of_a_worker_is_not_its_end():
    with folder() as directory:
        bridge = Bridge(directory, service('deadline = "1 h"', dealers=True), "--admin", "tcp://127.0.0.1:0")
        with zmtp(zmq.REQ, bridge.endpoints["ask"]) as asker:
            with zmtp(zmq.DEALER, bridge.endpoints["work"]) as worker:
                until(lambda: number(bridge, "weft_bridge_workers", "work") == 1, pause)
                for _ in range(3):
                    asker.send(b"x")
                    assert worker.recv_multipart()[2] == b"x"
                    worker.send(b"")
                    assert error_of(asker.recv_multipart()) == GONE  # it gave up its request
                for _ in range(2):
                    worker.send(b"")
                asker.send(b"y")  # waits until the worker is idle again
                frames = worker.recv_multipart()
                worker.send_multipart(frames)
                got = asker.recv_multipart()  # an error, if the last empty message came after the request
                assert got == [b"y"] or error_of(got) == GONE, got
                assert number(bridge, "weft_bridge_workers", "work") == 1
            until(lambda: number(bridge, "weft_bridge_workers", "work") == 0, pause)
            asker.send(b"z")
            assert error_of(asker.recv_multipart()) == UNREACHABLE
        bridge.stop()


@test
def a_request_under_way_is_answered_after_sigterm():
    with folder() as directory:
        bridge = Bridge(directory, service('deadline = "1 h"'), "--admin", "tcp://127.0.0.1:0", drain="1 h")
        with zmtp(zmq.REQ, bridge.endpoints["ask"]) as req, zmtp(zmq.REP, bridge.endpoints["work"]) as rep:
            ask(req, rep, b"x")
            bridge.process.send_signal(signal.SIGTERM)
            until(lambda: not bridge.ready(), pause)
            rep.send(b"y")
            assert req.recv() == b"y"
            counts = bridge.ended()
        assert counts["ask"]["given"] == 1 and counts["work"]["given"] == 1, counts


@test
def the_messages_taken_before_sigterm_reach_the_other_side():
    with folder() as directory:
        admin = ["--admin", "tcp://127.0.0.1:0"]
        large = 'bind = ["tcp://127.0.0.1:*"]\nqueue_messages = 1000000\n'
        a = Bridge(directory, f'[[publishers]]\nname = "in"\n{large}', *admin, name="a")
        b = Bridge(directory, f'[[subscribers]]\nname = "out"\n{large}', *admin, name="b")
        with zmtp(zmq.SUB, b.endpoints["out"], "px.") as sub, zmq.Context() as context, context.socket(zmq.PUB) as pub:
            sub.setsockopt(zmq.RCVHWM, 0)
            pub.setsockopt(zmq.SNDHWM, 0)
            pub.setsockopt(zmq.LINGER, 0)
            pub.connect(a.endpoints["in"])
            until(lambda: sub.poll(20), lambda: pub.send_multipart([b"px.A", b"first"]))
            pub.send_multipart([b"px.A", b"mark"])
            until(lambda: sub.recv_multipart()[1] == b"mark")
            before = number(a, "weft_bridge_messages_given_total", "in")
            for _ in range(20_000):
                pub.send_multipart([b"px.A", b"x" * 100])
            counts = a.stop()["in"]
            assert counts["given"] > before, counts
            received = 0

            def receive():
                nonlocal received
                while sub.poll(20):
                    sub.recv_multipart()
                    received += 1

            def lost() -> float:
                return sum(v for k, v in b.counters().items() if k.startswith("weft_bridge_messages_dropped_total"))
            # a counts a message after it has given it: `before` may lack the mark.
            until(lambda: received + lost() >= counts["given"] - before - 1, receive)
            b.stop()


@test
def a_late_joiner_gets_the_newest_value_of_its_topic_and_others_do_not():
    with folder() as directory:
        here = ["--directory", directory, *LONG]
        bridge = Bridge(directory, '[[subscribers]]\nname = "out"\nbind = ["tcp://127.0.0.1:*"]\nprefix = "plant."\n'
                        'newest = ["plant.px.*"]\nnewest_topics = 2\n')
        for topic, body in (("px.old", "0"), ("px.A", "1"), ("px.B", "2"), ("px.A", "3")):
            run("topic", "pub", f"plant.{topic}", body, *here)  # waits for the bridge's subscription
        with zmtp(zmq.SUB, bridge.endpoints["out"], "px.A") as first:
            assert first.recv_multipart() == [b"px.A", b"3"]
            with zmtp(zmq.SUB, bridge.endpoints["out"], "px.old", "px.A", "px.B") as second:
                assert {tuple(second.recv_multipart()) for _ in range(2)} == {(b"px.A", b"3"), (b"px.B", b"2")}
                run("topic", "pub", "plant.px.A", "4", *here)
                for each in (first, second):
                    assert each.recv_multipart() == [b"px.A", b"4"]
                    assert each.poll(0) == 0
        counts = bridge.stop()["out"]
        assert counts["newest_given"] == 3 and counts["newest_forgotten"] == 1 and counts["given"] == 5, counts


@test
def a_late_joiner_gets_the_newest_value_of_each_topic_of_its_prefix():
    with folder() as directory:
        here = ["--directory", directory, *LONG]
        bridge = Bridge(directory, '[[subscribers]]\nname = "out"\nbind = ["tcp://127.0.0.1:*"]\nprefix = "plant."\n'
                        'newest = ["plant.px.*"]\nqueue_messages = 5\n')
        with zmtp(zmq.SUB, bridge.endpoints["out"], "px.") as first:
            for topic, body in (("px.A", "1"), ("px.B", "2"), ("px.A", "3"), ("px.C", "4")):
                run("topic", "pub", f"plant.{topic}", body, *here)
                assert first.recv_multipart() == [topic.encode(), body.encode()]
            with zmtp(zmq.SUB, bridge.endpoints["out"], "px.") as second:
                assert [second.recv_multipart() for _ in range(3)] == [[b"px.A", b"3"], [b"px.B", b"2"], [b"px.C", b"4"]]
                run("topic", "pub", "plant.px.B", "5", *here)
                for each in (first, second):
                    assert each.recv_multipart() == [b"px.B", b"5"]
                    assert each.poll(0) == 0
        counts = bridge.stop()["out"]
        # The first message is a newest one, too, if it came before the first subscription.
        assert counts["newest_given"] in (3, 4) and counts["newest_not_given"] == 0, counts


@test
def a_program_that_subscribes_twice_leaves_no_subscription_of_the_fleet_behind():
    with folder() as directory:
        bridge = Bridge(directory, '[[subscribers]]\nname = "out"\nbind = ["tcp://127.0.0.1:*"]\nnewest = ["px.*"]\n',
                        "--admin", "tcp://127.0.0.1:0")

        def wanted() -> float:
            return number(bridge, "weft_bridge_subscriptions{", "out")
        with zmtp(zmq.XSUB, bridge.endpoints["out"]) as stays:
            stays.send(b"\1news.")
            with zmtp(zmq.XSUB, bridge.endpoints["out"]) as raw:
                for notice in (b"\1news.", b"\1news.", b"\1px.A", b"\1px.A", b"\0never", b"\1last"):
                    raw.send(notice)
                until(lambda: wanted() == 3, pause)
            until(lambda: wanted() == 1, pause)
            stays.send(b"\0news.")
            until(lambda: wanted() == 0, pause)
        bridge.stop()


@test
def headers_are_the_last_frame_both_ways():
    with folder() as directory:
        here = ["--directory", directory, *LONG]
        a = Bridge(directory, '[[subscribers]]\nname = "out"\nbind = ["tcp://127.0.0.1:*"]\nheaders = true\n', name="a")
        with zmtp(zmq.SUB, a.endpoints["out"], "px.") as sub:
            run("topic", "pub", "px.A", "1", "--header", "X-Kind: tick", *here)
            topic, body, block = sub.recv_multipart()
            assert (topic, body) == (b"px.A", b"1") and block.startswith(b"NATS/1.0\r\n"), block
            assert b"X-Kind: tick\r\n" in block and b"Weft-Via: a/out\r\n" in block, block
        a.stop()
        b = Bridge(directory, '[[publishers]]\nname = "in"\nbind = ["tcp://127.0.0.1:*"]\nheaders = true\n', name="b")
        with zmtp(zmq.PUB, b.endpoints["in"]) as pub:
            reader = start("topic", "sub", "px.>", "-n", "1", "--json", *here)
            until(lambda: reader.poll() is not None, lambda: pub.send_multipart([b"px.B", b"2", block]))
            got = end(reader)
            assert "X-Kind" in got and "tick" in got and "a/out" in got, got
            # A message that left the fleet through this bridge.
            pub.send_multipart([b"px.C", b"3", block.replace(b"a/out", b"b/out")])
            reader = start("topic", "sub", "px.D", "-n", "1", *here)
            until(lambda: reader.poll() is not None, lambda: pub.send_multipart([b"px.D", b"x"]))
            end(reader)
        counts = b.stop()["in"]
        assert counts["dropped_loop"] == 1, counts


@test
def sections_of_one_network_pass_nothing_to_each_other():
    with folder() as directory:
        here = ["--directory", directory, *LONG]
        a = Bridge(directory, '[[subscribers]]\nname = "out"\nbind = ["tcp://127.0.0.1:*"]\nnetwork = "plant"\n',
                   "--admin", "tcp://127.0.0.1:0", name="a")
        b = Bridge(directory, '[[publishers]]\nname = "in"\nbind = ["tcp://127.0.0.1:*"]\nnetwork = "plant"\n', name="b")
        with zmtp(zmq.SUB, a.endpoints["out"], "px.") as sub, zmtp(zmq.PUB, b.endpoints["in"]) as pub:
            reader = start("topic", "sub", "px.>", "-n", "1", "--json", *here)
            until(lambda: reader.poll() is not None, lambda: pub.send_multipart([b"px.A", b"1"]))
            assert "plant" in end(reader)  # the fleet has it
            until(lambda: number(a, "weft_bridge_messages_dropped_total", "out") >= 1, pause)
            run("topic", "pub", "px.B", "2", *here)  # and the network has others
            assert sub.recv_multipart() == [b"px.B", b"2"]
        counts = a.stop()["out"]
        assert counts["dropped_loop"] >= 1 and counts["given"] == 1, counts
        b.stop()


@test
def only_programs_with_the_key_reach_a_curve_server():
    with folder() as directory:
        run("keygen", "--out", f"{directory}/server.key")
        bridge = Bridge(directory, f'[[subscribers]]\nname = "out"\nbind = ["tcp://127.0.0.1:*"]\ncurve_server = true\n'
                        f'curve_key = "{directory}/server.key"\n')
        server = next(line.split()[-1] for line in open(f"{directory}/server.key.pub") if line.startswith("public"))
        with zmtp(zmq.SUB, bridge.endpoints["out"], "px.") as stranger, zmq.Context() as context, context.socket(zmq.SUB) as sub:
            sub.curve_publickey, sub.curve_secretkey = zmq.curve_keypair()
            sub.curve_serverkey = server.encode()
            sub.setsockopt(zmq.RCVTIMEO, PATIENCE * 1000)
            sub.setsockopt_string(zmq.SUBSCRIBE, "px.")
            sub.connect(bridge.endpoints["out"])
            run("topic", "pub", "px.A", "1", "--directory", directory, *LONG)
            assert sub.recv_multipart() == [b"px.A", b"1"]
            assert stranger.poll(0) == 0
        bridge.stop()


def nats_server() -> str | None:
    server = shutil.which("nats-server", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if server is None:
        print("there is no nats-server: deps/setup.sh tests installs it")
    return server


@test
def carries_both_ways_on_a_server_of_nats():
    server = nats_server()
    if server is None:
        return
    with folder() as directory, start("fleet", "up", "--json", "--servers", "1", "--program", server) as servers:
        try:
            url = json.loads(servers.stdout.readline())["fleet"]
            there = ["--fleet", url, *LONG]
            bridge = Bridge(directory, '[[subscribers]]\nname = "out"\nbind = ["tcp://127.0.0.1:*"]\n'
                            '[[publishers]]\nname = "in"\nbind = ["tcp://127.0.0.1:*"]\nprefix = "z."\n', fleet=f'fleet = "{url}"')
            with zmtp(zmq.SUB, bridge.endpoints["out"], "px.A") as sub, zmtp(zmq.PUB, bridge.endpoints["in"]) as pub:
                run("topic", "pub", "px.B", "not wanted", "--wait", "0", *there)  # px.> brings it, XPUB drops it
                run("topic", "pub", "px.A", "188", *there)
                assert sub.recv_multipart() == [b"px.A", b"188"]
                reader = start("topic", "sub", "z.>", "-n", "1", *there)
                until(lambda: reader.poll() is not None, lambda: pub.send_multipart([b"px.C", b"42"]))
                assert end(reader) == "z.px.C 42\n"
            bridge.stop()
        finally:
            servers.terminate()


@test
def services_cross_a_cluster_of_three_servers():
    server = nats_server()
    if server is None:
        return
    with folder() as directory, start("fleet", "up", "--json", "--servers", "3", "--program", server) as servers:
        try:
            one, two, three = json.loads(servers.stdout.readline())["fleet"].removeprefix("nats://").split(",")
            clients, workers = service('deadline = "1 h"', "", dealers=True).split("[[workers]]")
            ask_side = Bridge(directory, clients, name="a", fleet=f'fleet = "nats://{one}"')
            sides = [Bridge(directory, "[[workers]]" + workers, name=f"w{i}", fleet=f'fleet = "nats://{url}"')
                     for i, url in enumerate((two, three))]
            with zmtp(zmq.REQ, ask_side.endpoints["ask"]) as req:
                for side in sides:  # one after the other, so that each one's service is reached over the cluster
                    with zmtp(zmq.DEALER, side.endpoints["work"]) as worker:
                        body = side.endpoints["work"].encode()
                        req.send(body)
                        while not worker.poll(0):
                            if req.poll(10):
                                assert error_of(req.recv_multipart()) in (UNREACHABLE, GONE)
                                req.send(body)
                        frames = worker.recv_multipart()
                        assert frames[2] == body
                        worker.send_multipart(frames)
                        assert req.recv() == body
                        there = ["--fleet", f"nats://{one}", *LONG]
                        asker = start("request", "svc", "hello", *there)
                        worker.send_multipart(worker.recv_multipart()[:2] + [b"world"])
                        assert end(asker).strip().endswith("world")
                req.send(b"nobody")
                frames = req.recv_multipart()
                assert error_of(frames) in (UNREACHABLE, GONE), frames
            counts = [side.stop()["work"] for side in sides]
            assert [each["given"] for each in counts] == [2, 2], counts
            assert ask_side.stop()["ask"]["given"] == 2
        finally:
            servers.terminate()


@test
def a_service_that_the_fleet_refuses_is_told():
    server = nats_server()
    if server is None:
        return
    with folder() as directory:
        with open(f"{directory}/nats.conf", "w") as out:
            out.write('authorization { users = [{user: u, password: p, permissions: {subscribe: {deny: ["svc"]}}}] }\n'
                      "no_auth_user: u\n")
        with subprocess.Popen([server, "-c", f"{directory}/nats.conf", "-a", "127.0.0.1", "-p", "-1",
                               "--ports_file_dir", directory], stderr=subprocess.DEVNULL) as nats:
            try:
                ports = f"{directory}/{os.path.basename(server)}_{nats.pid}.ports"
                until(lambda: os.path.exists(ports) and os.path.getsize(ports) != 0)
                with open(ports) as read:
                    url = json.load(read)["nats"][0]
                bridge = Bridge(directory, '[[workers]]\nname = "work"\nbind = ["tcp://127.0.0.1:*"]\ntopic = "svc"\n',
                                fleet=f'fleet = "{url}"')
                told = bridge.process.stderr.readline()
                assert "work: the fleet refuses the service svc" in told, told
                counts = bridge.stop()["work"]
                assert counts["services_refused"] >= 1, counts
            finally:
                nats.terminate()


@test
def is_ready_and_ends_within_its_bound():
    with folder() as directory:
        bridge = Bridge(directory, '[[publishers]]\nname = "in"\nbind = ["tcp://127.0.0.1:*"]\n', "--admin", "tcp://127.0.0.1:0")
        assert bridge.ready()
        assert any(key.startswith("weft_topics_") and 'topics="bridge"' in key for key in bridge.counters())
        assert bridge.stop()["in"]["taken"] == 0


@test
def a_wrong_file_is_refused_with_its_lines():
    with folder() as directory:
        file = f"{directory}/wrong.toml"

        def check(text: str, code: int, *more: str) -> str:
            with open(file, "w") as out:
                out.write(text)
            done = subprocess.run([PROGRAM, "bridge", file, "--check", *more], capture_output=True, text=True, timeout=PATIENCE)
            assert done.returncode == code, done
            return done.stdout
        assert check('[[publishers]]\nbind = ["tcp://127.0.0.1:*"]\n', 0) == f"{file}: good: 1 section\n"
        out = check('[[publishers]]\nbnd = ["tcp://*:5"]\n[[subscribers]]\nbind = ["tpc://x"]\nheaders = 3\n'
                    '[[subscribers]]\nconnect = ["nowhere"]\nname = "a b"\n[bridg]\n', 1)
        for expected in ('wrong.toml:2:1: publishers[0].bnd: unknown key; did you mean "bind"?', "wrong.toml:5:1: subscribers[0].headers:",
                         "wrong.toml:7:1: subscribers[1].connect:", "wrong.toml:8:1: subscribers[1].name:",
                         'bridg: unknown table; did you mean "bridge"?'):
            assert expected in out, (expected, out)
        assert "there is no section" in check("", 1)
        assert "wrong.toml:1:" in check("[[publishers]\n", 1)
        problems = json.loads(check('[[publishers]]\ncurve_server = true\nbind = ["tcp://*:5"]\n', 1, "--json"))["problems"]
        assert problems[0]["line"] == 2 and "keygen" in problems[0]["text"], problems
        out = check('[[publishers]]\nbind = ["tcp://*:5"]\ncurve_server = true\ncurve_key = "none.key"\n', 1)
        assert "none.key" in out, out


if __name__ == "__main__":
    run_all()
