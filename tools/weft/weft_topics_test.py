# SPDX-License-Identifier: MIT
"""weft_topics_test.py PROGRAM SOURCE METRICS_SIDE KEPT_SIDE: topic, request, reply, stream and kv, as processes of one fleet."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from weft_cli_support import KEPT_SIDE, LONG, PATIENCE, PROGRAM, end, objects, run, run_all, start, test
from weft_kept_cases import (consume_with_priorities, end_with_their_time, publish_and_read, publish_batches, publish_with_a_delay,
                             set_and_watch)


@contextlib.contextmanager
def fleet():
    """The options of a fleet of its own."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o700)
        yield ["--directory", directory]


@contextlib.contextmanager
def kept_fleet():
    """The same with a program that hosts its hub."""
    with fleet() as options:
        with subprocess.Popen([KEPT_SIDE, options[1], "host"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
            try:
                assert host.stdout.readline() == "hosting\n"
                yield options
            finally:
                host.kill()


@test
def publishes_to_each_kind_of_filter():
    with fleet() as here:
        exact = start("topic", "sub", "px.AAPL", "-n", "1", *here, *LONG)
        glob = start("--json", *here, *LONG, "topic", "sub", "--glob", "px.*", "--count", "2")
        prefix = start("topic", *here, *LONG, "sub", "-n", "2", "--prefix", "-t", "px.A")
        tap = start("topic", "tap", "--count", "3", "-j", *here, *LONG)
        sent = run("topic", "pub", *here, *LONG, "-w", "4", "px.AAPL", '188.20 "x" \t', "-H", "Currency: USD", "--json")
        assert json.loads(sent) == {"sent": 1, "subscriptions": 4}, sent
        run("topic", "pub", "-t", "px.AMZN", "-", "--wait", "3", *here, *LONG, text=b"from\nthe input\xff")
        run("topic", "pub", "news", "x", *here, *LONG)
        assert end(exact) == 'px.AAPL 188.20 "x" \\x09\n'
        both = objects(end(glob))
        assert both == [{"topic": "px.AAPL", "body": '188.20 "x" \t', "headers": ["Currency: USD"]},
                        {"topic": "px.AMZN", "hex": b"from\nthe input\xff".hex()}], both
        assert end(prefix).splitlines()[-1] == "px.AMZN from\\x0athe input\\xff"
        assert [each["topic"] for each in objects(end(tap))] == ["px.AAPL", "px.AMZN", "news"]


@test
def sends_lines_and_files_at_their_pace():
    with fleet() as here, tempfile.TemporaryDirectory() as folder:
        photo = bytes(range(256)) * 300
        (Path(folder) / "photo").write_bytes(photo)
        (Path(folder) / "lines").write_text("1\n\n3")
        raw = subprocess.Popen([PROGRAM, "topic", "sub", "photo", "-n", "1", "--raw", *here, *LONG], stdout=subprocess.PIPE)
        run("topic", "pub", "photo", "--file", f"{folder}/photo", *here, *LONG)
        assert raw.communicate(timeout=PATIENCE)[0] == photo
        lines = start("topic", "sub", "line", "-n", "4", *here, *LONG, "--json")
        run("topic", "pub", "line", "-l", f"{folder}/lines", "--rate", "1000", *here, *LONG)
        run("topic", "pub", "line", *here, *LONG, text="4\n")
        assert [each["body"] for each in objects(end(lines))] == ["1", "", "3", "4"]


@test
def lists_the_handles_of_a_fleet():
    with fleet() as here:
        stays = start("topic", "sub", "news", *here)
        run("topic", "pub", "news", "a", *here, *LONG)
        nodes = objects(run("topic", "ls", "--json", *here, *LONG))
        assert [node["kind"] for node in nodes] == ["node"] and nodes[0]["endpoint"].startswith("ipc://"), nodes
        assert run("topic", "ls", *here, *LONG) == f"node {nodes[0]['name']} {nodes[0]['endpoint']}\n"
        assert stays.stdout.readline() == "news a\n"
        stays.send_signal(signal.SIGINT)
        end(stays, 130)
        assert not list(Path(here[1]).rglob("*.topics")), "a command hosted the hub"


@test
def asks_and_replies():
    with fleet() as here:
        service = start("reply", "svc.echo", "-n", "2", "--json", *here, *LONG)
        fixed = start("reply", "-t", "svc.fixed", "12:00", "-n", "1", "--group", "clocks", *here, *LONG)

        def ask(*arguments: str, text: str = "") -> str:
            deadline = time.monotonic() + PATIENCE
            while True:  # until the service has come
                done = subprocess.run([PROGRAM, "request", *arguments, *here, *LONG], input=text, capture_output=True, text=True)
                if done.returncode == 0:
                    return done.stdout
                assert "serve" in done.stderr and time.monotonic() < deadline, done
        assert ask("svc.echo", "hello") == "hello\n"
        assert ask("svc.fixed", "--json", text="now?\n") == '{"body":"12:00"}\n'
        assert ask("svc.echo", "-", "--raw", text="a\nb") == "a\nb"
        assert [each["body"] for each in objects(end(service))] == ["hello", "a\nb"]
        assert end(fixed) == "svc.fixed now?\n"
        assert "serve" in run("request", "svc.none", "x", *here, code=1)


@test
def publishes_reads_and_consumes_what_is_kept():
    if not KEPT_SIDE:
        return
    with kept_fleet() as here:
        def weft(*arguments: str, **more) -> str:
            return run(*arguments, *here, *LONG, **more)
        assert weft("stream", "add", "orders", "orders.>").startswith("orders log ")
        weft("stream", "add", "orders", "--keep", "work", code=1)
        publish_and_read(weft, [*here, *LONG], [])

        assert weft("stream", "consume", "orders", "billing", "orders.eu", "--tries-max", "5", "--ack-wait", "600",
                    "-n", "1") == "1 orders.eu a chair\n"
        # The second one has the settings of the consumer that is there.
        assert weft("stream", "consume", "orders", "billing", "-n", "1", "--no-ack") == "2 orders.eu a table\n"
        info = json.loads(weft("stream", "info", "orders", "--json"))
        assert (info["topics"], info["keep"], info["bytes_max"], info["next"]) == (["orders.>"], "log", 64 << 20, 11), info
        # The hub may have sent the next message, too, before that process ended: it was not delivered.
        assert info["consumers"] == [{"name": "billing", "floor": 2, "waiting": 1}], info
        weft("stream", "ack", "orders", "billing", "2")
        assert "1 of 1" in weft("stream", "ack", "orders", "billing", "2", code=1)
        rest = weft("stream", "consume", "orders", "billing", "-n", "2").splitlines()
        assert sorted(rest) == ["10 orders.eu new", "9 orders.eu x"], rest
        assert "no message came" in run("stream", "consume", "orders", "billing", *here, "--timeout", "0.3", code=1)
        assert ", 0 to acknowledge" in weft("stream", "info", "orders")

        weft("stream", "purge", "orders", "--before", "3")
        assert weft("stream", "read", "orders", "--stored", "-n", "1").startswith("3 ")
        weft("stream", "purge", "orders")
        assert weft("stream", "read", "orders", "--stored") == ""
        weft("stream", "rm", "orders", "--consumer", "billing")
        weft("stream", "rm", "orders", "--consumer", "billing", code=1)
        assert [each["name"] for each in objects(weft("stream", "ls", "--json"))] == ["jobs", "orders"]
        weft("stream", "rm", "orders")
        assert weft("stream", "ls").startswith("jobs log ")
        weft("stream", "info", "orders", code=1)


@test
def keeps_keys_and_values():
    if not KEPT_SIDE:
        return
    with kept_fleet() as here:
        def weft(*arguments: str, **more) -> str:
            return run(*arguments, *here, *LONG, **more)
        set_and_watch(weft, [*here, *LONG], [])
        weft("kv", "put", "config", "color", code=2)
        end_with_their_time(weft, [*here, *LONG], [])
        publish_batches(weft, [])
        consume_with_priorities(weft, [*here, *LONG], [])
        publish_with_a_delay(weft, [*here, *LONG], [])


@test
def keeps_its_time_without_a_hub():
    with fleet() as here:
        for command in (["kv", "get", "b", "k"], ["kv", "ls"], ["stream", "ls"], ["stream", "publish", "s", "t", "x"],
                        ["stream", "add", "s"], ["stream", "consume", "s", "c"], ["stream", "ack", "s", "c", "1"]):
            refused = run(*command, *here, "--timeout", "0.3", code=1)  # its patience is less than the 30 s of the library
            assert "no hub answered in 0.3 s; `weft hub` is one" in refused, refused
        waits = start("kv", "get", "b", "k", *here)
        waits.send_signal(signal.SIGTERM)
        assert waits.wait(PATIENCE) in (143, -signal.SIGTERM)  # the signal may come before the command catches it
        waits.communicate()
        assert "in time" in run("topic", "pub", "nobody", "x", *here, "--timeout", "0.2", code=1)
        assert json.loads(run("topic", "pub", "nobody", "x", *here, "-w", "0", "-j")) == {"sent": 1, "subscriptions": 0}


@test
def refuses_wrong_usage():
    for arguments in (["kv", "fly"], ["kv"], ["kv", "get", "bucket"], ["stream", "ls", "a", "b"], ["topic", "pub"], ["topic", "sub"],
                      ["topic", "fly"], ["topic", "tap", "-n", "many"], ["topic", "sub", "--prefix", "--glob", "a"],
                      ["topic", "pub", "a", "b", "c"], ["topic", "pub", "a", "b", "-f", "c"], ["stream", "read", "s", "--from", "soon"],
                      ["stream", "add", "s", "--bytes-max", "1T"], ["stream", "add", "s", "--keep", "some"], ["request"],
                      ["stream", "add", "s", "--survives", "nothing"], ["kv", "ls", "--fleet", "tcp://127.0.0.1:1"],
                      ["topic", "pub", "a", "b", "-H", "no colon"], ["hub", "--fleet", "inproc:a"], ["hub", "--clients-max", "0"]):
        assert "--help" in run(*arguments, code=2), arguments
    with fleet() as here:
        run("topic", "pub", "no topic", "x", *here, code=1)
    run("topic", "ls", "--fleet", "nats://127.0.0.1:1", "--timeout", "0.2", code=1)
    for before, now in (("ls", "topic ls"), ("pub", "topic pub"), ("sub", "topic sub"), ("tap", "topic tap"), ("streams", "stream ls"),
                        ("kv", "kv")):
        assert f"type `weft {now}` instead of `weft-topics {before}`" in run("topics", before, code=2)


if __name__ == "__main__":
    run_all()
