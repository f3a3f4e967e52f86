# SPDX-License-Identifier: MIT
"""web_chat_test.py WEB_CHAT FOLDER: the page of examples/web_chat in Chromium, beside a client of the package websockets.

Leaves a picture of the page in the folder.
"""
import pathlib
import sys

import chromium
from checks import check
from chromium import say, wait_for_line

ROOT = pathlib.Path(__file__).resolve().parents[2]


def chat(open_page, address, picture):
    """Two pages and a program talk in one room."""
    from websockets.sync.client import connect

    ada, grace = (chromium.open_chat(open_page, f"http://{address}/?name={name}") for name in ("ada", "grace"))
    wait_for_line(ada, "grace: joined")
    with connect(f"ws://{address}/chat?name=robot") as robot:
        wait_for_line(grace, "robot: joined")
        say(ada, "<b>hello</b> κόσμε")
        wait_for_line(grace, "ada: <b>hello</b> κόσμε")
        lines = [robot.recv(chromium.TIMEOUT), robot.recv(chromium.TIMEOUT)]
        check("the lines of a program", ["robot: joined", "ada: <b>hello</b> κόσμε"], lines)
        robot.send("hello from a program")
        wait_for_line(ada, "robot: hello from a program")
        ada.screenshot(path=str(picture))
    wait_for_line(ada, "robot: left")
    grace.close()
    wait_for_line(ada, "grace: left")


def main():
    program = chromium.program()
    try:
        import websockets  # noqa: F401
    except ImportError:
        program = None
    if program is None:
        print("skipped: no Chromium, or no Playwright or no websockets in .venv: ./dev test installs them")
        return chromium.SKIP
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    errors = []
    with chromium.serving(sys.argv[1], "0", ROOT / "examples/web_chat") as address:
        with chromium.browser(program, errors) as open_page:
            chat(open_page, address, folder / "web_chat.png")
    check("errors of the pages", [], errors)
    return 0


if __name__ == "__main__":
    sys.exit(main())
