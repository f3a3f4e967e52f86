# SPDX-License-Identifier: MIT
"""weft_bridge_services_test.py PROGRAM SOURCE METRICS_SIDE KEPT_SIDE: requests and workers of pyzmq over weft bridge."""

import json
import os
import signal
import subprocess

import zmq
from weft_bridge_support import Bridge, folder, nats_server, number, pause, until, zmtp
from weft_cli_support import LONG, end, run_all, start, test

TIMED_OUT, UNREACHABLE, EXHAUSTED, GONE, REFUSED = 2, 16, 18, 21, 32  # as Errc has them


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


# A message on its way to a service that ends is lost: NATS delivers at most once.
def send_to_nobody(req):
    req.send(b"nobody")
    frames = req.recv_multipart()
    assert error_of(frames) in (UNREACHABLE, GONE, TIMED_OUT), frames
    return frames


@test
def services_cross_a_cluster_of_three_servers():
    server = nats_server()
    if server is None:
        return
    with folder() as directory, start("fleet", "up", "--json", "--servers", "3", "--program", server) as servers:
        try:
            one, two, three = json.loads(servers.stdout.readline())["fleet"].removeprefix("nats://").split(",")
            clients, workers = service('deadline = "2 s"', "", dealers=True).split("[[workers]]")
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
                                assert error_of(req.recv_multipart()) in (UNREACHABLE, GONE, TIMED_OUT)
                                req.send(body)
                        frames = worker.recv_multipart()
                        assert frames[2] == body
                        worker.send_multipart(frames)
                        assert req.recv() == body
                        there = ["--fleet", f"nats://{one}", *LONG]
                        asker = start("request", "svc", "hello", *there)
                        worker.send_multipart(worker.recv_multipart()[:2] + [b"world"])
                        assert end(asker).strip().endswith("world")
                    until(lambda: error_of(send_to_nobody(req)) == UNREACHABLE, pause)  # no server has its service any more
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


if __name__ == "__main__":
    run_all()
