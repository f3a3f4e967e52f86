# SPDX-License-Identifier: MIT
"""Installs a wheel into a fresh environment and uses it from outside the repository, with pyzmq as the peer.

usage: python_test.py WHEEL PEER_SITE: PEER_SITE is the folder that has pyzmq, which only the peers see.
"""

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PROGRAM = """
import sys, zmq
context = zmq.Context()
pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
push.connect(f"tcp://127.0.0.1:{pull.bind_to_random_port('tcp://127.0.0.1')}")
push.send_multipart([b"a", b"b"])
assert pull.recv_multipart() == [b"a", b"b"]
context.destroy(linger=0)
print("arguments", sys.argv[1:])
"""

BINDING = """
import asyncio, subprocess, sys, threading
import weft
from weft import aio

assert "zmq" not in sys.modules
peer = sys.argv[1:]

def start(*arguments):
    return subprocess.Popen([*peer, *arguments], stdout=subprocess.PIPE, text=True)

with weft.Context() as context:
    with context.socket(weft.REQ) as req, context.socket(weft.PAIR) as pair:
        req.set(weft.RCVTIMEO, 20000)
        rep = start("rep")
        req.connect(rep.stdout.readline().strip())
        req.send([b"x", b""])
        assert req.recv() == [b"x", b"", b"seen"]
        rep.communicate()
        for bad in ([], "text", [1]):
            try:
                req.send(bad)
            except TypeError:
                continue
            raise AssertionError(bad)
        try:
            pair.recv(wait=False)
            raise AssertionError("a message from nowhere")
        except weft.Again:
            pass
        try:
            pair.bind("nonsense")
            raise AssertionError("bound nonsense")
        except weft.Error:
            pass
    try:
        pair.send(b"late")
        raise AssertionError("a closed socket sent")
    except weft.Error:
        pass

async def batches():
    with weft.Context() as context:
        async with aio.Socket(context, weft.PULL, batch=100) as pull:
            pusher = start("push", pull.socket.bind("tcp://127.0.0.1:*"))
            got, largest = [], 0
            while len(got) < 5000:
                batch = await asyncio.wait_for(pull.recv_batch(), 20)
                assert 0 < len(batch) <= 100, len(batch)
                largest = max(largest, len(batch))
                got += batch
            assert got == [[b"%d" % n, b"z"] for n in range(5000)]
            assert largest > 1, "each wake-up took one message"
            pusher.communicate()
            waiting = asyncio.ensure_future(pull.recv())
            await asyncio.sleep(0)
        try:
            await waiting
            raise AssertionError("a closed socket received")
        except weft.Error:
            pass

async def shared():
    with weft.Context() as context:
        async with aio.Socket(context, weft.PULL) as pull:
            pull.socket.bind("inproc://shared")
            with context.socket(weft.PUSH) as push:
                push.connect("inproc://shared")
                waiting = asyncio.ensure_future(pull.recv())
                await asyncio.sleep(0)  # it waits
                push.send(b"one")
                push.send(b"two")
                assert await pull.recv() == [b"one"]  # and takes both from the socket
                assert await asyncio.wait_for(waiting, 20) == [b"two"]

async def both_ways():
    with weft.Context() as context:
        async with aio.Socket(context, weft.DEALER) as one, aio.Socket(context, weft.DEALER) as two:
            one.socket.connect(two.socket.bind("tcp://127.0.0.1:*"))

            async def drive(mine):
                for number in range(3000):
                    await mine.send(b"%d" % number)

            async def drain(mine):
                for number in range(3000):
                    assert await mine.recv() == [b"%d" % number]

            await asyncio.wait_for(asyncio.gather(drive(one), drain(one), drive(two), drain(two)), 30)

def topics():
    with weft.Topics("inproc:a") as topics, topics.subscribe("px.*") as prices:
        topics.publish("px.AAPL", b"189.5")
        assert prices.next(20).data == b"189.5"

topics()
asyncio.run(batches())
asyncio.run(both_ways())
asyncio.run(shared())
print("binding", weft.__version__)
"""

# Beside the hub, which the command of the wheel runs.
WITH_A_HUB = """
import sys, weft
with weft.Topics("local", runtime_directory=sys.argv[1], hosts=False) as topics:
    with topics.key_value("config") as config:
        print(config.put("color", "blue"), config.get("color").text)
"""

# A system that meets the tag has these libraries (PEP 600).
OF_THE_SYSTEM = {"ld-linux-x86-64.so.2", "libc.so.6", "libgcc_s.so.1", "libm.so.6", "libstdc++.so.6", "libz.so.1"}

PEER = """
import sys, zmq
context = zmq.Context()
if sys.argv[1] == "rep":
    rep = context.socket(zmq.REP)
    print(f"tcp://127.0.0.1:{rep.bind_to_random_port('tcp://127.0.0.1')}", flush=True)
    rep.send_multipart(rep.recv_multipart() + [b"seen"])
else:
    push = context.socket(zmq.PUSH)
    push.connect(sys.argv[2])
    for number in range(5000):
        push.send_multipart([b"%d" % number, b"z"])
context.destroy(linger=20000)
"""


def run(*command, expected=0, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == expected, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout, done.stderr


def numbers(text):
    return tuple(int(number) for number in text.split("."))


def check_tag(wheel, work):
    """No file of the wheel needs a newer glibc than the tag promises, or a library that neither the wheel nor the tag has."""
    promised = max(numbers(f"{major}.{minor}") for major, minor in re.findall(r"manylinux_(\d+)_(\d+)_", wheel.name))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(work)
    files = [file for file in work.rglob("*") if file.is_file() and file.read_bytes()[:4] == b"\x7fELF"]
    own, needed, newest = {file.name for file in files}, set(), (0,)
    for file in files:
        said, _ = run("readelf", "--wide", "--dynamic", "--version-info", file)
        needed.update(re.findall(r"\(NEEDED\).*\[(.*)\]", said))
        newest = max(newest, *(numbers(version) for version in re.findall(r"\bGLIBC_([\d.]+)", said)))
    assert {"libzmq-weft.so", "libweft_topics_c.so.1", "weft", "_topics.abi3.so"} <= own, own
    assert (2, 17) <= newest <= promised, f"the wheel needs glibc {newest}, and promises {promised}"
    assert needed <= own | OF_THE_SYSTEM, f"the wheel lacks {needed - own - OF_THE_SYSTEM}"


def check_command(python, work, environment):
    """The command of the wheel: its version, and a hub beside a program in Python, until SIGTERM."""
    weft = python.parent / "weft"
    version = run(python, "-c", "import weft; print(weft.__version__)", env=environment)[0].strip()
    assert run(weft, "--version", env=environment)[0].split() == ["weft", version]
    assert "no command is named" in run(weft, "no-such-command", env=environment, expected=2)[1]
    fleet = work / "fleet"
    fleet.mkdir(mode=0o700)
    hub = subprocess.Popen([weft, "hub", "--directory", fleet], env=environment, stderr=subprocess.DEVNULL)
    try:
        assert run(python, "with_a_hub.py", fleet, cwd=work, env=environment)[0] == "1 blue\n"
        assert run(weft, "kv", "get", "config", "color", "--directory", fleet, env=environment)[0] == "blue\n"
        hub.terminate()
        assert hub.wait(timeout=60) == 0
    finally:
        hub.kill()
        hub.wait()


def main():
    wheel, site = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    assert "-cp311-abi3-" in wheel.name, wheel
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        check_tag(wheel, work / "files")
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "LD_PRELOAD")}
        run(sys.executable, "-m", "venv", work / "venv")
        python = work / "venv/bin/python"
        run(python, "-m", "pip", "install", "--no-index", "--no-deps", "--disable-pip-version-check", wheel)
        for file, text in (("program.py", PROGRAM), ("binding.py", BINDING), ("peer.py", PEER),
                           ("with_a_hub.py", WITH_A_HUB)):
            (work / file).write_text(text)
        with_pyzmq = {**environment, "PYTHONPATH": str(site)}

        # Without pyzmq: a sentence.
        _, said = run(python, "-m", "weft.run", "program.py", cwd=work, env=environment, expected=2)
        assert "pyzmq cannot be imported" in said, said
        out, said = run(python, "-m", "weft.run", "program.py", "x", "-y", cwd=work, env=with_pyzmq)
        assert "is bound to Weft" in said and out == "arguments ['x', '-y']\n", (out, said)
        # A pyzmq whose calls go elsewhere: the mark is set, and nothing is preloaded.
        lib = run(python, "-c", "import weft; print(weft.library())", cwd=work, env=environment)[0].strip()
        _, said = run(python, "-m", "weft.run", "program.py", cwd=work, env={**with_pyzmq, "WEFT_RUN_PRELOADED": lib},
                      expected=2)
        assert "its calls go to another libzmq" in said, said
        _, said = run(python, "-m", "weft.run", "absent.py", cwd=work, env=with_pyzmq, expected=2)
        assert "there is no file absent.py" in said, said

        peer = ["env", f"PYTHONPATH={site}", sys.executable, str(work / "peer.py")]
        out, _ = run(python, "binding.py", *peer, cwd=work, env=environment)
        print(out, end="")
        check_command(python, work, environment)
        run(python, "-m", "pip", "uninstall", "--yes", "--quiet", "weft")
        assert not Path(lib).exists() and not (python.parent / "weft").exists(), "pip left files"
    print("the wheel works")


if __name__ == "__main__":
    main()
