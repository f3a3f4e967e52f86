# SPDX-License-Identifier: MIT
"""web_gateway_test.py WEB_GATEWAY: examples/web_gateway between pyzmq, topics of its host and WebSocket clients."""
import os
import pathlib
import subprocess
import sys
import tempfile

from checks import check, go_without_proxy

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIMEOUT = 60
SKIP = 77
go_without_proxy()


def pass_on(zmq, connect, side):
    url = side.stdout.readline().strip().replace("serving at tcp://", "ws://")
    context = zmq.Context()
    publisher = context.socket(zmq.XPUB)
    publisher.rcvtimeo = publisher.sndtimeo = TIMEOUT * 1000
    publisher.connect(side.stdout.readline().strip())
    check("the subscription", b"\x01", publisher.recv())
    with connect(f"{url}/chat") as one, connect(f"{url}/chat") as two:
        one.send("a line of a page")  # a message of the topic web.lines, which comes back to all
        for page in (one, two):
            check("a line of a page", "web.lines: a line of a page", page.recv(TIMEOUT))
        publisher.send_multipart([b"news", b"\xff is no text"])  # passed over
        publisher.send_multipart([b"news", "κόσμε".encode()])
        for page in (one, two):
            check("a message of a socket", "news: κόσμε", page.recv(TIMEOUT))
    context.destroy(linger=0)


def main():
    try:
        import zmq
        from websockets.sync.client import connect
    except ImportError:
        print("skipped: there is no pyzmq or no websockets in .venv: ./dev test installs both")
        return SKIP
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, XDG_RUNTIME_DIR=folder)  # a fleet of its own
        command = [sys.argv[1], "0", "tcp://127.0.0.1:*", ROOT / "examples/web_chat"]
        side = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            pass_on(zmq, connect, side)
            side.stdin.close()
            check("the end", 0, side.wait(TIMEOUT))
        finally:
            side.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
