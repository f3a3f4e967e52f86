# SPDX-License-Identifier: MIT
"""weft_topics_test.py PROGRAM [KEPT_SIDE]: each command of weft-topics, as processes of one local fleet."""
import json
import os
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
HOST = sys.argv[2] if len(sys.argv) > 2 else ""  # a process that hosts a hub; empty: built without SQLite


def main() -> int:
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o700)
        common = [PROGRAM, "--directory", directory, "--timeout", "30"]

        def run(*arguments: str, code: int = 0, text: str = "") -> str:
            done = subprocess.run([*common, *arguments], input=text, capture_output=True, text=True, timeout=60)
            assert done.returncode == code, (arguments, done)
            assert (done.stderr == "") == (code == 0), (arguments, done)
            return done.stdout

        def start(*arguments: str) -> subprocess.Popen:
            return subprocess.Popen([*common, *arguments], stdout=subprocess.PIPE, text=True)

        exact = start("--count", "1", "sub", "px.AAPL")
        glob = start("--json", "--count", "2", "--glob", "sub", "px.*")
        prefix = start("--count", "2", "--prefix", "sub", "px.A")
        tap = start("--json", "--count", "3", "tap")
        run("--wait-subscribers", "4", "--header", "Currency:USD", "pub", "px.AAPL", "188.20 \"x\" \n")
        run("--wait-subscribers", "3", "pub", "px.AMZN", "-", text="from the input")
        run("--wait-subscribers", "1", "pub", "news")
        assert exact.communicate(timeout=60)[0] == 'px.AAPL 188.20 "x" \n\n', "sub"
        both = [json.loads(line) for line in glob.communicate(timeout=60)[0].splitlines()]
        assert [each["body"] for each in both] == ['188.20 "x" \n', "from the input"], both
        assert "Currency: USD" in both[0]["headers"], both
        assert prefix.communicate(timeout=60)[0].splitlines()[-1] == "px.AMZN from the input", "sub --prefix"
        every = [json.loads(line)["topic"] for line in tap.communicate(timeout=60)[0].splitlines()]
        assert every == ["px.AAPL", "px.AMZN", "news"], every
        assert all(each.wait() == 0 for each in (exact, glob, prefix, tap))

        stays = start("sub", "news")
        run("--wait-subscribers", "1", "pub", "news", "a")
        nodes = [json.loads(line) for line in run("--json", "ls").splitlines()]
        assert [node["kind"] for node in nodes] == ["node"] and nodes[0]["endpoint"].startswith("ipc://"), nodes
        stays.kill()
        stays.communicate()

        run("kv", "fly", code=2)
        run("kv", "get", "bucket", code=2)
        run("streams", "a", code=2)
        run("pub", code=2)
        run("sub", code=2)
        run("fly", code=2)
        run("--count", "many", "tap", code=2)
        run("--prefix", "--glob", "sub", "a", code=2)
        run("pub", "no topic", "x", code=1)
        run("--fleet", "nats://h", "ls", code=1)
        run("--timeout", "0", "--wait-subscribers", "1", "pub", "nobody", code=1)
        assert "usage" in subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
        assert not [name for _, _, names in os.walk(directory) for name in names if name.endswith(".topics")], "it hosted"
    if HOST:
        kept()
    return 0


def kept() -> None:
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o700)
        host = subprocess.Popen([HOST, directory, "host"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert host.stdout.readline() == "hosting\n"
        common = [PROGRAM, "--directory", directory, "--timeout", "30"]

        def run(*arguments: str, code: int = 0, text: str = "") -> str:
            done = subprocess.run([*common, *arguments], input=text, capture_output=True, text=True, timeout=60)
            assert done.returncode == code, (arguments, done)
            return done.stdout

        run("kv", "get", "config", "color", code=1)  # and makes no bucket
        assert run("kv", "ls") == ""
        assert run("kv", "put", "config", "color", "blue") == "1\n"
        assert run("kv", "put", "config", "size.x", "-", text="from the input") == "2\n"
        assert run("kv", "get", "config", "color") == "blue\n"
        assert json.loads(run("--json", "kv", "get", "config", "size.x")) == {"value": "from the input", "revision": "2"}
        assert run("kv", "ls") == "config\n"
        assert run("kv", "ls", "config") == "color\nsize.x\n"
        assert run("kv", "ls", "config", "size.>") == "size.x\n"
        watch = subprocess.Popen([*common, "--json", "--count", "3", "kv", "watch", "config"],
                                 stdout=subprocess.PIPE, text=True)
        first = [json.loads(watch.stdout.readline()) for _ in range(2)]
        assert run("kv", "delete", "config", "color") == "3\n"
        changes = first + [json.loads(watch.communicate(timeout=60)[0])]
        assert [(each["change"], each["key"]) for each in changes] == [
            ("put", "color"), ("put", "size.x"), ("delete", "color")], changes
        run("kv", "get", "config", "color", code=1)
        streams = [json.loads(line) for line in run("--json", "streams").splitlines()]
        assert ["jobs", "log"] in [[each["name"], each.get("keep")] for each in streams], streams
        bucket = [each for each in streams if each["name"] == "kv.config"][0]
        assert (bucket["keep"], bucket["next"]) == ("latest", "4") and int(bucket["bytes"]) > 0, bucket
        assert "stream jobs log " in run("streams")
        host.communicate(timeout=60)


if __name__ == "__main__":
    sys.exit(main())
