# SPDX-License-Identifier: MIT
"""WebSocket: our library with a libzmq that has ws://, and with jszmq in a browser and in Node.js.

Each cell sends messages whose contents are checked, with either side binding; a browser cannot bind. libzmq is built
from the tree of 4.3.5 that ./dev compat libzmq fetches too. The last step looks at the page of examples/browser.
"""

import functools
import http.server
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/browser"))

import run as example  # noqa: E402
from weft_compat.reference import begin  # noqa: E402
from weft_compat.runs import free_port, suite_parser  # noqa: E402

PYTHON = "/usr/bin/python3"  # with Debian's python3-zmq, which loads the system's libzmq.so.5, or that of LD_LIBRARY_PATH
PEER = ROOT / "tests/compat/ws_peer.py"
LIMIT = 120  # seconds for a cell
PARTNERS = {"push": "pull", "pull": "push", "pub": "sub", "sub": "pub", "req": "rep", "rep": "req"}
PARTNERS |= {"dealer": "router", "router": "dealer"}

# One role of ws_peer.py on jszmq: run(role, way, endpoint, count) is done when every message was checked.
PEER_JS = """
(function (root, zmq, Buffer) {
  const kinds = {pub: zmq.XPub, sub: zmq.Sub, req: zmq.Req, rep: zmq.Rep, dealer: zmq.Dealer, router: zmq.Router,
                 push: zmq.Push, pull: zmq.Pull};
  const alphabet = Array.from({length: 1000}, (_, i) => String.fromCharCode(97 + (i % 26))).join("");
  const make = (n) => [String(n), alphabet.slice(n % 26, (n % 26) + (n % 301))];
  root.run = (role, way, endpoint, count) =>
    new Promise((resolve, reject) => {
      const socket = new kinds[role]();
      const check = (n, parts) => {
        const want = make(n);
        if (parts.length !== 2 || parts.some((part, i) => part.toString() !== want[i]))
          reject(new Error(`message ${n} is ${parts}`));
      };
      const send = (from) => { for (let n = from; n < count; ++n) socket.send(make(n)); };
      let received = 0;
      socket.on("message", (...parts) => {
        if (role === "pub") return send(0);  // the subscription
        if (role === "router") { check(received++, parts.slice(1)); socket.send(parts); }
        else if (role === "rep") { check(received++, parts); socket.send(parts); }
        else if (role === "req") { check(received++, parts); if (received < count) socket.send(make(received)); }
        else check(received++, parts);
        if (received === count) resolve("ok");
      });
      if (role === "sub") socket.subscribe("");
      way === "bind" ? socket.bind(endpoint) : socket.connect(endpoint);
      if (role === "req") socket.send(make(0));
      // jszmq drops what is sent before a peer is there.
      if ((role === "push" || role === "dealer") && way === "bind") {
        const attach = socket.attachEndpoint.bind(socket);
        socket.attachEndpoint = (peer) => { attach(peer); setTimeout(() => send(0)); };
      } else if (role === "push" || role === "dealer") send(0);
      if (role === "push" || role === "pub") resolve("ok");
    });
})(globalThis, globalThis.zmq || require("jszmq"), globalThis.Buffer);
"""


def make_certificate(folder):
    """A certificate that is its own authority, and its key: files in the folder."""
    folder.mkdir(exist_ok=True)
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=weft.example"]
    command += ["-addext", "subjectAltName=DNS:weft.example", "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def has_wss(library):
    """Whether libzmq was built with wss://."""
    command = [PYTHON, "-B", PEER, "has", "WSS"]
    environment = dict(os.environ, LD_LIBRARY_PATH=str(library.parent))
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout == "True\n"


class PyPeer:
    """A role in a process of its own, on the given library."""

    def __init__(self, library, role, way, endpoint, count, *folder):
        command = [PYTHON, "-B", PEER, role, way, endpoint, str(count), *folder]
        environment = dict(os.environ, LD_LIBRARY_PATH=str(library.parent))
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.endpoint = self.process.stdout.readline().strip() if way == "bind" else endpoint

    def finish(self):
        """Waits until every message was checked. Returns "" or what is wrong."""
        timer = threading.Timer(LIMIT, self.process.kill)
        timer.start()
        said = self.process.stdout.readline()
        timer.cancel()
        return "" if said == "ok\n" else said + self.process.stdout.read()

    def end(self):
        self.process.stdin.close()
        self.process.wait(LIMIT)
        self.process.stdout.close()


class NodePeer(PyPeer):
    """A role on jszmq in Node.js."""

    def __init__(self, folder, role, way, endpoint, count):
        (folder / "peer.js").write_text(PEER_JS)
        ends = "process.stdin.on('end', () => process.exit(0)).resume()"
        code = f"require('./peer.js'); run('{role}', '{way}', '{endpoint}', {count})"
        code += f".then(console.log, (e) => console.log(e.message)); {ends}"
        self.process = subprocess.Popen(
            ["node", "-e", code], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.endpoint = endpoint


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Browser:
    """Headless Chromium with a page that has jszmq."""

    def __init__(self, folder):
        from playwright.sync_api import sync_playwright

        self.playwright = sync_playwright().start()
        self.browser = self.playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        (folder / "page.html").write_text("<!doctype html><script src=jszmq.js></script><script src=peer.js></script>")
        (folder / "peer.js").write_text(PEER_JS)
        handler = functools.partial(QuietHandler, directory=str(folder))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def run(self, role, endpoint, count):
        page = self.browser.new_page()
        page.goto(f"http://127.0.0.1:{self.server.server_port}/page.html")
        page.set_default_timeout(LIMIT * 1000)
        try:
            return page, page.evaluate(f"run('{role}', 'connect', '{endpoint}', {count})")
        except Exception as error:  # noqa: BLE001: whatever the page threw is the cell's result
            return page, str(error)

    def photograph(self, url, file):
        page = self.browser.new_page(viewport={"width": 960, "height": 720})
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(url)
        page.wait_for_function("Number(document.getElementById('count').textContent) > 300", timeout=LIMIT * 1000)
        page.wait_for_function("document.getElementById('reply').textContent === 'HELLO FROM THE PAGE'", timeout=LIMIT * 1000)
        page.screenshot(path=str(file))
        return errors

    def close(self):
        self.browser.close()
        self.playwright.stop()
        self.server.shutdown()


def cell_of_libraries(ours, theirs, role, we_bind, count, *folder):
    """Over wss:// with the certificate in the folder, else over ws://."""
    binder, other = (ours, theirs) if we_bind else (theirs, ours)
    one = PyPeer(binder, role, "bind", ("wss" if folder else "ws") + "://127.0.0.1:*/path", count, *folder)
    two = PyPeer(other, PARTNERS[role], "connect", one.endpoint, count, *folder)
    wrong = [peer.finish() for peer in (one, two)]
    for peer in (two, one):
        peer.end()
    return "; ".join(filter(None, wrong))


def cell_of_node(ours, folder, role, count):
    theirs = NodePeer(folder, role, "bind", f"ws://127.0.0.1:{free_port()}/", count)
    us = PyPeer(ours, PARTNERS[role], "connect", theirs.endpoint, count)
    wrong = [us.finish(), theirs.finish()]
    us.end()
    theirs.end()
    return "; ".join(filter(None, wrong))


def cell_of_browser(ours, browser, role, count):
    us = PyPeer(ours, PARTNERS[role], "bind", "ws://127.0.0.1:*", count)
    page, said = browser.run(role, us.endpoint, count)
    wrong = us.finish()
    page.close()
    us.end()
    return wrong or ("" if said == "ok" else said)


def show(name, cell):
    """Runs one cell; returns what is wrong."""
    since = time.monotonic()
    wrong = cell().strip()
    print(f"{'FAILED' if wrong else 'ok':6s} {time.monotonic() - since:6.1f} s  {name} {wrong[:400]}", flush=True)
    return wrong


def look(browser, jszmq, picture):
    """The page of examples/browser: what is wrong with it."""
    server, process = example.serve(0, example.find_program(), jszmq)
    try:
        return "; ".join(browser.photograph(f"http://127.0.0.1:{server.server_port}/", picture))
    finally:
        process.stdin.close()
        process.wait(LIMIT)
        server.shutdown()


def cells(ours, theirs, jszmq, browser, work, count):
    """(name, function) of each cell."""
    folder = jszmq.parent
    layers = {"ws": (), "wss": (make_certificate(work / "certificate"),)} if has_wss(theirs) else {"ws": ()}
    if len(layers) == 1:
        print("libzmq has no wss here: its build found no GnuTLS (Debian: libgnutls28-dev)")
    for layer, certificate in layers.items():
        for role, partner in PARTNERS.items():
            for we_bind in (True, False):
                name = f"libzmq, {layer}: {role} binds on {'ours' if we_bind else 'theirs'}, {partner} connects"
                yield name, functools.partial(cell_of_libraries, ours, theirs, role, we_bind, count, *certificate)
    for role in PARTNERS:
        yield f"Node.js: {role} binds on jszmq", functools.partial(cell_of_node, ours, folder, role, count)
    for role in PARTNERS:
        yield f"Chromium: {role} connects on jszmq", functools.partial(cell_of_browser, ours, browser, role, count)
    yield f"Chromium: examples/browser in {work / 'page.png'}", functools.partial(look, browser, jszmq, work / "page.png")


def main():
    parser = suite_parser("ws", __doc__)
    parser.add_argument("--messages", type=int, default=10_000, help="of each cell (default %(default)s)")
    arguments, ours, theirs, work = begin(parser)
    jszmq = example.bundle_jszmq(ROOT / "build/npm")
    since = time.monotonic()
    browser = Browser(jszmq.parent)
    every = cells(ours, theirs, jszmq, browser, work, arguments.messages)
    wanted = [cell for cell in every if not arguments.names or any(name in cell[0] for name in arguments.names)]
    outcomes = {name: show(name, cell) for name, cell in wanted}
    browser.close()
    failed = [name for name, wrong in outcomes.items() if wrong]
    if arguments.json:
        passed = {name: wrong or "passed" for name, wrong in outcomes.items()}
        arguments.json.write_text(json.dumps({"tests": passed, "worse": failed}, indent=1))
    if not outcomes:
        sys.exit("compat: no cell has such a name")
    print(f"{len(outcomes)} cells of {arguments.messages} messages in {time.monotonic() - since:.0f} s")
    print(f"{len(failed)} failed: {'; '.join(failed)}" if failed else "everything passed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
