# SPDX-License-Identifier: MIT
"""For the tests of weft with a hub, and with servers of NATS: the commands of streams and buckets that behave alike.

`weft` runs a command, `here` has the options of one that runs beside the test, `settings` those of a declaration.
"""

import json
import tempfile
from pathlib import Path

from weft_cli_support import end, objects, start


def publish_and_read(weft, here: list[str], settings: list[str]) -> None:
    """Of the stream orders, which is there; 10 messages are in it afterwards."""
    weft("stream", "add", "orders", "orders.>", *settings, "--bytes-max", "64M", "--redeclare")
    assert weft("stream", "publish", "orders", "orders.eu", "a chair", "-H", "Colour:red") == "1\n"
    assert weft("stream", "publish", "orders", "orders.eu", "--id", "17", "a table") == "2\n"
    assert json.loads(weft("stream", "publish", "orders", "orders.eu", "--id", "17", "a table", "--json")) == {
        "sequence": 2, "duplicate": True}
    assert weft("stream", "publish", "orders", "orders.us", "--window", "3", text="1\n2\n3\n4\n5\n") == "3\n4\n5\n6\n7\n"
    assert weft("stream", "publish", "orders", "orders.us", "-", text=b"\0\n\xff") == "8\n"
    weft("stream", "publish", "orders", "orders.eu", "x", "--expect-last", "1", code=1)
    assert weft("stream", "publish", "orders", "orders.eu", "x", "--expect-last", "2") == "9\n"
    weft("stream", "publish", "orders", "news", "x", code=1)
    assert "the stream" in weft("stream", "publish", "none", "news", "x", code=1)

    first = objects(weft("stream", "read", "orders", "orders.eu", "--stored", "--json"))
    assert [(each["sequence"], each["body"]) for each in first] == [(1, "a chair"), (2, "a table"), (9, "x")], first
    assert first[0]["headers"] == ["Colour: red"] and "headers" not in first[1], first
    assert weft("stream", "read", "orders", "--from", "8", "-n", "1", "--hex") == "8 orders.us 000aff\n"
    assert weft("stream", "read", "orders", "--from", "last", "--stored") == "9 orders.eu x\n"
    assert weft("stream", "read", "orders", "--from", "@1", "--stored", "--raw", "-n", "2") == "a chaira table"
    newest = weft("stream", "read", "orders", "--from", "last-per-topic", "--stored", "--hex").splitlines()
    assert newest == ["8 orders.us 000aff", "9 orders.eu 78"], newest
    follows = start("stream", "read", "orders", "--from", "last", "-n", "2", *here)
    assert follows.stdout.readline() == "9 orders.eu x\n"
    weft("stream", "publish", "orders", "orders.eu", "new")
    assert end(follows) == "10 orders.eu new\n"


def end_with_their_time(weft, here: list[str], settings: list[str], refuses: bool = False) -> None:
    """Of the stream ends and the bucket ends, which are not there. `refuses`: so do the servers."""
    weft("stream", "add", "ends", "ends.>", *settings)
    weft("kv", "put", "ends", "color", "blue", *settings)
    for wrong in ("-1", "x", "nan", "4e9"):
        weft("stream", "publish", "ends", "ends.a", "x", "--ttl", wrong, code=2)
    weft("stream", "publish", "ends", "ends.a", "x", "--ttl", "0.5", code=1)
    weft("kv", "put", "ends", "color", "x", "--ttl", "0.5", code=1)
    if refuses:
        assert "2.11.3" in weft("stream", "publish", "ends", "ends.a", "x", "--ttl", "1", code=1)
        assert "2.11.3" in weft("kv", "put", "ends", "color", "x", "--ttl", "1", code=1)
        return
    watch = start("kv", "watch", "ends", "color", "--json", *here)
    assert json.loads(watch.stdout.readline())["change"] == "put"
    assert weft("stream", "publish", "ends", "ends.a", "short", "--ttl", "1") == "1\n"
    assert weft("stream", "publish", "ends", "ends.a", "long", "--ttl", "3600") == "2\n"
    assert weft("kv", "put", "ends", "color", "red", "--ttl", "3600") == "2\n"
    assert weft("kv", "put", "ends", "color", "gray", "--revision", "2", "--ttl", "2") == "3\n"
    while json.loads(watch.stdout.readline())["change"] != "delete":
        pass
    watch.kill()
    watch.communicate()
    weft("kv", "get", "ends", "color", code=1)
    assert weft("kv", "put", "ends", "color", "new", "--if-absent", "--ttl", "3600") == "5\n"
    assert weft("stream", "read", "ends", "--stored") == "2 ends.a long\n"


def publish_with_a_delay(weft, here: list[str], settings: list[str], refuses: bool = False) -> None:
    """Of the stream later, which is not there. `refuses`: so do the servers."""
    weft("stream", "add", "later", "later.>", *settings)
    for wrong in ("-1", "x", "nan", "4e9"):
        weft("stream", "publish", "later", "later.a", "x", "--delay", wrong, code=2)
    weft("stream", "publish", "later", "later.a", "x", "--delay", "1", "--atomic", code=2)
    weft("stream", "publish", "later", "later.a", "x", "--delay", "1", "--expect-last", "0", code=1)
    if refuses:
        assert "delay" in weft("stream", "publish", "later", "later.a", "x", "--delay", "1", code=1)
        assert json.loads(weft("--json", "stream", "info", "later"))["next"] == 1
        return
    assert weft("stream", "publish", "later", "later.a", "much later", "--delay", "3600") == "0\n"
    assert weft("stream", "publish", "later", "later.a", "later", "--delay", "1", "--id", "i") == "0\n"
    assert weft("stream", "publish", "later", "later.a", "twice", "--id", "i") == "0 stored before\n"
    now = weft("stream", "publish", "later", "later.a", "now", "--delay", "0")
    assert now in ("1\n", "2\n"), now  # this machine may be slow
    read = end(start("stream", "read", "later", "-n", "2", *here)).splitlines()
    assert sorted(line.split()[-1] for line in read) == ["later", "now"], read
    assert json.loads(weft("--json", "stream", "info", "later"))["delayed"] == 1
    assert "with a delay 1" in weft("stream", "info", "later")


def publish_batches(weft, settings: list[str], refuses: bool = False) -> None:
    """Of the stream batches, which is not there. `refuses`: so do the servers."""
    weft("stream", "add", "batches", "batches.>", *settings)
    if refuses:
        assert "2.12" in weft("stream", "publish", "batches", "batches.a", "--atomic", text="1\n2\n", code=1)
        return
    assert weft("stream", "publish", "batches", "batches.a", "--atomic", text="1\n2\n3\n") == "1\n2\n3\n"
    assert weft("stream", "publish", "batches", "batches.a", "--atomic", "--expect-last", "3", text="4\n5\n") == "4\n5\n"
    weft("stream", "publish", "batches", "batches.a", "--atomic", "--expect-last", "3", text="6\n7\n", code=1)
    weft("stream", "publish", "batches", "batches.a", "--atomic", text="x\n" * 1001, code=2)
    weft("stream", "publish", "batches", "batches.a", "--atomic", text="", code=1)
    assert weft("stream", "read", "batches", "--stored") == "".join(f"{n} batches.a {n}\n" for n in range(1, 6))


def consume_with_priorities(weft, here: list[str], settings: list[str], refuses: bool = False, of_server: bool = False) -> None:
    """Of the stream shares, which is not there. `refuses`: so do the servers. `of_server`: a consumer has them or not."""
    weft("stream", "add", "shares", "shares.>", *settings)
    for wrong in ("10", "-1", "x", "4294967296"):
        weft("stream", "consume", "shares", "c", "--priority", wrong, "-n", "1", code=2)
    if refuses:
        assert "2.12" in weft("stream", "consume", "shares", "c", "--priority", "0", "-n", "1", code=1)
        assert json.loads(weft("stream", "info", "shares", "--json"))["consumers"] == []
        return
    standby = start("stream", "consume", "shares", "c", "--priority", "9", *here)
    assert weft("stream", "publish", "shares", "shares.a", "alone") == "1\n"
    assert standby.stdout.readline() == "1 shares.a alone\n"
    first = start("stream", "consume", "shares", "c", "--priority", "0", "-n", "1", *here)
    while first.poll() is None:  # once it is a member it gets the next message
        weft("stream", "publish", "shares", "shares.a", "x")
    assert end(first).endswith(" shares.a x\n")
    standby.kill()
    standby.communicate()
    weft("stream", "publish", "shares", "shares.a", "y")
    weft("stream", "consume", "shares", "plain", "-n", "1")
    if of_server:
        assert "redeclare" in weft("stream", "consume", "shares", "plain", "--priority", "1", "-n", "1", code=1)
        assert weft("stream", "consume", "shares", "plain", "--priority", "1", "-n", "1", "--redeclare") == "2 shares.a x\n"
    else:
        assert weft("stream", "consume", "shares", "plain", "--priority", "1", "-n", "1") == "2 shares.a x\n"
    assert weft("stream", "consume", "shares", "plain", "-n", "1", "--from", "2", "--redeclare") == "2 shares.a x\n"


def set_and_watch(weft, here: list[str], settings: list[str]) -> None:
    """Of the bucket config, which is not there."""
    assert "bucket" in weft("kv", "get", "config", "color", code=1)  # and makes no bucket
    assert weft("kv", "ls") == ""
    assert weft("kv", "put", "config", "color", "blue", *settings) == "1\n"
    assert weft("kv", "put", "config", "size.x", "-", text="from the input") == "2\n"
    assert weft("kv", "get", "config", "color") == "blue\n"
    assert json.loads(weft("--json", "kv", "get", "config", "size.x")) == {
        "key": "size.x", "revision": 2, "body": "from the input"}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "photo").write_bytes(b"\0\xff\n")
        assert weft("kv", "put", "config", "photo", "--file", f"{folder}/photo") == "3\n"
    assert weft("kv", "get", "config", "photo", "--raw") == "\0\xff\n"
    assert weft("kv", "ls") == "config\n"
    assert weft("kv", "ls", "config") == "color\nphoto\nsize.x\n"
    assert weft("kv", "ls", "config", "size.>", "--json") == '{"key":"size.x"}\n'
    weft("kv", "put", "config", "color", "red", "--if-absent", code=1)
    weft("kv", "put", "config", "color", "red", "--revision", "3", code=1)
    assert weft("kv", "put", "config", "color", "red", "--revision", "1") == "4\n"
    watch = start("kv", "watch", "config", "color", "--json", "-n", "2", *here)
    first = json.loads(watch.stdout.readline())
    assert weft("kv", "delete", "config", "color") == "5\n"
    changes = [first, *objects(end(watch))]
    assert [(each["change"], each["key"], each["revision"]) for each in changes] == [
        ("put", "color", 4), ("delete", "color", 5)], changes
    weft("kv", "get", "config", "color", code=1)
    weft("kv", "delete", "none", "color", code=1)
    # The space is a part of the names.
    assert weft("kv", "put", "config", "color", "green", "--space", "shop", *settings) == "1\n"
    assert weft("kv", "ls", "--space", "shop") == "config\n"
