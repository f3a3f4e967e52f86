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
