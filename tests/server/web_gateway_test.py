# SPDX-License-Identifier: MIT
"""web_gateway_test.py WEB_GATEWAY [FOLDER]: examples/web_gateway between pyzmq, topics of its host and WebSocket clients.

The clients are those of the package websockets. With a folder they are pages in Chromium, and their picture stays there.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import chromium
from checks import check, go_without_proxy
from chromium import say, wait_for_line

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIMEOUT = 60
SKIP = 77
go_without_proxy()


def to_clients(publisher, address):
    from websockets.sync.client import connect

    with connect(f"ws://{address}/chat") as one, connect(f"ws://{address}/chat") as two:
        one.send("a line of a page")  # a message of the topic web.lines, which comes back to all
        for page in (one, two):
            check("a line of a page", "web.lines: a line of a page", page.recv(TIMEOUT))
        publisher.send_multipart([b"news", b"\xff is no text"])  # passed over
        publisher.send_multipart([b"news", "κόσμε".encode()])
        for page in (one, two):
            check("a message of a socket", "news: κόσμε", page.recv(TIMEOUT))


def to_pages(publisher, address, program, folder):
    errors = []
    with chromium.browser(program, errors) as open_page:
        one, two = (chromium.open_chat(open_page, f"http://{address}/?name={name}") for name in ("one", "two"))
        say(one, "a line of a page")
        for page in (one, two):
            wait_for_line(page, "web.lines: a line of a page")
        publisher.send_multipart([b"news", "<i>κόσμε</i>".encode()])
        for page in (one, two):
            wait_for_line(page, "news: <i>κόσμε</i>")
        two.screenshot(path=str(folder / "web_gateway.png"))
        one.close()
        publisher.send_multipart([b"news", b"one has left"])
        wait_for_line(two, "news: one has left")
    check("errors of the pages", [], errors)


def pass_on(zmq, side, talk):
    address = side.stdout.readline().strip().removeprefix("serving at tcp://")
    context = zmq.Context()
    publisher = context.socket(zmq.XPUB)
    publisher.rcvtimeo = publisher.sndtimeo = TIMEOUT * 1000
    publisher.connect(side.stdout.readline().strip())
    check("the subscription", b"\x01", publisher.recv())
    talk(publisher, address)
    context.destroy(linger=0)


def talk_of(arguments):
    """What to do beside the gateway, and why that cannot be done here."""
    if not arguments:
        return to_clients, None
    program, folder = chromium.program(), pathlib.Path(arguments[0])
    if program is None:
        return None, "skipped: no Chromium, or no Playwright in .venv: ./dev test installs them"
    folder.mkdir(parents=True, exist_ok=True)
    return (lambda publisher, address: to_pages(publisher, address, program, folder)), None


def main():
    talk, why = talk_of(sys.argv[2:])
    try:
        import websockets  # noqa: F401
        import zmq
    except ImportError:
        why = "skipped: there is no pyzmq or no websockets in .venv: ./dev test installs both"
    if why is not None:
        print(why)
        return SKIP
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, XDG_RUNTIME_DIR=folder)  # a fleet of its own
        command = [sys.argv[1], "0", "tcp://127.0.0.1:*", ROOT / "examples/web_chat"]
        side = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            pass_on(zmq, side, talk)
            side.stdin.close()
            check("the end", 0, side.wait(TIMEOUT))
        finally:
            side.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
