# SPDX-License-Identifier: MIT
"""Installs a wheel into a fresh environment and uses it from outside the repository, with pyzmq as the peer.

usage: python_test.py WHEEL PEER_SITE: PEER_SITE is the folder that has pyzmq, which only the peers see.
"""

import os
import subprocess
import sys
import tempfile
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
        except asyncio.CancelledError:
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

asyncio.run(batches())
asyncio.run(both_ways())
asyncio.run(shared())
print("binding", weft.__version__)
"""

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


def main():
    wheel, site = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    assert "-py3-none-" in wheel.name, wheel
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "LD_PRELOAD")}
        run(sys.executable, "-m", "venv", work / "venv")
        python = work / "venv/bin/python"
        run(python, "-m", "pip", "install", "--no-index", "--no-deps", "--disable-pip-version-check", wheel)
        for file, text in (("program.py", PROGRAM), ("binding.py", BINDING), ("peer.py", PEER)):
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
        run(python, "-m", "pip", "uninstall", "--yes", "--quiet", "weft")
        assert not Path(lib).exists(), "pip left the library"
    print("the wheel works")


if __name__ == "__main__":
    main()
