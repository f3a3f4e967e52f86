# SPDX-License-Identifier: MIT
"""weft_look_test.py PROGRAM SOURCE METRICS_SIDE: the commands of weft that look at programs and conversations."""

import contextlib
import fcntl
import getpass
import json
import os
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

from weft_cli_support import KEPT_SIDE, PATIENCE, PROGRAM, SOURCE, admin_port, end, on_terminal, peer, run, run_all, start, test, zmq

sys.path.append(str(SOURCE / "tests/support"))
from tls_peers import Certificates  # noqa: E402


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
        # A newer peer sends no more than its signature before an older one has spoken.
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

        table = run("top", admin, "--traces", "--once").splitlines()
        assert table[0].split() == ["TRACE", "OPERATION", "TRACER", "KIND", "STATUS", "TOOK", "AGO"], table
        assert len(table) == 4 and all(re.match(r"[0-9a-f]{32} +span +shop +internal +unset +[0-9.]+ ms ", line)
                                       for line in table[1:]), table
        traces = json.loads(run("top", admin, "--traces", "-n", "1", "-i", "0.02", "--json"))["traces"]
        assert [row["name"] for row in traces] == ["span"] * 3 and all(row["age_ms"] > 0 for row in traces), traces

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
                        (b"HTTP/1.1 401 No\r\n\r\n", "--token-file"), (b"HTTP/1.1 421 No\r\n\r\n", "admin.hosts"),
                        (b"HTTP/1.1 200 OK\r\n\r\nx", "no length"), (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "too long"),
                        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nup 1", "no counters of Weft"),
                        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nweft_a{b=", "closed the connection"),
                        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nweft_a{b=", "no counters of Weft"),
                        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 99999, "no HTTP")):
        with impostor(answer) as endpoint:
            assert why in run("top", endpoint, "--once", code=1), answer
    with sockets.create_server(("127.0.0.1", 0)) as silent:
        assert "in time" in run("top", f"tcp://127.0.0.1:{silent.getsockname()[1]}", "--timeout", "0.05", code=1)
    assert "refused" in run("top", "tcp://127.0.0.1:1", code=1)
    for wrong in (["wss://127.0.0.1:1"], ["nowhere"], ["tcp://127.0.0.1:1", "-i", "0"], ["tcp://127.0.0.1:1", "--once", "-n", "2"]):
        run("top", *wrong, code=2)


@test
def fits_into_a_terminal_of_80_columns():
    commands = [["doctor"], ["report"], ["config", "show"], ["keygen"], ["bench", "--seconds", "0.05"]]
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        os.chmod(directory, 0o700)
        admin, _ = stack.enter_context(admin_port())
        if admin:
            commands += [["top", admin, "--once"], ["top", admin, "--traces", "--once"]]
        if KEPT_SIDE:
            here = ["--directory", directory]
            hub = stack.enter_context(subprocess.Popen([PROGRAM, "hub", *here], stderr=subprocess.DEVNULL))
            stack.callback(hub.kill)
            filters = [f"a-long-name-of-orders-{i}.>" for i in range(6)]
            run("stream", "add", "orders-of-a-shop-with-a-long-name", *filters, *here)
            run("kv", "put", "config", "color", "blue", *here)
            commands += [["stream", "ls", *here], ["stream", "info", "orders-of-a-shop-with-a-long-name", *here], ["kv", "ls", *here],
                         ["kv", "get", "config", "color", *here], ["topic", "ls", *here]]
        for command in commands:
            lines = on_terminal(80, *command)
            assert max(map(len, lines)) <= 80, (command, [line for line in lines if len(line) > 80])
            # The same words as without a terminal, whose lines are not broken.
            if command[0] in ("config", "kv") or command[:2] == ["stream", "info"]:
                assert " ".join(lines).split() == run(*command).split(), command
        if admin:
            head = [line for line in on_terminal(40, "top", admin, "--once") if line.startswith("SOCKET ")]
            assert len(head) > 1 and " ".join(head).count("PEERS") == 1, head  # a table that is too wide is several


@test
def looks_at_a_port_with_tls_and_a_token():
    token = "0123456789-token"
    with tempfile.TemporaryDirectory() as folder:
        try:
            certificates = Certificates(folder)
        except FileNotFoundError:
            print("skipped: there is no openssl")
            return
        pair, trust = certificates.pair("good"), ["--tls-ca", certificates.path("ca.crt")]
        key = Path(folder) / "token"
        key.write_text(token + "\n")
        proof = ["--token-file", str(key)]
        with admin_port(token, *pair) as (plain, side):
            if not plain:
                side.wait(PATIENCE)
                assert side.returncode == 77, side.returncode
                print("skipped: the build has no TLS")
                return
            admin = "tls+" + plain
            once = json.loads(run("top", admin, "--once", "--json", *trust, *proof))
            assert any(row["name"] == "desk" for row in once["sockets"]), once
            lines = run("top", admin, "-n", "3", "-i", "0.02", "--json", *trust, *proof).splitlines()
            assert len(lines) == 3, lines
            assert "weft_socket_peers{" in run("report", "--admin", admin, *trust, *proof)
            by_name = admin.replace("127.0.0.1", "localhost")
            run("top", by_name, "--once", *trust, *proof)
            run("top", admin, "--once", *trust, *proof, "--tls-name", "localhost")
            run("top", admin, "--once", *proof, "--tls-insecure")
            for more, why in ((trust, "--token-file"), (proof, "certificate"), ([*proof, "--tls-ca", certificates.path("other.crt")], "certificate"),
                              ([*trust, *proof, "--tls-name", "elsewhere.example"], "elsewhere.example|certificate|name"),
                              ([*trust, "--token-file", certificates.path("ca.crt")], "another token"),
                              ([*trust, "--token-file", folder + "/none"], "none"),
                              ([*proof, "--tls-ca", folder + "/none"], "none")):
                for command in (["top", admin, "--once"], ["report", "--admin", admin]):
                    said = run(*command, *more, code=1)
                    assert re.search(why, said) and token not in said, (more, said)
            assert "tls+tcp://" in run("top", plain, "--once", *proof, code=1)
            for wrong in ([plain, *trust], [plain, "--tls-insecure"], [plain, "--tls-name", "a"], [admin, "--tls-cert", pair[0]],
                          ["ipc://" + folder + "/a", *trust], ["wss://127.0.0.1:1"]):
                run("top", *wrong, "--once", code=2)
        with admin_port(token, *pair, certificates.path("ca.crt")) as (plain, _):
            admin = "tls+" + plain
            said = run("top", admin, "--once", *trust, *proof, code=1)  # the end may overtake its reason
            assert "certificate" in said or "closed the connection" in said, said
            mine = certificates.pair("second")
            run("top", admin, "--once", *trust, *proof, "--tls-cert", mine[0], "--tls-key", mine[1])
        with admin_port() as (plain, _):  # the port has no TLS
            assert re.search("TLS|version", run("top", "tls+" + plain, "--once", *trust, code=1))
        with sockets.create_server(("127.0.0.1", 0)) as silent:
            assert "in time" in run("top", f"tls+tcp://127.0.0.1:{silent.getsockname()[1]}", "--timeout", "0.05", *trust, code=1)


@test
def reports_without_names():
    secret = "canary-of-the-environment"
    place = {**os.environ, "WEFT_CANARY": secret, "HOME": "/" + secret, "USER": secret}
    names = {secret, sockets.gethostname(), os.getcwd(), str(Path(PROGRAM).parent)}
    names |= {getpass.getuser()} - {"root"}  # the word is no name of a person
    with tempfile.TemporaryDirectory(prefix=secret) as folder:
        text = run("report", env=place, cwd=folder)
        object = run("report", "--json", env=place, cwd=folder)
    for report in (text, object):
        assert not [name for name in names if name in report], (names, report)
        assert not re.search(r"(?<![\w)])/(?:\w+/)+", report), report
    report = json.loads(object)
    assert report["weft"] == run("--version").split()[1] and report["compiler"].split()[0] in ("gcc", "clang"), report
    assert {"open files", "poller", "tls"} <= {each["name"] for each in report["findings"]}
    limit = next(each for each in report["limits"] if each["name"] == "Max open files")
    assert limit["soft"].isdigit() and limit["hard"].isdigit() and "metrics" not in report, limit
    assert re.search(rf"^  Max open files +{limit['soft']}, {limit['hard']}$", text, re.M), text
    with admin_port() as (admin, _):
        if admin:
            metrics = json.loads(run("report", "--json", "--admin", admin))["metrics"]
            assert {"metric": "weft_socket_peers", "value": 1, "labels": [
                {"name": "socket", "value": "desk"}, {"name": "type", "value": "ROUTER"}]} in metrics, metrics
            assert '\n  weft_socket_peers{socket="desk",type="ROUTER"} 1\n' in run("report", "--admin", admin)
            assert admin not in run("report", "--json", "--admin", admin)
    assert "refused" in run("report", "--admin", "tcp://127.0.0.1:1", code=1)


if __name__ == "__main__":
    run_all()
