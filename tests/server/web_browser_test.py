# SPDX-License-Identifier: MIT
"""web_browser_test.py FOLDER DEFLATE WEB_HELLO WEBSOCKET_ECHO [WEB_REST]: these examples as scripts in Chromium see them.

DEFLATE is 1 if WebSocket messages are compressed. Leaves a picture of the page of examples/web_rest in the folder.
"""
import contextlib
import pathlib
import sys

import chromium
from checks import check

FETCHES = """async () => {
  const post = (body) => fetch("/echo", {method: "POST", body});
  const texts = [...Array(40).keys()].map((i) => "κόσμε ".repeat(i * i));
  const echoed = await Promise.all(texts.map(async (text) => (await (await post(text)).text()) === text));
  const form = await (await post(new URLSearchParams({a: "b c"}))).text();
  const large = new Uint8Array(500000).map((_, i) => (i * 7) & 255);
  const back = new Uint8Array(await (await post(large)).arrayBuffer());
  const head = await fetch("/", {method: "HEAD"});
  return {echoed: echoed.every(Boolean), form, large: back.length === large.length && back.every((byte, i) => byte === large[i]),
          head: [head.status, head.headers.get("Content-Length"), await head.text()], none: (await fetch("/none")).status};
}"""
FETCHED = {"echoed": True, "form": "a=b+c", "large": True, "head": [200, "5", ""], "none": 404}

ECHOES = """async (url) => {
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  await new Promise((done, fail) => { socket.onopen = done; socket.onerror = () => fail(new Error("no WebSocket")); });
  const ask = (message) => new Promise((done, fail) => {
    socket.onmessage = (event) => done(event.data);
    socket.onclose = (event) => fail(new Error(`closed: ${event.code} ${event.reason}`));
    socket.send(message);
  });
  const wrong = [];
  for (const size of [0, 1, 62, 63, 125, 126, 32767, 32768, 65535, 65536, 1000000]) {
    const text = "κ".repeat(size);
    if ((await ask(text)) !== text) wrong.push(`text ${size}`);
    const random = new Uint8Array(size).map((_, i) => (Math.imul(i, 2654435761) >>> 13) & 255);
    const back = new Uint8Array(await ask(random));
    if (back.length !== size || !back.every((byte, i) => byte === random[i])) wrong.push(`bytes ${size}`);
  }
  const closed = new Promise((done) => (socket.onclose = (event) => done([event.code, event.reason, event.wasClean])));
  const compressed = socket.extensions.startsWith("permessage-deflate");
  socket.close(4000, "done");
  return {wrong, compressed, closed: await closed};
}"""

ROWS = """async () => {
  const ask = async (method, path, value) => {
    const answer = await fetch(path, {method, body: value && JSON.stringify(value)});
    const text = await answer.text();
    return {status: answer.status, place: answer.headers.get("Location"), value: text && JSON.parse(text)};
  };
  const made = await ask("POST", "/notes", {text: "κόσμε"});
  const changed = await ask("PUT", made.place, {text: "of a page"});
  const read = await ask("GET", made.place);
  const other = await ask("POST", "/notes", {text: "to be removed"});
  const removed = await ask("DELETE", other.place);
  return {statuses: [made, changed, read, removed].map((one) => one.status), text: read.value.text};
}"""


def talk(open_page, folder, deflate, hello, echo, rest=None):
    page = open_page(f"http://{hello}/")
    check("the page", "hello", page.inner_text("body"))
    check("fetch", FETCHED, page.evaluate(FETCHES))
    found = page.evaluate(ECHOES, f"ws://{echo}/")
    # The server answers a close with its status alone.
    check("WebSocket", {"wrong": [], "compressed": deflate, "closed": [4000, "", True]}, found)
    if rest is not None:
        page = open_page(f"http://{rest}/notes")
        check("rows", {"statuses": [201, 200, 200, 204], "text": "of a page"}, page.evaluate(ROWS))
        page.reload()
        check("the row on the page", True, "of a page" in page.inner_text("body"))
        page.screenshot(path=str(folder / "web_rest.png"))


def main():
    program = chromium.program()
    if program is None:
        print("skipped: no Chromium, or no Playwright in .venv: ./dev test installs them")
        return chromium.SKIP
    folder, deflate, *programs = sys.argv[1:]
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    errors = []
    with contextlib.ExitStack() as stack:
        addresses = [stack.enter_context(chromium.serving(each, "0")) for each in programs]
        open_page = stack.enter_context(chromium.browser(program, errors))
        talk(open_page, pathlib.Path(folder), deflate == "1", *addresses)
    check("errors of the pages", [], errors)
    return 0


if __name__ == "__main__":
    sys.exit(main())
