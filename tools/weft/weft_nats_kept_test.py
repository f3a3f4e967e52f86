# SPDX-License-Identifier: MIT
"""weft_nats_kept_test.py PROGRAM SOURCE METRICS_SIDE KEPT_SIDE: stream and kv, as processes, on servers of NATS: Debian's,
and that of deps/go.txt if it was built. 77: there is none."""

import json
import signal
import subprocess
import sys
import tempfile

from weft_cli_support import LONG, PATIENCE, PROGRAM, objects, run, run_all, start, test
from weft_kept_cases import (consume_with_priorities, end_with_their_time, publish_and_read, publish_batches, publish_with_a_delay,
                             set_and_watch)
from weft_nats_support import DEBIAN, SERVERS, keeping

KEPT = ["--survives", "process"]


def on_each_server(case):
    @test
    def run_case() -> None:
        for program in SERVERS:
            with keeping(program) as url:
                def weft(*arguments: str, url: str = url, **more) -> str:
                    return run(*arguments, "--fleet", url, *LONG, **more)
                case(weft, ["--fleet", url, *LONG])
    run_case.__name__ = case.__name__
    return case


@on_each_server
def publishes_and_reads_what_is_kept(weft, here) -> None:
    assert weft("stream", "add", "orders", "orders.>", *KEPT).startswith("orders log process, 0 messages from 1")
    assert weft("stream", "add", "orders", "orders.>", *KEPT).startswith("orders log process")
    assert "other settings" in weft("stream", "add", "orders", "orders.>", *KEPT, "--keep", "work", code=1)
    publish_and_read(weft, here, KEPT)
    assert "does not take the topic" in weft("stream", "publish", "orders", "news", "x", code=1)
    info = json.loads(weft("stream", "info", "orders", "--json"))
    assert (info["topics"], info["keep"], info["survives"], info["bytes_max"], info["next"]) == (
        ["orders.>"], "log", "process", 64 << 20, 11), info
    weft("stream", "purge", "orders", "--before", "3")
    assert weft("stream", "read", "orders", "--stored", "-n", "1").startswith("3 ")
    weft("stream", "purge", "orders")
    assert weft("stream", "read", "orders", "--stored") == ""
    weft("stream", "add", "newest", "px.>", "--keep", "latest", *KEPT)
    for topic in ("px.A", "px.B"):
        weft("stream", "publish", "newest", topic, "1")
    weft("stream", "purge", "newest", "--topic", "px.A")
    assert weft("stream", "read", "newest", "--stored") == "2 px.B 1\n"
    # The space is a part of the names.
    weft("stream", "add", "orders", "a.>", *KEPT, "--space", "shop")
    assert [each["name"] for each in objects(weft("stream", "ls", "--json", "--space", "shop"))] == ["shop.orders"]
    assert [each["name"] for each in objects(weft("stream", "ls", "--json"))] == ["newest", "orders", "shop.orders"]
    weft("stream", "rm", "orders")
    assert "the stream" in weft("stream", "info", "orders", code=1)


@on_each_server
def consumes_as_a_member_of_the_consumer_that_is_there(weft, here) -> None:
    weft("stream", "add", "jobs", "jobs.>", "--keep", "work", *KEPT)
    weft("stream", "publish", "jobs", "jobs.a", text="1\n2\n3\n")
    taken = weft("stream", "consume", "jobs", "workers", "jobs.*", "--ack-wait", "3", "-n", "1", "--json")
    # The other members do not name the settings. A message on its way to a member that ends comes again after ack_wait.
    for _ in range(2):
        taken += weft("stream", "consume", "jobs", "workers", "-n", "1", "--json")
    assert sorted(each["body"] for each in objects(taken)) == ["1", "2", "3"], taken
    consumers = json.loads(weft("stream", "info", "jobs", "--json"))["consumers"]
    assert [(each["name"], each["floor"]) for each in consumers] == [("workers", 4)], consumers
    for seconds in ("0.5", "4", "15"):  # a busy machine needs longer for the answers before
        said = run("stream", "consume", "jobs", "workers", *here[:2], "--timeout", seconds, code=1)
        if "no message came" in said:
            break
    assert f"no message came in {seconds} s" in said, said
    # A message that was only printed comes again after ack_wait.
    weft("stream", "add", "log", "log.>", *KEPT)
    weft("stream", "publish", "log", "log.a", "x")
    first = json.loads(weft("stream", "consume", "log", "again", "--ack-wait", "1", "--no-ack", "-n", "1", "--json"))
    again = json.loads(weft("stream", "consume", "log", "again", "-n", "1", "--json"))
    assert again["body"] == first["body"] == "x" and again["tries"] > first["tries"], (first, again)
    weft("stream", "rm", "jobs", "--consumer", "workers")
    assert "the consumer" in weft("stream", "rm", "jobs", "--consumer", "workers", code=1)


@on_each_server
def keeps_keys_and_values(weft, here) -> None:
    set_and_watch(weft, here, KEPT)
    assert weft("kv", "put", "config", "color", "new", "--if-absent") == "6\n"


@test
def keeps_messages_and_keys_for_their_time():
    for program in SERVERS:
        with keeping(program) as url:
            def weft(*arguments: str, url: str = url, **more) -> str:
                return run(*arguments, "--fleet", url, *LONG, **more)
            end_with_their_time(weft, ["--fleet", url, *LONG], KEPT, refuses=program == DEBIAN)
            publish_batches(weft, KEPT, refuses=program == DEBIAN)
            consume_with_priorities(weft, ["--fleet", url, *LONG], KEPT, refuses=program == DEBIAN, of_server=True)
            publish_with_a_delay(weft, ["--fleet", url, *LONG], KEPT, refuses=True)


@on_each_server
def refuses_with_a_reason_what_servers_do_not_keep(weft, here) -> None:
    for command in (["stream", "add", "orders", "orders.>"], ["kv", "put", "config", "color", "blue"]):
        said = weft(*command, code=1)
        assert "before the disk has it" in said and "process, or machine" in said, said
    assert "names its topics" in weft("stream", "add", "orders", *KEPT, code=1)
    assert "without --no-ack" in weft("stream", "ack", "orders", "billing", "1", code=2)
    # On NATS a stream in memory outlives the command.
    assert weft("stream", "add", "orders", "orders.>", "--survives", "nothing").startswith("orders log nothing")
    assert weft("stream", "publish", "orders", "orders.eu", "x") == "1\n"
    for options in (["--hub", "ipc://x"], ["--curve-key", "x"], ["--directory", "x"]):
        assert "--help" in weft("kv", "ls", *options, code=2), options


@test
def says_why_no_server_answers() -> None:
    for command in (["kv", "get", "b", "k"], ["stream", "ls"], ["stream", "add", "s", "s.>", *KEPT], ["stream", "consume", "s", "c"]):
        for seconds in ("1", "4", "15"):  # a busy machine needs longer to be refused
            said = run(*command, "--fleet", "nats://127.0.0.1:1", "--timeout", seconds, code=1)
            if "refused" in said:
                break
        assert f" in {seconds} s; " in said and "the servers of NATS did not answer in time; last: " in said and "refused" in said and "hub" not in said, said
    with start("fleet", "up", "--json", "--servers", "1", "--program", SERVERS[-1]) as command:
        try:
            url = json.loads(command.stdout.readline())["fleet"]
            said = run("stream", "ls", "--fleet", url, *LONG, code=1)
            assert "no JetStream answers" in said, said
        finally:
            command.kill()
    assert "hidden" not in run("kv", "ls", "--fleet", "nats://user:hidden@", code=1)
    waits = start("kv", "get", "b", "k", "--fleet", "nats://127.0.0.1:1")
    waits.send_signal(signal.SIGTERM)
    assert waits.wait(PATIENCE) in (143, -signal.SIGTERM)  # the signal may come before the command catches it
    waits.communicate()


@test
def a_publisher_goes_on_while_the_server_is_away() -> None:
    program = SERVERS[-1]
    with tempfile.TemporaryDirectory() as folder:
        def serve(port: str) -> subprocess.Popen:
            return start("fleet", "up", "--json", "--servers", "1", "--store", f"{folder}/kept", "--port", port, "--program", program)
        first = serve("0")
        url = json.loads(first.stdout.readline())["fleet"]
        run("stream", "add", "orders", "orders.>", *KEPT, "--fleet", url, *LONG)
        publishes = subprocess.Popen([PROGRAM, "stream", "publish", "orders", "orders.eu", "--fleet", url, *LONG],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        publishes.stdin.write("0\n")
        publishes.stdin.flush()
        assert publishes.stdout.readline() == "1\n"
        first.kill()
        first.communicate()
        publishes.stdin.write("1\n2\n")
        publishes.stdin.close()
        second = serve(url.rsplit(":", 1)[1])
        try:
            assert second.stdout.readline(), second.stderr.read()
            assert publishes.stdout.read() == "2\n3\n"
            assert publishes.wait(PATIENCE) == 0
            publishes.stdout.close()
            assert run("stream", "read", "orders", "--stored", "--fleet", url, *LONG) == "".join(
                f"{i + 1} orders.eu {i}\n" for i in range(3))
        finally:
            second.kill()
            second.communicate()


if __name__ == "__main__":
    if not SERVERS:
        print("there is no nats-server")
        sys.exit(77)
    run_all()
