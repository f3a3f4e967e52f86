# SPDX-License-Identifier: MIT
"""weft_cli_test.py PROGRAM SOURCE METRICS_SIDE: the commands of weft against pyzmq, and the examples of docs/command-line.md."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from weft_cli_support import PATIENCE, PROGRAM, SOURCE, all_commands, end, peer, run, run_all, run_blocks, start, test, zmq

sys.path.append(str(SOURCE / "tests/support"))
from tls_options import make_certificates


@test
def publishes_and_subscribes():
    with peer(zmq.SUB, SUBSCRIBE=b"px.") as (sub, endpoint):
        # libzmq sends its subscriptions from calls of its application: recv() lets the publisher begin.
        pub = start("pub", "-c", endpoint, "-t", "px.A", "1", "[a,b]", "--json")
        assert sub.recv_multipart() == [b"px.A", b"1", b"[a,b]"]
        assert end(pub) == '{"sent":1,"subscriptions":1}\n'
        with tempfile.NamedTemporaryFile("w") as lines:
            lines.write("px.B\nnews\npx.C")
            lines.flush()
            pub = start("pub", "-c", endpoint, "-l", lines.name)
            assert [sub.recv(), sub.recv()] == [b"px.B", b"px.C"]
            assert "3 messages to 1 subscription\n" in pub.stderr.read()
            end(pub)
        # With a topic only its subscriptions count, and one that was taken back does not.
        pub = start("pub", "-b", "tcp://127.0.0.1:*", "-t", "news", "--json", "-w", "2", "x")
        at = pub.stderr.readline().split()[-1]
        sub.connect(at)
        sub.setsockopt(zmq.SUBSCRIBE, b"ne")
        sub.setsockopt(zmq.SUBSCRIBE, b"news")
        assert sub.recv_multipart() == [b"news", b"x"]
        assert json.loads(end(pub)) == {"sent": 1, "subscriptions": 2}
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
        run("push", "-c", endpoint, "-l", str(lines), "--lines", "-", text="four\n")
        assert [pull.recv() for _ in range(4)] == [b"one", b"", b"three", b"four"]
        run("push", "-c", endpoint, "--hex", "00ff", "FE", "-n", "2", "--rate", "1000")
        assert [pull.recv_multipart() for _ in range(2)] == [[b"\0\xff", b"\xfe"]] * 2
        run("push", "-c", endpoint, "--", "pub", "-1", "[]", "", "--json")
        assert pull.recv_multipart() == [b"pub", b"-1", b"[]", b"", b"--json"]
        run("push", "-c", endpoint, text="x" * 3_000_000 + "\n")
        assert len(pull.recv()) == 3_000_000
        photo = bytes(range(256)) * 1000
        lines.write_bytes(photo)
        run("push", "-c", endpoint, "--file", str(lines), "-f", "-", text=b"\xff\n\0")
        assert [pull.recv(), pull.recv()] == [photo, b"\xff\n\0"]
        run("--json", "-c", endpoint, "push", "options first")  # options may stand before the command
        assert pull.recv() == b"options first"
        assert "one of them" in run("push", "-c", endpoint, "x", "-f", str(lines), code=2)
    with peer(zmq.PUSH) as (push, endpoint):
        raw = start("pull", "-c", endpoint, "--raw", "-n", "1")
        push.send_multipart([b"a", b"\n", b"b"])
        assert end(raw) == "a\nb"


@test
def names_the_bound_that_a_message_exceeds():
    with peer(zmq.PULL) as (pull, endpoint):
        refused = run("push", "-c", endpoint, "-s", "max_send_size=1000", text="before\n" + "x" * 1001 + "\nafter\n", code=1)
        assert "max_send_size is 1000," in refused, refused
        assert pull.recv() == b"before"
        refused = run("push", "-c", endpoint, "-s", "message_parts_max=2", "1", "2", "3", code=1)
        assert "message_parts_max is 2," in refused, refused
        run("push", "-c", endpoint, "-s", "message_parts_max=2", "1", "2")
        assert pull.recv_multipart() == [b"1", b"2"]
        refused = run("sub", "-c", endpoint, "-s", "subscriptions_max=1", "--topic", "a", "--topic", "b", code=1)
        assert "subscriptions_max is 1," in refused, refused
        # The default is that of a peer that bounds nothing itself.
        refused = run("push", "-c", endpoint, text="x" * ((64 << 20) + 1) + "\n", code=1)
        assert "max_send_size is 67108864," in refused, refused


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
            refused = run("push", "-c", endpoint, "--curve-server-key", other, "--timeout", "0.3", "x", code=1)
            assert "last: " in refused, refused
        own_public, own_secret = zmq.curve_keypair()
        with peer(zmq.PUSH, CURVE_SERVERKEY=public.encode(), CURVE_PUBLICKEY=own_public,
                  CURVE_SECRETKEY=own_secret) as (push, endpoint):
            pull = start("pull", "-c", endpoint, "--curve-server", "--curve-key", key, "-n", "1")
            push.send(b"to the server")
            assert end(pull) == "to the server\n"

def refusal(*arguments: str) -> str:
    """What weft says of its first connection that failed."""
    with start(*arguments, "-v", "--timeout", str(PATIENCE)) as process:
        try:
            for line in process.stderr:
                if "handshake failed" in line or "disconnected" in line:
                    return line
            raise AssertionError((arguments, "no connection failed"))
        finally:
            process.kill()


@test
def speaks_tls_to_those_that_it_trusts():
    findings = map(json.loads, run("doctor", "--json").splitlines())
    features = {each["name"]: each["value"] == "built in" for each in findings}
    if shutil.which("openssl") is None or not features["tls"]:
        print("skipped: no openssl to make certificates, or a build without TLS")
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in ("ours", "other"):  # two authorities, and what each signed
            os.mkdir(f"{folder}/{name}")
            make_certificates(f"{folder}/{name}")
        own = ["--tls-cert", f"{folder}/ours/peer.crt", "--tls-key", f"{folder}/ours/peer.key"]
        trust, distrust = ["--tls-ca", f"{folder}/ours/ca.crt"], ["--tls-ca", f"{folder}/other/ca.crt"]
        for transport in ("tls+tcp", "wss"):
            pull = start("pull", "-b", f"{transport}://127.0.0.1:*", *own)
            endpoint = pull.stderr.readline().split()[-1]

            for good in (trust, [*trust, "--tls-name", "localhost"], ["--tls-insecure"], [*distrust, "--tls-insecure"]):
                run("push", "-c", endpoint, "--timeout", str(PATIENCE), *good, transport)
                assert pull.stdout.readline() == transport + "\n", good
            for wrong, why in (([], "certificate"), (distrust, "certificate"), ([*trust, "--tls-name", "elsewhere.example"], "name")):
                refused = refusal("push", "-c", endpoint, *wrong, "x")
                assert why in refused, (wrong, refused)
            # A peer without TLS is not a client, and the listener goes on.
            refusal("push", "-c", endpoint.replace("tls+tcp", "tcp").replace("wss", "ws"), "x")
            run("push", "-c", endpoint, "--timeout", str(PATIENCE), *trust, transport)
            assert pull.stdout.readline() == transport + "\n"
            pull.kill()
            pull.communicate()
        # The server that demands a certificate takes the one of its authority only.
        demand = ["-s", "tls_client_required=true"]
        rep = start("rep", "-b", "tls+tcp://127.0.0.1:*", *own, *trust, *demand)
        endpoint = rep.stderr.readline().split()[-1]
        assert run("req", "-c", endpoint, *trust, *own, "hello", "--timeout", str(PATIENCE)) == "hello\n"
        stranger = ["--tls-cert", f"{folder}/other/peer.crt", "--tls-key", f"{folder}/other/peer.key"]
        for wrong in ([], stranger):
            refusal("req", "-c", endpoint, *trust, *wrong, "hello")
        rep.kill()
        rep.communicate()
        for missing in (["--tls-cert", own[1]], ["--tls-cert", "/none", "--tls-key", own[3]], []):
            assert "bind" in run("pull", "-b", "tls+tcp://127.0.0.1:*", *missing, "--timeout", str(PATIENCE), code=1)



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
        assert "no message came in time" in run("bench", "--connect", endpoint, "--timeout", "0.1", code=1)
    assert "--size" in run("bench", "--size", "0", code=2)


@test
def examines_the_machine():
    findings = {each["name"]: each for each in map(json.loads, run("doctor", "--json").splitlines())}
    assert {"open files", "clock source", "io_uring", "processors", "NUMA nodes", "curve", "tls"} <= set(findings)
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
        assert "no message came in time" in run("pull", "-c", endpoint, "--timeout", "0.05", code=1)
        assert "in use" in run("pull", "-b", endpoint, code=1)
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            pull = start("pull", "-b", "tcp://127.0.0.1:*")
            assert "bound to tcp://127.0.0.1:" in pull.stderr.readline()
            pull.send_signal(number)
            end(pull, code)
    nobody = run("push", "-c", "tcp://127.0.0.1:1", "x", "--timeout", "0.3", code=1)
    assert "refused" in nobody, nobody
    assert "cannot be read" in run("sub", "-c", "tcp://127.0.0.1:1", "--curve-server-key", "/none", code=1)
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, "keygen"], stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE)
        assert done.returncode == 1, done


@test
def explains_itself():
    assert "Exit codes: 0 " in run("--help")
    names = all_commands()
    assert len(names) >= 35 and ["kv", "get"] in names and ["hub"] in names, names
    for name in names:
        page = run(*name, "--help")
        command = "weft " + " ".join(name)
        assert f"Usage: {command} " in page and command in page.split("Examples:")[1] and "--json" in page, page
        assert run("--help", *name) == page
    numbers = re.findall(r"^#define WEFT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", (SOURCE / "weft/base/version.h").read_text(), re.M)
    assert run("--version") == f"weft {'.'.join(numbers)}\n"


@test
def fits_into_80_columns():
    for name in ([], ["kv"], ["stream"], ["topic"], *all_commands()):
        wide = [line for line in run(*name, "--help").splitlines() if len(line) > 80]
        assert not wide, (name, wide)
        shown = [line for line in run(*name, "--help").splitlines() if line.startswith("  weft ")]
        assert len(shown) >= (1 if len(name) and name not in (["kv"], ["stream"], ["topic"]) else 0), name


@test
def ends_quietly_without_a_reader():
    for parent in ("", "trap '' PIPE; "):  # a parent may ignore the signal
        with peer(zmq.PUSH) as (push, endpoint):
            line = f"{parent}{PROGRAM} pull -c {endpoint} | head -n 1; echo ${{PIPESTATUS[0]}}"
            with subprocess.Popen(["bash", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as shell:
                push.send(b"first")
                assert shell.stdout.readline() == "first\n"
                while shell.poll() is None:  # until the command writes to the pipe that head has closed
                    with contextlib.suppress(zmq.Again):
                        push.send(b"x", zmq.DONTWAIT)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        shell.wait(0.01)
                assert (shell.stdout.read(), shell.stderr.read()) == ("141\n", "")


@test
def writes_completion_and_manual_pages():
    ask = 'source /dev/stdin; COMP_WORDS=({}); COMP_CWORD={}; _weft; echo "${{COMPREPLY[*]}}"'
    for words, expected in (("weft ro", "router"), ("weft sub --gl", "--glob"), ("weft keygen --", "--help --json --out --public"),
                            ("weft kv g", "get"), ("weft --json stream --fleet=local p", "publish purge"),
                            ("weft topic sub --pre", "--prefix"), ("weft stream con", "consume"), ("weft fly --", "")):
        done = subprocess.run(["bash", "-c", ask.format(words, len(words.split()) - 1)], input=run("completion", "bash"),
                              capture_output=True, text=True, timeout=PATIENCE)
        assert sorted(done.stdout.split()) == expected.split(), (words, done)
    if zsh := shutil.which("zsh"):
        subprocess.run([zsh, "-fn"], input=run("completion", "zsh"), text=True, check=True, timeout=PATIENCE)
    if fish := shutil.which("fish"):
        subprocess.run([fish, "--no-execute"], input=run("completion", "fish"), text=True, check=True, timeout=PATIENCE)
    assert "complete -c weft -n '__weft_begins kv get'" in run("completion", "fish")
    with tempfile.TemporaryDirectory() as folder:
        run("manual", "--out", folder)
        pages = {path.name: path.read_text() for path in Path(folder).iterdir()}
        assert set(pages) == {"weft.1"} | {"weft-" + "-".join(name) + ".1" for name in all_commands()}, sorted(pages)
        for name, page in pages.items():
            assert page.startswith(".TH weft") and ".SH EXIT STATUS" in page, name
            if groff := shutil.which("groff"):
                done = subprocess.run([groff, "-man", "-ww", "-z", "-Tutf8"], input=page, capture_output=True, text=True, check=True)
                assert done.stderr == "", done.stderr
        assert run("manual", "kv", "get") == pages["weft-kv-get.1"] and run("manual") == pages["weft.1"]
    assert "--curve\\-server" in run("manual", "sub").replace("\\-\\-", "--")
    run("completion", "tcsh", code=2)
    run("manual", "fly", code=2)
    run("manual", "--out", "/none", code=1)


@test
def runs_the_examples_of_the_page():
    assert run_blocks("command-line.md") >= 4

if __name__ == "__main__":
    run_all()
