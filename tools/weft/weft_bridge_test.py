# SPDX-License-Identifier: MIT
"""weft_bridge_test.py PROGRAM SOURCE METRICS_SIDE KEPT_SIDE: weft bridge between pyzmq and a local fleet."""

import contextlib
import json
import subprocess

import zmq
from weft_bridge_support import Bridge, folder, nats_server, number, pause, until, zmtp
from weft_cli_support import LONG, PATIENCE, PROGRAM, end, run, run_all, start, test


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
        until(lambda: sum(v for k, v in a.counters().items() if "weft_bridge_messages_dropped" in k and 'reason="loop"' in k) == 1, pause)
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
                        "--admin", "tcp://127.0.0.1:0", drain="100 ms")
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
            bridge.stop()  # within `drain`, although the slow subscriber still has messages in its queue


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
