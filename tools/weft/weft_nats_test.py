# SPDX-License-Identifier: MIT
"""weft_nats_test.py PROGRAM SOURCE METRICS_SIDE KEPT_SIDE: the command `nats` of deps/go.txt as another client of a
fleet, on Debian's server and on the one of deps/go.txt. 77: one of them is missing."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from weft_cli_support import LONG, PATIENCE, SOURCE, end, run, run_all, start, test

NATS = SOURCE / "build/go/nats"
DEBIAN = shutil.which("nats-server", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
SERVERS = [DEBIAN, str(SOURCE / "build/go/nats-server")]
home = tempfile.TemporaryDirectory()  # without the contexts of this user


def nats_of(url):
    """A function that starts `nats` at that server."""
    def begin(*arguments: str) -> subprocess.Popen:
        return subprocess.Popen([NATS, "--server", url, *arguments], env={**os.environ, "HOME": home.name, "XDG_CONFIG_HOME": home.name},
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return begin


@contextlib.contextmanager
def fleets():
    """Yields (url, a function that starts `nats`) of a fleet on each kind of server."""
    def each():
        for program in SERVERS:
            with start("fleet", "up", "--json", "--servers", "1", "--program", program) as command:
                try:
                    url = json.loads(command.stdout.readline())["fleet"]
                    yield url, nats_of(url)
                finally:
                    command.kill()
    yield each()


def until_ended(process, repeat):
    """Repeats a publication until the reader has it: a reader of another client does not tell that it is there."""
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None:
        assert time.monotonic() < deadline, process.args
        repeat()
    return end(process)


@test
def messages_pass_between_topics_and_the_command_nats() -> None:
    with fleets() as all_of_them:
        for url, nats in all_of_them:
            reader = start("topic", "sub", "px.*", "--fleet", url, "--count", "1", *LONG)
            assert until_ended(reader, lambda: end(nats("pub", "px.A", "188"))) == "px.A 188\n"
            foreign = nats("sub", "px.*", "--raw", "--count", "1")
            assert until_ended(foreign, lambda: run("topic", "pub", "px.B", "42", "--wait", "0", "--fleet", url, *LONG)) == "42\n"


@test
def requests_pass_between_services_and_the_command_nats() -> None:
    with fleets() as all_of_them:
        for url, nats in all_of_them:
            server = start("reply", "svc.weft", "yes", "--fleet", url, "--count", "1", *LONG)
            got = ""
            deadline = time.monotonic() + PATIENCE
            while not got:
                assert time.monotonic() < deadline
                asked = nats("request", "svc.weft", "?", "--raw")
                got = asked.communicate(timeout=PATIENCE)[0].strip()
            assert got == "yes", got
            end(server)
            foreign = nats("reply", "svc.nats", "no", "--count", "1")
            got = ""
            while foreign.poll() is None and not got:
                assert time.monotonic() < deadline + 2 * PATIENCE
                asked = start("request", "svc.nats", "?", "--fleet", url, *LONG)
                got = asked.communicate(timeout=PATIENCE)[0].strip()
            assert got == "no", got
            foreign.wait(PATIENCE)  # its code is 1 after --count


@test
def servers_keep_their_topics_in_the_store() -> None:
    for program in SERVERS:
        with tempfile.TemporaryDirectory() as folder:
            kept = os.path.join(folder, "kept")
            for step in (["add", "conf"], ["put", "conf", "color", "red"], ["get", "conf", "color", "--raw"]):
                with start("fleet", "up", "--json", "--servers", "1", "--store", kept, "--program", program) as command:
                    try:
                        nats = nats_of(json.loads(command.stdout.readline())["fleet"])
                        said = end(nats("kv", *step))
                        command.terminate()
                        assert command.wait(PATIENCE) == 0
                    finally:
                        command.kill()
            assert said.strip() == "red", said


if __name__ == "__main__":
    if DEBIAN is None or not all(map(os.path.exists, [NATS, *SERVERS])):
        print("there is no nats-server, or no nats: deps/setup.sh tests builds it with Go")
        sys.exit(77)
    run_all()
