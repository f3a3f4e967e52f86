# SPDX-License-Identifier: MIT
"""rest_test.py WEB_REST: examples/web_rest as requests, httpx and curl see it: rows of a table, and bodies in pieces."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from checks import check, go_without_proxy

TIMEOUT = 60
SKIP = 77
go_without_proxy()


def rows(name, client, url):
    """Creates, reads, changes and deletes rows, by a client with the methods of requests."""
    made = client.post(f"{url}/notes", json={"text": "first κόσμε"})
    place = made.headers["Location"]
    check(f"{name}: a row", (201, "first κόσμε"), (made.status_code, made.json()["text"]))
    check(f"{name}: the row again", made.json(), client.get(url + place).json())
    check(f"{name}: another text", 200, client.put(url + place, json={"text": "second"}).status_code)
    check(f"{name}: all rows", "second", client.get(f"{url}/notes").json()[made.json()["id"]])
    for body in (b"no JSON", b'{"text": 7}', b"[]", b'{"text": "\xff"}', b"[" * 100_000):
        check(f"{name}: {body[:20]}", 400, client.post(f"{url}/notes", content=body).status_code)
    check(f"{name}: the end of the row", 204, client.delete(url + place).status_code)
    check(f"{name}: no row", 404, client.get(url + place).status_code)
    refused = client.patch(f"{url}/notes", content=b"")
    check(f"{name}: another method", (405, "GET, HEAD, POST"), (refused.status_code, refused.headers["Allow"]))


def files(name, client, url, chunks):
    """A large body goes up in chunks, and comes down as it is read."""
    sent = client.put(f"{url}/files/{name}", content=iter(chunks))
    size = sum(map(len, chunks))
    check(f"{name}: the size", (201, {"size": size}), (sent.status_code, sent.json()))
    check(f"{name}: the bytes", b"".join(chunks), client.get(f"{url}/files/{name}").content)
    check(f"{name}: the head", str(size), client.head(f"{url}/files/{name}").headers["Content-Length"])
    check(f"{name}: no file", 404, client.get(f"{url}/files/none").status_code)


class Requests:
    """requests, with httpx's word for a body."""

    def __init__(self):
        import requests

        self.session = requests.Session()

    def __getattr__(self, method):
        def call(url, content=None, **more):
            return getattr(self.session, method)(url, data=content, timeout=TIMEOUT, **more)

        return call


def by_curl(url, chunks):
    curl = ["curl", "-sS", "--max-time", str(TIMEOUT)]
    body = b"".join(chunks)
    with tempfile.NamedTemporaryFile() as file:
        file.write(body)
        file.flush()
        for more in ([], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect:"]):  # with 100-continue, except the last
            out = subprocess.run([*curl, *more, "-T", file.name, f"{url}/files/curl"], capture_output=True, timeout=TIMEOUT)
            check(f"curl {more}", (b"", {"size": len(body)}), (out.stderr, json.loads(out.stdout)))
    for more in ([], ["--http1.0"], ["-H", "Connection: close"]):
        out = subprocess.run([*curl, *more, f"{url}/files/curl"], capture_output=True, timeout=TIMEOUT)
        check(f"curl {more}", (b"", body), (out.stderr, out.stdout))


def main():
    try:
        import httpx
        import requests  # noqa: F401
    except ImportError:
        print("skipped: there is no httpx or no requests in .venv: ./dev test installs both")
        return SKIP
    side = subprocess.Popen([sys.argv[1], "0"], stdout=subprocess.PIPE, text=True)
    try:
        url = side.stdout.readline().strip().replace("serving at tcp://", "http://")
        chunks = [os.urandom(100_000) for _ in range(100)]
        with httpx.Client(timeout=TIMEOUT) as client:
            for name, one in (("requests", Requests()), ("httpx", client)):
                rows(name, one, url)
                files(name, one, url, chunks)
        if shutil.which("curl"):
            by_curl(url, chunks)
        check("the server runs", None, side.poll())
    finally:
        side.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
