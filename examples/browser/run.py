#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the publisher and serves the page: python3 examples/browser/run.py"""

import argparse
import functools
import http.server
import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Modules of Node.js that only the listening side of jszmq uses, and a page has none.
NOT_IN_A_PAGE = ("url", "http", "https", "net")

ENTRY = """
globalThis.process ??= {env: {}, nextTick: (run) => queueMicrotask(run)};
globalThis.Buffer = require("buffer").Buffer;
globalThis.zmq = require("jszmq");
"""


def fetch_jszmq(work):
    """Installs the packages of deps/npm.txt below `work`, once; returns the folder."""
    if shutil.which("npm") is None:
        print("npm is missing; it downloads jszmq (Debian: apt-get install npm)", file=sys.stderr)
        sys.exit(3)
    lines = [line.split("#")[0].strip() for line in (ROOT / "deps/npm.txt").read_text().splitlines()]
    packages = [line for line in lines if line]
    stamp = work / "packages.txt"
    if not stamp.exists() or stamp.read_text().split() != packages:
        work.mkdir(parents=True, exist_ok=True)
        (work / "package.json").write_text('{"private": true}')
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", *packages], cwd=work, check=True)
        stamp.write_text("\n".join(packages))
    return work


def bundle_jszmq(work):
    """One file for a page, which sets `zmq`; returns its path."""
    folder = fetch_jszmq(work)
    (folder / "nothing.js").write_text("module.exports = {};\n")
    (folder / "entry.js").write_text(ENTRY)
    command = ["node_modules/.bin/esbuild", "entry.js", "--bundle", "--outfile=jszmq.js", "--define:global=globalThis"]
    command += [f"--alias:{name}=./nothing.js" for name in NOT_IN_A_PAGE] + ["--log-level=error", "--minify"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "jszmq.js"


def find_program():
    for preset in ("release", "dev"):
        program = ROOT / f"build/{preset}/examples/browser"
        if program.exists():
            return program
    subprocess.run(["cmake", "--preset", "dev"], cwd=ROOT, check=True)
    subprocess.run(["cmake", "--build", "--preset", "dev", "--target", "browser"], cwd=ROOT, check=True)
    return ROOT / "build/dev/examples/browser"


class Page(http.server.SimpleHTTPRequestHandler):
    """The files of this folder, and what run.py makes."""

    def __init__(self, made, *arguments, **options):
        self.made = made
        super().__init__(*arguments, directory=str(HERE), **options)

    def do_GET(self):
        made = self.made.get(self.path)
        if made is None:
            return super().do_GET()
        kind, content = made
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def serve(port, program, jszmq):
    """Starts the program and the page. Returns the page's server, which runs, and the program's process."""
    command = [str(program), "ws://127.0.0.1:*", "ws://127.0.0.1:*"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    publish, answer = process.stdout.readline().split()
    endpoints = json.dumps({"publish": publish, "answer": answer}).encode()
    made = {"/endpoints.json": ("application/json", endpoints), "/jszmq.js": ("text/javascript", jszmq.read_bytes())}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Page, made))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, process


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8080, help="of the page (default %(default)s)")
    port = parser.parse_args().port
    server, process = serve(port, find_program(), bundle_jszmq(ROOT / "build/npm"))
    print(f"the page is at http://127.0.0.1:{server.server_port}/ ; Ctrl-C ends")
    try:
        process.wait()
    except KeyboardInterrupt:
        process.stdin.close()
    server.shutdown()


if __name__ == "__main__":
    main()
