# SPDX-License-Identifier: MIT
"""web_test.py WEB_HELLO: examples/web_hello as Python's HTTP client, a bare socket and, if installed, curl, requests and
httpx see it."""
import http.client
import shutil
import socket
import subprocess
import sys

from checks import check, go_without_proxy

TIMEOUT = 60
go_without_proxy()


def ask(connection, method, path, body=None, headers=None):
    connection.request(method, path, body, headers or {}, encode_chunked=body is not None and not isinstance(body, bytes))
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read()


def raw(address, request):
    """All that the server says to the bytes, to its end."""
    with socket.create_connection(address, TIMEOUT) as peer:
        peer.sendall(request)
        return b"".join(iter(lambda: peer.recv(65536), b""))


def by_python(address):
    connection = http.client.HTTPConnection(*address, timeout=TIMEOUT)
    status, headers, body = ask(connection, "GET", "/")
    check("hello", (200, b"hello", "text/plain; charset=utf-8"), (status, body, headers["Content-Type"]))
    check("a date", True, headers["Date"].endswith(" GMT"))
    kept = connection.sock
    status, headers, body = ask(connection, "HEAD", "/")
    check("head", (200, b"", "5"), (status, body, headers["Content-Length"]))
    check("echo", (200, b"x" * 100_000), ask(connection, "POST", "/echo", b"x" * 100_000)[::2])
    chunks = {"Transfer-Encoding": "chunked"}
    check("chunks", (200, b"one two three"),
          ask(connection, "POST", "/echo", iter([b"one ", b"two ", b"three"]), chunks)[::2])
    check("404", 404, ask(connection, "GET", "/nothing")[0])
    status, headers, _ = ask(connection, "PUT", "/echo", b"x")
    check("405", (405, "POST"), (status, headers["Allow"]))
    check("one connection for all", True, connection.sock is kept)


def by_socket(address):
    get = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    last = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    check("pipelined", 17, raw(address, 16 * get + last).count(b"\r\n\r\nhello"))
    post = b"POST /echo HTTP/1.1\r\nHost: x\r\n"
    refused = {
        b"GET / HTTP/1.1\r\n\r\n": b"400",
        b"GET / HTTP/1.1\nHost: x\n\n": b"400",
        post + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab": b"400",
        post + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": b"400",
        post + b"Content-Length : 1\r\n\r\na": b"400",
        post + b"Content-Length: -1\r\n\r\n": b"400",
        post + b"Content-Length: +1\r\n\r\na": b"400",
        post + b"X: a\r\n b\r\n\r\n": b"400",
        post + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n": b"400",
        post + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n": b"400",
        post + b"Content-Length: 99999999\r\n\r\n": b"413",
        b"GET /" + 9000 * b"x" + b" HTTP/1.1\r\n": b"414",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + 20000 * b"x": b"431",
        b"GET / HTTP/2.0\r\nHost: x\r\n\r\n": b"505",
    }
    for request, status in refused.items():
        answer = raw(address, request + get)  # nothing behind a refused request is read as another one
        check(request[:80], (status, 1), (answer[9:12], answer.count(b"HTTP/1.1 ")))


def by_curl(address):
    url = f"http://{address[0]}:{address[1]}"
    curl = ["curl", "-sS", "-w", " %{http_code}"]
    for arguments, expected in ((["/"], "hello 200"), (["/nothing"], "404 Not Found\n 404"),
                                (["/echo", "-d", "a body"], "a body 200"),
                                (["/echo", "-d", "waits", "-H", "Expect: 100-continue"], "waits 200"),
                                (["/echo", "-d", "chunks", "-H", "Transfer-Encoding: chunked"], "chunks 200"),
                                (["/", "--http1.0"], "hello 200")):
        out = subprocess.run([*curl, url + arguments[0], *arguments[1:]], capture_output=True, text=True, timeout=TIMEOUT)
        check(f"curl {arguments}", expected, out.stdout + out.stderr)


def by_client(name, client, url):
    """By an object with the methods of requests and httpx, whose connection stays."""
    body = bytes(range(256)) * 1000
    hello = client.get(url + "/")
    check(f"{name}: hello", (200, "hello", "utf-8"), (hello.status_code, hello.text, hello.encoding))
    check(f"{name}: head", ("5", b""), (client.head(url + "/").headers["Content-Length"], client.head(url + "/").content))
    check(f"{name}: a form", "a=b+c&d=%C3%A9", client.post(url + "/echo", data={"a": "b c", "d": "é"}).text)
    whole = {"data" if name == "requests" else "content": body}
    check(f"{name}: a body", body, client.post(url + "/echo", **whole).content)
    chunks = {next(iter(whole)): iter([body, b"x", body])}
    check(f"{name}: chunks", body + b"x" + body, client.post(url + "/echo", **chunks).content)
    check(f"{name}: 404", 404, client.get(url + "/none").status_code)
    check(f"{name}: 405", (405, "POST"), (lambda answer: (answer.status_code, answer.headers["Allow"]))(client.put(url + "/echo")))


def by_clients_of_venv(url):
    try:
        import httpx
        import requests
    except ImportError:
        return
    with requests.Session() as session, httpx.Client(timeout=TIMEOUT) as client:
        by_client("requests", session, url)
        by_client("httpx", client, url)


def main():
    side = subprocess.Popen([sys.argv[1], "0"], stdout=subprocess.PIPE, text=True)
    try:
        host, port = side.stdout.readline().strip().removeprefix("serving at tcp://").split(":")
        address = host, int(port)
        by_python(address)
        by_socket(address)
        if shutil.which("curl"):
            by_curl(address)
        by_clients_of_venv(f"http://{host}:{port}")
    finally:
        side.kill()


if __name__ == "__main__":
    main()
