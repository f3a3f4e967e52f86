# SPDX-License-Identifier: MIT
"""weft_fleet_test.py PROGRAM SOURCE METRICS_SIDE KEPT_SIDE: weft fleet up, its servers, and their ends; weft fleet doctor
and acl. 77: no nats-server."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from weft_cli_support import LONG, PATIENCE, end, run, run_all, run_blocks, start, test

NATS_SERVER = shutil.which("nats-server", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")


@contextlib.contextmanager
def up(*arguments):
    """(the command, what it printed)."""
    with start("fleet", "up", "--json", *arguments) as command:
        try:
            line = command.stdout.readline()
            assert line, command.stderr.read()
            yield command, json.loads(line)
        finally:
            command.kill()


@contextlib.contextmanager
def server_of(config):
    """The address of a server with these lines of configuration."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "server.conf")
        file.write_text("host: 127.0.0.1\n" + config, encoding="ascii")
        with subprocess.Popen([NATS_SERVER, "-c", file, "-p", "-1"], stderr=subprocess.PIPE, text=True) as server:
            try:
                yield next(line for line in server.stderr if "client connections on " in line).split()[-1]
            finally:
                server.kill()


def is_there(pid):
    """Whether a process runs; one that waits for its parent does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@test
def messages_cross_three_servers_and_a_signal_ends_all() -> None:
    with up() as (command, told):
        pids = [server["pid"] for server in told["servers"]]
        urls = [server["url"] for server in told["servers"]]
        assert len(set(urls)) == 3 and told["fleet"] == "nats://" + ",".join(url.removeprefix("nats://") for url in urls), told
        with start("topic", "sub", "px.*", "--fleet", urls[0], "--count", "1", *LONG) as reader:
            run("topic", "pub", "px.A", "188", "--fleet", urls[2], *LONG)
            assert reader.communicate(timeout=PATIENCE)[0] == "px.A 188\n"
        os.kill(pids[1], signal.SIGKILL)
        for line in command.stderr:
            if "ended" in line:
                assert urls[1].removeprefix("nats://") in line, line
                break
        command.send_signal(signal.SIGTERM)
        assert command.wait(PATIENCE) == 0
        assert not any(map(is_there, pids)), pids


@test
def servers_end_with_a_command_that_is_killed_and_the_command_with_its_servers() -> None:
    with up("--servers", "1") as (command, told):
        pid = told["servers"][0]["pid"]
        ended = os.pidfd_open(pid)
        command.kill()
        command.wait(PATIENCE)
        assert select.select([ended], [], [], PATIENCE)[0], "the server goes on"
        os.close(ended)
    with up("--servers", "1") as (command, told):
        os.kill(told["servers"][0]["pid"], signal.SIGKILL)
        assert command.wait(PATIENCE) == 1
        assert "all servers ended" in command.stderr.read()


@test
def the_doctor_warns_of_old_servers_of_one_server_and_of_refused_subjects() -> None:
    def states(*arguments, code=0):
        done = run("fleet", "doctor", "--json", *LONG, *arguments, code=code)
        return {found["name"]: found["state"] for found in map(json.loads, done.splitlines())}

    with up() as (_, told):
        found = states(told["fleet"])
        assert (found["servers"], found["control messages"], found["replies"], found["encryption"]) == ("ok",) * 4, found
    with server_of('authorization { users: [ { user: u, password: hidden, permissions: '
                   '{ subscribe: { deny: "_WEFT.>" }, publish: { deny: "_INBOX.>" } } } ] }\n') as address:
        found = states(f"nats://u:hidden@{address}")
        assert (found["servers"], found["control messages"], found["replies"]) == ("warning",) * 3, found
        run("fleet", "doctor", f"nats://u:hidden@{address}", "--strict", *LONG, code=1)
        said = run("fleet", "doctor", f"nats://u:hiddentoo@{address}", *LONG, code=1)
        assert "refuses the credentials" in said and "hidden" not in said, said
    assert "refused" in run("fleet", "doctor", "nats://127.0.0.1:1", "--timeout", "1", code=1)
    run("fleet", "doctor", code=2)


@test
def the_printed_permissions_permit_what_was_named_and_nothing_else() -> None:
    users = {"quotes": ["--publish", "px.>"], "reader": ["--subscribe", "px.*"],
             "asker": ["--request", "svc.upper"], "worker": ["--serve", "svc.upper"]}
    rows = [f'{{ user: {user}, password: p, {run("fleet", "acl", *roles)} }}' for user, roles in users.items()]
    with server_of("authorization { users: [ " + ", ".join(rows) + " ] }\n") as address:
        def of(user):
            return ["--fleet", f"nats://{user}:p@{address}", *LONG]

        with start("topic", "sub", "px.*", "--count", "1", *of("reader")) as reader:
            run("topic", "pub", "px.A", "188", *of("quotes"))
            assert end(reader) == "px.A 188\n"
        with start("reply", "svc.upper", "HELLO", "--count", "1", *of("worker")) as worker:
            deadline = time.monotonic() + PATIENCE
            got = ""
            while not got and time.monotonic() < deadline:  # until the service is there
                got = start("request", "svc.upper", "hello", *of("asker")).communicate(timeout=PATIENCE)[0]
            assert got == "HELLO\n", got
            end(worker)
        for user in ("quotes", "asker", "worker"):
            assert "permit" in run("topic", "sub", "px.*", *of(user), code=1), user
        with start("topic", "sub", "px.*", "--count", "2", *of("reader")) as reader:
            run("topic", "pub", "px.A", "ready", *of("quotes"))
            run("topic", "pub", "px.A", "no", *of("asker"))
            run("topic", "pub", "px.A", "yes", *of("quotes"))
            assert end(reader) == "px.A ready\npx.A yes\n"
    spaced = json.loads(run("fleet", "acl", "--space", "prod", "--json"))
    assert spaced == {"publish": ["prod.>", "_WEFT.>", "_INBOX.>"], "subscribe": ["prod.>", "_WEFT.>", "_INBOX.>"]}, spaced
    assert "a..b" in run("fleet", "acl", "--publish", "a..b", code=2)
    assert run_blocks("fleet.md", "fleet acl") == 2


@test
def what_cannot_start_is_said() -> None:
    assert "--servers is 1 to 9" in run("fleet", "up", "--servers", "10", code=2)
    assert "at most 65535" in run("fleet", "up", "--port", "65534", code=2)
    assert "No such file" in run("fleet", "up", "--program", "/nonexistent", code=1)
    assert "ended" in run("fleet", "up", "--program", "/bin/false", code=1)
    assert "without quotes" in run("fleet", "up", "--store", 'a"b', code=2)
    assert "No such file" in run("fleet", "up", "--store", "/nonexistent/kept", code=1)
    with up("--servers", "1") as (_, told):
        port = told["servers"][0]["url"].rsplit(":", 1)[1]
        assert "address already in use" in run("fleet", "up", "--servers", "1", "--port", port, code=1)


if __name__ == "__main__":
    if NATS_SERVER is None:
        print("there is no nats-server")
        sys.exit(77)
    run_all()
