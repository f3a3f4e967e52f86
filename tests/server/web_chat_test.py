# SPDX-License-Identifier: MIT
"""web_chat_test.py WEB_CHAT FOLDER: the page of examples/web_chat in Chromium, beside a client of the package websockets.

Leaves a picture of the page in the folder.
"""
import pathlib
import shutil
import subprocess
import sys

from checks import check, go_without_proxy

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIMEOUT = 60
SKIP = 77
go_without_proxy()


def wait_for(page, text):
    page.wait_for_function("text => document.getElementById('lines').innerText.includes(text)", arg=text, timeout=TIMEOUT * 1000)


def chat(browser, url, picture):
    """Two pages and a program talk in one room."""
    from websockets.sync.client import connect

    pages = []
    errors = []
    for name in ("ada", "grace"):
        page = browser.new_page(viewport={"width": 800, "height": 600})
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.goto(f"{url}/?name={name}")
        page.wait_for_function("document.getElementById('state').textContent.startsWith('connected')", timeout=TIMEOUT * 1000)
        pages.append(page)
    ada, grace = pages
    wait_for(ada, "grace: joined")
    with connect(url.replace("http://", "ws://") + "/chat?name=robot") as robot:
        wait_for(grace, "robot: joined")
        ada.fill("#line", "<b>hello</b> κόσμε")
        ada.press("#line", "Enter")
        wait_for(grace, "ada: <b>hello</b> κόσμε")
        lines = [robot.recv(TIMEOUT), robot.recv(TIMEOUT)]
        check("the lines of a program", ["robot: joined", "ada: <b>hello</b> κόσμε"], lines)
        robot.send("hello from a program")
        wait_for(ada, "robot: hello from a program")
        ada.screenshot(path=str(picture))
    wait_for(ada, "robot: left")
    grace.close()
    wait_for(ada, "grace: left")
    check("errors of the page", [], errors)


def main():
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        import websockets  # noqa: F401
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        print("skipped: no Chromium, or no Playwright or no websockets in .venv: ./dev test installs them")
        return SKIP
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    side = subprocess.Popen([sys.argv[1], "0", ROOT / "examples/web_chat"], stdout=subprocess.PIPE, text=True)
    try:
        url = side.stdout.readline().strip().replace("serving at tcp://", "http://")
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
            chat(browser, url, folder / "web_chat.png")
            browser.close()
        check("the server runs", None, side.poll())
    finally:
        side.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
