# SPDX-License-Identifier: MIT
"""For the scripts of this folder: pages in headless Chromium, and the programs whose pages they are."""
import contextlib
import shutil
import subprocess

from checks import check, go_without_proxy

TIMEOUT = 60  # seconds for each wait
SKIP = 77
NAMES = ("chromium", "chromium-browser", "google-chrome")


def program():
    """The path of Chromium. None: there is none, or no Playwright to drive it."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return None
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextlib.contextmanager
def browser(path, errors):
    """A function that opens a page; the faults of its scripts are added to `errors`, with_console also its failed requests."""
    from playwright.sync_api import sync_playwright

    go_without_proxy()
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--no-proxy-server"])

        def open_page(url, with_console=False):
            page = chromium.new_page(viewport={"width": 800, "height": 600})
            page.set_default_timeout(TIMEOUT * 1000)
            page.on("pageerror", lambda error: errors.append(str(error)))
            if with_console:
                page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
            page.goto(url)
            return page

        yield open_page
        chromium.close()


@contextlib.contextmanager
def serving(*command):
    """The address of an example, without a scheme. The example must run until the end of the block."""
    side = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield side.stdout.readline().strip().removeprefix("serving at tcp://")
        check(f"{command[0]} runs", None, side.poll())
    finally:
        side.kill()
        side.wait()


def open_chat(open_page, url):
    """The page of examples/web_chat, connected."""
    page = open_page(url, with_console=True)
    page.wait_for_function("document.getElementById('state').textContent.startsWith('connected')")
    return page


def wait_for_line(page, text):
    page.wait_for_function("text => document.getElementById('lines').innerText.includes(text)", arg=text)


def say(page, text):
    """Types a line as a person does."""
    page.fill("#line", text)
    page.press("#line", "Enter")
