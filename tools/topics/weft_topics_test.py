# SPDX-License-Identifier: MIT
"""weft_topics_test.py PROGRAM: each command of weft-topics, as processes of one local fleet."""
import json
import os
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]


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
    return 0


if __name__ == "__main__":
    sys.exit(main())
