# SPDX-License-Identifier: MIT
"""debug_page_test.py METRICS_SIDE FOLDER: the page /debug of an admin port in Chromium, on a narrow and a wide screen.

METRICS_SIDE is a program with a server of three sessions and handlers that ran. Leaves pictures of the page in the folder.
"""
import json
import pathlib
import subprocess
import sys
import time

import chromium
from checks import check, go_without_proxy
from chromium import SKIP, TIMEOUT

TOKEN = "0123456789-token"
WIDTHS = (400, 1300)
go_without_proxy()


def rows(page, table):
    return page.eval_on_selector_all(f"#{table} tbody tr",
                                     "all => all.map(row => [...row.cells].map(cell => cell.textContent.trim()))")


def wait_for(page, condition):
    """wait_for_function() evaluates a text inside the page, which the page's own policy forbids."""
    deadline = time.monotonic() + TIMEOUT
    while not page.evaluate(condition):
        check(f"in time: {condition}", True, time.monotonic() < deadline)
        page.wait_for_timeout(50)


def look(browser, url, width, picture):
    page = browser.new_page(viewport={"width": width, "height": 900})
    errors = []
    asked = set()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text)
            if message.type == "error" and "401" not in message.text else None)
    page.on("request", lambda request: asked.add(request.url.split("?")[0]))
    page.goto(url + "/debug")
    wait_for(page, "!document.getElementById('ask').hidden")  # the port has a token
    page.fill("#token", TOKEN)
    page.click("#ask button")
    wait_for(page, "document.querySelectorAll('#sessions tbody tr').length === 3")
    check("the token is not asked for again", True, page.evaluate("document.getElementById('ask').hidden"))

    cores = rows(page, "cores")
    check("cores", [("0.0", "answers"), ("0.1", "answers")], [tuple(row[:2]) for row in cores])
    check("sessions of the cores", 3, sum(int(row[6]) for row in cores))
    handlers = {tuple(row[:2]): int(row[2]) for row in rows(page, "handlers")}
    check("handlers", {("GET /hello", "shop"): 1, ("1", "echo"): 5, ("2", "echo"): 1, ("ping", "calls"): 1}, handlers)
    traces = rows(page, "traces")
    check("traces", [["span", "shop", "internal", "unset"]] * 3, [row[:4] for row in traces])
    sessions = rows(page, "sessions")
    check("peers", True, all(row[1].startswith("127.0.0.1:") for row in sessions))
    check("states", ["open"] * 3, [row[4] for row in sessions])
    check("empty cells", [], [cell for row in sessions + cores for cell in row if cell == ""])

    before = page.inner_text("#sessions tbody")
    wait_for(page, f"document.querySelector('#sessions tbody').innerText !== {json.dumps(before)}")
    wait_for(page, "Number(document.getElementById('state').textContent.split('reading ')[1]) > 3")
    page.select_option("#order", "age")
    wait_for(page, "performance.getEntriesByType('resource').some(each => each.name.endsWith('order=age'))")
    page.evaluate("document.fonts.ready")
    sizes = page.evaluate("[document.documentElement.scrollWidth, document.body.scrollWidth, window.innerWidth]")
    check(f"the page is not wider than {width} pixels", True, max(sizes[:2]) <= sizes[2] == width)
    check("shown cells", True, page.evaluate(
        "[...document.querySelectorAll('td')].every(cell => cell.getBoundingClientRect().right <= window.innerWidth)"))
    page.screenshot(path=str(picture), full_page=True)
    check("errors of the page", [], errors)
    check("other requests", set(), {each for each in asked if not each.startswith(url + "/debug")
                                    and not each.startswith("data:")})
    page.close()


def main():
    program = chromium.program()
    if program is None:
        print("skipped: no Chromium, or no Playwright in .venv: ./dev test installs it")
        return SKIP
    from playwright.sync_api import sync_playwright

    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    side = subprocess.Popen([sys.argv[1], "--token", TOKEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        endpoint = side.stdout.readline().strip()
        if not endpoint:
            return side.wait(TIMEOUT)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
            for width in WIDTHS:
                look(browser, endpoint.replace("tcp://", "http://"), width, folder / f"debug_{width}.png")
            browser.close()
        side.stdin.close()
        check("exit", 0, side.wait(TIMEOUT))
    finally:
        side.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
