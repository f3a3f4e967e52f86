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
