# SPDX-License-Identifier: MIT
"""weft_cli_test.py PROGRAM SOURCE METRICS_SIDE: each command of weft against pyzmq, and the examples of docs/command-line.md.

METRICS_SIDE is the program of tests/server with an admin port."""

import contextlib
import fcntl
import json
import os
import shutil
import pty
import re
import signal
import socket as sockets
import struct
import subprocess
import sys
import tempfile
import termios
import threading
from pathlib import Path

try:
    import zmq
except ImportError:
    print("weft_cli_test: pyzmq is not installed (see deps/pip.txt)")
    sys.exit(77)

PROGRAM = sys.argv[1]
SOURCE = Path(sys.argv[2])
METRICS_SIDE = sys.argv[3]
PATIENCE = 20
tests = []


def test(function):
    tests.append(function)
    return function


def run(*arguments: str, code: int = 0, text: str | bytes = "", **more) -> str:
    """Runs weft to its end; gives standard output, or standard error if the code is not 0."""
    done = subprocess.run([PROGRAM, *arguments], input=text.encode() if isinstance(text, str) else text,
                          capture_output=True, timeout=PATIENCE, **more)
    out, err = done.stdout.decode("latin-1"), done.stderr.decode()
    assert done.returncode == code, (arguments, done)
    assert "\033" not in out + err, (arguments, "colour without a terminal")
    return out if code == 0 else err


def start(*arguments: str) -> subprocess.Popen:
    return subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def end(process: subprocess.Popen, code: int = 0) -> str:
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, (process.args, process.returncode, out, err)
    return out


@contextlib.contextmanager
def peer(kind: int, **options):
    """A bound socket of pyzmq, and its endpoint."""
    with zmq.Context() as context, context.socket(kind) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, PATIENCE * 1000)
        socket.setsockopt(zmq.SNDTIMEO, PATIENCE * 1000)
        for name, value in options.items():
            socket.setsockopt(getattr(zmq, name), value)
        socket.bind("tcp://127.0.0.1:0")
        yield socket, socket.getsockopt_string(zmq.LAST_ENDPOINT)


@test
def publishes_and_subscribes():
    with peer(zmq.SUB, SUBSCRIBE=b"px.") as (sub, endpoint):
        # libzmq sends its subscriptions from calls of its application: recv() lets the publisher begin.
        pub = start("pub", "-c", endpoint, "--topic", "px.A", "1", "[a,b]", "--json")
        assert sub.recv_multipart() == [b"px.A", b"1", b"[a,b]"]
        assert end(pub) == '{"sent":1}\n'
        with tempfile.NamedTemporaryFile("w") as lines:
            lines.write("px.B\nnews\npx.C")
            lines.flush()
            pub = start("pub", "-c", endpoint, "-f", lines.name)
            assert [sub.recv(), sub.recv()] == [b"px.B", b"px.C"]
            end(pub)
    with peer(zmq.XPUB) as (pub, endpoint):
        text = start("sub", "-c", endpoint, "--topic", "a", "-n", "2")
        assert pub.recv() == b"\x01a"
        objects = start("sub", "-c", endpoint, "--topic", "x:*:de", "--glob", "-n", "2", "-j")
        assert pub.recv() == b"\x01x:"
        for parts in ([b"a1", b"\x1b[31m"], [b"b"], [b"a\xff", "é".encode()], [b"x:1:en"], [b"x:1:de", b"2"], [b"x:2:de", b"\xff"]):
            pub.send_multipart(parts)
        assert end(text) == "a1 \\x1b[31m\na\\xff é\n"
        assert [json.loads(line) for line in end(objects).splitlines()] == [
            {"parts": ["x:1:de", "2"]}, {"hex": ["783a323a6465", "ff"]}]


@test
def pushes_and_pulls():
    with peer(zmq.PULL) as (pull, endpoint), tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines"
        lines.write_text("one\n\nthree")
        run("push", "-c", endpoint, "-f", str(lines), "-f", "-", text="four\n")
        assert [pull.recv() for _ in range(4)] == [b"one", b"", b"three", b"four"]
        run("push", "-c", endpoint, "--hex", "00ff", "FE", "-n", "2", "--rate", "1000")
        assert [pull.recv_multipart() for _ in range(2)] == [[b"\0\xff", b"\xfe"]] * 2
        run("push", "-c", endpoint, "--", "pub", "-1", "[]", "", "--json")
        assert pull.recv_multipart() == [b"pub", b"-1", b"[]", b"", b"--json"]
        run("push", "-c", endpoint, text="x" * 3_000_000 + "\n")
        assert len(pull.recv()) == 3_000_000
    with peer(zmq.PUSH) as (push, endpoint):
        raw = start("pull", "-c", endpoint, "--raw", "-n", "1")
        push.send_multipart([b"a", b"\n", b"b"])
        assert end(raw) == "a\nb"


@test
def asks_and_replies():
    with peer(zmq.REP) as (rep, endpoint):
        asks = start("req", "-c", endpoint, "hello", "-n", "2")
        for reply in (b"1", b"2"):
            assert rep.recv() == b"hello"
            rep.send(reply)
        assert end(asks) == "1\n2\n"
        asks = start("dealer", "-c", endpoint, "", "hello")
        assert rep.recv() == b"hello"
        rep.send_multipart([b"a", b"b"])
        assert end(asks) == " a b\n"
    for command, replies in ((["rep"], [b"hi"]), (["rep", "200", "OK"], [b"200", b"OK"]), (["router", "--echo"], [b"hi"]),
                             (["router", "yes"], [b"yes"])):
        with peer(zmq.REQ) as (req, endpoint):
            server = start(command[0], "-c", endpoint, "-n", "1", *command[1:])
            req.send(b"hi")
            assert req.recv_multipart() == replies, command
            assert end(server).endswith("hi\n")
    with peer(zmq.ROUTER) as (router, endpoint):
        dealer = start("dealer", "-c", endpoint, "--receive", "-n", "1", "-s", "routing_id=bob", "-s", "probe_router=true")
        assert router.recv_multipart() == [b"bob", b""]
        router.send_multipart([b"bob", b"x"])
        assert end(dealer) == "x\n"


@test
def makes_keys_that_both_sides_take():
    with tempfile.TemporaryDirectory() as folder:
        key = str(Path(folder) / "server.key")
        public = run("keygen", "--out", key).strip()
        assert os.stat(key).st_mode & 0o777 == 0o600
        pair = dict(line.split() for line in Path(key).read_text().splitlines())
        assert pair["public"] == public == Path(key + ".pub").read_text().split()[1]
        assert zmq.curve_public(pair["secret"].encode()).decode() == public
        assert run("keygen", "--public", key).strip() == public
        assert "exists" in run("keygen", "--out", key, code=1)
        assert set(json.loads(run("keygen", "--json"))) == {"public", "secret"}
        with peer(zmq.PULL, CURVE_SERVER=1, CURVE_SECRETKEY=pair["secret"].encode()) as (pull, endpoint):
            run("push", "-c", endpoint, "--curve-server-key", key + ".pub", "sealed")
            assert pull.recv() == b"sealed"
            other = json.loads(run("keygen", "--json"))["public"]
            refused = run("push", "-c", endpoint, "--curve-server-key", other, "-t", "0.3", "x", code=1)
            assert "last: " in refused, refused
        own_public, own_secret = zmq.curve_keypair()
        with peer(zmq.PUSH, CURVE_SERVERKEY=public.encode(), CURVE_PUBLICKEY=own_public,
                  CURVE_SECRETKEY=own_secret) as (push, endpoint):
            pull = start("pull", "-c", endpoint, "--curve-server", "--curve-key", key, "-n", "1")
            push.send(b"to the server")
            assert end(pull) == "to the server\n"


def start_proxy(*arguments: str) -> tuple[subprocess.Popen, str, str]:
    proxy = start("proxy", *arguments, "tcp://127.0.0.1:*", "tcp://127.0.0.1:*")
    return proxy, *(proxy.stderr.readline().split()[-1] for _ in range(2))


@test
def carries_messages_through_each_device():
    devices = [("queue", zmq.REQ, zmq.REP), ("streamer", zmq.PUSH, zmq.PULL), ("forwarder", zmq.XPUB, zmq.SUB)]
    for device, client_type, server_type in devices:
        proxy, frontend, backend = start_proxy(device, "--every", "0.05", "--json")
        with zmq.Context() as context, context.socket(client_type) as client, context.socket(server_type) as server:
            for socket, endpoint in ((client, frontend), (server, backend)):
                socket.setsockopt(zmq.LINGER, 0)
                socket.setsockopt(zmq.RCVTIMEO, PATIENCE * 1000)
                socket.connect(endpoint)
            if server_type == zmq.SUB:
                server.setsockopt(zmq.SUBSCRIBE, b"")
                assert client.recv() == b"\x01"
            client.send(b"12345")
            assert server.recv() == b"12345", device
            if server_type == zmq.REP:
                server.send(b"reply")
                assert client.recv() == b"reply"
            while (counters := json.loads(proxy.stdout.readline()))["frontend_bytes_in"] < 5:
                pass
            assert counters["frontend_parts_in"] >= 1, counters
        proxy.send_signal(signal.SIGINT)
        end(proxy, 130)
    assert "forwarder, queue or streamer" in run("proxy", "bridge", "inproc://a", "inproc://b", code=2)
    assert "malformed" in run("proxy", "queue", "tcp://nowhere", "tcp://127.0.0.1:*", code=1)


@test
def measures_both_ends():
    figures = json.loads(run("bench", "--seconds", "0.1", "--size", "100", "--json"))
    assert figures["size"] == 100 and figures["round_trips"] > 0 and figures["messages"] > 0, figures
    assert 0 < figures["round_trip_us_p50"] <= figures["round_trip_us_p99"] <= figures["round_trip_us_max"], figures
    answers = start("bench", "--bind", "tcp://127.0.0.1:*")
    endpoint = answers.stderr.readline().split()[-1]
    for _ in range(2):
        assert "messages/s" in run("bench", "--connect", endpoint, "--seconds", "0.05", "--size", "70000")
    answers.send_signal(signal.SIGINT)
    end(answers, 130)
    with peer(zmq.DEALER) as (_, endpoint):
        assert "no message came in time" in run("bench", "--connect", endpoint, "-t", "0.1", code=1)
    assert "--size" in run("bench", "--size", "0", code=2)


@contextlib.contextmanager
def admin_port():
    """The endpoint of a program with one of everything that counts, and the program; no endpoint: the build has none."""
    with subprocess.Popen([METRICS_SIDE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as side:
        try:
            yield side.stdout.readline().strip(), side
        finally:
            side.kill()


@contextlib.contextmanager
def impostor(answer: bytes):
    """The endpoint of a server that gives each connection this answer, and closes it."""
    with sockets.create_server(("127.0.0.1", 0)) as server:
        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection = server.accept()[0]
                    with connection:
                        connection.recv(4096)
                        connection.sendall(answer)
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(sockets.SHUT_RDWR)
            thread.join()


@contextlib.contextmanager
def tapped(remote: str, *arguments: str):
    """A tap in front of the endpoint: the process, and its endpoint."""
    process = start("tap", "tcp://127.0.0.1:*", remote, "--json", *arguments)
    try:
        yield process, process.stderr.readline().split()[-1]
    finally:
        process.kill()
        process.communicate()


def said_until(process: subprocess.Popen, kind: str, times: int = 1) -> list[dict]:
    said = []
    while times:
        said.append(json.loads(process.stdout.readline()))
        times -= said[-1]["kind"] == kind
    return said


def address(endpoint: str) -> tuple[str, int]:
    host, port = endpoint.removeprefix("tcp://").split(":")
    return host, int(port)


@test
def taps_a_conversation():
    with peer(zmq.REP) as (rep, endpoint), tapped(endpoint, "--bodies", "5", "-n", "2") as (tap, front):
        ask = start("req", "-c", front, "hello", "-s", "routing_id=bob")
        assert rep.recv() == b"hello"
        rep.send_multipart([b"\0\xff", "größer".encode()])
        end(ask)
        said = [json.loads(line) for line in end(tap).splitlines()]
        greetings = {each["direction"]: each for each in said if each["kind"] == "greeting"}
        assert greetings["to_remote"]["mechanism"] == "NULL" and greetings["from_remote"]["version"][0] == "3", said
        ready = next(each for each in said if each["kind"] == "command" and each["direction"] == "to_remote")
        assert ready["name"] == "READY" and {"name": "Socket-Type", "value": "REQ"} in ready["properties"], ready
        assert {"name": "Identity", "value": "bob"} in ready["properties"], ready
        request, reply = (each for each in said if each["kind"] == "message")
        assert request["direction"] == "to_remote" and request["parts"] == [{"size": 0, "text": ""}, {"size": 5, "text": "hello"}]
        assert reply["direction"] == "from_remote" and reply["size"] == 10 and reply["part_count"] == 3, reply
        assert reply["parts"][1:] == [{"size": 2, "hex": "00ff"}, {"size": 8, "text": "grö"}], reply
        assert all(each["connection"] == 1 and 0 <= each["since"] <= each["time"] for each in said), said
    # 3 MB and many parts pass through unchanged.
    with peer(zmq.PULL) as (pull, endpoint), tapped(endpoint) as (tap, front), zmq.Context() as context:
        with context.socket(zmq.PUSH) as push:
            push.connect(front)
            body = os.urandom(3_000_000)
            push.send_multipart([body] + [b"x"] * 99)
            assert pull.recv_multipart() == [body] + [b"x"] * 99
            message = said_until(tap, "message")[-1]
            assert message["part_count"] == 100 and len(message["parts"]) == 64 and message["size"] == 3_000_099, message
            assert message["parts"][0] in ({"size": 3_000_000, "hex": body[:32].hex()},
                                           {"size": 3_000_000, "text": body[:32].decode("utf-8", "ignore")}), message
    with peer(zmq.XPUB) as (pub, endpoint), tapped(endpoint) as (tap, front):
        sub = start("sub", "-c", front, "--topic", "px.", "-n", "1")
        assert pub.recv() == b"\x01px."
        pub.send(b"px.A")
        assert end(sub) == "px.A\n"
        said = str(said_until(tap, "closed"))
        assert "'px.'" in said and ("'SUBSCRIBE'" in said or "'subscribe'" in said), said


@test
def taps_what_is_secret_or_foreign():
    public, secret = zmq.curve_keypair()
    with peer(zmq.PULL, CURVE_SERVER=1, CURVE_SECRETKEY=secret) as (pull, endpoint), tapped(endpoint) as (tap, front):
        run("push", "-c", front, "--curve-server-key", public.decode(), "sealed words")
        assert pull.recv() == b"sealed words"
        said = said_until(tap, "closed")
        assert {each["mechanism"] for each in said if each["kind"] == "greeting"} == {"CURVE"}, said
        names = [each.get("name") for each in said if each["kind"] == "encrypted"]
        assert names[:4] == ["HELLO", "WELCOME", "INITIATE", "READY"] and "MESSAGE" in names, names
        assert "sealed" not in str(said) and not [each for each in said if each["kind"] == "message"]
    plain = b"\xff" + bytes(8) + b"\x7f\x03\x01PLAIN" + bytes(47)
    said = conversation(plain + b"\x04\x16\x05HELLO\x03ann\x0bopen sesame", plain, 1000, 1)
    assert next(each for each in said if each.get("name") == "HELLO")["user"] == "ann" and "sesame" not in str(said), said
    said = conversation(plain + b"\x04\x12\x05HELLO\x99open sesame", plain, 1000, 1)
    assert any(each.get("name") == "HELLO" for each in said) and "sesame" not in str(said), said
    with impostor(b"HTTP/1.1 204 No\r\n\r\n") as endpoint, tapped(endpoint) as (tap, front):
        with sockets.create_connection(address(front), PATIENCE) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert client.makefile("rb").read() == b"HTTP/1.1 204 No\r\n\r\n"
        said = said_until(tap, "foreign", 2)
        assert "HTTP" in said[-1]["problem"], said
    with tapped("tcp://127.0.0.1:1") as (tap, front), sockets.create_connection(address(front), PATIENCE) as client:
        assert client.recv(1) == b"" and "refused" in said_until(tap, "ended")[-1]["reason"]


def conversation(to_remote: bytes, from_remote: bytes, step: int, first: int) -> list[dict]:
    """What the tap says of these bytes, `step` at a time; the end `first` speaks first."""
    with sockets.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)
        with tapped(f"tcp://127.0.0.1:{server.getsockname()[1]}") as (tap, front):
            with sockets.create_connection(address(front), PATIENCE) as client:
                remote = server.accept()[0]
                remote.settimeout(PATIENCE)
                ways = [(client, remote, to_remote), (remote, client, from_remote)]
                for sender, receiver, data in ways if first == 0 else ways[::-1]:
                    sender.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
                    got = b""
                    for i in range(0, len(data), step):
                        sender.sendall(data[i:i + step])
                        while len(got) < min(i + step, len(data)):
                            got += receiver.recv(65536)
                    assert got == data
                remote.close()
            said = said_until(tap, "ended")
    return [{k: v for k, v in each.items() if k not in ("time", "since")} for each in said if "direction" in each]


@test
def taps_old_versions_and_lies_at_every_cut():
    signature = b"\xff" + bytes(8) + b"\x7f"
    new = signature + b"\x03\x01NULL" + bytes(48)
    assert len(new) == 64
    ready = b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB"
    ready = ready[:1] + bytes([len(ready) - 2]) + ready[2:]
    cases = [
        # to the remote, from the remote, and kinds in each direction
        (new + ready + b"\0\x03\x01px\0\x03\x00px\x04\x08\x04PING\0\x0ac\x04\x03\x02ME", new + ready,
         ["greeting", "command", "subscribe", "cancel", "command", "command", "closed"], ["greeting", "command", "closed"]),
        # A peer of ZMTP 2.0: the newer one goes down to it.
        (signature + b"\x03\x02\0\x03bob\0\x02\x01a", signature + b"\x01\x01\0\0\x01\x01a\0\x01b",
         ["greeting", "identity", "subscribe", "closed"], ["greeting", "identity", "message", "closed"]),
        # A peer of ZMTP 1.0 has read the signature as the header of the identity.
        (b"\xff" + bytes(7) + b"\x04\x7fbob\x02\0a", b"\x01\0\x03\x01hi\x02\0x",
         ["greeting", "identity", "message", "closed"], ["greeting", "identity", "message", "closed"]),
        (new + b"\xf0lies", new + b"\x02" + b"\xff" * 8 + b"more", ["greeting", "malformed", "closed"], ["greeting", "malformed", "closed"]),
        (new + b"\x02" + b"\x7f" + b"\xff" * 7 + b"huge", new + b"\x04\x00\x04\x02\x09x", ["greeting", "closed"],
         ["greeting", "command", "command", "closed"]),
        (b"\x16\x03\x01", signature[:5], ["foreign", "closed"], ["closed"]),
        (new + b"\x04\x07\x05READYx", new, ["greeting", "command", "closed"], ["greeting", "closed"]),
    ]
    for to_remote, from_remote, *expected in cases:
        seen = []
        # A newer peer says no more than its signature before an older one has spoken.
        for step in (1, 7, 100_000):
            said = conversation(to_remote, from_remote, step, 1)
            seen.append([[each for each in said if each["direction"] == way] for way in ("to_remote", "from_remote")])
            assert [[each["kind"] for each in way] for way in seen[-1]] == expected, (step, said)
        assert seen[0] == seen[1] == seen[2], seen
    broken = conversation(new[:20], new + b"\0\x05abc", 9, 0)
    assert [each["cut_short"] for each in broken if each["kind"] == "closed"] == [True, True], broken


@test
def taps_ipc_in_words_and_ends():
    with tempfile.TemporaryDirectory() as folder:
        ends = f"ipc://{folder}/near", f"ipc://{folder}/far"
        pull = start("pull", "-b", ends[1], "-n", "2")
        while not (Path(folder) / "far").exists():
            assert pull.poll() is None
        tap = start("tap", *ends, "-n", "2")
        # The client connects again until the tap is there.
        run("push", "-c", ends[0], "\x1b[31m", "-n", "2", "-s", "reconnect_interval=5")
        end(pull)
        text = end(tap)
        assert re.search(r"^ +\d+\.\d{6} +\+\d+\.\d{6} #1 -> message 1 part, 5 bytes  \[5\] hex 1b5b33316d$", text, re.M), text
        assert re.search(r"#1 -- opened by a client", text) and "\x1b" not in text and "ZMTP 3.1, NULL" in text, text
        assert not (Path(folder) / "near").exists()
    for wrong in (["tcp://127.0.0.1:*", "inproc://a"], ["tls+tcp://127.0.0.1:*", "tcp://127.0.0.1:1"], ["tcp://127.0.0.1:*"],
                  ["tcp://127.0.0.1:*", "tcp://127.0.0.1:1", "--bodies", "65537"]):
        run("tap", *wrong, code=2)
    with peer(zmq.PUSH) as (_, endpoint):
        assert "in use" in run("tap", endpoint, endpoint, code=1)
    tap = start("tap", "tcp://127.0.0.1:*", "tcp://127.0.0.1:1")
    tap.stderr.readline()
    tap.send_signal(signal.SIGINT)
    end(tap, 130)


@test
def shows_a_program_live():
    with admin_port() as (admin, side):
        if not admin:
            print("skipped: the build has no admin port")
            return
        table = run("top", admin, "--once")
        assert re.search(r"^SOCKET +PEERS +IN +OUT .*\ndesk ROUTER +1 +5 +0 ", table, re.M), table
        assert re.search(r"^SERVER +SESSIONS ", table, re.M) and re.search(r"^CORE .*\n0 ", table, re.M), table
        once = json.loads(run("top", admin, "--once", "--json"))
        desk = next(row for row in once["sockets"] if row["name"] == "desk")
        assert desk["type"] == "ROUTER" and desk["messages_in"] == 5 and desk["dropped"] == 1, desk
        assert "messages_in_per_second" not in desk and "seconds" not in once
        assert {"name", "published", "delivered"} <= set(once["topics"][0]), once["topics"]
        lines = [json.loads(line) for line in run("top", admin, "-n", "2", "-i", "0.02", "-j").splitlines()]
        assert len(lines) == 2 and all(0.02 <= line["seconds"] < PATIENCE for line in lines), lines
        assert all(row["messages_in_per_second"] == 0 for row in lines[1]["sockets"]), lines
        assert "IN/s" in run("top", admin, "-n", "1", "-i", "0.02")

        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 40, 0, 0))
        live = subprocess.Popen([PROGRAM, "top", admin, "-i", "0.02"], stdin=slave, stdout=slave, stderr=slave,
                                env={k: v for k, v in os.environ.items() if k != "NO_COLOR"})
        os.close(slave)
        seen = b""
        while seen.count(b"\x1b[J") < 3:
            seen += os.read(master, 65536)
        frames = seen.decode().replace("\x1b[2J", "").split("\x1b[H")[1:3]
        for frame in frames:
            plain = re.sub(r"\x1b\[[0-9]*[mKJ]", "", frame).split("\r\n")
            assert len(plain) == 12 and max(map(len, plain)) <= 40, plain
            assert plain[0].startswith("weft top tcp://") and plain[2].startswith("SOCKET") and "\x1b[1mSOCKET" in frame, plain
        live.send_signal(signal.SIGINT)
        assert live.wait(PATIENCE) == 130
        os.close(master)

        counts = start("top", admin, "-i", "0.02")
        counts.stdout.readline()
        side.kill()
        side.wait()
        out, err = counts.communicate(timeout=PATIENCE)
        assert counts.returncode == 1 and ("refused" in err or "closed the connection" in err), (out, err)
    for answer, why in ((b"", "closed the connection"), (b"SSH-2.0-x\r\n", "no HTTP"), (b"HTTP/1.1 404 No\r\n\r\n", "status 404"),
                        (b"HTTP/1.1 200 OK\r\n\r\nx", "no length"), (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "too long"),
                        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nup 1", "no counters of Weft"),
                        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nweft_a{b=", "closed the connection"),
                        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nweft_a{b=", "no counters of Weft"),
                        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 99999, "no HTTP")):
        with impostor(answer) as endpoint:
            assert why in run("top", endpoint, "--once", code=1), answer
    with sockets.create_server(("127.0.0.1", 0)) as silent:
        assert "in time" in run("top", f"tcp://127.0.0.1:{silent.getsockname()[1]}", "-t", "0.05", code=1)
    assert "refused" in run("top", "tcp://127.0.0.1:1", code=1)
    for wrong in (["tls+tcp://127.0.0.1:1"], ["nowhere"], ["tcp://127.0.0.1:1", "-i", "0"], ["tcp://127.0.0.1:1", "--once", "-n", "2"]):
        run("top", *wrong, code=2)


@test
def examines_the_machine():
    findings = {each["name"]: each for each in map(json.loads, run("doctor", "--json").splitlines())}
    assert {"open files", "clock source", "io_uring", "processors", "curve", "tls"} <= set(findings)
    assert all(bool(each["advice"]) == (each["state"] == "warning") for each in findings.values()), findings
    few = "ulimit -n 256; exec " + PROGRAM + " doctor --strict"
    done = subprocess.run(["bash", "-c", few], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1 and "-> ulimit -n 65536" in done.stdout and "\033" not in done.stdout, done


@test
def ends_with_the_documented_codes():
    for arguments in (["fly"], [], ["pub"], ["sub", "--count", "many", "-c", "inproc://a"], ["sub", "-c"],
                      ["pub", "-c", "inproc://a", "--rate", "1", "--interval", "1", "x"],
                      ["push", "-c", "inproc://a", "--hex", "0"], ["push", "-c", "tcp://127.0.0.1:1", "-s", "nothing=1"],
                      ["sub", "-c", "inproc://a", "--curve-server"], ["sub", "stray"]):
        assert "--help" in run(*arguments, code=2), arguments
    with peer(zmq.PUSH) as (_, endpoint):
        assert "no message came in time" in run("pull", "-c", endpoint, "-t", "0.05", code=1)
        assert "in use" in run("pull", "-b", endpoint, code=1)
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            pull = start("pull", "-b", "tcp://127.0.0.1:*")
            assert "bound to tcp://127.0.0.1:" in pull.stderr.readline()
            pull.send_signal(number)
            end(pull, code)
    nobody = run("push", "-c", "tcp://127.0.0.1:1", "x", "-t", "0.3", code=1)
    assert "refused" in nobody, nobody
    assert "cannot be read" in run("sub", "-c", "tcp://127.0.0.1:1", "--curve-server-key", "/none", code=1)
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, "keygen"], stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE)
        assert done.returncode == 1, done


@test
def explains_itself():
    text = run("--help")
    commands = [line.split()[0] for line in text.split("Commands:\n")[1].split("\n\n")[0].splitlines()]
    assert len(commands) >= 9 and "Exit codes: 0 " in text, text
    for command in commands:
        page = run(command, "--help")
        assert f"Usage: weft {command}" in page and f"weft {command}" in page.split("Examples:")[1] and "--json" in page
    assert run("--version").startswith("weft ")


@test
def writes_completion_and_manual_pages():
    ask = 'source /dev/stdin; COMP_WORDS=({}); COMP_CWORD={}; _weft; echo "${{COMPREPLY[*]}}"'
    for words, expected in (("weft ro", "router"), ("weft sub --gl", "--glob"), ("weft keygen --", "--help --json --out --public")):
        done = subprocess.run(["bash", "-c", ask.format(words, len(words.split()) - 1)], input=run("completion", "bash"),
                              capture_output=True, text=True, timeout=PATIENCE)
        assert sorted(done.stdout.split()) == expected.split(), done
    if zsh := shutil.which("zsh"):
        subprocess.run([zsh, "-fn"], input=run("completion", "zsh"), text=True, check=True, timeout=PATIENCE)
    for command in ("", "sub", "keygen"):
        page = run("manual", *command.split())
        assert page.startswith(".TH weft") and ".SH EXIT STATUS" in page
        if groff := shutil.which("groff"):
            done = subprocess.run([groff, "-man", "-ww", "-z", "-Tutf8"], input=page, capture_output=True, text=True, check=True)
            assert done.stderr == "", done.stderr
    assert "--curve\\-server" in run("manual", "sub").replace("\\-\\-", "--")
    run("completion", "fish", code=2)
    run("manual", "fly", code=2)


@test
def runs_the_examples_of_the_page():
    blocks = (SOURCE / "docs/command-line.md").read_text().split("```sh\n")[1:]
    assert len(blocks) >= 4
    for block in (each.split("```")[0] for each in blocks):
        expected = [line[2:] for line in block.splitlines() if line.startswith("# ")]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["bash", "-euc", block], cwd=folder, capture_output=True, text=True, timeout=PATIENCE,
                                  env={**os.environ, "PATH": f"{Path(PROGRAM).parent}:{os.environ['PATH']}"})
        assert done.returncode == 0 and done.stdout.splitlines() == expected, (block, done)


if __name__ == "__main__":
    for each in tests:
        each()
        print("ok", each.__name__.replace("_", " "))
