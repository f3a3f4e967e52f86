# SPDX-License-Identifier: MIT
"""admin_test.py ADMIN_SIDE: the admin port as Python's HTTP client sees it, and curl if installed."""
import http.client
import re
import shutil
import socket
import subprocess
import sys

from checks import check

TIMEOUT = 60


def ask(connection, method, path):
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read().decode()


def main():
    side = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        lines, admin = (side.stdout.readline().strip().removeprefix("tcp://") for _ in range(2))
        if not admin:
            sys.exit(side.wait(TIMEOUT))
        host, port = lines.split(":")
        peer = socket.create_connection((host, int(port)), TIMEOUT)
        peer.sendall(b"hello\n")
        check("echo", b"hello\n", peer.makefile("rb").readline())

        connection = http.client.HTTPConnection(admin, timeout=TIMEOUT)
        check("healthz", (200, "alive\n"), ask(connection, "GET", "/healthz")[::2])
        kept = connection.sock
        check("readyz", (200, "ready\n"), ask(connection, "GET", "/readyz")[::2])
        status, headers, text = ask(connection, "GET", "/metrics")
        check("metrics", (200, "text/plain; version=0.0.4; charset=utf-8"), (status, headers["Content-Type"]))
        check("frames", ["1"], re.findall(r'^weft_server_frames_total\{direction="in",server="lines"\} (\d+)$', text, re.M))
        status, headers, text = ask(connection, "HEAD", "/metrics")
        check("head", (200, "", True), (status, text, int(headers["Content-Length"]) > 1000))
        check("404", 404, ask(connection, "GET", "/nothing")[0])
        check("405", "GET, HEAD", ask(connection, "PUT", "/metrics")[1]["Allow"])
        check("one connection for all", True, connection.sock is kept)
        if shutil.which("curl"):
            out = subprocess.run(["curl", "-sS", "-w", " %{http_code}", f"http://{admin}/healthz"],
                                 capture_output=True, text=True, timeout=TIMEOUT)
            check("curl", "alive\n 200", out.stdout + out.stderr)

        # A peer that keeps its end open delays the drain; the admin port reports the drain.
        side.stdin.write("drain\n")
        side.stdin.flush()
        check("drain", "draining\n", side.stdout.readline())
        status, _, text = ask(connection, "GET", "/readyz")
        check("not ready", (503, True), (status, text.startswith("not ready\nlines: ")))
        check("alive", 200, ask(connection, "GET", "/healthz")[0])
        peer.close()
        side.stdin.close()
        check("exit", 0, side.wait(TIMEOUT))
    finally:
        side.kill()


if __name__ == "__main__":
    main()
