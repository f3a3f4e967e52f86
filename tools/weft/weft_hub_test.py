# SPDX-License-Identifier: MIT
"""weft_hub_test.py PROGRAM SOURCE METRICS_SIDE KEPT_SIDE: weft hub, its successor, its admin port, and its service manager."""

import contextlib
import http.client
import json
import os
import select
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from weft_cli_support import KEPT_SIDE, LONG, PATIENCE, PROGRAM, SOURCE, run, run_all, test

sys.path.append(str(SOURCE / "tests/support"))
from tls_options import make_certificates


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o700)
        yield directory


class Hub:
    """A `weft hub` of the folder; `first`: the end of its first note."""

    def __init__(self, directory: str, *arguments: str, environment: dict | None = None, descriptors: str = ""):
        limited = ["sh", "-c", f'ulimit -n {descriptors} && exec "$@"', "sh"] if descriptors else []
        self.process = subprocess.Popen([*limited, PROGRAM, "hub", "--directory", directory, *arguments], stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(environment or {})})
        self.noted = b""  # after the last note that was found

    def note(self, text: str) -> str:
        """The next note that has the text, for which the hub has PATIENCE."""
        deadline = time.monotonic() + PATIENCE
        seen = []
        while True:
            while (end := self.noted.find(b"\n")) >= 0:
                line = self.noted[:end].decode().strip()
                self.noted = self.noted[end + 1:]
                if text in line:
                    return line
                seen.append(line)
            stream = self.process.stderr
            readable, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
            read = os.read(stream.fileno(), 65536) if readable else b""
            assert read, (text, seen, self.process.poll())
            self.noted += read

    def stop(self, number: int, code: int) -> None:
        self.process.send_signal(number)
        assert self.process.wait(PATIENCE) == code, self.process.stderr.read()
        self.process.stderr.close()


def get(endpoint: str, page: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(endpoint.replace("tcp://", "http://") + page, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@test
def serves_a_fleet_and_stops_with_code_0():
    with folder() as directory, folder() as store:
        hub = Hub(directory, "--store", store, "--admin", "tcp://127.0.0.1:0", "--clients-max", "8")
        admin = hub.note("admin port at").split()[-1]
        assert hub.note("serves").endswith(f"{store}/default.topics")
        here = ["--directory", directory, *LONG]
        assert run("kv", "put", "config", "color", "blue", *here) == "1\n"
        assert run("kv", "get", "config", "color", *here) == "blue\n"
        assert get(admin, "/healthz")[0] == 200 and get(admin, "/readyz")[0] == 200
        metrics = get(admin, "/metrics")[1]
        assert 'weft_hub_messages_total{hub="hub",outcome="appended"} 1' in metrics, metrics
        # A stored message is a volatile one, too.
        run("stream", "add", "orders", "orders.>", *here)
        with subprocess.Popen([PROGRAM, "topic", "sub", "orders.*", "-n", "1", *here], stdout=subprocess.PIPE, text=True) as hears:
            while hears.poll() is None:  # the handle of the hub learns of the subscription
                run("stream", "publish", "orders", "orders.eu", "a chair", *here)
            assert hears.stdout.readline() == "orders.eu a chair\n"
        hub.stop(signal.SIGTERM, 0)
        # The next hub has the same store.
        hub = Hub(directory, "--store", store)
        hub.note("serves")
        assert run("kv", "get", "config", "color", *here) == "blue\n"
        hub.stop(signal.SIGINT, 0)


@test
def takes_as_many_members_as_the_hard_limit_of_descriptors_has_places_for():
    with folder() as directory:
        hub = Hub(directory, "--clients-max", "400", descriptors="200")
        first = hub.note("")
        if "is 200: the hub takes 100 members, not the 400 of --clients-max" not in first:
            hub.stop(signal.SIGTERM, 0)
            raise AssertionError(first)
        hub.note("serves")
        # Connections beyond it are closed at once, those before them stay, and the hub has descriptors left.
        (path,) = [each for each in Path(directory).rglob("*") if each.is_socket() and "hub" in each.name]
        with contextlib.ExitStack() as open_ones:
            ended = 0
            for _ in range(150):
                member = open_ones.enter_context(socket.socket(socket.AF_UNIX))
                member.settimeout(PATIENCE)
                member.connect(str(path))
                with contextlib.suppress(ConnectionError):
                    ended += member.recv(1) == b""  # a greeting, or the end
                    continue
                ended += 1
            assert 50 <= ended <= 55, ended
        assert run("kv", "put", "config", "color", "blue", "--directory", directory, *LONG) == "1\n"
        hub.stop(signal.SIGTERM, 0)


@test
def is_unready_while_it_waits_and_while_it_stops():
    with folder() as directory:
        first = Hub(directory)
        first.note("serves")
        second = Hub(directory, "--admin", "tcp://127.0.0.1:0", "--drain", "60")
        admin = second.note("admin port at").split()[-1]
        second.note("another process is the hub")
        assert get(admin, "/readyz")[0] == 503 and get(admin, "/healthz")[0] == 200
        first.stop(signal.SIGTERM, 0)
        second.note("serves")
        assert get(admin, "/readyz")[0] == 200
        second.process.send_signal(signal.SIGTERM)
        while get(admin, "/readyz")[0] == 200:
            pass
        assert "the hub stops" in get(admin, "/readyz")[1]
        second.process.send_signal(signal.SIGTERM)  # it ends at once
        assert second.process.wait(PATIENCE) == -signal.SIGTERM
        second.process.stderr.close()
        # A hub that waits for another one ends, too.
        first = Hub(directory)
        first.note("serves")
        second = Hub(directory)
        second.note("another process is the hub")
        second.stop(signal.SIGTERM, 0)
        first.stop(signal.SIGTERM, 0)


@test
def tells_its_service_manager():
    with folder() as directory, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{directory}/notify")
        manager.settimeout(PATIENCE)
        hub = Hub(directory, environment={"NOTIFY_SOCKET": f"{directory}/notify"})
        assert manager.recv(4096).startswith(b"READY=1\nSTATUS=the hub serves")
        hub.process.send_signal(signal.SIGTERM)
        assert manager.recv(4096).startswith(b"STOPPING=1")
        assert hub.process.wait(PATIENCE) == 0
        hub.process.stderr.close()


@test
def hands_over_without_a_lost_acknowledgement():
    """A client publishes while hubs are killed and stopped; each successor waits already."""
    with folder() as directory:
        here = ["--directory", directory]
        hub = Hub(directory)
        hub.note("serves")
        run("stream", "add", "orders", "orders.>", *here, *LONG)
        publishes = subprocess.Popen([PROGRAM, "stream", "publish", "orders", "orders.eu", "--window", "64", "--json", *here, *LONG],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        kept: list[dict] = []
        news = threading.Condition()

        def collect() -> None:
            for line in publishes.stdout:
                with news:
                    kept.append(json.loads(line))
                    news.notify_all()
        reader = threading.Thread(target=collect)
        reader.start()
        sent = 0

        def publish(count: int) -> None:
            nonlocal sent
            for _ in range(count):
                publishes.stdin.write(f"{sent}\n")
                sent += 1
            publishes.stdin.flush()
        for turn in range(6):
            successor = Hub(directory)
            successor.note("another process is the hub")
            before = len(kept)
            publish(300)
            with news:  # in the middle of the work
                assert news.wait_for(lambda: len(kept) > before + 20, PATIENCE), len(kept)
            kill = turn % 2 == 0
            hub.stop(signal.SIGKILL if kill else signal.SIGTERM, -signal.SIGKILL if kill else 0)
            successor.note("serves")
            publish(50)
            hub = successor
        publishes.stdin.close()
        reader.join(PATIENCE)
        assert publishes.wait(PATIENCE) == 0 and len(kept) == sent, (len(kept), sent)
        publishes.stdout.close()
        stored = [json.loads(line) for line in run("stream", "read", "orders", "--stored", "--json", *here, *LONG).splitlines()]
        assert [each["body"] for each in stored] == [str(i) for i in range(sent)]  # in order, once
        sequences = [each["sequence"] for each in kept]
        assert sequences == [each["sequence"] for each in stored]
        hub.stop(signal.SIGTERM, 0)


@test
def lets_a_program_host_and_takes_over_from_it():
    with folder() as directory:
        here = ["--directory", directory, *LONG]
        program = subprocess.Popen([KEPT_SIDE, directory, "host"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert program.stdout.readline() == "hosting\n"
        hub = Hub(directory)
        hub.note("another process is the hub")
        assert run("stream", "publish", "jobs", "jobs.1", "x", *here) == "1\n"
        program.communicate(timeout=PATIENCE)
        hub.note("serves")
        assert run("stream", "read", "jobs", "--stored", *here) == "1 jobs.1 x\n"
        hub.stop(signal.SIGTERM, 0)


@test
def takes_more_members_than_the_handles_of_a_fleet():
    """A command for kept topics takes no place among the handles of the fleet."""
    with folder() as directory:
        here = ["--directory", directory]
        hub = Hub(directory)
        hub.note("serves")
        run("kv", "put", "config", "color", "blue", *here, *LONG)
        watches = [subprocess.Popen([PROGRAM, "kv", "watch", "config", "--json", "-n", "2", *here], stdout=subprocess.PIPE, text=True)
                   for _ in range(100)]
        assert all(json.loads(each.stdout.readline())["body"] == "blue" for each in watches)
        run("kv", "put", "config", "color", "red", *here, *LONG)
        assert all(json.loads(each.stdout.readline())["body"] == "red" for each in watches)
        for each in watches:
            assert each.wait(PATIENCE) == 0
            each.stdout.close()
        hub.stop(signal.SIGTERM, 0)


@test
def serves_other_hosts_that_have_a_certificate():
    findings = {each["name"]: each["value"] for each in map(json.loads, run("doctor", "--json").splitlines())}
    if shutil.which("openssl") is None or findings["tls"] != "built in":
        print("skipped: no openssl to make certificates, or a build without TLS")
        return
    with folder() as directory, folder() as certificates:
        for name in ("ours", "other"):
            os.mkdir(f"{certificates}/{name}")
            make_certificates(f"{certificates}/{name}")
        ours, other = (["--tls-cert", f"{certificates}/{name}/peer.crt", "--tls-key", f"{certificates}/{name}/peer.key"]
                       for name in ("ours", "other"))
        trust = ["--tls-ca", f"{certificates}/ours/ca.crt"]
        hub = Hub(directory, "--listen", "tls+tcp://127.0.0.1:0", *ours, *trust)
        listens = hub.note("listens for other hosts at").split()[-1]
        hub.note("serves")
        far = ["--hub", listens, *ours, *trust, *LONG]
        assert run("kv", "put", "config", "color", "blue", *far) == "1\n"
        assert run("kv", "get", "config", "color", "--directory", directory, *LONG) == "blue\n"
        # A certificate of another authority is refused, with the reason.
        for seconds in ("0.5", "4", "15"):  # a busy machine needs longer for the first attempt
            said = run("kv", "get", "config", "color", "--hub", listens, *other, *trust, "--timeout", seconds, code=1)
            if "last: " in said:
                break
        assert "no hub answered in" in said and f"last: {listens}" in said and "unknown ca" in said, said
        # A watch of another host goes on with the next hub, which has the same port.
        with subprocess.Popen([PROGRAM, "kv", "watch", "config", "--json", "-n", "2", *far], stdout=subprocess.PIPE, text=True) as watch:
            assert json.loads(watch.stdout.readline())["body"] == "blue"
            successor = Hub(directory, "--listen", listens, *ours, *trust)
            successor.note("another process is the hub")
            hub.stop(signal.SIGTERM, 0)
            successor.note("serves")
            assert run("kv", "put", "config", "color", "red", *far) == "2\n"
            assert json.loads(watch.stdout.readline())["body"] == "red"
        successor.stop(signal.SIGTERM, 0)


@test
def lets_the_operator_choose_whether_scrapers_need_a_certificate():
    findings = {each["name"]: each["value"] for each in map(json.loads, run("doctor", "--json").splitlines())}
    if shutil.which("openssl") is None or findings["tls"] != "built in":
        print("skipped: no openssl to make certificates, or a build without TLS")
        return
    with folder() as directory:
        make_certificates(directory)
        token = "0123456789abcdef0123"
        Path(f"{directory}/token").write_text(token + "\n")
        tls = ["--tls-cert", f"{directory}/peer.crt", "--tls-key", f"{directory}/peer.key", "--tls-ca", f"{directory}/ca.crt"]
        for choice, served in ([], False), (["--admin-no-client-cert"], True):
            hub = Hub(directory, "--listen", "tls+tcp://127.0.0.1:0", "--admin", "tcp://127.0.0.1:0", "--token-file",
                      f"{directory}/token", *tls, *choice)
            admin = hub.note("admin port at").split()[-1].replace("tcp://", "https://").replace("tls+", "")
            hub.note("serves")
            trust = ssl.create_default_context(cafile=f"{directory}/ca.crt")
            trust.check_hostname = False
            scrape = urllib.request.Request(f"{admin}/metrics", headers={"Authorization": f"Bearer {token}"})
            try:
                with urllib.request.urlopen(scrape, timeout=PATIENCE, context=trust) as answer:
                    assert served and b"weft_hub" in answer.read()
            except (OSError, http.client.HTTPException):
                assert not served
            hub.stop(signal.SIGTERM, 0)
        assert "belong to --admin" in run("hub", "--directory", directory, "--admin-no-client-cert", code=2)


@test
def serves_other_hosts_that_have_a_key():
    findings = {each["name"]: each["value"] for each in map(json.loads, run("doctor", "--json").splitlines())}
    if findings["curve"] != "built in":
        print("skipped: a build without CURVE")
        return
    with folder() as directory, folder() as keys:
        for name in ("hub", "ann", "bob"):
            run("keygen", "--out", f"{keys}/{name}.key")
        members = Path(keys) / "members"
        listen = ["--listen", "tcp://127.0.0.1:0", "--curve-key", f"{keys}/hub.key", "--curve-members", str(members)]
        for text, says in (("", "there is no key"), ("public\n", "members:1: a line is"), ("# ann\npublic x\n", "40 characters of Z85")):
            members.write_text(text)
            assert says in run("hub", "--directory", directory, *listen, code=1)
        with_hash = "public " + "0#000" * 8 + "\n"  # Z85 has this character
        members.write_text("# of the shop\n" + with_hash + Path(f"{keys}/ann.key.pub").read_text())
        hub = Hub(directory, *listen)
        listens = hub.note("listens for other hosts at").split()[-1]
        hub.note("serves")

        def far(name: str, server: str = "hub") -> list[str]:
            return ["--hub", listens, "--curve-key", f"{keys}/{name}.key", "--curve-server-key", f"{keys}/{server}.key.pub"]
        assert run("kv", "put", "config", "color", "blue", *far("ann"), *LONG) == "1\n"
        assert run("kv", "get", "config", "color", "--directory", directory, *LONG) == "blue\n"
        for keys_of, says in ((far("bob"), "does the hub have this handle's key?"), (far("ann", "bob"), "is the server's key right?")):
            for seconds in ("0.5", "4", "15"):  # a busy machine needs longer for the first attempt
                said = run("kv", "get", "config", "color", *keys_of, "--timeout", seconds, code=1)
                if "last: " in said:
                    break
            assert f"last: {listens}" in said and says in said, said
        # SIGHUP: another list of keys, and none after a wrong file.
        members.write_text(Path(f"{keys}/bob.key.pub").read_text())
        hub.process.send_signal(signal.SIGHUP)
        hub.note("reads the members' keys again: 1 of")
        assert run("kv", "get", "config", "color", *far("bob"), *LONG) == "blue\n"
        run("kv", "get", "config", "color", *far("ann"), "--timeout", "0.5", code=1)
        members.write_text("public\n")
        hub.process.send_signal(signal.SIGHUP)
        assert "members:1: a line is" in hub.note("the hub keeps the keys that it had")
        assert run("kv", "get", "config", "color", *far("bob"), *LONG) == "blue\n"
        hub.stop(signal.SIGTERM, 0)


@test
def refuses_other_hosts_without_certificates():
    with folder() as directory:
        for listen in ("tcp://0.0.0.0:0", "tcp://127.0.0.1:0", "tls+tcp://0.0.0.0:0"):
            said = run("hub", "--directory", directory, "--listen", listen, code=2)
            assert "--tls-cert, --tls-key and --tls-ca" in said and "--curve-key and --curve-members" in said, said
        assert "belong to --hub" in run("kv", "get", "config", "color", "--curve-key", "key", "--curve-server-key", "key", code=2)
        for bound in (["--address-max", "2"], ["--address-max", "2000", "--listen", "tls+tcp://127.0.0.1:0"]):
            assert "--address-max is a part of" in run("hub", "--directory", directory, *bound, code=2)
        for hub in ("tcp://127.0.0.1:1", "tls+tcp://127.0.0.1:1"):
            assert "--hub is ipc://PATH, tls+tcp://" in run("kv", "get", "config", "color", "--hub", hub, code=2)
        assert "belong to --hub" in run("kv", "get", "config", "color", "--directory", directory, "--tls-ca", "ca.pem", code=2)


@test
def serves_the_members_of_a_group():
    with folder() as directory:
        assert "belong together" in run("hub", "--directory", directory, "--group", "root", code=2)
        open_to_all = Path(directory) / "open"
        open_to_all.mkdir(mode=0o755)
        open_to_all.chmod(0o755)
        hub = Hub(directory, "--group", str(os.getegid()), "--group-socket", f"{open_to_all}/hub.sock")
        hub.note("mode 0750")
        hub.stop(0, 1)
        hub = Hub(directory, "--group", "no-such-group-of-weft", "--group-socket", f"{directory}/g/hub.sock")
        hub.note("no such group")
        hub.stop(0, 1)
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            print("skipped in part: only root runs commands as another user, by setpriv")
            return
        group, other = "54321", "54322"
        with tempfile.TemporaryDirectory() as shared:
            os.chmod(shared, 0o755)
            program = shutil.copy(PROGRAM, f"{shared}/weft")  # which another user can reach
            path = f"{shared}/group/hub.sock"
            hub = Hub(directory, "--group", group, "--group-socket", path)
            hub.note("serves")
            found = os.stat(path)
            assert stat.S_IMODE(found.st_mode) == 0o660 and found.st_gid == int(group), found
            found = os.stat(f"{shared}/group")
            assert stat.S_IMODE(found.st_mode) == 0o750 and found.st_gid == int(group), found

            def as_user(groups: str, *arguments: str) -> subprocess.CompletedProcess:
                return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", f"--groups={groups}", program, *arguments],
                                      capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=shared)
            done = as_user(f"{other},{group}", "kv", "put", "config", "color", "blue", "--hub", f"ipc://{path}", *LONG)
            assert (done.returncode, done.stdout) == (0, "1\n"), done
            assert run("kv", "get", "config", "color", "--directory", directory, *LONG) == "blue\n"
            for seconds in ("0.5", "4", "15"):  # a busy machine needs longer for the first attempt
                done = as_user(other, "kv", "get", "config", "color", "--hub", f"ipc://{path}", "--timeout", seconds)
                if "last: " in done.stderr:
                    break
            assert done.returncode == 1 and f"last: ipc://{path}: not permitted" in done.stderr, done
            # The next hub has the same socket.
            successor = Hub(directory, "--group", group, "--group-socket", path)
            successor.note("another process is the hub")
            hub.stop(signal.SIGKILL, -signal.SIGKILL)
            successor.note("serves")
            done = as_user(group, "kv", "get", "config", "color", "--hub", f"ipc://{path}", *LONG)
            assert (done.returncode, done.stdout) == (0, "blue\n"), done
            successor.stop(signal.SIGTERM, 0)


@test
def ends_when_its_store_cannot_be_opened():
    with folder() as directory, folder() as store:
        (Path(store) / "default.topics").write_bytes(b"no database" * 1000)
        hub = Hub(directory, "--store", store)
        assert "the store" in hub.note("the store")
        assert hub.process.wait(PATIENCE) == 1
        hub.process.stderr.close()


if __name__ == "__main__":
    if not KEPT_SIDE:
        raise SystemExit(0)  # a build without SQLite keeps no topics
    run_all()
